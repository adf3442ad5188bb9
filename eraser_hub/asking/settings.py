"""The settings of ``ask``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Literal

from eraser_hub.records.arguments import Config, DatasetPlace, Force, Resume, Split
from eraser_hub.records.errors import shown
from eraser_hub.records.options import AtLeastOne, NotNegative, Option, Options, UsageError

from .answers import QUOTED

# the least similarity (2 common characters in sequence / characters of both) of a fuzzy match, from docs/results.md
THRESHOLD = 0.8
# what the model may be asked again about: without its quotes, with them alone, without random spans of the same length
CONSISTENCY_CHECKS = ("redacted", "removed", "alone", "random")


@dataclass(frozen=True)
class AskSettings(Options):
    """The settings that decide the answers, apart from the data.

    Attributes:
        model: The model's name, as the server knows it.
        shots: Examples from the split train, drawn by the seed.
        again: Ask again, of: redacted, removed (without the quotes), alone (with nothing else), random (other spans
            redacted).

    Prompt and answers:
        prompt: The prompt's name and digest.
        answer: quotes; offsets or tokens (places by number); highlighted (copies with <r>..</r>).
        temperature: Of the model's answers.
        seed: Seed of all that is drawn.
        max_tokens: Most tokens of an answer.
        structured: auto: ask for a JSON schema where the server takes it; schema; none.

    Quotes:
        threshold: Least similarity of a quote that is not in the text as it is.
        several: A quote that stands in several places: nearest (to the others), or all.

    Further questions:
        samples: `again`: so many answers for probabilities, where there are no log-probabilities.
        sample_temperature: Of these.
        simulate_with: Another model, which is asked for the label by the quotes alone.
    """

    model: str
    temperature: Annotated[float, Option(min=0, max=2)] = 0.0
    seed: Annotated[int, Option(min=0, max=2**63 - 1)] = 1
    max_tokens: AtLeastOne = 1024
    structured: Literal["auto", "schema", "none"] = "auto"
    shots: NotNegative = 0
    threshold: Annotated[float, Option(min=0.5, max=1)] = THRESHOLD
    several: Literal["nearest", "all"] = "nearest"
    prompt: str = ""
    again: Annotated[tuple[str, ...], Option(name="consistency", aliases=("again",), commas=True)] = ()
    samples: NotNegative = 0
    sample_temperature: Annotated[float, Option(min=0, max=2)] = 1.0
    simulate_with: str = ""
    answer: Literal["quotes", "offsets", "tokens", "highlighted"] = "quotes"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not set(self.again) <= set(CONSISTENCY_CHECKS) or len(set(self.again)) < len(self.again):
            words = f"expected some of {', '.join(CONSISTENCY_CHECKS)}, each once, found {shown(','.join(self.again))}"
            raise UsageError(words, rule="option-value", argument="again")
        if self.samples and not self.again:
            words = f"expected `again` beside it, found {self.samples}"
            raise UsageError(words, rule="option-value", argument="samples")
        if not self.sample_temperature:
            words = "expected a number from 0 (excluded) to 2, found 0.0"
            raise UsageError(words, rule="option-value", argument="sample_temperature")

    def signature(self) -> str:
        """Return every setting that decides the answers, in one line."""
        from eraser_hub.version import __version__

        parts = [
            f"model:{self.model}|prompt:{self.prompt}|shots:{self.shots}|temperature:{self.temperature:g}",
            f"seed:{self.seed}|max_tokens:{self.max_tokens}|structured:{self.structured}",
            f"quotes:{self.threshold:g},{self.several}",
        ]
        sampled = f",samples:{self.samples}@{self.sample_temperature:g}" if self.samples else ""
        parts += [f"answer:{self.answer}"] if self.answer != QUOTED else []
        parts += [f"again:{','.join(self.again)}{sampled}"] if self.again else []
        parts += [f"simulated:{self.simulate_with}"] if self.simulate_with else []
        return "|".join([*parts, f"eraser-hub:{__version__}"])

    @property
    def requests(self) -> int:
        """Largest number of answers for an instance."""
        return (1 + len(self.again)) * (1 + self.samples) + bool(self.simulate_with)


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
        out: Predictions: a file ending in .jsonl.

    Prompt and answers:
        prompt: A jinja2 file in place of the config's prompt.

    Further questions:
        simulate_endpoint: Of that model; by default the first one's.

    Requests:
        concurrency: Requests at a time.
        attempts: How often a request is sent before it counts as failed.
        timeout: Seconds that an answer may take.
        cache: Where answers are kept; by default $XDG_CACHE_HOME/eraser-hub/ask.
        limit: Ask about the first so many instances.
        budget: Most tokens that may be paid.

    Run:
        on_progress: Called with the number of instances that are done.
    """

    dataset: DatasetPlace
    endpoint: str
    out: Path
    config: Config = None
    split: Split = "test"
    prompt: Path | None = None  # type: ignore[assignment]
    concurrency: AtLeastOne = 8
    simulate_endpoint: str = ""
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
