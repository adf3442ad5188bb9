"""Quotes: the tokens of a document that a model quotes, and how faithful its quotes are.

Quotes are compared by their *key*: without blanks, case-folded, with compatibility forms and accents decomposed, with
one form of quotation marks and one of dashes. If the key occurs at word boundaries, the quote is in the text: ``exact``
if the document's own text reads the same, else ``normalised``. Otherwise the most similar run of tokens counts if its
similarity is at least `QUOTE_THRESHOLD` (``fuzzy``); below that, the quote is ``not_found``: invented. ``ambiguous``
quotes occur in several places.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from rapidfuzz import fuzz

from .errors import DataError, cut
from .rows import to_list
from .statistics import Columns, Score, Statistics, divide, find_components, number_values
from .tokens import find_occurrences, split_tokens

STATUSES = ("exact", "normalised", "fuzzy", "ambiguous", "not_found", "empty")
# the least similarity (2 common characters in sequence / characters of both) of a changed quote
QUOTE_THRESHOLD = 0.8
# characters that a key needs before similarity says anything: any text of some pages holds most short words, nearly
MIN_FUZZY = 10
MAX_MARKS = 8  # of quotation that may stand around a quote
APOSTROPHES = "'\"`´‘’‚‛“”„‟«»‹›′″‵‶「」『』\u0012\u0091\u0092\u0093\u0094"
DASHES = "-‐‑‒–—―−﹘﹣－\u0096\u0097"
BRACKETS = {"-lrb-": "(", "-rrb-": ")", "-lsb-": "[", "-rsb-": "]", "-lcb-": "{", "-rcb-": "}"}
MARK_RUNS = re.compile("|".join(["'+", *BRACKETS, "-+"]))
ELLIPSIS = re.compile(r"\s*[\[(]?(?:…|\.{3,}|(?:\. ){2,}\.)[\])]?\s*")
WRAPPING = "'.,;:-…()[]"  # what people and models put around a quote


class CharacterKeys(dict[int, str]):
    """The key of each character, computed at its first use; blanks are kept for `make_key` to remove."""

    def __missing__(self, code: int) -> str:
        key = ""
        for character in unicodedata.normalize("NFKD", chr(code)):
            if character in APOSTROPHES:
                key += "'"
            elif character in DASHES:
                key += "-"
            elif character.isspace():
                key += " "
            elif unicodedata.category(character) not in ("Mn", "Cc", "Cf", "Cs"):
                key += character
        self[code] = key.casefold()
        return self[code]


CHARACTER_KEYS = CharacterKeys()


@lru_cache(maxsize=1 << 16)  # most tokens of a document stood in another before
def make_key(text: str) -> str:
    """Return the key of a text; equal for texts that differ in case, blanks, accents, quotation marks and dashes.

    >>> make_key("It 's `` GREAT '' -- really") == make_key("It’s “great” — really")
    True
    """
    plain = MARK_RUNS.sub(lambda run: BRACKETS.get(run[0], run[0][0]), text.translate(CHARACTER_KEYS))
    return "".join(plain.split())


@dataclass(frozen=True, slots=True)
class Quote:
    """A quote and its position.

    Attributes:
        text: The quote in the model's words.
        status: One of `STATUSES`.
        docid: The document; None without a position.
        start_token: The first token; None without a position.
        end_token: The token behind the last one; None without a position.
        similarity: Similarity of the keys of quote and span, in [0, 1]; 0 without a position.
    """

    text: str
    status: str
    docid: str | None = None
    start_token: int | None = None
    end_token: int | None = None
    similarity: float = 0.0


class QuoteMatch(NamedTuple):
    """A place of a quote: the number of its document, its tokens [start, end), and the similarity."""

    document: int
    start: int
    end: int
    similarity: float = 1.0


class Document:
    """A document to search for quotes.

    Args:
        docid: Its name.
        tokens: Its tokens.
        blank: The string between two tokens of the text that the model saw.
    """

    def __init__(self, docid: str, tokens: Sequence[str], blank: str = " ") -> None:
        self.docid, self.tokens, self.blank = docid, tokens, blank
        keys = list(map(make_key, tokens))
        self.key = "".join(keys)
        self.starts = [0, *accumulate(map(len, keys))]  # token t has the key's characters [starts[t], starts[t + 1])

    def text(self, start: int, end: int) -> str:
        """Return the text of a span."""
        return self.blank.join(self.tokens[start:end])

    def find_nearest(self, key: str, threshold: float) -> tuple[int, int, float] | None:
        """Return the span with the most similar key and its similarity; None below the threshold."""
        # a window of the key's length sees less of what a changed quote and its span have in common than the span does
        window = fuzz.partial_ratio_alignment(key, self.key, score_cutoff=100 * (threshold - 0.1))
        if window is None or window.dest_start == window.dest_end:
            return None
        start = bisect_right(self.starts, window.dest_start) - 1
        end = bisect_left(self.starts, window.dest_end)
        reach = len(key) // 4 + 4

        def compare(start: int, end: int) -> float:
            return float(fuzz.ratio(key, self.key[self.starts[start] : self.starts[end]]))

        def find_bounds(token: int, low: int, high: int) -> range:
            """Return the token bounds in [low, high) within reach of one."""
            at = self.starts[token]
            first, last = bisect_left(self.starts, at - reach), bisect_right(self.starts, at + reach)
            return range(max(low, first), min(high, last))

        for _ in range(2):
            start = max(find_bounds(start, 0, end), key=lambda token: compare(token, end))
            end = max(find_bounds(end, start + 1, len(self.starts)), key=lambda token: compare(start, token))
        similarity = compare(start, end) / 100
        return (start, end, similarity) if similarity >= threshold else None


# -- alignment --------------------------------------------------------------------------------------------------------


def align(
    quotes: Sequence[str],
    documents: Sequence[Document],
    *,
    threshold: float = QUOTE_THRESHOLD,
    several: str = "nearest",
) -> list[Quote]:
    """Find quotes in documents.

    Args:
        quotes: The quotes in the model's words and order. A quote with an ellipsis (``...``) that is not found as one
            text is split into its pieces.
        documents: The documents to search.
        threshold: Least similarity of a fuzzy match, in (0, 1].
        several: Choice among several places of a quote: "nearest" takes the place that no earlier quote has and that is
            nearest to the quotes with a single place, the first of equal ones; "all" takes all of them, a `Quote` each.

    Returns:
        A `Quote` for each quote (each piece, each place), in order.
    """
    return [quote for pieces in align_each(quotes, documents, threshold, several) for quote in pieces]


def align_each(
    quotes: Sequence[str],
    documents: Sequence[Document],
    threshold: float = QUOTE_THRESHOLD,
    several: str = "nearest",
) -> list[list[Quote]]:
    """Find quotes in documents, as `align` does; return the pieces and places of each quote."""
    found = []  # of each quote (text, status, matches), or those of the pieces between its ellipses
    for quote in quotes:
        parts = [(quote, *find_matches(quote, documents, threshold))]
        pieces = [piece for piece in ELLIPSIS.split(quote) if make_key(piece).strip(WRAPPING)]
        if parts[0][1] == "not_found" and len(pieces) > 1:
            parts = [(piece, *find_matches(piece, documents, threshold)) for piece in pieces]
        found.append(parts)
    certain = [matches[0] for parts in found for _, _, matches in parts if len(matches) == 1]
    taken = set(certain)

    def measure_distance(match: QuoteMatch) -> int:
        """Return the tokens between a match and the nearest certain one in its document; large without one."""
        others = [other for other in certain if other.document == match.document]
        gaps = (max(other.start - match.end, match.start - other.end, 0) for other in others)
        return min(gaps, default=1 << 60)

    aligned = []
    for parts in found:
        group = []
        for text, status, matches in parts:
            if len(matches) > 1 and several == "nearest":
                free = [match for match in matches if match not in taken] or matches
                matches = [min(free, key=measure_distance)]
                taken.add(matches[0])
            for match in matches:
                docid = documents[match.document].docid
                group.append(Quote(text, status, docid, match.start, match.end, match.similarity))
            if not matches:
                group.append(Quote(text, status))
        aligned.append(group)
    return aligned


def find_matches(quote: str, documents: Sequence[Document], threshold: float) -> tuple[str, list[QuoteMatch]]:
    """Return the status of a quote and its possible positions."""
    key = make_key(quote)
    bare, size = key.strip(WRAPPING), len(key)
    # the key with and without the marks that may surround a quote; the longest first
    before, behind = (min(size - len(inner), MAX_MARKS) for inner in (key.lstrip("'"), key.rstrip("'")))
    starts = {*range(before + 1), 3 * key.startswith("..."), size - len(key.lstrip(WRAPPING))}
    ends = {*range(behind + 1), 3 * key.endswith("..."), size - len(key.rstrip(WRAPPING))}
    readings = {key[start : size - end] for start in starts for end in ends}
    for reading in sorted(filter(None, readings), key=len, reverse=True):
        matches, verbatim = [], []
        for at, document in enumerate(documents):
            spans = find_occurrences(reading, document.key, document.starts)
            matches += [QuoteMatch(at, *span) for span in spans]
            words = document.blank.join(split_tokens(quote))
            verbatim += [QuoteMatch(at, *span) for span in spans if document.text(*span) == words]
        if matches:
            status = "ambiguous" if len(verbatim or matches) > 1 else "exact" if verbatim else "normalised"
            return status, verbatim or matches
    if not bare:
        return "empty", []
    whole = key.removeprefix("...").removesuffix("...")
    keys = dict.fromkeys((whole, whole.strip("'")) if len(bare) >= MIN_FUZZY else ())
    nearest = ((at, document.find_nearest(one, threshold)) for at, document in enumerate(documents) for one in keys)
    near = [QuoteMatch(at, *span) for at, span in nearest if span]
    return ("fuzzy", [max(near, key=lambda match: match.similarity)]) if near else ("not_found", [])


def locate_quotes(
    text: str | Sequence[str], quotes: Sequence[str], *, threshold: float = QUOTE_THRESHOLD
) -> list[tuple[int, int] | None]:
    """Find the tokens that each quote stands for, as ``eraser-hub ask`` does.

    Case, blanks, accents, quotation marks and dashes do not count. A quote that is not in the text takes the most
    similar run of tokens, if its similarity is at least the threshold. Of several places a quote takes the one that no
    earlier quote has and that is nearest to the quotes with one place.

    Args:
        text: the text, cut at U+0020 and line ends, or its tokens.
        quotes: the quotes. One with an ellipsis stands for the tokens from its first piece to its last.
        threshold: the least similarity of a changed quote, in (0, 1].

    Returns:
        for each quote its tokens [start, end); None if it is not in the text.

    Examples:
        >>> locate_quotes("a warm and funny film .", ["Warm and funny", "a masterpiece"])
        [(1, 4), None]
    """
    tokens = split_tokens(text) if isinstance(text, str) else list(text)
    spans: list[tuple[int, int] | None] = []
    for pieces in align_each(quotes, [Document("", tokens)], threshold):
        starts = [piece.start_token for piece in pieces if piece.start_token is not None]
        ends = [piece.end_token for piece in pieces if piece.end_token is not None]
        spans.append((min(starts), max(ends)) if starts else None)
    return spans


# -- faithfulness of quotes -------------------------------------------------------------------------------------------


def share(count: str, total: str) -> Callable[[Columns], np.ndarray]:
    """Return the function that divides the sums of two columns; NaN where there is nothing to divide by."""
    return lambda sums: divide(sums[count], sums[total], np.nan)


QUOTE_SCORES = {
    **{key: Score(share(key, "quotes"), units="quotes") for key in ("in_text", "exact")},
    **{key: Score(share(key, "quotes"), None, units="quotes") for key in ("normalised", "fuzzy", "ambiguous")},
    "invented": Score(share("not_found", "quotes"), False, units="quotes"),
    "instances_with_invented": Score(share("with_invented", "answered"), False, units="answered"),
    "quotes_per_instance": Score(share("quotes", "answered"), None, high=None),
    "quote_length": Score(share("quoted_tokens", "in_text"), None, high=None),
    "coverage": Score(share("covered", "tokens"), None),
    "answered": Score(share("answered", "instances"), units="instances"),
}


def measure_quotes(
    rows: Mapping[str, Mapping[str, Any]], sizes: Mapping[str, Mapping[str, int]]
) -> tuple[Statistics, dict[str, int]]:
    """Count the quotes of instances: their status, the tokens that they cover, the tokens of the documents.

    Args:
        rows: id -> instance with ``quotes``, aligned: a list of {text, status, docid, start_token, end_token}; an
            ``outcome`` other than "answered" says that there is no answer, and so no quote.
        sizes: id -> the number of tokens of each of its documents; other instances have no coverage.

    Returns:
        the statistics, clustered by documents; and the number of quotes that are not empty, and of those that are.

    Raises:
        DataError: the first value that is none of these, or lies outside of the documents.
    """
    counts, items, n_empty = [], [], 0
    for number, (name, row) in enumerate(rows.items()):
        try:
            statuses, spans, answered = read_quotes(row, sizes.get(name))
        except DataError as error:
            error.instance = name
            raise
        n_empty += statuses["empty"]
        covered = {(docid, token) for docid, start, end in spans for token in range(start, end)}
        tokens = sizes.get(name, {})
        counts.append(
            {
                **{status: statuses[status] for status in STATUSES},
                "in_text": len(spans),
                "quotes": statuses.total() - statuses["empty"],
                "with_invented": statuses["not_found"] > 0,
                "quoted_tokens": sum(end - start for _, start, end in spans),
                "covered": len(covered) if tokens else 0,
                "tokens": sum(tokens.values()),
                "answered": answered,
                "instances": 1,
            }
        )
        docids = list(tokens) or [rationale.get("docid") for rationale in row.get("rationales") or ()]
        items += [(number, str(docid)) for docid in docids if isinstance(docid, (str, int))]
    columns = {key: np.array([count[key] for count in counts], dtype=float) for key in counts[0]}
    owner = np.array([number for number, _ in items], dtype=np.int64)
    clusters = find_components(owner, number_values(docid for _, docid in items), len(rows))
    statistics = Statistics(list(rows), columns, QUOTE_SCORES, clusters, "none" if clusters is None else "documents")
    return statistics, {"quotes": int(columns["quotes"].sum()), "empty": n_empty}


def read_quotes(
    row: Mapping[str, Any], sizes: Mapping[str, int] | None
) -> tuple[Counter[str], list[tuple[str, int, int]], bool]:
    """Return the statuses of an instance's quotes, the spans (docid, start, end) of those found, and if it is answered.

    Raises:
        DataError: a value of another form; a span outside of the documents, if their sizes are given.
    """
    quotes, outcome = to_list(row.get("quotes")), row.get("outcome")
    if not isinstance(outcome, str | None):
        raise DataError(f"expected a string, found {cut(outcome)}", field="outcome")
    if not isinstance(quotes, list) or not all(isinstance(quote, Mapping) for quote in quotes):
        raise DataError(f"expected a list of quotes, found {cut(quotes)}", field="quotes")
    answered = outcome in (None, "answered")
    if quotes and not answered:
        raise DataError("expected none, because the outcome is no answer", field="quotes")
    statuses: Counter[str] = Counter()
    spans = []
    for at, quote in enumerate(quotes):
        field, status, docid = f"quotes[{at}]", quote.get("status"), quote.get("docid")
        if not isinstance(status, str) or status not in STATUSES:
            raise DataError(f"expected one of {', '.join(STATUSES)}, found {cut(status)}", field=f"{field}.status")
        statuses[status] += 1
        if status in ("not_found", "empty"):
            continue
        ends = to_list([quote.get("start_token"), quote.get("end_token")])
        if [*map(type, ends)] != [int, int] or not 0 <= ends[0] < ends[1]:
            raise DataError(f"expected 0 <= start_token < end_token, found {cut(ends)}", field=field)
        if not isinstance(docid, str | int) or (sizes and str(docid) not in sizes):
            raise DataError(f"expected the id of a document, found {cut(docid)}", field=f"{field}.docid")
        if sizes and ends[1] > sizes[str(docid)]:
            message = f"expected at most {sizes[str(docid)]:,} (the document's tokens), found {ends[1]:,}"
            raise DataError(message, field=f"{field}.end_token")
        spans.append((str(docid), *ends))
    return statuses, spans, answered
