"""Metric Spaces: ``hub/NAME/`` with the module, exactly the leaves that it imports, card, app and requirements.

The modules lie flat in ``metrics/``; a Space wants each in a folder of its own. `build_metrics` assembles these
folders, so that there is one source and no copy in the repository. What it refuses is what ``evaluate.load`` would
stumble over later, on a user's machine: its loader reads import lines by regular expression and fetches only the
siblings that ``NAME.py`` names itself, one ``from .leaf import ..`` a line. A leaf may import leaves; the module then
names those as well (`from .leaf import name as name` where it does not use them), and no leaf that nothing needs.
"""

from __future__ import annotations

import ast
import os
import re
import sys
from collections.abc import Collection, Iterable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from eraser_hub.records.atomic import carry_over, rebuilding
from eraser_hub.records.built import read_card
from eraser_hub.records.errors import DataError, DataErrors, raise_all
from eraser_hub.records.rules import Rule

# what a Space installs (metrics/requirements.txt); a module may import these and the standard library
LIBRARIES = frozenset({"evaluate", "datasets", "huggingface_hub", "numpy", "pyarrow"})
# the oldest Python that the pinned numpy has wheels for; a Space's default is older
PYTHON = "3.11"
ALL_TOGETHER = ("app.py", "requirements.txt")


def metrics_folder() -> Path:
    """The folder of the metric modules, in a checkout as in an installed package."""
    return Path(str(files("eraser_hub.metrics")))


def metric_names(source: Path | None = None) -> list[str]:
    """The metrics that there are: every card ``cards/NAME.md`` makes one Space."""
    return sorted(card.stem for card in ((source or metrics_folder()) / "cards").glob("*.md"))


def build_metrics(
    out: str | os.PathLike[str], names: Sequence[str] | None = None, source: Path | None = None
) -> list[Path]:
    """Assemble the Spaces' folders.

    Args:
        out: the folder that receives ``NAME/`` for each metric, e.g. ``hub``.
        names: the metrics; all by default.
        source: the folder of modules and cards, by default the package's own.

    Returns:
        The folders written, one per metric. A folder of that name is replaced as a whole, by renaming: a reader sees
        the old folder or the new one, never half of it. Nothing is written when any of the metrics is refused.

    Raises:
        DataError: an unknown name, a missing file, an import that a Space could not resolve, a card without its YAML.
    """
    source, out = source or metrics_folder(), Path(out)
    known = metric_names(source)
    names = known if names is None else list(dict.fromkeys(names))
    unknown = [name for name in names if name not in known]
    if unknown:
        message = f"no metric {', '.join(map(repr, unknown))}: there are {', '.join(known) or 'none'}"
        raise DataError(message, rule="option-value")
    contents, errors = {}, []
    for name in names:
        try:
            contents[name] = space_files(name, source)
        except DataErrors as error:
            errors.extend(error.errors)
        except DataError as error:
            errors.append(error)
    raise_all(errors)
    for name in contents:
        _refuse_others(out / name, name)
    written = {path.name for path in source.iterdir()} | {path.name for path in (source / "cards").iterdir()}
    written |= {"README.md", *(path for files_of in contents.values() for path in files_of)}
    return [_write_folder(out / name, files_of, written) for name, files_of in contents.items()]


def space_files(name: str, source: Path | None = None) -> dict[str, bytes]:
    """Path in the Space -> content, all that belongs to the Space of one metric."""
    source = source or metrics_folder()
    module = source / f"{name}.py"
    leaves = imported_leaves(module)
    card = source / "cards" / f"{name}.md"
    _, prose = space_card(card)
    paths = {"README.md": card, **{f"{stem}.py": source / f"{stem}.py" for stem in (name, *leaves)}}
    paths |= {file: source / file for file in ALL_TOGETHER}
    paths |= {picture: card.parent / picture for picture in _pictures(prose)}
    missing = [
        DataError("no such file; the Space needs it", rule="file-missing", file=path)
        for path in paths.values()
        if not path.is_file()
    ]
    raise_all(missing)
    return {target: path.read_bytes() for target, path in sorted(paths.items())}


def imported_leaves(module: Path) -> list[str]:
    """The siblings that a metric module imports, checked to be all that a Space needs, and no more.

    Returns:
        Their names without ``.py``, sorted.

    Raises:
        DataError: the file is missing or no Python; a relative import not of the form ``from .leaf import name``; an
            import of something that a Space does not install; a leaf that the module's leaves need and the module does
            not name; one that it names and nothing uses; an import line that the loader of ``evaluate`` reads otherwise
            than Python does.
    """
    errors: list[DataError] = []
    imports = {module.stem: _imports(module, errors)}
    leaves = sorted(imports[module.stem])
    for leaf in leaves:
        path = module.with_name(f"{leaf}.py")
        imports[leaf] = _imports(path, errors)
        for further in sorted(imports[leaf].keys() - imports[module.stem].keys() - {module.stem}):
            message = f"imports .{further}, which {module.name} does not import: the loader would not fetch it"
            errors.append(DataError(message, rule="code", file=path))
    needed = {leaf for leaf, used in imports[module.stem].items() if used}
    while more := {leaf for name in needed for leaf in imports.get(name, ())} - needed:
        needed |= more
    for leaf in sorted(imports[module.stem].keys() - needed):
        errors.append(DataError(f"names .{leaf}, which neither it nor a leaf of it uses", rule="code", file=module))
    raise_all(errors)
    _check_loader(module, leaves)
    return leaves


def _check_loader(module: Path, leaves: Sequence[str]) -> None:
    """Refuse import lines that the loader of ``evaluate`` reads otherwise than Python does."""
    from evaluate.loading import get_imports

    imports = get_imports(str(module))
    fetched = sorted({name for kind, name, _, _ in imports if kind == "internal"})
    if fetched != leaves:
        raise DataError(
            f"evaluate's loader would fetch {', '.join(fetched) or 'nothing'} where Python imports "
            f"{', '.join(leaves) or 'nothing'}: write each as one line `from .leaf import name`, no comment behind it",
            rule="code",
            file=module,
        )
    for kind, name, _, _ in imports:
        if kind == "external" or not name.isidentifier():
            message = f"evaluate's loader cannot read the import of {name!r}: one module a line"
            raise DataError(message, rule="code", file=module)


def _imports(path: Path, errors: list[DataError]) -> dict[str, bool]:
    """The leaves that one file imports, and whether it uses them: offences go to ``errors``.

    ``from .leaf import name as name`` alone names a leaf for the loader and uses nothing of it.
    """
    try:
        tree = ast.parse(_read(path), filename=str(path))
    except (SyntaxError, ValueError) as error:
        rule: Rule = error.rule if isinstance(error, DataError) else "code"
        errors.append(DataError(f"no Python: {error}", rule=rule, file=path, line=getattr(error, "lineno", None)))
        return {}
    leaves: dict[str, bool] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                _check_library(alias.name, path, node.lineno, errors)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            _check_library(node.module or "", path, node.lineno, errors)
        elif isinstance(node, ast.ImportFrom):
            if node.level != 1 or not node.module or "." in node.module:
                errors.append(DataError("expected `from .leaf import name`", rule="code", file=path, line=node.lineno))
                continue
            if node.col_offset:
                message = "an import inside a block is not imports by evaluate's loader"
                errors.append(DataError(message, rule="code", file=path, line=node.lineno))
            used = any(alias.asname != alias.name for alias in node.names)
            leaves[node.module] = leaves.get(node.module, False) or used
    return leaves


def _check_library(name: str, path: Path, line: int, errors: list[DataError]) -> None:
    top = name.partition(".")[0]
    if top not in LIBRARIES and top not in sys.stdlib_module_names and top != "__future__":
        errors.append(DataError(f"imports {name}, which a Space does not install", rule="code", file=path, line=line))


def space_card(path: Path) -> tuple[dict[str, Any], str]:
    """A Space's card, its YAML and its prose, checked: title, gradio and its version, ``app.py``, the two tags."""
    header, prose = read_card(path)
    expected = {"sdk": "gradio", "sdk_version": gradio_version(), "python_version": PYTHON, "app_file": "app.py"}
    errors = [
        DataError(f"expected {value!r}, found {header.get(key)!r}", rule="code", file=path, field=key)
        for key, value in expected.items()
        if str(header.get(key)) != value
    ]
    if not header.get("title"):
        errors.append(DataError("expected a title", rule="code", file=path, field="title"))
    tags = header.get("tags") or []
    errors += [
        DataError(f"expected {tag!r} among them", rule="code", file=path, field="tags")
        for tag in ("evaluate", "metric")
        if tag not in tags
    ]
    raise_all(errors)
    return header, prose


def gradio_version() -> str:
    """The gradio that Spaces run on, as metrics/requirements.txt pins it."""
    match = re.search(r"^gradio==(\S+)", _read(metrics_folder() / "requirements.txt"), flags=re.MULTILINE)
    if match is None:
        raise DataError("expected a line gradio==VERSION", rule="code", file=metrics_folder() / "requirements.txt")
    return match[1]


def _pictures(card: str) -> Iterable[str]:
    """The pictures beside the card that it shows."""
    return sorted(set(re.findall(r"!\[[^\]]*\]\(([\w.-]+\.png)\)", card)))


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise DataError("no such file; the Space needs it", rule="file-missing", file=path) from None
    except UnicodeDecodeError as error:
        raise DataError(f"no UTF-8: {error}", rule="encoding", file=path) from None


def _refuse_others(folder: Path, name: str) -> None:
    """Refuse a folder that is no Space of this metric: it holds somebody's files."""
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise DataError("expected a folder or nothing, found a file or a link", rule="file-kind", file=folder)
    if folder.is_dir() and any(folder.iterdir()) and not (folder / f"{name}.py").is_file():
        message = f"expected a folder that `build metrics` wrote, found no {name}.py; what stands there is not replaced"
        raise DataError(f"{message}: take another --out", rule="file-exists", file=folder)


def _write_folder(folder: Path, contents: dict[str, bytes], written: Collection[str]) -> Path:
    """Write a Space's folder; files of other names than builds write are people's, and stay."""
    with rebuilding(folder) as building:
        for name, content in contents.items():
            (building / name).write_bytes(content)
        carry_over(folder, building, lambda path: len(path.parts) == 1 and path.name in written)
    return folder
