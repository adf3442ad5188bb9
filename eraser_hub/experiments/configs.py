"""The settings of each experiment."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from eraser_hub.records.arguments import Progress
from eraser_hub.records.options import Option, Options, Seed


@dataclass(frozen=True, kw_only=True)
class ReproduceConfig(Options):
    """The settings of `reproduce`.

    Attributes:
        table: Table: eraser-2, eraser-3, eraser-4, carton2020-3 or carton2020-figure-2.
        dataset: Built dataset: a folder or Hub id.
        config: Configuration, e.g. movies.

    Systems:
        encoder: Encoder of rows that use one: a transformers folder or Hub id; no default.
        embeddings: File of word vectors for rows over words; default: learned embeddings.

    Data:
        source: Raw corpora with the release's files of human performance (eraser-2).
        split: Split to score; default: test, or validation if test has no labels.

    Run:
        fast: Use smaller sizes; the table lists them.
        seeds: Run each row with so many seeds, from `seed` on; figures are means, ± their standard deviation.
        out: Folder of all files; default: reproduce/TABLE-CONFIG.
    """

    table: str
    dataset: str = "hub/eraser"
    config: str
    split: str = ""
    encoder: str = ""
    embeddings: str = ""
    source: str = ""
    fast: bool = False
    seed: Seed = 1
    seeds: Annotated[int, Option(min=1)] = 1
    out: Path | None = None
    say: Progress = None
