"""``eraser-hub``: the command line. Exit status 0: good; 1: bad data; 2: bad usage."""

from __future__ import annotations

import ast
import gc
import importlib
import importlib.util
import io
import os
import pkgutil
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from eraser_hub.records.errors import DataError, make_printable
from eraser_hub.records.extras import missing_extra

from .version import __version__

# panel of the help -> its verbs; each is a function of its module in eraser_hub.cli
PANELS = {
    "First steps": ("quickstart",),
    "Data": ("import", "build", "check", "stats", "export"),
    "Models": ("train", "explain", "ask"),
    "Scores": ("bench", "score", "compare", "reproduce"),
    "Pages": ("report", "board"),
    "Publishing": ("publish",),
}
VERBS = tuple(verb for verbs in PANELS.values() for verb in verbs)

# records are objects by the thousand and no cycles: to look for cycles as often as Python does is 5 to 8 % of `score`
COLLECTOR = (50_000, 20, 20)
COMPLETION = "_ERASER_HUB_COMPLETE"  # the shell asks for completions

app = typer.Typer(
    name="eraser-hub",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(value: bool) -> None:
    if value:
        typer.echo(f"eraser-hub {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Corpora of human rationales as Hub datasets, and the scores that measure a model's rationales.

    Start with `eraser-hub quickstart`.
    """


def _register(verbs: Sequence[str] = VERBS) -> None:
    """Give the app these verbs; those that it has already stay as they are."""
    present = [command.name for command in app.registered_commands]
    for verb in (each for each in verbs if each not in present):
        panel = next(panel for panel, names in PANELS.items() if verb in names)
        if importlib.util.find_spec(f"eraser_hub.cli.{_function(verb)}") is None:
            as_typed = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}
            app.command(name=verb, context_settings=as_typed)(_open_door)
            continue
        commands = importlib.import_module(f"eraser_hub.cli.{_function(verb)}")
        app.command(name=verb, rich_help_panel=panel)(getattr(commands, _function(verb)))


def _open_door(context: typer.Context) -> None:
    from eraser_hub.door import main as open_door

    open_door([context.info_name or "", *context.args])


def _list_verbs() -> None:
    """Give the app the help text of every verb alone, read from the source: importing the verbs takes longer."""
    for panel, verbs in PANELS.items():
        for verb in verbs:
            app.command(name=verb, help=_help(verb), rich_help_panel=panel)(lambda: None)


def _help(verb: str) -> str | None:
    if importlib.util.find_spec(f"eraser_hub.cli.{_function(verb)}") is None:
        from eraser_hub.door import VERBS as moved

        return moved[verb].summary
    body = ast.parse(pkgutil.get_data("eraser_hub.cli", f"{_function(verb)}.py") or b"").body
    words = {each.name: ast.get_docstring(each) for each in body if isinstance(each, ast.FunctionDef)}
    return words[_function(verb)]


def _function(verb: str) -> str:
    return "import_corpus" if verb == "import" else verb.replace("-", "_")  # `import` is a word of Python's


def main() -> None:
    """Run the command line; a DataError becomes its message on stderr and exit status 1, without a traceback."""
    gc.set_threshold(*COLLECTOR)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a locale without this character shows its number
            stream.reconfigure(errors="backslashreplace")
    typed = os.environ.get("COMP_WORDS", "").split()[1:] if COMPLETION in os.environ else sys.argv[1:]
    verb = next((word for word in typed if not word.startswith("-")), "")
    if verb in VERBS and importlib.util.find_spec(f"eraser_hub.cli.{_function(verb)}") is None:
        from eraser_hub.door import main as door  # verbs go there one after another

        door()
    try:
        if verb in VERBS:
            _register((verb,))  # it alone is imported
        else:
            _list_verbs()
        app()
    except KeyboardInterrupt:
        typer.echo("stopped", err=True)
        sys.exit(130)
    except Exception as error:
        if (message := _describe_failure(error)) is None:
            raise
        if message:
            typer.echo(message, err=True)
        sys.exit(1)


def _describe_failure(error: Exception) -> str | None:
    """Return the message of an error that is no fault of the program; None for any other, "" without a reader."""
    if isinstance(error, DataError):
        from eraser_hub.cli.usage import spellings

        return make_printable(error.text(spellings()))
    if isinstance(error, ModuleNotFoundError):
        lacking = missing_extra(error)
        return None if lacking is None else str(lacking)
    if isinstance(error, BrokenPipeError):
        # the reader (`| head`) went away: nothing to say; keep the interpreter's own flush from complaining
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ""
    if isinstance(error, OSError):
        # a full disk, a missing right, a file that went away: what the system says, of which file
        where = f"{error.filename}: " if error.filename else ""
        return make_printable(f"{where}{error.strerror or error}")
    if isinstance(error, UnicodeEncodeError):
        text = make_printable(error.object)
        return f"{text}: a name that the locale ({error.encoding}) has no letters for: set PYTHONUTF8=1"
    return None


if __name__ == "__main__":
    main()
