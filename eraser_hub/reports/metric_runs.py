"""The metrics that a report runs over a system's predictions: per instance, with intervals, by class."""

from __future__ import annotations

import hashlib
import importlib
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from eraser_hub.metrics.fields import (
    AGAIN_FIELD,
    ONLY_PREDICTED,
    OUTCOME_FIELD,
    QUOTES_FIELD,
    SCORE_FIELDS,
)
from eraser_hub.records.built import label_name
from eraser_hub.records.digests import file_digest
from eraser_hub.records.errors import DataError
from eraser_hub.records.run_record import signature_of_run

from .report_inputs import ReportedSplit, Rows, System, read_split
from .system_scores import ReportSettings, SystemScores, of_runs

if TYPE_CHECKING:
    from eraser_hub.scoring.settings import Inputs

EVALUATED = "eval_x"
OF_SYSTEMS = {"per_instance": True, "by": "classification", "mask_leak": True}
ON_RATIONALE = SCORE_FIELDS["sufficiency"]
_FIDELITY_FIELDS = ("classification", *SCORE_FIELDS.values())


def score_system(
    system: System, split: ReportedSplit, instances: Rows, settings: ReportSettings, *, plain: bool = False
) -> SystemScores:
    """Score a file of ERASER instances as `eraser-hub score` does.

    Args:
        system: the file, and the system's name.
        split: the split that it answers.
        instances: the predictions in the file.
        settings: level, resamples, seed, and whether a part may be scored.
        plain: the scores alone, without intervals, per-instance values and classes (for a baseline).

    Raises:
        DataError: what the scorer refuses, in its words.
    """
    scores = SystemScores(system.name)
    options = settings.part if plain else {**OF_SYSTEMS, **settings.as_options()}
    thresholds = _thresholds(instances)
    _run_scorer(scores, system.path, split, {**options, **thresholds})
    options.pop("mask_leak", None)
    if _fidelity_is_there(instances):
        _add(scores, "normalized_fidelity", instances, split.labelled(), system.path, split.ids, **options)
    scores.signatures.extend(method_of(system.path))
    return scores


def score_runs(system: System, split: ReportedSplit, answers: Rows, settings: ReportSettings) -> SystemScores:
    """Score a system, each of its runs, by `score_pairs` or `score_system`.

    Args:
        answers: the predictions of the first run.
    """
    score = score_pairs if split.holds_pairs else score_system
    runs = [score(system, split, answers, settings)]
    runs += [score(run, split, list(run.predictions(split).values()), settings) for run in system.runs[1:]]
    return runs[0] if len(runs) == 1 else of_runs(runs)


def _add_quotes(scores: SystemScores, split: ReportedSplit, rows: Rows, path: Path, settings: ReportSettings) -> None:
    """What a language model's quotes say, where there are any (or answers that hold none)."""
    if not _has(rows, QUOTES_FIELD):
        return
    quoted = [_quoted(row, split) for row in rows]
    references = [{"annotation_id": split_id, **row} for split_id, row in zip(split.ids, split.labelled(), strict=True)]
    options = {"per_instance": True, **settings.as_options()}
    _add(scores, "quote_faithfulness", quoted, references, path, split.ids, **options)
    module = metric_module("quote_faithfulness")
    scores.statistics["quote_faithfulness"] = module.statistics(quoted, references, **settings.part)


def _quoted(row: Mapping[str, Any], split: ReportedSplit) -> dict[str, Any]:
    """The fields of a prediction that quotes are scored by; a pair's label by its name, as `asked_again` names it."""
    label = row.get("classification", row.get("pred_label"))
    if isinstance(label, int) and not isinstance(label, bool):
        label = label_name(label, split.label_names, instance=row.get(split.id_field), field="pred_label")
    fields = {field: row[field] for field in (QUOTES_FIELD, OUTCOME_FIELD, AGAIN_FIELD) if row.get(field) is not None}
    return {"annotation_id": str(row[split.id_field]), "classification": label, **fields}


def _thresholds(instances: Rows) -> dict[str, tuple[float, ...]]:
    """The thresholds of most instances as an option; those that are none, or doubled, are for the scorer to name."""
    counts = Counter(_thresholds_of(row) for row in instances)
    thresholds = max(counts, key=counts.__getitem__, default=())
    return {"aopc_thresholds": thresholds} if thresholds else {}


def _thresholds_of(row: Mapping[str, Any]) -> tuple[float, ...]:
    named = [part.get("threshold") for part in row.get("thresholded_scores") or ()]
    thresholds = {float(t) for t in named if isinstance(t, int | float) and not isinstance(t, bool) and 0 <= t <= 1}
    return tuple(sorted(thresholds)) if len(thresholds) == len(named) else ()


def _run_scorer(scores: SystemScores, path: Path, split: ReportedSplit, options: Mapping[str, Any]) -> None:
    from eraser_hub.scoring.score import score
    from eraser_hub.scoring.settings import Inputs, ScoreSettings

    inputs = Inputs(None, split.split, path, dataset=split.folder, config=split.config)
    scored = score(inputs, ScoreSettings(**options))
    scores.missing.extend(scored.notes)
    if answered := {own["answered"] for own in scored.made_by.values() if "answered" in own}:
        scores.missing.append(
            f"answered:{', '.join(map(str, answered))} (the others count as wrong, without a rationale)"
        )
    for block, statistics in scored.statistics.items():
        scores.add(scored.flat(block), split.ids)
        scores.statistics[block] = statistics
    if scored.leak is not None:
        scores.add(scored.leak.flat, split.ids)
    scores.chance = dict(scored.chance)
    scores.missing += scored.cautions()


def method_of(path: Path) -> list[str]:
    """What the run that wrote the predictions says of itself; nothing where it said nothing."""
    signature = signature_of_run(path)
    return [signature] if signature else []


def score_pairs(system: System, split: ReportedSplit, rows: Rows, settings: ReportSettings) -> SystemScores:
    """Score rows of the perturbation benchmark: MAP of the pairs, agreement with the gold sets where there are any.

    Arguments as in `score_system`; ``rows`` are predictions ``{id, rationale, rationale_tokens, ..}`` in any order.
    """
    scores = SystemScores(system.name)
    options = {"per_instance": True, **settings.as_options(), **settings.of_pairs}
    if any(row.get("label") is not None for row in split.rows):
        options["by"] = "label"
    for module, predictions, references, why in _pair_modules(rows, split.labelled(), settings.only_predicted):
        if why:
            scores.missing.append(why)
        else:
            _add(scores, module, predictions, references, system.path, split.ids, **options)
            scores.statistics[module] = metric_module(module).statistics(predictions, references, **settings.of_pairs)
    _add_quotes(scores, split, rows, system.path, settings)
    scores.signatures.extend(method_of(system.path))
    return scores


def score_pair_file(inputs: Inputs, settings: ReportSettings) -> tuple[SystemScores, ReportedSplit]:
    """Score a file of rows of the perturbation benchmark, for `score` and `compare`; and the split that it answers.

    Raises:
        DataError: as of `score_pairs`; nothing in it can be scored.
    """
    split = read_split(inputs.dataset or Path(), inputs.config, inputs.split)
    system = System(inputs.results.stem, inputs.results)
    scores = score_pairs(system, split, list(system.predictions(split).values()), settings)
    if not scores.statistics:
        message = "nothing to score: expected rationale_tokens or rationale, found neither"
        raise DataError(message, rule="score-missing", file=inputs.results)
    return scores, split


def _pair_modules(rows: Rows, references: Rows, only_predicted: bool) -> Iterable[tuple[str, Rows, Rows, str]]:
    if only_predicted and not _holds_pair(rows, references):
        yield "", (), (), "no MAP: the predictions answer no original together with a perturbed record of it."
    elif _has(rows, "rationale_tokens"):
        yield "perturbation_map", rows, references, ""
    else:
        yield "", (), (), "no MAP: the predictions have no rationale_tokens (the rationale's, most important first)."
    gold = [row for row in references if row.get("rationale_ids")]
    known = {str(row["id"]) for row in gold}
    if not gold:
        yield "", (), (), "no token F1 and IOU F1: this release of the benchmark has no gold rationales."
    elif not _has(rows, "rationale"):
        yield "", (), (), "no token F1 and IOU F1: the predictions have no rationale (lists of token indices)."
    else:
        yield "rationale_set_agreement", [row for row in rows if str(row["id"]) in known], gold, ""


def _holds_pair(rows: Rows, references: Rows) -> bool:
    answered = {str(row["id"]) for row in rows}
    return any(
        str(row["id"]) in answered and not answered.isdisjoint(map(str, row.get("rel_ids") or ())) for row in references
    )


def _has(instances: Rows, field: str) -> bool:
    return any(instance.get(field) is not None for instance in instances)


def _fidelity_is_there(instances: Rows) -> bool:
    return all(_has(instances, field) for field in _FIDELITY_FIELDS)


def metric_module(name: str) -> Any:
    """An instance of the metric class in ``eraser_hub.metrics.NAME``."""
    import evaluate

    module = importlib.import_module(f"eraser_hub.metrics.{name}")
    for value in vars(module).values():
        if isinstance(value, type) and issubclass(value, evaluate.Metric) and value.__module__ == module.__name__:
            return value(keep_in_memory=True)
    raise RuntimeError(f"eraser_hub.metrics.{name} holds no metric")


def _add(
    scores: SystemScores, name: str, predictions: Rows, references: Rows, path: Path, ids: Sequence[str], **options: Any
) -> None:
    """Add what a module computes; what it warns of is told where parts are missing."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            result = metric_module(name).compute(predictions=list(predictions), references=list(references), **options)
        except DataError:
            raise
        except ValueError as error:
            # the module names instance and field; the file and the verbs' option are ours to add
            message = str(error).replace(ONLY_PREDICTED, "--only-predicted")
            raise DataError(message, rule=getattr(error, "rule", "input"), file=path) from None
    scores.add(result, ids)
    scores.missing += [str(one.message) for one in told if one.category is UserWarning]


# --- what a selection gives away ---------------------------------------------------------------------------------


def add_evaluator(
    scores: SystemScores, system: System, evaluator: System, split: ReportedSplit, settings: ReportSettings
) -> None:
    """Add the share of gold labels that an evaluator tells from a system's rationales alone.

    Args:
        evaluator: what ``explain --model EVALUATOR --rationales SYSTEM`` wrote; its labels of the rationale count.

    Raises:
        DataError: an annotation that it does not answer or has no such scores for, another system's rationales.
    """
    _check_source(system.path, evaluator.path)
    answers, hits, docids = evaluator.predictions(split), list[bool](), list[list[str]]()
    for identity, row in zip(split.ids, split.labelled(), strict=True):
        answer = answers.get(identity)
        if answer is None and settings.only_predicted:
            continue
        alone: dict[str, float] | None = None if answer is None else answer.get(ON_RATIONALE)
        if not alone:
            words = f"expected an evaluator's {ON_RATIONALE} for each annotation, found none"
            raise DataError(words, rule="score-missing", file=evaluator.path, instance=identity)
        hits.append(max(alone, key=alone.__getitem__) == row["classification"])
        docids.append([document["docid"] for document in row["documents"]])
    if not hits:
        return
    flags = np.array(hits)
    scores.scores[EVALUATED] = float(flags.mean())
    interval = settings.interval_of_share(flags, settings.clusters(docids))
    if interval is not None:
        scores.intervals[EVALUATED] = interval


def _check_source(system: Path, evaluator: Path) -> None:
    """Refuse an evaluator of other rationales, as far as its run's record says whose they are."""
    signature = signature_of_run(evaluator)
    digest = file_digest(system, hashlib.blake2b(digest_size=6))
    if signature and f"rationales:{digest}|" not in signature:
        words = f"expected an evaluator of the rationales of {system.name} (explain --rationales {system.name})"
        raise DataError(f"{words}, found {signature}", rule="file-changed", file=evaluator)
