"""One telling example for a report's first screen: a text on which systems differ most, cut to its marked lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from ..catalogue import format_number, metric
from ..highlight import Piece, make_pieces
from ..marked_instances import MarkedInstance

# the per-instance scores that choose it: the first that a system has
KEYS = ("token_macro_f1", "auprc", "token_f1", "map", "comprehensiveness_aopc", "comprehensiveness")
LINES, TOKENS = 2, 36


@dataclass(frozen=True, slots=True)
class ExampleColumn:
    """A system's marks over the example: its place among all systems, its score and label, and the lines."""

    system: str
    place: int
    facts: str
    lines: tuple[tuple[Piece, ...], ...]


@dataclass(frozen=True, slots=True)
class TellingExample:
    """A text that shows how systems differ.

    Attributes:
        identity: the annotation's id.
        words: why it is shown.
        gold: its gold label; "" where it is unknown.
        columns: the systems, the better one first.
        link: the address of the text among the documents.
    """

    identity: str
    words: str
    gold: str
    columns: tuple[ExampleColumn, ...]
    link: str


def choose_example(
    rows: Sequence[Sequence[MarkedInstance]],
    systems: Sequence[str],
    values: Sequence[Mapping[str, Sequence[float | None]]],
    chosen: Sequence[str] = (),
) -> TellingExample | None:
    """Return the text on which two systems differ most, or the worst rationale of a single system's right labels.

    Args:
        rows: for each annotation what each system made of it.
        systems: their names.
        values: per system the per-instance scores, in the order of the rows.
        chosen: the systems to choose from; none: all.
    """
    places = [at for at, name in enumerate(systems) if not chosen or name in chosen]
    key = next((key for key in KEYS if sum(key in values[at] for at in places) >= min(2, len(places))), None)
    if key is None or not places:
        return None
    places = [at for at in places if key in values[at]]
    candidates = list[tuple[tuple[float, bool, int], int, list[int]]]()
    for number, row in enumerate(rows):
        known = [(value, at) for at in places if (value := values[at][key][number]) is not None]
        length = sum(document.num_tokens for document in row[0].documents)
        if len(places) > 1 and len(known) > 1:
            low, high = min(known), max(known, key=lambda one: (one[0], -one[1]))
            merit, shown = high[0] - low[0], [high[1], low[1]]
        elif len(places) == 1 and known and row[places[0]].right is not False:
            merit, shown = -known[0][0], [places[0]]
        else:
            continue
        answered = any(document.predicted or document.soft for document in row[shown[0]].documents)
        candidates.append(((merit, answered, -length), number, shown))
    best = max(candidates, key=lambda one: one[0], default=None)
    if best is None or (len(places) > 1 and best[0][0] <= 0):
        return None
    (merit, _, _), number, shown = best
    marked = rows[number]
    pieces = {at: [make_pieces(document) for document in marked[at].documents] for at in shown}
    lines = _choose_lines(list(pieces.values()))
    columns = tuple(
        ExampleColumn(
            systems[at],
            at,
            _describe(marked[at], key, values[at][key][number]),
            tuple(tuple(pieces[at][d][k][first : first + TOKENS]) for d, k, first in lines),
        )
        for at in shown
    )
    if len(shown) > 1:
        words = f"They differ most on this text, by {metric(key).label}:"
    else:
        right = "Of the right labels, this" if marked[shown[0]].right else "This"
        ties = sum(one[0] == merit for one, _, _ in candidates) - 1
        also = f", as {ties:,} other{'s' * (ties > 1)}" if ties else ""
        words = f"{right} text has the lowest {metric(key).label}{also}:"
    names = ",".join(quote(systems[at], safe="") for at in shown)
    identity = marked[0].annotation_id
    link = f"#doc={quote(identity, safe='')}&systems={names}"
    return TellingExample(identity, words, marked[0].label if marked[0].label_known else "", columns, link)


def _describe(marked: MarkedInstance, key: str, value: float | None) -> str:
    words = [f"{metric(key).label} {format_number(value)}"]
    if marked.predicted_label is not None:
        sign = {True: " ✓", False: " ✗", None: ""}[marked.right]
        words.append(f"{marked.predicted_label}{sign}")
    return " · ".join(words)


def _choose_lines(marked: Sequence[Sequence[Sequence[Sequence[Piece]]]]) -> list[tuple[int, int, int]]:
    """Return (document, line, first token) of the lines with the most marks, in the text's order.

    Args:
        marked: of each system the pieces by document and line.
    """
    counted: dict[tuple[int, int], list[bool]] = {}
    for documents in marked:
        for d, document in enumerate(documents):
            for k, line in enumerate(document):
                own = [bool(piece.groups) or piece.predicted for piece in line]
                before = counted.setdefault((d, k), own)
                counted[d, k] = [a or b for a, b in zip(before, own, strict=True)]
    most = sorted(counted, key=lambda place: (-sum(counted[place]), place))[:LINES]
    chosen = []
    for d, k in sorted(most):
        marks = counted[d, k]
        first = marks.index(True) if any(marks) else 0
        chosen.append((d, k, max(0, min(first - 6, len(marks) - TOKENS))))
    return chosen
