"""From instances to predictions: scores, rationales, erased inputs, and what the model says of them.

The unit of work is a chunk: a fixed number of neighbouring instances, cut by position in the dataset. A chunk's
results depend on nothing but the chunk, so a run that is stopped and goes on, or is spread over workers, gives the
same bytes as one that runs through.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eraser_hub.metrics.erasure import AOPC_THRESHOLDS
from eraser_hub.papers import paper
from eraser_hub.records.errors import DataError, shown
from eraser_hub.version import __version__

from . import erasure
from .adapter import Adapter, Encoded
from .attribution import GIVEN, METHODS, attribute
from .erasure import ERASE_MODES, FIDELITY_RATES
from .instances import Instance, Split
from .runner import Runner

PAPER_OF_KD = {"eraser": "eraser_first_version", "perturbation": "wang_2022"}
NEVER_FLIPPED = "labels that no erasure of the ranked tokens changed"
LARGEST = 2**63 - 1  # what the record of a run, which is JSON, can hold of an integer
DIGITS = 9  # significant digits of a written token score; rankings are made from what is written


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that decides the results, but for model and data.

    Attributes:
        method: one of :data:`attribution.METHODS`, or ``given`` for scores that come with the instances.
        kd: share of the tokens in a hard rationale.
        bins: shares at which the AOPC is measured, () for none.
        erase: remove, mask or pad.
        tokens_to_flip: search how many of the evidence documents' highest-ranked tokens must go until the label changes.
        random_draws: number of random rationales of each instance's own length.
        random_kind: ``tokens`` (any set of that size) or ``spans`` (its own spans, shifted).
        fidelity_trials: trials per occlusion rate of the fidelity curves, 0 for none.
        chunk: instances in a chunk.
        scores: method ``given``: which scores they are (the file's digest), for the signature.
    """

    method: str = "random"
    seed: int = 1
    kd: float = 0.1
    bins: tuple[float, ...] = AOPC_THRESHOLDS
    erase: str = "remove"
    tokens_to_flip: bool = False
    random_draws: int = 0
    random_kind: str = "tokens"
    fidelity_trials: int = 0
    fidelity_rates: tuple[float, ...] = FIDELITY_RATES
    steps: int = 300
    lime_samples: int = 5000
    lime_tokens: int = 10
    batch_size: int = 32
    chunk: int = 16
    scores: str = ""

    def __post_init__(self) -> None:
        def refuse(option: str, expected: str, found: object) -> None:
            raise DataError(f"{option}: expected {expected}, found {shown(found)}")

        if self.method not in (*METHODS, GIVEN):
            refuse("--method", f"one of {', '.join(METHODS)}", self.method)
        if self.erase not in ERASE_MODES:
            refuse("--erase", f"one of {', '.join(ERASE_MODES)}", self.erase)
        if self.random_kind not in ("tokens", "spans"):
            refuse("--random-kind", "tokens or spans", self.random_kind)
        if not 0 <= self.kd <= 1:
            refuse("--kd", "a share from 0 to 1", self.kd)
        if any(not 0 <= rate <= 1 for rate in self.bins) or len(set(self.bins)) < len(self.bins):
            refuse("--bins", "different shares from 0 to 1", self.bins)
        if any(not 0 <= rate <= 1 for rate in self.fidelity_rates):
            refuse("--fidelity-rates", "shares from 0 to 1", self.fidelity_rates)
        if len(set(self.fidelity_rates)) < len(self.fidelity_rates):
            refuse("--fidelity-rates", "different shares", self.fidelity_rates)
        if self.fidelity_trials and not self.fidelity_rates:
            refuse("--fidelity-rates", "at least one rate for the trials asked for", self.fidelity_rates)
        for option, value, least in (
            ("--steps", self.steps, 1), ("--lime-samples", self.lime_samples, 2), ("--lime-tokens", self.lime_tokens, 0),
            ("--batch-size", self.batch_size, 1), ("--random-draws", self.random_draws, 0),
            ("--fidelity-trials", self.fidelity_trials, 0), ("--chunk", self.chunk, 1), ("--seed", self.seed, 0),
        ):  # fmt: skip
            if value < least:
                refuse(option, f"at least {least}", value)
            if value > LARGEST:
                refuse(option, f"at most {LARGEST}", value)

    def signature(self, model: str = "") -> str:
        """Every setting that decides the numbers, in one line (sacrebleu's manner)."""
        parts = [f"method:{self.method}", f"kd:{self.kd:g}", f"erase:{self.erase}", f"seed:{self.seed}"]
        if self.bins:
            parts.append("bins:" + ",".join(f"{rate:g}" for rate in self.bins))
        if self.method == "integrated-gradients":
            parts.append(f"steps:{self.steps}|baseline:zero")
        if self.scores:
            parts.append(f"scores:{self.scores}")
        if self.method == "lime":
            parts.append(f"lime:N{self.lime_samples},K{self.lime_tokens}")
        if self.random_draws:
            parts.append(f"random-draws:{self.random_draws},{self.random_kind}")
        if self.tokens_to_flip:
            parts.append("flip:evidence-documents")
        if self.fidelity_trials:
            parts.append(f"fidelity:{self.fidelity_trials}x{len(self.fidelity_rates)}")
        if model:
            parts.append(f"model:{model}")
        return "|".join([*parts, "ties:position", f"eraser-hub:{__version__}"])

    def for_kind(self, kind: str) -> Settings:
        """The settings for a kind of dataset, without what its results have no place for.

        The perturbation benchmark's results hold no AOPC: its signature must not say that there were bins.

        Raises:
            DataError: something was asked for that would be missing.
        """
        if kind != "perturbation":
            return self
        for option, asked in (
            ("--tokens-to-flip", self.tokens_to_flip), ("--random-draws", self.random_draws),
            ("--fidelity-trials", self.fidelity_trials),
        ):  # fmt: skip
            if asked:
                raise DataError(f"{option}: the perturbation benchmark's results have no place for it")
        return replace(self, bins=())

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}


def kd_of(split: Split) -> float:
    """The average rationale length of a config as the papers give it, else the average of the split's own rationales.

    Papers: 000, Table 4; 002, Table 3.

    Returns:
        A share above 0 and up to 1.

    Raises:
        DataError: neither is known, or no token of the split is marked: kd must be given.
    """
    printed = paper(PAPER_OF_KD[split.kind]).kd if split.kind in PAPER_OF_KD else {}
    for name in (split.config, split.config.removesuffix("_simplified").removesuffix("_flat")):
        if name in printed:
            return printed[name]
    shares = [
        sum(map(sum, one.rationale)) / len(one.tokens)
        for one in split.instances()
        if one.rationale is not None and one.tokens
    ]
    # a test split whose rationales are kept back has masks, all of them empty: kd 0 would compare nothing with nothing
    if not any(shares):
        raise DataError(f"--kd: no rationale length is known for the config {shown(split.config)}: give --kd")
    return round(float(np.mean(shares)), 4)


def rounded(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scores as they are written; minus zero becomes zero."""
    return np.asarray([float(f"{value:.{DIGITS}g}") for value in scores], dtype=np.float64) + 0.0


def named(names: Sequence[str], row: Sequence[float]) -> dict[str, float]:
    """Probabilities by label."""
    return dict(zip(names, row, strict=True))


@dataclass(slots=True)
class _Work:
    """A chunk on its way."""

    instances: Sequence[Instance]
    encoded: Sequence[Encoded]
    full: NDArray[np.float64]
    predicted: list[int]
    scores: list[NDArray[np.float64]]
    hard: list[NDArray[np.int64]]


def explain_chunk(
    model: Adapter, runner: Runner, instances: Sequence[Instance], settings: Settings, kind: str = "eraser"
) -> list[dict[str, Any]]:
    """Predictions for a chunk of instances, in order.

    Args:
        kind: ``"perturbation"`` for the results format of the perturbation benchmark; any other gives ERASER's.
    """
    runner.forget()
    encoded = [model.encode(one) for one in instances]
    if kind == "perturbation" and hasattr(model, "answer_text"):
        return _answers(model, runner, encoded, settings)
    full = runner.run(encoded, [erasure.full(number) for number in range(len(instances))])
    predicted = [int(place) for place in full.argmax(axis=1)]
    scores = _scores(
        model,
        runner,
        encoded,
        predicted,
        [float(row[p]) for row, p in zip(full, predicted, strict=True)],
        settings,
        kind,
    )
    if kind == "perturbation":
        hard = [top_of_each(one, found, settings.kd) for one, found in zip(instances, scores, strict=True)]
        return _pair_predictions(runner, _Work(instances, encoded, full, predicted, scores, hard))
    hard = [erasure.top(one, settings.kd) for one in scores]
    work = _Work(instances, encoded, full, predicted, scores, hard)
    return _eraser_predictions(model, runner, work, settings)


def _scores(
    model: Adapter,
    runner: Runner,
    encoded: Sequence[Encoded],
    predicted: Sequence[int],
    probability: Sequence[float],
    settings: Settings,
    kind: str,
) -> list[NDArray[np.float64]]:
    found = attribute(
        settings.method, model, runner, encoded, predicted, probability,
        seed=settings.seed, steps=settings.steps, lime_samples=settings.lime_samples, lime_tokens=settings.lime_tokens,
        by_sequence=kind == "perturbation",
    )  # fmt: skip
    return [rounded(one) for one in found]


def _eraser_predictions(model: Adapter, runner: Runner, work: _Work, settings: Settings) -> list[dict[str, Any]]:
    names = model.label_names
    plans = [_plan(number, one, work, settings) for number, one in enumerate(work.instances)]
    values = runner.run(work.encoded, [erased for plan in plans for erased in plan]).tolist()
    full = work.full.tolist()
    flips = _tokens_to_flip(runner, work) if settings.tokens_to_flip else [None] * len(work.instances)
    predictions = []
    start = 0
    for number, one in enumerate(work.instances):
        rows: Iterator[dict[str, float]] = (named(names, row) for row in values[start : start + len(plans[number])])
        start += len(plans[number])
        prediction: dict[str, Any] = {
            "annotation_id": one.id,
            "rationales": rationales_of(one, work.scores[number], work.hard[number]),
            "classification": names[work.predicted[number]],
            "classification_scores": named(names, full[number]),
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
    return predictions


def _erased_pair(rows: Iterator[dict[str, float]]) -> dict[str, dict[str, float]]:
    return {
        "comprehensiveness_classification_scores": next(rows),
        "sufficiency_classification_scores": next(rows),
    }


def _plan(number: int, one: Instance, work: _Work, settings: Settings) -> list[erasure.Erased]:
    """The erased inputs of an instance, in the order in which its prediction reads them."""
    tokens, hard = len(work.scores[number]), work.hard[number]
    plan = [erasure.without(number, hard), erasure.only(number, hard), erasure.empty(number)]
    for rate in settings.bins:
        chosen = erasure.top(work.scores[number], rate)
        plan += [erasure.without(number, chosen), erasure.only(number, chosen)]
    if settings.random_draws:
        random = erasure.generator(settings.seed, one.id, f"against chance: {settings.random_kind}")
        for _ in range(settings.random_draws):
            if settings.random_kind == "spans":
                drawn = erasure.shifted_rationale(random, hard, one.bounds)
            else:
                drawn = erasure.random_rationale(random, tokens, len(hard))
            plan += [erasure.without(number, drawn), erasure.only(number, drawn)]
    if settings.fidelity_trials:
        random = erasure.generator(settings.seed, one.id, "fidelity")
        for rate in settings.fidelity_rates:
            for _ in range(settings.fidelity_trials):
                left = erasure.occluded(random, hard, rate)
                plan += [erasure.without(number, left), erasure.only(number, left)]
    return plan


def _tokens_to_flip(runner: Runner, work: _Work) -> list[int]:
    """For each instance the least number of its highest-ranked tokens whose erasure changes the predicted label.

    Tokens of the documents that hold gold evidence count and are erased, no others: the score is a share of those
    documents' tokens. Where no evidence is known the tokens of all documents do. Where no number of them changes the
    label it is the number of all. Looked for from one token on, in growing steps that go through the model together, so
    the answer is the exact first change also where probabilities do not fall steadily.
    """
    rankings = [_ranking_in_evidence(one, scores) for one, scores in zip(work.instances, work.scores, strict=True)]
    found: list[int] = [len(order) for order in rankings]
    open_ones = {number: 1 for number, order in enumerate(rankings) if len(order)}
    step, flipped = 8, 0
    while open_ones:
        plan = [
            (number, count)
            for number, start in open_ones.items()
            for count in range(start, min(start + step, len(rankings[number]) + 1))
        ]
        values = runner.run(work.encoded, [erasure.without(number, rankings[number][:count]) for number, count in plan])
        changed: dict[int, int] = {}
        for (number, count), row in zip(plan, values, strict=True):
            if number not in changed and int(row.argmax()) != work.predicted[number]:
                changed[number] = count
        flipped += len(changed)
        found = [changed.get(number, count) for number, count in enumerate(found)]
        open_ones = {
            number: start + step
            for number, start in open_ones.items()
            if number not in changed and start + step <= len(rankings[number])
        }
        step = min(step * 2, 256)
    if flipped < len(rankings):
        runner.model.notes.count(NEVER_FLIPPED, len(rankings) - flipped)
    return found


def _ranking_in_evidence(one: Instance, scores: NDArray[np.float64]) -> NDArray[np.int64]:
    """The ranking of the evidence documents' tokens, as flat positions; of all tokens where no evidence is known."""
    order = erasure.ranking(scores)
    if not one.evidence_documents or len(one.evidence_documents) == len(one.documents):
        return order
    bounds, inside = one.bounds, np.zeros(len(scores), dtype=bool)
    for number in one.evidence_documents:
        inside[bounds[number] : bounds[number + 1]] = True
    return order[inside[order]]


def rationales_of(one: Instance, scores: NDArray[np.float64], hard: NDArray[np.int64]) -> list[dict[str, Any]]:
    """Hard and soft rationale of each document."""
    bounds = one.bounds
    return [
        {
            "docid": name,
            "hard_rationale_predictions": [{"start_token": start, "end_token": end} for start, end in spans],
            "soft_rationale_predictions": scores[bounds[place] : bounds[place + 1]].tolist(),
        }
        for place, (name, spans) in enumerate(zip(one.names, erasure.spans_of(hard.tolist(), bounds), strict=True))
    ]


def top_of_each(one: Instance, scores: NDArray[np.float64], kd: float) -> NDArray[np.int64]:
    """Ascending flat positions of the top kd of every sequence (the perturbation benchmark counts within sequences)."""
    parts = [erasure.top(scores[start:end], kd) + start for start, end in pairwise(one.bounds)]
    return np.concatenate([*parts, erasure.NONE])


def sequences_of(one: Instance, scores: NDArray[np.float64], hard: NDArray[np.int64]) -> dict[str, Any]:
    """Per sequence the rationale's indices, and all its tokens, most important first (which is what MAP reads)."""
    pairs = list(pairwise(one.bounds))
    return {
        "rationale": [[int(at) - start for at in hard if start <= at < end] for start, end in pairs],
        "rationale_tokens": [
            [document[at] for at in erasure.ranking(scores[start:end])]
            for document, (start, end) in zip(one.documents, pairs, strict=True)
        ],
    }


def _pair_predictions(runner: Runner, work: _Work) -> list[dict[str, Any]]:
    """Predictions in the perturbation benchmark's form: a class number, and lists of probabilities in its order."""
    plan = []
    for number, hard in enumerate(work.hard):
        plan += [erasure.only(number, hard), erasure.without(number, hard), erasure.empty(number)]
    values = runner.run(work.encoded, plan)
    predictions = []
    for number, one in enumerate(work.instances):
        predictions.append(
            {
                "id": one.id,
                "pred_label": work.predicted[number],
                **sequences_of(one, work.scores[number], work.hard[number]),
                "pred_proba": work.full[number].tolist(),
                "rationale_pred_proba": values[3 * number].tolist(),
                "non_rationale_pred_proba": values[3 * number + 1].tolist(),
                "empty_pred_proba": values[3 * number + 2].tolist(),
            }
        )
    return predictions


def _answers(model: Any, runner: Runner, encoded: Sequence[Encoded], settings: Settings) -> list[dict[str, Any]]:
    """Rankings for question answering: an answer in the label's place, no erased probabilities.

    The answer's own probability has a name of its own: beside ``pred_proba`` the label would have to be a class.
    """
    none = [0] * len(encoded)
    scores = _scores(model, runner, encoded, none, [0.0] * len(encoded), settings, "perturbation")
    predictions = []
    for one, found in zip(encoded, scores, strict=True):
        answer, p = model.answer_text(one)
        shown_parts = sequences_of(one.instance, found, top_of_each(one.instance, found, settings.kd))
        predictions.append({"id": one.instance.id, "pred_label": answer, **shown_parts, "answer_proba": p})
    return predictions


def chunks_of(instances: Iterator[Instance], size: int, first: int = 0) -> Iterator[tuple[int, list[Instance]]]:
    """Numbered chunks of neighbouring instances, beginning at chunk ``first``."""
    number, chunk = first, []
    for one in instances:
        chunk.append(one)
        if len(chunk) == size:
            yield number, chunk
            number, chunk = number + 1, []
    if chunk:
        yield number, chunk


def explain_instances(
    model: Adapter,
    instances: Sequence[Instance],
    settings: Settings,
    kind: str = "eraser",
    on_passes: Callable[[int], None] | None = None,
) -> Iterator[dict[str, Any]]:
    """Predictions for instances in memory, one at a time (the command line's work without its files)."""
    runner = Runner(model, settings.erase, settings.batch_size, on_passes)
    for _, chunk in chunks_of(iter(instances), settings.chunk):
        yield from explain_chunk(model, runner, chunk, settings, kind)
