"""The wheel as users get it: built from the sdist, in empty environments, every module imported, every verb run.

The environments: the base installation with the oldest dependencies that setup.cfg allows, and with the newest there
are; and the newest with all extras. `make matrix` names other Pythons, and tries the oldest of the extras too.
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
from pathlib import Path
from typing import NamedTuple

import pytest

from .asking.scripted_server import ScriptedServer, answer
from .source_copy import ROOT, copy_source, listed_files

pytestmark = pytest.mark.slow

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
EXTRAS = ("explain", "stats", "devices", "llm", "plots", "apps", "ray", "cas")
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

# to its end: a stream that is dropped half-way can abort the interpreter (pyarrow's reading thread)
STREAM = """
import datasets
rows = list(datasets.load_dataset("hub/eraser", "movies", split="train", streaming=True))
print(rows[0]["label"])
"""


class Environment(NamedTuple):
    """A Python, and what is installed beside the wheel: oldest, newest, extras, oldest extras."""

    interpreter: str
    kind: str


# the interpreters that `make matrix` tries, the oldest first; else the one that runs
MATRIX = os.environ.get("ERASER_PYTHONS", "").split()
PYTHONS = MATRIX or [sys.executable]
ENVIRONMENTS = [Environment(PYTHONS[0], "oldest"), *(Environment(python, "newest") for python in PYTHONS)]
ENVIRONMENTS += [Environment(PYTHONS[-1], "extras"), *([Environment(PYTHONS[0], "oldest extras")] if MATRIX else [])]


def run(command: list[str], folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "PYTHON"))}
    environment |= {"HF_HOME": str(folder / "hf"), "HF_HUB_OFFLINE": "1", **more}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=900)


def shipped_files() -> set[str]:
    """The files of the package's folders, by the names that a wheel gives them."""
    links = {path.name for path in (ROOT / "eraser_hub").iterdir() if path.is_symlink()}
    names = listed_files("eraser_hub", *links)
    named = {name if name.startswith("eraser_hub/") else f"eraser_hub/{name}" for name in names}
    return named - {f"eraser_hub/{link}" for link in links}


def lower_bounds(*extras: str) -> list[str]:
    """``name==oldest`` for each dependency of setup.cfg, and of these extras."""
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    texts = [config["options"]["install_requires"], *(config["options.extras_require"][extra] for extra in extras)]
    lines = {line.strip() for text in texts for line in text.splitlines() if line.strip()}
    assert all(re.fullmatch(r"[\w.-]+(\[[\w,]+\])?>=[\d.]+", line) for line in lines), "each names its oldest version"
    return sorted(line.replace(">=", "==") for line in lines)


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The sdist, and the wheel that is built from it; skipped where no package index can be reached."""
    folder = tmp_path_factory.mktemp("wheel")
    asked = run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "wheel", "-d", str(folder / "x")], folder)
    if asked.returncode:
        pytest.skip("skipped: no package index")
    copy_source(folder / "source")  # a build writes into the folder that it is of
    built = run([sys.executable, "-m", "build", "--outdir", str(folder), str(folder / "source")], folder)
    assert built.returncode == 0, built.stderr[-2000:] + built.stdout[-2000:]
    (sdist,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    return sdist, wheel


@pytest.fixture(scope="module", params=ENVIRONMENTS, ids=lambda environment: environment.kind)
def installed(request, distributions, tmp_path_factory) -> tuple[str, Path]:
    """(what is installed beside the wheel, the folder of programs) of an environment that was empty before."""
    interpreter, kind = request.param
    if not shutil.which(interpreter):
        pytest.skip(f"skipped: no {interpreter} here")
    folder, wheel = tmp_path_factory.mktemp("environment"), str(distributions[1])
    made = run([interpreter, "-m", "venv", "--without-pip", str(folder / "venv")], folder)
    assert made.returncode == 0, made.stderr
    wanted = [f"{wheel}[{','.join(EXTRAS)}]" if "extras" in kind else wheel]
    if kind.startswith("oldest"):
        wanted += lower_bounds(*(EXTRAS if "extras" in kind else ()))
    elif kind == "newest":
        wanted += ["--upgrade", "--upgrade-strategy", "eager"]
    else:  # the build of PyTorch that the tests run with
        wanted += [f"torch=={importlib.metadata.version('torch').partition('+')[0]}"]
    # this environment's pip serves; what is not imported need not be compiled
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "venv" / "bin" / "python"), "install", "-q"]
    done = run([*pip, "--no-compile", *wanted], folder)
    assert done.returncode == 0, done.stderr[-4000:]
    return kind, folder / "venv" / "bin"


def test_sdist_and_wheel_hold_real_folders_and_nothing_else(distributions):
    sdist, wheel = distributions
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {name for name in names if ".dist-info/" not in name} == shipped_files()
    with tarfile.open(sdist) as archive:
        members = archive.getmembers()
    assert not [member.name for member in members if member.issym() or member.islnk()]
    assert shipped_files() <= {member.name.partition("/")[2] for member in members if member.isfile()}


def test_every_module_is_imported_or_lacks_a_package_of_an_extra(installed, tmp_path):
    kind, programs = installed
    done = run([str(programs / "python"), "-c", WALK], tmp_path)
    assert done.returncode == 0, done.stderr[-4000:]
    found = json.loads(done.stdout)
    assert set(found["lacking"].values()) <= (set() if "extras" in kind else OPTIONAL)
    paths = [Path(name) for name in shipped_files() if name.endswith(".py")]
    packages = {path.parent for path in paths if path.name == "__init__.py"}
    modules = {".".join(path.with_suffix("").parts) for path in paths if path.parent in packages}
    assert set(found["names"]) == {name.removesuffix(".__init__") for name in modules} - {"eraser_hub"}


def test_every_verb_runs_or_names_the_extra_that_it_needs(installed, tmp_path):
    from eraser_hub import cli

    kind, programs = installed
    posts = [{"words": ["a", word, "film"], "label": word, "why": [0, 1, 0]} for word in ("good", "bad")]
    (tmp_path / "posts.jsonl").write_text("".join(json.dumps(post) + "\n" for post in posts), encoding="utf-8")
    where = "import eraser_hub.samples as samples; print(samples.SAMPLES)"
    samples = run([str(programs / "python"), "-c", where], tmp_path).stdout.strip()
    failed = {}
    with ScriptedServer(lambda request, before: answer("POS")) as server:
        for verb, words in VERBS.items():
            arguments = words.format(samples=samples, endpoint=server.endpoint).split()
            command = [str(programs / "eraser-hub"), verb, *arguments]
            done = run(command, tmp_path, COLUMNS="200", NO_COLOR="1", TERM="dumb")
            lines = done.stderr.splitlines() or [""]
            if "extras" not in kind and verb in NEEDING:
                went_well = done.returncode == 1 and f"eraser-hub[{NEEDING[verb]}]" in lines[-1]
            else:  # the files of annotators that its row needs are an argument in Python alone
                went_well = done.returncode == (1 if verb == "reproduce" else 0)
            if not went_well or "Traceback" in done.stderr:
                failed[verb] = done.returncode, done.stdout[-500:], done.stderr[-2000:]
    assert not failed
    assert set(VERBS) == set(cli.VERBS), "every verb is tried"
    streamed = run([str(programs / "python"), "-c", STREAM], tmp_path)
    assert streamed.stdout.strip() in ("NEG", "POS"), streamed.stderr[-2000:]
