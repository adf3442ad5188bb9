"""docs/reference.md is what the docstrings say today."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

import eraser_hub
from eraser_hub.publishing.spaces import metric_names

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture(scope="module")
def reference() -> Any:
    """The script that writes the page."""
    spec = importlib.util.spec_from_file_location("reference", DOCS / "reference.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_up_to_date(reference: Any) -> None:
    assert (DOCS / "reference.md").read_text("utf-8") == reference.page(), "run `make reference`"


def test_every_public_name_stands_in_it(reference: Any) -> None:
    text = (DOCS / "reference.md").read_text("utf-8")
    names = [name for name in eraser_hub.__all__ if not name.startswith("__")]
    assert [name for name in names if f"### `eraser_hub.{name}`\n" not in text] == []
    assert text.count("\n### ") == len(set(names)) + len(reference.EXPLAIN) + len(metric_names())


def test_sections_become_lists(reference: Any) -> None:
    words = "One line.\n\n    Args:\n        a: of ``b``,\n            and more.\n\n    Returns:\n        A :class:`C`.\n    "
    assert reference.markdown(words) == "One line.\n\n**Args**\n\n- `a`: of `b`,\n  and more.\n\n**Returns**\n\nA `C`."
