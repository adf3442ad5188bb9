"""Integrity checks of a built ``eraser``, and the known quirks of the releases.

Checks of each split, batch by batch: ids are unique, labels are known, spans lie inside their documents, evidence text
equals its tokens, derived columns can be derived again. Checks across splits: train, validation and test share no
document, one id names one text, and the card agrees with the Parquet files.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from eraser_hub.conversion.built import BuiltDataset, read_rows
from eraser_hub.conversion.check_rules import CheckRules, Quirk
from eraser_hub.conversion.checks import Tally, UniqueStrings
from eraser_hub.conversion.offsets import compute_offsets
from eraser_hub.records.errors import show

from . import DATASET
from .flat_rows import FlatRows, get_list_lengths
from .release import ConfigFacts, read_configs
from .rows import derive
from .schema import SCHEMA

pc: Any = pyarrow.compute  # its functions are made when it is imported, unseen by type checkers

MAIN_SPLITS = ("train", "validation", "test")
REQUIRED = tuple(name for name in SCHEMA.names if name != "query_type")  # the columns without nulls

# (config, split, check) -> explanation of a quirk of the release; none of them is repaired
QUIRKS = {
    ("movies", "train", "no evidence"): Quirk("the release gives one review no evidence", 1),
    ("movies", "test", "empty spans"): Quirk("the comprehensive annotation of the test split holds empty spans"),
    ("boolq", "test_comprehensive", "empty spans"): Quirk("the comprehensive annotation holds empty spans"),
    ("fever", "*", "repeated spans"): Quirk("the release lists some sentences twice"),
    ("cose", "*", "clipped text"): Quirk("the release lacks the text's first or last character; tokens win"),
    ("cose_simplified", "*", "clipped text"): Quirk("the release lacks the text's first or last character; tokens win"),
    ("boolq", "all", "documents shared by validation and test"): Quirk("the release's splits share 172 documents", 172),
}
NOTES = {
    "empty spans": "count as spans, as in the reference scorer",
    "no evidence": "the annotation marks nothing",
    "sentence offsets": "sentence offsets are the release's best guess; scores of sentences read them",
    "repeated spans": "the same span more than once in one annotation",
    "shared with an extra split": "a file beyond train, val and test annotates documents of these again",
}


class EraserSplitCheck:
    """Checks of one split; keeps ids, positions, and the name and a hash of every document."""

    def __init__(self, labels: int) -> None:
        self.labels = labels
        self.documents: int | None = 0
        self.rows = self.numbered = self.renumbered = 0
        self.doc_names = pa.array([], pa.string())
        self.doc_hashes = np.zeros(0, np.uint64)
        self._ids = UniqueStrings()
        self._positions: list[np.ndarray] = []
        self._names: list[pa.Array] = []
        self._hashes: list[np.ndarray] = []

    def batch(self, rows: pa.Table, tally: Tally) -> None:
        """Check the next rows, in order."""
        self.rows += rows.num_rows
        self._ids.add(rows["annotation_id"])
        for name in REQUIRED:
            for path, count in _find_nulls(rows[name].combine_chunks(), name):
                tally.add("missing values", count, [f"{path} is null"])
        flat = FlatRows(rows)
        labels = rows["classification"].fill_null(-1).to_numpy()
        bad = np.flatnonzero((labels < 0) | (labels >= self.labels))
        tally.add("labels", len(bad), (f"{show(flat.ids[i])}: label {labels[i]}" for i in bad))
        twice = (f"{flat.ids[row]}: a document twice" for row in flat.doc_twice)
        tally.add("document names", len(flat.doc_twice), twice)
        self._remember_documents(flat)
        spans = self._check_spans(flat, tally)
        self._check_texts(flat, spans, tally)
        self._check_derived(rows, flat, spans, tally)

    def finish(self, tally: Tally) -> None:
        """Run the checks that need the whole split."""
        if 2 * self.renumbered > self.numbered:
            tally.add("sentence offsets of most spans", self.renumbered, tally.examples["sentence offsets"])
        repeated = self._ids.find_repeated()
        tally.add("ids", len(repeated), (f"{show(name)} stands {count} times" for name, count in repeated))
        if self._positions:
            positions = np.concatenate(self._positions)
            values, counts = np.unique(positions, return_counts=True)
            tally.add("position", int((counts > 1).sum()), (f"{value} twice" for value in values[counts > 1]))
            tally.add("position", int((values < 0).sum()), ("a negative one",))
        hashes = np.concatenate(self._hashes) if self._hashes else np.zeros(0, np.uint64)
        codes = pa.chunked_array(self._names, pa.string()).combine_chunks().dictionary_encode()
        numbers = codes.indices.to_numpy(zero_copy_only=False)
        _, first = np.unique(numbers, return_index=True)
        differing = np.unique(numbers[hashes != hashes[first][numbers]])
        words = (f"{show(codes.dictionary[int(number)].as_py())} has two texts" for number in differing)
        tally.add("document texts", len(differing), words)
        self.doc_names, self.doc_hashes = codes.dictionary, hashes[first]
        self.documents = len(self.doc_names)
        self._names, self._hashes, self._positions = [], [], []

    # ------------------------------------------------------------------------------------------------------ one batch

    def _remember_documents(self, flat: FlatRows) -> None:
        # texts with the same tokens are equal, whatever their sentences
        data = (text.replace("\n", " ").encode() for text in flat.texts)
        digests = [int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little") for text in data]
        per_document = np.array(digests, np.uint64)[flat.doc_text]
        codes = flat.docids.cast(pa.string()).dictionary_encode()
        numbers = codes.indices.to_numpy(zero_copy_only=False).astype(np.uint64)
        _, first = np.unique(np.stack([numbers, per_document]), axis=1, return_index=True)
        self._names.append(flat.docids.cast(pa.string()).take(pa.array(first)))
        self._hashes.append(per_document[first])

    def _check_spans(self, flat: FlatRows, tally: Tally) -> np.ndarray:
        """Return the indices of spans that lie inside a document of their row, and count the others."""
        there, inside = flat.span_doc >= 0, flat.find_inside()
        bad = np.flatnonzero(~there)
        lines = (f"{line} lies in no document of the row" for line in _describe(flat, bad))
        tally.add("evidence documents", len(bad), lines)
        outside = np.flatnonzero(there & ~inside)
        lengths = flat.doc_counts[flat.span_doc[outside], 0]
        words = (f"{line} of {length} tokens" for line, length in zip(_describe(flat, outside), lengths, strict=True))
        tally.add("spans", len(outside), words)
        empty = np.flatnonzero(inside & (flat.start == flat.end))
        tally.add("empty spans", len(empty), _describe(flat, empty))
        order = np.lexsort((flat.end, flat.start, flat.span_code, flat.span_row))
        keys = np.stack([flat.span_row, flat.span_code, flat.start, flat.end])[:, order]
        repeats = order[1:][(keys[:, 1:] == keys[:, :-1]).all(axis=0)]
        tally.add("repeated spans", len(repeats), _describe(flat, repeats))
        marked = np.zeros(len(flat.ids), bool)
        marked[flat.span_row] = True
        tally.add("no evidence", int((~marked).sum()), (show(flat.ids[i], 40) for i in np.flatnonzero(~marked)))
        self._check_sentences(flat, np.flatnonzero(inside & (flat.start < flat.end)), tally)
        return np.flatnonzero(inside)

    def _check_sentences(self, flat: FlatRows, spans: np.ndarray, tally: Tally) -> None:
        """Check that sentence offsets are both -1, or those of the span's first and last token."""
        first, stop = flat.start_sentence[spans], flat.end_sentence[spans]
        numbered = (first != -1) | (stop != -1)
        expected = flat.find_sentences(spans)
        differing = np.flatnonzero(numbered & ((first != expected[0]) | (stop != expected[1])))
        self.numbered += int(numbered.sum())
        self.renumbered += len(differing)
        lines = zip(_describe(flat, spans[differing]), differing, strict=True)
        words = (
            f"{line}: sentences [{first[i]}, {stop[i]}), tokens lie in [{expected[0][i]}, {expected[1][i]})"
            for line, i in lines
        )
        tally.add("sentence offsets", len(differing), words)

    @staticmethod
    def _check_texts(flat: FlatRows, spans: np.ndarray, tally: Tally) -> None:
        """Check that evidence text equals its tokens joined by blanks; the release clips a character at either end."""
        for i in spans.tolist():
            text, tokens = flat.span_texts[i], " ".join(flat.get_evidence_tokens(i))
            if text != tokens:
                check = "clipped text" if text in (tokens[1:], tokens[:-1], tokens[1:-1]) else "evidence text"
                words = f"{show(flat.ids[flat.span_row[i]], 40)}: text {show(text, 50)}, tokens {show(tokens, 50)}"
                tally.add(check, 1, [words])

    def _check_derived(self, rows: pa.Table, flat: FlatRows, spans: np.ndarray, tally: Tally) -> None:
        """Check the columns that are derived from documents and evidences."""
        offsets = compute_offsets(np.bincount(flat.doc_row, minlength=rows.num_rows))
        texts = [flat.span_texts[i] for i in spans.tolist()]
        expected = derive(flat.span_doc[spans], flat.start[spans], flat.end[spans], texts, offsets, flat.doc_counts)
        wrong = pc.not_equal(rows["rationale"], expected["rationale"]).fill_null(True)
        self._tally_rows("rationale", wrong.to_numpy(), flat, tally)
        lists, wanted = rows["rationale_positions"].combine_chunks(), expected["rationale_positions"].flatten()
        sizes, wrong = get_list_lengths(wanted), get_list_lengths(lists) != np.diff(offsets)
        if not wrong.any():
            inner = lists.flatten()
            there = get_list_lengths(inner)
            fits = there == sizes
            wrong[flat.doc_row[~fits]] = True
            positions = wanted.flatten().to_numpy()
            values = inner.flatten().fill_null(-1).to_numpy(zero_copy_only=False)[np.repeat(fits, there)]
            wrong[np.repeat(flat.doc_row[fits], sizes[fits])[values != positions[np.repeat(fits, sizes)]]] = True
        self._tally_rows("rationale_positions", wrong, flat, tally)
        for name in ("num_tokens", "num_sentences", "rationale_ratio"):
            column, slack = rows[name].fill_null(0).to_numpy(), 1e-6 if name == "rationale_ratio" else 0.0
            near = np.abs(column - expected[name].to_numpy()) <= slack
            # a NaN equals nothing, so it counts as wrong
            self._tally_rows(name, rows[name].is_valid().to_numpy() & ~near, flat, tally)
        self._positions.append(rows["position"].drop_null().to_numpy())

    @staticmethod
    def _tally_rows(check: str, wrong: np.ndarray, flat: FlatRows, tally: Tally) -> None:
        places = np.flatnonzero(wrong)
        tally.add(check, len(places), (show(flat.ids[i], 40) for i in places))


def _find_nulls(values: pa.Array, path: str) -> Iterator[tuple[str, int]]:
    """Yield (path, count) of the nulls in a column at any depth."""
    if values.null_count:
        yield path, values.null_count
    if pa.types.is_list(values.type):
        yield from _find_nulls(values.flatten(), f"{path}[]")
    elif pa.types.is_struct(values.type):
        for field, below in zip(values.type, values.flatten(), strict=True):
            yield from _find_nulls(below, f"{path}.{field.name}")


def _describe(flat: FlatRows, spans: np.ndarray) -> Iterator[str]:
    """Yield a description of each span."""
    for i in spans.tolist():
        where = f"{show(flat.names[i].as_py(), 40)} [{flat.start[i]}, {flat.end[i]})"
        yield f"{show(flat.ids[flat.span_row[i]], 40)}: {where}"


# -- across splits ----------------------------------------------------------------------------------------------------


def _check_shared_documents(checks: Mapping[str, EraserSplitCheck], tally: Tally) -> None:
    for one, other in combinations(checks, 2):
        common = _find_common(checks[one].doc_names, checks[other].doc_names)
        main = [name for name in MAIN_SPLITS if name in (one, other)]
        tally.add(
            f"documents shared by {main[0]} and {main[1]}" if len(main) == 2 else "shared with an extra split",
            len(common),
            [f"{one} and {other}: {len(common)}, e.g. {show(common[0].as_py())}"] if len(common) else (),
        )
        if len(common):
            left, right = (
                checks[name].doc_hashes[pc.index_in(common, checks[name].doc_names).to_numpy(zero_copy_only=False)]
                for name in (one, other)
            )
            differing = np.flatnonzero(left != right)
            tally.add("document texts", len(differing), (f"{show(common[int(i)].as_py())} differs" for i in differing))


def _find_common(one: pa.Array, other: pa.Array) -> pa.Array:
    return one.filter(pc.is_in(one, other))


def _check_unreferenced(folder: Path, config: str, checks: Mapping[str, EraserSplitCheck], tally: Tally) -> None:
    """Check the documents beside the rows: each occurs once, and no row refers to it."""
    path = folder / "documents" / f"{config}.parquet"
    tally.add("documents beside", int(not path.is_file()), [f"{path}: no such file, which export needs"])
    names = UniqueStrings()
    for batch in read_rows([path] if path.is_file() else [], ("docid",)):
        names.add(batch["docid"])
        docids = batch["docid"].cast(pa.string()).combine_chunks()
        for split, check in checks.items():
            common = _find_common(docids, check.doc_names)
            tally.add("documents beside", len(common), (f"{show(n.as_py())} is one of {split}'s" for n in common))
    repeated = names.find_repeated()
    tally.add("documents beside", len(repeated), (f"{show(name)} stands {n} times" for name, n in repeated))


class EraserRules(CheckRules):
    """The `check` of a built ``eraser``."""

    facts = DATASET
    schema, entry = SCHEMA, ConfigFacts
    quirks = QUIRKS
    notes = NOTES

    def make_split_check(self, built: BuiltDataset, config: str) -> EraserSplitCheck:
        """Return the checks of one split."""
        return EraserSplitCheck(len(read_configs(built)[config].label_names))

    def get_label_names(self, built: BuiltDataset, config: str) -> Mapping[str, Sequence[str]]:
        """Return the label names of the configuration."""
        return {"classification": read_configs(built)[config].label_names}

    def check_all(self, built: BuiltDataset, config: str, checks: Mapping[str, EraserSplitCheck], tally: Tally) -> None:
        """Check the documents that splits share, and those beside the rows."""
        _check_shared_documents(checks, tally)
        _check_unreferenced(built.folder, config, checks, tally)
