"""Offences: what programs read of them, how they are counted, and that each names its rule."""

from __future__ import annotations

import ast
import pickle
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

from eraser_hub.metrics.offences import InputError, Offences, Rows, Rules
from eraser_hub.records.rules import Rule

from ..refusals import refused

pytestmark = pytest.mark.unit

METRICS = Path(__file__).resolve().parents[2] / "metrics"
TELL = {"say", "say_of", "say_all", "_say", "tell", "InputError"}


def rules_of(path: Path) -> list[str]:
    """The rule of each offence that a file tells: its keyword, its last argument, or the second of an `InputError`.

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
def test_every_offence_names_a_rule(path: Path) -> None:
    if path.stem != "offences":  # which pass rules on
        assert set(rules_of(path)) <= {*get_args(Rule), "passed on"}
        assert "raise ValueError" not in path.read_text("utf-8")


def told() -> Offences:
    offences = Offences({"prediction": Rows([4, 9], ["a", ""])})
    offences.say("prediction", 0, "kd", "expected a share, found 2", "range")
    offences.say("prediction", 1, "kd", "expected a share, found 3", "range")
    offences.say_of("reference", "b", "", "expected a prediction, found none", "id-missing")
    offences.say_of("reference", 3, "id", "expected an id, found None", "type")
    offences.say("reference", 1, "text", "expected a string, found 5", "type")
    return offences


def test_an_error_keeps_the_fields_of_its_offences() -> None:
    with refused("range", "instance 'a': kd: ", "instance number 9: kd: ", instance="a", field="kd", total=5) as seen:
        told().stop({"reference": ["x", "y"]})
    fields = [(one.side, one.row, one.instance, one.field, one.rule) for one in seen.error.errors]
    assert fields == [
        ("prediction", 4, "a", "kd", "range"),
        ("prediction", 9, None, "kd", "range"),
        ("reference", -1, "b", "", "id-missing"),
        ("reference", -1, None, "id", "type"),
        ("reference", 1, "y", "text", "type"),
    ]
    assert "reference 'y': text: " in str(seen.error)
    Offences().stop()


def test_errors_pickle() -> None:
    several = InputError("a: one\nb: two", errors=told(), total=5)
    for error in (several, InputError("expected 'en', found 'fr'", "option-value", "language")):
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is InputError and str(again) == str(error)
        assert (again.rule, again.errors, again.total) == (error.rule, error.errors, error.total)
    assert str(again) == "language: expected 'en', found 'fr'" and again.errors[0].field == "language"


def test_of_a_million_offences_ten_are_put_into_words() -> None:
    asked: list[int] = []
    offences = Offences()
    offences.say_all("prediction", np.arange(10**6), "kd", lambda at: f"found {asked.append(at)}", "range")
    assert asked == list(range(10)) and offences.total == 10**6 and len(offences) == 10
    offences.say_all("prediction", np.arange(5), "kd", lambda at: f"found {asked.append(at)}", "range")
    assert len(asked) == 10 and offences.total == 10**6 + 5


def test_rules_tell_the_first_stage_that_has_offences() -> None:
    rules = Rules(("fields", "ids"), ("documents",))
    rules["documents"].say("reference", 0, "docid", "no document 'd'", "document-unknown")
    assert rules.broken() and not rules.broken("fields")
    rules["ids"].say("reference", 0, "id", "expected each id once, found 'a' again", "id-twice")
    with refused("id-twice", total=1):
        rules.told().stop()
