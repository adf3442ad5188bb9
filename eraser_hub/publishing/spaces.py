"""Metric Spaces: ``hub/NAME/`` with the module and all leaves that it needs as one file, card, app and requirements.

`evaluate.load` fetches the file NAME.py and asks the Hub again for each sibling that it imports, at every load. So a
Space's module is one file: `join_module` writes the leaves before it, and leaves out their relative imports.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from eraser_hub.conversion.files import carry_over, rebuild_folder
from eraser_hub.records.errors import DataError, describe_choice

PICTURE = re.compile(r"!\[[^\]]*\]\(([\w.-]+\.png)\)")  # beside a card, which shows it


def get_metrics_folder() -> Path:
    """Return the folder of the metric modules, in a checkout and in an installed package."""
    return Path(str(files("eraser_hub.metrics")))


def list_metric_names() -> list[str]:
    """Return the names of the metrics: each card ``cards/NAME.md`` makes one Space."""
    return sorted(card.stem for card in (get_metrics_folder() / "cards").glob("*.md"))


def build_metrics(out: str | os.PathLike[str], names: Sequence[str] | None = None) -> list[Path]:
    """Write the Spaces' folders.

    Args:
        out: The folder that receives ``NAME/`` for each metric, e.g. ``hub``.
        names: The metrics; all by default.

    Returns:
        The folders written, one per metric. A folder of that name is replaced as a whole, by renaming: a reader sees
        the old folder or the new one, never half of it. Nothing is written if any of the metrics is refused.

    Raises:
        DataError: An unknown name, or a folder of that name that `build metrics` did not write.
    """
    spaces = {name: make_space_files(name) for name in names or list_metric_names()}
    for name in spaces:
        folder = Path(out) / name
        if folder.is_dir() and any(folder.iterdir()) and not (folder / f"{name}.py").is_file():
            message = f"expected a folder that `build metrics` wrote, found no {name}.py: take another `out`"
            raise DataError(message, file=folder)
    for name, contents in spaces.items():
        with rebuild_folder(Path(out) / name) as building:
            for file, content in contents.items():
                (building / file).write_bytes(content)
            carry_over(Path(out) / name, building, lambda path: path.as_posix() in contents)  # noqa: B023  # called now
    return [Path(out) / name for name in spaces]


def make_space_files(name: str) -> dict[str, bytes]:
    """Return file name -> content of one metric's Space.

    Raises:
        DataError: There is no such metric.
    """
    if name not in list_metric_names():
        raise DataError(describe_choice(name, list_metric_names()), argument="metric")
    source = get_metrics_folder()
    cards, module = source / "cards", join_module(source / f"{name}.py")
    contents = {
        "README.md": (cards / f"{name}.md").read_bytes(),
        "app.py": (source / "app.py").read_bytes(),
        "example.json": (cards / f"{name}.json").read_bytes(),
        f"{name}.py": module.encode(),
    }
    for picture in PICTURE.findall(contents["README.md"].decode()):
        contents[picture] = (cards / picture).read_bytes()
    lines = (source / "requirements.txt").read_bytes().splitlines(keepends=True)
    needed = [line for line in lines if "rapidfuzz" in module or not line.startswith(b"rapidfuzz")]
    return contents | {"requirements.txt": b"".join(needed)}


def join_module(path: Path) -> str:
    """Return a module and the leaves beside it that it imports, directly or through others, as the text of one file.

    Each leaf stands before what imports it, with its docstring as it is; no two may share a top-level name.

    Raises:
        DataError: A leaf is not imported by ``from .leaf import name`` at the top of the file.
    """
    joined: dict[str, str] = {}

    def join(path: Path) -> None:
        text = path.read_text(encoding="utf-8")
        tree, lines = ast.parse(text), text.splitlines(keepends=True)
        for node in ast.walk(tree):
            if not isinstance(node, ast.ImportFrom) or not (node.level or node.module == "__future__"):
                continue
            if node.level:
                renamed = any(alias.asname for alias in node.names)
                if node not in tree.body or node.level > 1 or not node.module or renamed:
                    message = "expected `from .leaf import name` at the top of the file, found another form"
                    raise DataError(message, file=path, line=node.lineno)
                if node.module not in joined:
                    join(path.with_name(f"{node.module}.py"))
            end = node.end_lineno or node.lineno
            lines[node.lineno - 1 : end] = [""] * (end - node.lineno + 1)
        joined[path.stem] = "".join(lines).strip("\n")

    join(path)
    parts = [f"# {'-' * 20} {stem}.py\n{text}" for stem, text in joined.items()]
    return "\n\n\n".join(["from __future__ import annotations", *parts]) + "\n"
