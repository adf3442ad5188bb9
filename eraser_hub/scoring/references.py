"""References of predictions: annotations as flat arrays, and their documents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from msgspec import UNSET

from eraser_hub.metrics.checks import name_labels
from eraser_hub.metrics.clusters import Clusters
from eraser_hub.metrics.flat import EVIDENCE_COLUMNS, REFERENCE_FIELDS, References, Words, concatenate, make_blank
from eraser_hub.metrics.flatten import REFERENCE, flatten_rows
from eraser_hub.metrics.gold_digest import digest_references
from eraser_hub.metrics.issues import Issues, RowNames, cut
from eraser_hub.metrics.joining import DocumentLengths, cluster_by_documents
from eraser_hub.metrics.token_rows import as_eraser_row
from eraser_hub.records.errors import DataError, DataErrors
from eraser_hub.records.json_lines import parse_strict_object
from eraser_hub.records.splits import release_split

from .documents import CorpusDocuments
from .scored_split import ScoredSplit

if TYPE_CHECKING:
    from eraser_hub.conversion.eraser.format import Annotations
    from eraser_hub.records.rules import Rule

TOKEN_COLUMNS = ("id", "label", "tokens", "rationale_mask")
DocumentPairs = tuple[np.ndarray, np.ndarray]
_CHECKED = ("classification", "group_instance", "group", *EVIDENCE_COLUMNS)  # of a run of checked annotations


@dataclass(frozen=True)
class Gold:
    """The annotations that predictions are scored against.

    Attributes:
        references: the annotations as flat arrays.
        documents: their documents.
        path: the annotation file, for errors.
        lines: the line (or row) of each annotation in it.
        label_names: the valid labels; None: those of the annotations.
        columns: the values of the requested columns, one per annotation.
        listed: the documents of each annotation, if requested: annotations in ascending order, and numbers of
            documents, both int64 (d,).
        digest: of the references as they are read, see `metrics.gold_digest`.
        notes: lines on labels (see `scored_split.LabelNames`) and on annotations that keep their evidence; "" for none.
    """

    references: References
    documents: DocumentLengths
    path: Path
    lines: Sequence[int]
    label_names: tuple[str, ...] | None
    columns: dict[str, list[object]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    listed: DocumentPairs | None = None
    digest: str = ""

    def __call__(self, name: str, predicted: bool = False) -> list[object]:
        """Return the values of a column in ``columns``."""
        return self.columns[name]

    def rows(self) -> list[dict[str, Any]]:
        """Return each annotation's id, listed documents and columns, as metric modules take rows."""
        rows: list[dict[str, Any]] = [{"annotation_id": name, "documents": []} for name in self.references.ids]
        docids = self.references.docids
        for owner, number in zip(*(column.tolist() for column in self.listed or ()), strict=True):
            if owner >= 0:
                rows[owner]["documents"].append({"docid": str(docids[number])})
        for name, values in self.columns.items():
            for row, value in zip(rows, values, strict=True):
                row[name] = value
        return rows

    def clusters(self) -> Clusters:
        """Return the clusters of annotations that share a document."""
        return cluster_by_documents(self.references)


def make_issue_error(issues: Issues, files: dict[str, Path]) -> DataError:
    """Return the error of the faults that were collected.

    Args:
        issues: the faults, at least one.
        files: side -> the file of its rows, whose lines the errors name.
    """
    errors = [
        DataError(
            issue.message,
            rule=cast("Rule", issue.rule),
            file=files[issue.side],
            line=None if issue.row < 0 else issue.row,
            instance=issue.id or None,
            field=issue.field or None,
        )
        for issue in issues
    ]
    return errors[0] if issues.total == 1 else DataErrors(errors, issues.total)


def read_split_ids(source: ScoredSplit) -> Iterator[tuple[str, set[str]]]:
    """Yield the name and the annotation ids of every split. Files without annotations are skipped."""
    if source.dataset is not None:
        from eraser_hub.records.built import read_rows

        for split, files in source.built.splits(source.built_config).items():
            name = "id" if source.kind == "tokens" else "annotation_id"
            ids = (table.column(name).to_pylist() for table in read_rows(files, [name]))
            yield split, {str(name) for several in ids for name in several}
        return
    for path in sorted(source.data_dir.glob("*.jsonl")):
        if ids_in_file := _ids(path):
            yield path.stem, ids_in_file


def _ids(path: Path) -> set[str]:
    """Return the ids of a file of annotations; none for any other file."""
    from eraser_hub.conversion.eraser.format import read_annotations

    with suppress(DataError):
        return {str(one.annotation_id) for run in read_annotations(path) for one in run.records}
    return set()


def describe_backup(source: ScoredSplit, unknown: set[str]) -> str:
    """Return a hint that a backup file may hold the ids ; "" if there is no backup."""
    name = f"{release_split(source.split)}.jsonl.bak"
    if source.dataset is not None:
        with suppress(DataError, OSError, AttributeError):  # without a sound release.json there is nothing to add
            release = parse_strict_object(
                (source.built.folder / "release.json").read_bytes(), file="release.json", number=1
            )
            skipped = release.get("configs", {}).get(source.built_config, {}).get("skipped", ())
            return f"the release has a backup, {name}, whose own records are not built" if name in str(skipped) else ""
        return ""
    ids_in_file = _ids(source.data_dir / name) & unknown
    return f"{len(ids_in_file):,} of them stand in {name} alone" if ids_in_file else ""


# ------------------------------------------------------------------------------------------------------------- a corpus
def read_gold(source: ScoredSplit, columns: Sequence[str] = (), listed: bool = False) -> Gold:
    """Read annotations, of a corpus folder or of a built dataset.

    Args:
        source: the split.
        columns: the columns to break scores down by, or to cluster by.
        listed: keep the documents of each annotation; a corpus only says which documents its evidence is in.

    Raises:
        DataError: a file cannot be read, or is faulty; at most ten faults are named.
    """
    if source.dataset is not None:
        gold = _of_dataset(source, columns)
        return replace(gold, listed=(gold.references.document_instance, gold.references.document)) if listed else gold
    from eraser_hub.conversion.eraser.checked import read_checked

    names, path = source.labels.names, source.annotation_file
    documents, numbers = CorpusDocuments(source.data_dir), dict[str, int]()
    codes = {name: code for code, name in enumerate(names or ())}
    values, own, parts = {name: list[object]() for name in columns}, list[DocumentPairs](), list[list[np.ndarray]]()
    first = first_group = 0
    for part in read_checked(path, names, documents, numbers):
        sizes, groups, members = np.diff(part.offsets), np.diff(part.groups), np.diff(part.members)
        if listed:
            own.append((np.repeat(np.arange(first, first + len(sizes)), sizes), part.documents))
        cells = (
            [codes.setdefault(record.classification, len(codes)) for record in part.run.records],
            np.repeat(np.arange(first, first + len(groups)), groups),
            np.repeat(np.arange(first_group, first_group + len(members)), members),
            part.documents[part.slots],
            *part.bounds.T,
        )
        parts.append([np.array(column, dtype=np.intc) for column in cells])
        first, first_group = first + len(groups), first_group + len(members)
        for name, column in values.items():
            column += [_value(_row(part.run, at, name), name, path, line) for at, line in enumerate(part.run.numbers)]
    if not numbers:
        raise DataError("expected at least one annotation, found none", rule="empty", file=path)
    references = make_blank(References, Words(numbers))
    references.docids, references.labels = Words(documents.numbers), list(codes)
    for name, pieces in zip(_CHECKED, zip(*parts, strict=True), strict=True):
        setattr(references, name, np.concatenate(pieces))
    lines = range(1, len(numbers) + 1)  # each holds an annotation
    digest = digest_references(references)
    gold = Gold(references, documents, path, lines, names, values, (source.labels.note,), digest=digest)
    if not listed:
        return gold
    owner, number = (np.concatenate(column).astype(np.int64) for column in zip(*own, strict=True))
    return replace(gold, listed=(owner, number))


def _row(run: Annotations, place: int, name: str) -> dict[str, Any]:
    """Return the extra keys of a record, and the key of this name."""
    value = getattr(run.records[place], name, UNSET)
    return run.extras.get(place, {}) | ({} if value is UNSET else {name: value})


def _value(row: dict[str, Any], name: str, path: Path, line: int) -> object:
    """Return a row's value of a column to break scores down by, or to cluster by."""
    if name not in row:
        message = f"expected the field {name!r} (to break scores down by, or to cluster by), found none"
        raise DataError(message, rule="key-missing", file=path, line=line)
    if isinstance(row[name], (list, dict)):
        words = f"expected a single value, found {cut(row[name])}"
        raise DataError(words, rule="type", file=path, line=line, field=name)
    return row[name]


# ------------------------------------------------------------------------------------------------------ a built dataset
def _of_dataset(source: ScoredSplit, columns: Sequence[str]) -> Gold:
    from eraser_hub.metrics.arrow_columns import flatten_table
    from eraser_hub.records.built import (
        read_rows,  # the Arrow libraries are slow to import: only where they are needed
    )

    labels, files = source.labels, source.built.files(source.built_config, source.split)
    issues, parts = Issues(), list[References]()
    values: dict[str, list[object]] = {name: [] for name in columns}
    first = 1
    tokens = source.kind == "tokens"
    names = {"classification": "label"} if tokens else {}
    for table in read_rows(
        files, [*dict.fromkeys((*(TOKEN_COLUMNS if tokens else REFERENCE_FIELDS), *(names.get(n, n) for n in columns)))]
    ):
        own = Issues({"reference": RowNames(range(first, first + table.num_rows), table.column(0).to_pylist())})
        if tokens:
            part, _ = flatten_rows([as_eraser_row(row) for row in table.to_pylist()], REFERENCE, own)
        else:
            part, _ = flatten_table(table, REFERENCE, own)
        issues.take(own)
        parts.append(part)
        for name, cells in values.items():
            column = names.get(name, name)
            rows = table.select([column]).to_pylist()
            cells += [_value(row, column, files[0], number) for number, row in enumerate(rows, first)]
        first += table.num_rows
    references = concatenate(parts) if parts else make_blank(References, ())
    own = Issues({"reference": RowNames(range(1, first), references.ids)})
    name_labels(references, labels.names, own)
    issues.take(own)
    if "classification" in values:
        names_by_code = [*references.labels, None]
        values["classification"] = [names_by_code[code] for code in references.classification.tolist()]
    if issues.total:
        raise make_issue_error(issues, {"reference": files[0]})
    documents, lines, digest = DocumentLengths(references), range(1, first), digest_references(references)
    return Gold(references, documents, files[0], lines, labels.names, values, (labels.note,), digest=digest)
