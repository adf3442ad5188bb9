"""Counts of a language model's quotes: their status and coverage, and its answers to changed questions."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from eraser_hub.schema.instance import ANSWERED, CONSISTENCY_FIELD, DISTRACTORS_FIELD, OUTCOME_FIELD, QUOTES_FIELD

from .cells import Row, as_list, as_number
from .citations import SCORES as CITATION_SCORES
from .citations import EvidenceGroups
from .issues import Issues
from .rows import CellReader
from .statistics_builder import ScoreInfo, Statistics, divide

# change of the question -> (the score, True if the label has to change)
CONSISTENCY_KINDS = {
    "redacted": ("label_flip_redacted", True),
    "removed": ("label_flip_removed", True),
    "random": ("label_flip_random", True),
    "alone": ("label_kept_alone", False),
    "simulated": ("simulatability", False),
    "simulated_random": ("simulatability_random", False),
    "simulated_input": ("simulatability_input", False),
    "simulated_both": ("simulatability_both", False),
}
LEAK_ADJUSTED = "simulatability_leak_adjusted"
_NEUTRAL = ("random", "simulated_random", "simulated_input")
_GROUPS = ("leaking", "other")
SCORES: ScoreInfo = {
    **dict.fromkeys(("in_text", "exact"), (True, 0.0, 1.0)),
    **dict.fromkeys(("normalised", "fuzzy", "ambiguous"), (None, 0.0, 1.0)),
    **dict.fromkeys(("invented", "instances_with_invented"), (False, 0.0, 1.0)),
    **dict.fromkeys(("quotes_per_instance", "quote_length"), (None, 0.0, None)),
    "coverage": (None, 0.0, 1.0),
    "answered": (True, 0.0, 1.0),
    **{key: (None if kind in _NEUTRAL else True, 0.0, 1.0) for kind, (key, _) in CONSISTENCY_KINDS.items()},
    LEAK_ADJUSTED: (True, -1.0, 1.0),
    **CITATION_SCORES,
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
        outcome, quotes, consistency = row.get(OUTCOME_FIELD), row.get(QUOTES_FIELD), row.get(CONSISTENCY_FIELD) or ()
        reader.expect(outcome is None or isinstance(outcome, str), OUTCOME_FIELD, "a string", outcome)
        self.distractors = as_list(row.get(DISTRACTORS_FIELD) or ())
        sound = self.distractors is not None and all(isinstance(one, str) for one in self.distractors)
        reader.expect(sound, DISTRACTORS_FIELD, "a list of documents' ids", row.get(DISTRACTORS_FIELD))
        self.answered = outcome is None or outcome == ANSWERED
        if reader.expect(as_list(quotes) is not None, QUOTES_FIELD, "a list of quotes", quotes):
            if as_list(quotes) and not self.answered:
                reader.add(QUOTES_FIELD, "expected none, because the outcome is no answer", "constant")
            for at, quote in enumerate(as_list(quotes) or ()):
                self._add_quote(quote if isinstance(quote, Mapping) else {}, f"{QUOTES_FIELD}[{at}]")
        reader.expect(as_list(consistency) is not None, CONSISTENCY_FIELD, "a list of answers", consistency)
        for at, one in enumerate(as_list(consistency) or ()):
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

    def count_gain(self) -> dict[str, float]:
        """Return the gain of a simulator that sees the quotes beside the input, by whether the quotes leak the label.

        Hase et al. (2020): quotes leak a label that a simulator tells from them alone. The leak-adjusted simulatability
        is the mean over both groups of [1(label | input, quotes) - 1(label | input)].
        """
        counts = dict.fromkeys((f"{part}_{group}" for part in ("gain", "count") for group in _GROUPS), 0.0)
        if not {"simulated", "simulated_input", "simulated_both"} <= self.consistency.keys():
            return counts
        group = _GROUPS[0] if self.consistency["simulated"] else _GROUPS[1]
        gain = float(self.consistency["simulated_both"]) - self.consistency["simulated_input"]
        return counts | {f"gain_{group}": gain, f"count_{group}": 1.0}

    def count_covered(self, sizes: Mapping[str, int]) -> int:
        """Count the tokens that the quotes cover, in documents of these sizes; distractors are none of them."""
        tokens = set[tuple[str, int]]()
        for docid, start, end in self.spans:
            if docid in (self.distractors or ()) and docid not in sizes:
                continue
            if docid not in sizes:
                self.reader.add(f"{QUOTES_FIELD}.docid", f"no document {docid!r}", "document-unknown")
            elif end > sizes[docid]:
                message = f"expected at most {sizes[docid]} (the document's tokens), found {end}"
                self.reader.add(f"{QUOTES_FIELD}.end_token", message, "span-bounds")
            else:
                tokens.update((docid, at) for at in range(start, end))
        return len(tokens)


# the counts per instance
COLUMNS = (
    *STATUSES,
    *["quotes", "placed", "quoted_tokens", "any_invented", "answered", "instances", "covered", "tokens"],
    *(f"{part}_{kind}" for part in ("asked", "counted") for kind in CONSISTENCY_KINDS),
    *(f"{part}_{group}" for part in ("gain", "count") for group in _GROUPS),
    *("with_evidence", *CITATION_SCORES),
)


def _finalize(sums: np.ndarray) -> dict[str, np.ndarray]:
    """Return the scores from sums of `COLUMNS`."""
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
        **{key: (f"counted_{kind}", f"asked_{kind}") for kind, (key, _) in CONSISTENCY_KINDS.items()},
    }
    scores = {key: divide(column[part], column[whole], np.nan) for key, (part, whole) in parts.items()}
    gains = [divide(column[f"gain_{group}"], column[f"count_{group}"], np.nan) for group in _GROUPS]
    scores[LEAK_ADJUSTED] = (gains[0] + gains[1]) / 2
    return scores | {key: divide(column[key], column["with_evidence"], np.nan) for key in CITATION_SCORES}


def quote_statistics(
    rows: Mapping[str, Row],
    sizes: Mapping[str, Mapping[str, int]],
    issues: Issues,
    references: Mapping[str, Row] | None = None,
) -> tuple[Statistics, dict[str, object]]:
    """Compute the statistics of instances' quotes, and the counts beside the scores.

    Args:
        rows: id -> instance.
        sizes: id -> the number of tokens of each of its documents; other instances have no coverage.
        issues: the issues to extend.
        references: id -> annotation with documents and evidences, which quotes may cite; others have no such scores.
    """
    values = np.zeros((len(rows), len(COLUMNS)))
    for at, (name, row) in enumerate(rows.items()):
        quotes, own = Quotes(row, name, issues), sizes.get(name, {})
        counts: dict[str, float] = {status: quotes.statuses.count(status) for status in STATUSES}
        counts |= {
            "quotes": len(quotes.statuses) - counts["empty"],
            "placed": len(quotes.spans),
            "quoted_tokens": sum(end - start for _, start, end in quotes.spans),
            "any_invented": counts["not_found"] > 0,
            "answered": quotes.answered,
            "instances": 1,
            "covered": quotes.count_covered(own) if own else 0,
            "tokens": sum(own.values()),
            **{f"asked_{kind}": kind in quotes.consistency for kind in CONSISTENCY_KINDS},
            **{f"counted_{kind}": quotes.consistency.get(kind, False) for kind in CONSISTENCY_KINDS},
            **quotes.count_gain(),
            **dict.fromkeys(("with_evidence", *CITATION_SCORES), 0.0),
        }
        if references is not None and name in references:
            citations = EvidenceGroups(references[name]).count(quotes.spans)
            counts |= citations | {"with_evidence": float(bool(citations))}
        values[at] = [counts[column] for column in COLUMNS]
    totals = dict(zip(COLUMNS, values.sum(axis=0).astype(int).tolist(), strict=True))
    statistics = Statistics(list(rows), values, _finalize, _finalize(values), COLUMNS)
    return statistics, {"quotes": totals["quotes"], "empty": totals["empty"]}
