"""Workflows, hooks, badges and the citation agree with the files of the repository that they name."""

from __future__ import annotations

import configparser
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

pytestmark = pytest.mark.unit

ROOT = Path(__file__).resolve().parent.parent
FILES = [*sorted((ROOT / ".github").rglob("*.yml")), ROOT / "CITATION.cff", ROOT / ".pre-commit-config.yaml"]
PARSED: dict[str, Any] = {path.name: yaml.safe_load(path.read_text(encoding="utf-8")) for path in FILES}
WORKFLOWS = {path.name: PARSED[path.name] for path in FILES if path.parent.name == "workflows"}
JOBS = {f"{file}: {name}": job for file, workflow in WORKFLOWS.items() for name, job in workflow["jobs"].items()}
STEPS = [step for job in JOBS.values() for step in job.get("steps", ())]
HOOKS = [hook for repository in PARSED[".pre-commit-config.yaml"]["repos"] for hook in repository["hooks"]]


def list_pythons() -> list[str]:
    """The Pythons of setup.cfg's classifiers, the oldest first."""
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    return re.findall(r":: (3\.\d+)$", config["metadata"]["classifiers"], re.MULTILINE)


def test_each_supported_python_is_tested_and_named() -> None:
    pythons = list_pythons()
    matrices = [job["strategy"]["matrix"] for job in JOBS.values() if "strategy" in job]
    assert [matrix["python"] for matrix in matrices] == [pythons, pythons]
    systems = {system.partition("-")[0] for matrix in matrices for system in matrix["os"]}
    assert systems == {"ubuntu", "macos", "windows"}
    readme = (ROOT / "README.md").read_text("utf-8")
    assert f"{pythons[0]} to {pythons[-1]}" in readme
    for words, path in re.findall(r"!\[([^]]*)\]\((docs/badges/\w+\.svg)\)", readme):
        assert f"<title>{words}</title>" in (ROOT / path).read_text("utf-8")
    assert set(re.findall(r"actions/workflows/([\w-]+\.yml)/badge\.svg", readme)) <= WORKFLOWS.keys()
    assert PARSED["CITATION.cff"]["license"] == "Apache-2.0"


def test_what_steps_and_hooks_run_is_there() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    targets = set(re.findall(r"^([\w-]+):", makefile, re.MULTILINE))
    for command in [*(step.get("run", "") for step in STEPS), *(hook["entry"] for hook in HOOKS)]:
        words = " ".join(re.findall(r"^make (.*)$", command, re.MULTILINE)).split()
        assert {word for word in words if not word.startswith(".") and "=" not in word} <= targets, command
        modules = [name.replace(".", "/") for name in re.findall(r"-m ((?:tools|benchmarks)[\w.]*)", command)]
        paths = re.findall(r"(?<![\w./-])(?:(?:tests|tools|docs|benchmarks|examples)/[\w./-]+)", command)
        lost = [path for path in paths if not (ROOT / path).exists()]
        lost += [name for name in modules if not (ROOT / f"{name}.py").is_file() and not (ROOT / name).is_dir()]
        assert not lost, command
    assert all((ROOT / job["uses"]).is_file() for job in JOBS.values() if "uses" in job)
    assert {hook["language"] for hook in HOOKS} == {"system"}


def test_workflows_may_do_no_more_than_they_need() -> None:
    assert all(workflow["permissions"] == {"contents": "read"} for workflow in WORKFLOWS.values())
    assert {name: job["permissions"] for name, job in JOBS.items() if "permissions" in job} == {
        "release.yml: publish": {"id-token": "write"},
        "docs.yml: pages": {"pages": "write", "id-token": "write"},
    }
    assert not any("secrets." in path.read_text("utf-8") for path in FILES), "trusted publishing keeps none"
    assert not any("${{" in step.get("run", "") for step in STEPS), "a value goes in as a variable, never as code"
    used = [step["uses"] for step in STEPS if "uses" in step]
    assert used and all(re.fullmatch(r"[\w./-]+@(v\d+|release/v\d+)", action) for action in used)
    assert all("timeout-minutes" in job for job in JOBS.values() if "uses" not in job)
