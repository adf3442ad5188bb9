"""A built dataset folder (``hub/eraser``) as everybody reads it: its card, configs, splits, label names and rows.

    eraser = open_built(Path("hub/eraser"))
    eraser.configs                                  ["movies", "multirc", ..]
    eraser.default_config                           "movies"
    eraser.files("movies", "val")                   [Path("hub/eraser/movies/validation-00000-of-00001.parquet")]
    eraser.label_names("movies")                    ("NEG", "POS")
    for rows in batches(eraser.files("movies", "val"), ["annotation_id", "evidences"]): ..

The card (README.md) says which configs and splits there are and where their files lie, as for ``load_dataset``; other
names than its own are refused with a list of those.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from .errors import DataError, shown
from .lines import reading
from .splits import dataset_split

BATCH_ROWS = 400
LABEL_COLUMNS = ("classification", "label")
_FRONT = re.compile(r"\A\s*---[ \t]*\n(|.*?\n)---[ \t]*(?:\n|\Z)", re.DOTALL)


def read_card(path: Path) -> tuple[dict[str, Any], str]:
    """A card's metadata (the YAML between the first two lines of ``---``) and its prose.

    Raises:
        DataError: no such file, no YAML at its top, or none that can be read.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeError) as error:
        raise DataError(f"expected a card, found none that can be read ({error})", file=path) from None
    front = _FRONT.match(text)
    if front is None:
        raise DataError("expected a card that begins with YAML metadata, found none", file=path)
    try:
        # by libyaml where PyYAML has it: a card of all configs takes a tenth of the time
        metadata = yaml.load(front[1], Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError as error:
        raise DataError(f"the card's YAML cannot be read ({error})", file=path) from None
    if not isinstance(metadata, dict):
        raise DataError(f"expected YAML metadata with names, found {shown(metadata)}", file=path)
    return metadata, text[front.end() :]


@dataclass(frozen=True, slots=True)
class BuiltDataset:
    """A built dataset folder and what its card says.

    Attributes:
        folder: the folder.
        card: the metadata of its README.md.
        prose: the words below the metadata.
    """

    folder: Path
    card: Mapping[str, Any]
    prose: str

    @property
    def configs(self) -> list[str]:
        """The configs, in the card's order."""
        return [entry["config_name"] for entry in self.card["configs"]]

    @property
    def default_config(self) -> str:
        """The config that stands for none: the one that the card calls the default, or the only one.

        Raises:
            DataError: there are several, and none is called the default.
        """
        entries = self.card["configs"]
        for entry in entries:
            if entry.get("default") or len(entries) == 1:
                return entry["config_name"]
        raise DataError("expected --config: the dataset's card names no default", file=self.folder)

    def chosen(self, configs: Sequence[str] | None = None) -> list[str]:
        """These configs, each once; all where none is named.

        Raises:
            DataError: a config that the card does not name.
        """
        for name in configs or ():
            if name not in self.configs:
                raise DataError(
                    f"expected one of the configs {_listed(self.configs)}, found {shown(name)}", file=self.folder
                )
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
            files[item["split"]] = sorted(path for pattern in patterns for path in self.folder.glob(pattern))
            if not files[item["split"]]:
                raise DataError(
                    f"the card names {patterns[0]} for {config}/{item['split']}, found no such file", file=self.folder
                )
        return files

    def files(self, config: str, split: str) -> list[Path]:
        """The Parquet files of a split; ``val`` and ``validation`` are the same.

        Raises:
            DataError: an unknown config or split, with the names there are.
        """
        splits = self.splits(config)
        if dataset_split(split) not in splits:
            raise DataError(
                f"expected one of the splits {_listed(splits)}, found {shown(split)}", file=self.folder / config
            )
        return splits[dataset_split(split)]

    def rows(self, config: str, split: str, columns: Sequence[str] | None = None) -> list[dict[str, Any]]:
        """The rows of a split as Python values, in order; errors as of `files` and `batches`."""
        return [row for batch in batches(self.files(config, split), columns) for row in batch.to_pylist()]

    def info(self, config: str) -> Mapping[str, Any]:
        """The card's ``dataset_info`` of a config (version, features, splits, ..); empty where there is none."""
        infos = self.card.get("dataset_info") or []
        for info in infos if isinstance(infos, list) else [infos]:
            if info.get("config_name", config) == config:
                return info
        return {}

    def class_labels(self, config: str) -> dict[str, tuple[str, ...]]:
        """Column -> label names, of the config's ClassLabel columns."""
        labels = {}
        for feature in self.info(config).get("features") or ():
            kind = feature.get("dtype") if isinstance(feature, dict) else None
            names = kind.get("class_label", {}).get("names") if isinstance(kind, dict) else None
            if isinstance(names, dict):  # YAML keeps them as {"0": name, ..}
                names = [names[number] for number in sorted(names, key=int)]
            if names:
                labels[feature["name"]] = tuple(map(str, names))
        return labels

    def label_names(self, config: str) -> tuple[str, ...] | None:
        """The names of the gold label's numbers (column `classification` or `label`); None where the card has none."""
        labels = self.class_labels(config)
        return next((labels[column] for column in LABEL_COLUMNS if column in labels), None)


def open_built(folder: str | PathLike[str]) -> BuiltDataset:
    """Open a dataset folder that ``eraser-hub build`` wrote.

    Raises:
        DataError: no such folder; no card, or one that lists no configs with their files.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise DataError("expected the folder of a built dataset, found none", file=folder)
    card, prose = read_card(folder / "README.md")
    if not _lists_configs(card):
        raise DataError(
            "expected YAML with configs, and the split and path of their data_files, found none",
            file=folder / "README.md",
        )
    return BuiltDataset(folder, card, prose)


def _lists_configs(card: Mapping[str, Any]) -> bool:
    try:
        paths = [item["path"] for entry in card["configs"] for item in entry["data_files"] if item["split"]]
        return bool(paths) and all(isinstance(entry["config_name"], str) for entry in card["configs"])
    except (KeyError, TypeError):
        return False


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)


def batches(
    files: Iterable[Path], columns: Sequence[str] | None = None, rows: int = BATCH_ROWS, kinds: pa.Schema | None = None
) -> Iterator[pa.Table]:
    """The rows of Parquet files, some at a time; strings are known to be UTF-8 then.

    Args:
        files: the files, one after another.
        columns: the columns to read; all by default.
        rows: most rows at a time.
        kinds: a schema; each column has to be of the same kind there (nested alike, or a string, an integer, a float).

    Raises:
        DataError: a file that is no Parquet, is damaged, or lacks a column, or a column of another kind.
    """
    for path in files:
        try:
            with reading(path), pq.ParquetFile(path) as file:
                _check_columns(file.schema_arrow, columns or (), kinds, path)
                for batch in file.iter_batches(batch_size=rows, columns=None if columns is None else list(columns)):
                    batch.validate(full=True)
                    yield pa.Table.from_batches([batch])
        except (pa.ArrowException, OSError, UnicodeError) as error:
            raise DataError(f"cannot be read as Parquet ({str(error).splitlines()[0]})", file=path) from None


def _check_columns(schema: pa.Schema, columns: Sequence[str], kinds: pa.Schema | None, path: Path) -> None:
    for name in columns:
        if name not in schema.names:
            raise DataError(f"expected the column {name}, found {schema.names}", file=path)
        if kinds is not None and not _same_kind(kinds.field(name).type, schema.field(name).type):
            raise DataError(
                f"expected the column {name} as {kinds.field(name).type}, found {schema.field(name).type}", file=path
            )


def _same_kind(one: pa.DataType, other: pa.DataType) -> bool:
    if pa.types.is_nested(one):
        return same_type(one, other)
    for kind in (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean):
        if kind(one):
            return kind(other)
    return pa.types.is_string(other) or pa.types.is_large_string(other)


def same_type(one: pa.DataType, other: pa.DataType) -> bool:
    """Whether types agree but for the names of list items and nullability, which Parquet spells in its own way."""
    if pa.types.is_list(one) and pa.types.is_list(other):
        return same_type(one.value_type, other.value_type)
    if pa.types.is_struct(one) and pa.types.is_struct(other):
        if [field.name for field in one] != [field.name for field in other]:
            return False
        return all(same_type(a.type, b.type) for a, b in zip(one, other, strict=True))
    return one == other


def label_name(
    label: object, label_names: Sequence[str] | None, *, instance: object = None, field: str = "classification"
) -> str | None:
    """The name of a row's label, whether the row holds the name or its number.

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
    raise DataError(f"expected {expected}, found {shown(label)}", instance=instance, field=field)
