"""ERASER and its kin: corpora of human rationales as Hub datasets, and the scores that measure rationales.

Public names (loaded when first asked for, so that ``import eraser_hub`` stays cheap):

- ``tokens(row)``, ``mask(row)``: of each document of a row of any dataset its tokens, and which of them are rationale.
- ``align(row, tokenizer)``, ``Collator(tokenizer)``: both in a model's sub-words, in windows, padded into batches.
- ``collate(rows)``: rows as a batch, for a DataLoader.
- ``token_scores(result, text)``, ``write_scores(path, rows, scores)``: what captum, ferret, inseq, interpreto, lime, shap and
  transformers-interpret give, as a score a token, and as the file of ``explain --scores``.
- ``explain_texts(model, texts)``: predictions with rationales for texts in memory.
- ``highlight(row, instance)``: a dataset row's document with gold and predicted rationales marked, for notebooks.
- ``Eraser``, ``BilingualPerturbation``, ``HumanRationales``: the dataset builders.
- ``import_corpus({"train": rows}, name, Columns(..), out)``: Datasets of rationales as a corpus folder, as `eraser-hub import` does.
- ``compare``: paired significance tests of two systems.
- ``DataError``, ``DataErrors``, ``BusyError``: what is raised for bad input, and where another run is at work.
- ``dataset_split``, ``release_split``: a split's name on the Hub (``validation``) and in a release (``val``).
"""

from __future__ import annotations

import importlib

from eraser_hub.records.errors import BusyError, DataError, DataErrors
from eraser_hub.records.splits import dataset_split, release_split

from .version import __version__

_LAZY = {
    "tokens": ("eraser_hub.explain.alignment", "tokens"),
    "mask": ("eraser_hub.explain.alignment", "mask"),
    "align": ("eraser_hub.explain.alignment", "align"),
    "Collator": ("eraser_hub.explain.alignment", "Collator"),
    "collate": ("eraser_hub.explain.alignment", "collate"),
    "token_scores": ("eraser_hub.explain.other_libraries.scores", "token_scores"),
    "write_scores": ("eraser_hub.explain.other_libraries.scores", "write_scores"),
    "explain_texts": ("eraser_hub.explain.api", "explain_texts"),
    "highlight": ("eraser_hub.reports.highlight", "highlight"),
    "Eraser": ("eraser_hub.datasets_scripts.eraser", "Eraser"),
    "BilingualPerturbation": ("eraser_hub.datasets_scripts.bilingual_perturbation", "BilingualPerturbation"),
    "HumanRationales": ("eraser_hub.datasets_scripts.human_rationales", "HumanRationales"),
    "import_corpus": ("eraser_hub.conversion.importing.corpus", "import_corpus"),
    "Columns": ("eraser_hub.conversion.importing.corpus", "Columns"),
    "compare": ("eraser_hub.scoring.comparison", "compare"),
}
__all__ = ["BusyError", "DataError", "DataErrors", "__version__", "dataset_split", "release_split", *_LAZY]


def __getattr__(name: str) -> object:
    if name in _LAZY:
        module, attribute = _LAZY[name]
        return getattr(importlib.import_module(module), attribute)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
