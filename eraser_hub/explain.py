"""``eraser_hub.explain(..)``, and the imports of 2.0 from ``eraser_hub.explain``.

The folder of 2.0 is :mod:`eraser_hub.attribution` now. Importing a module of this name hides a function of the same
name, so the module itself is callable.
"""

from __future__ import annotations

import importlib
import sys
from inspect import signature
from textwrap import fill
from types import ModuleType
from typing import Any

# by name, because this module stands beneath what it forwards to
_ATTRIBUTION = importlib.import_module("eraser_hub.attribution")
__all__ = list(_ATTRIBUTION.__all__)
# `from eraser_hub.explain.adapter import Adapter` finds its module here
for _name in ("adapter", "instances"):
    sys.modules[f"{__name__}.{_name}"] = importlib.import_module(f"eraser_hub.attribution.{_name}")


def __getattr__(name: str) -> Any:
    return getattr(_ATTRIBUTION, name)


class _CallableModule(ModuleType):
    """A module that is called as ``eraser_hub.api.explain``."""

    @property
    def __wrapped__(self) -> Any:
        return importlib.import_module("eraser_hub.api").explain

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.__wrapped__(*args, **kwargs)

    @property
    def __doc__(self) -> str:  # type: ignore[override]
        # a module's help shows no signature
        shown = fill(f"explain{signature(self.__wrapped__)}", 116, subsequent_indent="    ")
        return f"{shown}\n\n{self.__wrapped__.__doc__}"


sys.modules[__name__].__class__ = _CallableModule
