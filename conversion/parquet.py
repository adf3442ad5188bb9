"""Parquet files for the Hub's viewer, its deduplication, and every release of datasets since 3.6.

- zstd; one row group per batch; page index on: the viewer reads pages instead of whole groups
- content-defined chunking: an upload after a small change sends only the changed chunks
- no ``huggingface`` key in the metadata: datasets 3.6 does not know the feature names of newer versions. The card's
  ``dataset_info`` has the features in a form that all of them read
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from os.path import commonprefix
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq

from eraser_hub.records.files import compute_file_digest

pc: Any = pyarrow.compute  # its functions are made when it is imported, unseen by type checkers

COMPRESSION_LEVEL, LONG_TEXT_COMPRESSION_LEVEL, LONG_TEXT_BYTES = 3, 5, 24 << 10
SAMPLE_ROWS, NEIGHBOURS, SHORT_TEXT_BYTES = 200, 100, 64
ROW_GROUP_ROWS = 20_000


@dataclass(frozen=True, slots=True)
class FileFacts:
    """Facts of one written Parquet file.

    Attributes:
        num_rows: number of rows.
        num_bytes: bytes of the rows in Arrow, the num_bytes of datasets.
        file_bytes: bytes of the file.
        sha256: SHA-256 of the file.
    """

    num_rows: int
    num_bytes: int
    file_bytes: int
    sha256: str


def choose_writer_options(sample: pa.Table | pa.RecordBatch) -> dict[str, Any]:
    """Return the keywords of pyarrow's ParquetWriter, with encodings chosen by a sample of the rows.

    - Strings that share a prefix with their neighbour (ids in order) are stored as differences.
    - Other strings that rarely repeat are stored with their lengths apart, which compresses better.
    - Repeated strings are stored by dictionary: a document that many rows share is stored once in a row group.
    - Integers are stored as differences.
    - Minimum and maximum are stored for short columns only: those of texts would be whole texts.

    The level of compression costs the most time. The release's .tar.gz has a header and padding for each document. With
    documents of a few KiB the lower level gives smaller files than the release (size ratio: movies 0.90; boolq 0.997
    without the column ``rationale``, which the release does not have, 1.03 with it). Articles need the higher level
    (evidence_inference 0.96, with the lower level 1.008).
    """
    dictionary: list[str] = []
    encoding: dict[str, str] = {}
    bounded: list[str] = []
    levels: dict[str, int] = {}
    for path, column in _iterate_leaves(sample.slice(0, SAMPLE_ROWS)):
        values = column.slice(0, SAMPLE_ROWS)
        if pa.types.is_dictionary(values.type):
            dictionary.append(path)
            values = values.dictionary
            length = pc.sum(pc.binary_length(values)).as_py() or 0
        elif pa.types.is_string(values.type):
            values = values.drop_null()
            length = pc.sum(pc.binary_length(values)).as_py() or 0
            short = length <= SHORT_TEXT_BYTES * max(len(values), 1)
            # the prefixes that the first few share with the one before; of characters, not of paths
            texts = values[:NEIGHBOURS].to_pylist()
            shared = sum(len(commonprefix(pair)) for pair in itertools.pairwise(texts))  # noqa: RUF071
            if short and shared / max(len(texts) - 1, 1) * len(values) > 0.3 * length:
                encoding[path] = "DELTA_BYTE_ARRAY"
            elif pc.count_distinct(values).as_py() > 0.7 * len(values):
                encoding[path] = "DELTA_LENGTH_BYTE_ARRAY"
            else:
                dictionary.append(path)
            if short and "." not in path:
                bounded.append(path)
        elif pa.types.is_int32(values.type):
            length = 0
            encoding[path] = "DELTA_BINARY_PACKED"
            bounded.append(path)
        else:
            length = 0
            dictionary += [path] if not pa.types.is_boolean(values.type) else []
            bounded += [path] if "." not in path else []
        levels[path] = LONG_TEXT_COMPRESSION_LEVEL if length > LONG_TEXT_BYTES * len(values) else COMPRESSION_LEVEL
    return {
        "compression": "zstd",
        "compression_level": levels,
        "use_dictionary": dictionary,
        "column_encoding": encoding,
        "dictionary_pagesize_limit": 8 << 20,
        "write_statistics": bounded,
        "write_page_index": True,
        "use_content_defined_chunking": True,
        # Parquet names all of these types itself, and readers should not see the dictionaries
        "store_schema": False,
    }


def _iterate_leaves(rows: pa.Table | pa.RecordBatch) -> Iterator[tuple[str, pa.Array]]:
    """Yield (path, values) of each column that Parquet stores."""
    columns = zip(rows.schema.names, rows.columns, strict=True)
    waiting = [(name, c.combine_chunks() if isinstance(c, pa.ChunkedArray) else c) for name, c in columns][::-1]
    while waiting:
        path, values = waiting.pop()
        if pa.types.is_list(values.type):
            waiting.append((f"{path}.list.element", pc.list_flatten(values)))
        elif pa.types.is_struct(values.type):
            fields = [(f"{path}.{of.name}", pc.struct_field(values, [place])) for place, of in enumerate(values.type)]
            waiting += fields[::-1]
        else:
            yield path, values


def write_parquet(path: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch | pa.Table]) -> FileFacts:
    """Write batches as row groups and return the facts of the file.

    Args:
        path: the file; an existing one is replaced.
        schema: the schema of the file.
        batches: the rows; columns may be dictionary-encoded, which the file does not show.
    """
    schema = schema.remove_metadata()
    num_rows = num_bytes = 0
    path.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        writer: pq.ParquetWriter | None = None
        thread: ThreadPoolExecutor | None = None
        writing: Future[None] | None = None
        for batch in itertools.chain(batches, [None]):
            if batch is None and writer is not None:
                break
            if batch is None:  # `Schema.empty_table` imports pandas, see `arrays`
                table = pa.Table.from_arrays([pa.nulls(0, column.type) for column in schema], schema=schema)
            else:
                table = pa.Table.from_batches([batch]) if isinstance(batch, pa.RecordBatch) else batch
            if writer is None or thread is None:
                writer = stack.enter_context(
                    pq.ParquetWriter(path, table.schema.remove_metadata(), **choose_writer_options(table))
                )
                thread = stack.enter_context(ThreadPoolExecutor(1))
            if writing is not None:
                writing.result()
            # compression runs outside of the interpreter's lock, while the next batch is made
            writing = thread.submit(writer.write_table, table, row_group_size=ROW_GROUP_ROWS)
            num_rows += table.num_rows
            num_bytes += table.nbytes
            for _, values in _iterate_leaves(table):
                if pa.types.is_dictionary(values.type):  # counted as if the values were repeated, not encoded
                    sizes = pc.binary_length(values.dictionary).take(values.indices)
                    num_bytes += (pc.sum(sizes).as_py() or 0) + 4 * len(values) - values.nbytes
        if writing is not None:
            writing.result()
    return FileFacts(num_rows, num_bytes, path.stat().st_size, compute_file_digest(path))
