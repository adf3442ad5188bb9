"""The split of a dataset that predictions answer: a corpus folder as released, or a built dataset."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec

from eraser_hub.conversion.eraser.configs import CONFIGS, CORPUS_YAML, EraserConfig
from eraser_hub.papers import find_comprehensive
from eraser_hub.records.errors import DataError, describe_choice
from eraser_hub.records.places import dataset_split, find_place, release_split

if TYPE_CHECKING:
    from eraser_hub.conversion.built import BuiltDataset

Row = Mapping[str, Any]
Rows = Sequence[Row]
_Label = str | int | None


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
        data_dir: a corpus folder as released, unless there is a dataset.
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
    def kind(self) -> Literal["eraser", "perturbation", "tokens"]:
        """The kind of rows: of ``eraser`` or a corpus folder, the perturbation benchmark, or human_rationales."""
        columns = () if self.dataset is None else self.built.columns(self.built_config)
        return "perturbation" if "sample_type" in columns else "tokens" if "rationale_mask" in columns else "eraser"

    @property
    def is_shipped(self) -> bool:
        """True if the configuration is one of those that this package builds; False for a corpus of one's own."""
        if self.dataset is not None:
            return self.kind != "eraser" or self.built_config in CONFIGS
        return (self.config or self.data_dir.resolve().name) in CONFIGS and not (self.data_dir / CORPUS_YAML).exists()

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
        """The dataset (where it is a built one), config and split, as score files name them."""
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
        message = f"no annotation file {release_split(self.split)}.jsonl for the split {self.split!r}"
        raise DataError(message, file=self.data_dir)

    @cached_property
    def built(self) -> BuiltDataset:
        """The built dataset, which its card describes."""
        # the Arrow libraries are slow to import: only where they are needed
        from eraser_hub.conversion.built import open_built

        if self.dataset is None:
            raise ValueError("expected a dataset, found none")
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
        own, name = self.own_config, self.data_dir.resolve().name if self.config is None else self.config
        if own is None and self.config is not None and name not in CONFIGS:
            raise DataError(describe_choice(name, CONFIGS), argument="config")
        if own is None and name in CONFIGS:
            known = CONFIGS[name].label_names
            if self.config is not None or any(label in known for label in _read_labels(self.annotation_file)):
                own = CONFIGS[name]
        if own is not None:
            return LabelNames(own.label_names, sentence_end_inclusive=own.sentence_end_inclusive)
        why = f"none of the labels of {name} is among them" if name in CONFIGS else f"{name} is no config's name"
        note = f"labels: those of the annotations ({why}; name others in {CORPUS_YAML}, or by `config`)"
        return LabelNames(None, note)

    # ------------------------------------------------------------------------------------ the rows of a built dataset
    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """The rows of the split in file order; those of ``human_rationales`` as rows of ``eraser``.

        Raises:
            DataError: rows of none of the datasets, or a cell of another type; with the row's number.
        """
        from eraser_hub.metrics.plain import to_instances

        rows = self.built.rows(self.built_config, self.split)
        _check_rows(rows, self.built.files(self.built_config, self.split)[0])
        return (to_instances([], rows)[1] or []) if self.kind == "tokens" else rows

    @property
    def id_field(self) -> str:
        """The column that holds a row's id."""
        return "id" if self.kind == "perturbation" else "annotation_id"

    @cached_property
    def ids(self) -> list[str]:
        """The id of each row."""
        return [str(row[self.id_field]) for row in self.rows]

    def label_name(self, label: object, row: Row, field: str) -> str | None:
        """Return the name of a label of a row, or of its prediction; see `built.get_label_name`."""
        from eraser_hub.conversion.built import get_label_name

        return get_label_name(label, self.labels.names, instance=str(row[self.id_field]), field=field)

    @cached_property
    def labelled(self) -> list[dict[str, Any]]:
        """The rows with the label's name in place of its number."""
        field = "label" if self.kind == "perturbation" else "classification"
        return [{**row, field: self.label_name(row.get(field), row, field)} for row in self.rows]


class _Labelled(msgspec.Struct, gc=False):
    classification: str | None = None


def _read_labels(annotations: Path) -> Iterator[str]:
    """Yield the labels of an annotation file in order of appearance. Errors are reported when it is read in full."""
    if not annotations.is_file():
        return
    decode, text = msgspec.json.Decoder(_Labelled).decode, msgspec.json.Decoder(str).decode
    with suppress(OSError), open(annotations, "rb") as file:
        for line in file:
            with suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                label = decode(text(line) if line[:1] == b'"' else line).classification
                if label is not None:
                    yield label


def read_split(dataset: Path, config: str | None, split: str) -> ScoredSplit:
    """Read a split of a built dataset.

    Args:
        dataset: a folder that ``eraser-hub build`` wrote.
        config: the config; None takes the card's default.
        split: ``validation`` or ``val``, both are understood.

    Raises:
        DataError: no such folder, config or split, naming those that are there; a row that is not of its dataset.
    """
    source = ScoredSplit(dataset=dataset, config=config, split=split)
    source = ScoredSplit(dataset=dataset, config=source.built_config, split=dataset_split(split))
    source.rows  # noqa: B018  # report their errors before anything else is read
    return source


# ------------------------------------------------------------------------ what has to stand in a row before it is drawn
class _Document(msgspec.Struct):
    docid: str
    text: str


class _Evidence(msgspec.Struct):
    docid: str
    start_token: int
    end_token: int


class _Annotation(msgspec.Struct):
    annotation_id: str
    documents: list[_Document]
    evidences: list[list[_Evidence]]
    classification: _Label = None
    query: str | None = None


class _Record(msgspec.Struct):
    id: str
    tokens: list[list[str]]
    sample_type: str
    rel_ids: list[str] | None = None
    rationale_ids: list[list[list[int]]] | None = None
    label: _Label = None


class _Tokens(msgspec.Struct):
    id: str
    tokens: list[str]
    rationale_mask: list[bool] | None
    label: _Label = None


_KINDS = {"evidences": _Annotation, "sample_type": _Record, "rationale_mask": _Tokens}


def _check_rows(rows: Rows, file: Path) -> None:
    for number, row in enumerate(rows, 1):
        kind = next((kind for column, kind in _KINDS.items() if column in row), None)
        if kind is None:
            message = f"expected one of the columns {', '.join(_KINDS)}, found {', '.join(row)}"
            raise DataError(message, file=file, line=number)
        try:
            msgspec.convert(row, kind)
        except msgspec.ValidationError as error:
            raise DataError(str(error), file=file, line=number) from None
