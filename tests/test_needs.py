"""The guard of the tiers: what is refused, and that nothing is skipped by it in silence."""

from __future__ import annotations

import importlib
import importlib.util
import subprocess
import sys

import pytest

from .needs import needs, refused_imports
from .source_copy import ROOT

ABSENT = "tabnanny"  # of the standard library, and imported by nobody here


def test_a_refused_import_is_no_missing_package():
    sys.modules.pop(ABSENT, None)
    with refused_imports([ABSENT], "not now"):
        assert importlib.util.find_spec(ABSENT) is not None, "it is installed"
        with pytest.raises(ImportError, match="not now") as caught:
            importlib.import_module(ABSENT)
        assert not isinstance(caught.value, ModuleNotFoundError), "importorskip would skip the test"
    assert importlib.import_module(ABSENT).__name__ == ABSENT


def test_a_refused_package_that_is_not_installed_is_missing_still():
    with refused_imports(["no_such_package"], "not now"):
        assert needs("no_such_package").args == (True,)
        with pytest.raises(ModuleNotFoundError):
            importlib.import_module("no_such_package")


def test_what_is_loaded_already_stays():
    with refused_imports(["json"], "not now"):
        assert importlib.import_module("json").loads("1") == 1


def test_a_package_that_is_not_there_skips_with_its_name():
    mark = needs("json", "no_such_package")
    assert mark.args == (True,) and "no_such_package" in mark.kwargs["reason"] and "json" not in mark.kwargs["reason"]
    assert needs("json").args == (False,)


def pytest_of(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.parametrize(
    ("marks", "body", "words"),
    [
        ((), "import torch", "not when it is collected"),
        (
            ("-m", "unit"),
            "import pytest\npytestmark = pytest.mark.unit\nimport evaluate",
            "a test marked unit imports it",
        ),
    ],
)
def test_a_module_that_imports_a_heavy_library_is_an_error(tmp_path, marks, body, words):
    path = tmp_path / "test_heavy.py"
    path.write_text(f"{body}\n\ndef test_nothing():\n    pass\n", encoding="utf-8")
    done = pytest_of(*marks, "-p", "tests.conftest", "-c", str(ROOT / "pyproject.toml"), str(path))
    assert done.returncode == 2 and words in done.stdout, done.stdout


def test_unit_reads_no_other_files():
    done = pytest_of("-m", "unit", "--collect-only", "tests/systems/networks", "tests/metrics/test_spans.py")
    files = {line.partition("::")[0] for line in done.stdout.splitlines() if "::" in line}
    assert files == {"tests/metrics/test_spans.py"}
