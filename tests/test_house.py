"""The layers of docs/contributing.md: each uses only those below it, and nothing runs in circles.

An import inside a function counts; one below ``if TYPE_CHECKING`` names types alone, and counts for the layers.
"""

from __future__ import annotations

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

pytestmark = pytest.mark.unit

ROOT = Path(__file__).resolve().parent.parent
# lowest first; the door, eraser_hub/, uses them all
LOWER = ("metrics", "papers", "records", "conversion", "datasets_scripts", "scoring", "attribution", "systems")
LAYERS = (*LOWER, "asking", "reports", "experiments", "publishing")
# a number, files and how they are written; whoever wants them may have them
BASE = {"eraser_hub.version", "eraser_hub.samples", "eraser_hub.samples.plant"}
LINKS = [path for path in (ROOT / "eraser_hub").iterdir() if path.is_symlink()]
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for folder in (ROOT / "eraser_hub", *LINKS)
    for path in sorted(folder.rglob("*.py"))
}


def uses(module: str, types: bool = True) -> set[str]:
    """The modules of the package that a module imports, with those for types alone or without."""
    path, found = MODULES[module], set()
    package = module.split(".") if path.name == "__init__.py" else module.split(".")[:-1]
    body = ast.parse(path.read_text(encoding="utf-8")).body
    if not types:
        body = [node for node in body if not (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")]
    for node in (inner for outer in body for inner in ast.walk(outer)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            source = ".".join([*above, *([node.module] if node.module else [])])
            names = (f"{source}.{alias.name}" for alias in node.names)
            found |= {name if name in MODULES else source for name in names}
    return found & MODULES.keys() - {module}


def layer(module: str) -> int:
    """The place of a module's folder among the layers; the door stands above all."""
    folder = module.split(".")[1:2]
    return LAYERS.index(folder[0]) if folder and folder[0] in LAYERS else len(LAYERS)


def test_a_layer_uses_only_those_below_it():
    upwards = [(one, other) for one in MODULES for other in uses(one) - BASE if layer(other) > layer(one)]
    assert upwards == []


def test_nothing_runs_in_circles():
    TopologicalSorter({module: uses(module, types=False) for module in MODULES}).prepare()


def test_what_the_hub_sees_stands_at_the_top_level_and_is_a_subpackage():
    names = ("conversion", "datasets_scripts", "metrics", "samples")
    assert {link.name: link.readlink().as_posix() for link in LINKS} == {name: f"../{name}" for name in names}
