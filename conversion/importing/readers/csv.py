"""Reader of CSV and TSV: a header, then one record per row."""

from __future__ import annotations

from collections.abc import Iterator

from eraser_hub.conversion.importing.reader import Reader, SourceRow
from eraser_hub.records.errors import DataError, show
from eraser_hub.records.lines import read_csv_records

SEPARATORS = {",": "','", "\t": "tab", ";": "';'", "|": "'|'"}


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
                if len(header) == 1 and (hint := _describe_separator(header, separator)):
                    message = f"expected columns, separated by {SEPARATORS[separator]}, found one column{hint}"
                    raise DataError(message, rule="length", file=path, line=line)
                if len(set(header)) < len(header):
                    message = f"expected each column once, found {show(header, 200)}"
                    raise DataError(message, rule="key-twice", file=path, line=line)
            elif len(fields) != len(header):
                message = f"expected {len(header)} fields, found {len(fields)}"
                message += _describe_separator(header, separator)
                raise DataError(message, rule="length", file=path, line=line)
            else:
                yield SourceRow(line, None, dict(zip(header, fields, strict=True)))


def _describe_separator(header: list[str], separator: str) -> str:
    """Describe the separator that a header seems to have instead of ``separator``; "" if it has no other."""
    counts = {other: sum(name.count(other) for name in header) for other in SEPARATORS if other != separator}
    other = max(counts, key=counts.__getitem__)
    if counts[other] < len(header):
        return ""
    remedy = (
        "write it with tabs (.tsv) or commas (.csv)"
        if other in ";|"
        else f"name the file {'.tsv' if other == chr(9) else '.csv'}"
    )
    return f" (its header {show(separator.join(header), 80)} seems to be separated by {SEPARATORS[other]}: {remedy})"
