"""What `score` and `compare` ask for alike: what predictions are scored against, thresholds, and clusters."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from eraser_hub.scoring.settings import ScoreSettings

DataDir = Annotated[Path | None, typer.Option(help="The corpus as released: SPLIT.jsonl, docs/ or docs.jsonl.")]
Dataset = Annotated[Path | None, typer.Option(help="Instead of --data-dir: a built dataset, e.g. hub/eraser.")]
Config = Annotated[
    str | None,
    typer.Option(help="The configuration of --dataset, e.g. movies; with --data-dir the one whose labels count."),
]
Annotations = Annotated[Path | None, typer.Option(help="An annotation file other than SPLIT.jsonl.")]
IouThresholds = Annotated[list[float] | None, typer.Option(help="IOU threshold; repeat for several.")]
AopcThresholds = Annotated[list[float] | None, typer.Option(help="AOPC threshold; repeat for several.")]

ClusterBy = Annotated[
    str,
    typer.Option(
        help="What intervals and tests draw together: auto (annotations that share a document), none, or a field of "
        "the annotations."
    ),
]


def check_source(data_dir: Path | None, dataset: Path | None, config: str | None, annotations: Path | None) -> None:
    """Refuse both or neither of a corpus and a dataset, and options that go with the other one."""
    if (data_dir is None) == (dataset is None):
        raise typer.BadParameter("give either --data-dir, or --dataset with --config")
    if dataset is not None and config is None:
        raise typer.BadParameter("--dataset needs --config")
    if dataset is not None and annotations is not None:
        raise typer.BadParameter("--annotations goes with --data-dir")


def spelled(words: str) -> str:
    """Return a note of the scorer with arguments of Python calls (in backquotes) as the options that they are here."""
    return re.sub(r"`([a-z][a-z_]*)`", lambda found: "--" + found[1].replace("_", "-"), words)


def settings_of(iou: Sequence[float] | None, aopc: Sequence[float] | None, **more: Any) -> ScoreSettings:
    """The settings, with the thresholds' defaults where none are named; one out of its range is bad usage."""
    from eraser_hub.metrics.erasure import AOPC_THRESHOLDS
    from eraser_hub.scoring.settings import ScoreSettings

    try:
        settings = ScoreSettings(tuple(iou or (0.5,)), tuple(aopc or AOPC_THRESHOLDS), **more)
        settings.check()
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    return settings
