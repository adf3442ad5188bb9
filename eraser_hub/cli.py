"""The command line: each verb is the public function of its name, and its result is printed.

Exit status 0: done; 1: bad data; 2: bad usage; 130: interrupted.
"""

from __future__ import annotations

import gc
import inspect
import io
import logging
import os
import re
import shutil
import sys
from collections.abc import Callable, Sequence
from copy import copy
from functools import wraps
from types import UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

from cyclopts import App, CycloptsError, Group, MissingArgumentError, Parameter, UnusedCliTokensError

import eraser_hub
from eraser_hub.metrics.errors import STEERING, VERSION
from eraser_hub.records.arguments import PYTHON
from eraser_hub.records.errors import DataError, UsageError, make_printable, show_controls
from eraser_hub.records.extras import missing_extra
from eraser_hub.records.tables import FORMATS


class Verb(NamedTuple):
    """What the root help says of a verb, so that it lists the verbs without importing them.

    Attributes:
        group: its panel.
        summary: the first line of its function's docstring.
        formats: those of the tables that it prints; none where it prints lines.
        has_more: whether `--all` prints more than the headline scores.
    """

    group: str
    summary: str
    formats: tuple[str, ...] = ()
    has_more: bool = False


VERBS = {
    "quickstart": Verb("First steps", "Score the bundled predictions, and say which commands come next."),
    "import": Verb("Data", "Turn a table, a dataset or an annotation tool's files into a corpus folder."),
    "build": Verb("Data", "Build a Hub dataset, or the metric Spaces."),
    "check": Verb("Data", "Check a built dataset: ids, labels, spans, texts, derived columns, splits, card.", FORMATS),
    "stats": Verb("Data", "Recompute the papers' tables of sizes and evidence.", FORMATS),
    "export": Verb("Data", "Write the raw files of the release back."),
    "train": Verb("Models", "Train a classifier on a config, for `explain`."),
    "explain": Verb("Models", "Explain a model's predictions, and write them with rationales for `score`."),
    "ask": Verb("Models", "Ask a language model for labels and quotes, and write predictions for `score`."),
    "bench": Verb("Scores", "Train, explain, score, compare and report in one call.", FORMATS),
    "score": Verb("Scores", "Score predictions against a corpus.", (*FORMATS, "eraser"), has_more=True),
    "compare": Verb("Scores", "Compare systems on the same split, score by score.", FORMATS, has_more=True),
    "reproduce": Verb("Scores", "Recompute a printed table, and put the figures beside the print.", FORMATS),
    "report": Verb("Pages", "Write a page: which system is better, the scores, the curves, the texts."),
    "board": Verb("Pages", "Write a page of scored and printed results, grouped by what is comparable.", FORMATS),
    "publish": Verb("Publishing", "Publish built datasets, metric Spaces and a model's results to the Hub."),
}
# records are objects by the thousand and no cycles: to look for cycles as often as Python does is 5 to 8 % of `score`
COLLECTOR = (50_000, 20, 20)
EXAMPLE = re.compile(r"^ *\$ (eraser-hub .*(?:(?<=\\)\n.*)*)", re.MULTILINE)
ARGUMENT = re.compile(r"`([a-z_]+)`")
PIPED_WIDTH = 120

options: dict[str, str] = {}  # of the verb that runs: what Python calls an argument -> its option
app = App(
    name="eraser-hub",
    help="Corpora of human rationales as Hub datasets, and the scores that measure a model's rationales.\n\n"
    "Start with `eraser-hub quickstart`.",
    version=VERSION,
    default_parameter=Parameter(negative=()),
    suppress_keyboard_interrupt=False,
)
groups = {name: Group.create_ordered(name) for name in dict.fromkeys(verb.group for verb in VERBS.values())}
for name, verb in VERBS.items():
    app.command(f"eraser_hub.cli:{name}", name=name, help=verb.summary, group=groups[verb.group])
app.register_install_completion_command()


def __getattr__(name: str) -> App:
    """Return the command of a verb, which cyclopts asks for when the verb is typed."""
    if name not in VERBS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    function = getattr(eraser_hub, "import_corpus" if name == "import" else name)
    words = inspect.getdoc(function) or ""  # none with -OO
    examples = EXAMPLE.findall(words)
    lines = [re.sub(r" *\\?\n? {2,}", " ", example) for example in examples]  # of several lines one, which is wrapped
    about = words.partition("\n\nArgs:")[0].partition("\n\n")[2]  # cyclopts shows the summary above the options
    epilogue = "\n".join([about, "", "**Examples**", "```", *lines, "```"]) if examples else None
    command = App(name=name, help_epilogue=epilogue, version_flags=())
    command.default(make_command(function, VERBS[name]))
    return command


def make_command(function: Callable[..., Any], verb: Verb) -> Callable[..., int]:
    """Return a function that prints the result, with the same arguments, and `format` and `all` as the verb has them.

    Returns:
        The exit status of the function.
    """

    @wraps(function)
    def run(*args: Any, format: str = "text", all: bool = False, **kwargs: Any) -> int:
        options.update(names)
        return show_result(function(*args, **kwargs), format, all)

    # of a class, since the type of the result may be known to type checkers alone
    annotations = {name: hint for name, hint in function.__annotations__.items() if name != "return"}
    holder = type("Arguments", (), {"__annotations__": annotations, "__module__": function.__module__})
    hints = {name: to_option_type(hint) for name, hint in get_type_hints(holder, include_extras=True).items()}
    # `*args` of Python are no option: of `--predictions A B` the second would come before the first
    parameters = [
        each for each in inspect.signature(function).parameters.values() if each.kind is not each.VAR_POSITIONAL
    ]
    if verb.has_more:
        hints["all"] = Annotated[
            bool, Parameter(group="Output", help="Print all scores, not the headline scores alone.")
        ]
        parameters.append(inspect.Parameter("all", inspect.Parameter.KEYWORD_ONLY, default=False))
    if verb.formats:
        shown = Parameter(group="Output" if verb.has_more else "Parameters", help="Form of what is printed.")
        hints["format"] = Annotated[Literal[verb.formats], shown]
        parameters.append(inspect.Parameter("format", inspect.Parameter.KEYWORD_ONLY, default="text"))
    for each in parameters:
        if each.default is False or each.default in ("", ()):  # "not given": the help need not say so
            hints[each.name] = Annotated[hints[each.name], Parameter(show_default=False)]
    shown_names = [each.name for each in parameters if PYTHON not in get_args(hints.get(each.name))]
    names = {name: f"--{name.replace('_', '-')}" for name in shown_names}
    signature = [each.replace(annotation=hints.get(each.name, each.annotation)) for each in parameters]
    run.__signature__ = inspect.Signature(signature)  # type: ignore[attr-defined]  # where cyclopts looks
    run.__annotations__ = hints
    del run.__wrapped__  # its signature is not that of the command
    return run


def to_option_type(hint: Any) -> Any:
    """Return the type that the command line reads: of several a list, or a string, which Python takes beside others.

    >>> to_option_type(str | os.PathLike | Sequence[str] | None), to_option_type(int | None)
    (list[str] | None, int | None)
    """
    if get_origin(hint) is Annotated:
        inner, *metadata = get_args(hint)
        return Annotated[(to_option_type(inner), *metadata)]
    choices = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    if any(get_origin(choice) in (Sequence, list, tuple) for choice in choices):
        items = [get_args(choice)[0] for choice in choices if get_origin(choice) in (Sequence, list, tuple)]
        hint = list[to_option_type(items[0])]  # type: ignore[misc]
    elif str in choices:
        hint = str
    return hint | None if type(None) in choices else hint


def show_result(result: Any, format: str = "text", whole: bool = False) -> int:
    """Print a verb's result, and its notes to stderr; return the exit status.

    A result with tables has ``table(whole)`` and ``as_json()``, and may have ``signatures``. Any result may have
    ``notes`` or ``all_notes``, and ``failed``, which makes the status 1. All else is printed as the string that it is.
    """
    for note in getattr(result, "all_notes", getattr(result, "notes", ())):
        print_error(note)
    if format == "eraser":
        print_json(result.to_eraser())
    elif format == "json":
        print_json(result.as_json() if hasattr(result, "as_json") else result)
    elif hasattr(result, "table"):
        width = shutil.get_terminal_size((PIPED_WIDTH, 24)).columns
        signatures = [show_controls(line) for line in getattr(result, "signatures", ())]
        if format == "latex":
            print("\n".join(f"% {line}" for line in signatures))
        written = result.table(whole).written(format, width)
        print(name_options(written) if format == "text" else written)
        if format == "csv":
            print_error("\n".join(signatures))
        elif format != "latex" and signatures:
            quote = "`" if format == "markdown" else ""
            print("\n" + "\n".join(f"{quote}{line}{quote}" for line in signatures))
    else:
        # the lines of a list may be prompts, which stand as they are asked
        lines = result if isinstance(result, list) else [] if result is None else [name_options(str(result))]
        for line in lines:
            print("\n".join(map(show_controls, str(line).split("\n"))))
    return int(bool(getattr(result, "failed", False)))


def print_json(content: Any) -> None:
    """Print JSON to stdout; what could steer a terminal is written by its number, which means the same."""
    from eraser_hub.records.files import to_json_bytes

    steering = {code: f"\\u{code:04x}" for code in (*range(0x7F, 0xA0), *STEERING)}
    sys.stdout.flush()
    sys.stdout.buffer.write(to_json_bytes(content).decode().translate(steering).encode())


def print_error(words: str) -> None:
    """Print to stderr what is wrong, or what was left out, guessed or defaulted."""
    if words:
        print(make_printable(name_options(words)), file=sys.stderr)


def name_options(words: str) -> str:
    """Return words in which the arguments of a call, which stand in backquotes, are options of the verb that runs."""
    return ARGUMENT.sub(lambda found: f"`{options.get(found[1], found[1])}`", words)


class Printer(logging.Handler):
    """Prints the package's log to stderr: what is skipped or defaulted, and what a long run does."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print a record."""
        print_error(record.getMessage())


def main(arguments: list[str] | None = None) -> None:
    """Run the command line, and end the process; an error in the data is a message and no traceback."""
    gc.set_threshold(*COLLECTOR)
    options.clear()
    # pyarrow's allocator reserves addresses for a gigabyte at once, which ends a run where these are limited
    os.environ.setdefault("MIMALLOC_ARENA_RESERVE", "65536")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a locale without this character shows its number
            stream.reconfigure(errors="backslashreplace")
    log = logging.getLogger("eraser_hub")
    log.handlers, log.propagate = [Printer()], False
    log.setLevel(logging.INFO)
    try:
        status = app(arguments, exit_on_error=False, print_error=False, result_action="return_value")
        sys.stdout.flush()
    except CycloptsError as error:
        verb = next((f" {word}" for word in (arguments or sys.argv[1:]) if word in VERBS), "")
        print_error(describe_usage(error))
        print_error(f"(eraser-hub{verb} --help)")
        raise SystemExit(2) from error
    except KeyboardInterrupt:
        print_error("stopped")
        raise SystemExit(130) from None
    except Exception as error:
        if (message := describe_failure(error)) is None:
            raise
        print_error(message)
        is_usage = isinstance(error, DataError) and error.argument is not None and error.file is None
        raise SystemExit(2 if is_usage or isinstance(error, UsageError) else 1) from error
    raise SystemExit(status or 0)


def describe_usage(error: CycloptsError) -> str:
    """Return the message of a command that was typed wrongly; "tokens" are words of texts here, and no arguments."""
    if isinstance(error, MissingArgumentError) and error.argument is not None:
        return f"expected {error.argument.name}, found none"
    if isinstance(error, UnusedCliTokensError):
        rest = " ".join(map(repr, error.unused_tokens or ()))
        return f"expected no more, found {rest}: several values repeat their option, and one with blanks needs quotes"
    return str(error)


def describe_failure(error: Exception) -> str | None:
    """Return the message of an error that is no fault of the program; None for any other, "" without a reader."""
    if isinstance(error, DataError):
        shown = copy(error)
        shown.argument = options.get(error.argument or "", error.argument)
        return str(shown)
    if isinstance(error, ModuleNotFoundError):
        lacking = missing_extra(error)
        return None if lacking is None else str(lacking)
    if isinstance(error, BrokenPipeError):
        # the reader (`| head`) went away: nothing to say; keep the interpreter's own flush from complaining
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ""
    if isinstance(error, OSError):  # a full disk, a missing right, a file that went away: of which file
        where = f"{error.filename}: " if error.filename else ""
        is_file = isinstance(error, FileExistsError | NotADirectoryError)  # where a folder is made
        return where + ("expected a folder, found a file" if is_file else str(error.strerror or error))
    if isinstance(error, UnicodeEncodeError):
        return f"{error.object}: a name that the locale ({error.encoding}) has no letters for: set PYTHONUTF8=1"
    return None
