"""One split of a dataset, read as a stream of instances."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count, islice
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from eraser_hub.conversion.built import LABEL_COLUMNS, open_built, read_rows
from eraser_hub.conversion.eraser.configs import CONFIGS, EraserConfig
from eraser_hub.conversion.eraser.dataset import read_own_facts
from eraser_hub.papers import load_paper
from eraser_hub.records.errors import DataError, UsageError, get_first_line, show
from eraser_hub.records.places import dataset_split, find_place

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
    """One split of one config, read as a stream: nothing is kept in memory but the row at hand.

    Attributes:
        rows: the rows as ``datasets`` gives them, re-iterable.
        label_names: names of the ClassLabel, () where labels are strings or absent.
        kind: ``"eraser"``, ``"perturbation"`` or ``"tokens"``, see :func:`instances.find_kind`.
        size: number of rows, None if the dataset does not declare it.
        config: the config's name, which looks up kd.
        name: the dataset's folder or Hub id, for messages.
        places: of the rows that are taken; None for all.
    """

    rows: Any
    label_names: tuple[str, ...]
    kind: str
    size: int | None
    config: str
    name: str | None = None
    places: frozenset[int] | None = None

    def instances(self) -> Iterator[Instance]:
        """Yield instances in the dataset's order; errors as of `read`."""
        return self.read(READERS[self.kind])

    def read(self, reader: Callable[[dict[str, Any], tuple[str, ...]], T]) -> Iterator[T]:
        """Yield the result of a reader for each row, in the dataset's order.

        Raises:
            DataError: a row that is not of its dataset's schema; a data file that cannot be read.
        """
        rows, number = iter(self.rows), 0
        for place in count():
            try:
                row = next(rows, None)
            except Exception as error:  # datasets and pyarrow raise many kinds; theirs is the word on what is broken
                self._refuse_damaged_file()
                words = show(" ".join(str(error).split()) or type(error).__name__, 300).strip("'\"")
                message = f"cannot be read after row {place}: {words}"
                raise DataError(message, file=self.name) from error
            if row is None:
                return
            if self.places is not None and place not in self.places:
                continue
            number += 1
            try:
                yield reader(row, self.label_names)
            except DataError as error:
                if error.instance is not None:
                    raise
                # without an id the row's number has to name it
                raise DataError(error.message, file=self.name or "dataset", line=number, field=error.field) from error

    def sample(self, size: int, seed: int) -> Split:
        """Draw ``size`` of the rows by seed, each label by its share, in the dataset's order."""
        labels = [str(one.label) for one in self.instances()]
        taken = range(len(labels)) if self.places is None else sorted(self.places)
        chosen = frozenset(taken[place] for place in draw_stratified(labels, size, seed))
        return replace(self, places=chosen, size=len(chosen))

    def _refuse_damaged_file(self) -> None:
        """Raise an error that names the unreadable file of a built dataset, which datasets does not name."""
        try:
            files = open_built(self.name or "").files(self.config, str(self.rows.split))
        except (DataError, AttributeError):  # no built dataset, or rows that are in memory
            return
        for _ in read_rows(files):
            pass

    def header(self, limit: int | None = None, *, labels: bool = False, rationales: bool = False) -> dict[str, Any]:
        """Return the data's part of a run's record, with the digest of `fingerprint`; errors as of it."""
        return {
            "dataset": Path(self.name or "").name,
            "config": self.config,
            "split": str(self.rows.split),
            "limit": limit,
            "digest": self.fingerprint(limit, labels=labels, rationales=rationales),
        }

    def fingerprint(self, limit: int | None = None, *, labels: bool = False, rationales: bool = False) -> str:
        """Return a digest of the data that decide predictions: equal digests mean equal data.

        Ids, queries, documents and their names, the documents that hold evidence, and the order of the labels; not the
        gold labels and spans, which predictions do not depend on, unless gold ``labels`` are explained or human
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
        return digest.hexdigest()


def open_split(dataset: str | Path, config: str | None, split: str) -> Split:
    """Open a split of a dataset folder (``hub/eraser``) or of the Hub (``org/eraser``, :func:`place_of`), streaming.

    Streaming reads the Parquet files themselves: the local cache of ``load_dataset`` would return old rows for files
    that were rebuilt in place.

    Raises:
        DataError: no such folder, config or split; the message lists the existing ones.
    """
    import datasets
    from datasets.utils.logging import set_verbosity_error

    set_verbosity_error()
    place = find_place(dataset)
    name, folder = place.name, Path(place.name)
    if not folder.exists() and place.repository is None:
        message = "no such dataset folder; `eraser-hub build eraser` and `build own --source CORPUS` make them"
        raise DataError(message, file=name)
    if folder.exists() and not (folder / "README.md").is_file():
        found = "no README.md" if folder.is_dir() else "a file"
        raise DataError(f"expected a dataset folder with README.md and Parquet files, found {found}", file=name)
    try:
        splits = datasets.load_dataset(
            place.repository or name, config, revision=place.revision, split=None, streaming=True
        )
    except Exception as error:  # datasets raises many kinds; its words name the config or the file
        message = f"cannot open config {config or '(default)'}: {get_first_line(error)}"
        raise DataError(message, file=name) from error
    if dataset_split(split) not in splits:
        message = f"split: expected one of {', '.join(map(str, splits))}; found {show(split)}"
        raise UsageError(message, file=name)
    rows = splits[dataset_split(split)]
    features = rows.features or {}
    label = next((features[column] for column in LABEL_COLUMNS if column in features), None)
    label_names = tuple(getattr(label, "names", None) or ())
    odd = [value for value in label_names if not isinstance(value, str) or not value]
    if odd:
        raise DataError(f"expected names of labels, found {show(odd[0])}", file=name, field="class_label")
    info = (rows.info.splits or {}).get(dataset_split(split))
    size = info.num_examples if info is not None else None
    return Split(rows, label_names, find_kind(features, name), size, config or rows.info.config_name or "", name)


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


class RationaleLength(NamedTuple):
    """Share of tokens in a hard rationale, and where it is from.

    Attributes:
        kd: the share, above 0 and up to 1.
        source: one of `KD_SOURCES`.
    """

    kd: float
    source: str


def find_kd(split: Split, training: Split | None = None) -> RationaleLength:
    """Find the rationale length of a config: that of the paper's table, of corpus.yaml, or of the training split.

    Papers: 000, Table 4; 002, Table 3. Of the training split it is the mean share over the rows that have a rationale.
    The split that is explained never gives it, because its rationales are the answers that predictions are scored by.

    Args:
        split: the split that is explained.
        training: the training split; None: the split ``train`` of the same dataset, if ``split`` is another.

    Raises:
        DataError: none of them is known: kd must be given.
    """
    printed = load_paper(KD_PAPERS[split.kind]).kd if split.kind in KD_PAPERS else {}
    own = _read_corpus_config(split)
    if own is not None and own.kd is not None:
        return RationaleLength(own.kd, "corpus.yaml")
    for name in (split.config, split.config.removesuffix("_simplified").removesuffix("_flat")):
        if own is None and name in printed:
            return RationaleLength(printed[name], "paper")
    elsewhere = split.name is not None and str(getattr(split.rows, "split", TRAINING)) != TRAINING
    if training is None and elsewhere:
        with suppress(UsageError):  # there is no such split
            training = open_split(str(split.name), split.config or None, TRAINING)
    shares, rows = list[float](), 0
    for one in training.instances() if training is not None else ():
        rows += 1
        if one.has_rationale:
            shares.append(sum(map(sum, one.rationale or ())) / len(one.tokens))
    if not shares:
        if training is not None:
            why = f"none of its {rows} training rows has a rationale"
        elif elsewhere:
            why = "there is no training split"
        else:
            why = "the split that is explained cannot give it, and there is no other training split"
        message = f"no rationale length is known for the config {show(split.config)} ({why}): give `kd`"
        raise DataError(message, argument="kd")
    return RationaleLength(round(float(np.mean(shares)), 4), TRAINING)


def _read_corpus_config(split: Split) -> EraserConfig | None:
    """Return the config of a corpus.yaml, as the built dataset keeps it; None for other datasets."""
    if split.kind != "eraser" or split.name is None or split.config in CONFIGS:
        return None
    try:
        built = open_built(split.name)
    except DataError:  # rows from elsewhere, of which there is no card of ours
        return None
    return read_own_facts(built, split.config)
