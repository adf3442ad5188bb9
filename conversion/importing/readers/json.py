"""Reader of JSON: a list of rows, an object whose values are rows, or JSON lines in a .json file."""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator

from eraser_hub.conversion.importing.reader import Reader, SourceRow
from eraser_hub.conversion.readers import describe_value, parse_strict_value
from eraser_hub.records.errors import DataError
from eraser_hub.records.readers import wrap_read_errors

from .json_lines import JsonLines


class Json(Reader):
    """Reader of a list of rows, an object of rows, or lines."""

    suffixes = (".json",)

    def rows(self) -> Iterator[SourceRow]:
        """Read the rows; those of an object have its keys."""
        path = self.path
        with wrap_read_errors(path):
            data = path.read_bytes().removeprefix(BOM_UTF8)
        first, _, rest = data.partition(b"\n")
        if rest.strip() and first.strip().startswith(b"{") and first.strip().endswith(b"}"):
            yield from JsonLines(path).rows()
            return
        value = parse_strict_value(data, file=path, number=1)
        rows: Iterable[tuple[str | None, object]]
        if isinstance(value, dict):
            by_key = all(isinstance(each, dict) for each in value.values())
            rows = value.items() if by_key else [(None, value)]
        elif isinstance(value, list):
            rows = ((None, each) for each in value)
        else:
            message = f"expected a list of rows, or an object of rows, found {describe_value(value)}"
            raise DataError(message, file=path)
        for number, (key, row) in enumerate(rows, 1):
            if not isinstance(row, dict):
                raise DataError(f"expected an object, found {describe_value(row)}", file=path, line=number)
            yield SourceRow(number, key, row)
