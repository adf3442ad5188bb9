"""Metric Spaces: ``hub/NAME/`` with the module and all leaves that it needs as one file, card, app and requirements.

`evaluate.load` fetches the file NAME.py and asks the Hub again for each sibling that it imports, at every load. So a
Space's module is one file: `join_module` writes the leaves before it, and leaves out their relative imports.
"""

from __future__ import annotations

import ast
import os
import re
import sys
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from eraser_hub.conversion.built import read_card
from eraser_hub.conversion.files import carry_over, rebuild_folder
from eraser_hub.metrics.errors import DataError

# what a Space installs (requirements.txt); a module may import these and the standard library
LIBRARIES = frozenset({"evaluate", "datasets", "numpy", "pyarrow", "rapidfuzz"})
# the oldest Python that the pinned numpy has wheels for; a Space's default is older
PYTHON = "3.11"
PICTURE = re.compile(r"!\[[^\]]*\]\(([\w.-]+\.png)\)")  # beside a card, which shows it


def get_metrics_folder() -> Path:
    """Return the folder of the metric modules, in a checkout and in an installed package."""
    return Path(str(files("eraser_hub.metrics")))


def list_metric_names(source: Path | None = None) -> list[str]:
    """Return the names of the metrics: each card ``cards/NAME.md`` makes one Space."""
    return sorted(card.stem for card in ((source or get_metrics_folder()) / "cards").glob("*.md"))


def build_metrics(
    out: str | os.PathLike[str], names: Sequence[str] | None = None, source: Path | None = None
) -> list[Path]:
    """Write the Spaces' folders.

    Args:
        out: The folder that receives ``NAME/`` for each metric, e.g. ``hub``.
        names: The metrics; all by default.
        source: The folder of modules and cards, by default the package's own.

    Returns:
        The folders written, one per metric. A folder of that name is replaced as a whole, by renaming: a reader sees
        the old folder or the new one, never half of it. Nothing is written if any of the metrics is refused.

    Raises:
        DataError: An unknown name, a missing file, an import that a Space could not resolve, or a card without its
            YAML; a folder of that name that `build metrics` did not write.
    """
    source, out = source or get_metrics_folder(), Path(out)
    known = list_metric_names(source)
    names = known if names is None else list(dict.fromkeys(names))
    unknown = [name for name in names if name not in known]
    if unknown:
        message = f"expected one of {', '.join(known) or 'no metrics'}, found {', '.join(map(repr, unknown))}"
        raise DataError(message)
    spaces = {name: make_space_files(name, source) for name in names}
    for name in names:
        folder = out / name
        if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
            raise DataError("expected a folder or nothing, found a file or a link", file=folder)
        if folder.is_dir() and any(folder.iterdir()) and not (folder / f"{name}.py").is_file():
            message = f"expected a folder that `build metrics` wrote, found no {name}.py: take another `out`"
            raise DataError(message, file=folder)
    for name, contents in spaces.items():
        with rebuild_folder(out / name) as building:
            for file, content in contents.items():
                (building / file).write_bytes(content)
            carry_over(out / name, building, lambda path: path.as_posix() in contents)  # noqa: B023  # called at once
    return [out / name for name in names]


def make_space_files(name: str, source: Path | None = None) -> dict[str, bytes]:
    """Return file name -> content of one metric's Space.

    Raises:
        DataError: A missing file, an import that a Space could not resolve, or a card that no Space takes.
    """
    source = source or get_metrics_folder()
    card = source / "cards" / f"{name}.md"
    _, prose = read_space_card(card)
    paths = {"README.md": card, "app.py": source / "app.py", "requirements.txt": source / "requirements.txt"}
    paths |= {"example.json": card.with_suffix(".json")}
    paths |= {picture: card.parent / picture for picture in PICTURE.findall(prose)}
    for path in paths.values():
        if not path.is_file():
            raise DataError("expected a file, which the Space needs, found none", file=path)
    module = join_module(name, source)
    contents = {file: path.read_bytes() for file, path in paths.items()} | {f"{name}.py": module.encode()}
    if "rapidfuzz" not in module:
        lines = contents["requirements.txt"].splitlines(keepends=True)
        contents["requirements.txt"] = b"".join(line for line in lines if not line.startswith(b"rapidfuzz"))
    return dict(sorted(contents.items()))


def join_module(name: str, source: Path) -> str:
    """Return a module and the leaves that it imports, directly or through others, as the text of one file.

    Each leaf stands before what imports it, with its docstring as it is; no two may share a top-level name.

    Args:
        name: The module.
        source: The folder of the module and of all leaves.

    Raises:
        DataError: A file that is missing or no Python; an import that is not at the top of a file, renames a leaf's
            names, or asks for a package that a Space does not install.
    """
    joined: dict[str, str] = {}

    def join(stem: str) -> None:
        path = source / f"{stem}.py"
        try:
            text = path.read_text("utf-8")
            tree = ast.parse(text)
        except (OSError, ValueError, SyntaxError) as error:
            raise DataError(f"expected a Python file, found {error}", file=path) from None
        lines = text.splitlines(keepends=True)
        for node in ast.walk(tree):
            if not isinstance(node, (ast.Import, ast.ImportFrom)):
                continue
            module = node.module if isinstance(node, ast.ImportFrom) else node.names[0].name
            if isinstance(node, ast.ImportFrom) and node.level:
                if node not in tree.body or node.level > 1 or not module or any(alias.asname for alias in node.names):
                    message = "expected `from .leaf import name` at the top of the file, found another form"
                    raise DataError(message, file=path, line=node.lineno)
                if module not in joined:
                    join(module)
            elif str(module).partition(".")[0] not in LIBRARIES | sys.stdlib_module_names:
                message = f"expected a package that a Space installs, found {module}"
                raise DataError(message, file=path, line=node.lineno)
            if isinstance(node, ast.ImportFrom) and (node.level or module == "__future__"):
                end = node.end_lineno or node.lineno
                lines[node.lineno - 1 : end] = [""] * (end - node.lineno + 1)
        joined[stem] = "".join(lines).strip("\n")

    join(name)
    parts = [f"# {'-' * 20} {stem}.py\n{text}" for stem, text in joined.items()]
    return "\n\n\n".join(["from __future__ import annotations", *parts]) + "\n"


def read_space_card(path: Path) -> tuple[Mapping[str, Any], str]:
    """Read and check a Space's card, YAML and prose: title, gradio and its version, ``app.py``, two tags."""
    header, prose = read_card(path)
    expected = {"sdk": "gradio", "sdk_version": read_pin("gradio"), "python_version": PYTHON, "app_file": "app.py"}
    for key, value in expected.items():
        if str(header.get(key)) != value:
            raise DataError(f"expected {value!r}, found {header.get(key)!r}", file=path, field=key)
    if not header.get("title"):
        raise DataError("expected a title, found none", file=path, field="title")
    if not {"evaluate", "metric"} <= {*(header.get("tags") or [])}:
        raise DataError(f"expected 'evaluate' and 'metric', found {header.get('tags')}", file=path, field="tags")
    return header, prose


def read_pin(library: str) -> str:
    """Return the version of a library that Spaces use, as requirements.txt pins it."""
    file = get_metrics_folder() / "requirements.txt"
    match = re.search(rf"^{library}==(\S+)", file.read_text("utf-8"), flags=re.MULTILINE)
    if match is None:
        raise DataError(f"expected a line {library}==VERSION, found none", file=file)
    return match[1]
