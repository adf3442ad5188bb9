"""The settings of ``ask``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Literal

from eraser_hub.metrics.quotes import QUOTE_THRESHOLD
from eraser_hub.records.arguments import Config, DatasetPlace, Force, Resume, Split
from eraser_hub.records.errors import UsageError, show
from eraser_hub.records.json_lines import has_half_character
from eraser_hub.records.options import AtLeastOne, NotNegative, Option, Options

# what the model may be asked again about: without its quotes, with them alone, without random spans of the same length
CONSISTENCY_CHECKS = ("redacted", "removed", "alone", "random")


@dataclass(frozen=True)
class AskSettings(Options):
    """The settings that decide the answers, apart from the data.

    Attributes:
        model: Name of the model on the server.
        shots: Number of examples from the train split, drawn by the seed.
        again: Consistency checks, questions about a changed text: redacted, removed, alone, random.

    Prompt and answers:
        prompt: The prompt's name and digest.
        temperature: Sampling temperature.
        seed: Seed of all random draws.
        max_tokens: Largest number of tokens in an answer.
        structured: JSON schema: auto (if the server supports it), schema or none.

    Quotes:
        threshold: Least similarity of a quote that does not occur literally.
        several: Choice among several places of a quote: nearest (to the other quotes) or all.

    Further questions:
        samples: Answers per question for probabilities if the server has no log-probabilities.
        sample_temperature: Sampling temperature of these answers.
    """

    model: str
    temperature: Annotated[float, Option(min=0, max=2)] = 0.0
    seed: Annotated[int, Option(min=0, max=2**63 - 1)] = 1
    max_tokens: AtLeastOne = 1024
    structured: Literal["auto", "schema", "none"] = "auto"
    shots: NotNegative = 0
    threshold: Annotated[float, Option(min=0.5, max=1)] = QUOTE_THRESHOLD
    several: Literal["nearest", "all"] = "nearest"
    prompt: str = ""
    again: Annotated[tuple[str, ...], Option(name="consistency", commas=True)] = ()
    samples: NotNegative = 0
    sample_temperature: Annotated[float, Option(min=0, max=2)] = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if has_half_character(self.model):
            message = f"expected a name in UTF-8, found {show(self.model)}"
            raise UsageError(message, argument="model")
        if not set(self.again) <= set(CONSISTENCY_CHECKS) or len(set(self.again)) < len(self.again):
            words = f"expected some of {', '.join(CONSISTENCY_CHECKS)}, each once, found {show(','.join(self.again))}"
            raise UsageError(words, argument="again")
        if self.samples and not self.again:
            words = f"expected `again` beside it, found {self.samples}"
            raise UsageError(words, argument="samples")
        if not self.sample_temperature:
            words = "expected a number from 0 (excluded) to 2, found 0.0"
            raise UsageError(words, argument="sample_temperature")

    def signature(self) -> str:
        """Return every setting that decides the answers, in one line."""
        from eraser_hub.version import __version__

        parts = [
            f"model:{self.model}|prompt:{self.prompt}|shots:{self.shots}|temperature:{self.temperature:g}",
            f"seed:{self.seed}|max_tokens:{self.max_tokens}|structured:{self.structured}",
            f"quotes:{self.threshold:g},{self.several}",
        ]
        sampled = f",samples:{self.samples}@{self.sample_temperature:g}" if self.samples else ""
        parts += [f"again:{','.join(self.again)}{sampled}"] if self.again else []
        return "|".join([*parts, f"eraser-hub:{__version__}"])

    @property
    def requests(self) -> int:
        """Largest number of answers for an instance."""
        return (1 + len(self.again)) * (1 + self.samples)


@dataclass(frozen=True, slots=True)
class AskConfig:
    """The data of ``ask``, for plans without a server: see `AskArguments`.

    Attributes:
        dataset: Folder (``hub/eraser``) or Hub id.
        config: The configuration; None for the default one.
        split: The split.
        limit: Number of first instances; None for all.
        prompt: A file in place of the config's prompt.
    """

    dataset: str
    config: str | None = None
    split: str = "test"
    limit: int | None = None
    prompt: Path | None = None


@dataclass(frozen=True, kw_only=True)
class AskArguments(AskSettings):
    """All arguments of ``ask``.

    Attributes:
        endpoint: Base URL of an OpenAI-compatible server, such as http://localhost:8000/v1.
        out: Predictions to write: a file ending in .jsonl.

    Prompt and answers:
        prompt: Jinja2 file that replaces the config's prompt.

    Requests:
        concurrency: Concurrent requests.
        attempts: Attempts before a request counts as failed.
        timeout: Seconds that an answer may take, repeated attempts and waits included.
        cache: Folder of paid answers; default: $XDG_CACHE_HOME/eraser-hub/ask.
        limit: Number of first instances to ask about.
        budget: Most tokens to pay for.

    Run:
        on_progress: Called with the number of finished instances.
    """

    dataset: DatasetPlace
    endpoint: str
    out: Path
    config: Config = None
    split: Split = "test"
    prompt: Path | None = None  # type: ignore[assignment]
    concurrency: AtLeastOne = 8
    attempts: AtLeastOne = 6
    timeout: Annotated[float, Option(min=0.1)] = 600.0
    cache: Path | None = None
    limit: AtLeastOne | None = None
    budget: AtLeastOne | None = None
    resume: Resume = False
    force: Force = False
    on_progress: Annotated[Callable[[int], None] | None, Option(python_only=True)] = None

    def settings(self) -> AskSettings:
        """Return the settings that decide the answers, apart from the data."""
        names = (field.name for field in fields(AskSettings))
        return AskSettings(**{name: getattr(self, name) for name in names if name != "prompt"})
