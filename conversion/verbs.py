"""The public functions of built datasets: `check`, `stats`, `export` and `load`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, cast

from eraser_hub.conversion import get_dataset, list_datasets
from eraser_hub.records.arguments import Place
from eraser_hub.records.errors import DataError, get_first_line
from eraser_hub.records.places import dataset_split, find_place
from eraser_hub.records.readers import read_json_object

if TYPE_CHECKING:
    from datasets import Dataset

    from eraser_hub.conversion.checks import CheckResult
    from eraser_hub.conversion.dataset import ExportResult, HubDataset
    from eraser_hub.records.tables import Tables

BUILT = "hub/eraser"  # what `build` makes where it is told no place


def check(dataset: Place = BUILT, *, config: str | Sequence[str] | None = None) -> CheckResult:
    """Check a built dataset: ids, labels, spans, texts, derived columns, splits, card.

    Known quirks of the releases are named and are no violation; of anything else the exit status is 1.

    Args:
        dataset: Built folder, Hub id, or folder of raw corpora.
        config: Configuration to check; by default all.

    Returns:
        The findings; ``errors`` has the violations.

    Raises:
        DataError: there is no such dataset or configuration, or a file cannot be read.

    Examples:
        >>> from eraser_hub import check
        >>> checked = check("hub/eraser", config="movies")
        >>> checked.errors, checked.rows["movies", "train"]
        ([], 27)

        $ eraser-hub check
        $ eraser-hub check org/eraser --config movies --format json
    """
    configs = list_configs(config)
    opened, folder = open_dataset(dataset, configs)
    return opened.check(folder, configs)


def stats(dataset: Place = BUILT, *, config: str | Sequence[str] | None = None) -> Tables:
    """Recompute the papers' tables of sizes and evidence.

    The printed figures stand beside the computed ones, with the difference.

    Args:
        dataset: Built folder, Hub id, or folder of raw corpora.
        config: Configuration; by default all.

    Returns:
        The tables; ``written("markdown")`` writes them.

    Raises:
        DataError: there is no such dataset or configuration, or a file cannot be read.

    Examples:
        >>> from eraser_hub import stats
        >>> len(stats("hub/eraser", config="movies").written("csv").splitlines()) > 1
        True

        $ eraser-hub stats hub/eraser --config movies --format markdown
        $ eraser-hub stats hub/human_rationales --format latex
    """
    configs = list_configs(config)
    opened, folder = open_dataset(dataset, configs)
    return opened.stats(folder, configs)


def export(
    dataset: Place, *, out: Place, config: str | Sequence[str] | None = None, force: bool = False
) -> ExportResult:
    """Write the raw files of the release back.

    Every record and every document is unchanged.

    Args:
        dataset: Built folder, or Hub id.
        out: Folder for a folder of raw files per configuration.
        config: Configuration to export; by default all.
        force: Replace files that are there, and docs/ as a whole.

    Returns:
        The files.

    Raises:
        DataError: the folder is none that a build wrote, or a file is there already.

    Examples:
        >>> from eraser_hub import export
        >>> [file.name for file in export("hub/eraser", out="raw", config="movies").files]
        ['docs', 'test.jsonl', 'train.jsonl', 'val.jsonl']

        $ eraser-hub export hub/eraser --config movies --out raw
        $ eraser-hub export org/eraser --out raw --force
    """
    opened, folder = open_dataset(dataset)
    if Path(out).resolve().is_relative_to(folder.resolve()):
        raise DataError(f"expected a folder outside the dataset {folder}, found {out}", argument="out")
    return opened.export(folder, list_configs(config), out=Path(out), force=force)


def load(dataset: Place, config: str | None = None, split: str = "test") -> Dataset:
    """Load a split of a built dataset.

    Args:
        dataset: a built folder, a dataset of the Hub (org/eraser), or the name of a folder in hub/.
        config: the configuration; by default the dataset's default one.
        split: the split, as the Hub or as the release calls it.

    Returns:
        The rows, as ``load_dataset`` gives them.

    Raises:
        DataError: there is no such dataset, configuration or split.

    Examples:
        >>> from eraser_hub import load
        >>> load("eraser", "movies", "val").num_rows
        24
    """
    from datasets import load_dataset

    from eraser_hub.conversion.built import open_built

    built = open_built(dataset)
    config = config or built.default_config
    built.files(config, split)
    repository = built.place.repository
    revision = built.folder.name if repository else None
    try:
        rows = load_dataset(repository or str(built.folder), config, split=dataset_split(split), revision=revision)
    except Exception as error:  # `datasets` raises many kinds, whose text names the cause
        raise DataError(
            f"cannot be loaded: {get_first_line(error)}; see `eraser-hub check`", file=built.name
        ) from error
    return cast("Dataset", rows)


def open_dataset(dataset: Place, configs: Sequence[str] | None = None) -> tuple[HubDataset, Path]:
    """Return the dataset that a folder, built or raw, or a repository of the Hub holds, and the folder.

    Raises:
        DataError: there is no such folder, and the Hub has no such dataset.
    """
    place = find_place(dataset)
    folder = place.fetch()
    if not folder.is_dir():
        from .built import describe_folder

        raise DataError(f"expected a folder at {folder}, found {describe_folder(folder)}", argument="dataset")
    return recognize_dataset(place.dataset, folder, configs), folder


def recognize_dataset(name: str, folder: Path, configs: Sequence[str] | None = None) -> HubDataset:
    """Return the dataset of a folder: what ``release.json`` says, else by its name, its configurations or corpus.yaml.

    Args:
        name: of the dataset, as its place says.
        folder: built, or with raw files.
        configs: those that are asked for, of which one may be a corpus of one's own.

    Raises:
        DataError: there are several corpora of one's own, and none is named.
    """
    from .built import RELEASE
    from .eraser.dataset import open_own

    known = list_datasets()
    with suppress(DataError):
        name = read_json_object(folder / RELEASE).get("dataset", name)
    if name in known:
        return get_dataset(name)
    names = set(configs or {folder.name, *(path.name.partition(".")[0] for path in folder.iterdir())})
    if found := next((each for each in map(get_dataset, known) if not names.isdisjoint(each.configs)), None):
        return found
    return open_own(folder, next(iter(configs or ()), None)) or get_dataset("eraser")


def list_configs(config: str | Iterable[str] | None) -> list[str] | None:
    """Return the configurations of an argument that may be one or several; None where it is left out or empty."""
    return ([config] if isinstance(config, str) else list(config or ())) or None
