"""Writes docs/commands.md, every verb with its options, out of the declarations: ``make reference``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parents[1] / "docs" / "commands.md"
INTRODUCTION = """# Commands

Look up what a command does and which options it takes. `eraser-hub VERB --help` prints the same in the terminal.
Options of every command: `--help`. The exit status is 0 after success, 1 after an error in the data and 2 after an
error in the command itself.

This page is generated from the declarations of the options (`make reference`); a test compares the two.
"""


def commands() -> dict[str, Any]:
    """Return each verb's command."""
    import typer

    from eraser_hub import __main__ as main

    main._register()
    found: Any = typer.main.get_command(main.app)
    return {name: found.commands[name] for name in main.VERBS}


def page() -> str:
    """Return the whole page."""
    found = commands()
    table = "".join(f"| [`{verb}`](#{verb}) | {_cell(_purpose(command))} |\n" for verb, command in found.items())
    parts = [INTRODUCTION, f"| command | what it does |\n|---|---|\n{table}"]
    parts += [_section(verb, command) for verb, command in found.items()]
    return "\n".join(parts)


def _purpose(command: Any) -> str:
    return (command.help or "").split("\n\n")[0].replace("\n", " ")


def _section(verb: str, command: Any) -> str:
    parts = [f"## {verb}", _description(command.help or "")]
    panels: dict[str, list[Any]] = {}
    for parameter in command.params:
        if not getattr(parameter, "hidden", False) and "--help" not in parameter.opts:
            panels.setdefault(getattr(parameter, "rich_help_panel", None) or "Options", []).append(parameter)
    for panel, parameters in panels.items():
        rows = "".join(f"| {_spelling(one)} | {_meaning(one)} |\n" for one in parameters)
        parts.append(f"| {panel.lower()} | meaning |\n|---|---|\n{rows}".rstrip())
    return "\n\n".join(parts) + "\n"


def _description(text: str) -> str:
    """A docstring's paragraphs; those after "Examples:" as one block of commands."""
    words, _, examples = text.replace("\n\nExample:\n\n", "\n\nExamples:\n\n").partition("\n\nExamples:\n\n")
    if not examples:
        return words.strip()
    lines = [" ".join(line.strip() for line in part.split("\n")) for part in examples.split("\n\n")]
    typed = [line for line in lines if line.startswith("eraser-hub")]
    rest = [line for line in lines if not line.startswith("eraser-hub")]
    return "\n\n".join([words.strip(), "```text\n" + "\n".join(map(_folded, typed)) + "\n```", *rest])


def _folded(line: str) -> str:
    """A command of more than 80 columns, continued on further lines."""
    rows = [""]
    for word in re.split(r" (?=-|$)", line):
        if rows[-1] and len(rows[-1]) + len(word) > 76:
            rows.append(f"    {word}")
        else:
            rows[-1] += f" {word}" if rows[-1] else word
    return " \\\n".join(rows)


def _spelling(parameter: Any) -> str:
    names = (*parameter.opts, *parameter.secondary_opts)
    if not names[0].startswith("-"):
        return f"`{parameter.metavar or parameter.name.upper()}`"
    return ", ".join(f"`{name}`" for name in names)


def _meaning(parameter: Any) -> str:
    """The help, then the choices, the range and the default."""
    words = [_cell(getattr(parameter, "help", None) or "")]
    metavar = parameter.metavar or ""
    if "|" in metavar:
        words.append("One of " + ", ".join(f"`{one}`" for one in metavar.strip("[]").split("|")) + ".")
    kind = parameter if hasattr(parameter, "min") else parameter.type
    words.append(_range(getattr(kind, "min", None), getattr(kind, "max", None)))
    default = parameter.default
    if parameter.required:
        words.append("Required.")
    elif (
        parameter.opts
        and "default" not in words[0]
        and default not in (None, False, (), [], "")
        and not callable(default)
    ):
        words.append(f"Default: `{'yes' if default is True else default}`.")
    return " ".join(filter(None, words))


def _range(low: float | None, high: float | None) -> str:
    if low is None and high is None:
        return ""
    if low is not None and high is not None:
        return f"From {low} to {high}."
    return f"At most {high}." if low is None else f"At least {low}."


def _cell(text: str) -> str:
    """A text in a cell of a table: one line, its options as code."""
    parts = re.split(r"(`[^`]*`)", " ".join(text.split()).replace("|", "\\|"))
    words = (part if part.startswith("`") else part.replace("<", "&lt;") for part in parts)
    return "".join(
        word if word.startswith("`") else re.sub(r"(?<![\w-])(--[a-z][\w-]*)", r"`\1`", word) for word in words
    )


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE.name}")


if __name__ == "__main__":
    main()
