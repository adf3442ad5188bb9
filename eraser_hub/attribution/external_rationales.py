"""Rationales and token scores from files, which are erased and scored as computed ones are."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from eraser_hub.metrics.match import HARD_FIELD, SOFT_FIELDS
from eraser_hub.metrics.plain import mask_from_spans
from eraser_hub.records.errors import DataError, add_count, show
from eraser_hub.records.files import compute_file_digest
from eraser_hub.records.predictions import read_instances, read_plain_rows

from .adapter import to_array
from .instances import Instance, flag_members
from .outputs import FORMATS
from .settings import RationaleSource

SOFT = SOFT_FIELDS["soft"]


class GoldRationales:
    """Human rationales, the union of the gold evidence; instances without any are left out and counted."""

    digest = RationaleSource.HUMAN

    def attach_all(self, instances: Iterable[Instance]) -> Iterator[Instance]:
        """Yield every instance with its rationale or scores."""
        return (one for one in instances if one.has_rationale)

    def check(self, instances: Iterable[Instance], partly: bool) -> str:
        """Refuse missing rationales before the run begins."""
        counts = Counter(one.has_rationale for one in instances)
        size, marked = counts.total(), counts[True]
        if not marked:
            message = f"`rationales` human: none of {size} instances has a human rationale"
            raise DataError(message)
        return "" if marked == size else f"{size - marked} of {size} instances without a human rationale, left out"


class ExternalFile(ABC):
    """A field of a predictions file, by id.

    Attributes:
        digest: digest of the file, for the signature.

    Args:
        path: an ERASER results file, ``.jsonl`` or ``.parquet``; only ``annotation_id`` and, of its ``rationales``,
            ``docid`` and :attr:`field` are used.

    Raises:
        DataError: another ending, a line that is no prediction, an id or a document that occurs twice, no such field.
    """

    what: str
    field: str
    needs: ClassVar[Literal["", "tokens", "all"]] = ""  # for which documents there has to be something

    def __init__(self, path: Path) -> None:
        self.path = path
        if path.suffix not in FORMATS:
            message = f"expected a file ending in {' or '.join(FORMATS)}, found {show(path.name)}"
            raise DataError(message, argument=self.what)
        if not path.is_file():
            raise DataError("no such file", argument=self.what, file=path)
        self.digest = compute_file_digest(path, hashlib.blake2b(digest_size=6))
        self._documents: dict[str, tuple[int, dict[str, Any]]] = {}
        for number, identity, documents in self._rows(path):
            if identity in self._documents:
                message = "expected each id once, found it again"
                raise DataError(message, file=path, line=number, instance=identity)
            self._documents[identity] = number, documents

    def _rows(self, path: Path) -> Iterator[tuple[int, str, dict[str, Any]]]:
        """Yield the line, the id, and the field's values by document."""
        for number, prediction in read_instances(path):
            identity, documents = str(prediction["annotation_id"]), dict[str, Any]()
            where: dict[str, Any] = {"file": path, "line": number, "instance": identity}
            if prediction.get("rationales") is None:
                raise DataError("expected rationales, found none", **where)
            for place, one in enumerate(prediction["rationales"]):
                docid, values = str(one["docid"]), one.get(self.field)
                if values is None:
                    message = f"expected {self.what}, found none"
                    raise DataError(message, **where, field=f"rationales[{place}].{self.field}")
                if docid in documents:
                    message = f"expected each document once, found {show(docid)} again"
                    raise DataError(message, **where, field=f"rationales[{place}].docid")
                documents[docid] = values
            yield number, identity, documents

    def check(self, instances: Iterable[Instance], partly: bool) -> str:
        """Refuse missing rationales before the run begins.

        Args:
            instances: the instances.
            partly: whether the file may hold further instances (a ``limit``, a ``sample``).

        Returns:
            A message for the reader of the results; "" for none.

        Raises:
            DataError: names the first instance whose values are missing or do not fit, and counts all.
        """
        first: DataError | None = None
        wrong, ids = 0, set[str]()
        for instance in instances:
            ids.add(instance.id)
            try:
                self.attach(instance)
            except DataError as error:
                first, wrong = first or error, wrong + 1
        if ids.isdisjoint(self._documents):
            message = "expected the split's instances, none of its ids occur: another corpus or split?"
            raise DataError(message, file=self.path)
        others = [] if partly else [identity for identity in self._documents if identity not in ids]
        if others and first is None:
            message, (line, _) = "expected an instance of the split, found another", self._documents[others[0]]
            first = DataError(message, file=self.path, line=line, instance=others[0])
        if first is not None:
            raise add_count(first, wrong + len(others))
        return ""

    def attach_all(self, instances: Iterable[Instance]) -> Iterator[Instance]:
        """Yield every instance with its rationale or scores."""
        return map(self.attach, instances)

    def attach(self, instance: Instance) -> Instance:
        """Return the instance with the file's values for it.

        Raises:
            DataError: the file lacks it or one of its documents; values do not fit its tokens.
        """
        if instance.id not in self._documents:
            message = f"expected {self.what} for each instance, found none"
            raise DataError(message, file=self.path, instance=instance.id)
        line, documents = self._documents[instance.id]
        unknown = next((name for name in documents if name not in instance.names), None)
        pairs = zip(instance.names, instance.documents, strict=True)
        needed = (name for name, tokens in pairs if self.needs == "all" or (tokens and self.needs == "tokens"))
        lacking = next((name for name in needed if name not in documents), None)
        try:
            if unknown is not None:
                words = f"expected documents among {', '.join(map(show, instance.names))}, found {show(unknown)}"
                raise DataError(words, instance=instance.id, field="rationales")
            if lacking is not None:
                words = f"expected {self.field} for document {show(lacking)}, found none"
                raise DataError(words, instance=instance.id, field="rationales")
            return self._attach_checked(instance, documents)
        except DataError as error:
            raise error.at(file=self.path, line=line) from None

    @abstractmethod
    def _attach_checked(self, instance: Instance, documents: Mapping[str, Any]) -> Instance: ...


class ExternalScores(ExternalFile):
    """Soft rationales: a score for each token of every document that has tokens."""

    what, field, needs = "scores", SOFT, "tokens"

    def _attach_checked(self, instance: Instance, documents: Mapping[str, Any]) -> Instance:
        return attach_scores(instance, [documents.get(name, ()) for name in instance.names])


class ExternalSpans(ExternalFile):
    """Hard rationales: spans, of any number and length; a document without any has no rationale tokens."""

    what, field = "rationales", HARD_FIELD

    def _attach_checked(self, instance: Instance, documents: Mapping[str, Any]) -> Instance:
        flags = []
        for name, tokens in zip(instance.names, instance.documents, strict=True):
            spans = sorted({(span["start_token"], span["end_token"]) for span in documents.get(name, ())})
            before = 0
            for start, end in spans:
                if not before <= start < end <= len(tokens):
                    message = (
                        f"expected spans apart from each other within the {len(tokens)} tokens of {show(name)}, found "
                    )
                    raise DataError(message + show([start, end]), instance=instance.id, field=HARD_FIELD)
                before = end
            flags.append(tuple(map(bool, mask_from_spans(spans, len(tokens)))))
        return replace(instance, rationale=tuple(flags))


class ExternalIndices(ExternalFile):
    """Hard rationales of pairs, in the perturbation benchmark's form: indices of each sequence, in any order."""

    what, field, needs = "rationales", "rationale", "all"

    def _rows(self, path: Path) -> Iterator[tuple[int, str, dict[str, Any]]]:
        for number, row in read_plain_rows(path):
            identity, sequences = row.get("id"), row.get(self.field)
            if isinstance(identity, bool) or not isinstance(identity, (str, int)):
                message = f"expected a string or an integer, found {show(identity)}"
                raise DataError(message, file=path, line=number, field="id")
            if not isinstance(sequences, list):
                message = f"expected a list of indices for each sequence, found {show(sequences)}"
                raise DataError(message, file=path, line=number, instance=identity, field=self.field)
            yield number, str(identity), {f"sequence_{at}": indices for at, indices in enumerate(sequences)}

    def _attach_checked(self, instance: Instance, documents: Mapping[str, Any]) -> Instance:
        pairs = enumerate(zip(instance.names, instance.documents, strict=True))
        field = self.field
        flags = (
            flag_members([documents[name]], len(tokens), instance.id, f"{field}[{at}]") for at, (name, tokens) in pairs
        )
        return replace(instance, rationale=tuple(flags))


ExternalRationales = GoldRationales | ExternalFile


def read_external_rationales(whose: str, kind: str) -> ExternalRationales:
    """Return the source of rationales that ``rationales`` names: ``human``, or a predictions file."""
    if whose == RationaleSource.HUMAN:
        return GoldRationales()
    return ExternalIndices(Path(whose)) if kind == "perturbation" else ExternalSpans(Path(whose))


def attach_scores(instance: Instance, scores: Sequence[Sequence[float] | NDArray[np.float64]]) -> Instance:
    """Return the instance with one score for each token of each document.

    Raises:
        DataError: another number of scores than tokens, or scores that are not finite.
    """
    rows = []
    for name, tokens, values in zip(instance.names, instance.documents, scores, strict=True):
        try:
            row = tuple(to_array(values).tolist()) if len(values) else ()
        except (TypeError, ValueError):
            message = f"expected numbers, found {show(values)}"
            raise DataError(message, instance=instance.id, field="scores") from None
        if len(row) != len(tokens) or not np.isfinite(row).all():
            raise DataError(
                f"expected {len(tokens)} finite scores for the tokens of {show(name)}, found {len(row)}"
                + ("" if len(row) != len(tokens) else ", not all of them finite"),
                instance=instance.id,
                field=SOFT,
            )
        rows.append(row)
    return replace(instance, scores=tuple(rows))
