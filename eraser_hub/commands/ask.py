"""``eraser-hub ask``: a dataset and a language model that answers in words -> predictions in the ERASER results format."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .explain import Bar, Config, Dataset, Force, Quiet, Resume
from .usage import Seed, Split, say

Endpoint = Annotated[
    str, typer.Option(help="Base URL of an OpenAI-compatible server, such as http://localhost:8000/v1.")
]
Model = Annotated[str, typer.Option(help="The model's name, as the server knows it.")]
Out = Annotated[Path, typer.Option(help="Predictions: a file ending in .jsonl.")]
PromptFile = Annotated[Path | None, typer.Option("--prompt", help="A jinja2 file in place of the config's prompt.")]
Temperature = Annotated[float, typer.Option(help="Of the model's answers.")]
MaxTokens = Annotated[int, typer.Option(help="Most tokens of an answer.")]
Structured = Annotated[str, typer.Option(help="auto: ask for a JSON schema where the server takes it; schema; none.")]
Shots = Annotated[int, typer.Option(help="Examples from the split train, drawn by the seed.")]
Threshold = Annotated[float, typer.Option(help="Least similarity of a quote that is not in the text as it is.")]
Several = Annotated[str, typer.Option(help="A quote that stands in several places: nearest (to the others), or all.")]
AnswerFormat = Annotated[
    str,
    typer.Option("--answer", help="quotes; offsets or tokens (places by number); highlighted (copies with <r>..</r>)."),
]
Again = Annotated[
    str,
    typer.Option(
        help="Ask again, of: redacted, removed (without the quotes), alone (with nothing else), random (other spans redacted)."
    ),
]
Samples = Annotated[
    int, typer.Option(help="--again: so many answers for probabilities, where there are no log-probabilities.")
]
SampleTemperature = Annotated[float, typer.Option(help="Of these.")]
SimulateWith = Annotated[str, typer.Option(help="Another model, which is asked for the label by the quotes alone.")]
SimulateEndpoint = Annotated[str, typer.Option(help="Of that model; by default the first one's.")]
Concurrency = Annotated[int, typer.Option(min=1, help="Requests at a time.")]
Attempts = Annotated[int, typer.Option(min=1, help="How often a request is sent before it counts as failed.")]
Timeout = Annotated[float, typer.Option(min=0.1, help="Seconds that an answer may take.")]
CacheFolder = Annotated[
    Path | None, typer.Option("--cache", help="Where answers are kept; by default $XDG_CACHE_HOME/eraser-hub/ask.")
]
Limit = Annotated[int | None, typer.Option(min=1, help="Ask about the first so many instances.")]
Budget = Annotated[int | None, typer.Option(min=1, help="Most tokens that may be paid.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print two prompts and the estimated tokens; ask nothing.")]


def ask(
    dataset: Dataset, endpoint: Endpoint, model: Model, out: Out, config: Config = None, split: Split = "test",
    prompt: PromptFile = None, shots: Shots = 0, temperature: Temperature = 0.0, seed: Seed = 1, max_tokens: MaxTokens = 1024,
    structured: Structured = "auto", threshold: Threshold = 0.8, several: Several = "nearest", concurrency: Concurrency = 8,
    answer: AnswerFormat = "quotes", again: Again = "", samples: Samples = 0, sample_temperature: SampleTemperature = 1.0, simulate_with: SimulateWith = "",
    simulate_endpoint: SimulateEndpoint = "", attempts: Attempts = 6, timeout: Timeout = 600.0, cache: CacheFolder = None, limit: Limit = None, budget: Budget = None,
    resume: Resume = False, force: Force = False, dry_run: DryRun = False, quiet: Quiet = False,
) -> None:  # fmt: skip
    """Ask a language model for label and quotes, and write what `score` and the metric modules take as it is.

    Quotes are looked for in the documents: as they are, then whatever their case, blanks and marks, then by similarity. The key
    comes from the environment variable OPENAI_API_KEY. Answers are kept: a rerun costs nothing, whatever the endpoint.

    Examples:

        eraser-hub ask --dataset hub/eraser --config movies --endpoint http://localhost:8000/v1 --model NAME --out quotes.jsonl

        eraser-hub ask --dataset hub/eraser --config fever --endpoint URL --model NAME --out quotes.jsonl --dry-run

        eraser-hub ask --dataset hub/eraser --config movies --endpoint URL --model NAME --again redacted,alone,random --out quotes.jsonl
    """
    from eraser_hub.explain.extras import need
    from eraser_hub.records.errors import printable

    need("openai", "rapidfuzz")
    from eraser_hub.asking.cache import Cache, default_folder
    from eraser_hub.asking.run import AskJob
    from eraser_hub.asking.run import ask as ask_all
    from eraser_hub.asking.run import dry_run as dry_lines
    from eraser_hub.asking.settings import AskSettings

    job = AskJob(dataset, config, split, limit, prompt, simulate_endpoint)
    settings = AskSettings(
        model, temperature=temperature, seed=seed, max_tokens=max_tokens, structured=structured, shots=shots, threshold=threshold,
        several=several, again=tuple(filter(None, map(str.strip, again.split(",")))), samples=samples,
        sample_temperature=sample_temperature, simulate_with=simulate_with, answer=answer,
    )  # fmt: skip
    if dry_run:
        for part in dry_lines(job, settings):
            for line in part.split("\n"):
                typer.echo(printable(line))
        return
    bar = Bar(limit, quiet)
    try:
        report = ask_all(
            job, settings, endpoint, out, Cache(cache or default_folder()), concurrency=concurrency, attempts=attempts,
            timeout=timeout, budget=budget, resume=resume, force=force, on_progress=lambda count: bar.show(count, count),
        )  # fmt: skip
    except KeyboardInterrupt:
        bar.close()
        say("stopped: every answer that came is kept; --resume goes on")
        raise
    finally:
        bar.close()
    for line in report.lines():
        say(line)
