"""``eraser-hub``: the command line. Exit status 0: good; 1: bad data; 2: bad usage."""

from __future__ import annotations

import ast
import gc
import importlib
import io
import os
import pkgutil
import sys
from typing import Annotated

import typer

from eraser_hub.records.errors import DataError, printable
from eraser_hub.records.extras import missing_extra

from .version import __version__

# each verb is a module in eraser_hub.cli, with a function of its name; `import` is a word of Python's
_WORDS = (
    "import build check stats export score compare train explain ask reproduce benchmark-scores roar report "
    "highlight board publish serve quickstart methods"
)
VERBS = tuple(_WORDS.split())

# records are objects by the thousand and no cycles: to look for cycles as often as Python does is 5 to 8 % of `score`
COLLECTOR = (50_000, 20, 20)

app = typer.Typer(
    name="eraser-hub",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    add_completion=False,
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


def _register(names: tuple[str, ...] = VERBS) -> None:
    """Give the app these verbs; those that it has already stay as they are."""
    present = {command.name for command in app.registered_commands}
    for verb in names:
        if verb not in present:
            module = importlib.import_module(f"eraser_hub.cli.{_function(verb)}")
            app.command(name=verb)(getattr(module, _function(verb)))


def _list_verbs() -> None:
    """Give the app every verb's words alone, which the help of all shows: read, because to import them takes longer."""
    for verb in VERBS:
        body = ast.parse(pkgutil.get_data("eraser_hub.cli", f"{_function(verb)}.py") or b"").body
        words = {each.name: ast.get_docstring(each) for each in body if isinstance(each, ast.FunctionDef)}
        app.command(name=verb, help=words[_function(verb)])(lambda: None)


def _function(verb: str) -> str:
    return "import_corpus" if verb == "import" else verb.replace("-", "_")


def _spellings(verb: str) -> dict[str, str]:
    """Return how a verb spells the arguments of the Python call: options with their dashes, others in capitals."""
    command = typer.main.get_command(app)
    command = getattr(command, "commands", {}).get(verb, command)
    named = {
        p.name: p.opts[0] if p.opts[0].startswith("-") else getattr(p, "metavar", None) or p.name.upper()
        for p in command.params
        if p.name
    }
    return {**named, **{name.removesuffix("_"): spelling for name, spelling in named.items()}}


def main() -> None:
    """Run the command line; a DataError becomes its message on stderr and exit status 1, without a traceback."""
    gc.set_threshold(*COLLECTOR)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a locale without this character shows its number
            stream.reconfigure(errors="backslashreplace")
    # only the verb that is asked for is imported
    asked = [word for word in sys.argv[1:] if not word.startswith("-")]
    verb = asked[0] if asked and asked[0] in VERBS else ""
    try:
        if verb:
            _register((verb,))
        else:
            _list_verbs()
        app()
    except DataError as error:
        typer.echo(error.text(_spellings(verb) if verb else {}), err=True)
        sys.exit(1)
    except ModuleNotFoundError as error:
        if (lacking := missing_extra(error)) is None:
            raise
        typer.echo(str(lacking), err=True)
        sys.exit(1)
    except BrokenPipeError:
        # the reader (`| head`) went away: nothing to say; keep the interpreter's own flush from complaining
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as error:
        # a full disk, a missing right, a file that went away: what the system says, of which file
        where = f"{error.filename}: " if error.filename else ""
        typer.echo(printable(f"{where}{error.strerror or error}"), err=True)
        sys.exit(1)
    except UnicodeEncodeError as error:
        text = printable(error.object)
        typer.echo(f"{text}: a name that the locale ({error.encoding}) has no letters for: set PYTHONUTF8=1", err=True)
        sys.exit(1)
    except KeyboardInterrupt:
        typer.echo("stopped", err=True)
        sys.exit(130)


if __name__ == "__main__":
    main()
