"""What decides the answers of ``ask``, but for the data."""

from __future__ import annotations

from dataclasses import dataclass

from eraser_hub.records.errors import DataError, shown

from .alignment import SEVERAL, THRESHOLD
from .answers import FORMATS, QUOTED

STRUCTURED = ("auto", "schema", "none")
# what the model may be asked again about: without its quotes, with them alone, without random spans of the same length
AGAIN = ("redacted", "removed", "alone", "random")


@dataclass(frozen=True, slots=True)
class AskSettings:
    """Everything that decides the answers, but for the data.

    Attributes:
        model: its name, as the server knows it.
        temperature, seed, max_tokens: of the model's answer, as the server takes them.
        structured: "schema" asks for an answer of a JSON schema, "none" does not, "auto" where the server takes it.
        shots: examples with gold label and gold evidence, drawn from the split train by ``seed``.
        threshold: least similarity of a quote that does not stand in the text as it is, see `alignment.align`.
        several: which place a quote with several has, see `alignment.align`.
        prompt: the prompt's name and digest.
        again: which of `AGAIN` to ask after the first answer.
        samples: answers whose shares are the labels' probabilities, where a server gives no log-probabilities; or 0.
        sample_temperature: of these.
        answer: the format of the answers, one of `answers.FORMATS`.
        simulate_with: another model, which reads the quotes alone; "" for none.
    """

    model: str
    temperature: float = 0.0
    seed: int = 1
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
        for option, good, expected, value in (
            ("--temperature", 0 <= self.temperature <= 2, "a number from 0 to 2", self.temperature),
            ("--seed", 0 <= self.seed < 2**63, "a whole number from 0 to 2**63 - 1", self.seed),
            ("--max-tokens", self.max_tokens >= 1, "at least 1", self.max_tokens),
            ("--structured", self.structured in STRUCTURED, f"one of {', '.join(STRUCTURED)}", self.structured),
            ("--shots", self.shots >= 0, "at least 0", self.shots),
            ("--threshold", 0.5 <= self.threshold <= 1, "a number from 0.5 to 1", self.threshold),
            ("--answer", self.answer in FORMATS, f"one of {', '.join(FORMATS)}", self.answer),
            ("--again", _some_of(self.again, AGAIN), f"some of {', '.join(AGAIN)}, each once", ",".join(self.again)),
            ("--samples", self.samples >= 0, "at least 0", self.samples),
            ("--samples", not self.samples or self.again, "--again beside it", self.samples),
            (
                "--sample-temperature",
                0 < self.sample_temperature <= 2,
                "a number from 0 (excluded) to 2",
                self.sample_temperature,
            ),
            ("--several", self.several in SEVERAL, f"one of {', '.join(SEVERAL)}", self.several),
        ):
            if not good:
                raise DataError(f"{option}: expected {expected}, found {shown(value)}", rule="option-value")

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


def _some_of(values: tuple[str, ...], allowed: tuple[str, ...]) -> bool:
    return len(set(values)) == len(values) and set(values) <= set(allowed)
