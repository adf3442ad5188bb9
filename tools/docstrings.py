"""What the site's page of the Python API shows of signatures and docstrings, for mkdocstrings (see mkdocs.yml)."""

from __future__ import annotations

import re
from typing import Any

import griffe

COMMANDS = re.compile(r"(?:^ *\$ .*\n?)+", re.MULTILINE)


class PlainWords(griffe.Extension):
    """Shows types without what the command line reads beside them, and command lines of examples as a block."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Change an object that was read."""
        if obj.docstring:
            obj.docstring.value = COMMANDS.sub(frame_commands, obj.docstring.value)
        for parameter in obj.parameters if isinstance(obj, griffe.Function) else ():
            hint = parameter.annotation
            if isinstance(hint, griffe.ExprSubscript) and hint.canonical_name == "Annotated":
                assert isinstance(hint.slice, griffe.ExprTuple)
                parameter.annotation = hint.slice.elements[0]


def frame_commands(lines: re.Match[str]) -> str:
    """Return command lines of a docstring as a fenced block; Python has joined those that were continued."""
    indent = re.match(" *", lines[0])[0]  # type: ignore[index]
    joined = re.sub(r"(?<=\S) {2,}", " ", lines[0].rstrip())
    return f"{indent}```{{ .console .wrapped }}\n{joined}\n{indent}```\n"
