"""One self-contained HTML page out of sections and documents: no network, opens from disk, runs no script but its own.

A Content-Security-Policy in the page allows the one script by its hash: even markup that slipped through could not run.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eraser_hub.records.atomic import replacing

from .figures import svg

if TYPE_CHECKING:
    from .documents import Browsed
    from .tables import Section

_CHUNKS = "\x00chunks\x00"


def asset(name: str) -> str:
    """A file of ``reports/templates`` as text."""
    return resources.files("eraser_hub.reports").joinpath("templates", name).read_text(encoding="utf-8")


def script_hash(script: str) -> str:
    """The script's SHA-256 as a Content-Security-Policy names it."""
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")


def render(template: str, **values: Any) -> str:
    """A template filled in; every value is escaped unless it is Markup."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=False)
    return environment.from_string(asset(template)).render(**values)


def write_pieces(path: Path, pieces: Iterable[str]) -> None:
    """Write the text all at once: a reader finds the old page or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # a lone surrogate in a document cannot be written: it is shown as the replacement sign
    with replacing(path) as beside, beside.open("w", encoding="utf-8", errors="replace", newline="\n") as stream:
        stream.writelines(pieces)


def write_report(
    path: Path,
    *,
    title: str,
    subtitle: str,
    sections: Sequence[Section],
    browsed: Browsed,
    values: Sequence[Mapping[str, Sequence[float | None]]],
    names: Mapping[str, str],
    documents_title: str = "Documents",
    documents_missing: Sequence[str] = (),
    footer: str = "",
) -> None:
    """Write the report's page.

    Args:
        path: the file to write.
        title, subtitle, footer: its words.
        sections: tables and figures, in order.
        browsed: the documents.
        values: per system the per-instance scores that the list shows and filters by.
        names: what the scores are called there.
        documents_title, documents_missing: the heading over the documents, and what is not marked in them, and why.
    """
    from markupsafe import Markup

    from .documents import chunk_elements

    script = asset("report.js").strip()
    shown = [
        {
            "anchor": section.anchor,
            "title": section.title,
            "blocks": section.blocks,
            "missing": section.missing,
            "notes": section.notes,
            "figures": [
                {"name": figure.name, "caption": figure.caption, "svg": Markup(svg(figure))}
                for figure in section.figures
            ],
        }
        for section in sections
    ]
    page = render(
        "report.html",
        title=title,
        subtitle=subtitle,
        footer=footer,
        css=Markup(asset("report.css").strip()),
        script=Markup(script),
        script_hash=script_hash(script),
        sections=[*((section.anchor, section.title) for section in sections), ("documents-section", documents_title)],
        tables=shown,
        documents_title=documents_title,
        documents_missing=documents_missing,
        index=Markup(browsed.index(values, names)),
        chunks_here=_CHUNKS,
    )
    # split from the right: the marker's NUL cannot come from the data, whose control characters are removed by then
    head, _, tail = page.rpartition(_CHUNKS)
    write_pieces(path, [head, *chunk_elements(browsed.packed), tail])
