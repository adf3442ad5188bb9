"""The promises of SECURITY.md: each row names a test that is there; and the sandbox of templates."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from .refusals import refused

ROOT = Path(__file__).resolve().parent.parent
ROWS = re.findall(r"^\| (?!input|---)(.+?) \|.*\| (.+?) \|$", (ROOT / "SECURITY.md").read_text("utf-8"), re.MULTILINE)


@pytest.mark.parametrize(("promise", "tests"), ROWS)
def test_a_promise_has_a_test(promise: str, tests: str) -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", tests)
    assert named
    for path, name in named:
        tree = ast.parse((ROOT / path).read_text("utf-8"))
        functions = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        assert not name or name in functions, (path, name)


@pytest.mark.parametrize("code", ["{{ ''.__class__.__mro__ }}", "{{ documents.append.__globals__ }}", "{% for"])
def test_a_template_reaches_nothing_of_python(tmp_path: Path, code: str) -> None:
    from eraser_hub.attribution.prompts import QUOTES, open_prompt

    (tmp_path / "own.jinja").write_text(code)
    with refused(argument="prompt"):
        open_prompt("movies", tmp_path / "own.jinja").render("user", [], "", ["NEG", "POS"], QUOTES)
