"""Remove and retrain: on planted texts the words that decide are missed, random ones are not; a stopped run goes on."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("sklearn")

from eraser_hub.attribution.dataset import open_split
from eraser_hub.attribution.instances import Instance
from eraser_hub.experiments.roar import RoarConfig, make_roar_tables, remove_top_tokens, roar, write_dataset
from eraser_hub.samples.plant import planted

from ..refusals import refused

NAMES = ("NEG", "POS")


def texts(split: str, size: int) -> list[Instance]:
    rows = []
    for record, text in planted("word", split, size, 1):
        name = record["docids"][0]
        rows.append(Instance(record["annotation_id"], (), (name,), (tuple(text.split()),), record["classification"]))
    return rows


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("planted") / "planted"
    write_dataset(folder, {"train": texts("train", 60), "test": texts("test", 24)}, NAMES)
    return folder


@pytest.fixture(scope="module")
def options(corpus, tmp_path_factory):
    out = tmp_path_factory.mktemp("roar") / "out"
    return RoarConfig(dataset=str(corpus), model="logistic-regression", method="coefficients", out=out, bins=(0.1,))


@pytest.fixture(scope="module")
def done(options):
    return options.out, roar(options)


def test_the_words_that_decide_are_missed(done):
    _, result = done
    whole, tenth = result["bins"]
    assert whole["share"] == 0 and whole["coefficients"] == whole["random"]
    assert whole["coefficients"]["accuracy"] >= 0.9 and tenth["random"]["accuracy"] >= 0.7
    # of fair throws, one a text: 4 standard deviations above a half
    texts_of = result["instances"]
    assert tenth["coefficients"]["accuracy"] <= 0.5 + 4 * np.sqrt(0.25 / texts_of)
    low, high = tenth["coefficients"]["ci"]
    assert low <= tenth["coefficients"]["accuracy"] <= high
    table = make_roar_tables(result).written("text")
    assert "10%" in table and "coefficients" in table


def test_what_is_done_is_not_done_again(done, options, monkeypatch):
    out, result = done
    monkeypatch.setattr("eraser_hub.experiments.folder.train_model", lambda *words: pytest.fail("trained again"))
    assert roar(options) == result
    assert json.dumps(result)
    with refused("resume", "method was 'coefficients', now 'occlusion'", file=out, argument="out"):
        roar(replace(options, method="occlusion"))
    with refused("resume", "seed was 1, now 2", file=out, argument="out"):
        roar(replace(options, seed=2))
    (out.parent / "mine").mkdir()
    (out.parent / "mine" / "notes.txt").write_text("mine")
    with refused("file-exists", "`roar`", file=out.parent / "mine", argument="out"):
        roar(replace(options, out=out.parent / "mine"))


def test_what_is_removed_is_gone_from_both_splits(done, corpus):
    out, _ = done
    for split in ("train", "test"):
        before = {one.id: one.tokens for one in open_split(str(corpus), None, split).instances()}
        for name in ("coefficients", "random"):
            after = {one.id: one.tokens for one in open_split(str(out / f"{name}-0.1"), None, split).instances()}
            assert before.keys() == after.keys()
            for identity, tokens in after.items():
                assert len(before[identity]) - len(tokens) == -(-len(before[identity]) // 10)
                rest = iter(before[identity])
                assert all(token in rest for token in tokens), "in their order"


def test_the_top_of_two_documents():
    one = Instance("x", ("q",), ("a", "b"), (("u", "v"), ("w", "x")), "POS", scores=((0.1, 0.9), (0.5, 0.7)))
    rest = remove_top_tokens(one, 0.5, "occlusion", 1)
    assert rest.documents == (("u",), ("w",)) and (rest.names, rest.query, rest.label) == (("a", "b"), ("q",), "POS")
    assert remove_top_tokens(one, 0.5, "random", 1) == remove_top_tokens(replace(one, scores=None), 0.5, "random", 1)


@pytest.mark.parametrize(
    ("more", "rule", "mentions"),
    [
        ({"bins": ()}, "option-value", ("bins", "()")),
        ({"bins": (0.1, 1.0)}, "option-value", ("bins", "(0.1, 1.0)")),
        ({"split": "train"}, "option-conflict", ("split", "found train")),
        ({"method": "attention"}, "unsupported", ("`method` attention",)),
    ],
)
def test_what_is_refused(options, tmp_path, more, rule, mentions):
    with refused(rule, *mentions):
        roar(replace(options, out=tmp_path / "out", **more))
