"""`eraser-hub quickstart`: the whole way on the bundled samples."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from eraser_hub.records.options import Options

from .usage import with_options


@dataclass(frozen=True)
class QuickstartOptions(Options):
    """The options of ``eraser-hub quickstart``.

    Attributes:
        out: Folder to build into.
    """

    out: Path = Path("hub")


@with_options(QuickstartOptions)
def quickstart(options: QuickstartOptions) -> None:
    """Build the bundled samples and the metrics, load them, and score sample predictions.

    **Examples**

        eraser-hub quickstart --out hub
    """
    from rich.console import Console

    from eraser_hub.first_steps import quickstart as run

    run(options.out, Console())
