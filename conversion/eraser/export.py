"""Export of a built ``eraser`` folder to raw files: every record and document equals that of the source."""

from __future__ import annotations

import re
import shutil
from array import array
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from eraser_hub.conversion.built import BuiltDataset, get_label_name, open_built, read_rows
from eraser_hub.conversion.card import verify_folder
from eraser_hub.conversion.dataset import RELEASE, ExportResult, read_release
from eraser_hub.conversion.files import carry_over, rebuild_folder
from eraser_hub.conversion.licenses import get_license_path
from eraser_hub.conversion.readers import file_name
from eraser_hub.records.errors import DataError, UsageError, get_first_line, show

from .build import RECORDS
from .configs import CORPUS_YAML, EraserConfig, get_annotators_path
from .format import to_json_line
from .release import ConfigFacts, read_configs
from .schema import SCHEMA

COLUMNS = ["annotation_id", "classification", "query", "query_type", "documents", "evidences", "position"]
NOT_NULL = [name for name in COLUMNS if name != "query_type"]


class Deviation(msgspec.Struct):
    """Deviation of a record from its split's entry in release.json: keys to set, and absent keys."""

    set: dict[str, Any]
    absent: list[str]


def export_eraser(dataset: Path, configs: Sequence[str] | None, out: Path, force: bool = False) -> ExportResult:
    """Write ``out/CONFIG`` for each config of a built folder; see `HubDataset.export`.

    Raises:
        DataError: the folder is not a built ``eraser``, its card and Parquet disagree, a config is missing, or
            ``out/CONFIG`` is not empty and ``force`` is not set.
    """
    release = read_release(dataset, ConfigFacts)
    built = open_built(dataset)
    facts = read_configs(built)
    verify_folder(dataset, SCHEMA, {name: one.label_names for name, one in facts.items()})
    known = [name for name in release if name in facts]
    for name in configs or release:
        if name not in known:
            message = f"expected one of the configs {', '.join(known)}, found {show(name)}"
            raise UsageError(message, file=dataset)
    names = known if configs is None else [name for name in facts if name in configs]
    for name in names:
        if not force and (out / name).exists() and not ((out / name).is_dir() and not any((out / name).iterdir())):
            message = "expected no such folder yet, or an empty one; it is replaced with `force` alone"
            raise DataError(message, file=out / name)
    files: list[Path] = []
    for name in names:
        with rebuild_folder(out / name) as folder:
            written = _export_config(built, facts[name], release[name], folder)
            carry_over(out / name, folder, lambda path, written=written: path.parts[0] in written)  # type: ignore[misc]
        files += [out / name / path for path in written]
    return ExportResult(out, files)


def _export_config(built: BuiltDataset, config: EraserConfig, entry: dict[str, Any], folder: Path) -> list[str]:
    name, names = config.name, list[str]()
    others = built.folder / "documents"
    records = _read_deviations(others / f"{name}.records.parquet")
    with closing(DocumentWriter(folder, entry["documents"]["layout"])) as documents:
        for split, facts in entry["splits"].items():
            if not file_name(facts["file"]):
                message = f"expected a file name, found {show(facts['file'])}"
                raise DataError(message, file=built.folder / RELEASE)
            parquet = built.files(name, split)
            tables = read_rows(parquet, COLUMNS, kinds=SCHEMA, whole=NOT_NULL)
            try:
                write_split(tables, folder, facts, config.label_names, records.get(split, {}), documents)
            except DataError as error:
                raise error if error.file else error.at(file=parquet[0].parent) from None
            names.append(facts["file"])
        for table in read_rows([others / f"{name}.parquet"], ["docid", "text"], whole=["docid", "text"]):
            for docid, text in zip(table["docid"].to_pylist(), table["text"].to_pylist(), strict=True):
                documents.add(docid, text)
        positions = None
        if not entry["documents"]["in_order"]:
            paths = [others / f"{name}{part}.parquet" for part in (".order", "")]
            order = read_rows(paths, ["position"], whole=["position"])
            positions = np.concatenate([batch["position"].to_numpy() for batch in order])
        documents.finish(positions, entry["documents"]["final_newline"])
        names.append("docs.jsonl" if documents.spool else "docs")
    if config.corpus_yaml:
        (folder / CORPUS_YAML).write_bytes(config.corpus_yaml.encode())
        names.append(CORPUS_YAML)
    for license in entry.get("licenses", ()):
        if not re.fullmatch(r"[A-Za-z]+(?:\.[a-z]+)?", license):
            message = f"expected a licence's file name, found {license!r}"
            raise DataError(message, file=built.folder / RELEASE)
        shutil.copyfile(built.folder / get_license_path(name, license), folder / license)
        names.append(license)
    masks = get_annotators_path(name)
    if (built.folder / masks).is_file():
        (folder / masks).parent.mkdir()
        shutil.copyfile(built.folder / masks, folder / masks)
        names.append(masks)
    return names


def _read_deviations(path: Path) -> dict[str, dict[int, dict[str, Any]]]:
    """Return split -> position -> deviation, of records that deviate from the split's facts."""
    records: dict[str, dict[int, dict[str, Any]]] = {}
    if path.is_file():
        columns = ["split", "position", "record"]
        for batch in read_rows([path], columns, kinds=RECORDS, whole=columns):
            for row in batch.to_pylist():
                try:
                    record = msgspec.to_builtins(msgspec.json.decode(row["record"], type=Deviation))
                except (msgspec.MsgspecError, RecursionError) as error:
                    message = f"expected the keys to set and those that are absent, found {get_first_line(error)}"
                    raise DataError(message, file=path, line=row["position"]) from None
                records.setdefault(row["split"], {})[row["position"]] = record
    return records


def write_split(
    tables: Iterable[pa.Table],
    folder: Path,
    facts: dict[str, Any],
    label_names: Sequence[str],
    exceptions: dict[int, dict[str, Any]],
    documents: DocumentWriter | None = None,
) -> None:
    """Write a split's file from rows in any order.

    Args:
        tables: the rows, with the columns `COLUMNS`.
        folder: receives the file.
        facts: the split's entry in release.json.
        label_names: names of the values of ``classification``.
        exceptions: position -> deviation, from documents/CONFIG.records.parquet.
        documents: receives the rows' documents.
    """
    double = facts["encoding"] != "json"
    with closing(LineSpool(folder / f".{facts['file']}.rows")) as spool:
        for table in tables:
            for row in table.select(COLUMNS).to_pylist():
                record = make_record(row, facts, label_names, exceptions.get(row["position"]))
                spool.add(row["position"], to_json_line(record, double=double).encode())
                if documents is not None:
                    for document in row["documents"]:
                        documents.add(document["docid"], document["text"])
        spool.write(folder / facts["file"], facts["final_newline"])


def make_record(
    row: dict[str, Any], facts: dict[str, Any], label_names: Sequence[str], exception: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Return the release's record of a dataset row, with sorted keys as in the releases.

    Args:
        row: a row as Python objects.
        facts: the split's entry in release.json.
        label_names: names of the values of ``classification``.
        exception: ``{"set": {..}, "absent": [..]}`` of a record that deviates from the split's facts.
    """
    exception = exception or {"set": {}, "absent": []}
    identity: str | int = row["annotation_id"]
    if facts["annotation_id"] == "integer" and "annotation_id" not in exception["set"]:
        try:
            identity = int(identity)
        except ValueError:
            message = f"expected digits, as release.json says of the split, found {show(identity)}"
            raise DataError(message, instance=identity, field="annotation_id") from None
    label, inclusive = row["classification"], facts["sentence_ends"] == "inclusive"
    record: dict[str, Any] = {
        "annotation_id": identity,
        "classification": get_label_name(label, label_names, instance=identity),
        "evidences": [[_make_evidence_record(evidence, inclusive) for evidence in group] for group in row["evidences"]],
        "query": row["query"],
    }
    if facts["docids"] != "absent":
        record["docids"] = None if facts["docids"] == "null" else [document["docid"] for document in row["documents"]]
    if facts["query_type"] != "absent":
        record["query_type"] = row["query_type"]
    record.update(exception["set"])
    return {key: value for key, value in sorted(record.items()) if key not in exception["absent"]}


def _make_evidence_record(evidence: dict[str, Any], inclusive: bool) -> dict[str, Any]:
    end = evidence["end_sentence"]
    return dict(sorted({**evidence, "end_sentence": end - (inclusive and end > 0)}.items()))


class LineSpool:
    """Lines that are added in any order and written in the order of their positions; a temporary file holds them."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.open("wb+")
        self._starts, self.positions = array("q", [0]), array("q")

    def __len__(self) -> int:
        return len(self.positions)

    def add(self, position: int, line: bytes) -> None:
        """Add a line (without its newline)."""
        self._file.write(line)
        self._starts.append(self._starts[-1] + len(line))
        self.positions.append(position)

    def write(self, path: Path, final_newline: bool) -> None:
        """Write the lines in the order of their positions."""
        positions = np.frombuffer(self.positions, np.int64) if self.positions else np.zeros(0, np.int64)
        chosen = np.argsort(positions, kind="stable").tolist()
        self._file.flush()
        with path.open("wb") as out:
            place = -1
            for number, line in enumerate(chosen):
                start, end = self._starts[line], self._starts[line + 1]
                if start != place:
                    self._file.seek(start)
                out.write(b"\n" * (number > 0) + self._file.read(end - start))
                place = end
            if chosen and final_newline:
                out.write(b"\n")
        self._file.seek(0, 2)

    def close(self) -> None:
        """Remove the temporary file."""
        self._file.close()
        self._path.unlink(missing_ok=True)


class DocumentWriter:
    """Writer of each document once: as a file in docs/, or as a line of docs.jsonl."""

    def __init__(self, folder: Path, layout: str) -> None:
        self.folder = folder
        self.spool: LineSpool | None = None
        self._seen: dict[str, int] = {}
        if layout == "docs.jsonl":
            self.spool = LineSpool(folder / ".docs.rows")
        else:
            (folder / "docs").mkdir(exist_ok=True)

    def add(self, docid: str, text: str) -> None:
        """Add a document, unless it has been added before.

        Raises:
            DataError: the id has another text already, or cannot be a file name.
        """
        before = self._seen.get(docid)
        if before is not None:
            if before != hash(text):
                message = f"expected one text for the document {show(docid)}, found two"
                raise DataError(message, file=self.folder)
            return
        self._seen[docid] = hash(text)
        if self.spool is not None:
            self.spool.add(len(self.spool) + 1, to_json_line({"docid": docid, "document": text}).encode())
            return
        file = file_name(docid)
        if not file:
            message = f"expected a document id that can be a file name, found {show(docid)}"
            raise DataError(message, file=self.folder)
        (self.folder / "docs" / file).write_bytes(text.encode("utf-8"))

    def finish(self, positions: np.ndarray | None, final_newline: bool) -> None:
        """Write docs.jsonl with line n at ``positions[n]``; None keeps the order of `add`."""
        if self.spool is None:
            return
        if positions is not None:
            if len(positions) != len(self.spool):
                message = f"expected {len(positions)} documents, found {len(self.spool)}"
                raise DataError(message, file=self.folder)
            self.spool.positions = array("q", positions.tolist())
        self.spool.write(self.folder / "docs.jsonl", final_newline)

    def close(self) -> None:
        """Remove the temporary file."""
        if self.spool is not None:
            self.spool.close()
