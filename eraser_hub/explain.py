"""Imports of 2.0 from ``eraser_hub.explain``: the folder of that name is :mod:`eraser_hub.attribution` now."""

from __future__ import annotations

import importlib
import sys
from typing import Any

# by name, because this module stands beneath the folder that it forwards to
_ATTRIBUTION = importlib.import_module("eraser_hub.attribution")
__all__ = list(_ATTRIBUTION.__all__)
# `from eraser_hub.explain.adapter import Adapter` finds its module here
for _name in ("adapter", "instances"):
    sys.modules[f"{__name__}.{_name}"] = importlib.import_module(f"eraser_hub.attribution.{_name}")


def __getattr__(name: str) -> Any:
    return getattr(_ATTRIBUTION, name)
