"""What is counted of a language model's quotes: how they were found, what they cover, and answers without them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .cells import Row, as_list, as_number
from .fields import AGAIN_FIELD, ANSWERED, OUTCOME_FIELD, QUOTES_FIELD
from .offences import Offences, cut
from .pool import Statistics, divide

# what a model was asked again without, with, or by another model -> (the score, whether the label has to change)
AGAIN = {
    "redacted": ("label_flip_redacted", True),
    "removed": ("label_flip_removed", True),
    "random": ("label_flip_random", True),
    "alone": ("label_kept_alone", False),
    "simulated": ("simulatability", False),
}
STATUSES = ("exact", "normalised", "fuzzy", "ambiguous", "not_found", "empty")


class Quotes:
    """What is counted of one instance's quotes.

    Args:
        row: the instance.
        name: its id.
        offences: where what is wrong is told.
    """

    def __init__(self, row: Row, name: str, offences: Offences) -> None:
        self.name, self.offences = name, offences
        self.statuses: list[str] = []
        self.spans: list[tuple[str, int, int]] = []
        outcome = row.get(OUTCOME_FIELD)
        if outcome is not None and not isinstance(outcome, str):
            self._say(OUTCOME_FIELD, f"expected a string, found {cut(outcome)}", "type")
        self.answered = outcome is None or outcome == ANSWERED
        quotes = as_list(row.get(QUOTES_FIELD))
        if quotes is None:
            self._say(QUOTES_FIELD, f"expected a list of quotes, found {cut(row.get(QUOTES_FIELD))}", "type")
        elif quotes and not self.answered:
            self._say(QUOTES_FIELD, "expected none, because the outcome is no answer", "constant")
        for at, quote in enumerate(quotes or ()):
            self._add(quote, f"{QUOTES_FIELD}[{at}]")
        self.again = dict[str, bool]()
        further = as_list(row.get(AGAIN_FIELD) or ())
        if further is None:
            self._say(AGAIN_FIELD, f"expected a list of answers, found {cut(row.get(AGAIN_FIELD))}", "type")
        for at, one in enumerate(further or ()):
            self._add_again(one, f"{AGAIN_FIELD}[{at}]", row.get("classification"))

    def _say(self, field: str, message: str, rule: str) -> None:
        self.offences.say_of("prediction", self.name, field, message, rule)

    def _add(self, quote: Any, where: str) -> None:
        status = quote.get("status") if isinstance(quote, Mapping) else None
        if not isinstance(status, str) or status not in STATUSES:
            self._say(f"{where}.status", f"expected one of {', '.join(STATUSES)}, found {cut(status)}", "choice")
            return
        self.statuses.append(status)
        if status in ("not_found", "empty"):
            return
        start, end = (as_number(quote.get(f"{side}_token")) for side in ("start", "end"))
        if start is None or end is None or not 0 <= start < end or start % 1 or end % 1:
            found = cut([quote.get("start_token"), quote.get("end_token")])
            self._say(where, f"expected 0 <= start_token < end_token, found {found}", "span-order")
            return
        docid = quote.get("docid")
        if not isinstance(docid, str | int):
            self._say(f"{where}.docid", f"expected a document's id, found {cut(docid)}", "type")
            return
        self.spans.append((str(docid), int(start), int(end)))

    def _add_again(self, one: Any, where: str, label: object) -> None:
        """Whether the score of its kind counts this further answer."""
        kind = one.get("kind") if isinstance(one, Mapping) else None
        if not isinstance(kind, str) or kind not in AGAIN or kind in self.again:
            self._say(f"{where}.kind", f"expected one of {', '.join(AGAIN)}, each once, found {cut(kind)}", "choice")
        elif not isinstance(label, str):
            self._say("classification", f"expected a label beside {AGAIN_FIELD}, found {cut(label)}", "label-missing")
        else:
            self.again[kind] = (one.get("classification") == label) != AGAIN[kind][1]

    def covered(self, sizes: Mapping[str, int]) -> int:
        """How many tokens of documents of these sizes the quotes cover."""
        tokens = set[tuple[str, int]]()
        for docid, start, end in self.spans:
            if docid not in sizes:
                self._say(f"{QUOTES_FIELD}.docid", f"no document {docid!r}", "document-unknown")
            elif end > sizes[docid]:
                message = f"expected at most {sizes[docid]} (the document's tokens), found {end}"
                self._say(f"{QUOTES_FIELD}.end_token", message, "span-bounds")
            else:
                tokens.update((docid, at) for at in range(start, end))
        return len(tokens)


# what is summed up per instance
COLUMNS = (
    *STATUSES,
    *["quotes", "placed", "quoted_tokens", "any_invented", "answered", "instances", "covered", "tokens"],
    *(f"{part}_{kind}" for part in ("asked", "counted") for kind in AGAIN),
)


def _finalize(sums: np.ndarray) -> dict[str, np.ndarray]:
    """From sums of `COLUMNS`."""
    column = dict(zip(COLUMNS, np.moveaxis(sums, -1, 0), strict=True))
    parts = {
        "in_text": ("placed", "quotes"),
        **{key: (key, "quotes") for key in ("exact", "normalised", "fuzzy", "ambiguous")},
        "invented": ("not_found", "quotes"),
        "instances_with_invented": ("any_invented", "answered"),
        "quotes_per_instance": ("quotes", "answered"),
        "quote_length": ("quoted_tokens", "placed"),
        "coverage": ("covered", "tokens"),
        "answered": ("answered", "instances"),
        **{key: (f"counted_{kind}", f"asked_{kind}") for kind, (key, _) in AGAIN.items()},
    }
    return {key: divide(column[part], column[whole], np.nan) for key, (part, whole) in parts.items()}


def quote_statistics(
    rows: Mapping[str, Row], sizes: Mapping[str, Mapping[str, int]], offences: Offences
) -> tuple[Statistics, dict[str, object]]:
    """Statistics of instances' quotes, and the counts that stand beside the scores.

    Args:
        rows: id -> instance.
        sizes: id -> the tokens of each of its documents; instances without have no coverage.
        offences: where what is wrong is told.
    """
    values = np.zeros((len(rows), len(COLUMNS)))
    for at, (name, row) in enumerate(rows.items()):
        quotes, own = Quotes(row, name, offences), sizes.get(name, {})
        counts = {status: quotes.statuses.count(status) for status in STATUSES}
        counts |= {
            "quotes": len(quotes.statuses) - counts["empty"],
            "placed": len(quotes.spans),
            "quoted_tokens": sum(end - start for _, start, end in quotes.spans),
            "any_invented": counts["not_found"] > 0,
            "answered": quotes.answered,
            "instances": 1,
            "covered": quotes.covered(own) if own else 0,
            "tokens": sum(own.values()),
            **{f"asked_{kind}": kind in quotes.again for kind in AGAIN},
            **{f"counted_{kind}": quotes.again.get(kind, False) for kind in AGAIN},
        }
        values[at] = [counts[column] for column in COLUMNS]
    totals = dict(zip(COLUMNS, values.sum(axis=0).astype(int).tolist(), strict=True))
    statistics = Statistics(list(rows), values, _finalize, _finalize(values), COLUMNS)
    return statistics, {"quotes": totals["quotes"], "empty": totals["empty"]}
