"""ERASER as builder classes: raw files in, datasets out, by the classes of the datasets library.

    Eraser("movies", data_dir="corpora").as_streaming_dataset("train")
    builder = Eraser("cose", data_dir="corpora"); builder.download_and_prepare(); builder.as_dataset("validation")

``data_dir`` holds the corpus's folder (or archive), or is it; without it the release is downloaded. With datasets before
version 4, which still runs scripts, this file is also one: ``load_dataset("eraser.py", "movies", data_dir=...,
trust_remote_code=True)``, where eraser-hub is installed. Published folders hold Parquet and no script.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pyarrow as pa

from eraser_hub.conversion.arrays import distinct, strings
from eraser_hub.conversion.card import content_version
from eraser_hub.conversion.eraser.card import HOMEPAGE
from eraser_hub.conversion.eraser.columns import columns_of
from eraser_hub.conversion.eraser.configs import CONFIGS, DEFAULT_CONFIG
from eraser_hub.conversion.eraser.corpus import CorpusFolder, SplitFile, document_files, look_into
from eraser_hub.conversion.eraser.format import decode_batch, decode_document_batch, decode_documents
from eraser_hub.conversion.eraser.lines import reading
from eraser_hub.conversion.eraser.rows import SplitFacts, Texts, rows_of
from eraser_hub.conversion.eraser.schema import features_of
from eraser_hub.conversion.eraser.sources import corpus_folder, fingerprint
from eraser_hub.papers import paper
from eraser_hub.records.errors import DataError, shown
from eraser_hub.records.json_lines import batches_of_lines
from eraser_hub.records.splits import dataset_split

FIRST_BYTES, BATCH_BYTES = 1 << 14, 1 << 20


@dataclass
class EraserBuilderConfig(datasets.BuilderConfig):
    """A configuration: ``name`` and ``data_dir`` are all there is to say."""


class Eraser(datasets.ArrowBasedBuilder):
    """Builds one configuration of ERASER from its raw files; rows as in the published Parquet, in the files' order.

    Args:
        config_name: one of `CONFIGS`.
        data_dir: a folder with the corpus's folder or archive, or the corpus's folder; None downloads the release.
        cache_dir: where datasets keeps what `download_and_prepare` makes.
    """

    BUILDER_CONFIG_CLASS = EraserBuilderConfig
    BUILDER_CONFIGS = [  # noqa: RUF012 - datasets wants a plain list here
        EraserBuilderConfig(name=name, version=datasets.Version("1.0.0"), description=facts.title)
        for name, facts in CONFIGS.items()
    ]
    DEFAULT_CONFIG_NAME = DEFAULT_CONFIG

    def __init__(self, config_name: str | None = None, data_dir: str | None = None, **settings: Any) -> None:
        # datasets calls builders with keywords; users write Eraser("movies", data_dir=..)
        cache_dir = settings.pop("cache_dir", None)
        name = config_name or DEFAULT_CONFIG
        if name not in CONFIGS:
            raise DataError(f"expected one of the configs {', '.join(CONFIGS)}, found {shown(name)}")
        self._corpus: CorpusFolder | None = None
        version = settings.pop("version", None)
        if data_dir is not None and version is None:
            # the cache goes by the version, not by the files: other files, another version
            self._corpus = _corpus(name, Path(data_dir))
            version = content_version([name, fingerprint(self._corpus.folder)])
        super().__init__(
            cache_dir=cache_dir, config_name=name, data_dir=None if data_dir is None else str(data_dir),
            **({"version": datasets.Version(version)} if isinstance(version, str) else {}), **settings,
        )  # fmt: skip

    def _info(self) -> datasets.DatasetInfo:
        facts = CONFIGS[self.config.name]
        return datasets.DatasetInfo(
            description=f"ERASER: {facts.title}. {facts.license_note}",
            citation=paper("eraser_acl_2020").citation,
            homepage=HOMEPAGE,
            license=facts.license,
            features=features_of(facts.label_names),
            version=self.config.version,
        )

    def _split_generators(self, dl_manager: Any) -> list[datasets.SplitGenerator]:
        if self._corpus is None:
            source = None if self.config.data_dir is None else Path(self.config.data_dir)
            self._corpus = _corpus(self.config.name, source)
        return [
            datasets.SplitGenerator(
                name=file.split, gen_kwargs={"folder": str(self._corpus.folder), "path": str(file.path)}
            )
            for file in self._corpus.splits
        ]

    def _generate_tables(self, folder: str, path: str) -> Iterator[tuple[int, pa.Table]]:
        facts = CONFIGS[self.config.name]
        corpus = look_into(Path(folder), facts)
        (file,) = [each for each in corpus.splits if str(each.path) == path]
        yield from enumerate(tables_in_order(file, Path(folder), facts.label_names, facts.sentence_end_inclusive))

    def as_streaming_dataset(self, split: str | None = None, base_path: str | None = None) -> Any:
        """As in datasets; the release's split names (``val``) are understood too."""
        return super().as_streaming_dataset(None if split is None else dataset_split(split), base_path)

    def as_dataset(self, split: Any = None, **settings: Any) -> Any:
        """As in datasets; the release's split names (``val``) are understood too."""
        return super().as_dataset(dataset_split(split) if isinstance(split, str) else split, **settings)


def _corpus(name: str, source: Path | None) -> CorpusFolder:
    folder = corpus_folder(name, source, progress=source is None, say=lambda _: None)
    return look_into(folder, CONFIGS[name])


def tables_in_order(file: SplitFile, folder: Path, label_names: Sequence[str], inclusive: bool) -> Iterator[pa.Table]:
    """A split's rows in the file's order, without a plan: the first batch is small, so the first row comes at once.

    Raises:
        DataError: at the first record that is not in order.
    """
    lines = folder / "docs.jsonl"
    documents = _LazyLines(lines) if lines.is_file() else document_files(folder)
    numbers = {name: number for number, name in enumerate(label_names)}
    facts = SplitFacts(docids="list", sentence_ends="inclusive" if inclusive else "exclusive")
    size = FIRST_BYTES
    start, first = 0, 1
    while True:
        batch = next(batches_of_lines(file.path, size, start, first), None)
        if batch is None:
            return
        extras: dict[int, dict[str, Any]] = {}
        ends = batch.ends()
        records = decode_batch(batch, ends, file=file.path, double=file.double, extras=extras)
        columns = columns_of(
            records,
            extras,
            file=file.path,
            first=first,
            label_numbers=numbers,
            documents=documents,
        )
        chosen = distinct(columns.documents)
        batch_rows = rows_of(columns, Texts(chosen, *documents.read(chosen)), facts).rows
        yield pa.Table.from_batches([batch_rows])
        start += len(batch.data)
        first += len(ends)
        size = BATCH_BYTES


class _LazyLines:
    """docs.jsonl: only the parts are read in which the documents lie that are asked for, so that a first row does not wait
    for a million documents before it. Places are kept, texts are not."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._numbers: dict[str, int] = {}
        self._starts, self._sizes = array("q"), array("q")
        self._gaps = [(0, path.stat().st_size)]  # not read yet; the one behind the last part read comes first
        self._as_dumped = True

    def _find(self, docid: str) -> int:
        while docid not in self._numbers and self._gaps:
            gap, place = self._look_for(docid) if self._as_dumped else (0, None)
            start, end = self._gaps[gap]
            read = self._read(start if place is None else place, end)
            rest = [(read, end), (start, start if place is None else place)]
            self._gaps[: gap + 1] = [*rest, *self._gaps[:gap]]
            self._gaps = [(first, last) for first, last in self._gaps if first < last]
            if place is None and docid in self._numbers:
                self._as_dumped = False  # these are spelled otherwise: looking for them is of no use
        return self._numbers.get(docid, -1)

    def _look_for(self, docid: str) -> tuple[int, int | None]:
        """(a gap, where in it the line begins that holds this very string), or the first gap and None."""
        needle = json.dumps(docid).encode()
        with self.path.open("rb") as file:
            for gap, (start, end) in enumerate(self._gaps):
                file.seek(start)
                held, size = b"", FIRST_BYTES
                while start + len(held) < end:
                    held += file.read(min(size, end - start - len(held)))
                    at = held.find(needle)
                    if at >= 0:
                        return gap, start + held.rfind(b"\n", 0, at) + 1
                    whole = held.rfind(b"\n") + 1
                    start, held, size = start + whole, held[whole:], 8 * BATCH_BYTES
        return 0, None

    def _read(self, start: int, end: int) -> int:
        """Take up the lines from ``start`` on, some at a time; where they end."""
        size = BATCH_BYTES if self._numbers else FIRST_BYTES
        batch = next(batches_of_lines(self.path, size, start, end=end))
        ends = batch.ends()
        with reading(self.path, start):
            for raw, line in zip(decode_document_batch(batch, ends, file=self.path), batch.numbers, strict=True):
                number = len(self._numbers)
                if self._numbers.setdefault(raw.docid, number) != number:
                    raise DataError(
                        f"expected each document once, found {shown(raw.docid)} again", file=self.path, line=line
                    )
        starts = np.concatenate([[0], ends[:-1] + 1])
        self._starts.frombytes((starts + start).astype(np.int64).tobytes())
        self._sizes.frombytes((ends - starts).astype(np.int64).tobytes())
        return start + len(batch.data)

    def find(self, docids: Sequence[str]) -> np.ndarray:
        """The number of each id, -1 where there is none."""
        return np.array([self._find(docid) for docid in docids], np.int64)

    def read(self, numbers: np.ndarray) -> tuple[pa.StringArray, pa.StringArray]:
        """(the ids, the texts) of some that have been found."""
        held = []
        with self.path.open("rb") as file:
            for number in numbers.tolist():
                file.seek(self._starts[number])
                held += decode_documents([file.read(self._sizes[number])], file=self.path, first=number + 1)
        return strings([each.docid for each in held]), strings([each.document for each in held])
