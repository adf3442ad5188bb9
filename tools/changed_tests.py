"""Print the test files that a change can reach: `make test-changed`.

A test file reaches the modules that it imports, and those that these import, imports inside functions included. A file
that is no module is reached with the modules of its folder. A test that starts processes, or finds modules by their
names, reaches the whole package.

    python -m tools.changed_tests --base main
"""

from __future__ import annotations

import argparse
import ast
import subprocess
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DOOR = "eraser_hub"
LINKED = ("metrics", "conversion", "datasets_scripts", "samples")
# words of a test that runs the package in another process, or finds modules by their names
EVERYTHING = ("subprocess", "CliRunner", "runpy", "walk_packages", "importlib", "evaluate.load", "source_copy")
# a change of one of these can reach every test
COMMON = {"setup.cfg", "pyproject.toml", "Makefile", "tests/conftest.py"}
# these name what they guard, and run nothing
GUARDS = ("tests.conftest", "tests.needs")


def git(*words: str) -> list[str]:
    """Return the lines that a git command prints."""
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()


def module_name(path: Path) -> str:
    """Return the dotted name of a file relative to the root, e.g. ``eraser_hub.metrics.spans``."""
    parts = path.with_suffix("").parts
    return ".".join((DOOR, *parts) if parts[0] in LINKED else parts).removesuffix(".__init__")


@cache
def modules() -> dict[str, Path]:
    """Return the project's modules by name, with their files relative to the root."""
    paths = map(Path, git("ls-files", "-co", "--exclude-standard", "--", "*.py"))
    return {module_name(path): path for path in paths if (ROOT / path).is_file()}


@cache
def imports(name: str) -> frozenset[str]:
    """Return the project's modules that run when a module does: those that it imports, and the packages around them.

    The door, ``eraser_hub/__init__.py``, names what it loads late in a table; whoever asks it for a name reaches all.
    """
    path = modules()[name]
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    found = set[str]()
    for node in _running(ast.parse((ROOT / path).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            asked = [(alias.name, "") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            asked = [(base, alias.name) for alias in node.names]
        elif isinstance(node, ast.Constant) and str(node.value).startswith(f"{DOOR}."):
            # a registry's folder, or the place of what is imported when it is needed: "package.module:name"
            place = str(node.value).partition(":")[0]
            found |= {each for each in modules() if each == place or each.startswith(f"{place}.")}
            continue
        else:
            continue
        for base, member in asked:
            whole = base == DOOR and f"{base}.{member}" not in modules()
            found |= set(_package()) if whole else set(_known(f"{base}.{member}"))
    return frozenset(found - {name})


def _running(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and those below it, without what stands there for type checkers alone."""
    yield node
    if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
        below: Iterable[ast.AST] = node.orelse
    else:
        below = ast.iter_child_nodes(node)
    for child in below:
        yield from _running(child)


def _known(dotted: str) -> Iterator[str]:
    """Yield the modules on the way to a dotted name; the package itself is loaded, too, but its late names are not."""
    parts = dotted.split(".")
    yield from (name for end in range(1, len(parts) + 1) if (name := ".".join(parts[:end])) in modules())


@cache
def _package() -> tuple[str, ...]:
    return tuple(name for name in modules() if name.partition(".")[0] in (DOOR, "tools", "examples", "benchmarks"))


def reached(test: Path) -> set[str]:
    """Return the names of the modules that a test file reaches, its own and its conftests' included."""
    todo = [module_name(test)]
    todo += [name for folder in test.parents if (name := module_name(folder / "conftest.py")) in modules()]
    seen = set[str]()
    while todo:
        name = todo.pop()
        if name not in seen:
            seen.add(name)
            todo += imports(name)
            todo += _package() if _runs_everything(name) else ()
    return seen


@cache
def _runs_everything(name: str) -> bool:
    """Return whether a test, or what it imports of tests/, has one of the words of `EVERYTHING`."""
    if not name.startswith("tests.") or name in GUARDS:
        return False
    source = (ROOT / modules()[name]).read_text(encoding="utf-8")
    return any(word in source for word in EVERYTHING)


def changed_modules(paths: list[str]) -> set[str]:
    """Return the modules that changed, and for every other file those of the nearest folder that has some."""
    changed = set[str]()
    for path in map(Path, paths):
        name = module_name(path) if path.suffix == ".py" else ""
        changed |= {name} if name in modules() else _beside(path)
    return changed


def _beside(path: Path) -> set[str]:
    for folder in path.parents:
        names = {name for name, file in modules().items() if file.parent == folder}
        if names and folder != Path():
            return names
    return set()


def selected(paths: list[str]) -> list[str]:
    """Return the test files that a change of these paths can reach, sorted.

    Args:
        paths: relative to the root, of files that changed, were added, or are gone.
    """
    tests = sorted(path for path in modules().values() if path.parts[0] == "tests" and path.name.startswith("test_"))
    gone = any(path.endswith(".py") and not (ROOT / path).exists() for path in paths)
    # fixtures lead to the samples, which no import names
    if gone or COMMON & set(paths) or any(path.startswith("samples/") for path in paths):
        return [path.as_posix() for path in tests]
    changed = changed_modules(paths)
    # pages and the repository's own files are read by tests that no import leads to
    pages = any("/" not in path or path.startswith(("docs/", ".")) for path in paths)
    return [
        path.as_posix()
        for path in tests
        if reached(path) & changed or (pages and path.parts[1] in ("docs", "tools", "test_repository.py"))
    ]


def main() -> None:
    """Print the selected test files, one a line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--base", default="HEAD", help="the commit to compare with; by default what is not committed")
    base = parser.parse_args().base
    (start,) = git("merge-base", base, "HEAD")
    paths = [*git("diff", "--name-only", "--no-renames", start), *git("ls-files", "-o", "--exclude-standard")]
    print("\n".join(selected(paths)))


if __name__ == "__main__":
    main()
