"""Matching of predictions, in chunks and in any order, with their annotations and documents.

A caller that has all predictions at once matches them as one chunk.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from .checks import FIELDS as PATHS
from .checks import NEEDS, OptionalFields
from .flat import PickedItems, Predictions, References, Words, make_blank
from .issues import ONLY_PREDICTED, InputError, Issues, IssuesByRule, RowNames
from .joining import DocumentLengths, MatchedChunk
from .plausibility import Plausibility
from .statistics_builder import Statistics, StatisticsBuilder

# rules in the order of messages, see `issues.IssuesByRule`
FIELDS = ("fields", "label names", "annotation ids", "instance ids", "unknown ids", "missing instances")
DOCUMENTS = ("own documents", "documents", "labels", "probabilities")
LENGTHS = ("lengths",)
THRESHOLDS = ("thresholds",)


# scores that the predictions do not allow -> the missing field
LeftOut = Mapping[str, str]


def describe_left_out(scores: LeftOut) -> list[str]:
    """Return one line that names the scores that are left out, or none."""
    listed = "; ".join(f"{score} (no {field})" for score, field in scores.items())
    return [f"left out: {listed}"] if listed else []


def describe_fields(scores: LeftOut) -> str:
    """Return the missing fields as text, joined by "or"."""
    return " or ".join(dict.fromkeys(scores.values()))


class Matcher:
    """Matches chunks of predictions with the references, and checks ids across chunks.

    Args:
        r: the references; without them (None) every instance is its own annotation.
        rules: the issues by rule; `FIELDS` are the rules of this class.
        lines: the number of each annotation in messages; by default its row.
        only_predicted: leave out annotations without an instance; they are no issue then.
        documents: the documents of the references, if these do not hold them.

    Attributes:
        fields: the optional fields that the predictions have.
        instances: the number of instances.
        answered: the number of instances that are answers.
        scored: the rows of the annotations that have an instance, after `finish`; None if all have one.
        plausibility: the contradictions in the predictions.
        option: the name of ``only_predicted`` in messages.
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
        self.fields, self.plausibility = OptionalFields(rules["fields"]), Plausibility(r)
        self.first: RowNames | None = None
        self.whole = RowNames((), ())
        self.scored: np.ndarray | None = None
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
        """Return a chunk with its annotations and documents, and add the issues of its ids and optional fields.

        Args:
            p: the instances.
            lines: the number of each instance in messages; by default its row.
        """
        side = RowNames(range(len(p.ids)) if lines is None else lines, p.ids)
        if self.first is None and len(p.ids):
            self.first = side
        self.rules.sides["prediction"] = side
        self.instances += len(p.ids)
        self.answered += int(p.answered.sum())
        self.fields.check(p)
        annotation, unmatched = np.full(len(p.ids), -1, dtype=np.int64), []
        for at, name in enumerate(p.ids):
            row = self.places.get(name, -1)
            if self.seen[row] if row >= 0 else name in self.unknown:
                _add_duplicate(self.rules["instance ids"], "prediction", at, name)
            if row < 0:
                self.unknown.add(name)
                unmatched.append(at)
            else:
                self.seen[row] = 1
                annotation[at] = row
        if self.r is None:
            return self._make_chunk(p, np.arange(len(p.ids)), side)
        places, issues = np.array(unmatched, dtype=np.int64), self.rules["unknown ids"]
        message = "no annotation has the id {!r}"
        issues.add_where("prediction", places, "annotation_id", lambda at: message.format(p.ids[at]), "id-unknown")
        chunk = self._make_chunk(p, annotation, side)
        self.plausibility.add_documents(chunk)
        return chunk

    def without_rationales(self, annotation: np.ndarray, lines: Sequence[int], answered: np.ndarray) -> MatchedChunk:
        """Return a chunk of instances that have no rationale.

        Args:
            annotation: the row of each instance's annotation; all have one.
            lines: see `match`.
            answered: 1 for each instance that is an answer, else 0.
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

    def finish(self) -> None:
        """Add the issues that depend on all chunks: of instances, of fields, and of annotations without an instance."""
        if self.first is None:
            self.rules.sides.pop("prediction", None)
            self.rules["fields"].add("prediction", -1, "", "expected at least one instance, found none", "empty")
            return
        self.rules.sides["prediction"] = self.first
        used, issues = self.fields.used, self.rules["fields"]
        for name, other in NEEDS.items():
            if name in used and other not in used and not issues.total:
                message = f"expected it beside {PATHS[name]}, found none"
                issues.add("prediction", 0, PATHS.get(other, other), message, "key-missing")
        if self.r is None:
            return
        self.rules.sides["reference"] = self.whole
        ids, unknown = self.r.ids, self.rules["unknown ids"]
        missing, total = np.flatnonzero(np.frombuffer(self.seen, dtype=np.uint8) == 0), len(ids)
        none_matches = missing.size == total and unknown.total == self.instances
        if none_matches:
            unknown.clear()
            unknown.total = 0
            like = f" (ids like {ids[0]!r})" if total else ""
            words = f"none of the {self.instances:,} ids occurs among the {total:,} annotations{like}"
            message = f"{words}: another corpus or another split?"
            unknown.add("prediction", 0, "annotation_id", message, "id-unknown")
        elif missing.size and not self.only_predicted:
            message = "expected an instance for this annotation, found none"
            hint = f" ({missing.size:,} of {total:,} annotations have none; {self.option} scores the others alone)"
            first = int(missing[0])
            self.rules["missing instances"].add_where(
                "reference", missing, "annotation_id", lambda row: message + hint * (row == first), "id-missing"
            )
        elif missing.size:
            self.scored = np.flatnonzero(np.frombuffer(self.seen, dtype=np.uint8))

    def statistics(
        self,
        builder: StatisticsBuilder,
        ids: Sequence[str],
        left_out: LeftOut,
        where: str = "",
        rows: np.ndarray | None = None,
    ) -> Statistics:
        """Return the statistics of the annotations that are scored.

        Args:
            builder: the columns, a row per annotation.
            ids: the ids of all annotations.
            left_out: the scores that are left out.
            where: the place of the fields that scores read, for messages.
            rows: the annotations that are scored; None: those that have an instance.

        Raises:
            ValueError: the input has issues, or nothing is scored.
        """
        self.rules.collect().raise_if_any()
        if not builder.columns:
            message = f"nothing to score: expected {where}{describe_fields(left_out)}, found none of them"
            raise InputError(message, "score-missing", "predictions")
        statistics = builder.statistics(ids)
        rows = self.scored if rows is None else rows
        return statistics if rows is None else statistics.take(rows)

    def signature_settings(self) -> dict[str, object]:
        """Return the signature's settings on missing instances and answers."""
        settings: dict[str, object] = {}
        if self.scored is not None and self.r is not None:
            settings["scored"] = f"{self.scored.size}/{len(self.r.ids)}"
        if self.answered < self.instances:
            settings["answered"] = f"{self.answered}/{self.instances}"
        return settings


def _add_duplicate(issues: Issues, side: str, row: int, name: str) -> None:
    issues.add(side, row, "annotation_id", f"expected each id once, found {name!r} again", "id-twice")
