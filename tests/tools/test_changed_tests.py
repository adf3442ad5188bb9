"""Which tests `make test-changed` runs: all that a change can reach, and fewer than all."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import changed_tests
from tools.changed_tests import changed_modules, imports, modules, reached, selected


def test_a_link_and_its_folder_are_one_module():
    assert modules()["eraser_hub.metrics.spans"] == Path("metrics/spans.py")
    assert not [name for name in modules() if name.startswith("metrics")]


@pytest.mark.parametrize(
    ("path", "inside", "outside"),
    [
        ("metrics/spans.py", "tests/metrics/test_spans.py", "tests/records/test_lines.py"),
        ("eraser_hub/records/lines.py", "tests/records/test_lines.py", "tests/metrics/test_spans.py"),
        ("eraser_hub/reports/board.py", "tests/reports/test_board.py", "tests/metrics/test_spans.py"),
        # a file that is no module goes with its folder
        ("eraser_hub/papers/presets.json", "tests/papers/test_papers.py", "tests/metrics/test_spans.py"),
        (".github/workflows/tests.yml", "tests/test_repository.py", "tests/metrics/test_spans.py"),
        ("eraser_hub/cli/board.py", "tests/attack/test_attack.py", "tests/metrics/test_spans.py"),
        ("docs/faq.md", "tests/docs/test_documents.py", "tests/metrics/test_spans.py"),
        ("tests/asking/scripted_server.py", "tests/asking/test_client.py", "tests/metrics/test_spans.py"),
    ],
)
def test_a_change_selects_what_it_can_reach(path, inside, outside):
    tests = selected([path])
    assert inside in tests and outside not in tests


def test_imports_inside_functions_and_the_packages_around_count():
    found = imports("eraser_hub.cli.train")
    assert {"eraser_hub.experiments.folder", "eraser_hub.experiments", "eraser_hub"} <= found


def test_a_test_that_starts_processes_reaches_the_whole_package():
    assert "eraser_hub.systems.networks.lei" in reached(Path("tests/eraser_hub/test_command_line.py"))


def test_who_asks_the_door_for_a_name_reaches_what_it_names():
    assert "eraser_hub.reports.highlight" in reached(Path("tests/reports/test_highlight.py"))


@pytest.mark.parametrize(
    "path", ["setup.cfg", "tests/conftest.py", "metrics/gone.py", "samples/eraser/movies/val.jsonl"]
)
def test_what_any_test_may_need_selects_every_test(path):
    everything = [each for each in modules().values() if each.parts[0] == "tests" and each.name.startswith("test_")]
    assert len(selected([path])) == len(everything)


def test_nothing_that_runs_changed():
    assert changed_modules(["LICENSE"]) == set() and selected([]) == []


def test_the_paths_come_from_git(monkeypatch, capsys):
    asked = []

    def git(*words: str) -> list[str]:
        asked.append(words[0])
        return {"merge-base": ["abc"], "diff": ["eraser_hub/records/lines.py"]}.get(words[0], [])

    modules()
    monkeypatch.setattr(changed_tests, "git", git)
    monkeypatch.setattr("sys.argv", ["changed_tests"])
    changed_tests.main()
    assert "tests/records/test_lines.py" in capsys.readouterr().out.split() and asked == [
        "merge-base",
        "diff",
        "ls-files",
    ]
