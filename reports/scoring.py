"""The scores behind a report: metric modules with per-instance values, intervals and classes, and the paired tests."""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eraser_hub.errors import DataError, DataErrors

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


def _eraser_modules(instances: Rows) -> tuple[list[str], list[str]]:
    """The modules that can score these predictions, and why a part of the scores will not be there."""
    names, missing = [], []
    hard = _has_rationale(instances, "hard_rationale_predictions")
    soft = _has_rationale(instances, "soft_rationale_predictions")
    sentences = _has_rationale(instances, "soft_sentence_predictions")
    if hard or soft or sentences:
        names.append("eraser_agreement")
    if not hard:
        missing.append("no exact-match, token and IOU scores: the predictions have no hard_rationale_predictions.")
    if not soft:
        missing.append("no AUPRC, average precision and ROC-AUC: the predictions have no soft_rationale_predictions.")
    if _has(instances, "classification"):
        names.append("eraser_faithfulness")
        for field, words in (
            ("comprehensiveness_classification_scores", "comprehensiveness"),
            ("sufficiency_classification_scores", "sufficiency"),
            ("thresholded_scores", "AOPC"),
        ):
            if not _has(instances, field):
                missing.append(f"no {words}: the predictions have no {field}.")
        erased = ("sufficiency_classification_scores", "comprehensiveness_classification_scores")
        if all(_has(instances, field) for field in (*erased, "null_classification_scores")):
            names.append("normalized_fidelity")
    else:
        missing.append("no accuracy and no faithfulness: the predictions have no classification.")
    return names, missing


def score_system(
    name: str, table: Table, instances: Rows, settings: Settings, *, plain: bool = False, path: Path | None = None
) -> SystemScores:
    """Score ERASER instances against the rows.

    Args:
        name: what the system is called.
        table: the rows.
        instances: the predictions, in the rows' order.
        settings: level, resamples, seed.
        plain: the scores alone, without intervals, per-instance values and classes (for a baseline).
        path: the predictions' file, for error messages.

    Raises:
        DataError: what the metric modules refuse, in their words.
    """
    scores = SystemScores(name)
    names, scores.missing = _eraser_modules(instances)
    references = _labelled(table)
    ids = [str(row["annotation_id"]) for row in table.rows]
    options: dict[str, Any] = {}
    if not plain:
        options = {"per_instance": True, "by": "classification", **settings.as_options()}
    for module in names:
        _take_up(scores, _compute(module, instances, references, path, **options), ids)
    return scores


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


def compare_systems(table: Table, first: Rows, second: Rows, settings: Settings) -> list[dict[str, Any]]:
    """Paired comparison of two systems on the same instances, a dict per score that both have.

    The difference's interval is a paired bootstrap, the p-value approximate randomisation, and Holm's correction runs
    over the scores. Keys of the dicts: see `tables.comparison_block`.
    """
    from eraser_hub.metrics.resampling import approximate_randomisation, holm, paired_bootstrap

    out: list[dict[str, Any]] = []
    for one, two in _statistics_of_both(table, first, second):
        order = {identity: place for place, identity in enumerate(two.ids)}
        two = two.take([order[identity] for identity in one.ids])
        a, b = one.scores(), two.scores()
        common = (settings.n_resamples, settings.seed)
        level = settings.confidence_level
        differences = paired_bootstrap(one.values, two.values, one.finalize, level, *common)
        p_values = approximate_randomisation(one.values, two.values, one.finalize, *common)
        for key, found in differences.items():
            if a[key].ndim or key not in b or not math.isfinite(float(found["difference"])):
                continue
            out.append(
                {
                    "key": key,
                    "first": float(a[key]),
                    "second": float(b[key]),
                    "difference": float(found["difference"]),
                    "ci": [float(end) for end in found["ci"]],
                    "p_value": float(p_values[key]),
                }
            )
    for row, p in zip(out, holm([row["p_value"] for row in out]), strict=True):
        row["p_holm"] = p
    return out


def _statistics_of_both(table: Table, first: Rows, second: Rows) -> Iterable[tuple[Any, Any]]:
    if table.rows and "sample_type" in table.rows[0]:
        references = _labelled(table, "label")
        parts = [{m: (p, r) for m, p, r, why in _pair_modules(rows, references) if not why} for rows in (first, second)]
    else:
        references = _labelled(table)
        parts = [dict.fromkeys(_eraser_modules(rows)[0], (rows, references)) for rows in (first, second)]
    for module in parts[0]:
        if module not in parts[1]:
            continue
        one, two = (_module(module).statistics(*part[module]) for part in parts)
        # additive statistics can be exchanged between systems only where both have the same columns
        if one.values.shape[1] == two.values.shape[1] and set(one.scores()) == set(two.scores()):
            yield one, two


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
