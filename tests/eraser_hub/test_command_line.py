"""The command line's door: exit statuses, where errors go, and no traceback."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from eraser_hub import __main__ as door
from eraser_hub.conversion.errors import DataErrors
from eraser_hub.records.errors import DataError, make_printable
from eraser_hub.version import __version__


def run(*arguments: str, columns: int = 200, **kwargs) -> subprocess.CompletedProcess[str]:
    # a narrow or coloured terminal must not change what the tests read
    environment = {**os.environ, "COLUMNS": str(columns), "NO_COLOR": "1", "TERM": "dumb"}
    command = [sys.executable, "-m", "eraser_hub", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment, check=False, **kwargs)


def test_version():
    done = run("--version")
    assert (done.returncode, done.stdout.strip()) == (0, f"eraser-hub {__version__}")


def test_help_lists_every_verb():
    done = run("--help")
    assert done.returncode == 0
    for verb in door.VERBS:
        assert f" {verb} " in done.stdout


@pytest.mark.parametrize("command", door.VERBS)
def test_help_of_a_command_is_short_and_has_an_example_and_panels(command):
    done = run(command, "--help", columns=100)
    assert done.returncode == 0
    assert f"eraser-hub {command}" in done.stdout
    assert len(done.stdout.splitlines()) <= 110
    options = re.findall(r"^│ (?:\*|  )? *--[a-z]", done.stdout, re.MULTILINE)
    assert len(options) < 13 or done.stdout.count("╭─") >= 3, "--help is not counted"


def test_the_shell_completes_verbs_and_options():
    def completed(words: str) -> list[str]:
        asked = {"_ERASER_HUB_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
        code = "import sys; sys.argv[:] = ['eraser-hub']; from eraser_hub.__main__ import main; main()"
        environment = os.environ | asked
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
        assert not done.stderr
        return done.stdout.split()

    assert set(completed("eraser-hub exp")) == {"explain", "export"}
    assert completed("eraser-hub score --pre") == ["--predictions"]


@pytest.mark.parametrize("arguments", [["nonsense"], ["build"], ["build", "eraser", "--no-such-option"]])
def test_bad_usage_is_exit_status_2_on_stderr(arguments):
    done = run(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "Error" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (
            DataError("expected an object, found 3", file="val.jsonl", line=2),
            "val.jsonl:2: expected an object, found 3",
        ),
        (OSError(28, "No space left on device", "hub/x"), "hub/x: No space left on device"),
        (PermissionError(13, "Permission denied", "hub"), "hub: Permission denied"),
        (PermissionError(13, "Permission denied", "a\x1b[31mb"), "a␛[31mb: Permission denied"),
        (DataError("expected x, found y", file="a\x1b[31m\u202eb"), "a␛[31m<U+202E>b: expected x, found y"),
        (
            UnicodeEncodeError("ascii", "ö.txt", 0, 1, "no"),
            "ö.txt: a name that the locale (ascii) has no letters for: set PYTHONUTF8=1",
        ),
    ],
)
def test_bad_data_is_one_line_and_exit_status_1(monkeypatch, capsys, error, text):
    def fail() -> None:
        raise error

    monkeypatch.setattr(door, "app", fail)
    monkeypatch.setattr(door, "_list_verbs", lambda: None)
    with pytest.raises(SystemExit) as stopped:
        door.main()
    assert stopped.value.code == 1
    out, err = capsys.readouterr()
    assert (out, err.strip()) == ("", text)


def test_the_help_of_all_verbs_imports_none_of_them():
    code = (
        "import sys; sys.argv[1:] = ['--help']; from eraser_hub.__main__ import main\ntry: main()\nexcept SystemExit: "
    )
    code += "print(*sorted(name for name in sys.modules if name.startswith('eraser_hub.')), file=sys.stderr)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert told.stderr.split() == [
        *("eraser_hub.__main__", "eraser_hub.cli", "eraser_hub.metrics", "eraser_hub.metrics.errors"),
        *("eraser_hub.records", "eraser_hub.records.errors"),
        *("eraser_hub.records.extras", "eraser_hub.version"),
    ]
    code = "import sys; sys.argv[1:] = ['--help']; import eraser_hub.__main__ as door\n"
    code += "door._register(); door.app()"
    whole = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert whole.stdout.partition("COMMAND")[2] == told.stdout.partition("COMMAND")[2] != ""


def test_verbs_work_without_docstrings():
    code = "import eraser_hub.__main__ as door; door._register(); door.app()"
    command = [sys.executable, "-OO", "-c", code, "check", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert "--dataset" in done.stdout


def test_the_help_of_a_verb_waits_for_no_other():
    code = (
        "import sys, eraser_hub.cli.score; print('eraser_hub.api' in sys.modules, 'eraser_hub.asking' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.split() == ["False", "False"]


def test_importing_a_verb_imports_nothing_heavy():
    code = (
        "import sys, importlib, eraser_hub.__main__ as door\n"
        "door._register()\n"
        "print(sorted({'numpy', 'pyarrow', 'datasets', 'evaluate', 'torch', 'transformers'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.strip() == "[]"


def test_scoring_a_released_corpus_waits_for_no_large_library():
    samples = Path(__file__).resolve().parents[2] / "samples"
    words = ["score", "--source", str(samples / "eraser" / "movies"), "--split", "val"]
    words += ["--predictions", str(samples / "predictions" / "eraser" / "movies.val.jsonl")]
    code = (
        "import sys, eraser_hub.__main__ as door\n"
        f"sys.argv[1:] = {words}\n"
        "try: door.main()\n"
        "except SystemExit as stop: assert not stop.code, stop.code\n"
        "heavy = set('pyarrow datasets evaluate torch transformers huggingface_hub pandas ssl yaml'.split())\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.strip().splitlines()[-1] == "[]"


def test_an_error_of_any_length_is_cut():
    """A line keeps its head, which says where, and its end, which says what was found."""
    error = str(DataError(f"expected {'x' * 100_000}, found y", file="p.jsonl", line=3))
    assert error.startswith("p.jsonl:3: expected x") and error.endswith("found y") and len(error) < 1100
    many = make_printable(str(DataErrors([DataError("\n" * 200, instance="i" * 100_000)] * 300)))
    assert len(many) < 20_000 and len(many.splitlines()) < 60


def test_a_locale_without_these_letters_prints_their_numbers(tmp_path):
    """LC_ALL=C without Python's UTF-8 mode: stdout is ASCII."""
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0"}
    command = [sys.executable, "-m", "eraser_hub", "score", "--dataset", tmp_path / "\u00fc", "--config", "movies"]
    command += ["--predictions", "p.jsonl"]
    done = subprocess.run(command, capture_output=True, timeout=120, env=environment, check=False)
    assert done.returncode == 1 and b"<U+DCC3><U+DCBC>: " in done.stderr and done.stderr.isascii()


@pytest.mark.parametrize(
    "arguments",
    [
        ("score", "--predictions", "p.jsonl"),
        ("report", "--predictions", "p.jsonl", "--out", "r"),
        ("compare", "--predictions", "p.jsonl", "--predictions", "q.jsonl"),
        ("ask", "--model", "m", "--endpoint", "http://127.0.0.1:9", "--out", "p.jsonl"),
        ("train", "--model", "logistic-regression", "--out", "m"),
    ],
)
def test_a_negative_seed_is_refused(arguments, tmp_path):
    result = run(*arguments, "--dataset", "hub/eraser", "--split", "val", "--seed", "-1", cwd=tmp_path)
    assert result.returncode == 2 and "Traceback" not in result.stderr and "seed" in result.stderr


@pytest.mark.parametrize("option", ["--predictions", "--out"])
def test_a_folder_in_place_of_a_file_is_told(option, samples, tmp_path):
    arguments = {"--predictions": samples / "predictions" / "eraser" / "movies.val.jsonl", option: "."}
    words = [str(word) for pair in arguments.items() for word in pair]
    result = run("score", "--source", str(samples / "eraser" / "movies"), "--split", "val", *words, cwd=tmp_path)
    assert result.returncode == 1 and "Traceback" not in result.stderr and "found a folder" in result.stderr
    assert not list(tmp_path.iterdir())
