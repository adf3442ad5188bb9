"""Export of a built ``eraser``: every record parses to the values of the release's, every document to its text."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from eraser_hub.conversion.built import RELEASE, BuiltDataset, read_rows
from eraser_hub.conversion.dataset import RECORDS
from eraser_hub.conversion.readers import convert_type, file_name
from eraser_hub.records.errors import DataError, show

from .configs import CORPUS_YAML, EraserConfig, get_annotators_path
from .documents import SCHEMA as DOCUMENTS
from .format import to_json_line
from .schema import SCHEMA

COLUMNS = ["annotation_id", "classification", "query", "query_type", "documents", "evidences", "position"]


class SplitFacts(msgspec.Struct):
    """The form of a split's records in the release; see `rows.SplitRows`."""

    file: str
    encoding: str
    annotation_id: Literal["integer", "string"]
    docids: Literal["absent", "null", "list"]
    query_type: Literal["absent", "present"]
    sentence_ends: Literal["inclusive", "exclusive"]


def export_config(facts: EraserConfig, built: BuiltDataset, entry: Mapping[str, Any], folder: Path) -> None:
    """Write the corpus folder of a configuration: split files, documents, and those of a corpus of one's own.

    Raises:
        DataError: rows, documents or release.json are at fault.
    """
    config, release = facts.name, built.folder / RELEASE
    odd = _read_odd(built.folder / "records" / f"{config}.parquet")
    for split, split_entry in entry["splits"].items():
        form: SplitFacts = convert_type(split_entry["facts"], SplitFacts, f"{config}.{split}", file=release)
        if not file_name(form.file):
            raise DataError(f"expected a file name, found {show(form.file)}", file=release)
        records: dict[int, dict[str, Any]] = {}
        for path in built.files(config, split):
            for table in read_rows([path], COLUMNS, kinds=SCHEMA, whole=[c for c in COLUMNS if c != "query_type"]):
                for row in table.to_pylist():
                    if row["position"] in records:
                        message = f"expected each position once, found {row['position']} again"
                        raise DataError(message, file=path, instance=row["annotation_id"], field="position")
                    kept = odd.get(form.file, {}).get(row["position"])
                    records[row["position"]] = kept or make_record(row, form, facts.label_names, path)
        double = form.encoding != "json"
        lines = [to_json_line(records[position], double=double) for position in sorted(records)]
        (folder / form.file).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    _write_documents(built.folder / "documents" / f"{config}.parquet", entry["facts"].get("layout"), folder)
    if facts.corpus_yaml:
        (folder / CORPUS_YAML).write_bytes(facts.corpus_yaml.encode())
    people = get_annotators_path(config)
    if (built.folder / people).is_file():
        (folder / people).parent.mkdir()
        shutil.copyfile(built.folder / people, folder / people)


def make_record(
    row: Mapping[str, Any], form: SplitFacts, label_names: Sequence[str], file: Path | None = None
) -> dict[str, Any]:
    """Return the release's record of a dataset row, with sorted keys as in the releases."""
    identity, label = row["annotation_id"], row["classification"]
    if form.annotation_id == "integer" and not identity.lstrip("-").isdecimal():
        message = f"expected digits, as {RELEASE} says of the split, found {show(identity)}"
        raise DataError(message, file=file, instance=identity, field="annotation_id")
    if not 0 <= label < len(label_names):
        message = f"expected a label from 0 to {len(label_names) - 1}, found {label}"
        raise DataError(message, file=file, instance=identity, field="classification")
    evidences = [[dict(sorted(evidence.items())) for evidence in group] for group in row["evidences"]]
    if form.sentence_ends == "inclusive":
        for evidence in (evidence for group in evidences for evidence in group):
            evidence["end_sentence"] -= evidence["end_sentence"] > 0
    record: dict[str, Any] = {
        "annotation_id": int(identity) if form.annotation_id == "integer" else identity,
        "classification": label_names[label],
    }
    if form.docids != "absent":
        record["docids"] = None if form.docids == "null" else [document["docid"] for document in row["documents"]]
    record |= {"evidences": evidences, "query": row["query"]}
    return record | ({"query_type": row["query_type"]} if form.query_type == "present" else {})


def _read_odd(path: Path) -> dict[str, dict[int, dict[str, Any]]]:
    """Return file -> line -> record, of the records that rows and the form of their split cannot restore."""
    odd: dict[str, dict[int, dict[str, Any]]] = {}
    for table in read_rows([path] if path.is_file() else [], RECORDS.names, kinds=RECORDS, whole=RECORDS.names):
        for file, content in zip(table["file"].to_pylist(), table["content"].to_pylist(), strict=True):
            try:
                lines = [msgspec.json.decode(line) for line in content.splitlines()]
                odd[file] = {line["line"]: line["record"] for line in lines}
            except (msgspec.MsgspecError, RecursionError, KeyError, TypeError):
                raise DataError(f"expected records of {show(file)} as JSON lines, found others", file=path) from None
    return odd


def _read_documents(path: Path) -> Iterator[tuple[str, str]]:
    for table in read_rows([path], ["docid", "text"], kinds=DOCUMENTS, whole=["docid", "text"]):
        yield from zip(table["docid"].to_pylist(), table["text"].to_pylist(), strict=True)


def _write_documents(path: Path, layout: object, folder: Path) -> None:
    if layout == "docs.jsonl":
        with (folder / "docs.jsonl").open("w", encoding="utf-8") as file:
            for docid, text in _read_documents(path):
                file.write(to_json_line({"docid": docid, "document": text}) + "\n")
        return
    (folder / "docs").mkdir()
    for docid, text in _read_documents(path):
        if not (name := file_name(docid)):
            raise DataError(f"expected a document id that can be a file name, found {show(docid)}", file=path)
        (folder / "docs" / name).write_bytes(text.encode("utf-8"))
