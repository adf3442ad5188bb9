"""A verb whose options are the fields of a dataclass, and their help its docstring."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Literal

import pytest
import typer
from typer.testing import CliRunner

from eraser_hub.cli.usage import print_note, with_options
from eraser_hub.records.options import Option, Options

pytestmark = pytest.mark.unit


@dataclass(frozen=True)
class Sizes(Options):
    """Of a box.

    Attributes:
        width: In metres: a number
            of them.
        deep: Whether it is.
    """

    width: float
    deep: bool = False
    name: Annotated[str, Option(help="Its name.")] = "box"


def test_fields_are_options_and_their_words_the_help():
    seen = []
    app = typer.Typer()
    app.command()(with_options(Sizes)(seen.append))
    run = CliRunner().invoke
    assert run(app, ["--width", "2", "--deep"]).exit_code == 0
    assert seen == [Sizes(2.0, True, "box")]
    said = " ".join(run(app, ["--help"], env={"COLUMNS": "120"}).output.split())
    assert all(
        words in said for words in ("In metres: a number of them.", "Whether it is.", "Its name (default: box).")
    )
    assert run(app, []).exit_code == 2, "a field without a default has to be given"


@dataclass(frozen=True, kw_only=True)
class Crate(Options):
    """Of a box with a range, flags, and lists.

    Attributes:
        width: In metres.
        boards: At least one; as many as `width` needs.
        open: Whether it has no lid.
        marks: What stands on it.
        layers: With commas between.
        holes: Where they are.
        wood: What it is made of.
        shop: Where it is sold.
        watch: Called with each board.
    """

    width: float
    boards: Annotated[int | None, Option(min=1)] = None
    open: bool = False
    marks: Annotated[tuple[str, ...], Option(name="mark")] = ()
    layers: Annotated[tuple[str, ...], Option(commas=True)] = ()
    holes: Annotated[tuple[float, ...], Option(commas=True, percent=True)] = (0.1, 0.07)
    wood: Literal["pine", "oak"] = "pine"
    shop: Annotated[str, Option(announced=True)] = "here"
    watch: Annotated[Callable[[int], None] | None, Option(python_only=True)] = None


def test_options_are_what_their_types_say():
    seen = []

    def show(options):
        seen.append(options)
        print_note("`width` is large, `price` is not an option, and `marks` may be repeated")

    app = typer.Typer()
    app.command()(with_options(Crate)(show))
    run = CliRunner().invoke
    given = "--width 2 --open --mark a --mark b --layers x,y --boards 3 --holes 5,7 --shop there"
    done = run(app, given.split())
    assert done.exit_code == 0
    lists = {"marks": ("a", "b"), "layers": ("x", "y"), "holes": (0.05, 0.07)}
    assert seen == [Crate(width=2.0, boards=3, open=True, shop="there", **lists)]
    assert done.stderr == "--width is large, `price` is not an option, and --mark may be repeated\n"
    done = run(app, ["--width", "2"])
    assert seen[1] == Crate(width=2.0)
    assert done.stderr.startswith("shop: here (--shop names another)\n"), "what was taken by default is said"
    for wrong in ("--boards 0", "--wood elm", "--no-open", "--watch x", "--holes some"):
        assert run(app, ["--width", "2", *wrong.split()]).exit_code == 2
    said = " ".join(run(app, ["--help"], env={"COLUMNS": "120"}).output.split())
    assert "as many as --width needs" in said and "(default: 10,7)." in said


@dataclass(frozen=True, kw_only=True)
class Shelf(Options):
    """Of a shelf.

    Attributes:
        width: In metres.
        more: A setting, NAME=VALUE.

    Boards:
        steps: How many.
        grain: Which way it runs.
        gaps: Between the boards.
    """

    width: float
    more: Annotated[tuple[str, ...], Option(name="set")] = ()
    steps: Annotated[int, Option(min=1, settable=True)] = 3
    grain: Annotated[Literal["up", "down"], Option(settable=True)] = "up"
    gaps: Annotated[tuple[float, ...], Option(commas=True, percent=True, settable=True)] = (0.1,)


def shelf(words: str) -> tuple[list[Shelf], str, int]:
    """The options that a line gives, what stderr says, and the exit status."""
    seen = []
    app = typer.Typer()
    app.command()(with_options(Shelf)(seen.append))
    done = CliRunner().invoke(app, words.split())
    return seen, done.stderr, done.exit_code


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("--set steps=4 --set grain=down", Shelf(width=2.0, steps=4, grain="down")),
        ("--set gaps=5,7 --set wood=oak", Shelf(width=2.0, gaps=(0.05, 0.07), more=("wood=oak",))),
    ],
)
def test_settings_are_pairs_and_no_options_of_their_own(words, expected):
    assert shelf(f"--width 2 {words}") == ([expected], "", 0)
    assert shelf("--width 2 --steps 4")[2] == 2


@pytest.mark.parametrize(
    "words", ["--set steps=0", "--set steps=many", "--set grain=left", "--set gaps=some", "--set steps=2 --set steps=4"]
)
def test_a_wrong_value_of_a_setting_is_bad_usage(words):
    seen, stderr, status = shelf(f"--width 2 {words}")
    field = words.split()[1].partition("=")[0]
    assert not seen and status == 2 and f"--set {field}" in stderr


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
        with_options(Bare)
    with pytest.raises(AssertionError, match="height"):
        with_options(Odd)
