"""Labels of a corpus: from its corpus.yaml, the caller's config, its folder's name, or its annotations."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from eraser_hub.conversion.eraser.configs import CONFIGS, CORPUS_YAML, EraserConfig
from eraser_hub.records.errors import DataError, show
from eraser_hub.schema.label_tasks import CLASSIFICATION, LabelTask


class LabelNames(NamedTuple):
    """Valid labels of a corpus.

    Attributes:
        names: the labels in order; any other label is an error. None: the labels of the annotations.
        note: a note if the labels are those of the annotations; else empty.
        sentence_end_inclusive: see `EraserConfig`.
        task: what the labels are.
    """

    names: tuple[str, ...] | None
    note: str = ""
    sentence_end_inclusive: bool = False
    task: LabelTask = CLASSIFICATION


class _Labelled(msgspec.Struct, gc=False):
    classification: str | None = None


def find_corpus_labels(folder: Path, config: str | None, annotations: Path) -> LabelNames:
    """Return the labels of a corpus folder.

    They are those of its corpus.yaml; else those of ``config``; else those of the config that the folder
    is named after, if at least one annotation has one of them; else the annotations'.

    Args:
        folder: of the corpus.
        config: a configuration of ``eraser``, where the caller names one.
        annotations: the annotation file that is scored.

    Raises:
        DataError: its corpus.yaml is not in order; ``config`` is not known.
    """
    if (folder / CORPUS_YAML).exists():
        from eraser_hub.conversion.eraser.corpus_yaml import (
            read_corpus_yaml,  # with YAML, which not every score should wait for
        )

        return _make_labels(read_corpus_yaml(folder))
    if config is not None:
        if config not in CONFIGS:
            message = f"expected one of the configs {', '.join(CONFIGS)}, found {show(config)}"
            raise DataError(message, rule="option-value", argument="config")
        return _make_labels(CONFIGS[config])
    name = folder.resolve().name
    if name in CONFIGS and any(label in CONFIGS[name].label_names for label in _labels(annotations)):
        return _make_labels(CONFIGS[name])
    why = f"none of the labels of {name} is among them" if name in CONFIGS else f"{name} is no config's name"
    return LabelNames(None, f"labels: those of the annotations ({why}; name others in {CORPUS_YAML}, or by `config`)")


def _make_labels(config: EraserConfig) -> LabelNames:
    inclusive, task = config.sentence_end_inclusive, config.label_task
    return LabelNames(config.label_names, sentence_end_inclusive=inclusive, task=task)


def _labels(annotations: Path) -> Iterator[str]:
    """Return the labels of an annotation file in order of appearance. Errors are reported when it is read in full."""
    if not annotations.is_file():
        return
    decode, text = msgspec.json.Decoder(_Labelled).decode, msgspec.json.Decoder(str).decode
    with suppress(OSError), open(annotations, "rb") as file:
        for line in file:
            with suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                label = decode(text(line) if line[:1] == b'"' else line).classification
                if label is not None:
                    yield label
