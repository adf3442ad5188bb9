"""Settings that decide the results of ``explain``, but for model and data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

from eraser_hub.metrics.errors import check_choice
from eraser_hub.papers import AOPC_THRESHOLDS
from eraser_hub.records.errors import DataError, UsageError, describe_choice, show
from eraser_hub.records.registry import parse_call
from eraser_hub.version import __version__

from .measure import AOPC_BOUNDS, MEASURES, OCCLUDED_FIELD, SOFT_MASKS, Measure
from .method import METHODS, DescribedPart, Method

if TYPE_CHECKING:  # the command line reads the declaration without waiting for numpy
    from eraser_hub.papers.presets import Choices, Preset


class RationaleSource(StrEnum):
    """Source of scores or rationales, where no method computes them.

    Members equal their strings, which stand in settings, signatures and records.

    Attributes:
        SCORES: the method ``given``: token scores come with the instances.
        SPANS: the method ``rationales``: rationales come with the instances.
        HUMAN: the rationales of people.
        MODEL: the rationales that the model selects.
    """

    SCORES = "given"
    SPANS = "rationales"
    HUMAN = "human"
    MODEL = "model"

    __str__ = str.__str__
    __format__ = str.__format__  # type: ignore[assignment]  # since Python 3.12 a member is its name
    __repr__ = str.__repr__


TARGETS = ("predicted", "gold")
THRESHOLDED = "thresholded_scores"
FIDELITY_RATES = tuple(round(0.05 * step, 2) for step in range(21))
# the fields that a prediction may have beside its erased inputs, in the order in which it is written
FIELDS: tuple[str, ...] = (
    *(THRESHOLDED, "tokens_to_flip", "random_rationales", OCCLUDED_FIELD),
    *(AOPC_BOUNDS, SOFT_MASKS, "infidelity", "infidelity_normalized", "sensitivity_max"),
)

LARGEST = 2**63 - 1  # what the record of a run, which is JSON, can hold of a whole number
# whole numbers: the least value of each
LEAST = {"seed": 0, "random_draws": 0, "fidelity_trials": 0, "batch_size": 1, "chunk": 1}
CHOICES = {
    "erase": ("remove", "mask", "pad"),
    "units": ("tokens", "sentences"),
    "random_kind": ("tokens", "spans"),
}


def find_field_place(name: str) -> int:
    """Return the place of a prediction's field among :data:`FIELDS`; others come last."""
    return FIELDS.index(name) if name in FIELDS else len(FIELDS)


@dataclass(frozen=True, slots=True)
class ExplainSettings:
    """Everything that decides the results, but for model and data.

    Attributes:
        paper: whose choices are made: eraser, wang2022, carton2020.
        method: the attribution method; ``given`` for scores, ``rationales`` for rationales that come with the
            instances.
        target: the label that the scores explain: predicted, gold, or a label's name.
        seed: of all random draws.
        kd: share of tokens in a hard rationale.
        kd_source: where kd is from: paper, corpus.yaml or train; "" if the caller or a preset chose it.
        kd_of_sequences: share for each sequence of a pair, where they differ; () for ``kd``.
        bins: shares of the tokens that are erased for the AOPC.
        erase: how tokens are erased: removed, or replaced by the model's mask or padding.
        tokens_to_flip: measure tokens-to-flip.
        random_draws: random rationales per instance, of its rationale's length.
        random_kind: random rationales: tokens (any set), or spans (its own spans, shifted).
        fidelity_trials: trials per occlusion rate of fidelity curves; 0 for no curves.
        fidelity_rates: shares of the rationale that are taken out; () only without trials.
        steps, lime_samples, lime_tokens, shapley_draws, shap_samples: of the methods integrated-gradients, lime,
            shapley and kernel-shap.
        batch_size: full-length inputs per batch.
        chunk: instances that are written together.
        scores: methods ``given`` and ``rationales``: which they are (``human``, ``model`` for those that the model
            selects itself, or the file's digest), for the signature.
        units: units that are scored, selected and erased: tokens, or whole sentences.
        aopc_bounds, beam: measure aopc-bounds.
        soft_draws, soft_masks, infidelity_draws, sensitivity_draws: of the measures soft, infidelity and
            sensitivity; no draws, no measure.
        more: settings that plug-ins declare: name -> value.
    """

    paper: str = ""
    method: str = "occlusion"
    target: str = "predicted"
    seed: int = 1
    kd: float = 0.1
    kd_source: str = ""
    kd_of_sequences: tuple[float, ...] = ()
    bins: tuple[float, ...] = AOPC_THRESHOLDS
    erase: str = "remove"
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
    infidelity_draws: int = 0
    sensitivity_draws: int = 0
    more: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        find_preset(self.paper)
        if self.method not in (RationaleSource.SCORES, RationaleSource.SPANS):
            METHODS.find(self.method, argument="method")
        for name, choices in CHOICES.items():
            check_choice(getattr(self, name), choices, name)
        for name, least in LEAST.items():
            check_whole_number(getattr(self, name), least, name)
        if not all(map(_is_share, (self.kd, *self.kd_of_sequences))):
            found = show(self.kd_of_sequences or self.kd)
            raise DataError(f"expected a share from 0 to 1, found {found}", argument="kd")
        for name, shares in (("bins", self.bins), ("fidelity_rates", self.fidelity_rates)):
            if not all(map(_is_share, shares)) or len(set(shares)) < len(shares):
                raise DataError(f"expected different shares from 0 to 1, found {show(shares)}", argument=name)
        if self.fidelity_trials and not self.fidelity_rates:
            raise DataError("expected at least one rate for the trials asked for, found ()", argument="fidelity_rates")
        if self.units != "tokens" and self.method == RationaleSource.SPANS and not self.erases_units:
            message = f"`units` {self.units}: expected scores of tokens, found rationales that are selected already"
            raise UsageError(message)
        more: dict[str, Any] = {}
        for name, setting in (pair for part in self.parts for pair in part.settings.items()):
            values = self.more if not setting.field else {name: getattr(self, setting.field, setting.default)}
            value = values.get(name, setting.default)
            if fault := setting.find_fault(value):
                raise DataError(f"expected {fault}, found {show(value)}", argument=setting.field or name)
            more |= {} if setting.field else {name: value}
        object.__setattr__(self, "more", more)

    @property
    def choices(self) -> Choices:
        """Choices of the paper that no attribute holds."""
        return find_preset(self.paper).choices

    @property
    def method_class(self) -> type[Method] | None:
        """The method; None where scores or rationales come with the instances."""
        return None if self.method in (RationaleSource.SCORES, RationaleSource.SPANS) else METHODS[self.method]

    @property
    def parts(self) -> list[type[DescribedPart]]:
        """The method, if there is one, and the measures."""
        return [*([] if self.method_class is None else [self.method_class]), *self.measures]

    @property
    def measures(self) -> list[type[Measure]]:
        """The measures that are asked for, in the order of their fields."""
        chosen = (
            one for one in MEASURES.values() if getattr(self, one.enabled_by, None) or self.more.get(one.enabled_by)
        )
        return sorted(chosen, key=_find_measure_place)

    def signature(self, model: str = "") -> str:
        """Return every setting that decides the numbers, in one line (sacrebleu's manner)."""
        spans, choices, method = self.method == RationaleSource.SPANS, self.choices, self.method_class
        own = [] if method is None else method.describe_settings(self)
        before = [one for one in self.measures if _find_measure_place(one) < find_field_place(OCCLUDED_FIELD)]
        after = [one for one in self.measures if one not in before]
        parts = [f"paper:{self.paper}"] if self.paper else []
        parts += [f"rationales:{self.scores}"] if spans else [f"method:{self.method}"]
        if not spans:
            parts += [] if self.target == "predicted" else [f"target:{self.target}"]
            # the paper's table is the same for everyone; lengths of one's own data name their source
            source = f"({self.kd_source})" if self.kd_source not in ("", "paper") else ""
            parts.append("kd:" + ",".join(f"{share:g}" for share in self.kd_of_sequences or (self.kd,)) + source)
        parts += [f"erase:{self.erase}", f"seed:{self.seed}"]
        parts += ["bins:" + ",".join(f"{rate:g}" for rate in self.bins)] if self.bins else []
        parts += [] if method is None or method.erases_units else own
        parts += [f"scores:{self.scores}"] if self.scores and not spans else []
        parts += [f"random-draws:{self.random_draws},{self.random_kind}"] if self.random_draws else []
        parts += [words for one in before for words in one.describe_settings(self)]
        if self.fidelity_trials:
            parts.append(f"fidelity:{self.fidelity_trials}x{len(self.fidelity_rates)},{choices.occlusion}")
        parts += [words for one in after if not one.erases_units for words in one.describe_settings(self)]
        parts += own if method is not None and method.erases_units else []
        parts += [words for one in after if one.erases_units for words in one.describe_settings(self)]
        parts += [f"units:{self.units}"] if self.units != "tokens" else []
        parts += [f"filler:{choices.filler}"] if choices.filler else []
        parts += [f"model:{model}"] if model else []
        ties = "position" if choices.ties == "first" else "last-position"
        return "|".join([*parts, f"ties:{ties}", f"eraser-hub:{__version__}"])

    @property
    def is_costly(self) -> bool:
        """True if anything in the settings may take many inputs an instance."""
        return self.erases_units or any(one.costly for one in self.measures)

    @property
    def erases_units(self) -> bool:
        """True if sets of ``units`` are erased."""
        parts = [one.erases_units for one in self.measures]
        return any(parts if self.method_class is None else [self.method_class.erases_units, *parts])

    def for_kind(self, kind: str) -> ExplainSettings:
        """Return the settings for a kind of dataset, without what its results have no place for.

        The perturbation benchmark's results hold no AOPC, nor do those of given rationales: the signature must not say
        that there were bins.

        Raises:
            DataError: something was asked for that would be missing.
        """
        if self.method == RationaleSource.SPANS:
            for measure in self.measures:
                if measure.ranks:
                    raise DataError("given rationales rank no tokens", argument="measure")
            if self.target != "predicted":
                raise DataError("given rationales explain no label", argument="target")
            self = replace(self, bins=())
        for measure in self.measures:
            if self.method == RationaleSource.SCORES and measure.recomputes_scores:
                raise DataError("given scores cannot be computed anew for other inputs", argument="measure")
        if kind != "perturbation":
            return self
        message = "the perturbation benchmark's results have no place for it"
        if self.measures:
            raise DataError(message, argument="measure")
        for name in ("random_draws", "fidelity_trials"):
            value = getattr(self, name)
            if value and value != find_preset(self.paper).settings.get(name):
                raise DataError(message, argument=name)
        return replace(self, bins=(), fidelity_trials=0)


def _is_share(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and 0 <= float(value) <= 1


def check_whole_number(value: object, least: int, argument: str) -> None:
    """Refuse what is no whole number from ``least`` on.

    Raises:
        DataError: such a value of the argument.
    """
    if not isinstance(value, Integral) or isinstance(value, bool) or not least <= int(value) <= LARGEST:
        raise DataError(f"expected a whole number, at least {least}, found {show(value)}", argument=argument)


def _find_measure_place(measure: type[Measure]) -> int:
    """Return the place of a measure's first field among a prediction's."""
    return find_field_place(measure.fields[0])


def parse_method(text: str) -> tuple[str, dict[str, Any]]:
    """Return the name of a method, and its settings by the names that :func:`build_settings` has for them.

    >>> parse_method("lime(samples=1000)")
    ('lime', {'lime_samples': 1000})

    Raises:
        DataError: no such method, or a setting that it does not have; names those there are.
    """
    name, given = parse_call(text, "method")
    return name, _read_settings(name, METHODS.find(name, argument="method"), given, "method")


def parse_measures(texts: Sequence[str]) -> dict[str, Any]:
    """Return the settings that ask for measures, each by its name or the beginning of it.

    >>> parse_measures(["soft(draws=20)", "tokens-to-flip"])
    {'soft_masks': 'tokens', 'soft_draws': 20, 'tokens_to_flip': True}

    Raises:
        DataError: no measure, or several, have a name that begins so; a measure is named twice; a wrong setting.
    """
    values: dict[str, Any] = {}
    for text in texts:
        beginning, given = parse_call(text, "measure")
        fitting = [beginning] if beginning in MEASURES else [one for one in MEASURES if one.startswith(beginning)]
        if len(fitting) > 1:
            raise DataError(f"expected one of {', '.join(fitting)}, found {beginning!r}", argument="measure")
        name = fitting[0] if fitting else beginning
        measure = MEASURES.find(name, argument="measure")
        if measure.enabled_by in values:
            raise DataError(f"expected each measure once, found {', '.join(texts)}", argument="measure")
        values |= {one.field or key: one.default for key, one in measure.settings.items() if key not in given}
        values |= _read_settings(name, measure, given, "measure")
        values.setdefault(measure.enabled_by, True)
    return values


def _read_settings(name: str, part: type[DescribedPart], given: Mapping[str, Any], argument: str) -> dict[str, Any]:
    values = {}
    for key, value in given.items():
        if key not in part.settings:
            message = describe_choice(key, part.settings) if part.settings else f"expected no settings, found {key!r}"
            raise DataError(f"{name}: {message}", argument=argument)
        setting = part.settings[key]
        if fault := setting.find_fault(value):
            raise DataError(f"{name}, {key}: expected {fault}, found {show(value)}", argument=argument)
        values[setting.field or key] = value
    return values


def find_preset(paper: str) -> Preset:
    """Return :func:`papers.presets.preset`, for a name that may be none.

    Raises:
        DataError: an unknown paper.
    """
    from eraser_hub.papers.presets import PRESETS, load_preset

    if paper not in ("", *PRESETS):
        message = f"expected one of {', '.join(PRESETS)}, found {show(paper)}"
        raise UsageError(message, argument="paper")
    return load_preset(paper)


def check_used(options: Mapping[str, Any], runs: Sequence[ExplainSettings]) -> None:
    """Refuse settings that nothing in the runs reads.

    Args:
        options: settings as they are given; None and defaults count as not given.
        runs: the settings of each run.

    Raises:
        DataError: such a setting.
    """
    for name in ("kd", "bins"):
        if options.get(name) is not None and all(one.method == RationaleSource.SPANS for one in runs):
            raise DataError("given rationales rank no tokens", argument=name)
    for name, reader in (("random_kind", "random_draws"), ("fidelity_rates", "fidelity_trials")):
        given = options.get(name) not in (None, ExplainSettings.__dataclass_fields__[name].default)
        if given and not any(getattr(one, reader) for one in runs):
            raise DataError(f"expected `{reader}` beside it, found none", argument=name)


def build_settings(paper: str, config: str, embeddings: bool, selects: bool = False, **options: Any) -> ExplainSettings:
    """Return settings by a paper's preset, with single options in place of its values.

    Args:
        paper: one of :data:`eraser_hub.papers.presets.PRESETS`, or "" for our own defaults.
        config: the dataset's config, by which a preset has its kd and integration steps.
        embeddings: whether the model has embeddings, which decides the preset's method.
        selects: whether the model selects its rationale, which is then erased where neither options nor the preset say
            another.
        options: attributes of :class:`ExplainSettings`, and settings that plug-ins declare; None where the preset (else
            the default) decides.

    Raises:
        DataError: an unknown paper, values out of range.
    """
    chosen = find_preset(paper)
    names = ExplainSettings.__dataclass_fields__
    more = {**(options.pop("more", None) or {}), **{name: options.pop(name) for name in {*options} - {*names}}}
    values: dict[str, Any] = {**chosen.settings, "paper": paper}
    values["method"] = (
        RationaleSource.SPANS
        if chosen.rationales
        else chosen.method
        if embeddings
        else chosen.method_without_embeddings
    )
    values["scores"] = chosen.rationales
    if selects and not chosen.rationales:
        values |= {"method": RationaleSource.SPANS, "scores": RationaleSource.MODEL}
    values["steps"] = chosen.steps.get(config.split("_")[0])
    shares = chosen.kd.get(config, ())
    if options.get("kd") is None and shares:
        values |= {"kd": shares[0], "kd_of_sequences": shares if len(shares) > 1 else ()}
    if options.get("method") not in (None, RationaleSource.SPANS):
        values["scores"] = ""
    values |= {name: value for name, value in options.items() if value is not None}
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
    return ExplainSettings(**{name: value for name, value in values.items() if value not in (None, "")}, more=more)
