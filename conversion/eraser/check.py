"""What may be wrong in the rows of a built ``eraser``, and the known quirks of the releases."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import combinations

import numpy as np
import pyarrow as pa

from eraser_hub.conversion.arrays import get_bytes, make_numbers, make_strings
from eraser_hub.conversion.built import BuiltDataset, read_rows
from eraser_hub.conversion.checks import ALL, CheckResult, Quirk
from eraser_hub.metrics.tokens import find_token_starts, split_tokens
from eraser_hub.records.errors import show

from .checked import compute_offsets
from .configs import EraserConfig
from .documents import SCHEMA as DOCUMENTS
from .documents import Documents, open_documents
from .rows import FlatRows, derive, flatten_rows
from .schema import SCHEMA

MAIN_SPLITS = ("train", "validation", "test")

CLIPPED = Quirk("the release lacks the text's first or last character; tokens win")
QUIRKS = {
    ("movies", "train", "no evidence"): Quirk("the release gives one review no evidence", 1),
    ("boolq", ALL, "documents shared by validation and test"): Quirk("the release's splits share 172 documents", 172),
    ("cose", "*", "clipped text"): CLIPPED,
    ("cose_simplified", "*", "clipped text"): CLIPPED,
    ("*", "*", "no evidence"): Quirk("the annotation marks nothing"),
    ("*", "*", "empty spans"): Quirk("count as spans, as in the reference scorer"),
    ("*", "*", "repeated spans"): Quirk("two people chose the same span, or the release lists it twice"),
    ("*", "*", "sentence offsets"): Quirk("the release's best guess; scores of sentences read them"),
    ("*", "*", "shared with an extra split"): Quirk("a file beyond train, val and test annotates documents again"),
}


def check_config(facts: EraserConfig, built: BuiltDataset, config: str, result: CheckResult) -> None:
    """Add what is wrong with spans, texts and derived columns, and the documents and ids that splits share.

    A split with missing values, which have been told before, is left out.

    Raises:
        DataError: a file cannot be read, or ``documents/CONFIG.parquet`` has a document twice.
    """
    documents, path = open_documents(built, config), built.folder / "documents" / f"{config}.parquet"
    sizes = ("num_tokens", "num_sentences")
    columns = [[table[name].to_numpy() for name in sizes] for table in read_rows([path], sizes, kinds=DOCUMENTS)]
    if not np.array_equal(np.hstack(columns).T, documents.counts(np.arange(len(documents.names)))):
        result.add(config, ALL, "documents", ["their numbers of tokens or sentences"])
    used, ids = dict[str, np.ndarray](), dict[str, set[str]]()
    for split, files in built.splits(config).items():
        add = partial(result.add, config, split)
        if any((one.config, one.split, one.kind) == (config, split, "missing values") for one in result.findings):
            continue
        numbers, positions, sentences, others = [np.zeros(0, int)], [np.zeros(0, int)], 0, 0
        ids[split] = set()
        for rows in read_rows(files, SCHEMA.names, kinds=SCHEMA):
            ids[split].update(rows["annotation_id"].to_pylist())
            positions.append(rows["position"].to_numpy())
            flat, rows = _check_places(rows, documents, add)
            numbers.append(np.unique(flat.documents))
            given, differing = _check_values(flat, rows, documents, facts, add)
            sentences, others = sentences + given, others + differing
        if 2 * others > sentences:
            add("sentence offsets of most spans", [f"{others:,} of {sentences:,}"], others)
        values, often = np.unique(np.concatenate(positions), return_counts=True)
        add("position", (f"{value} is negative or stands twice" for value in values[(often > 1) | (values < 0)]))
        used[split] = np.unique(np.concatenate(numbers))
    for one, other in combinations(used, 2):
        pair = [name for name in MAIN_SPLITS if name in (one, other)]
        kind = f"documents shared by {pair[0]} and {pair[1]}" if len(pair) == 2 else "shared with an extra split"
        shared = documents.take(np.intersect1d(used[one], used[other]))[0]
        result.add(config, ALL, kind, (f"{one} and {other}: {show(name)}" for name in shared.to_pylist()))
        if len(pair) == 2:
            result.add(config, ALL, f"ids shared by {pair[0]} and {pair[1]}", map(show, sorted(ids[one] & ids[other])))


def _check_places(rows: pa.Table, documents: Documents, add: Callable[..., None]) -> tuple[FlatRows, pa.Table]:
    """Check documents and the places of spans; return the rows that are sound, flattened and as they are."""
    flat, ids = flatten_rows(rows, documents), rows["annotation_id"].to_pylist()
    texts = rows["documents"].combine_chunks().flatten().field("text")
    wrong = np.flatnonzero(flat.documents < 0)
    if len(wrong) or not texts.equals(documents.take(flat.documents)[1]):
        pairs = enumerate(zip(flat.documents.tolist(), texts, strict=True))
        wrong = np.array(
            [place for place, (at, text) in pairs if at < 0 or text.as_py() != documents.texts[at].as_py()], int
        )
    unequal = flat.document_rows[wrong]
    add("document texts", (f"{show(ids[row])}: not as in documents/" for row in unequal))
    keys, often = np.unique(np.stack([flat.document_rows, flat.documents]), axis=1, return_counts=True)
    add("document names", (f"{show(ids[row])}: a document twice" for row in keys[0, (often > 1) & (keys[1] >= 0)]))
    lengths = documents.counts(flat.documents)[:, 0] if len(flat.documents) else np.zeros(0, int)
    is_sound = ~np.isin(flat.span_rows, unequal)
    lost = np.flatnonzero(is_sound & (flat.slots < 0))
    add("evidence documents", (f"{span} lies in no document of the row" for span in _describe(flat, ids, lost)))
    outside = np.flatnonzero(is_sound & (flat.slots >= 0) & ~flat.are_inside(lengths))
    sizes = lengths[flat.slots[outside]]
    spans = zip(_describe(flat, ids, outside), sizes, strict=True)
    add("spans", (f"{span} of {size} tokens" for span, size in spans))
    unsound = np.concatenate([unequal, flat.span_rows[lost], flat.span_rows[outside]])
    if not len(unsound):
        return flat, rows
    rows = rows.take(make_numbers(np.setdiff1d(np.arange(len(rows)), unsound)))
    return flatten_rows(rows, documents), rows


def _check_values(
    flat: FlatRows, rows: pa.Table, documents: Documents, facts: EraserConfig, add: Callable[..., None]
) -> tuple[int, int]:
    """Check evidence texts, derived columns and sentence offsets.

    Returns:
        the number of spans with sentence offsets, and of those whose tokens lie in other sentences.
    """
    ids, names, texts = rows["annotation_id"].to_pylist(), facts.label_names, flat.spans.field("text").to_pylist()
    marked = np.isin(np.arange(len(rows)), flat.span_rows)
    add("no evidence", (show(ids[row]) for row in np.flatnonzero(~marked)))
    add("empty spans", _describe(flat, ids, np.flatnonzero(flat.start == flat.end)))
    order = np.lexsort((flat.end, flat.start, flat.slots))
    keys = np.stack([flat.slots, flat.start, flat.end])[:, order]
    add("repeated spans", _describe(flat, ids, order[1:][(keys[:, 1:] == keys[:, :-1]).all(axis=0)]))
    # spans' texts are their tokens, joined by blanks
    chosen, places = np.unique(flat.documents[flat.slots], return_inverse=True)
    strings = documents.take(chosen)[1]
    tokens = [split_tokens(text) for text in strings.to_pylist()]
    for span, (document, start, end) in enumerate(
        zip(places.tolist(), flat.start.tolist(), flat.end.tolist(), strict=True)
    ):
        expected = " ".join(tokens[document][start:end])
        if texts[span] != expected:
            is_clipped = texts[span] in (expected[1:], expected[:-1], expected[1:-1])
            words = f"{show(ids[flat.span_rows[span]])}: text {show(texts[span], 50)}, tokens {show(expected, 50)}"
            add("clipped text" if is_clipped else "evidence text", [words])
    labels = zip(rows["classification"].to_pylist(), rows["label"].to_pylist(), strict=True)
    label = make_strings([names[at] if 0 <= at < len(names) else name for at, name in labels])
    counts = documents.counts(flat.documents)
    for name, values in {
        "label": label,
        **derive(flat.slots, flat.start, flat.end, texts, flat.offsets, counts),
    }.items():
        column = rows[name].combine_chunks()
        if not column.equals(values.cast(column.type)):
            pairs = enumerate(zip(column.to_pylist(), values.to_pylist(), strict=True))
            add(name, (show(ids[row]) for row, (found, expected) in pairs if found != expected))
    # the sentences of the first and the last token
    starts = find_token_starts(*get_bytes(strings))
    opened = compute_offsets(starts.opens_sentence)  # sentences that open before each token
    first, stop = (flat.spans.field(key).to_numpy() for key in ("start_sentence", "end_sentence"))
    given = np.flatnonzero(((first != -1) | (stop != -1)) & (flat.start < flat.end))
    before = starts.first_token[places[given]]
    expected_first = opened[before + flat.start[given] + 1] - opened[before] - 1
    expected_stop = opened[before + flat.end[given]] - opened[before]
    other = (first[given] != expected_first) | (stop[given] != expected_stop)
    spans = zip(
        _describe(flat, ids, given[other]), given[other], expected_first[other], expected_stop[other], strict=True
    )
    lines = (f"{span}: [{first[at]}, {stop[at]}), tokens lie in [{begin}, {end})" for span, at, begin, end in spans)
    add("sentence offsets", lines)
    return len(given), int(other.sum())


def _describe(flat: FlatRows, ids: Sequence[str], spans: np.ndarray) -> Iterator[str]:
    """Yield a description of each span."""
    docids = flat.spans.field("docid")
    for span in spans.tolist():
        where = f"{show(docids[span].as_py(), 40)} [{flat.start[span]}, {flat.end[span]})"
        yield f"{show(ids[int(flat.span_rows[span])], 40)}: {where}"
