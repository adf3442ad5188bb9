"""Fixtures of explanations, for the models that are trained to be explained, and training on one thread."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.attribution.conftest import hub, linear, network, planted, tokenizer, word_tokenizer  # noqa: F401
from tests.planted import CUES, FILLER

LABELS = ("NEG", "POS")


@pytest.fixture(autouse=True)
def one_thread(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Small networks are fastest on one thread, and the same on any machine; what trainings say is caught."""
    torch = pytest.importorskip("torch")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    caplog.set_level(logging.INFO, "eraser_hub")
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A small random BERT over the planted words."""
    import torch
    import transformers

    folder = tmp_path_factory.mktemp("encoder")
    words = [".", *FILLER, *CUES["NEG"], *CUES["POS"], "good", "bad", "film", "the", "Is", "it", "?"]
    made = word_tokenizer(words, window=64)
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(made),
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    transformers.BertModel(config).save_pretrained(folder)
    made.save_pretrained(folder)
    return str(folder)


@pytest.fixture
def train_planted(planted: Callable[..., Any], tmp_path: Path) -> Callable[..., Any]:  # noqa: F811
    """Trains a call on so many planted texts (those of validation a third) in a folder; returns the opened model."""
    from eraser_hub.attribution import open_model
    from eraser_hub.attribution.models.labels import align_labels
    from eraser_hub.systems.data import Data, Training
    from eraser_hub.systems.system import train_into
    from eraser_hub.systems.training import read_systems

    def train(call: str, size: int = 240, query: bool = False, folder: Path = tmp_path / "m") -> Any:
        name, systems = read_systems(call)
        (system,) = systems.values()
        data = Data(planted("train", size, query), planted("val", size // 3, query), LABELS, query)
        facts = {"system": name, "settings": system.record(), "uses_query": query, "label_names": LABELS}
        train_into(Training(data, folder, facts=facts), system.fit)
        model = open_model(folder, device="cpu")
        align_labels(model, LABELS)
        return model

    return train
