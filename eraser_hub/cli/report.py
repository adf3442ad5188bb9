"""``eraser-hub report``: one self-contained HTML page about a split and the systems that were run on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from eraser_hub.records.options import Option, as_list
from eraser_hub.reports.options import ReportArguments

from .usage import call_with_options, print_note, with_options


@dataclass(frozen=True, kw_only=True)
class ReportOptions(ReportArguments):
    """The options of ``eraser-hub report``.

    Attributes:
        more: Further predictions, as after `predictions`.
    """

    more: Annotated[tuple[str, ...], Option(positional=True, name="[PREDICTIONS]..")] = ()


@with_options(ReportOptions)
def report(options: ReportOptions) -> None:
    """Write a report: scores with confidence intervals, paired comparison, curves, distributions, classes, documents.

    The page is one HTML file that needs no network. A score file for each system, with its signature, is written
    beside it, for `eraser-hub board`.

    **Examples**

        eraser-hub report --dataset hub/eraser --config movies --split validation --predictions P --out report

        eraser-hub report --dataset hub/eraser --config movies --predictions ours=a.jsonl --predictions theirs=b.jsonl
        --baseline random.0.jsonl --baseline random.1.jsonl --figures figures --out report
    """
    from eraser_hub import api

    predictions = [*(as_list(options.predictions) or []), *options.more]
    written = call_with_options(api.report, options, predictions=predictions)
    for note in written.notes:
        print_note(note)
    for path in (written.page, *written.score_files, *written.figures):
        typer.echo(str(path))
