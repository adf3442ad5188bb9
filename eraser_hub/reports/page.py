"""One self-contained HTML page of sections and documents: no network, opens from disk, runs only its own script.

A Content-Security-Policy in the page allows the one script by its hash, so injected markup cannot run.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eraser_hub.records.files import GENERATOR, OutputWriter

from .catalogue import metric
from .documents import DocumentIndex, pack, render_chunks, round_values
from .explorer.definitions import Definition
from .explorer.forest import render_panel
from .explorer.overview import Overview
from .figures import find_system_style, render_svg
from .markup import fill_template, read_template
from .report_tables import Section

SCRIPTS = tuple(
    f"report/{name}.js"
    for name in ("text", "state", "documents", "layout", "marks", "narrow", "comparison", "saving", "start")
)
_CHUNKS = "\x00chunks\x00"


def render(template: str, scripts: Sequence[str], **values: Any) -> str:
    """Render a page; every value is escaped unless it is Markup.

    Args:
        template: name of the page's template, drawn with page.css.
        scripts: names of the script's parts, which become one; the Content-Security-Policy has its SHA-256.
        **values: values for the template; ``title`` is the page's.
    """
    from markupsafe import Markup

    code = "".join(read_template(name) for name in scripts).strip()
    digest = base64.b64encode(hashlib.sha256(code.encode("utf-8")).digest()).decode("ascii")
    marked = {"css": Markup(read_template("page.css").strip()), "script": Markup(code)}
    return fill_template(template, script_hash=f"sha256-{digest}", generator=GENERATOR, **marked, **values)


def write_files(contents: Mapping[Path, Iterable[str] | bytes], writer: OutputWriter) -> None:
    """Write texts, or bytes, that belong together: after an error of writing, the old files are there.

    All are written before the first takes its name. If a name cannot be taken, the error lists the files that are new.

    Raises:
        DataError: what the writer refuses.
        OSError: a file cannot be written (a full disk); it names the file.
    """
    renamed: list[Path] = []
    try:
        with ExitStack() as stack:
            for path, pieces in contents.items():
                stack.push(lambda kind, *_, path=path: renamed.append(path) if kind is None else None)
                beside = stack.enter_context(writer.open(path))
                if isinstance(pieces, bytes):
                    beside.write_bytes(pieces)
                    continue
                # a lone surrogate in a document cannot be written: it is shown as the replacement sign
                with beside.open("w", encoding="utf-8", errors="replace", newline="\n") as stream:
                    stream.writelines(pieces)
    except OSError as error:
        if not renamed:
            raise
        words = f"{error.strerror or error}; written before: {', '.join(map(str, renamed))}"
        raise OSError(error.errno, words, error.filename) from error


def to_json_text(content: Any, indent: int) -> Iterator[str]:
    """Return JSON as `write_files` takes it, without NaN."""
    yield json.dumps(content, indent=indent, ensure_ascii=False, allow_nan=False)
    yield "\n"


GOLD_GROUPS = ("gold evidence, group 1", "group 2", "group 3")


@dataclass(frozen=True, slots=True)
class ReportContent:
    """Content of a report's page.

    Attributes:
        title, subtitle: its words.
        sections: tables and figures, in order.
        browsed: the documents.
        values: per system the per-instance scores that the documents' list shows and filters by.
        documents_title, documents_missing: the heading over the documents, and what is not marked in them, and why.
        gold_words: legend of the first groups of gold marks.
        overview: the first screen.
        comparison: every pair of systems, as `explorer.matrix.pack_comparison`; "" for none.
        definitions: of the scores in the tables.
    """

    title: str
    subtitle: str
    sections: list[Section]
    browsed: DocumentIndex
    values: Sequence[Mapping[str, Sequence[float | None]]]
    documents_title: str = "Documents"
    documents_missing: Sequence[str] = ()
    gold_words: Sequence[str] = GOLD_GROUPS
    overview: Overview = field(default_factory=Overview)
    comparison: str = ""
    definitions: Sequence[Definition] = ()

    @property
    def defined(self) -> set[str]:
        """The scores with a definition in the page."""
        return {one.key for one in self.definitions}


def write_report(
    path: Path,
    content: ReportContent,
    beside: Mapping[Path, Iterable[str] | bytes] | None = None,
    writer: OutputWriter | None = None,
) -> None:
    """Write a report's page, and the files that belong to it; errors as of `write_files`."""
    from markupsafe import Markup

    names = {key: metric(key).label for columns in content.values for key in columns}
    swatches = {
        name: Markup(fill_template("swatch.svg", **dict(zip(("colour", "dash", "marker"), style, strict=True))))
        for name, style in ((name, find_system_style(k)) for k, name in enumerate(content.browsed.systems))
    }
    page = render(
        "report.html",
        SCRIPTS,
        title=content.title,
        content=content,
        svg=lambda figure: Markup(render_svg(figure)),
        panel=lambda one: Markup(render_panel(one)),
        swatches=swatches,
        footer=GENERATOR,
        index=Markup(content.browsed.index(names)),
        values=Markup(pack(round_values(content.values))),
        chunks_here=_CHUNKS,
    )
    # split from the right: the marker's NUL cannot come from the data, whose control characters are removed by then
    head, _, tail = page.rpartition(_CHUNKS)
    write_files(
        {path: [head, *render_chunks(content.browsed.packed), tail], **(beside or {})}, writer or OutputWriter()
    )
