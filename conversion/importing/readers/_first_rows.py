"""First row of a file, by which a reader recognizes its tool."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from eraser_hub.conversion.importing.tasks import look_at_start


def first_line_object(path: Path) -> dict[str, Any]:
    """Return the object on the first line of JSON lines; {} for any other file."""
    if not path.name.endswith((".jsonl", ".ndjson", ".json")):
        return {}
    return _parse(look_at_start(path, 1 << 22).partition("\n")[0])


def first_element(path: Path) -> dict[str, Any]:
    """Return the first object of a JSON list; {} for any other file."""
    start = look_at_start(path).lstrip()
    if not path.name.endswith(".json") or not start.startswith("["):
        return {}
    element = _parse(start[1:].lstrip())
    return element or _parse(look_at_start(path, 1 << 26).lstrip()[1:].lstrip())


def _parse(text: str) -> dict[str, Any]:
    try:
        value, _ = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
