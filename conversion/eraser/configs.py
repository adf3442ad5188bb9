"""What is fixed for each configuration of ``eraser``: label names, splits, layout of the documents, licence.

Label names are facts of the corpus, not read off the files at hand: a partial file that lacks a label still gives
the same ClassLabel. The kd of erasure stands in ``papers/``, with what else is printed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

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
        corpus_yaml: the text of its corpus.yaml (see `own`); empty for the release's nine.
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


_ALL = (
    EraserConfig(
        "movies",
        ("NEG", "POS"),
        "docs/",
        "unknown",
        "The movie reviews were collected by Pang and Lee (2004), the rationales by Zaidan and Eisner (2008); "
        "neither states a licence.",
        "text-classification",
        "Movie Reviews",
        task_id="sentiment-classification",
        annotations_creators=("expert-generated",),
    ),
    EraserConfig(
        "multirc",
        ("False", "True"),
        "docs/",
        "unknown",
        "MultiRC mixes texts of several sources and states no licence for the whole; "
        "its authors offer it for research.",
        "question-answering",
        "MultiRC",
        task_id="multiple-choice-qa",
        source="multi_rc",
        language_creators=("crowdsourced", "found"),
    ),
    EraserConfig(
        "fever",
        ("REFUTES", "SUPPORTS"),
        "docs/",
        "cc-by-sa-3.0",
        "FEVER's claims and the Wikipedia pages below them are CC BY-SA 3.0.",
        "text-classification",
        "FEVER",
        extra_splits=("dev",),
        task_id="fact-checking",
        source="fever",
        language_creators=("crowdsourced", "found"),
    ),
    EraserConfig(
        "boolq",
        ("False", "True"),
        "docs/",
        "cc-by-sa-3.0",
        "BoolQ and the Wikipedia pages below it are CC BY-SA 3.0.",
        "question-answering",
        "BoolQ",
        sentence_end_inclusive=True,
        extra_splits=("test_comprehensive", "test_original"),
        task_id="natural-language-inference",
        source="boolq",
    ),
    EraserConfig(
        "evidence_inference",
        ("significantly decreased", "no significant difference", "significantly increased"),
        "docs/",
        "mit",
        "Evidence Inference's LICENSE says MIT (2019, Lehman, DeYoung, Barzilay, Wallace); the articles are "
        "PubMed Central's open access subset, each under its own.",
        "text-classification",
        "Evidence Inference",
        extra_splits=("test_exhaustive",),
        task_id="natural-language-inference",
        language_creators=("expert-generated", "found"),
        annotations_creators=("expert-generated",),
    ),
    EraserConfig(
        "cose",
        ("A", "B", "C", "D", "E"),
        "docs.jsonl",
        "bsd-3-clause",
        "CoS-E is published under the BSD 3-clause licence; its questions come from CommonsenseQA.",
        "question-answering",
        "CoS-E",
        extra_splits=("train_sanity", "val_sanity"),
        task_id="multiple-choice-qa",
        source="cos_e",
        language_creators=("crowdsourced",),
    ),
    EraserConfig(
        "esnli",
        ("contradiction", "entailment", "neutral"),
        "docs.jsonl",
        "mit",
        "e-SNLI is published under the MIT licence; SNLI below it is CC BY-SA 4.0.",
        "text-classification",
        "e-SNLI",
        task_id="natural-language-inference",
        source="esnli",
        language_creators=("crowdsourced",),
    ),
    EraserConfig(
        "cose_simplified",
        ("false", "true"),
        "docs.jsonl",
        "bsd-3-clause",
        "CoS-E with one instance per answer, as the release ships it beside CoS-E; same licence.",
        "question-answering",
        "CoS-E, one answer each",
        task_id="multiple-choice-qa",
        source="cos_e",
        language_creators=("crowdsourced",),
    ),
    EraserConfig(
        "esnli_flat",
        ("contradiction", "entailment", "neutral"),
        "docs.jsonl",
        "mit",
        "e-SNLI with premise and hypothesis in one document, as the release ships it beside e-SNLI; same licence.",
        "text-classification",
        "e-SNLI, one document",
        task_id="natural-language-inference",
        source="esnli",
        language_creators=("crowdsourced",),
    ),
)

CONFIGS: dict[str, EraserConfig] = {config.name: config for config in _ALL}
DEFAULT_CONFIG = "movies"
CORPUS_YAML = "corpus.yaml"  # of a corpus of one's own, see `own`


def annotators_file(config: str) -> str:
    """Where the annotators' masks of a config stand, in its corpus folder and in a built dataset."""
    return f"annotators/{config}.parquet"
