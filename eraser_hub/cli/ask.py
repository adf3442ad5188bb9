"""``eraser-hub ask``: a dataset and a language model that answers in words -> predictions as ERASER has them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from .explain import Bar, Force, Quiet, Resume
from .usage import Config, Dataset, Seed, Split, chosen, say, takes


@dataclass(frozen=True, slots=True)
class AskOptions:
    """The options of ``eraser-hub ask``, and their help.

    Attributes:
        endpoint: Base URL of an OpenAI-compatible server, such as http://localhost:8000/v1.
        model: The model's name, as the server knows it.
        out: Predictions: a file ending in .jsonl.
        prompt: A jinja2 file in place of the config's prompt.
        shots: Examples from the split train, drawn by the seed.
        temperature: Of the model's answers.
        max_tokens: Most tokens of an answer.
        structured: auto: ask for a JSON schema where the server takes it; schema; none.
        threshold: Least similarity of a quote that is not in the text as it is.
        several: A quote that stands in several places: nearest (to the others), or all.
        concurrency: Requests at a time.
        answer: quotes; offsets or tokens (places by number); highlighted (copies with <r>..</r>).
        again: Ask again, of: redacted, removed (without the quotes), alone (with nothing else), random (other spans
            redacted).
        samples: --again: so many answers for probabilities, where there are no log-probabilities.
        sample_temperature: Of these.
        simulate_with: Another model, which is asked for the label by the quotes alone.
        simulate_endpoint: Of that model; by default the first one's.
        attempts: How often a request is sent before it counts as failed.
        timeout: Seconds that an answer may take.
        cache: Where answers are kept; by default $XDG_CACHE_HOME/eraser-hub/ask.
        limit: Ask about the first so many instances.
        budget: Most tokens that may be paid.
        dry_run: Print two prompts and the estimated tokens; ask nothing.
    """

    dataset: Dataset
    endpoint: str
    model: str
    out: Path
    config: Config = None
    split: Split = "test"
    prompt: Annotated[Path | None, typer.Option("--prompt")] = None
    shots: int = 0
    temperature: float = 0.0
    seed: Seed = 1
    max_tokens: int = 1024
    structured: str = "auto"
    threshold: float = 0.8
    several: str = "nearest"
    concurrency: Annotated[int, typer.Option(min=1)] = 8
    answer: Annotated[str, typer.Option("--answer")] = "quotes"
    again: str = ""
    samples: int = 0
    sample_temperature: float = 1.0
    simulate_with: str = ""
    simulate_endpoint: str = ""
    attempts: Annotated[int, typer.Option(min=1)] = 6
    timeout: Annotated[float, typer.Option(min=0.1)] = 600.0
    cache: Annotated[Path | None, typer.Option("--cache")] = None
    limit: Annotated[int | None, typer.Option(min=1)] = None
    budget: Annotated[int | None, typer.Option(min=1)] = None
    resume: Resume = False
    force: Force = False
    dry_run: Annotated[bool, typer.Option("--dry-run")] = False
    quiet: Quiet = False


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
--again redacted,alone,random --out quotes.jsonl
    """
    from eraser_hub.records.errors import printable
    from eraser_hub.records.extras import need

    need("openai", "rapidfuzz")
    from eraser_hub.asking.cache import Cache, default_folder
    from eraser_hub.asking.run import AskJob
    from eraser_hub.asking.run import ask as ask_all
    from eraser_hub.asking.run import dry_run as dry_lines
    from eraser_hub.asking.settings import AskSettings

    job = AskJob(**chosen(options, "dataset config split limit prompt simulate_endpoint"))
    settings = AskSettings(
        **chosen(options, "model temperature seed max_tokens structured shots threshold several answer"),
        **chosen(options, "samples sample_temperature simulate_with"),
        again=tuple(filter(None, map(str.strip, options.again.split(",")))),
    )
    if options.dry_run:
        for part in dry_lines(job, settings):
            for line in part.split("\n"):
                typer.echo(printable(line))
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
