"""Values in the cells of rows, whatever made them: Python's, numpy's, torch's, pandas'."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeAlias

Row: TypeAlias = Mapping[str, Any]


def as_list(value: Any) -> list[Any] | None:
    """The value as a list (tuples, arrays and tensors too), or None where it is none."""
    if isinstance(value, list):
        return value
    if isinstance(value, tuple):
        return list(value)
    if hasattr(value, "tolist") and getattr(value, "ndim", 0) > 0:
        items: list[Any] = value.tolist()
        return items
    return None


def as_scalar(value: Any) -> Any:
    """A number or string of numpy's or torch's, or an array without a dimension, as Python's; others as they are."""
    return value.item() if hasattr(value, "item") and getattr(value, "ndim", 1) == 0 else value


def as_number(value: Any) -> float | None:
    """The value as a finite float, or None where it is no finite number."""
    value = as_scalar(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None
