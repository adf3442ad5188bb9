"""Settings that decide the results of ``explain``, but for model and data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Literal

from eraser_hub.papers import AOPC_THRESHOLDS
from eraser_hub.records.errors import DataError, UsageError, describe_choice, show
from eraser_hub.records.options import AtLeastOne, NotNegative, Option, merge_options, read_options
from eraser_hub.version import __version__

from .config import ExplainConfig
from .measure import AOPC_BOUNDS, MEASURES, OCCLUDED_FIELD, SOFT_MASKS, Measure
from .method import METHODS, DescribedPart, Method, Setting

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
# setting -> the one without which nothing reads it
BESIDE = {
    "random_kind": "random_draws",
    "fidelity_rates": "fidelity_trials",
}
FIDELITY_RATES = tuple(round(0.05 * step, 2) for step in range(21))
# the fields that a prediction may have beside its erased inputs, in the order in which it is written
FIELDS: tuple[str, ...] = (
    *(THRESHOLDED, "tokens_to_flip", "random_rationales", OCCLUDED_FIELD),
    *(AOPC_BOUNDS, SOFT_MASKS, "infidelity", "infidelity_normalized", "sensitivity_max"),
)

Share = Annotated[float, Option(min=0, max=1)]
SETTABLE = Option(settable=True)  # at the command line by --set
OPEN = Option(open=True)  # the paper, the data or the model decide where nobody does


def find_field_place(name: str) -> int:
    """Return the place of a prediction's field among :data:`FIELDS`; others come last."""
    return FIELDS.index(name) if name in FIELDS else len(FIELDS)


@dataclass(frozen=True, slots=True)
class ExplainSettings:
    """Everything that decides the results, but for model and data.

    Attributes:
        paper: Make the choices of this paper's code: eraser, wang2022, carton2020.
        method: the attribution method; ``given`` for scores, ``rationales`` for rationales that come with the
            instances.
        seed: Seed of all random draws.

    Rationales:
        target: Label that the scores explain: predicted, gold, or a label's name.
        kd: Share of tokens in a hard rationale; by default that of the preset, of the paper's table, of corpus.yaml, or
            of the training split's rationales. Other corpora need it.
        kd_source: where kd is from: paper, corpus.yaml or train; "" if the caller or a preset chose it.
        kd_of_sequences: share for each sequence of a pair, where they differ; () for ``kd``.
        units: Units that are scored, selected and erased: tokens, or whole sentences.
        scores: methods ``given`` and ``rationales``: which they are (``human``, ``model`` for those that the model
            selects itself, or the file's digest), for the signature.

    Erasure:
        bins: Shares of the tokens that are erased for the AOPC.
        erase: How tokens are erased: removed, or replaced by the model's mask or padding.
        random_draws: Random rationales per instance, of its rationale's length.
        random_kind: random rationales: tokens (any set), or spans (its own spans, shifted).
        fidelity_trials: Trials per occlusion rate of fidelity curves; 0 for no curves.
        fidelity_rates: shares of the rationale that are taken out; () only without trials.

    Settings of methods:
        steps: steps of integrated gradients.
        lime_samples: LIME: perturbed samples, N.
        lime_tokens: LIME: tokens in each sample, K; 0: a uniformly drawn number.
        shapley_draws: method shapley: permutations, each with its reverse, of more than 10 units.
        shap_samples: method kernel-shap: sets of more than 10 units (0: 2 n + 2048).

    Settings of measures:
        tokens_to_flip: search how many of the evidence documents' top tokens must go until the label changes.
        aopc_bounds: find the least and the greatest AOPC of all orders of erasure, for normalised AOPC (NAOPC).
        beam: AOPC bounds of more than 10 units: orders that are followed together.
        soft_draws: soft comprehensiveness and sufficiency: masks of more than 8 units (0: neither).
        soft_masks: what these masks erase: tokens (units), or elements of their embeddings (transformers).
        infidelity_draws: infidelity: perturbed inputs of each instance (0: none).
        sensitivity_draws: largest sensitivity: perturbed inputs whose scores are computed anew (0: none).
        more: settings that plug-ins declare: name -> value.

    Model:
        batch_size: Full-length inputs per batch.

    Run:
        chunk: Instances that are written together.
    """

    paper: str = ""
    method: Annotated[str, OPEN] = "occlusion"
    target: str = "predicted"
    seed: NotNegative = 1
    kd: Annotated[float, Option(min=0, max=1, open=True)] = 0.1
    kd_source: Annotated[str, Option(python_only=True)] = ""
    kd_of_sequences: Annotated[tuple[Share, ...], Option(python_only=True)] = ()
    bins: Annotated[tuple[Share, ...], Option(commas=True, percent=True, open=True)] = AOPC_THRESHOLDS
    erase: Annotated[Literal["remove", "mask", "pad"], OPEN] = "remove"
    tokens_to_flip: Annotated[bool, SETTABLE] = False
    random_draws: NotNegative = 0
    random_kind: Annotated[Literal["tokens", "spans"], SETTABLE] = "tokens"
    fidelity_trials: Annotated[int, Option(min=0, open=True)] = 0
    fidelity_rates: Annotated[tuple[Share, ...], Option(commas=True, percent=True, open=True, settable=True)] = (
        FIDELITY_RATES
    )
    steps: Annotated[int, Option(min=1, open=True, settable=True)] = 300
    lime_samples: Annotated[int, Option(min=2, open=True, settable=True)] = 5000
    lime_tokens: Annotated[int, Option(min=0, open=True, settable=True)] = 0
    batch_size: AtLeastOne = 32
    chunk: AtLeastOne = 16
    scores: str = ""
    units: Literal["tokens", "sentences"] = "tokens"
    shapley_draws: Annotated[int, Option(min=1, settable=True)] = 10
    shap_samples: Annotated[int, Option(min=0, settable=True)] = 0
    aopc_bounds: Annotated[bool, SETTABLE] = False
    beam: Annotated[int, Option(min=1, settable=True)] = 5
    soft_draws: Annotated[int, Option(min=0, open=True, settable=True)] = 0
    soft_masks: Annotated[Literal["tokens", "elements"], SETTABLE] = "tokens"
    infidelity_draws: Annotated[int, Option(min=0, name="infidelity", open=True, settable=True)] = 0
    sensitivity_draws: Annotated[int, Option(min=0, name="sensitivity", open=True, settable=True)] = 0
    more: Annotated[Mapping[str, Any], Option(python_only=True)] = field(default_factory=dict)

    def __post_init__(self) -> None:
        find_preset(self.paper)
        if self.method not in (RationaleSource.SCORES, RationaleSource.SPANS):
            METHODS.find(self.method, argument="method")
        for name, option in read_options(ExplainSettings).items():
            if not option.many:
                option.check(name, getattr(self, name))
        for name, good, expected, value in self._rules():
            if not good:
                raise DataError(f"expected {expected}, found {show(value)}", argument=name)
        if self.units != "tokens" and self.method == RationaleSource.SPANS and not self.erases_units:
            message = f"`units` {self.units}: expected scores of tokens, found rationales that are selected already"
            raise UsageError(message)
        own = {name: setting for part in self.parts for name, setting in part.settings.items()}
        for name in self.more:
            if name not in own and name not in find_declared_settings():
                message = f"expected a setting of the method or of a measure, found {show(name)}"
                raise DataError(message, argument="more")
        for name, setting in own.items():
            setting.check(name, self.more.get(name, setting.default))
        object.__setattr__(self, "more", {name: self.more.get(name, one.default) for name, one in own.items()})

    def _rules(self) -> Iterator[tuple[str, bool, str, object]]:
        """Yield the rules across settings or across all values of one: name, True if valid, expected value, value."""
        rates = self.fidelity_rates
        masked = self.soft_draws > 0 or self.soft_masks == "tokens"
        yield "soft_masks", masked, "`soft_draws` beside it", self.soft_masks
        yield "soft_draws", self.soft_draws != 1, "0, or at least 2, whose spread can be told", self.soft_draws
        shares, different = "shares from 0 to 1", "different shares from 0 to 1"
        for name, words, values in (
            ("kd", shares, self.kd_of_sequences),
            ("bins", different, self.bins),
            ("fidelity_rates", shares, rates),
        ):
            yield name, all(0 <= share <= 1 for share in values), words, values
        yield "bins", len(set(self.bins)) == len(self.bins), different, self.bins
        yield "fidelity_rates", len(set(rates)) == len(rates), "different shares", rates
        has_rates = bool(rates) or not self.fidelity_trials
        yield "fidelity_rates", has_rates, "at least one rate for the trials asked for", rates

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
                    raise _make_conflict(measure.enabled_by, "given rationales rank no tokens")
            if self.target != "predicted":
                raise _make_conflict("target", "given rationales explain no label")
            self = replace(self, bins=())
        for measure in self.measures:
            if self.method == RationaleSource.SCORES and measure.recomputes_scores:
                raise _make_conflict(measure.enabled_by, "given scores cannot be computed anew for other inputs")
        if kind != "perturbation":
            return self
        for name in (*(one.enabled_by for one in self.measures), "random_draws", "fidelity_trials"):
            value = getattr(self, name, None) or self.more.get(name)
            if value and value != find_preset(self.paper).settings.get(name):
                message = "the perturbation benchmark's results have no place for it"
                raise DataError(message, argument=name)
        return replace(self, bins=(), fidelity_trials=0)


def _make_conflict(name: str, words: str) -> DataError:
    return DataError(words, argument=name)


def _find_measure_place(measure: type[Measure]) -> int:
    """Return the place of a measure's first field among a prediction's."""
    return find_field_place(measure.fields[0])


def find_declared_settings() -> dict[str, Setting]:
    """Return the settings of all methods and measures that there is no field for."""
    parts: list[type[DescribedPart]] = [*METHODS.values(), *MEASURES.values()]
    return {name: setting for part in parts for name, setting in part.settings.items()}


def check_names(names: Iterable[str], *declarations: type) -> None:
    """Refuse a name that is no field of these dataclasses, nor a setting that a method or a measure declares.

    Raises:
        DataError: such a name; with the name that is most like it, or all there are.
    """
    options = merge_options(*declarations)
    declared = find_declared_settings() if (unknown := [name for name in names if name not in options]) else {}
    for name in unknown:
        if name not in declared:
            known = [*(field for field, option in options.items() if not option.python_only), *declared]
            raise DataError(describe_choice(name, known), argument=name)


def parse_settings(pairs: Iterable[str]) -> dict[str, Any]:
    """Return settings of methods and measures, from ``NAME=VALUE`` each.

    Raises:
        UsageError: no such pair, or a name that none of them has.
    """
    declared, values = find_declared_settings(), {}
    own = {name: one for name, one in read_options(ExplainSettings).items() if one.settable and not one.commas}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals:
            raise UsageError(f"expected NAME=VALUE, found {pair!r}", argument="more")
        if name not in own.keys() | declared:
            message = describe_choice(name, [*own, *declared])
            raise UsageError(message, argument="more")
        values[name] = own[name].read(text) if name in own else declared[name].parsed(text)
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
    """Refuse an option that no method and no measure of the runs reads.

    Args:
        options: attributes of :class:`ExplainSettings` and of the run's config, and settings of plug-ins, as they are
            given; None and defaults count as not given.
        runs: the settings of each run.

    Raises:
        UsageError: such an option; names the methods and measures that read it.
    """
    options = {**options, **(options.get("more") or {})}
    defaults = {
        name: one.default for name, one in (read_options(ExplainConfig) | read_options(ExplainSettings)).items()
    }
    if not options.keys() <= defaults.keys():
        defaults |= {name: one.default for name, one in find_declared_settings().items()}
    chosen = [name for name, value in options.items() if value not in (None, defaults[name])]
    used = {name for one in runs for part in one.parts for name in (*part.reads, *part.settings)}
    registries = ("method", METHODS), ("measure", MEASURES)
    for name in sorted({*chosen} - used):
        readers = [
            f"`{noun}` {reader}"
            for noun, registry in registries
            for reader, part in registry.items()
            if name in part.reads or name in part.settings
        ]
        if readers and name != "units":  # all methods have them
            message = f"expected {' or '.join(readers)} beside it: no other method or measure reads it"
            raise UsageError(message, argument=name)
    without_ranks = all(one.method == RationaleSource.SPANS for one in runs)
    for name in ("kd", "bins"):
        if name in chosen and without_ranks:
            raise _make_conflict(name, "given rationales rank no tokens")
    for name, reader in BESIDE.items():
        if name in chosen and not any(getattr(one, reader) for one in runs):
            raise UsageError(f"expected `{reader}` beside it, found none", argument=name)


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
        DataError: an unknown paper or option, values out of range.
    """
    chosen = find_preset(paper)
    names = ExplainSettings.__dataclass_fields__
    unknown = [name for name in options if name not in names]
    check_names(unknown, ExplainSettings)
    more = {**(options.pop("more", None) or {}), **{name: options.pop(name) for name in unknown}}
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
