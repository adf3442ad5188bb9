"""Reader of JSON lines: one object per line."""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Iterator

from eraser_hub.conversion.importing.reader import Reader, SourceRow
from eraser_hub.conversion.readers import parse_strict_object
from eraser_hub.records.readers import read_line_batches


class JsonLines(Reader):
    """Reader of one object per line."""

    suffixes = (".jsonl", ".ndjson")

    def rows(self) -> Iterator[SourceRow]:
        """Read one row per line; skip a byte order mark at the start."""
        for batch in read_line_batches(self.path):
            for number, line in zip(batch.numbers, batch.lines, strict=True):
                line = line.removeprefix(BOM_UTF8) if number == 1 else line
                yield SourceRow(number, None, parse_strict_object(line, file=self.path, number=number))
