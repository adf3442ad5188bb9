"""Rows as questions: what a language model reads, and the tokens that its quotes are brought back to."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

from eraser_hub.attribution.dataset import Split
from eraser_hub.attribution.instances import READERS, Instance
from eraser_hub.metrics.token_rows import runs_of_mask
from eraser_hub.records.errors import DataError

from .alignment import Document

LOOKED_AT = 500  # rows of train that examples are drawn from


@dataclass(frozen=True, slots=True)
class Question:
    """One question of a model.

    Attributes:
        instance: its tokens and gold labels.
        texts: of each document, as the model reads it.
        query: the question, claim or hypothesis; "" where there is none.
        blank: what stands between two tokens of the texts.
    """

    instance: Instance
    texts: tuple[str, ...]
    query: str
    blank: str

    @property
    def documents(self) -> list[Document]:
        """The documents in which quotes are looked for."""
        pairs = zip(self.instance.names, self.instance.documents, strict=True)
        return [Document(docid, tokens, self.blank) for docid, tokens in pairs]

    def gold_runs(self) -> list[tuple[int, int, int]]:
        """The human rationale's runs of tokens: (document's number from 0, first token, the one behind the last)."""
        masks = enumerate(self.instance.rationale or ())
        return [(number, *run) for number, flags in masks for run in runs_of_mask(flags)]


def read_questions(split: Split) -> Iterator[Question]:
    """The questions of a split, in order; errors as of `Split.read`."""
    return split.read(partial(make_question, split.kind))


def make_question(kind: str, row: Mapping[str, Any], label_names: Sequence[str]) -> Question:
    """A row's question; of ``eraser`` the documents' text is as it was released, else its tokens one after another."""
    instance = READERS[kind](row, label_names)
    blank = "" if row.get("language") == "zh" else " "
    if kind == "eraser":
        texts = tuple(document["text"] for document in row["documents"])
    else:
        texts = tuple(blank.join(tokens) for tokens in instance.documents)
    return Question(instance, texts, row.get("query" if kind == "eraser" else "question") or "", blank)


def draw_examples(split: Split, count: int, seed: int) -> list[Question]:
    """Questions with a gold label and gold evidence, drawn by a seed from the split's first `LOOKED_AT`.

    Raises:
        DataError: there are not so many with label and evidence.
    """
    if not count:
        return []
    first = islice(read_questions(split), LOOKED_AT)
    known = [one for one in first if one.instance.label is not None and one.gold_runs()]
    if len(known) < count:
        message = f"expected {count} rows of train with label and evidence, found {len(known)}"
        raise DataError(message, rule="option-value", argument="shots")
    return random.Random(seed).sample(known, count)
