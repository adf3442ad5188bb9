"""Reader of CSV and TSV: a header, then one record per row."""

from __future__ import annotations

from collections.abc import Iterator

from eraser_hub.conversion.importing.reader import Reader, SourceRow, describe_separator
from eraser_hub.conversion.readers import NotCsvError, read_csv_records, read_utf8_lines
from eraser_hub.records.errors import DataError, show


class Csv(Reader):
    """Reader of a header and records, which may span lines."""

    suffixes = (".csv", ".tsv")

    def rows(self) -> Iterator[SourceRow]:
        """Read the rows, each with its first line."""
        path = self.path
        header: list[str] = []
        separator = "\t" if path.suffix == ".tsv" else ","
        for line, fields, _ in self._read_records():
            if not header:
                header = fields
                if len(set(header)) < len(header):
                    message = f"expected each column once, found {show(header, 200)}"
                    raise DataError(message, file=path, line=line)
            elif len(fields) != len(header):
                message = f"expected {len(header)} fields, found {len(fields)}{describe_separator(header, separator)}"
                raise DataError(message, file=path, line=line)
            else:
                yield SourceRow(line, None, dict(zip(header, fields, strict=True)))

    def _read_records(self) -> Iterator[tuple[int, list[str], str]]:
        """Yield the records; an error of the first says whether another separator parts its columns."""
        is_tsv = self.path.suffix == ".tsv"
        try:
            yield from read_csv_records(self.path, "excel-tab" if is_tsv else "excel")
        except NotCsvError as error:
            if error.line != 1:
                raise
            header = next(read_utf8_lines(self.path), "")
            hint = describe_separator([header], "\t" if is_tsv else ",")
            raise DataError(error.message + hint, file=error.file, line=error.line) from None
