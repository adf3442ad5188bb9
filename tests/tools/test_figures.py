"""The figures of docs/results.md are what their files say, and the page shows and links each."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from tools.figures import DATA, DOCS, FIGURES, draw, rows_of

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_is_up_to_date_and_has_every_number(name):
    text = draw(name)
    assert (DOCS / "images" / f"results-{name}.svg").read_text("utf-8") == text, "run `make figures`"
    nodes = ET.fromstring(text).iter("{http://www.w3.org/2000/svg}text")
    numbers = [row["value"] for row in rows_of(name)]
    assert sorted(node.text for node in nodes if node.get("class") == "number") == sorted(numbers)


def test_the_page_shows_each_figure_and_links_its_numbers():
    page = (DOCS / "results.md").read_text("utf-8")
    assert {path.stem for path in DATA.glob("*.csv")} == FIGURES.keys()
    for name in FIGURES:
        assert f"(images/results-{name}.svg)" in page and f"(results/{name}.csv)" in page


def test_intervals_hold_their_values():
    rows = [row for name in FIGURES for row in rows_of(name) if row.get("low")]
    assert len(rows) > 200
    assert not [row for row in rows if not float(row["low"]) <= float(row["value"]) <= float(row["high"])]
