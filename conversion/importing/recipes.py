"""Recipes: how the released files of public rationale corpora are imported, a YAML file each.

A recipe has ``title``, ``url``, ``license``, ``language``, ``citation``, ``layout`` (the files, in words), ``tried``
(what it was tried on), ``columns`` (the fields of `corpus.Columns`), ``steps`` (of `STEPS`, which make rows of a file's
rows), and ``sample`` (file -> text of this project's own writing) with ``expect``, which a test compares.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from eraser_hub.conversion.readers import load_yaml
from eraser_hub.metrics.plain import find_runs
from eraser_hub.records.errors import DataError, get_first_line, show
from eraser_hub.records.readers import wrap_read_errors

from .corpus import Columns
from .reader import SourceRow
from .sources import Source, open_file
from .texts import get_cell, parse_literal

log = logging.getLogger("eraser_hub")
FOLDER = Path(__file__).with_name("recipe_files")
Cells = dict[str, Any]
Step = Callable[[Cells, Mapping[str, Any], Path], Iterator[Cells]]


@dataclass(frozen=True)
class Recipe:
    """A way to import a released corpus; see the module for its fields."""

    name: str
    title: str
    url: str
    layout: str
    tried: str
    columns: Columns
    facts: Mapping[str, str]
    steps: Sequence[tuple[str, Mapping[str, Any]]] = ()
    sample: Mapping[str, str] = field(default_factory=dict)
    expect: Mapping[str, Any] = field(default_factory=dict)


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
        raise DataError(message, argument="recipe")
    with wrap_read_errors(path):
        text = path.read_text(encoding="utf-8")
    try:
        values = load_yaml(text, path)
        columns: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in values["columns"].items()
        }
        steps = [(step, arguments) for each in values.get("steps", ()) for step, arguments in each.items()]
        words: dict[str, Any] = {key: str(values[key]) for key in ("title", "url", "layout", "tried")}
        facts = {key: str(values[key]) for key in ("language", "license", "citation")}
        more: dict[str, Any] = {key: dict(values.get(key, {})) for key in ("sample", "expect")}
        recipe = Recipe(path.stem, columns=Columns(**columns), facts=facts, steps=steps, **words, **more)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        message = f"expected a recipe, found none: {get_first_line(error)}"
        raise DataError(message, file=path) from None
    if unknown := [step for step, _ in steps if step not in STEPS]:
        message = f"expected steps of {', '.join(STEPS)}, found {show(unknown[0])}"
        raise DataError(message, file=path, field="steps")
    return recipe


def open_recipe(name: str, sources: Mapping[str, Source]) -> tuple[dict[str, Source], Columns, Mapping[str, str]]:
    """Return the rows of each split after a recipe's steps, their columns, and facts for the card."""
    recipe = read_recipe(name)
    log.info(f"recipe: {recipe.title}, {recipe.url}; licence: {recipe.facts['license']}")
    log.info(f"tried on: {recipe.tried}")
    dropped: Counter[str] = Counter()
    made = {split: apply_steps(recipe, source, dropped) for split, source in sources.items()}
    for step, count in dropped.items():
        log.warning(f"rows left out by the recipe's step {step}: {count:,}")
    return made, recipe.columns, recipe.facts


def apply_steps(recipe: Recipe, source: Source, dropped: Counter[str]) -> Source:
    """Return a source whose rows are those of a file after the recipe's steps; ``dropped`` counts rows without any.

    Raises:
        DataError: during iteration, at a row that lacks what a step needs, with file and line.
    """
    if not recipe.steps:
        return source
    rows: list[SourceRow] = []
    folder = Path(source.name).parent
    for row in source.rows():
        made: Iterable[Cells] = [dict(row.cells)]
        for name, arguments in recipe.steps:
            try:
                made = [each for cells in made for each in STEPS[name](cells, arguments, folder)]
            except DataError as error:
                raise error if error.file else error.at(file=source.name, line=row.number) from None
            except (TypeError, ValueError, KeyError, IndexError, AttributeError) as error:
                message = f"does not fit the layout of the recipe {recipe.name}: {get_first_line(error)}"
                raise DataError(message, file=source.name, line=row.number) from None
            if not made:
                dropped[name] += 1
                break
        several = len(list(made)) > 1
        for at, cells in enumerate(made, 1):
            key = f"{row.key or row.number}_{at}" if several else row.key
            rows.append(SourceRow(row.number, key, cells))
    return replace(source, rows=lambda: iter(rows))


# -- steps ------------------------------------------------------------------------------------------------------------


def _choose(cells: Cells, arguments: Mapping[str, Any], folder: Path) -> Iterator[Cells]:
    """Set ``to`` to the case of a column's value; ``empty`` is the case of an empty list or text."""
    value = parse_literal(get_cell(cells, arguments["column"]))
    case = "empty" if value in ("", [], None) else str(value)
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


STEPS: dict[str, Step] = {
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
