"""Self-contained HTML pages: they need no network, open from disk, and run no script but their own.

A Content-Security-Policy allows the page's script by its hash, so that injected markup cannot run.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from eraser_hub.records.errors import show_controls
from eraser_hub.records.files import GENERATOR, OutputWriter

if TYPE_CHECKING:
    from jinja2 import Environment


def read_template(name: str) -> str:
    """Return a file of ``reports/templates`` as text."""
    return (resources.files("eraser_hub.reports") / "templates" / name).read_text(encoding="utf-8")


@cache
def _environment() -> Environment:
    from jinja2 import FunctionLoader, StrictUndefined
    from jinja2.sandbox import SandboxedEnvironment

    loader = FunctionLoader(read_template)
    environment = SandboxedEnvironment(autoescape=True, undefined=StrictUndefined, loader=loader, trim_blocks=True)
    environment.filters["visible"] = show_controls
    return environment


def fill_template(template: str, **values: Any) -> str:
    """Fill in a template; every value is escaped unless it is Markup."""
    return _environment().get_template(template).render(**values)


def render(
    template: str, scripts: Sequence[str] = (), styles: Sequence[str] = (), *, beside: bool = False, **values: Any
) -> str:
    """Render a page; every value is escaped unless it is Markup.

    Args:
        template: name of the page's template, which includes ``head.html``.
        scripts: names of scripts, which become one.
        styles: names of style sheets besides base.css.
        beside: whether the page may also load scripts that stand beside it.
        **values: values for the template; ``title`` is the page's.
    """
    from markupsafe import Markup

    code = "".join(map(read_template, scripts)).strip()
    digest = base64.b64encode(hashlib.sha256(code.encode("utf-8")).digest()).decode("ascii")
    page: dict[str, Any] = {
        "generator": GENERATOR,
        "css": Markup("".join(map(read_template, ("base.css", *styles))).strip()),
        "script": Markup(code),
        "script_source": Markup(f"'sha256-{digest}'" + " 'self' file:" * beside),
    }
    return fill_template(template, **page, **values)


def to_embedded_json(value: Any) -> str:
    """Return JSON that is safe inside a script element, NaN and infinity as null."""
    text = msgspec.json.encode(value).decode()
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def pack(value: Any) -> str:
    """Return JSON in gzip in base64; without a time stamp, so that equal data gives equal text."""
    return base64.b64encode(gzip.compress(msgspec.json.encode(value), compresslevel=6, mtime=0)).decode("ascii")


def write_files(contents: Mapping[Path, Iterable[str] | bytes], writer: OutputWriter) -> None:
    """Write texts, or bytes, that belong together: all are written before the first takes its name.

    Raises:
        DataError: what the writer refuses.
        OSError: a file cannot be written (a full disk); it names the file, and the old files are there.
    """
    with ExitStack() as stack:
        for path, pieces in contents.items():
            beside = stack.enter_context(writer.open(path))
            if isinstance(pieces, bytes):
                beside.write_bytes(pieces)
                continue
            # a lone surrogate in a document cannot be written: it is shown as the replacement sign
            with beside.open("w", encoding="utf-8", errors="replace", newline="\n") as stream:
                stream.writelines(pieces)
