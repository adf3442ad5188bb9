"""Predictions on disk: written chunk by chunk beside the result, gathered and renamed into place at the end.

While a run is at work ``OUT.partial`` holds a first line with its settings and then one line per finished chunk. A
line that was cut by a kill is dropped when the run goes on.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import orjson

from eraser_hub.records.atomic import replacing
from eraser_hub.records.errors import BusyError, DataError, shown

try:
    import fcntl
except ImportError:  # a platform without flock: two runs with one --out are then not told apart
    fcntl = None  # type: ignore[assignment]

FORMATS = (".jsonl", ".parquet")


def partial_path(out: Path) -> Path:
    """Where a run's finished chunks lie until it is complete."""
    return out.with_name(out.name + ".partial")


def run_path(out: Path) -> Path:
    """The file that tells how a result was made: ``OUT.run.json``."""
    return out.with_name(out.name + ".run.json")


def check_format(out: Path) -> None:
    """Refuse a place that no result may take.

    Raises:
        DataError: an ending that says neither JSON lines nor Parquet; a folder; a file that was not written here, such
            as the dataset's own (a result has its ``OUT.run.json``, a stopped run its ``OUT.partial``).
    """
    if out.suffix not in FORMATS:
        raise DataError(f"--out: expected a file ending in {' or '.join(FORMATS)}, found {shown(out.name)}")
    if out.is_dir():
        raise DataError("--out: expected a file, found a folder", file=out)
    if out.is_file() and out.stat().st_size and not run_path(out).exists() and not partial_path(out).exists():
        raise DataError(
            f"--out: expected a new file or an earlier result, found a file without {run_path(out).name} beside it; "
            "delete it if it may go",
            file=out,
        )


def refuse_stopped(out: Path) -> None:
    """Refuse to begin where a stopped run lies that could go on.

    Raises:
        DataError: names the file.
    """
    path = partial_path(out)
    if path.is_file():
        with open(path, "rb") as file:
            if file.readline().endswith(b"\n"):  # else it was stopped before anything was done
                raise DataError("a stopped run lies here: say --resume to go on with it, or delete the file", file=path)


class Partial:
    """The finished chunks of a run.

    Args:
        out: the result's path.
        header: what must agree for a stopped run to go on (settings, model, data).
        resume: go on from what is there.

    Raises:
        BusyError: another run writes here.
        DataError: a stopped run is there and ``resume`` is not asked for, or it was made otherwise.
    """

    def __init__(self, out: Path, header: dict[str, Any], resume: bool) -> None:
        self.path = partial_path(out)
        self.places: dict[int, int] = {}
        out.parent.mkdir(parents=True, exist_ok=True)
        self._file: IO[bytes] = open(self.path, "a+b")  # noqa: SIM115 (held open for the run's length, with its lock)
        try:
            if fcntl is not None:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._file.close()
            raise BusyError("another run is writing here", file=self.path) from error
        try:
            if not self._in_place():
                # the run that held the lock ended, and took the file with it, between our opening it and our lock
                raise BusyError("another run was just ending here; try again", file=self.path)
            self._read(header, resume)
        except BaseException:
            self._quietly_close()
            raise

    def _in_place(self) -> bool:
        try:
            return os.path.samestat(os.fstat(self._file.fileno()), os.stat(self.path))
        except FileNotFoundError:
            return False

    def _read(self, header: dict[str, Any], resume: bool) -> None:
        self._file.seek(0)
        first = self._file.readline()
        if not first.endswith(b"\n"):
            self._begin(header)
            return
        found = _parse(first)
        if not isinstance(found, dict) or "settings" not in found:
            raise DataError("expected the settings of a stopped run, found something else", file=self.path, line=1)
        if not resume:
            raise DataError(
                "a stopped run lies here: say --resume to go on with it, or delete the file", file=self.path
            )
        differing = differences(found, header)
        if differing:
            raise DataError(f"--resume: the stopped run was made otherwise: {'; '.join(differing)}", file=self.path)
        while True:
            place = self._file.tell()
            line = self._file.readline()
            record = _parse(line) if line.endswith(b"\n") else None
            if not isinstance(record, dict) or not isinstance(record.get("chunk"), int):
                break
            self.places[record["chunk"]] = place
        # a line cut by a kill, and whatever follows it, is written again
        self._file.truncate(place)
        self._file.seek(place)

    def _begin(self, header: dict[str, Any]) -> None:
        line = orjson.dumps(header)
        self._file.seek(0)
        self._file.truncate(0)
        self._write(line)

    def append(self, chunk: int, predictions: Sequence[bytes], facts: dict[str, Any]) -> None:
        """Keep a finished chunk: its predictions as JSON lines, and its counters.

        Raises:
            OSError: it could not be written (a full disk); what was written before is whole.
        """
        record = {"chunk": chunk, **facts, "predictions": [line.decode("utf-8") for line in predictions]}
        place = self._file.seek(0, os.SEEK_END)
        self._write(orjson.dumps(record))
        self.places[chunk] = place

    def _write(self, line: bytes) -> None:
        try:
            self._file.write(line + b"\n")
            self._file.flush()
        except OSError as error:  # an error of writing does not say where
            raise OSError(error.errno, error.strerror, str(self.path)) from error

    def records(self) -> Iterator[dict[str, Any]]:
        """The finished chunks in the dataset's order, whatever the order in which they were finished."""
        for chunk in sorted(self.places):
            self._file.seek(self.places[chunk])
            yield orjson.loads(self._file.readline())

    def close(self, remove: bool = False) -> None:
        """Close; with ``remove``, the result is complete and the partial file goes."""
        if remove and not self._file.closed:
            self.path.unlink(missing_ok=True)
        self._quietly_close()

    def _quietly_close(self) -> None:
        """Close although a line that found no room is still in the buffer: its error was told when it was written."""
        with suppress(OSError):
            self._file.close()


def _parse(line: bytes) -> Any:
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError:
        return None


def differences(found: dict[str, Any], wanted: dict[str, Any]) -> list[str]:
    """What differs between two headers, in words."""
    words = []
    for key in sorted(found.keys() | wanted.keys()):
        left, right = found.get(key), orjson.loads(orjson.dumps(wanted.get(key)))
        if left == right:
            continue
        if isinstance(left, dict) and isinstance(right, dict):
            words += [
                f"{name} was {shown(left.get(name))}, now {shown(right.get(name))}"
                for name in sorted(left.keys() | right.keys())
                if left.get(name) != right.get(name)
            ]
        else:
            words.append(f"{key} was {shown(left)}, now {shown(right)}")
    return words


def write_predictions(out: Path, lines: Iterable[str], labels: Sequence[str], kind: str) -> int:
    """Write predictions in order as JSON lines or Parquet, by ``out``'s ending; returns how many."""
    count = 0
    with replacing(out) as beside:
        if out.suffix == ".jsonl":
            with open(beside, "w", encoding="utf-8", newline="\n") as file:
                for line in lines:
                    file.write(line + "\n")
                    count += 1
        else:
            count = _write_parquet(beside, lines, labels, kind)
    return count


def _write_parquet(path: Path, lines: Iterable[str], labels: Sequence[str], kind: str) -> int:
    import pyarrow as pa
    import pyarrow.parquet as pq

    count = 0
    batch: list[dict[str, Any]] = []
    schema = writer = None

    def write() -> None:
        nonlocal writer, schema
        if schema is None:
            schema = prediction_schema(labels, kind, batch[0] if batch else None)
        if writer is None:
            writer = pq.ParquetWriter(path, schema)
        writer.write_table(pa.Table.from_pylist(batch, schema=schema))

    for line in lines:
        batch.append(orjson.loads(line))
        count += 1
        if len(batch) == 100:
            write()
            batch = []
    if batch or writer is None:
        write()
    if writer is not None:
        writer.close()
    return count


def prediction_schema(labels: Sequence[str], kind: str, example: dict[str, Any] | None) -> Any:
    """The Arrow schema of predictions: probabilities by label as a struct, only the fields that ``example`` has."""
    import pyarrow as pa

    p = pa.struct([(label, pa.float64()) for label in labels])
    pair = [("comprehensiveness_classification_scores", p), ("sufficiency_classification_scores", p)]
    span = pa.struct([("start_token", pa.int64()), ("end_token", pa.int64())])
    rationale = pa.struct(
        [
            ("docid", pa.string()),
            ("hard_rationale_predictions", pa.list_(span)),
            ("soft_rationale_predictions", pa.list_(pa.float64())),
        ]
    )
    many = pa.list_(pa.float64())
    fields = (
        {
            "annotation_id": pa.string(),
            "rationales": pa.list_(rationale),
            "classification": pa.string(),
            "classification_scores": p,
            **dict(pair),
            "null_classification_scores": p,
            "thresholded_scores": pa.list_(pa.struct([("threshold", pa.float64()), *pair])),
            "tokens_to_flip": pa.int64(),
            "random_rationales": pa.list_(pa.struct(pair)),
            "occluded_scores": pa.list_(pa.struct([("occlusion_rate", pa.float64()), ("trial", pa.int64()), *pair])),
        }
        if kind != "perturbation"
        else {
            "id": pa.string(),
            # a class number, or the words of an answer
            "pred_label": pa.string() if example and isinstance(example["pred_label"], str) else pa.int64(),
            "answer_proba": pa.float64(),
            "rationale": pa.list_(pa.list_(pa.int64())),
            "rationale_tokens": pa.list_(pa.list_(pa.string())),
            "pred_proba": many,
            "rationale_pred_proba": many,
            "non_rationale_pred_proba": many,
            "empty_pred_proba": many,
        }
    )
    return pa.schema([(name, kind_) for name, kind_ in fields.items() if example is None or name in example])
