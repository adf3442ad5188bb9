"""Conversion of row values from Python, numpy, torch and pandas to Python types."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeAlias

Row: TypeAlias = Mapping[str, Any]


def as_list(value: Any) -> list[Any] | None:
    """Return the value (list, tuple, array or tensor) as a list; None if it is something else."""
    if isinstance(value, list):
        return value
    if isinstance(value, tuple):
        return list(value)
    if hasattr(value, "tolist") and getattr(value, "ndim", 0) > 0:
        items: list[Any] = value.tolist()
        return items
    return None


def as_scalar(value: Any) -> Any:
    """Return a scalar of numpy or torch, or an array without dimensions, as a Python value; others unchanged."""
    return value.item() if hasattr(value, "item") and getattr(value, "ndim", 1) == 0 else value


def as_number(value: Any) -> float | None:
    """Return the value as a finite float; None if it is no finite number."""
    value = as_scalar(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None
