"""Rationales and token scores of a file, in place of those that a method computes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from eraser_hub.metrics.predictions import HARD_FIELD, SOFT_FIELDS
from eraser_hub.metrics.tokens import mask_from_spans
from eraser_hub.records.errors import DataError, add_count, show
from eraser_hub.records.files import compute_file_digest, shorten_digest
from eraser_hub.records.predictions import read_instances, read_plain_rows

from .instances import Instance
from .models.inputs import to_array
from .outputs import FORMATS
from .settings import HUMAN, MODEL

SCORES_FIELD = SOFT_FIELDS["soft"]
PAIR_FIELD = "rationale"  # of the perturbation benchmark's results: indices of each sequence
PAIR_ROW: dict[str, Any] = {"id": (str, int), PAIR_FIELD: [[int]]}


@dataclass(frozen=True, slots=True)
class Given:
    """Rationales or scores of a results file.

    Attributes:
        path: the file.
        digest: of the file, as a signature shows it.
        field: of the file's rows that holds them.
        rows: by id the line, and by document what the field holds: scores, or spans (start, end).
    """

    path: Path
    digest: str
    field: str
    rows: Mapping[str, tuple[int, Mapping[str, Any]]]

    def check(self, instances: Iterable[Instance], partly: bool) -> None:
        """Refuse what is missing or does not fit, before a run begins.

        Args:
            instances: those of the run.
            partly: whether the file may hold others too (a ``limit``, a ``sample``).

        Raises:
            DataError: the first instance whose values are missing or do not fit, with the number of others.
        """
        errors, ids = [], set()
        for instance in instances:
            ids.add(instance.id)
            try:
                self.attach(instance)
            except DataError as error:
                errors.append(error)
        if ids.isdisjoint(self.rows):
            message = "expected the split's instances, none of its ids occur: another corpus or split?"
            raise DataError(message, file=self.path)
        for identity, (line, _) in () if partly else self.rows.items():
            if identity not in ids:
                message = "expected an instance of the split, found another"
                errors.append(DataError(message, file=self.path, line=line, instance=identity))
        if errors:
            raise add_count(errors[0], len(errors))

    def attach(self, instance: Instance) -> Instance:
        """Return the instance with its rationale or scores.

        Raises:
            DataError: the file lacks the instance or one of its documents; values do not fit the tokens.
        """
        if instance.id not in self.rows:
            message = f"expected {self.field} for each instance, found none"
            raise DataError(message, file=self.path, instance=instance.id)
        line, values = self.rows[instance.id]
        try:
            for name in values:
                if name not in instance.names:
                    message = f"expected documents among {', '.join(map(show, instance.names))}, found {show(name)}"
                    raise DataError(message, instance=instance.id, field="rationales")
            for name, tokens in zip(instance.names, instance.documents, strict=True):
                # a document without spans has no rationale tokens, and one without tokens no scores
                needed = self.field == PAIR_FIELD or (self.field == SCORES_FIELD and tokens)
                if needed and name not in values:
                    message = f"expected {self.field} for document {show(name)}, found none"
                    raise DataError(message, instance=instance.id, field="rationales")
            if self.field == SCORES_FIELD:
                return attach_scores(instance, [values.get(name, ()) for name in instance.names])
            flags = []
            for name, tokens in zip(instance.names, instance.documents, strict=True):
                spans, before = sorted(set(values.get(name, ()))), 0
                for start, end in spans:
                    if not before <= start < end <= len(tokens):
                        message = f"expected spans apart from each other within the {len(tokens)} tokens of "
                        message += f"{show(name)}, found [{start}, {end}]"
                        raise DataError(message, instance=instance.id, field=self.field)
                    before = end
                flags.append(tuple(map(bool, mask_from_spans(spans, len(tokens)))))
            return replace(instance, rationale=tuple(flags))
        except DataError as error:
            raise error.at(file=self.path, line=line) from None


def open_given(source: str | Path, what: Literal["rationales", "scores"], kind: str = "eraser") -> Given:
    """Return the rationales or scores of a results file.

    Args:
        source: the file, ``.jsonl`` or ``.parquet``, of which only ids, documents and the field that is asked for are
            used.
        what: what is wanted of it, which errors name as the argument.
        kind: "perturbation" where the file's rationales are of the perturbation benchmark's form.

    Raises:
        DataError: another ending, a line that is no prediction, an id or a document that occurs twice, no such field.
    """
    path = Path(source)
    if path.suffix not in FORMATS:
        kinds = f"{HUMAN}, {MODEL} or " if what == "rationales" else ""
        message = f"expected {kinds}a file ending in {' or '.join(FORMATS)}, found {show(path.name)}"
        raise DataError(message, argument=what)
    if not path.is_file():
        raise DataError("no such file", argument=what, file=path)
    name = SCORES_FIELD if what == "scores" else PAIR_FIELD if kind == "perturbation" else HARD_FIELD
    rows: dict[str, tuple[int, Mapping[str, Any]]] = {}
    for line, identity, values in _read_pairs(path) if name == PAIR_FIELD else _read_documents(path, name):
        if identity in rows:
            raise DataError("expected each id once, found it again", file=path, line=line, instance=identity)
        rows[identity] = line, values
    return Given(path, shorten_digest(compute_file_digest(path)), name, rows)


def _read_documents(path: Path, name: str) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """Yield the line and the id of ERASER's results, and by document what a field of its rationales holds."""
    for line, row in read_instances(path):
        identity, values = str(row["annotation_id"]), {}
        if row.get("rationales") is None:
            raise DataError("expected rationales, found none", file=path, line=line, instance=identity)
        for number, rationale in enumerate(row["rationales"]):
            docid, where = str(rationale["docid"]), f"rationales[{number}]"
            if rationale.get(name) is None:
                message = "expected a list, found none"
                raise DataError(message, file=path, line=line, instance=identity, field=f"{where}.{name}")
            if docid in values:
                message = f"expected each document once, found {show(docid)} again"
                raise DataError(message, file=path, line=line, instance=identity, field=f"{where}.docid")
            values[docid] = rationale[name]
            if name == HARD_FIELD:
                values[docid] = [(span["start_token"], span["end_token"]) for span in rationale[name]]
        yield line, identity, values


def _read_pairs(path: Path) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """Yield the line and the id of the perturbation benchmark's results, and by sequence its indices, as spans."""
    from eraser_hub.metrics.rows import find_fault  # with Arrow, which is slow to import

    for line, row in read_plain_rows(path):
        lacking = ((name, "expected a value, found none") for name in PAIR_ROW if row.get(name) is None)
        if fault := find_fault(row, PAIR_ROW) or next(lacking, None):
            raise DataError(fault[1], file=path, line=line, instance=row.get("id"), field=fault[0])
        spans = [[(index, index + 1) for index in indices] for indices in row[PAIR_FIELD]]
        yield line, str(row["id"]), {f"sequence_{number}": one for number, one in enumerate(spans)}


def attach_token_scores(instance: Instance, numbers: Any) -> Instance:
    """Return the instance with scores of all its tokens, one document after the other.

    Raises:
        DataError: another number of scores than tokens; scores that are no finite numbers.
    """
    size: int | str
    try:
        size = len(numbers)
    except TypeError:
        size = show(numbers)
    if size != instance.bounds[-1]:
        message = f"expected {instance.bounds[-1]} scores, one a token, found {size}"
        raise DataError(message, instance=instance.id, field="scores")
    return attach_scores(instance, [numbers[start:end] for start, end in pairwise(instance.bounds)])


def attach_scores(instance: Instance, rows: Sequence[Sequence[float] | NDArray[np.float64]]) -> Instance:
    """Return the instance with scores of its tokens.

    Args:
        instance: the instance.
        rows: for each document a score for each token: a list, an array or a tensor.

    Raises:
        DataError: another number of scores than tokens; scores that are no finite numbers.
    """
    scores = []
    for name, tokens, values in zip(instance.names, instance.documents, rows, strict=True):
        try:
            numbers = to_array(values) if len(values) else np.zeros(0)
        except (TypeError, ValueError):
            numbers = np.zeros(())
        if numbers.ndim != 1:
            message = f"expected a list of numbers, found {show(values)}"
            raise DataError(message, instance=instance.id, field="scores")
        is_finite = bool(np.isfinite(numbers).all())
        if len(numbers) != len(tokens) or not is_finite:
            message = f"expected {len(tokens)} finite scores for the tokens of {show(name)}, found {len(numbers)}"
            message += "" if is_finite else ", not all of them finite"
            raise DataError(message, instance=instance.id, field=SCORES_FIELD)
        scores.append(tuple(map(float, numbers)))
    return replace(instance, scores=tuple(scores))
