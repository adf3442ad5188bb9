"""The figures that the papers print: ``printed_tables.json``."""

from __future__ import annotations

import json
from functools import lru_cache
from importlib.resources import files
from typing import Any


@lru_cache(maxsize=1)
def printed_tables() -> dict[str, Any]:
    """Dataset -> table -> title, source and figures; a figure is a string, with the digits that are printed."""
    return json.loads(files("eraser_hub.papers").joinpath("printed_tables.json").read_text(encoding="utf-8"))
