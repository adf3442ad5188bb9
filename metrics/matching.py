"""Predictions some at a time: matched with the annotations that they speak of, in any order, and with their documents.

Whoever has all predictions at hand matches them as one part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from .checks import OptionalFields
from .flat import PickedItems, Predictions, References, Words, make_blank
from .issues import ONLY_PREDICTED, InputError, Issues, IssuesByRule, RowNames
from .joining import DocumentLengths, MatchedChunk
from .statistics_builder import Statistics, StatisticsBuilder

# rules, in the order in which they are told, see `issues.Rules`
FIELDS = ("fields", "label names", "annotation ids", "instance ids", "unknown ids", "missing instances")
DOCUMENTS = ("own documents", "documents", "labels", "probabilities")
LENGTHS = ("lengths",)
THRESHOLDS = ("thresholds",)


# scores that the predictions do not give -> the field that they would take
LeftOut = Mapping[str, str]


def describe_left_out(scores: LeftOut) -> list[str]:
    """One line that says what is left out, or none."""
    listed = "; ".join(f"{score} (no {field})" for score, field in scores.items())
    return [f"left out: {listed}"] if listed else []


def describe_fields(scores: LeftOut) -> str:
    """The fields, any of which would be scored, in words."""
    return " or ".join(dict.fromkeys(scores.values()))


class Matcher:
    """What the parts have in common: the references, and what one part must know of those before it.

    Args:
        r: the references; None where there are none: then every instance stands for itself.
        rules: where what is wrong is told: `FIELDS` are the rules of this class.
        lines: what issues call each annotation; by default its row.
        only_predicted: annotations without an instance are left out, and are no issue.
        documents: the references', where these do not hold them.

    Attributes:
        fields: the optional fields there are.
        instances, answered: how many instances there are, and how many of them are answers.
        option: how a caller asks for ``only_predicted``.
    """

    option = ONLY_PREDICTED

    def __init__(
        self,
        r: References | None,
        rules: IssuesByRule,
        lines: Sequence[int] | None = None,
        only_predicted: bool = False,
        documents: DocumentLengths | None = None,
    ) -> None:
        self.r, self.rules, self.only_predicted = r, rules, only_predicted
        self.instances = self.answered = 0
        self.documents = documents or DocumentLengths(r or make_blank(References, ()))
        self.fields = OptionalFields(rules["fields"])
        self.first: RowNames | None = None
        self.whole = RowNames((), ())
        self.unknown: set[str] = set()
        self.places: Mapping[str, int] = {}
        if r is not None:
            self.whole = rules.sides["reference"] = RowNames(range(len(r.ids)) if lines is None else lines, r.ids)
            self.seen = bytearray(len(r.ids))
            places: dict[str, int] = {}
            for row, name in enumerate(() if isinstance(r.ids, Words) else r.ids):
                if places.setdefault(name, row) != row:
                    _add_duplicate(rules["annotation ids"], "reference", row, name)
            self.places = r.ids.numbers if isinstance(r.ids, Words) else places

    def match(self, p: Predictions, lines: Sequence[int] | None = None) -> MatchedChunk:
        """A part: its annotations and documents, and what is wrong with its ids and its optional fields.

        Args:
            p: the instances.
            lines: what issues call each instance; by default its row.
        """
        side = RowNames(range(len(p.ids)) if lines is None else lines, p.ids)
        if self.first is None and len(p.ids):
            self.first = side
        self.rules.sides["prediction"] = side
        self.instances += len(p.ids)
        self.answered += int(p.answered.sum())
        self.fields.check(p)
        return self._make_chunk(p, self._match_ids(p.ids), side)

    def without_rationales(self, annotation: np.ndarray, lines: Sequence[int], answered: np.ndarray) -> MatchedChunk:
        """A part of which nothing else is known any more than that its instances have no rationale.

        Args:
            annotation: of each instance, its row; all have one.
            lines: see `match`.
            answered: of each instance.
        """
        ids = PickedItems(self.whole.ids, annotation)
        return self._make_chunk(
            replace(make_blank(Predictions, ids), answered=answered), annotation, RowNames(lines, ids)
        )

    def _make_chunk(self, p: Predictions, annotation: np.ndarray, side: RowNames) -> MatchedChunk:
        rows = np.unique(annotation[annotation >= 0])
        reference = np.where(annotation < 0, -1, np.searchsorted(rows, annotation))
        row = np.full(rows.size, -1, dtype=np.int64)
        row[reference[reference >= 0]] = np.flatnonzero(reference >= 0)
        r = make_blank(References, p.ids) if self.r is None else self.r.take(rows)
        whole = RowNames(PickedItems(self.whole.numbers, rows), PickedItems(self.whole.ids, rows))
        self.rules.sides |= {"prediction": side, "reference": whole}
        return MatchedChunk(p, r, rows, row, reference, self.documents, side.numbers)

    def _match_ids(self, ids: Sequence[str]) -> np.ndarray:
        """The annotation of each instance; -1 where none has its id. Each id is expected once."""
        duplicates, unmatched = self.rules["instance ids"], []
        places, rows = self.places, np.full(len(ids), -1, dtype=np.int64)
        for at, name in enumerate(ids):
            row = places.get(name, -1)
            if self.seen[row] if row >= 0 else name in self.unknown:
                _add_duplicate(duplicates, "prediction", at, name)
            if row < 0:
                self.unknown.add(name)
                unmatched.append(at)
            else:
                self.seen[row] = 1
                rows[at] = row
        if self.r is None:
            return np.arange(len(ids))
        self.rules["unknown ids"].add_where(
            "prediction",
            np.array(unmatched, dtype=np.int64),
            "annotation_id",
            lambda at: f"no annotation has the id {ids[at]!r}",
            "id-unknown",
        )
        return rows

    def finish(self) -> None:
        """What can be told of all parts alone: instances there must be, and of every annotation one."""
        if self.first is None:
            self.rules.sides.pop("prediction", None)
            self.rules["fields"].add("prediction", -1, "", "expected at least one instance, found none", "empty")
            return
        self.rules.sides["prediction"] = self.first
        self.fields.finish()
        if self.r is None:
            return
        self.rules.sides["reference"] = self.whole
        ids, unknown = self.r.ids, self.rules["unknown ids"]
        missing, total = np.flatnonzero(np.frombuffer(self.seen, dtype=np.uint8) == 0), len(ids)
        none_matches = missing.size == total and unknown.total == self.instances
        if none_matches:
            unknown.reset()
            message = (
                f"none of the {self.instances:,} ids occurs among the {total:,} annotations (ids like {ids[0]!r}): "
                "another corpus or another split?"
            )
            unknown.add("prediction", 0, "annotation_id", message, "id-unknown")
        elif missing.size and not self.only_predicted:
            message = "expected an instance for this annotation, found none"
            hint = f" ({missing.size:,} of {total:,} annotations have none; {self.option} scores the others alone)"
            self.rules["missing instances"].add_rows(
                "reference", missing, "annotation_id", lambda k: message + hint * (k == 0), "id-missing"
            )

    @property
    def scored(self) -> np.ndarray | None:
        """The rows of the annotations that have an instance, where others have none; None: all have."""
        if self.r is None or not self.only_predicted:
            return None
        seen = np.flatnonzero(np.frombuffer(self.seen, dtype=np.uint8))
        return None if seen.size == len(self.r.ids) else seen

    def statistics(
        self, builder: StatisticsBuilder, ids: Sequence[str], left_out: LeftOut, where: str = ""
    ) -> Statistics:
        """Return the statistics of the annotations that are scored.

        Args:
            pool: the columns that were gathered, a row per annotation.
            ids: of all annotations.
            left_out: the scores that there are not.
            where: what holds the fields that scores read.

        Raises:
            ValueError: something is wrong, or nothing was scored.
        """
        self.rules.collect().raise_if_any()
        if not builder.columns:
            message = f"nothing to score: expected {where}{describe_fields(left_out)}, found none of them"
            raise InputError(message, "score-missing", "predictions")
        statistics = builder.statistics(ids)
        return statistics if self.scored is None else statistics.take(self.scored)

    def signature_settings(self) -> dict[str, object]:
        """What the signature says of instances that there are not."""
        settings: dict[str, object] = {}
        if self.scored is not None and self.r is not None:
            settings["scored"] = f"{self.scored.size}/{len(self.r.ids)}"
        if self.answered < self.instances:
            settings["answered"] = f"{self.answered}/{self.instances}"
        return settings


def _add_duplicate(issues: Issues, side: str, row: int, name: str) -> None:
    issues.add(side, row, "annotation_id", f"expected each id once, found {name!r} again", "id-twice")
