"""Predictions and references that come as Arrow tables: their buffers become the flat arrays, without a Python loop.

Both functions return None where a column has a type or a null that the flat arrays do not know; rows are then taken
apart one by one, and what is wrong is told there (`flatten_rows`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as t

from .fields import (
    ANSWERED,
    ERASED,
    HARD_FIELD,
    INSTANCE,
    LEAVE_ONE_OUT,
    LIST_FIELDS,
    NUMBER_FIELDS,
    OUTCOME_FIELD,
    SCORE_FIELDS,
    SOFT_FIELDS,
    Format,
)
from .flat import Predictions, References
from .offences import InputError, Offences, cut
from .strangers import Strangers, misspelt, nearly
from .tokens import text_sizes

TEXT_AT_ONCE = 1 << 22
Columns = list[tuple[int, np.ndarray]]  # the place of a label, its probabilities
Flat = dict[str, list[str] | np.ndarray]


class _Unknown(Exception):
    """A type or a null that the flat arrays do not know."""


def _one(column: pa.ChunkedArray) -> pa.Array:
    """A column as one array."""
    array = column.combine_chunks() if hasattr(column, "combine_chunks") else column
    if hasattr(array, "chunks"):  # a ChunkedArray of several chunks stays chunked where they would not fit one
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
    return array


def _array(column: pa.Array) -> np.ndarray:
    values: np.ndarray = column.to_numpy(zero_copy_only=False)
    return values


def _is_list(kind: pa.DataType) -> bool:
    return bool(t.is_list(kind) or t.is_large_list(kind) or t.is_fixed_size_list(kind))


def _sizes(array: pa.Array) -> np.ndarray:
    """Lengths of lists, -1 for null."""
    if not _is_list(array.type):
        raise _Unknown
    lengths = pc.list_value_length(array)  # pyright: ignore[reportAttributeAccessIssue]  # made at import
    return _array(pc.fill_null(lengths, -1)).astype(np.int64)


def _field(structs: pa.StructArray, name: str) -> pa.Array | None:
    """A field of a struct array, null where the struct is; None where there is no such field."""
    if not t.is_struct(structs.type):
        raise _Unknown
    if structs.type.get_field_index(name) < 0:
        if any(field.name == name for field in structs.type):
            raise InputError(f"expected each field once, found {name!r} twice", "key-twice")
        return None
    return pc.struct_field(structs, name)  # pyright: ignore[reportAttributeAccessIssue]


def _no_nulls(array: pa.Array) -> pa.Array:
    if array.null_count:
        raise _Unknown
    return array


def _integers(array: pa.Array | None) -> np.ndarray:
    if array is None or not t.is_integer(array.type) or t.is_uint64(array.type):
        raise _Unknown
    return _array(_no_nulls(array)).astype(np.int64)


def _from_nullable(array: pa.Array) -> np.ndarray:
    """Integers, -1 for null; of any width, also one that holds no -1."""
    if not t.is_integer(array.type) or t.is_uint64(array.type):
        raise _Unknown
    return _array(array.cast(pa.int64()).fill_null(-1))


def _numbers(array: pa.Array, nulls: bool = False) -> np.ndarray:
    if nulls and t.is_null(array.type):
        return np.full(len(array), np.nan)
    if not (t.is_floating(array.type) or t.is_integer(array.type)):
        raise _Unknown
    if not nulls:
        _no_nulls(array)
    elif array.null_count:
        array = array.cast(pa.float64(), safe=False)
    return _array(array).astype(np.float64)


def _strings(array: pa.Array) -> tuple[list[str], np.ndarray]:
    """A column of strings (or integers): the distinct ones, and each row's place among them; -1 for null."""
    if t.is_null(array.type):
        return [], np.full(len(array), -1, dtype=np.int64)
    if t.is_dictionary(array.type):
        array = array.dictionary_decode()
    if t.is_integer(array.type):
        array = array.cast(pa.string())
    if not (t.is_string(array.type) or t.is_large_string(array.type) or t.is_string_view(array.type)):
        raise _Unknown
    coded = array.dictionary_encode()
    places = _array(coded.indices.fill_null(-1)).astype(np.int64)
    return coded.dictionary.to_pylist(), places


def _ids(array: pa.Array | None) -> list[str]:
    names = _there(array)
    if t.is_integer(names.type):
        names = names.cast(pa.string())
    if not (t.is_string(names.type) or t.is_large_string(names.type)):
        raise _Unknown
    words: list[str] = _no_nulls(names).to_pylist()
    return words


def _scores(array: pa.Array | None, labels: dict[str, int]) -> Columns:
    """The columns of a struct of label: probability, each with its label's place; a NaN that was given is infinite."""
    if array is None or t.is_null(array.type):
        return []
    if not t.is_struct(array.type):
        raise _Unknown
    columns = []
    for index in range(array.type.num_fields):
        name = array.type.field(index).name
        column = _there(_field(array, name))
        values = _numbers(column, nulls=True)
        present = ~_array(column.is_null())
        values[present & np.isnan(values)] = np.inf
        columns.append((labels.setdefault(name, len(labels)), values))
    return columns


def _matrix(columns: Columns, n: int, labels: dict[str, int]) -> np.ndarray:
    out = np.full((n, len(labels)), np.nan)
    for place, values in columns:
        out[:, place] = values
    return out


def predictions_from_arrow(
    table: pa.Table, offences: Offences | None = None, strangers: Strangers | None = None
) -> Predictions | None:
    """A table of ERASER instances, a row each; None where rows must be taken apart one by one.

    Args:
        offences: told of misspelt columns.
        strangers: counts those that the format does not know.
    """
    try:
        predictions = Predictions(**_predictions(table))  # type: ignore[arg-type]
    except _Unknown:
        return None
    for path, near in _strangers(table.schema, INSTANCE):
        if near is None and strangers is not None:
            strangers[path] += table.num_rows
        elif near is not None and offences is not None:
            offences.say("prediction", 0, cut(path)[1:-1], misspelt(near), "key-unknown")
    return predictions


def _strangers(fields: Iterable[pa.Field], known: Format, path: str = "") -> Iterator[tuple[str, str | None]]:
    """(path, the known field that it nearly is) of each unknown field, at any depth."""
    for field in fields:
        if field.name not in known:
            yield f"{path}{field.name}", nearly(field.name, known)
        elif inner := known[field.name]:
            kind = field.type
            while _is_list(kind):
                kind = kind.value_type
            if t.is_struct(kind):
                yield from _strangers(kind, inner, f"{path}{field.name}.")


def references_from_arrow(table: pa.Table, label_names: Sequence[str] | None) -> References | None:
    """A table of dataset rows; None where rows must be taken apart one by one.

    Args:
        label_names: names of the integers in ``classification``; without, they are kept as "\\0NUMBER".
    """
    try:
        return References(**_references(table, label_names))  # type: ignore[arg-type]
    except _Unknown:
        return None


def _column(table: pa.Table, name: str) -> pa.Array | None:
    return _one(table.column(name)) if name in table.column_names else None


def _there(array: pa.Array | None) -> pa.Array:
    """The array, which must be there."""
    if array is None:
        raise _Unknown
    return array


def _list(array: pa.Array | None, n: int) -> tuple[np.ndarray, pa.Array | None]:
    """Sizes and values of a list column; absent or all null: -1 everywhere and None."""
    if array is None or t.is_null(array.type):
        return np.full(n, -1, dtype=np.int64), None
    sizes = _sizes(array)
    values = array.flatten()
    return sizes, values if len(values) else None


def _predictions(table: pa.Table) -> Flat:
    n = table.num_rows
    out: Flat = {"ids": _ids(_column(table, "annotation_id"))}
    outcome = _column(table, OUTCOME_FIELD)
    words, which = ([], np.full(n, -1, dtype=np.int64)) if outcome is None else _strings(outcome)
    out["answered"] = np.array([*(word == ANSWERED for word in words), True], dtype=np.int64)[which]
    out |= _rationales(_column(table, "rationales"), n)
    label = _column(table, "classification")
    labels: list[str] = []
    out["classification"] = np.full(n, -1, dtype=np.int64)
    if label is not None:
        if t.is_integer(label.type):
            raise _Unknown
        labels, out["classification"] = _strings(label)
    codes = {name: code for code, name in enumerate(labels)}
    parts = {name: (_scores(_column(table, where), codes), n) for name, where in SCORE_FIELDS.items()}
    out["numbers"] = np.column_stack([_number(table, number.path, n) for number in NUMBER_FIELDS.values()])
    out["leave_one_out"], values = _list(_column(table, LEAVE_ONE_OUT), n)
    out["leave_one_out_scores"] = np.zeros(0) if values is None else _numbers(values)
    for name, (where, entry) in LIST_FIELDS.items():
        out[name], entries = _list(_column(table, where), n)
        if entry == "threshold":
            thresholds = None if entries is None else _there(_field(_no_nulls(entries), "threshold"))
            out["threshold"] = np.zeros(0) if thresholds is None else _numbers(thresholds)
        for side in ERASED:
            scores = None if entries is None else _field(_no_nulls(entries), SCORE_FIELDS[side])
            parts[f"{entry}_{side}"] = (_scores(scores, codes), 0 if entries is None else len(entries))
    out |= {name: _matrix(columns, size, codes) for name, (columns, size) in parts.items()}
    return out | {"labels": list(codes)}


def _number(table: pa.Table, path: Sequence[str], n: int) -> np.ndarray:
    """A number of each of n instances, or of an object in it; NaN where there is none."""
    array = _column(table, path[0])
    if array is not None and not t.is_null(array.type):
        array = _field(array, path[1]) if len(path) > 1 else array
    if array is None:
        return np.full(n, np.nan)
    values = _numbers(array, nulls=True)
    if np.isnan(values).sum() != array.null_count:
        raise _Unknown
    return values


def _rationales(rationales: pa.Array | None, n: int) -> Flat:
    """Documents, spans and soft scores of n instances' rationales."""
    sizes, items = _list(rationales, n)
    m = 0 if items is None else len(_no_nulls(items))
    out: Flat = {"rationales": sizes, "instance": np.repeat(np.arange(n), np.maximum(sizes, 0) if m else 0)}
    empty = np.zeros(0, dtype=np.int64)
    docids, out["doc"] = ([], empty) if items is None else _strings(_no_nulls(_there(_field(items, "docid"))))
    out["docids"] = docids
    out["hard"], spans = _list(None if items is None else _field(items, HARD_FIELD), m)
    for name in ("start", "end"):
        out[name] = empty if spans is None else _integers(_field(_no_nulls(spans), f"{name}_token"))
    for name, soft in SOFT_FIELDS.items():
        out[name], values = _list(None if items is None else _field(items, soft.field), m)
        out[f"{name}_scores"] = np.zeros(0) if values is None else _numbers(values)
    return out


def _references(table: pa.Table, label_names: Sequence[str] | None) -> Flat:
    n = table.num_rows
    out: Flat = {"ids": _ids(_column(table, "annotation_id"))}
    out["labels"], out["classification"] = _classes(_column(table, "classification"), n, label_names)
    docs: dict[str, int] = {}

    def coded(structs: pa.StructArray) -> np.ndarray:
        words, places = _strings(_no_nulls(_there(_field(structs, "docid"))))
        codes: np.ndarray = np.array([*(docs.setdefault(word, len(docs)) for word in words), -1], dtype=np.int64)[
            places
        ]
        return codes

    empty = np.zeros(0, dtype=np.int64)
    sizes, documents = _list(_column(table, "documents"), n)
    if documents is None:
        out |= dict.fromkeys(("document_instance", "document", "tokens", "sentences"), empty)
        out |= {"first_sentence": empty, "sentence_tokens": empty}
    else:
        out["document_instance"] = np.repeat(np.arange(n), np.maximum(sizes, 0))
        out["document"] = coded(documents)
        tokens, sentences, sentence_tokens = count_texts(_no_nulls(_there(_field(documents, "text"))))
        out |= {"tokens": tokens, "sentences": sentences, "sentence_tokens": sentence_tokens}
        out["first_sentence"] = np.cumsum(sentences) - sentences
    sizes, groups = _list(_column(table, "evidences"), n)
    out["group_instance"] = empty if groups is None else np.repeat(np.arange(n), np.maximum(sizes, 0))
    sizes, evidences = (empty, None) if groups is None else _list(groups, len(groups))
    if evidences is None:
        out |= dict.fromkeys(("group", "doc", "start", "end", "start_sentence", "end_sentence"), empty)
    else:
        out["group"] = np.repeat(np.arange(sizes.size), np.maximum(sizes, 0))
        evidences = _no_nulls(evidences)
        out["doc"] = coded(evidences)
        out["start"] = _integers(_field(evidences, "start_token"))
        out["end"] = _integers(_field(evidences, "end_token"))
        for name in ("start_sentence", "end_sentence"):
            values = _field(evidences, name)
            if values is None or t.is_null(values.type):
                out[name] = np.full(len(evidences), -1, dtype=np.int64)
            else:
                out[name] = _from_nullable(values)
    return out | {"docids": list(docs)}


def _classes(label: pa.Array | None, n: int, label_names: Sequence[str] | None) -> tuple[list[str], np.ndarray]:
    """Labels, and the label of each of n rows."""
    if label is None:
        return list(label_names or ()), np.full(n, -1, dtype=np.int64)
    if not t.is_integer(label.type):
        labels, codes = _strings(label)
        if label_names is not None and not set(labels) <= set(label_names):
            raise _Unknown
        return labels, codes
    codes = _from_nullable(label)
    if label_names is None:
        numbers, places = np.unique(codes, return_inverse=True)
        return [f"\0{number}" for number in numbers.tolist()], np.where(codes < 0, -1, places)
    if codes.size and not (codes.min() >= -1 and codes.max() < len(label_names)):
        raise _Unknown
    return list(label_names), codes


def count_texts(texts: pa.Array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(tokens, sentences) of each document of a string array, and the tokens of each sentence: a line with a token.

    The bytes are looked at, a few megabytes at a time; no string is made.
    """
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
    content = np.frombuffer(buffers[2], dtype=np.uint8)
    begin = 0
    while begin < n:
        stop = max(begin + 1, int(np.searchsorted(offsets, offsets[begin] + TEXT_AT_ONCE, side="right")) - 1)
        bounds = offsets[begin : stop + 1]
        counts = text_sizes(content[bounds[0] : bounds[-1]], bounds - bounds[0])
        tokens[begin:stop], sentences[begin:stop] = counts.tokens, counts.sentences
        sizes.append(counts.sentence_tokens)
        begin = stop
    return tokens, sentences, np.concatenate(sizes)
