"""Issues: what programs read of them, how they are counted, and that each names its rule."""

from __future__ import annotations

import ast
import pickle
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

from eraser_hub.metrics.issues import InputError, Issues, IssuesByRule, RowNames
from eraser_hub.records.rules import Rule

from ..refusals import refused

pytestmark = pytest.mark.unit

METRICS = Path(__file__).resolve().parents[2] / "metrics"
TELL = {"say", "say_of", "say_all", "_say", "tell", "InputError"}


def rules_of(path: Path) -> list[str]:
    """The rule of each issue that a file tells: its keyword, its last argument, or the second of an `InputError`.

    A reader's ``expect`` has "type" where it names none.
    """
    rules = []
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == "expect":
            rules += [ast.literal_eval(one) for one in node.args[4:]]
        elif isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in TELL:
            named = [one.value for one in node.keywords if one.arg == "rule"]
            (rule,) = named or [node.args[1] if ast.unparse(node.func) == "InputError" else node.args[-1]]
            rules.append("passed on" if ast.unparse(rule) == "rule" else ast.literal_eval(rule))
    return rules


@pytest.mark.parametrize("path", sorted(METRICS.glob("*.py")), ids=lambda path: path.stem)
def test_every_issue_names_a_rule(path: Path) -> None:
    if path.stem != "issues":  # which pass rules on
        assert set(rules_of(path)) <= {*get_args(Rule), "passed on"}
        assert "raise ValueError" not in path.read_text("utf-8")


def make_issues() -> Issues:
    issues = Issues({"prediction": RowNames([4, 9], ["a", ""])})
    issues.add("prediction", 0, "kd", "expected a share, found 2", "range")
    issues.add("prediction", 1, "kd", "expected a share, found 3", "range")
    issues.add_by_id("reference", "b", "", "expected a prediction, found none", "id-missing")
    issues.add_by_id("reference", 3, "id", "expected an id, found None", "type")
    issues.add("reference", 1, "text", "expected a string, found 5", "type")
    return issues


def test_an_error_keeps_the_fields_of_its_issues() -> None:
    with refused("range", "instance 'a': kd: ", "instance number 9: kd: ", instance="a", field="kd", total=5) as seen:
        make_issues().raise_if_any({"reference": ["x", "y"]})
    fields = [(one.side, one.row, one.instance, one.field, one.rule) for one in seen.error.errors]
    assert fields == [
        ("prediction", 4, "a", "kd", "range"),
        ("prediction", 9, None, "kd", "range"),
        ("reference", -1, "b", "", "id-missing"),
        ("reference", -1, None, "id", "type"),
        ("reference", 1, "y", "text", "type"),
    ]
    assert "reference 'y': text: " in str(seen.error)
    Issues().raise_if_any()


def test_errors_pickle() -> None:
    several = InputError("a: one\nb: two", errors=make_issues(), total=5)
    for error in (several, InputError("expected 'en', found 'fr'", "option-value", "language")):
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is InputError and str(again) == str(error)
        assert (again.rule, again.errors, again.total) == (error.rule, error.errors, error.total)
    assert str(again) == "language: expected 'en', found 'fr'" and again.errors[0].field == "language"


def test_of_a_million_issues_ten_are_put_into_words() -> None:
    asked: list[int] = []
    issues = Issues()
    issues.add_where("prediction", np.arange(10**6), "kd", lambda at: f"found {asked.append(at)}", "range")
    assert asked == list(range(10)) and issues.total == 10**6 and len(issues) == 10
    issues.add_where("prediction", np.arange(5), "kd", lambda at: f"found {asked.append(at)}", "range")
    assert len(asked) == 10 and issues.total == 10**6 + 5


def test_rules_tell_the_first_stage_that_has_issues() -> None:
    rules = IssuesByRule(("fields", "ids"), ("documents",))
    rules["documents"].add("reference", 0, "docid", "no document 'd'", "document-unknown")
    assert rules.collect() and not rules.collect("fields")
    rules["ids"].add("reference", 0, "id", "expected each id once, found 'a' again", "id-twice")
    with refused("id-twice", total=1):
        rules.collect().raise_if_any()
