"""Build a dataset folder out of tables that fit in memory: Parquet, release.json, card, Croissant, all or nothing.

``eraser`` streams and has a writer of its own; the bilingual benchmark and the human rationales are some thousand rows
a configuration. What a row cannot hold lies beside the data: the files' manner in ``release.json``, and lines that do
not follow it in ``records/CONFIG.parquet``; both serve `export` and are part of no configuration.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from eraser_hub.conversion.eraser.schema import yaml_features
from eraser_hub.records.atomic import link_or_copy, rebuilding
from eraser_hub.records.built import read_card
from eraser_hub.records.digests import file_digest
from eraser_hub.records.errors import DataError

from .croissant import write_croissant
from .parquet import (
    FileFacts,
    card_text,
    content_version,
    size_category,
    verify_folder,
    viewer_trips,
    without_columns,
    write_parquet,
)

RECORDS = pa.schema([("file", pa.string()), ("line", pa.int32()), ("text", pa.string())])
RELEASE = "release.json"
CARDS = Path(__file__).resolve().parent.parent / "datasets_scripts" / "cards"


@dataclass(frozen=True, slots=True)
class ConfigTables:
    """One configuration, ready to be written.

    Attributes:
        splits: split -> its rows.
        label_names: column -> names, for ClassLabel columns.
        release: JSON of what is constant in each released file.
        records: (file, 1-based line, text) of lines that rows and ``release`` do not give back.
    """

    splits: Mapping[str, pa.Table]
    label_names: Mapping[str, Sequence[str]]
    release: Mapping[str, Any]
    records: Sequence[tuple[str, int, str]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class SmallDataset:
    """The facts of a dataset that this module writes.

    Attributes:
        name: the dataset, its folder, and its card below datasets_scripts/cards.
        configs: all configurations, in the card's order.
        default: the one that a bare load takes (the first that is there where it is not).
        schema: of every file.
        nullable_integers: derived integer columns that may be null in a split where the viewer would stumble.
        descriptions: config -> one sentence, which names the language.
        citation: BibTeX in one line.
        licenses: config -> licence.
        homepages: config -> where the files come from.
        tables: the card's generated prose: folder -> marker -> markdown.
    """

    name: str
    configs: tuple[str, ...]
    default: str
    schema: pa.Schema
    nullable_integers: tuple[str, ...]
    descriptions: Mapping[str, str]
    citation: str
    licenses: Mapping[str, str]
    homepages: Mapping[str, str]
    tables: Callable[[Path, Sequence[str]], Mapping[str, str]]


def write_dataset(dataset: SmallDataset, built: Mapping[str, ConfigTables], out: Path) -> tuple[Path, list[str]]:
    """Write ``out/NAME`` with the configurations ``built``; others that stand there are kept.

    Returns:
        the folder, and notes for the user.

    Raises:
        DataError: the folder cannot be written, or what was written does not agree with its card; BusyError when
            another build is at work there. The old folder then stands as it was.
    """
    target = Path(out) / dataset.name
    notes: list[str] = []
    with rebuilding(target) as folder:
        infos: dict[str, dict[str, Any]] = {}
        release: dict[str, Any] = {}
        old_infos, old_release = _standing(target)
        for config in dataset.configs:
            if config in built:
                infos[config] = _write_config(dataset, config, built[config], folder, notes)
                release[config] = dict(built[config].release)
            elif config in old_infos:
                infos[config], release[config] = old_infos[config], old_release[config]
                for file in _files_of(target, config):
                    link_or_copy(file, folder / file.relative_to(target))
        (folder / RELEASE).write_text(
            json.dumps({"configs": release}, ensure_ascii=False, indent=1) + "\n", encoding="utf-8"
        )
        _write_card(dataset, infos, folder)
        verify_folder(folder, dataset.schema)
        write_croissant(folder, dataset.name)
    return target, notes


def _standing(target: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """dataset_info and release.json of the configurations that stand in a folder; empty where none does."""
    if not (target / "README.md").is_file() or not (target / RELEASE).is_file():
        return {}, {}
    release = read_release(target)
    infos = {info["config_name"]: info for info in read_card(target / "README.md")[0].get("dataset_info") or []}
    return {name: info for name, info in infos.items() if name in release}, release


def read_release(folder: Path) -> dict[str, Any]:
    """Configuration -> its part of ``release.json``. Raises DataError where the file is missing or damaged."""
    path = Path(folder) / RELEASE
    try:
        release = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"expected a built dataset's {RELEASE}, found {error}", file=path) from None
    configs = release.get("configs") if isinstance(release, dict) else None
    if not isinstance(configs, dict):
        raise DataError("expected a JSON object with configs", file=path)
    return configs


def _files_of(folder: Path, config: str) -> list[Path]:
    return [*sorted((folder / config).glob("*.parquet")), *sorted((folder / "records").glob(f"{config}.parquet"))]


def _write_config(
    dataset: SmallDataset, config: str, tables: ConfigTables, folder: Path, notes: list[str]
) -> dict[str, Any]:
    splits, digests, stored, held = [], [], 0, 0
    for split, table in tables.splits.items():
        path = folder / config / f"{split}-00000-of-00001.parquet"
        facts: FileFacts = write_parquet(path, dataset.schema, [table])
        trips = viewer_trips([facts], dataset.nullable_integers)
        if trips:
            facts = without_columns(path, trips, dataset.schema)
            notes.append(
                f"{config}/{split}: {', '.join(trips)} left null: its two values would keep the viewer from statistics"
            )
        splits.append({"name": split, "num_bytes": facts.num_bytes, "num_examples": facts.num_rows})
        digests.append(facts.sha256)
        stored, held = stored + facts.file_bytes, held + facts.num_bytes
    if tables.records:
        columns = list(zip(*tables.records, strict=True))
        records = pa.table([pa.array(c, t.type) for c, t in zip(columns, RECORDS, strict=True)], schema=RECORDS)
        write_parquet(folder / "records" / f"{config}.parquet", RECORDS, [records])
    return {
        "config_name": config,
        "description": dataset.descriptions[config],
        "citation": dataset.citation,
        "homepage": dataset.homepages[config],
        "license": dataset.licenses[config],
        "version": content_version(digests),
        "features": yaml_features(tables.label_names, dataset.schema),
        "splits": splits,
        "download_size": stored,
        "dataset_size": held,
    }


def _write_card(dataset: SmallDataset, infos: Mapping[str, Mapping[str, Any]], folder: Path) -> None:
    metadata, prose = read_card(CARDS / f"{dataset.name}.md")
    default = dataset.default if dataset.default in infos else next(iter(infos))
    rows = sum(split["num_examples"] for info in infos.values() for split in info["splits"])
    metadata["size_categories"] = [size_category(rows)]
    metadata["configs"] = [
        {
            "config_name": config,
            # here it reaches the builder, and with it the local cache's key; in dataset_info alone it does not
            "version": info["version"],
            **({"default": True} if config == default else {}),
            "data_files": [
                {"split": split["name"], "path": f"{config}/{split['name']}-*.parquet"} for split in info["splits"]
            ],
        }
        for config, info in infos.items()
    ]
    metadata["dataset_info"] = [dict(info) for info in infos.values()]
    # the tables are computed from the files, which are found through the card: so it is written twice
    (folder / "README.md").write_text(card_text(metadata, prose), encoding="utf-8")
    for marker, markdown in dataset.tables(folder, list(infos)).items():
        prose = prose.replace(f"<!-- {marker} -->", markdown.strip())
    (folder / "README.md").write_text(card_text(metadata, prose), encoding="utf-8")


def read_records_table(folder: Path, config: str) -> dict[str, dict[int, str]]:
    """file -> line -> text, of the lines that are kept whole."""
    path = Path(folder) / "records" / f"{config}.parquet"
    if not path.is_file():
        return {}
    kept: dict[str, dict[int, str]] = {}
    try:
        table = pq.read_table(path, schema=RECORDS)
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"cannot be read as Parquet ({str(error).splitlines()[0]})", file=path) from None
    for file, line, text in zip(*(table[name].to_pylist() for name in RECORDS.names), strict=True):
        kept.setdefault(file, {})[line] = text
    return kept


@contextmanager
def built_folder(folder: Path, name: str, configs: Sequence[str] | None) -> Iterator[Path]:
    """``folder`` itself when it is a built dataset; a temporary build of ``name`` when it holds raw files."""
    if (folder / "README.md").is_file() and (folder / RELEASE).is_file():
        yield folder
        return
    from .registry import HUB_DATASETS

    with tempfile.TemporaryDirectory(prefix="eraser-hub-") as aside:
        yield HUB_DATASETS[name].build(configs, out=Path(aside), source=folder).folder


def content_hash(files: Iterable[Path]) -> str:
    """Sixteen hexadecimal digits that change with the contents of any of the files."""
    return hashlib.sha256("\n".join(file_digest(path) for path in files).encode()).hexdigest()[:16]


def safe_target(out: Path, name: str, release: Path) -> Path:
    """``out/name`` for a name out of a release.json, which is data: it stays below ``out``, where nothing may be."""
    parts = PurePosixPath(name).parts
    if not parts or PurePosixPath(name).is_absolute() or ".." in parts or "\\" in name or "\0" in name:
        raise DataError(f"expected the name of a file below the folder, found {name!r}", file=release)
    target = out.joinpath(*parts)
    if target.exists():
        raise DataError("stands there already; nothing is overwritten", file=target)
    return target


def export_files(
    dataset: Path,
    configs: Sequence[str],
    folder_of: Callable[[str], Path],
    lines_of: Callable[[str, Mapping[str, Any], Mapping[int, str]], list[str]],
) -> list[Path]:
    """Write the released files of configurations back; nothing is written when one of them cannot be.

    Args:
        dataset: the built folder.
        configs: which configurations.
        folder_of: configuration -> the folder that its files' names are relative to.
        lines_of: (configuration, a file's part of release.json, the lines that are kept whole) -> the file's lines.

    Raises:
        DataError: a configuration that is not there, a damaged folder, a file that stands there already.
    """
    release = read_release(dataset)
    planned: list[tuple[Path, list[str], bool, bool]] = []
    for config in configs:
        if config not in release:
            raise DataError(f"expected one of the configs {', '.join(release)}, found {config!r}", file=dataset)
        kept = read_records_table(dataset, config)
        try:
            for facts in release[config]["files"]:
                target = safe_target(folder_of(config), facts["file"], dataset / RELEASE)
                lines = lines_of(config, facts, kept.get(facts["file"], {}))
                planned.append((target, lines, facts["byte_order_mark"], facts["final_newline"]))
        except (LookupError, TypeError, ValueError, AttributeError, StopIteration) as error:
            if isinstance(error, DataError):
                raise
            raise DataError(f"cannot be understood ({error!r})", file=dataset / RELEASE, field=config) from None
    for target, lines, mark, newline in planned:
        write_lines(target, lines, byte_order_mark=mark, final_newline=newline)
    return [target for target, *_ in planned]


def write_lines(target: Path, lines: Sequence[str], *, byte_order_mark: bool, final_newline: bool) -> None:
    """Write a released file: its lines, byte order mark and last newline as they were."""
    target.parent.mkdir(parents=True, exist_ok=True)
    text = "\n".join(lines) + ("\n" if final_newline and lines else "")
    target.write_bytes((("\ufeff" if byte_order_mark else "") + text).encode("utf-8"))


def ends_of(path: Path) -> tuple[bool, bool]:
    """Whether a file begins with a byte order mark, and whether it ends with a newline."""
    with path.open("rb") as file:
        mark = file.read(3) == b"\xef\xbb\xbf"
        file.seek(0, 2)
        if not file.tell():
            return False, True
        file.seek(-1, 2)
        return mark, file.read(1) == b"\n"
