"""Build of ``out/eraser``: raw ERASER corpora -> Parquet in one schema, release.json, unused documents, and the card.

    out/eraser/README.md                          the card
    out/eraser/eval.yaml                          the scores that rank systems, see `leaderboard`
    out/eraser/CONFIG/SPLIT-00000-of-000NN.parquet
    out/eraser/release.json                       split facts that rows cannot hold (see `splits.find_facts`)
    out/eraser/documents/CONFIG.parquet           documents that no annotation refers to
    out/eraser/documents/CONFIG.order.parquet     order of documents in docs.jsonl, if it differs from that of rows
    out/eraser/documents/CONFIG.records.parquet   records that deviate from their split's entry in release.json, if any
    out/eraser/annotators/CONFIG.parquet          the annotators' marks and labels of a custom corpus that has them
    out/eraser/licenses/CONFIG.LICENSE            the licence files of the release, unchanged

The folder is replaced at once (see `atomic`): after a kill the earlier one is intact. The rows of one split are in
memory while it is built, and so are the documents of a docs.jsonl.
"""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from tqdm import tqdm

from eraser_hub.conversion.arrays import make_numbers, make_strings, to_numpy
from eraser_hub.conversion.card import compute_content_version
from eraser_hub.conversion.dataset import (
    RELEASE,
    BuildOptions,
    BuildResult,
    T,
    build_each,
    read_existing_release,
)
from eraser_hub.conversion.download import NotReleased, Unreachable
from eraser_hub.conversion.errors import MOST_SHOWN, raise_all
from eraser_hub.conversion.files import link_or_copy, make_process_pool, rebuild_folder
from eraser_hub.conversion.finish import finish_build
from eraser_hub.conversion.licenses import get_license_path
from eraser_hub.conversion.offsets import drop_repeated
from eraser_hub.conversion.parquet import FileFacts, write_parquet
from eraser_hub.conversion.written_files import is_recorded
from eraser_hub.records.errors import DataError, make_printable, show
from eraser_hub.records.files import compute_file_digest
from eraser_hub.records.places import dataset_split

from .annotators import read_annotators
from .card import make_readme
from .configs import CONFIGS, get_annotators_path
from .corpus import (
    BACKUP,
    HOST_CONFIGS,
    CorpusFolder,
    Skipped,
    SplitFile,
    choose_configs,
    find_corpus,
    get_config,
    inspect_folder,
)
from .corpus_yaml import RESERVED_FOLDERS
from .documents import read_documents
from .format import read_annotations
from .release import ConfigFacts, find_configs
from .rows import NumberedRows, make_full_rows
from .schema import SCHEMA
from .splits import (
    BATCH_BYTES,
    arrange,
    compute_split_statistics,
    find_deviations,
    find_facts,
    join_runs,
    read_split,
)

DOCUMENTS = pa.schema([("docid", pa.string()), ("text", pa.string()), ("position", pa.int32())])
ORDER = pa.schema([("position", pa.int32())])
RECORDS = pa.schema([("split", pa.string()), ("position", pa.int32()), ("record", pa.string())])


def build_eraser(source: Path | None, configs: Sequence[str] | None, out: Path, options: BuildOptions) -> BuildResult:
    """Build the configs into ``out/eraser``, or into the folder of the options' name; see `HubDataset.build`.

    Several configs are built in parallel, in up to ``num_proc`` processes.
    """
    notes: list[str] = []
    target = out / (options.name or "eraser")
    read_existing_release(target, ConfigFacts)  # refuses a folder that no build wrote
    corpora, failed = _find_corpora(configs, source, notes)
    with rebuild_folder(target) as folder:
        parts, errors = _build_all(corpora, folder, options)
        failed |= errors
        # read again under the lock: another build may have finished meanwhile
        kept = {name: entry for name, entry in read_existing_release(target, ConfigFacts).items() if name not in parts}
        _clear(folder, failed)
        _link_configs(target, folder, kept)
        entries = kept | {name: part.entry for name, part in parts.items()}
        entries = _sort_configs(entries)
        facts = find_configs(entries, entries, target / RELEASE)
        labels = {name: config.label_names for name, config in facts.items()}
        folders = (*CONFIGS, *facts, *RESERVED_FOLDERS)
        finish_build(target, folder, SCHEMA, entries, lambda: make_readme(entries, facts, target.name), folders, labels)
    rows = {name: {split: facts["num_examples"] for split, facts in entries[name]["splits"].items()} for name in parts}
    notes += [note for part in parts.values() for note in part.notes]
    return BuildResult(target, rows, notes, _sort_configs(failed))


def _sort_configs(entries: dict[str, T]) -> dict[str, T]:
    """Return the entries in order: the release's configs first, then custom ones by name."""
    return {name: entries[name] for name in (*CONFIGS, *sorted(entries.keys() - CONFIGS.keys())) if name in entries}


def _find_corpora(
    configs: Sequence[str] | None, source: Path | None, notes: list[str]
) -> tuple[list[CorpusFolder], dict[str, DataError]]:
    """Return the corpora to build, and config -> error of the others; ``notes`` receives lines for the user."""
    unreachable: list[DataError] = []

    def look(name: str) -> CorpusFolder | None:
        if unreachable:
            raise DataError("not tried: the server of the release cannot be reached", field=name)
        try:
            folder = find_corpus(name, source)
        except NotReleased as error:
            # the release may ship it inside another archive: its absence is an error only if it was requested
            if configs or name not in HOST_CONFIGS:
                raise
            notes.append(f"{name}: left out: {error}")
            return None
        except Unreachable as error:
            unreachable.append(error)
            raise
        return inspect_folder(folder, get_config(name, folder))

    located, failed = build_each(choose_configs(configs, source), look)
    corpora = [corpus for corpus in located.values() if corpus is not None]
    if not corpora:
        raise_all(list(failed.values()))
    return corpora, failed


def _clear(folder: Path, failed: Iterable[str]) -> None:
    """Remove the files of configs that could not be built."""
    for name in failed:
        shutil.rmtree(folder / name, ignore_errors=True)
        for beside in RESERVED_FOLDERS:
            for path in folder.glob(f"{beside}/{name}.*"):
                path.unlink()


def _link_configs(target: Path, folder: Path, names: Iterable[str]) -> None:
    """Link or copy the files of configs that are not built now."""
    for name in names:
        for old in sorted((target / name).glob("*.parquet")):
            if is_recorded(target, f"{name}/{old.name}"):  # `finish_build` carries the others over
                link_or_copy(old, folder / name / old.name)
        for old in sorted(path for beside in RESERVED_FOLDERS for path in (target / beside).glob(f"{name}.*")):
            link_or_copy(old, folder / old.relative_to(target))


def _make_progress_bar(title: str, total: int, unit: str, show: bool = True) -> tqdm[Any]:
    """Return a progress bar on stderr; it is silent without ``show``, or if stderr is no terminal."""
    disable = None if show else True
    return tqdm(total=total, desc=title, unit=unit, unit_scale=True, delay=2, leave=False, disable=disable)


# ---------------------------------------------------------------------------------------------------------- one config


class BuiltConfig(NamedTuple):
    """Result for one config: its entry in release.json, path -> SHA-256 of its files, and lines for the user."""

    entry: dict[str, Any]
    digests: dict[str, str]
    notes: list[str]


def _build_all(
    corpora: Sequence[CorpusFolder], folder: Path, options: BuildOptions
) -> tuple[dict[str, BuiltConfig], dict[str, DataError]]:
    """Build the corpora in up to ``num_proc`` processes; return the results and the errors by config.

    Raises:
        DataError: every corpus failed.
    """
    build = partial(_build_config, folder=folder)
    by_name = {corpus.config.name: corpus for corpus in corpora}
    processes = min(options.num_proc, len(corpora))
    if processes > 1:
        # if processes cannot start (a script without `if __name__ == "__main__"`) or are killed, this one builds all
        with (
            suppress(BrokenProcessPool),
            make_process_pool(processes) as pool,
            _make_progress_bar("building", len(corpora), "configs") as bar,
        ):
            futures = {name: pool.submit(build, corpus) for name, corpus in by_name.items()}
            for future in futures.values():
                future.add_done_callback(lambda _: bar.update(1))
            return build_each(list(by_name), lambda name: futures[name].result())
    return build_each(list(by_name), lambda name: build(by_name[name], progress=True))


class _ConfigBuild:
    """State of one config's build.

    Attributes:
        digests: path -> SHA-256 of the written files.
        entries: split -> its entry in release.json.
        ids: split -> its annotation ids.
        file_bytes: bytes of the splits' files.
        order: per split, the documents in the order in which rows first name them.
        records: (split, position, record) of records that deviate from their split's facts.
        notes: lines for the user.
    """

    def __init__(self, corpus: CorpusFolder, folder: Path, progress: bool) -> None:
        self.corpus, self.config, self.folder = corpus, corpus.config, folder
        self.make_progress_bar = partial(_make_progress_bar, show=progress)
        self.digests: dict[str, str] = {}
        lines = corpus.folder / "docs.jsonl"
        size = lines.stat().st_size if lines.is_file() else 0
        with self.make_progress_bar(f"{self.config.name}: documents", size, "B") as bar:
            self.documents = read_documents(corpus.folder, bar.update)
        self.entries: dict[str, dict[str, Any]] = {}
        self.ids: dict[str, list[str]] = {}
        self.file_bytes = 0
        self.order: list[np.ndarray] = []
        self.records: list[tuple[str, int, str]] = []
        self.notes: list[str] = []

    def write(self, name: str, schema: pa.Schema, tables: Iterable[pa.Table | pa.RecordBatch]) -> FileFacts:
        """Write the Parquet file at the path ``name`` in the folder."""
        facts = write_parquet(self.folder / name, schema, tables)
        self.digests[name] = facts.sha256
        return facts

    def copy_files(self) -> int:
        """Copy licence files and annotators; return the number of people."""
        copies = {path: get_license_path(self.config.name, path.name) for path in self.corpus.licenses}
        masks, people = get_annotators_path(self.config.name), set[str]()
        if self.config.corpus_yaml and os.path.lexists(path := self.corpus.folder / masks):
            texts = read_annotators(path).values()  # detects a damaged file
            people.update(name for text in texts for name in (*text.names, *text.labels))
            copies[path] = masks
        for path, name in copies.items():
            (self.folder / name).parent.mkdir(exist_ok=True)
            shutil.copyfile(path, self.folder / name)
            self.digests[name] = compute_file_digest(self.folder / name)
        return len(people)

    def write_split(self, file: SplitFile) -> None:
        """Write a split's files."""
        runs = []
        with self.make_progress_bar(f"{self.config.name}/{file.split}: reading", file.path.stat().st_size, "B") as bar:
            for run in read_split(file.path, self.config, self.documents):
                runs.append(run)
                bar.update(int(run.sizes.sum()))
        rows = join_runs(runs)
        total = rows.table.num_rows
        self.ids[file.split] = rows.table["annotation_id"].to_pylist()
        self.notes += _describe_unknown_keys(file.path, rows)
        facts = find_facts(rows, inclusive=self.config.sentence_end_inclusive)
        shards = arrange(rows, self.documents)
        names = [
            f"{self.config.name}/{file.split}-{number:05d}-of-{len(shards):05d}.parquet"
            for number in range(len(shards))
        ]
        written = list[FileFacts]()

        def make_tables(chosen: np.ndarray, batches: Sequence[int], shared: bool) -> Iterator[pa.Table]:
            for begin, end in pairwise(batches):
                part = rows.table.take(make_numbers(chosen[begin:end]))
                yield make_full_rows(part, self.documents, shared=shared)

        with self.make_progress_bar(f"{self.config.name}/{file.split}: writing", total, "rows") as bar:
            for name, shard in zip(names, shards, strict=True):
                written.append(self.write(name, SCHEMA, make_tables(*shard)))
                bar.update(len(shard.rows))
        self.entries[file.split] = {
            "num_examples": sum(each.num_rows for each in written),
            "num_bytes": sum(each.num_bytes for each in written),
            "file": file.path.name,
            "lines": total,
            "encoding": "json in a json string" if file.double else "json",
            "final_newline": file.final_newline,
            **facts,
            "statistics": compute_split_statistics(rows, self.documents, released=not self.config.corpus_yaml),
            "files": {Path(name).name: self.digests[name] for name in names},
        }
        self.file_bytes += sum(each.file_bytes for each in written)
        order = np.concatenate([shard.rows for shard in shards])
        in_order = to_numpy(rows.table["documents"].combine_chunks().take(make_numbers(order)).flatten())
        self.order.append(drop_repeated(in_order))
        self.records += [(file.split, *each) for each in find_deviations(rows, order, facts, self.documents)]

    def write_documents(self) -> dict[str, Any]:
        """Write documents/CONFIG.parquet, and return the entry of the documents in release.json.

        If docs.jsonl has another order than the rows, CONFIG.order.parquet records it.
        """
        documents, name = self.documents, self.config.name
        referenced = drop_repeated(np.concatenate(self.order))
        total = len(documents.sizes)
        others = np.setdiff1d(np.arange(total), referenced, assume_unique=True)
        lines = documents.layout == "docs.jsonl"

        def rows() -> Iterator[pa.RecordBatch]:
            begin, sizes = 0, np.cumsum(documents.sizes[others])
            while begin < len(others):
                before = sizes[begin - 1] if begin else 0
                end = max(begin + 1, int(np.searchsorted(sizes, before + BATCH_BYTES, side="right")))
                chosen, begin = others[begin:end], end
                positions = make_numbers((chosen + 1).astype(np.int32)) if lines else pa.nulls(len(chosen), pa.int32())
                columns = [documents.names.take(make_numbers(chosen)), documents.texts(chosen), positions]
                yield pa.RecordBatch.from_arrays(columns, schema=DOCUMENTS)

        self.write(f"documents/{name}.parquet", DOCUMENTS, rows())
        is_ordered = not lines or np.array_equal(np.concatenate([referenced, others]), np.arange(total))
        if not is_ordered:
            table = pa.Table.from_arrays([make_numbers((referenced + 1).astype(np.int32))], schema=ORDER)
            self.write(f"documents/{name}.order.parquet", ORDER, [table])
        return {
            "layout": documents.layout,
            "total": total,
            "unreferenced": len(others),
            "final_newline": documents.final_newline,
            "in_order": bool(is_ordered),
        }


def _build_config(corpus: CorpusFolder, *, folder: Path, progress: bool = False) -> BuiltConfig:
    """Write a config's files, in this process or another one."""
    build, config = _ConfigBuild(corpus, folder, progress), corpus.config
    skipped = [*corpus.skipped, *(Skipped(path, "is no document file") for path in build.documents.folders)]
    for file in corpus.splits:
        build.write_split(file)
    skipped = [
        Skipped(each.path, _describe_backup(each.path, build.ids)) if each.path in corpus.backups else each
        for each in skipped
    ]
    others = build.write_documents()
    if build.records:
        splits, positions, records = zip(*build.records, strict=True)
        columns = [make_strings(splits), make_numbers(np.array(positions, np.int32)), make_strings(records)]
        table = pa.Table.from_arrays(columns, schema=RECORDS)
        build.write(f"documents/{config.name}.records.parquet", RECORDS, [table])
    people, digests = build.copy_files(), dict(sorted(build.digests.items()))
    yaml = [config.corpus_yaml] if config.corpus_yaml else []
    content = json.dumps([build.entries, others], sort_keys=True)
    entry = {
        "version": compute_content_version([str(SCHEMA), *config.label_names, *yaml, content, *digests.values()]),
        "download_size": build.file_bytes,
        "documents": others,
        "splits": build.entries,
        "skipped": [
            # bytes that are no UTF-8 are written as escapes
            {"file": make_printable(str(each.path.relative_to(corpus.folder))), "reason": each.reason}
            for each in skipped
        ],
        "digests": {path: digest for path, digest in digests.items() if not path.startswith(f"{config.name}/")},
        **({"corpus": config.corpus_yaml} if config.corpus_yaml else {}),
        **({"annotators": people} if people else {}),
        **({"licenses": [path.name for path in corpus.licenses]} if corpus.licenses else {}),
    }
    return BuiltConfig(entry, digests, [*map(str, skipped), *build.notes])


def _describe_backup(path: Path, ids: Mapping[str, Sequence[str]]) -> str:
    """Return why a backup of a split file is skipped, with the ids of the records that stand in it alone."""
    known = set(ids.get(dataset_split(path.name.removesuffix(".jsonl.bak")), ()))
    try:
        saved = [str(record.annotation_id) for run in read_annotations(path) for record in run.records]
    except DataError:
        return BACKUP
    alone = [name for name in saved if name not in known]
    names = ", ".join(show(name, 40) for name in alone[:MOST_SHOWN])
    more = f" and {len(alone) - MOST_SHOWN} more" if len(alone) > MOST_SHOWN else ""
    return f"{BACKUP}, whose own records are not built: {names}{more}" if alone else BACKUP


def _describe_unknown_keys(path: Path, rows: NumberedRows) -> list[str]:
    """Return a note about keys that the format does not know; `export` restores them, and no column holds them."""
    counts = Counter(key for keys in rows.kept.values() for key in keys if key != "docids")
    words = ", ".join(f"{show(key)} (in {count})" for key, count in counts.most_common(MOST_SHOWN))
    more = f" and {len(counts) - MOST_SHOWN} more" if len(counts) > MOST_SHOWN else ""
    return [f"{path}: keys beyond the format are kept for export, and are no columns: {words}{more}"] if counts else []
