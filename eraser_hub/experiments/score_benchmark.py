"""The benchmark of scores: planted texts, models that decide by them, and true explanations against worse ones.

``auc`` is the share of texts for which a score ranks the true explanation first; a tie counts half. A score that is
always right has 1, a coin 0.5, a score that is always wrong 0. Intervals are those of new texts and new models: each
model of a kind and family judges the same texts, and :mod:`eraser_hub.scoring.uncertainty` takes both as random and
crossed; kinds of planting are fixed. The verdict is "better" if the interval lies above 0.5, "worse" if it lies below,
else "tie".
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import orjson

from eraser_hub.attribution.run import compute_model_digest
from eraser_hub.attribution.work import open_ray
from eraser_hub.records.atomic import atomic_write
from eraser_hub.records.errors import DataError
from eraser_hub.records.extras import need
from eraser_hub.systems.train_config import Say
from eraser_hub.version import __version__

from .configs import CLOSED, ENCODER, ENCODER_KINDS, NETWORKS, BenchmarkConfig
from .folder import lock_run_folder
from .planted_models import LEARNED, make_judge
from .plantings import KINDS, make_planted_texts, read_sentences
from .score_judgement import BUDGETS, DRAWN, TIES, compare_explanations, judge_methods, make_settings
from .score_summary import summarise

MODELS = {CLOSED: (CLOSED,), "trained": NETWORKS, "all": (CLOSED, *NETWORKS)}
UNITS = "units"
SHAPLEY_DRAWS, STEPS = 3, 20  # of the methods shapley and integrated-gradients
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class BenchmarkSettings:
    """The sizes of the benchmark.

    Attributes:
        families: Families of models that judge: closed-form, recurrent, transformer.
        kinds: Kinds of planting, some of :data:`plantings.KINDS`.
        networks: Models of each kind and family.
        size: Texts of each kind on which explanations are compared.
        method_texts: The first of them, on which attribution methods are judged; 0: no methods.
        train_texts: Training texts of each network.
        beam: See `explain`.
        soft_draws: See `explain`.
        perturbations: Perturbed inputs of infidelity.
        sensitivity: Perturbed inputs of the largest sensitivity of methods.
        samples: Samples of LIME and Kernel SHAP.
        curves: Compare explanations by each of :data:`BUDGETS` too, by the first model in closed form.
        texts: Folder of real corpora for plantings in real text; "": the samples.
        seed: Seed of all random draws.
        confidence_level: Confidence level of the intervals.
        encoder: Pretrained encoder that judges beside the families, a transformers folder or Hub id; "": none.
        encoder_kinds: Kinds of planting that it learns.
        encoder_networks: Fine-tuned encoders of each of these kinds.
    """

    families: tuple[str, ...] = (CLOSED,)
    kinds: tuple[str, ...] = tuple(KINDS)
    networks: int = 10
    size: int = 40
    method_texts: int = 12
    train_texts: int = 1000
    beam: int = 2
    soft_draws: int = 50
    perturbations: int = 20
    sensitivity: int = 3
    samples: int = 200
    curves: bool = True
    texts: str = ""
    seed: int = 1
    confidence_level: float = 0.95
    encoder: str = ""
    encoder_kinds: tuple[str, ...] = ENCODER_KINDS
    encoder_networks: int = 3

    @property
    def places(self) -> list[tuple[str, str, int]]:
        """Kind, family and number of each model."""
        places = [(k, f, n) for k in self.kinds for f in self.families for n in range(self.networks)]
        if self.encoder:
            # an encoder takes long: a stopped run has all of its plantings
            places += [(k, ENCODER, n) for n in range(self.encoder_networks) for k in self.encoder_kinds]
        return places

    def to_record(self) -> dict[str, Any]:
        """Return what the models of :attr:`families` depend on: an encoder may judge beside them later."""
        alone = replace(self, encoder="")
        values = {name: value for name, value in asdict(alone).items() if not name.startswith(ENCODER)}
        return {"signature": alone.signature(), **values}

    def signature(self) -> str:
        """Return every setting in one line."""
        sizes = f"models:{self.networks}|texts:{self.size}|methods:{self.method_texts},{self.samples}"
        sizes += f"|train:{self.train_texts}"
        learns = ",".join((*self.encoder_kinds, str(self.encoder_networks)))
        encoder = f"|encoder:{_describe_encoder(self.encoder)},{learns}" if self.encoder else ""
        draws = f"beam:{self.beam}|soft:{self.soft_draws}|perturbations:{self.perturbations},{self.sensitivity}"
        return (
            f"benchmark-scores|families:{','.join(self.families)}|kinds:{','.join(self.kinds)}|{sizes}|erase:mask|{draws}"
            f"|real-text:{_describe_texts(self.texts)}|seed:{self.seed}|ci:{self.confidence_level:g},texts x models"
            f"{encoder}|eraser-hub:{__version__}"
        )


FAST = BenchmarkSettings(
    networks=3,
    size=16,
    method_texts=3,
    train_texts=800,
    beam=1,
    soft_draws=20,
    perturbations=20,
    sensitivity=2,
    samples=60,
)


def make_benchmark_settings(options: BenchmarkConfig) -> BenchmarkSettings:
    """Return the sizes that the options ask for."""
    settings = FAST if options.fast else BenchmarkSettings()
    texts, networks = "" if options.texts is None else str(options.texts), options.networks or settings.networks
    chosen: Row = {"families": MODELS[options.models], "kinds": options.kinds or settings.kinds, "seed": options.seed}
    if options.encoder:
        chosen |= {"encoder": options.encoder, "encoder_kinds": options.encoder_kinds}
        chosen["encoder_networks"] = options.networks or settings.encoder_networks
    return replace(settings, texts=texts, networks=networks, **chosen)


def benchmark(
    settings: BenchmarkSettings, say: Say = lambda line: None, out: Path | None = None, workers: int = 0
) -> Row:
    """Judge every score and every attribution method.

    Args:
        settings: The sizes.
        say: Receives a line for each model.
        out: Folder of the models' judgements; a stopped run resumes there. None: they are not kept.
        workers: Workers of a Ray cluster; 0: this process alone.

    Returns:
        See :func:`score_summary.summarise`; and ``signature``.

    Raises:
        DataError: Packages are missing; unknown plantings; texts or an encoder that cannot be read or used; no model
            has learned its rule; the folder holds another run.
    """
    if settings.encoder or any(family in NETWORKS for family in settings.families):
        need("torch", "transformers")
    _check_inputs(settings)
    with TemporaryDirectory() as temporary:
        folder = Path(temporary) if out is None else out
        with nullcontext() if out is None else lock_run_folder(folder, "benchmark-scores", settings.to_record()):
            (folder / UNITS).mkdir(exist_ok=True)
            units = list(_judge_all(settings, folder / UNITS, say, workers))
    families = (*settings.families, ENCODER) if settings.encoder else settings.families
    result = summarise(families, settings.kinds, units, settings.confidence_level)
    return {**result, "signature": settings.signature()}


def _check_inputs(settings: BenchmarkSettings) -> None:
    """Refuse plantings, texts and encoders that do not go together, before the work.

    Raises:
        DataError: As of :func:`benchmark`.
    """
    _check_kinds("kinds", settings.kinds, tuple(KINDS))
    if settings.texts:
        read_sentences(Path(settings.texts))
        if not any(KINDS[kind].real for kind in settings.kinds):
            message = "expected a planting into real sentences, found none that reads these texts"
            raise DataError(message, rule="option-conflict", argument="texts")
    if settings.encoder:
        from .planted_encoders import check_encoder

        _check_kinds("encoder_kinds", settings.encoder_kinds, settings.kinds)
        check_encoder(settings.encoder, settings.encoder_kinds)


def _check_kinds(argument: str, chosen: Sequence[str], known: Sequence[str]) -> None:
    lost = [kind for kind in chosen if kind not in known] or ([] if chosen else ["none"])
    if lost or len(set(chosen)) < len(chosen):
        message = f"expected some of {', '.join(known)}, each once; found {', '.join(lost or chosen)}"
        raise DataError(message, rule="option-value", argument=argument)


def _judge_all(settings: BenchmarkSettings, folder: Path, say: Say, workers: int) -> Iterator[Row]:
    """Yield the judgement of each model, in order; those in the folder are not made again."""
    places = settings.places
    paths = [folder / f"{kind}-{family}-{number:02}.json" for kind, family, number in places]
    base = _describe_encoder(settings.encoder)
    for (_, family, _), path in zip(places, paths, strict=True):
        if family == ENCODER and path.is_file() and (found := orjson.loads(path.read_bytes())["encoder"]) != base:
            message = f"expected a unit of the encoder {base}, found one of {found}; choose another folder"
            raise DataError(message, rule="resume", file=path, argument="encoder")
    todo = [(place, path) for place, path in zip(places, paths, strict=True) if not path.is_file()]
    if len(todo) < len(places):
        say(f"{len(places) - len(todo)} of {len(places)} models judged before")
    here = ((item, judge_unit(settings, *item[0])) for item in todo)
    for number, ((_, path), unit) in enumerate(_run_on_ray(settings, todo, workers) if workers else here, 1):
        atomic_write(path, orjson.dumps(unit))
        say(f"{number} of {len(todo)}: {describe_unit(unit)}")
    for path in paths:
        yield orjson.loads(path.read_bytes())


Todo = Sequence[tuple[tuple[str, str, int], Path]]


def _run_on_ray(settings: BenchmarkSettings, todo: Todo, workers: int) -> Iterator[tuple[tuple[Any, Path], Row]]:
    waiting, pending = list(reversed(todo)), dict[Any, tuple[tuple[str, str, int], Path]]()
    with open_ray(num_cpus=workers) as ray:
        remote = ray.remote(num_cpus=1)(judge_unit)
        while waiting or pending:
            while waiting and len(pending) < workers:
                item = waiting.pop()
                pending[remote.remote(settings, *item[0])] = item
            (done,), _ = ray.wait(list(pending), num_returns=1)
            yield pending.pop(done), ray.get(done)


def judge_unit(settings: BenchmarkSettings, kind: str, family: str, number: int) -> Row:
    """Make one model, and let it judge scores and methods.

    Returns:
        Its facts; ``wins``: score -> worse explanation -> a value for each text; ``methods``: method -> score -> mean;
        ``curves``: draws -> score -> worse explanation -> mean; ``higher``: score -> whether higher is better.
    """
    sentences = read_sentences(Path(settings.texts)) if settings.texts else ()
    with nullcontext() if family == CLOSED else _use_one_thread():
        judge = make_judge(kind, family, number, settings.seed, settings.train_texts, sentences, settings.encoder)
        unit: Row = {"kind": kind, "family": family, "number": number, "erased_inputs": judge.erased_inputs}
        unit |= {"accuracy": judge.accuracy, "masked_accuracy": judge.masked_accuracy, "digest": judge.digest}
        unit |= {"encoder": _describe_encoder(settings.encoder)} if family == ENCODER else {}
        if not judge.judges:
            return {**unit, "judges": False}
        texts = make_planted_texts(kind, "test", settings.size, settings.seed, sentences)
        explain = make_settings(settings.seed, settings.soft_draws, settings.perturbations, beam=settings.beam)
        wins, higher = compare_explanations(judge.adapter, texts, explain, TIES[family])
        curves: Row = {}
        for draws in BUDGETS if settings.curves and (family, number) == (CLOSED, 0) else ():
            drawn = make_settings(settings.seed, draws, draws)
            own, _ = compare_explanations(judge.adapter, texts, drawn, TIES[family])
            curves[str(draws)] = {score: {name: _mean(x) for name, x in own[score].items()} for score in DRAWN}
        methods: Row = {}
        if settings.method_texts:
            samples: Row = {"lime_samples": settings.samples, "shap_samples": settings.samples}
            samples |= {"shapley_draws": SHAPLEY_DRAWS, "steps": STEPS}
            for_methods = replace(explain, sensitivity_draws=settings.sensitivity, **samples)
            methods, more = judge_methods(judge.adapter, texts[: settings.method_texts], for_methods)
            higher |= more
    return {**unit, "judges": True, "wins": wins, "higher": higher, "methods": methods, "curves": curves}


@contextmanager
def _use_one_thread() -> Iterator[None]:
    """Run PyTorch in one thread: the same numbers everywhere, and units side by side."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _describe_texts(folder: str) -> str:
    """Return the name of a folder of texts and the digest of its sentences."""
    if not folder:
        return "samples"
    digest = hashlib.sha256(orjson.dumps(read_sentences(Path(folder)))).hexdigest()
    return f"{Path(folder).name}@{digest[:12]}"


def _describe_encoder(encoder: str) -> str:
    """Return the name and the digest of a pretrained encoder's folder, or its Hub id."""
    digest = compute_model_digest(encoder) if encoder else ""
    return encoder if digest == encoder else f"{Path(encoder).name}@{digest[:12]}"


def _mean(values: Sequence[float]) -> float | None:
    numbers = np.array(values, dtype=np.float64)
    return None if np.isnan(numbers).all() else float(np.nanmean(numbers))


def describe_unit(unit: Mapping[str, Any]) -> str:
    """Describe a model in a sentence."""
    words = f"{unit['kind']}, {unit['family']} {unit['number']}: {unit['accuracy']:.1%} of new texts right"
    return words if unit["judges"] else f"{words}, less than {LEARNED:.0%}: it does not judge"
