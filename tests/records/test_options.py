"""Arguments declared once: what they take, what they refuse, and the function that is made of them."""

from __future__ import annotations

import inspect
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import pytest

from eraser_hub.records.errors import UsageError
from eraser_hub.records.options import REQUIRED, NamedFiles, Option, Options, as_list, read_options, with_keywords

from ..refusals import refused

pytestmark = pytest.mark.unit
Seed = Annotated[int, Option(min=0, help="Seed of all that is drawn.")]


@dataclass(frozen=True)
class Box(Options):
    """Of a box.

    Attributes:
        width: In metres: a number
            of them.
        folder: Where it stands.

    Looks, and more:
        colour: Its colour.
        deep: Whether it is.
        words: On it.
    """

    width: Annotated[float, Option(min=0.5, max=2)]
    folder: str | os.PathLike[str] = "hub"
    colour: Literal["red", "blue"] | None = None
    deep: bool = False
    words: str | Sequence[str] | None = None
    seed: Seed = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.deep and self.colour == "red":
            raise UsageError("takes no `deep`", argument="colour")


def test_a_field_says_what_it_takes():
    options = read_options(Box)
    assert list(options) == ["width", "folder", "colour", "deep", "words", "seed"]
    assert options["width"].help == "In metres: a number of them." and options["width"].default is REQUIRED
    assert [each.kind for each in options.values()] == [float, Path, str, bool, str, int]
    assert [name for name, each in options.items() if each.group == "Looks, and more"] == ["colour", "deep", "words"]
    assert options["colour"].choices == ("red", "blue") and options["words"].many and options["words"].optional
    assert (options["seed"].min, options["seed"].help) == (0, "Seed of all that is drawn.")


@pytest.mark.parametrize(
    ("values", "mentioned"),
    [
        ({"width": 3}, "from 0.5 to 2, found 3"),
        ({"width": "1"}, "a number, found '1'"),
        ({"seed": -1}, "at least 0"),
        ({"seed": True}, "a whole number"),
        ({"seed": None}, "None"),
        ({"colour": "green"}, "red, blue"),
        ({"deep": 1}, "True or False"),
        ({"folder": 3}, "a path"),
        ({"words": ["a", 3]}, "a string, found 3"),
        ({"folder": "a\0b"}, "a path without NUL"),
        ({"folder": Path("a\0b")}, "a path without NUL"),
        ({"words": ["a", "\0"]}, "a string without NUL"),
    ],
)
def test_a_value_that_its_field_may_not_have_is_refused(values, mentioned):
    (argument,) = values
    with refused(mentioned, argument=argument, type=UsageError):
        Box(**{"width": 1, **values})


def test_values_that_a_field_may_have():
    Box(1, Path("x"), "blue", True, ["a", "b"], 0)
    Box(0.5, words="a", colour=None)
    assert as_list("a") == ["a"] and as_list(("a", "b")) == ["a", "b"] and as_list(None) is as_list([]) is None
    with refused(argument="colour"):
        Box(1, colour="red", deep=True)


@dataclass(frozen=True)
class Systems(Options):
    """Systems.

    Attributes:
        files: The files of each.
    """

    files: NamedFiles = None


@pytest.mark.parametrize(
    ("files", "values"),
    [
        ("a.jsonl", "a.jsonl"),
        (Path("a.jsonl"), "a.jsonl"),
        ([Path("a.jsonl"), "b=b.jsonl"], ["a.jsonl", "b=b.jsonl"]),
        ({"a": "x.jsonl", "b": [Path("y.jsonl"), "z.jsonl"]}, ["a=x.jsonl", "b=y.jsonl,z.jsonl"]),
        ({"a": "x,y.jsonl"}, ["a=x,y.jsonl"]),
    ],
)
def test_files_of_systems_are_paths_or_a_mapping_of_names_to_them(files, values):
    assert Systems(files).files == values
    assert read_options(Systems)["files"].kind is str


@pytest.mark.parametrize(
    ("files", "mentioned"),
    [
        ({"a=b": "x"}, "names without =, found 'a=b'"),
        ({"": "x"}, "found ''"),
        ({3: "x"}, "found 3"),
        ({"a": 3}, "a path or a list of paths for 'a', found 3"),
        ({"a": []}, "found []"),
        ({"a": ["x", 3]}, "a path or a list of paths for 'a'"),
        ({"a": ["x", "y,z"]}, "without commas"),
        (["a", 3], "a string, found 3"),
    ],
)
def test_a_mapping_that_names_no_files_is_refused(files, mentioned):
    with refused(mentioned, argument="files", type=UsageError):
        Systems(files)


def test_a_function_of_options_takes_their_fields():
    @with_keywords(Box)
    def area(box: Box) -> float:
        """Return the area.

        Returns:
            In square metres.
        """
        return box.width**2

    assert area(2, colour="red") == area(width=2) == 4
    assert list(inspect.signature(area).parameters) == list(read_options(Box))
    assert inspect.signature(area).parameters["colour"].annotation == Literal["red", "blue"] | None
    text = area.__doc__ or ""
    assert text.index("Args:\n    width: In metres: a number of them.") < text.index("Returns:")
    with pytest.raises(TypeError, match="height"):
        area(2, height=1)


def test_a_field_without_words_and_words_without_a_field_are_faults_of_the_code():
    @dataclass(frozen=True)
    class Bare(Options):
        width: float = 1.0

    @dataclass(frozen=True)
    class Odd(Options):
        """Says something of no field.

        Attributes:
            width: In metres.
            height: In metres.
        """

        width: float = 1.0

    for wrong, mentioned in ((Bare, "without help"), (Odd, "height")):
        with pytest.raises(AssertionError, match=mentioned):
            read_options(wrong)


def test_a_subclass_adds_to_the_fields_and_their_words():
    @dataclass(frozen=True)
    class Painted(Box):
        """Of a painted box.

        Attributes:
            layers: Of paint.
        """

        layers: int = 1

    assert list(read_options(Painted)) == [*read_options(Box), "layers"]
    with refused(argument="width"):
        Painted(width=9)
