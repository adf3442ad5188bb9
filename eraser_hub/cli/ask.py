"""``eraser-hub ask``: a dataset and a language model that answers in words -> predictions as ERASER has them."""

from __future__ import annotations

from dataclasses import dataclass

import typer

from eraser_hub.asking.settings import AskOptions

from .explain import Bar, Quiet
from .usage import Split, chosen, say, spelled, takes


@dataclass(frozen=True, kw_only=True)
class AskCommand(AskOptions):
    """The options of ``eraser-hub ask``."""

    split: Split = "test"
    quiet: Quiet = False


def _words(text: str) -> tuple[str, ...]:
    return tuple(filter(None, map(str.strip, text.split(","))))


@takes(AskCommand, again=typer.Option(parser=_words, metavar="<str>", show_default=False))
def ask(options: AskCommand) -> None:
    """Ask a language model for label and quotes, and write what `score` and the metric modules take as it is.

    Quotes are looked for in the documents: as they are, then whatever their case, blanks and marks, then by similarity.
    The key comes from the environment variable OPENAI_API_KEY. Answers are kept: a rerun costs nothing, whatever the
    endpoint.

    Examples:

        eraser-hub ask --dataset hub/eraser --config movies --endpoint http://localhost:8000/v1 --model NAME \
--out quotes.jsonl

        eraser-hub ask --dataset hub/eraser --config fever --endpoint URL --model NAME --out quotes.jsonl --dry-run

        eraser-hub ask --dataset hub/eraser --config movies --endpoint URL --model NAME \
--again redacted,alone,random --out quotes.jsonl
    """
    from eraser_hub.records.errors import printable
    from eraser_hub.records.extras import need

    need("openai", "rapidfuzz")
    from eraser_hub.asking.cache import Cache, default_folder
    from eraser_hub.asking.run import AskJob
    from eraser_hub.asking.run import ask as ask_all
    from eraser_hub.asking.run import dry_run as dry_lines

    job = AskJob(**chosen(options, "dataset config split limit prompt simulate_endpoint"))
    settings = options.settings()
    if options.dry_run:
        for part in dry_lines(job, settings):
            for line in part.split("\n"):
                typer.echo(printable(spelled(line)))
        return
    bar = Bar(options.limit, options.quiet)
    try:
        how = chosen(options, "concurrency attempts timeout budget resume force")
        cache = Cache(options.cache or default_folder())
        report = ask_all(
            *(job, settings, options.endpoint, options.out, cache),
            on_progress=lambda count: bar.show(count, count),
            **how,
        )
    except KeyboardInterrupt:
        bar.close()
        say("stopped: every answer that came is kept; --resume goes on")
        raise
    finally:
        bar.close()
    for line in report.lines():
        say(line)
