"""Rows of a dataset as instances: word tokens a model reads, and which of them may be erased.

One reader for each of the three datasets: rows of ``eraser`` hold documents with evidences, rows of
``bilingual_perturbation`` sequences of tokens, rows of ``human_rationales`` one text of tokens. The query, where there
is one, is shown to the model whole and is never erased: rationales lie in documents.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from eraser_hub.conversion.eraser.format import tokens_of
from eraser_hub.records.errors import DataError, shown
from eraser_hub.records.splits import dataset_split

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
        evidence_documents: numbers of the documents that gold evidence lies in, ascending; () where none is known.
        scores: per document a score for each token, where they come from elsewhere (:mod:`given`).
    """

    id: str
    query: tuple[str, ...]
    names: tuple[str, ...]
    documents: tuple[tuple[str, ...], ...]
    label: str | None = None
    rationale: tuple[tuple[bool, ...], ...] | None = None
    evidence_documents: tuple[int, ...] = ()
    scores: tuple[tuple[float, ...], ...] | None = None

    @property
    def tokens(self) -> list[str]:
        """The documents' tokens, one after the other."""
        return [token for document in self.documents for token in document]

    @property
    def bounds(self) -> list[int]:
        """Offsets of the documents in :attr:`tokens`, the end included: document d is ``bounds[d]:bounds[d + 1]``."""
        ends = [0]
        for document in self.documents:
            ends.append(ends[-1] + len(document))
        return ends

    def without_query(self) -> Instance:
        """The same instance for a model that is not to see the query."""
        return replace(self, query=())

    def rationale_only(self) -> Instance:
        """The documents reduced to the human rationale's tokens (paper 004, "rationale-only text").

        Raises:
            DataError: the instance carries no rationale.
        """
        if self.rationale is None:
            raise DataError("expected a human rationale to train or evaluate on, found none", instance=self.id)
        kept = tuple(
            tuple(token for token, marked in zip(document, marks, strict=True) if marked)
            for document, marks in zip(self.documents, self.rationale, strict=True)
        )
        return Instance(self.id, self.query, self.names, kept, self.label)


@dataclass(frozen=True, slots=True)
class Split:
    """One split of one config, read as a stream: nothing is kept in memory but the row at hand.

    Attributes:
        rows: the rows as ``datasets`` gives them, re-iterable.
        label_names: names of the ClassLabel, () where labels are strings or absent.
        kind: ``"eraser"``, ``"perturbation"`` or ``"tokens"``, see :func:`kind_of`.
        count: number of rows, None when the dataset does not say.
        config: the config's name, which looks up kd.
        name: the dataset's folder or Hub id, for messages.
    """

    rows: Any
    label_names: tuple[str, ...]
    kind: str
    count: int | None
    config: str
    name: str | None = None

    def instances(self, start: int = 0) -> Iterator[Instance]:
        """Instances from row ``start`` on, in the dataset's order.

        Raises:
            DataError: a row that is not of its dataset's schema; a data file that cannot be read.
        """
        rows = iter(self.rows.skip(start) if start else self.rows)
        read = READERS[self.kind]
        number = start
        while True:
            try:
                row = next(rows, None)
            except Exception as error:  # datasets and pyarrow raise many kinds; theirs is the word on what is broken
                words = shown(" ".join(str(error).split()) or type(error).__name__, 300).strip("'\"")
                raise DataError(f"cannot be read after row {number}: {words}", file=self.name) from error
            if row is None:
                return
            number += 1
            try:
                instance = read(row, self.label_names)
            except DataError as error:
                if error.instance is None:  # without an id the row's number has to name it
                    raise DataError(
                        error.message, file=self.name or "dataset", line=number, field=error.field
                    ) from error
                raise
            yield instance

    def fingerprint(self, limit: int | None = None) -> str:
        """Digest of all that decides predictions: two runs that agree in it read the same data.

        Ids, queries, documents and their names, the documents that hold evidence, and the order of the labels; not the
        gold labels and spans, which predictions do not depend on.

        Raises:
            DataError: an id that occurs twice: no score could tell its predictions apart.
        """
        digest = hashlib.blake2b("\x1e".join(self.label_names).encode("utf-8", "surrogatepass"), digest_size=12)
        # eight bytes for each id: a set of ids would grow to a hundred megabytes with the largest split
        ids = array("Q")
        for number, instance in enumerate(self.instances()):
            if limit is not None and number >= limit:
                break
            parts = (instance.id, *instance.query, "\x1d", *instance.names, "\x1d", *map(str, instance.evidence_documents),
                     "\x1d", *("\x1f".join(d) for d in instance.documents), "\x1d")  # fmt: skip
            digest.update("\x1e".join(parts).encode("utf-8", "surrogatepass"))
            ids.append(_short(instance.id))
        found, times = np.unique(np.frombuffer(ids, dtype=np.uint64), return_counts=True)
        if len(found) < len(ids):
            self._refuse_repeated(set(found[times > 1].tolist()), limit)
        return digest.hexdigest()

    def _refuse_repeated(self, suspected: set[int], limit: int | None) -> None:
        """Look again at the ids whose short digests meet: they are equal, or (hardly ever) the digests alone are."""
        seen: set[str] = set()
        for number, instance in enumerate(self.instances()):
            if limit is not None and number >= limit:
                break
            if _short(instance.id) in suspected:
                if instance.id in seen:
                    field = "annotation_id" if self.kind == "eraser" else "id"
                    raise DataError("expected each id once, found it again", instance=instance.id, field=field)
                seen.add(instance.id)


def _short(identity: str) -> int:
    return int.from_bytes(hashlib.blake2b(identity.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def open_split(dataset: str | Path, config: str | None, split: str) -> Split:
    """Open a split of a dataset folder (``hub/eraser``) or of a Hub id (``org/eraser``) with ``datasets``, streaming.

    Streaming reads the Parquet files themselves: the local cache of ``load_dataset`` would return old rows for files
    that were rebuilt in place.

    Raises:
        DataError: no such folder, config or split; each names what there is.
    """
    import datasets
    from datasets.utils.logging import set_verbosity_error

    set_verbosity_error()
    name = str(dataset)
    folder = Path(dataset)
    if not folder.exists() and (name.count("/") > 1 or name.startswith((".", "/", "~")) or name.count("/") == 0):
        raise DataError("no such dataset folder; `eraser-hub build eraser --out hub` makes hub/eraser", file=name)
    if folder.is_dir() and not (folder / "README.md").is_file():
        raise DataError("expected a dataset folder with README.md and Parquet files, found no README.md", file=name)
    try:
        opened = datasets.load_dataset(name, config, split=None, streaming=True)
    except Exception as error:  # datasets raises many kinds; its words name the config or the file
        raise DataError(f"cannot open config {config or '(default)'}: {first_line(error)}", file=name) from error
    wanted = dataset_split(split)
    if wanted not in opened:
        raise DataError(f"split: expected one of {', '.join(opened)}; found {shown(split)}", file=name)
    rows = opened[wanted]
    features = rows.features or {}
    label = features.get("classification", features.get("label"))
    label_names = tuple(getattr(label, "names", ()))
    count = None
    if rows.info.splits and wanted in rows.info.splits:
        count = rows.info.splits[wanted].num_examples
    return Split(rows, label_names, kind_of(features, name), count, config or rows.info.config_name or "", name)


def kind_of(features: Mapping[str, Any], name: str = "dataset") -> str:
    """Which reader a dataset's rows need, told by its columns.

    Returns:
        ``"eraser"`` for rows with documents, ``"perturbation"`` for rows with several token sequences
        (bilingual_perturbation), ``"tokens"`` for rows with one (human_rationales).

    Raises:
        DataError: the columns of none of them.
    """
    if "annotation_id" in features and "documents" in features:
        return "eraser"
    if "id" in features and "tokens" in features:
        nested = getattr(features["tokens"], "feature", None)
        return "perturbation" if getattr(nested, "feature", None) is not None else "tokens"
    raise DataError(
        "expected the columns annotation_id and documents (eraser), or id and tokens (bilingual_perturbation, "
        f"human_rationales); found {', '.join(features) or 'none'}",
        file=name,
    )


def label_of(value: object, label_names: Sequence[str], instance: str) -> str | None:
    """The label's name; ClassLabel's -1 and None are "no label".

    Raises:
        DataError: neither a name nor the number of one.
    """
    if value is None or value == -1:
        return None
    if isinstance(value, str):
        return value
    if isinstance(value, int) and 0 <= value < len(label_names):
        return label_names[value]
    raise DataError(
        f"expected a label name or 0 to {len(label_names) - 1}, found {shown(value)}",
        instance=instance,
        field="classification",
    )


def _identity(row: Mapping[str, Any], field: str) -> str:
    value = row.get(field)
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise DataError(f"expected a string or an integer, found {shown(value)}", field=field)
    return str(value)


def _listed(value: object, instance: str, field: str) -> list[Any] | tuple[Any, ...]:
    if not isinstance(value, (list, tuple)):
        raise DataError(f"expected a list, found {shown(value)}", instance=instance, field=field)
    return value


def _words(value: object, instance: str, field: str) -> tuple[str, ...]:
    words = _listed(value, instance, field)
    for word in words:
        if not isinstance(word, str):
            raise DataError(f"expected tokens that are strings, found {shown(word)}", instance=instance, field=field)
    return tuple(words)


def _question(value: object, instance: str, field: str) -> tuple[str, ...]:
    """Tokens of a query, () where there is none."""
    if value is not None and not isinstance(value, str):
        raise DataError(f"expected a string, found {shown(value)}", instance=instance, field=field)
    return tuple(tokens_of(value or ""))


def _documents(row: Mapping[str, Any], instance: str) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """Names and tokens of a row's documents."""
    names: list[str] = []
    documents: list[tuple[str, ...]] = []
    for number, document in enumerate(_listed(row["documents"], instance, "documents")):
        field = f"documents[{number}]"
        if not isinstance(document, Mapping) or not isinstance(document.get("docid"), str):
            raise DataError(f"expected docid and text, found {shown(document)}", instance=instance, field=field)
        name, text = document["docid"], document.get("text")
        if not isinstance(text, str):
            raise DataError(f"expected a string, found {shown(text)}", instance=instance, field=f"{field}.text")
        if name in names:
            raise DataError(f"expected each document once, found {shown(name)} again", instance=instance, field=field)
        names.append(name)
        documents.append(tuple(tokens_of(text)))
    return tuple(names), tuple(documents)


def _flags(masks: Any, names: Sequence[str], documents: Sequence[Sequence[str]], instance: str) -> Rationale:
    """A mask as flags, one list a document, one flag a token."""
    found = tuple(tuple(map(bool, _listed(mask, instance, "rationale_mask"))) for mask in masks)
    if len(found) != len(documents):
        raise DataError(
            f"expected flags for each of {len(documents)} documents, found {len(found)} lists",
            instance=instance,
            field="rationale_mask",
        )
    for name, mask, document in zip(names, found, documents, strict=True):
        if len(mask) != len(document):
            raise DataError(
                f"expected one flag for each of {len(document)} tokens of {name}, found {len(mask)}",
                instance=instance,
                field="rationale_mask",
            )
    return found


def _marked(
    row: Mapping[str, Any], names: Sequence[str], documents: Sequence[Sequence[str]], instance: str
) -> Rationale:
    """The union of a row's evidences as flags; evidence in documents that the row does not hold marks nothing."""
    marks = {name: [False] * len(tokens) for name, tokens in zip(names, documents, strict=True)}
    for group, evidences in enumerate(row["evidences"]):
        for place, evidence in enumerate(evidences):
            if evidence["docid"] not in marks:
                continue
            start, end, tokens = evidence["start_token"], evidence["end_token"], len(marks[evidence["docid"]])
            if start is None or end is None or not 0 <= start <= end <= tokens:
                raise DataError(
                    f"expected 0 <= start_token <= end_token <= {tokens}, found {shown(start)} and {shown(end)}",
                    instance=instance,
                    field=f"evidences[{group}][{place}]",
                )
            marks[evidence["docid"]][start:end] = [True] * (end - start)
    return tuple(tuple(marks[name]) for name in names)


def instance_of_eraser(row: Mapping[str, Any], label_names: Sequence[str] = ()) -> Instance:
    """An instance from a row of ``eraser``.

    The human rationale is the row's ``rationale_mask`` where it has one, otherwise the union of its evidences.

    Raises:
        DataError: no id; a document without name or text, or twice; a mask or spans that do not fit the documents; an
            unknown label.
    """
    identity = _identity(row, "annotation_id")
    names, documents = _documents(row, identity)
    rationale: Rationale | None = None
    if row.get("rationale_mask") is not None:
        rationale = _flags(row["rationale_mask"], names, documents, identity)
    elif row.get("evidences") is not None:
        rationale = _marked(row, names, documents, identity)
    label = label_of(row.get("classification"), label_names, identity)
    held = {evidence["docid"] for group in row.get("evidences") or () for evidence in group}
    evidence_documents = tuple(number for number, name in enumerate(names) if name in held)
    query = _question(row.get("query"), identity, "query")
    return Instance(identity, query, names, documents, label, rationale, evidence_documents)


def instance_of_perturbation(row: Mapping[str, Any], label_names: Sequence[str] = ()) -> Instance:
    """An instance from a row of ``bilingual_perturbation``: each token sequence is a document of its own.

    For reading comprehension the question is the query; the passage's tokens can be erased. The human rationale is the
    union of the gold sets.

    Raises:
        DataError: no id; tokens that are no strings; gold sets for another number of sequences; an unknown label.
    """
    identity = _identity(row, "id")
    sequences = tuple(_words(sequence, identity, "tokens") for sequence in _listed(row["tokens"], identity, "tokens"))
    names = tuple(f"sequence_{number}" for number in range(len(sequences)))
    rationale = None
    if row.get("rationale_ids") is not None:
        marked = [{index for one in sets for index in one} for sets in row["rationale_ids"]]
        if len(marked) != len(sequences):
            raise DataError(
                f"expected gold sets for each of {len(sequences)} sequences, found {len(marked)}",
                instance=identity,
                field="rationale_ids",
            )
        rationale = tuple(
            tuple(place in held for place in range(len(sequence)))
            for sequence, held in zip(sequences, marked, strict=True)
        )
    label = label_of(row.get("label"), label_names, identity)
    return Instance(identity, _question(row.get("question"), identity, "question"), names, sequences, label, rationale)


def instance_of_tokens(row: Mapping[str, Any], label_names: Sequence[str] = ()) -> Instance:
    """An instance from a row of ``human_rationales``: one text of tokens, which is a document named like the row.

    Raises:
        DataError: no id; tokens that are no strings; a mask of another length; an unknown label.
    """
    identity = _identity(row, "id")
    tokens = _words(row["tokens"], identity, "tokens")
    mask = row.get("rationale_mask")
    if mask is not None and len(mask) != len(tokens):
        raise DataError(
            f"expected one flag for each of {len(tokens)} tokens, found {len(mask)}",
            instance=identity,
            field="rationale_mask",
        )
    label = label_of(row.get("label"), label_names, identity)
    rationale = None if mask is None else (tuple(bool(flag) for flag in mask),)
    return Instance(identity, (), (identity,), (tokens,), label, rationale)


READERS = {"eraser": instance_of_eraser, "perturbation": instance_of_perturbation, "tokens": instance_of_tokens}


def queries_differ(split: Split, limit: int = 2000) -> bool:
    """True when the split's queries are not all the same: then a model needs to see them (movies asks one question)."""
    seen: set[tuple[str, ...]] = set()
    for number, instance in enumerate(split.instances()):
        seen.add(instance.query)
        if len(seen) > 1:
            return True
        if number >= limit:
            break
    return False


def first_line(error: BaseException) -> str:
    """The first line of an error's words, or its type's name when it has none."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
