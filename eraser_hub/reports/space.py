"""The board as a gradio Space: app, data, card and requirements in one folder."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from importlib import resources
from pathlib import Path

from eraser_hub.publishing.board_space import write_board_space
from eraser_hub.publishing.spaces import flatten_app, read_pin

from .board import NOTE, make_board_files
from .board_lines import BoardLine
from .markup import read_template

CODE = ("board_app.py", "board_scoring.py")


def write_space(
    folder: Path, lines: Sequence[BoardLine], *, title: str = "Results board", beside: Callable[[], object] = list
) -> list[Path]:
    """Write the Space: the board's files, app.py, board_scoring.py, README.md, requirements.txt and `board_space`'s.

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
    pinned = [line for line in pins.splitlines() if not line.startswith("#")]
    app, scoring = (flatten_app(read_template(name).encode()).decode() for name in CODE)
    files = {
        "app.py": app,
        "board_scoring.py": scoring,
        **{name: "".join(text) for name, text in make_board_files(lines, title, submit="submit/").items()},
        # JSON is YAML: a title with quotes or colons stays one value
        "README.md": read_template("board_card.md").format(
            title=json.dumps(title, ensure_ascii=False), gradio=read_pin("gradio"), heading=title, note=NOTE
        ),
        "requirements.txt": "\n".join(pinned) + "\n",
    }
    return write_board_space(folder, files, beside)
