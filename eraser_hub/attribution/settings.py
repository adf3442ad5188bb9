"""The settings that decide the results of ``explain``, but for model and data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from eraser_hub.metrics.errors import check_choice, check_number
from eraser_hub.papers import AOPC_THRESHOLDS
from eraser_hub.papers.presets import PRESETS, Choices, Preset, load_preset
from eraser_hub.records.errors import DataError, show
from eraser_hub.records.registry import parse_call
from eraser_hub.version import __version__

from .method import MEASURES, METHODS, Measure, Method, as_calls, call

# where rationales or scores come from that no method computes
HUMAN, MODEL, FILE, INSTANCES = "human", "model", "file", "instances"
TARGETS = ("predicted", "gold")
FIDELITY_RATES = tuple(round(0.05 * step, 2) for step in range(21))
MAX_SEED = 2**32 - 1  # as of `train`


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainSettings:
    """Everything that decides the results, but for model and data.

    Attributes:
        method: computes the token scores; None where rationales or scores come with the instances, or the model
            selects its rationale.
        rationales: where rationales come from that no method computes: ``human``, ``model`` (that selects), ``file`` or
            ``instances``; "" for none of them.
        scores: the same of token scores: ``file`` or ``instances``.
        digest: of that file.
        measures: measures beside the erasure of the rationale.
        paper: whose choices are made: eraser, wang2022, carton2020.
        target: the label that the scores explain: predicted, gold, or a label's name.
        kd: share of tokens in a hard rationale.
        kd_source: where kd is from: paper, corpus.yaml or train; "" if the caller or a preset chose it.
        kd_of_sequences: share for each sequence of a pair, where they differ; () for ``kd``.
        bins: shares of the tokens that are erased for the AOPC.
        erase: how tokens are erased: removed, or replaced by the model's mask or padding.
        units: units that are scored, selected and erased: tokens, or whole sentences.
        random_draws: random rationales per instance, of its rationale's length.
        random_kind: random rationales: tokens (any set), or spans (the rationale's own, shifted).
        fidelity_trials: trials per rate of fidelity curves; 0 for no curves.
        fidelity_rates: shares of the rationale that are taken out.
        seed: of all random draws.
        batch_size: inputs of full length at a time.
        chunk: instances that are worked on and written together.
    """

    method: Method | None = None
    rationales: str = ""
    scores: str = ""
    digest: str = ""
    measures: tuple[Measure, ...] = ()
    paper: str = ""
    target: str = "predicted"
    kd: float = 0.1
    kd_source: str = ""
    kd_of_sequences: tuple[float, ...] = ()
    bins: tuple[float, ...] = AOPC_THRESHOLDS
    erase: str = "remove"
    units: str = "tokens"
    random_draws: int = 0
    random_kind: str = "tokens"
    fidelity_trials: int = 0
    fidelity_rates: tuple[float, ...] = FIDELITY_RATES
    seed: int = 1
    batch_size: int = 32
    chunk: int = 16

    def __post_init__(self) -> None:
        check_choice(self.erase, ("remove", "mask", "pad"), "erase")
        check_choice(self.units, ("tokens", "sentences"), "units")
        check_choice(self.random_kind, ("tokens", "spans"), "random_kind")
        check_number(self.seed, "seed", 0, MAX_SEED)
        for name, least in (("random_draws", 0), ("fidelity_trials", 0), ("batch_size", 1), ("chunk", 1)):
            check_number(getattr(self, name), name, least)
        for share in (self.kd, *self.kd_of_sequences):
            check_number(share, "kd", 0, 1, whole=False)
        for name in ("bins", "fidelity_rates"):
            shares = getattr(self, name)
            for share in shares:
                check_number(share, name, 0, 1, whole=False)
            if len(set(shares)) < len(shares):
                raise DataError(f"expected each share once, found {show(shares)}", argument=name)
        if self.fidelity_trials and not self.fidelity_rates:
            raise DataError("expected at least one rate for the trials asked for, found ()", argument="fidelity_rates")
        if self.rationales:  # nothing is ranked
            if self.measures:
                raise DataError("given rationales rank no tokens", argument="measure")
            if self.target != "predicted":
                raise DataError("given rationales explain no label", argument="target")
            if self.units != "tokens":
                message = "expected scores of tokens, found rationales that are selected already"
                raise DataError(message, argument="units")
        if self.scores and any(measure.recomputes_scores for measure in self.measures):
            raise DataError("given scores cannot be computed anew for other inputs", argument="measure")

    @property
    def choices(self) -> Choices:
        """Choices of the paper that no attribute holds."""
        return find_preset(self.paper).choices

    def signature(self, model: str = "") -> str:
        """Return every setting that decides the numbers, in one line (sacrebleu's manner)."""
        source = self.digest or self.rationales or self.scores
        parts = [f"paper:{self.paper}"] if self.paper else []
        if self.rationales:
            parts.append(f"rationales:{source}")
        else:
            parts.append(f"scores:{source}" if self.method is None else f"method:{call(self.method)}")
            parts += [] if self.target == "predicted" else [f"target:{self.target}"]
            # the paper's table is the same for everyone; lengths of one's own data name their source
            own = f"({self.kd_source})" if self.kd_source not in ("", "paper") else ""
            parts.append("kd:" + ",".join(f"{share:g}" for share in self.kd_of_sequences or (self.kd,)) + own)
        parts += [f"erase:{self.erase}", f"seed:{self.seed}"]
        parts += ["bins:" + ",".join(f"{rate:g}" for rate in self.bins)] if self.bins else []
        parts += [f"measures:{';'.join(map(call, self.measures))}"] if self.measures else []
        parts += [f"random-draws:{self.random_draws},{self.random_kind}"] if self.random_draws else []
        if self.fidelity_trials:
            parts.append(f"fidelity:{self.fidelity_trials}x{len(self.fidelity_rates)}")
        parts += [f"units:{self.units}"] if self.units != "tokens" else []
        parts += [f"model:{model}"] if model else []
        return "|".join([*parts, *self.choices.words(), f"eraser-hub:{__version__}"])

    def record(self) -> dict[str, Any]:
        """Return the settings as plain values, for a run's record."""
        values: dict[str, Any] = {name: getattr(self, name) for name in self.__slots__}
        method = None if self.method is None else call(self.method)
        return {**values, "method": method, "measures": list(map(call, self.measures))}

    def for_pairs(self) -> ExplainSettings:
        """Return the settings for the perturbation benchmark, whose results have no place for some things.

        Raises:
            DataError: such a thing was asked for.
        """
        message = "the perturbation benchmark's results have no place for it"
        if self.measures:
            raise DataError(message, argument="measure")
        preset = find_preset(self.paper).settings
        for name in ("random_draws", "fidelity_trials"):
            if getattr(self, name) and getattr(self, name) != preset.get(name):
                raise DataError(message, argument=name)
        return replace(self, bins=(), fidelity_trials=0)


def build_settings(
    paper: str = "",
    *,
    config: str = "",
    embeds: bool = False,
    selects: bool = False,
    method: str | Method | None = None,
    measures: str | Measure | Sequence[str | Measure] = (),
    rationales: str = "",
    scores: str = "",
    **options: Any,
) -> ExplainSettings:
    """Return settings by a paper's preset, with options in place of its values.

    Args:
        paper: one of :data:`papers.presets.PRESETS`, or "" for our own defaults.
        config: the dataset's config, by which a preset has its kd and integration steps.
        embeds: whether the model embeds its tokens, which decides a preset's method.
        selects: whether the model selects its rationale, which is erased where nothing says otherwise.
        method: the method, or its call: ``lime(samples=1000)``.
        measures: the same of measures.
        rationales: instead of a method; see :class:`ExplainSettings`.
        scores: likewise.
        **options: attributes of :class:`ExplainSettings`; None where the preset, else the default, decides.

    Raises:
        DataError: an unknown paper, method or measure; values out of range.
    """
    preset = find_preset(paper)
    rationales = rationales or ("" if method or scores else preset.rationales or (MODEL if selects else ""))
    chosen = method if isinstance(method, Method) else None
    if chosen is None and not rationales and not scores:
        by_paper = preset.method if embeds else preset.method_without_embeddings
        name, given = parse_call(str(method or by_paper or "occlusion"), "method")
        defaults, steps = dict(preset.methods.get(name, {})), preset.steps.get(config.split("_")[0])
        if steps and name == "integrated-gradients":
            defaults["steps"] = steps
        chosen = METHODS.build(name, {**defaults, **given}, "method")
    values: dict[str, Any] = {**preset.settings, "paper": paper}
    shares = preset.kd.get(config, ())
    if options.get("kd") is None and shares:
        values |= {"kd": shares[0], "kd_of_sequences": shares if len(shares) > 1 else ()}
    values |= {name: to_python(value) for name, value in options.items() if value is not None}
    for name in ("bins", "fidelity_rates"):
        if name in values:
            several = isinstance(values[name], Iterable) and not isinstance(values[name], str)
            values[name] = tuple(map(to_python, values[name])) if several else (values[name],)
    if rationales:  # nothing ranks tokens
        for name in ("kd", "bins"):
            if options.get(name) is not None:
                raise DataError("given rationales rank no tokens", argument=name)
        values["bins"] = ()
    settings = ExplainSettings(
        method=chosen, rationales=rationales, scores=scores, measures=read_measures(measures), **values
    )
    for name, reader in (("random_kind", "random_draws"), ("fidelity_rates", "fidelity_trials")):
        default = ExplainSettings.__dataclass_fields__[name].default
        if options.get(name) not in (None, default) and not getattr(settings, reader):
            raise DataError(f"expected `{reader}` beside it, found none", argument=name)
    return settings


def to_python(value: Any) -> Any:
    """Return numbers of numpy as Python's, which the record of a run can hold; anything else as it is."""
    return value.tolist() if isinstance(value, np.generic | np.ndarray) else value


def read_measures(measures: str | Measure | Sequence[str | Measure]) -> tuple[Measure, ...]:
    """Return measures by name, each given by its call: ``soft(draws=20)``.

    Raises:
        DataError: there is no such measure; a measure is named twice; a wrong setting.
    """
    found: dict[str, Measure] = {}
    for given in as_calls(measures, "measure"):
        measure = given if isinstance(given, Measure) else MEASURES.make(given, "measure")
        name = MEASURES.name_of(type(measure))
        if name in found:
            raise DataError(f"expected each measure once, found {name} again", argument="measure")
        found[name] = measure
    return tuple(found[name] for name in sorted(found))


def find_preset(paper: str) -> Preset:
    """Return the preset of a paper; "" gives our own choices.

    Raises:
        DataError: an unknown paper.
    """
    if paper not in ("", *PRESETS):
        raise DataError(f"expected one of {', '.join(PRESETS)}, found {show(paper)}", argument="paper")
    return load_preset(paper)
