"""The wheel as users get it: built from the sdist, in empty environments, every module imported, every verb run.

The environments: the base installation with the oldest dependencies that setup.cfg allows, and with the newest there
are; and the newest with all extras.
"""

from __future__ import annotations

import configparser
import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest

from .asking.scripted_server import ScriptedServer, answer
from .source_copy import ROOT, copy_source, listed_files

pytestmark = pytest.mark.slow

SMOKE = """
import json, os, subprocess, sys
from pathlib import Path
import datasets, evaluate
import eraser_hub, eraser_hub.samples
from eraser_hub.publishing.spaces import list_metric_names

datasets.disable_progress_bars()
samples = Path(eraser_hub.samples.__path__[0]) / "eraser"
command = [sys.executable, "-m", "eraser_hub"]
subprocess.run([*command, "--version"], check=True)
configs = ["--config", "movies", "--config", "cose"]
build = ["build", "eraser", "--source", str(samples), *configs, "--out", "."]
subprocess.run([*command, *build], check=True)
subprocess.run([*command, "build", "metrics", "--out", "."], check=True)
movies = datasets.load_dataset("eraser", "movies")
assert movies["train"].features["classification"].names == ["NEG", "POS"], movies["train"].features
row = next(row for row in movies["train"] if row["evidences"])
assert row["evidences"][0][0]["docid"] == row["documents"][0]["docid"]
streamed = next(iter(datasets.load_dataset("eraser", "cose", split="train", streaming=True)))
assert streamed["annotation_id"]
agreement = evaluate.load("eraser_agreement")
perfect = {
    "annotation_id": row["annotation_id"],
    "rationales": [
        {
            "docid": row["documents"][0]["docid"],
            "hard_rationale_predictions": [
                {"start_token": span["start_token"], "end_token": span["end_token"]}
                for group in row["evidences"] for span in group
            ],
        }
    ],
}
scores = agreement.compute(predictions=[perfect], references=[row])
assert scores["exact_micro_f1"] == scores["token_micro_f1"] == 1.0, scores
assert len(list(Path(".").glob("*/app.py"))) == len(list_metric_names()), "each metric's page"
with_table = subprocess.run([*command, "check", "--dataset", "eraser"], check=True, capture_output=True, text=True)
assert "no violation" in with_table.stdout
print("smoke test passed with datasets", datasets.__version__)
"""


# every module of the wheel; `metrics/app.py` ends where gradio is missing, so that a Space says what to install
WALK = """
import importlib, json, pkgutil, eraser_hub
lacking, names = {}, []
for module in pkgutil.walk_packages(eraser_hub.__path__, "eraser_hub."):
    names.append(module.name)
    if module.name == "eraser_hub.metrics.app":
        continue  # a Space's page, which reads the files beside it
    try:
        importlib.import_module(module.name)
    except ModuleNotFoundError as error:
        lacking[module.name] = error.name.partition(".")[0]
    except SystemExit as error:
        lacking[module.name] = "gradio" if "gradio" in str(error) else str(error)
print(json.dumps({"names": names, "lacking": lacking}))
"""
EXTRAS = ("explain", "stats", "llm", "plots", "apps", "ray")
OPTIONAL = {"torch", "transformers", "safetensors", "sklearn", "openai", "gradio"}
PREDICTIONS = "{samples}/predictions/eraser/movies.val"
MOVIES = "--dataset hub/eraser --config movies"
# each verb once, on the smallest input; a later one reads what an earlier one wrote
VERBS = {
    "import": "--source posts.jsonl --name posts --tokens words --label label --mask why --out corpora",
    "build": "eraser --source {samples}/eraser --config movies --out hub",
    "check": "--dataset hub/eraser",
    "stats": "--dataset hub/eraser",
    "export": f"{MOVIES} --out raw",
    "score": f"--dataset {{samples}}/eraser/movies --split val --predictions {PREDICTIONS}.jsonl --out scores.json",
    "compare": f"{MOVIES} --split val --predictions {PREDICTIONS}.jsonl --predictions {PREDICTIONS}.baseline.jsonl",
    "train": f"{MOVIES} --model logistic-regression --out model",
    "explain": f"{MOVIES} --split validation --model model --method random --limit 2 --out p.jsonl",
    "bench": f"{MOVIES} --split validation --model model --method occlusion --quick --out bench",
    "ask": f"{MOVIES} --split validation --endpoint {{endpoint}} --model scripted --out quotes.jsonl",
    "reproduce": "--table eraser-2 --config movies --fast",
    "report": f"{MOVIES} --split validation --predictions {PREDICTIONS}.jsonl --out report",
    "board": "--scores report/movies.val.scores.json --out board",
    "publish": "--namespace org --dry-run",
    "quickstart": "--out quick",
}
# these end in one line without the extra that they need
NEEDING = {"bench": "explain", "train": "explain", "explain": "explain", "ask": "llm"}


class Ended(NamedTuple):
    """How a verb ended."""

    status: int
    out: str
    err: str


def run(command: list[str], folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "PYTHON"))}
    environment |= {"HF_HOME": str(folder / "hf"), "HF_HUB_OFFLINE": "1", **more}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=900)


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The sdist, and the wheel that is built from it; skipped where no package index can be reached."""
    folder = tmp_path_factory.mktemp("wheel")
    reachable = run(
        [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "wheel", "-d", str(folder / "x")], folder
    )
    if reachable.returncode:
        pytest.skip("skipped: no package index")
    copy_source(folder / "source")  # a build writes into the folder that it is of
    built = run([sys.executable, "-m", "build", "--outdir", str(folder), str(folder / "source")], folder)
    assert built.returncode == 0, built.stderr[-2000:] + built.stdout[-2000:]
    (sdist,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    return sdist, wheel


def shipped_files() -> set[str]:
    """The files of the package's folders, by the names that a wheel gives them."""
    links = {path.name for path in (ROOT / "eraser_hub").iterdir() if path.is_symlink()}
    names = listed_files("eraser_hub", *links)
    named = {name if name.startswith("eraser_hub/") else f"eraser_hub/{name}" for name in names}
    return named - {f"eraser_hub/{link}" for link in links}


def test_the_wheel_holds_the_folders_of_the_package_and_nothing_else(distributions):
    names = set(zipfile.ZipFile(distributions[1]).namelist())
    assert {name for name in names if ".dist-info/" not in name} == shipped_files()


def test_the_sdist_holds_real_folders(distributions):
    with tarfile.open(distributions[0]) as archive:
        members = archive.getmembers()
    assert not [member.name for member in members if member.issym() or member.islnk()]
    names = {member.name.partition("/")[2] for member in members if member.isfile()}
    assert shipped_files() <= names


def lower_bounds() -> list[str]:
    """``name==oldest`` for each dependency of setup.cfg."""
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    found = [
        re.fullmatch(r"([\w.-]+)>=([\d.]+)", line.strip())
        for line in config["options"]["install_requires"].splitlines()
        if line.strip()
    ]
    assert all(found), "each dependency names its oldest version"
    return [f"{match[1]}=={match[2]}" for match in found if match]


# the interpreters that `make matrix` tries, the oldest first; else the one that runs
PYTHONS = os.environ.get("ERASER_PYTHONS", sys.executable).split()
TRIED = [(PYTHONS[0], "oldest"), *((python, "newest") for python in PYTHONS)]


def environment(place: Path, interpreter: str, *wanted: str, newest: bool = True) -> Path | str:
    """Make an empty environment and install into it; its folder of programs, or what went wrong."""
    made = run([interpreter, "-m", "venv", "--without-pip", str(place / "environment")], place)
    if made.returncode:
        return made.stderr
    programs = place / "environment" / "bin"
    upgrade = ["--upgrade", "--upgrade-strategy", "eager"] if newest else []
    # this environment's pip serves; what is not imported need not be compiled
    pip = [sys.executable, "-m", "pip", "--python", str(programs / "python"), "install", "-q", "--no-compile"]
    installed = run([*pip, *upgrade, *wanted], place)
    return installed.stderr if installed.returncode else programs


def base(wheel: Path, place: Path, interpreter: str, age: str) -> Path | str:
    """An environment with the wheel alone, by its oldest or its newest dependencies."""
    wanted = lower_bounds() if age == "oldest" else []
    return environment(place, interpreter, str(wheel), *wanted, newest=age == "newest")


def with_extras(wheel: Path, place: Path) -> Path | str:
    """An environment with the wheel and its extras, and the build of PyTorch that the tests run with."""
    torch = importlib.metadata.version("torch").partition("+")[0]
    return environment(place, PYTHONS[-1], f"torch=={torch}", f"{wheel}[{','.join(EXTRAS)}]", newest=False)


Installed = dict[tuple[str, str], "Future[Path | str]"]


@pytest.fixture(scope="module")
def installed(distributions: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    """(interpreter, what is installed) -> its environment, two under way side by side."""
    wheel, make = distributions[1], tmp_path_factory.mktemp
    with ThreadPoolExecutor(2) as pool:
        tried = [(python, age) for python, age in TRIED if shutil.which(python)]
        extras = pool.submit(with_extras, wheel, make("extras"))
        bases = {pair: pool.submit(base, wheel, make(pair[1]), *pair) for pair in tried}
        yield {**bases, (PYTHONS[-1], "extras"): extras}


def programs_of(installed: Installed, interpreter: str, kind: str) -> Path:
    """The programs of an environment, once it is there."""
    if (interpreter, kind) not in installed:
        pytest.skip(f"skipped: no {interpreter} here")
    programs = installed[interpreter, kind].result()
    assert isinstance(programs, Path), programs[-4000:]
    return programs


@pytest.mark.parametrize(("interpreter", "age"), TRIED)
def test_the_wheel_works_in_an_empty_environment(installed, tmp_path, interpreter, age):
    done = run([str(programs_of(installed, interpreter, age) / "python"), "-c", SMOKE], tmp_path)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    assert "smoke test passed" in done.stdout


def walked(programs: Path, folder: Path) -> dict[str, dict[str, str]]:
    """The modules that an environment finds, and those that lack a package."""
    done = run([str(programs / "python"), "-c", WALK], folder)
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout)


def module_names() -> set[str]:
    """Every module and package below `eraser_hub`, by its files."""
    paths = [Path(name) for name in shipped_files() if name.endswith(".py")]
    packages = {path.parent for path in paths if path.name == "__init__.py"}
    return {
        ".".join(path.with_suffix("").parts).removesuffix(".__init__") for path in paths if path.parent in packages
    } - {"eraser_hub"}


def test_every_module_is_imported_with_all_extras(installed, tmp_path):
    found = walked(programs_of(installed, PYTHONS[-1], "extras"), tmp_path)
    assert not found["lacking"]
    assert set(found["names"]) == module_names()


def test_without_extras_a_module_lacks_nothing_but_a_package_of_theirs(installed, tmp_path):
    found = walked(programs_of(installed, PYTHONS[-1], "newest"), tmp_path)
    assert set(found["lacking"].values()) <= OPTIONAL
    assert set(found["names"]) == module_names()


@pytest.fixture(scope="module", params=["newest", "extras"])
def ended(installed, tmp_path_factory, request) -> tuple[str, dict[str, Ended]]:
    """Each verb once, in an empty folder, from the base environment and from that with the extras."""
    programs = programs_of(installed, PYTHONS[-1], request.param)
    folder = tmp_path_factory.mktemp("verbs")
    posts = [
        {"words": ["a", word, "film"], "label": label, "why": [0, 1, 0]}
        for word, label in (("good", "p"), ("bad", "n"))
    ]
    (folder / "posts.jsonl").write_text("".join(json.dumps(post) + "\n" for post in posts), encoding="utf-8")
    where = "import eraser_hub.samples as samples; print(samples.SAMPLES)"
    samples = run([str(programs / "python"), "-c", where], folder).stdout.strip()
    results = {}
    with ScriptedServer(lambda request, before: answer("POS")) as server:
        for verb, words in VERBS.items():
            arguments = words.format(samples=samples, endpoint=server.endpoint).split()
            command = [str(programs / "eraser-hub"), *verb.split(), *arguments]
            done = run(command, folder, COLUMNS="200", NO_COLOR="1", TERM="dumb")
            results[verb] = Ended(done.returncode, done.stdout, done.stderr)
    return request.param, results


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_runs_or_names_the_extra_that_it_needs(ended, verb):
    kind, results = ended
    status, out, err = results[verb]
    assert "Traceback" not in err, err[-3000:]
    if kind == "newest" and verb in NEEDING:
        assert status == 1
        assert [f"eraser-hub[{NEEDING[verb]}]" in line for line in err.splitlines()[-1:]] == [True], err
    else:
        # the files of annotators that its row needs are an argument in Python alone
        assert status == (1 if verb == "reproduce" else 0), out[-1000:] + err[-3000:]


def test_every_verb_is_tried():
    from eraser_hub import cli

    assert set(VERBS) == set(cli.VERBS)
