"""Changes of what a built folder says, whose digests are recorded again where rows change: `check` finds each."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pyarrow.parquet as pq

from tests.conversion.mutations import (
    Mutation,
    mutate_beside,
    mutate_card,
    mutate_columns,
    mutate_files,
    mutate_json,
    mutate_rows,
    mutate_values,
)

from .cases import Expect, World, mutates
from .folders import ROOT

# docs/check.md says why: a bit in the middle of the card lies in its prose
UNDETECTABLE = ("file README.md: one bit",)


@cache
def mutations(folder: Path) -> list[Mutation]:
    """All mutations of the stock's folder: both configurations, each split, every file."""
    found = [*mutate_card("classification"), *mutate_files(folder), *mutate_json(folder, "release.json")]
    for config in ("movies", "esnli"):
        for path in sorted((folder / config).glob("*.parquet")):
            file, table = path.relative_to(folder), pq.read_table(path)
            found += [*mutate_values(file, table.to_pylist(), table.schema), *mutate_rows(file, table.column_names[0])]
            found += mutate_columns(file, table.schema)
    return [one for one in (*found, *mutate_beside(folder)) if one.name not in UNDETECTABLE]


@mutates("semantic")
def one_mutation(world: World) -> Expect:
    every = mutations(world.links["hub"] / "eraser")
    return apply(world, [world.random.choice(every)])


@mutates("semantic")
def two_mutations_of_rows(world: World) -> Expect:
    """Changes of two columns, which must not hide one another."""
    every = [one for one in mutations(world.links["hub"] / "eraser") if one.column]
    first = world.random.choice(every)
    return apply(world, [first, world.random.choice([one for one in every if one.column != first.column])])


def apply(world: World, chosen: list[Mutation]) -> Expect:
    world.copies = True
    world.acts += [lambda folder, one=one: one.apply(folder / ROOT) for one in chosen]  # type: ignore[misc]
    world.notes += [one.name for one in chosen]
    return Expect("check", words=tuple(one.column for one in chosen if one.column and len(chosen) == 1))
