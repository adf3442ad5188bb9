"""The command line: what its help says, how it ends, where errors go, and what it waits for."""

from __future__ import annotations

import inspect
import json
import os
import re
import subprocess
import sys
from typing import Any

import pytest

import eraser_hub
from eraser_hub import cli
from eraser_hub.records.errors import DataError, make_printable
from tests.command_line import invoke
from tests.source_copy import ROOT

HEAVY = ("numpy", "pyarrow", "pandas", "datasets", "evaluate", "torch", "transformers")
MAIN = "from eraser_hub.cli import main; main()"
SCORE = ("--config", "movies", "--split", "val")


def run(*arguments: object, flags: tuple[str, ...] = (), **kwargs: Any) -> subprocess.CompletedProcess[str]:
    """Run the command line in a process of its own."""
    command = [sys.executable, *flags, "-c", MAIN, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, **kwargs)


def list_options(verb: str) -> list[str]:
    command = getattr(cli, verb)
    with cli.app.app_stack([cli.app, command]):
        return [each.name for each in command.assemble_argument_collection() if each.show]


# -- help -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", cli.VERBS)
def test_the_help_of_a_verb_is_its_docstring_and_fits_a_terminal(verb, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    function = getattr(eraser_hub, "import_corpus" if verb == "import" else verb)
    assert (inspect.getdoc(function) or "").splitlines()[0] == cli.VERBS[verb].summary
    assert f" {verb} " in invoke(["--help"]).stdout
    assert invoke(["--version"]).stdout.strip() == eraser_hub.__version__
    result = invoke([verb, "--help"])
    lines, options = result.stdout.splitlines(), list_options(verb)
    assert (result.exit_code, result.stderr) == (0, "")
    assert max(map(len, lines)) <= 80
    assert len(lines) <= 45 or len(options) >= 12
    assert f"eraser-hub {verb} " in result.stdout.partition("Examples")[2]
    assert all(option.startswith("--") for option in options) and len(options) == len(set(options))


def test_the_options_are_those_that_were_decided():
    """The table of docs/contributing.md, with no more options than a reader can know."""
    page = (ROOT / "docs/contributing.md").read_text("utf-8")
    rows = re.findall(r"^\| `([a-z]+)` \| ([a-z -]+) \|$", page, re.MULTILINE)
    decided = {verb: sorted(words.split()) for verb, words in rows}
    assert decided == {verb: sorted(option.removeprefix("--") for option in list_options(verb)) for verb in cli.VERBS}
    assert sum(map(len, decided.values())) <= 160


def test_help_waits_for_no_large_library():
    code = "import sys\nfrom eraser_hub import cli\nfor words in [['--help'], *([v, '--help'] for v in cli.VERBS)]:\n"
    code += f"    cli.app(words, result_action='return_value')\nsys.exit(str({set(HEAVY)} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.stderr.strip() == "set()"


def test_scoring_a_released_corpus_waits_for_no_large_library(samples):
    words = ["score", samples / "predictions/eraser/movies.val.jsonl", samples / "eraser/movies", "--split", "val"]
    heavy = {*HEAVY, "huggingface_hub", "ssl", "yaml"} - {"numpy"}
    code = f"import sys\nfrom eraser_hub.cli import main\ntry: main({[*map(str, words)]})\n"
    code += f"except SystemExit as end: print(end.code, {heavy} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.splitlines()[-1] == "0 set()"


def test_verbs_work_without_docstrings(samples):
    assert "--dataset" in run("check", "--help", flags=("-OO",)).stdout
    words = (samples / "predictions/eraser/movies.val.jsonl", samples / "eraser/movies", "--split", "val")
    done = run("score", *words, flags=("-OO",))
    assert done.returncode == 0 and "token_macro_f1" in done.stdout


# -- how it ends ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nonsense"], "nonsense"),
        (["score", "p.jsonl", "hub/eraser", "--no-such-option"], "--no-such-option"),
        (["compare", "--predictions", "a.jsonl", "b.jsonl", "--dataset", "d"], "found 'b.jsonl'"),
        (["score", "p.jsonl", "hub/eraser", "--out", "t.tex"], "--format latex"),
        (["score", "p.jsonl", "hub/eraser", "--seed", "x"], "--seed"),
        *(
            ([*verb.split(), "--dataset", "hub/eraser", "--split", "val", "--seed", "-1"], "--seed: expected")
            for verb in ("score p.jsonl", "train --model m --out o", "ask --model m --endpoint x --out o")
        ),
    ],
)
def test_bad_usage_is_exit_status_2_on_stderr(words, said):
    result = invoke(words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr.lower() and "Traceback" not in result.stderr


def test_an_error_of_any_length_is_cut_and_json_steers_no_terminal(capfdbinary, monkeypatch):
    """A line keeps its head, which says where, and its end, which says what was found."""
    error = str(DataError(f"expected {'x' * 100_000}, found y", file="p.jsonl", line=3))
    assert error.startswith("p.jsonl:3: expected x") and error.endswith("found y") and len(error) < 1100
    many = make_printable(str(DataError("\n" * 200, instance="i" * 100_000)))
    assert len(many) < 20_000 and len(many.splitlines()) < 60
    cli.print_json({"label": "a\x9b\u202e\x7f"})
    printed = capfdbinary.readouterr().out.decode()
    assert printed.isascii() and json.loads(printed) == {"label": "a\x9b\u202e\x7f"}
    monkeypatch.setattr(cli, "app", lambda *words, **options: {}["x"])
    assert isinstance(invoke(["score"]).exception, KeyError), "a fault of the program shows where it is"


@pytest.mark.parametrize(
    ("error", "status", "text"),
    [
        (DataError("expected x, found y", file="v.jsonl", line=2), 1, "v.jsonl:2: expected x, found y"),
        (DataError("expected x, found y", argument="kd"), 2, "kd: expected x, found y"),
        (DataError("expected x, found y", argument="out", file="o"), 1, "o: out: expected x, found y"),
        (KeyboardInterrupt(), 130, "stopped"),
        (ModuleNotFoundError("No module named 'x'", name="torch"), 1, "explain"),
        (OSError(28, "No space left on device", "hub/x"), 1, "hub/x: No space left on device"),
        (FileExistsError(17, "File exists", "a\x1b[31mb"), 1, "a␛[31mb: expected a folder, found a file"),
        (DataError("expected x, found y", file="a\x1b[31m\u202eb"), 1, "a␛[31m<U+202E>b: expected x, found y"),
        (UnicodeEncodeError("ascii", "ö.txt", 0, 1, "no"), 1, "ö.txt: a name that the locale (ascii) has no letters"),
    ],
)
def test_an_error_is_its_message_and_an_exit_status(error, status, text, monkeypatch):
    def fail(*words: object, **options: object) -> None:
        raise error

    monkeypatch.setattr(cli, "app", fail)
    result = invoke(["score"])
    assert (result.exit_code, result.stdout) == (status, "")
    assert text in result.stderr and "Traceback" not in result.stderr


def test_a_locale_without_these_letters_prints_their_numbers(tmp_path):
    """LC_ALL=C without Python's UTF-8 mode: stdout is ASCII."""
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0"}
    done = run("score", "p.jsonl", tmp_path / "\u00fc", *SCORE, env=environment)
    assert done.returncode == 1 and "<U+DCC3><U+DCBC>: " in done.stderr and done.stderr.isascii()


def test_a_reader_that_goes_away_is_no_error(samples):
    words = [samples / "predictions/eraser/movies.val.jsonl", samples / "eraser/movies", "--split", "val", "--all"]
    line = f'"{sys.executable}" -c "{MAIN}" score {" ".join(map(str, words))} | true; echo ${{PIPESTATUS[0]}}'
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=120, check=False)
    assert "Traceback" not in done.stderr and done.stdout.strip() in ("0", "1")


@pytest.mark.parametrize("option", ["--predictions", "--out"])
def test_a_folder_in_place_of_a_file_is_told(option, samples, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    places = {"--predictions": samples / "predictions/eraser/movies.val.jsonl", option: "."}
    words = [word for pair in places.items() for word in pair]
    result = invoke(["score", "--dataset", samples / "eraser/movies", "--split", "val", *words])
    assert result.exit_code == 1 and "found a folder" in result.stderr
    assert not list(tmp_path.iterdir())
