"""The settings of ``ask``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from eraser_hub.conversion.readers import has_half_character
from eraser_hub.metrics.errors import check_choice, check_number
from eraser_hub.metrics.quotes import QUOTE_THRESHOLD
from eraser_hub.records.errors import UsageError, show

# what the model may be asked again about: without its quotes, with them alone, without random spans of the same length
CONSISTENCY_CHECKS = ("redacted", "removed", "alone", "random")


@dataclass(frozen=True)
class AskSettings:
    """The settings that decide the answers, apart from the data.

    Attributes:
        model: Name of the model on the server.
        temperature: Sampling temperature.
        seed: Seed of all random draws.
        max_tokens: Largest number of tokens in an answer.
        structured: JSON schema: auto (if the server supports it), schema or none.
        shots: Number of examples from the train split, drawn by the seed.
        threshold: Least similarity of a quote that does not occur literally.
        several: Choice among several places of a quote: nearest (to the other quotes) or all.
        prompt: The prompt's name and digest.
        consistency: Questions about a changed text: redacted, removed, alone, random.
        samples: Answers per question for probabilities if the server has no log-probabilities.
        sample_temperature: Sampling temperature of these answers.
    """

    model: str
    temperature: float = 0.0
    seed: int = 1
    max_tokens: int = 1024
    structured: str = "auto"
    shots: int = 0
    threshold: float = QUOTE_THRESHOLD
    several: str = "nearest"
    prompt: str = ""
    consistency: tuple[str, ...] = ()
    samples: int = 0
    sample_temperature: float = 1.0

    def __post_init__(self) -> None:
        if not isinstance(self.model, str) or has_half_character(self.model):
            message = f"expected a name in UTF-8, found {show(self.model)}"
            raise UsageError(message, argument="model")
        check_number(self.temperature, "temperature", 0, 2, whole=False)
        check_number(self.seed, "seed", 0, 2**63 - 1)
        check_number(self.max_tokens, "max_tokens", 1)
        check_choice(self.structured, ("auto", "schema", "none"), "structured")
        check_number(self.shots, "shots", 0)
        check_number(self.threshold, "threshold", 0.5, 1, whole=False)
        check_choice(self.several, ("nearest", "all"), "several")
        check_number(self.samples, "samples", 0)
        check_number(self.sample_temperature, "sample_temperature", 0, 2, whole=False)
        known, chosen = set(CONSISTENCY_CHECKS), self.consistency
        if not set(chosen) <= known or len(set(chosen)) < len(chosen):
            words = f"expected some of {', '.join(CONSISTENCY_CHECKS)}, each once, found {show(','.join(chosen))}"
            raise UsageError(words, argument="consistency")
        if self.samples and not chosen:
            words = f"expected `consistency` beside it, found {self.samples}"
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
        parts += [f"again:{','.join(self.consistency)}{sampled}"] if self.consistency else []
        return "|".join([*parts, f"eraser-hub:{__version__}"])

    @property
    def requests(self) -> int:
        """Largest number of answers for an instance."""
        return (1 + len(self.consistency)) * (1 + self.samples)


@dataclass(frozen=True, slots=True)
class AskConfig:
    """The data of ``ask``.

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

    def __post_init__(self) -> None:
        if self.limit is not None:
            check_number(self.limit, "limit", 1)
