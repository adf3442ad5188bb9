"""What is fixed for each configuration of ``eraser``: label names, splits, layout of the documents, licence; the values
stand in ``configs.json``.

Label names are facts of the corpus, not read off the files at hand: a partial file that lacks a label still gives
the same ClassLabel. The kd of erasure stands in ``papers/``, with what else is printed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

DocumentLayout = Literal["docs/", "docs.jsonl"]


@dataclass(frozen=True, slots=True)
class EraserConfig:
    """The facts of one configuration.

    Attributes:
        name: the configuration, and the folder (and archive) that the release ships it in.
        label_names: the names of ``classification``, in the order of the ClassLabel.
        documents: where the release puts its documents: one file each below ``docs/``, or lines of ``docs.jsonl``.
        license: the licence as the Hub's card metadata spells it.
        license_note: one sentence on where that licence is stated, for the card.
        sentence_end_inclusive: the release counts ``end_sentence`` inclusively (BoolQ); dataset rows never do.
        task: the Hub's task category.
        title: the name in prose.
        extra_splits: split files beyond train, val and test that the release is known to hold.
        task_id: the Hub's finer task.
        source: the dataset that this one extends, as the Hub names it.
        language_creators: who wrote the texts and questions, in the Hub's words.
        annotations_creators: who marked the rationales.
        language: the languages of the texts, as the Hub names them; none where a corpus of one's own names none.
        citation: BibTeX of a corpus of one's own; the papers' stands in ``papers/``.
        kd: the share of a document's tokens in a hard rationale, of a corpus of one's own that names it.
        corpus_yaml: the text of its corpus.yaml (see `corpus_yaml`); empty for the release's nine.
    """

    name: str
    label_names: tuple[str, ...]
    documents: DocumentLayout
    license: str
    license_note: str
    task: str
    title: str
    sentence_end_inclusive: bool = False
    extra_splits: tuple[str, ...] = ()
    task_id: str = "other"
    source: str = "other"
    language_creators: tuple[str, ...] = ("found",)
    annotations_creators: tuple[str, ...] = ("crowdsourced",)
    language: tuple[str, ...] = ("en",)
    citation: str = ""
    kd: float | None = None
    corpus_yaml: str = ""


def _read_released_configs() -> Iterator[EraserConfig]:
    """Read the release's nine configs."""
    for entry in json.loads(Path(__file__).with_name("configs.json").read_text(encoding="utf-8")):
        facts: dict[str, Any] = {key: tuple(of) if isinstance(of, list) else of for key, of in entry.items()}
        yield EraserConfig(**facts)


CONFIGS: dict[str, EraserConfig] = {config.name: config for config in _read_released_configs()}
DEFAULT_CONFIG = "movies"
CORPUS_YAML = "corpus.yaml"  # of a corpus of one's own, see `corpus_yaml`


def get_annotators_path(config: str) -> str:
    """Where the annotators' masks of a config stand, in its corpus folder and in a built dataset."""
    return f"annotators/{config}.parquet"
