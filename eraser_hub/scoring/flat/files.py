"""Scores of two flat files: gold rationales, and predictions of them, a row for each text.

A row is {"id", "tokens" or "text", "rationale", "scores", "quotes", "label", "probabilities"}: `metrics.plain_rows`.
Both files become a corpus folder and instances, which `score` reads like any others.
"""

from __future__ import annotations

import atexit
import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from eraser_hub.conversion.importing.sources import open_file
from eraser_hub.conversion.importing.texts import parse_literal
from eraser_hub.metrics.issues import InputError
from eraser_hub.metrics.plain_rows import PlainText, describe_notes, get_id, make_annotations, make_instances
from eraser_hub.records.errors import DataError, raise_all

from ..score import score
from ..scored_split import ScoredSplit
from ..scores import Scores
from ..settings import ScoreSettings

SPLIT = "test"
READ = ("annotation_id", "rationales", "classification", "classification_scores")  # of what is made of a flat row
NO_LABEL = "unlabelled"  # the label of gold without labels, since an annotation has one


def score_flat(gold: Path, predictions: Path, settings: ScoreSettings | None = None, num_proc: int = 0) -> Scores:
    """Score a file of predictions against a file of gold rationales; each is jsonl, json, csv, tsv or Parquet.

    Predictions with ``rationales`` are instances, and are read as they are.

    Args:
        gold: rows with ``id``, ``tokens`` or ``text``, and ``rationale``; also ``label``.
        predictions: rows with ``id`` and ``rationale``, ``scores`` or ``quotes``; also ``label``, ``probabilities``.
        settings: how they are scored.
        num_proc: see `score`.

    Raises:
        DataError: bad data, with file and line; at most ten faults, and their number.
    """
    rows, lines = _read_rows(gold)
    annotations, texts, changes = _convert(lambda: make_annotations(rows), rows, lines, gold)
    names = sorted({str(row["classification"]) for row in annotations if "classification" in row})
    folder = Path(tempfile.mkdtemp(prefix="eraser-hub-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)  # the scores read the files' digests
    corpus, instances = folder / "gold", folder / "predictions.jsonl"
    _write_corpus(corpus, annotations, names or [NO_LABEL])
    converted = _make_predictions(predictions, texts, labelled=bool(names))
    if converted is None:
        instances = predictions
    else:
        made, further = converted
        changes += further
        lines_of_json = (json.dumps({name: row[name] for name in READ if name in row}) + "\n" for row in made)
        instances.write_text("".join(lines_of_json), encoding="utf-8")
    try:
        scores = score(ScoredSplit(corpus, SPLIT), instances, settings, num_proc)
    except DataError as error:
        raise _rename(error, {corpus / f"{SPLIT}.jsonl": gold, instances: predictions}) from None
    # no run wrote the temporary file of instances, so nothing is known of its run
    known = [note for note in scores.notes if converted is None or not note.startswith(f"{instances.name}: no ")]
    notes = [] if names else ["labels: none in the gold, so labels and probabilities of predictions are not scored"]
    return replace(scores, notes=[*notes, *describe_notes(changes), *known])


def _read_rows(path: Path) -> tuple[list[dict[str, Any]], list[int]]:
    """Return the rows of a file and their lines; lists in the cells of a CSV are parsed."""
    is_text = path.name.endswith((".csv", ".tsv"))
    rows, lines = [], []
    for row in open_file(path).rows():
        cells = dict(row.cells)
        if is_text:
            cells = {name: parse_literal(cell) if isinstance(cell, str) else cell for name, cell in cells.items()}
        if row.key is not None:
            cells.setdefault("id", row.key)
        rows.append(cells)
        lines.append(row.number)
    if not rows:
        raise DataError("expected at least one row, found none", rule="empty", file=path)
    return rows, lines


def _convert(make: Any, rows: Sequence[Mapping[str, Any]], lines: Sequence[int], path: Path) -> Any:
    """Call ``make``, and name the file and line of each row at fault.

    Raises:
        DataErrors: the rows at fault.
    """
    try:
        return make()
    except InputError as error:
        places = {get_id(row) or str(at): line for at, (row, line) in enumerate(zip(rows, lines, strict=True))}
        errors = [
            DataError(
                issue.message,
                rule=issue.rule,  # type: ignore[arg-type]
                file=path,
                line=places.get(issue.id or ""),
                instance=issue.id,
                field=issue.field or None,
            )
            for issue in error.errors
        ]
        raise_all(errors)
        raise


def _write_corpus(folder: Path, annotations: Sequence[Mapping[str, Any]], names: Sequence[str]) -> None:
    folder.mkdir()
    corpus = {"name": "gold", "labels": list(names)}
    (folder / "corpus.yaml").write_text(yaml.safe_dump(corpus, allow_unicode=True), encoding="utf-8")
    with (
        open(folder / "docs.jsonl", "w", encoding="utf-8") as documents,
        open(folder / f"{SPLIT}.jsonl", "w", encoding="utf-8") as file,
    ):
        for row in annotations:
            for one in row["documents"]:
                documents.write(json.dumps({"docid": one["docid"], "document": one["text"]}) + "\n")
            record = {"annotation_id": row["annotation_id"], "query": "", "evidences": row["evidences"]}
            record["classification"] = str(row.get("classification", names[0]))
            record["docids"] = [one["docid"] for one in row["documents"]]
            file.write(json.dumps(record) + "\n")


def _make_predictions(
    path: Path, texts: Mapping[str, PlainText], labelled: bool
) -> tuple[list[dict[str, Any]], Counter[str]] | None:
    """Return the instances of plain predictions, and notes; None if the file holds instances."""
    rows, lines = _read_rows(path)
    if "rationales" in rows[0] or "annotation_id" in rows[0]:
        return None
    instances, notes = _convert(lambda: make_instances(rows, texts, list(texts)), rows, lines, path)
    if not labelled:
        for instance in instances:
            instance.pop("classification", None)
            instance.pop("classification_scores", None)
    return instances, notes


def _rename(error: DataError, files: Mapping[Path, Path]) -> DataError:
    """Return an error whose files are those that the user named; lines are equal."""
    for each in (error, *getattr(error, "errors", ())):
        if each.file is not None:
            each.file = files.get(Path(each.file), each.file)
    return error
