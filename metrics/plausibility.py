"""Contradictions in predictions that are legal all the same: each becomes a note, never an error."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from eraser_hub.schema.instance import ERASED, LIST_FIELDS, PROBABILITY_SLACK, SCORE_FIELDS

from .flat import Predictions, References
from .issues import cut
from .joining import MatchedChunk

NAMED_IDS = 3
# what a mean has to exceed to count as systematic: a difference of probabilities, its standard errors, instances
MARGIN, STANDARD_ERRORS, FEWEST = 0.05, 5, 10


class Plausibility:
    """Collects contradictions in predictions, a chunk at a time.

    - ``classification`` is not the most probable label of ``classification_scores``. A label within 1e-3 of the most
      probable one is a tie. If it is that of an erased input in every instance, of ten or more, the fields
      look exchanged.
    - More than half of the instances name only documents of other annotations.
    - The predicted label is systematically more probable without the rationale than on the full input. Exchanged
      fields and reversed token scores look like this. Random rationales do not: as the label is the most probable one
      of the full input, erasing has no way to go but down on average.
    - Both curves over thresholds run backwards: comprehensiveness falls, and sufficiency rises, with the threshold.
      Random rationales have the opposite, because more tokens are erased and more are kept. Without thresholds nothing
      tells exchanged erased inputs from another rationale.

    A mean is systematic if it exceeds 0.05 and five standard errors, over at least ten instances.

    Args:
        r: the references, or None.
    """

    def __init__(self, r: References | None) -> None:
        self.r = r
        if r is not None:  # the documents of each annotation: those that it lists, and those of its evidence
            self.width = max(len(r.docids), 1)
            listed = r.document_instance >= 0
            owner = np.append(r.document_instance[listed], r.group_instance[r.group]).astype(np.int64)
            doc = np.append(r.document[listed], r.doc)
            self.own = np.unique(owner * self.width + doc)  # pairs
            self.has_own, self.is_owned = np.zeros(len(r.ids), dtype=bool), np.zeros(self.width, dtype=bool)
            self.has_own[owner] = self.is_owned[doc] = True
        self.naming, self.n = 0, 0  # instances that name documents; instances with probabilities
        self.foreign, self.other = list[str](), list[str]()  # ids of those that name others' documents; of other labels
        # instances whose label is the most probable one of the erased input
        self.fits: dict[str, int] = dict.fromkeys(ERASED, 0)
        self.sums: dict[str, np.ndarray] = {}  # name -> number, sum, sum of squares of one value per instance

    def add_documents(self, chunk: MatchedChunk) -> None:
        """Count the instances that name documents of other annotations alone."""
        if self.r is None or not chunk.doc.size:
            return
        annotation, doc = np.append(chunk.rows, -1)[chunk.owner], chunk.doc
        judged = (annotation >= 0) & (doc >= 0) & (doc < self.width)
        judged[judged] = self.has_own[annotation[judged]] & self.is_owned[doc[judged]]
        pairs = annotation[judged] * self.width + doc[judged]
        other = judged.copy()
        other[judged] = self.own[np.minimum(np.searchsorted(self.own, pairs), self.own.size - 1)] != pairs
        named, others = (
            np.bincount(chunk.p.instance[each], minlength=len(chunk.p.ids)) for each in (annotation >= 0, other)
        )
        self.naming += int((named > 0).sum())
        self.foreign += [chunk.p.ids[row] for row in np.flatnonzero((named > 0) & (named == others)).tolist()]

    def add_probabilities(
        self, p: Predictions, rows: np.ndarray, label: np.ndarray, full: np.ndarray, erased: Mapping[str, np.ndarray]
    ) -> None:
        """Count the instances whose label is not the most probable one.

        Args:
            p: the instances.
            rows: those with probabilities, as all that follows.
            label: the predicted label of each.
            full: probabilities on the full input, float64 (rows, labels).
            erased: erased side -> probabilities, likewise.
        """
        at = np.arange(rows.size)
        self.n += rows.size
        fits = {
            name: each[at, label] >= each.max(axis=1, initial=0) - PROBABILITY_SLACK
            for name, each in {"full": full, **erased}.items()
        }
        self.other += [p.ids[row] for row in rows[~fits.pop("full")].tolist()]
        for side, good in fits.items():
            self.fits[side] += int(good.sum())
        if ERASED[0] in erased:
            self._add("rise", erased[ERASED[0]][at, label] - full[at, label])

    def add_curves(self, drops: Mapping[str, np.ndarray]) -> None:
        """Add the drops of both sides at each threshold, ascending: side -> float64 (n, thresholds)."""
        if len(drops) == len(ERASED):
            without, alone = (drops[side] for side in ERASED)
            self._add("falls", without[:, 0] - without[:, -1])
            self._add("rises", alone[:, -1] - alone[:, 0])

    def _add(self, name: str, values: np.ndarray) -> None:
        sums = np.array([values.size, values.sum(), (values**2).sum()])
        self.sums[name] = self.sums.get(name, 0.0) + sums

    def _is_systematic(self, name: str) -> bool:
        n, total, squares = self.sums.get(name, (0, 0.0, 0.0))
        if n < FEWEST:
            return False
        mean = total / n
        error = math.sqrt(max(squares / n - mean**2, 0.0) / (n - 1))
        return bool(mean > max(MARGIN, STANDARD_ERRORS * error))

    def notes(self) -> list[str]:
        """Return one line for each contradiction."""
        lines, (full, without, alone) = list[str](), (SCORE_FIELDS[name] for name in ("full", *ERASED))
        if self.other:
            lines.append(f"classification is not the most probable label of {full} in {_count(self.other, self.n)}")
            side = next((side for side in ERASED if self.fits[side] == self.n >= FEWEST), None)
            lines[0] += f"; it is that of {SCORE_FIELDS[side]} in all: are the two fields exchanged?" if side else ""
        elif self._is_systematic("falls") and self._is_systematic("rises"):
            note = (
                f"{LIST_FIELDS['thresholds'].field}: comprehensiveness falls and sufficiency rises with the threshold"
            )
            lines.append(f"{note}: are {without} and {alone} exchanged, or the token scores reversed?")
        elif self._is_systematic("rise"):
            mean = self.sums["rise"][1] / self.sums["rise"][0]
            note = f"without the rationale the predicted label is more probable than on the full input, by {mean:.3f}"
            lines.append(f"{note} on average: are {full} and {without} exchanged, or the token scores reversed?")
        if 2 * len(self.foreign) > self.naming:
            lines.append(f"only documents of other annotations are named in {_count(self.foreign, self.naming)}")
        return lines


def _count(ids: Sequence[object], total: int) -> str:
    """Return how many of all instances these are, and the first ids."""
    more = ", .." if len(ids) > NAMED_IDS else ""
    return f"{len(ids):,} of {total:,} instances ({', '.join(map(cut, ids[:NAMED_IDS]))}{more})"
