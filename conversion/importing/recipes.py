"""Recipes: how the released files of public rationale corpora are imported, a YAML file each.

A recipe has ``title``, ``url``, ``license``, ``language``, ``citation``, ``layout`` (the files, in words), ``tried``
(what it was tried on), ``columns`` (the fields of `corpus.Columns`), ``steps`` (of `STEPS`, which make rows of a file's
rows), and ``sample`` (file -> text of this project's own writing) with ``expect``, which a test compares.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from itertools import count, takewhile
from pathlib import Path
from typing import Any

import msgspec

from eraser_hub.conversion.readers import convert_type, load_yaml
from eraser_hub.metrics.tokens import find_runs
from eraser_hub.records.errors import DataError, UsageError, get_first_line, show
from eraser_hub.records.readers import wrap_read_errors

from .rows import Columns
from .sources import Source, SourceRow, open_file
from .tally import Tally
from .texts import get_cell, is_empty, parse_literal

FOLDER = Path(__file__).with_name("recipe_files")
STAR = "*"
Cells = dict[str, Any]
Step = Callable[[Cells, Mapping[str, Any], Path], Iterator[Cells]]


class Recipe(msgspec.Struct, forbid_unknown_fields=True):
    """A way to import a released corpus; see the module for its fields."""

    title: str
    url: str
    license: str
    language: str
    citation: str
    layout: str
    tried: str
    columns: Columns
    steps: list[dict[str, dict[str, Any]]] = []
    sample: dict[str, str] = {}
    expect: dict[str, Any] = {}

    @property
    def facts(self) -> dict[str, str]:
        """The keys of corpus.yaml that the recipe knows."""
        return {"language": self.language, "license": self.license, "citation": self.citation}


def list_recipes() -> list[str]:
    """Return the names of the recipes."""
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def read_recipe(name: str) -> Recipe:
    """Return a recipe by its name, or by the path of a YAML file.

    Raises:
        DataError: there is none of that name, or the file is no recipe.
    """
    path = FOLDER / f"{name}.yaml" if name in list_recipes() else Path(name)
    if not path.name.endswith((".yaml", ".yml")):
        message = f"expected one of {', '.join(list_recipes())}, or a YAML file, found {show(name)}"
        raise UsageError(message, argument="recipe")
    with wrap_read_errors(path):
        values = load_yaml(path.read_text(encoding="utf-8"), path)
    recipe: Recipe = convert_type(values, Recipe, file=path)
    if unknown := [name for step in recipe.steps for name in step if name not in STEPS]:
        message = f"expected steps of {', '.join(STEPS)}, found {show(unknown[0])}"
        raise DataError(message, file=path, field="steps")
    return recipe


def apply_steps(recipe: Recipe, source: Source, tally: Tally) -> Source:
    """Return a source whose rows are those of a file after the recipe's steps; ``tally`` counts rows without any.

    Raises:
        DataError: during iteration, at a row that lacks what a step needs, with file and line.
    """
    folder = Path(source.name).parent

    def iterate() -> Iterator[SourceRow]:
        for row in source.rows():
            made: list[Cells] = [dict(row.cells)]
            try:
                for name, arguments in (pair for step in recipe.steps for pair in step.items()):
                    made = [each for cells in made for each in STEPS[name](cells, arguments, folder)]
            except DataError as error:
                raise error if error.file else error.at(file=source.name, line=row.number) from None
            except (TypeError, ValueError, KeyError, IndexError, AttributeError) as error:
                message = f"does not fit the layout of the recipe ({recipe.title}): {get_first_line(error)}"
                raise DataError(message, file=source.name, line=row.number) from None
            tally.add("recipe", not made, place=f"{Path(source.name).name}:{row.number}")
            for at, cells in enumerate(made, 1):
                yield SourceRow(row.number, f"{row.key or row.number}_{at}" if len(made) > 1 else row.key, cells)

    return replace(source, rows=iterate)


# -- steps ------------------------------------------------------------------------------------------------------------


def _choose(cells: Cells, arguments: Mapping[str, Any], folder: Path) -> Iterator[Cells]:
    """Set ``to`` to the case of a column's value; ``empty`` is the case of an empty list or text."""
    value = parse_literal(get_cell(cells, arguments["column"]))
    case = "empty" if is_empty(value) else str(value)
    yield {**cells, arguments["to"]: arguments["cases"].get(case, arguments["else"])}


def _characters(cells: Cells, arguments: Mapping[str, Any], folder: Path) -> Iterator[Cells]:
    """Turn a list of the marked characters' numbers into spans."""
    numbers = parse_literal(get_cell(cells, arguments["column"]))
    yield {**cells, arguments["to"]: [list(span) for span in find_runs(map(int, numbers or ()))]}


def _join(cells: Cells, arguments: Mapping[str, Any], folder: Path) -> Iterator[Cells]:
    """Add the row of another file with the same key as ``to``; a row without a partner is dropped."""
    others = _read_by_key(folder, arguments["file"], arguments["key"])
    partner = others.get(str(get_cell(cells, arguments["key"])))
    if partner is not None:
        yield {**cells, arguments["to"]: partner}


def _claims(cells: Cells, arguments: Mapping[str, Any], folder: Path) -> Iterator[Cells]:
    """Make a row of each cited document: its sentences, the lists of sentences that are evidence, and the label."""
    documents = _read_by_key(folder, arguments["file"], "doc_id")
    for number in dict.fromkeys(map(str, [*cells["evidence"], *cells["cited_doc_ids"]])):
        found = cells["evidence"].get(number) or []
        label = found[0]["label"] if found else arguments["else"]
        row = {"text": documents[number]["abstract"], "spans": [one["sentences"] for one in found], "label": label}
        yield {**cells, **row, "name": f"{cells['id']}_{number}"}


def _paragraphs(cells: Cells, arguments: Mapping[str, Any], folder: Path) -> Iterator[Cells]:
    """Join paragraphs [title, sentences] to one text, and turn facts [title, number] into its sentences' numbers."""
    sentences: list[str] = []
    places: dict[tuple[str, int], int] = {}
    for title, lines in cells["context"]:
        for number, line in enumerate(lines):
            if line.strip():
                places[title, number] = len(sentences)
                sentences.append(" ".join(line.split()))
    facts = [places[title, number] for title, number in cells["supporting_facts"] if (title, number) in places]
    yield {**cells, "text": sentences, "spans": sorted(set(facts))}


def _relations(cells: Cells, arguments: Mapping[str, Any], folder: Path) -> Iterator[Cells]:
    """Make a row of each relation: head and tail are the query, the relation the label, its evidence sentences."""
    for one in cells.get("labels") or ():
        names = [cells["vertexSet"][one[end]][0]["name"] for end in ("h", "t")]
        if one["evidence"]:
            yield {**cells, "query": names, "label": one["r"], "spans": one["evidence"]}


def _aspects(cells: Cells, arguments: Mapping[str, Any], folder: Path) -> Iterator[Cells]:
    """Make a row of each aspect whose score is low or high; scores between are dropped."""
    for at, name in enumerate(arguments["names"]):
        score = cells["y"][at]
        if not arguments["low"] < score < arguments["high"]:
            label = "positive" if score >= arguments["high"] else "negative"
            yield {**cells, "query": name, "label": label, "spans": cells[str(at)]}


def _statements(cells: Cells, arguments: Mapping[str, Any], folder: Path) -> Iterator[Cells]:
    """Make a text of the statements for and against answers; those for the answer are its evidence."""
    sides = [parse_literal(cells[name]) for name in arguments["from"]]
    lines = [[" ".join(line.split()) for line in side if line.strip()] for side in sides]
    options = [cells[name] for name in arguments["options"]]
    label = "ABCDEFGH"[options.index(cells[arguments["answer"]])]
    text = [*lines[0], *lines[1]]
    query = [cells[arguments["question"]], *options]
    yield {**cells, "text": text, "spans": list(range(len(lines[0]))), "label": label, "query": query}


def _stars(cells: Cells, arguments: Mapping[str, Any], folder: Path) -> Iterator[Cells]:
    """Turn each person's copy of a text with asterisks around marked words (``a *fine* film``) into spans.

    Raises:
        DataError: a copy differs from the text, or an asterisk has no partner.
    """
    source, people = cells[arguments["text"]], []
    names = takewhile(cells.__contains__, (f"{arguments['marked']}{number}" for number in count(1)))
    for name in names:
        copy, place, opened, spans = cells[name], 0, -1, list[list[int]]()
        for sign in "" if is_empty(copy) else copy:
            if sign == source[place : place + 1]:
                place += 1
            elif sign != STAR:
                break
            elif opened < 0:
                opened = place
            elif spans and not source[spans[-1][1] : opened].strip():  # words side by side
                spans[-1][1], opened = place, -1
            else:
                spans.append([opened, place])
                opened = -1
        rest = "" if is_empty(copy) else source[place:]
        if opened >= 0 or rest.strip():
            what = f"another at {show(rest[:20])}" if rest.strip() else "an asterisk without its partner"
            raise DataError(f"expected the text with marks (*word*), found {what}", field=name)
        people.append([span for span in spans if span[0] < span[1]])
    yield {**cells, arguments["to"]: people}


STEPS: dict[str, Step] = {
    "stars": _stars,
    "choose": _choose,
    "characters": _characters,
    "join": _join,
    "claims": _claims,
    "paragraphs": _paragraphs,
    "relations": _relations,
    "aspects": _aspects,
    "statements": _statements,
}


@cache
def _read_by_key(folder: Path, pattern: str, key: str) -> dict[str, Mapping[str, Any]]:
    """Return key -> row of the files of a pattern beside the source.

    Raises:
        DataError: there is no such file.
    """
    files = sorted(folder.glob(pattern))
    if not files:
        raise DataError(f"expected {pattern} beside the source, found none")
    return {str(row.cells[key]): row.cells for file in files for row in open_file(file).rows()}
