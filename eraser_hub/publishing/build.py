"""The public function `build`: raw files as folders that ``load_dataset`` and ``evaluate.load`` read."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from eraser_hub.conversion import HUB_DATASETS
from eraser_hub.conversion.verbs import check_configs, list_configs
from eraser_hub.records.arguments import Place
from eraser_hub.records.errors import DataError, describe_choice

if TYPE_CHECKING:
    from eraser_hub.conversion.dataset import BuildResult

log = logging.getLogger("eraser_hub")


def build(
    name: str,
    source: Place | None = None,
    *,
    config: str | Sequence[str] | None = None,
    out: Place = "hub",
    num_proc: int = 1,
) -> BuildResult:
    """Build a Hub dataset, or the metric Spaces.

    Configurations that are in the folder already and are not built now stay as they are. A build that is killed leaves
    the old folder unchanged.

    Args:
        name: eraser, bilingual_perturbation, human_rationales; own, for a corpus of your own as a dataset of its own;
            or metrics.
        source: Folder with a folder or a .tar.gz per corpus; by default the release is downloaded.
        config: Configuration to build; by default all that are there.
        out: Folder of the dataset and metric folders.
        num_proc: Number of processes.

    Returns:
        The folder, and the rows of each configuration's splits; for metrics the folder with a name for each Space.

    Raises:
        DataError: an unknown name or configuration, bad input, or another build is at work; ``PartlyBuilt`` where some
            configurations could be built and others not.

    Examples:
        >>> from eraser_hub import build, samples
        >>> build("eraser", source=samples.path("eraser"), config="movies", out="hub").rows["movies"]
        {'train': 27, 'validation': 24, 'test': 13}

        $ eraser-hub build eraser --source corpora --config movies --out hub
        $ eraser-hub build eraser --config cose --config esnli --num-proc 4
        $ eraser-hub build own --source corpora/village
        $ eraser-hub build metrics
    """
    from eraser_hub.conversion.dataset import BuildResult, PartlyBuilt
    from eraser_hub.conversion.own import METRICS, OWN, choose_corpus, make_own_dataset

    configs = list_configs(config)
    names = (*HUB_DATASETS, OWN, METRICS)
    if name not in names:
        raise DataError(describe_choice(name, names), argument="name")
    if num_proc < 1:
        raise DataError(f"expected at least 1, found {num_proc}", argument="num_proc")
    if name == METRICS:
        from .spaces import build_metrics  # with Arrow

        if source is not None:
            raise DataError("expected none, for metrics are built from no corpora", argument="source")
        return BuildResult(Path(out), {folder.name: {} for folder in build_metrics(Path(out), names=configs)})
    folder = None if source is None else Path(source)
    if folder is not None and not folder.exists():
        raise DataError(f"expected a folder, found none at {folder}", argument="source")
    if name == OWN:
        if folder is None:
            raise DataError("expected a corpus folder, found none", argument="source")
        dataset = make_own_dataset(choose_corpus(folder, configs))
        configs = [dataset.name]
    else:
        dataset = HUB_DATASETS[name]
        check_configs(configs, dataset, folder)
    try:
        return dataset.build(configs, out=Path(out), source=folder, num_proc=num_proc)
    except PartlyBuilt as error:
        for line in (*error.result.notes, str(error.result)):
            log.warning(line)
        raise
