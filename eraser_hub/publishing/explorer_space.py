"""The explorer's Space, ``hub/explanation_explorer``: app, data, and the metric modules that it computes with.

app.py explorer_*.py explorer.html .css .js     the page
samples.json model.json                         the texts and the small model that it brings
explorer.png                                    the card's picture
metrics/                                        the modules, their leaves, and the leaves that all Spaces' pages share
README.md requirements.txt                      card and pins
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from .explorer import DATA, MODULES, PAGE, PICTURE
from .spaces import build_metrics, get_metrics_folder, read_space_card, refuse_others, space_code, write_space

EXPLORER = "explanation_explorer"
_SHARED = ("app_rows.py", "app_scores.py", "score_explanations.py", "catalogue.json")
_IMPORT = re.compile(rb"^from (?:eraser_hub\.(?=metrics\.)|\.(?=\w))", flags=re.MULTILINE)


def make_explorer_files() -> dict[str, bytes]:
    """Return path -> content of all files of the Space."""
    folder, metrics = Path(str(files("eraser_hub.publishing") / "explorer")), get_metrics_folder()
    read_space_card(folder / "card.md")
    contents = {name: (folder / name).read_bytes() for name in (*PAGE, *DATA, PICTURE)}
    contents |= {name: _IMPORT.sub(b"from ", content) for name, content in contents.items() if name.endswith(".py")}
    contents["README.md"] = (folder / "card.md").read_bytes()
    contents["requirements.txt"] = (metrics / "requirements.txt").read_bytes()
    for module in MODULES:
        code = space_code(metrics / f"{module}.py", metrics)
        contents |= {f"metrics/{name}": content for name, content in code.items()}
    contents |= {f"metrics/{name}": (metrics / name).read_bytes() for name in _SHARED}
    contents["metrics/__init__.py"] = b'"""The metric modules of the explorer, and their leaves."""\n'
    return dict(sorted(contents.items()))


def build_explorer(out: Path) -> Path:
    """Write the explorer's Space below ``out``; return its folder.

    Raises:
        DataError: The folder holds other files, or a module cannot be a Space.
    """
    folder, contents = out / EXPLORER, make_explorer_files()
    refuse_others(folder, "explorer.js", "build metrics", "out")
    write_space(folder, contents, contents, lambda: None)
    return folder


def build_spaces(out: str | os.PathLike[str], names: Sequence[str] | None = None) -> list[Path]:
    """Write the Spaces of the metrics, and the explorer's; return their folders.

    Args:
        out: The folder that receives a folder for each Space.
        names: Metrics, or `EXPLORER`; all by default.

    Raises:
        DataError: As of `build_metrics` and `build_explorer`.
    """
    metrics = None if names is None else [name for name in names if name != EXPLORER]
    folders = build_metrics(out, names=metrics) if metrics is None or metrics else []
    return [*folders, build_explorer(Path(out))] if names is None or EXPLORER in names else folders
