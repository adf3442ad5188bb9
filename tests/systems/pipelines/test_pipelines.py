"""Pipelines: what is selected, that nothing else is read, and what is written."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eraser_hub.attribution import explain_instances
from eraser_hub.attribution.adapter import Selection, align_labels
from eraser_hub.attribution.adapters.plain import PlainModel
from eraser_hub.attribution.instances import Instance, read_eraser_row
from eraser_hub.attribution.settings import build_settings
from eraser_hub.metrics.plain import split_sentences
from eraser_hub.systems.pipelines.pipeline import (
    EVIDENCE,
    SENTENCE_LABELS,
    RationalePipeline,
    SentenceSelector,
    cut_extract,
    find_evidence_sentences,
    find_sentence_bounds,
    make_extract_examples,
    make_sampler,
    make_sentence_examples,
    make_sentence_instances,
)

from ...refusals import refused

TEXT = "the film is long .\nit is splendid indeed .\nthe river was wide .\nnobody came"


class Reader(PlainModel):
    """p of the second label grows with the number of known words; it remembers what it read."""

    def __init__(self, words, labels):
        class Counting:
            label_names = labels

            def __init__(self):
                self.read = []

            def predict_proba(self, token_lists):
                self.read += [tuple(tokens) for tokens in token_lists]
                hits = np.array([sum(token in words for token in tokens) for tokens in token_lists], dtype=float)
                positive = 1 / (1 + np.exp(-hits))
                return np.stack([1 - positive, positive], axis=1)

        super().__init__(Counting())


def text(content=TEXT, marked=(7,), name="one"):
    """An instance of one document, some of its tokens marked."""
    lines = split_sentences(content)
    tokens = tuple(token for line in lines for token in line)
    flags = tuple(place in marked for place in range(len(tokens)))
    return Instance(name, (), (name,), (tokens,), "POS", (flags,), sentences=(tuple(map(len, lines)),))


def pipeline(number=1):
    identifier, classifier = Reader({"splendid"}, SENTENCE_LABELS), Reader({"splendid", "long"}, ("NEG", "POS"))
    made = RationalePipeline(SentenceSelector(identifier, number), classifier, uses_query=False, description="p")
    align_labels(made, ("NEG", "POS"))
    return made, classifier.model


def test_instances_know_their_sentences_and_keep_them_where_they_are_cut():
    row = {
        "annotation_id": "a",
        "query": "",
        "classification": "POS",
        "evidences": [],
        "documents": [{"docid": "d", "text": TEXT + "\n\n"}, {"docid": "e", "text": "one"}],
    }
    one = read_eraser_row(row)
    assert one.sentences == ((5, 5, 5, 2), (1,))
    kept = np.ones(18, dtype=bool)
    kept[[0, *range(5, 10), 17]] = False
    cut = one.only(kept)
    assert cut.sentences == ((4, 5, 2), ()) and cut.documents[0][:4] == ("film", "is", "long", ".")
    assert one.only(np.ones(18, dtype=bool)) == one
    assert Instance("x", (), ("d", "e"), (("a", "b"), ())).sentence_sizes == ((2,), ())


def test_sentences_for_training():
    one, bare = text(), text(marked=(), name="bare")
    assert [" ".join(each.tokens) for each in make_sentence_instances(one)] == TEXT.split("\n")
    assert find_evidence_sentences(one) == [1] and find_evidence_sentences(bare) == []
    sentences, labels = make_sentence_examples([one, bare])
    assert len(sentences) == 4 and [number for number, label in enumerate(labels) if label == EVIDENCE] == [1]
    two = text(marked=(0, 7, 12), name="two")
    extracts, theirs = make_extract_examples([two, bare], ["POS", "NEG"], 2)
    assert [" ".join(each.tokens) for each in extracts] == [
        "the film is long . it is splendid indeed .",
        "the river was wide .",
    ]
    assert theirs == ["POS", "POS"]


def test_negatives_are_drawn_anew_in_each_epoch():
    labels = [EVIDENCE if number % 10 == 0 else "other" for number in range(200)]
    draw = make_sampler(labels, 1.0, seed=3)
    assert all(len(draw(epoch)) == 40 and sum(labels[n] == EVIDENCE for n in draw(epoch)) == 20 for epoch in range(5))
    assert draw(1).tolist() == draw(1).tolist() != draw(2).tolist()
    assert len(make_sampler(labels, 100.0, seed=3)(0)) == 200


@pytest.mark.parametrize(("number", "words"), [(1, "it is splendid indeed ."), (9, TEXT.replace("\n", " "))])
def test_the_best_sentences_are_selected(number, words):
    model, _ = pipeline(number)
    (selection,) = model.selections([model.encode(text())])
    assert " ".join(np.array(text().tokens)[selection.positions]) == words
    assert np.argmax(selection.sentences[0]) == 1 and len(selection.sentences[0]) == 4


def test_a_pipeline_explains_itself_by_its_own_rationale():
    model, classifier = pipeline()
    settings = build_settings("", "", model.has_embeddings, model.selects).for_kind("eraser")
    (prediction,) = explain_instances(model, [text()], settings)
    (rationale,) = prediction["rationales"]
    assert rationale["hard_rationale_predictions"] == [{"start_token": 5, "end_token": 10}]
    assert len(rationale["soft_sentence_predictions"]) == 4 and "soft_rationale_predictions" not in rationale
    assert prediction["sufficiency_classification_scores"] == prediction["classification_scores"]
    # without it another sentence is selected, the first of equals, and "long" of the first is read
    without = prediction["comprehensiveness_classification_scores"]["POS"]
    assert without == pytest.approx(1 / (1 + np.exp(-1.0)))
    assert "thresholded_scores" not in prediction
    read = {" ".join(tokens) for tokens in classifier.read}
    assert read == {"it is splendid indeed .", "the film is long .", ""}


@given(st.lists(st.integers(0, 8), min_size=1, max_size=6), st.data())
def test_the_classifier_reads_the_selection_and_nothing_else(sizes, data):
    """Whatever stands in the tokens that were not selected: the extract, and so the output, is the same."""
    total = sum(sizes)
    positions = np.array(sorted(data.draw(st.sets(st.integers(0, max(0, total - 1)), max_size=total))), dtype=np.int64)
    positions = positions[positions < total]
    kept = set(positions.tolist())

    def instance(other):
        tokens = tuple(f"w{place}" if place in kept else f"{other}{place}" for place in range(total))
        return Instance("x", ("q",), ("d",), (tokens,), sentences=(tuple(filter(None, sizes)),))

    one, two = (cut_extract(instance(other), Selection(positions)) for other in ("a", "b"))
    assert one == two and one.tokens == [f"w{place}" for place in positions]
    assert (
        sum(map(sum, one.sentence_sizes)) == len(positions)
        and find_sentence_bounds(one)[-1:] == find_sentence_bounds(two)[-1:]
    )


def test_erasing_otherwise_than_by_removal_is_refused():
    model, _ = pipeline()
    with refused("`erase` mask", "`erase` remove"):
        model.encode(text()).view(np.ones(17, dtype=bool), "mask")


def test_a_text_of_nothing_gives_no_selection():
    model, _ = pipeline()
    nothing = Instance("x", (), ("d",), ((),))
    (selection,) = model.selections([model.encode(nothing)])
    assert not len(selection.positions) and selection.sentences == ((),)
