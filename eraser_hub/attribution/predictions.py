"""From instances to predictions: scores, rationales, and the model's answers to erased inputs.

The unit of work is a chunk: a fixed number of neighbouring instances. Its results depend on nothing but the chunk, so a
run that is stopped and goes on, or is spread over workers, gives the same predictions as one that runs through.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from itertools import pairwise, product
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from eraser_hub.metrics.predictions import HARD_FIELD, SIDES, SOFT_FIELDS
from eraser_hub.metrics.tokens import find_runs
from eraser_hub.records.errors import DataError, show

from . import erasure
from .engine import Engine
from .instances import Instance, split_into_chunks
from .method import Scores, Search, call
from .models.model import Model
from .settings import MODEL, TARGETS, ExplainSettings
from .text import Text

ALL_ZERO = "instances whose scores are all zero: nothing to normalise"
DIGITS = 9  # significant digits of a written token score; rankings are made from what is written
FULL, WITHOUT, ONLY, NOTHING = (SIDES[side] for side in ("full", "comprehensiveness", "sufficiency", "null"))


def explain_instances(
    model: Model, instances: Iterable[Instance], settings: ExplainSettings, kind: str = "eraser"
) -> Iterator[dict[str, Any]]:
    """Yield predictions for instances in memory, in order; errors as of :func:`explain_chunk`."""
    for _, chunk in split_into_chunks(instances, settings.chunk):
        yield from explain_chunk(model, chunk, settings, kind)[0]


def explain_chunk(
    model: Model,
    instances: Sequence[Instance],
    settings: ExplainSettings,
    kind: str = "eraser",
    on_passes: Callable[[int], None] | None = None,
) -> tuple[list[dict[str, Any]], Engine]:
    """Return predictions for a chunk of instances, in order, and the engine that counted inputs and passes.

    Args:
        model: the model.
        instances: the instances, with the scores or rationales that the settings say are given.
        settings: of the run.
        kind: "perturbation" for the results format of the perturbation benchmark, any other for ERASER's.
        on_passes: called with the number of forward passes after each batch.

    Raises:
        DataError: a method that the model does not allow, outputs that are no probabilities, scores that are infinite.
    """
    model.choices, pairs = settings.choices, kind == "perturbation"
    if model.answers:
        _check_answering(model, settings, pairs)
    seen = [model.see(instance) for instance in instances]
    readings, filler = [model.read(one) for one in seen], settings.choices.filler
    engine = Engine(model, readings, settings.erase, settings.batch_size, on_passes, filler)
    texts = [Text(one, reading, settings, model.notes, pairs) for one, reading in zip(seen, readings, strict=True)]
    if model.answers:
        return _answer(model, texts, engine), engine
    for text, p in zip(texts, engine.proba_of_whole(readings), strict=True):
        text.p, text.label = p, int(p.argmax())
        if settings.target != "predicted":
            text.label = _find_label(text.instance, settings.target, model.label_names)
    _find_rationales(model, texts, engine)
    if pairs:
        return engine.run([_predict_pair(text) for text in texts]), engine
    measured = [measure.measure(texts, engine, settings.method) for measure in settings.measures]
    predictions = engine.run([_predict(text, model.label_names) for text in texts])
    for prediction, *fields in zip(predictions, *measured, strict=True):
        for more in fields:
            prediction |= more
    return predictions, engine


def explain_to_record(
    model: Model,
    chunk: Sequence[Instance],
    settings: ExplainSettings,
    kind: str,
    on_passes: Callable[[int], None] | None = None,
) -> dict[str, Any]:
    """Return a chunk's predictions as JSON lines, and what is counted of it; arguments as of :func:`explain_chunk`."""
    predictions, engine = explain_chunk(model, chunk, settings, kind, on_passes)
    counted = {"instances": len(chunk), "inputs": engine.inputs, "passes": engine.passes}
    return {**counted, **asdict(model.notes.take()), "predictions": list(map(to_json, predictions))}


def to_json(prediction: dict[str, Any]) -> str:
    """Return a prediction as a line of JSON."""
    return msgspec.json.encode(prediction).decode()


def _find_label(instance: Instance, target: str, names: Sequence[str]) -> int:
    """Return the label that an instance's scores explain: gold, or one by its name."""
    is_gold = target == "gold"
    name = instance.label if is_gold else target
    if name not in names:
        expected = "a label" if name is None else f"one of {', '.join((*TARGETS, *names))}"
        message = f"expected {expected}, found {'none' if name is None else show(name)}"
        raise DataError(message, instance=instance.id if is_gold else None, argument="target")
    return names.index(name)


def _find_rationales(model: Model, texts: Sequence[Text], engine: Engine) -> None:
    """Set each text's rationale; before it the scores that it is selected by, where there are any."""
    settings = texts[0].settings
    if settings.rationales == MODEL:
        for text, selection in zip(texts, model.select(engine.readings), strict=True):
            text.rationale, text.sentences = selection
        return
    if settings.rationales:
        for text in texts:
            flags = [flag for document in text.instance.rationale or () for flag in document]
            text.rationale = np.flatnonzero(flags)
        return
    for text, scores in zip(texts, compute_scores(model, texts, engine), strict=True):
        text.scores = round_scores(scores)
        if settings.units == "sentences":
            text.sentences = _score_sentences(text)
        text.rationale = select_tokens(text, settings.kd)


def compute_scores(model: Model, texts: Sequence[Text], engine: Engine) -> list[Scores]:
    """Return the scores of texts by the method of the settings, or those that came with the instances.

    Raises:
        DataError: an instance lacks given scores; the model does not allow the method; scores that are not finite.
    """
    settings = texts[0].settings
    method = settings.method
    if method is None:
        bare = next((text.instance.id for text in texts if text.instance.scores is None), None)
        if bare is not None:
            raise DataError("expected token scores with the instance, found none", instance=bare)
        return [np.concatenate([np.zeros(0), *(text.instance.scores or ())]) for text in texts]
    method.check(model)
    rows = method.scores(texts, engine)
    for text, scores in zip(texts, rows, strict=True):
        if wrong := int(np.count_nonzero(~np.isfinite(scores))):
            message = f"{call(method)}: {wrong} of {len(scores)} token scores are NaN or infinite"
            raise DataError(message, instance=text.instance.id)
    if not (method.normalised and settings.choices.normalise):
        return rows
    for scores in rows:
        if len(scores) and scores.sum() == 0:
            model.notes.count(ALL_ZERO)
    # zeros stay zeros (the authors' code divides 0 by 0)
    return [scores / (scores.sum() or 1.0) for scores in rows]


def round_scores(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Round scores to :data:`DIGITS` digits, as they are written; minus zero becomes zero."""
    return np.asarray([float(f"{value:.{DIGITS}g}") for value in scores], dtype=np.float64) + 0.0


def _score_sentences(text: Text) -> tuple[tuple[float, ...], ...]:
    """Return per document a score of each sentence: the method's own, or the mean of its tokens'.

    Sums of token scores would favour long sentences.
    """
    method = text.settings.method
    values = text.unit_scores
    values = values if method is not None and method.scores_units else values / np.diff(text.bounds)
    counts = [len(sizes) for sizes in text.instance.sentences] or [0] * len(text.instance.documents)
    parts = np.split(round_scores(values), np.cumsum(counts)[:-1])
    return tuple(tuple(part.tolist()) for part in parts)


def select_tokens(text: Text, rate: float) -> NDArray[np.int64]:
    """Return the highest-scored share of a text's tokens as ascending flat positions.

    They are whole sentences where these are the units: as few as hold so many tokens. The perturbation benchmark counts
    within sequences, each with its own kd.
    """
    assert text.scores is not None
    settings, ties, bounds = text.settings, text.settings.choices.ties, text.instance.bounds
    if text.sentences is not None and settings.units == "sentences":
        values = np.asarray([score for document in text.sentences for score in document])
        return erasure.select_top(values, rate, ties, text.bounds)
    if not text.by_sequence:
        return erasure.select_top(text.scores, rate, ties)
    parts = zip(pairwise(bounds), find_kd_of_sequences(text), strict=True)
    tops = [erasure.select_top(text.scores[start:end], share, ties) + start for (start, end), share in parts]
    return np.concatenate([*tops, erasure.NO_POSITIONS])


def find_kd_of_sequences(text: Text) -> tuple[float, ...]:
    """Return kd of each sequence.

    Raises:
        DataError: shares for another number of sequences.
    """
    count = len(text.instance.documents)
    shares = text.settings.kd_of_sequences or (text.settings.kd,) * count
    if len(shares) != count:
        message = f"expected a share for each of {count} sequences, found {len(shares)}"
        raise DataError(message, instance=text.instance.id, argument="kd")
    return shares


# --- the ERASER results format -----------------------------------------------------------------------------------


def _predict(text: Text, names: Sequence[str]) -> Search[dict[str, Any]]:
    """Ask for a text's erased inputs; return its prediction."""
    sets = _draw_erased_sets(text)
    positions = [text.rationale, *(drawn for *_, drawn in sets)]
    without = np.stack([text.without(one) for one in positions])
    answers = yield np.concatenate([without, ~without, np.zeros((1, text.tokens), bool)])
    rows = [dict(zip(names, row, strict=True)) for row in np.vstack([answers, text.p]).tolist()]
    count = len(positions)
    prediction: dict[str, Any] = {
        "annotation_id": text.instance.id,
        "rationales": _make_rationales(text),
        "classification": names[text.predicted],
        FULL: rows[-1],
        WITHOUT: rows[0],
        ONLY: rows[count],
        NOTHING: rows[-2],
    }
    for number, (field, facts, _) in enumerate(sets, start=1):
        pair = {WITHOUT: rows[number], ONLY: rows[count + number]}
        prediction.setdefault(field, []).append({**facts, **pair})
    return prediction


def _draw_erased_sets(text: Text) -> list[tuple[str, dict[str, Any], NDArray[np.int64]]]:
    """Return the sets of tokens that are erased beside the rationale: the field that lists them, its entry, the set."""
    settings, rationale = text.settings, text.rationale
    sets: list[tuple[str, dict[str, Any], NDArray[np.int64]]] = [
        ("thresholded_scores", {"threshold": rate}, select_tokens(text, rate)) for rate in settings.bins
    ]
    if settings.random_draws:
        random = text.random(f"against chance: {settings.random_kind}")
        for _ in range(settings.random_draws):
            if settings.random_kind == "spans":
                drawn = erasure.draw_shifted_rationale(random, rationale, text.instance.bounds)
            else:
                drawn = np.sort(random.choice(text.tokens, size=len(rationale), replace=False)).astype(np.int64)
            sets.append(("random_rationales", {}, drawn))
    if settings.fidelity_trials:
        random, each = text.random("fidelity"), settings.choices.occlusion == "each"
        for rate, trial in product(settings.fidelity_rates, range(settings.fidelity_trials)):
            drawn = erasure.draw_occluded_rationale(random, rationale, rate, each)
            sets.append(("occluded_scores", {"occlusion_rate": rate, "trial": trial}, drawn))
    return sets


def _make_rationales(text: Text) -> list[dict[str, Any]]:
    """Return the hard rationale of each document, and the soft where there are scores, of tokens or of sentences."""
    rationales: list[dict[str, Any]] = []
    for place, (name, (start, end)) in enumerate(zip(text.instance.names, pairwise(text.instance.bounds), strict=True)):
        inside = text.rationale[(text.rationale >= start) & (text.rationale < end)]
        hard = [{"start_token": first, "end_token": last} for first, last in find_runs(inside.tolist(), -start)]
        rationale: dict[str, Any] = {"docid": name, HARD_FIELD: hard}
        if text.scores is not None:
            rationale[SOFT_FIELDS["soft"]] = text.scores[start:end].tolist()
        if text.sentences is not None:
            rationale[SOFT_FIELDS["sentence"]] = list(map(float, text.sentences[place]))
        rationales.append(rationale)
    return rationales


# --- the perturbation benchmark's --------------------------------------------------------------------------------


def _make_sequences(text: Text) -> dict[str, Any]:
    """Return each sequence's rationale as indices; with scores also its tokens, all by importance, and kd."""
    documents, pairs = text.instance.documents, list(pairwise(text.instance.bounds))
    rationale = [[int(at) - start for at in text.rationale if start <= at < end] for start, end in pairs]
    if text.scores is None:
        return {"rationale": rationale}
    ties = text.settings.choices.ties
    ranked = [
        [document[at] for at in erasure.rank_tokens(text.scores[start:end], ties)]
        for document, (start, end) in zip(documents, pairs, strict=True)
    ]
    return {
        "rationale": rationale,
        "rationale_tokens": [tokens[: len(part)] for tokens, part in zip(ranked, rationale, strict=True)],
        "ranked_tokens": ranked,
        "kd": list(find_kd_of_sequences(text)),
    }


def _predict_pair(text: Text) -> Search[dict[str, Any]]:
    """Ask for a text's erased inputs; return its prediction: a class number, and lists of probabilities."""
    without = text.without(text.rationale)
    only, rest, empty = (yield np.stack([~without, without, np.zeros(text.tokens, bool)])).tolist()
    return {
        "id": text.instance.id,
        "pred_label": text.predicted,
        **_make_sequences(text),
        "pred_proba": text.p.tolist(),
        "rationale_pred_proba": only,
        "non_rationale_pred_proba": rest,
        "empty_pred_proba": empty,
    }


def _check_answering(model: Model, settings: ExplainSettings, pairs: bool) -> None:
    """Refuse what has no meaning without probabilities of labels: a target, given rationales, sentences, marks."""
    wrong = {
        "erase": settings.erase != "remove",
        "rationales": settings.rationales,
        "target": settings.target != "predicted",
        "units": settings.units != "tokens",
        "model": not pairs,
    }
    for argument in (argument for argument, is_wrong in wrong.items() if is_wrong):
        message = f"{model.description} answers with words, and has no probabilities of labels: rankings alone"
        raise DataError(message, argument=argument)


def _answer(model: Model, texts: Sequence[Text], engine: Engine) -> list[dict[str, Any]]:
    """Return rankings for question answering: an answer in the label's place, no probabilities of erased inputs.

    The answer's own probability has a name of its own: beside ``pred_proba`` the label would have to be a class.
    """
    predictions = []
    for text in texts:
        text.label = 0
    for text, scores in zip(texts, compute_scores(model, texts, engine), strict=True):
        answer, p = model.answer(text.reading)
        text.scores = round_scores(scores)
        text.rationale = select_tokens(text, text.settings.kd)
        without = text.without(text.rationale)
        rests = [text.instance.left(kept, text.settings.choices.filler) for kept in (~without, without)]
        with model.uncounted():
            only, rest = (model.answer(model.read(one))[0] if one.tokens else "" for one in rests)
        prediction = {"id": text.instance.id, "pred_label": answer, **_make_sequences(text), "answer_proba": p}
        predictions.append({**prediction, "rationale_pred_label": only, "non_rationale_pred_label": rest})
    return predictions
