"""What is fixed for each of the six files of the bilingual perturbation benchmark: task, language, fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class PerturbationConfig:
    """One of the six files.

    Attributes:
        name: the configuration, and the name of its public file.
        task: ``senti``, ``similarity`` or ``mrc``.
        language: ``en`` or ``zh`` (the files say ``ch``).
        label_names: the names of labels 0 and 1.
        texts: column of the dataset -> field of the public file.
        sequences: the fields that hold the tokens, one a sequence.
        text_columns: per sequence the columns whose text its tokens spell, in this order or another.
    """

    name: str
    task: str
    language: str
    label_names: tuple[str, str]
    texts: Mapping[str, str]
    sequences: tuple[str, ...]
    text_columns: tuple[tuple[str, ...], ...]


_PAIR = (("text_q_seg", "text_t_seg"), (("sentence1",), ("sentence2",)))
_SENTI = (("negative", "positive"), {"context": "context"}, ("sent_token",), (("context",),))
_MRC = (
    ("unanswerable", "answerable"),
    {"title": "title", "context": "context", "question": "question"},
    ("sent_token",),
    (("context", "title"),),
)
_SAMENESS = ("different", "same")

CONFIGS: Mapping[str, PerturbationConfig] = MappingProxyType(
    {
        config.name: config
        for config in (
            PerturbationConfig("senti_en", "senti", "en", *_SENTI),
            PerturbationConfig("senti_ch", "senti", "zh", *_SENTI),
            PerturbationConfig(
                "similarity_en",
                "similarity",
                "en",
                _SAMENESS,
                {"sentence1": "sentence1", "sentence2": "sentence2"},
                *_PAIR,
            ),
            PerturbationConfig(
                "similarity_ch", "similarity", "zh", _SAMENESS, {"sentence1": "query", "sentence2": "title"}, *_PAIR
            ),
            PerturbationConfig("mrc_en", "mrc", "en", *_MRC),
            PerturbationConfig("mrc_ch", "mrc", "zh", *_MRC),
        )
    }
)
TEXT_COLUMNS = ("title", "context", "question", "sentence1", "sentence2")
