"""The public function `import_corpus`: a corpus of any shape becomes a corpus folder."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from eraser_hub.metrics.errors import check_choice
from eraser_hub.records.arguments import PYTHON, Place
from eraser_hub.records.errors import DataError, UsageError, show

if TYPE_CHECKING:
    from .corpus import Columns, Imported
    from .sources import Source
    from .tasks import TaskReader

Names = str | Sequence[str] | None
Offsets = Literal["tokens", "characters", "sentences", "indices"]
COLUMNS, OTHERS = Parameter(group="Columns"), Parameter(group="Recipes and annotation tools")
TEXTS, MARKS = ("tokens", "text"), ("mask", "spans", "quotes")
log = logging.getLogger("eraser_hub")


def import_corpus(
    source: Place | Mapping[str, Any] | Iterable[Any],
    name: str,
    *,
    out: Place,
    split: Mapping[str, Place] | Sequence[str] = (),
    force: bool = False,
    tokens: Annotated[Names, COLUMNS] = None,
    text: Annotated[Names, COLUMNS] = None,
    label: Annotated[str | None, COLUMNS] = None,
    mask: Annotated[Names, COLUMNS] = None,
    spans: Annotated[Names, COLUMNS] = None,
    quotes: Annotated[Names, COLUMNS] = None,
    offsets: Annotated[Offsets | None, COLUMNS] = None,
    query: Annotated[str | None, COLUMNS] = None,
    id: Annotated[str | None, COLUMNS] = None,
    annotator: Annotated[str | None, COLUMNS] = None,
    recipe: Annotated[str | None, OTHERS] = None,
    span_label: Annotated[Names, OTHERS] = None,
    annotators: Annotated[Literal["groups", "majority"], PYTHON] = "groups",
    tokenizer: Annotated[str | None, PYTHON] = None,
    config: Annotated[str | None, PYTHON] = None,
    reader: Annotated[str | None, PYTHON] = None,
) -> Imported:
    """Turn a table, a dataset or an annotation tool's files into a corpus folder.

    `build`, `score` and `train` read the folder, OUT/NAME. A column in another is named with a dot: annotators.label.
    What is left out or changed is counted.

    Args:
        source: Table (csv, tsv, json, jsonl, parquet; https:// and hf:// too), a dataset's folder or Hub id, or what
            doccano, Label Studio, Prodigy, brat or a CAS tool exports. In Python also rows: a Dataset or a list of
            dicts, or a mapping of splits to them.
        name: Name of the corpus, its folder and its config.
        out: Folder for the corpus folder.
        split: SPLIT=FILE, or SPLIT=SPLIT of a dataset; repeat it. The file `source` is train.
        force: Replace the files of an earlier import; other files stay.
        tokens: Column of lists of tokens; repeat it for several texts a row.
        text: Column of texts, or of lists of sentences, in place of `tokens`.
        label: Column of the label or of several people's labels, or a tool's question; found if there is one candidate.
        mask: Column of a 0 or 1 for each token, or a list of these for each annotator; one for each text, or of one
            text one for each annotator.
        spans: Column of [start, end] pairs, in place of `mask`.
        quotes: Column of passages of the text, a list or with ; between, in place of `mask`.
        offsets: What spans count: tokens (of `tokens`), characters (of `text`), sentences; or indices, numbers of
            marked tokens.
        query: Column of the question about the text.
        id: Column of ids; by default SPLIT_LINE.
        annotator: Column of names, in a table with a row per text and person, or of lists of names.
        recipe: Recipe of a release, which names the columns: hatexplain, ecqa, cos-e, scifact, hotpotqa, docred,
            beeradvocate-aspects, toxic-spans, e-snli-highlights, or a YAML file.
        span_label: Label of a tool's marks that are evidence; repeat it. Not needed if all have one label.
        annotators: what several annotators become: groups (a group of evidences each), or majority (one group, of the
            tokens that more than half of them marked).
        tokenizer: what cuts `text`: whitespace, or a tokenizer's folder; by default U+0020 separates.
        config: the configuration of a dataset that has several.
        reader: the reader of the files, of a tool or a plug-in; by default it is found by looking.

    Returns:
        The folder, its numbers of rows, its labels, and notes of what was chosen, changed and left out.

    Raises:
        DataError: a cell is wrong, with file, line (or dataset and row) and column; the folder is there already;
            arguments that do not go together.

    Examples:
        >>> from eraser_hub import import_corpus
        >>> rows = [{"words": ["a", "fine", "film"], "marked": [0, 1, 0], "opinion": "good"}]
        >>> print(import_corpus(rows, "films", out="corpora", tokens="words", mask="marked", label="opinion"))
        corpora/films: train 1; labels good

        $ eraser-hub import reviews.csv films --out corpora --text review --quotes Anna --quotes Ben --label stars
        $ eraser-hub import org/claims claims --out corpora --split train=train --split test=test --text abstract \
          --spans evidence --offsets sentences --query claim --label verdict
        $ eraser-hub import export.json mine --out corpora --span-label RATIONALE
        $ eraser-hub import scifact/claims_train.jsonl claims --out corpora --recipe scifact
    """
    from .corpus import write_corpus
    from .recipes import open_recipe
    from .task_rows import make_source
    from .texts import BLANKS

    check_choice(annotators, ("groups", "majority"), "annotators")
    lists = {"tokens": tokens, "text": text, "mask": mask, "spans": spans, "quotes": quotes}
    columns = {argument: columns for argument, value in lists.items() if (columns := _list_names(value))}
    singles = {"label": label, "query": query, "id": id, "annotator": annotator}
    roles = {argument: column for argument, column in singles.items() if column is not None}
    splits = _parse_splits(split)
    facts: Mapping[str, str] | None = None
    notes: list[str] = []
    if recipe is not None:
        if named := [*columns, *roles, *(["offsets"] if offsets else []), *(["reader"] if reader else [])]:
            raise UsageError("expected none, for the recipe names the columns", argument=named[0])
        sources, by_role, facts = open_recipe(recipe, _open_rows(source, splits, config))
    elif _is_export(source, columns, span_label, reader):
        exports = _open_exports({"train": source, **splits}, reader, columns.get("text", ()))
        sources, by_role, notes = make_source(exports, _list_names(span_label), label, query, id, tokenizer is not None)
    else:
        _check_columns(columns, offsets, span_label, tokenizer)
        sources = _open_rows(source, splits, config, reader)
        by_role = _make_columns(columns, offsets, roles, sources)
    how: dict[str, Any] = {"annotators": annotators, "tokenizer": tokenizer or BLANKS, "force": force, "facts": facts}
    done = write_corpus(sources, name, by_role, out, **how)
    next_step = f"next: eraser-hub build eraser --source {done.folder} --out hub"
    return replace(done, notes=[*notes, *done.notes, next_step])


def _list_names(value: Names) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value or ())


def _parse_splits(splits: Mapping[str, Place] | Sequence[str]) -> dict[str, str]:
    """Return split -> file, or split of the dataset, of a mapping or of ``SPLIT=FILE``."""
    if isinstance(splits, Mapping):
        return {split: os.fspath(file) for split, file in splits.items()}
    others: dict[str, str] = {}
    for pair in _list_names(splits):
        split, _, file = pair.partition("=")
        if not split or not file:
            raise UsageError(f"expected SPLIT=FILE, found {show(pair)}", argument="split")
        if split in others:
            raise UsageError(f"expected each split once, found {split} twice", argument="split")
        others[split] = file
    return others


def _is_file(source: Any, reader: str | None) -> bool:
    """Return True if a source is a file with a row a line, not a dataset and not rows in memory."""
    from .sources import list_suffixes

    return isinstance(source, str | os.PathLike) and (reader is not None or os.fspath(source).endswith(list_suffixes()))


def _is_export(source: Any, columns: Mapping[str, Any], span_label: Names, reader: str | None) -> bool:
    """Return True if the marks and labels of an annotation tool's export are wanted, not columns of its rows."""
    from eraser_hub.conversion.download import fetch_file

    from .sources import READERS, find_tools
    from .tasks import TaskReader

    if not isinstance(source, str | os.PathLike) or columns.keys() - {"text"}:
        return False
    if reader is not None:
        return issubclass(READERS.find(reader, "reader"), TaskReader)
    return bool(span_label) or not columns or bool(find_tools(fetch_file(os.fspath(source))))


def _open_exports(files: Mapping[str, Any], reader: str | None, text: Sequence[str]) -> dict[str, TaskReader]:
    """Open the exports of an annotation tool."""
    from eraser_hub.conversion.download import fetch_file

    from .sources import UnknownEndingError, open_file, open_tool

    paths = {split: fetch_file(os.fspath(file)) for split, file in files.items()}
    try:
        return {split: open_tool(path, reader, text) for split, path in paths.items()}
    except (UsageError, UnknownEndingError):
        if reader is not None or text:
            raise
    # the user has a table and named no column
    found = ""
    with suppress(DataError):
        row = next(open_file(paths["train"]).rows(), None)
        found = "" if row is None else f"; {paths['train'].name} has {', '.join(map(show, row.cells))}"
    raise UsageError(f"expected one of `tokens`, `text`, the column of the texts, found none{found}")


def _check_columns(
    columns: Mapping[str, Sequence[str]], offsets: str | None, span_label: Names, tokenizer: str | None
) -> None:
    """Check that the columns that the user names go together."""
    for group, is_needed in ((TEXTS, True), (MARKS, False)):
        named = [argument for argument in group if argument in columns]
        if len(named) > 1 or (is_needed and not named):
            known = ", ".join(f"`{argument}`" for argument in group)
            found = " and ".join(f"`{argument}`" for argument in named) or "none"
            raise UsageError(f"expected one of {known}, found {found}")
    texts, marks = (next((argument for argument in group if argument in columns), "") for group in (TEXTS, MARKS))
    several = len(columns[texts])
    if marks and several > 1 and len(columns[marks]) != several:  # of one text a column an annotator
        message = f"expected a column for each of `{texts}` ({several}), found {len(columns[marks])}"
        raise UsageError(message, argument=marks)
    if offsets is not None and marks != "spans":
        raise UsageError("expected it beside `spans` alone", argument="offsets")
    if tokenizer is not None and texts == "tokens":
        raise UsageError("expected it beside `text` alone, for `tokens` are cut already", argument="tokenizer")
    if span_label:
        raise UsageError("expected it for an annotation tool's marks alone", argument="span_label")


def _open_rows(
    source: Any, splits: Mapping[str, str], config: str | None, reader: str | None = None
) -> dict[str, Source]:
    """Open the rows of each split."""
    from eraser_hub.conversion.download import fetch_file

    from .sources import open_dataset, open_file, wrap_rows

    if _is_file(source, reader):
        if "train" in splits:
            raise UsageError("expected other splits than train, which is `source`", argument="split")
        files = {"train": source, **splits}
        return {split: open_file(fetch_file(os.fspath(file)), reader) for split, file in files.items()}
    if isinstance(source, str | os.PathLike):
        found = open_dataset(os.fspath(source), config)
        if not splits:
            first = "train" if "train" in found else next(iter(found))
            rest = [split for split in found if split != first]
            left_out = f" (left out: {', '.join(rest)}; `split` SPLIT=SPLIT takes them)" if rest else ""
            log.warning(f"split: {first}{left_out}")
            splits = {"train": first}
    else:
        rows = source if isinstance(source, Mapping) else {"train": source}
        found = {str(split): wrap_rows(each, str(split)) for split, each in rows.items()}
        splits = splits or {split: split for split in found}
    for split in splits.values():
        check_choice(split, found, "split")
    return {split: found[name] for split, name in splits.items()}


def _make_columns(
    columns: Mapping[str, tuple[str, ...]],
    offsets: str | None,
    roles: dict[str, str],
    sources: Mapping[str, Source],
) -> Columns:
    """Return the columns by role; the label is found if the user does not name it."""
    from .corpus import Columns
    from .sources import find_label_column, find_tools

    first, is_tokenized = next(iter(sources.values())), "tokens" in columns
    for tool in find_tools(Path(first.name)):
        log.warning(
            f"{first.name} looks like an export of {tool}. Its rows are read as plain rows, rejected ones too; "
            "without columns of texts and marks its answers and labels count"
        )
    if "label" not in roles:
        used = {column for group in (*columns.values(), roles.values()) for column in group}
        roles["label"], values = find_label_column(first, used)
        log.warning(f"label: {roles['label']} ({values}), the only candidate")
    kind = next((argument for argument in MARKS if argument in columns), "mask")
    return Columns(
        texts=columns["tokens" if is_tokenized else "text"],
        marks=columns.get(kind, ()),
        tokenized=is_tokenized,
        kind=kind,
        offsets=offsets or ("tokens" if is_tokenized else "characters"),
        **roles,
    )
