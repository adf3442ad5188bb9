"""Last step of every build: it turns a folder of Parquet into a dataset for the Hub."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any

import pyarrow as pa

from eraser_hub.conversion import HUB_DATASETS
from eraser_hub.conversion.files import carry_over
from eraser_hub.version import __version__

from .card import insert_picture, verify_folder
from .dataset import EVAL_YAML, FORMAT, LICENSES, RELEASE
from .leaderboard import write_eval_yaml
from .licenses import is_license_name
from .written_files import is_recorded


def finish_build(
    target: Path,
    folder: Path,
    schema: pa.Schema,
    release: Mapping[str, Any],
    card: Callable[[], str],
    parquet_folders: Collection[str],
    label_names: Mapping[str, Sequence[str]] | None = None,
) -> None:
    """Write ``release.json``, the card and ``eval.yaml``, and carry over files that no build wrote.

    Args:
        target: the existing folder; its name is the dataset's name.
        folder: the new folder, which replaces it, with all of its Parquet files.
        schema: the expected schema of each file of a config.
        release: config -> facts that its rows cannot hold.
        card: makes the card after release.json has been written.
        parquet_folders: the folders into which a build writes Parquet.
        label_names: config -> the expected names of the gold label in the card.

    Raises:
        DataError: card and files disagree.
    """
    own = {} if target.name in HUB_DATASETS else {"dataset": target.name}
    facts = {"format": FORMAT, "version": __version__, **own, "configs": dict(release)}
    text = json.dumps(facts, ensure_ascii=False, indent=1)
    (folder / RELEASE).write_text(text + "\n", encoding="utf-8")
    (folder / "README.md").write_text(insert_picture(card(), target.name, folder), encoding="utf-8")
    write_eval_yaml(folder, target.name)
    verify_folder(folder, schema, label_names)

    def is_built(path: PurePath) -> bool:
        if is_build_text(path, target.name):
            return True
        parquet = len(path.parts) == 2 and path.parts[0] in parquet_folders and path.suffix == ".parquet"
        return parquet and is_recorded(target, path.as_posix())

    carry_over(target, folder, is_built)


def is_build_text(path: PurePath, name: str) -> bool:
    """Return True if a build of the dataset ``name`` writes a file of such a path beside its data: card, licence, .."""
    if len(path.parts) == 1:
        return path.name in ("README.md", RELEASE, EVAL_YAML, f"{name}.png")
    return len(path.parts) == 2 and path.parts[0] == LICENSES and is_license_name(path.name.partition(".")[2])
