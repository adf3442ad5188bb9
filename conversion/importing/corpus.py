"""Annotations of any source -> a corpus folder in ERASER's format.

    OUT/NAME/corpus.yaml                 name and labels
    OUT/NAME/SPLIT.jsonl                 an annotation a row
    OUT/NAME/docs.jsonl                  the texts; rows of a split with the same text share a document
    OUT/NAME/annotators/NAME.parquet     a row per text and person: the marked tokens and the label
    OUT/NAME/.import.json                the files that the import wrote, which a later import replaces

The spans of one annotator are one group of evidences; several annotators are alternatives. The folder appears at once.
"""

from __future__ import annotations

import json
import logging
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import IO, Any

import yaml

from eraser_hub.conversion.eraser.configs import CORPUS_YAML, IMPORT_RECORD, get_annotators_path
from eraser_hub.conversion.eraser.corpus_yaml import parse_corpus_yaml
from eraser_hub.conversion.eraser.format import to_json_line
from eraser_hub.conversion.files import carry_over, rebuild_folder
from eraser_hub.conversion.readers import load_yaml
from eraser_hub.records.errors import DataError, show
from eraser_hub.records.files import GENERATOR, OutputWriter
from eraser_hub.records.places import dataset_split, release_split
from eraser_hub.records.predictions import find_inputs

from .rows import Row
from .tally import Tally
from .texts import Span

BATCH_ROWS = 10_000
MAX_FEW_LABELS, MAX_LABEL_LENGTH = 5, 60  # beyond these a column may hold texts or ids
DOCUMENTS = "docs.jsonl"
log = logging.getLogger("eraser_hub")
HINTS = """\
# what the card and explain would like to know:
# language: en
# license: cc-by-4.0
# citation: |
#   @misc{...}
# kd: 0.1          the share of tokens in a hard rationale; without it the mean share of these
# comprehensive: true    all of the text that supports the label is gold; or a list of such splits
"""


@dataclass(frozen=True, slots=True)
class Imported:
    """Result of an import.

    Attributes:
        folder: the corpus folder.
        rows: split -> number of annotations.
        labels: the labels in order.
        counts: how often things were taken, changed and left out, by the keys of `tally.WORDS`.
        lines: the same in words, and the people.
    """

    folder: Path
    rows: dict[str, int]
    labels: list[str]
    counts: Mapping[str, int]
    lines: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        rows = ", ".join(f"{split} {rows:,}" for split, rows in self.rows.items())
        lines = [f"{self.folder}: {rows}; labels {', '.join(self.labels)}"]
        lines += ["  count  what was found, changed and left out", *self.lines] if self.lines else []
        return "\n".join([*lines, f"next: eraser-hub build own --source {shlex.quote(str(self.folder))} --out hub"])


def write_corpus(
    splits: Mapping[str, Iterable[Row]],
    inputs: Sequence[str],
    name: str,
    out: str | PathLike[str],
    tally: Tally,
    *,
    force: bool = False,
    allow_unfound: bool = False,
    facts: Mapping[str, str] | None = None,
    labels: Sequence[str] | None = None,
    is_marked: bool = True,
) -> Imported:
    """Write ``out/NAME`` from annotations.

    Args:
        splits: split -> annotations.
        inputs: the files that they are read from, which are never replaced.
        name: name of the config.
        out: the folder of the corpus folders.
        tally: counts of what is left out and changed.
        force: replace the files of an earlier import in ``out/NAME``; other files in it are kept, and the further keys
            of its corpus.yaml.
        allow_unfound: take a corpus of whose quotes more than half are not in the texts.
        facts: further keys of corpus.yaml: language, license, citation.
        labels: the names of a ClassLabel; None: the labels of the rows, sorted.
        is_marked: False for a corpus without rationales.

    Raises:
        DataError: a row is at fault; no row can be taken; most quotes are not found; the folder exists.
    """
    try:
        parse_corpus_yaml(yaml.safe_dump({"name": name, "labels": ["label"]}), Path(CORPUS_YAML))
    except DataError as error:
        raise DataError(error.message, argument="name") from None
    for split in splits:
        if not re.fullmatch(r"\w+", split) or split in ("all", "docs"):
            message = f"expected a split's name (train, validation, test), found {show(split)}"
            raise DataError(message, argument="split")
    if len(set(map(dataset_split, splits))) < len(splits):
        raise DataError(f"expected each split once, found {', '.join(splits)}", argument="split")
    target = Path(out) / name
    old = _read_record(target, force)
    files = [*(f"{release_split(split)}.jsonl" for split in splits), DOCUMENTS, CORPUS_YAML, IMPORT_RECORD]
    for file in (*files, get_annotators_path(name)):
        OutputWriter(find_inputs(inputs), force).check(target / file)
    writer = _Writer(tally, is_marked)
    with rebuild_folder(target) as folder:
        rows = {split: writer.write_split(split, each, folder) for split, each in splits.items()}
        if empty := [file for count, file in zip(rows.values(), inputs, strict=True) if not count]:
            reasons = "; ".join(" ".join(line.split()) for line in tally.lines())
            message = f"expected at least one row that can be taken, found none: {reasons or 'no row'}"
            raise DataError(message, file=empty[0])
        found, lost = tally.counts["quotes"], tally.counts["unfound"]
        if lost > found and not allow_unfound:
            examples = ", ".join(tally.places["unfound"])
            message = f"expected quotes of the texts, found {lost:,} of {found + lost:,} that are not there: {examples}"
            raise DataError(f"{message} (`allow_unfound` leaves them out)", file=", ".join(inputs))
        writer.write_annotators(folder / get_annotators_path(name))
        names = sort_labels(writer.labels) if labels is None else list(labels)
        longest, total = max(names, key=len), sum(rows.values())
        if labels is None and (len(names) > max(MAX_FEW_LABELS, total / 2) or len(longest) > MAX_LABEL_LENGTH):
            words = f"labels: {len(names):,} in {total:,} rows, such as {show(longest)}"
            log.warning(f"{words}: is this the column of the label? (`label` names another)")
        values = {"name": name, "labels": names, **old.get("facts", {}), **dict(facts or {})}
        text = yaml.safe_dump(values, allow_unicode=True, sort_keys=False, width=10_000)
        (folder / CORPUS_YAML).write_text(text + HINTS, encoding="utf-8")
        new = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
        (folder / IMPORT_RECORD).write_text(json.dumps({"generator": GENERATOR, "files": new}, indent=1))
        carry_over(target, folder, lambda path: path.as_posix() in old.get("files", ()))
    lines = [*tally.lines(), *writer.describe_people()]
    return Imported(target, rows, names, dict(tally.counts), lines)


def _read_record(target: Path, force: bool) -> dict[str, Any]:
    """Return what an earlier import wrote, and the further keys of its corpus.yaml; nothing if there was none.

    Raises:
        DataError: the folder is there and may not be replaced.
    """
    if not target.is_dir() or not any(target.iterdir()):
        return {}
    if not force:
        raise DataError("expected no such folder yet, or an empty one; `force` replaces it", file=target)
    try:
        files = json.loads((target / IMPORT_RECORD).read_bytes())["files"]
    except (OSError, ValueError, KeyError, TypeError):
        message = (
            f"expected the folder of an import (with {IMPORT_RECORD}) to replace, found another: take another `out`"
        )
        raise DataError(message, file=target) from None
    path = target / CORPUS_YAML
    values = load_yaml(path.read_text(encoding="utf-8"), path) if path.is_file() else {}
    facts = {key: value for key, value in values.items() if key not in ("name", "labels")}
    return {"facts": facts, "files": [*files, IMPORT_RECORD]}


class _Writer:
    """Writer of the splits of a corpus, with the state that they share."""

    def __init__(self, tally: Tally, is_marked: bool) -> None:
        self.tally, self.is_marked = tally, is_marked
        self.labels: Counter[str] = Counter()
        self.people: list[dict[str, Any]] = []
        self.named = False
        self._docids: set[str] = set()

    def write_split(self, split: str, rows: Iterable[Row], folder: Path) -> int:
        """Write a split's annotations, add its documents, and return the number of rows."""
        lines: dict[str, int] = {}  # of ids
        shared: dict[tuple[int, str], str] = {}
        with (
            open(folder / f"{release_split(split)}.jsonl", "w", encoding="utf-8") as annotations,
            open(folder / DOCUMENTS, "a", encoding="utf-8") as documents,
        ):
            for row in rows:
                if row.id in lines:
                    message = f"expected each id once, found {show(row.id)} again (first on line {lines[row.id]})"
                    raise DataError(message, file=row.file, line=row.line, field="id")
                lines[row.id] = row.line
                docids = self._add_documents(row, split, shared, documents)
                marks = [person.marks for person in row.people if person.marks is not None]
                groups = [spans for spans in marks if any(spans)]
                place = f"{Path(row.file).name}:{row.line}"
                self.tally.add("no marks", self.is_marked and not groups, place=place)
                self.tally.add("silent", len(marks) - len(groups) if groups else 0, place=place)
                evidences = [list(make_evidences(spans, row, docids)) for spans in groups]
                record = {"annotation_id": row.id, "query": row.query, "classification": row.label}
                annotations.write(to_json_line(record | {"evidences": evidences, "docids": docids}) + "\n")
                self.labels[row.label] += 1
                if row.named is not None and len(row.people) >= (1 if row.named else 2):
                    self._add_people(row, split, docids)
        return len(lines)

    def _add_documents(self, row: Row, split: str, shared: dict[tuple[int, str], str], file: IO[str]) -> list[str]:
        """Return the ids of the row's documents, and write new documents."""
        docids: list[str] = []
        repeats = 0
        for number, (text, name) in enumerate(zip(row.texts, row.suffixes, strict=True)):
            docid = shared.get((number, text.document))
            repeats += docid is not None
            if docid is None:
                docid = row.id if len(row.texts) == 1 else f"{row.id}_{name}"
                while docid in self._docids:  # the same id in another split
                    docid = f"{split}:{docid}"
                self._docids.add(docid)
                shared[number, text.document] = docid
                file.write(to_json_line({"docid": docid, "document": text.document}) + "\n")
            docids.append(docid)
        self.tally.add("shared", repeats == len(row.texts), place=row.id)
        return docids

    def _add_people(self, row: Row, split: str, docids: list[str]) -> None:
        """Add the people of a row to the table of annotators."""
        self.named |= bool(row.named)
        for name, label, marks in row.people:
            positions = None
            if marks is not None:
                positions = [sorted({at for start, end in spans for at in range(start, end)}) for spans in marks]
            person: dict[str, Any] = {
                "annotation_id": row.id,
                "annotator": name,
                "label": label,
                "rationale_positions": positions,
            }
            person |= {"split": dataset_split(split), "docids": docids}
            self.people.append(person | {"num_tokens": [len(text.tokens) for text in row.texts]})

    def write_annotators(self, path: Path) -> None:
        """Write the people, if there are any."""
        import pyarrow as pa

        from eraser_hub.conversion.eraser.schema import ANNOTATORS
        from eraser_hub.conversion.parquet import write_parquet

        if self.people:
            parts = (self.people[at : at + BATCH_ROWS] for at in range(0, len(self.people), BATCH_ROWS))
            write_parquet(path, ANNOTATORS, (pa.Table.from_pylist(part, ANNOTATORS) for part in parts))

    def describe_people(self) -> Iterator[str]:
        """Yield a line on named people and their numbers of texts."""
        counts = Counter(person["annotator"] for person in self.people)
        if self.named:
            shown = ", ".join(f"{name} {texts:,}" for name, texts in islice(counts.items(), 8))
            yield f"{len(counts):>7,}  people, with their numbers of texts ({shown}{', ..' if len(counts) > 8 else ''})"


def make_evidences(marks: Sequence[Sequence[Span]], row: Row, docids: Sequence[str]) -> Iterator[dict[str, object]]:
    """Yield one person's marks in the form of evidences."""
    for spans, text, docid in zip(marks, row.texts, docids, strict=True):
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


def sort_labels(labels: Iterable[str]) -> list[str]:
    """Sort labels: by number if all are integers, else as text."""
    try:
        return sorted(labels, key=lambda label: (int(label), label))
    except ValueError:
        return sorted(labels)
