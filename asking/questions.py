"""Rows as questions: what a language model reads, and the tokens that its quotes are brought back to."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import compress, islice
from typing import Any

from eraser_hub.explain.dataset import Split
from eraser_hub.explain.instances import READERS, Instance
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

    def gold_quotes(self) -> list[str]:
        """The human rationale's runs of tokens, as quotes."""
        runs = []
        for tokens, flags in zip(self.instance.documents, self.instance.rationale or (), strict=False):
            marked = [*compress(range(len(tokens)), flags)]
            starts = [at for at in marked if at == 0 or not flags[at - 1]]
            ends = [at + 1 for at in marked if at + 1 == len(flags) or not flags[at + 1]]
            runs += [self.blank.join(tokens[start:end]) for start, end in zip(starts, ends, strict=True)]
        return runs


def questions(split: Split) -> Iterator[Question]:
    """The questions of a split, in order; errors as of `Split.read`."""
    return split.read(partial(question_of, split.kind))


def question_of(kind: str, row: Mapping[str, Any], label_names: Sequence[str]) -> Question:
    """A row's question; of ``eraser`` the documents' text is as it was released, else its tokens one after another."""
    instance = READERS[kind](row, label_names)
    blank = "" if row.get("language") == "zh" else " "
    if kind == "eraser":
        texts = tuple(document["text"] for document in row["documents"])
    else:
        texts = tuple(blank.join(tokens) for tokens in instance.documents)
    return Question(instance, texts, row.get("query" if kind == "eraser" else "question") or "", blank)


def examples(split: Split, count: int, seed: int) -> list[tuple[Question, list[str]]]:
    """Questions with a gold label and their gold quotes, drawn by a seed from the split's first `LOOKED_AT`.

    Raises:
        DataError: there are not so many with label and evidence.
    """
    if not count:
        return []
    known = [one for one in islice(questions(split), LOOKED_AT) if one.instance.label is not None and one.gold_quotes()]
    if len(known) < count:
        raise DataError(f"--shots: expected {count} rows of train with label and evidence, found {len(known)}")
    return [(one, one.gold_quotes()) for one in random.Random(seed).sample(known, count)]
