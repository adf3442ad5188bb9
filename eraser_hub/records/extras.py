"""The packages of the extras, which need not be installed."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence

from .errors import DataError

# extra -> the modules that it installs; a missing module names the extra
EXTRAS = {
    "stats": ("scipy",),
    "explain": ("torch", "transformers", "sklearn", "scipy", "threadpoolctl", "skops", "captum", "safetensors"),
    "devices": ("accelerate",),
    "llm": ("openai",),
    "ray": ("ray",),
    "plots": ("matplotlib",),
    "apps": ("gradio",),
    "cas": ("cassis",),
}

DISTRIBUTIONS = {"sklearn": "scikit-learn", "cassis": "dkpro-cassis"}


def need(*packages: str) -> None:
    """Check that an extra's packages are installed.

    Raises:
        DataError: says which are missing and how to install them.
    """
    if missing := list_missing(packages):
        raise missing_packages(missing)


def list_missing(packages: Sequence[str]) -> list[str]:
    """Return those of the packages that are not installed."""
    return [package for package in packages if importlib.util.find_spec(package) is None]


def missing_packages(modules: list[str]) -> DataError:
    """Return the error for modules that cannot be imported: their packages, and the extra that brings them."""
    names = ", ".join(DISTRIBUTIONS.get(name, name) for name in modules)
    extra = max(EXTRAS, key=lambda extra: len(set(EXTRAS[extra]) & set(modules)))
    return DataError(f"missing package {names}: install the extra with  pip install 'eraser-hub[{extra}]'")


def missing_extra(error: ModuleNotFoundError) -> DataError | None:
    """Return the error that names the extra, where it is an extra's package that cannot be imported."""
    # a module that is missing inside an installed package has the package's name before it, and is another fault
    module = error.name or ""
    known = any(module in brought for brought in EXTRAS.values())
    return missing_packages([module]) if known else None
