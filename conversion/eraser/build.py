"""Build ``out/eraser``: raw ERASER corpora -> Parquet in one schema, release.json, the other documents, and the card.

    out/eraser/README.md                          the card
    out/eraser/CONFIG/SPLIT-00000-of-000NN.parquet
    out/eraser/release.json                       per split what a row cannot hold (see `SplitFacts`)
    out/eraser/documents/CONFIG.parquet           documents that no annotation refers to
    out/eraser/documents/CONFIG.order.parquet     where the other documents stood in docs.jsonl, if not in the rows' order
    out/eraser/documents/CONFIG.records.parquet   records that differ from what release.json says of their split, if any

All of it appears at once (see `atomic`): a kill leaves what stood there, and a rerun takes up the finished files.
While it builds, the folder beside holds what was decoded, too (see `eraser_lines`): about as many bytes as the .jsonl files.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from eraser_hub.conversion.arrays import in_first_order, numbers, strings
from eraser_hub.conversion.card import content_version, verify_folder
from eraser_hub.conversion.dataset import BuildResult
from eraser_hub.conversion.download.fetch import NotReleased
from eraser_hub.conversion.parquet import viewer_trips, without_columns, write_parquet
from eraser_hub.conversion.workers import Workers
from eraser_hub.records.atomic import atomic_write, link_or_copy, rebuilding
from eraser_hub.records.errors import DataError
from eraser_hub.records.progress import Progress
from eraser_hub.version import __version__

from .card import eraser_card
from .configs import CONFIGS, EraserConfig
from .corpus import CorpusFolder, DocumentFiles, DocumentLines, Skipped, SplitFile, document_files, look_into
from .format import annotation_as_json, json_line, read_annotations
from .lines import read_all_documents, read_all_lines
from .plan import SplitPlan, plan_split
from .schema import INTEGERS, SCHEMA
from .shards import ShardDone, Work, done_before, run_all
from .sources import BESIDE, chosen_configs, corpus_folder, fingerprint

FORMAT = 1
PARTS = ".parts"
DOCUMENTS = pa.schema([("docid", pa.string()), ("text", pa.string()), ("position", pa.int32())])
ORDER = pa.schema([("position", pa.int32())])
RECORDS = pa.schema([("split", pa.string()), ("position", pa.int32()), ("record", pa.string())])
LABELS = {name: facts.label_names for name, facts in CONFIGS.items()}


def build_eraser(
    configs: Sequence[str] | None,
    *,
    out: Path,
    source: Path | None = None,
    num_proc: int = 1,
    progress: bool = False,
    include_backup_records: bool = False,
) -> BuildResult:
    """Build the configs into ``out/eraser``; see `HubDataset.build`."""
    notes: list[str] = []
    names = chosen_configs(configs, source)
    corpora = []
    for name in names:
        try:
            folder = corpus_folder(name, source, progress=progress, say=notes.append)
        except NotReleased as error:
            # a form that the release may ship beside another one: its absence is an error only where it was asked for
            if configs or name not in BESIDE:
                raise
            notes.append(f"{name}: left out: {error}")
            continue
        corpora.append(look_into(folder, CONFIGS[name]))
    names = [corpus.config.name for corpus in corpora]
    target = Path(out) / "eraser"
    kept = release_of(target)["configs"] if target.exists() else {}
    key = {
        "format": [FORMAT, __version__, pa.__version__],
        "backup": include_backup_records,
        "configs": {
            corpus.config.name: [str(corpus.folder.resolve()), fingerprint(corpus.folder)] for corpus in corpora
        },
    }
    rows: dict[str, dict[str, int]] = {}
    digests: dict[Path, str] = {}
    with rebuilding(target, key) as folder, Workers(num_proc) as workers:
        # under the lock: what stands there now is what is kept
        kept = release_of(target)["configs"] if target.exists() else {}
        entries = {name: entry for name, entry in kept.items() if name not in names}
        _keep(target, folder, entries, names)
        for corpus in corpora:
            merged: dict[Path, _Merged] = {}
            try:
                entry = _build_config(corpus, folder, workers, progress, include_backup_records, notes, merged, digests)
            except DataError as error:
                raise _in_the_users_file(error, merged) from None
            entries[corpus.config.name] = entry
            rows[corpus.config.name] = {split: of["num_examples"] for split, of in entry["splits"].items()}
        shutil.rmtree(folder / PARTS, ignore_errors=True)
        release = {"format": FORMAT, "configs": {name: entries[name] for name in CONFIGS if name in entries}}
        atomic_write(folder / "release.json", json.dumps(release, indent=1).encode())
        atomic_write(folder / "README.md", eraser_card(release).encode())
        verify_folder(folder, SCHEMA, LABELS)
        from eraser_hub.conversion.croissant import write_croissant

        write_croissant(folder, "eraser", {path.relative_to(folder).as_posix(): each for path, each in digests.items()})
    return BuildResult(target, rows, notes)


def release_of(folder: Path) -> dict[str, Any]:
    """``release.json`` of a built folder.

    Raises:
        DataError: the folder is not one that ``build eraser`` wrote.
    """
    path = folder / "release.json"
    try:
        release = json.loads(path.read_bytes())
        if release["format"] != FORMAT:
            raise DataError(f"expected the format {FORMAT}, found {release['format']!r}; build it anew", file=path)
        for entry in release["configs"].values():
            entry["splits"], entry["documents"]
    except FileNotFoundError:
        raise DataError(
            "expected a folder that `eraser-hub build eraser` wrote, found no release.json", file=folder
        ) from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"expected release.json of a built eraser, found {error!r}", file=path) from None
    return release


def _keep(target: Path, folder: Path, entries: dict[str, Any], building: Sequence[str]) -> None:
    """Take over the files of the configs that are not built now, and clear away what a stopped run left of others."""
    for path in folder.iterdir():
        if path.is_dir() and path.name != PARTS and path.name not in building:
            shutil.rmtree(path)
    for name in entries:
        for old in sorted((target / name).glob("*.parquet")):
            link_or_copy(old, folder / name / old.name)
        for old in sorted((target / "documents").glob(f"{name}.*parquet")):
            link_or_copy(old, folder / "documents" / old.name)


def _build_config(
    corpus: CorpusFolder,
    folder: Path,
    workers: Workers,
    progress: bool,
    include_backup_records: bool,
    notes: list[str],
    merged: dict[Path, _Merged],
    digests: dict[Path, str],
) -> dict[str, Any]:
    """Write a config's files; its entry in release.json. ``digests`` receives the SHA-256 of each file."""
    config, name = corpus.config, corpus.config.name
    parts = folder / PARTS / name
    parts.mkdir(parents=True, exist_ok=True)
    (folder / "documents").mkdir(exist_ok=True)
    skipped = list(corpus.skipped)
    splits = list(corpus.splits)
    backups: dict[str, Any] = {}
    if include_backup_records:
        splits, backups, skipped = _with_backups(corpus, parts, merged)
    total = sum(split.path.stat().st_size for split in splits)
    spill = parts / "columns"
    shutil.rmtree(spill, ignore_errors=True)
    documents_file = corpus.folder / "docs.jsonl"
    if documents_file.is_file():
        total += documents_file.stat().st_size
    index: DocumentFiles | DocumentLines
    label_numbers = {label: number for number, label in enumerate(config.label_names)}
    with Progress(f"{name}: reading", total, "B", progress) as bar:
        if documents_file.is_file():
            index = read_all_documents(documents_file, spill, workers, bar.advance)
        else:
            index = document_files(corpus.folder)
        skipped += [Skipped(path, "is no document file") for path in index.folders]
        plans = [
            plan_split(
                file,
                read_all_lines(file, index, label_numbers, spill, workers, bar.advance),
                index,
                inclusive=config.sentence_end_inclusive,
            )
            for file in splits
        ]
    notes += map(str, skipped)
    works = [
        Work(folder / name / f"{plan.file.split}-{number:05d}-of-{len(plan.shards):05d}.parquet", parts, shard, plan.facts)
        for plan in plans
        for number, shard in enumerate(plan.shards)
    ]  # fmt: skip
    (folder / name).mkdir(exist_ok=True)
    wanted = {work.target.name for work in works}
    for stale in (folder / name).iterdir():
        if stale.name not in wanted or done_before(works[0], stale.name) is None:
            stale.unlink()
    with Progress(f"{name}: writing", sum(plan.lines for plan in plans), "rows", progress) as bar:
        done = run_all(works, workers, bar.advance)
    digests.update({work.target: each.facts.sha256 for work, each in zip(works, done, strict=True)})
    entry_splits = {
        plan.file.split: _split_entry(
            plan, [(w, d) for w, d in zip(works, done, strict=True) if w.shard in plan.shards], backups, digests
        )
        for plan in plans
    }
    # `position` is null only where a split has two rows, and those always stand in the file's order
    nulls = [f"{split} ({', '.join(of['null_columns'])})" for split, of in entry_splits.items() if of["null_columns"]]
    if nulls:
        notes.append(
            f"{name}: left null, since the values differ by exactly one, on which the Hub's viewer fails: {'; '.join(nulls)}"
        )
    documents = _write_documents(index, plans, folder / "documents", config, digests)
    _write_records(plans, works, done, folder / "documents" / f"{name}.records.parquet", digests)
    shutil.rmtree(spill, ignore_errors=True)
    files = sorted((folder / name).glob("*.parquet")) + sorted((folder / "documents").glob(f"{name}.*parquet"))
    version = content_version(
        [
            str(SCHEMA),
            *config.label_names,
            json.dumps([entry_splits, documents], sort_keys=True),
            *(digests[file] for file in files),
        ]
    )
    return {
        "version": version,
        "download_size": sum(file.stat().st_size for file in (folder / name).glob("*.parquet")),
        "documents": documents,
        "splits": entry_splits,
        "skipped": [{"file": str(each.path.relative_to(corpus.folder)), "reason": each.reason} for each in skipped],
    }


def _split_entry(
    plan: SplitPlan, done: list[tuple[Work, ShardDone]], backups: dict[str, Any], digests: dict[Path, str]
) -> dict[str, Any]:
    facts = [each.facts for _, each in done]
    nulls = viewer_trips(facts, INTEGERS)
    if nulls:
        facts = [without_columns(work.target, nulls, SCHEMA) for work, _ in done]
        digests.update({work.target: each.sha256 for (work, _), each in zip(done, facts, strict=True)})
    entry: dict[str, Any] = {
        "num_examples": sum(each.num_rows for each in facts),
        "num_bytes": sum(each.num_bytes for each in facts),
        "file": plan.file.path.name,
        "lines": plan.lines,
        "encoding": "json in a json string" if plan.file.double else "json",
        "final_newline": plan.file.final_newline,
        "annotation_id": plan.facts.ids,
        "docids": plan.facts.docids,
        "query_type": plan.facts.query_type,
        "sentence_ends": plan.facts.sentence_ends,
        "null_columns": nulls,
        "statistics": _statistics(plan, [each for _, each in done]),
    }
    if plan.file.split in backups:
        entry.update(backups[plan.file.split])
    return entry


def _statistics(plan: SplitPlan, done: Sequence[ShardDone]) -> dict[str, Any]:
    """The split's row of the paper's Table 5, as `statistics.SplitStatistics` has it; null where there is no evidence."""
    evidences, tokens, documents = plan.records.evidence_sums()
    pairs = sum(each.pairs for each in done)
    return {
        "documents": documents,
        "instances": plan.lines,
        "rationale_percent": 100 * sum(each.shares for each in done) / pairs if pairs else None,
        "evidences": evidences,
        "evidence_length": tokens / evidences if evidences else None,
    }


class _Merged(NamedTuple):
    """Which of the user's files a split file with its backup's records was made of: its first ``lines`` lines, then
    those lines of the backup."""

    file: Path
    lines: int
    backup: Path
    backup_lines: list[int]


def _in_the_users_file(error: DataError, merged: Mapping[Path, _Merged]) -> DataError:
    """The error with the file and line that the user has, where it names a file made of two."""
    made = merged.get(Path(error.file)) if error.file is not None else None
    if made is None or error.line is None:
        return error
    first = error.line <= made.lines
    file, line = (made.file, error.line) if first else (made.backup, made.backup_lines[error.line - made.lines - 1])
    return DataError(error.message, file=file, line=line, instance=error.instance, field=error.field)


def _with_backups(
    corpus: CorpusFolder, parts: Path, made_of: dict[Path, _Merged]
) -> tuple[list[SplitFile], dict[str, Any], list[Skipped]]:
    """Split files with the records that stand in their backup alone at the end; what to remember of it."""
    from eraser_hub.records.splits import dataset_split

    splits = {file.split: file for file in corpus.splits}
    remembered: dict[str, Any] = {}
    taken: set[Path] = set()
    for backup in corpus.backups:
        split = dataset_split(backup.name.removesuffix(".jsonl.bak"))
        if split not in splits:
            continue
        file = splits[split]
        known = {str(annotation.annotation_id) for annotation in read_annotations(file.path)}
        numbered = enumerate(read_annotations(backup), 1)
        missing = {number: each for number, each in numbered if str(each.annotation_id) not in known}
        merged = parts / file.path.name
        data = file.path.read_bytes()
        lines = data.count(b"\n") + (not data.endswith(b"\n"))
        if not data.endswith(b"\n"):
            data += b"\n"
        extra = "".join(json_line(annotation_as_json(each), double=file.double) + "\n" for each in missing.values())
        atomic_write(merged, data + extra.encode())
        made_of[merged] = _Merged(file.path, lines, backup, list(missing))
        splits[split] = SplitFile(split, merged, file.double, file.final_newline)
        remembered[split] = {"lines": lines, "backup": {"file": backup.name, "records": len(missing)}}
        taken.add(backup)
    skipped = [
        Skipped(each.path, f"its {remembered[dataset_split(each.path.name.removesuffix('.jsonl.bak'))]['backup']['records']} "
                "records that stand in it alone were taken up; the others repeat the split file")
        if each.path in taken else each
        for each in corpus.skipped
    ]  # fmt: skip
    return list(splits.values()), remembered, skipped


def _write_documents(
    index: DocumentFiles | DocumentLines,
    plans: Sequence[SplitPlan],
    folder: Path,
    config: EraserConfig,
    digests: dict[Path, str],
) -> dict[str, Any]:
    """documents/CONFIG.parquet and, where docs.jsonl has another order than the rows, documents/CONFIG.order.parquet."""
    named = np.concatenate([plan.order for plan in plans]) if plans else np.zeros(0, np.int32)
    referenced = in_first_order(named)
    unused = np.ones(len(index), bool)
    unused[referenced] = False
    others = np.flatnonzero(unused)
    lines = index.layout == "docs.jsonl"

    def batches() -> Iterator[pa.RecordBatch]:
        for chosen in _in_batches(others, index.sizes[others], 8 << 20):
            positions = numbers((chosen + 1).astype(np.int32)) if lines else pa.nulls(len(chosen), pa.int32())
            yield pa.RecordBatch.from_arrays([*index.read(chosen), positions], schema=DOCUMENTS)

    path = folder / f"{config.name}.parquet"
    digests[path] = write_parquet(path, DOCUMENTS, batches()).sha256
    in_order = not lines or np.array_equal(np.concatenate([referenced, others]), np.arange(len(index)))
    if not in_order:
        positions = numbers((referenced + 1).astype(np.int32))
        table = pa.Table.from_arrays([positions], schema=ORDER)
        path = folder / f"{config.name}.order.parquet"
        digests[path] = write_parquet(path, ORDER, [table]).sha256
    return {
        "layout": index.layout,
        "total": len(index),
        "unreferenced": len(others),
        "final_newline": index.final_newline,
        "in_order": bool(in_order),
    }


def _in_batches(chosen: np.ndarray, sizes: np.ndarray, most: int) -> Iterator[np.ndarray]:
    begin = 0
    total = np.cumsum(sizes)
    while begin < len(chosen):
        before = total[begin - 1] if begin else 0
        end = max(begin + 1, int(np.searchsorted(total, before + most, side="right")))
        yield chosen[begin:end]
        begin = end


def _write_records(
    plans: Sequence[SplitPlan],
    works: Sequence[Work],
    done: Sequence[ShardDone],
    path: Path,
    digests: dict[Path, str],
) -> None:
    """Records that release.json's facts do not tell: their keys as they were, by split and line."""
    rows = [
        (plan.file.split, position, record)
        for plan in plans
        for work, each in zip(works, done, strict=True)
        if work.shard in plan.shards
        for position, record in each.exceptions
    ]
    if rows:
        names, positions, records = zip(*rows, strict=True)
        columns = [strings(names), numbers(np.array(positions, np.int32)), strings(records)]
        digests[path] = write_parquet(path, RECORDS, [pa.Table.from_arrays(columns, schema=RECORDS)]).sha256
