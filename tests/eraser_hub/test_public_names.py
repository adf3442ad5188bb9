"""The names that the package gives, and that importing it stays cheap."""

from __future__ import annotations

import subprocess
import sys

import pytest

import eraser_hub


@pytest.mark.parametrize("name", eraser_hub.__all__)
def test_each_public_name_is_there_and_described(name):
    assert name in dir(eraser_hub) and getattr(eraser_hub, name) is not None
    if not name.startswith("__"):
        assert getattr(eraser_hub, name).__doc__


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        eraser_hub.nothing  # noqa: B018


def test_importing_the_package_imports_nothing_heavy():
    code = "import sys, eraser_hub; print(sorted({'numpy', 'pyarrow', 'datasets', 'evaluate'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"
