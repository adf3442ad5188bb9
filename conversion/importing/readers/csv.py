"""Reader of CSV and TSV: a header, then one record per row."""

from __future__ import annotations

from collections.abc import Iterator

from eraser_hub.conversion.importing.reader import Reader, SourceRow, describe_separator
from eraser_hub.records.errors import DataError, show
from eraser_hub.records.lines import read_csv_records


class Csv(Reader):
    """Reader of a header and records, which may span lines."""

    suffixes = (".csv", ".tsv")

    def rows(self) -> Iterator[SourceRow]:
        """Read the rows, each with its first line."""
        path = self.path
        header: list[str] = []
        separator = "\t" if path.suffix == ".tsv" else ","
        for line, fields, _ in read_csv_records(path, "excel-tab" if path.suffix == ".tsv" else "excel"):
            if not header:
                header = fields
                if len(set(header)) < len(header):
                    message = f"expected each column once, found {show(header, 200)}"
                    raise DataError(message, rule="key-twice", file=path, line=line)
            elif len(fields) != len(header):
                message = f"expected {len(header)} fields, found {len(fields)}{describe_separator(header, separator)}"
                raise DataError(message, rule="length", file=path, line=line)
            else:
                yield SourceRow(line, None, dict(zip(header, fields, strict=True)))
