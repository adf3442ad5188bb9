"""Questions from rows: the text that a language model reads, and the tokens that its quotes refer to."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

from eraser_hub.attribution.dataset import Split
from eraser_hub.attribution.instances import READERS, Instance
from eraser_hub.metrics.plain import spans_from_mask
from eraser_hub.metrics.quotes import Document
from eraser_hub.records.errors import DataError

LOOKED_AT = 500  # rows of train that examples are drawn from


@dataclass(frozen=True, slots=True)
class Question:
    """One question to a model.

    Attributes:
        instance: Its tokens and gold labels.
        texts: The text of each document as the model reads it.
        query: The question, claim or hypothesis; "" without one.
        blank: The string between two tokens of the texts.
    """

    instance: Instance
    texts: tuple[str, ...]
    query: str
    blank: str

    @property
    def documents(self) -> list[Document]:
        """The documents to search for quotes."""
        pairs = zip(self.instance.names, self.instance.documents, strict=True)
        return [Document(docid, tokens, self.blank) for docid, tokens in pairs]

    def gold_runs(self) -> list[tuple[int, int, int]]:
        """Return the human rationale's runs of tokens: (document from 0, first token, token behind the last)."""
        masks = enumerate(self.instance.rationale or ())
        return [(number, *run) for number, flags in masks for run in spans_from_mask(flags)]


def read_questions(split: Split) -> Iterator[Question]:
    """Yield the questions of a split, in order; errors as in `Split.read`."""
    return split.read(partial(make_question, split.kind))


def make_question(kind: str, row: Mapping[str, Any], label_names: Sequence[str]) -> Question:
    """Return a row's question, with the released text of ``eraser`` documents, else with the joined tokens."""
    instance = READERS[kind](row, label_names)
    blank = "" if row.get("language") == "zh" else " "
    if kind == "eraser":
        texts = tuple(document["text"] for document in row["documents"])
    else:
        texts = tuple(blank.join(tokens) for tokens in instance.documents)
    return Question(instance, texts, row.get("query" if kind == "eraser" else "question") or "", blank)


def draw_examples(split: Split, count: int, seed: int) -> list[Question]:
    """Draw questions with gold label and gold evidence from the first `LOOKED_AT` rows of a split.

    Returns:
        ``count`` questions, and where there is one a further question in place of one that is asked: see
        `choose_examples`.

    Raises:
        DataError: there are not so many with label and evidence.
    """
    if not count:
        return []
    first, choose = islice(read_questions(split), LOOKED_AT), random.Random(seed)
    known = [one for one in first if one.instance.label is not None and one.gold_runs()]
    if len(known) < count:
        raise _make_error(count, len(known))
    drawn = choose.sample(known, count)
    names = {one.instance.id for one in drawn}
    others = [one for one in known if one.instance.id not in names]
    return [*drawn, *choose.sample(others, min(1, len(others)))]


def choose_examples(drawn: Sequence[Question], question: Question, count: int) -> list[Question]:
    """Return the first of the drawn examples that are not the asked row.

    Raises:
        DataError: there are less than ``count``.
    """
    # in the split train the asked row may be one of them
    chosen = [one for one in drawn if one.instance.id != question.instance.id][:count]
    if len(chosen) < count:
        raise _make_error(count, len(chosen), question.instance.id)
    return chosen


def _make_error(count: int, found: int, asked: str | None = None) -> DataError:
    beside = "" if asked is None else " beside the asked one"
    message = f"expected {count} rows of train with label and evidence{beside}, found {found}"
    return DataError(message, argument="shots", instance=asked)
