"""Token scores from elsewhere: another attribution method's results, erased and scored as our own would be."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from eraser_hub.metrics.fields import SOFT_FIELDS
from eraser_hub.records.digests import file_digest
from eraser_hub.records.errors import DataError, shown
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
        self._documents: dict[str, dict[str, NDArray[np.float64]]] = {}
        for number, prediction in instances(path):
            identity = str(prediction.annotation_id)
            if identity in self._documents:
                raise DataError("expected each id once, found it again", file=path, line=number, instance=identity)
            if prediction.rationales is None:
                raise DataError("expected rationales, found none", file=path, line=number, instance=identity)
            self._documents[identity] = self._scores_of(prediction.rationales, identity)

    def _scores_of(self, rationales: Sequence[Rationale], identity: str) -> dict[str, NDArray[np.float64]]:
        """Token scores by document."""
        documents: dict[str, NDArray[np.float64]] = {}
        for place, one in enumerate(rationales):
            field, docid, values = f"rationales[{place}]", str(one.docid), getattr(one, SOFT)
            if values is None:
                raise DataError(f"expected {SOFT}, found none", file=self.path, instance=identity, field=field)
            if docid in documents:
                raise DataError(
                    f"expected each document once, found {shown(docid)} again",
                    file=self.path, instance=identity, field=field,
                )  # fmt: skip
            documents[docid] = np.asarray(values, dtype=np.float64)
        return documents

    def put_on(self, instance: Instance) -> Instance:
        """The instance with its scores.

        Raises:
            DataError: the file has none for it, or for one of its documents; as many scores as tokens are expected.
        """
        documents = self._documents.get(instance.id)
        if documents is None:
            raise DataError("expected token scores for each instance, found none", file=self.path, instance=instance.id)
        for name, tokens in zip(instance.names, instance.documents, strict=True):
            if name not in documents and tokens:
                raise DataError(
                    f"expected token scores for document {shown(name)}, found none",
                    file=self.path, instance=instance.id, field="rationales",
                )  # fmt: skip
        return with_scores(instance, [documents.get(name, ()) for name in instance.names], self.path)


def with_scores(
    instance: Instance, scores: Sequence[Sequence[float] | NDArray[np.float64]], file: Path | None = None
) -> Instance:
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
                file=file, instance=instance.id, field=SOFT,
            )  # fmt: skip
        rows.append(row)
    return replace(instance, scores=tuple(rows))
