"""Tokens of scored rows as HTML: predicted and gold positions, kept and changed tokens, quotes by their status.

A Space holds this file beside its app.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby, zip_longest
from typing import Any

MOST_ROWS_DRAWN = 5
MOST_TOKENS_DRAWN = 2_000
# grounds so light that INK on them has a contrast of 7:1 or more, on a light page as on a dark one
GREEN, AMBER, BLUE, RED = "#a5d6a7", "#ffe082", "#90caf9", "#ef9a9a"
INK = "#111"
LINES = ("solid", "dashed", "dotted", "double")  # underlines, which distinguish labels without colour
Segments = list[tuple[str, str | float | None]]


def split_tokens(text: str) -> list[str]:
    """Split a document into tokens, like `tokens.split_tokens`: not every Space has that leaf."""
    return re.findall(r"[^ \n]+", text)


def merge_segments(tokens: Sequence[str], labels: Sequence[str | None]) -> Segments:
    """Join neighbouring tokens of one label to one piece of text."""
    runs = groupby(zip(tokens[:MOST_TOKENS_DRAWN], labels, strict=False), key=lambda pair: pair[1])
    pieces: Segments = [(" ".join(token for token, _ in run) + " ", label) for label, run in runs]
    if len(tokens) > MOST_TOKENS_DRAWN:
        pieces.append((f"… {len(tokens) - MOST_TOKENS_DRAWN} more tokens ", None))
    return pieces


def compare_positions(predicted: Iterable[int], reference: Iterable[int], size: int) -> list[str | None]:
    """Return the label of each position: in both sets, in one of them, in none."""
    ours, theirs = set(predicted), set(reference)
    return [
        "both" if at in ours and at in theirs else "predicted" if at in ours else "reference" if at in theirs else None
        for at in range(size)
    ]


def find_covered(spans: Iterable[Mapping[str, Any]]) -> set[int]:
    """Return the positions that spans cover, as far as they are drawn."""
    return {at for span in spans for at in range(span["start_token"], min(span["end_token"], MOST_TOKENS_DRAWN + 1))}


def draw_instances(predictions: list[Any], references: list[Any]) -> Iterator[Segments]:
    """Draw each document of each instance: the hard rationale (or the soft one at 0.5) against the evidence."""
    rows = {str(row["annotation_id"]): row for row in references}
    for instance in predictions:
        row = rows.get(str(instance["annotation_id"]), {})
        texts = {document["docid"]: document["text"] for document in row.get("documents") or []}
        gold = [evidence for group in row.get("evidences") or [] for evidence in group]
        for rationale in instance.get("rationales") or []:
            docid = rationale["docid"]
            soft = rationale.get("soft_rationale_predictions") or []
            hard = rationale.get("hard_rationale_predictions")
            ours = find_covered(hard) if hard is not None else {at for at, score in enumerate(soft) if score >= 0.5}
            theirs = find_covered(evidence for evidence in gold if evidence["docid"] == docid)
            size = max({*ours, *theirs, len(soft) - 1, -1}) + 1
            tokens = split_tokens(texts[docid]) if docid in texts else [str(at) for at in range(size)]
            head = (f"{instance['annotation_id']} · {docid}: ", None)
            yield [head, *merge_segments(tokens, compare_positions(ours, theirs, len(tokens)))]


def draw_pairs(predictions: list[Any], references: list[Any]) -> Iterator[Segments]:
    """Draw each original's tokens, most important first, then each of its perturbed texts': kept or changed."""
    tokens = {str(row["id"]): row["rationale_tokens"] for row in predictions}
    for row in references:
        for other in row.get("rel_ids") or []:
            for ours, theirs in zip(tokens[str(row["id"])], tokens[str(other)], strict=False):
                for name, here, there in ((row["id"], ours, theirs), (other, theirs, ours)):
                    labels = ["kept" if token in set(there) else "changed" for token in here]
                    yield [(f"{name}: ", None), *merge_segments(here, labels)]


def draw_sets(predictions: list[Any], references: list[Any]) -> Iterator[Segments]:
    """Draw each sequence's positions: predicted, in any gold set, in both; with tokens if a row has ``tokens``."""
    rows = {str(row["id"]): row for row in references}
    for row in predictions:
        other = rows.get(str(row["id"]), {})
        texts = other.get("tokens") or row.get("tokens") or []
        for ours, golds, tokens in zip_longest(row["rationale"], other.get("rationale_ids") or [], texts, fillvalue=()):
            theirs = {at for gold in golds for at in gold}
            size = min(max({*ours, *theirs, len(tokens) - 1, -1}), MOST_TOKENS_DRAWN) + 1
            words = [tokens[at] if at < len(tokens) else str(at) for at in range(size)]
            yield [(f"{row['id']}: ", None), *merge_segments(words, compare_positions(ours, theirs, size))]


def draw_annotators(predictions: list[Any], references: list[Any]) -> Iterator[Segments]:
    """Draw each text's positions: marked by all annotators, by some, by none."""
    for row in references or predictions:
        marks = list(zip(*row["annotators"], strict=False))
        labels = ["all" if all(mark) else "some" if any(mark) else None for mark in marks]
        tokens = row.get("tokens") or [str(at) for at in range(len(marks))]
        yield [(f"{row.get('annotation_id', '')}: ", None), *merge_segments(tokens, labels)]


def draw_quotes(predictions: list[Any], references: list[Any]) -> Iterator[Segments]:
    """Draw each quote of each instance, by its status."""
    for row in predictions:
        quotes = [(f"{quote['text']} ", quote["status"]) for quote in row["quotes"]]
        yield [(f"{row.get('annotation_id', '')}: ", None), *quotes]


def draw_probabilities(predictions: list[Any], references: list[Any]) -> Iterator[Segments]:
    """Draw the four probabilities of each instance, coloured by their size."""
    for at, row in enumerate(predictions):
        cells = [(f"{key} {row[key]:.3f} ", float(row[key])) for key in PROBABILITIES if key in row]
        yield [(f"{row.get('annotation_id', row.get('id', at))}: ", None), *cells]


PROBABILITIES = ("p_full", "p_rationale", "p_complement", "p_empty")
# draw function -> label -> colour; probabilities are shaded by their size
Draw = Callable[[list[Any], list[Any]], Iterator[Segments]]
COLOURS: dict[Draw, dict[str, str]] = {
    draw_instances: {"both": GREEN, "predicted": AMBER, "reference": BLUE},
    draw_sets: {"both": GREEN, "predicted": AMBER, "reference": BLUE},
    draw_pairs: {"kept": GREEN, "changed": RED},
    draw_annotators: {"all": GREEN, "some": AMBER},
    draw_quotes: dict.fromkeys(("exact", "normalised"), GREEN)
    | {"fuzzy": AMBER, "ambiguous": BLUE, "not_found": RED, "empty": RED},
}
DRAW_FUNCTIONS = {each.__name__.removeprefix("draw_"): each for each in (*COLOURS, draw_probabilities)}


def draw_rows(draw: Draw, predictions: list[Any], references: list[Any]) -> Segments:
    """Draw the first rows' tokens; rows that cannot be drawn give a message, because their scores are valid."""
    result: Segments = []
    try:
        for at, row in enumerate(draw(predictions, references)):
            if at == MOST_ROWS_DRAWN:
                result.append(("… further rows are scored and not drawn", None))
                break
            result += [*row, ("\n", None)]
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        result.append((f"not drawn: {type(error).__name__}: {error}", None))
    return result


def render_segments(segments: Segments, colours: Mapping[str, str]) -> str:
    """Render segments as HTML: a legend, then the text; labels have a background and a line, numbers a shade."""

    def mark(text: str, label: str | float | None) -> str:
        if label is None:
            return html.escape(text).replace("\n", "<br>")
        if isinstance(label, str):
            line = LINES[list(colours).index(label) % len(LINES)]
            style = f"background:{colours[label]};text-decoration-style:{line}"
        else:
            style = f"background:hsl(123 38% {98 - 30 * min(max(label, 0), 1):.0f}%);text-decoration:none"
        return f'<mark style="{style}" title="{html.escape(str(label))}">{html.escape(text.strip())}</mark> '

    legend = "".join(mark(label, label) for label in colours)
    return (f"<p>{legend}</p>" if legend else "") + f"<p>{''.join(mark(*segment) for segment in segments)}</p>"
