"""A model and a dataset -> predictions in the ERASER results format.

From Python: ``explain_texts(model, texts, method="occlusion")``; the parts that it is made of are here as well.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .engine import explain_instances
    from .explain import explain_texts
    from .instances import Instance
    from .open import open_model
    from .settings import ExplainSettings

__all__ = ["ExplainSettings", "Instance", "explain_instances", "explain_texts", "open_model"]
_HOMES = {
    "ExplainSettings": "settings",
    "Instance": "instances",
    "explain_instances": "engine",
    "explain_texts": "explain",
    "open_model": "open",
}


def __getattr__(name: str) -> Any:
    # late, so that a command that explains nothing does not wait for numpy
    if name in _HOMES:
        return getattr(import_module(f".{_HOMES[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
