"""Files of predictions as the command line names them."""

from __future__ import annotations

from pathlib import Path

import pytest

from eraser_hub.reports.report_inputs import System, named_systems
from eraser_hub.scoring.runs import named_runs, system_names

from ..refusals import refused

pytestmark = pytest.mark.unit


def test_names_of_files():
    assert system_names([Path("a/x.jsonl"), Path("b/y.jsonl")]) == ["x", "y"]
    assert system_names([Path("a/x.jsonl"), Path("b/x.jsonl")]) == ["a/x", "b/x"]
    with refused("file-twice"):
        system_names([Path("a.jsonl"), Path("./a.jsonl")])


def test_names_of_runs(tmp_path):
    odd = tmp_path / "a=b,c.jsonl"
    odd.write_text("")
    runs = dict(named_runs(["ours=x/1.jsonl,x/2.jsonl", "y/1.jsonl", str(odd)]))
    assert runs == {"ours": [Path("x/1.jsonl"), Path("x/2.jsonl")], "1": [Path("y/1.jsonl")], "a=b,c": [odd]}
    with refused("file-twice"):
        named_runs(["a=x.jsonl,y.jsonl", "b=x.jsonl"])
    with refused("option-value", "NAME=FILE", "a, a"):
        named_runs(["a=x.jsonl", "a=y.jsonl"])


def test_a_file_twice_is_refused_and_a_draw_is_not():
    with refused("file-twice"):
        named_runs(["s=x.jsonl,x.jsonl"])
    assert named_runs(["a=x.jsonl", "a=y.jsonl"], draws=True) == [("a", [Path("x.jsonl")]), ("a", [Path("y.jsonl")])]


def test_a_report_names_systems_as_a_comparison_does():
    arguments = ["a/x/p.jsonl", "b/x/p.jsonl", "s=y.jsonl,"]
    assert named_systems(arguments) == [System(name, *paths) for name, paths in named_runs(arguments)]
    assert [name for name, _ in named_runs(arguments)] == ["a/x/p", "b/x/p", "s"]


def test_a_link_in_a_circle_is_no_file_twice(tmp_path):
    (tmp_path / "loop.jsonl").symlink_to("loop.jsonl")
    (tmp_path / "a.jsonl").write_text("{}\n")
    assert [name for name, _ in named_runs([str(tmp_path / "a.jsonl"), str(tmp_path / "loop.jsonl")])] == ["a", "loop"]
