"""Rows of a dataset as instances: word tokens that a model reads, and which of them may be erased.

Each of the three datasets has a reader: rows of ``eraser`` hold documents with evidences, rows of
``bilingual_perturbation`` sequences of tokens, rows of ``human_rationales`` one text of tokens. The query, where there
is one, is shown to the model whole and never erased: rationales lie in documents.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain, compress, islice, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from eraser_hub.conversion.built import get_label_name
from eraser_hub.conversion.readers import convert_type
from eraser_hub.metrics.tokens import mask_from_spans, split_sentences, split_tokens
from eraser_hub.records.errors import DataError, show

if TYPE_CHECKING:
    import pyarrow as pa

Rationale = tuple[tuple[bool, ...], ...]  # per document one flag a token


@dataclass(frozen=True, slots=True)
class Instance:
    """One input of a model.

    Attributes:
        id: the annotation id (a string also where the release has integers).
        query: tokens of the question, claim or hypothesis; never erased.
        names: the documents' ids (``eraser``) or the sequences' names (``bilingual_perturbation``).
        documents: tokens of each document, in order; these can be erased.
        label: the gold label's name, None where the data has none.
        rationale: per document the human rationale, one flag a token; None where the data has none.
        evidence_documents: numbers of the documents with gold evidence, ascending; () if none is known.
        scores: per document a given score for each token; None where none are given.
        sentences: per document the number of tokens of each of its sentences; () where the data have none.
    """

    id: str
    query: tuple[str, ...]
    names: tuple[str, ...]
    documents: tuple[tuple[str, ...], ...]
    label: str | None = None
    rationale: Rationale | None = None
    evidence_documents: tuple[int, ...] = ()
    scores: tuple[tuple[float, ...], ...] | None = None
    sentences: tuple[tuple[int, ...], ...] = ()

    @property
    def tokens(self) -> list[str]:
        """The documents' tokens, one after the other."""
        return list(chain.from_iterable(self.documents))

    @property
    def bounds(self) -> list[int]:
        """Offsets of the documents in :attr:`tokens`, the end included: document d is ``bounds[d]:bounds[d + 1]``."""
        return list(accumulate(map(len, self.documents), initial=0))

    @property
    def sentence_sizes(self) -> tuple[tuple[int, ...], ...]:
        """Number of tokens of each sentence, per document; where the data have none, each document is one."""
        return self.sentences or tuple((len(document),) if document else () for document in self.documents)

    @property
    def has_rationale(self) -> bool:
        """True if any token is in the human rationale."""
        return self.rationale is not None and any(map(any, self.rationale))

    def only(self, kept: Sequence[bool] | NDArray[np.bool_]) -> Instance:
        """Return the instance reduced to the tokens whose flag is True; a sentence without any is dropped."""
        flags = [list(map(bool, kept[start:end])) for start, end in pairwise(self.bounds)]

        def cut(rows: Sequence[Sequence[Any]] | None) -> Any:
            return None if rows is None else tuple(tuple(compress(*pair)) for pair in zip(rows, flags, strict=True))

        sizes = [  # of what is left of each sentence
            [sum(document[start:end]) for start, end in pairwise(accumulate(sentences, initial=0))]
            for document, sentences in zip(flags, self.sentence_sizes, strict=True)
        ]
        return replace(
            self,
            documents=cut(self.documents),
            rationale=cut(self.rationale),
            scores=cut(self.scores),
            sentences=tuple(tuple(filter(None, parts)) for parts in sizes),
        )

    def left(self, kept: Sequence[bool] | NDArray[np.bool_], filler: str) -> Instance:
        """Return what remains to be read, without rationale and scores; ``filler`` stands in an emptied document."""
        documents = tuple(document or (filler,) * bool(filler) for document in self.only(kept).documents)
        return replace(self, documents=documents, rationale=None, scores=None, sentences=())

    def rationale_only(self) -> Instance:
        """Return the documents reduced to the human rationale's tokens (Carton et al. (2020), "rationale-only text").

        Raises:
            DataError: the instance carries no rationale.
        """
        if self.rationale is None:
            message = "expected a human rationale to train or evaluate on, found none"
            raise DataError(message, instance=self.id)
        whole = self.only(list(chain.from_iterable(self.rationale)))
        return replace(whole, rationale=None, evidence_documents=(), scores=None)


def make_text_instance(identity: str, text: str | Sequence[str], query: str | Sequence[str] = ()) -> Instance:
    """Return a text, cut at blanks and line ends or into tokens already, as an instance whose document has its id.

    Raises:
        DataError: a query that is neither a string nor a list, a token that is no string.
    """
    if not isinstance(query, Iterable) or isinstance(query, bytes):
        message = f"expected a string or a list of tokens, found {show(query)}"
        raise DataError(message, instance=identity, field="query")
    asked = split_tokens(query) if isinstance(query, str) else query
    parts: Sequence[Sequence[str]] = split_sentences(text) if isinstance(text, str) else [text]
    tokens = list(chain.from_iterable(parts))
    for place, token in chain(enumerate(asked), enumerate(tokens)):
        if not isinstance(token, str):
            message = f"expected a string as token {place}, found {show(token)}"
            raise DataError(message, instance=identity)
    sentences = (tuple(map(len, parts)),) if isinstance(text, str) else ()
    return Instance(identity, tuple(asked), (identity,), (tuple(tokens),), sentences=sentences)


def split_into_chunks(instances: Iterable[Instance], size: int) -> Iterator[tuple[int, list[Instance]]]:
    """Yield numbered chunks of neighbouring instances."""
    rest = iter(instances)
    yield from enumerate(iter(lambda: list(islice(rest, size)), []))


class _Document(Struct):
    docid: str
    text: str


class _Evidence(Struct):
    docid: str
    start_token: int
    end_token: int


class _EraserRow(Struct):
    documents: list[_Document]
    query: str | None = None
    evidences: list[list[_Evidence]] | None = None


class _PerturbationRow(Struct):
    tokens: list[tuple[str, ...]]
    question: str | None = None
    rationale_ids: list[list[list[int]]] | None = None


class _TokensRow(Struct):
    tokens: tuple[str, ...]
    rationale_mask: list[bool | int] | None = None


def _read_id(row: Mapping[str, Any], column: str) -> str:
    return str(convert_type(row.get(column), str | int, column))


def read_eraser_row(row: Mapping[str, Any], label_names: Sequence[str] = ()) -> Instance:
    """Read an instance from a row of ``eraser``; its human rationale is the union of its evidences.

    Raises:
        DataError: no id; a document without name or text, or twice; spans that do not fit the documents; an unknown
            label.
    """
    identity = _read_id(row, "annotation_id")
    known = convert_type(dict(row), _EraserRow, instance=identity)
    names = tuple(document.docid for document in known.documents)
    if len(set(names)) < len(names):
        place = next(at for at, name in enumerate(names) if name in names[:at])
        message = f"expected each document once, found {show(names[place])} again"
        raise DataError(message, instance=identity, field=f"documents[{place}]")
    texts = [split_sentences(document.text) for document in known.documents]
    documents = tuple(tuple(chain.from_iterable(text)) for text in texts)
    spans: dict[str, list[tuple[int, int]]] = {name: [] for name in names}
    sizes = dict(zip(names, map(len, documents), strict=True))
    for number, group in enumerate(known.evidences or ()):
        for place, evidence in enumerate(group):
            start, end, where = evidence.start_token, evidence.end_token, f"evidences[{number}][{place}]"
            if evidence.docid not in spans:
                among = ", ".join(map(show, names[:10]))
                message = f"expected a span in one of the documents {among}, found {show(evidence.docid)}"
                raise DataError(message, instance=identity, field=where)
            if not 0 <= start <= end <= sizes[evidence.docid]:
                limit = f"0 <= start_token <= end_token <= {sizes[evidence.docid]}"
                raise DataError(f"expected {limit}, found {start} and {end}", instance=identity, field=where)
            spans[evidence.docid].append((start, end))
    rationale = None
    if known.evidences is not None:
        rationale = tuple(tuple(map(bool, mask_from_spans(spans[name], sizes[name]))) for name in names)
    return Instance(
        identity,
        tuple(split_tokens(known.query or "")),
        names,
        documents,
        get_label_name(row.get("classification"), label_names, instance=identity),
        rationale,
        tuple(number for number, name in enumerate(names) if spans[name]),
        sentences=tuple(tuple(map(len, text)) for text in texts),
    )


def read_perturbation_row(row: Mapping[str, Any], label_names: Sequence[str] = ()) -> Instance:
    """Read an instance from a row of ``bilingual_perturbation``; each token sequence is a document.

    For reading comprehension the question is the query. The human rationale is the union of the gold sets.

    Raises:
        DataError: no id; tokens that are no strings; gold sets for another number of sequences; an unknown label.
    """
    identity = _read_id(row, "id")
    known = convert_type(dict(row), _PerturbationRow, instance=identity)
    rationale, gold = None, known.rationale_ids
    if gold is not None:
        if len(gold) != len(known.tokens):
            message = f"expected gold sets for each of {len(known.tokens)} sequences, found {len(gold)}"
            raise DataError(message, instance=identity, field="rationale_ids")
        flags = [[False] * len(words) for words in known.tokens]
        for at, sets in enumerate(gold):
            for number, members in enumerate(sets):
                for place in members:
                    if not 0 <= place < len(flags[at]):
                        message = f"expected the index of one of {len(flags[at])} tokens, found {show(place)}"
                        raise DataError(message, instance=identity, field=f"rationale_ids[{at}][{number}]")
                    flags[at][place] = True
        rationale = tuple(map(tuple, flags))
    names = tuple(f"sequence_{number}" for number in range(len(known.tokens)))
    label = get_label_name(row.get("label"), label_names, instance=identity)
    return Instance(identity, tuple(split_tokens(known.question or "")), names, tuple(known.tokens), label, rationale)


def read_tokens_row(row: Mapping[str, Any], label_names: Sequence[str] = ()) -> Instance:
    """Read an instance from a row of ``human_rationales``, whose one document is named like the row.

    Raises:
        DataError: no id; tokens that are no strings; a mask of another length; an unknown label.
    """
    identity = _read_id(row, "id")
    known = convert_type(dict(row), _TokensRow, instance=identity)
    flags = known.rationale_mask
    others = [flag for flag in flags or () if flag not in (0, 1)]
    if flags is not None and (others or len(flags) != len(known.tokens)):
        message = f"expected a flag, 0 or 1, for each of {len(known.tokens)} tokens, found "
        message += show(others[0]) if others else str(len(flags))
        raise DataError(message, instance=identity, field="rationale_mask")
    label = get_label_name(row.get("label"), label_names, instance=identity)
    rationale = None if flags is None else (tuple(map(bool, flags)),)
    return Instance(identity, (), (identity,), (known.tokens,), label, rationale)


READERS = {"eraser": read_eraser_row, "perturbation": read_perturbation_row, "tokens": read_tokens_row}


def find_kind(columns: pa.Schema, file: Path) -> str:
    """Return the kind of reader that a dataset's rows need: eraser, perturbation or tokens (:data:`READERS`).

    Raises:
        DataError: the columns of none of them.
    """
    if {"annotation_id", "documents"} <= set(columns.names):
        return "eraser"
    if {"id", "tokens"} <= set(columns.names):
        nested = columns.field("tokens").type.num_fields and columns.field("tokens").type.field(0).type.num_fields
        return "perturbation" if nested else "tokens"
    expected = "annotation_id and documents (eraser), or id and tokens (bilingual_perturbation, human_rationales)"
    raise DataError(f"expected the columns {expected}; found {', '.join(columns.names) or 'none'}", file=file)
