"""A text with gold evidence and the rationales of one or several methods, in a notebook or a terminal.

Every mark has a sign beside its colour, so it is readable in a pipe, in monochrome print and for colour-blind readers.
Gold evidence is underlined and opens with ``‹`` and its group's number; a predicted span is between ``⟦`` and ``⟧``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from eraser_hub.metrics import plain
from eraser_hub.metrics.rows import ID_FIELDS, row_id
from eraser_hub.records.errors import DataError, show, show_controls

from .marks import Answer, MarkedDocument, MarkedText, join_outputs, join_records, mark_answer, mark_text
from .page import fill_template

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.text import Text

    from eraser_hub.metrics.gold import Gold

# a mapping without any of them holds several outputs by name
OUTPUT_FIELDS = frozenset((*ID_FIELDS, *plain.FORMS, "rationales", "rationale_mask", "outcome"))
TEXT_FIELDS = frozenset(("text", "tokens", "rationale_mask"))  # of rows other than those of ``eraser``
SUPERSCRIPT = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
# Okabe and Ito's blue, and their vermilion darkened until it reads on white and on black: distinguishable with any of
# the common colour deficiencies
COLOURS = {"gold": "#0072B2", "predicted": "#BD5000"}
SHADES = ("", "#f3e9f2", "#e6cfe3", "#d8b2d3", "#c894c1")  # of soft scores, light to dark
LINE_STYLES = ("solid", "double", "dashed", "dotted", "wavy")  # of evidence groups


class Marks(NamedTuple):
    """The marks of a token: its lowest evidence group (-1: none), a predicted span, the step of its score."""

    group: int = -1
    is_predicted: bool = False
    shade: int = 0

    @property
    def css(self) -> str:
        """Return the style of the text for a browser."""
        styles = [f"background:{SHADES[self.shade]}"] if self.shade else []
        if self.group >= 0:
            line = LINE_STYLES[self.group % len(LINE_STYLES)]
            styles.append(f"text-decoration:underline {line} {COLOURS['gold']} 2px;text-underline-offset:4px")
        styles += [f"border-top:2px solid {COLOURS['predicted']}"] if self.is_predicted else []
        return ";".join(styles)

    @property
    def style(self) -> str:
        """Return the style of the text for rich."""
        styles = [f"underline {COLOURS['gold']}"] if self.group >= 0 else []
        if self.is_predicted:
            styles.append("bold" if self.group >= 0 else f"bold {COLOURS['predicted']}")
        if self.shade:
            styles.append(f"on {SHADES[self.shade]}" if styles else f"black on {SHADES[self.shade]}")
        return " ".join(styles)


class Run(NamedTuple):
    """Tokens of a sentence with the same marks, their controls visible; (sign, kind of mark) before and after them."""

    before: list[tuple[str, str]]
    text: str
    marks: Marks
    after: list[tuple[str, str]]


def make_runs(text: MarkedText, answer: Answer, place: int) -> list[list[Run]]:
    """Return the runs of each sentence of a text's document, as a system marks it.

    Args:
        text: the text.
        answer: of the system.
        place: the document's.
    """
    document = text.documents[place]
    n = document.num_tokens
    groups, is_predicted, shades = [-1] * n, [False] * n, [0] * n
    before, after = dict[int, list[tuple[str, str]]](), dict[int, list[tuple[str, str]]]()
    for start, end in (span[1:] for span in answer.hard or () if span[0] == place):
        is_predicted[start:end] = [True] * (end - start)
        before.setdefault(start, []).append(("⟦", "predicted"))
        after.setdefault(end - 1, []).append(("⟧", "predicted"))
    # the last group opens first in front of a token: each is put before the others
    gold = {span[1:] for span in text.gold if span[0] == place}
    for start, end, group in sorted(gold, key=lambda span: (-span[2], span)):
        groups[start:end] = [group] * (end - start)
        before.setdefault(start, []).insert(0, (f"‹{str(group + 1).translate(SUPERSCRIPT)}", "gold"))
        after.setdefault(end - 1, []).append(("›", "gold"))
    if answer.soft and (soft := answer.soft[place]):
        shades = list(map(int, soft))
    marks, lines, token = list(map(Marks, groups, is_predicted, shades)), [], 0
    for sentence in document.sentences:
        runs, start, end = list[Run](), token, token + len(sentence)
        for at in range(token + 1, end + 1):
            if at == end or marks[at] != marks[start] or at in before or at - 1 in after:
                words = show_controls(" ".join(sentence[start - token : at - token]))
                runs.append(Run(before.get(start, []), words, marks[start], after.get(at - 1, [])))
                start = at
        lines.append(runs)
        token = end
    return lines


@dataclass(frozen=True, slots=True)
class Highlight:
    """Result of `highlight`: HTML in a notebook, rich text in a terminal, plain text by ``str``.

    Attributes:
        text: the text, with the answers of systems by name; "" for one without a name, or none.
        fold: True folds away sentences far from any mark.
    """

    text: MarkedText
    fold: bool = True

    def fold_sentences(self, place: int) -> Iterator[tuple[str, list[tuple[list[Run], ...]]]]:
        """Yield runs of a document's sentences: (what stands in their place, each sentence as each system marks it).

        Folded are sentences without a mark in them or beside them; "" stands before those that are shown. Without any
        mark the first three are shown.
        """
        rows = list(zip(*(make_runs(self.text, answer, place) for answer in self.text.answers.values()), strict=True))
        marks = [[run.marks for runs in row for run in runs] for row in rows]
        spans = [any(mark.group >= 0 or mark.is_predicted for mark in row) for row in marks]
        peaks = [any(mark.shade == len(SHADES) - 1 for mark in row) for row in marks]
        found = next(filter(any, (spans, peaks)), [number == 1 for number in range(len(rows))])
        near = [not self.fold or any(found[max(0, at - 1) : at + 2]) for at in range(len(rows))]
        for shown, group in groupby(zip(near, rows, strict=True), key=lambda pair: pair[0]):
            sentences = [row for _, row in group]
            count = len(sentences)
            yield "" if shown else f"… {count:,} {'sentence' if count == 1 else 'sentences'} …", sentences

    def describe(self, name: str) -> str:
        """Return a system's name and what it predicts."""
        answer = self.text.answers[name]
        words = [name] if name else []
        if answer.label is not None:
            probability = answer.p.get(answer.label)
            certainty = "" if probability is None else f" p={probability:.3f}"
            verdict = {True: " (right)", False: " (wrong)", None: ""}[self.text.is_right(name)]
            words.append(f"predicted {answer.label}{certainty}{verdict}")
        return show_controls(" · ".join(words))

    def describe_document(self, document: MarkedDocument) -> str:
        """Return a document's heading: its name where it has its own, and its length."""
        name = f"{document.docid} · " if document.docid != self.text.annotation_id else ""
        return show_controls(f"{name}{document.num_tokens:,} tokens")

    @property
    def legend(self) -> str:
        """The line below the texts: the marks that occur."""
        answers, empty = self.text.answers.values(), self.text.empty_gold
        parts = {
            "‹¹ › gold evidence and its group": bool(self.text.gold),
            "⟦ ⟧ predicted rationale": any(answer.hard for answer in answers),
            "shade: score, from the document's lowest to its highest": any(answer.soft for answer in answers),
            f"{empty} empty evidence {'span' if empty == 1 else 'spans'} not drawn": bool(empty),
        }
        return " · ".join(words for words, shown in parts.items() if shown) or "no evidence and no prediction to mark"

    def _repr_html_(self) -> str:
        """Return self-contained markup: inline styles only, no script, every text escaped."""
        return fill_template("highlight.html", shown=self, text=self.text, colours=COLOURS)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.text import Text

        text, names = self.text, list(self.text.answers)
        head = Text(show_controls(text.annotation_id), style="bold")
        head.append(f"  gold {show_controls(text.label)}" if text.label else "", style="not bold")
        head.append(f"  {self.describe(names[0])}" if len(names) == 1 else "", style="not bold")
        head.rstrip()
        yield head
        if text.query:
            yield Text(f"query: {show_controls(text.query)}")
        for place, document in enumerate(text.documents):
            yield Text(f"\n{self.describe_document(document)}", style="bold")
            parts = list(self.fold_sentences(place))
            columns = []
            for column, name in enumerate(names):
                columns.append(Text())
                if len(names) > 1:
                    columns[-1].append(f"{self.describe(name)}\n", style="bold")
                _draw(columns[-1], parts, column)
            yield Text("\n\n").join(columns)
        yield Text(f"\n{self.legend}", style="dim")

    def __str__(self) -> str:
        import io

        from rich.console import Console

        stream = io.StringIO()
        # soft_wrap: lines as long as the sentences, so that the text can be searched and compared
        Console(file=stream, color_system=None, width=100).print(self, soft_wrap=True, end="")
        return stream.getvalue()


def _draw(text: Text, parts: Sequence[tuple[str, Sequence[tuple[list[Run], ...]]]], column: int) -> None:
    """Append a document to a text, as the system of a column marks it."""
    for folded, rows in parts:
        if folded:
            text.append(f"{folded}\n", style="dim")
            continue
        for row in rows:
            for number, run in enumerate(row[column]):
                text.append(" " if number else "")
                for sign, kind in run.before:
                    text.append(sign, style=f"bold {COLOURS[kind]}")
                text.append(run.text, style=run.marks.style)
                for sign, kind in run.after:
                    text.append(sign, style=f"bold {COLOURS[kind]}")
            text.append("\n")
    text.rstrip()


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
    outputs: Mapping[str, Any] = instance if several else {"": instance}
    is_record = isinstance(row, Mapping) and "sample_type" in row
    annotation, gold = (join_records([row]), None) if is_record else read_row(row, next(iter(outputs.values())))
    text = mark_text(annotation, label_names)
    for name, output in outputs.items():
        try:
            if output is not None:
                as_row = {row_id(output) or "": output}
                output = fit_instance(annotation, gold, output) if gold else join_outputs([row], as_row, label_names)
            text.answers[name] = mark_answer(text, output)
        except DataError as error:
            error.argument = f"instance[{name!r}]" if several else "instance"
            raise
    return Highlight(text, fold)


def read_row(row: Any, instance: Any) -> tuple[Mapping[str, Any], Gold]:
    """Return a row or a text as a row of ``eraser``, and its gold; a text alone has the id of its ``instance``."""
    from eraser_hub.metrics.gold import read_gold  # with Arrow

    row = {"text": row} if isinstance(row, str | list) else row
    if not isinstance(row, Mapping):
        raise DataError(f"expected a row or a text, found {show(row)}", argument="row")
    if "evidences" not in row and not TEXT_FIELDS.isdisjoint(row):
        # a text alone is a plain row without a rationale
        cells = {"rationale": []} | {name: value for name, value in row.items() if value is not None}
        row, _ = plain.make_annotation(cells, row_id(row) or row_id(instance) or "0", Counter())
    try:
        # the label is read where it is marked: here it may be a number without a name
        return row, read_gold([{**row, "classification": None}], required=("documents", "evidences"))
    except UnicodeError:
        message = "expected text, found half a character (a lone surrogate)"
        raise DataError(message, instance=row_id(row)) from None


def fit_instance(row: Mapping[str, Any], gold: Gold, instance: Any) -> Any:
    """Return an output for a row as an instance that fits it, as scoring checks it; errors as of `highlight`."""
    from eraser_hub.metrics.match import Matcher
    from eraser_hub.metrics.predictions import read_predictions
    from eraser_hub.metrics.spans import match_rationales

    if plain.is_plain(instance):
        name = row_id(instance) or gold.ids[0]
        instance = plain.make_instance(instance, name, plain.read_text(row, name), Counter())
    read_predictions([instance])
    marks = {name: instance[name] for name in (*ID_FIELDS, "rationales") if name in instance}
    match_rationales(Matcher(gold).add(read_predictions([marks])))
    return instance
