"""Gold of a split: a corpus folder as released, a built dataset or a file of rows, as `metrics.rows.Gold`."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from eraser_hub.newmetrics.errors import DataError, cut
from eraser_hub.newmetrics.plain import TextSizes, measure_texts
from eraser_hub.newmetrics.rows import Documents, Gold
from eraser_hub.records.lines import NoFile, file_name, read_utf8_file

if TYPE_CHECKING:
    from eraser_hub.scoring.scored_split import ScoredSplit

TEXT_BYTES = 1 << 17  # of documents that are measured together
COLUMNS = ("annotation_id", "classification", "documents", "evidences")
NO_SIZES = TextSizes(*(np.zeros(0, np.int64),) * 3)


class CorpusDocuments(Documents):
    """Token and sentence counts of a corpus folder's documents, read when they are first asked about.

    Args:
        folder: the corpus folder, with ``docs/`` (one file a document) or ``docs.jsonl``.

    Attributes:
        path: the one of the two that is read.

    Raises:
        DataError: the folder has no documents; one of them is not as it should be.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__((), np.zeros(0, np.int64), np.zeros(0, np.int64), NO_SIZES)
        self.lines = folder / "docs.jsonl"
        self.path = self.lines if self.lines.is_file() else folder / "docs"
        if not self.path.exists():
            raise DataError("expected the documents in docs/ or docs.jsonl, found neither", file=folder)
        # by number, with room for more; a document that does not exist has -1 tokens
        self.tokens = self.sentences = np.zeros(0, np.int32)
        self.sentence_sizes, self.looked_for = array("i"), 0
        self.places = np.zeros(0, np.int64), np.zeros(1, np.int64)

    @property  # type: ignore[override]
    def sentence_places(self) -> tuple[np.ndarray, np.ndarray]:
        """See `Documents`; computed anew when documents were added."""
        if len(self.places[1]) != len(self.sentence_sizes) + 1:
            counts = np.maximum(self.sentences, 0)
            sizes = np.frombuffer(self.sentence_sizes, np.intc)
            self.places = np.cumsum(counts) - counts, np.append(0, np.cumsum(sizes, dtype=np.int64))
        return self.places

    @sentence_places.setter
    def sentence_places(self, _: object) -> None:
        pass

    def number(self, docids: Sequence[str]) -> np.ndarray:
        """Return the number of each document, int64; -1 for one that does not exist. New documents are measured."""
        numbers = self.numbers
        if self.path == self.lines:
            if not numbers:
                from eraser_hub.conversion.eraser.documents import read_document_lines

                for _, documents in read_document_lines(self.lines, numbers, TEXT_BYTES):
                    places = range(len(numbers) - len(documents), len(numbers))
                    self._measure(places, [document.document.encode() for document in documents])
            return np.fromiter(map(numbers.get, docids, repeat(-1)), np.int64, len(docids))
        places = np.fromiter([numbers.setdefault(docid, len(numbers)) for docid in docids], np.int64, len(docids))
        texts, found, size = list[bytes](), list[int](), 0
        for number, docid in enumerate(islice(numbers, self.looked_for, None), self.looked_for):
            with suppress(NoFile):
                if name := file_name(docid):  # a docid is a file's name: it never leads out of the folder
                    texts.append(read_utf8_file(f"{self.path}/{name}"))
                    found.append(number)
                    size += len(texts[-1])
            if size > TEXT_BYTES:
                self._measure(found, texts)
                texts, found, size = [], [], 0
        if self.looked_for < len(numbers):
            self._measure(found, texts)
            self.looked_for = len(numbers)
        return np.where(self.tokens[places] < 0, -1, places)

    def find(self, annotation: np.ndarray, doc: np.ndarray) -> np.ndarray:
        """Return the place of each document, which is its number."""
        return doc

    def counts(self, chosen: np.ndarray) -> np.ndarray:
        """Return the tokens and the sentences of each document: int (documents, 2)."""
        return np.stack([self.tokens[chosen], self.sentences[chosen]], axis=1)

    def _measure(self, numbers: Sequence[int], texts: Sequence[bytes]) -> None:
        """Keep the sizes of some documents, by number behind those that were measured before."""
        n = max(len(self.numbers), 1)
        if self.tokens.size < n:
            more = np.full(n + n // 8 - self.tokens.size, -1, np.int32)
            self.tokens, self.sentences = np.append(self.tokens, more), np.append(self.sentences, more)
        sizes = measure_texts(b"".join(texts), list(map(len, texts)))
        self.tokens[numbers], self.sentences[numbers] = sizes.tokens, sizes.sentences
        self.sentence_sizes.frombytes(sizes.sentence_tokens.astype(np.intc).tobytes())


def read_gold(source: ScoredSplit) -> Gold:
    """Return the annotations of a split.

    Raises:
        DataError: a file cannot be read, or is faulty; with file and line.
    """
    return read_corpus(source) if source.dataset is None else read_built(source)


def read_built(source: ScoredSplit) -> Gold:
    """Return the annotations of a split of a built dataset (of human_rationales: its texts)."""
    import pyarrow as pa

    from eraser_hub.newmetrics import rows
    from eraser_hub.records.built import read_rows

    files = source.built.files(source.built_config, source.split)
    try:
        if source.kind == "tokens":
            gold = rows.read_gold(source.rows, source.labels.names)
        else:
            gold = rows.read_gold(pa.concat_tables(read_rows(files, COLUMNS)), source.labels.names)
    except DataError as error:
        error.file = error.file or files[0]
        raise
    gold.file = files[0]
    return gold


def read_corpus(source: ScoredSplit) -> Gold:
    """Return the annotations of a corpus folder as released."""
    from eraser_hub.conversion.eraser.checked import read_checked

    path, labels = source.annotation_file, source.labels
    documents, index = CorpusDocuments(source.data_dir), dict[str, int]()
    codes = {name: code for code, name in enumerate(labels.names or ())}
    parts: list[tuple[np.ndarray, ...]] = []
    n = groups = 0
    for part in read_checked(path, labels.names, documents, index):
        records, members = part.run.records, np.diff(part.members)
        per_record = np.bincount(part.row, minlength=len(records))
        label = [codes.setdefault(record.classification, len(codes)) for record in records]
        group = np.repeat(np.arange(groups, groups + members.size), members)
        listed = np.repeat(np.arange(n, n + len(records)), np.diff(part.offsets)), part.documents
        columns = (label, per_record, group, part.documents[part.slots], *part.bounds.T, *listed)
        parts.append(tuple(np.asarray(column, dtype=np.intc) for column in columns))
        n, groups = n + len(records), groups + members.size
    if not index:
        raise DataError("expected at least one annotation, found none", file=path)
    label, sizes, group, doc, *bounds, owner, listed = (np.concatenate(column) for column in zip(*parts, strict=True))
    offsets = np.append(0, np.cumsum(sizes, dtype=np.int64))
    gold = Gold(
        list(index), list(codes), label, [*documents.numbers], offsets, group, doc, *bounds, documents, (owner, listed),
        named=labels.names is not None, lines=range(1, n + 1),
    )  # fmt: skip
    gold.file = path
    return gold


def read_column(source: ScoredSplit, name: str) -> list[Any]:
    """Return a column of the annotations, to break scores down by or to cluster by, in their order.

    Raises:
        DataError: an annotation lacks it, or its value is a list or an object.
    """
    if source.dataset is not None:
        rows = enumerate(source.labelled, 1)
        path = source.built.files(source.built_config, source.split)[0]
        name = "label" if name == "classification" and source.kind != "eraser" else name
    else:
        rows, path = _list_records(source), source.annotation_file
    values = []
    for line, row in rows:
        if name not in row:
            raise DataError(f"expected the field {name!r} in every annotation, found none", file=path, line=line)
        if isinstance(row[name], (list, dict)):
            raise DataError(f"expected a single value, found {cut(row[name])}", file=path, line=line, field=name)
        values.append(row[name])
    return values


def _list_records(source: ScoredSplit) -> Iterator[tuple[int, Mapping[str, Any]]]:
    import json

    with open(source.annotation_file, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            row = json.loads(line)
            yield number, json.loads(row) if isinstance(row, str) else row  # test_exhaustive is encoded twice
