"""The public function `import_corpus`: a corpus of any shape becomes a corpus folder."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from eraser_hub.metrics.errors import check_choice
from eraser_hub.records.arguments import PYTHON, Place
from eraser_hub.records.errors import DataError, UsageError, show

if TYPE_CHECKING:
    from .corpus import Imported
    from .sources import Source

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
    tokenizer: Annotated[Literal["words", "blanks"] | None, COLUMNS] = None,
    label: Annotated[str | None, COLUMNS] = None,
    mask: Annotated[Names, COLUMNS] = None,
    spans: Annotated[Names, COLUMNS] = None,
    quotes: Annotated[Names, COLUMNS] = None,
    offsets: Annotated[Offsets | None, COLUMNS] = None,
    allow_unfound: Annotated[bool, COLUMNS] = False,
    query: Annotated[str | None, COLUMNS] = None,
    id: Annotated[str | None, COLUMNS] = None,
    annotator: Annotated[str | None, COLUMNS] = None,
    recipe: Annotated[str | None, OTHERS] = None,
    span_label: Annotated[Names, OTHERS] = None,
    config: Annotated[str | None, PYTHON] = None,
) -> Imported:
    """Turn a table, a dataset or an annotation tool's files into a corpus folder.

    `build own` makes a dataset of the folder, OUT/NAME. A column in another is named with a dot: annotators.label.
    What is left out or changed is counted.

    Args:
        source: Table (csv, tsv, json, jsonl, parquet; https:// and hf:// too), a dataset's folder or Hub id, or what
            doccano, Label Studio, Prodigy, brat or a CAS tool exports. In Python also rows: a Dataset, a DataFrame or a
            list of dicts, or a mapping of splits to them.
        name: Name of the corpus, its folder and its config.
        out: Folder for the corpus folder.
        split: SPLIT=FILE, or SPLIT=SPLIT of a dataset; repeat it. The file `source` is train.
        force: Replace the files of an earlier import; other files stay.
        tokens: Column of lists of tokens; repeat it for several texts a row.
        text: Column of texts, or of lists of sentences, in place of `tokens`.
        tokenizer: words cuts punctuation off words; blanks keeps the text as it is, and is the default where marks
            count tokens.
        label: Column of the label or of several people's labels, or a tool's question; found if there is one candidate.
        mask: Column of a 0 or 1 for each token, or a list of these for each person; one for each text, or of one text
            one for each person.
        spans: Column of [start, end] pairs, in place of `mask`.
        quotes: Column of passages of the text, a list or with ; between, in place of `mask`.
        offsets: What spans count: tokens (of `tokens`), characters (of `text`), sentences; or indices, numbers of
            marked tokens.
        allow_unfound: Take a corpus of whose quotes more than half are not in the texts.
        query: Column of the question about the text.
        id: Column of ids; by default SPLIT_LINE.
        annotator: Column of names, in a table with a row per text and person, or of lists of names.
        recipe: Recipe of a release, which names the columns: hatexplain, ecqa, cos-e, scifact, hotpotqa, docred,
            beeradvocate-aspects, toxic-spans, e-snli-highlights, or a YAML file.
        span_label: Label of a tool's marks that are evidence; repeat it. Not needed if all have one label.
        config: the configuration of a dataset that has several.

    Returns:
        The folder, its numbers of rows, its labels, and counts of what was chosen, changed and left out.

    Raises:
        DataError: a cell is wrong, with file, line (or dataset and row) and column; most quotes are not in the texts;
            the folder is there already; arguments that do not go together.

    Examples:
        >>> from eraser_hub import import_corpus
        >>> rows = [{"words": ["a", "fine", "film"], "marked": [0, 1, 0], "opinion": "good"}]
        >>> print(import_corpus(rows, "films", out="corpora", tokens="words", mask="marked", label="opinion"))
        corpora/films: train 1; labels good
        next: eraser-hub build own --source corpora/films --out hub

        $ eraser-hub import reviews.csv films --out corpora --text review --quotes Anna --quotes Ben --label stars
        $ eraser-hub import org/claims claims --out corpora --split train=train --split test=test --text abstract \
          --spans evidence --offsets sentences --query claim --label verdict
        $ eraser-hub import export.json mine --out corpora --span-label RATIONALE
        $ eraser-hub import scifact/claims_train.jsonl claims --out corpora --recipe scifact
    """
    from eraser_hub.conversion.download import fetch_file

    from .corpus import write_corpus
    from .recipes import apply_steps, read_recipe
    from .rows import Columns, TableReader
    from .sources import SUFFIXES, find_label_column, refuse_other_kinds
    from .tally import Tally
    from .tasks import find_tool, read_tool

    lists = {"tokens": tokens, "text": text, "mask": mask, "spans": spans, "quotes": quotes}
    columns = {argument: list_names(names) for argument, names in lists.items() if names}
    roles: dict[str, Any] = {
        argument: name for argument, name in (("query", query), ("id", id), ("annotator", annotator)) if name
    }
    splits = parse_splits(split)
    tally = Tally()
    options: dict[str, Any] = {"force": force, "allow_unfound": allow_unfound}
    tool: Any = None
    if isinstance(source, str | os.PathLike):
        is_table = os.fspath(source).endswith(SUFFIXES)
        path = fetch_file(os.fspath(source)) if is_table else Path(source)
        refuse_other_kinds(path)
        if recipe is None and not columns.keys() - {"text"} and annotator is None and path.exists():
            tool = find_tool(path)

    facts: Mapping[str, str] = {}
    if tool is not None:
        files = {key: fetch_file(str(file)) for key, file in {"train": source, **splits}.items()}
        column = columns["text"][0] if "text" in columns else None
        sources, by_role = read_tool(files, tool, column, list_names(span_label), label, query, id, tokenizer, tally)
    elif recipe is not None:
        if named := [*columns, *roles, *(["label"] if label else []), *(["offsets"] if offsets else [])]:
            raise UsageError("expected none, for the recipe names the columns", argument=named[0])
        chosen = read_recipe(recipe)
        log.warning(f"recipe: {chosen.title}, {chosen.url}; licence: {chosen.license}; tried on: {chosen.tried}")
        sources = open_rows(source, splits, config)
        sources = {key: apply_steps(chosen, each, tally) for key, each in sources.items()}
        by_role, facts = chosen.columns, chosen.facts
    else:
        check_columns(columns, offsets, span_label, tokenizer, source)
        sources = open_rows(source, splits, config)
        if label is None:
            used = {*roles.values(), *(name for names in columns.values() for name in names)}
            label = find_label_column(next(iter(sources.values())), used)
        kind: Any = next((argument for argument in MARKS if argument in columns), "mask")
        texts = "tokens" if "tokens" in columns else "text"
        offsets = offsets or ("tokens" if texts == "tokens" else "characters")
        by_role = Columns(columns[texts], columns.get(kind, ()), label, texts == "tokens", kind, offsets, **roles)
    if not by_role.marks:
        log.warning("no column of rationales is named: faithfulness needs none, agreement is left out")
    classes = {each.classes.get(by_role.label) for each in sources.values()}
    if len(classes) > 1:
        message = f"expected one ClassLabel, or none, in all splits, found {show([*classes], 200)}"
        raise DataError(message, field=by_role.label)
    options |= {"facts": facts, "labels": classes.pop(), "is_marked": bool(by_role.marks)}
    tables = {key: TableReader(each, key, by_role, tokenizer, tally) for key, each in sources.items()}
    return write_corpus(tables, [each.name for each in sources.values()], name, out, tally, **options)


def list_names(names: Names) -> tuple[str, ...]:
    """Return names as a tuple."""
    return (names,) if isinstance(names, str) else tuple(names or ())


def parse_splits(splits: Mapping[str, Place] | Sequence[str]) -> dict[str, str]:
    """Return split -> file, or split of the dataset, of a mapping or of ``SPLIT=FILE``."""
    if isinstance(splits, Mapping):
        return {split: os.fspath(file) for split, file in splits.items()}
    others: dict[str, str] = {}
    for pair in list_names(splits):
        split, _, file = pair.partition("=")
        if not split or not file:
            raise UsageError(f"expected SPLIT=FILE, found {show(pair)}", argument="split")
        if split in others:
            raise UsageError(f"expected each split once, found {split} twice", argument="split")
        others[split] = file
    return others


def check_columns(
    columns: Mapping[str, Sequence[str]],
    offsets: str | None,
    span_label: Names,
    tokenizer: str | None,
    source: Any,
) -> None:
    """Check that the columns that the user names go together."""
    for group, is_needed in ((TEXTS, True), (MARKS, False)):
        named = [argument for argument in group if argument in columns]
        if len(named) > 1 or (is_needed and not named):
            known = ", ".join(f"`{argument}`" for argument in group)
            found = " and ".join(f"`{argument}`" for argument in named) or "none"
            raise UsageError(f"expected one of {known}, found {found}{'' if named else describe_header(source)}")
    texts, marks = (next((argument for argument in group if argument in columns), "") for group in (TEXTS, MARKS))
    if marks and 1 < len(columns[texts]) != len(columns[marks]):
        message = f"expected a column for each of `{texts}` ({len(columns[texts])}), found {len(columns[marks])}"
        raise UsageError(message, argument=marks)
    if offsets is not None and marks != "spans":
        raise UsageError("expected it beside `spans` alone", argument="offsets")
    if tokenizer is not None and texts == "tokens":
        raise UsageError("expected it beside `text` alone, for `tokens` are cut already", argument="tokenizer")
    if span_label:
        raise UsageError("expected it for an annotation tool's marks alone", argument="span_label")


def describe_header(source: Any) -> str:
    """Describe the columns of a table of which the user names none."""
    from .sources import open_file

    try:
        row = next(open_file(Path(source)).rows(), None)
    except (DataError, TypeError):
        return ""
    return "" if row is None else f"; {Path(source).name} has {', '.join(map(show, row.cells))}"


def open_rows(source: Any, splits: Mapping[str, str], config: str | None) -> dict[str, Source]:
    """Open the rows of each split."""
    from eraser_hub.conversion.download import fetch_file

    from .sources import SUFFIXES, open_dataset, open_file, wrap_rows

    if isinstance(source, str | os.PathLike) and (os.fspath(source).endswith(SUFFIXES) or Path(source).is_file()):
        if "train" in splits:
            raise UsageError("expected other splits than train, which is `source`", argument="split")
        files = {"train": source, **splits}
        return {split: open_file(fetch_file(os.fspath(file))) for split, file in files.items()}
    if isinstance(source, str | os.PathLike):
        found = open_dataset(os.fspath(source), config)
        if not splits:
            first = "train" if "train" in found else next(iter(found))
            rest = [split for split in found if split != first]
            left_out = f" (left out: {', '.join(rest)}; `split` SPLIT=SPLIT takes them)" if rest else ""
            log.warning(f"split: {first}{left_out}")
            splits = {"train": first}
    else:
        given = source if isinstance(source, Mapping) else {"train": source}
        found = {str(split): wrap_rows(each, str(split)) for split, each in given.items()}
        splits = splits or {split: split for split in found}
    for split in splits.values():
        check_choice(split, found, "split")
    return {split: found[name] for split, name in splits.items()}
