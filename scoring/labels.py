"""Which labels a corpus has: its own word first, then the caller's, then its folder's name, then the annotations'."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from eraser_hub.conversion.eraser.configs import CONFIGS
from eraser_hub.records.errors import DataError, shown

OWN_WORDS = "corpus.yaml"


class LabelNames(NamedTuple):
    """The labels that count.

    Attributes:
        names: in their order, others are offences; None: those that the annotations have.
        note: one line for whoever scores, where the labels are the annotations' own; else empty.
    """

    names: tuple[str, ...] | None
    note: str = ""


class _Labelled(msgspec.Struct, gc=False):
    classification: str | None = None


def labels_of_corpus(folder: Path, config: str | None, annotations: Path) -> LabelNames:
    """The labels of a corpus folder.

    They are those of ``labels`` in its corpus.yaml; else those of ``config``; else those of the config that the folder
    is named after, if at least one annotation has one of them; else the annotations'.

    Args:
        folder: of the corpus.
        config: a configuration of ``eraser``, where the caller names one.
        annotations: the annotation file that is scored.

    Raises:
        DataError: ``labels`` in corpus.yaml is no list of strings; ``config`` is not known.
    """
    labels = _own_words(folder / OWN_WORDS)
    if labels is not None:
        return LabelNames(labels)
    if config is not None:
        if config not in CONFIGS:
            raise DataError(
                f"expected one of the configs {', '.join(CONFIGS)}, found {shown(config)}", field="--config"
            )
        return LabelNames(CONFIGS[config].label_names)
    name = folder.resolve().name
    if name in CONFIGS and any(label in CONFIGS[name].label_names for label in _labels(annotations)):
        return LabelNames(CONFIGS[name].label_names)
    why = f"none of the labels of {name} is among them" if name in CONFIGS else f"{name} is no config's name"
    return LabelNames(None, f"labels: those of the annotations ({why}; name others in {OWN_WORDS}, or by --config)")


def _own_words(path: Path) -> tuple[str, ...] | None:
    """The labels in corpus.yaml; None where there is no such file, or no labels in it."""
    if not path.is_file():
        return None
    import yaml

    try:
        words = yaml.safe_load(path.read_bytes())
    except (OSError, UnicodeError, yaml.YAMLError) as error:
        raise DataError(f"cannot be read: {' '.join(str(error).split())}", file=path) from None
    labels = words.get("labels") if isinstance(words, dict) else None
    if labels is None:
        return None
    if not isinstance(labels, list) or not labels or not all(isinstance(label, str) for label in labels):
        message = f"expected a list of strings (quote words like 'true' and numbers), found {shown(labels)}"
        raise DataError(message, file=path, field="labels")
    if len(set(labels)) < len(labels):
        raise DataError(f"expected each label once, found {shown(labels)}", file=path, field="labels")
    return tuple(labels)


def _labels(annotations: Path) -> Iterator[str]:
    """The labels of an annotation file, as they come; what is wrong with a line is told where it is read for good."""
    if not annotations.is_file():
        return
    decode, text = msgspec.json.Decoder(_Labelled).decode, msgspec.json.Decoder(str).decode
    try:
        with open(annotations, "rb") as file:
            for line in file:
                try:
                    label = decode(text(line) if line[:1] == b'"' else line).classification
                except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                    continue
                if label is not None:
                    yield label
    except OSError:
        return
