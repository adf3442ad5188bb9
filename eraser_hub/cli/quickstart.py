"""`eraser-hub quickstart`: the whole way on the bundled samples."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def quickstart(
    out: Annotated[Path, typer.Option(help="The folder to build into; made if it is not there.")] = Path("hub"),
) -> None:
    """Build the bundled samples and the metrics, load them, score sample predictions, show the result.

    Example:

        eraser-hub quickstart --out hub
    """
    from rich.console import Console

    from eraser_hub.first_steps import quickstart as run

    run(out, Console())
