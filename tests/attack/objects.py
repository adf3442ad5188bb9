"""What is done to the Python objects that modules take, and to predictions as Parquet."""

from __future__ import annotations

import copy
import io
from functools import partial
from typing import Any

from .cases import Expect, World, mutates, puts
from .material import json_lines
from .values import GONE, VALUES, any_place, misspelt, nested, odd, replace


def rows_of(world: World) -> tuple[str, list[Any]]:
    """(the side's name, its rows), of predictions or references at random."""
    sides = [name for name in ("predictions", "references") if getattr(world, name) is not None]
    side = world.random.choice(sides)
    return side, getattr(world, side)


@mutates("rows")
def another_container(world: World) -> Expect:
    """No rows at all, in place of one side."""
    import numpy as np

    side, rows = rows_of(world)
    things = [*map(np.array, (3.0, "x", None)), 3, "x", b"x", True, object(), print, {"a": 1}, {"a": [1], "b": [1, 2]}]
    things += [range(3), iter([3]), {1, 2}, [rows], [np.array(1)], np.zeros((2, 2)), ...]
    things += [[cell] for cell in (3, "x", None, [], b"x")]
    setattr(world, side, world.random.choice(things))
    return Expect("object")


@mutates("rows")
def nothing(world: World) -> Expect:
    setattr(world, rows_of(world)[0], world.random.choice(([], (), {}, "", None)))
    return Expect("anything")


@mutates("rows")
def odd_rows(world: World) -> Expect:
    """One row that is none."""
    _, rows = rows_of(world)
    rows[world.random.randrange(len(rows))] = world.random.choice(
        (None, 3, "x", [], ["a"], 1.5, True, b"x", {}, object())
    )
    return Expect("object")


@mutates("rows")
def odd_cell(world: World) -> Expect:
    """A hostile Python object in any place of a row."""
    import numpy as np
    import pandas as pd
    import torch

    masked = np.ma.masked_array([1, 2], [True, False])
    cells = [*map(np.array, (1, 1.5, "x", [None, 1], [])), np.array([1, "x"], dtype=object), np.ma.masked, masked]
    cells += [np.bool_(True), np.float16(1), np.datetime64("2020"), pd.NA, pd.NaT]
    cells += map(torch.tensor, (1.0, [1], [[1.0]]))
    cells += [object(), b"x", {1}, range(2), 1j, ..., (1, 2), frozenset(), bytearray(b"x")]
    container, key = any_place(world.random, rows_of(world)[1])
    container[key] = world.random.choice(cells)
    return Expect("anything")


@mutates("rows")
def list_that_holds_itself(world: World) -> Expect:
    container, key = any_place(world.random, rows_of(world)[1])
    loop: list[Any] = []
    loop.append(loop)
    container[key] = world.random.choice((loop, {"a": loop}))
    return Expect("anything")


@mutates("rows")
def deep_rows(world: World) -> Expect:
    container, key = any_place(world.random, rows_of(world)[1])
    container[key] = nested(world.random.choice((65, 900, 5000)), world.random.choice(("list", "dict")))
    return Expect("anything")


@mutates("rows")
def odd_setting(world: World) -> Expect:
    bad = {
        "confidence_level": odd("0 1 -1 2 nan '0.95' [0.5]"),
        "ci_method": odd("'none' 3 None []"),
        "by": odd("'nowhere' 3 [] {}"),
        "n_resamples": odd("0 -1 1.5 '10' None [1]"),
        "seed": odd("-1 1.5 'x' [1]"),
        "label_names": odd("3 'x' [1] {} [None]"),
        "per_instance": odd("'x' [] 3"),
    }
    name = world.random.choice(list(bad))
    world.settings = {"confidence_level": 0.9, name: world.random.choice(bad[name])}
    world.clean = (ValueError, TypeError)
    return Expect("usage" if name in ("confidence_level", "ci_method", "by") else "anything")


# ----------------------------------------------------------------------------------------------- rows of the small four
put_fidelity, put_set = partial(puts, "normalized_fidelity rows", ""), partial(puts, "rationale_set_agreement rows", "")
put_mark = partial(puts, "annotator_agreement rows", "")
put_tokens, put_quotes = partial(puts, "perturbation_map rows", ""), partial(puts, "quote_faithfulness rows", "")
NUMBERS = odd("-0.1 1.1 nan inf '0.5' None [] 10**400 GONE")
PARTS = "*.p_full|p_rationale|p_complement|p_empty"
PROBABILITIES = "*.pred_proba|rationale_pred_proba|non_rationale_pred_proba.0"
ODD_INDICES = odd("[-1] [1.5] ['x'] [None] '12' 3 [[1]] [10**30] [True]")
put_fidelity("odd_number", "documents and labels", PARTS, *NUMBERS, field="p_")
put_set("odd_number", "documents and labels", PROBABILITIES, *NUMBERS[:-1], field="pred_proba")
put_set("odd_indices", "bad spans", "*.rationale.0", *ODD_INDICES)
put_mark("odd_mark", "wrong type", "*.annotators.0.0", *odd("2 -1 0.5 nan 'x' None []"), field="annotators")
put_mark("odd_marks", "wrong type", "*.annotators", *odd("[] [[]] 'x' 3 [[0,1],[0]] [[0,1]] GONE"))
put_tokens("odd_tokens", "wrong type", "*.rationale_tokens", *odd("'x' 3 [3] [[3]] ['x'] [[None]] {} [{}] GONE"))
put_quotes("odd_quotes", "wrong type", "*.quotes", *odd("'x' 3 [3] [['x']] {'a':1} [None] GONE"))
put_quotes("odd_status", "wrong type", "*.quotes.0.status", *odd("'found' None 3 [] {} GONE"))
ODD_SPANS = odd("(2,1) (0,0) (-1,2) (0.5,2) ('0',2) (None,2) (0,nan) ([],1) (0,10**40)")
ODD_PLACES = [{"status": "exact", "docid": "d", "start_token": start, "end_token": end} for start, end in ODD_SPANS]
put_quotes("odd_place", "bad spans", "*.quotes.0", *ODD_PLACES, field="quotes")
put_quotes("beyond_the_document", "bad spans", "*.quotes.0.end_token", 10**6, 10**12, field="quotes")
STRANGERS = odd("'nowhere' '' 3 [] {} None GONE")
put_quotes("unknown_document", "documents and labels", "*.quotes.0.docid", *STRANGERS, field="quotes")
ODD_ANSWERS = odd("'x' 3 [3] [{}] [{'kind':'louder'}] [{'kind':'alone'}]*2")
put_quotes("odd_answer", "wrong type", "*.asked_again", *ODD_ANSWERS)
put_reasoning = partial(puts, "reasoning_faithfulness rows", "")
ODD_STEPS = odd("'x' 3 [3] [['x']] {'a':1} [None] None")
put_reasoning("odd_steps", "wrong type", "*.reasoning_steps", *ODD_STEPS, field="reasoning_steps")
ODD_TESTS = odd("'x' 3 [3] [{}] [{'test':'louder'}] [{'test':'filler'}]*2")
put_reasoning("odd_test", "wrong type", "*.reasoning_tests", *ODD_TESTS, field="reasoning_tests")
put_quotes("odd_outcome", "wrong type", "*.outcome", 3, [], {}, "refusal", field="")


@mutates("small rows")
def misspelt_row_field(world: World) -> Expect:
    number = world.random.randrange(len(world.predictions))
    row = world.predictions[number]
    name = world.random.choice([one for one in row if len(one) > 4 and one not in ("group", "answer")])
    other = misspelt(world.random, name)
    row[other] = row.pop(name) if world.random.random() < 0.5 else row[name]
    return Expect("misspelt field", "predictions", number + 1, other)


@mutates("small rows")
def unknown_row_field(world: World) -> Expect:
    for row in world.predictions:
        row["zebra"] = 1
    return Expect("unknown field", words=("zebra",))


@mutates("small rows")
def row_twice(world: World) -> Expect:
    world.predictions.append(copy.deepcopy(world.random.choice(world.predictions)))
    return Expect("instances", "predictions", len(world.predictions), "id")


@mutates("small rows")
def row_without_partner(world: World) -> Expect:
    if world.references is None:
        return Expect("same meaning", same=True)
    del world.predictions[world.random.randrange(len(world.predictions))]
    return Expect("some without instance", words=("only_predicted",))


@mutates("small rows")
def any_value_in_a_row(world: World) -> Expect:
    replace(world.random, *any_place(world.random, rows_of(world)[1]), [*VALUES, GONE])
    return Expect("anything")


# ----------------------------------------------------------------------------------------------------- other containers
@mutates("objects")
def sound_containers(world: World) -> Expect:
    """Dataset, IterableDataset, table, record batch, frame, tuple, generator of the same rows: the same scores."""
    import datasets
    import pandas as pd
    import pyarrow as pa

    forms = {
        "Dataset": datasets.Dataset.from_list,
        "IterableDataset": lambda rows: datasets.Dataset.from_list(rows).to_iterable_dataset(),
        "table": pa.Table.from_pylist,
        "batch": pa.RecordBatch.from_pylist,
        "frame": pd.DataFrame,
        "tuple": tuple,
        "generator": iter,
        "sliced": lambda rows: pa.Table.from_pylist([rows[0], *rows]).slice(1),
        "chunked": lambda rows: pa.concat_tables([pa.Table.from_pylist(rows[:2]), pa.Table.from_pylist(rows[2:])]),
    }
    side, rows = rows_of(world)
    form = world.random.choice(sorted(forms))
    setattr(world, side, forms[form](rows))
    world.notes.append(f"{side} as {form}")
    return Expect("object taken", same=True)


@mutates("objects")
def tensors_for_lists(world: World) -> Expect:
    """torch tensors and arrays in the place of lists of numbers."""
    import numpy as np
    import torch

    makes = {
        # as exact as the list: float32 would be other numbers
        "tensors": lambda v: torch.tensor(v, dtype=torch.float64 if any(isinstance(one, float) for one in v) else None),
        "arrays": np.array,
        "tuples": tuple,
        "object arrays": lambda v: np.array(v, dtype=object),
    }
    make = world.random.choice(sorted(makes))
    world.predictions = [converted(row, makes[make]) for row in world.predictions]
    world.notes.append(f"lists of numbers as {make}")
    return Expect("object taken", same=True)


def converted(value: Any, make: Any) -> Any:
    """The value with its lists of numbers made into something else."""
    if isinstance(value, dict):
        return {key: converted(inner, make) for key, inner in value.items()}
    if isinstance(value, list) and value and all(isinstance(one, (int, float)) for one in value):
        return make(value)
    return [converted(inner, make) for inner in value] if isinstance(value, list) else value


@mutates("objects")
def narrow_columns(world: World) -> Expect:
    """Integers of another width mean the same."""
    import pyarrow as pa

    def narrow(kind: Any) -> Any:
        if pa.types.is_list(kind):
            return pa.list_(narrow(kind.value_type))
        if pa.types.is_struct(kind):
            return pa.struct([pa.field(inner.name, narrow(inner.type)) for inner in kind])
        return width if pa.types.is_int64(kind) else kind

    width = world.random.choice((pa.uint16(), pa.int16(), pa.int8(), pa.uint64()))
    side, rows = rows_of(world)
    table = pa.Table.from_pylist(rows)
    setattr(world, side, table.cast(pa.schema([pa.field(field.name, narrow(field.type)) for field in table.schema])))
    world.notes.append(f"{side}: integers as {width}")
    return Expect("object taken", same=True)


@mutates("objects")
def column_twice(world: World) -> Expect:
    import pyarrow as pa

    side, rows = rows_of(world)
    table = pa.Table.from_pylist(rows)
    name = world.random.choice(table.column_names)
    setattr(world, side, table.append_column(name, table.column(name)))
    return Expect("key twice", field=name)


@mutates("objects")
def odd_column(world: World) -> Expect:
    """A column of another Arrow type."""
    import pyarrow as pa

    side, rows = rows_of(world)
    table, size = pa.Table.from_pylist(rows), len(rows)
    at = world.random.randrange(len(table.column_names))
    columns = [pa.array([cell] * size) for cell in (None, "x", 1.5, b"x", [1], {"a": 1})]
    columns += [pa.array([None, *[True] * (size - 1)]), pa.array(["x"] * size).dictionary_encode()]
    columns += [pa.array([[None]] * size, pa.list_(pa.int8())), pa.array([[[]]] * size, pa.list_(pa.list_(pa.null())))]
    setattr(world, side, table.set_column(at, table.column_names[at], world.random.choice(columns)))
    return Expect("anything")


# ----------------------------------------------------------------------------------------------- predictions as Parquet
def as_parquet(world: World, table: Any, change: Any = bytes) -> None:
    """The prediction file is Parquet, changed as bytes."""
    import pyarrow.parquet as pq

    buffer = io.BytesIO()
    pq.write_table(table, buffer, row_group_size=world.random.choice((1, 100)))
    world.files["p.parquet"], world.results = change(buffer.getvalue()), ""


@mutates("parquet")
def sound_parquet(world: World) -> Expect:
    import pyarrow as pa

    as_parquet(world, pa.Table.from_pylist(world.files.pop("p.jsonl")))
    return Expect("same meaning", same=True)


@mutates("parquet")
def cut_parquet(world: World) -> Expect:
    sound_parquet(world)
    content = world.files["p.parquet"]
    others = (b"", b"PAR1", b"<html>login</html>", json_lines([{"annotation_id": "x"}]))
    bad = (content[: len(content) // 2], content[4:], *others)
    world.files["p.parquet"] = world.random.choice(bad)
    return Expect("damaged folder", words=("p.parquet",))


@mutates("parquet")
def bytes_of_parquet(world: World) -> Expect:
    sound_parquet(world)
    content = bytearray(world.files["p.parquet"])
    for _ in range(world.random.choice((1, 3, 20))):
        content[world.random.randrange(len(content))] = world.random.randrange(256)
    world.files["p.parquet"] = bytes(content)
    return Expect("anything")


@mutates("parquet")
def parquet_of_odd_columns(world: World) -> Expect:
    world.predictions = world.files.pop("p.jsonl")
    world.random.choice((odd_column, odd_column, column_twice))(world)
    as_parquet(world, world.predictions)
    return Expect("anything")
