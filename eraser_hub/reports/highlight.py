"""One instance in the terminal or in a notebook: gold evidence and predicted rationale over the same text.

Every mark has a sign beside its colour, so it is readable in a pipe, in monochrome print and for colour-blind readers.
Gold evidence is underlined and opens with ``‹`` and its group's number; a predicted span is between ``⟦`` and ``⟧``.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, groupby, islice
from typing import TYPE_CHECKING, Any

from eraser_hub.metrics.plain import make_annotation
from eraser_hub.records.errors import show_controls

from .marked_instances import MarkedDocument, MarkedInstance, mark_instance
from .marked_pairs import mark_record
from .markup import fill_template

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.text import Text

TOKEN_FIELDS = frozenset(("id", "tokens", "rationale_mask"))  # of a row of human_rationales
SHADES = 5  # distinguishable steps of the soft scores' background
_SUPERSCRIPT = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
# Okabe and Ito's palette: distinguishable with any of the common colour deficiencies
GOLD, PREDICTED = "#0072B2", "#D55E00"
_SHADE_HEX = ("", "#f3e9f2", "#e6cfe3", "#d8b2d3", "#c894c1")
_LINE_STYLES = ("solid", "double", "dashed", "dotted", "wavy")  # evidence groups, distinguishable without colour


def format_group_number(group: int) -> str:
    """Return the number of an evidence group, counted from 1, in superscript."""
    return str(group + 1).translate(_SUPERSCRIPT)


@dataclass(frozen=True, slots=True)
class Piece:
    """A token as it is drawn: what opens before it, how it looks, what closes after it."""

    text: str
    groups: tuple[int, ...]
    opens: tuple[int, ...]
    closes: tuple[int, ...]
    predicted: bool
    span_opens: bool
    span_closes: bool
    shade: int


def make_pieces(document: MarkedDocument) -> list[list[Piece]]:
    """Return the document's tokens with their marks, sentence by sentence."""
    groups, predicted = document.groups_at(), document.predicted_at()
    shades = document.shades(SHADES) or [0] * document.num_tokens
    opens, closes = defaultdict[int, set[int]](set), defaultdict[int, set[int]](set)
    for start, end, group in document.gold:
        opens[start].add(group)
        closes[end - 1].add(group)
    starts = {start for start, _ in document.predicted or ()}
    ends = {end - 1 for _, end in document.predicted or ()}
    pieces = (
        Piece(
            text,
            groups[token],
            tuple(sorted(opens[token])),
            tuple(sorted(closes[token])),
            predicted[token],
            token in starts,
            token in ends,
            shades[token],
        )
        for token, text in enumerate(chain.from_iterable(document.sentences))
    )
    return [list(islice(pieces, len(sentence))) for sentence in document.sentences]


def fold_sentences(document: MarkedDocument, fold: bool) -> Iterator[tuple[bool, list[list[Piece]]]]:
    """Yield the document's sentences in runs, each folded away or shown.

    Sentences without a mark in them or beside them are folded. A document without any mark keeps its first three.
    """
    lines = make_pieces(document)
    marked = [any(piece.groups or piece.predicted for piece in line) for line in lines]
    if any(marked):
        near = [any(marked[max(0, index - 1) : index + 2]) for index in range(len(lines))]
    else:
        near = [index <= 2 for index in range(len(lines))]
    for folded, run in groupby(zip(near, lines, strict=True), key=lambda place: fold and not place[0]):
        yield folded, [line for _, line in run]


@dataclass(frozen=True, slots=True)
class Highlight:
    """Result of `highlight`: HTML in a notebook, rich text in a terminal, plain text by ``str``.

    Attributes:
        instance: the marked instance.
        fold: True folds away sentences far from any mark.
    """

    instance: MarkedInstance
    fold: bool = True

    @property
    def small_print(self) -> list[str]:
        """The lines below the texts: the legend, and a hint for a label's number."""
        label, known = self.instance.label, self.instance.label_known
        unnamed = [] if known or not label else [f"gold {label} is a label's number: `label_names` has its name"]
        return [make_legend(self.instance), *unnamed]

    def _repr_html_(self) -> str:
        """Return self-contained markup: inline styles only, no script, every text escaped."""
        return fill_template(
            "highlight.html",
            instance=self.instance,
            fold=self.fold,
            small_print=self.small_print,
            stretches=fold_sentences,
            group_mark=format_group_number,
            title=_title,
            top=_top,
            skipped=_skipped,
            gold=GOLD,
            predicted=PREDICTED,
            shades=_SHADE_HEX,
            lines=_LINE_STYLES,
        )

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.text import Text

        yield _heading(self.instance)
        for place, document in enumerate(self.instance.documents):
            yield Text(f"\n{_title(self.instance, place)}", style="bold")
            yield _terminal(document, fold=self.fold)
            if top := _top(self.instance, place):
                yield Text(top, style="dim")
        yield Text("\n" + "\n".join(self.small_print), style="dim")

    def __str__(self) -> str:
        import io

        from rich.console import Console

        stream = io.StringIO()
        # soft_wrap: lines as long as the sentences, so that the text can be searched and compared
        Console(file=stream, color_system=None, width=100).print(self, soft_wrap=True, end="")
        return stream.getvalue()


def highlight(
    row: Mapping[str, Any],
    instance: Mapping[str, Any] | None = None,
    *,
    label_names: Sequence[str] | None = None,
    fold: bool = True,
) -> Highlight:
    """Show a dataset row's documents with gold evidence and, if given, a model's rationale and soft scores.

    Args:
        row: a row of the ``eraser`` dataset, of ``human_rationales``, or a record of ``bilingual_perturbation``.
        instance: the model's output for it in the ERASER results format (a record's in the benchmark's own); None
            shows the gold alone.
        label_names: the names of the row's ClassLabel, e.g. ``dataset.features["classification"].names``.
        fold: leave out sentences that lie far from every mark, saying how many.

    Returns:
        An object that a notebook shows as HTML and ``rich.print`` in the terminal; ``str()`` gives plain text.

    Raises:
        DataError: the instance does not fit the row (see `eraser_hub.reports.marked_instances.mark_instance`).

    Examples:
        >>> row = {"annotation_id": "a", "query": "", "classification": "POS",
        ...        "documents": [{"docid": "d", "text": "a fine film"}],
        ...        "evidences": [[{"docid": "d", "start_token": 1, "end_token": 2}]]}
        >>> "‹¹fine›" in str(highlight(row))
        True
    """
    if "sample_type" in row:
        return Highlight(mark_record(row, instance, label_names), fold)
    if row.keys() >= TOKEN_FIELDS:
        row, _ = make_annotation(row, str(row["id"]), Counter())
    return Highlight(mark_instance(row, instance, label_names=label_names), fold)


def make_legend(instance: MarkedInstance) -> str:
    """Return the legend, which names only the marks that occur."""
    parts = []
    if any(document.gold for document in instance.documents):
        parts.append("‹¹ › gold evidence and its group")
    if any(document.predicted for document in instance.documents):
        parts.append("⟦ ⟧ predicted rationale")
    if any(document.soft is not None for document in instance.documents):
        parts.append("shade: soft score, from the document's lowest to its highest")
    empty = sum(document.empty_gold for document in instance.documents)
    if empty:
        parts.append(f"{empty} empty evidence {'span' if empty == 1 else 'spans'} not drawn")
    return " · ".join(parts) or "no evidence and no prediction to mark"


def _title(instance: MarkedInstance, place: int) -> str:
    """Return a document's heading: its name and length, and the side of a pair."""
    document = instance.documents[place]
    side = f"{instance.titles[place]} · " if instance.titles else ""
    return f"{side}{show_controls(document.docid)} · {document.num_tokens} tokens"


def _top(instance: MarkedInstance, place: int) -> str:
    """Return the top tokens of one side, most important first; tokens of both sides are marked."""
    if place >= len(instance.tops) or not instance.tops[place]:
        return ""
    shared = set.intersection(*map(set, instance.tops)) if len(instance.tops) > 1 else set()
    words = " · ".join(show_controls(word) + ("*" if word in shared else "") for word in instance.tops[place])
    return f"top tokens: {words}" + ("   (* on both sides)" if shared else "")


def _heading(instance: MarkedInstance) -> Text:
    from rich.text import Text

    head = Text(show_controls(instance.annotation_id), style="bold")
    if instance.label:
        head.append(f"  gold {show_controls(instance.label)}", style="")
    if instance.predicted_label is not None:
        verdict = {True: " (right)", False: " (wrong)", None: ""}[instance.right]
        probability = instance.probabilities.get(instance.predicted_label)
        certainty = "" if probability is None else f" p={probability:.3f}"
        head.append(f"  predicted {show_controls(instance.predicted_label)}{certainty}{verdict}")
    if instance.query:
        head.append(f"\nquery: {show_controls(instance.query)}")
    return head


def _terminal(document: MarkedDocument, *, fold: bool) -> Text:
    from rich.text import Text

    text = Text()
    for folded, lines in fold_sentences(document, fold):
        if folded:
            text.append(f"{_skipped(len(lines))}\n", style="dim")
            continue
        for line in lines:
            for index, piece in enumerate(line):
                text.append(" " if index else "")
                for group in piece.opens:
                    text.append(f"‹{format_group_number(group)}", style=f"bold {GOLD}")
                text.append("⟦" * piece.span_opens, style=f"bold {PREDICTED}")
                text.append(show_controls(piece.text), style=_style(piece))
                text.append("⟧" * piece.span_closes, style=f"bold {PREDICTED}")
                text.append("›" * len(piece.closes), style=f"bold {GOLD}")
            text.append("\n")
    text.rstrip()
    return text


def _skipped(count: int) -> str:
    return f"… {count} {'sentence' if count == 1 else 'sentences'} …"


def _style(piece: Piece) -> str:
    styles = []
    if piece.groups:
        styles.append(f"underline {GOLD}")
    if piece.predicted:
        styles.append("bold" if piece.groups else f"bold {PREDICTED}")
    if piece.shade:
        styles.append(f"on {_SHADE_HEX[piece.shade]}")
        if not piece.groups and not piece.predicted:
            styles.append("black")
    return " ".join(styles)
