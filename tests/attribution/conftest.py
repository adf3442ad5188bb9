"""A small dataset folder, a fitted bag-of-words model and a random transformer, all made here."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eraser_hub.attribution.instances import Instance

from ..refusals import refused

# half of float64's 52 binary digits: another order of the same sums costs a few of the last, a fault shows in the first
CLOSE = 2.0**-26
GOOD, BAD = ("good", "fine", "warm", "bright"), ("bad", "dull", "cold", "grey")
FILLER = ("the", "a", "film", "scene", "with", "and", "of", "plot")


def made_row(number: int, length: int = 30) -> dict[str, Any]:
    """A document of filler with some telling words; those words are its rationale."""
    random = np.random.default_rng(number)
    label = number % 2
    words = [FILLER[place] for place in random.integers(0, len(FILLER), length)]
    places = sorted(random.choice(length, 4, replace=False).tolist())
    for place in places:
        words[place] = (BAD, GOOD)[label][int(random.integers(0, 4))]
    text = " ".join(words[: length // 2]) + " \n" + " ".join(words[length // 2 :])
    name = f"doc{number}"
    evidences = [
        [{"docid": name, "text": words[place], "start_token": place, "end_token": place + 1}] for place in places
    ]
    return {
        "annotation_id": name,
        "classification": label,
        "query": "Is it good ?",
        "documents": [{"docid": name, "text": text}],
        "evidences": evidences,
    }


def write_hub(folder: Path, config: str, splits: dict[str, list[dict[str, Any]]], labels: list[str]) -> Path:
    """Write rows as a dataset folder; return the folder."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    (folder / config).mkdir(parents=True)
    label = {"name": "classification", "dtype": {"class_label": {"names": labels}}}
    files = [{"split": split, "path": f"{config}/{split}-*.parquet"} for split in splits]
    card = {"configs": [{"config_name": config, "default": True, "data_files": files}]}
    card["dataset_info"] = [{"config_name": config, "features": [label]}]
    for split, rows in splits.items():
        pq.write_table(pa.Table.from_pylist(rows), folder / config / f"{split}-00000-of-00001.parquet")
    (folder / "README.md").write_text(f"---\n{json.dumps(card)}\n---\n", "utf-8")  # JSON is YAML
    return folder


def make_hub(folder: Path, train: dict[str, Any] | None = None, validation: dict[str, Any] | None = None) -> Path:
    """Write 40 training and 21 validation rows, some columns of which hold the same value in every row."""
    rows = {
        "train": [{**made_row(number), **(train or {})} for number in range(40)],
        "validation": [{**made_row(number), **(validation or {})} for number in range(100, 121)],
    }
    return write_hub(folder, "movies", rows, ["NEG", "POS"])


@pytest.fixture(scope="session")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset folder in the schema of ``eraser``: see `make_hub`."""
    return make_hub(tmp_path_factory.mktemp("hub") / "eraser")


@pytest.fixture(scope="session")
def linear(hub: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model folder of ``eraser-hub train --model logistic-regression``."""
    import eraser_hub

    out = tmp_path_factory.mktemp("linear") / "model"
    return eraser_hub.train(hub, "logistic-regression", config="movies", eval_split="", out=out).folder


def word_tokenizer(words: Sequence[str], window: int = 32) -> Any:
    """A WordPiece tokenizer over these words, in BERT's manner."""
    import transformers
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    vocabulary = {
        word: place for place, word in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *dict.fromkeys(words)])
    }
    made = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_max_length=window,
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    )


ENDS = {  # of byte-level tokenizers, by their manner: around a text, and around two
    "xlnet": ("$A:0 </s>:0 <s>:2", "$A:0 </s>:0 $B:1 </s>:1 <s>:2"),
    "t5": ("$A </s>", "$A </s> $B </s>"),
    "llama": ("<s> $A", "<s> $A <s> $B"),
    "roberta": ("<s> $A </s>", "<s> $A </s> </s> $B </s>"),
}


def byte_tokenizer(manner: str = "roberta", size: int = 300, prefix: bool = True, **more: Any) -> Any:
    """Byte-level sub-words that know some words, with the special tokens of a manner."""
    import transformers
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=prefix)
    made.decoder = decoders.ByteLevel()
    special, alphabet = ["<s>", "<pad>", "</s>", "<mask>"], pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=size, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    made.train_from_iterator(["the good film was bad and very long indeed ; Text : Label system user"] * 9, trainer)
    if manner in ENDS:
        single, pair = ENDS[manner]
        made.post_processor = processors.TemplateProcessing(
            single=single, pair=pair, special_tokens=[("<s>", 0), ("</s>", 2)]
        )
    tokens = {"bos_token": "<s>", "eos_token": "</s>"}
    if manner != "gpt2":
        tokens |= {"pad_token": "<pad>", "mask_token": "<mask>"}
    if manner in ("xlnet", "roberta"):
        tokens |= {"cls_token": "<s>", "sep_token": "</s>"}
    return transformers.PreTrainedTokenizerFast(tokenizer_object=made, **{"model_max_length": 64, **tokens, **more})


def check_answers(model: Any, one: Instance) -> None:
    """What a model that answers questions about a text of seven tokens or more predicts is what the benchmark takes."""
    from eraser_hub.attribution import build_settings, explain_instances
    from eraser_hub.metrics.rationale_set_agreement import RationaleSetAgreement

    gold = {"id": one.id, "rationale_ids": [[[0, 1]]], "answers": [" ".join(one.tokens[:2])]}
    methods = ("random", "gradient", "simple-gradient", "input-x-gradient", "integrated-gradients", "attention")
    for method, paper in product(methods, ("", "wang2022")):
        call = f"{method}(steps=20)" if method == "integrated-gradients" else method
        settings = build_settings(paper, method=call, kd=0.3)
        (found,) = explain_instances(model, [one], settings, kind="perturbation")
        assert sorted(found["ranked_tokens"][0]) == sorted(one.tokens)
        assert found["rationale_tokens"][0] == found["ranked_tokens"][0][:3] and len(found["rationale"][0]) == 3
        assert 0 < found["answer_proba"] <= 1 and set(found["pred_label"].split()) <= set(one.tokens)
        agreement = RationaleSetAgreement().compute(predictions=[found], references=[gold])
        assert 0 <= agreement["answer_f1"] <= 1
        fields = {"rationale_pred_label": True, "non_rationale_pred_label": False}
        for field, kept in fields.items():
            rest = tuple(token for at, token in enumerate(one.tokens) if (at in found["rationale"][0]) == kept)
            assert found[field] == model.answer(model.read(replace(one, documents=(rest,))))[0]
        assert agreement["new_p"] == ([found["pred_label"] == found[field] for field in fields] == [True, False])
    wrong = (
        ("occlusion", "perturbation", "tokens"),
        ("random", "eraser", "tokens"),
        ("random", "perturbation", "sentences"),
    )
    for method, kind, units in wrong:
        with refused(type(model.network).__name__):
            list(explain_instances(model, [one], build_settings(method=method, units=units), kind=kind))


WORDS = (*GOOD, *BAD, *FILLER, "##s", "##ing", "play", "好", "坏", "电", "影", "？", "Is", "it", "?", "-")


@pytest.fixture(scope="session")
def tokenizer() -> Any:
    """The tokenizer of :func:`network`."""
    pytest.importorskip("transformers")
    return word_tokenizer(WORDS)


def make_network(words: Any, kind: str = "BertForSequenceClassification", **more: Any) -> Any:
    """A small random BERT over a tokenizer's words; further settings go to its configuration."""
    import torch
    import transformers

    torch.manual_seed(0)
    settings = {
        "vocab_size": len(words),
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 32,
        "max_position_embeddings": 32,
        "initializer_range": 0.5,
        "id2label": {0: "NEG", 1: "POS"},
        "label2id": {"NEG": 0, "POS": 1},
        **more,
    }
    return getattr(transformers, kind)(transformers.BertConfig(**settings)).eval()


@pytest.fixture
def network(tokenizer: Any) -> Callable[..., Any]:
    """`make_network` of the common words."""
    return partial(make_network, tokenizer)


def instance(text: str, name: str = "one", query: str = "") -> Instance:
    """An instance of one document."""
    return Instance(
        name, tuple(query.split(" ")) if query else (), (name,), (tuple(text.split(" ")) if text else (),), "POS"
    )


class CountingModel:
    """Sigmoid of (good words - bad words); remembers what it was asked."""

    label_names = ("NEG", "POS")
    mask_token = "[MASK]"

    def __init__(self) -> None:
        self.asked: list[list[str]] = []
        self.sizes: list[int] = []

    def predict_proba(self, token_lists: list[list[str]]) -> np.ndarray:
        self.asked += token_lists
        self.sizes.append(len(token_lists))
        logits = np.array([sum((t in GOOD) - (t in BAD) for t in tokens) for tokens in token_lists], dtype=float)
        positive = 1 / (1 + np.exp(-logits))
        return np.stack([1 - positive, positive], axis=1)
