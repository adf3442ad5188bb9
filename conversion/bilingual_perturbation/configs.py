"""Constants of the six files of the bilingual perturbation benchmark: task, language, fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PerturbationConfig:
    """One of the six files.

    Attributes:
        name: the configuration, and the name of its public file.
        task: ``senti``, ``similarity`` or ``mrc``.
        language: ``en`` or ``zh`` (the files say ``ch``).
        label_names: the names of labels 0 and 1.
        texts: column of the dataset -> field of the public file.
        sequences: the fields with the tokens, one per sequence.
        text_columns: per sequence, the columns whose text its tokens spell, in any order.
    """

    name: str
    task: str
    language: str
    label_names: tuple[str, str]
    texts: Mapping[str, str]
    sequences: tuple[str, ...]
    text_columns: tuple[tuple[str, ...], ...]


# task -> label names, texts, sequences, text_columns
_TASKS: dict[str, tuple[tuple[str, str], tuple[str, ...], tuple[str, ...], tuple[tuple[str, ...], ...]]] = {
    "senti": (("negative", "positive"), ("context",), ("sent_token",), (("context",),)),
    "similarity": (
        ("different", "same"),
        ("sentence1", "sentence2"),
        ("text_q_seg", "text_t_seg"),
        (("sentence1",), ("sentence2",)),
    ),
    "mrc": (
        ("unanswerable", "answerable"),
        ("title", "context", "question"),
        ("sent_token",),
        (("context", "title"),),
    ),
}
_RENAMED = {("similarity_ch", "sentence1"): "query", ("similarity_ch", "sentence2"): "title"}


def _make_config(name: str) -> PerturbationConfig:
    task, _, language = name.partition("_")
    labels, columns, sequences, text_columns = _TASKS[task]
    texts = {column: _RENAMED.get((name, column), column) for column in columns}
    return PerturbationConfig(name, task, language.replace("ch", "zh"), labels, texts, sequences, text_columns)


CONFIGS = {name: _make_config(name) for name in (f"{task}_{end}" for task in _TASKS for end in ("en", "ch"))}
