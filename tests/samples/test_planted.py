"""The planted corpus: the gold evidence decides the label, and nothing else says anything about it."""

from __future__ import annotations

import json
import math
from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from eraser_hub.metrics.tokens import split_tokens
from eraser_hub.samples.plant import KD, KINDS, LABELS, SIZES, plant, planted

pytestmark = pytest.mark.unit

Plain = tuple[tuple[str, ...], tuple[int, ...], str]  # tokens, places of the evidence, label


def read(folder: Path, split: str) -> list[Plain]:
    with (folder / "docs.jsonl").open(encoding="utf-8") as lines:
        texts = {each["docid"]: each["document"] for each in map(json.loads, lines)}
    with (folder / f"{split}.jsonl").open(encoding="utf-8") as lines:
        return [plain(record, texts[record["annotation_id"]]) for record in map(json.loads, lines)]


def plain(record: dict[str, Any], text: str) -> Plain:
    tokens = tuple(split_tokens(text))
    (group,) = record["evidences"]
    for span in group:
        assert span["text"].split(" ") == list(tokens[span["start_token"] : span["end_token"]])
        before = [len(split_tokens(sentence)) for sentence in text.split("\n")]
        start = sum(before[: span["start_sentence"]])
        assert start <= span["start_token"] and span["end_token"] <= start + before[span["start_sentence"]]
    places = tuple(place for span in group for place in range(span["start_token"], span["end_token"]))
    return tokens, places, record["classification"]


@pytest.fixture(params=list(KINDS))
def corpus(request, samples) -> Path:
    return samples / "planted" / f"planted_{request.param}"


def test_the_script_writes_what_is_checked_in(corpus, tmp_path):
    written = plant(tmp_path / corpus.name, corpus.name.removeprefix("planted_"))
    assert {path.name for path in written.iterdir()} == {path.name for path in corpus.iterdir()}
    for path in written.iterdir():
        assert path.read_bytes() == (corpus / path.name).read_bytes(), path.name


@pytest.mark.parametrize("split", SIZES)
def test_the_deciding_words_give_the_label(corpus, split):
    rows = read(corpus, split)
    assert len(rows) == SIZES[split]
    labels: dict[tuple[str, ...], set[str]] = {}
    for tokens, places, label in rows:
        labels.setdefault(tuple(tokens[place] for place in places), set()).add(label)
    assert all(len(each) == 1 for each in labels.values())


@pytest.mark.parametrize("split", SIZES)
def test_with_any_of_them_hidden_the_text_says_nothing(corpus, split):
    """Whatever part of the evidence is seen: each text that is left occurs equally often with each label."""
    rows = read(corpus, split)
    for seen in range(len(rows[0][1])):
        counts: dict[Any, Counter[str]] = {}
        for tokens, places, label in rows:
            for part in combinations(places, seen):
                hidden = set(places) - set(part)
                left = tuple(None if place in hidden else token for place, token in enumerate(tokens))
                counts.setdefault(left, Counter())[label] += 1
        assert all(each[LABELS[0]] == each[LABELS[1]] for each in counts.values())


@pytest.mark.parametrize("split", SIZES)
def test_the_mask_alone_says_nothing_and_kd_fits_it(corpus, split):
    shapes: dict[Any, Counter[str]] = {}
    for tokens, places, label in read(corpus, split):
        shapes.setdefault((len(tokens), places), Counter())[label] += 1
        assert 24 <= len(tokens) <= 40
        assert math.ceil(KD[corpus.name.removeprefix("planted_")] * len(tokens)) == len(places)
    assert all(each[LABELS[0]] == each[LABELS[1]] for each in shapes.values())


def test_no_text_of_a_split_occurs_in_another(corpus):
    held = [{tokens for tokens, _, _ in read(corpus, split)} for split in SIZES]
    assert not any(one & other for one, other in combinations(held, 2))


def test_position_alone_tells_the_evidence_from_equal_words(samples):
    decoys = 0
    for tokens, places, _ in read(samples / "planted" / "planted_position", "train"):
        decoys += sum(tokens.count(tokens[place]) - 1 for place in places)
    assert decoys > SIZES["train"] // 4


def test_seeds_and_sizes_are_the_users():
    one, other = (list(planted("negation", "train", 10, seed)) for seed in (1, 2))
    assert len(one) == 12  # three filler texts, each with its four ways of deciding
    assert one != other and one == list(planted("negation", "train", 10, 1))
    with pytest.raises(KeyError):
        list(planted("irony", "train", 2))
