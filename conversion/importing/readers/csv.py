"""Reader of CSV and TSV: a header, then one record per row."""

from __future__ import annotations

import csv
from collections.abc import Iterator

from eraser_hub.conversion.importing.reader import Reader, SourceRow
from eraser_hub.records.errors import DataError, show
from eraser_hub.records.lines import read_utf8_lines

LONGEST_CELL = 1 << 27


class Csv(Reader):
    """Reader of a header and records, which may span lines."""

    suffixes = (".csv", ".tsv")

    def rows(self) -> Iterator[SourceRow]:
        """Read the rows, each with its first line."""
        path = self.path
        limit = csv.field_size_limit(LONGEST_CELL)  # of the process: restored below
        reader = csv.reader(read_utf8_lines(path), "excel-tab" if path.suffix == ".tsv" else "excel", strict=True)
        header: list[str] = []
        before = 0
        try:
            for fields in reader:
                line, before = before + 1, reader.line_num
                if not header:
                    header = fields
                    if len(set(header)) < len(header):
                        message = f"expected each column once, found {show(header, 200)}"
                        raise DataError(message, rule="key-twice", file=path, line=line)
                elif len(fields) != len(header):
                    message = f"expected {len(header)} fields, found {len(fields)}"
                    raise DataError(message, rule="length", file=path, line=line)
                else:
                    yield SourceRow(line, None, dict(zip(header, fields, strict=True)))
        except csv.Error as error:
            raise DataError(f"is no CSV: {error}", rule="syntax", file=path, line=reader.line_num) from None
        finally:
            csv.field_size_limit(limit)
