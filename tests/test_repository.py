"""Workflows, hooks, templates, badges and the citation agree with the files of the repository that they name."""

from __future__ import annotations

import configparser
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

pytestmark = pytest.mark.unit

ROOT = Path(__file__).resolve().parent.parent
GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
OTHERS = [ROOT / "CITATION.cff", ROOT / ".pre-commit-config.yaml", *sorted((GITHUB / "ISSUE_TEMPLATE").glob("*.yml"))]
TARGETS = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))


def parsed(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def jobs() -> Iterator[tuple[str, dict[str, Any]]]:
    """(workflow and job, the job) for each job of each workflow."""
    for path in WORKFLOWS:
        yield from ((f"{path.name}: {name}", job) for name, job in parsed(path)["jobs"].items())


def commands() -> Iterator[str]:
    """What the workflows' steps and the hooks run."""
    for _, job in jobs():
        yield from (step["run"] for step in job.get("steps", ()) if "run" in step)
    for repository in parsed(ROOT / ".pre-commit-config.yaml")["repos"]:
        yield from (hook["entry"] for hook in repository["hooks"])


def supported() -> list[str]:
    """The Pythons of setup.cfg's classifiers, the oldest first."""
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    return re.findall(r":: (3\.\d+)$", config["metadata"]["classifiers"], re.MULTILINE)


@pytest.mark.parametrize("path", [*WORKFLOWS, *OTHERS], ids=lambda path: path.name)
def test_it_is_yaml(path: Path) -> None:
    assert isinstance(parsed(path), dict)


def test_each_supported_python_is_tested() -> None:
    matrices = [job["strategy"]["matrix"] for _, job in jobs() if "strategy" in job]
    assert len(matrices) == 2 and supported()[0] == "3.11"
    assert all(matrix["python"] == supported() for matrix in matrices)
    systems = {system.split("-")[0] for matrix in matrices for system in matrix["os"]}
    assert systems == {"ubuntu", "macos", "windows"}


def test_pages_and_badges_name_the_supported_pythons_and_the_licence() -> None:
    oldest, newest = supported()[0], supported()[-1]
    readme = (ROOT / "README.md").read_text("utf-8")
    assert f"`python3` ({oldest} to {newest})" in readme
    badges = re.findall(r"!\[([^]]*)\]\((docs/badges/\w+\.svg)\)", readme)
    titles = [re.findall(r"<title>(.*)</title>", (ROOT / path).read_text("utf-8")) for _, path in badges]
    assert titles == [[words] for words, _ in badges] == [[f"Python {oldest} to {newest}"], ["Licence: Apache-2.0"]]
    assert f"{oldest} – {newest}" in (ROOT / badges[0][1]).read_text("utf-8")
    workflows = re.findall(r"actions/workflows/([\w-]+\.yml)/badge\.svg", readme)
    assert workflows == ["tests.yml", "docs.yml"] and all((GITHUB / "workflows" / name).is_file() for name in workflows)
    assert parsed(ROOT / "CITATION.cff")["license"] == "Apache-2.0"


def test_hooks_are_local_and_run_the_gates() -> None:
    repositories = parsed(ROOT / ".pre-commit-config.yaml")["repos"]
    hooks = [hook for repository in repositories for hook in repository["hooks"]]
    assert {repository["repo"] for repository in repositories} == {"local"}
    assert {hook["language"] for hook in hooks} == {"system"}
    assert {"make lint", "make types"} <= {hook["entry"] for hook in hooks}


def lost_in(command: str) -> list[str]:
    """The targets, modules and paths of this repository that a command names and that are not there."""
    arguments = [words.split() for words in re.findall(r"^(?:make) (.*)$", command, re.MULTILINE)]
    targets = [word for words in arguments for word in words if not word.startswith(".") and "=" not in word]
    modules = [name.replace(".", "/") for name in re.findall(r"-m ((?:tools|benchmarks|tests)[\w.]*)", command)]
    paths = re.findall(r"(?<![\w./-])(?:(?:tests|tools|docs|benchmarks|examples|\.ci|\.github)/[\w./-]+)", command)
    lost = [f"make {target}" for target in targets if target not in TARGETS]
    lost += [name for name in modules if not (ROOT / f"{name}.py").is_file() and not (ROOT / name).is_dir()]
    return lost + [path for path in paths if not (ROOT / path).exists()]


def test_what_steps_and_hooks_run_is_there() -> None:
    assert [lost for command in commands() for lost in lost_in(command)] == []
    called = [job["uses"] for _, job in jobs() if "uses" in job]
    assert called and all((ROOT / path).is_file() for path in called)


def test_workflows_may_do_no_more_than_they_need() -> None:
    assert all(parsed(path)["permissions"] == {"contents": "read"} for path in WORKFLOWS)
    more = {name: job["permissions"] for name, job in jobs() if "permissions" in job}
    assert more == {
        "release.yml: publish": {"id-token": "write"},
        "docs.yml: pages": {"pages": "write", "id-token": "write"},
    }
    texts = [path.read_text("utf-8") for path in WORKFLOWS]
    assert not any("secrets." in text for text in texts), "trusted publishing keeps none"
    steps = [step for _, job in jobs() for step in job.get("steps", ())]
    assert not any("${{" in step.get("run", "") for step in steps), "a value goes in as a variable, never as code"
    used = [step["uses"] for step in steps if "uses" in step]
    assert used and all(re.fullmatch(r"[\w./-]+@(v\d+|release/v\d+)", action) for action in used)
    assert all("timeout-minutes" in job for _, job in jobs() if "uses" not in job)
