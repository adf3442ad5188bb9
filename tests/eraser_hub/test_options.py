"""A verb whose options are the fields of a dataclass, and their help its docstring."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import pytest
import typer
from msgspec import Meta
from typer.testing import CliRunner

from eraser_hub.cli.usage import chosen, say, takes

pytestmark = pytest.mark.unit


@dataclass(frozen=True)
class Sizes:
    """Of a box.

    Attributes:
        width: In metres: a number
            of them.
        deep: Whether it is.
    """

    width: float
    deep: Annotated[bool, typer.Option("--deep")] = False
    name: Annotated[str, typer.Option(help="Its name.")] = "box"


def test_fields_are_options_and_their_words_the_help():
    seen = []
    app = typer.Typer()
    app.command()(takes(Sizes)(seen.append))
    run = CliRunner().invoke
    assert run(app, ["--width", "2", "--deep"]).exit_code == 0
    assert seen == [Sizes(2.0, True, "box")] and chosen(seen[0], "width name") == {"width": 2.0, "name": "box"}
    said = " ".join(run(app, ["--help"], env={"COLUMNS": "120"}).output.split())
    assert all(words in said for words in ("In metres: a number of them.", "Whether it is.", "Its name."))
    assert run(app, []).exit_code == 2, "a field without a default has to be given"


@dataclass(frozen=True, kw_only=True)
class Crate(Sizes):
    """Of a box with a range, flags, and lists.

    Attributes:
        boards: At least one; as many as `width` needs.
        open: Whether it has no lid.
        marks: What stands on it.
        layers: With commas between.
        wood: What it is made of.
    """

    boards: Annotated[int, Meta(ge=1)] | None = None
    open: bool = False
    marks: tuple[str, ...] = ()
    layers: tuple[str, ...] = ()
    wood: Literal["pine", "oak"] = "pine"


def test_options_are_what_their_types_say():
    seen = []

    def show(options):
        seen.append(options)
        say("`width` is large, `price` is not an option, and `marks` may be repeated")

    app = typer.Typer()
    parser = typer.Option(parser=lambda text: tuple(text.split(",")) if text else ())
    app.command()(takes(Crate, marks=typer.Option("--mark"), layers=parser)(show))
    run = CliRunner().invoke
    done = run(app, ["--width", "2", "--open", "--mark", "a", "--mark", "b", "--layers", "x,y", "--boards", "3"])
    assert done.exit_code == 0
    assert seen == [Crate(2.0, boards=3, open=True, marks=("a", "b"), layers=("x", "y"))]
    assert done.stderr == "--width is large, `price` is not an option, and --mark may be repeated\n"
    assert run(app, ["--width", "2"]).exit_code == 0 and seen[1] == Crate(2.0)
    for wrong in ("--boards 0", "--wood elm", "--no-open"):
        assert run(app, ["--width", "2", *wrong.split()]).exit_code == 2
    said = " ".join(run(app, ["--help"], env={"COLUMNS": "120"}).output.split())
    assert "as many as --width needs" in said and "a number of them" in said


def test_an_option_without_help_and_help_without_an_option_are_faults_of_the_code():
    @dataclass
    class Bare:
        """Nothing is said of the field."""

        width: float = 1.0

    @dataclass
    class Odd:
        """Says something of no field.

        Attributes:
            width: In metres.
            height: In metres.
        """

        width: float = 1.0

    with pytest.raises(AssertionError, match="without help"):
        takes(Bare)
    with pytest.raises(AssertionError, match="height"):
        takes(Odd)
