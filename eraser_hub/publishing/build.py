"""The public function `build`: raw files as folders that ``load_dataset`` and ``evaluate.load`` read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from eraser_hub.conversion import get_dataset, list_datasets
from eraser_hub.conversion.verbs import list_configs
from eraser_hub.records.arguments import Place
from eraser_hub.records.errors import DataError, describe_choice

if TYPE_CHECKING:
    from eraser_hub.conversion.dataset import BuildResult


OWN, METRICS = "own", "metrics"  # what `build` takes beside the names of datasets


def build(
    name: str,
    source: Place | None = None,
    *,
    config: str | Sequence[str] | None = None,
    out: Place = "hub",
) -> BuildResult:
    """Build a Hub dataset, or the metric Spaces.

    Configurations that are in the folder already and are not built now stay as they are. A build that is killed leaves
    the old folder unchanged.

    Args:
        name: eraser, bilingual_perturbation, human_rationales; own, for a corpus of your own as a dataset of its own;
            or metrics.
        source: Folder with a folder or a .tar.gz per corpus; by default ERASER's release is downloaded. The others,
            and a corpus of your own, need one.
        config: Configuration to build; by default all that are there.
        out: Folder of the dataset and metric folders.

    Returns:
        The folder, and the rows of each configuration's splits; for metrics the folder with a name for each Space.

    Raises:
        DataError: an unknown name or configuration, bad input, or another build is at work. Of several
            configurations those that are in order are built first.

    Examples:
        >>> from eraser_hub import build, samples
        >>> build("eraser", source=samples.path("eraser"), config="movies", out="hub").rows["movies"]
        {'train': 27, 'validation': 24, 'test': 13}

        $ eraser-hub build eraser --source corpora --config movies --out hub
        $ eraser-hub build eraser --config cose --config esnli
        $ eraser-hub build own --source corpora/village
        $ eraser-hub build metrics
    """
    configs = list_configs(config)
    names = (*list_datasets(), OWN, METRICS)
    if name not in names:
        raise DataError(describe_choice(name, names), argument="name")
    if name == METRICS:
        from eraser_hub.conversion.dataset import BuildResult  # with Arrow

        from .spaces import build_metrics

        if source is not None:
            raise DataError("expected none, for metrics are built from no corpora", argument="source")
        return BuildResult(Path(out), {folder.name: {} for folder in build_metrics(Path(out), names=configs)})
    folder = None if source is None else Path(source)
    if folder is not None and not folder.exists():
        from eraser_hub.conversion.built import describe_folder

        raise DataError(f"expected a folder at {folder}, found {describe_folder(folder)}", argument="source")
    if name != OWN:
        return get_dataset(name).build(configs, out=Path(out), source=folder)
    from eraser_hub.conversion.built import describe_folder
    from eraser_hub.conversion.eraser.dataset import open_own

    if len(configs or ()) > 1:
        raise DataError(f"expected one corpus, found {', '.join(configs or ())}", argument="config")
    dataset = None if folder is None else open_own(folder, next(iter(configs or ()), None))
    if dataset is None:
        found = "none" if folder is None else describe_folder(folder) or f"{folder} without one"
        message = f"expected a folder with a corpus.yaml, which `eraser-hub import` writes, found {found}"
        raise DataError(message, argument="source")
    return dataset.build(None, out=Path(out), source=folder)
