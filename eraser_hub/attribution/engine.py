"""From instances to predictions: scores, rationales, erased inputs and their probabilities.

The unit of work is a chunk: a fixed number of neighbouring instances, cut by position in the dataset. A chunk's
results depend on nothing but the chunk, so a run that is stopped and goes on, or is spread over workers, gives the
same bytes as one that runs through.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eraser_hub.metrics.match import HARD_FIELD, SOFT_FIELDS
from eraser_hub.records.errors import DataError, UsageError, show

from . import erasure
from .adapter import Adapter, Notes
from .chunk import Chunk, Scores, compute_unit_bounds
from .erasure import Erased
from .instances import Instance, split_into_chunks
from .measure import OCCLUDED_FIELD, Fields
from .method import METHODS, check_support
from .runner import Runner
from .settings import FIELDS, TARGETS, THRESHOLDED, ExplainSettings, RationaleSource

ERASED_PAIR = ("comprehensiveness_classification_scores", "sufficiency_classification_scores")
DIGITS = 9  # significant digits of a written token score; rankings are made from what is written
ALL_ZERO = "instances whose scores are all zero: nothing to normalise"
# answers in words to the rest of the input
ERASED_ANSWERS = ("rationale_pred_label", "non_rationale_pred_label")


def explain_instances(
    model: Adapter,
    instances: Sequence[Instance],
    settings: ExplainSettings,
    kind: str = "eraser",
    on_passes: Callable[[int], None] | None = None,
) -> Iterator[dict[str, Any]]:
    """Yield predictions for instances in memory, one at a time (the work of a run without its files).

    Raises:
        DataError: a method that the model does not allow; outputs of the model that are no probabilities.
    """
    check_support(model, settings.method_class, settings.method)
    runner = Runner(model, settings.erase, settings.batch_size, on_passes)
    for _, chunk in split_into_chunks(instances, settings.chunk):
        yield from explain_chunk(runner, chunk, settings, kind)


def explain_chunk(
    runner: Runner, instances: Sequence[Instance], settings: ExplainSettings, kind: str = "eraser"
) -> list[dict[str, Any]]:
    """Return predictions for a chunk of instances, in order.

    Args:
        runner: runner of the model.
        instances: the instances.
        settings: settings of the run.
        kind: ``"perturbation"`` for the results format of the perturbation benchmark; any other gives ERASER's.

    Raises:
        DataError: another erasure than removal for a model that answers with words.
    """
    runner.forget()
    encoded = [runner.model.encode(one) for one in instances]
    chunk = Chunk(runner, encoded, settings, pairs=kind == "perturbation")
    if chunk.pairs and runner.model.gives_answers:
        return _make_answers(chunk)
    _score(chunk)
    return _make_pair_predictions(chunk) if chunk.pairs else _make_eraser_predictions(chunk)


def _score(chunk: Chunk) -> None:
    """Compute labels, token scores and rationales of the whole inputs."""
    settings, model, instances = chunk.settings, chunk.model, chunk.instances
    stated = [] if settings.target == "predicted" else [find_target(one, settings.target, model) for one in instances]
    if settings.method != RationaleSource.SPANS and model.has_embeddings:
        chunk.runner.take(model.ahead(settings.method, chunk.encoded, stated or [None for _ in instances]))
    chunk.full = chunk.run()
    chunk.predicted = chunk.full.argmax(axis=1).tolist()
    if settings.method == RationaleSource.SPANS and settings.scores == RationaleSource.MODEL:
        selections = model.selections(chunk.encoded)
        chunk.hard = [one.positions for one in selections]
        chunk.sentences = [one.sentences for one in selections]
    elif settings.method == RationaleSource.SPANS:
        flags = ([flag for document in one.rationale or () for flag in document] for one in instances)
        chunk.hard = list(map(np.flatnonzero, flags))
    else:
        chunk.targets = stated or chunk.predicted
        chunk.scores = list(map(round_scores, attribute(chunk)))
        if settings.units == "sentences":
            chunk.sentences = [
                _score_sentences(one, row, chunk) for one, row in zip(instances, chunk.scores, strict=True)
            ]
        chunk.hard = [_select_tokens(number, settings.kd, chunk) for number in range(len(instances))]


def _score_sentences(one: Instance, scores: Scores, chunk: Chunk) -> tuple[tuple[float, ...], ...]:
    """Return for each document a score of each sentence: the method's own, or the mean of its tokens'.

    Sums of token scores would favour long sentences.

    Raises:
        DataError: the text is not divided into sentences.
    """
    bounds = compute_unit_bounds(one, "sentences")
    method = chunk.settings.method_class
    sums = np.add.reduceat(scores, bounds[:-1]) if len(bounds) > 1 else np.zeros(0)
    values = sums if method is not None and method.scores_units else sums / np.diff(bounds)
    rows = np.split(round_scores(values), np.cumsum(list(map(len, one.sentences)))[:-1]) if len(values) else []
    return tuple(tuple(row.tolist()) for row in rows) if rows else ((),) * len(one.documents)


def _select_tokens(number: int, rate: float, chunk: Chunk) -> NDArray[np.int64]:
    """Return the highest-scored share of an instance's tokens as ascending flat positions.

    They are whole sentences where these are selected: as few as hold so many tokens. The perturbation benchmark counts
    within sequences, each with its kd.
    """
    one, scores, settings = chunk.instances[number], chunk.scores[number], chunk.settings
    ties = settings.choices.ties
    if settings.units == "sentences" and chunk.sentences is not None:
        values = np.asarray([score for document in chunk.sentences[number] or () for score in document])
        return erasure.select_top_units(values, compute_unit_bounds(one, "sentences"), rate, ties)
    if not chunk.pairs:
        return erasure.select_top(scores, rate, ties)
    parts = zip(pairwise(one.bounds), find_kd_shares(one, settings), strict=True)
    tops = [erasure.select_top(scores[start:end], share, ties) + start for (start, end), share in parts]
    return np.concatenate([*tops, erasure.NO_POSITIONS])


def find_target(one: Instance, target: str, model: Adapter) -> int:
    """Return the label that an instance's scores explain, gold or one by its name.

    Raises:
        DataError: the gold label where there is none, or a label that the model does not have.
    """
    names, gold = model.label_names, target == "gold"
    name = one.label if gold else target
    if name not in names:
        message = f"`target` {target}: expected one of {', '.join((*TARGETS, *names))}; found {show(name)}"
        raise DataError(message, instance=one.id if gold else None)
    return names.index(name)


def attribute(chunk: Chunk) -> list[NDArray[np.float64]]:
    """Return the scores of a chunk by the method of its settings, or those of the instances, each of shape (tokens,).

    Raises:
        DataError: an instance lacks external scores; the model does not allow the method; a package is missing; scores
            that are not finite.
    """
    name, model = chunk.settings.method, chunk.model
    if name == RationaleSource.SCORES:
        bare = next((one.id for one in chunk.instances if one.scores is None), None)
        if bare is not None:
            message = "expected token scores with the instance, found none"
            raise DataError(message, instance=bare)
        return [np.concatenate([np.zeros(0), *(one.scores or ())]) for one in chunk.instances]
    method = METHODS.find(name)
    check_support(model, method, name)
    rows = method().scores(chunk)
    for one, scores in zip(chunk.instances, rows, strict=True):
        if not np.isfinite(scores).all():
            raise DataError(
                f"`method` {name}: {np.count_nonzero(~np.isfinite(scores))} of {len(scores)} token scores are NaN or "
                "infinite",
                instance=one.id,
            )
    normalised = chunk.settings.choices.normalise and method.normalised
    return [_normalise_scores(scores, model.notes) if normalised else scores for scores in rows]


def _normalise_scores(scores: Scores, notes: Notes) -> Scores:
    """Return scores divided by their sum; zeros stay zeros, and are counted (the authors' code divides 0 by 0)."""
    total = scores.sum()
    if total == 0:
        if len(scores):
            notes.count(ALL_ZERO)
        return scores
    return np.asarray(scores / total)


def round_scores(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Round scores to :data:`DIGITS` digits, as they are written; minus zero becomes zero."""
    return np.asarray([float(f"{value:.{DIGITS}g}") for value in scores], dtype=np.float64) + 0.0


def find_kd_shares(one: Instance, settings: ExplainSettings) -> tuple[float, ...]:
    """Return kd of each sequence.

    Raises:
        DataError: shares for another number of sequences.
    """
    shares = settings.kd_of_sequences or (settings.kd,) * len(one.documents)
    if len(shares) != len(one.documents):
        message = f"`kd`: expected a share for each of {len(one.documents)} sequences, found {len(shares)}"
        raise UsageError(message, instance=one.id)
    return shares


# --- the ERASER results format -----------------------------------------------------------------------------------


def _make_eraser_predictions(chunk: Chunk) -> list[dict[str, Any]]:
    names = chunk.model.label_names
    sets = [_draw_erased_sets(number, chunk) for number in range(len(chunk.encoded))]
    plans = []
    for number, hard in enumerate(chunk.hard):
        positions = [hard, *(at for *_, at in sets[number])]
        inputs = [Erased(number, at, keep) for at in positions for keep in (False, True)]
        plans.append([*inputs[:2], Erased(number, erasure.NO_POSITIONS, keep=True), *inputs[2:]])
    values = chunk.run([erased for plan in plans for erased in plan])
    chunk.erased = np.split(values, np.cumsum(list(map(len, plans)))[:-1])
    fields: Fields = [{} for _ in plans]
    for measure in chunk.settings.measures:
        for own, more in zip(fields, measure().measure(chunk), strict=True):
            own |= more
    predictions = []
    for number, (one, more) in enumerate(zip(chunk.instances, fields, strict=True)):
        every = np.vstack([chunk.full[number], chunk.erased[number]]).tolist()
        full, without, only, nothing, *rows = (dict(zip(names, row, strict=True)) for row in every)
        pairs = [dict(zip(ERASED_PAIR, pair, strict=True)) for pair in zip(rows[::2], rows[1::2], strict=True)]
        for (name, facts, _), pair in zip(sets[number], pairs, strict=True):
            more.setdefault(name, []).append({**facts, **pair})
        prediction: dict[str, Any] = {
            "annotation_id": one.id,
            "rationales": make_rationales(chunk, number),
            "classification": names[chunk.predicted[number]],
            "classification_scores": full,
            **dict(zip(ERASED_PAIR, (without, only), strict=True)),
            "null_classification_scores": nothing,
        }
        predictions.append(prediction | {name: more[name] for name in dict.fromkeys((*FIELDS, *more)) if name in more})
    return predictions


def _draw_erased_sets(number: int, chunk: Chunk) -> list[tuple[str, dict[str, Any], NDArray[np.int64]]]:
    """Return the sets of tokens that are erased beside the rationale: the field that lists them, its entry, the set."""
    one, hard, settings = chunk.instances[number], chunk.hard[number], chunk.settings
    sets: list[tuple[str, dict[str, Any], NDArray[np.int64]]] = [
        (THRESHOLDED, {"threshold": rate}, _select_tokens(number, rate, chunk)) for rate in settings.bins
    ]
    if settings.random_draws:
        random = chunk.make_generator(one, f"against chance: {settings.random_kind}")
        for _ in range(settings.random_draws):
            if settings.random_kind == "spans":
                drawn = erasure.draw_shifted_rationale(random, hard, one.bounds)
            else:
                drawn = np.sort(random.choice(one.bounds[-1], size=len(hard), replace=False)).astype(np.int64)
            sets.append(("random_rationales", {}, drawn))
    if settings.fidelity_trials:
        random, each = chunk.make_generator(one, "fidelity"), settings.choices.occlusion == "each"
        for rate, trial in product(settings.fidelity_rates, range(settings.fidelity_trials)):
            kept_tokens = erasure.draw_occluded_rationale(random, hard, rate, each)
            sets.append((OCCLUDED_FIELD, {"occlusion_rate": rate, "trial": trial}, kept_tokens))
    return sets


def make_rationales(chunk: Chunk, number: int) -> list[dict[str, Any]]:
    """Return the hard rationale of each document, and the soft where there are scores, of tokens or of sentences."""
    one, scores = chunk.instances[number], chunk.scores[number] if chunk.scores else None
    sentences, bounds = chunk.sentences[number] if chunk.sentences else None, one.bounds
    rationales: list[dict[str, Any]] = []
    to_spans = erasure.to_spans(chunk.hard[number].tolist(), bounds)
    for place, (name, spans) in enumerate(zip(one.names, to_spans, strict=True)):
        rationale: dict[str, Any] = {
            "docid": name,
            HARD_FIELD: [{"start_token": start, "end_token": end} for start, end in spans],
        }
        if scores is not None:
            rationale[SOFT_FIELDS["soft"]] = scores[bounds[place] : bounds[place + 1]].tolist()
        if sentences is not None:
            rationale[SOFT_FIELDS["sentence"]] = list(map(float, sentences[place]))
        rationales.append(rationale)
    return rationales


# --- the perturbation benchmark's --------------------------------------------------------------------------------


def make_sequences(chunk: Chunk, number: int) -> dict[str, Any]:
    """Return each sequence's rationale as indices; with scores also its tokens, all by importance, and kd."""
    one, scores = chunk.instances[number], chunk.scores[number] if chunk.scores else None
    pairs = list(pairwise(one.bounds))
    rationale = [[int(at) - start for at in chunk.hard[number] if start <= at < end] for start, end in pairs]
    if scores is None:
        return {"rationale": rationale}
    ranked = [
        [document[at] for at in erasure.rank_tokens(scores[start:end], chunk.settings.choices.ties)]
        for document, (start, end) in zip(one.documents, pairs, strict=True)
    ]
    return {
        "rationale": rationale,
        "rationale_tokens": [tokens[: len(part)] for tokens, part in zip(ranked, rationale, strict=True)],
        "ranked_tokens": ranked,
        "kd": list(find_kd_shares(one, chunk.settings)),
    }


def _make_pair_predictions(chunk: Chunk) -> list[dict[str, Any]]:
    """Return predictions in the benchmark's form: a class number, and lists of probabilities in its order."""
    plan = []
    for number, hard in enumerate(chunk.hard):
        plan += [erasure.only(number, hard), erasure.without(number, hard), erasure.empty(number)]
    values = chunk.run(plan).tolist()
    return [
        {
            "id": one.id,
            "pred_label": chunk.predicted[number],
            **make_sequences(chunk, number),
            "pred_proba": chunk.full[number].tolist(),
            "rationale_pred_proba": values[3 * number],
            "non_rationale_pred_proba": values[3 * number + 1],
            "empty_pred_proba": values[3 * number + 2],
        }
        for number, one in enumerate(chunk.instances)
    ]


def _make_answers(chunk: Chunk) -> list[dict[str, Any]]:
    """Return rankings for question answering: an answer in the label's place, no erased probabilities.

    The answer's own probability has a name of its own: beside ``pred_proba`` the label would have to be a class.

    Raises:
        DataError: a target other than the answer, or external rationales: there is no probability to score them by.
    """
    settings, model = chunk.settings, chunk.model
    if settings.erase != "remove":
        message = f"expected remove, since {model.description} answers to what is left"
        raise DataError(f"`erase` {settings.erase}: {message}")
    if settings.target != "predicted" or settings.method == RationaleSource.SPANS:
        option = "`rationales`" if settings.method == RationaleSource.SPANS else f"`target` {settings.target}"
        message = f"{option}: {model.description} answers with words, and has no labels' probabilities"
        raise DataError(message)
    chunk.targets = [0] * len(chunk.encoded)
    chunk.scores = list(map(round_scores, attribute(chunk)))
    predictions = []
    for number, one in enumerate(chunk.encoded):
        answer, p = model.answer_text(one)
        chunk.hard.append(_select_tokens(number, settings.kd, chunk))
        hard = np.zeros(len(chunk.scores[number]), dtype=bool)
        hard[chunk.hard[number]] = True
        rests = [one.instance.left(kept, settings.choices.filler) for kept in (hard, ~hard)]
        with model.uncounted():
            left = [model.answer_text(model.encode(rest))[0] if rest.tokens else "" for rest in rests]
        answers, sequences = dict(zip(ERASED_ANSWERS, left, strict=True)), make_sequences(chunk, number)
        prediction = {"id": one.instance.id, "pred_label": answer, **sequences, "answer_proba": p, **answers}
        predictions.append(prediction)
    return predictions
