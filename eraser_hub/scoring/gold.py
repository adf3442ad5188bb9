"""Gold of a split: a corpus folder as released, a built dataset or a file of rows, as `metrics.gold.Gold`."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import islice, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from eraser_hub.conversion.readers import NoFile, file_name, read_utf8_file
from eraser_hub.metrics.errors import DataError, cut
from eraser_hub.metrics.gold import Documents, Gold
from eraser_hub.metrics.gold import read_gold as read_gold_rows
from eraser_hub.metrics.plain import FORMS, to_instances
from eraser_hub.metrics.rows import row_id
from eraser_hub.metrics.tokens import TextSizes, measure_texts
from eraser_hub.records.errors import describe_choice
from eraser_hub.records.predictions import read_plain_rows
from eraser_hub.records.readers import JSON_ERRORS

if TYPE_CHECKING:
    from .scored_split import ScoredSplit

Rows = Sequence[Mapping[str, Any]]
TEXT_BYTES = 1 << 17  # of documents that are measured together
COLUMNS = ("annotation_id", "classification", "documents", "evidences")
RATIONALES = (*FORMS, "rationale_mask", "evidences")  # what a row of gold has one of
NO_LABELS = "labels: none in the gold, so labels and probabilities of predictions are not scored"
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

    @property
    def sentence_places(self) -> tuple[np.ndarray, np.ndarray]:
        """See `Documents`; computed anew when documents were added."""
        if len(self.places[1]) != len(self.sentence_sizes) + 1:
            counts = np.maximum(self.sentences, 0)
            sizes = np.frombuffer(self.sentence_sizes, np.intc)
            self.places = np.cumsum(counts) - counts, np.append(0, np.cumsum(sizes, dtype=np.int64))
        return self.places

    def number(self, docids: Sequence[str]) -> np.ndarray:
        """Return the number of each document, int64; -1 for one that does not exist. New documents are measured."""
        numbers = self.numbers
        if self.path == self.lines:
            if not numbers:
                from eraser_hub.conversion.eraser.format import read_document_lines

                for _, documents in read_document_lines(self.lines, numbers, TEXT_BYTES):
                    added = range(len(numbers) - len(documents), len(numbers))
                    self._measure(added, [document.document.encode() for document in documents])
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


def read_gold(source: ScoredSplit) -> tuple[Gold, list[str]]:
    """Return the annotations of a split, and notes.

    Raises:
        DataError: a file cannot be read, or is faulty; with file and line.
    """
    if source.kind == "file":
        return read_file(source)
    return (read_corpus(source) if source.dataset is None else read_built(source)), []


@contextmanager
def locate(path: Path, rows: Rows) -> Iterator[None]:
    """Add to an error the file, and the line of the row that it names."""
    try:
        yield
    except DataError as error:
        if error.file is None and error.line is None:
            names = {row_id(row) or str(place): place for place, row in enumerate(rows)}
            error.line = names[str(error.instance)] + 1 if str(error.instance) in names else None
        error.file = error.file or path
        raise


def read_file(source: ScoredSplit) -> tuple[Gold, list[str]]:
    """Return the annotations of a file of rows: ``id``, ``tokens`` or ``text``, ``rationale``; also ``label``."""
    path, rows = source.data_dir, source.rows
    if not any(field in row for row in rows for field in RATIONALES):
        message = f"expected rows with id, tokens or text, and rationale, found {cut(list(rows[0]))}"
        raise DataError(f"{message}: `eraser-hub import` makes a corpus of a table", file=path, line=1)
    with locate(path, rows):
        _, references, notes = to_instances([], rows)
        for row in references or ():
            if row.get("classification") is not None:
                row["classification"] = str(row["classification"])  # a number is a name here
        labels = sorted({row["classification"] for row in references or () if row.get("classification") is not None})
        gold = replace(read_gold_rows(references, labels, ("documents", "evidences")), file=path)
    return gold, notes if labels else [*notes, NO_LABELS]


def read_built(source: ScoredSplit) -> Gold:
    """Return the annotations of a split of a built dataset (of human_rationales: its texts)."""
    import pyarrow as pa

    from eraser_hub.conversion.built import read_rows

    files = source.built.files(source.built_config, source.split)
    try:
        rows = source.rows if source.kind == "tokens" else pa.concat_tables(read_rows(files, COLUMNS))
        return replace(read_gold_rows(rows, source.labels.names), file=files[0])
    except DataError as error:
        error.file = error.file or files[0]
        raise


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
        labelled = [codes.setdefault(record.classification, len(codes)) for record in records]
        numbered = np.repeat(np.arange(groups, groups + members.size), members)
        owner = np.repeat(np.arange(n, n + len(records)), np.diff(part.offsets))
        columns = (labelled, per_record, numbered, part.documents[part.slots], *part.bounds.T, owner, part.documents)
        parts.append(tuple(np.asarray(column, dtype=np.intc) for column in columns))
        n, groups = n + len(records), groups + members.size
    if not index:
        raise DataError("expected at least one annotation, found none", file=path)
    names = ("label", "sizes", "group", "doc", "start", "end", "first", "last", "owner", "listed")
    joined = dict(zip(names, map(np.concatenate, zip(*parts, strict=True)), strict=True))
    gold = Gold(
        ids=list(index),
        labels=list(codes),
        docids=[*documents.numbers],
        offsets=np.append(0, np.cumsum(joined.pop("sizes"), dtype=np.int64)),
        documents=documents,
        listed=(joined.pop("owner"), joined.pop("listed")),
        named=labels.names is not None,
        lines=range(1, n + 1),
        file=path,
        **joined,
    )
    gold.index = index
    gold.check()
    return gold


def read_column(source: ScoredSplit, name: str) -> list[Any]:
    """Return a column of the annotations, to break scores down by or to cluster by, in their order.

    Raises:
        DataError: an annotation lacks it, or its value is a list or an object.
    """
    label = "classification" if source.kind == "eraser" else "label"
    rows: Iterable[tuple[int, Mapping[str, Any]]]
    if source.dataset is not None:
        known, path = (
            source.built.columns(source.built_config),
            source.built.files(source.built_config, source.split)[0],
        )
        field = label if name in ("classification", "label") and name not in known else name
        if known and field not in known:
            raise DataError(describe_choice(name, known), file=path)
        rows = enumerate(source.built.rows(source.built_config, source.split, [field]), 1)
    elif source.kind == "file":
        rows, path = enumerate(source.rows, 1), source.data_dir
    else:
        rows, path = source.read_records(), source.annotation_file
    values = []
    for line, row in rows:
        field = label if name in ("classification", "label") and name not in row else name
        if field not in row:
            raise DataError(describe_choice(name, row), file=path, line=line)
        if isinstance(row[field], (list, dict)):
            raise DataError(f"expected a single value, found {cut(row[field])}", file=path, line=line, field=name)
        values.append(source.name_label(row[field]) if field == label else row[field])
    return values


def list_rows(source: ScoredSplit) -> list[dict[str, Any]]:
    """Return the rows of a file, or annotations as those of ``eraser``, with the names of labels."""
    if source.kind == "file":
        return source.rows
    if source.dataset is not None:
        return source.labelled
    gold, rows = read_corpus(source), []
    path = gold.documents.path
    if path == gold.documents.lines:
        from eraser_hub.conversion.eraser.format import read_document_lines

        runs = read_document_lines(path, {}, TEXT_BYTES)
        texts = {document.docid: document.document for _, documents in runs for document in documents}
    else:
        names = [gold.docids[int(doc)] for doc in np.unique(gold.listed[1])]
        texts = {name: read_utf8_file(f"{path}/{file_name(name)}").decode() for name in names}
    listed = np.split(gold.listed[1], np.searchsorted(gold.listed[0], np.arange(1, len(gold.ids))))
    for row, (name, own) in enumerate(zip(gold.ids, listed, strict=True)):
        spans = slice(gold.offsets[row], gold.offsets[row + 1])
        columns = [values[spans].tolist() for values in (gold.doc, gold.start, gold.end)]
        evidences = [
            [{"docid": gold.docids[doc], "start_token": start, "end_token": end}]
            for doc, start, end in zip(*columns, strict=True)
        ]
        documents = [{"docid": gold.docids[doc], "text": texts[gold.docids[doc]]} for doc in map(int, own)]
        label = gold.labels[gold.label[row]]
        rows.append({"annotation_id": name, "documents": documents, "evidences": evidences, "classification": label})
    return rows


def find_split(source: ScoredSplit, predictions: Path, known: Iterable[str]) -> str:
    """Return a hint which other split has ids of predictions; "" if none has.

    Args:
        source: the split that they answer.
        predictions: the file.
        known: the ids of the annotations.
    """
    if source.kind == "file":
        return ""
    found: dict[str, set[str]] = {}
    if source.dataset is not None:
        from eraser_hub.conversion.built import read_rows

        column = "id" if source.kind == "tokens" else "annotation_id"
        for split, files in source.built.splits(source.built_config).items():
            found[split] = {str(name) for table in read_rows(files, [column]) for name in table[column].to_pylist()}
    else:
        for path in sorted(source.data_dir.glob("*.jsonl*")):  # with test.jsonl.bak of movies
            with suppress(OSError, AttributeError, KeyError, TypeError, *JSON_ERRORS):
                records = replace(source, annotations=path).read_records()
                names = {str(row["annotation_id"]) for _, row in records if "evidences" in row}  # no predictions
                found[path.name.removesuffix(".jsonl")] = names
    wanted = {row_id(row) for _, row in read_plain_rows(predictions)} - set(known)
    shared = {split: len(wanted & names) for split, names in found.items()}
    best = max(shared, key=shared.__getitem__, default="")
    return f" ({shared[best]:,} of the file's ids are those of {best})" if best and shared[best] else ""
