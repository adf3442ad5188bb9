"""The numbers of ``numbers/`` are those of today's code; `record.py` says how they are made."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest

from ..needs import needs
from .record import RECORDS, compute

# explanations are sums of many products, which processors add in another order
RELATIVE = {"explanations": 1e-5}


def differences(expected: Any, found: Any, key: str, relative: float) -> Iterator[str]:
    if isinstance(expected, dict) and isinstance(found, dict) and expected.keys() == found.keys():
        for name, value in expected.items():
            yield from differences(value, found[name], f"{key}: {name}", relative)
    elif isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        for number, pair in enumerate(zip(expected, found, strict=True)):
            yield from differences(*pair, f"{key}[{number}]", relative)
    elif isinstance(expected, float) and isinstance(found, int | float):
        if not math.isclose(expected, found, rel_tol=relative, abs_tol=relative * 1e-3):
            yield f"{key}: expected {expected!r}, found {found!r}"
    elif expected != found:
        yield f"{key}: expected {str(expected)[:300]}, found {str(found)[:300]}"


@pytest.mark.parametrize("name", RECORDS)
@needs("sklearn", "torch", "transformers", "captum", "cassis")
def test_the_numbers_are_those_that_were_recorded(name: str) -> None:
    expected, found = compute(name)
    assert list(differences(expected, found, f"{name}.json", RELATIVE.get(name, 1e-9))) == []
