"""Pipelines: what is selected, that nothing else is read, and what is written."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from eraser_hub.attribution import Instance, build_settings, explain_instances, open_model
from eraser_hub.attribution.models.labels import align_labels
from eraser_hub.metrics.tokens import split_sentences

from ..needs import late, needs
from ..refusals import refused

pytestmark = needs("torch", "transformers", "skops")
pipeline = late("eraser_hub.systems.pipeline")
TEXT = "the film is long .\nit is splendid indeed .\nthe river was wide .\nnobody came"


class Counting:
    """p of the second label grows with the number of known words; it remembers what it read."""

    def __init__(self, words, labels):
        self.words, self.label_names, self.read = words, labels, []

    def predict_proba(self, token_lists):
        self.read += [tuple(tokens) for tokens in token_lists]
        hits = np.array([sum(token in self.words for token in tokens) for tokens in token_lists], dtype=float)
        positive = 1 / (1 + np.exp(-hits))
        return np.stack([1 - positive, positive], axis=1)


def make_text(content=TEXT, marked=(7,), name="one"):
    """An instance of one document, some of its tokens marked."""
    lines = split_sentences(content)
    tokens = tuple(token for line in lines for token in line)
    flags = tuple(place in marked for place in range(len(tokens)))
    return Instance(name, (), (name,), (tokens,), "POS", (flags,), sentences=(tuple(map(len, lines)),))


def make_pipeline(number=1):
    classifier = Counting({"splendid", "long"}, ("NEG", "POS"))
    identifier = open_model(Counting({"splendid"}, pipeline.SENTENCE_LABELS))
    selector = pipeline.SentenceSelector(identifier, number)
    made = pipeline.RationalePipeline(selector, open_model(classifier), uses_query=False, description="p")
    align_labels(made, ("NEG", "POS"))
    return made, classifier


def test_a_pipeline_explains_itself_by_its_own_rationale():
    model, classifier = make_pipeline()
    (prediction,) = explain_instances(model, [make_text()], build_settings(selects=True))
    (rationale,) = prediction["rationales"]
    assert rationale["hard_rationale_predictions"] == [{"start_token": 5, "end_token": 10}]
    assert len(rationale["soft_sentence_predictions"]) == 4 and "soft_rationale_predictions" not in rationale
    assert prediction["sufficiency_classification_scores"] == prediction["classification_scores"]
    # without it another sentence is selected, the first of equals, and "long" of the first is read
    without = prediction["comprehensiveness_classification_scores"]["POS"]
    assert without == pytest.approx(1 / (1 + np.exp(-1.0))) and "thresholded_scores" not in prediction
    read = {" ".join(tokens) for tokens in classifier.read}
    assert read == {"it is splendid indeed .", "the film is long .", ""}


def test_erasing_otherwise_than_by_removal_is_refused_and_nothing_gives_no_selection():
    model, _ = make_pipeline()
    with refused("`erase` mask", argument="erase"):
        list(model.cut(model.read(make_text()), np.ones((1, 17), dtype=bool), "mask"))
    (selection,) = model.select([model.read(Instance("x", (), ("d",), ((),)))])
    assert not len(selection.positions) and selection.sentences == ((),)


def test_with_a_query_the_reader_asks_and_damage_is_said(planted, train_planted, tmp_path):
    """The query stands apart, and masks keep it: another query is another input."""
    call = "lehman(embedding_size=12, hidden_size=12, patience=0, dropout=0, learning_rate=0.02, epochs=1)"
    model, one = train_planted(call, 16, query=True), planted("test", 1, True)[0][0]
    texts = [replace(one, query=query) for query in (one.query, ("it", "?"))]
    first, other = explain_instances(model, texts, build_settings(selects=True))
    assert model.uses_query and first["classification_scores"] != other["classification_scores"]
    path = tmp_path / "m" / "model.json"
    facts = json.loads(path.read_text())
    path.write_text(json.dumps({**facts, "settings": {}}))
    with refused("sentences", file=tmp_path / "m"):
        open_model(tmp_path / "m")
    (tmp_path / "m" / "classifier" / "weights.safetensors").write_bytes(b"cut")
    with refused(file=tmp_path / "m" / "classifier"):
        open_model(tmp_path / "m")
