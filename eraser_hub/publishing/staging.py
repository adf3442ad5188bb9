"""What there is to publish: copies of built folders, which are checked and become repositories of the Hub."""

from __future__ import annotations

import logging
import re
import shutil
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

from eraser_hub.conversion import list_datasets
from eraser_hub.conversion.built import RELEASE, open_built
from eraser_hub.conversion.card import EVAL_YAML, get_dataset_version
from eraser_hub.conversion.dataset import read_release
from eraser_hub.conversion.verbs import recognize_dataset
from eraser_hub.records.errors import DataError, add_count
from eraser_hub.version import __version__

from .spaces import list_metric_names, make_space_files

SAMPLE = "a sample, or a part of the release"  # on the card of a dataset that has not all rows
log = logging.getLogger("eraser_hub")


class Repository(NamedTuple):
    """A folder that is to be the content of a repository.

    Attributes:
        kind: dataset, space or model.
        repo_id: ORG/NAME.
        folder: the folder, which is a copy.
        version: the version of its tag, without the v; empty for no tag.
    """

    kind: str
    repo_id: str
    folder: Path
    version: str = ""


def find_built(folder: Path) -> tuple[list[str], list[str]]:
    """Return the names of the datasets and of the metrics that stand built in a folder."""
    datasets = sorted(path.parent.name for path in folder.glob(f"[!.]*/{RELEASE}"))
    return datasets, [name for name in list_metric_names() if (folder / name).is_dir()]


def stage_dataset(folder: Path, namespace: str, place: Path, allow_sample: bool, dry_run: bool) -> Repository:
    """Copy a dataset to ``place`` and check the copy.

    Raises:
        DataError: no build wrote the folder, it fails its check, or it is a sample that is not to be published.
    """
    name, data = folder.name, [path for entry in read_release(folder).values() for path in entry["files"]]
    copy = copy_built(folder, {"README.md", RELEASE, EVAL_YAML, f"{name}.png", *data}, place)
    try:
        faults = recognize_dataset(name, copy).check(copy).errors
    except DataError as error:
        faults = [error]
    if faults:
        message = f"`eraser-hub check` does not pass it: {faults[0]}".replace(str(copy), str(folder))
        raise add_count(DataError(message, file=folder), len(faults))
    if SAMPLE in (copy / "README.md").read_text(encoding="utf-8").lower() and not allow_sample:
        refusal = DataError(f"expected a whole release, found {SAMPLE}: `allow_sample` publishes it", file=folder)
        if not dry_run:
            raise refusal
        log.warning(str(refusal))
    fill_namespace(copy / "README.md", namespace, name)
    return Repository("dataset", f"{namespace}/{name}", copy, get_dataset_version(open_built(copy).card))


def stage_space(folder: Path, namespace: str, place: Path) -> Repository:
    """Copy a Space to ``place``.

    Raises:
        DataError: there is no such metric, or its folder is not as ``build metrics`` writes it.
    """
    contents = make_space_files(folder.name)
    copy = copy_built(folder, contents.keys(), place)
    for path, content in contents.items():
        if not (copy / path).is_file() or (copy / path).read_bytes() != content:
            message = "expected what `eraser-hub build metrics` writes, found another content or no file: build again"
            raise DataError(message, file=folder / path)
    fill_namespace(copy / "README.md", namespace, folder.name)
    return Repository("space", f"{namespace}/{folder.name}", copy, __version__)


def copy_built(folder: Path, built: Collection[str], place: Path) -> Path:
    """Copy the files of a folder that a build writes to ``place``, no links and nothing else; return the copy."""
    files = (path for path in folder.rglob("*") if path.is_file() or path.is_symlink())
    found = {path.relative_to(folder).as_posix(): path for path in sorted(files)}
    left_out = [path for path, file in found.items() if path not in built or file.is_symlink()]
    if left_out:
        listed = ", ".join(left_out[:10])
        log.warning(f"{folder}: {len(left_out):,} files left out, since no build wrote them: {listed}")
    for path in found.keys() - set(left_out):
        (place / folder.name / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(found[path], place / folder.name / path)
    return place / folder.name


def fill_namespace(card: Path, namespace: str, name: str) -> None:
    """Put the namespace before the names of our datasets and metrics, in a card's code and in its list of datasets."""
    datasets = "|".join(map(re.escape, {*list_datasets(), name}))
    metrics = "|".join(list_metric_names())
    text = card.read_text(encoding="utf-8")
    text = re.sub(rf'(load_dataset\("|^- )({datasets})(?="|$)', rf"\1{namespace}/\2", text, flags=re.MULTILINE)
    text = re.sub(rf'(evaluate\.load\(")({metrics})(?=")', rf"\1{namespace}/\2", text)
    card.write_text(text, encoding="utf-8")
