"""Rows of any source -> a corpus folder in ERASER's format.

    OUT/NAME/corpus.yaml                 name and labels
    OUT/NAME/SPLIT.jsonl                 an annotation a row
    OUT/NAME/.import.json                path -> SHA-256 of these files, by which a later import recognises them
    OUT/NAME/docs.jsonl                  the texts; rows of a split with the same text share a document
    OUT/NAME/annotators/NAME.parquet     a row per text and person: the marked tokens and the label

The spans of one annotator are one group of evidences; several annotators are alternatives. The folder appears at once.
"""

from __future__ import annotations

import json
import os
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import count
from os import PathLike
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import yaml

from eraser_hub.conversion.eraser.configs import CORPUS_YAML, IMPORT_RECORD, get_annotators_path
from eraser_hub.conversion.eraser.corpus_yaml import parse_corpus_yaml
from eraser_hub.conversion.eraser.format import to_json_line
from eraser_hub.conversion.eraser.schema import ANNOTATORS
from eraser_hub.conversion.files import carry_over, link_or_copy, rebuild_folder
from eraser_hub.conversion.parquet import write_parquet
from eraser_hub.metrics.annotators import majority
from eraser_hub.metrics.plain import mask_from_spans, spans_from_mask
from eraser_hub.records.errors import DataError, show
from eraser_hub.records.files import GENERATOR, OutputWriter, compute_file_digest
from eraser_hub.records.places import dataset_split, release_split
from eraser_hub.records.predictions import find_inputs

from .documents import find_objects, parse_objects, split_marks
from .evidence_marks import MASK, SENTENCES, SPANS, TOKENS, Annotators, MarkReader, RowTally
from .people import AnnotatedRow, PeopleJoiner, PeopleTable, Person, TextSpans, join_people, parse_names
from .reader import SourceRow, locate
from .sources import Source
from .texts import (
    BLANKS,
    Row,
    Span,
    Text,
    TokenCutter,
    find_majority_label,
    get_cell,
    get_tokenizer,
    parse_labels,
    parse_literal,
    parse_strings,
    parse_text,
    parse_tokens,
    parse_word,
    sort_labels,
    split_at_blanks,
)

GROUPS, MAJORITY = "groups", "majority"
QUERY_SEPARATOR = " [sep] "  # between the parts of a query, as in CoS-E
BATCH_ROWS = 10_000
OTHER_BLANKS = "\t\r\f\v\u00a0\u3000"  # U+0020 and line ends cut, these do not
MISSING = {"", "na", "n/a", "#n/a", "<na>", "nan", "nil", "none", "null", "-", "?"}  # of labels, case and blanks aside

NOTES = {
    "no tokens": "rows left out, for they have no token",
    "ties": "rows left out, for their labels tie",
    "lists": "cells of text read as lists",
    "other blanks": "rows whose tokens hold a tab, carriage return or other blank (`tokenizer` whitespace cuts there)",
    "blank sentences": "texts with blank lines or sentences, which sentence numbers do not count",
    "no label": "rows left out, for none of their annotators gives a label",
    "labels differ": "rows whose annotators give several labels, of which the majority's is taken",
    "duplicates": "rows of a person for a text that this person has already annotated, of which the first is kept",
    "unmatched": "rows with other numbers of labels and marks, so that nobody knows whose marks are whose",
    "no marks": "rows without a located mark, kept without evidence",
    "silent": "annotators who marked nothing where others did, and get no evidence group",
    "no majority": "rows without a token that a majority marks, kept without evidence",
    "widened": "spans widened to whole tokens",
    "empty spans": "empty spans left out",
    "quotes of another case": "quotes that stand in the text in another case, taken from there",
    "quotes nowhere": "quotes left out, for they do not stand in the text, in any case",
    "quotes twice": "quotes left out, for they stand in the text several times",
    "unlocated": "people of whose quotes in a text none could be located, so that their marks are unknown",
    "shared": "rows with the same text as an earlier one of the split, whose document they share",
    "in several splits": "texts that stand in several splits",
    "one annotator": "rows with fewer than two annotators, which are not in annotators/",
}


@dataclass(frozen=True, slots=True)
class Columns:
    """Columns of the imported rows, by role.

    Attributes:
        texts: columns of the texts, one per document of a row.
        marks: for each text, the column of its rationale; or for one text several columns, one for each annotator, who
            has the column's name; empty for a corpus without rationales.
        label: column of the gold label, or of the labels of several annotators.
        tokenized: True if the texts are lists of tokens.
        kind: form of ``marks``: mask, spans or quotes; stars in the recipe of e-SNLI.
        offsets: unit of spans: tokens, characters or sentences; or indices, the numbers of the marked tokens.
        query: column of the query, if any.
        id: column of the annotation's id, if any.
        annotator: column of the annotators' names: one name in a table of a row per text and person, or a list in the
            order of the labels and marks. Rows of one text are those of one id, else of one text and query.
    """

    texts: tuple[str, ...]
    marks: tuple[str, ...]
    label: str
    tokenized: bool = True
    kind: str = MASK
    offsets: str = TOKENS
    query: str | None = None
    id: str | None = None
    annotator: str | None = None


@dataclass(frozen=True, slots=True)
class Imported:
    """Result of an import.

    Attributes:
        folder: the corpus folder.
        rows: split -> number of annotations.
        labels: the labels in order.
        notes: lines for the user about skipped and changed data, and about assumptions.
    """

    folder: Path
    rows: dict[str, int]
    labels: list[str]
    notes: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        counts = ", ".join(f"{split} {rows:,}" for split, rows in self.rows.items())
        return f"{self.folder}: {counts}; labels {', '.join(self.labels)}"


def write_corpus(
    sources: Mapping[str, Source],
    name: str,
    columns: Columns,
    out: str | PathLike[str],
    *,
    annotators: str = GROUPS,
    tokenizer: str = BLANKS,
    force: bool = False,
    facts: Mapping[str, str] | None = None,
) -> Imported:
    """Write ``out/NAME`` from the rows of each split.

    Args:
        sources: split -> rows.
        name: name of the config.
        columns: the columns by role.
        out: the folder of the corpus folders.
        annotators: ``groups``: one group of evidences per annotator; ``majority``: one group of the tokens that more
            than half of them marked.
        tokenizer: see `texts.get_tokenizer`; not used with ``columns.tokenized``.
        force: replace the files of an earlier import in ``out/NAME``; other files in it are kept, and a file that was
            changed after its import is kept as ``FILE.old``.
        facts: further keys of corpus.yaml: language, license, citation.

    Returns:
        the folder, its numbers of rows, labels and notes.

    Raises:
        DataError: a cell is invalid, with file and line (or dataset and row) and column; or the folder exists.
    """
    try:
        parse_corpus_yaml(_make_corpus_yaml(name, ["label"]), Path(CORPUS_YAML))  # checks the name
    except DataError as error:
        raise DataError(error.message, argument="name") from None
    _check_splits(sources)
    target = Path(out) / name
    _refuse_to_replace(target, force)
    inputs = find_inputs([source.name for source in sources.values()])
    files = [f"{release_split(split)}.jsonl" for split in sources]
    for path in (*files, "docs.jsonl", CORPUS_YAML, IMPORT_RECORD, get_annotators_path(name)):
        OutputWriter(inputs, force).check(target / path)
    importer = _Importer(columns, get_tokenizer(tokenizer), annotators)
    written = _read_record(target)
    there = [path for path in written if (target / path).is_file()]
    changed = [path for path in there if compute_file_digest(target / path) != written[path]]
    with rebuild_folder(target) as folder:
        rows = importer.write_splits(sources, folder)
        importer.write_annotators(folder / get_annotators_path(name))
        labels = importer.find_label_names(sources)
        text = _make_corpus_yaml(name, labels, facts)
        (folder / CORPUS_YAML).write_text(text + CORPUS_YAML_HINTS, encoding="utf-8")
        new = sorted(path for path in folder.rglob("*") if path.is_file())
        digests = {path.relative_to(folder).as_posix(): compute_file_digest(path) for path in new}
        (folder / IMPORT_RECORD).write_text(json.dumps({"generator": GENERATOR, "files": digests}, indent=1))
        kept = _keep_files(target, folder, {*written, IMPORT_RECORD}, changed)
    return Imported(target, rows, labels, [*importer.notes(tokenizer), *kept])


def _read_record(target: Path) -> dict[str, str]:
    """Return path -> digest of the files that an earlier import wrote; none if it kept no record."""
    path = target / IMPORT_RECORD
    try:
        return dict[str, str](json.loads(path.read_bytes())["files"])
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError):
        message = "expected the record of an import: remove it, so that every other file is kept"
        raise DataError(message, file=path) from None


def _keep_files(target: Path, folder: Path, written: Collection[str], changed: Sequence[str]) -> list[str]:
    """Copy to the new folder what no import wrote, and changed files under another name; return notes on both."""
    new = {path.relative_to(folder).as_posix() for path in folder.rglob("*")}
    carry_over(target, folder, lambda path: path.as_posix() in written)
    kept = sorted({path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()} - new)
    notes = [f"kept, since no import wrote them: {', '.join(kept)}"] if kept else []
    for name in changed:
        copies = (folder / f"{name}.old{number or ''}" for number in count())
        copy = next(path for path in copies if not os.path.lexists(path))
        link_or_copy(target / name, copy)
        notes.append(f"{name} was changed after its import: it is {copy.name} now")
    return notes


CORPUS_YAML_HINTS = """\
# what the card and explain would like to know:
# language: en
# license: cc-by-4.0
# citation: |
#   @misc{...}
# kd: 0.1          the share of tokens in a hard rationale; without it the mean share of these
# comprehensive: true    all of the text that supports the label is gold; or a list of such splits
"""


def _make_corpus_yaml(name: str, labels: Sequence[str], facts: Mapping[str, str] | None = None) -> str:
    values: dict[str, Any] = {"name": name, "labels": list(labels)} | dict(facts or {})
    return yaml.safe_dump(values, allow_unicode=True, sort_keys=False, width=10_000)


def _refuse_to_replace(target: Path, force: bool) -> None:
    if not target.is_dir() or not any(target.iterdir()):
        return
    if not force:
        message = "expected no such folder yet, or an empty one; `force` replaces it"
        raise DataError(message, file=target)
    if not (target / CORPUS_YAML).is_file() and not (target / IMPORT_RECORD).is_file():
        expected = f"expected a corpus folder to replace (with a {CORPUS_YAML}), found another: take another `out`"
        raise DataError(expected, file=target)


def _check_splits(sources: Iterable[str]) -> None:
    for split in sources:
        if not re.fullmatch(r"\w+", split) or split in ("all", "docs"):
            message = f"expected a split's name (train, validation, test), found {show(split)}"
            raise DataError(message, argument="split")
    names = list(sources)
    if len(set(map(dataset_split, names))) < len(names):
        raise DataError(f"expected each split once, found {', '.join(names)}", argument="split")


class _Importer:
    """Writer of the splits of a corpus, with the state that they share."""

    def __init__(self, columns: Columns, cut: TokenCutter, annotators: str) -> None:
        self.columns, self.cut, self.annotators = columns, cut, annotators
        self.tally = RowTally()
        self.labels: Counter[str] = Counter()
        self._marks = MarkReader(columns.kind, columns.offsets, self.tally)
        self._texts: dict[bytes, str] = {}
        self._docids: dict[str, bytes] = {}  # digests of the texts that rows name; empty for the others
        self._people = PeopleTable()
        self._located = False

    def write_splits(self, sources: Mapping[str, Source], folder: Path) -> dict[str, int]:
        """Write the splits, and return split -> number of rows.

        Raises:
            DataError: there are quotes, and none of them could be located.
        """
        rows = {split: self._write(split, source, folder) for split, source in sources.items()}
        kinds = ("quotes nowhere", "quotes twice")
        if not self._located and (lost := sum(self.tally.counts[kind] for kind in kinds)):
            reasons = self.tally.describe({kind: NOTES[kind] for kind in kinds})
            message = "; ".join([f"expected quotes of the texts, found none among {lost:,}", *reasons])
            files = ", ".join(source.name for source in sources.values())
            raise DataError(message, file=files, field=",".join(self.columns.marks))
        return rows

    def _write(self, split: str, source: Source, folder: Path) -> int:
        """Write a split's annotations, add its documents, and return the number of rows."""
        known: dict[str, int] = {}
        shared: dict[tuple[int, str], str] = {}
        with ExitStack() as files:
            annotations, documents = (
                files.enter_context(open(folder / path, mode, encoding="utf-8"))
                for path, mode in ((f"{release_split(split)}.jsonl", "w"), ("docs.jsonl", "a"))
            )
            for row in self._read_rows(split, source, known):
                with locate(source.name, known[row.name]):
                    docids = self._add_texts(row, split, shared, documents)
                groups = self._make_groups(row)
                self._located |= any(any(spans) for spans in row.marked)
                record = {
                    "annotation_id": row.name,
                    "query": row.query,
                    "classification": row.label,
                    "evidences": [list(_make_evidences(group, row.texts, docids)) for group in groups],
                    "docids": docids,
                }
                annotations.write(to_json_line(record) + "\n")
                self.labels[row.label] += 1
                # without names, lists of sentences are alternative rationales, not annotators
                if self.columns.offsets != SENTENCES or row.named:
                    self._people.add(row, split, docids)
        if not known:
            reasons = self.tally.describe(NOTES)
            message = "; ".join(["expected at least one row that can be taken, found none", *reasons])
            raise DataError(message, file=source.name)
        return len(known)

    def _read_rows(self, split: str, source: Source, known: dict[str, int]) -> Iterator[AnnotatedRow]:
        """Yield the rows that are imported; ``known`` receives id -> line."""
        joiner = PeopleJoiner(self.tally, self.columns.id is not None, self.columns.texts[0])
        for row in source.rows():
            self.tally.place = f"{Path(source.name).name}:{row.number}"
            classes = source.classes.get(self.columns.label)
            with locate(source.name, row.number):
                entry = self._read_row(row, split, classes, joiner)
                if entry is not None and entry.name in known:
                    message = f"expected each id once, found {show(entry.name)} again"
                    message += f" (first on line {known[entry.name]})"
                    raise DataError(message, field=self.columns.id or "id")
            if entry is not None:
                known[entry.name] = row.number
                yield entry
        for line, entry in joiner.rows():
            known[entry.name] = line
            yield entry

    def _read_row(
        self, row: SourceRow, split: str, classes: Sequence[str] | None, joiner: PeopleJoiner
    ) -> AnnotatedRow | None:
        """Return the row as an annotation; None if it is skipped, or if the joiner takes it as one person's."""
        columns, cells = self.columns, row.cells
        texts = self._parse_texts(cells)
        column = columns.annotator
        names = None if column is None else parse_names(get_cell(cells, column), column)
        if column is None and self._has_column_per_annotator():
            names = list(columns.marks)
        cell = self._get_cell(cells, columns.label, parse_literal)
        one_person = isinstance(names, str)
        if one_person and (cell is None or cell == ""):
            labels = []
        else:
            labels = parse_labels(cell, classes, columns.label)
        label = find_majority_label(labels) if labels else None
        tied = label is None and not one_person
        if tied or not (any if texts[0].name else all)(map(len, texts)):
            self.tally.note("ties" if tied else "no tokens")
            return None
        name = self._read_name(row, split)
        query = "" if columns.query is None else _parse_query(self._get_cell(cells, columns.query), columns.query)
        marked = self._read_marks(cells, texts)
        if isinstance(names, str):
            if columns.marks:
                marked = marked or [[[] for _ in texts]]
            for each, column in ((labels, columns.label), (marked, ",".join(columns.marks))):
                if len(each) > 1:
                    message = f"expected one, of the annotator {show(names)}, found {len(each)}"
                    raise DataError(message, field=column)
            person = Person(names, labels[0] if labels else None, marked[0] if marked else None)
            joiner.add(name, query, texts, person, row.number)
            return None
        assert label is not None
        self.tally.note("labels differ", len(set(labels)) > 1)
        several = labels if isinstance(parse_literal(cell), list) else None
        people = join_people(several, marked, names, columns.annotator or "", self.tally)
        return AnnotatedRow(name, label, query, texts, people, names is not None)

    def _read_name(self, row: SourceRow, split: str) -> str:
        if self.columns.id is not None:
            return parse_word(get_cell(row.cells, self.columns.id), self.columns.id)
        return f"{split}_{row.number}" if row.key is None else parse_word(row.key, "key")

    def _parse_texts(self, cells: Row) -> list[Text]:
        """Return the texts of a row: one of each column, or the documents of the only one."""
        columns = self.columns
        if len(columns.texts) == 1 and (objects := find_objects(get_cell(cells, columns.texts[0]))) is not None:
            texts = parse_objects(objects, self.cut, columns.texts[0], tokenized=columns.tokenized)
        else:
            texts = [self._parse(cells, column) for column in columns.texts]
        if not columns.tokenized and self.cut is split_at_blanks:
            held = any(blank in text.source for text in texts for blank in OTHER_BLANKS)
            self.tally.note("other blanks", held)
        return texts

    def _parse(self, cells: Row, column: str) -> Text:
        if self.columns.tokenized:
            value = get_cell(cells, column)
            text = parse_tokens(value, column)
            blank = isinstance(value, list) and [] in value
        else:
            text = parse_text(self._get_cell(cells, column), self.cut, column)
            blank = text.source.rstrip().count("\n") + 1 > len(text.lines)
        self.tally.note("blank sentences", blank and self.columns.offsets == SENTENCES)
        return text

    def _get_cell(self, cells: Row, column: str, parse: Callable[[Any], Any] = parse_strings) -> Any:
        """Return a cell, and note a text that ``parse`` reads as a list."""
        value = get_cell(cells, column)
        self.tally.note("lists", isinstance(value, str) and isinstance(parse(value), list))
        return value

    def _read_marks(self, cells: Row, texts: Sequence[Text]) -> list[TextSpans | None]:
        """Return the spans of each annotator in each text; None: not known."""
        by_text: list[Annotators] = []
        if not self.columns.marks:
            return []
        if texts[0].name:  # documents, whose marks are those of one annotator
            column = self.columns.marks[0]
            if len(self.columns.marks) > 1:
                message = f"expected one column of marks for documents with ids, found {len(self.columns.marks)}"
                raise DataError(message, field=column)
            marks = split_marks(get_cell(cells, column), [text.name for text in texts], column)
            pairs = zip(marks, texts, strict=True)
            by_text = [self._marks.read_annotators(each, text, f"{column}.{text.name}") for each, text in pairs]
            return self._align_annotators(by_text)
        if self._has_column_per_annotator():
            return self._align_annotators([[self._read_one(cells, texts[0], name) for name in self.columns.marks]])
        for text, column in zip(texts, self.columns.marks, strict=True):
            by_text.append(self._marks.read_annotators(get_cell(cells, column), text, column))
        return self._align_annotators(by_text)

    def _has_column_per_annotator(self) -> bool:
        return len(self.columns.texts) == 1 and len(self.columns.marks) > 1

    def _read_one(self, cells: Row, text: Text, column: str) -> list[Span] | None:
        """Return the marks of an annotator with a column of his own; an empty cell marks nothing."""
        found = self._marks.read_annotators(get_cell(cells, column), text, column) or [[]]
        if len(found) > 1:
            message = f"expected the marks of one annotator, whose column it is, found those of {len(found)}"
            raise DataError(message, field=column)
        return found[0]

    def _align_annotators(self, by_text: Sequence[Annotators]) -> list[TextSpans | None]:
        """Return [annotator][text][span]; each text has all annotators, or none. None: no mark could be located."""
        count = max(map(len, by_text))
        columns = self.columns.marks
        # several documents in one column, or several columns for one text
        columns = columns if len(columns) == len(by_text) else columns[:1] * len(by_text)
        for column, annotators in zip(columns, by_text, strict=True):
            if len(annotators) not in (0, count):
                message = f"expected {count} annotators, as in the other texts of the row, found {len(annotators)}"
                raise DataError(message, field=column)
        people = [[annotators[at] if annotators else [] for annotators in by_text] for at in range(count)]
        return [None if None in spans and not any(spans) else [each or [] for each in spans] for spans in people]

    def _make_groups(self, row: AnnotatedRow) -> list[list[list[Span]]]:
        """Return the groups of evidences, each with its spans in each text."""
        groups = [spans for spans in row.marked if any(spans)]
        if not groups:
            self.tally.note("no marks", bool(self.columns.marks))
        elif len(groups) < len(row.marked) and self.annotators == GROUPS:
            self.tally.note("silent", len(row.marked) - len(groups))
        if self.annotators == GROUPS or not groups:
            return groups
        pairs = [zip(spans_of_texts, row.texts, strict=True) for spans_of_texts in row.marked]
        masks = [[flag for spans, text in each for flag in mask_from_spans(spans, len(text))] for each in pairs]
        bounds = np.cumsum([len(text) for text in row.texts])[:-1]
        agreed = [spans_from_mask(part) for part in np.split(majority(np.array(masks, int)), bounds)]
        self.tally.note("no majority", not any(agreed))
        return [agreed] if any(agreed) else []

    def _add_texts(self, row: AnnotatedRow, split: str, shared: dict[tuple[int, str], str], file: IO[str]) -> list[str]:
        """Return the ids of the row's documents, and write new documents."""
        docids, repeats = [], 0
        for number, text in enumerate(row.texts):
            if text.name:
                docids.append(self._add_document(text, file))
                continue
            docid = shared.get((number, text.document))
            repeats += docid is not None
            if docid is None:
                column = self.columns.texts[number].rpartition(".")[2]
                docid = row.name if len(row.texts) == 1 else f"{row.name}_{column}"
                while docid in self._docids:  # the same id in another split
                    docid = f"{split}:{docid}"
                self._docids[docid] = b""
                shared[number, text.document] = docid
                file.write(to_json_line({"docid": docid, "document": text.document}) + "\n")
                digest = blake2b(f"{number}:{text.document}".encode(), digest_size=16).digest()
                elsewhere = self._texts.setdefault(digest, split) != split
                self.tally.add("in several splits", elsewhere, [f"{docid} of {split}"])
            docids.append(docid)
        self.tally.add("shared", repeats == len(row.texts), [row.name])
        return docids

    def _add_document(self, text: Text, file: IO[str]) -> str:
        """Write a document under its own id, once; return the id.

        Raises:
            DataError: the id had another text before.
        """
        digest = blake2b(text.document.encode(), digest_size=16).digest()
        if text.name not in self._docids:
            self._docids[text.name] = digest
            file.write(to_json_line({"docid": text.name, "document": text.document}) + "\n")
        elif self._docids[text.name] != digest:
            message = f"expected one text under each id, found another under {show(text.name)}"
            raise DataError(message, field=self.columns.texts[0])
        return text.name

    def write_annotators(self, path: Path) -> None:
        """Write the annotators of rows with two or more, or with names, if there are any."""
        rows, single = self._people.rows, self._people.single
        if rows:
            parts = (rows[at : at + BATCH_ROWS] for at in range(0, len(rows), BATCH_ROWS))
            write_parquet(path, ANNOTATORS, (pa.Table.from_pylist(part, ANNOTATORS) for part in parts))
            self.tally.add("one annotator", len(single), single)

    def find_label_names(self, sources: Mapping[str, Source]) -> list[str]:
        """Return the names of a ClassLabel in its order, else the sorted labels of the rows.

        Raises:
            DataError: the splits' ClassLabels differ.
        """
        classes = {source.classes.get(self.columns.label): source.name for source in sources.values()}
        if len(classes) > 1:
            message = f"expected one ClassLabel, or none, in all splits, found {show(list(classes), 200)}"
            raise DataError(message, field=self.columns.label)
        (names,) = classes
        return sort_labels(self.labels) if names is None else list(names)

    def notes(self, tokenizer: str) -> list[str]:
        """Return the notes of the import: counts, and assumptions about tokens and spans."""
        lines: list[str] = []
        if not self.columns.tokenized and tokenizer == BLANKS:
            lines.append("tokens: cut at blanks (U+0020) and line ends alone; `tokenizer` cuts otherwise")
        if not self.columns.marks:
            lines.append("no column of rationales is named: faithfulness needs none, agreement is left out")
        elif self.columns.kind == SPANS:
            lines.append(f"spans: counted in {self.columns.offsets}, the end exclusive")
        lines += self.tally.describe(NOTES)
        return [*lines, *self._people.notes(), *_describe_odd_labels(self.labels)]


def _describe_odd_labels(labels: Mapping[str, int]) -> Iterator[str]:
    """Yield notes about labels that differ in case, blanks or composition alone, and about names of missing values."""
    alike: dict[str, list[str]] = {}
    for label, rows in labels.items():
        key = unicodedata.normalize("NFC", label.strip()).casefold()
        alike.setdefault(key, []).append(f"{show(label)} {rows:,}")
    for names in alike.values():
        if len(names) > 1:
            what = "case, outer blanks or the composition of characters"
            yield f"labels that differ in {what} alone, kept apart: {', '.join(sorted(names))}"
    missing = [name for key in sorted(MISSING & alike.keys()) for name in alike[key]]
    if missing:
        yield f"labels that are names of a missing value, kept as labels: {', '.join(missing)}"


def _parse_query(value: Any, column: str) -> str:
    parts = parse_strings(value)
    if isinstance(parts, list):
        return QUERY_SEPARATOR.join(parse_word(part, f"{column}[{at}]") for at, part in enumerate(parts))
    return parse_word(value, column)


def _make_evidences(
    group: Sequence[Sequence[Span]], texts: Sequence[Text], docids: Sequence[str]
) -> Iterator[dict[str, object]]:
    """Yield a group's evidences in the form of an annotation."""
    for spans, text, docid in zip(group, texts, docids, strict=True):
        for start, end in spans:
            first, stop = text.find_sentences(start, end)
            yield {
                "docid": docid,
                "text": " ".join(text.tokens[start:end]),
                "start_token": start,
                "end_token": end,
                "start_sentence": first,
                "end_sentence": stop,
            }
