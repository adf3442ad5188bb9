"""Plantings: the rule reads the deciding words alone, and nothing else tells the label or looks rarer."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eraser_hub.experiments.planted_models import BIASES, MASK, SLOPES, PlantedModel, mask_others
from eraser_hub.experiments.plantings import (
    DISTRACTORS,
    GRADE_WEIGHTS,
    KINDS,
    LAST,
    SHORTCUT_DISTRACTORS,
    SHORTCUT_SIGN,
    SIGN,
    TURN,
    make_planted_texts,
    read_sentences,
)
from eraser_hub.samples import SAMPLES
from eraser_hub.samples.plant import LABELS

from ..refusals import refused

TEXTS = {kind: make_planted_texts(kind, "test", 24, 1) for kind in KINDS}
EVERY = {kind: make_planted_texts(kind, "train", 240, 1, every=True) for kind in KINDS}


def masked(tokens, gone):
    return [MASK if away else token for away, token in zip(gone, tokens, strict=True)]


def test_there_are_the_plantings_that_the_field_argues_about():
    assert set(KINDS) == {
        *("word", "conjunction", "negation", "position", "redundant", "graded", "counter", "distance", "documents"),
        *("leak", "shortcut"),
    }


@pytest.mark.parametrize("kind", KINDS)
def test_the_rule_gives_the_label(kind):
    for one in EVERY[kind]:
        assert KINDS[kind].judge(one.instance.tokens) == pytest.approx(1 if one.instance.label == "POS" else -1)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=60, derandomize=True, deadline=None)
@given(st.integers(0, 23), st.integers(0, 10_000), st.floats(0, 1))
def test_without_the_deciding_words_nothing_decides(kind, number, seed, share):
    """Whatever else is masked; 3,061 of 12,000 masked texts of "position" had another z before."""
    one, judge = TEXTS[kind][number], KINDS[kind].judge
    gone = np.random.default_rng(seed).random(len(one.importance)) < share
    assert judge(masked(one.instance.tokens, gone | one.deciding)) == 0
    kept = judge(masked(one.instance.tokens, gone & ~one.deciding))
    assert kept == pytest.approx(judge(one.instance.tokens))


@pytest.mark.parametrize("kind", KINDS)
def test_importance_is_what_the_rule_does(kind):
    """Alone, each word of a sum has its share; of an interaction no word alone decides; of redundant ones each does."""
    for one in TEXTS[kind]:
        sign = 1 if one.instance.label == "POS" else -1
        values = one.importance[one.deciding]
        alone = []
        for place in np.flatnonzero(one.deciding):
            gone = np.ones(len(one.importance), dtype=bool)
            gone[place] = False
            alone.append(sign * KINDS[kind].judge(masked(one.instance.tokens, gone)))
        if kind in ("conjunction", "negation", "distance", "documents"):
            assert alone == [0, 0] and values.tolist() == [1, 1]
        else:
            assert alone == pytest.approx(values.tolist())
        if kind == "graded":
            assert sorted(values) == pytest.approx(sorted(GRADE_WEIGHTS))
        if kind == "counter":
            assert sorted(values) == [-1, 1, 1] and one.supporting.sum() == 2
        if kind == "redundant":
            assert values.tolist() == [1, 1]


@pytest.mark.parametrize("kind", KINDS)
def test_the_gold_is_the_evidence(kind):
    """What scores of agreement compare with are the words that support the label, as many as the planting has."""
    counts = {"graded": 3, "counter": 3} | dict.fromkeys(("word", "position", "leak", "shortcut"), 1)
    for one in TEXTS[kind]:
        flags = np.concatenate([np.asarray(part, dtype=bool) for part in one.instance.rationale])
        assert (flags == one.supporting).all() and one.deciding.sum() == counts.get(kind, 2)
        assert len(one.instance.documents) == (2 if kind == "documents" else 1)


def test_a_turning_word_stands_before_the_judgement():
    for one in TEXTS["negation"]:
        first, second = np.flatnonzero(one.deciding)
        assert second == first + 1 and one.instance.tokens[first] in TURN and one.instance.tokens[second] in SIGN


@pytest.mark.parametrize("kind", ["graded", "counter"])
def test_the_place_of_a_word_tells_nothing_of_its_weight(kind):
    orders = {tuple(one.importance[one.deciding]) for one in EVERY[kind]}
    assert len(orders) == {"graded": 6, "counter": 3}[kind]


@pytest.mark.parametrize("kind", KINDS)
def test_distractors_are_as_frequent_as_the_words_that_decide_and_say_nothing(kind):
    words = SHORTCUT_DISTRACTORS if kind == "shortcut" else DISTRACTORS
    counts = {label: Counter[str]() for label in LABELS}
    deciding = 0
    for one in EVERY[kind]:
        own = [token for token in one.instance.tokens if token in words]
        counts[one.instance.label].update(own)
        deciding += int(one.deciding.sum())
        assert len(own) == one.deciding.sum() and one.distractors.sum() >= len(own)
        assert not (one.distractors & one.deciding).any()
        assert all(
            token in words or token in KINDS[kind].words
            for token, mark in zip(one.instance.tokens, one.distractors, strict=True)
            if mark
        )
    assert counts["NEG"] == counts["POS"]
    assert sum(counts["NEG"].values()) * 2 == deciding


@pytest.mark.parametrize("kind", KINDS)
def test_the_rest_of_a_text_says_nothing(kind):
    """Each text without its deciding words occurs equally often with each label; in "leak" their places tell it."""
    rests: dict[tuple[str, ...], Counter[str]] = {}
    for one in EVERY[kind]:
        rest = tuple(token for token, gone in zip(one.instance.tokens, one.deciding, strict=True) if not gone)
        rests.setdefault(rest, Counter())[one.instance.label] += 1
    if kind != "leak":  # there a filler word stands in the other place
        assert all(count["NEG"] == count["POS"] for count in rests.values())
    labels = Counter(one.instance.label for one in EVERY[kind])
    assert labels["NEG"] == labels["POS"]


def test_the_place_of_the_evidence_reveals_the_label_of_a_leak():
    for one in TEXTS["leak"]:
        (place,) = np.flatnonzero(one.supporting)
        assert (place < len(one.importance) / 2) == (one.instance.label == "POS")


def test_the_words_of_an_interaction_stand_far_apart():
    for one in TEXTS["distance"]:
        first, last = np.flatnonzero(one.supporting)
        assert first <= 6 and last >= len(one.importance) - 8


def test_the_evidence_of_documents_stands_in_both():
    for one in TEXTS["documents"]:
        assert [sum(flags) for flags in one.instance.rationale] == [1, 1] and len(one.instance.documents) == 2
        assert one.instance.evidence_documents == (0, 1)


def test_a_judgement_of_position_stands_among_the_last_tokens_and_decoys_do_not():
    for one in TEXTS["position"]:
        judged = [at for at, token in enumerate(one.instance.tokens) if token in SIGN]
        assert judged[-1] == np.flatnonzero(one.supporting)[0] >= len(one.importance) - LAST > judged[-2]


def test_shortcuts_are_planted_into_real_sentences():
    sentences = [("a", "real", "sentence", "of", "words", str(number)) for number in range(9)]
    for one in make_planted_texts("shortcut", "test", 12, 1, sentences):
        tokens = one.instance.tokens
        left = [token for token, mark in zip(tokens, one.deciding | one.distractors, strict=True) if not mark]
        assert len(left) == len(tokens) - 2 and len(left) % 6 == 0 and set(left[:5]) == set(sentences[0][:5])
        assert [token for token in tokens if token in SHORTCUT_SIGN] == [tokens[np.flatnonzero(one.deciding)[0]]]


def test_redundant_evidence_is_two_alternatives():
    assert all([len(group) for group in one.row["evidences"]] == [1, 1] for one in TEXTS["redundant"])
    assert all(len(one.row["evidences"]) == 1 for one in TEXTS["distance"])


def test_seeds_splits_and_sizes_are_the_users():
    def tokens(*arguments, **more):
        return [one.instance.tokens for one in make_planted_texts(*arguments, **more)]

    assert tokens("word", "test", 5, 1) == tokens("word", "test", 5, 1) != tokens("word", "test", 5, 2)
    assert not {tuple(t) for t in tokens("word", "train", 50, 1)} & {tuple(t) for t in tokens("word", "test", 50, 1)}
    assert len(tokens("word", "test", 5, 1)) == 5 and len(tokens("conjunction", "train", 5, 1, every=True)) == 8
    with pytest.raises(KeyError):
        make_planted_texts("irony", "test", 1, 1)


def test_sentences_of_every_layout_are_read(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "trees").mkdir()
    lines = [f"line {number} of a document {'x ' * 20}" for number in range(20)]
    (tmp_path / "docs" / "one.txt").write_text("\n".join([*lines, lines[0], "too short"]), "utf-8")
    (tmp_path / "docs.jsonl").write_text('{"docid": "a", "document": "a text of five tokens\\nno"}\n', "utf-8")
    trees = "".join(f"(3 (2 It) (4 (2 is) (2 (2 number) (2 {number}) (2 .))))\n" for number in range(20))
    (tmp_path / "trees" / "train.txt").write_text(trees, "utf-8")
    found = read_sentences(tmp_path)
    assert len(found) == 41 and max(map(len, found)) == 14
    assert ("It", "is", "number", "7", ".") in found and ("a", "text", "of", "five", "tokens") in found


def test_too_few_sentences_are_refused(tmp_path):
    with refused("file-missing", "at least 30 sentences", "found 0", argument="texts"):
        read_sentences(tmp_path / "nowhere")


def test_texts_of_another_layout_are_refused(tmp_path):
    for name, content, rule in (
        ("docs.jsonl", b'{"docid": "a"}\n', "key-missing"),
        ("trees/dev.txt", b"(3 (2 It)\n", "syntax"),
        ("docs/a.txt", b"caf\xe9\n", "encoding"),
    ):
        path = tmp_path / rule / name
        path.parent.mkdir(parents=True)
        path.write_bytes(content)
        with refused(rule, file=path):
            read_sentences(tmp_path / rule)


def test_the_samples_hold_enough_real_sentences():
    assert len(read_sentences(SAMPLES / "eraser")) >= 100


# --- models in closed form ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_models_in_closed_form_have_a_slope_and_a_bias(kind):
    plain, other = PlantedModel(kind), PlantedModel(kind, 3, 1)
    assert (plain.slope, plain.bias) == (3, 0)
    assert SLOPES[0] <= other.slope <= SLOPES[1] and BIASES[0] <= other.bias <= BIASES[1]
    assert (other.slope, other.bias) == (PlantedModel(kind, 3, 1).slope, PlantedModel(kind, 3, 1).bias)
    assert other.slope != PlantedModel(kind, 3, 2).slope != PlantedModel(kind, 4, 2).slope
    for one in TEXTS[kind]:
        z = 3.0 if one.instance.label == "POS" else -3.0
        assert plain.predict_proba([one.instance.tokens])[0, 1] == pytest.approx(1 / (1 + np.exp(-z)))
        assert plain.predict_proba([[MASK] * len(one.importance)])[0].tolist() == [0.5, 0.5]
        p = other.predict_proba([one.instance.tokens])[0]
        assert LABELS[int(p.argmax())] == one.instance.label  # |bias| < slope


@pytest.mark.parametrize("kind", KINDS)
def test_masked_training_texts_keep_what_decides(kind):
    random = np.random.default_rng(1)
    gone = 0
    for one in TEXTS[kind]:
        other = mask_others(one, random)
        assert list(map(len, other.documents)) == list(map(len, one.instance.documents))
        assert KINDS[kind].judge(other.tokens) == pytest.approx(KINDS[kind].judge(one.instance.tokens))
        gone += other.tokens.count(MASK)
    assert gone > 24
