"""Counts of a language model's quotes: their status and coverage, and its answers to changed questions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from eraser_hub.schema.instance import CONSISTENCY_FIELD, QUOTES_FIELD

from .cells import Row, as_number
from .issues import Issues
from .rows import CellReader
from .statistics_builder import ScoreInfo, Statistics, StatisticsBuilder

# change of the question -> (the score, True if the label has to change)
CONSISTENCY_KINDS = {
    "redacted": ("label_flip_redacted", True),
    "removed": ("label_flip_removed", True),
    "random": ("label_flip_random", True),
    "alone": ("label_kept_alone", False),
}
SCORES: ScoreInfo = {
    **dict.fromkeys(("in_text", "exact"), (True, 0.0, 1.0)),
    **dict.fromkeys(("normalised", "fuzzy", "ambiguous"), (None, 0.0, 1.0)),
    **dict.fromkeys(("invented", "instances_with_invented"), (False, 0.0, 1.0)),
    **dict.fromkeys(("quotes_per_instance", "quote_length"), (None, 0.0, None)),
    "coverage": (None, 0.0, 1.0),
    "answered": (True, 0.0, 1.0),
    **{key: (None if kind == "random" else True, 0.0, 1.0) for kind, (key, _) in CONSISTENCY_KINDS.items()},
}
STATUSES = ("exact", "normalised", "fuzzy", "ambiguous", "not_found", "empty")
ONE_STATUS, ONE_KIND = f"one of {', '.join(STATUSES)}", f"one of {', '.join(CONSISTENCY_KINDS)}, each once"
LABEL_BESIDE = f"a label beside {CONSISTENCY_FIELD}"


class Quotes:
    """Quotes of one instance, checked.

    Args:
        row: the instance.
        name: its id.
        issues: the issues to extend.
    """

    def __init__(self, row: Row, name: str, issues: Issues) -> None:
        self.reader = reader = CellReader(row, name, issues)
        self.statuses: list[str] = []
        self.spans: list[tuple[str, int, int]] = []
        self.consistency = dict[str, bool]()
        self.answered = reader.read_answered()
        quotes = reader.read_list(row.get(QUOTES_FIELD), QUOTES_FIELD, "a list of quotes")
        if quotes and not self.answered:
            reader.add(QUOTES_FIELD, "expected none, because the outcome is no answer", "constant")
        for at, quote in enumerate(quotes):
            self._add_quote(quote if isinstance(quote, Mapping) else {}, f"{QUOTES_FIELD}[{at}]")
        consistency = reader.read_list(row.get(CONSISTENCY_FIELD) or (), CONSISTENCY_FIELD, "a list of answers")
        for at, one in enumerate(consistency):
            self._add_consistency(
                one if isinstance(one, Mapping) else {}, f"{CONSISTENCY_FIELD}[{at}]", row.get("classification")
            )

    def _add_quote(self, quote: Row, where: str) -> None:
        expect, status, docid = self.reader.expect, quote.get("status"), quote.get("docid")
        known = isinstance(status, str) and status in STATUSES
        if not expect(known, f"{where}.status", ONE_STATUS, status, "choice"):
            return
        self.statuses.append(str(status))
        if status in ("not_found", "empty"):
            return
        places = [quote.get("start_token"), quote.get("end_token")]
        start, end = (as_number(place) for place in places)
        sound = start is not None and end is not None and 0 <= start < end and start % 1 == end % 1 == 0
        if expect(sound, where, "0 <= start_token < end_token", places, "span-order") and expect(
            isinstance(docid, str | int), f"{where}.docid", "a document's id", docid
        ):
            self.spans.append((str(docid), int(start or 0), int(end or 0)))

    def _add_consistency(self, one: Row, where: str, label: object) -> None:
        """Add the answer to a changed question: True if the score of its kind counts it."""
        kind = one.get("kind")
        known = isinstance(kind, str) and kind in CONSISTENCY_KINDS and kind not in self.consistency
        if not self.reader.expect(known, f"{where}.kind", ONE_KIND, kind, "choice"):
            return
        if self.reader.expect(isinstance(label, str), "classification", LABEL_BESIDE, label, "label-missing"):
            self.consistency[str(kind)] = (one.get("classification") == label) != CONSISTENCY_KINDS[str(kind)][1]

    def count_covered(self, sizes: Mapping[str, int]) -> int:
        """Count the tokens that the quotes cover, in documents of these sizes."""
        tokens = set[tuple[str, int]]()
        for docid, start, end in self.spans:
            if docid not in sizes:
                self.reader.add(f"{QUOTES_FIELD}.docid", f"no document {docid!r}", "document-unknown")
            elif end > sizes[docid]:
                message = f"expected at most {sizes[docid]} (the document's tokens), found {end}"
                self.reader.add(f"{QUOTES_FIELD}.end_token", message, "span-bounds")
            else:
                tokens.update((docid, at) for at in range(start, end))
        return len(tokens)

    def count(self, sizes: Mapping[str, int]) -> dict[str, tuple[float, float]]:
        """Return key -> the instance's sum and count; scores are the ratios of these over all instances.

        Args:
            sizes: the number of tokens of each document; {}: no coverage.
        """
        statuses = {status: self.statuses.count(status) for status in STATUSES}
        n, placed, invented = len(self.statuses) - statuses["empty"], len(self.spans), statuses["not_found"]
        length = sum(end - start for _, start, end in self.spans)
        covered = self.count_covered(sizes) if sizes else 0
        return {
            "in_text": (placed, n),
            **{key: (statuses[key], n) for key in ("exact", "normalised", "fuzzy", "ambiguous")},
            "invented": (invented, n),
            "instances_with_invented": (invented > 0, self.answered),
            "quotes_per_instance": (n, self.answered),
            "quote_length": (length, placed),
            "coverage": (covered, sum(sizes.values())),
            "answered": (self.answered, 1),
            **{
                key: (self.consistency.get(kind, False), kind in self.consistency)
                for kind, (key, _) in CONSISTENCY_KINDS.items()
            },
        }


def find_lacking(rows: Iterable[Row]) -> dict[str, str]:
    """Return the scores of changed questions that no (valid) instance was asked, each with the missing field."""
    kinds = {one["kind"] for row in rows for one in row.get(CONSISTENCY_FIELD) or ()}
    field = f"such {CONSISTENCY_FIELD}" if kinds else CONSISTENCY_FIELD
    return {key: field for kind, (key, _) in CONSISTENCY_KINDS.items() if kind not in kinds}


def quote_statistics(
    rows: Mapping[str, Row], sizes: Mapping[str, Mapping[str, int]], issues: Issues
) -> tuple[Statistics, dict[str, object]]:
    """Compute the statistics of instances' quotes, and the counts beside the scores.

    Args:
        rows: id -> instance.
        sizes: id -> the number of tokens of each of its documents; other instances have no coverage.
        issues: the issues to extend.
    """
    each, statuses = list[dict[str, tuple[float, float]]](), Counter[str]()
    for name, row in rows.items():
        quotes = Quotes(row, name, issues)
        each.append(quotes.count(sizes.get(name, {})))
        statuses.update(quotes.statuses)
    builder = StatisticsBuilder(len(rows))
    for key in each[0] if each else ():
        builder.add_pairs(key, [pairs[key] for pairs in each])
    empty = statuses["empty"]
    return builder.statistics(list(rows)), {"quotes": statuses.total() - empty, "empty": empty}
