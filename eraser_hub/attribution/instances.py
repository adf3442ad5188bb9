"""Rows of a dataset as instances: word tokens a model reads, and which of them may be erased.

One reader for each of the three datasets: rows of ``eraser`` hold documents with evidences, rows of
``bilingual_perturbation`` sequences of tokens, rows of ``human_rationales`` one text of tokens. The query, where there
is one, is shown to the model whole and is never erased: rationales lie in documents.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain, compress, islice, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eraser_hub.conversion.built import get_label_name
from eraser_hub.metrics.plain import mask_from_spans, sentence_sizes, split_sentences, split_tokens
from eraser_hub.records.errors import DataError, show

STRING, LIST, IDENTITY = "a string", "a list", "a string or an integer"
TYPES: dict[str, tuple[type, ...]] = {STRING: (str,), LIST: (list, tuple), IDENTITY: (str, int)}
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
        scores: per document a score for each token, from a file (:mod:`external_rationales`).
        sentences: per document the number of tokens of each of its sentences; () where the data have none: then each
            document is one.
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
        return [token for document in self.documents for token in document]

    @property
    def bounds(self) -> list[int]:
        """Offsets of the documents in :attr:`tokens`, the end included: document d is ``bounds[d]:bounds[d + 1]``."""
        return list(accumulate(map(len, self.documents), initial=0))

    @property
    def has_rationale(self) -> bool:
        """True if any token is in the human rationale."""
        return self.rationale is not None and any(map(any, self.rationale))

    @property
    def sentence_sizes(self) -> tuple[tuple[int, ...], ...]:
        """Number of tokens of each sentence, per document."""
        return self.sentences or tuple((len(document),) if document else () for document in self.documents)

    def only(self, kept: Sequence[bool] | NDArray[np.bool_]) -> Instance:
        """Return the instance reduced to some tokens; a sentence without kept tokens is dropped.

        Args:
            kept: a flag for each of :attr:`tokens`.
        """
        flags = [list(map(bool, kept[start:end])) for start, end in pairwise(self.bounds)]
        parts = [
            [sum(document[start:end]) for start, end in pairwise(accumulate(sizes, initial=0))]
            for document, sizes in zip(flags, self.sentence_sizes, strict=True)
        ]

        def cut(rows: Sequence[Sequence[Any]] | None) -> tuple[tuple[Any, ...], ...] | None:
            return None if rows is None else tuple(tuple(compress(*pair)) for pair in zip(rows, flags, strict=True))

        return replace(
            self,
            documents=cut(self.documents) or (),
            rationale=cut(self.rationale),
            scores=cut(self.scores),
            sentences=tuple(tuple(filter(None, sizes)) for sizes in parts),
        )

    def left(self, kept: Sequence[bool] | NDArray[np.bool_], filler: str) -> Instance:
        """Return the tokens that remain to be read, without rationale, scores and sentences.

        Args:
            kept: a flag for each of :attr:`tokens`.
            filler: the token in place of a document of which nothing is left; "" for none.
        """
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
        whole = self.only([flag for document in self.rationale for flag in document])
        return replace(whole, rationale=None, evidence_documents=(), scores=None)


def make_text_instance(identity: str, text: str | Sequence[str], query: str | Sequence[str] = ()) -> Instance:
    """Return a text, cut at blanks and line ends or into tokens already, as an instance whose document has its id.

    Raises:
        DataError: a token that is no string.
    """
    tokens, asked = (tuple(split_tokens(one) if isinstance(one, str) else one) for one in (text, query))
    for place, token in (pair for words in (asked, tokens) for pair in enumerate(words)):
        if not isinstance(token, str):
            message = f"expected a string as token {place}, found {show(token)}"
            raise DataError(message, instance=identity)
    sentences = (tuple(sentence_sizes(text)),) if isinstance(text, str) else ()
    return Instance(identity, asked, (identity,), (tokens,), sentences=sentences)


def split_into_chunks(instances: Iterable[Instance], size: int) -> Iterator[tuple[int, list[Instance]]]:
    """Yield numbered chunks of neighbouring instances."""
    rest = iter(instances)
    yield from enumerate(iter(lambda: list(islice(rest, size)), []))


def _check_type(value: Any, what: str, instance: str | None, field: str, words: str = "") -> Any:
    """Return a value of one of :data:`TYPES`, or refuse it.

    Args:
        value: the value to check.
        what: key of :data:`TYPES`.
        instance: id of the instance, for the error.
        field: name of the field, for the error.
        words: the expected value in the error, if ``what`` is too general.
    """
    if not isinstance(value, TYPES[what]) or (isinstance(value, bool) and what == IDENTITY):
        raise DataError(f"expected {words or what}, found {show(value)}", instance=instance, field=field)
    return value


def _read_words(value: object, instance: str) -> tuple[str, ...]:
    listed = _check_type(value, LIST, instance, "tokens")
    return tuple(_check_type(word, STRING, instance, "tokens", "tokens that are strings") for word in listed)


def _to_rationale(groups: object, names: Sequence[str], documents: Sequence[Sequence[str]], instance: str) -> Rationale:
    """Return the union of groups of evidences as flags."""
    sizes = dict(zip(names, map(len, documents), strict=True))
    spans: dict[str, list[tuple[int, int]]] = {name: [] for name in names}
    for number, group in enumerate(_check_type(groups, LIST, instance, "evidences")):
        for place, evidence in enumerate(_check_type(group, LIST, instance, f"evidences[{number}]")):
            field = f"evidences[{number}][{place}]"
            docid = evidence.get("docid") if isinstance(evidence, Mapping) else None
            if not isinstance(docid, str) or docid not in spans:
                known = ", ".join(map(show, names[:10]))
                message = f"expected a span in one of the documents {known}, found {show(evidence)}"
                raise DataError(message, instance=instance, field=field)
            start, end = evidence.get("start_token"), evidence.get("end_token")
            if not (isinstance(start, int) and isinstance(end, int) and 0 <= start <= end <= sizes[docid]):
                message = (
                    f"expected 0 <= start_token <= end_token <= {sizes[docid]}, found {show(start)} and {show(end)}"
                )
                raise DataError(message, instance=instance, field=field)
            spans[docid].append((start, end))
    return tuple(tuple(map(bool, mask_from_spans(spans[name], sizes[name]))) for name in names)


def flag_members(sets: object, size: int, instance: str, field: str) -> tuple[bool, ...]:
    """Return flags of the tokens that any gold set of a sequence holds."""
    flags = [False] * size
    for number, members in enumerate(_check_type(sets, LIST, instance, field)):
        for place in _check_type(members, LIST, instance, f"{field}[{number}]"):
            if not isinstance(place, int) or not 0 <= place < size:
                message = f"expected the index of one of {size} tokens, found {show(place)}"
                raise DataError(message, instance=instance, field=f"{field}[{number}]")
            flags[place] = True
    return tuple(flags)


def read_eraser_row(row: Mapping[str, Any], label_names: Sequence[str] = ()) -> Instance:
    """Read an instance from a row of ``eraser``.

    The human rationale is the union of its evidences.

    Raises:
        DataError: no id; a document without name or text, or twice; spans that do not fit the documents; an unknown
            label.
    """
    identity = str(_check_type(row.get("annotation_id"), IDENTITY, None, "annotation_id"))
    names: list[str] = []
    texts: list[list[list[str]]] = []
    for number, document in enumerate(_check_type(row["documents"], LIST, identity, "documents")):
        field = f"documents[{number}]"
        if not isinstance(document, Mapping) or not isinstance(document.get("docid"), str):
            message = f"expected docid and text, found {show(document)}"
            raise DataError(message, instance=identity, field=field)
        name, text = document["docid"], document.get("text")
        texts.append(split_sentences(_check_type(text, STRING, identity, f"{field}.text")))
        if name in names:
            message = f"expected each document once, found {show(name)} again"
            raise DataError(message, instance=identity, field=field)
        names.append(name)
    documents = tuple(tuple(chain.from_iterable(text)) for text in texts)
    sentences = tuple(tuple(map(len, text)) for text in texts)
    evidences = row.get("evidences")
    rationale = None if evidences is None else _to_rationale(evidences, names, documents, identity)
    label = get_label_name(row.get("classification"), label_names, instance=identity)
    docids = {evidence["docid"] for group in evidences or () for evidence in group}
    evidence_documents = tuple(number for number, name in enumerate(names) if name in docids)
    query = row.get("query")
    query = () if query is None else tuple(split_tokens(_check_type(query, STRING, identity, "query")))
    return Instance(identity, query, tuple(names), documents, label, rationale, evidence_documents, sentences=sentences)


def read_perturbation_row(row: Mapping[str, Any], label_names: Sequence[str] = ()) -> Instance:
    """Read an instance from a row of ``bilingual_perturbation``; each token sequence is a document.

    For reading comprehension the question is the query; the passage's tokens can be erased. The human rationale is the
    union of the gold sets.

    Raises:
        DataError: no id; tokens that are no strings; gold sets for another number of sequences; an unknown label.
    """
    identity = str(_check_type(row.get("id"), IDENTITY, None, "id"))
    sequences = tuple(
        _read_words(sequence, identity) for sequence in _check_type(row["tokens"], LIST, identity, "tokens")
    )
    names = tuple(f"sequence_{number}" for number in range(len(sequences)))
    rationale = None
    if row.get("rationale_ids") is not None:
        gold = _check_type(row["rationale_ids"], LIST, identity, "rationale_ids")
        if len(gold) != len(sequences):
            message = f"expected gold sets for each of {len(sequences)} sequences, found {len(gold)}"
            raise DataError(message, instance=identity, field="rationale_ids")
        pairs = enumerate(zip(sequences, gold, strict=True))
        rationale = tuple(
            flag_members(sets, len(words), identity, f"rationale_ids[{at}]") for at, (words, sets) in pairs
        )
    label = get_label_name(row.get("label"), label_names, instance=identity)
    query = row.get("question")
    query = () if query is None else tuple(split_tokens(_check_type(query, STRING, identity, "question")))
    return Instance(identity, query, names, sequences, label, rationale)


def read_tokens_row(row: Mapping[str, Any], label_names: Sequence[str] = ()) -> Instance:
    """Read an instance from a row of ``human_rationales``, whose one document is named like the row.

    Raises:
        DataError: no id; tokens that are no strings; a mask of another length; an unknown label.
    """
    identity = str(_check_type(row.get("id"), IDENTITY, None, "id"))
    tokens = _read_words(row["tokens"], identity)
    flags = row.get("rationale_mask")
    if flags is not None:
        others = [flag for flag in _check_type(flags, LIST, identity, "rationale_mask") if flag not in (0, 1)]
        if others or len(flags) != len(tokens):
            message = f"expected one flag, 0 or 1, for each of {len(tokens)} tokens, found "
            message = message + (show(others[0]) if others else str(len(flags)))
            raise DataError(message, instance=identity, field="rationale_mask")
    label = get_label_name(row.get("label"), label_names, instance=identity)
    rationale = None if flags is None else (tuple(map(bool, flags)),)
    return Instance(identity, (), (identity,), (tokens,), label, rationale)


READERS = {"eraser": read_eraser_row, "perturbation": read_perturbation_row, "tokens": read_tokens_row}
