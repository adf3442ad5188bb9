"""The figure of docs/results.md is what its file says."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from tools.figures import FIGURE, draw, read_rows

pytestmark = pytest.mark.unit


def test_the_figure_is_up_to_date_and_has_every_number():
    text = draw()
    assert FIGURE.read_text("utf-8") == text, "run `make figures`"
    nodes = ET.fromstring(text).iter("{http://www.w3.org/2000/svg}text")
    numbers = [row["value"] for row in read_rows()]
    assert sorted(node.text for node in nodes if node.get("class") == "number") == sorted(numbers)
