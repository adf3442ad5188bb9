"""What decides the answers of ``ask``, but for the data."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from eraser_hub.records.errors import DataError, shown

from .answers import FORMATS, QUOTED

# the least similarity (2 common characters in sequence / characters of both) of a fuzzy match, from docs/results.md
THRESHOLD = 0.8
SEVERAL = ("nearest", "all")
AtLeastOne = Annotated[int, Meta(ge=1)]
STRUCTURED = ("auto", "schema", "none")
# what the model may be asked again about: without its quotes, with them alone, without random spans of the same length
AGAIN = ("redacted", "removed", "alone", "random")


@dataclass(frozen=True)
class AskSettings:
    """Everything that decides the answers, but for the data.

    Attributes:
        model: The model's name, as the server knows it.
        temperature: Of the model's answers.
        seed: Seed of all that is drawn.
        max_tokens: Most tokens of an answer.
        structured: auto: ask for a JSON schema where the server takes it; schema; none.
        shots: Examples from the split train, drawn by the seed.
        threshold: Least similarity of a quote that is not in the text as it is.
        several: A quote that stands in several places: nearest (to the others), or all.
        prompt: The prompt's name and digest.
        again: Ask again, of: redacted, removed (without the quotes), alone (with nothing else), random (other spans
            redacted).
        samples: `again`: so many answers for probabilities, where there are no log-probabilities.
        sample_temperature: Of these.
        simulate_with: Another model, which is asked for the label by the quotes alone.
        answer: quotes; offsets or tokens (places by number); highlighted (copies with <r>..</r>).
    """

    model: str
    temperature: float = 0.0
    seed: Annotated[int, Meta(ge=0)] = 1
    max_tokens: int = 1024
    structured: str = "auto"
    shots: int = 0
    threshold: float = THRESHOLD
    several: str = "nearest"
    prompt: str = ""
    again: tuple[str, ...] = ()
    samples: int = 0
    sample_temperature: float = 1.0
    simulate_with: str = ""
    answer: str = QUOTED

    def __post_init__(self) -> None:
        for argument, good, expected, value in (
            ("temperature", 0 <= self.temperature <= 2, "a number from 0 to 2", self.temperature),
            ("seed", 0 <= self.seed < 2**63, "a whole number from 0 to 2**63 - 1", self.seed),
            ("max_tokens", self.max_tokens >= 1, "at least 1", self.max_tokens),
            ("structured", self.structured in STRUCTURED, f"one of {', '.join(STRUCTURED)}", self.structured),
            ("shots", self.shots >= 0, "at least 0", self.shots),
            ("threshold", 0.5 <= self.threshold <= 1, "a number from 0.5 to 1", self.threshold),
            ("answer", self.answer in FORMATS, f"one of {', '.join(FORMATS)}", self.answer),
            ("again", _some_of(self.again, AGAIN), f"some of {', '.join(AGAIN)}, each once", ",".join(self.again)),
            ("samples", self.samples >= 0, "at least 0", self.samples),
            ("samples", not self.samples or self.again, "`again` beside it", self.samples),
            (
                "sample_temperature",
                0 < self.sample_temperature <= 2,
                "a number from 0 (excluded) to 2",
                self.sample_temperature,
            ),
            ("several", self.several in SEVERAL, f"one of {', '.join(SEVERAL)}", self.several),
        ):
            if not good:
                words = f"expected {expected}, found {shown(value)}"
                raise DataError(words, rule="option-value", argument=argument)

    def signature(self) -> str:
        """Every setting that decides the answers, in one line."""
        from eraser_hub.version import __version__

        parts = [
            f"model:{self.model}|prompt:{self.prompt}|shots:{self.shots}|temperature:{self.temperature:g}",
            f"seed:{self.seed}|max_tokens:{self.max_tokens}|structured:{self.structured}",
            f"quotes:{self.threshold:g},{self.several}",
            f"eraser-hub:{__version__}",
        ]
        if self.answer != QUOTED:
            parts.insert(-1, f"answer:{self.answer}")
        if self.again:
            sampled = f",samples:{self.samples}@{self.sample_temperature:g}" if self.samples else ""
            parts.insert(-1, f"again:{','.join(self.again)}{sampled}")
        if self.simulate_with:
            parts.insert(-1, f"simulated:{self.simulate_with}")
        return "|".join(parts)

    @property
    def requests(self) -> int:
        """How many answers an instance takes at most."""
        return (1 + len(self.again)) * (1 + self.samples) + bool(self.simulate_with)


@dataclass(frozen=True, kw_only=True)
class AskOptions(AskSettings):
    """Everything that asking for a split needs.

    Attributes:
        dataset: Dataset folder (hub/eraser), Hub id or hf:// path.
        endpoint: Base URL of an OpenAI-compatible server, such as http://localhost:8000/v1.
        out: Predictions: a file ending in .jsonl.
        config: Config; by default the dataset's default config.
        split: test, validation (or val), train, or a split of the dataset's own.
        prompt: A jinja2 file in place of the config's prompt.
        concurrency: Requests at a time.
        simulate_endpoint: Of that model; by default the first one's.
        attempts: How often a request is sent before it counts as failed.
        timeout: Seconds that an answer may take.
        cache: Where answers are kept; by default $XDG_CACHE_HOME/eraser-hub/ask.
        limit: Ask about the first so many instances.
        budget: Most tokens that may be paid.
        resume: Go on with a stopped run.
        force: Replace a result that was made otherwise.
        dry_run: Print two prompts and the estimated tokens; ask nothing.
    """

    dataset: str
    endpoint: str
    out: Path
    config: str | None = None
    split: str = "test"
    prompt: Path | None = None  # type: ignore[assignment]
    concurrency: AtLeastOne = 8
    simulate_endpoint: str = ""
    attempts: AtLeastOne = 6
    timeout: Annotated[float, Meta(ge=0.1)] = 600.0
    cache: Path | None = None
    limit: AtLeastOne | None = None
    budget: AtLeastOne | None = None
    resume: bool = False
    force: bool = False
    dry_run: bool = False

    def settings(self) -> AskSettings:
        """Return what decides the answers, but for the data."""
        names = (field.name for field in fields(AskSettings))
        return AskSettings(**{name: getattr(self, name) for name in names if name != "prompt"})


def _some_of(values: tuple[str, ...], allowed: tuple[str, ...]) -> bool:
    return len(set(values)) == len(values) and set(values) <= set(allowed)
