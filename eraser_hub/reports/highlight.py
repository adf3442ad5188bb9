"""A text with gold evidence and the rationales of one or several methods, in a notebook or a terminal.

Every mark has a sign beside its colour, so it is readable in a pipe, in monochrome print and for colour-blind readers.
Gold evidence is underlined and opens with ``‹`` and its group's number; a predicted span is between ``⟦`` and ``⟧``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby, islice
from typing import TYPE_CHECKING, Any

from eraser_hub.metrics import plain
from eraser_hub.metrics.rows import ID_FIELDS, row_id
from eraser_hub.records.errors import DataError, show, show_controls

from .marks import MarkedDocument, MarkedInstance, mark_instance, mark_pair
from .page import fill_template

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.text import Text

# a mapping without any of them holds several outputs by name
OUTPUT_FIELDS = frozenset((*ID_FIELDS, *plain.FORMS, "rationales", "rationale_mask", "outcome"))
TEXT_FIELDS = frozenset(("text", "tokens", "rationale_mask"))  # of rows other than those of ``eraser``
SUPERSCRIPT = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
# Okabe and Ito's blue, and their vermilion darkened until it reads on white and on black: distinguishable with any of
# the common colour deficiencies
COLOURS = {"gold": "#0072B2", "predicted": "#BD5000"}
SHADES = ("", "#f3e9f2", "#e6cfe3", "#d8b2d3", "#c894c1")  # of soft scores, light to dark
LINE_STYLES = ("solid", "double", "dashed", "dotted", "wavy")  # of evidence groups


@dataclass(slots=True)
class Piece:
    """A token as it is drawn.

    Attributes:
        text: the token, its controls visible.
        before, after: (sign, kind of mark) beside it.
        groups: the evidence groups that cover it.
        is_predicted: a predicted span covers it.
        shade: the step of its score, from 0.
    """

    text: str
    before: list[tuple[str, str]] = field(default_factory=list)
    after: list[tuple[str, str]] = field(default_factory=list)
    groups: list[int] = field(default_factory=list)
    is_predicted: bool = False
    shade: int = 0

    @property
    def style(self) -> str:
        """Return the style of the text for rich."""
        styles = [f"underline {COLOURS['gold']}"] if self.groups else []
        if self.is_predicted:
            styles.append("bold" if self.groups else f"bold {COLOURS['predicted']}")
        if self.shade:
            styles.append(f"on {SHADES[self.shade]}" if styles else f"black on {SHADES[self.shade]}")
        return " ".join(styles)


def make_pieces(document: MarkedDocument) -> list[list[Piece]]:
    """Return the document's tokens with their marks, sentence by sentence."""
    pieces = [Piece(show_controls(token)) for token in chain.from_iterable(document.sentences)]
    for start, end in document.predicted or ():
        pieces[start].before.append(("⟦", "predicted"))
        pieces[end - 1].after.append(("⟧", "predicted"))
        for piece in pieces[start:end]:
            piece.is_predicted = True
    # the last group opens first in front of a token: each is put before the others
    for start, end, group in sorted(set(document.gold), key=lambda span: -span[2]):
        pieces[start].before.insert(0, (f"‹{str(group + 1).translate(SUPERSCRIPT)}", "gold"))
        pieces[end - 1].after.append(("›", "gold"))
        for piece in pieces[start:end]:
            piece.groups.insert(0, group)
    for piece, shade in zip(pieces, document.shades(len(SHADES)) or (), strict=False):
        piece.shade = shade
    tokens = iter(pieces)
    return [list(islice(tokens, len(sentence))) for sentence in document.sentences]


@dataclass(frozen=True, slots=True)
class Highlight:
    """Result of `highlight`: HTML in a notebook, rich text in a terminal, plain text by ``str``.

    Attributes:
        marked: the text as each system marks it, by the system's name ("" for one without a name).
        fold: True folds away sentences far from any mark.
    """

    marked: Mapping[str, MarkedInstance]
    fold: bool = True

    @property
    def first(self) -> MarkedInstance:
        """The text as the first system marks it; what it says of the gold is the same in all."""
        return next(iter(self.marked.values()))

    def fold_sentences(self, place: int) -> Iterator[tuple[bool, list[tuple[list[Piece], ...]]]]:
        """Yield runs of a document's sentences, (whether it is folded away, each sentence as each system marks it).

        Folded are sentences without a mark in them or beside them. Without any mark the first three are shown.
        """
        rows = list(zip(*(make_pieces(marked.documents[place]) for marked in self.marked.values()), strict=True))
        marks = [[any(p.groups or p.is_predicted for p in chain(*row)) for row in rows]]
        marks.append([any(p.shade == len(SHADES) - 1 for p in chain(*row)) for row in rows])
        found = next(filter(any, marks), [number == 1 for number in range(len(rows))])
        near = [not self.fold or any(found[max(0, at - 1) : at + 2]) for at in range(len(rows))]
        for shown, run in groupby(zip(near, rows, strict=True), key=lambda pair: pair[0]):
            yield not shown, [row for _, row in run]

    def describe(self, name: str) -> str:
        """Return a system's name and what it predicts."""
        marked = self.marked[name]
        words = [name] if name else []
        if marked.predicted_label is not None:
            probability = marked.probabilities.get(marked.predicted_label)
            certainty = "" if probability is None else f" p={probability:.3f}"
            verdict = {True: " (right)", False: " (wrong)", None: ""}[marked.right]
            words.append(f"predicted {marked.predicted_label}{certainty}{verdict}")
        return show_controls(" · ".join(words))

    def describe_document(self, place: int) -> str:
        """Return a document's heading: the side of a pair, its name where it has its own, and its length."""
        document = self.first.documents[place]
        words = [self.first.titles[place]] if self.first.titles else []
        words += [document.docid] if document.docid != self.first.annotation_id else []
        return show_controls(" · ".join([*words, f"{document.num_tokens:,} tokens"]))

    @property
    def legend(self) -> str:
        """The line below the texts: the marks that occur."""
        documents = [document for marked in self.marked.values() for document in marked.documents]
        empty = sum(document.empty_gold for document in self.first.documents)
        parts = {
            "‹¹ › gold evidence and its group": any(document.gold for document in documents),
            "⟦ ⟧ predicted rationale": any(document.predicted for document in documents),
            "shade: score, from the document's lowest to its highest": any(document.soft for document in documents),
            f"{empty} empty evidence {'span' if empty == 1 else 'spans'} not drawn": empty,
        }
        return " · ".join(words for words, shown in parts.items() if shown) or "no evidence and no prediction to mark"

    def _repr_html_(self) -> str:
        """Return self-contained markup: inline styles only, no script, every text escaped."""
        return fill_template(
            "highlight.html", shown=self, count=count_sentences, colours=COLOURS, shades=SHADES, lines=LINE_STYLES
        )

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.text import Text

        first, names, several = self.first, list(self.marked), len(self.marked) > 1
        head = Text(show_controls(first.annotation_id), style="bold")
        head.append(f"  gold {show_controls(first.label)}" if first.label else "", style="not bold")
        head.append("" if several else f"  {self.describe(names[0])}", style="not bold")
        head.rstrip()
        yield head
        if first.query:
            yield Text(f"query: {show_controls(first.query)}")
        for place in range(len(first.documents)):
            yield Text(f"\n{self.describe_document(place)}", style="bold")
            drawn = [self._draw(name, place, number) for number, name in enumerate(names)]
            yield Text("\n\n" if several else "").join(drawn)
        yield Text(f"\n{self.legend}", style="dim")

    def _draw(self, name: str, place: int, column: int) -> Text:
        """Return a document as one system marks it."""
        from rich.text import Text

        text = Text()
        if len(self.marked) > 1:
            text.append(f"{self.describe(name)}\n", style="bold")
        for folded, rows in self.fold_sentences(place):
            if folded:
                text.append(f"{count_sentences(len(rows))}\n", style="dim")
                continue
            for row in rows:
                for number, piece in enumerate(row[column]):
                    text.append(" " if number else "")
                    for sign, kind in piece.before:
                        text.append(sign, style=f"bold {COLOURS[kind]}")
                    text.append(piece.text, style=piece.style)
                    for sign, kind in piece.after:
                        text.append(sign, style=f"bold {COLOURS[kind]}")
                text.append("\n")
        text.rstrip()
        return text

    def __str__(self) -> str:
        import io

        from rich.console import Console

        stream = io.StringIO()
        # soft_wrap: lines as long as the sentences, so that the text can be searched and compared
        Console(file=stream, color_system=None, width=100).print(self, soft_wrap=True, end="")
        return stream.getvalue()


def count_sentences(count: int) -> str:
    """Return what stands in place of folded sentences."""
    return f"… {count:,} {'sentence' if count == 1 else 'sentences'} …"


def highlight(
    row: Any, instance: Any = None, *, label_names: Sequence[str] | None = None, fold: bool = True
) -> Highlight:
    """Show a text with gold evidence and the rationales and scores of a model, or of several side by side.

    Args:
        row: a row of ``eraser`` or ``human_rationales``, a record of ``bilingual_perturbation``, a plain row (text or
            tokens with a rationale), or a text alone: a string or a list of tokens.
        instance: the model's output for it, as `explain_texts` returns it, or as a plain row: a 0/1 mask, scores,
            spans or quotes (a record's in the benchmark's own format). Several by name: ``{"lime": output, ..}``.
            None shows the gold alone.
        label_names: the names of the row's ClassLabel, where it holds a number without a name.
        fold: leave out sentences that lie far from every mark, saying how many.

    Returns:
        An object that a notebook shows as HTML and ``rich.print`` in the terminal; ``str()`` gives plain text.

    Raises:
        DataError: an output does not fit the row: another id or document, a span outside its document, scores of
            another number; the words are those of `score`.

    Examples:
        >>> from eraser_hub import highlight
        >>> print(highlight("a fine film", {"ours": [0, 1, 0], "theirs": [0, 1, 1]}))  # doctest: +NORMALIZE_WHITESPACE
        0
        <BLANKLINE>
        3 tokens
        ours
        a ⟦fine⟧ film
        <BLANKLINE>
        theirs
        a ⟦fine film⟧
        <BLANKLINE>
        ⟦ ⟧ predicted rationale
    """
    several = isinstance(instance, Mapping) and bool(instance) and OUTPUT_FIELDS.isdisjoint(instance)
    several = several and not any(isinstance(output, str | float | int | None) for output in instance.values())
    marked: dict[str, MarkedInstance] = {}
    for name, output in (instance if several else {"": instance}).items():
        try:
            if isinstance(row, Mapping) and "sample_type" in row:
                outputs = None if output is None else {row_id(output) or "": output}
                marked[name] = mark_pair([row], outputs, label_names)
            else:
                marked[name] = mark_instance(*read_fitting(row, output), label_names=label_names)
        except DataError as error:
            error.argument = f"instance[{name!r}]" if several else "instance"
            raise
    return Highlight(marked, fold)


def read_fitting(row: Any, instance: Any = None) -> tuple[Mapping[str, Any], Mapping[str, Any] | None]:
    """Return a text and an output for it as a row of ``eraser`` and an instance that fits it; see `highlight`."""
    from eraser_hub.metrics.gold import read_gold  # with Arrow
    from eraser_hub.metrics.match import Matcher  # with Arrow
    from eraser_hub.metrics.predictions import read_predictions  # with Arrow
    from eraser_hub.metrics.spans import match_rationales

    row = {"text": row} if isinstance(row, str | list) else row
    if not isinstance(row, Mapping):
        raise DataError(f"expected a row or a text, found {show(row)}", argument="row")
    if "evidences" not in row and not TEXT_FIELDS.isdisjoint(row):
        # a text alone is a plain row without a rationale
        cells = {"rationale": []} | {name: value for name, value in row.items() if value is not None}
        row, _ = plain.make_annotation(cells, row_id(row) or row_id(instance) or "0", Counter())
    try:
        # the label is read where it is marked: here it may be a number without a name
        gold = read_gold([{**row, "classification": None}], required=("documents", "evidences"))
    except UnicodeError:
        raise DataError("expected text, found half a character (a lone surrogate)", instance=row_id(row)) from None
    if instance is None:
        return row, None
    if plain.is_plain(instance):
        name = row_id(instance) or gold.ids[0]
        instance = plain.make_instance(instance, name, plain.read_text(row, name), Counter())
    read_predictions([instance])
    marks = {name: instance[name] for name in (*ID_FIELDS, "rationales") if name in instance}
    match_rationales(Matcher(gold).add(read_predictions([marks])))
    return row, instance
