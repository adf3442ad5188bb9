"""Writes docs/reference.md, the public names of the package out of their docstrings: ``make reference``."""

from __future__ import annotations

import importlib
import inspect
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import evaluate

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference.md"
INTRODUCTION = """# Python API

Look up a public name: what it takes, what it returns, and what it raises. `import eraser_hub` is all that you need to
import; names load what they need when you first use them. The commands are in [commands](commands.md), the files in
[predictions-format](predictions-format.md). This page is generated from the docstrings (`make reference`).
"""
EXPLAIN = ("ExplainSettings", "Instance", "explain_instances", "open_model")
SECTION = re.compile(r"^(Args|Attributes|Returns|Raises|Yields|Examples):$")
ITEM = re.compile(r"^    (\S[^:]*?): (.*)$")


def names() -> Iterator[tuple[str, list[tuple[str, Any]]]]:
    """Each part of the page with its objects by name."""
    package, explain = (importlib.import_module(name) for name in ("eraser_hub", "eraser_hub.attribution"))
    public = [name for name in package.__all__ if not name.startswith("__")]
    yield "`eraser_hub`", [(f"eraser_hub.{name}", getattr(package, name)) for name in public]
    yield "`eraser_hub.attribution`", [(f"eraser_hub.attribution.{name}", getattr(explain, name)) for name in EXPLAIN]
    metrics = importlib.import_module("eraser_hub.publishing.spaces").list_metric_names()
    yield "`evaluate.load(..)`", [(name, importlib.import_module(f"eraser_hub.metrics.{name}")) for name in metrics]


def markdown(text: str) -> str:
    """A docstring's words: its sections as lists, its examples as blocks."""
    lines, section = list[str](), ""
    for line in inspect.cleandoc(text).splitlines():
        heading, item = SECTION.match(line), ITEM.match(line)
        if heading:
            section = heading[1]
            lines += [f"**{section}**", ""]
        elif section == "Examples" and line.startswith("    "):
            lines.append(line[4:])
        elif section and item and section != "Returns":
            lines.append(f"- `{item[1]}`: {item[2]}")
        elif section and line.startswith("    "):
            # what goes on from the line before, or a block after a line that ends in ::
            deeper = bool(lines) and (lines[-1].endswith("::") or lines[-1].startswith("      "))
            lines.append(
                f"      {line.strip()}" if deeper else f"  {line.strip()}" if section != "Returns" else line.strip()
            )
        else:
            section = "" if line and not line.startswith(" ") else section
            lines.append(line)
    plain = re.sub(r":\w+:`~?\.?([^`]+)`", r"`\1`", "\n".join(lines).replace("``", "`"))
    return _examples(plain.replace("::\n", ":\n"))


def _examples(text: str) -> str:
    """The paragraphs with >>> as blocks, which the docstrings' own test runs."""
    parts = [f"```text\n{part}\n```" if part.startswith(">>>") else part for part in text.split("\n\n")]
    return "\n\n".join(parts)


def entry(name: str, thing: Any) -> str:
    """A name's heading, signature and docstring."""
    parts = [f"### `{name}`"]
    if inspect.ismodule(thing) and not callable(thing):
        (metric,) = (
            each
            for each in vars(thing).values()
            if getattr(each, "__module__", "") == thing.__name__
            and inspect.isclass(each)
            and issubclass(each, evaluate.Metric)
        )
        return "\n\n".join([*parts, markdown(metric.__doc__ or "")])
    called = (
        inspect.isroutine(thing)
        or inspect.ismodule(thing)
        or (inspect.isclass(thing) and not issubclass(thing, Exception))
    )
    parts += [_signature(name.rpartition(".")[2], thing)] if called else []
    parts += [markdown(inspect.unwrap(thing).__doc__ or "")]
    if inspect.isclass(thing) and thing.__doc__ and thing.__call__.__doc__ and "__call__" in vars(thing):
        parts += [f"Called: {markdown(thing.__call__.__doc__)}"]
    return "\n\n".join(parts)


def _signature(name: str, thing: Any) -> str:
    words = f"{name}{inspect.signature(thing)}"
    words = re.sub(r"\bself, |'|<factory>|typing\.|collections\.abc\.|os\.|pathlib\.|eraser_hub\.[\w.]*\.", "", words)
    return (
        "```text\n" + "\n".join(textwrap.wrap(words, 118, subsequent_indent="    ", break_long_words=False)) + "\n```"
    )


def page() -> str:
    """The whole page."""
    parts = [INTRODUCTION]
    for heading, objects in names():
        parts += [f"## {heading}\n", *(f"{entry(name, thing)}\n" for name, thing in objects)]
    text = "\n".join(parts)
    return re.sub(r"[ \t]+$", "", re.sub(r"\n{3,}", "\n\n", text), flags=re.MULTILINE)


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE.name}")


if __name__ == "__main__":
    main()
