"""Faithfulness statistics: chunks of predictions become columns, with rows per annotation or their sums.

This is the one path from instances to faithfulness, for all instances at once and for chunks.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from eraser_hub.schema.instance import (
    ERASED,
    LIST_FIELDS,
    NUMBER_FIELDS,
    SCORE_FIELDS,
)

from .checks import LabelChecker
from .erasure import (
    add_labels,
    compute_curve,
    count_labels,
    drop,
    entropy,
    find_threshold_columns,
    kl_divergence,
    normalised_aopc,
)
from .flat import Predictions
from .joining import MatchedChunk
from .matching import LeftOut, Matcher
from .resampling import against_chance
from .statistics_builder import Score, StatisticsBuilder, divide

ROWS_AT_ONCE = 1 << 16
FULL_INPUT = "full_input"  # column of the predicted label's probability
Areas = dict[str, np.ndarray]
# numbers of instances whose mean is the score
MEASURED = (
    "soft_comprehensiveness",
    "soft_sufficiency",
    "sensitivity_max",
    "infidelity",
    "infidelity_normalized",
)


class Faithfulness:
    """Collects faithfulness statistics, a chunk at a time.

    Args:
        matcher: the matcher of the chunks.
        n: the number of annotations (without references: of instances).
        label_names: the labels, see `checks.LabelChecker`.
        aopc_thresholds: the thresholds that every instance must have.
        totals: keep one row, the sums over all annotations.

    Attributes:
        builder: the columns; complete after `finish`.
    """

    def __init__(
        self,
        matcher: Matcher,
        n: int,
        label_names: Sequence[str] | None,
        aopc_thresholds: Sequence[float],
        totals: bool = False,
    ) -> None:
        self.matcher, self.rules = matcher, matcher.rules
        self.builder = StatisticsBuilder(n, np.zeros(n, dtype=np.int8) if totals else None)
        self.classes = LabelChecker(matcher.r, label_names, self.rules["labels"], self.rules["probabilities"])
        self.thresholds = sorted({float(threshold) for threshold in aopc_thresholds})
        self.unbounded: dict[str, int] = {}  # erased side -> instances whose bounds are equal: they have no NAOPC
        # erased side -> for each chunk the annotations, the drop, and the drop of each random rationale
        self.drawn: dict[str, list[tuple[np.ndarray, np.ndarray, np.ndarray]]] = {}

    def add(self, chunk: MatchedChunk) -> None:
        """Check a chunk, and add its statistics if there are no issues so far."""
        if self.rules.collect("fields"):
            return
        p, used, builder = chunk.p, self.matcher.fields.used, self.builder
        self.classes.check(p, used)
        if self.rules.collect("labels"):
            return
        builder.rows = chunk.rows
        if self.classes.gold and "classification" in used:
            labels = list(dict.fromkeys([*self.classes.gold, *(self.classes.names or ()), *p.labels]))
            truth, predicted = (chunk.r.labels, chunk.r.classification), (p.labels, p.classification[chunk.row])
            add_labels(builder, labels, truth, predicted)
        # instances without answer have no probabilities
        answered = np.flatnonzero(p.answered[chunk.row])
        builder.rows = chunk.rows[answered]
        rows = chunk.row[answered]
        label, full = p.classification[rows], np.nan_to_num(p.full[rows], nan=0.0)
        sides = {side: np.nan_to_num(getattr(p, side)[rows], nan=0.0) for side in ERASED if side in used}
        for side, erased in sides.items():
            builder.add_mean(side, drop(full, erased, label))
            builder.add_mean(f"{side}_entropy", entropy(full) - entropy(erased))
            builder.add_mean(f"{side}_kl", kl_divergence(erased, full))
        if "full" in used:
            self.matcher.plausibility.add_probabilities(p, rows, label, full, sides)
            if self.classes.gold and "classification" in used:
                # no score: comparisons tell by it whether two systems explain one model
                builder.add(None, {FULL_INPUT: full[np.arange(len(full)), label]})
        areas = self._add_curves(p, rows, full, label) if "thresholds" in used else {}
        if "tokens_to_flip" in used and chunk.documents.tokens.size:
            # a share of the evidence documents' tokens; NaN without such a document
            size = np.maximum(chunk.count_evidence_tokens()[answered], 0)
            builder.add_mean("tokens_to_flip_ratio", divide(p.number("tokens_to_flip")[rows], size, np.nan))
        for name in MEASURED:
            if name in used:
                builder.add_mean(name, p.number(name)[rows])
        for side in ERASED:
            if f"{side}_bounded" in used:
                areas[side] = p.number(f"{side}_bounded")[rows]
            if {f"{side}_lower", f"{side}_upper"} <= used and side in areas:
                values = normalised_aopc(areas[side], *(p.number(f"{side}_{end}")[rows] for end in ("lower", "upper")))
                self.unbounded[side] = self.unbounded.get(side, 0) + int(np.isnan(values).sum())
                builder.add_mean(f"naopc_{side}", values)
        if "draws" in used:
            self._add_draws(p, rows, chunk.rows[answered], full, label)

    def _add_curves(self, p: Predictions, rows: np.ndarray, full: np.ndarray, label: np.ndarray) -> Areas:
        """Add both curves of the instances in these rows; return the AOPC of each, by side."""
        offsets = np.concatenate([[0], np.cumsum(np.maximum(p.thresholds, 0))])
        positions, good = find_threshold_columns(p.threshold, offsets, np.array(self.thresholds))
        good |= p.answered == 0
        listed = ", ".join(f"{threshold:g}" for threshold in self.thresholds)

        def message(at: int) -> str:
            found = ", ".join(f"{x:g}" for x in p.threshold[offsets[at] : offsets[at + 1]][:20])
            return f"expected the thresholds {listed}, each once (`aopc_thresholds` sets them), found {found or 'none'}"

        report = self.rules["thresholds"].add_where
        report("prediction", ~good, "thresholded_scores.threshold", message, "constant")
        areas, curves = Areas(), Areas()
        for side in ERASED if good.all() else ():
            matrix = getattr(p, f"threshold_{side}")
            if not np.isnan(matrix).all():
                blocks = (slice(at, at + ROWS_AT_ONCE) for at in range(0, rows.size, ROWS_AT_ONCE))
                drops = [
                    drop(full[at], np.nan_to_num(matrix[positions[rows[at]]], nan=0.0), label[at]) for at in blocks
                ]
                curves[side] = each = np.concatenate(drops)
                key = f"{side}_aopc"
                columns = {f"{key}.sum{number}": column for number, column in enumerate(each.T)}
                self.builder.add(
                    Score(3, compute_curve, (key, each.shape[1])), columns | {f"{key}.count": np.ones(len(each))}
                )
                areas[side] = each.mean(axis=1)
        self.matcher.plausibility.add_curves(curves)
        return areas

    def _add_draws(
        self, p: Predictions, rows: np.ndarray, annotation: np.ndarray, full: np.ndarray, label: np.ndarray
    ) -> None:
        count = self.classes.draws
        for side in ERASED:
            matrix = getattr(p, f"draw_{side}")
            if side in self.matcher.fields.used and not np.isnan(matrix).all():
                erased = np.nan_to_num(getattr(p, side)[rows], nan=0.0)
                place = (np.cumsum(p.answered) - 1)[rows]  # instances without answer have no draws
                draws = np.nan_to_num(matrix, nan=0.0).reshape(int(p.answered.sum()), count, -1)[place]
                observed, drawn = (drop(full, each, label) for each in (erased, draws))
                self.drawn.setdefault(side, []).append((annotation, observed, drawn))

    def left_out(self) -> LeftOut:
        """Return the scores that these predictions do not allow, each with its missing field."""
        used = self.matcher.fields.used
        needs = {side: (side in used, SCORE_FIELDS[side]) for side in ERASED}
        needs["AOPC"] = "thresholds" in used, LIST_FIELDS["thresholds"].field
        if self.matcher.r is not None:
            labels = "classification" in used
            whose = " in the references" if labels else ""
            needs["accuracy, macro F1"] = labels and bool(self.classes.gold), f"classification{whose}"
            needs["tokens_to_flip_ratio"] = "tokens_to_flip" in used, "tokens_to_flip"
        for side in ERASED:
            bounds, area = [f"{side}_lower", f"{side}_upper"], f"{side}_bounded"
            if not used.isdisjoint([*bounds, area]):
                lacking = [name for name in bounds if name not in used]
                lacking += [] if area in used or "thresholds" in used else [area]
                needs[f"naopc_{side}"] = not lacking, NUMBER_FIELDS[lacking[0]].field if lacking else ""
        return {scores: field for scores, (there, field) in needs.items() if not there}

    def finish(self) -> None:
        """Select the labels of accuracy and macro F1."""
        count_labels(self.builder, self.classes.finish())

    def against_chance(self, per_instance: bool = False) -> dict[str, dict[str, object]]:
        """Compare each erased side's score with random rationales, see `resampling.against_chance`.

        Returns:
            side -> the comparison over all instances, with ``draws``, the instances' ``mean_win_rate``, and under
            ``per_instance``, if requested, that of each annotation.
        """
        result: dict[str, dict[str, object]] = {}
        for side, several in self.drawn.items():
            rows, observed, draws = (np.concatenate(column) for column in zip(*several, strict=True))
            order = np.argsort(rows)
            observed, draws = observed[order], draws[order]
            up = side == "comprehensiveness"
            each = against_chance(observed, draws, up)
            overall = against_chance(np.asarray(observed.mean()), draws.mean(axis=0), up)
            overall |= {"draws": np.asarray(draws.shape[1]), "mean_win_rate": each["win_rate"].mean()}
            result[side] = {key: value.tolist() for key, value in overall.items()}
            if per_instance:
                result[side]["per_instance"] = {key: values.tolist() for key, values in each.items()}
        return result

    def signature_settings(self) -> dict[str, object]:
        """Return the settings of the signature, without those that make no difference."""
        aopc = {"aopc": self.thresholds, "aopc_mean": "bins"} if "thresholds" in self.matcher.fields.used else {}
        n = self.matcher.instances
        without = {f"naopc_{side}": f"{n - count}/{n}" for side, count in self.unbounded.items() if count}
        return {"log": "e", **aopc, **without, **self.matcher.signature_settings()}
