"""One split of a built dataset, read as a stream of instances."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count, islice
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow.parquet as pq

from eraser_hub.conversion.built import BuiltDataset, open_built, read_rows, wrap_parquet_errors
from eraser_hub.conversion.eraser.dataset import read_own_facts
from eraser_hub.papers import load_paper
from eraser_hub.records.errors import DataError, UsageError, show
from eraser_hub.records.places import dataset_split

from .instances import READERS, Instance, find_kind

T = TypeVar("T")

KD_PAPERS = {"eraser": "eraser_first_version", "perturbation": "wang_2022"}
TRAINING = "train"
# sources of kd -> their words
KD_SOURCES = {
    "paper": "from the paper's table",
    "corpus.yaml": "from corpus.yaml",
    TRAINING: "the mean share of gold tokens in the rows of train that have any",
}
MAX_QUERY_ROWS = 2000  # rows after the first that are looked at for another query


@dataclass(frozen=True, slots=True)
class Split:
    """One split of one config of a built dataset; nothing is kept in memory but the rows at hand.

    Attributes:
        built: the dataset.
        config: the config's name, which looks up kd.
        split: the split's name, as the dataset's card has it.
        files: its Parquet files.
        kind: ``"eraser"``, ``"perturbation"`` or ``"tokens"``, see :func:`instances.find_kind`.
        label_names: names of the gold label, in the order of their numbers; () where the card names none.
        places: of the rows that are taken; None for all.
    """

    built: BuiltDataset
    config: str
    split: str
    files: Sequence[Path]
    kind: str
    label_names: tuple[str, ...]
    places: frozenset[int] | None = None

    @property
    def name(self) -> str:
        """The dataset's folder or Hub id, for messages."""
        return self.built.name

    def instances(self) -> Iterator[Instance]:
        """Yield instances in the dataset's order; errors as of `read`."""
        return self.read(READERS[self.kind])

    def read(self, reader: Callable[[dict[str, Any], tuple[str, ...]], T]) -> Iterator[T]:
        """Yield the result of a reader for each row, in the dataset's order.

        Raises:
            DataError: a row that is not of its dataset's schema; a data file that cannot be read.
        """
        numbers = count()
        for file in self.files:
            for line, row in enumerate((row for table in read_rows([file]) for row in table.to_pylist()), 1):
                if self.places is not None and next(numbers) not in self.places:
                    continue
                try:
                    yield reader(row, self.label_names)
                except DataError as error:  # without an id the row's number has to name it
                    raise error if error.instance is not None else error.at(file=file, line=line) from None

    def other(self, split: str) -> Split:
        """Return another split of the same config; a `UsageError` where there is none."""
        name = dataset_split(split)
        return replace(self, split=name, files=self.built.files(self.config, name), places=None)

    def sample(self, size: int, seed: int) -> Split:
        """Draw ``size`` of the rows by seed, each label by its share, in the dataset's order."""
        labels = [str(one.label) for one in self.instances()]
        return replace(self, places=frozenset(draw_stratified(labels, size, seed)))

    def header(self, limit: int | None = None, *, labels: bool = False, rationales: bool = False) -> dict[str, Any]:
        """Return the data's part of a run's record, with a digest of what decides predictions.

        That is ids, queries, documents and their names, the documents that hold evidence, and the order of the labels;
        not the gold labels and spans, which predictions do not depend on, unless gold ``labels`` are explained or human
        ``rationales`` erased.

        Raises:
            DataError: an id that occurs twice: no score could tell its predictions apart.
        """
        digest = hashlib.blake2b("\x1e".join(self.label_names).encode("utf-8", "surrogatepass"), digest_size=12)
        ids: set[str] = set()
        for one in islice(self.instances(), limit):
            if one.id in ids:
                field = "annotation_id" if self.kind == "eraser" else "id"
                raise DataError("expected each id once, found it again", instance=one.id, field=field)
            ids.add(one.id)
            parts = [one.id, *one.query, "\x1d", *one.names, "\x1d", *map(str, one.evidence_documents), "\x1d"]
            parts += [*map("\x1f".join, one.documents), "\x1d"]
            digest.update("\x1e".join(parts).encode("utf-8", "surrogatepass"))
            if labels:
                digest.update(repr(one.label).encode())
            if rationales:
                digest.update(repr(one.rationale).encode())
        data = {"dataset": Path(self.name).name, "config": self.config, "split": self.split}
        return {**data, "limit": limit, "digest": digest.hexdigest()}


def open_split(dataset: str | PathLike[str], config: str | None, split: str) -> Split:
    """Open a split of a dataset folder (``hub/eraser``) or of the Hub (``org/eraser``).

    Args:
        dataset: as `records.places.find_place` takes it.
        config: the config; None for the dataset's default.
        split: the split; ``val`` and ``validation`` are the same.

    Raises:
        DataError: no built dataset is there: says what it is, and what to type; no such config or split.
    """
    built = open_built(dataset)
    config = built.default_config if config is None else built.chosen([config])[0]
    files = built.files(config, split)
    with wrap_parquet_errors(files[0]):
        kind = find_kind(pq.read_schema(files[0]), files[0])
    return Split(built, config, dataset_split(split), files, kind, built.label_names(config) or ())


def draw_stratified(labels: Sequence[str], limit: int, seed: int) -> set[int]:
    """Draw the places of ``limit`` labels by seed, each label by its share.

    The shares are rounded by largest remainders, and no label goes out while there is room for each.

    >>> sorted(draw_stratified(["a"] * 6 + ["b"] * 3, 3, seed=1))[-1] > 5
    True
    """
    names = sorted(set(labels))
    places = {name: [place for place, label in enumerate(labels) if label == name] for name in names}
    least = 1 if limit >= len(names) else 0
    exact = {name: limit * len(places[name]) / max(len(labels), 1) for name in names}
    counts = {name: min(len(places[name]), max(least, int(exact[name]))) for name in names}
    while (over := sum(counts.values()) - min(limit, len(labels))) != 0:
        free = [name for name in names if (counts[name] > least if over > 0 else counts[name] < len(places[name]))]
        name = (max if over > 0 else min)(free, key=lambda name: counts[name] - exact[name])
        counts[name] -= 1 if over > 0 else -1
    random = np.random.default_rng(seed)
    return {place for name in names for place in random.permutation(places[name])[: counts[name]].tolist()}


def has_different_queries(split: Split) -> bool:
    """True when the split's queries are not all the same: then a model needs to see them (movies asks one question)."""
    instances = split.instances()
    first = next(instances, None)
    return first is not None and any(one.query != first.query for one in islice(instances, MAX_QUERY_ROWS))


def find_kd(split: Split) -> tuple[float, str]:
    """Return the rationale length of a config, and where it is from (`KD_SOURCES`).

    It is that of corpus.yaml, of the paper's table (papers 000, Table 4; 002, Table 3), or the mean share over the rows
    of train that have a rationale. The split that is explained never gives it, because its rationales are the answers
    that predictions are scored by.

    Raises:
        DataError: none of them is known: kd must be given.
    """
    own = read_own_facts(split.built, split.config) if split.kind == "eraser" else None
    if own is not None and own.kd is not None:
        return own.kd, "corpus.yaml"
    printed = load_paper(KD_PAPERS[split.kind]).kd if own is None and split.kind in KD_PAPERS else {}
    for name in (split.config, split.config.removesuffix("_simplified").removesuffix("_flat")):
        if name in printed:
            return printed[name], "paper"
    shares, rows = list[float](), 0
    why = "the split that is explained cannot give it, and there is no other training split"
    if split.split != TRAINING:
        why = "there is no training split"
        with suppress(UsageError):
            for one in split.other(TRAINING).instances():
                rows += 1
                if one.has_rationale:
                    shares.append(sum(map(sum, one.rationale or ())) / len(one.tokens))
            why = f"none of its {rows} training rows has a rationale"
    if not shares:
        message = f"no rationale length is known for the config {show(split.config)} ({why}): give `kd`"
        raise DataError(message, argument="kd")
    return round(float(np.mean(shares)), 4), TRAINING
