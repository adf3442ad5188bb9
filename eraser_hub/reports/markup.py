"""The files of ``reports/templates``: as text, and filled in by jinja."""

from __future__ import annotations

import html
import re
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from eraser_hub.records.errors import show_controls

if TYPE_CHECKING:
    from jinja2 import Environment


# a soft hyphen where the long words of score names may break
_HYPHENS = re.compile(r"(?i)(compre|hensive|suffi|normal)(?=hensiveness|ness|ciency|ised)")


def read_template(name: str) -> str:
    """Return a file of ``reports/templates`` as text."""
    return (resources.files("eraser_hub.reports") / "templates" / name).read_text(encoding="utf-8")


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FunctionLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(autoescape=True, undefined=StrictUndefined, loader=FunctionLoader(read_template))
    environment.filters["quoted"] = lambda text: Markup(html.escape(text, quote=True))
    environment.filters["xml"] = lambda text: Markup(html.escape(str(text), quote=False))
    environment.filters["visible"] = show_controls
    environment.filters["hyphenated"] = lambda text: _HYPHENS.sub("\\1\u00ad", text)
    environment.filters["tenths"] = "{:.1f}".format
    return environment


def fill_template(template: str, **values: Any) -> str:
    """Fill in a template; every value is escaped unless it is Markup."""
    return _environment().get_template(template).render(**values)
