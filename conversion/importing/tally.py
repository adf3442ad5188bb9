"""What an import took, changed and left out: counts, and the first places of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from eraser_hub.records.errors import DataError

MAX_PLACES = 3
WORDS = {
    "rejected": "tasks left out: rejected",
    "ignored": "tasks left out: ignored",
    "cancelled": "tasks left out: cancelled",
    "not annotated": "tasks left out: nobody has annotated them",
    "recipe": "rows left out by the recipe",
    "no tokens": "rows left out: no token",
    "no label": "rows left out: no label",
    "ties": "rows left out: their labels tie",
    "duplicates": "rows left out: this person has annotated the text before",
    "replaced": "earlier annotations left out: replaced by a later one of the same person",
    "several labels": "people who chose several labels of a text, of which none is taken",
    "labels differ": "rows with several labels, of which the most frequent is taken",
    "unmatched": "rows with other numbers of labels and marks: nobody knows whose marks are whose",
    "no marks": "rows without a mark, kept without evidence",
    "silent": "times that a person marked nothing where others did",
    "missing": "pairs of person and text that are missing",
    "quotes": "quotes found",
    "repeated": "quotes that stand in the text several times, put at the first",
    "other case": "quotes that stand in the text in another case",
    "unfound": "quotes left out: not in the text",
    "unlocated": "times that none of a person's quotes was found in a text: those marks are unknown",
    "widened": "marks widened to whole tokens",
    "empty": "empty marks left out",
    "other marks": "marks left out: other labels than those of evidence",
    "relations": "relations left out",
    "utf-16": "marks whose offsets count UTF-16 units, converted",
    "shared": "rows with the text of an earlier row, whose document they share",
}


class Tally:
    """Counts by the keys of `WORDS`.

    Attributes:
        counts: how often each was met.
        places: where it was first.
        place: file and line of the row that is read now.
    """

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.places: dict[str, list[str]] = {}
        self.place = ""

    def add(self, key: str, count: int = 1, detail: str = "", place: str = "") -> None:
        """Count a thing of the current row, or of another place, with a detail in words."""
        if count:
            self.counts[key] += count
            places, shown = self.places.setdefault(key, []), f"{place or self.place}{detail}"
            if len(places) < MAX_PLACES and shown not in places:
                places.append(shown)

    def lines(self) -> Iterator[str]:
        """Yield a line for each thing that was counted."""
        for key, words in WORDS.items():
            if count := self.counts[key]:
                places = self.places.get(key, [])
                shown = ", ".join([*places, ".."] if len(places) < count else places)
                yield f"{count:>7,}  {words}{f' ({shown})' if places else ''}"


@contextmanager
def locate(file: str | Path | None, line: int | None) -> Iterator[None]:
    """Add file and line to a DataError of the block."""
    try:
        yield
    except DataError as error:
        raise error.at(file=file, line=line) from None


def find_majority_label(labels: Mapping[str, int], tally: Tally) -> str | None:
    """Return the most frequent label; None, counted, if several tie or there is none."""
    ranked = Counter(labels).most_common()
    if not ranked:
        tally.add("no label")
        return None
    if tied := [label for label, count in ranked if count == ranked[0][1]][1:]:
        tally.add("ties", detail=f": {', '.join([ranked[0][0], *tied])}")
        return None
    tally.add("labels differ", len(ranked) > 1)
    return ranked[0][0]
