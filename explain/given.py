"""Token scores from elsewhere: another attribution method's results, erased and scored as our own would be."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from eraser_hub.records.errors import DataError, shown

from .instances import Instance
from .outputs import FORMATS


class _Rationale(msgspec.Struct, gc=False):
    docid: str
    soft_rationale_predictions: list[float] | None = None


class _Row(msgspec.Struct, gc=False):
    annotation_id: str | int
    rationales: list[_Rationale]


class GivenScores:
    """Soft rationales of a predictions file, held by id.

    Args:
        path: an ERASER results file, ``.jsonl`` or ``.parquet``; only ``annotation_id`` and the ``docid`` and
            ``soft_rationale_predictions`` of its ``rationales`` are read.

    Attributes:
        digest: of the file's bytes, which stands in the signature.

    Raises:
        DataError: another ending, a line that is no such record, an id that occurs twice, no scores, scores that are not
            finite.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        if path.suffix not in FORMATS:
            raise DataError(f"--scores: expected a file ending in {' or '.join(FORMATS)}, found {shown(path.name)}")
        if not path.is_file():
            raise DataError("--scores: no such file", file=path)
        self.digest = _digest(path)
        self._found: dict[str, dict[str, NDArray[np.float64]]] = {}
        for number, row in _rows(path):
            identity = str(row.annotation_id)
            if identity in self._found:
                raise DataError("expected each id once, found it again", file=path, line=number, instance=identity)
            documents = self._found[identity] = {}
            for place, one in enumerate(row.rationales):
                field = f"rationales[{place}]"
                if one.soft_rationale_predictions is None:
                    raise DataError(
                        "expected soft_rationale_predictions, found none", file=path, instance=identity, field=field
                    )
                if one.docid in documents:
                    raise DataError(
                        f"expected each document once, found {shown(one.docid)} again",
                        file=path, instance=identity, field=field,
                    )  # fmt: skip
                scores = np.asarray(one.soft_rationale_predictions, dtype=np.float64)
                if not np.isfinite(scores).all():
                    raise DataError(
                        f"expected finite scores, found {shown(float(scores[~np.isfinite(scores)][0]))}",
                        file=path, instance=identity, field=f"{field}.soft_rationale_predictions",
                    )  # fmt: skip
                documents[one.docid] = scores

    def put_on(self, instance: Instance) -> Instance:
        """The instance with its scores.

        Raises:
            DataError: the file has none for it, or for one of its documents; as many scores as tokens are expected.
        """
        documents = self._found.get(instance.id)
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
    kept = []
    for name, tokens, values in zip(instance.names, instance.documents, scores, strict=True):
        try:
            row = tuple(map(float, values))
        except (TypeError, ValueError):
            raise DataError(f"expected numbers, found {shown(values)}", instance=instance.id, field="scores") from None
        if len(row) != len(tokens) or not np.isfinite(row).all():
            raise DataError(
                f"expected {len(tokens)} finite scores for the tokens of {shown(name)}, found {len(row)}"
                + ("" if len(row) != len(tokens) else ", not all of them finite"),
                file=file, instance=instance.id, field="soft_rationale_predictions",
            )  # fmt: skip
        kept.append(row)
    return replace(instance, scores=tuple(kept))


def _rows(path: Path) -> Iterator[tuple[int, _Row]]:
    if path.suffix == ".parquet":
        yield from _parquet_rows(path)
        return
    decoder = msgspec.json.Decoder(_Row)
    with open(path, "rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                yield number, decoder.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise DataError(f"not a prediction with soft rationales: {error}", file=path, line=number) from error


def _parquet_rows(path: Path) -> Iterator[tuple[int, _Row]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    number = 0
    try:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(256, columns=["annotation_id", "rationales"]):
                for row in batch.to_pylist():
                    number += 1
                    yield number, msgspec.convert(row, _Row)
    except (pa.ArrowException, msgspec.ValidationError, KeyError) as error:
        words = " ".join(str(error).split())
        raise DataError(f"not predictions with soft rationales: {words}", file=path, line=number or None) from error


def _digest(path: Path) -> str:
    digest = hashlib.blake2b(digest_size=6)
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
