"""What decides the results of ``explain``, but for model and data."""

from __future__ import annotations

from dataclasses import dataclass, replace

from eraser_hub.metrics.erasure import AOPC_THRESHOLDS
from eraser_hub.records.errors import DataError, shown
from eraser_hub.version import __version__

METHODS = (
    "random", "occlusion", "gradient", "input-x-gradient", "integrated-gradients", "attention", "lime", "coefficients",
)  # fmt: skip
GIVEN = "given"  # no method of ours: the scores come with the instances
ERASE_MODES = ("remove", "mask", "pad")
RANDOM_KINDS = ("tokens", "spans")
FIDELITY_RATES = tuple(round(0.05 * step, 2) for step in range(21))
LARGEST = 2**63 - 1  # what the record of a run, which is JSON, can hold of an integer


@dataclass(frozen=True, slots=True)
class ExplainSettings:
    """Everything that decides the results, but for model and data.

    Attributes:
        method: one of :data:`METHODS`, or ``given`` for scores that come with the instances.
        seed: of all that is drawn.
        kd: share of the tokens in a hard rationale.
        bins: shares at which the AOPC is measured, () for none.
        erase: remove, mask or pad.
        tokens_to_flip: search how many of the evidence documents' highest-ranked tokens must go until the label changes.
        random_draws: number of random rationales of each instance's own length.
        random_kind: ``tokens`` (any set of that size) or ``spans`` (its own spans, shifted).
        fidelity_trials: trials per occlusion rate of the fidelity curves, 0 for none.
        fidelity_rates: shares of the rationale that are taken out, () only without trials.
        steps: integration steps of integrated gradients.
        lime_samples: LIME's N, perturbed samples of each instance.
        lime_tokens: LIME's K, tokens in each sample; 0: a uniformly drawn number.
        batch_size: full-length inputs at a time.
        chunk: instances in a chunk.
        scores: method ``given``: which scores they are (the file's digest), for the signature.
    """

    method: str = "occlusion"
    seed: int = 1
    kd: float = 0.1
    bins: tuple[float, ...] = AOPC_THRESHOLDS
    erase: str = "remove"
    tokens_to_flip: bool = False
    random_draws: int = 0
    random_kind: str = "tokens"
    fidelity_trials: int = 0
    fidelity_rates: tuple[float, ...] = FIDELITY_RATES
    steps: int = 300
    lime_samples: int = 5000
    lime_tokens: int = 10
    batch_size: int = 32
    chunk: int = 16
    scores: str = ""

    def __post_init__(self) -> None:
        rates = self.fidelity_rates
        for option, good, expected, value in (
            ("--method", self.method in (*METHODS, GIVEN), f"one of {', '.join(METHODS)}", self.method),
            ("--erase", self.erase in ERASE_MODES, f"one of {', '.join(ERASE_MODES)}", self.erase),
            ("--random-kind", self.random_kind in RANDOM_KINDS, " or ".join(RANDOM_KINDS), self.random_kind),
            ("--kd", 0 <= self.kd <= 1, "a share from 0 to 1", self.kd),
            ("--bins", _shares(self.bins) and _different(self.bins), "different shares from 0 to 1", self.bins),
            ("--fidelity-rates", _shares(rates), "shares from 0 to 1", rates),
            ("--fidelity-rates", _different(rates), "different shares", rates),
            (
                "--fidelity-rates",
                rates or not self.fidelity_trials,
                "at least one rate for the trials asked for",
                rates,
            ),
        ):
            if not good:
                raise DataError(f"{option}: expected {expected}, found {shown(value)}")
        for option, number, least in (
            ("--steps", self.steps, 1), ("--lime-samples", self.lime_samples, 2), ("--lime-tokens", self.lime_tokens, 0),
            ("--batch-size", self.batch_size, 1), ("--random-draws", self.random_draws, 0),
            ("--fidelity-trials", self.fidelity_trials, 0), ("--chunk", self.chunk, 1), ("--seed", self.seed, 0),
        ):  # fmt: skip
            if not least <= number <= LARGEST:
                bound = f"at least {least}" if number < least else f"at most {LARGEST}"
                raise DataError(f"{option}: expected {bound}, found {shown(number)}")

    def signature(self, model: str = "") -> str:
        """Every setting that decides the numbers, in one line (sacrebleu's manner)."""
        parts = [f"method:{self.method}", f"kd:{self.kd:g}", f"erase:{self.erase}", f"seed:{self.seed}"]
        if self.bins:
            parts.append("bins:" + ",".join(f"{rate:g}" for rate in self.bins))
        if self.method == "integrated-gradients":
            parts.append(f"steps:{self.steps}|baseline:zero")
        if self.scores:
            parts.append(f"scores:{self.scores}")
        if self.method == "lime":
            parts.append(f"lime:N{self.lime_samples},K{self.lime_tokens}")
        if self.random_draws:
            parts.append(f"random-draws:{self.random_draws},{self.random_kind}")
        if self.tokens_to_flip:
            parts.append("flip:evidence-documents")
        if self.fidelity_trials:
            parts.append(f"fidelity:{self.fidelity_trials}x{len(self.fidelity_rates)}")
        if model:
            parts.append(f"model:{model}")
        return "|".join([*parts, "ties:position", f"eraser-hub:{__version__}"])

    def for_kind(self, kind: str) -> ExplainSettings:
        """The settings for a kind of dataset, without what its results have no place for.

        The perturbation benchmark's results hold no AOPC: its signature must not say that there were bins.

        Raises:
            DataError: something was asked for that would be missing.
        """
        if kind != "perturbation":
            return self
        for option, value in (
            ("--tokens-to-flip", self.tokens_to_flip), ("--random-draws", self.random_draws),
            ("--fidelity-trials", self.fidelity_trials),
        ):  # fmt: skip
            if value:
                raise DataError(f"{option}: the perturbation benchmark's results have no place for it")
        return replace(self, bins=())


def _shares(rates: tuple[float, ...]) -> bool:
    return all(0 <= rate <= 1 for rate in rates)


def _different(rates: tuple[float, ...]) -> bool:
    return len(set(rates)) == len(rates)
