"""Train a model by its settings, save it, and report its figures."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from eraser_hub.attribution.dataset import Split, has_different_queries, open_split
from eraser_hub.attribution.models.labels import align_labels
from eraser_hub.attribution.models.opening import CHECKPOINT_DIR, is_path_like, open_model, refuse_credentials
from eraser_hub.attribution.settings import find_preset
from eraser_hub.metrics.errors import check_choice, check_number, find_similar
from eraser_hub.metrics.sets import answer_f1
from eraser_hub.records.errors import DataError, UsageError, describe_choice, show
from eraser_hub.records.extras import need
from eraser_hub.records.files import atomic_write, to_json_bytes
from eraser_hub.records.places import dataset_split
from eraser_hub.records.predictions import SEED
from eraser_hub.records.registry import make_settings, parse_call

from .data import Data, Labelled, Training, has_answers, has_labels, keep_answerable, read_answers, read_examples
from .evaluation import evaluate
from .folder import check_folder, lock_run_folder, save_model, working_folder
from .system import BASELINES, FACTS, SYSTEMS, System, train_into

MAX_SEED = 2**32 - 1  # scikit-learn's and numpy's
VALIDATION = "validation"
# the text of the training and of the evaluation -> Carton et al. (2020), Table 3
REGIMES = {
    ("full", "full"): "no-rationale",
    ("full", "rationale"): "eval-rationale",
    ("rationale", "rationale"): "train-eval-rationale",
}
log = logging.getLogger("eraser_hub")


@dataclass(frozen=True, kw_only=True)
class TrainSettings:
    """The arguments of ``train`` that decide a model.

    Raises:
        DataError: a value out of range.
    """

    dataset: str
    model: str
    config: str | None = None
    split: str = "train"
    eval_split: str | None = None
    train_on: str = "full"
    regimes: bool = False
    paper: str = ""
    seed: int = 1
    limit: int | None = None

    def __post_init__(self) -> None:
        check_choice(self.train_on, ("full", "rationale"), "train_on")
        check_number(self.seed, "seed", 0, MAX_SEED)
        if self.limit is not None:
            check_number(self.limit, "limit", 1)
        find_preset(self.paper)  # it refuses an unknown one


def train_seeds(settings: TrainSettings, out: Path, seeds: int) -> Iterator[str]:
    """Yield the lines of trainings by several seeds, from that of the settings on, each in ``out/seed-S``."""
    check_number(settings.seed + seeds - 1, "seeds", 0, MAX_SEED)
    with lock_run_folder(out, "train", {name: value for name, value in asdict(settings).items() if name != "seed"}):
        for seed in range(settings.seed, settings.seed + seeds):
            yield from train_once(replace(settings, seed=seed), out / f"{SEED}{seed}")


def train_once(settings: TrainSettings, out: Path) -> Iterator[str]:
    """Yield the lines of a training; one that was stopped in ``out`` goes on, and a finished one is kept."""
    stopped = (out / CHECKPOINT_DIR).is_dir()
    if (out / FACTS).is_file() and not stopped:
        log.info(f"{out}: trained before")
    else:
        yield from train_model(settings, out, stopped)


def train_model(settings: TrainSettings, out: Path, resume: bool = False) -> Iterator[str]:
    """Train a model, save it into ``out``, and yield a line on it, and one of figures per regime.

    Args:
        settings: what to train; with ``regimes``, a second model is trained beside the first one.
        out: the folder of the model; a model in it is replaced.
        resume: go on with a stopped training.

    Raises:
        DataError: an unknown model or split, no labels, missing rationales, a value out of range.
    """
    name, systems = read_systems(settings.model)
    for system in systems.values():
        system.check(settings.paper)
    first = next(iter(systems.values()))
    check_folder(out, settings.dataset, name, *(str(getattr(first, file)) for file in first.files))
    split = open_split(settings.dataset, settings.config, settings.split)
    answers = check_answers(name, first, settings, split)
    evaluated, reason = open_evaluation_split(settings)
    with working_folder(out, asdict(settings), resume) as work:
        data = (read_answer_data if answers else read_data)(settings, systems, split, evaluated)
        trained, facts = train_trials(name, systems, settings, split, data, work)
        save_model(trained, out)
        task = "to answer the questions" if answers else f"on the {settings.train_on} text"
        yield f"{out}: {name} trained {task} of {settings.split}"
        if evaluated is None:
            if reason:
                log.info(f"not evaluated: {reason}; `eval_split` names another split")
        elif answers:
            model, gold = open_model(out), zip(*read_answers(evaluated, settings.limit, settings.seed), strict=True)
            scores = [answer_f1(model.answer(model.read(model.see(one)))[0], answer) for one, answer in gold]
            yield f"answers: F1 {float(np.mean(scores)):.3f} ({len(scores)} instances)"
        else:
            yield from describe_figures(settings, out, evaluated, facts)
            if settings.regimes:
                other = replace(settings, train_on="rationale" if settings.train_on == "full" else "full")
                data = read_data(other, systems, split, evaluated)
                (second := work / "regime").mkdir(exist_ok=True)
                trained, facts = train_trials(name, systems, other, split, data, second)
                yield from describe_figures(other, trained, evaluated, facts)


def check_answers(name: str, system: System, settings: TrainSettings, split: Split) -> bool:
    """Return True if the model learns to answer with words of the text, by its settings or by the data.

    Raises:
        DataError: there are no answers, or it is to learn from partial texts or without the questions.
    """
    learns = system.learns_answers()
    if learns is False or not (has_answers(split) or learns):
        return False
    if not has_answers(split):
        message = f"{name}, task question-answering: expected questions with answers, found none"
        raise DataError(message, file=split.name, field="answer")
    partly = {"train_on": settings.train_on != "full", "regimes": settings.regimes, "model": system.query is False}
    for argument in (name for name, other in partly.items() if other):
        message = "answers are learned from whole texts and their questions; task=classification learns whether there "
        raise DataError(f"{message}is one", argument=argument)
    return True


def open_evaluation_split(settings: TrainSettings) -> tuple[Split | None, str]:
    """Return the split to evaluate on, ``eval_split`` or validation, or None and why there is none.

    Raises:
        DataError: ``eval_split`` does not exist or has no labels: seen before the training, which may take hours.
    """
    if settings.eval_split == "" or (settings.eval_split is None and dataset_split(settings.split) == VALIDATION):
        return None, "" if settings.eval_split == "" else f"{settings.split} is trained on"
    try:
        split = open_split(settings.dataset, settings.config, settings.eval_split or VALIDATION)
        if not has_labels(split) and not has_answers(split):
            message = f"{split.split}: expected labelled instances, found none"
            raise DataError(message, file=split.name, argument="eval_split")
    except DataError as error:
        if settings.eval_split:
            error.argument = "eval_split" if error.argument == "split" else error.argument
            raise
        return None, error.message
    return split, ""


def read_data(settings: TrainSettings, systems: Mapping[str, System], split: Split, evaluated: Split | None) -> Data:
    """Return the instances to train on, and those to validate on if the training needs any.

    Raises:
        DataError: fewer than two labels, or missing rationales.
    """
    system = next(iter(systems.values()))
    query = has_different_queries(split) if system.query is None else system.query
    options: dict[str, Any] = {"rationale_only": settings.train_on == "rationale", "uses_query": query}
    options |= {"limit": settings.limit, "seed": settings.seed}
    instances, labels = read_examples(split, **options)
    counts = Counter(labels)
    if len(counts) < 2:
        raise DataError(f"expected at least two labels, found {', '.join(counts)}", file=split.name)
    names = list(split.label_names) or sorted(counts)
    if missing := [name for name in names if name not in counts]:
        listed = f"{', '.join(missing)} ({len(missing)} of {len(names)})"
        log.info(f"labels that no instance of {settings.split} has, and the model does not learn: {listed}")
    if settings.limit is not None:
        shares = ", ".join(f"{number} {label}" for label, number in sorted(counts.items()))
        drawn = f"{len(labels)} labelled instances, drawn by seed {settings.seed} with each label's share"
        log.info(f"`limit`: {drawn}: {shares}")
    validation: Labelled = ([], [])
    if evaluated is not None and (system.validates or settings.paper == "carton2020" or len(systems) > 1):
        validation = read_examples(evaluated, **options)
    return Data((instances, labels), validation, names, query, by_name=split.kind == "eraser")


def read_answer_data(
    settings: TrainSettings, systems: Mapping[str, System], split: Split, evaluated: Split | None
) -> Data:
    """Return the questions to train on and to validate on.

    Raises:
        DataError: no answer occurs in its text.
    """
    parts: list[Labelled] = [([], []), ([], [])]
    for number, one in enumerate((split, evaluated)):
        if one is not None:
            parts[number] = keep_answerable(read_answers(one, settings.limit, settings.seed), str(one.split))
    return Data(parts[0], parts[1], (), True, answers=True, by_name=False)


def train_trials(
    name: str, systems: Mapping[str, System], settings: TrainSettings, split: Split, data: Data, work: Path
) -> tuple[Path, dict[str, Any]]:
    """Train a system for every combination of its settings' values, one after another; return the best and its facts.

    The best is so on the validation split; of equal ones the first wins. Finished ones are not trained again.

    Raises:
        DataError: several values and no validation split to choose by.
    """
    if len(systems) > 1 and not data.validation[0]:
        message = "several values: expected a validation split with labels to choose by; `eval_split` names one"
        raise DataError(message, argument="model")
    best: tuple[list[float], Path, dict[str, Any]] | None = None
    rows, chosen = list[dict[str, Any]](), ""
    for number, (tried, system) in enumerate(systems.items(), 1):
        if tried:
            log.info(f"search: {number} of {len(systems)}: {tried}")
        facts: dict[str, Any] = {
            "system": name if name in SYSTEMS else "fine-tuning",
            "settings": system.record(),
            "dataset": Path(settings.dataset).name,
            "config": split.config,
            "split": settings.split,
            "train_on": settings.train_on,
            "uses_query": data.uses_query,
            "instances": len(data.train[0]),
            "label_names": list(data.label_names),
            **({"paper": settings.paper} if settings.paper else {}),
        }
        folder = work / str(number)
        facts = train_into(Training(data, folder, settings.seed, settings.paper, facts), system.fit)
        if not tried:
            return folder, facts
        figures, monitor = facts.get("validation"), getattr(system, "monitor", "accuracy")
        if figures is None:  # a pipeline is judged as it is used, by its own selections
            model, monitor = open_model(folder, precision="float32"), "accuracy"
            align_labels(model, data.label_names)
            figures = evaluate(model, *data.validation)
        score = [-figures["loss"] if monitor == "loss" else figures[monitor], -figures["loss"]]
        log.info(f"search: {tried}: validation {', '.join(f'{key} {value:.4f}' for key, value in figures.items())}")
        rows.append({"settings": tried, **figures, "epochs": facts.get("epochs", [])})
        if best is None or score > best[0]:
            best, chosen = (score, folder, facts), f"{tried} is the best by {monitor}: {figures[monitor]:.4f}"
    assert best is not None
    log.info(f"search: {chosen}")
    facts = {**best[2], "grid": rows}
    atomic_write(best[1] / FACTS, to_json_bytes(facts))
    return best[1], facts


def describe_figures(settings: TrainSettings, place: Path, split: Split, facts: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line of accuracy and macro F1 per regime.

    Args:
        settings: of the training.
        place: of the model.
        split: the split to evaluate on.
        facts: the model's, with the figures that the training computed.
    """
    model = open_model(place, trust_remote_code=bool(facts["settings"].get("trust_remote_code")))
    align_labels(model, split.label_names)
    instances, labels = read_examples(split, uses_query=model.uses_query, limit=settings.limit, seed=settings.seed)
    marked = [one.has_rationale for one in instances if one.rationale is not None]
    for seen in ("full", "rationale"):
        name = REGIMES.get((settings.train_on, seen))
        if name is None or (seen == "rationale" and not marked):
            continue
        if seen == "rationale" and not all(marked):
            count = f"{sum(marked)} of {len(marked)} instances of {split.split} are marked"
            if not any(marked):
                log.info(f"{name}: left out, for {count}")
                continue
            log.info(f"{name}: {count}; of the others nothing remains")
        shown = [one.rationale_only() for one in instances] if seen == "rationale" else instances
        known = facts.get("validation") if seen == settings.train_on else None
        figures = known or evaluate(model, shown, labels)
        sampled = "" if settings.limit is None else f"at most {settings.limit} by `limit`: "
        text = "rationales alone" if seen == "rationale" else "full text"
        accuracy = f"accuracy {figures['accuracy']:.3f}, macro F1 {figures['macro_f1']:.3f}"
        yield f"{name}: {accuracy} ({sampled}{len(labels)} instances, {text})"


def read_systems(text: str) -> tuple[str, dict[str, System]]:
    """Return the name of a system, and a system for every combination of its settings' values.

    Args:
        text: ``NAME(SETTING=VALUE, ..)``; of a list each value is tried. Other names are those of transformers models.

    Returns:
        The name; and what is tried, ``hidden_size=100, clip=5``, to the system (the last setting changes fastest): ""
        where nothing is.

    Raises:
        DataError: a misspelt system, a setting that it does not have, or a value that it cannot have.
    """
    if not Path(text).is_dir():
        refuse_credentials(text)
    name, given = (text, {}) if Path(text).is_dir() else parse_call(text, "model")
    lists = {key: values for key, values in given.items() if isinstance(values, list)}
    for key, values in lists.items():
        if not values or any(values.count(value) > 1 for value in values):
            raise DataError(f"{key}: expected several values, each once, found {show(values)}", argument="model")
    systems = {}
    for trial in product(*lists.values()):
        tried = dict(zip(lists, trial, strict=True))
        systems[", ".join(f"{key}={value}" for key, value in tried.items())] = make_system(name, {**given, **tried})
    return name, systems


def make_system(name: str, given: Mapping[str, Any]) -> System:
    """Return the system of that name with these settings; errors as of `read_systems`."""
    if name not in SYSTEMS and find_similar(name, SYSTEMS) and not Path(name).is_dir():
        raise DataError(describe_choice(name, SYSTEMS), argument="model")
    need("sklearn", "skops", *(() if name in BASELINES else ("torch", "transformers", "safetensors")))
    if name in SYSTEMS:
        return SYSTEMS.build(name, {**SYSTEMS[name].defaults(given), **given}, "model")
    from .finetuning import FineTuning

    if is_path_like(name) and not Path(name).is_dir():
        message = f"expected {', '.join(SYSTEMS)}, or a transformers folder or Hub id"
        raise UsageError(message, argument="model", file=name)
    return make_settings(FineTuning, {**given, "base": name}, name, "model")
