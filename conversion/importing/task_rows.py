"""Tasks of an annotation tool -> rows of an import: which marks are evidence, what is the label, what is the query."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from eraser_hub.conversion.checks import Tally
from eraser_hub.records.errors import DataError, UsageError, show

from .corpus import Columns
from .evidence_marks import CHARACTERS, SPANS, TOKENS
from .reader import SourceRow, locate
from .sources import Source
from .tasks import NOT_ANNOTATED, Mark, Relation, Task, TaskAnnotation, TaskReader, Utf16Offsets
from .texts import Span, Text, get_cell, have_same_letters, parse_word

ANNOTATORS = "annotators"  # the column of the people, in the order of their marks
RELATION = "relation"  # the question whose answers are the labels of relations
MOST_NAMES = 8

NOTES = {
    "rejected": "tasks left out, for they are rejected",
    "ignored": "tasks left out, for they are ignored",
    "cancelled": "tasks left out, for they are cancelled",
    NOT_ANNOTATED: "tasks left out, for nobody has annotated them",
    "no label": "tasks left out, for they have no label",
    "no query": "tasks left out, for no mark in them is a query",
    "other marks": "marks with other labels, which are no evidence",
    "no evidence": "relations that join no evidence to a query, not kept",
    "unrelated": "marks of evidence that belong to no query, left out",
    "several labels": "tasks in which a person chose several labels, of which the most frequent one counts",
    "twice": "earlier annotations of the same person, replaced by the last",
    "utf-16": "marks whose offsets count UTF-16 units, converted",
    "widened tokens": "spans widened to whole tokens",
}


def make_source(
    readers: Mapping[str, TaskReader],
    span_labels: Sequence[str] = (),
    label: str | None = None,
    query: str | None = None,
    id: str | None = None,
    retokenize: bool = False,
) -> tuple[dict[str, Source], Columns, list[str]]:
    """Read the tasks of each split, and make rows of them.

    Args:
        readers: split -> the reader of its file or folder.
        span_labels: labels of the marks that are evidence.
        label: the question whose answer is the label, or a column.
        query: column of the query.
        id: column of the id.
        retokenize: cut the texts anew, although the tool has tokens.

    Returns:
        split -> rows, their columns, and notes of what was chosen and left out.

    Raises:
        DataError: a file is at fault; or the tasks leave a choice open, which the message names.
    """
    tally = Tally()
    tasks = {split: _read_tasks(reader, tally) for split, reader in readers.items()}
    _refuse_empty(tasks, readers, tally)
    every = [task for some in tasks.values() for task in some]
    for task in every if id is not None else ():
        with locate(task.file, task.number):
            task.id = parse_word(get_cell(task.fields, id or ""), id or "")
    rows = _TaskRows(span_labels, label, query, retokenize, every, tally)
    made = {split: list(rows.iterate(some)) for split, some in tasks.items()}
    _refuse_empty(made, readers, tally)
    sources = {split: Source(str(readers[split].path), some.__iter__) for split, some in made.items()}
    texts = tuple(every[0].texts)
    columns = Columns(
        texts,
        tuple(_name_spans(every[0], text) for text in texts),
        rows.label,
        rows.tokenized,
        SPANS,
        TOKENS if rows.tokenized else CHARACTERS,
        "query" if rows.query_labels else query,
        "id" if all(task.id is not None for task in every) else None,
        ANNOTATORS,
    )
    title = next(iter(readers.values())).title
    return sources, columns, [f"reader: {title}", *rows.notes, *tally.describe(NOTES)]


def _name_spans(task: Task, text: str) -> str:
    """Return the column of the marks of a text."""
    return "spans" if len(task.texts) == 1 else f"spans of {text}"


def _refuse_empty(by_split: Mapping[str, Sequence[object]], readers: Mapping[str, TaskReader], tally: Tally) -> None:
    """Raise a DataError that says why all tasks of a split are left out, if they are."""
    for split, tasks in by_split.items():
        if not tasks:
            reasons = tally.describe(NOTES)
            message = "; ".join(["expected at least one task that can be taken, found none", *reasons])
            raise DataError(message, file=readers[split].path)


# -- tasks ------------------------------------------------------------------------------------------------------------


def _read_tasks(reader: TaskReader, tally: Tally) -> list[Task]:
    """Return the tasks that were finished, with one annotation for each person."""
    merged: dict[str | int, Task] = {}
    tasks = list(reader.tasks())
    # by all marks of the file: in a text with repeated words a mark may fit either way
    utf16 = reader.counts_utf16 and all(
        _fits(mark, task, _convert_mark(mark, task))
        for task in tasks
        for annotation in task.annotations
        for mark in annotation.marks
    )
    for number, task in enumerate(tasks, 1):
        task.file = task.file or reader.path
        finished = any(each.marks or each.choices or each.relations for each in task.annotations)
        if task.left_out or not finished:
            tally.add(task.left_out or NOT_ANNOTATED, 1, [task.place])
            continue
        for annotation in task.annotations:
            annotation.marks = [_check_mark(mark, task, tally, utf16) for mark in annotation.marks]
        earlier = merged.setdefault(number if task.id is None else task.id, task)
        if earlier is task:
            continue
        if earlier.texts != task.texts:
            message = f"expected each id once, or with the same text, found {show(task.id)} again"
            raise DataError(message, file=task.file, line=task.number, field="id")
        earlier.annotations += task.annotations
    for task in merged.values():
        last = {annotation.annotator: annotation for annotation in task.annotations}
        tally.add("twice", len(task.annotations) - len(last), [task.place])
        task.annotations = list(last.values())
    return list(merged.values())


def _get_text(mark: Mark, task: Task) -> str:
    """Return the text that a mark is in."""
    return task.texts[mark.text or next(iter(task.texts))]


def _convert_mark(mark: Mark, task: Task) -> Mark:
    """Return the mark with offsets in characters, if they were in UTF-16 units."""
    offsets = Utf16Offsets(_get_text(mark, task))
    return mark._replace(start=offsets.to_character(mark.start), end=offsets.to_character(mark.end))


def _fits(mark: Mark, task: Task, at: Mark) -> bool:
    """Return True if the mark's own words, if it has them, stand at the offsets of ``at``."""
    return mark.words is None or have_same_letters(_get_text(mark, task)[at.start : at.end], mark.words)


def _check_mark(mark: Mark, task: Task, tally: Tally, utf16: bool) -> Mark:
    """Return the mark with its text's name and offsets in characters; its own words, if it has them, stand there.

    Args:
        mark: the mark.
        task: its task.
        tally: counts converted offsets.
        utf16: the file's offsets are UTF-16 units; else those of marks that do not fit as characters may be.
    """
    text, converted = _get_text(mark, task), _convert_mark(mark, task)
    if (utf16 or not _fits(mark, task, mark)) and converted != mark:
        if not _fits(mark, task, converted):
            raise _make_words_error(mark, task)
        tally.add("utf-16", 1, [task.place])
        mark = converted
    elif not _fits(mark, task, mark):
        raise _make_words_error(mark, task)
    mark = mark._replace(text=mark.text or next(iter(task.texts)))
    if not 0 <= mark.start <= mark.end <= len(text):
        message = f"expected a span within the text's {len(text)} characters, found {[mark.start, mark.end]}"
        raise DataError(message, file=task.file, line=task.number, field="spans")
    return mark


def _make_words_error(mark: Mark, task: Task) -> DataError:
    found = show(_get_text(mark, task)[mark.start : mark.end])
    message = f"expected the mark's own text {show(mark.words)} at {[mark.start, mark.end]}, found {found}"
    return DataError(message, file=task.file, line=task.number, field="spans")


# -- choices ----------------------------------------------------------------------------------------------------------


class _TaskRows:
    """Rows of tasks: which marks are evidence, which question gives the label, and which marks are queries."""

    def __init__(
        self,
        span_labels: Sequence[str],
        label: str | None,
        query: str | None,
        retokenize: bool,
        tasks: Sequence[Task],
        tally: Tally,
    ) -> None:
        self.tally = tally
        self.notes: list[str] = []
        marks = [mark for task in tasks for each in task.annotations for mark in each.marks]
        self.span_labels = self._choose_span_labels(span_labels, marks)
        self.query_labels = set[str]() if query is not None else self._find_query_labels(tasks)
        self.label = self._choose_label(label, tasks)
        self.tokenized = not retokenize and all(task.tokens is not None for task in tasks)

    def is_evidence(self, mark: Mark) -> bool:
        return bool({mark.label, *mark.attributes.values()} & self.span_labels)

    def _choose_span_labels(self, wanted: Sequence[str], marks: Sequence[Mark]) -> set[str]:
        labels = Counter(mark.label for mark in marks)
        names = labels.keys() | {value for mark in marks for value in mark.attributes.values()}
        if unknown := [name for name in wanted if name not in names]:
            found = _describe_counts(labels) or "no mark"
            message = f"expected the label of marks, found {show(unknown[0])}; there are: {found}"
            raise UsageError(message, argument="span_label")
        if wanted:
            return set(wanted)
        if len(labels) > 1:
            message = f"expected the label of the marks that are evidence, one of: {_describe_counts(labels)}"
            raise UsageError(message, argument="span_label")
        if labels:
            self.notes.append(f"evidence: the marks with the label {show(next(iter(labels)))}, the only one")
        return set(labels)

    def _find_query_labels(self, tasks: Sequence[Task]) -> set[str]:
        """Return the labels of the marks that a relation joins to evidence."""
        found = {
            query.label
            for task in tasks
            for each in task.annotations
            for _, query, _ in self.find_evidence_relations(each)
        }
        if found:
            names = ", ".join(map(show, sorted(found)))
            self.notes.append(f"query: each mark with the label {names}; relations name its evidence")
        return found

    def find_evidence_relations(self, annotation: TaskAnnotation) -> Iterator[tuple[Relation, Mark, str]]:
        """Yield (relation, the mark that is its query, the id of the mark of evidence)."""
        marks = {mark.id: mark for mark in annotation.marks if mark.id}
        for relation in annotation.relations:
            ends = [marks.get(relation.source), marks.get(relation.target)]
            for one, other in (ends, reversed(ends)):
                if one is not None and other is not None and self.is_evidence(one) and not self.is_evidence(other):
                    yield relation, other, one.id

    def _choose_label(self, wanted: str | None, tasks: Sequence[Task]) -> str:
        groups = self._list_questions(tasks)
        columns = _list_label_columns(tasks)
        if wanted is not None:
            if wanted not in groups and wanted not in columns and not _has_column(tasks, wanted):
                there = ", ".join([*groups, *columns]) or "none"
                raise UsageError(
                    f"expected a question or a column, found {show(wanted)}; there are: {there}",
                    argument="label",
                )
            return wanted
        candidates = groups or {
            name: counts for name, counts in columns.items() if 1 < len(counts) < max(3, counts.total())
        }
        if len(candidates) > 1:
            several = {name: counts for name, counts in candidates.items() if len(counts) > 1}
            candidates = several or candidates
        if len(candidates) != 1:
            there = "; ".join(f"{name} ({_describe_counts(counts)})" for name, counts in candidates.items())
            message = f"expected the question or the column of the label, one of: {there or 'none can be found'}"
            raise UsageError(message, argument="label")
        ((name, counts),) = candidates.items()
        self.notes.append(f"label: {name} ({_describe_counts(counts)}), the only candidate")
        return name

    def _list_questions(self, tasks: Sequence[Task]) -> dict[str, Counter[str]]:
        """Return question -> its answers: choices of texts, else attributes of marks and labels of relations."""
        choices: dict[str, Counter[str]] = {}
        attributes: dict[str, Counter[str]] = {}
        for task in tasks:
            for each in task.annotations:
                for name, values in each.choices.items():
                    choices.setdefault(name, Counter()).update(values)
                for mark in each.marks:
                    for name, value in mark.attributes.items():
                        if value not in self.span_labels:
                            attributes.setdefault(name, Counter())[value] += 1
                for relation, _, _ in self.find_evidence_relations(each) if self.query_labels else ():
                    attributes.setdefault(RELATION, Counter())[relation.label] += 1
        several = {name: counts for name, counts in attributes.items() if name != RELATION or len(counts) > 1}
        return choices or several

    def answer(self, annotation: TaskAnnotation, marks: Iterable[Mark], relations: Iterable[Relation]) -> list[str]:
        """Return a person's labels of a text, or of a query."""
        if self.label in annotation.choices:
            return annotation.choices[self.label]
        if self.label == RELATION and self.query_labels:
            return sorted({relation.label for relation in relations})
        values = [mark.attributes[self.label] for mark in marks if self.label in mark.attributes]
        return list(dict.fromkeys(value for value in values if value not in self.span_labels))

    # -- rows ---------------------------------------------------------------------------------------------------------

    def iterate(self, tasks: Sequence[Task]) -> Iterator[SourceRow]:
        """Yield a row for each task, or for each of its queries."""
        for task in tasks:
            if self.query_labels:
                yield from self._make_query_rows(task)
                continue
            by_person = [[mark for mark in each.marks if self.is_evidence(mark)] for each in task.annotations]
            marks = [mark for each in task.annotations for mark in each.marks]
            # a mark may have the label as an attribute
            others = sum(not self.is_evidence(mark) and self.label not in mark.attributes for mark in marks)
            relations = sum(len(each.relations) for each in task.annotations)
            self.tally.add("no evidence", relations, [task.place])
            self.tally.add("other marks", others, [task.place])
            labels = [self.answer(each, each.marks, ()) for each in task.annotations]
            row = self._make_row(task, task.id, by_person, labels, {}, task.place)
            if row is not None:
                yield row

    def _make_query_rows(self, task: Task) -> Iterator[SourceRow]:
        """Yield a row for each query of a task; the queries of several people are one if they mark the same text."""
        found: dict[tuple[Span, ...], dict[int, tuple[list[Mark], list[Relation], list[Mark]]]] = {}
        for at, annotation in enumerate(task.annotations):
            used: set[str] = set()
            relations = list(self.find_evidence_relations(annotation))
            self.tally.add("no evidence", len(annotation.relations) - len(relations), [task.place])
            for mark in annotation.marks:
                if mark.label not in self.query_labels or self.is_evidence(mark):
                    continue
                parts = [mark] if not mark.id else [each for each in annotation.marks if each.id == mark.id]
                own = [(relation, evidence) for relation, query, evidence in relations if query.id == mark.id]
                ids = {evidence for _, evidence in own}
                used |= ids
                evidence = [each for each in annotation.marks if each.id in ids]
                spans = tuple((part.start, part.end) for part in parts)
                found.setdefault(spans, {})[at] = (parts, [relation for relation, _ in own], evidence)
            lost = sum(self.is_evidence(mark) and mark.id not in used for mark in annotation.marks)
            self.tally.add("unrelated", lost, [task.place])
        self.tally.add("no query", not found, [task.place])
        for number, answers in enumerate(found.values(), 1):
            parts, _, _ = next(iter(answers.values()))
            query = " ".join(" ".join(task.texts[part.text][part.start : part.end].split()) for part in parts)
            people = [task.annotations[at] for at in answers]
            labels = [
                self.answer(each, [*marks, *evidence], relations)
                for each, (marks, relations, evidence) in zip(people, answers.values(), strict=True)
            ]
            name = None if task.id is None else f"{task.id}_{number}"
            by_person = [evidence for _, _, evidence in answers.values()]
            place = f"{task.place}: {show(query, 30)}"
            row = self._make_row(task, name, by_person, labels, {"query": query}, place, people)
            if row is not None:
                yield row._replace(key=f"{task.number}_{number}")

    def _make_row(
        self,
        task: Task,
        name: str | None,
        by_person: Sequence[Sequence[Mark]],
        labels: Sequence[Sequence[str]],
        more: Mapping[str, str],
        place: str,
        people: Sequence[TaskAnnotation] | None = None,
    ) -> SourceRow | None:
        """Return a row of the import; None, and a count, if it has no label."""
        cells: dict[str, Any] = {**task.fields, **more}
        if name is not None:
            cells["id"] = name
        if any(labels) or not _has_column([task], self.label):
            if not any(labels):
                self.tally.add("no label", 1, [place])
                return None
            cells[self.label] = [label for each in labels for label in each]
            self.tally.add("several labels", any(len(each) > 1 for each in labels), [place])
        cells[ANNOTATORS] = [each.annotator for each in people or task.annotations]
        for text, source in task.texts.items():
            marks = [[(mark.start, mark.end) for mark in some if mark.text == text] for some in by_person]
            cells[text] = source
            if self.tokenized and task.tokens is not None:
                cells[text], marks = self._cut(source, task.tokens, marks, place)
            cells[_name_spans(task, text)] = [[list(span) for span in spans] for spans in marks]
        return SourceRow(task.number, None, cells)

    def _cut(
        self, text: str, sentences: Sequence[Sequence[Span]], marks: Sequence[Sequence[Span]], place: str
    ) -> tuple[list[list[str]], list[list[Span]]]:
        """Return the tokens of each sentence, and the marks in tokens."""
        kept = [[(start, end) for start, end in tokens if text[start:end].strip()] for tokens in sentences]
        whole = Text(text, [], [span for tokens in kept for span in tokens], [], "")
        widened = sum(whole.is_widened(*span) for spans in marks for span in spans)
        self.tally.add("widened tokens", widened, [place])
        return (
            [[text[start:end] for start, end in tokens] for tokens in kept if tokens],
            [[whole.find_covered(*span) for span in spans] for spans in marks],
        )


def _list_label_columns(tasks: Sequence[Task]) -> dict[str, Counter[str]]:
    """Return column -> its values, of the columns that hold a name or a whole number for every task."""
    columns: dict[str, list[Any]] = {}
    for task in tasks:
        for name, value in task.fields.items():
            for column, each in value.items() if isinstance(value, dict) else ((None, value),):
                if isinstance(each, str | int) and not isinstance(each, bool):
                    columns.setdefault(name if column is None else f"{name}.{column}", []).append(each)
    return {name: Counter(map(str, values)) for name, values in columns.items() if len(values) == len(tasks)}


def _has_column(tasks: Sequence[Task], name: str) -> bool:
    try:
        return get_cell(tasks[0].fields, name) is not None
    except DataError:
        return False


def _describe_counts(counts: Counter[str]) -> str:
    shown = ", ".join(f"{name} {count:,}" for name, count in sorted(counts.most_common(MOST_NAMES)))
    return shown + (f" and {len(counts) - MOST_NAMES:,} more" if len(counts) > MOST_NAMES else "")
