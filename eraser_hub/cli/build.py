"""``eraser-hub build``: raw files as folders that load_dataset and evaluate.load read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eraser_hub import api

from .usage import call_with_options, print_line, print_note, with_options

if TYPE_CHECKING:
    from eraser_hub.conversion.dataset import BuildResult


@with_options(api.BuildArguments)
def build(options: api.BuildArguments) -> None:
    """Build a Hub dataset, or the metric Spaces, into OUT.

    Building one configuration keeps the others in the folder. A build that is killed leaves the old folder unchanged.

    **Examples**

        eraser-hub build eraser --source corpora --config movies --out hub

        eraser-hub build eraser --config cose --config esnli --num-proc 4

        eraser-hub build own --source corpora/village --out hub

        eraser-hub build metrics --out hub
    """
    from eraser_hub.conversion.dataset import PartlyBuilt

    try:
        _print(call_with_options(api.build, options))
    except PartlyBuilt as error:
        _print(error.result)
        raise


def _print(result: BuildResult) -> None:
    for note in result.notes:
        print_note(note)
    for name, splits in result.rows.items():
        counts = ", ".join(f"{split} {rows:,}" for split, rows in splits.items())
        print_line(f"{result.folder}: {name}: {counts}" if splits else str(result.folder / name))
