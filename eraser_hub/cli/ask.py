"""``eraser-hub ask``: a dataset and a language model that answers in words -> predictions as ERASER has them."""

from __future__ import annotations

from dataclasses import dataclass

import typer

from eraser_hub.asking.settings import AskArguments
from eraser_hub.records.errors import printable

from .explain import Bar
from .usage import call, say, spelled, takes


@dataclass(frozen=True, kw_only=True)
class AskOptions(AskArguments):
    """The options of ``eraser-hub ask``.

    Attributes:
        dry_run: Print two prompts and the estimated tokens; ask nothing.

    Run:
        quiet: No progress bar.
    """

    dry_run: bool = False
    quiet: bool = False


@takes(AskOptions)
def ask(options: AskOptions) -> None:
    """Ask a language model for label and quotes, and write what `score` and the metric modules take as it is.

    Quotes are looked for in the documents: as they are, then whatever their case, blanks and marks, then by similarity.
    The key comes from the environment variable OPENAI_API_KEY. Answers are kept: a rerun costs nothing, whatever the
    endpoint.

    Examples:

        eraser-hub ask --dataset hub/eraser --config movies --endpoint http://localhost:8000/v1 --model NAME \
--out quotes.jsonl

        eraser-hub ask --dataset hub/eraser --config fever --endpoint URL --model NAME --out quotes.jsonl --dry-run

        eraser-hub ask --dataset hub/eraser --config movies --endpoint URL --model NAME \
--consistency redacted,alone,random --out quotes.jsonl
    """
    from eraser_hub import api

    if options.dry_run:
        from eraser_hub.asking.run import dry_run

        for part in dry_run(options, options.settings()):
            for line in part.split("\n"):
                typer.echo(printable(spelled(line)))
        return
    bar = Bar(options.limit, options.quiet)
    try:
        report = call(api.ask, options, on_progress=lambda count: bar.show(count, count))
    except KeyboardInterrupt:
        bar.close()
        say("stopped: every answer that came is kept; --resume goes on")
        raise
    finally:
        bar.close()
    for line in report.lines():
        say(line)
