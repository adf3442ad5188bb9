"""Small corpora of this project's own writing, in the raw formats, and predictions for them.

``samples/eraser/CONFIG/`` are ERASER corpora as the release lays them out, each with the quirks of its original;
``samples/bilingual_perturbation/``, ``samples/human_rationales/`` are the other two benchmarks' files;
``samples/predictions/`` holds ERASER instances for them.
"""

from __future__ import annotations

from pathlib import Path

SAMPLES = Path(__file__).resolve().parent


def path(*parts: str) -> Path:
    """The folder or file of the bundled samples that ``parts`` name, e.g. ``path("eraser", "movies")``."""
    return SAMPLES.joinpath(*parts)
