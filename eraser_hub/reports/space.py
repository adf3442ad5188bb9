"""The board as a gradio Space: app, data, card and requirements in one folder."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from importlib import resources
from pathlib import Path

from eraser_hub.publishing.board_space import write_board_space

from .board import NOTE, as_json
from .board_lines import BoardLine
from .page import asset, json_text

_CARD = """\
---
title: {title}
emoji: 📋
colorFrom: blue
colorTo: yellow
sdk: gradio
sdk_version: {gradio}
python_version: "3.11"
app_file: app.py
pinned: false
short_description: Rationale scores of every system, by every metric
license: apache-2.0
datasets:
- eraser
tags:
- leaderboard
- rationales
---

# {heading}

{note}

- `board.json` holds every line: system, dataset, scores, and the paper's table or the scorer's signature behind them.
- The tab "Submit" scores a predictions file with `eraser_agreement` and `eraser_faithfulness`. `settings.json` says \
whose
  dataset `eraser` and whose metrics it takes: `eraser-hub publish --namespace ORG` fills ORG in. Beside the folders \
that
  `eraser-hub build` wrote, it takes those. The variables `BOARD_DATASET` (the dataset's id or folder) and \
`BOARD_METRICS`
  (put before the metrics' names, e.g. `my-org/`) go before both.

Written by `eraser-hub board --space`.
"""


def requirements() -> str:
    """What the Space installs: the pins of the metrics' Spaces, so that both run on the same versions."""
    return resources.files("eraser_hub.metrics").joinpath("requirements.txt").read_text(encoding="utf-8")


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
    pins = requirements()
    version = next(line.split("==")[1].strip() for line in pins.splitlines() if line.startswith("gradio=="))
    pinned = [line for line in pins.splitlines() if not line.startswith("#")]
    files = {
        "app.py": asset("board_app.py"),
        "board.json": "".join(json_text(as_json(lines), indent=1)),
        # JSON is YAML: a title with quotes or colons stays one value
        "README.md": _CARD.format(
            title=json.dumps(title, ensure_ascii=False), gradio=version, heading=title, note=NOTE
        ),
        "requirements.txt": "\n".join(pinned) + "\n",
    }
    return write_board_space(folder, files, beside)
