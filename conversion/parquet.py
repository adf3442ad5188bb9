"""Parquet files as the Hub's viewer, its deduplication and every release of datasets since 3.6 read them best.

- zstd, and a row group per batch, with a page index: the viewer reads pages in place of whole groups
- content-defined chunking: an upload after a small change sends the changed chunks alone
- the features of `datasets` in the metadata, in the form of lists that 3.6 and 5.2 both know: ClassLabel has its names
  in ``load_dataset("parquet", ..)``, where no card is read
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq

pc: Any = pyarrow.compute  # its functions are made when it is imported, unseen by type checkers
OPTIONS: dict[str, Any] = {
    "compression": "zstd",
    "compression_level": 3,
    "dictionary_pagesize_limit": 64 << 20,  # a document of many rows is stored once in a row group
    "write_page_index": True,
    "use_content_defined_chunking": True,
    "store_schema": False,  # Parquet names all of these types itself, and readers need not see dictionaries
}


class ParquetFacts(NamedTuple):
    """Numbers of a written file: its rows, and their bytes in Arrow (the ``num_bytes`` of datasets)."""

    num_examples: int
    num_bytes: int


def write_parquet(
    path: Path,
    schema: pa.Schema,
    tables: Iterable[pa.Table],
    label_names: Mapping[str, Sequence[str]] | None = None,
) -> ParquetFacts:
    """Write tables as row groups of a file, and return its numbers.

    Args:
        path: the file; its folder is made.
        schema: its columns; those of a table may be encoded as dictionaries, which the file does not show.
        tables: the rows; without any the file has no row.
        label_names: column -> names of the classes, of ClassLabel columns; None writes no features.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    metadata = {}
    if label_names is not None:
        info = {"info": {"features": {field.name: describe_feature(field, label_names) for field in schema}}}
        metadata = {"huggingface": json.dumps(info)}
    num_rows = num_bytes = 0
    writer: pq.ParquetWriter | None = None
    try:
        for table in tables:
            # the writer takes its schema from the first table, whose columns may be dictionaries
            writer = writer or pq.ParquetWriter(path, table.schema.remove_metadata(), **OPTIONS)
            writer.write_table(table.replace_schema_metadata(), row_group_size=max(table.num_rows, 1))
            num_rows += table.num_rows
            num_bytes += sum(_count_bytes(chunk) for column in table.columns for chunk in column.chunks)
        writer = writer or pq.ParquetWriter(path, schema.remove_metadata(), **OPTIONS)
        writer.add_key_value_metadata(metadata)
    finally:
        if writer is not None:
            writer.close()
    return ParquetFacts(num_rows, num_bytes)


def describe_feature(field: pa.Field, label_names: Mapping[str, Sequence[str]]) -> Any:
    """Return a column as `datasets.Features.from_dict` reads it; a list is a list of one, as before version 4."""
    if field.name in label_names:
        return {"names": list(label_names[field.name]), "_type": "ClassLabel"}
    return _describe_type(field.type)


def _describe_type(kind: pa.DataType) -> Any:
    if pa.types.is_list(kind):
        return [_describe_type(kind.value_type)]
    if pa.types.is_struct(kind):
        return {field.name: _describe_type(field.type) for field in kind}
    return {"dtype": "float32" if kind == pa.float32() else str(kind), "_type": "Value"}


def _count_bytes(values: pa.Array) -> int:
    """Return the bytes of an array in Arrow, as if its dictionaries were written out."""
    if pa.types.is_dictionary(values.type):
        sizes = pc.binary_length(values.dictionary).take(values.indices)
        return (pc.sum(sizes).as_py() or 0) + 4 * len(values)
    if pa.types.is_list(values.type):
        return 4 * len(values) + _count_bytes(values.flatten())
    if pa.types.is_struct(values.type):
        return sum(map(_count_bytes, values.flatten()))
    return int(values.nbytes)
