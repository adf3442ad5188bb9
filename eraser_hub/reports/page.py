"""One self-contained HTML page of sections and documents: no network, opens from disk, runs only its own script.

A Content-Security-Policy in the page allows the one script by its hash, so injected markup cannot run.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eraser_hub.records.outputs import GENERATOR, OutputWriter

from .catalogue import metric
from .documents import DocumentIndex, render_chunks
from .figures import render_svg
from .markup import fill_template, read_template
from .report_tables import Section

_CHUNKS = "\x00chunks\x00"


def render(template: str, script: str, **values: Any) -> str:
    """Render a page; every value is escaped unless it is Markup.

    Args:
        template: name of the page's template, drawn with page.css.
        script: name of the script's template; the Content-Security-Policy has its SHA-256.
        **values: values for the template; ``title`` is the page's.
    """
    from markupsafe import Markup

    code = read_template(script).strip()
    digest = base64.b64encode(hashlib.sha256(code.encode("utf-8")).digest()).decode("ascii")
    marked = {"css": Markup(read_template("page.css").strip()), "script": Markup(code)}
    return fill_template(template, script_hash=f"sha256-{digest}", generator=GENERATOR, **marked, **values)


def write_files(contents: Mapping[Path, Iterable[str]], writer: OutputWriter) -> None:
    """Write texts that belong together: after an error of writing, the old files are there.

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


@dataclass(frozen=True, slots=True)
class ReportContent:
    """Content of a report's page.

    Attributes:
        title, subtitle: its words.
        sections: tables and figures, in order.
        browsed: the documents.
        values: per system the per-instance scores that the documents' list shows and filters by.
        documents_title, documents_missing: the heading over the documents, and what is not marked in them, and why.
    """

    title: str
    subtitle: str
    sections: Sequence[Section]
    browsed: DocumentIndex
    values: Sequence[Mapping[str, Sequence[float | None]]]
    documents_title: str = "Documents"
    documents_missing: Sequence[str] = ()


def write_report(
    path: Path,
    content: ReportContent,
    beside: Mapping[Path, Iterable[str]] | None = None,
    writer: OutputWriter | None = None,
) -> None:
    """Write a report's page, and the files that belong to it; errors as of `write_files`."""
    from markupsafe import Markup

    names = {key: metric(key).label for columns in content.values for key in columns}
    page = render(
        "report.html",
        "report.js",
        title=content.title,
        content=content,
        svg=lambda figure: Markup(render_svg(figure)),
        footer=GENERATOR,
        index=Markup(content.browsed.index(content.values, names)),
        chunks_here=_CHUNKS,
    )
    # split from the right: the marker's NUL cannot come from the data, whose control characters are removed by then
    head, _, tail = page.rpartition(_CHUNKS)
    write_files(
        {path: [head, *render_chunks(content.browsed.packed), tail], **(beside or {})}, writer or OutputWriter()
    )
