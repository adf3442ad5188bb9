"""docs/reference.md and docs/commands.md are what docstrings and declarations say today."""

from __future__ import annotations

import eraser_hub
from eraser_hub.publishing.spaces import list_metric_names
from tools import commands
from tools.reference import EXPLAIN, PAGE, markdown, page


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text("utf-8") == page(), "run `make reference`"


def test_the_page_of_commands_is_up_to_date() -> None:
    assert commands.PAGE.read_text("utf-8") == commands.page(), "run `make reference`"


def test_every_public_name_stands_in_it() -> None:
    text = PAGE.read_text("utf-8")
    names = [name for name in eraser_hub.__all__ if not name.startswith("__")]
    assert [name for name in names if f"### `eraser_hub.{name}`\n" not in text] == []
    assert text.count("\n### ") == len(set(names)) + len(EXPLAIN) + len(list_metric_names())


def test_sections_become_lists() -> None:
    words = "One line.\n\n    Args:\n        a: of ``b``,\n            and more.\n\n"
    words += "    Returns:\n        A :class:`C`.\n    "
    assert markdown(words) == "One line.\n\n**Args**\n\n- `a`: of `b`,\n  and more.\n\n**Returns**\n\nA `C`."
