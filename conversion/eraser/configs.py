"""Constants of each configuration of ``eraser``: label names, splits, layout of the documents, licence.

The values are in ``configs.json``. Label names belong to the corpus and are not collected from files: a partial file
without some label still has the same ClassLabel. The kd of erasure is in ``papers/`` with the other printed values.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec

from eraser_hub.papers import find_comprehensive
from eraser_hub.records.places import dataset_split


class EraserConfig(msgspec.Struct, frozen=True, rename={"label_names": "labels"}):
    """The facts of one configuration, out of ``configs.json``, or out of a corpus.yaml with `YAML_KEYS` alone.

    Attributes:
        name: the configuration, and the folder (and archive) that the release ships it in.
        label_names: the names of ``classification``, in the order of the ClassLabel.
        license: the Hub's name of the licence.
        license_note: one sentence for the card on the source of that licence.
        sentence_end_inclusive: True if ``end_sentence`` is inclusive in the release (BoolQ); in dataset rows it is
            exclusive.
        task: the Hub's task category.
        title: the name in prose.
        extra_splits: further split files of the release, beside train, val and test.
        task_id: the Hub's finer task.
        source: the Hub's name of the dataset that this one extends.
        language_creators: origin of texts and questions, in the Hub's terms.
        annotations_creators: origin of the rationales, in the Hub's terms.
        language: the Hub's codes of the texts' languages; empty if a custom corpus names none.
        citation: BibTeX of a custom corpus; that of the papers is in ``papers/``.
        kd: share of a document's tokens in a hard rationale, if a custom corpus names it.
        comprehensive: of a custom corpus: all of the text that supports the label is gold, in every split (True), in
            none (False), or in these splits; None: unknown. Of the release's nine `papers.find_comprehensive` knows it.
        corpus_yaml: text of a custom corpus' corpus.yaml (see the module `corpus_yaml`); empty for the release's nine.
    """

    name: str
    label_names: Annotated[tuple[Annotated[str, msgspec.Meta(min_length=1)], ...], msgspec.Meta(min_length=1)]
    license: str = "unknown"
    license_note: str = "Its corpus.yaml names no licence."
    task: str = "text-classification"
    title: str = ""
    sentence_end_inclusive: bool = False
    extra_splits: tuple[str, ...] = ()
    task_id: str = "other"
    source: str = "other"
    language_creators: tuple[str, ...] = ("found",)
    annotations_creators: tuple[str, ...] = ("crowdsourced",)
    language: tuple[str, ...] = ("en",)
    citation: str = ""
    kd: Annotated[float, msgspec.Meta(gt=0, le=1)] | None = None
    comprehensive: bool | tuple[str, ...] | None = None
    corpus_yaml: str = ""

    def is_comprehensive(self, split: str) -> bool | None:
        """Return whether all of the text that supports the label is gold in a split of the dataset; None: unknown."""
        if not self.corpus_yaml:
            return find_comprehensive(self.name, split)
        if isinstance(self.comprehensive, tuple):
            return split in map(dataset_split, self.comprehensive)
        return self.comprehensive


_RELEASED = msgspec.json.decode(Path(__file__).with_name("configs.json").read_bytes(), type=list[EraserConfig])
CONFIGS: dict[str, EraserConfig] = {config.name: config for config in _RELEASED}
DEFAULT_CONFIG = "movies"
YAML_KEYS = ("name", "labels", "language", "license", "citation", "kd", "comprehensive")
CORPUS_YAML = "corpus.yaml"  # the file of a custom corpus, see the module `corpus_yaml`
IMPORT_RECORD = ".import.json"  # the digests of the files that an import wrote


def get_annotators_path(config: str) -> str:
    """Return the path of a config's file of annotators, in a corpus folder and in a built dataset."""
    return f"annotators/{config}.parquet"
