"""A verb whose options are the fields of a dataclass, and their help its docstring."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from eraser_hub.cli.usage import chosen, takes

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
