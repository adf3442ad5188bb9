"""Rows of a dataset as instances: word tokens a model reads, and which of them may be erased.

One reader for each of the three datasets: rows of ``eraser`` hold documents with evidences, rows of
``bilingual_perturbation`` sequences of tokens, rows of ``human_rationales`` one text of tokens. The query, where there is one, is shown to the model whole and is
never erased: rationales lie in documents.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from eraser_hub.conversion.eraser_format import tokens_of
from eraser_hub.errors import DataError, shown
from eraser_hub.splits import dataset_split


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
    """

    id: str
    query: tuple[str, ...]
    names: tuple[str, ...]
    documents: tuple[tuple[str, ...], ...]
    label: str | None = None
    rationale: tuple[tuple[bool, ...], ...] | None = None
    evidence_documents: tuple[int, ...] = ()

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
    """

    rows: Any
    label_names: tuple[str, ...]
    kind: str
    count: int | None
    config: str

    def instances(self, start: int = 0) -> Iterator[Instance]:
        """Instances from row ``start`` on, in the dataset's order."""
        rows = self.rows.skip(start) if start else self.rows
        read = READERS[self.kind]
        for row in rows:
            yield read(row, self.label_names)

    def fingerprint(self, limit: int | None = None) -> str:
        """Digest of every id and text: two runs that agree in it read the same data."""
        digest = hashlib.blake2b(digest_size=12)
        for number, instance in enumerate(self.instances()):
            if limit is not None and number >= limit:
                break
            parts = (instance.id, *instance.query, "\x1d", *("\x1f".join(d) for d in instance.documents))
            digest.update("\x1e".join(parts).encode("utf-8", "surrogatepass"))
        return digest.hexdigest()


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
    return Split(rows, label_names, kind_of(features, name), count, config or rows.info.config_name or "")


def kind_of(features: Mapping[str, Any], name: str = "dataset") -> str:
    """Which reader a dataset's rows need, told by its columns.

    Returns:
        ``"eraser"`` for rows with documents, ``"perturbation"`` for rows with several token sequences
        (bilingual_perturbation), ``"tokens"`` for rows with one (human_rationales).
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
    """The label's name; ClassLabel's -1 and None are "no label"."""
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


def instance_of_eraser(row: Mapping[str, Any], label_names: Sequence[str] = ()) -> Instance:
    """An instance from a row of ``eraser``.

    The human rationale is the row's ``rationale_mask`` where it has one, otherwise the union of its evidences.
    """
    identity = str(row["annotation_id"])
    names = tuple(str(document["docid"]) for document in row["documents"])
    documents = tuple(tuple(tokens_of(document["text"])) for document in row["documents"])
    masks = row.get("rationale_mask")
    if masks is None and row.get("evidences") is not None:
        marks = {name: [False] * len(tokens) for name, tokens in zip(names, documents, strict=True)}
        for evidence in (evidence for group in row["evidences"] for evidence in group):
            if evidence["docid"] in marks:
                span = range(evidence["start_token"], min(evidence["end_token"], len(marks[evidence["docid"]])))
                for position in span:
                    marks[evidence["docid"]][position] = True
        masks = list(marks.values())
    rationale = None
    if masks is not None:
        rationale = tuple(tuple(bool(flag) for flag in mask) for mask in masks)
        for name, mask, document in zip(names, rationale, documents, strict=True):
            if len(mask) != len(document):
                raise DataError(
                    f"expected one flag for each of {len(document)} tokens of {name}, found {len(mask)}",
                    instance=identity,
                    field="rationale_mask",
                )
    label = label_of(row.get("classification"), label_names, identity)
    held = {evidence["docid"] for group in row.get("evidences") or () for evidence in group}
    evidence_documents = tuple(number for number, name in enumerate(names) if name in held)
    query = tuple(tokens_of(row.get("query") or ""))
    return Instance(identity, query, names, documents, label, rationale, evidence_documents)


def instance_of_perturbation(row: Mapping[str, Any], label_names: Sequence[str] = ()) -> Instance:
    """An instance from a row of ``bilingual_perturbation``: each token sequence is a document of its own.

    For reading comprehension the question is the query; the passage's tokens can be erased. The human rationale is the
    union of the gold sets.
    """
    identity = str(row["id"])
    sequences = tuple(tuple(map(str, sequence)) for sequence in row["tokens"])
    names = tuple(f"sequence_{number}" for number in range(len(sequences)))
    rationale = None
    if row.get("rationale_ids") is not None:
        marked = [{index for one in sets for index in one} for sets in row["rationale_ids"]]
        rationale = tuple(
            tuple(place in held for place in range(len(sequence)))
            for sequence, held in zip(sequences, marked, strict=True)
        )
    label = label_of(row.get("label"), label_names, identity)
    return Instance(identity, tuple(tokens_of(row.get("question") or "")), names, sequences, label, rationale)


def instance_of_tokens(row: Mapping[str, Any], label_names: Sequence[str] = ()) -> Instance:
    """An instance from a row of ``human_rationales``: one text of tokens, which is a document named like the row."""
    identity = str(row["id"])
    tokens = tuple(map(str, row["tokens"]))
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
