"""Predictions and references that come as Arrow tables: their buffers become the flat arrays, without a Python loop.

Both functions return the columns of `inputs.Predictions` or `inputs.References` as a dict, or None where a column has
a type or a null that the flat arrays do not know; rows are then taken apart one by one, and what is wrong is told there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

SCORES = {
    "full": "classification_scores",
    "comprehensiveness": "comprehensiveness_classification_scores",
    "sufficiency": "sufficiency_classification_scores",
    "null": "null_classification_scores",
}
ERASED = ("comprehensiveness", "sufficiency")
TEXT_AT_ONCE = 1 << 22


class _Unknown(Exception):
    """A type or a null that the flat arrays do not know."""


def _one(column: Any) -> Any:
    """A column as one array."""
    array = column.combine_chunks() if hasattr(column, "combine_chunks") else column
    if hasattr(array, "chunks"):  # a ChunkedArray of several chunks stays chunked where they would not fit one
        import pyarrow as pa

        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
    return array


def _is_list(kind: Any) -> bool:
    import pyarrow.types as t

    return t.is_list(kind) or t.is_large_list(kind) or t.is_fixed_size_list(kind)


def _sizes(array: Any) -> np.ndarray:
    """Lengths of lists, -1 for null."""
    import pyarrow.compute as pc

    if not _is_list(array.type):
        raise _Unknown
    return pc.fill_null(pc.list_value_length(array), -1).to_numpy(zero_copy_only=False).astype(np.int64)


def _field(structs: Any, name: str) -> Any:
    """A field of a struct array, null where the struct is; None where there is no such field."""
    import pyarrow.compute as pc
    import pyarrow.types as t

    if not t.is_struct(structs.type):
        raise _Unknown
    if structs.type.get_field_index(name) < 0:
        return None
    return pc.struct_field(structs, name)


def _no_nulls(array: Any) -> Any:
    if array.null_count:
        raise _Unknown
    return array


def _integers(array: Any) -> np.ndarray:
    import pyarrow.types as t

    if array is None or not t.is_integer(array.type) or t.is_uint64(array.type):
        raise _Unknown
    return _no_nulls(array).to_numpy(zero_copy_only=False).astype(np.int64)


def _numbers(array: Any, nulls: bool = False) -> np.ndarray:
    import pyarrow as pa
    import pyarrow.types as t

    if nulls and t.is_null(array.type):
        return np.full(len(array), np.nan)
    if not (t.is_floating(array.type) or t.is_integer(array.type)):
        raise _Unknown
    if not nulls:
        _no_nulls(array)
    elif array.null_count:
        array = array.cast(pa.float64(), safe=False)
    return array.to_numpy(zero_copy_only=False).astype(np.float64)


def _strings(array: Any) -> tuple[list[str], np.ndarray]:
    """A column of strings (or integers): the distinct ones, and each row's place among them; -1 for null."""
    import pyarrow as pa
    import pyarrow.types as t

    if t.is_null(array.type):
        return [], np.full(len(array), -1, dtype=np.int64)
    if t.is_dictionary(array.type):
        array = array.dictionary_decode()
    if t.is_integer(array.type):
        array = array.cast(pa.string())
    if not (t.is_string(array.type) or t.is_large_string(array.type) or t.is_string_view(array.type)):
        raise _Unknown
    coded = array.dictionary_encode()
    places = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    return coded.dictionary.to_pylist(), places


def _ids(array: Any) -> list[str]:
    import pyarrow as pa
    import pyarrow.types as t

    if t.is_integer(array.type):
        array = array.cast(pa.string())
    if not (t.is_string(array.type) or t.is_large_string(array.type)):
        raise _Unknown
    return _no_nulls(array).to_pylist()


def _scores(array: Any, n: int, labels: dict[str, int]) -> list[tuple[int, np.ndarray]]:
    """The columns of a struct of label: probability, each with its label's place; a NaN that was given is infinite."""
    import pyarrow.types as t

    if array is None or t.is_null(array.type):
        return []
    if not t.is_struct(array.type):
        raise _Unknown
    columns = []
    for index in range(array.type.num_fields):
        name = array.type.field(index).name
        column = _field(array, name)
        values = _numbers(column, nulls=True)
        given = ~column.is_null().to_numpy(zero_copy_only=False)
        values[given & np.isnan(values)] = np.inf
        columns.append((labels.setdefault(name, len(labels)), values))
    return columns


def _matrix(columns: list[tuple[int, np.ndarray]], n: int, labels: dict[str, int]) -> np.ndarray:
    out = np.full((n, len(labels)), np.nan)
    for place, values in columns:
        out[:, place] = values
    return out


def predictions_from_arrow(table: Any) -> dict[str, Any] | None:
    """A table of ERASER instances (a row each) as the columns of `inputs.Predictions`."""
    try:
        return _predictions(table)
    except _Unknown:
        return None


def _predictions(table: Any) -> dict[str, Any]:
    n = table.num_rows
    names = set(table.column_names)

    def column(name: str) -> Any:
        return _one(table.column(name)) if name in names else None

    out: dict[str, Any] = {"ids": _ids(column("annotation_id")) if "annotation_id" in names else _refuse()}
    rationales = column("rationales")
    absent = np.full(n, -1, dtype=np.int64)
    empty, nothing = np.zeros(0, dtype=np.int64), np.zeros(0)
    out["rationales"] = absent if rationales is None else _sizes(rationales)
    items = None if rationales is None else rationales.flatten()
    if items is None or not len(items):
        out |= {"instance": empty, "doc": empty, "docids": [], "hard": empty, "start": empty, "end": empty}
        out |= {"soft": empty, "soft_scores": nothing, "sentence": empty, "sentence_scores": nothing}
    else:
        m = len(_no_nulls(items))
        out["instance"] = np.repeat(np.arange(n), np.maximum(out["rationales"], 0))
        docids = _field(items, "docid")
        out["docids"], out["doc"] = _strings(_no_nulls(docids) if docids is not None else _refuse())
        out["hard"], spans = _list(_field(items, "hard_rationale_predictions"), m)
        out["start"] = empty if spans is None else _integers(_field(_no_nulls(spans), "start_token"))
        out["end"] = empty if spans is None else _integers(_field(_no_nulls(spans), "end_token"))
        for name, key in (("soft", "soft_rationale_predictions"), ("sentence", "soft_sentence_predictions")):
            out[name], values = _list(_field(items, key), m)
            out[f"{name}_scores"] = nothing if values is None else _numbers(values)
    classification = column("classification")
    labels: list[str] = []
    out["classification"] = absent
    if classification is not None:
        import pyarrow.types as t

        if t.is_integer(classification.type):
            raise _Unknown
        labels, out["classification"] = _strings(classification)
    codes = {label: code for code, label in enumerate(labels)}
    parts = {name: (_scores(column(where), n, codes), n) for name, where in SCORES.items()}
    flips = column("tokens_to_flip")
    out["tokens_to_flip"] = np.full(n, np.nan) if flips is None else _numbers(flips, nulls=True)
    if flips is not None and np.isnan(out["tokens_to_flip"]).sum() != flips.null_count:
        raise _Unknown
    for kind, where, sizes in (
        ("threshold", "thresholded_scores", "thresholds"),
        ("draw", "random_rationales", "draws"),
    ):
        given = column(where)
        out[sizes], entries = _list(given, n)
        if kind == "threshold":
            out["threshold"] = nothing if entries is None else _numbers(_field(_no_nulls(entries), "threshold"))
        for side in ERASED:
            scores = None if entries is None else _field(_no_nulls(entries), SCORES[side])
            size = 0 if entries is None else len(entries)
            parts[f"{kind}_{side}"] = (_scores(scores, size, codes), size)
    out |= {name: _matrix(columns, size, codes) for name, (columns, size) in parts.items()}
    out["labels"] = list(codes)
    return out


def _refuse() -> Any:
    raise _Unknown


def _list(array: Any, n: int) -> tuple[np.ndarray, Any]:
    """Sizes and values of a list column; absent or all null: -1 everywhere and None."""
    import pyarrow.types as t

    if array is None or t.is_null(array.type):
        return np.full(n, -1, dtype=np.int64), None
    sizes = _sizes(array)
    values = array.flatten()
    if not len(values):
        return sizes, None
    return sizes, values


def references_from_arrow(table: Any, label_names: Sequence[str] | None) -> dict[str, Any] | None:
    """A table of dataset rows as the columns of `inputs.References`.

    Args:
        label_names: names of the integers in ``classification``; without, they are kept as "\\0NUMBER".
    """
    try:
        return _references(table, label_names)
    except _Unknown:
        return None


def _references(table: Any, label_names: Sequence[str] | None) -> dict[str, Any]:
    import pyarrow.types as t

    n = table.num_rows
    names = set(table.column_names)

    def column(name: str) -> Any:
        return _one(table.column(name)) if name in names else None

    out: dict[str, Any] = {"ids": _ids(column("annotation_id")) if "annotation_id" in names else _refuse()}
    label = column("classification")
    if label is None:
        out["labels"], out["classification"] = list(label_names or ()), np.full(n, -1, dtype=np.int64)
    elif t.is_integer(label.type):
        codes = label.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        if label_names is None:
            numbers, out["classification"] = np.unique(codes, return_inverse=True)
            out["labels"] = [f"\0{number}" for number in numbers.tolist()]
            out["classification"] = np.where(codes < 0, -1, out["classification"])
        else:
            if codes.size and not (codes.min() >= -1 and codes.max() < len(label_names)):
                raise _Unknown
            out["labels"], out["classification"] = list(label_names), codes
    else:
        out["labels"], out["classification"] = _strings(label)
        if label_names is not None and not set(out["labels"]) <= set(label_names):
            raise _Unknown
    docs: dict[str, int] = {}

    def coded(array: Any) -> np.ndarray:
        words, places = _strings(_no_nulls(array) if array is not None else _refuse())
        return np.array([*(docs.setdefault(word, len(docs)) for word in words), -1], dtype=np.int64)[places]

    empty = np.zeros(0, dtype=np.int64)
    sizes, documents = _list(column("documents"), n)
    if documents is None:
        out |= dict.fromkeys(("document_instance", "document", "tokens", "sentences"), empty)
        out |= {"first_sentence": empty, "sentence_tokens": empty}
    else:
        out["document_instance"] = np.repeat(np.arange(n), np.maximum(sizes, 0))
        out["document"] = coded(_field(documents, "docid"))
        text = _field(documents, "text")
        out["tokens"], out["sentences"], out["sentence_tokens"] = count_texts(
            _no_nulls(text) if text is not None else _refuse()
        )
        out["first_sentence"] = np.cumsum(out["sentences"]) - out["sentences"]
    sizes, groups = _list(column("evidences"), n)
    out["group_instance"] = empty if groups is None else np.repeat(np.arange(n), np.maximum(sizes, 0))
    sizes, evidences = (empty, None) if groups is None else _list(groups, len(groups))
    out["group"] = empty if evidences is None else np.repeat(np.arange(sizes.size), np.maximum(sizes, 0))
    if evidences is None:
        out |= dict.fromkeys(("doc", "start", "end", "start_sentence", "end_sentence"), empty)
    else:
        evidences = _no_nulls(evidences)
        out["doc"] = coded(_field(evidences, "docid"))
        out["start"] = _integers(_field(evidences, "start_token"))
        out["end"] = _integers(_field(evidences, "end_token"))
        for name in ("start_sentence", "end_sentence"):
            values = _field(evidences, name)
            if values is None or t.is_null(values.type):
                out[name] = np.full(len(evidences), -1, dtype=np.int64)
            else:
                out[name] = _integers(values.fill_null(-1))
    out["docids"] = list(docs)
    return out


def count_texts(texts: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(tokens, sentences) of each document of a string array, and the tokens of each sentence: a line with a token.

    The bytes are looked at, a few megabytes at a time; no string is made.
    """
    import pyarrow.types as t

    if not (t.is_string(texts.type) or t.is_large_string(texts.type)):
        raise _Unknown
    kind = np.int64 if t.is_large_string(texts.type) else np.int32
    n = len(texts)
    tokens, sentences = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    buffers = texts.buffers()
    if not n or buffers[2] is None:
        return tokens, sentences, np.zeros(0, dtype=np.int64)
    sizes: list[np.ndarray] = []
    offsets = np.frombuffer(buffers[1], dtype=kind)[texts.offset : texts.offset + n + 1].astype(np.int64)
    data = np.frombuffer(buffers[2], dtype=np.uint8)
    begin = 0
    while begin < n:
        stop = max(begin + 1, int(np.searchsorted(offsets, offsets[begin] + TEXT_AT_ONCE, side="right")) - 1)
        own = offsets[begin : stop + 1] - offsets[begin]
        piece = data[offsets[begin] : offsets[stop]]
        line_end = piece == 10
        blank = line_end | (piece == 32)
        first = ~blank
        first[1:] &= blank[:-1]
        heads = own[:-1][own[:-1] < own[1:]]
        first[heads] = ~blank[heads]  # a document's first byte follows no other
        at = np.flatnonzero(first)
        bounds = np.searchsorted(at, own)
        tokens[begin:stop] = np.diff(bounds)
        if at.size:
            line = np.searchsorted(np.flatnonzero(line_end), at)
            opens = np.ones(at.size, dtype=bool)
            opens[1:] = line[1:] != line[:-1]
            opens[bounds[:-1][bounds[:-1] < bounds[1:]]] = True
            sentences[begin:stop] = np.diff(np.concatenate([[0], np.cumsum(opens)])[bounds])
            sizes.append(np.diff(np.flatnonzero(opens), append=at.size))
        begin = stop
    return tokens, sentences, np.concatenate(sizes) if sizes else np.zeros(0, dtype=np.int64)
