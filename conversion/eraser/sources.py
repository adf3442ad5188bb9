"""Where a corpus comes from: a folder, an archive that the user holds, or the release's download."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from eraser_hub.records.errors import DataError

from .configs import CONFIGS, CORPUS_YAML, EraserConfig
from .corpus import look_into
from .format import read_annotations
from .own import own_config_of, own_folders

# configs that the release may ship inside of another one's archive
BESIDE = {"cose_simplified": "cose", "esnli_flat": "esnli"}


def corpus_folder(config: str, source: Path | None, *, progress: bool, say: Callable[[str], None]) -> Path:
    """The raw folder of a config.

    Args:
        config: e.g. ``movies``.
        source: holds ``movies/`` or ``movies.tar.gz``, or is one of these; for a corpus of one's own a folder with its
            corpus.yaml, or the folder that holds it. None downloads the release.
        progress: a progress bar while downloading.
        say: receives what the user should know, e.g. a digest that was recorded.

    Raises:
        DataError: it is not there, or the archive is refused.
    """
    from eraser_hub.conversion.download import fetch

    if source is None:

        def read(folder: Path) -> None:
            for file in look_into(folder, CONFIGS[config]).splits:
                for _ in read_annotations(file.path):
                    pass

        return fetch.corpus_folder(config, progress=progress, say=say, read=read)
    place = own_folders(source).get(config) or _find(config, source)
    if place is None:
        message = f"expected a folder {config}/ or an archive {config}.tar.gz, found neither"
        raise DataError(message, rule="file-missing", file=source)
    if place.is_dir():
        return place
    inside = fetch.find_corpus(fetch.archive_folder(place), config)
    if inside is None:
        message = f"expected a folder {config} with split files in the archive, found none"
        raise DataError(message, rule="file-missing", file=place)
    return inside


def config_of(name: str, folder: Path) -> EraserConfig:
    """The facts of a corpus: those of the corpus.yaml in its folder, else those of the release's config.

    Raises:
        DataError: the corpus.yaml is not in order.
    """
    return own_config_of(folder) if os.path.lexists(folder / CORPUS_YAML) else CONFIGS[name]


def _find(config: str, source: Path, exact: bool = False) -> Path | None:
    """Where a config of the release lies; a folder with a corpus.yaml is none."""
    if (source / CORPUS_YAML).is_file():
        return None
    if source.is_file():
        return source if source.name == f"{config}.tar.gz" or not exact else None
    for candidate in (source / config, source / f"{config}.tar.gz"):
        if (candidate.is_dir() or candidate.is_file()) and not (candidate / CORPUS_YAML).is_file():
            return candidate
    if source.resolve().name == config and _holds_splits(source):
        return source
    if exact:
        return None
    host = BESIDE.get(config)
    if host is not None:
        for candidate in (source / host / config, source / f"{host}.tar.gz"):
            if candidate.exists():
                return candidate
    return source if _holds_splits(source) and not any((source / name).is_dir() for name in CONFIGS) else None


def is_raw(folder: Path) -> bool:
    """Whether a folder holds raw corpora (folders with split files, or archives, named like configs), or is one."""
    if _holds_splits(folder) or own_folders(folder):
        return True
    return any((folder / f"{name}.tar.gz").is_file() or any((folder / name).glob("*.jsonl")) for name in CONFIGS)


def _holds_splits(folder: Path) -> bool:
    return any((folder / f"{name}.jsonl").is_file() for name in ("train", "val", "validation", "test"))


def fingerprint(folder: Path) -> str:
    """A digest of the names, sizes and times of a corpus folder's files: another one when a file was changed."""
    digest = hashlib.sha256()
    for place in (folder, folder / "docs", folder / "annotators"):
        if not place.is_dir():
            continue
        with os.scandir(place) as entries:
            rows = []
            for entry in entries:
                try:
                    status = entry.stat()
                except OSError:  # a link that leads nowhere: named later among the skipped files
                    continue
                if not entry.is_dir():
                    rows.append((os.fsencode(entry.name), status.st_size, status.st_mtime_ns))
        for row in sorted(rows):
            digest.update(repr(row).encode())
    return digest.hexdigest()


def chosen_configs(configs: Sequence[str] | None, source: Path | None) -> list[str]:
    """The configs to build: those asked for, else those that ``source`` holds, else all."""
    own = own_folders(source) if source is not None else {}
    known = [*(name for name in CONFIGS if name not in own), *own]
    if configs:
        unknown = [name for name in configs if name not in known]
        if unknown:
            raise DataError(f"expected configs of {', '.join(known)}, found {unknown[0]!r}", rule="option-value")
        return [name for name in known if name in configs]
    if source is None:
        return known
    names = [name for name in known if name in own or _find(name, source, exact=True) is not None]
    if not names:
        expected = f"folders or archives named {', '.join(CONFIGS)}, or folders with a {CORPUS_YAML}"
        raise DataError(f"expected {expected}, found none", rule="file-missing", file=source)
    return names
