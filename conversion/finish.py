"""The end of every build: what makes a folder of Parquet a dataset of the Hub."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any

import pyarrow as pa

from eraser_hub.records.atomic import carry_over

from .card import verify_folder, with_picture
from .croissant import write_croissant
from .dataset import CROISSANT, EVAL_YAML, FORMAT, LICENSES, RELEASE
from .leaderboard import write_eval_yaml


def finish_build(
    target: Path,
    folder: Path,
    schema: pa.Schema,
    release: Mapping[str, Any],
    card: Callable[[], str],
    parquet_folders: Collection[str],
    label_names: Mapping[str, Sequence[str]] | None = None,
    digests: Mapping[str, str] | None = None,
) -> None:
    """Write ``release.json``, the card, Croissant metadata and ``eval.yaml``, and take over what people put beside.

    Args:
        target: the folder that stands; its name is the dataset's.
        folder: the new one, which is to take its place, with all of its Parquet.
        schema: what each file of a config has to have.
        release: config -> what its rows cannot hold.
        card: makes the card, when release.json is there.
        parquet_folders: those that a build writes Parquet into.
        label_names: per config, the names that the gold label has to have in the card.
        digests: SHA-256 of files that have just been written, by their paths in the folder.

    Raises:
        DataError: card and files disagree.
    """
    text = json.dumps({"format": FORMAT, "configs": dict(release)}, ensure_ascii=False, indent=1)
    (folder / RELEASE).write_text(text + "\n", encoding="utf-8")
    (folder / "README.md").write_text(with_picture(card(), target.name, folder), encoding="utf-8")
    verify_folder(folder, schema, label_names)
    write_croissant(folder, target.name, digests)
    write_eval_yaml(folder, target.name)

    def is_built(path: PurePath) -> bool:
        if len(path.parts) == 1:
            return path.name in ("README.md", RELEASE, CROISSANT, EVAL_YAML, f"{target.name}.png")
        parquet = path.parts[0] in parquet_folders and path.suffix == ".parquet"
        return len(path.parts) == 2 and (path.parts[0] == LICENSES or parquet)

    carry_over(target, folder, is_built)
