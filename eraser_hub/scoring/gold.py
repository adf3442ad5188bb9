"""Gold of a split: a corpus folder as released, a built dataset or a file of rows, as `metrics.match.Gold`."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice, repeat
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

import numpy as np

from eraser_hub.conversion.readers import NoFile, file_name, read_utf8_file
from eraser_hub.metrics.annotators import majority
from eraser_hub.metrics.errors import DataError, cut
from eraser_hub.metrics.match import HARD_FIELD, Documents, Gold, Matcher, read_predictions
from eraser_hub.metrics.ranking import AgreementSettings, agreement_columns, agreement_scores
from eraser_hub.metrics.statistics import Statistics
from eraser_hub.metrics.tokens import TextSizes, measure_texts, spans_from_mask
from eraser_hub.records.errors import describe_choice

from .result import HumanPerformance

if TYPE_CHECKING:
    from eraser_hub.metrics.annotators import AnnotatedText
    from eraser_hub.scoring.scored_split import ScoredSplit

TEXT_BYTES = 1 << 17  # of documents that are measured together
COLUMNS = ("annotation_id", "classification", "documents", "evidences")
MAX_ANNOTATORS = 20  # above it each is scored on a few texts, and the time is long
MIN_TEXTS = 2  # an annotator of fewer is left out
ENDS = ("start_token", "end_token")
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


def read_gold(source: ScoredSplit) -> Gold:
    """Return the annotations of a split.

    Raises:
        DataError: a file cannot be read, or is faulty; with file and line.
    """
    return read_corpus(source) if source.dataset is None else read_built(source)


def read_built(source: ScoredSplit) -> Gold:
    """Return the annotations of a split of a built dataset (of human_rationales: its texts)."""
    import pyarrow as pa

    from eraser_hub.conversion.built import read_rows
    from eraser_hub.metrics.match import read_gold as read_rows_of_gold

    files = source.built.files(source.built_config, source.split)
    try:
        if source.kind == "tokens":
            gold = read_rows_of_gold(source.rows, source.labels.names)
        else:
            gold = read_rows_of_gold(pa.concat_tables(read_rows(files, COLUMNS)), source.labels.names)
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
    if source.dataset is not None:
        rows: Iterable[tuple[int, Mapping[str, Any]]] = enumerate(source.labelled, 1)
        path = source.built.files(source.built_config, source.split)[0]
        own = {"perturbation": {"classification": "label"}, "tokens": {"label": "classification"}}
        name = own.get(source.kind, {}).get(name, name)
    else:
        rows, path = _list_records(source), source.annotation_file
    values = []
    for line, row in rows:
        if name not in row:
            raise DataError(describe_choice(name, row), file=path, line=line)
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


def list_rows(source: ScoredSplit) -> list[dict[str, Any]]:
    """Return the annotations as rows of ``eraser``: annotation_id, documents, evidences, classification."""
    if source.dataset is not None:
        return list(source.labelled)
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


def read_flat_rows(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a jsonl, json, csv, tsv or Parquet file; lists in the cells of a CSV are parsed."""
    from eraser_hub.conversion.importing.sources import open_file
    from eraser_hub.conversion.importing.texts import parse_literal

    rows = []
    for row in open_file(path).rows():
        cells = dict(row.cells)
        if path.name.endswith((".csv", ".tsv")):
            cells = {name: parse_literal(cell) if isinstance(cell, str) else cell for name, cell in cells.items()}
        rows.append({"id": row.key, **cells} if row.key is not None else cells)
    if not rows:
        raise DataError("expected at least one row, found none", file=path)
    return rows


def find_split(source: ScoredSplit, ids: Sequence[str], known: Sequence[str]) -> str:
    """Return a hint which other split, or backup of the split, has ids of a file; "" if none has.

    Args:
        source: the split that the file answers.
        ids: of its instances.
        known: of the annotations.
    """
    found: dict[str, int] = {}
    wanted = set(ids) - set(known)
    if source.dataset is not None:
        from eraser_hub.conversion.built import read_rows

        for split, files in source.built.splits(source.built_config).items():
            column = "id" if source.kind == "tokens" else "annotation_id"
            names = {str(name) for table in read_rows(files, [column]) for name in table.column(column).to_pylist()}
            found[split] = len(wanted & names)
    else:
        import msgspec

        from eraser_hub.records.readers import JSON_ERRORS

        for path in sorted(source.data_dir.glob("*.jsonl*")):
            with suppress(OSError, AttributeError, TypeError, *JSON_ERRORS):
                rows = [row for row in map(msgspec.json.decode, path.read_bytes().splitlines()) if "evidences" in row]
                found[path.name.removesuffix(".jsonl")] = len(wanted & {str(row.get("annotation_id")) for row in rows})
    best = max(found, key=found.__getitem__, default="")
    return f" ({found[best]:,} of the file's ids are those of {best})" if best and found[best] else ""


# -- annotators -------------------------------------------------------------------------------------------------------


def read_people(source: ScoredSplit) -> tuple[dict[str, AnnotatedText], Path | None]:
    """Return annotation id -> the marks and labels of its annotators, and the file; empty and None without a file."""
    if source.dataset is None:
        paths = sorted(source.data_dir.glob("annotators/*.parquet"))
    else:
        from eraser_hub.conversion.eraser.configs import get_annotators_path

        paths = source.built.paths(get_annotators_path(source.built_config))
    if len(paths) != 1:
        return {}, None
    from eraser_hub.conversion.eraser.annotators import read_annotators

    texts = read_annotators(paths[0], source.split)
    return {name: text for name, text in texts.items() if len(text.names)}, paths[0]


def choose_gold(gold: Gold, source: ScoredSplit, form: str, without: str | None = None) -> tuple[Gold, list[str]]:
    """Return the gold in a form that annotators' marks make, and notes.

    Args:
        gold: the annotations.
        source: their split, which has the annotators.
        form: "evidence" (as it is), "majority" or "union" of the annotators' marks.
        without: leave out this annotator.

    Raises:
        DataError: there are no annotators, or their marks do not fit the documents.
    """
    if form == "evidence":
        return gold, []
    texts, file = read_people(source)
    if not texts:
        message = f"{form} needs annotators of this split, found no annotators/NAME.parquet with marks of it"
        raise DataError(message, file=source.dataset or source.data_dir, argument="gold")
    spans: list[tuple[int, int, int, int]] = []
    changed = np.zeros(len(gold.ids), dtype=bool)
    for row, name in enumerate(gold.ids):
        text = texts.get(name)
        chosen = [at for at, person in enumerate(text.names) if person != without] if text else []
        if text and chosen:
            changed[row], marks = True, text.marks[chosen]
            tokens = majority(marks) if form == "majority" else np.asarray(marks.any(axis=0))
            for doc, part in split_marks(gold, row, text, tokens, file):
                spans += [(row, doc, start, end) for start, end in spans_from_mask(part.tolist())]
    owners, docs, start, end = np.array(spans, np.int64).reshape(-1, 4).T
    sentences = gold.documents.sentence_spans(owners, docs, start, end) if owners.size else (start, end)
    kept = ~changed[gold.owner]
    owner = np.concatenate([gold.owner[kept], owners])
    order = np.argsort(owner, kind="stable")
    added = {"group": gold.group.max(initial=-1) + 1 + owners, "doc": docs, "start": start, "end": end}
    added |= {"first": sentences[0], "last": sentences[1]}
    columns: Any = {name: np.concatenate([getattr(gold, name)[kept], each])[order] for name, each in added.items()}
    offsets = np.append(0, np.cumsum(np.bincount(owner, minlength=len(gold.ids)))).astype(np.int64)
    rest = int((~changed).sum())
    words = f"gold {form}: {rest:,} of {changed.size:,} annotations have no annotators' marks; their evidence counts"
    return replace(gold, offsets=offsets, **columns), [words] if rest else []


def split_marks(
    gold: Gold, row: int, text: AnnotatedText, tokens: np.ndarray, file: Path | None
) -> Iterator[tuple[int, np.ndarray]]:
    """Yield the number of each document of an annotation, and the part of ``tokens`` that belongs to it.

    Raises:
        DataError: the marks do not fit the documents.
    """
    docids = text.row.get("docids")
    documents = gold.listed[1][gold.listed[0] == row] if docids is None else gold.documents.number(docids)
    sizes = gold.documents.lengths(np.full(documents.size, row), documents)[0]
    if (
        sizes.sum() != tokens.size
        or (documents < 0).any()
        or (docids is not None and [*text.lengths] != sizes.tolist())
    ):
        message = f"expected marks of the documents' {sizes.sum():,} tokens, found {tokens.size:,}"
        raise DataError(message, file=file, instance=gold.ids[row], field="num_tokens")
    return zip(documents.tolist(), np.split(tokens, np.cumsum(sizes)[:-1]), strict=True)


def compare_labels(texts: Iterable[AnnotatedText], person: str) -> list[bool]:
    """Return whether an annotator's labels are the most frequent ones of the others; ties are left out."""
    hits = []
    for text in texts:
        labels = Counter(label for name, label in text.labels.items() if name != person).most_common(2)
        if person in text.labels and labels and (len(labels) == 1 or labels[0][1] > labels[1][1]):
            hits.append(text.labels[person] == labels[0][0])
    return hits


def score_people(source: ScoredSplit, gold: Gold, settings: AgreementSettings) -> HumanPerformance | None:
    """Score each annotator against the majority of the others, and average over annotators.

    The hard rationale of an annotator are the tokens that this annotator marks; the gold is what more than half of the
    others mark. ``accuracy`` compares labels with the most frequent label of the others; ties are left out. Texts where
    the others have no majority are treated as a system's are (``unmarked``): by default they are left out, while
    `annotator_agreement`, which stands beside no system, counts them 0 in ``leave_one_out_f1``.

    Args:
        source: the split.
        gold: its annotations.
        settings: of agreement.

    Returns:
        The mean of each score, and its spread over three annotators or more; None if no text has the marks of two.
    """
    if source.kind != "eraser":
        return None
    texts, file = read_people(source)
    texts = {name: text for name, text in texts.items() if len(text.names) > 1}
    counts = Counter(name for text in texts.values() for name in text.names)
    people = [name for name, count in counts.items() if count >= MIN_TEXTS]
    if not people:
        return None
    if len(people) > MAX_ANNOTATORS:
        return HumanPerformance(annotators=len(people), note=f"more than {MAX_ANNOTATORS} annotators are not scored")
    values: dict[str, list[float]] = {}
    rows = {name: row for row, name in enumerate(gold.ids)}
    for person in people:
        others, _ = choose_gold(gold, source, "majority", without=person)
        instances: list[dict[str, Any]] = []
        for name, text in texts.items():
            if person in text.names and name in rows:
                marks = text.marks[list(text.names).index(person)]
                rationales = [
                    {
                        "docid": gold.docids[doc],
                        HARD_FIELD: [dict(zip(ENDS, span, strict=True)) for span in spans_from_mask(part.tolist())],
                    }
                    for doc, part in split_marks(gold, rows[name], text, marks, file)
                ]
                instances.append({"annotation_id": name, "rationales": rationales})
        matcher = Matcher(others, only_predicted=True)
        columns = agreement_columns(matcher.add(read_predictions(instances)), settings)
        table = agreement_scores(columns, settings, matcher.used)
        statistics = Statistics([str(row["annotation_id"]) for row in instances], columns, table)
        if settings.unmarked == "skip":
            statistics = statistics.take(np.flatnonzero(columns["gold.marked"]))
        for key, value in statistics.values().items():
            if statistics.ids and not np.isnan(value):
                values.setdefault(key, []).append(float(value))
        hits = compare_labels(texts.values(), person)
        if hits:
            values.setdefault("accuracy", []).append(fmean(hits))
    # of two people each is scored against the other: their scores are alike by construction
    spread = {key: stdev(each) for key, each in values.items() if len(each) > 2}
    return HumanPerformance({key: fmean(each) for key, each in values.items()}, spread, len(people))
