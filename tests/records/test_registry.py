"""A registry finds its parts in folders and in entry points, and says what is wrong with one."""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint

import pytest

from eraser_hub.records import registry
from eraser_hub.records.registry import Registry

from ..refusals import refused

pytestmark = pytest.mark.unit


class Shape:
    """What parts extend."""


@pytest.fixture
def shapes(tmp_path, monkeypatch):
    """A registry over a package with a part, a helper, and two modules without one part."""
    folder = tmp_path / "shapes_of_test"
    folder.mkdir()
    header = f"from {__name__} import Shape\n"
    (folder / "__init__.py").write_text("")
    (folder / "flat_square.py").write_text(header + "class _Base(Shape): ...\nclass Square(_Base): ...\n")
    (folder / "_helper.py").write_text("raise RuntimeError('never imported')\n")
    (folder / "nothing.py").write_text(header)
    (folder / "two.py").write_text(header + "class A(Shape): ...\nclass B(Shape): ...\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, __name__, sys.modules[__name__])
    points = []
    monkeypatch.setattr(registry, "entry_points", lambda group: [point for point in points if point.group == group])
    yield Registry("eraser_hub.shapes", "shape", Shape, "shapes_of_test"), points
    for name in [name for name in sys.modules if name.startswith("shapes_of_test")]:
        del sys.modules[name]


def test_a_module_is_a_part_and_is_imported_when_asked_for(shapes):
    parts, _ = shapes
    assert list(parts) == ["flat-square", "nothing", "two"]
    assert "shapes_of_test.flat_square" not in sys.modules
    assert parts["flat-square"].__name__ == parts.find("flat-square").__name__ == "Square"


@pytest.mark.parametrize(("name", "count"), [("nothing", 0), ("two", 2)])
def test_a_module_without_one_part_is_refused(shapes, name, count):
    with refused("Shape", count, field=f"shapes_of_test.{name}"):
        shapes[0][name]


def test_a_plug_in_is_a_part(shapes):
    parts, points = shapes
    points.append(EntryPoint("round", f"{__name__}:Shape", "eraser_hub.shapes"))
    assert list(parts) == ["flat-square", "nothing", "round", "two"]
    assert parts["round"] is Shape
    assert len(parts) == 4 and "round" in parts


def test_a_plug_in_of_another_sort_is_refused(shapes):
    parts, points = shapes
    points.append(EntryPoint("words", "string:ascii_letters", "eraser_hub.shapes"))
    with refused("Shape", 0, field="string:ascii_letters"):
        parts["words"]


@pytest.mark.parametrize("other", ["flat-square", "round"])
def test_two_parts_of_one_name_are_refused(shapes, other):
    parts, points = shapes
    points += [EntryPoint(other, f"{__name__}:{name}", "eraser_hub.shapes") for name in ("Shape", "Registry")]
    with refused(other, field="eraser_hub.shapes"):
        list(parts)


def test_an_unknown_name_is_refused_with_those_there_are(shapes):
    with refused("flat-square", "'oval'", argument="shape"):
        shapes[0].find("oval")
    with pytest.raises(KeyError):
        shapes[0]["oval"]
