"""The match: which annotation each instance answers, and which fields, labels and thresholds all instances have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import compress

import numpy as np

from .errors import DataError, cut
from .gold import Gold
from .predictions import ERASED, PATHS, SOFT_FIELDS, Predictions
from .rows import check, describe_missing_id, describe_unknown_id


@dataclass
class Match:
    """A chunk of n predictions, and the annotations that they answer.

    Attributes:
        predictions: the instances.
        gold: the annotations; None: there are none.
        rows: the annotation of each instance: int64 (n,).
        present: field of `PATHS` -> whether instances have it; none of a field that no answer has decided.
        labels: the valid labels.
        thresholds: shares of tokens, ascending: float64 (T,); None: none so far.
    """

    predictions: Predictions
    gold: Gold | None
    rows: np.ndarray
    present: Mapping[str, bool]
    labels: list[str]
    thresholds: np.ndarray | None

    @property
    def ids(self) -> list[str]:
        """The ids of the instances."""
        return self.predictions.ids

    @property
    def answered(self) -> np.ndarray:
        """False for an instance without answer: it has no spans, scores of 0, and no label: bool (n,)."""
        return self.predictions.answered


class Matcher:
    """Matches chunks of predictions with annotations.

    Args:
        gold: the annotations; None: predictions are taken as they are.
        only_predicted: annotations without a prediction are left out, in place of an error.
        label_names: the valid labels, without gold.
        thresholds: those that every instance must have; None: those of the first.

    Attributes:
        present: field -> whether instances have it: each is in all of them or in none.
        unknown: field that the format does not know -> number of instances.
        answered, total: number of instances that hold an answer, and of all.
    """

    def __init__(
        self,
        gold: Gold | None,
        only_predicted: bool = False,
        label_names: Sequence[str] | None = None,
        thresholds: Sequence[float] | None = None,
    ) -> None:
        self.gold, self.only_predicted = gold, only_predicted
        self.named = gold.named if gold is not None else label_names is not None
        self.labels = list(label_names or ()) if gold is None else list(gold.labels)
        self.thresholds = None if thresholds is None else np.unique(np.asarray(thresholds, float))
        self.index: dict[str, int] = {} if gold is None else gold.index
        self.seen = np.zeros(len(self.index), dtype=bool)
        self.present: dict[str, bool] = {}
        self.unknown: Counter[str] = Counter()
        self.answered = self.total = 0

    @property
    def used(self) -> set[str]:
        """The fields that the instances have: of `PATHS`."""
        return {name for name, there in self.present.items() if there}

    def add(self, p: Predictions) -> Match:
        """Return a chunk with its annotations.

        Raises:
            DataError: at the first instance of the first kind of fault.
        """
        self.unknown.update(p.unknown)
        self.total, self.answered = self.total + len(p.ids), self.answered + int(p.answered.sum())
        rows = self._find_rows(p)
        self._check_presence(p)
        if not self.named:  # the labels of gold and of the first scores; without gold those of all instances
            full = p.scores["full"].table if "full" in p.scores else np.zeros((0, 0))
            scored = np.any(~np.isnan(full if self.gold is None else full[:1]), axis=0)
            free = filter(None, p.classification) if self.gold is None else ()
            self.labels[:] = dict.fromkeys([*self.labels, *compress(p.labels, np.asarray(scored)), *free])
            self.named = self.gold is not None
        if self.thresholds is None and any(side.startswith("threshold_") for side in p.scores):
            first = int(np.argmax(p.answered))
            before = int(np.maximum(p.thresholds.size[:first], 0).sum())
            self.thresholds = np.unique(p.thresholds.values[before : before + p.thresholds.size[first]])
        return Match(p, self.gold, rows, self.present, self.labels, self.thresholds)

    def _find_rows(self, p: Predictions) -> np.ndarray:
        if self.gold is None:
            for name in p.ids:
                self.index.setdefault(name, len(self.index))
            self.seen = np.append(self.seen, np.zeros(len(self.index) - self.seen.size, dtype=bool))
        rows = np.array([self.index.get(name, -1) for name in p.ids], dtype=np.int64)
        if rows.size and (rows < 0).all() and self.total == rows.size:  # no id of the first chunk is known
            error = describe_unknown_id(p.ids[0], rows.size, rows.size, list(self.index), "annotations")
            raise p.error(0, "annotation_id", error.message)
        check(rows < 0, p.error, None, "annotation_id", "no annotation has this id")
        again = np.ones(rows.size, dtype=bool)
        again[np.unique(rows, return_index=True)[1]] = False
        check(self.seen[rows] | again, p.error, None, "annotation_id", "expected each id once, found it again")
        self.seen[rows] = True
        return rows

    def _check_presence(self, p: Predictions) -> None:
        named = np.bincount(p.owner, minlength=len(p.ids)) > 0
        said = p.has["classification"] | p.has["thresholds"] | named
        silent = "expected neither label nor rationales, because it is no answer"
        check(~p.answered & said, p.error, None, "outcome", silent)
        for name, has in p.has.items():
            owner = p.owner if name in ("hard", *SOFT_FIELDS) else np.arange(len(p.ids))
            has, owner = has[p.answered[owner]], owner[p.answered[owner]]
            if has.size:
                first = self.present.setdefault(name, bool(has[0]))
                words = "it here too, as in the instances before, found none" if first else "none, as before, found one"
                check(has != first, p.error, owner, PATHS[name], f"expected {words} (in all or in none)")
        for name, needed in {**dict.fromkeys((*ERASED, "thresholds"), "full"), "full": "classification"}.items():
            if self.present.get(name) and not self.present.get(needed):
                raise p.error(0, PATHS[needed], f"expected it beside {PATHS[name]}, found none")

    def finish(self) -> np.ndarray | None:
        """Return the rows of the annotations that are scored, ascending; None if all are.

        Raises:
            DataError: no instance; an annotation without one, unless only predicted ones are scored.
        """
        if not self.total:
            raise DataError("expected at least one instance, found none", field="predictions")
        missing = np.flatnonzero(~self.seen)
        if not missing.size:
            return None
        if not self.only_predicted and self.gold is not None:
            raise describe_missing_id(self.gold.ids[int(missing[0])], missing.size, self.seen.size)
        return np.flatnonzero(self.seen)

    def facts(self) -> dict[str, object]:
        """Return what the signature says of missing instances and answers."""
        scored, facts = int(self.seen.sum()), dict[str, object]()
        if scored < self.seen.size:
            facts["scored"] = f"{scored}/{self.seen.size}"
        if self.answered < self.total:
            facts["answered"] = f"{self.answered}/{self.total}"
        return facts

    def notes(self) -> list[str]:
        """Return a line on fields that the format does not know, if there are any."""
        if not self.unknown:
            return []
        listed = ", ".join(f"{cut(name)[1:-1]} (in {count:,})" for name, count in sorted(self.unknown.items())[:10])
        more = f" and {len(self.unknown) - 10} more" if len(self.unknown) > 10 else ""
        return [f"not scored, because the format has no such field: {listed}{more}"]
