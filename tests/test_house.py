"""The house as docs/architecture.md draws it: layers that use only those below them, no circles, sizes one can read.

An import inside a function counts, as does one below ``if TYPE_CHECKING``.
"""

from __future__ import annotations

import ast
import re
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tools.prose import faults

pytestmark = pytest.mark.unit

ROOT = Path(__file__).resolve().parent.parent
# lowest first; the door, eraser_hub/, uses them all
LOWER = ("schema", "metrics", "papers", "records", "conversion", "datasets_scripts", "publishing")
LAYERS = (*LOWER, "scoring", "attribution", "systems", "asking", "experiments", "reports")
MOST_FILES = 20
MOST_LINES = 70
# a number, files and how they are written; whoever wants them may have them
BASE = ("eraser_hub.version", "eraser_hub.samples", "eraser_hub.samples.plant")
LISTS = ("metrics", "cli")  # `evaluate` wants its modules flat; a file a verb


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
        TopologicalSorter({module: uses(module) for module in modules()}).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def test_every_folder_of_the_architecture_stands():
    missing = [folder for folder in LAYERS if not (ROOT / "eraser_hub" / folder).is_dir()]
    assert not missing


def test_what_the_hub_sees_stands_at_the_top_level_and_is_a_subpackage():
    """Relative links, which a clone, a build and every tool that reads the folder follow."""
    links = {path.name: path.readlink().as_posix() for path in (ROOT / "eraser_hub").iterdir() if path.is_symlink()}
    assert links == {name: f"../{name}" for name in ("metrics", "conversion", "datasets_scripts", "samples")}


def test_no_test_imports_a_module_by_another_name():
    """`metrics.spans` beside `eraser_hub.metrics.spans` would be two modules of one file."""
    top = {"metrics", "conversion", "datasets_scripts", "samples"}
    twice = [
        f"{path.relative_to(ROOT)}:{statement.lineno}"
        for folder in ("eraser_hub", "tests", "benchmarks", "examples", "docs", "tools")
        for path in (ROOT / folder).rglob("*.py")
        for statement in statements([tree(path)])
        for source, _ in names_in(statement, "x", path)
        if not getattr(statement, "level", 0) and source.split(".")[0] in top
    ]
    assert not twice


def test_no_folder_is_crowded():
    files = Counter(path.parent.relative_to(ROOT / "eraser_hub").as_posix() for path in modules().values())
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
        if (length := (node.end_lineno or node.lineno) - node.lineno + 1) > MOST_LINES
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
    assert sorted(seen) == [
        ("eraser_hub.papers", ""),
        ("eraser_hub.records", "errors"),
        ("eraser_hub.scoring.other", "Run"),
        ("eraser_hub.scoring.types", "Alone"),
        ("typing", "TYPE_CHECKING"),
    ]


def replaced_words() -> set[str]:
    """The words that the table of CONTRIBUTING.md replaces."""
    table = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("## Vocabulary")[2].partition("\n## ")[0]
    rows = [line.split("|") for line in table.splitlines() if line.startswith("| ")]
    return {word for row in rows for word in re.findall(r"`(\w+)`", row[3])}


def names_defined(module: ast.Module) -> Iterator[str]:
    """The names that a module gives to functions, classes, arguments and variables."""
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr


# names that files or users of 2.0 hold
CONTRACT = {"GIVEN"}


def test_no_name_is_of_the_replaced_words():
    words = replaced_words()
    assert {"strangers", "told", "ways"} <= words
    odd = []
    for module, path in modules().items():
        for name in set(names_defined(tree(path))) - CONTRACT:
            parts = {part.lower() for part in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)}
            odd += [f"{module}:{name}"] * bool(parts & words)
    assert not odd


OPENINGS = ("What ", "Whether ", "How ", "Where ", "Who ", "That ", "As ", "Of ")


def test_docstrings_begin_with_a_verb_or_a_noun():
    odd = []
    for module, path in modules().items():
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module):
                text = ast.get_docstring(node) or ""
                odd += [f"{module}:{getattr(node, 'name', '')}"] * text.startswith(OPENINGS)
                odd += [f"{module}: {words}" for _, words in faults(text)]
    assert not odd


def test_tracked_links_lead_to_folders_of_the_package() -> None:
    """A tracked link to a virtual environment would take the place of that of another checkout."""
    listed = subprocess.run(["git", "ls-files", "-s"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("skipped: no checkout")
    links = [line.partition("\t")[2] for line in listed.stdout.splitlines() if line.startswith("120000 ")]
    assert sorted(links) == [f"eraser_hub/{name}" for name in ("conversion", "datasets_scripts", "metrics", "samples")]
