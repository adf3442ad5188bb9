"""Metric Spaces: ``hub/NAME/`` with the module, the leaves that it needs, card, app and requirements.

A module and its leaves lie anywhere below ``metrics/`` and may import ``eraser_hub.schema``. A Space is flat and has no
``eraser_hub``: the loader of ``evaluate`` fetches only the siblings that ``NAME.py`` itself names, one
``from .leaf import ..`` per line. `build_metrics` assembles such folders: it follows the imports, rewrites them for the
flat folder, and names in ``NAME.py`` the leaves that its leaves need. Other files are copied unchanged. Imports that
``evaluate.load`` could not resolve on a user's machine are refused.
"""

from __future__ import annotations

import ast
import os
import re
import sys
import tempfile
from collections.abc import Collection, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeAlias

from eraser_hub.records.atomic import carry_over, rebuild_folder
from eraser_hub.records.built import read_card
from eraser_hub.records.errors import DataError, DataErrors, raise_all
from eraser_hub.records.rules import Rule

# what a Space installs (metrics/requirements.txt); a module may import these and the standard library
LIBRARIES = frozenset({"evaluate", "datasets", "huggingface_hub", "numpy", "pyarrow", "rapidfuzz"})
_INSTALLED = LIBRARIES | sys.stdlib_module_names  # of which __future__ is one
# the oldest Python that the pinned numpy has wheels for; a Space's default is older
PYTHON = "3.11"
APP = ("app.py", "app_rows.py", "app_scores.py", "score_explanations.py")
ALL_TOGETHER = (*APP, "catalogue.json", "requirements.txt")
# a file's name below eraser_hub, part by part: ("metrics", "kernels", "spans")
Parts: TypeAlias = tuple[str, ...]
_Imports: TypeAlias = list[tuple[int, Parts]]  # of a file: line, from 1, and leaf
_PICTURE = re.compile(r"!\[[^\]]*\]\(([\w.-]+\.png)\)")  # beside a card, which shows it
_SIBLING = re.compile(rb"^(from )\.(?=\w)", flags=re.MULTILINE)
_FROM = re.compile(r"^(from\s+)[\w.]+(?=\s+import\b)")


def get_metrics_folder() -> Path:
    """Return the folder of the metric modules, in a checkout and in an installed package."""
    return Path(str(files("eraser_hub.metrics")))


def list_metric_names(source: Path | None = None) -> list[str]:
    """Return the names of the metrics: each card ``cards/NAME.md`` makes one Space."""
    return sorted(card.stem for card in ((source or get_metrics_folder()) / "cards").glob("*.md"))


def build_metrics(
    out: str | os.PathLike[str], names: Sequence[str] | None = None, source: Path | None = None
) -> list[Path]:
    """Assemble the Spaces' folders.

    Args:
        out: The folder that receives ``NAME/`` for each metric, e.g. ``hub``.
        names: The metrics; all by default.
        source: The folder of modules and cards, by default the package's own.

    Returns:
        The folders written, one per metric. A folder of that name is replaced as a whole, by renaming: a reader sees
        the old folder or the new one, never half of it. Nothing is written if any of the metrics is refused.

    Raises:
        DataError: An unknown name, a missing file, an import that a Space could not resolve, or a card without its
            YAML.
    """
    source, out = source or get_metrics_folder(), Path(out)
    known = list_metric_names(source)
    names = known if names is None else list(dict.fromkeys(names))
    unknown = [name for name in names if name not in known]
    if unknown:
        message = f"no metric {', '.join(map(repr, unknown))}: there are {', '.join(known) or 'none'}"
        raise DataError(message, rule="option-value")
    contents, errors = {}, []
    for name in names:
        try:
            contents[name] = make_space_files(name, source)
        except DataErrors as error:
            errors.extend(error.errors)
        except DataError as error:
            errors.append(error)
    raise_all(errors)
    for name in contents:
        _refuse_others(out / name, f"{name}.py")
    written = {path.name for path in source.rglob("*")}
    written |= {"README.md", *(path for files_of in contents.values() for path in files_of)}
    for name, files_of in contents.items():
        _write_space(out / name, files_of, written)
    return [out / name for name in contents]


def make_space_files(name: str, source: Path | None = None) -> dict[str, bytes]:
    """Return path -> content of all files of one metric's Space."""
    source = source or get_metrics_folder()
    module = next(iter(sorted(source.rglob(f"{name}.py"))), source / f"{name}.py")
    contents = space_code(module, source)
    card = source / "cards" / f"{name}.md"
    _, prose = read_space_card(card)
    paths = {"README.md": card, **{file: source / file for file in ALL_TOGETHER}}
    if (example := card.with_suffix(".json")).is_file():
        paths["example.json"] = example
    paths |= {picture: card.parent / picture for picture in _PICTURE.findall(prose)}
    raise_all([_make_missing_error(path) for path in paths.values() if not path.is_file()])
    contents |= {target: path.read_bytes() for target, path in paths.items()}
    # a page's files are scripts: `from .leaf import` becomes `from leaf import`
    contents |= {file: _SIBLING.sub(rb"\1", contents[file]) for file in APP}
    return dict(sorted(contents.items()))


def space_code(module: Path, source: Path | None = None) -> dict[str, bytes]:
    """Return a metric's module and its leaves, in the form of its Space.

    Args:
        module: The file of the metric's module.
        source: The folder of metric modules, whose sibling ``schema`` is the schema; by default the module's own.

    Returns:
        File name in the Space -> content. ``metrics/a/b.py`` becomes ``b.py``, ``schema/c.py`` ``schema_c.py``; lines
        keep their numbers.

    Raises:
        DataError: A file is missing or is not Python; a relative import not of the form ``from .leaf import name``; an
            import of a package that a Space does not install; two files of equal name in the Space; an import line that
            the loader of ``evaluate`` reads differently from Python.
    """
    source = source or module.parent
    folders = {"metrics": source, "schema": source.with_name("schema")}
    errors: list[DataError] = []
    first: Parts = ("metrics", *module.relative_to(source).with_suffix("").parts)
    code: dict[Parts, tuple[str, _Imports]] = {}
    waiting = [first]
    while waiting:
        parts = waiting.pop()
        code[parts] = _read_imports(_find_file(parts, folders), parts, folders, errors)
        waiting += [target for _, target in code[parts][1] if target not in code]
    owners = {Path(file).stem: source / file for file in ALL_TOGETHER}
    for parts in code:
        file = _find_file(parts, folders)
        if (owner := owners.setdefault(_flatten_name(parts), file)) != file:
            message = f"expected a name of its own, found {_flatten_name(parts)}.py in the Space for {owner} too"
            errors.append(DataError(message, rule="code", file=file))
    raise_all(errors)
    contents = {}
    for parts, (text, imports) in code.items():
        lines = text.split("\n")
        for line, target in imports:
            lines[line - 1] = _FROM.sub(rf"\1.{_flatten_name(target)}", lines[line - 1])
        contents[f"{_flatten_name(parts)}.py"] = "\n".join(lines)
    leaves = {_flatten_name(parts) for parts in code} - {module.stem}
    if further := sorted(leaves - {_flatten_name(target) for _, target in code[first][1]}):
        names = "".join(f"from .{leaf} import __name__ as _\n" for leaf in further)
        contents[module.name] += f"\n# needed by the leaves: evaluate's loader fetches what this file names\n{names}"
    _check_loader(module, contents[module.name], sorted(leaves))
    return {name: text.encode() for name, text in contents.items()}


def _find_file(parts: Parts, folders: Mapping[str, Path]) -> Path:
    return folders[parts[0]].joinpath(*parts[1:-1], f"{parts[-1]}.py")


def _flatten_name(parts: Parts) -> str:
    """Return a leaf's name in a Space; names of the schema get a prefix, since metrics use the same words."""
    return parts[-1] if parts[0] == "metrics" else "_".join(parts)


def _check_loader(module: Path, text: str, leaves: Sequence[str]) -> None:
    """Refuse import lines that the loader of ``evaluate`` reads differently from Python."""
    from evaluate.loading import get_imports

    with tempfile.TemporaryDirectory(prefix="eraser-hub-") as aside:
        written = Path(aside) / module.name
        written.write_bytes(text.encode())
        imports = get_imports(str(written))
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


def _read_imports(
    path: Path, parts: Parts, folders: Mapping[str, Path], errors: list[DataError]
) -> tuple[str, _Imports]:
    """Return a file's text and the leaves that it imports; append faults to ``errors``."""
    try:
        text = path.read_bytes().decode("utf-8")
        tree = ast.parse(text, filename=str(path))
    except FileNotFoundError:
        errors.append(_make_missing_error(path))
        return "", []
    except (SyntaxError, ValueError) as error:
        rule: Rule = "encoding" if isinstance(error, UnicodeDecodeError) else "code"
        errors.append(DataError(f"no Python: {error}", rule=rule, file=path, line=getattr(error, "lineno", None)))
        return "", []
    leaves, lines = [], text.split("\n")
    for node in ast.walk(tree):
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        wrong, target = [], _find_target(node, parts)
        file = path if target is None else _find_file(target, folders)
        if isinstance(node, ast.Import) or (target is None and not node.level):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
            foreign = (name for name in names if name.partition(".")[0] not in _INSTALLED)
            wrong = [f"imports {name}, which a Space does not install" for name in foreign]
        elif target is None or (not file.exists() and file.with_suffix("").is_dir()):
            wrong = ["expected `from .leaf import name`"]
        elif not _FROM.match(lines[node.lineno - 1]):
            wrong = ["an import inside a block, or broken before its names, is not read by evaluate's loader"]
        else:
            leaves.append((node.lineno, target))
        errors += [DataError(message, rule="code", file=path, line=node.lineno) for message in wrong]
    return text, leaves


def _find_target(node: ast.Import | ast.ImportFrom, parts: Parts) -> Parts | None:
    """Return the name of the leaf that a file imports from, in parts; None if it is not a leaf."""
    if isinstance(node, ast.Import):
        return None
    names = tuple((node.module or "").split("."))
    target = (*parts[: max(0, len(parts) - node.level)], *names) if node.level else names[1:]
    known = target[0] in ("metrics", "schema") if len(target) > 1 else False
    return target if known and node.module and (node.level or names[0] == "eraser_hub") else None


def read_space_card(path: Path) -> tuple[dict[str, Any], str]:
    """Read and check a Space's card, YAML and prose: title, gradio and its version, ``app.py``, two tags."""
    header, prose = read_card(path)
    expected = {"sdk": "gradio", "sdk_version": read_pin("gradio"), "python_version": PYTHON, "app_file": "app.py"}
    errors = [
        DataError(f"expected {value!r}, found {header.get(key)!r}", rule="code", file=path, field=key)
        for key, value in expected.items()
        if str(header.get(key)) != value
    ]
    words = {"expected a title": "title"} if not header.get("title") else {}
    tags = header.get("tags") or []
    words |= {f"expected {tag!r} among them": "tags" for tag in ("evaluate", "metric") if tag not in tags}
    raise_all([*errors, *(DataError(each, rule="code", file=path, field=key) for each, key in words.items())])
    return header, prose


def read_pin(library: str) -> str:
    """Return the version of a library that Spaces use, as metrics/requirements.txt pins it."""
    file = get_metrics_folder() / "requirements.txt"
    match = re.search(rf"^{library}==(\S+)", file.read_text("utf-8"), flags=re.MULTILINE)
    if match is None:
        raise DataError(f"expected a line {library}==VERSION", rule="code", file=file)
    return match[1]


def _make_missing_error(path: Path) -> DataError:
    return DataError("no such file; the Space needs it", rule="file-missing", file=path)


def _refuse_others(folder: Path, marker: str) -> None:
    """Refuse a folder that holds other files, and not the Space's own ``marker``."""
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise DataError("expected a folder or nothing, found a file or a link", rule="file-kind", file=folder)
    if folder.is_dir() and any(folder.iterdir()) and not (folder / marker).is_file():
        message = f"expected a folder that `build metrics` wrote, found no {marker}; what stands there is not replaced"
        raise DataError(f"{message}: take another `out`", rule="file-exists", file=folder)


def _write_space(folder: Path, contents: Mapping[str, bytes], ours: Collection[str]) -> None:
    """Write a Space's folder at once; files of other names than ``ours`` are kept."""
    with rebuild_folder(folder) as building:
        for name, content in contents.items():
            (building / name).parent.mkdir(parents=True, exist_ok=True)
            (building / name).write_bytes(content)
        carry_over(folder, building, lambda path: path.as_posix() in ours)
