"""From instances to predictions: scores, rationales, erased inputs, and what the model says of them.

The unit of work is a chunk: a fixed number of neighbouring instances, cut by position in the dataset. A chunk's
results depend on nothing but the chunk, so a run that is stopped and goes on, or is spread over workers, gives the
same bytes as one that runs through.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eraser_hub.metrics.fields import ERASED_ANSWERS, HARD_FIELD, SOFT_FIELDS
from eraser_hub.records.errors import DataError, shown
from eraser_hub.records.rules import Rule

from . import erasure
from .adapter import Adapter, Encoded
from .attribution import attribute
from .distribution.texts import distances_of
from .games.measures import RankedChunk, measures
from .games.play import games_of
from .instances import Instance, chunks_of
from .runner import Fills, Runner
from .settings import OWN, SPANS, TARGETS, ExplainSettings

NEVER_FLIPPED = "labels that no erasure of the ranked tokens changed"
SENSITIVITY = "sensitivity_max"
DIGITS = 9  # significant digits of a written token score; rankings are made from what is written
FIRST_STEP, LARGEST_STEP = 8, 256  # numbers of tokens that are tried together in the search for a flip


@dataclass(slots=True)
class _Work:
    """A chunk on its way: instances, their full inputs' probabilities and labels, token scores and hard rationales."""

    encoded: Sequence[Encoded]
    full: NDArray[np.float64]
    predicted: list[int]
    targets: list[int]  # the label that scores explain; empty where the rationales are given
    scores: list[NDArray[np.float64]]  # likewise
    hard: list[NDArray[np.int64]]
    sentences: list[tuple[tuple[float, ...], ...] | None] | None = None  # scores, of a model that selects sentences


def explain_instances(
    model: Adapter,
    instances: Sequence[Instance],
    settings: ExplainSettings,
    kind: str = "eraser",
    on_passes: Callable[[int], None] | None = None,
    infiller: Fills | None = None,
) -> Iterator[dict[str, Any]]:
    """Predictions for instances in memory, one at a time (the command line's work without its files).

    Raises:
        DataError: several ways of erasing; whatever the model's outputs give cause for.
    """
    if settings.also_erase:
        words = f"erase: expected one way, found {', '.join(settings.operators)}: ask for one after the other"
        raise DataError(words, rule="option-value")
    runner = Runner(model, settings.erase, settings.batch_size, on_passes, infiller)
    for _, chunk in chunks_of(instances, settings.chunk):
        yield from explain_chunk(runner, chunk, settings, kind)


def explain_chunk(
    runner: Runner, instances: Sequence[Instance], settings: ExplainSettings, kind: str = "eraser"
) -> list[dict[str, Any]]:
    """Predictions of ``runner.model`` for a chunk of instances, in order; those of each further way of erasing follow.

    Args:
        kind: ``"perturbation"`` for the results format of the perturbation benchmark; any other gives ERASER's.

    Raises:
        DataError: several ways of erasing, or infilling, for a model that answers with words.
    """
    runner = runner.by(settings.scores_erase or settings.erase)
    runner.forget()
    encoded = [runner.model.encode(one) for one in instances]
    pairs = kind == "perturbation"
    if pairs and runner.model.gives_answers:
        return _answers(runner, encoded, settings)
    work = _work_of(runner, encoded, settings, pairs)
    write = _pair_predictions if pairs else _eraser_predictions
    predictions = write(runner.by(settings.erase), work, settings)
    first = list(predictions)
    for operator in settings.also_erase:
        # how far scores move is no matter of how inputs are erased
        more = write(runner.by(operator), work, replace(settings, sensitivity_draws=0))
        for one, same in zip(more, first, strict=True):
            one |= {SENSITIVITY: same[SENSITIVITY]} if SENSITIVITY in same else {}
        predictions += more
    return predictions


def _work_of(runner: Runner, encoded: Sequence[Encoded], settings: ExplainSettings, pairs: bool) -> _Work:
    """What the model makes of a chunk as it is: labels, token scores, rationales."""
    instances = [one.instance for one in encoded]
    if settings.method != SPANS:
        known = settings.target != "predicted"
        wanted = [target_of(one, 0, settings.target, runner) if known else None for one in instances]
        runner.take(runner.model.ahead(settings.method, encoded, wanted))
    full = runner.run(encoded, [erasure.full(number) for number in range(len(instances))], settings.choices.filler)
    predicted = full.argmax(axis=1).tolist()
    sentences = None
    targets: list[int] = []
    scores: list[NDArray[np.float64]] = []
    if settings.method == SPANS and settings.scores == OWN:
        selections = runner.model.selections(encoded)
        hard = [one.positions for one in selections]
        sentences = [one.sentences for one in selections]
    elif settings.method == SPANS:
        hard = [given_rationale(one) for one in instances]
    else:
        targets = [
            target_of(one, label, settings.target, runner) for one, label in zip(instances, predicted, strict=True)
        ]
        probability = full[np.arange(len(targets)), targets].tolist()
        scores = list(map(rounded, attribute(runner, encoded, targets, probability, settings, by_sequence=pairs)))
        pick = top_of_each if pairs else top_of_all
        hard = [pick(one, row, settings) for one, row in zip(instances, scores, strict=True)]
    return _Work(encoded, full, predicted, targets, scores, hard, sentences)


def target_of(one: Instance, predicted: int, target: str, runner: Runner) -> int:
    """The label that an instance's scores explain.

    Raises:
        DataError: the gold label where there is none, or a label that the model does not have.
    """
    if target == "predicted":
        return predicted
    names = runner.model.label_names
    gold = target == "gold"
    name = one.label if gold else target
    if name not in names:
        words = f"expected one of {', '.join((*TARGETS, *names))}; found {shown(name)}"
        rule: Rule = "label-unknown" if gold else "option-value"
        raise DataError(f"--target {target}: {words}", rule=rule, instance=one.id if gold else None)
    return names.index(name)


def given_rationale(one: Instance) -> NDArray[np.int64]:
    """Ascending flat positions of the rationale that an instance comes with."""
    return np.flatnonzero([flag for document in one.rationale or () for flag in document])


def rounded(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scores as they are written; minus zero becomes zero."""
    return np.asarray([float(f"{value:.{DIGITS}g}") for value in scores], dtype=np.float64) + 0.0


# --- the ERASER results format -----------------------------------------------------------------------------------


def _eraser_predictions(runner: Runner, work: _Work, settings: ExplainSettings) -> list[dict[str, Any]]:
    names = runner.model.label_names
    plans = [_plan(number, one.instance, work, settings) for number, one in enumerate(work.encoded)]
    values = runner.run(work.encoded, [erased for plan in plans for erased in plan], settings.choices.filler)
    parts = np.split(values, np.cumsum(list(map(len, plans)))[:-1])
    flips = _tokens_to_flip(runner, work, settings.choices.ties) if settings.tokens_to_flip else []
    predictions = []
    for number, (one, part) in enumerate(zip(work.encoded, parts, strict=True)):
        rows = (_by_label(names, row) for row in part.tolist())
        prediction: dict[str, Any] = {
            "annotation_id": one.instance.id,
            "rationales": rationales_of(
                one.instance,
                work.scores[number] if work.scores else None,
                work.hard[number],
                work.sentences[number] if work.sentences else None,
            ),
            "classification": names[work.predicted[number]],
            "classification_scores": _by_label(names, work.full[number].tolist()),
            **_erased_pair(rows),
            "null_classification_scores": next(rows),
        }
        if settings.bins:
            prediction["thresholded_scores"] = [{"threshold": rate, **_erased_pair(rows)} for rate in settings.bins]
        if settings.tokens_to_flip:
            prediction["tokens_to_flip"] = flips[number]
        if settings.random_draws:
            prediction["random_rationales"] = [_erased_pair(rows) for _ in range(settings.random_draws)]
        if settings.fidelity_trials:
            prediction["occluded_scores"] = [
                {"occlusion_rate": rate, "trial": trial, **_erased_pair(rows)}
                for rate in settings.fidelity_rates
                for trial in range(settings.fidelity_trials)
            ]
        predictions.append(prediction)
    if settings.distribution_texts:
        inputs = [[erasure.full(number), *plan[:2]] for number, plan in enumerate(plans)]
        scores = [np.vstack([whole, part[:2]]) for whole, part in zip(work.full, parts, strict=True)]
        for prediction, own in zip(predictions, distances_of(runner, work.encoded, inputs, scores), strict=True):
            prediction |= own
    if any(settings.of_rankings.values()):
        for prediction, fields in zip(predictions, _measures(runner, work, settings), strict=True):
            prediction |= fields
    return predictions


def _measures(runner: Runner, work: _Work, settings: ExplainSettings) -> list[dict[str, Any]]:
    """What the ranking of each instance is asked besides."""
    full = work.full[np.arange(len(work.targets)), work.targets].tolist()
    games = games_of(work.encoded, work.targets, full, settings.units)
    return measures(RankedChunk(runner, work.encoded, work.scores, games, settings))


def _by_label(names: Sequence[str], row: Sequence[float]) -> dict[str, float]:
    return dict(zip(names, row, strict=True))


def _erased_pair(rows: Iterator[dict[str, float]]) -> dict[str, dict[str, float]]:
    return {
        "comprehensiveness_classification_scores": next(rows),
        "sufficiency_classification_scores": next(rows),
    }


def _plan(number: int, one: Instance, work: _Work, settings: ExplainSettings) -> list[erasure.Erased]:
    """The erased inputs of an instance, in the order in which its prediction reads them."""
    tokens, hard, choices = one.bounds[-1], work.hard[number], settings.choices
    plan = [erasure.without(number, hard), erasure.only(number, hard), erasure.empty(number)]
    sets = [erasure.top(work.scores[number], rate, choices.ties) for rate in settings.bins]
    if settings.random_draws:
        random = erasure.generator(settings.seed, one.id, f"against chance: {settings.random_kind}")
        for _ in range(settings.random_draws):
            if settings.random_kind == "spans":
                sets.append(erasure.shifted_rationale(random, hard, one.bounds))
            else:
                sets.append(erasure.random_rationale(random, tokens, len(hard)))
    if settings.fidelity_trials:
        random = erasure.generator(settings.seed, one.id, "fidelity")
        for rate in settings.fidelity_rates:
            each = choices.occlusion == "each"
            sets += [erasure.occluded(random, hard, rate, each) for _ in range(settings.fidelity_trials)]
    for positions in sets:
        plan += [erasure.without(number, positions), erasure.only(number, positions)]
    return plan


def rationales_of(
    one: Instance,
    scores: NDArray[np.float64] | None,
    hard: NDArray[np.int64],
    sentences: Sequence[Sequence[float]] | None = None,
) -> list[dict[str, Any]]:
    """Hard rationale of each document, and soft where there are scores, of tokens or of sentences."""
    bounds = one.bounds
    rationales: list[dict[str, Any]] = []
    for place, (name, spans) in enumerate(zip(one.names, erasure.spans_of(hard.tolist(), bounds), strict=True)):
        rationale: dict[str, Any] = {
            "docid": name,
            HARD_FIELD: [{"start_token": start, "end_token": end} for start, end in spans],
        }
        if scores is not None:
            rationale[SOFT_FIELDS["soft"].field] = scores[bounds[place] : bounds[place + 1]].tolist()
        if sentences is not None:
            rationale[SOFT_FIELDS["sentence"].field] = list(map(float, sentences[place]))
        rationales.append(rationale)
    return rationales


def _tokens_to_flip(runner: Runner, work: _Work, ties: str) -> list[int]:
    """For each instance the least number of its highest-ranked tokens whose erasure changes the predicted label.

    Tokens of the documents that hold gold evidence count and are erased, no others: the score is a share of those
    documents' tokens. Where no evidence is known the tokens of all documents do. Where no number of them changes the
    label it is the number of all. Looked for from one token on, in growing steps that go through the model together, so
    the answer is the exact first change also where probabilities do not fall steadily.
    """
    rankings = [
        _ranking_in_evidence(one.instance, row, ties) for one, row in zip(work.encoded, work.scores, strict=True)
    ]
    flips: dict[int, int] = {}
    searches = {number: 1 for number, order in enumerate(rankings) if len(order)}
    step = FIRST_STEP
    while searches:
        plan = [
            (number, count)
            for number, start in searches.items()
            for count in range(start, min(start + step, len(rankings[number]) + 1))
        ]
        values = runner.run(work.encoded, [erasure.without(number, rankings[number][:count]) for number, count in plan])
        for (number, count), label in zip(plan, values.argmax(axis=1).tolist(), strict=True):
            if label != work.predicted[number]:
                flips.setdefault(number, count)
        searches = {
            number: start + step
            for number, start in searches.items()
            if number not in flips and start + step <= len(rankings[number])
        }
        step = min(step * 2, LARGEST_STEP)
    if len(flips) < len(rankings):
        runner.model.notes.count(NEVER_FLIPPED, len(rankings) - len(flips))
    return [flips.get(number, len(order)) for number, order in enumerate(rankings)]


def _ranking_in_evidence(one: Instance, scores: NDArray[np.float64], ties: str) -> NDArray[np.int64]:
    """The ranking of the evidence documents' tokens, as flat positions; of all tokens where no evidence is known."""
    order = erasure.ranking(scores, ties)
    if not one.evidence_documents or len(one.evidence_documents) == len(one.documents):
        return order
    bounds, inside = one.bounds, np.zeros(len(scores), dtype=bool)
    for number in one.evidence_documents:
        inside[bounds[number] : bounds[number + 1]] = True
    return order[inside[order]]


# --- the perturbation benchmark's --------------------------------------------------------------------------------


def top_of_all(one: Instance, scores: NDArray[np.float64], settings: ExplainSettings) -> NDArray[np.int64]:
    """Ascending flat positions of the top kd of all tokens."""
    return erasure.top(scores, settings.kd, settings.choices.ties)


def shares_of(one: Instance, settings: ExplainSettings) -> tuple[float, ...]:
    """kd of each sequence.

    Raises:
        DataError: shares for another number of sequences.
    """
    shares = settings.kd_of_sequences or (settings.kd,) * len(one.documents)
    if len(shares) != len(one.documents):
        words = f"--kd: expected a share for each of {len(one.documents)} sequences, found {len(shares)}"
        raise DataError(words, rule="option-value", instance=one.id)
    return shares


def top_of_each(one: Instance, scores: NDArray[np.float64], settings: ExplainSettings) -> NDArray[np.int64]:
    """Ascending flat positions of the top kd of every sequence (the perturbation benchmark counts within sequences)."""
    pairs = zip(pairwise(one.bounds), shares_of(one, settings), strict=True)
    parts = [erasure.top(scores[start:end], share, settings.choices.ties) + start for (start, end), share in pairs]
    return np.concatenate([*parts, erasure.NONE])


def sequences_of(
    one: Instance, scores: NDArray[np.float64] | None, hard: NDArray[np.int64], settings: ExplainSettings
) -> dict[str, Any]:
    """Per sequence the rationale's indices; with scores also its tokens, all tokens, most important first, and kd."""
    pairs = list(pairwise(one.bounds))
    rationale = [[int(at) - start for at in hard if start <= at < end] for start, end in pairs]
    if scores is None:
        return {"rationale": rationale}
    ranked = [
        [document[at] for at in erasure.ranking(scores[start:end], settings.choices.ties)]
        for document, (start, end) in zip(one.documents, pairs, strict=True)
    ]
    return {
        "rationale": rationale,
        "rationale_tokens": [tokens[: len(part)] for tokens, part in zip(ranked, rationale, strict=True)],
        "ranked_tokens": ranked,
        "kd": list(shares_of(one, settings)),
    }


def _pair_predictions(runner: Runner, work: _Work, settings: ExplainSettings) -> list[dict[str, Any]]:
    """Predictions in the perturbation benchmark's form: a class number, and lists of probabilities in its order."""
    plan = []
    for number, hard in enumerate(work.hard):
        plan += [erasure.only(number, hard), erasure.without(number, hard), erasure.empty(number)]
    values = runner.run(work.encoded, plan, settings.choices.filler).tolist()
    return [
        {
            "id": one.instance.id,
            "pred_label": work.predicted[number],
            **sequences_of(one.instance, work.scores[number] if work.scores else None, work.hard[number], settings),
            "pred_proba": work.full[number].tolist(),
            "rationale_pred_proba": values[3 * number],
            "non_rationale_pred_proba": values[3 * number + 1],
            "empty_pred_proba": values[3 * number + 2],
        }
        for number, one in enumerate(work.encoded)
    ]


def _answers(runner: Runner, encoded: Sequence[Encoded], settings: ExplainSettings) -> list[dict[str, Any]]:
    """Rankings for question answering: an answer in the label's place, no erased probabilities.

    The answer's own probability has a name of its own: beside ``pred_proba`` the label would have to be a class.

    Raises:
        DataError: a target other than the answer, or rationales that are given: there is nothing to score them by.
    """
    if settings.operators != ("remove",):
        words = f"expected remove alone, since {runner.model.description} answers to what is left"
        raise DataError(f"--erase {','.join(settings.operators)}: {words}", rule="unsupported")
    if settings.target != "predicted" or settings.method == SPANS:
        option = "--rationales" if settings.method == SPANS else f"--target {settings.target}"
        words = f"{option}: {runner.model.description} answers with words, and has no labels' probabilities"
        raise DataError(words, rule="unsupported")
    none = [0] * len(encoded)
    predictions = []
    for one, scores in zip(encoded, attribute(runner, encoded, none, none, settings, by_sequence=True), strict=True):
        answer, p = runner.model.answer_text(one)
        row = rounded(scores)
        top = top_of_each(one.instance, row, settings)
        sequences, hard = sequences_of(one.instance, row, top, settings), np.zeros(len(row), dtype=bool)
        hard[top] = True
        left = (_answer_to(runner, one.instance, flags, settings.choices.filler) for flags in (hard, ~hard))
        answers = dict(zip(ERASED_ANSWERS, left, strict=True))
        predictions.append({"id": one.instance.id, "pred_label": answer, **sequences, "answer_proba": p, **answers})
    return predictions


def _answer_to(runner: Runner, one: Instance, kept: NDArray[np.bool_], filler: str) -> str:
    """The answer to what is kept of a passage; none to nothing."""
    rest = one.left(kept, filler)
    return runner.model.answer_text(runner.model.encode(rest))[0] if rest.tokens else ""
