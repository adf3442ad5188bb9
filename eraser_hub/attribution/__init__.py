"""A model and a dataset -> predictions in the ERASER results format.

From Python: ``explain_texts(model, texts, method="occlusion")``; the parts that it is made of are here as well.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .explain import explain_texts
    from .instances import Instance
    from .models.opening import open_model
    from .predictions import explain_instances
    from .settings import ExplainSettings, build_settings

__all__ = ["ExplainSettings", "Instance", "build_settings", "explain_instances", "explain_texts", "open_model"]
_HOMES = {
    "ExplainSettings": "settings",
    "build_settings": "settings",
    "Instance": "instances",
    "explain_instances": "predictions",
    "explain_texts": "explain",
    "open_model": "models.opening",
}


def __getattr__(name: str) -> Any:
    # late, so that a command that explains nothing does not wait for numpy
    if name in _HOMES:
        return getattr(import_module(f".{_HOMES[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
