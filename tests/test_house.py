"""The house as docs/architecture.md draws it: layers that use only those below them, no circles, sizes one can read.

An import inside a function counts, as it runs too; one below ``if TYPE_CHECKING`` does not.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
LAYERS = (  # lowest first; the door, eraser_hub/, uses them all
    "metrics", "papers", "records", "conversion", "datasets_scripts", "publishing", "scoring", "explain", "asking",
    "experiments", "reports",
)  # fmt: skip
MOST_FILES = 20
MOST_LINES = 70
# a number, files and how they are written; whoever wants them may have them
BASE = ("eraser_hub.version", "eraser_hub.samples", "eraser_hub.samples.plant")
LISTS = ("metrics", "eraser_hub/commands")  # `evaluate` wants its modules flat; a file a verb


@cache
def modules() -> dict[str, Path]:
    """The name of each module of the package -> its file: ``eraser_hub.X`` is the folder X, the door is eraser_hub/."""
    named = {}
    for folder in (*LAYERS, "eraser_hub", "samples"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            parts = parts if folder == "eraser_hub" else ("eraser_hub", *parts)
            named[".".join(parts).removesuffix(".__init__")] = path
    return named


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def statements(nodes: Iterable[ast.AST]) -> Iterator[ast.Import | ast.ImportFrom]:
    """The imports in syntax trees that run, in blocks and functions too."""
    for node in nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        else:
            for_types = isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")
            yield from statements(node.orelse if for_types else ast.iter_child_nodes(node))


def names_in(statement: ast.Import | ast.ImportFrom, module: str, path: Path) -> Iterator[tuple[str, str]]:
    """(module, name in it, or "") for each thing that a statement imports."""
    if isinstance(statement, ast.Import):
        yield from ((alias.name, "") for alias in statement.names)
        return
    package = module.split(".") if path.name == "__init__.py" else module.split(".")[:-1]
    above = package[: len(package) - statement.level + 1] if statement.level else []
    source = ".".join([*above, *([statement.module] if statement.module else [])])
    yield from ((source, alias.name) for alias in statement.names)


@cache
def uses(module: str) -> set[str]:
    """The modules of the package that a module imports."""
    path = modules()[module]
    imported = set()
    for statement in statements([tree(path)]):
        for source, name in names_in(statement, module, path):
            imported.add(f"{source}.{name}" if f"{source}.{name}" in modules() else source)
    return imported & modules().keys() - {module}


def layer(module: str) -> int:
    """The place of a module's folder among the layers; the door stands above all."""
    top = modules()[module].relative_to(ROOT).parts[0]
    return LAYERS.index(top) if top in LAYERS else len(LAYERS)


@pytest.mark.parametrize("folder", LAYERS)
def test_a_layer_uses_only_those_below_it(folder):
    upwards = [
        f"{module} uses {other}"
        for module in modules()
        if layer(module) == LAYERS.index(folder)
        for other in sorted(uses(module) - set(BASE))
        if layer(other) > layer(module)
    ]
    assert not upwards


def test_nothing_runs_in_circles():
    try:
        TopologicalSorter({module: uses(module) for module in modules()}).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def test_every_folder_of_the_architecture_stands():
    missing = [folder for folder in (*LAYERS, "eraser_hub", "docs") if not (ROOT / folder).is_dir()]
    assert not missing


def test_no_folder_is_crowded():
    files = Counter(path.parent.relative_to(ROOT).as_posix() for path in modules().values())
    assert not {folder: count for folder, count in files.items() if count > MOST_FILES and folder not in LISTS}


def test_a_class_has_a_name_of_its_own():
    """One name, one meaning."""
    named: dict[str, list[str]] = {}
    for module, path in modules().items():
        for node in tree(path).body:
            if isinstance(node, ast.ClassDef) and node.name[0] != "_":
                named.setdefault(node.name, []).append(module)
    assert not {name: places for name, places in named.items() if len(places) > 1}


def test_no_function_is_too_long_to_read():
    long = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}: {length} lines"
        for path in modules().values()
        for node in ast.walk(tree(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if (length := node.end_lineno - node.lineno + 1) > MOST_LINES
    ]
    assert not long


def test_the_rules_see_what_they_are_for(tmp_path):
    """A lazy import, a relative one and one for types alone, as the rules above read them."""
    path = tmp_path / "module.py"
    path.write_text(
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    from .types import Alone\nelse:\n    from .other import Run\n"
        "def late():\n    from ..records import errors\n    import eraser_hub.papers\n"
    )
    seen = [
        pair
        for statement in statements([tree(path)])
        for pair in names_in(statement, "eraser_hub.scoring.module", path)
    ]
    assert seen == [
        ("typing", "TYPE_CHECKING"),
        ("eraser_hub.scoring.other", "Run"),
        ("eraser_hub.records", "errors"),
        ("eraser_hub.papers", ""),
    ]
