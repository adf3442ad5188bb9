"""Faithfulness: parts of predictions become the columns of `eraser_faithfulness`, rows per annotation or their sums.

This is the one path from instances to faithfulness, whether all come at once or some at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from eraser_hub.schema.instance import (
    DISTANCES,
    ENTROPIES,
    ERASED,
    LIST_FIELDS,
    NUMBER_FIELDS,
    SCORE_FIELDS,
    SOFT_FIELDS,
)

from .checks import Classes, check_thresholds
from .erasure import (
    add_curve,
    add_labels,
    aopc,
    count_labels,
    drop,
    entropy_difference,
    kl_divergence,
    normalised_aopc,
    threshold_columns,
    tokens_to_flip_ratio,
)
from .flat import Predictions
from .parts import LeftOut, Part, Parts
from .pool import Pool
from .rank_correlation import kendall_tau
from .resampling import against_chance

ROWS_AT_ONCE = 1 << 16
# numbers of instances whose mean is the score
MEASURED = (
    "soft_comprehensiveness",
    "soft_sufficiency",
    "sensitivity_max",
    "infidelity",
    "infidelity_normalized",
    *DISTANCES,
    *ENTROPIES,
)


class Faithfulness:
    """Gathers faithfulness, a part at a time.

    Args:
        parts: which hand out the parts.
        n: how many annotations there are (without references: instances).
        label_names: the labels there are, see `checks.Classes`.
        aopc_thresholds: those that every instance must have.
        totals: keep one row, the sums over all annotations.

    Attributes:
        pool: the columns; whole once `finish` was called.
    """

    def __init__(
        self,
        parts: Parts,
        n: int,
        label_names: Sequence[str] | None,
        aopc_thresholds: Sequence[float],
        totals: bool = False,
    ) -> None:
        self.parts, self.rules, self.pool = parts, parts.rules, Pool(n, totals)
        self.classes = Classes(parts.r, label_names, self.rules["labels"], self.rules["probabilities"])
        self.asked = sorted({float(threshold) for threshold in aopc_thresholds})
        self.unbounded: dict[str, int] = {}  # erased side -> instances whose bounds are equal: they have no NAOPC
        # erased side -> of each part the annotations, the drop, and the drop of each random rationale
        self.drawn: dict[str, list[tuple[np.ndarray, np.ndarray, np.ndarray]]] = {}

    def add(self, part: Part) -> None:
        """Check a part, and add its statistics if nothing is wrong so far."""
        if self.rules.broken("fields"):
            return
        p, used, pool = part.p, self.parts.fields.used, self.pool
        self.classes.check(p, used)
        if self.rules.broken("labels"):
            return
        if self.classes.gold and used.classification:
            self._add_labels(part)
        part = _answers(part)
        pool.at(part.rows)
        rows = part.joined.row
        label, full = p.classification[rows], np.nan_to_num(p.full[rows], nan=0.0)
        for side in ERASED:
            if getattr(used, side):
                erased = np.nan_to_num(getattr(p, side)[rows], nan=0.0)
                pool.add_mean(side, drop(full, erased, label))
                pool.add_mean(f"{side}_entropy", entropy_difference(full, erased))
                pool.add_mean(f"{side}_kl", kl_divergence(erased, full))
        areas = self._add_curves(part, full, label) if used.thresholds else {}
        if "tokens_to_flip" in used.numbers and part.documents.tokens.size:
            ratio = tokens_to_flip_ratio(p.number("tokens_to_flip")[rows], part.documents.evidence_tokens(part.r))
            pool.add_mean("tokens_to_flip_ratio", ratio)
        for name in MEASURED:
            if name in used.numbers:
                pool.add_mean(name, p.number(name)[rows])
        for side in ERASED:
            if f"{side}_bounded" in used.numbers:
                areas[side] = p.number(f"{side}_bounded")[rows]
            if {f"{side}_lower", f"{side}_upper"} <= used.numbers and side in areas:
                values = normalised_aopc(areas[side], *(p.number(f"{side}_{end}")[rows] for end in ("lower", "upper")))
                self.unbounded[side] = self.unbounded.get(side, 0) + int(np.isnan(values).sum())
                pool.add_mean(f"naopc_{side}", values)
        if used.leave_one_out and used.soft:
            pool.add_mean("tau_loo", taus_of(p)[rows])
        if used.draws:
            self._add_draws(part, full, label)

    def _add_curves(self, part: Part, full: np.ndarray, label: np.ndarray) -> dict[str, np.ndarray]:
        """Add both curves; gives the AOPC of each instance, by side."""
        p, rows = part.p, part.joined.row
        offsets = np.concatenate([[0], np.cumsum(np.maximum(p.thresholds, 0))])
        positions, good = threshold_columns(p.threshold, offsets, np.array(self.asked))
        good |= p.answered == 0
        check_thresholds(good, self.asked, p, self.rules["thresholds"])
        areas: dict[str, np.ndarray] = {}
        for side in ERASED if good.all() else ():
            matrix = getattr(p, f"threshold_{side}")
            if not np.isnan(matrix).all():
                parts = (slice(at, at + ROWS_AT_ONCE) for at in range(0, rows.size, ROWS_AT_ONCE))
                drops = [aopc(full[at], np.nan_to_num(matrix[positions[rows[at]]], nan=0.0), label[at]) for at in parts]
                each = np.concatenate(drops)
                add_curve(self.pool, f"{side}_aopc", each)
                areas[side] = each.mean(axis=1)
        return areas

    def _add_labels(self, part: Part) -> None:
        label = part.p.classification[part.joined.row]
        self.pool.at(part.rows)
        names = list(dict.fromkeys([*self.classes.gold, *(self.classes.names or ()), *part.p.labels]))
        codes = {name: code for code, name in enumerate(names)}
        truth = np.array([*(codes.get(name, -1) for name in part.r.labels), -1], dtype=np.int64)[part.r.classification]
        predicted = np.array([*(codes[name] for name in part.p.labels), -1], dtype=np.int64)[label]
        add_labels(self.pool, names, truth, predicted)

    def _add_draws(self, part: Part, full: np.ndarray, label: np.ndarray) -> None:
        p, rows, count = part.p, part.joined.row, self.classes.draws
        for side in ERASED:
            matrix = getattr(p, f"draw_{side}")
            if getattr(self.parts.fields.used, side) and not np.isnan(matrix).all():
                erased = np.nan_to_num(getattr(p, side)[rows], nan=0.0)
                place = (np.cumsum(p.answered) - 1)[rows]  # what is no answer has no draws
                draws = np.nan_to_num(matrix, nan=0.0).reshape(int(p.answered.sum()), count, -1)[place]
                own = part.rows, drop(full, erased, label), aopc(full, draws, label)
                self.drawn.setdefault(side, []).append(own)

    def left_out(self) -> list[LeftOut]:
        """The scores that these predictions do not give, each with the field that it would take."""
        used = self.parts.fields.used
        needs = {side: (getattr(used, side), SCORE_FIELDS[side]) for side in ERASED}
        needs["AOPC"] = used.thresholds, LIST_FIELDS["thresholds"].field
        if self.parts.r is not None:
            whose = " in the references" if used.classification else ""
            needs["accuracy, macro F1"] = used.classification and bool(self.classes.gold), f"classification{whose}"
            needs["tokens_to_flip_ratio"] = "tokens_to_flip" in used.numbers, "tokens_to_flip"
        if used.leave_one_out:
            needs["tau_loo"] = used.soft, SOFT_FIELDS["soft"].field
        for side in ERASED:
            bounds, area = [f"{side}_lower", f"{side}_upper"], f"{side}_bounded"
            if not used.numbers.isdisjoint([*bounds, area]):
                lacking = [name for name in bounds if name not in used.numbers]
                lacking += [] if area in used.numbers or used.thresholds else [area]
                needs[f"naopc_{side}"] = not lacking, NUMBER_FIELDS[lacking[0]].field if lacking else ""
        return [LeftOut(scores, field) for scores, (there, field) in needs.items() if not there]

    def finish(self) -> None:
        """Settle which labels count."""
        count_labels(self.pool, self.classes.finish())

    def against_chance(self) -> dict[str, tuple[dict[str, np.ndarray], dict[str, np.ndarray]]]:
        """Erased side -> its score against that of random rationales, see `resampling.against_chance`.

        Over all instances (with ``draws`` and the instances' ``mean_win_rate``), and of each annotation.
        """
        told = {}
        for side, several in self.drawn.items():
            rows, observed, draws = (np.concatenate(column) for column in zip(*several, strict=True))
            order = np.argsort(rows)
            observed, draws = observed[order], draws[order]
            up = side == "comprehensiveness"
            each = against_chance(observed, draws, up)
            overall = against_chance(np.asarray(observed.mean()), draws.mean(axis=0), up)
            overall |= {"draws": np.asarray(draws.shape[1]), "mean_win_rate": each["win_rate"].mean()}
            told[side] = overall, each
        return told

    def signature_settings(self) -> dict[str, object]:
        """The settings that made a difference, as the signature has them."""
        aopc = {"aopc": self.asked, "aopc_mean": "bins"} if self.parts.fields.used.thresholds else {}
        n = self.parts.instances
        without = {f"naopc_{side}": f"{n - count}/{n}" for side, count in self.unbounded.items() if count}
        return {"log": "e"} | aopc | without | self.parts.signature_settings()


def taus_of(p: Predictions) -> np.ndarray:
    """Kendall's tau-b of each instance's soft scores and its leave-one-out values: float64 (n,); NaN where one side is
    constant."""
    n = len(p.ids)
    owner = np.repeat(p.instance, np.maximum(p.soft, 0))
    scores = p.soft_scores[np.argsort(owner, kind="stable")]
    ends = np.cumsum(np.bincount(owner, minlength=n))
    values = np.split(p.leave_one_out_scores, np.cumsum(np.maximum(p.leave_one_out, 0))[:-1])
    taus = np.full(n, np.nan)
    for row, (own, left) in enumerate(zip(np.split(scores, ends[:-1]), values, strict=True)):
        if len(own) == len(left):
            taus[row] = kendall_tau(own, left)
    return taus


def _answers(part: Part) -> Part:
    """The part without the annotations that were given no answer: they have no probabilities."""
    answers = part.p.answered[part.joined.row] == 1
    if answers.all():
        return part
    kept = np.flatnonzero(answers)
    joined = part.joined._replace(row=part.joined.row[kept])
    return replace(
        part, r=part.r.take(kept), rows=part.rows[kept], joined=joined, documents=part.documents.at(part.rows[kept])
    )
