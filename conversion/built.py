"""A built dataset folder (``hub/eraser``) as everybody reads it: its card, configs, splits, label names and rows.

    eraser = open_built(Path("hub/eraser"))
    eraser.configs                                  ["movies", "multirc", ..]
    eraser.default_config                           "movies"
    eraser.files("movies", "val")                   [Path("hub/eraser/movies/validation-00000-of-00001.parquet")]
    eraser.label_names("movies")                    ("NEG", "POS")
    for rows in batches(eraser.files("movies", "val"), ["annotation_id", "evidences"]): ..
    open_built("org/eraser@v2")                     the same from the Hub; a split's files are fetched when asked for

The card (README.md) says which configs and splits there are and where their files lie, as for ``load_dataset``; other
names than its own are refused with a list of those.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from eraser_hub.metrics.errors import find_similar
from eraser_hub.records.errors import DataError, UsageError, describe_choice, get_first_line, show
from eraser_hub.records.places import CARD, HUB, Place, dataset_split, find_place
from eraser_hub.records.predictions import read_tables
from eraser_hub.records.readers import wrap_read_errors

from .eraser.configs import CORPUS_YAML
from .readers import convert_type, load_yaml, read_utf8_lines

LABEL_COLUMNS = ("classification", "label")
RELEASE = "release.json"  # of a built folder: what its rows cannot hold
MAX_NAMED = 10  # folders that an error names
_FRONT = re.compile(r"\A\s*---[ \t]*\n(|.*?\n)---[ \t]*(?:\n|\Z)", re.DOTALL)


def read_card(path: Path) -> tuple[dict[str, Any], str]:
    """Return a card's metadata (the YAML between the first two lines of ``---``) and its prose.

    Raises:
        DataError: no such file, no YAML at its top, or none that can be read.
    """
    if not os.path.lexists(path):
        raise DataError("expected a card, found none", file=path)
    text = "".join(read_utf8_lines(path)).replace("\r\n", "\n")
    front = _FRONT.match(text)
    if front is None:
        raise DataError("expected a card that begins with YAML metadata, found none", file=path)
    metadata = load_yaml(front[1], path)
    if not isinstance(metadata, dict):
        raise DataError(f"expected YAML metadata with names, found {show(metadata)}", file=path)
    return metadata, text[front.end() :]


@dataclass(frozen=True, slots=True)
class BuiltDataset:
    """A built dataset folder and what its card says.

    Attributes:
        folder: the folder; of a dataset of the Hub, the part of it that was fetched.
        card: the metadata of its README.md.
        prose: the words below the metadata.
        place: where it is from.
    """

    folder: Path
    card: Mapping[str, Any]
    prose: str
    place: Place

    @property
    def name(self) -> str:
        """The dataset as the caller named it: a folder, or its id on the Hub."""
        return self.place.name

    def paths(self, pattern: str) -> list[Path]:
        """Return the files of a pattern, below the folder, by name; those of a dataset of the Hub are fetched.

        Raises:
            DataError: the Hub does not give them; the pattern leads out of the folder.
        """
        if not pattern or pattern.startswith("/") or ".." in pattern.split("/") or "\0" in pattern:
            message = f"expected a pattern of files below the folder, found {show(pattern)}"
            raise DataError(message, file=self.name)
        if self.place.repository is not None:
            self.place._replace(revision=self.folder.name).fetch([pattern])
        return sorted(self.folder.glob(pattern))

    @property
    def configs(self) -> list[str]:
        """The configs, in the card's order."""
        return [entry["config_name"] for entry in self.card["configs"]]

    @property
    def default_config(self) -> str:
        """The config that the card calls the default, or its only one.

        Raises:
            DataError: there are several, and none is called the default.
        """
        entries = self.card["configs"]
        for entry in entries:
            if entry.get("default") or len(entries) == 1:
                name: str = entry["config_name"]
                return name
        raise UsageError("expected one: the dataset's card names no default", file=self.name, argument="config")

    def chosen(self, configs: Sequence[str] | None = None) -> list[str]:
        """Return these configs, each once; all configs if none is named.

        Raises:
            DataError: a config that the card does not name.
        """
        for name in configs or ():
            if name not in self.configs:
                raise UsageError(describe_choice(name, self.configs), file=self.name, argument="config")
        return list(dict.fromkeys(configs)) if configs else self.configs

    def splits(self, config: str) -> dict[str, list[Path]]:
        """Split -> its Parquet files, in the card's order.

        Raises:
            DataError: an unknown config; a split of which no file is there.
        """
        self.chosen([config])
        (entry,) = (entry for entry in self.card["configs"] if entry["config_name"] == config)
        files: dict[str, list[Path]] = {}
        for item in entry["data_files"]:
            patterns = item["path"] if isinstance(item["path"], list) else [item["path"]]
            files[item["split"]] = sorted(path for pattern in patterns for path in self.paths(pattern))
            if not files[item["split"]]:
                message = f"the card names {patterns[0]} for {config}/{item['split']}, found no such file"
                raise DataError(message, file=self.name)
        return files

    def files(self, config: str, split: str) -> list[Path]:
        """Return the Parquet files of a split; ``val`` and ``validation`` are the same.

        Raises:
            DataError: an unknown config or split, with the names there are.
        """
        splits = self.splits(config)
        if dataset_split(split) not in splits:
            raise UsageError(describe_choice(split, splits), file=Path(self.name) / config, argument="split")
        return splits[dataset_split(split)]

    def rows(
        self,
        config: str,
        split: str,
        columns: Sequence[str] | None = None,
        kinds: pa.Schema | None = None,
        whole: Sequence[str] = (),
    ) -> list[dict[str, Any]]:
        """Return the rows of a split as Python values, in order; arguments and errors as of `files` and `read_rows`."""
        tables = read_rows(self.files(config, split), columns, kinds=kinds, whole=whole)
        return [row for table in tables for row in table.to_pylist()]

    def info(self, config: str) -> Mapping[str, Any]:
        """Return the card's ``dataset_info`` of a config (version, features, splits, ..); empty where there is none."""
        infos = self.card.get("dataset_info") or []
        listed: list[dict[str, Any]] = infos if isinstance(infos, list) else [infos]
        for info in listed:
            if info.get("config_name", config) == config:
                return info
        return {}

    def columns(self, config: str) -> list[str]:
        """Return the columns of a config, as the card names them; none where it does not."""
        return [feature["name"] for feature in self.info(config).get("features") or () if "name" in feature]

    def class_labels(self, config: str) -> dict[str, tuple[str, ...]]:
        """Return the label names of each ClassLabel column of a config."""
        labels = {}
        for feature in self.info(config).get("features") or ():
            kind = feature.get("dtype")
            label = kind.get("class_label") if isinstance(kind, dict) else None
            names = label.get("names") if isinstance(label, dict) else None
            if isinstance(names, dict) and all(str(number).isdecimal() for number in names):
                names = [names[number] for number in sorted(names, key=int)]  # YAML keeps them as {"0": name, ..}
            if names:
                if not isinstance(names, list) or not isinstance(feature.get("name"), str):
                    message = f"expected the names of labels, found {show(names)}"
                    field = f"dataset_info.{config}.features"
                    raise DataError(message, file=self.folder / "README.md", field=field)
                labels[feature["name"]] = tuple(map(str, names))
        return labels

    def label_names(self, config: str) -> tuple[str, ...] | None:
        """Return the names of the gold label (column `classification` or `label`); None where there are none.

        They are the card's; where it describes no columns, those that `datasets` wrote into the files.
        """
        labels = self.class_labels(config)
        if not self.info(config):
            from datasets import ClassLabel, Features

            file = next(iter(self.splits(config).values()))[0]
            with wrap_parquet_errors(file):
                features = Features.from_arrow_schema(pq.read_schema(file))
            labels = {name: tuple(kind.names) for name, kind in features.items() if isinstance(kind, ClassLabel)}
        return next((labels[column] for column in LABEL_COLUMNS if column in labels), None)


def open_built(dataset: str | PathLike[str]) -> BuiltDataset:
    """Open a dataset that ``eraser-hub build`` wrote.

    Args:
        dataset: its folder, its id on the Hub (``org/eraser@v2``), or ``hf://datasets/org/eraser``.

    Raises:
        DataError: no such folder, and no such dataset; no card, or one that lists no configs with their files.
    """
    place = find_place(dataset)
    folder = place.fetch(["README.md"])
    path = folder / "README.md"
    if not os.path.lexists(path):
        found = describe_folder(folder) or "one without a card (README.md)"
        raise DataError(f"expected the folder of a built dataset, found {found}", file=folder)
    card, prose = read_card(path)
    if "sdk" in card:
        raise DataError("expected the folder of a built dataset, found a metric of `evaluate.load`", file=folder)
    convert_type(card, _Card, file=path)
    return BuiltDataset(folder, card, prose, place)


def describe_folder(folder: Path) -> str:
    """Describe what stands where a built dataset is expected, and what to type in its place; "" for anything else."""
    if not folder.is_dir():
        among = [parent.glob(f"*/{name}") for parent in (Path(HUB), folder.parent) for name in (CARD, CORPUS_YAML)]
        known = {path.parent.name: path.parent for path in chain(*among)}
        near = find_similar(folder.name, known)
        hint = f": did you mean {known[near]}?" if near else " (`eraser-hub build` makes datasets)"
        return f"{'a file' if folder.exists() else 'none'}{hint}"
    if (folder.parent / RELEASE).is_file():
        return f"a part of a dataset: say {folder.parent}, and {folder.name} as its configuration"
    for name in (CORPUS_YAML, "docs", "docs.jsonl"):
        if any(folder.glob(name)) or any(folder.glob(f"*/{name}")):
            verb = "own" if name == CORPUS_YAML else "eraser"
            return f"a corpus that is not built: `eraser-hub build {verb} --source {folder}` builds it"
    # metrics have cards, too, and no tables
    if below := sorted(path for path in folder.glob(f"*/{CARD}") if any(path.parent.glob("*/*.parquet"))):
        return f"a folder of datasets: say {' or '.join(str(path.parent) for path in below[:MAX_NAMED])}"
    return ""


class _Files(msgspec.Struct):
    split: str
    path: str | list[str]


class _Config(msgspec.Struct):
    config_name: str
    data_files: Annotated[list[_Files], msgspec.Meta(min_length=1)]
    default: bool = False


class _Split(msgspec.Struct):
    name: str
    num_examples: int | None = None


class _Info(msgspec.Struct):
    config_name: str | None = None
    features: list[dict[str, Any]] | None = None
    splits: list[_Split] | None = None


class _Card(msgspec.Struct):
    """Fields that are read from a card; the rest is free."""

    configs: Annotated[list[_Config], msgspec.Meta(min_length=1)]
    dataset_info: list[_Info] | _Info | None = None


def read_rows(
    files: Iterable[Path],
    columns: Sequence[str] | None = None,
    kinds: pa.Schema | None = None,
    whole: Sequence[str] = (),
) -> Iterator[pa.Table]:
    """Yield the rows of Parquet files, some at a time; strings are known to be UTF-8 then.

    Args:
        files: the files, one after another.
        columns: the columns to read; all by default. ``documents.list.element.docid`` is a part of a nested one.
        kinds: a schema; each column has to be of the same kind there (nested alike, or a string, an integer, a float).
        whole: the columns that hold no null, at any depth; ``name[]`` may be null as a whole, and holds none below.

    Raises:
        DataError: a file that is no Parquet, is damaged, or lacks a column, or a column of another kind; a null where
            none may be.
    """
    for path in files:
        first = 1
        with wrap_parquet_errors(path):
            metadata = pq.read_metadata(path)
            names = None if columns is None else list(dict.fromkeys(name.partition(".")[0] for name in columns))
            _check_columns(metadata.schema.to_arrow_schema(), names, kinds, path)
            leaves = {metadata.schema.column(at).path for at in range(len(metadata.schema))}
            for name in (name for name in columns or () if "." in name and name not in leaves):
                raise DataError(f"expected the column {name}, found none", file=path)
            for table in read_tables(path, columns):
                table.validate(full=True)
                for name in whole:
                    _check_whole(table[name.removesuffix("[]")].combine_chunks(), name, path, first)
                first += table.num_rows
                yield table
        if first <= metadata.num_rows:  # pyarrow ends where a damaged column does
            raise DataError(f"expected {metadata.num_rows} rows, found {first - 1}", file=path)


@contextmanager
def wrap_parquet_errors(path: Path) -> Iterator[None]:
    """Turn errors of reading a Parquet file into a DataError that names the file."""
    try:
        with wrap_read_errors(path):
            yield
    except (pa.ArrowException, OSError, UnicodeError, OverflowError) as error:
        raise DataError(f"cannot be read as Parquet ({get_first_line(error)})", file=path) from None


def _check_whole(values: pa.Array, name: str, path: Path, first: int) -> None:
    """Refuse a null in a column, or anywhere below; ``first`` is the number of the batch's first row."""
    rows = np.arange(first, first + len(values))
    if name.endswith("[]"):
        rows = rows[values.is_valid().to_numpy(zero_copy_only=False)]
        values, name = values.drop_null(), name.removesuffix("[]")
    level = [(values, name, rows)]
    while level:
        values, name, rows = level.pop()
        if values.null_count:
            line = int(rows[values.is_null().to_numpy(zero_copy_only=False)][0])
            raise DataError("expected a value, found null", file=path, line=line, field=name)
        if pa.types.is_list(values.type):
            sizes = pc.call_function("list_value_length", [values]).to_numpy(zero_copy_only=False)
            level.append((values.flatten(), f"{name}[]", np.repeat(rows, sizes)))
        elif pa.types.is_struct(values.type):
            fields = zip(values.type, values.flatten(), strict=True)
            level += [(below, f"{name}.{field.name}", rows) for field, below in fields]


def _check_columns(schema: pa.Schema, columns: Sequence[str] | None, kinds: pa.Schema | None, path: Path) -> None:
    wanted = kinds.names if columns is None and kinds is not None else columns
    for name in schema.names if wanted is None else wanted:
        if name not in schema.names:
            message = f"expected the column {name}, found {show(schema.names, 300)}"
            raise DataError(message, file=path)
        if schema.names.count(name) > 1:
            message = f"expected the column {name} once, found it {schema.names.count(name)} times"
            raise DataError(message, file=path)
        if kinds is not None and not _same_kind(kinds.field(name).type, schema.field(name).type):
            message = f"expected the column {name} as {kinds.field(name).type}, found {schema.field(name).type}"
            raise DataError(message, file=path)


def _same_kind(one: pa.DataType, other: pa.DataType) -> bool:
    """Return True if types are nested alike, over strings, integers, floats or booleans of any width."""
    if pa.types.is_list(one):
        return pa.types.is_list(other) and _same_kind(one.value_type, other.value_type)
    if pa.types.is_struct(one):
        names = [[field.name for field in each] if pa.types.is_struct(each) else [] for each in (one, other)]
        return names[0] == names[1] and all(map(_same_kind, [f.type for f in one], [f.type for f in other]))
    for kind in (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_binary):
        if kind(one):
            return bool(kind(other))
    return bool(pa.types.is_string(other) or pa.types.is_large_string(other))


def get_label_name(
    label: object, label_names: Sequence[str] | None, *, instance: object = None, field: str = "classification"
) -> str | None:
    """Return the name of a row's label; the row may hold the name or its number.

    Args:
        label: a name, a ClassLabel's number, or "no label" (None, or ClassLabel's -1).
        label_names: the names in the order of their numbers; None where they are not known, so that a number stands for
            itself.
        instance: the row's id, for the error.
        field: the column, for the error.

    Returns:
        the name; None for "no label".

    Raises:
        DataError: neither a name nor a number that has one.
    """
    if label is None or isinstance(label, str):
        return label
    if isinstance(label, int) and not isinstance(label, bool):
        if label == -1:
            return None
        if label_names is None:
            return str(label)
        if 0 <= label < len(label_names):
            return label_names[label]
    expected = "a label" if label_names is None else f"a label name or 0 to {len(label_names) - 1}"
    raise DataError(f"expected {expected}, found {show(label)}", instance=instance, field=field)
