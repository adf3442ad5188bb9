"""A split file as rows: read in its order, then arranged to place rows of one document together.

The arrangement makes the Parquet small. It depends on the files alone, and so does every byte that is written.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from eraser_hub.conversion.arrays import make_numbers, to_numpy
from eraser_hub.conversion.offsets import compute_offsets, sort_distinct
from eraser_hub.records.readers import BATCH_BYTES as LINE_BYTES

from .checked import read_checked
from .configs import EraserConfig
from .documents import Documents
from .rows import DOCIDS_LIST, DOCIDS_NULL, INTEGER_ID, TYPE_ABSENT, NumberedRows, number_rows

SHARD_BYTES = 64 << 20
BATCH_BYTES = 8 << 20


def read_split(path: Path, config: EraserConfig, documents: Documents) -> Iterator[NumberedRows]:
    """Yield the rows of a split file in its order, one run at a time.

    Raises:
        DataError: at the first record that is invalid or repeats an id.
    """
    labels = {name: number for number, name in enumerate(config.label_names)}
    for checked in read_checked(path, labels, documents, {}, LINE_BYTES):
        yield number_rows(checked, labels, inclusive=config.sentence_end_inclusive)


def join_runs(runs: Sequence[NumberedRows]) -> NumberedRows:
    """Return the rows of all runs in one."""
    before = compute_offsets(np.array([run.table.num_rows for run in runs], np.int64)).tolist()
    return NumberedRows(
        pa.concat_tables([run.table for run in runs]).combine_chunks(),
        np.concatenate([run.states for run in runs]),
        np.concatenate([run.sizes for run in runs]),
        {start + place: keys for start, run in zip(before, runs, strict=False) for place, keys in run.kept.items()},
        sum(run.pairs for run in runs),
        sum(run.shares for run in runs),
    )


# -- facts that a row cannot hold -------------------------------------------------------------------------------------


def find_facts(rows: NumberedRows, *, inclusive: bool) -> dict[str, str]:
    """Return the form of most records of a split, for release.json; `find_deviations` lists the others."""
    count, states = len(rows.states), rows.states
    lists, nulls = (int(np.count_nonzero(states & bit)) for bit in (DOCIDS_LIST, DOCIDS_NULL))
    docids = {"absent": count - lists - nulls, "null": nulls, "list": lists}
    return {
        "annotation_id": "integer" if 2 * np.count_nonzero(states & INTEGER_ID) > count else "string",
        "docids": max(docids, key=lambda state: docids[state]),
        "query_type": "absent" if 2 * np.count_nonzero(states & TYPE_ABSENT) > count else "present",
        "sentence_ends": "inclusive" if inclusive else "exclusive",
    }


def find_deviations(
    rows: NumberedRows, order: np.ndarray, facts: dict[str, str], documents: Documents
) -> list[tuple[int, str]]:
    """Return (position, deviation) of each record that its row and the split's facts cannot restore.

    A deviation is JSON, ``{"set": keys and values, "absent": names of missing keys}``. The order is that of the rows.
    """
    usual = {"absent": 0, "null": DOCIDS_NULL, "list": DOCIDS_LIST}[facts["docids"]]
    usual |= INTEGER_ID if facts["annotation_id"] == "integer" else 0
    usual |= TYPE_ABSENT if facts["query_type"] == "absent" else 0
    differs = rows.states != usual
    differs[list(rows.kept)] = True
    out: list[tuple[int, str]] = []
    for place in order[differs[order]].tolist():
        state, kept = int(rows.states[place]), rows.kept.get(place, {})
        row, differing = rows.table.slice(place, 1).to_pylist()[0], state ^ usual
        keys: dict[str, Any] = {}
        absent: list[str] = []
        if differing & INTEGER_ID:
            keys["annotation_id"] = int(row["annotation_id"]) if state & INTEGER_ID else row["annotation_id"]
        if "docids" in kept:
            keys["docids"] = kept["docids"]
        elif differing & (DOCIDS_NULL | DOCIDS_LIST):
            if state & DOCIDS_LIST:
                numbers = make_numbers(np.array(row["documents"], np.int64))
                keys["docids"] = documents.names.take(numbers).to_pylist()
            elif state & DOCIDS_NULL:
                keys["docids"] = None
            else:
                absent.append("docids")
        if differing & state & TYPE_ABSENT:
            absent.append("query_type")
        elif differing & TYPE_ABSENT:
            keys["query_type"] = row["query_type"]
        keys.update({key: value for key, value in kept.items() if key != "docids"})
        if keys or absent:
            out.append((row["position"], json.dumps({"set": keys, "absent": absent})))
    return out


def compute_split_statistics(rows: NumberedRows, documents: Documents, *, released: bool) -> dict[str, Any]:
    """Return the split's figures for the card (see `statistics.SplitStatistics`); None for means over nothing.

    Args:
        rows: the rows of the split.
        documents: the corpus' documents.
        released: count the documents with evidence alone, as the paper's Table 5 does; else all documents of the rows.
    """
    lists = rows.table["documents"].combine_chunks()
    numbers, owner = to_numpy(lists.flatten()), np.repeat(np.arange(len(lists)), np.diff(to_numpy(lists.offsets)))
    marked = np.diff(to_numpy(rows.table["rationale_positions"].combine_chunks().flatten().offsets))
    gold, sizes = (
        np.bincount(owner, weights=each, minlength=len(lists))
        for each in (marked, documents.counts(numbers)[:, 0] * (marked > 0))
    )
    density = gold[gold > 0] / sizes[gold > 0]
    evidences = rows.table["evidences"].combine_chunks().flatten().flatten()
    tokens = to_numpy(evidences.field("end_token")) - to_numpy(evidences.field("start_token"))
    return {
        "marked_rows": int(density.size),
        "unmarked_rows": len(lists) - int(density.size),
        "density_percent": 100 * float(density.mean()) if density.size else None,
        "documents": len(sort_distinct(to_numpy(evidences.field("docid")) if released else numbers)),
        "instances": len(lists),
        "rationale_percent": 100 * rows.shares / rows.pairs if rows.pairs else None,
        "evidences": len(evidences),
        "evidence_length": int(tokens.sum(dtype=np.int64)) / len(evidences) if len(evidences) else None,
    }


# -- the arrangement --------------------------------------------------------------------------------------------------


class Shard(NamedTuple):
    """The rows of one Parquet file.

    Attributes:
        rows: indices of the split's rows, in order.
        batches: bounds of the row groups.
        shared: True if rows share documents; a row group then stores each text once.
    """

    rows: np.ndarray
    batches: list[int]
    shared: bool


def arrange(rows: NumberedRows, documents: Documents) -> list[Shard]:
    """Return the split's rows in shards of about `SHARD_BYTES`, with row groups of about `BATCH_BYTES`.

    Rows are ordered by their first document, and documents by their first occurrence in the file.
    """
    lists = rows.table["documents"].combine_chunks()
    offsets, numbers = to_numpy(lists.offsets), to_numpy(lists.flatten())
    lengths = np.diff(offsets)
    first = np.full(len(lists), -1, np.int64)
    first[lengths > 0] = numbers[offsets[:-1][lengths > 0]]
    _, places, document = np.unique(first, return_index=True, return_inverse=True)
    order = np.argsort(places[document], kind="stable")
    # bytes of each row, as an estimate: its line and its documents
    running = compute_offsets(documents.sizes[numbers])
    weight = (rows.sizes + running[offsets[1:]] - running[offsets[:-1]])[order]
    shards = []
    for begin, end in _find_cuts(weight, SHARD_BYTES):
        chosen = order[begin:end]
        numbers = to_numpy(lists.take(make_numbers(chosen)).flatten())
        batches = [0, *(cut for _, cut in _find_cuts(weight[begin:end], BATCH_BYTES))]
        shards.append(Shard(chosen, batches, len(numbers) > 1.2 * len(sort_distinct(numbers))))
    return shards


def _find_cuts(weight: np.ndarray, most: int) -> list[tuple[int, int]]:
    """Return (begin, end) of nonempty runs of rows of about ``most`` bytes each."""
    if not len(weight):
        return []
    total = np.cumsum(weight)
    pieces = max(1, round(float(total[-1]) / most))
    goals = total[-1] * np.arange(1, pieces) / pieces
    inner = sort_distinct(np.searchsorted(total, goals) + 1)
    edges = [0, *(int(edge) for edge in inner if edge < len(weight)), len(weight)]
    return list(pairwise(edges))
