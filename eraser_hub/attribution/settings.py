"""What decides the results of ``explain``, but for model and data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from eraser_hub.metrics.erasure import AOPC_THRESHOLDS
from eraser_hub.papers.presets import PRESETS, Choices, Preset, preset
from eraser_hub.records.errors import DataError, shown
from eraser_hub.records.operators import ERASE_MODES, INFILL
from eraser_hub.version import __version__

from .games.units import MASKS, UNITS

GRADIENTS = ("gradient", "simple-gradient", "input-x-gradient", "integrated-gradients")
METHODS = ("random", "occlusion", *GRADIENTS, "attention", "lime", "coefficients", "shapley", "kernel-shap", "deeplift")
GIVEN = "given"  # no method of ours: the scores come with the instances
SPANS = "rationales"  # no scores at all: the rationales come with the instances
HUMAN, OWN = "human", "model"  # of whom they are, where no file holds them
TARGETS = ("predicted", "gold")
ERASING_METHODS = ("occlusion", "lime", "shapley", "kernel-shap")  # whose scores hang on how tokens are erased
RANDOM_KINDS = ("tokens", "spans")
FIDELITY_RATES = tuple(round(0.05 * step, 2) for step in range(21))
LARGEST = 2**63 - 1  # what the record of a run, which is JSON, can hold of an integer


@dataclass(frozen=True, slots=True)
class ExplainSettings:
    """Everything that decides the results, but for model and data.

    Attributes:
        paper: one of :data:`eraser_hub.papers.presets.PRESETS`, whose code's choices are made where no other attribute
            says them; "" for ours. :func:`settings_for` also takes the paper's values of the other attributes.
        method: one of :data:`METHODS`; ``given`` for scores, ``rationales`` for rationales that come with the
            instances.
        target: the label that scores explain: ``predicted``, ``gold``, or a label's name.
        seed: of all that is drawn.
        kd: share of the tokens in a hard rationale.
        kd_of_sequences: share for each sequence of a pair, where they differ; () for ``kd``.
        bins: shares at which the AOPC is measured, () for none.
        erase: remove, mask, pad or infill.
        also_erase: further ways, each of which gives a result of its own, of the same scores and rationales.
        scores_erase: how tokens were erased for the scores, where that is another way; "" for ``erase``.
        infill: name of the masked language model that fills erased places; "" without ``infill``.
        tokens_to_flip: search how many of the evidence documents' highest-ranked tokens must go until the label
            changes.
        random_draws: number of random rationales of each instance's own length.
        random_kind: ``tokens`` (any set of that size) or ``spans`` (its own spans, shifted).
        fidelity_trials: trials per occlusion rate of the fidelity curves, 0 for none.
        fidelity_rates: shares of the rationale that are taken out, () only without trials.
        steps: integration steps of integrated gradients.
        lime_samples: LIME's N, perturbed samples of each instance.
        lime_tokens: LIME's K, tokens in each sample; 0: a uniformly drawn number.
        batch_size: full-length inputs at a time.
        chunk: instances in a chunk.
        scores: methods ``given`` and ``rationales``: which they are (``human``, ``model`` for those that the model
            selects itself, or the file's digest), for the signature.
        units: what is erased together by Shapley values and by the scores below: ``tokens``, or ``sentences``.
        shapley_draws: permutations, each with its reverse, of ``shapley`` above :data:`games.play.EXACT_UNITS` units.
        shap_samples: sets of ``kernel-shap`` above as many units; 0: 2 n + 2048.
        aopc_bounds: find the least and the greatest AOPC of all orders of erasure.
        beam: orders that are followed together in that search above :data:`games.play.EXACT_UNITS` units.
        soft_masks: what they erase by chance: ``tokens`` (units), or ``elements`` of the tokens' embeddings.
        soft_draws: masks of soft comprehensiveness, and of soft sufficiency, above eight units; 0: neither score.
        leave_one_out: p(label) minus p without it, of each unit.
        distribution_texts: training texts on which the model's states are fitted, to tell how far erased inputs lie
            from them; 0: not.
        infidelity_draws, sensitivity_draws: perturbed inputs of infidelity and of the largest sensitivity; 0: none.
    """

    paper: str = ""
    method: str = "occlusion"
    target: str = "predicted"
    seed: int = 1
    kd: float = 0.1
    kd_of_sequences: tuple[float, ...] = ()
    bins: tuple[float, ...] = AOPC_THRESHOLDS
    erase: str = "remove"
    also_erase: tuple[str, ...] = ()
    scores_erase: str = ""
    infill: str = ""
    tokens_to_flip: bool = False
    random_draws: int = 0
    random_kind: str = "tokens"
    fidelity_trials: int = 0
    fidelity_rates: tuple[float, ...] = FIDELITY_RATES
    steps: int = 300
    lime_samples: int = 5000
    lime_tokens: int = 0
    batch_size: int = 32
    chunk: int = 16
    scores: str = ""
    units: str = "tokens"
    shapley_draws: int = 10
    shap_samples: int = 0
    aopc_bounds: bool = False
    beam: int = 5
    soft_draws: int = 0
    soft_masks: str = "tokens"
    leave_one_out: bool = False
    infidelity_draws: int = 0
    sensitivity_draws: int = 0
    distribution_texts: int = 0

    def __post_init__(self) -> None:
        preset_of(self.paper)
        rates = self.fidelity_rates
        for option, good, expected, value in (
            ("--method", self.method in (*METHODS, GIVEN, SPANS), f"one of {', '.join(METHODS)}", self.method),
            *(("--erase", one in ERASE_MODES, f"one of {', '.join(ERASE_MODES)}", one) for one in self.operators),
            ("--erase", _different(self.operators), "each way once", self.operators),
            (
                "--infill",
                bool(self.infill) or INFILL not in self.operators,
                "a masked language model to infill with",
                self.infill,
            ),
            (
                "--infill",
                not self.infill or INFILL in (*self.operators, self.scores_erase),
                "--erase infill beside it",
                self.infill,
            ),
            ("--random-kind", self.random_kind in RANDOM_KINDS, " or ".join(RANDOM_KINDS), self.random_kind),
            ("--units", self.units in UNITS, " or ".join(UNITS), self.units),
            ("--soft-masks", self.soft_masks in MASKS, " or ".join(MASKS), self.soft_masks),
            ("--soft-masks", self.soft_draws or self.soft_masks == MASKS[0], "--soft-draws beside it", self.soft_masks),
            ("--soft-draws", self.soft_draws != 1, "0, or at least 2, whose spread can be told", self.soft_draws),
            ("--distribution", self.distribution_texts != 1, "0, or at least 2", self.distribution_texts),
            ("--kd", 0 <= self.kd <= 1, "a share from 0 to 1", self.kd),
            ("--kd", _shares(self.kd_of_sequences), "shares from 0 to 1", self.kd_of_sequences),
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
                raise DataError(f"{option}: expected {expected}, found {shown(value)}", rule="option-value")
        for option, number, least in (
            ("--steps", self.steps, 1),
            ("--lime-samples", self.lime_samples, 2),
            ("--lime-tokens", self.lime_tokens, 0),
            ("--batch-size", self.batch_size, 1),
            ("--random-draws", self.random_draws, 0),
            ("--fidelity-trials", self.fidelity_trials, 0),
            ("--chunk", self.chunk, 1),
            ("--seed", self.seed, 0),
            ("--shapley-draws", self.shapley_draws, 1),
            ("--shap-samples", self.shap_samples, 0),
            ("--beam", self.beam, 1),
            ("--soft-draws", self.soft_draws, 0),
            ("--infidelity", self.infidelity_draws, 0),
            ("--sensitivity", self.sensitivity_draws, 0),
            ("--distribution", self.distribution_texts, 0),
        ):
            if not least <= number <= LARGEST:
                bound = f"at least {least}" if number < least else f"at most {LARGEST}"
                raise DataError(f"{option}: expected {bound}, found {shown(number)}", rule="option-value")
        if self.units != UNITS[0] and not self.plays:
            options = ", ".join(("--method shapley or kernel-shap", *self.of_rankings))
            words = f"--units {self.units}: expected beside one of {options}; all else goes by tokens"
            raise DataError(words, rule="option-conflict")

    @property
    def operators(self) -> tuple[str, ...]:
        """The ways of erasing, each of which has a result."""
        return (self.erase, *self.also_erase)

    def by_operator(self, operator: str) -> ExplainSettings:
        """The settings of one way's result: the scores are those of the first way."""
        if operator == self.erase:
            scores_erase = self.scores_erase
        else:
            scores_erase = self.erase if self.method in ERASING_METHODS else ""
        infill = self.infill if INFILL in (operator, scores_erase) else ""
        return replace(self, erase=operator, also_erase=(), scores_erase=scores_erase, infill=infill)

    @property
    def choices(self) -> Choices:
        """How scores and inputs are made where no attribute says it."""
        return preset(self.paper).choices

    def signature(self, model: str = "") -> str:
        """Every setting that decides the numbers, in one line (sacrebleu's manner)."""
        spans, choices = self.method == SPANS, self.choices
        parts = [f"paper:{self.paper}"] if self.paper else []
        parts += [f"rationales:{self.scores}"] if spans else [f"method:{self.method}"]
        if not spans:
            parts += [] if self.target == "predicted" else [f"target:{self.target}"]
            parts.append("kd:" + ",".join(f"{share:g}" for share in self.kd_of_sequences or (self.kd,)))
        parts += [f"erase:{','.join(self.operators)}", f"seed:{self.seed}"]
        if self.scores_erase:
            parts.append(f"scores-erase:{self.scores_erase}")
        if self.infill:
            parts.append(f"infill:{self.infill}")
        if self.bins:
            parts.append("bins:" + ",".join(f"{rate:g}" for rate in self.bins))
        if self.method == "integrated-gradients":
            parts.append(f"steps:{self.steps}|baseline:{choices.baseline}")
        if self.scores and not spans:
            parts.append(f"scores:{self.scores}")
        if self.method == "lime":
            parts.append(f"lime:N{self.lime_samples},K{self.lime_tokens}")
        if self.random_draws:
            parts.append(f"random-draws:{self.random_draws},{self.random_kind}")
        if self.tokens_to_flip:
            parts.append("flip:evidence-documents")
        if self.fidelity_trials:
            parts.append(f"fidelity:{self.fidelity_trials}x{len(self.fidelity_rates)},{choices.occlusion}")
        if self.distribution_texts:
            parts.append(f"distribution:{self.distribution_texts}")
        parts += self._games()
        if choices.filler:
            parts.append(f"filler:{choices.filler}")
        if model:
            parts.append(f"model:{model}")
        ties = "position" if choices.ties == "first" else "last-position"
        return "|".join([*parts, f"ties:{ties}", f"eraser-hub:{__version__}"])

    @property
    def of_rankings(self) -> dict[str, int]:
        """What was asked for beside the erasure of rationales, by option; all of it needs scores of every token."""
        return {
            "--aopc-bounds": int(self.aopc_bounds),
            "--soft-draws": self.soft_draws,
            "--leave-one-out": int(self.leave_one_out),
            "--infidelity": self.infidelity_draws,
            "--sensitivity": self.sensitivity_draws,
        }

    @property
    def may_cost_much(self) -> bool:
        """Whether something is asked for that may take many inputs an instance."""
        return self.plays or bool(self.infill or self.also_erase or self.distribution_texts)

    @property
    def plays(self) -> bool:
        """Whether sets of units are erased: what ``units`` is for."""
        return self.method in ("shapley", "kernel-shap") or any(self.of_rankings.values())

    def _games(self) -> list[str]:
        """What the signature says of Shapley values and of :attr:`of_rankings`."""
        parts = []
        if self.method == "shapley":
            parts.append(f"shapley:{self.shapley_draws}")
        if self.method == "kernel-shap":
            parts.append(f"shap:{self.shap_samples or '2n+2048'}")
        if self.aopc_bounds:
            parts.append(f"aopc-bounds:beam{self.beam}")
        if self.soft_draws:
            parts.append(f"soft:{self.soft_draws}" + (f",{self.soft_masks}" if self.soft_masks != MASKS[0] else ""))
        if self.leave_one_out:
            parts.append("leave-one-out")
        if self.infidelity_draws:
            parts.append(f"infidelity:{self.infidelity_draws}")
        if self.sensitivity_draws:
            parts.append(f"sensitivity:{self.sensitivity_draws}")
        return [*parts, f"units:{self.units}"] if parts and self.units != "tokens" else parts

    def for_kind(self, kind: str) -> ExplainSettings:
        """The settings for a kind of dataset, without what its results have no place for.

        The perturbation benchmark's results hold no AOPC, nor do those of given rationales: the signature must not say
        that there were bins.

        Raises:
            DataError: something was asked for that would be missing.
        """
        if self.method == SPANS:
            if self.tokens_to_flip:
                raise DataError("--tokens-to-flip: given rationales rank no tokens", rule="option-conflict")
            if self.target != "predicted":
                raise DataError("--target: given rationales explain no label", rule="option-conflict")
            for option, value in self.of_rankings.items():
                if value:
                    raise DataError(f"{option}: given rationales rank no tokens", rule="option-conflict")
            self = replace(self, bins=())
        if self.method == GIVEN and self.sensitivity_draws:
            words = "--sensitivity: given scores cannot be computed anew for other inputs"
            raise DataError(words, rule="option-conflict")
        if kind != "perturbation":
            return self
        for option, value in (
            ("--tokens-to-flip", self.tokens_to_flip),
            ("--random-draws", self.random_draws),
            ("--fidelity-trials", self.fidelity_trials),
            ("--distribution", self.distribution_texts),
            *self.of_rankings.items(),
        ):
            if value and value != preset(self.paper).settings.get(option[2:].replace("-", "_")):
                words = f"{option}: the perturbation benchmark's results have no place for it"
                raise DataError(words, rule="unsupported")
        return replace(self, bins=(), fidelity_trials=0)


def preset_of(paper: str) -> Preset:
    """`preset`, for a name that may be none.

    Raises:
        DataError: an unknown paper.
    """
    if paper not in ("", *PRESETS):
        raise DataError(f"--paper: expected one of {', '.join(PRESETS)}, found {shown(paper)}", rule="option-value")
    return preset(paper)


def settings_for(paper: str, config: str, embeddings: bool, selects: bool = False, **options: Any) -> ExplainSettings:
    """Settings by a paper's preset, with single options in place of its values.

    Args:
        paper: one of :data:`eraser_hub.papers.presets.PRESETS`, or "" for our own defaults.
        config: the dataset's config, by which a preset has its kd and integration steps.
        embeddings: whether the model has embeddings, which decides the preset's method.
        selects: whether the model selects its rationale, which is then erased where neither options nor the preset say
            another.
        options: attributes of :class:`ExplainSettings`; None where the preset (else the default) decides.

    Raises:
        DataError: an unknown paper or option, values out of range.
    """
    chosen = preset_of(paper)
    unknown = [name for name in options if name not in ExplainSettings.__dataclass_fields__]
    if unknown:
        known = ", ".join(ExplainSettings.__dataclass_fields__)
        raise DataError(f"expected settings among {known}; found {shown(unknown[0])}", rule="key-unknown")
    values: dict[str, Any] = {**chosen.settings, "paper": paper}
    values["method"] = SPANS if chosen.rationales else chosen.method if embeddings else chosen.method_without_embeddings
    values["scores"] = chosen.rationales
    if selects and not chosen.rationales:
        values |= {"method": SPANS, "scores": OWN}
    values["steps"] = chosen.steps.get(config.split("_")[0])
    shares = chosen.kd.get(config, ())
    if options.get("kd") is None and shares:
        values |= {"kd": shares[0], "kd_of_sequences": shares if len(shares) > 1 else ()}
    if options.get("method") not in (None, SPANS):
        values["scores"] = ""
    values |= {name: value for name, value in options.items() if value is not None}
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
    return ExplainSettings(**{name: value for name, value in values.items() if value not in (None, "")})


def _shares(rates: tuple[float, ...]) -> bool:
    return all(0 <= rate <= 1 for rate in rates)


def _different(values: tuple[float, ...] | tuple[str, ...]) -> bool:
    return len(set(values)) == len(values)
