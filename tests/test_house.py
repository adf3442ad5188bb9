"""The layers of docs/contributing.md: each uses only those below it, and nothing runs in circles.

An import inside a function counts; one below ``if TYPE_CHECKING`` names types alone, and counts for the layers.
"""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterable, Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

pytestmark = pytest.mark.unit

ROOT = Path(__file__).resolve().parent.parent
# lowest first; the door, eraser_hub/, uses them all
LOWER = (
    "metrics",
    "papers",
    "records",
    "conversion",
    "datasets_scripts",
    "scoring",
    "attribution",
    "systems",
    "asking",
)
LAYERS = (*LOWER, "reports", "experiments", "publishing")
# a number, files and how they are written; whoever wants them may have them
BASE = ("eraser_hub.version", "eraser_hub.samples", "eraser_hub.samples.plant")


@cache
def modules() -> dict[str, Path]:
    """The name of each module of the package -> its file; four subpackages are links to folders beside it."""
    found = {}
    for folder in (ROOT / "eraser_hub", *(path for path in (ROOT / "eraser_hub").iterdir() if path.is_symlink())):
        for path in sorted(folder.rglob("*.py")):
            found[".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")] = path
    return found


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def statements(nodes: Iterable[ast.AST]) -> Iterator[ast.Import | ast.ImportFrom]:
    """The imports in syntax trees, in blocks and functions too."""
    for node in nodes:
        yield from (each for each in ast.walk(node) if isinstance(each, ast.Import | ast.ImportFrom))


def names_in(statement: ast.Import | ast.ImportFrom, module: str, path: Path) -> Iterator[tuple[str, str]]:
    """(module, name in it, or "") for each thing that a statement imports."""
    if isinstance(statement, ast.Import):
        yield from ((alias.name, "") for alias in statement.names)
        return
    package = module.split(".") if path.name == "__init__.py" else module.split(".")[:-1]
    above = package[: len(package) - statement.level + 1] if statement.level else []
    source = ".".join([*above, *([statement.module] if statement.module else [])])
    yield from ((source, alias.name) for alias in statement.names)


def is_type_checking(node: ast.AST) -> bool:
    """Whether a statement is ``if TYPE_CHECKING``."""
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


@cache
def uses(module: str, types: bool = True) -> set[str]:
    """The modules of the package that a module imports, with those for types alone or without."""
    path = modules()[module]
    imported = set()
    for statement in statements(node for node in tree(path).body if types or not is_type_checking(node)):
        for source, name in names_in(statement, module, path):
            imported.add(f"{source}.{name}" if f"{source}.{name}" in modules() else source)
    return imported & modules().keys() - {module}


def layer(module: str) -> int:
    """The place of a module's folder among the layers; the door stands above all."""
    top = module.split(".")[1:2]
    return LAYERS.index(top[0]) if top and top[0] in LAYERS else len(LAYERS)


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
        TopologicalSorter({module: uses(module, types=False) for module in modules()}).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def test_what_the_hub_sees_stands_at_the_top_level_and_is_a_subpackage():
    """Relative links, which a clone, a build and every tool that reads the folder follow; no other link is tracked."""
    names = ("conversion", "datasets_scripts", "metrics", "samples")
    links = {path.name: path.readlink().as_posix() for path in (ROOT / "eraser_hub").iterdir() if path.is_symlink()}
    assert links == {name: f"../{name}" for name in names}
    listed = subprocess.run(["git", "ls-files", "-s"], cwd=ROOT, capture_output=True, text=True, check=False).stdout
    tracked = [line.partition("\t")[2] for line in listed.splitlines() if line.startswith("120000 ")]
    assert sorted(tracked) in ([], [f"eraser_hub/{name}" for name in names]), "none where there is no checkout"
