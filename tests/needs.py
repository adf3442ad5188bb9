"""Packages that tests need, looked for without importing them, and imports that wait for a test."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import pytest


def needs(*packages: str) -> pytest.MarkDecorator:
    """Return the mark of tests that are skipped where one of these packages is not installed."""
    lacking = [name for name in packages if importlib.util.find_spec(name) is None]
    return pytest.mark.skipif(bool(lacking), reason=f"skipped: no {' and no '.join(lacking)}")


class late:  # reads as an import does
    """A module that is imported when something of it is used: ``torch = late("torch")``."""

    def __init__(self, name: str) -> None:
        self.__name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(importlib.import_module(self.__name), attribute)


class Refusing(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds these modules and refuses to load them; whoever looks whether they are installed is told that they are."""

    def __init__(self, names: Iterable[str], why: str) -> None:
        self.names, self.why = frozenset(names), why

    def find_spec(self, name: str, path: object = None, target: object = None) -> importlib.machinery.ModuleSpec | None:
        return importlib.machinery.ModuleSpec(name, self) if name in self.names else None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        # no ModuleNotFoundError, by which pytest.importorskip would skip the tests in silence
        raise ImportError(f"{spec.name}: {self.why}", name=spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Nothing is loaded."""


@contextmanager
def refused_imports(names: Iterable[str], why: str) -> Iterator[None]:
    """Refuse imports of these modules, of those that are not loaded yet."""
    # what is not installed stays so: tests of an extra that is missing are skipped
    finder = Refusing({name for name in names if name not in sys.modules and importlib.util.find_spec(name)}, why)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
