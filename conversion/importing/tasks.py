"""Tasks of an annotation tool -> annotations: which marks are evidence, what is the label, what is the query.

A reader in `readers/` is a module with ``TITLE``, ``recognizes(path)``, which looks at a file or folder and never
raises, and ``read_tasks(path, text)``, which yields tasks and raises a DataError at the first fault; ``text`` is the
column of the text where the export does not say it.
"""

from __future__ import annotations

import importlib
import json
import logging
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from eraser_hub.conversion.readers import read_utf8_file
from eraser_hub.metrics.errors import check_choice
from eraser_hub.records.errors import DataError, UsageError, show

from .rows import Columns
from .sources import Source, SourceRow, describe_counts, find_label_column, pick_label
from .tally import Tally, locate
from .texts import WORDS, Span, cut_text, get_cell, make_text, parse_word

TOOLS = ("doccano", "label_studio", "prodigy", "brat", "cas")
QUERY, RELATION = "query", "relation"  # the column and the question of tasks with relations: see `split_queries`
log = logging.getLogger("eraser_hub")


class Mark(NamedTuple):
    """A marked span of the text.

    Attributes:
        start, end: its characters, the end exclusive.
        label: its label or type.
        id: by which relations name it; the parts of one mark share it.
        attributes: its features: name -> value.
        words: its own words, if the export has them; they have to stand there.
    """

    start: int
    end: int
    label: str
    id: str = ""
    attributes: Mapping[str, str] = {}
    words: str | None = None


@dataclass
class Task:
    """A text with the marks and answers of one person.

    Attributes:
        file, line: where it is from; the line is its number, from 1, where the file has no lines.
        text: the text.
        marks: the marked spans.
        answers: name of a question -> the chosen labels of the whole text.
        annotator: name of the person; None if the file has none.
        id: the tool's id of the text.
        fields: further columns.
        relations: (label, id, id) of each relation of two marks.
        tokens: [start, end) of each token of each sentence, where the tool has tokens.
        left_out: why the task is not imported: a key of `tally.WORDS`.
        counts: what the reader changed, by keys of `tally.WORDS`.
    """

    file: Path
    line: int
    text: str
    marks: list[Mark] = field(default_factory=list)
    answers: dict[str, list[str]] = field(default_factory=dict)
    annotator: str | None = None
    id: str | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)
    relations: list[tuple[str, str, str]] = field(default_factory=list)
    tokens: list[list[Span]] | None = None
    left_out: str = ""
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def place(self) -> str:
        """File and line, for the tally."""
        return f"{self.file.name}:{self.line}"


def find_tool(path: Path) -> Any:
    """Return the reader of the tool that wrote a file or folder; None for others."""
    for name in TOOLS:
        tool: Any = importlib.import_module(f"{__package__}.readers.{name}")
        if tool.recognizes(path):
            return tool
    return None


def look_at_first_row(path: Path) -> dict[str, Any]:
    """Return the first object of JSON lines, or of a JSON list; {} for any other file."""
    if not path.name.endswith((".jsonl", ".ndjson", ".json")) or not path.is_file():
        return {}
    with path.open("rb") as file:
        start = file.read(1 << 24).decode("utf-8", "replace").removeprefix("\ufeff").lstrip()
    try:
        value, _ = json.JSONDecoder().raw_decode(start[1:].lstrip() if start.startswith("[") else start)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def read_text_file(path: Path) -> str:
    """Return a file's text with its line ends as they are.

    Raises:
        DataError: the file cannot be read, or is no UTF-8.
    """
    return read_utf8_file(str(path)).decode("utf-8").removeprefix("\ufeff")


def read_offsets(value: Any, column: str) -> Span:
    """Return the start and the end of an object.

    Raises:
        DataError: it has none that are whole numbers.
    """
    if not isinstance(value, dict) or not all(type(value.get(name)) is int for name in ("start", "end")):
        raise DataError(f"expected an object with whole numbers as start and end, found {show(value)}", field=column)
    return value["start"], value["end"]


def read_list(cells: Mapping[str, Any], name: str) -> list[Any]:
    """Return a cell that is a list; an empty one for null.

    Raises:
        DataError: it is something else.
    """
    if not isinstance(value := cells.get(name) or [], list):
        raise DataError(f"expected a list, found {show(value)}", field=name)
    return value


# -- tasks to annotations ---------------------------------------------------------------------------------------------


def read_tool(
    files: Mapping[str, Path],
    tool: Any,
    text: str | None,
    span_labels: Sequence[str],
    label: str | None,
    query: str | None,
    id: str | None,
    tokenizer: str | None,
    tally: Tally,
) -> tuple[dict[str, Source], Columns]:
    """Read a tool's files as tables with a row for each text and person, and return these with their columns.

    Args:
        files: split -> its file or folder.
        tool: the reader.
        text: column of the text.
        span_labels: labels, or values of attributes, of the marks that are evidence.
        label: the question whose answer is the label, an attribute of marks, or a column.
        query: column of the query.
        id: column of the id.
        tokenizer: what cuts the texts; None: the tool's tokens if it has any, else words.
        tally: counts what is left out.

    Raises:
        DataError: a file is at fault; or the tasks leave a choice open, which the message names.
    """
    log.warning(f"reader: {tool.TITLE}")
    splits: dict[str, list[Task]] = {split: [] for split in files}
    for split, path in files.items():
        for task in tool.read_tasks(path, text):
            if task.left_out or not (task.marks or task.answers or task.relations):
                tally.add(task.left_out or "not annotated", place=task.place)
                continue
            for key, count in task.counts.items():
                tally.add(key, count, place=task.place)
            with locate(task.file, task.line):
                task.id = task.id if id is None else parse_word(get_cell(task.fields, id), id)
            splits[split].append(task)
    evidence = choose_evidence([task for some in splits.values() for task in some], span_labels)
    splits = {split: list(split_queries(some, evidence, tally)) for split, some in splits.items()}
    tasks = [task for some in splits.values() for task in some]
    if query is None and any(RELATION in task.answers for task in tasks):
        log.warning("query: each mark that a relation joins to evidence")
        query = QUERY
    label = choose_label(tasks, label, evidence) if tasks else ""
    person = "annotator" if any(task.annotator is not None for task in tasks) else None
    is_gold = not any(label in task.answers or any(label in mark.attributes for mark in task.marks) for task in tasks)
    tokenizer = tokenizer or ("tool" if all(task.tokens is not None for task in tasks) else WORDS)
    columns = Columns(("text",), ("spans",), "label", False, "spans", "characters", query, "id", person, is_gold)
    return {
        split: Source(str(files[split]), partial(make_rows, some, split, evidence, label, tokenizer, columns, tally))
        for split, some in splits.items()
    }, columns


def choose_evidence(tasks: Sequence[Task], span_labels: Sequence[str]) -> set[str]:
    """Return the labels of the marks that are evidence: those that are named, or the only one.

    Raises:
        UsageError: there are several, and none is named; a label that is not there.
    """
    marks = [mark for task in tasks for mark in task.marks]
    labels = Counter(mark.label for mark in marks)
    names = labels.keys() | {value for mark in marks for value in mark.attributes.values()}
    unknown = [name for name in span_labels if name not in names]
    if unknown or (not span_labels and len(labels) > 1):
        found = f"found {show(unknown[0])}" if unknown else "found none named"
        message = f"expected labels of the marks that are evidence, {found}; there are: {describe_counts(labels)}"
        raise UsageError(message, argument="span_label")
    if labels and not span_labels:
        log.warning(f"evidence: the marks with the label {show(next(iter(labels)))}, the only one")
    return {*span_labels} or {*labels}


def is_evidence(mark: Mark, evidence: set[str]) -> bool:
    """Return True if a mark is evidence, by its label or an attribute."""
    return bool({mark.label, *mark.attributes.values()} & evidence)


def split_queries(tasks: Sequence[Task], evidence: set[str], tally: Tally) -> Iterator[Task]:
    """Yield tasks with marks of evidence alone; of a task with relations, one for each mark that these join to some.

    The relations' labels become answers to the question `RELATION`, and the joined mark's words the query. Queries of
    several people are one if they mark the same words.
    """
    numbers: dict[str | None, dict[tuple[Span, ...], int]] = {}
    for task in tasks:
        marks: dict[str, list[Mark]] = {}
        for mark in task.marks:
            marks.setdefault(mark.id, []).append(mark)
        kinds = {id: is_evidence(parts[0], evidence) for id, parts in marks.items()}
        joined: dict[str, list[tuple[str, str]]] = {}  # the query's id -> label and evidence of its relations
        for name, *ends in task.relations:
            for one, other in (ends, ends[::-1]):
                if (kinds.get(one), kinds.get(other)) == (True, False):
                    joined.setdefault(other, []).append((name, one))
        tally.add("relations", len(task.relations) - sum(map(len, joined.values())), place=task.place)
        if not joined:
            yield task
        for query, pairs in joined.items():
            spans = tuple((part.start, part.end) for part in marks[query])
            number = numbers.setdefault(task.id, {}).setdefault(spans, len(numbers[task.id]) + 1)
            fields = {**task.fields, QUERY: " ".join(" ".join(task.text[start:end] for start, end in spans).split())}
            answers = {**task.answers, RELATION: sorted({label for label, _ in pairs})}
            own = [mark for name in dict.fromkeys(name for _, name in pairs) for mark in marks[name]]
            yield replace(task, id=f"{task.id}_{number}", marks=own, answers=answers, fields=fields)


def choose_label(tasks: Sequence[Task], label: str | None, evidence: set[str]) -> str:
    """Return the question, the attribute of marks or the column that has the label.

    Raises:
        UsageError: there are several candidates, or none; a name that is not there.
    """
    answers: dict[str, Counter[str]] = {}
    attributes: dict[str, Counter[str]] = {}
    for task in tasks:
        for name, values in task.answers.items():
            answers.setdefault(name, Counter()).update(values)
        for name, value in (pair for mark in task.marks for pair in mark.attributes.items()):
            if value not in evidence:
                attributes.setdefault(name, Counter())[value] += 1
    questions = answers or attributes
    source = Source("tasks", lambda: (SourceRow(task.line, None, task.fields) for task in tasks))
    if label is None and questions:
        several = {name: counts for name, counts in questions.items() if len(counts) > 1}
        return pick_label(several or questions, questions)
    if label is None:
        return find_label_column(source, ())
    if label not in questions:
        columns = dict.fromkeys(name for task in tasks for name in task.fields)
        check_choice(label, [*questions, *columns], "label")
    return label


def make_rows(
    tasks: Sequence[Task],
    split: str,
    evidence: set[str],
    label: str,
    tokenizer: str,
    columns: Columns,
    tally: Tally,
) -> Iterator[SourceRow]:
    """Yield a row of each text and person, who may have annotated the text again: the last time counts.

    Raises:
        DataError: a text cannot be cut into tokens.
    """
    latest: dict[tuple[str, str | None], Task] = {}
    for task in tasks:
        key = (f"{split}_{task.line}" if task.id is None else task.id, task.annotator)
        tally.add("replaced", key in latest, place=task.place)
        latest[key] = task
    for (id, annotator), task in latest.items():
        marks = [mark for mark in task.marks if is_evidence(mark, evidence)]
        others = sum(mark not in marks and label not in mark.attributes for mark in task.marks)
        values = dict.fromkeys(mark.attributes[label] for mark in task.marks if label in mark.attributes)
        chosen = task.answers.get(label) or [value for value in values if value not in evidence]
        chosen = chosen or [task.fields[label]] if label in task.fields else chosen
        tally.add("other marks", others, place=task.place)
        tally.add("several labels", len(chosen) > 1, place=task.place)
        if len(chosen) != 1 and columns.annotator is None:
            tally.add("no label", place=task.place)
            continue
        with locate(task.file, task.line):
            if tokenizer == "tool":
                tokens = [[place for place in line if task.text[slice(*place)].strip()] for line in task.tokens or ()]
                text = make_text(task.text, tokens, "tokens")
            else:
                text = cut_text([task.text], tokenizer, "text")
        spans = [{"start": mark.start, "end": mark.end, "text": mark.words} for mark in marks]
        cells = {**task.fields, "text": text, "spans": spans, "id": id, "annotator": annotator or "1"}
        cells["label"] = chosen[0] if len(chosen) == 1 else None
        yield SourceRow(task.line, None, cells, str(task.file))
