"""Files of predictions as the command line names them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from eraser_hub.records.predictions import find_inputs
from eraser_hub.scoring.runs import System, describe_unlike_operators, parse_systems

from ..refusals import refused

pytestmark = pytest.mark.unit


def test_names_of_runs(tmp_path):
    odd = tmp_path / "a=b,c.jsonl"
    odd.write_text("")
    systems = parse_systems(["ours=x/1.jsonl,x/2.jsonl", "y/1.jsonl", str(odd)])
    ours = System("ours", (Path("x/1.jsonl"), Path("x/2.jsonl")))
    assert systems == [ours, System("1", (Path("y/1.jsonl"),)), System("a=b,c", (odd,))]
    same = parse_systems(["a/x/p.jsonl", "b/x/p.jsonl", "s=y.jsonl,"])
    assert [system.name for system in same] == ["a/x/p", "b/x/p", "s"]
    for twice in (["a=x.jsonl,y.jsonl", "b=x.jsonl"], ["a=x.jsonl", "a=y.jsonl"], ["s=x.jsonl,x.jsonl"]):
        with refused():
            parse_systems(twice)


def test_runs_of_long_paths_are_no_single_file(tmp_path):
    folder = tmp_path / ("d" * 200) / ("e" * 200)
    folder.mkdir(parents=True)
    files = [folder / f"{number}.jsonl" for number in range(10)]
    for file in files:
        file.touch()
    argument = f"ours={','.join(map(str, files))}"
    assert parse_systems([argument], seeds=True) == [System("ours", tuple(files))]
    assert {*files} <= {*find_inputs([argument])}


@pytest.mark.parametrize("name", ["a\nb", "a\x1b[31m", "a\u202eb", "\ud83d", "n" * 10_000])
def test_names_that_no_table_can_show_are_refused(name):
    with refused("up to 255 printable characters", "NAME=FILE"):
        parse_systems([f"{name}=x.jsonl", "y.jsonl"])


def test_a_link_in_a_circle_is_no_file_twice(tmp_path):
    (tmp_path / "loop.jsonl").symlink_to("loop.jsonl")
    (tmp_path / "a.jsonl").write_text("{}\n")
    systems = parse_systems([str(tmp_path / "a.jsonl"), str(tmp_path / "loop.jsonl")])
    assert [system.name for system in systems] == ["a", "loop"]


def test_files_of_several_trainings_by_the_name_of_their_run(tmp_path):
    files = [tmp_path / f"a.seed-{seed}.jsonl" for seed in (1, 2)]
    for file in files:
        file.write_text("{}\n")
    assert parse_systems([str(tmp_path / "a.jsonl")], seeds=True) == [System("a", tuple(files))]
    (tmp_path / "a.jsonl").write_text("{}\n")
    assert parse_systems([str(tmp_path / "a.jsonl")], seeds=True)[0].paths == (tmp_path / "a.jsonl",), "what is there"


def test_systems_erased_in_different_ways_are_named(tmp_path):
    systems = []
    for name, operator in (("a", "remove"), ("b", "mask"), ("c", "mask")):
        path = tmp_path / f"{name}.jsonl"
        path.with_name(f"{path.name}.run.json").write_text(json.dumps({"signature": f"kd:1|erase:{operator}|seed:1"}))
        systems.append(System(name, (path,)))
    (note,) = describe_unlike_operators(systems)
    assert "(a by remove, b by mask, c by mask)" in note
    assert describe_unlike_operators(systems[1:]) == []
