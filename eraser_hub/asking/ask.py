"""The public function `ask`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from eraser_hub.metrics.errors import check_choice, check_number
from eraser_hub.records.arguments import PYTHON, Place
from eraser_hub.records.errors import DataError, UsageError, add_count, show

if TYPE_CHECKING:
    from .run import AskReport

PROMPT, RUN = Parameter(group="Prompt"), Parameter(group="Run")


def ask(
    model: str,
    dataset: Place,
    *,
    endpoint: str,
    out: Place | None = None,
    config: str | None = None,
    split: str = "test",
    shots: Annotated[int, PROMPT] = 0,
    prompt: Annotated[Place | None, PROMPT] = None,
    seed: Annotated[int, PROMPT] = 1,
    limit: Annotated[int | None, RUN] = None,
    budget: Annotated[int | None, RUN] = None,
    dry_run: Annotated[bool, RUN] = False,
    resume: Annotated[bool, RUN] = False,
    force: Annotated[bool, RUN] = False,
    temperature: Annotated[float, PYTHON] = 0.0,
    max_tokens: Annotated[int, PYTHON] = 1024,
    structured: Annotated[Literal["auto", "schema", "none"], PYTHON] = "auto",
    threshold: Annotated[float, PYTHON] = 0.8,
    several: Annotated[Literal["nearest", "all"], PYTHON] = "nearest",
    consistency: Annotated[str | Sequence[str], PYTHON] = (),
    samples: Annotated[int, PYTHON] = 0,
    sample_temperature: Annotated[float, PYTHON] = 1.0,
    concurrency: Annotated[int, PYTHON] = 8,
    attempts: Annotated[int, PYTHON] = 6,
    timeout: Annotated[float, PYTHON] = 600.0,
    cache: Annotated[Place | None, PYTHON] = None,
) -> AskReport | list[str]:
    """Ask a language model for labels and quotes, and write predictions for `score`.

    Quotes are searched in the documents: exactly, then ignoring case, blanks and punctuation, then by similarity. The
    key comes from the environment variable OPENAI_API_KEY. Answers are kept: running again costs nothing.

    Args:
        model: Name of the model on the server.
        dataset: Dataset folder (hub/eraser), Hub id or hf:// path.
        endpoint: Base URL of an OpenAI-compatible server, such as http://localhost:8000/v1.
        out: Predictions to write: a file ending in .jsonl; a dry run does without.
        config: Config; by default the only or the default one.
        split: Split to ask about.
        shots: Examples from the train split, drawn by the seed.
        prompt: Jinja2 file that replaces the config's prompt.
        seed: Seed of all random draws, and of the server.
        limit: Number of first instances to ask about.
        budget: Most tokens to pay for.
        dry_run: Print two prompts and the estimated tokens; ask nothing.
        resume: Go on with a stopped run.
        force: Replace results that were made otherwise, and files that no run wrote.
        temperature: Sampling temperature.
        max_tokens: Largest number of tokens in an answer.
        structured: JSON schema: auto (if the server supports it), schema or none.
        threshold: Least similarity of a quote that does not occur literally.
        several: Of several places of a quote take the nearest to the other quotes, or all.
        consistency: Ask again about a changed text: without the quotes (redacted, removed), with them alone (alone),
            without random spans of the same length (random).
        samples: Answers per question for probabilities if the server has no log-probabilities; needs ``consistency``.
        sample_temperature: Sampling temperature of these answers.
        concurrency: Concurrent requests.
        attempts: Attempts before a request counts as failed.
        timeout: Seconds that an answer may take, repeated attempts and waits included.
        cache: Folder of paid answers; by default $XDG_CACHE_HOME/eraser-hub/ask.

    Returns:
        What was answered; of a dry run two prompts and the number of tokens.

    Raises:
        DataError: data, settings or server are at fault, or instances have no answer because the server failed or the
            budget ended; finished answers are kept.

    Examples:
        >>> import eraser_hub
        >>> url = "http://localhost:8000/v1"
        >>> print(*eraser_hub.ask("llama", "hub/eraser", endpoint=url, dry_run=True)[-2:-1])
        13 prompts, about 3425 tokens (UTF-8 bytes / 4), and at most 13312 of answers; nothing was asked

        $ eraser-hub ask --dataset hub/eraser --config movies --endpoint http://localhost:8000/v1 --model NAME \
          --out quotes.jsonl
        $ eraser-hub ask --dataset hub/eraser --config fever --endpoint URL --model NAME --dry-run
    """
    import asyncio

    from eraser_hub.attribution.outputs import check_format, open_partial_result, refuse_other
    from eraser_hub.records.files import OutputWriter
    from eraser_hub.records.predictions import find_inputs

    from . import run
    from .client import Client
    from .prompts import CHANGES, AskSettings

    counts = {"concurrency": concurrency, "attempts": attempts, "max_tokens": max_tokens}
    for name, number in {**counts, "budget": budget, "limit": limit}.items():
        if number is not None:
            check_number(number, name, 1)
    check_number(shots, "shots", 0)
    check_number(samples, "samples", 0)
    check_number(seed, "seed", 0, 2**63 - 1)
    check_number(temperature, "temperature", 0, 2, whole=False)
    check_number(sample_temperature, "sample_temperature", 0.01, 2, whole=False)
    check_number(threshold, "threshold", 0.5, 1, whole=False)
    check_number(timeout, "timeout", 0.1, whole=False)
    check_choice(structured, ("auto", "schema", "none"), "structured")
    check_choice(several, ("nearest", "all"), "several")
    if not isinstance(model, str) or not model.isprintable():
        raise UsageError(f"expected a name in printable characters, found {show(model)}", argument="model")
    changes = (consistency,) if isinstance(consistency, str) else tuple(consistency)
    if not set(changes) <= set(CHANGES) or len(set(changes)) < len(changes):
        message = f"expected some of {', '.join(CHANGES)}, each once, found {show(','.join(changes))}"
        raise UsageError(message, argument="consistency")
    if samples and not changes:
        raise UsageError(f"expected `consistency` beside it, found {samples}", argument="samples")
    settings = AskSettings(
        model=model,
        prompt="",
        shots=shots,
        temperature=temperature,
        seed=seed,
        max_tokens=max_tokens,
        structured=structured,
        threshold=threshold,
        several=several,
        consistency=changes,
        samples=samples,
        sample_temperature=sample_temperature,
    )
    place, prompt_file = os.fspath(dataset), None if prompt is None else Path(prompt)
    if dry_run:
        return list(run.describe_plan(run.make_plan(place, config, split, limit, prompt_file, settings)))
    if out is None:
        raise UsageError("expected the file of predictions", argument="out")
    path, writer = Path(out), OutputWriter(find_inputs(place, prompt, cache), force)
    check_format(path, writer=writer)
    if path.suffix != ".jsonl":
        raise DataError(f"expected a file ending in .jsonl, found {show(path.name)}", argument="out")
    plan = run.make_plan(place, config, split, limit, prompt_file, settings)
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "eraser-hub" / "ask"
    folder = folder if cache is None else Path(cache)
    client = Client(endpoint, plan.settings, plan.split.label_names, folder, budget, attempts, timeout)
    header = {"settings": plan.settings, "data": plan.split.header(limit)}
    if not force:
        refuse_other(path, header)
    with open_partial_result(path, header, resume) as partial:
        failures = asyncio.run(run.ask_all(plan, client, partial, concurrency))
        if failures:
            kept = f"; {len(partial.places)} answers are kept: `resume` goes on" if partial.places else ""
            message = f"expected an answer for each instance{kept}: {failures[0]}"
            raise add_count(DataError(message, file=path), len(failures))
        return run.write_answers(path, partial, plan, client, header, writer)
