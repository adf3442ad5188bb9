"""What predictions answer: a split of a built dataset or of a corpus as released, or a file of gold rationales."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec

from eraser_hub.conversion.eraser.configs import CONFIGS, CORPUS_YAML, EraserConfig
from eraser_hub.metrics.gold import GOLD
from eraser_hub.metrics.plain import to_instances
from eraser_hub.metrics.rows import find_fault
from eraser_hub.papers import find_comprehensive
from eraser_hub.records.errors import DataError, UsageError, describe_choice
from eraser_hub.records.places import dataset_split, find_place, release_split
from eraser_hub.records.readers import JSON_ERRORS

if TYPE_CHECKING:
    from eraser_hub.conversion.built import BuiltDataset

Row = Mapping[str, Any]
Rows = Sequence[Row]
# what stands in a row of a built dataset, see `find_fault`; and what has to
_RECORD = {"id": str, "tokens": [[str]], "sample_type": str, "rel_ids": [str], "rationale_ids": [[[int]]]}
SHAPES: dict[str, Any] = {"eraser": GOLD, "perturbation": _RECORD, "tokens": ()}
REQUIRED = {"eraser": ("annotation_id", "documents", "evidences"), "perturbation": tuple(_RECORD)[:3], "tokens": ()}


class LabelNames(NamedTuple):
    """Valid labels of a corpus.

    Attributes:
        names: the labels in order; any other label is an error. None: the labels of the annotations.
        note: a note if the labels are those of the annotations; else empty.
        sentence_end_inclusive: see `EraserConfig`.
    """

    names: tuple[str, ...] | None
    note: str = ""
    sentence_end_inclusive: bool = False


@dataclass(frozen=True)
class ScoredSplit:
    """A split that predictions are scored against.

    Attributes:
        data_dir: a corpus folder as released, or a file of gold rationales, unless there is a dataset.
        dataset: a built dataset's folder.
        split: the dataset's name of it, or the release's.
        config: of the built dataset (None: its card's default); of a corpus folder the one whose labels count.
        annotations: an annotation file of the corpus folder, in place of the split's.
    """

    data_dir: Path = Path()
    split: str = "test"
    annotations: Path | None = None
    dataset: Path | None = None
    config: str | None = None

    @cached_property
    def kind(self) -> Literal["eraser", "perturbation", "tokens", "file"]:
        """The kind of rows: of ``eraser`` or a corpus folder, the perturbation benchmark, human_rationales, a file."""
        if self.dataset is None:
            return "file" if self.data_dir.is_file() else "eraser"
        columns = self.built.columns(self.built_config)
        return "perturbation" if "sample_type" in columns else "tokens" if "rationale_mask" in columns else "eraser"

    @property
    def is_shipped(self) -> bool:
        """True if the configuration is one of those that this package builds; False for a corpus of one's own."""
        if self.dataset is not None:
            return self.kind != "eraser" or self.built_config in CONFIGS
        name = self.config or self.data_dir.resolve().name
        return self.kind != "file" and name in CONFIGS and not (self.data_dir / CORPUS_YAML).exists()

    def is_comprehensive(self) -> bool | None:
        """Return whether all of the text that supports the label is gold; None: unknown.

        ERASER says it of its splits, a corpus.yaml of a corpus of one's own.
        """
        names = self.names
        if self.is_shipped:
            return find_comprehensive(names["config"], names["split"])
        return None if self.own_config is None else self.own_config.is_comprehensive(names["split"])

    @cached_property
    def own_config(self) -> EraserConfig | None:
        """The facts of a corpus of one's own, by its corpus.yaml or by the release.json of the built dataset.

        None where neither is there, and for the configurations that this package builds.
        """
        if self.dataset is None:
            if not (self.data_dir / CORPUS_YAML).exists():
                return None
            from eraser_hub.conversion.eraser.corpus_yaml import read_corpus_yaml  # with YAML: not every score waits

            return read_corpus_yaml(self.data_dir)
        if self.is_shipped:
            return None
        from eraser_hub.conversion.eraser.dataset import read_own_facts

        return read_own_facts(self.built, self.built_config)

    @property
    def names(self) -> dict[str, str]:
        """The dataset (where it is a built one), config and split, as score files name them; none of a file."""
        if self.kind == "file":
            return {}
        if self.dataset is not None:
            built = {"dataset": find_place(self.dataset).dataset, "config": self.built_config}
        else:
            built = {"config": self.config or self.data_dir.resolve().name}
        return built | {"split": dataset_split(self.split)}

    @property
    def annotation_file(self) -> Path:
        """The file of annotations of a corpus folder: DIR/SPLIT.jsonl, unless another is named.

        The dataset's split names are understood as well as the release's.

        Raises:
            DataError: there is no such file.
        """
        if self.annotations is not None:
            return self.annotations
        for name in (release_split(self.split), self.split):
            path = self.data_dir / f"{name}.jsonl"
            if path.is_file():
                return path
        splits = sorted(path.stem for path in self.data_dir.glob("*.jsonl") if path.stem != "docs")
        message = f"no annotation file {release_split(self.split)}.jsonl, {describe_choice(self.split, splits)}"
        raise DataError(message, file=self.data_dir, argument="split")

    @cached_property
    def built(self) -> BuiltDataset:
        """The built dataset, which its card describes."""
        # the Arrow libraries are slow to import: only where they are needed
        from eraser_hub.conversion.built import open_built

        if self.dataset is None:
            found = "a file" if self.kind == "file" else "a corpus as released"
            raise DataError(f"expected a built dataset, found {found}", file=self.data_dir, argument="dataset")
        return open_built(self.dataset)

    @property
    def built_config(self) -> str:
        """The config of the built dataset, by default its card's."""
        return self.built.default_config if self.config is None else self.config

    @cached_property
    def labels(self) -> LabelNames:
        """The labels that count; for a built dataset those of its card.

        Those of a corpus folder are those of its corpus.yaml; else those of ``config``; else those of the config that
        the folder is named after, if at least one annotation has one of them; else the annotations'.

        Raises:
            DataError: its corpus.yaml is not in order; ``config`` is not known.
        """
        if self.dataset is not None:
            return LabelNames(self.built.label_names(self.built_config))
        if self.kind == "file":
            return LabelNames(None)
        own, name = self.own_config, self.data_dir.resolve().name if self.config is None else self.config
        if own is None and self.config is not None and name not in CONFIGS:
            raise DataError(describe_choice(name, CONFIGS), argument="config")
        if own is None and name in CONFIGS:
            known, records = CONFIGS[name].label_names, self.read_records()
            with suppress(AttributeError, *JSON_ERRORS):  # they are reported when the file is read in full
                if self.config is not None or any(row.get("classification") in known for _, row in records):
                    own = CONFIGS[name]
        if own is not None:
            return LabelNames(own.label_names, sentence_end_inclusive=own.sentence_end_inclusive)
        why = f"none of the labels of {name} is among them" if name in CONFIGS else f"{name} is no config's name"
        note = f"labels: those of the annotations ({why}; name others in {CORPUS_YAML}, or by `config`)"
        return LabelNames(None, note)

    def read_records(self) -> Iterator[tuple[int, Row]]:
        """Yield the number and the annotation of each line of a corpus folder."""
        decode = msgspec.json.Decoder().decode
        with open(self.annotation_file, "rb") as file:
            for number, line in enumerate(file, 1):
                row = decode(line)
                yield number, decode(row) if isinstance(row, str) else row  # test_exhaustive is encoded twice

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """The rows of a built split in file order, of ``human_rationales`` as rows of ``eraser``; the rows of a file.

        Raises:
            DataError: a row without a cell that it needs, or with one of another type; with its number.
        """
        if self.kind == "file":
            return read_flat_rows(self.data_dir)
        rows = self.built.rows(self.built_config, self.split)
        file = self.built.files(self.built_config, self.split)[0]
        for number, row in enumerate(rows, 1):
            lacking = [name for name in REQUIRED[self.kind] if row.get(name) is None]
            fault = (lacking[0], "expected a value, found none") if lacking else find_fault(row, SHAPES[self.kind])
            if fault is not None:
                raise DataError(fault[1], file=file, line=number, field=fault[0])
        return (to_instances([], rows)[1] or []) if self.kind == "tokens" else rows

    @cached_property
    def ids(self) -> list[str]:
        """The id of each row."""
        return [str(row["id" if self.kind == "perturbation" else "annotation_id"]) for row in self.rows]

    def name_label(self, label: Any, instance: str | None = None) -> Any:
        """Return the name of a row's label in a built dataset, which may hold its number; see `get_label_name`."""
        from eraser_hub.conversion.built import get_label_name

        return label if self.dataset is None else get_label_name(label, self.labels.names, instance=instance)

    @cached_property
    def labelled(self) -> list[dict[str, Any]]:
        """The rows with the label's name in place of its number."""
        field = "label" if self.kind == "perturbation" else "classification"
        pairs = zip(self.ids, self.rows, strict=True)
        return [{**row, field: self.name_label(row.get(field), name)} for name, row in pairs]


def read_flat_rows(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a jsonl, json, csv, tsv or Parquet file; lists in the cells of a CSV are parsed."""
    from eraser_hub.conversion.importing.sources import open_file
    from eraser_hub.conversion.importing.texts import parse_literal

    rows = []
    for row in open_file(path).rows():
        cells = dict(row.cells)
        if path.name.endswith((".csv", ".tsv")):
            cells = {name: parse_literal(cell) if isinstance(cell, str) else cell for name, cell in cells.items()}
        rows.append({"id": row.key, **cells} if row.key is not None else cells)
    if not rows:
        raise DataError("expected at least one row, found none", file=path)
    return rows


def open_split(
    dataset: str | PathLike[str],
    config: str | None = None,
    split: str = "test",
    annotations: str | PathLike[str] | None = None,
) -> ScoredSplit:
    """Return the split that predictions answer.

    Args:
        dataset: a built dataset's folder, its id on the Hub, a corpus as released, or a file of gold rationales.
        config: of a built dataset, by default its card's; of a corpus as released the one that gives the labels.
        split: ``validation`` or ``val``, both are understood.
        annotations: annotation file of a corpus as released, in place of SPLIT.jsonl.

    Raises:
        UsageError: arguments that do not go with what the dataset is.
    """
    place = find_place(dataset)
    if annotations is not None and place.kind != "raw":
        message = f"expected a corpus as released beside it, found {place.name}"
        raise UsageError(message, argument="annotations")
    if place.kind == "built":
        return ScoredSplit(split=split, dataset=Path(place.name), config=config)
    for name, value in (("config", config), ("split", split if split != "test" else None)):
        if place.kind == "rows" and value is not None:
            message = f"expected none beside the file of gold rationales {place.name}, found {value!r}"
            raise UsageError(message, argument=name)
    return ScoredSplit(Path(place.name), split, None if annotations is None else Path(annotations), config=config)
