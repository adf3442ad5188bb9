"""Reader of Parquet, with the label names that `datasets` writes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow.parquet as pq

from eraser_hub.conversion.built import read_rows, wrap_parquet_errors
from eraser_hub.conversion.importing.reader import Reader, SourceRow, find_class_names
from eraser_hub.records.errors import DataError, show


class Parquet(Reader):
    """Reader of a table."""

    suffixes = (".parquet",)

    def rows(self) -> Iterator[SourceRow]:
        """Read the rows, numbered from 1."""
        rows = (row for table in read_rows([self.path]) for row in table.to_pylist())
        return (SourceRow(number, None, row) for number, row in enumerate(rows, 1))

    def classes(self) -> Mapping[str, tuple[str, ...]]:
        """Return the names that `datasets` wrote into the file's schema."""
        from datasets import Features

        path = self.path
        with wrap_parquet_errors(path):
            schema = pq.read_schema(path)
        if len(set(schema.names)) < len(schema.names):
            raise DataError(f"expected each column once, found {show(schema.names, 200)}", file=path)
        if b"huggingface" not in (schema.metadata or {}):
            return {}
        try:
            return dict(find_class_names(Features.from_arrow_schema(schema)))
        except Exception:  # features of an unknown version of datasets: use the numbers as labels
            return {}
