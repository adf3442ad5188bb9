"""The board as a gradio Space: app, data, card and requirements in one folder."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from importlib import resources
from pathlib import Path

from eraser_hub.publishing.board_space import write_board_space

from .board import NOTE, to_board_json
from .board_lines import BoardLine
from .markup import read_template
from .page import to_json_text


def write_space(
    folder: Path, lines: Sequence[BoardLine], *, title: str = "Results board", beside: Callable[[], object] = list
) -> list[Path]:
    """Write the Space: app.py, board.json, README.md, requirements.txt and what `board_space` adds.

    Args:
        folder: where to.
        lines: the board's lines, in its neutral order.
        title: the Space's title.
        beside: see `write_board_space`; by default nothing.

    Returns:
        The files written.

    Raises:
        DataError: as of `write_board_space`.
    """
    # the pins of the metrics' Spaces, so that both run on the same versions
    pins = resources.files("eraser_hub.metrics").joinpath("requirements.txt").read_text(encoding="utf-8")
    version = next(line.split("==")[1].strip() for line in pins.splitlines() if line.startswith("gradio=="))
    pinned = [line for line in pins.splitlines() if not line.startswith("#")]
    files = {
        "app.py": read_template("board_app.py"),
        "board.json": "".join(to_json_text(to_board_json(lines), indent=1)),
        # JSON is YAML: a title with quotes or colons stays one value
        "README.md": read_template("board_card.md").format(
            title=json.dumps(title, ensure_ascii=False), gradio=version, heading=title, note=NOTE
        ),
        "requirements.txt": "\n".join(pinned) + "\n",
    }
    return write_board_space(folder, files, beside)
