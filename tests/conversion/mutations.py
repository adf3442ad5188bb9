"""Mutations of built folders: values of every column, rows, columns, and every file beside the rows.

Each has a name and a function that changes a folder. Those of rows record the digests of the changed files again, so
that only what the rows say can give them away.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from eraser_hub.records.digests import compute_file_digest

Row = dict[str, Any]
Change = Callable[[Any], Any]
SAME = object()  # a value that a change leaves alone


class Mutation(NamedTuple):
    """A named change of a built folder; ``column`` is the one that it changes, "" for other changes."""

    name: str
    apply: Callable[[Path], None]
    column: str = ""


# -- values of columns ------------------------------------------------------------------------------------------------


def list_paths(kind: pa.DataType) -> Iterator[tuple[tuple[str, ...], pa.DataType]]:
    """Yield (path, type) of a column and of everything below it; ``[]`` stands for the items of a list."""
    yield (), kind
    if pa.types.is_list(kind):
        yield from ((("[]", *path), below) for path, below in list_paths(kind.value_type))
    elif pa.types.is_struct(kind):
        for field in kind:
            yield from (((field.name, *path), below) for path, below in list_paths(field.type))


def list_changes(kind: pa.DataType) -> dict[str, Change]:
    """Return name -> change of one value, by its type."""
    if pa.types.is_string(kind):
        return {
            "null": lambda _: None,
            "empty": lambda _: "",
            "longer": lambda text: f"{text or ''}x",
            "shorter": lambda text: text[:-1] if text else SAME,
            "zero-width": lambda text: f"{text or ''}\u200b",
        }
    if pa.types.is_boolean(kind):
        return {"null": lambda _: None, "flipped": lambda flag: not flag}
    if pa.types.is_integer(kind):
        changes: dict[str, Change] = {
            "null": lambda _: None,
            "next": lambda number: (number or 0) + 1,
            "zero": lambda _: 0,
            "one": lambda _: 1,
            "far": lambda _: 500,
            "flipped": lambda number: 1 - (number or 0),
        }
        return changes
    if pa.types.is_floating(kind):
        return {
            "null": lambda _: None,
            "a little more": lambda number: (number or 0.0) + 0.01,
            "not a number": lambda _: float("nan"),
        }
    if pa.types.is_struct(kind):
        return {"null": lambda _: None}
    return {
        "null": lambda _: None,
        "empty": lambda _: [],
        "without its last item": lambda items: items[:-1] if items else SAME,
        "last item twice": lambda items: [*items, items[-1]] if items else SAME,
        "reversed": lambda items: items[::-1] if items else SAME,
    }


def change_value(value: Any, path: tuple[str, ...], change: Change) -> tuple[Any, bool]:
    """Return a value with all values at ``path`` below it changed, and whether one differs now."""
    if not path:
        new = change(value)
        return (value, False) if new is SAME else (new, new != value)
    if value is None:
        return value, False
    if path[0] == "[]":
        pairs = [change_value(item, path[1:], change) for item in value]
        return [item for item, _ in pairs], any(changed for _, changed in pairs)
    new, changed = change_value(value[path[0]], path[1:], change)
    return {**value, path[0]: new}, changed


def change_rows(folder: Path, file: Path, change: Callable[[list[Row]], list[Row]]) -> None:
    """Write a file's rows anew, and record the digests of the file again."""
    table = pq.read_table(folder / file)
    pq.write_table(pa.Table.from_pylist(change(table.to_pylist()), schema=table.schema), folder / file)
    record_files(folder, file)


def record_files(folder: Path, file: Path) -> None:
    """Record the digest of a split's file in release.json."""
    path = folder / "release.json"
    release = json.loads(path.read_text(encoding="utf-8"))
    splits = release["configs"][file.parts[0]]["splits"]
    splits[file.name.partition("-")[0]]["files"][file.name] = compute_file_digest(folder / file)
    path.write_text(json.dumps(release, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def mutate_values(file: Path, rows: list[Row], schema: pa.Schema) -> Iterator[Mutation]:
    """Yield mutations of each column and of everything below it: in one row and in all rows."""
    for field in schema:
        for path, kind in list_paths(field.type):
            for name, change in list_changes(kind).items():
                changed = [change_value(row[field.name], path, change) for row in rows]
                differing = [place for place, (_, differs) in enumerate(changed) if differs]
                for scope, places in (("one row", differing[:1]), ("all rows", differing)):
                    if not places or (scope == "all rows" and len(places) == 1):
                        continue
                    new = {place: {**rows[place], field.name: changed[place][0]} for place in places}

                    def apply(folder: Path, new: dict[int, Row] = new) -> None:
                        change_rows(folder, file, lambda old: [new.get(place, row) for place, row in enumerate(old)])

                    where = ".".join((field.name, *path))
                    yield Mutation(f"{file.parts[0]} {where}: {name} in {scope}", apply, field.name)


def mutate_rows(file: Path, key: str) -> Iterator[Mutation]:
    """Yield mutations of whole rows: lost, repeated, renamed and exchanged ones."""

    def exchange(rows: list[Row], column: str) -> list[Row]:
        one, other = next((a, b) for a in rows for b in rows if a[column] != b[column])
        values = {id(one): other[column], id(other): one[column]}
        return [{**row, column: values.get(id(row), row[column])} for row in rows]

    changes: dict[str, Callable[[list[Row]], list[Row]]] = {
        "first row lost": lambda rows: rows[1:],
        "last row lost": lambda rows: rows[:-1],
        "half of the rows lost": lambda rows: rows[: len(rows) // 2],
        "a row twice": lambda rows: [*rows, rows[0]],
        "a row under another id": lambda rows: [*rows, {**rows[0], key: "new"}],
        "one row in place of all": lambda rows: [{**rows[0], key: row[key]} for row in rows],
        "ids exchanged": lambda rows: exchange(rows, key),
        "no row": lambda rows: [],
    }
    for name, change in changes.items():

        def apply(folder: Path, change: Callable[[list[Row]], list[Row]] = change) -> None:
            change_rows(folder, file, change)

        yield Mutation(f"{file.parts[0]} rows: {name}", apply)


def mutate_columns(file: Path, schema: pa.Schema) -> Iterator[Mutation]:
    """Yield mutations of the table: columns lost, renamed, repeated, added and of other types."""

    def write(folder: Path, change: Callable[[pa.Table], pa.Table]) -> None:
        pq.write_table(change(pq.read_table(folder / file)), folder / file)
        record_files(folder, file)

    for name in schema.names:

        def lose(folder: Path, name: str = name) -> None:
            write(folder, lambda table: table.drop_columns([name]))

        def rename(folder: Path, name: str = name) -> None:
            write(folder, lambda table: table.rename_columns([f"{n}_" if n == name else n for n in table.column_names]))

        yield Mutation(f"{file.parts[0]} {name}: lost", lose)
        yield Mutation(f"{file.parts[0]} {name}: renamed", rename)
    first = schema.names[0]
    yield Mutation(
        f"{file.parts[0]} columns: one more",
        lambda folder: write(folder, lambda table: table.append_column("more", table[first])),
    )
    yield Mutation(
        f"{file.parts[0]} columns: features of other label names in the metadata",
        lambda folder: write(folder, lambda table: table.replace_schema_metadata({"huggingface": "{}"})),
    )
    numbers = [field.name for field in schema if pa.types.is_integer(field.type) or pa.types.is_floating(field.type)]
    for name in numbers:

        def widen(folder: Path, name: str = name) -> None:
            kind = pa.float64() if pa.types.is_floating(schema.field(name).type) else pa.int16()
            place = schema.names.index(name)
            write(folder, lambda table: table.set_column(place, name, table[name].cast(kind)))

        yield Mutation(f"{file.parts[0]} {name}: of another type", widen)


# -- the card ---------------------------------------------------------------------------------------------------------


def change_card(folder: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """Change a card's metadata."""
    path = folder / "README.md"
    _, head, prose = path.read_text(encoding="utf-8").split("---\n", 2)
    card = yaml.safe_load(head)
    change(card)
    head = yaml.safe_dump(card, sort_keys=False, allow_unicode=True)
    path.write_text(f"---\n{head}---\n{prose}", encoding="utf-8")


def mutate_card(label: str) -> Iterator[Mutation]:
    """Yield mutations of a card's metadata; ``label`` is the column of the gold label."""

    def get_names(card: dict[str, Any]) -> dict[str, str]:
        features = card["dataset_info"][0]["features"]
        names: dict[str, str] = next(f for f in features if f["name"] == label)["dtype"]["class_label"]["names"]
        return names

    def exchange(card: dict[str, Any]) -> None:
        names = get_names(card)
        names["0"], names["1"] = names["1"], names["0"]

    def get_info(card: dict[str, Any]) -> dict[str, Any]:
        info: dict[str, Any] = card["dataset_info"][0]
        return info

    changes: dict[str, Callable[[dict[str, Any]], Any]] = {
        "label names exchanged": exchange,
        "a label renamed": lambda card: get_names(card).update({"0": "other"}),
        "a label more": lambda card: get_names(card).update({"9": "more"}),
        "a label less": lambda card: get_names(card).pop("1"),
        "fewer rows": lambda card: get_info(card)["splits"][0].update(num_examples=1),
        "fewer bytes": lambda card: get_info(card)["splits"][0].update(num_bytes=1),
        "another name of a split": lambda card: get_info(card)["splits"][0].update(name="dev"),
        "a split lost": lambda card: get_info(card)["splits"].pop(),
        "a feature lost": lambda card: get_info(card)["features"].pop(),
        "a feature's type": lambda card: get_info(card)["features"][0].update(dtype="int32"),
        "features reversed": lambda card: get_info(card)["features"].reverse(),
        "no features": lambda card: get_info(card).pop("features"),
        "no info": lambda card: card.pop("dataset_info"),
        "another version in the info": lambda card: get_info(card).update(version="9.9.9"),
        "another version in the config": lambda card: card["configs"][0].update(version="9.9.9"),
        "another licence of a config": lambda card: get_info(card).update(license="gpl-3.0"),
        "another citation": lambda card: get_info(card).update(citation="@misc{x}"),
        "another description": lambda card: get_info(card).update(description="Other data."),
        "another size": lambda card: get_info(card).update(dataset_size=1, download_size=1),
        "another default": lambda card: card["configs"][0].pop("default", None),
        "files of another split": lambda card: card["configs"][0]["data_files"][0].update(
            path=card["configs"][0]["data_files"][-1]["path"]
            if len(card["configs"][0]["data_files"]) > 1
            else f"{card['configs'][0]['config_name']}/*.parquet"
        ),
        "files that are not there": lambda card: card["configs"][0]["data_files"][0].update(path="x/*.parquet"),
        "a config's name": lambda card: card["configs"][0].update(config_name="films"),
        "no configs": lambda card: card.update(configs=[]),
        **{
            f"another {key}": lambda card, key=key: card.update({key: ["other"]})  # type: ignore[misc]
            for key in ("license", "language", "tags", "task_categories", "size_categories", "pretty_name")
        },
        **{f"no {key}": lambda card, key=key: card.pop(key) for key in ("license", "tags", "task_categories")},  # type: ignore[misc]
    }
    for name, change in changes.items():

        def apply(folder: Path, change: Callable[[dict[str, Any]], Any] = change) -> None:
            change_card(folder, change)

        yield Mutation(f"card: {name}", apply)


# -- files ------------------------------------------------------------------------------------------------------------


def mutate_files(folder: Path) -> Iterator[Mutation]:
    """Yield mutations of each file of a built folder: lost, empty, garbage, renamed, with other bytes."""

    def flip(path: Path) -> None:
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(bytes(data))

    changes: dict[str, Callable[[Path], object]] = {
        "lost": Path.unlink,
        "empty": lambda path: path.write_bytes(b""),
        "garbage": lambda path: path.write_bytes(b"\x00 garbage: ["),
        "renamed": lambda path: path.rename(path.with_name(f"{path.stem}-old{path.suffix}")),
        "one bit": flip,
        "a folder": lambda path: (path.unlink(), path.mkdir()),
    }
    for path in sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file()):
        for name, change in changes.items():

            def apply(copy: Path, path: Path = path, change: Callable[[Path], object] = change) -> None:
                change(copy / path)

            yield Mutation(f"file {path.as_posix()}: {name}", apply)


def mutate_beside(folder: Path) -> Iterator[Mutation]:
    """Yield mutations of the Parquet files beside the rows."""
    for path in sorted(folder.glob("[adr]*/*.parquet")):  # annotators, documents, records
        file = path.relative_to(folder)
        table = pq.read_table(path)
        if file.parts[0] not in ("annotators", "documents", "records"):
            continue
        changes: dict[str, Callable[[pa.Table], pa.Table]] = {"a row more": lambda old: pa.concat_tables([old, old])}
        if len(table):
            changes["a row less"] = lambda old: old.slice(1)
        for name in table.column_names if len(table) else ():
            if pa.types.is_string(table.schema.field(name).type):
                value = pa.array([f"{text}x" for text in table[name].to_pylist()])
                place = table.column_names.index(name)
                changes[f"{name} changed"] = lambda old, place=place, name=name, value=value: old.set_column(  # type: ignore[misc]
                    place, name, value
                )
        for words, change in changes.items():

            def apply(copy: Path, file: Path = file, change: Callable[[pa.Table], pa.Table] = change) -> None:
                pq.write_table(change(pq.read_table(copy / file)), copy / file)

            yield Mutation(f"file {file.as_posix()}: {words}", apply)
