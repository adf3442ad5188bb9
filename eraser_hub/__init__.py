"""ERASER and its kin: corpora of human rationales as Hub datasets, and the scores that measure rationales.

Public names (loaded when first asked for, so that ``import eraser_hub`` stays cheap):

- ``tokens(row)``, ``mask(row)``: of each document of a row of any dataset its tokens, and which of them are rationale.
- ``align(row, tokenizer)``, ``Collator(tokenizer)``: both in a model's sub-words, in windows, padded into batches.
- ``collate(rows)``: rows as a batch, for a DataLoader.
- ``token_scores(result, text)``, ``write_scores(path, rows, scores)``: what captum, ferret, inseq, interpreto, lime,
  shap and transformers-interpret give, as a score a token, and as the file of ``explain --scores``.
- ``build``, ``import_corpus``, ``check``, ``stats``, ``export``, ``load``, ``bench``, ``score``, ``report``, ``board``,
  ``train``, ``ask``, ``reproduce``, ``publish``: what the verbs of the command line do.
- ``explain``, ``explain_texts(model, texts)``: predictions with rationales for texts in memory.
- ``highlight(row, instance)``: a dataset row's document with gold and predicted rationales marked, for notebooks.
- ``Eraser``, ``BilingualPerturbation``, ``HumanRationales``: the dataset builders.
- ``compare``: paired significance tests of two systems.
- ``DataError``, ``BusyError``: what is raised for bad input, and where another run is at work.
- ``dataset_split``, ``release_split``: a split's name on the Hub (``validation``) and in a release (``val``).
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from eraser_hub.records.errors import BusyError, DataError

from .version import __version__

if TYPE_CHECKING:
    from eraser_hub.asking.ask import ask
    from eraser_hub.attribution.alignment import Collator, align, collate, mask, tokens
    from eraser_hub.attribution.explain import explain, explain_texts
    from eraser_hub.attribution.interop import token_scores, write_scores
    from eraser_hub.conversion.importing.verb import import_corpus
    from eraser_hub.conversion.verbs import check, export, load, stats
    from eraser_hub.datasets_scripts.bilingual_perturbation import BilingualPerturbation
    from eraser_hub.datasets_scripts.eraser import Eraser
    from eraser_hub.datasets_scripts.human_rationales import HumanRationales
    from eraser_hub.experiments.bench import bench
    from eraser_hub.experiments.reproduce import reproduce
    from eraser_hub.first_steps import quickstart
    from eraser_hub.metrics.plain import instances_from
    from eraser_hub.metrics.quotes import locate_quotes
    from eraser_hub.metrics.tokens import mask_from_spans, spans_from_mask
    from eraser_hub.publishing.build import build
    from eraser_hub.publishing.publish import publish
    from eraser_hub.records.places import dataset_split, release_split
    from eraser_hub.reports.board import board
    from eraser_hub.reports.highlight import highlight
    from eraser_hub.reports.report import report
    from eraser_hub.scoring.verbs import compare, score
    from eraser_hub.systems.train import train

# module -> the names in it that are loaded when they are first asked for
_LAZY = {
    "systems.train": "train",
    "asking.ask": "ask",
    "scoring.verbs": "score compare",
    "attribution.alignment": "tokens mask align Collator collate",
    "attribution.interop": "token_scores write_scores",
    "attribution.explain": "explain explain_texts",
    "reports.report": "report",
    "reports.board": "board",
    "reports.highlight": "highlight",
    "first_steps": "quickstart",
    "experiments.bench": "bench",
    "experiments.reproduce": "reproduce",
    "publishing.publish": "publish",
    "records.places": "dataset_split release_split",
    "datasets_scripts.eraser": "Eraser",
    "datasets_scripts.bilingual_perturbation": "BilingualPerturbation",
    "datasets_scripts.human_rationales": "HumanRationales",
    "metrics.plain": "instances_from",
    "metrics.tokens": "spans_from_mask mask_from_spans",
    "metrics.quotes": "locate_quotes",
    "conversion.verbs": "check stats export load",
    "conversion.importing.verb": "import_corpus",
    "publishing.build": "build",
}
_MODULES = {name: module for module, names in _LAZY.items() for name in names.split()}
__all__ = ["BusyError", "DataError", "__version__", "dataset_split", "release_split"]
# in the order of the site's page of the Python API
__all__ += ["tokens", "mask", "align", "Collator", "collate", "token_scores", "write_scores"]  # noqa: RUF022
__all__ += ["spans_from_mask", "mask_from_spans", "locate_quotes", "instances_from"]  # noqa: RUF022
__all__ += ["build", "check", "stats", "export", "load"]  # noqa: RUF022
__all__ += ["bench", "score", "report", "board", "train", "explain"]  # noqa: RUF022
__all__ += ["ask", "reproduce", "publish", "quickstart"]  # noqa: RUF022
__all__ += ["explain_texts", "highlight", "Eraser", "BilingualPerturbation", "HumanRationales"]  # noqa: RUF022
__all__ += ["import_corpus", "compare"]  # noqa: RUF022


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return getattr(importlib.import_module(f"eraser_hub.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
