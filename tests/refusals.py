"""What a test asserts of an error: its fields, not its words."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


class Caught:
    """What `refused` caught: ``error``, and ``first``, the issue whose fields were compared."""

    error: Any = None
    first: Any = None


@contextlib.contextmanager
def refused(
    *mentions: object,
    file: str | Path | None = None,
    line: int | None = None,
    instance: object | None = None,
    field: str | None = None,
    argument: str | None = None,
    total: int | None = None,
    type: type[BaseException] = ValueError,
) -> Iterator[Caught]:
    """Expect an error; of several together, the first.

    Args:
        mentions: values of the data that the message has to show, such as an option, an id or what was found.
        file: the file that is named, or the end of its path.
        line, instance, field, argument: the other fields, compared where they are given.
        total: how many issues there are.
        type: the error's class.
    """
    seen = Caught()
    with pytest.raises(type) as caught:
        yield seen
    error: Any = caught.value
    seen.error = error
    issues = getattr(error, "errors", None) or [error]
    seen.first = first = issues[0]
    if file is not None:
        assert str(first.file) == str(file) or Path(str(first.file)).match(str(file)), error
    places = {"line": line, "instance": instance, "field": field, "argument": argument}
    for name, expected in places.items():
        if expected is not None:
            assert getattr(first, name) == expected, f"{name} {getattr(first, name)!r}: {error}"
    if total is not None:
        more = re.search(r"\(and ([\d,]+) more\)", str(error))
        count = len(issues) + (int(more[1].replace(",", "")) if more else 0)
        assert getattr(error, "total", count) == total
    text = str(error)
    assert not (lost := [str(value) for value in mentions if str(value) not in text]), f"{lost}: {text}"
