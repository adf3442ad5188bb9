"""What is reproduced, on what and how."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ReproducePlan:
    """What is reproduced, on what and how.

    Attributes:
        table: one of :data:`rows.TABLES`.
        dataset, config: a built dataset's folder, and a config of it.
        split: that is scored; "" for test, or validation where the dataset has no test split with labels.
        encoder: a transformers folder or Hub id, of the rows that need one; "" for none.
        embeddings: a file of word vectors, of the rows over words; "" for learned ones.
        corpora: raw corpora with the files of human performance, for ``eraser-2``; "" for none.
        fast: small sizes (:mod:`fast`).
        seed: of all that is drawn.
    """

    table: str
    dataset: str
    config: str
    split: str = ""
    encoder: str = ""
    embeddings: str = ""
    corpora: str = ""
    fast: bool = False
    seed: int = 1
