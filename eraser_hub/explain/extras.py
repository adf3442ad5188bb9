"""The packages of the extras ``explain``, ``ray`` and ``llm``, which need not be installed."""

from __future__ import annotations

import importlib.util

from eraser_hub.records.errors import DataError


def need(*packages: str) -> None:
    """Check that the extra's packages are installed.

    Raises:
        DataError: says which is missing and how to install it.
    """
    missing = [package for package in packages if importlib.util.find_spec(package) is None]
    if missing:
        names = ", ".join("scikit-learn" if name == "sklearn" else name for name in missing)
        extras = {"openai": "llm", "rapidfuzz": "llm", "lm_eval": "harness", "inspect_ai": "harness", "ray": "ray"}
        extra = next((extras[name] for name in missing if name in extras), "explain")
        raise DataError(f"missing package {names}: install the extra with  pip install 'eraser-hub[{extra}]'")
