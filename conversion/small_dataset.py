"""Build a dataset folder out of tables that fit in memory: Parquet, release.json, card, Croissant, all or nothing.

``eraser`` has a writer of its own; the bilingual benchmark and the human rationales are some thousand rows a
configuration. What a row cannot hold lies beside the data: the files' manner in ``release.json``, and lines as they
were released in ``records/CONFIG.parquet``; both serve `export` and are part of no configuration.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec
import pyarrow as pa

from eraser_hub.records.atomic import link_or_copy, rebuilding
from eraser_hub.records.built import batches, open_built, read_card
from eraser_hub.records.digests import file_digest
from eraser_hub.records.errors import DataError

from .card import CARDS, card_text, content_version, verify_folder, with_configs, with_picture
from .croissant import write_croissant
from .dataset import RELEASE, BuildResult, each_of, keep_others, read_release, standing, write_release
from .features import yaml_features
from .leaderboard import write_eval_yaml
from .parquet import write_parquet

RECORDS = pa.schema([("file", pa.string()), ("line", pa.int32()), ("text", pa.string())])


class ReleasedFile(msgspec.Struct):
    """What ``release.json`` holds of a released file: its manner, its split or kind, and what was left out of it."""

    file: str
    byte_order_mark: bool
    final_newline: bool
    lines: int = 0
    split: str | None = None
    kind: str | None = None
    skipped: dict[str, int] = {}


class Entry(msgspec.Struct):
    """What ``release.json`` holds of a configuration."""

    files: list[ReleasedFile]


@dataclass(frozen=True, slots=True)
class ConfigTables:
    """One configuration, ready to be written.

    Attributes:
        splits: split -> its rows.
        label_names: column -> names, for ClassLabel columns.
        files: of each released file what is constant in it: its name, ``byte_order_mark``, ``final_newline``, and what
            the dataset's export goes by.
        records: (file, 1-based line, text) of lines that rows and ``files`` do not give back.
    """

    splits: Mapping[str, pa.Table]
    label_names: Mapping[str, Sequence[str]]
    files: Sequence[Mapping[str, Any]]
    records: Sequence[tuple[str, int, str]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class SmallDataset:
    """The facts of a dataset that this module writes.

    Attributes:
        name: the dataset, its folder, and its card below datasets_scripts/cards.
        configs: all configurations, in the card's order.
        default: the one that a bare load takes (the first that is there where it is not).
        schema: of every file.
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
    descriptions: Mapping[str, str]
    citation: str
    licenses: Mapping[str, str]
    homepages: Mapping[str, str]
    tables: Callable[[Path], Mapping[str, str]]


def build_small(
    dataset: SmallDataset, names: Sequence[str], tables_of: Callable[[str], ConfigTables], out: Path, notes: list[str]
) -> BuildResult:
    """Write ``out/NAME`` with these configurations; others that stand there are kept.

    Args:
        dataset: what is built.
        names: the configurations.
        tables_of: reads the files of one; ``notes``, which goes into the result, may receive lines.

    Raises:
        DataError: the folder cannot be written, or what was written does not agree with its card; BusyError when
            another build is at work there. The old folder then stands as it was.
    """
    target = Path(out) / dataset.name
    standing(target, Entry)  # somebody else's folder is not replaced
    configs, failed = each_of(names, tables_of)
    with rebuilding(target) as folder:
        release = standing(target, Entry)
        kept = {name: open_built(target).info(name) for name in release.keys() - configs.keys()}
        infos: list[Mapping[str, Any]] = []
        for name in dataset.configs:
            if name in configs:
                infos.append(_write_config(dataset, name, configs[name], folder))
                release[name] = {"files": [dict(file) for file in configs[name].files]}
            elif kept.get(name):
                infos.append(kept[name])
                for file in (*(target / name).glob("*.parquet"), *(target / "records").glob(f"{name}.parquet")):
                    link_or_copy(file, folder / file.relative_to(target))
        write_release(folder, {info["config_name"]: release[info["config_name"]] for info in infos})
        _write_card(dataset, infos, folder)
        verify_folder(folder, dataset.schema)
        write_croissant(folder, dataset.name)
        write_eval_yaml(folder, dataset.name)
        keep_others(target, folder, (*dataset.configs, "records"))
    rows = {name: {split: part.num_rows for split, part in of.splits.items()} for name, of in configs.items()}
    return BuildResult(target, rows, notes, failed)


def _write_config(dataset: SmallDataset, config: str, tables: ConfigTables, folder: Path) -> dict[str, Any]:
    """Write a configuration's files; its entry in the card's ``dataset_info``."""
    written = {
        split: write_parquet(folder / config / f"{split}-00000-of-00001.parquet", dataset.schema, [table])
        for split, table in tables.splits.items()
    }
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
        "version": content_version(facts.sha256 for facts in written.values()),
        "features": yaml_features(dataset.schema, tables.label_names),
        "splits": [
            {"name": split, "num_bytes": facts.num_bytes, "num_examples": facts.num_rows}
            for split, facts in written.items()
        ],
        "download_size": sum(facts.file_bytes for facts in written.values()),
        "dataset_size": sum(facts.num_bytes for facts in written.values()),
    }


def _write_card(dataset: SmallDataset, infos: Sequence[Mapping[str, Any]], folder: Path) -> None:
    metadata, prose = read_card(CARDS / f"{dataset.name}.md")
    metadata = with_configs(metadata, infos, dataset.default, "{config}/{split}-*.parquet")
    # the tables are computed from the files, which are found through the card: so it is written twice
    (folder / "README.md").write_text(card_text(metadata, prose), encoding="utf-8")
    for marker, markdown in dataset.tables(folder).items():
        prose = prose.replace(f"<!-- {marker} -->", markdown.strip())
    text = with_picture(card_text(metadata, prose), dataset.name, folder)
    (folder / "README.md").write_text(text, encoding="utf-8")


def content_hash(files: Iterable[Path]) -> str:
    """Sixteen hexadecimal digits that change with the contents of any of the files."""
    return hashlib.sha256("\n".join(file_digest(path) for path in files).encode()).hexdigest()[:16]


# -- the files again --------------------------------------------------------------------------------------------------


def export_files(
    dataset: Path,
    configs: Sequence[str],
    folder_of: Callable[[str], Path],
    lines_of: Callable[[str, Mapping[str, Any], Mapping[int, str]], list[str]],
) -> list[Path]:
    """Write the released files of configurations back; nothing is written when one of them cannot be.

    Args:
        dataset: the built folder.
        configs: which configurations; all that are there where it is empty.
        folder_of: configuration -> the folder that its files' names are relative to.
        lines_of: (configuration, a file's part of release.json, the lines that are kept whole) -> the file's lines.

    Raises:
        DataError: a configuration that is not there, a damaged folder, a file that stands there already.
    """
    release = read_release(dataset, Entry)
    contents: dict[Path, bytes] = {}
    for config in configs or release:
        if config not in release:
            message = f"expected one of the configs {', '.join(release)}, found {config!r}"
            raise DataError(message, rule="option-value", file=dataset)
        kept = _records(dataset, config)
        try:
            for facts in release[config]["files"]:
                target = _safe_target(folder_of(config), facts["file"], dataset / RELEASE)
                lines = lines_of(config, facts, kept.get(facts["file"], {}))
                mark, newline = "\ufeff" * facts["byte_order_mark"], "\n" * (facts["final_newline"] and bool(lines))
                contents[target] = (mark + "\n".join(lines) + newline).encode("utf-8")
        except (LookupError, TypeError, ValueError, AttributeError, StopIteration) as error:
            if isinstance(error, DataError):
                raise
            message = f"cannot be understood ({error!r})"
            raise DataError(message, rule="input", file=dataset / RELEASE, field=config) from None
    for target, content in contents.items():
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    return list(contents)


def _records(folder: Path, config: str) -> dict[str, dict[int, str]]:
    """file -> line -> text, of the lines that are kept whole."""
    path = Path(folder) / "records" / f"{config}.parquet"
    kept: dict[str, dict[int, str]] = {}
    for rows in batches([path] if path.is_file() else [], RECORDS.names, kinds=RECORDS):
        for file, line, text in zip(*(rows[name].to_pylist() for name in RECORDS.names), strict=True):
            kept.setdefault(file, {})[line] = text
    return kept


def _safe_target(out: Path, name: str, release: Path) -> Path:
    """``out/name`` for a name out of a release.json, which is data: it stays below ``out``, where nothing may be."""
    parts = PurePosixPath(name).parts
    if not parts or PurePosixPath(name).is_absolute() or ".." in parts or "\\" in name or "\0" in name:
        raise DataError(f"expected the name of a file below the folder, found {name!r}", rule="file-name", file=release)
    target = out.joinpath(*parts)
    if target.exists():
        raise DataError("stands there already; nothing is overwritten", rule="file-exists", file=target)
    return target


def ends_of(path: Path) -> dict[str, bool]:
    """Whether a file begins with a byte order mark, and whether it ends with a newline."""
    with path.open("rb") as file:
        mark = file.read(3) == b"\xef\xbb\xbf"
        size = file.seek(0, 2)
        file.seek(max(size - 1, 0))
        return {"byte_order_mark": mark, "final_newline": not size or file.read(1) == b"\n"}
