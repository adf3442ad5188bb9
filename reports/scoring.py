"""The scores behind a report: metric modules with per-instance values, intervals and classes, and the paired tests."""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eraser_hub.records.errors import DataError, DataErrors

from .rows import Table
from .scores import SystemScores

Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Settings:
    """Level of the intervals, number of resamples, and their seed."""

    confidence_level: float = 0.95
    n_resamples: int = 1000
    seed: int = 0

    def as_options(self) -> dict[str, Any]:
        """As the keyword arguments common to all metric modules."""
        return {"confidence_level": self.confidence_level, "n_resamples": self.n_resamples, "seed": self.seed}


def _module(name: str) -> Any:
    """An instance of the metric class in ``eraser_hub.metrics.NAME``."""
    import evaluate

    module = importlib.import_module(f"eraser_hub.metrics.{name}")
    for value in vars(module).values():
        if isinstance(value, type) and issubclass(value, evaluate.Metric) and value.__module__ == module.__name__:
            return value(keep_in_memory=True)
    raise RuntimeError(f"eraser_hub.metrics.{name} holds no metric")


def _has(instances: Rows, field: str) -> bool:
    return any(instance.get(field) is not None for instance in instances)


def _has_rationale(instances: Rows, field: str) -> bool:
    return any(r.get(field) is not None for instance in instances for r in instance.get("rationales") or ())


def _labelled(table: Table, column: str = "classification") -> list[dict[str, Any]]:
    """The rows with the label's name in place of its number."""
    names = table.label_names
    rows = [dict(row) for row in table.rows]
    if names is not None:
        for row in rows:
            value = row.get(column)
            if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < len(names):
                row[column] = names[value]
    return rows


def _compute(name: str, predictions: Rows, references: Rows, path: Path | None, **options: Any) -> dict[str, Any]:
    try:
        return _module(name).compute(predictions=list(predictions), references=list(references), **options)
    except (DataErrors, DataError):
        raise
    except ValueError as error:
        # the module names instance and field; the file is ours to add
        raise DataError(str(error), file=path) from None


def _take_up(scores: SystemScores, result: Mapping[str, Any], ids: Sequence[str]) -> None:
    """Sort a module's flat result into numbers, intervals, per-instance values and classes.

    The clipped ``sufficiency`` and ``comprehensiveness`` of normalized_fidelity give way to those of
    eraser_faithfulness, which comes first and has them under the same keys.
    """
    taken = set(scores.scores)
    for key, value in result.items():
        if key.removesuffix("_ci") in taken:
            continue
        if key == "signature":
            scores.signatures.append(str(value))
        elif key == "per_instance":
            where = {identity: place for place, identity in enumerate(map(str, value["annotation_id"]))}
            for name, column in value.items():
                # a value per threshold is drawn as a curve, not as a distribution
                if name == "annotation_id" or any(isinstance(v, list) for v in column):
                    continue
                aligned = [_finite(column[where[identity]]) if identity in where else None for identity in ids]
                scores.per_instance.setdefault(name, aligned)
        elif key == "by":
            for name, part in value.items():
                scores.by_class[name] = {**part, **scores.by_class.get(name, {})}
        elif key.endswith("_ci"):
            _interval(scores, key.removesuffix("_ci"), value)
        else:
            scores.scores[key] = value


def _interval(scores: SystemScores, key: str, value: Sequence[Any]) -> None:
    if len(value) == 2 and not isinstance(value[0], list):
        scores.intervals[key] = (float(value[0]), float(value[1]))
    else:
        scores.point_intervals[key] = [(float(low), float(high)) for low, high in value]


def _finite(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def missing_parts(instances: Rows) -> list[str]:
    """Why a part of the scores will not be there: the optional fields that no prediction has."""
    missing = []
    if not _has_rationale(instances, "hard_rationale_predictions"):
        missing.append("no exact-match, token and IOU scores: the predictions have no hard_rationale_predictions.")
    if not _has_rationale(instances, "soft_rationale_predictions"):
        missing.append("no AUPRC, average precision and ROC-AUC: the predictions have no soft_rationale_predictions.")
    if not _has(instances, "classification"):
        missing.append("no accuracy and no faithfulness: the predictions have no classification.")
        return missing
    for field, words in (
        ("comprehensiveness_classification_scores", "comprehensiveness"),
        ("sufficiency_classification_scores", "sufficiency"),
        ("thresholded_scores", "AOPC"),
    ):
        if not _has(instances, field):
            missing.append(f"no {words}: the predictions have no {field}.")
    return missing


_FIDELITY_FIELDS = (
    "classification",
    "classification_scores",
    "comprehensiveness_classification_scores",
    "sufficiency_classification_scores",
    "null_classification_scores",
)


def score_system(
    name: str, table: Table, instances: Rows, settings: Settings, path: Path, *, plain: bool = False
) -> SystemScores:
    """Score a file of ERASER instances as `eraser-hub score` does.

    Args:
        name: what the system is called.
        table: the split that it answers.
        instances: the predictions in the file, in the rows' order.
        settings: level, resamples, seed.
        path: the predictions' file.
        plain: the scores alone, without intervals, per-instance values and classes (for a baseline).

    Raises:
        DataError: what the scorer refuses, in its words.
    """
    from eraser_hub.scoring.score import Inputs, run_signature, score
    from eraser_hub.scoring.score import Settings as Scorer

    scores = SystemScores(name, missing=missing_parts(instances))
    ids = [str(row["annotation_id"]) for row in table.rows]
    options: dict[str, Any] = {}
    if not plain:
        options = {"per_instance": True, "by": "classification", **settings.as_options()}
    found = [part.get("threshold") for part in (instances[0].get("thresholded_scores") or ())]
    thresholds = {float(t) for t in found if isinstance(t, int | float) and not isinstance(t, bool) and 0 <= t <= 1}
    # thresholds that are none, or doubled, are for the scorer to name
    if thresholds and len(thresholds) == len(found):
        options["aopc_thresholds"] = tuple(sorted(thresholds))
    if table.converted:
        return _score_rows(scores, table, instances, options, path)
    inputs = Inputs(None, table.split, path, dataset=table.folder, config=table.config)
    scored = score(inputs, Scorer(**options))
    for block in ("agreement", "faithfulness"):
        statistics = getattr(scored, block)
        if statistics is not None:
            _take_up(scores, scored.flat(block), ids)
            scores.statistics[block] = statistics
    scores.chance = dict(scored.chance)
    if all(_has(instances, field) for field in _FIDELITY_FIELDS):
        _take_up(scores, _compute("normalized_fidelity", instances, _labelled(table), path, **options_of(options)), ids)
    scores.signatures.extend(map(str, run_signature(path).values()))
    if table.label_names:
        scores.by_class = {_class_name(key, table.label_names): part for key, part in scores.by_class.items()}
    return scores


def _score_rows(
    scores: SystemScores, table: Table, instances: Rows, options: Mapping[str, Any], path: Path
) -> SystemScores:
    """As `score_system`, by the metric modules, for rows that are not on disk as they are scored."""
    ids, references = [str(row["annotation_id"]) for row in table.rows], _labelled(table)
    common = options_of(options)
    rationales = ("hard_rationale_predictions", "soft_rationale_predictions", "soft_sentence_predictions")
    modules: dict[str, dict[str, Any]] = {}
    if any(_has_rationale(instances, field) for field in rationales):
        modules["eraser_agreement"] = dict(common)
    if _has(instances, "classification"):
        modules["eraser_faithfulness"] = dict(options)
    if all(_has(instances, field) for field in _FIDELITY_FIELDS):
        modules["normalized_fidelity"] = dict(common)
    for module, settings in modules.items():
        _take_up(scores, _compute(module, instances, references, path, **settings), ids)
        own = {key: value for key, value in settings.items() if key == "aopc_thresholds"}
        scores.statistics[module] = _module(module).statistics(instances, references, **own)
    return scores


def options_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """The keyword arguments that all metric modules have in common."""
    return {key: value for key, value in options.items() if key != "aopc_thresholds"}


def _class_name(key: str, names: Sequence[str]) -> str:
    return names[int(key)] if key not in names and key.isdecimal() and int(key) < len(names) else key


def score_pairs(name: str, table: Table, rows: Rows, settings: Settings, path: Path | None = None) -> SystemScores:
    """Score rows of the perturbation benchmark: MAP of the pairs, agreement with the gold sets where there are any.

    Arguments as in `score_system`; ``rows`` are predictions ``{id, rationale, rationale_tokens, ..}`` in any order.
    """
    scores = SystemScores(name)
    ids = [str(row["id"]) for row in table.rows]
    options = {"per_instance": True, **settings.as_options()}
    references = _labelled(table, "label")
    if any(row.get("label") is not None for row in table.rows):
        options["by"] = "label"
    for module, predictions, records, why in _pair_modules(rows, references):
        if why:
            scores.missing.append(why)
        else:
            _take_up(scores, _compute(module, predictions, records, path, **options), ids)
            scores.statistics[module] = _module(module).statistics(predictions, records)
    return scores


def _pair_modules(rows: Rows, references: Rows) -> Iterable[tuple[str, Rows, Rows, str]]:
    if _has(rows, "rationale_tokens"):
        yield "perturbation_map", rows, references, ""
    else:
        yield "", (), (), "no MAP: the predictions have no rationale_tokens (all tokens, most important first)."
    gold = [row for row in references if row.get("rationale_ids")]
    known = {str(row["id"]) for row in gold}
    if not gold:
        yield "", (), (), "no token F1 and IOU F1: this release of the benchmark has no gold rationales."
    elif not _has(rows, "rationale"):
        yield "", (), (), "no token F1 and IOU F1: the predictions have no rationale (lists of token indices)."
    else:
        yield "rationale_set_agreement", [row for row in rows if str(row["id"]) in known], gold, ""


def compare_systems(systems: Sequence[SystemScores], settings: Settings) -> dict[str, Any] | None:
    """Paired comparison of all pairs of systems, as `eraser-hub compare` makes it; None where they share no block.

    A block of scores enters where every system has it with the same optional fields.
    """
    from eraser_hub.scoring.comparison import compare_blocks

    blocks = [
        block
        for block in systems[0].statistics
        if all(block in other.statistics for other in systems)
        and len({other.statistics[block].values.shape[1] for other in systems}) == 1
    ]
    if not blocks:
        return None
    return compare_blocks(
        {system.name: [system.statistics[block] for block in blocks] for system in systems},
        settings.n_resamples,
        settings.seed,
        settings.confidence_level,
    )


def score_file(scores: SystemScores, table: Table) -> dict[str, Any]:
    """A system's scores as JSON for `eraser-hub board`: flat keys, intervals, names, signatures; NaN is null."""

    def plain(value: Any) -> Any:
        if isinstance(value, float):
            return value if math.isfinite(value) else None
        if isinstance(value, list | tuple):
            return [plain(item) for item in value]
        return value

    content: dict[str, Any] = {
        "system": scores.name,
        "dataset": table.folder.resolve().name,
        "config": table.config,
        "split": table.split,
    }
    for key, value in scores.scores.items():
        content[key] = plain(value)
        if key in scores.intervals:
            content[f"{key}_ci"] = plain(scores.intervals[key])
        if key in scores.point_intervals:
            content[f"{key}_ci"] = plain(scores.point_intervals[key])
    content["signature"] = list(scores.signatures)
    return content
