"""Fixtures of explanations, for the models that are trained to be explained."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eraser_hub.attribution.instances import Instance
from tests.attribution.conftest import hub, linear, make_network, network, tokenizer, word_tokenizer  # noqa: F401
from tests.planted import CUES, FILLER
from tests.planted import planted as generate_planted

LABELS = ("NEG", "POS")


@pytest.fixture(autouse=True)
def _what_trainings_say(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "eraser_hub")


@pytest.fixture(scope="session")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A small random BERT over the planted words."""
    folder = tmp_path_factory.mktemp("encoder")
    made = word_tokenizer(
        [".", *FILLER, *CUES["NEG"], *CUES["POS"], "good", "bad", "film", "the", "it", "?"], window=64
    )
    sizes = {"hidden_size": 32, "num_hidden_layers": 1, "max_position_embeddings": 64, "initializer_range": 0.02}
    quiet = dict.fromkeys(("hidden_dropout_prob", "attention_probs_dropout_prob"), 0.0)
    make_network(made, "BertModel", **sizes, **quiet).save_pretrained(folder)
    made.save_pretrained(folder)
    return str(folder)


def planted_instances(split: str, size: int, query: bool = False) -> tuple[list[Instance], list[str]]:
    """Return planted instances and their labels."""
    instances = []
    for record, document in generate_planted(split, size):
        lines = [line.split(" ") for line in document.split("\n")]
        tokens = tuple(token for line in lines for token in line)
        spans = [(one["start_token"], one["end_token"]) for group in record["evidences"] for one in group]
        flags = tuple(any(start <= place < end for start, end in spans) for place in range(len(tokens)))
        asked = tuple(record["query"].split()) if query else ()
        name = record["annotation_id"]
        sentences = (tuple(map(len, lines)),)
        label = record["classification"]
        instances.append(Instance(name, asked, (name,), (tokens,), label, (flags,), sentences=sentences))
    return instances, [str(one.label) for one in instances]


@pytest.fixture(scope="session")
def planted() -> Callable[..., tuple[list[Instance], list[str]]]:
    """Makes planted instances; see :func:`planted_instances`."""
    return planted_instances


@pytest.fixture
def train_planted(planted: Callable[..., Any], tmp_path: Path) -> Callable[..., Any]:
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
