"""Every error says which rule is broken, and docs/errors.md has every rule."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from eraser_hub.records.errors import DataError, DataErrors
from eraser_hub.records.rules import Rule

pytestmark = pytest.mark.unit

ROOT = Path(__file__).resolve().parents[2]
RULES = set(get_args(Rule))
# these raise an error that is made elsewhere, or read one back
ERRORS = {"DataError", "BusyError"}


def sources() -> Iterator[tuple[Path, ast.Module]]:
    for folder in ("eraser_hub", "metrics", "conversion", "datasets_scripts"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield path.relative_to(ROOT), ast.parse(path.read_text(encoding="utf-8"))


def rules_named(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """The literal rules of a file, with their lines; both of ``rule="a" if .. else "b"``."""
    todo = [
        word.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        for word in node.keywords
        if word.arg == "rule"
    ]
    while todo:
        value = todo.pop()
        if isinstance(value, ast.IfExp):
            todo += [value.body, value.orelse]
        elif isinstance(value, ast.Constant):
            yield value.lineno, str(value.value)


def test_every_error_names_its_rule():
    bare = [
        f"{path}:{node.lineno}"
        for path, tree in sources()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ERRORS
        and not any(word.arg in ("rule", None) for word in node.keywords)
    ]
    assert not bare


def test_every_offence_of_the_metrics_names_a_known_rule():
    """Their rules are plain strings: no type checker compares them."""
    places = {"say": 4, "say_of": 4, "say_all": 4, "InputError": 1}
    faults = []
    for path, tree in sources():
        for node in ast.walk(tree) if path.parts[0] == "metrics" else ():
            name = getattr(getattr(node, "func", None), "attr", getattr(getattr(node, "func", None), "id", ""))
            if isinstance(node, ast.Call) and name in places and len(node.args) > places[name]:
                value = node.args[places[name]]
                if isinstance(value, ast.Constant) and value.value not in RULES:
                    faults.append(f"{path}:{node.lineno} {value.value}")
    assert not faults


def test_every_rule_that_is_named_is_known():
    unknown = [
        f"{path}:{line} {rule}" for path, tree in sources() for line, rule in rules_named(tree) if rule not in RULES
    ]
    assert not unknown


def test_no_rule_is_without_use():
    text = "\n".join(path.read_text("utf-8") for path in (ROOT / "eraser_hub").rglob("*.py") if path.name != "rules.py")
    for folder in ("metrics", "conversion", "datasets_scripts"):
        text += "\n".join(path.read_text("utf-8") for path in (ROOT / folder).rglob("*.py"))
    assert {rule for rule in RULES if f'"{rule}"' not in text} == set()


def test_the_page_has_every_rule_once():
    page = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"^\| `([a-z-]+)` \| ", page, re.MULTILINE)[4:]) == sorted(RULES)


def test_several_errors_have_the_rule_of_the_first():
    several = DataErrors([DataError("a", rule="type"), DataError("b", rule="range")])
    assert several.rule == "type" and [error.rule for error in several.errors] == ["type", "range"]
