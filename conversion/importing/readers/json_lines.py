"""Reader of JSON lines: one object per line."""

from __future__ import annotations

from collections.abc import Iterator

from eraser_hub.conversion.importing.reader import Reader, SourceRow
from eraser_hub.records.json_lines import strict_object
from eraser_hub.records.lines import batches_of_lines


class JsonLines(Reader):
    """Reader of one object per line."""

    suffixes = (".jsonl", ".ndjson")

    def rows(self) -> Iterator[SourceRow]:
        """Read one row per line."""
        for batch in batches_of_lines(self.path):
            for number, line in zip(batch.numbers, batch.lines, strict=True):
                yield SourceRow(number, None, strict_object(line, file=self.path, number=number))
