"""``eraser-hub ask``: a dataset and a language model that answers in words -> predictions as ERASER has them."""

from __future__ import annotations

from dataclasses import dataclass

import typer

from eraser_hub.asking.settings import AskArguments
from eraser_hub.records.errors import make_printable

from .explain import Bar
from .usage import call_with_options, print_note, spell_arguments, with_options


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


@with_options(AskOptions)
def ask(options: AskOptions) -> None:
    """Ask a language model for labels and quotes, and write predictions for `score`.

    Quotes are searched in the documents: exactly, then ignoring case, blanks and punctuation, then by similarity. The
    key comes from the environment variable OPENAI_API_KEY. Answers are kept: running again costs nothing.

    **Examples**

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
                typer.echo(make_printable(spell_arguments(line)))
        return
    bar = Bar(options.limit, options.quiet)
    try:
        report = call_with_options(api.ask, options, on_progress=lambda count: bar.show(count, count))
    except KeyboardInterrupt:
        bar.close()
        print_note("stopped: every answer that came is kept; --resume goes on")
        raise
    finally:
        bar.close()
    for line in report.lines():
        print_note(line)
