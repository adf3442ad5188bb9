"""What is fixed for each of the six files of the bilingual perturbation benchmark: task, language, fields, Table 3."""

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
        table3: the paper's Table 3: pairs, rationale length ratio, rationale sets.
    """

    name: str
    task: str
    language: str
    label_names: tuple[str, str]
    texts: Mapping[str, str]
    sequences: tuple[str, ...]
    text_columns: tuple[tuple[str, ...], ...]
    table3: tuple[int, float, float]


_SENTI = {"context": "context"}
_MRC = {"title": "title", "context": "context", "question": "question"}
_POLARITY = ("negative", "positive")
_SAMENESS = ("different", "same")
_ANSWERABLE = ("unanswerable", "answerable")

CONFIGS: Mapping[str, PerturbationConfig] = MappingProxyType(
    {
        config.name: config
        for config in (
            PerturbationConfig(
                "senti_en", "senti", "en", _POLARITY, _SENTI, ("sent_token",), (("context",),), (1999, 0.201, 2.1)
            ),
            PerturbationConfig(
                "senti_ch", "senti", "zh", _POLARITY, _SENTI, ("sent_token",), (("context",),), (2160, 0.276, 1.4)
            ),
            PerturbationConfig(
                "similarity_en",
                "similarity",
                "en",
                _SAMENESS,
                {"sentence1": "sentence1", "sentence2": "sentence2"},
                ("text_q_seg", "text_t_seg"),
                (("sentence1",), ("sentence2",)),
                (2248, 0.504, 1.0),
            ),
            PerturbationConfig(
                "similarity_ch",
                "similarity",
                "zh",
                _SAMENESS,
                {"sentence1": "query", "sentence2": "title"},
                ("text_q_seg", "text_t_seg"),
                (("sentence1",), ("sentence2",)),
                (2146, 0.666, 1.0),
            ),
            PerturbationConfig(
                "mrc_en", "mrc", "en", _ANSWERABLE, _MRC, ("sent_token",), (("context", "title"),), (1969, 0.104, 1.0)
            ),
            PerturbationConfig(
                "mrc_ch", "mrc", "zh", _ANSWERABLE, _MRC, ("sent_token",), (("context", "title"),), (2315, 0.098, 1.0)
            ),
        )
    }
)
DEFAULT_CONFIG = "senti_en"
TEXT_COLUMNS = ("title", "context", "question", "sentence1", "sentence2")
