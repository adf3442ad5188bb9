"""Token scores from elsewhere: another attribution method's results, erased and scored as our own would be."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eraser_hub.metrics.fields import SOFT_FIELDS
from eraser_hub.records.digests import file_digest
from eraser_hub.records.errors import MOST_SHOWN, DataError, DataErrors, shown
from eraser_hub.records.predictions import Rationale, instances

from .instances import Instance
from .outputs import FORMATS

SOFT = SOFT_FIELDS["soft"].field


class GivenScores:
    """Soft rationales of a predictions file, held by id.

    Args:
        path: an ERASER results file, ``.jsonl`` or ``.parquet``; only ``annotation_id`` and the ``docid`` and
            ``soft_rationale_predictions`` of its ``rationales`` are used.

    Attributes:
        digest: of the file's bytes, which stands in the signature.

    Raises:
        DataError: another ending, a line that is no prediction, an id or a document that occurs twice, no scores.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        if path.suffix not in FORMATS:
            raise DataError(f"--scores: expected a file ending in {' or '.join(FORMATS)}, found {shown(path.name)}")
        if not path.is_file():
            raise DataError("--scores: no such file", file=path)
        self.digest = file_digest(path, hashlib.blake2b(digest_size=6))
        self._documents: dict[str, tuple[int, dict[str, NDArray[np.float64]]]] = {}
        for number, prediction in instances(path):
            identity = str(prediction.annotation_id)
            if identity in self._documents:
                raise DataError("expected each id once, found it again", file=path, line=number, instance=identity)
            if prediction.rationales is None:
                raise DataError("expected rationales, found none", file=path, line=number, instance=identity)
            self._documents[identity] = number, self._scores_of(prediction.rationales, identity, number)

    def __len__(self) -> int:
        """How many instances it has scores of."""
        return len(self._documents)

    def _scores_of(self, rationales: Sequence[Rationale], identity: str, line: int) -> dict[str, NDArray[np.float64]]:
        """Token scores by document."""
        documents: dict[str, NDArray[np.float64]] = {}
        for place, one in enumerate(rationales):
            field, docid, values = f"rationales[{place}]", str(one.docid), getattr(one, SOFT)
            where: dict[str, Any] = {"file": self.path, "line": line, "instance": identity}
            if values is None:
                raise DataError("expected token scores, found none", **where, field=f"{field}.{SOFT}")
            if docid in documents:
                words = f"expected each document once, found {shown(docid)} again"
                raise DataError(words, **where, field=f"{field}.docid")
            documents[docid] = np.asarray(values, dtype=np.float64)
        return documents

    def check(self, instances: Iterable[Instance], partly: bool) -> None:
        """Say what is missing now and not after hours.

        Args:
            partly: whether the file may hold other instances besides (``--limit``).

        Raises:
            DataError: at most ten instances whose scores are missing or do not fit, and their number; scores of
                instances that are not explained.
        """
        errors, wrong, ids = list[DataError](), 0, set[str]()
        for one in instances:
            ids.add(one.id)
            try:
                self.put_on(one)
            except DataError as error:
                wrong += 1
                errors = [*errors, error][:MOST_SHOWN]  # their number is told, only so many are shown
        if ids.isdisjoint(self._documents):
            raise DataError(
                "expected the split's instances, none of its ids occur: another corpus or split?", file=self.path
            )
        others = [] if partly else [identity for identity in self._documents if identity not in ids]
        for identity in others[:MOST_SHOWN]:
            words, (line, _) = "expected an instance of the split, found another", self._documents[identity]
            errors.append(DataError(words, file=self.path, line=line, instance=identity))
        if errors:
            total = wrong + len(others)
            raise errors[0] if total == 1 else DataErrors(errors, total)

    def put_on(self, instance: Instance) -> Instance:
        """The instance with its scores.

        Raises:
            DataError: the file has none for it, or for one of its documents; as many scores as tokens are expected.
        """
        if instance.id not in self._documents:
            raise DataError("expected token scores for each instance, found none", file=self.path, instance=instance.id)
        line, documents = self._documents[instance.id]
        unknown = next((name for name in documents if name not in instance.names), None)
        if unknown is not None:
            raise DataError(
                f"expected documents among {', '.join(map(shown, instance.names))}, found {shown(unknown)}",
                file=self.path, line=line, instance=instance.id, field="rationales",
            )  # fmt: skip
        for name, tokens in zip(instance.names, instance.documents, strict=True):
            if name not in documents and tokens:
                raise DataError(
                    f"expected token scores for document {shown(name)}, found none",
                    file=self.path, line=line, instance=instance.id, field="rationales",
                )  # fmt: skip
        try:
            return with_scores(instance, [documents.get(name, ()) for name in instance.names])
        except DataError as error:
            raise error.at(file=self.path, line=line) from None


def with_scores(instance: Instance, scores: Sequence[Sequence[float] | NDArray[np.float64]]) -> Instance:
    """The instance with one score a token of each document.

    Raises:
        DataError: another number of scores than tokens, or scores that are not finite.
    """
    rows = []
    for name, tokens, values in zip(instance.names, instance.documents, scores, strict=True):
        try:
            row = tuple(map(float, values))
        except (TypeError, ValueError):
            raise DataError(f"expected numbers, found {shown(values)}", instance=instance.id, field="scores") from None
        if len(row) != len(tokens) or not np.isfinite(row).all():
            raise DataError(
                f"expected {len(tokens)} finite scores for the tokens of {shown(name)}, found {len(row)}"
                + ("" if len(row) != len(tokens) else ", not all of them finite"),
                instance=instance.id, field=SOFT,
            )  # fmt: skip
        rows.append(row)
    return replace(instance, scores=tuple(rows))
