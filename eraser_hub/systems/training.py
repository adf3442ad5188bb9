"""Train a model by its settings, save it and report its figures."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from eraser_hub.attribution.dataset import Split, draw_stratified, has_different_queries, open_split
from eraser_hub.attribution.instances import Instance, read_perturbation_row
from eraser_hub.attribution.open import CHECKPOINT_DIR, open_model
from eraser_hub.attribution.settings import find_preset
from eraser_hub.metrics.sets import answer_f1
from eraser_hub.records.errors import DataError, show
from eraser_hub.records.extras import need
from eraser_hub.records.places import dataset_split
from eraser_hub.records.predictions import find_inputs

from .data import (
    Data,
    Labelled,
    Training,
    find_answer_span,
    has_labels,
    read_examples,
    say_nothing,
)
from .evaluation import Evaluation, evaluate_on
from .folder import checkpoint_dir
from .folds import cluster_texts
from .system import Baseline, TrainedSystem, find_system, list_answering_systems
from .train_config import ANSWERS, Say, TrainConfig

# Carton et al. (2020), Table 3
REGIMES = {
    ("full", "full"): "no-rationale",
    ("full", "rationale"): "eval-rationale",
    ("rationale", "rationale"): "train-eval-rationale",
}


def is_answering(config: TrainConfig, system: TrainedSystem, data: Split) -> bool:
    """Return True if the model learns to answer with words of the text, by the config or by the data.

    Raises:
        DataError: The system does not learn to answer, or there are no answers, partial texts or no questions.
    """
    able = ANSWERS in system.tasks
    if config.task != ANSWERS and not (config.task == "auto" and able and has_answers(data)):
        return False
    if not able:
        words = f"{', '.join(list_answering_systems())} alone learns to answer, not {show(config.model)}"
        raise DataError(f"task {ANSWERS}: {words}", argument="model")
    if not has_answers(data):
        words = f"task {ANSWERS}: expected questions with answers, found none"
        raise DataError(words, file=data.name, field="answer")
    partly = {"train_on": config.train_on != "full", "regimes": config.regimes, "query": config.query is False}
    for argument in (name for name, other in partly.items() if other):
        words = "answers are learned from whole texts and their questions; task=classification learns"
        raise DataError(f"{words} whether there is one", argument="model" if argument == "query" else argument)
    return True


def _read_answer_data(config: TrainConfig, split: Split, evaluated: Split | None, say: Say) -> Data:
    """Return the questions to train on and to validate on.

    Raises:
        DataError: No answer occurs in its text.
    """
    train = keep_answerable(read_answers(split, config.limit, config.seed), config.split, say)
    validation: Labelled = ([], [])
    if evaluated is not None:
        validation = keep_answerable(read_answers(evaluated, config.limit, config.seed), str(evaluated.rows.split), say)
    return Data(train, validation, (), True, answers=True)


def has_answers(split: Split) -> bool:
    """Return True if any row of the split asks a question with a known answer, a text or "" for none."""
    return split.kind == "perturbation" and any(answer is not None for _, answer in split.read(_read_answer))


def _read_answer(row: Mapping[str, Any], label_names: Sequence[str]) -> tuple[Instance, str | None]:
    one, answer = read_perturbation_row(row, label_names), row.get("answer")
    if answer is not None and not isinstance(answer, str):
        raise DataError(f"expected a string, found {show(answer)}", instance=one.id, field="answer")
    return one, answer


def read_answers(split: Split, limit: int | None = None, seed: int = 1) -> Labelled:
    """Return the instances of a split with known answers, and the answers; "" if the text holds none.

    Args:
        split: The split.
        limit: Number of instances, stratified by questions with and without answer; None for all.
        seed: Seed of that draw.

    Raises:
        DataError: No answers at all, or an answer that is not a string.
    """
    rows = [(one, answer) for one, answer in split.read(_read_answer) if answer is not None]
    if not rows:
        words = "expected questions with answers, found none"
        raise DataError(words, file=split.name, field="answer")
    if limit is not None:
        chosen = draw_stratified([str(bool(answer)) for _, answer in rows], limit, seed)
        rows = [row for place, row in enumerate(rows) if place in chosen]
    return [one for one, _ in rows], [answer for _, answer in rows]


def keep_answerable(part: Labelled, name: str, say: Say) -> Labelled:
    """Return the instances whose answers occur in their texts, and report the number of others.

    Raises:
        DataError: No answer occurs in its text.
    """
    pairs = [pair for pair in zip(*part, strict=True) if find_answer_span(pair[0].tokens, pair[1]) is not None]
    if not pairs:
        words = f"{name}: expected answers that occur in their texts, found none in {len(part[0])} instances"
        raise DataError(words)
    if len(pairs) < len(part[0]):
        count = f"{len(part[0]) - len(pairs)} of {len(part[0])} answers"
        say(f"{name}: {count} do not occur in their texts and are left out")
    return [one for one, _ in pairs], [answer for _, answer in pairs]


def train_model(config: TrainConfig, out: Path, say: Say = say_nothing, figures: bool = True) -> Iterator[str]:
    """Train a model, save it into ``out``, and yield a line of figures per regime.

    Args:
        config: The settings; with ``regimes``, a second model is trained beside the first one, for the three regimes of
            Carton et al. (2020).
        out: The folder of the model; a model in it is replaced.
        say: Receives lines of progress.
        figures: Evaluate the model; if False, the evaluation split serves validation alone.

    Raises:
        DataError: Unknown model or split, no labels, missing rationales, or a seed out of range.
    """
    need("sklearn", "skops")
    _check_folder(config, out)
    data = open_split(config.dataset, config.config, config.split)
    system = find_system(config.model)
    check_config(config, system)
    answers = is_answering(config, system, data)
    evaluated = open_evaluation_split(config)
    identity, learns = config.identity(), _read_answer_data if answers else partial(_read_data, system)

    def train_once(config: TrainConfig, out: Path, folder: Path) -> Evaluation | None:
        """Train one model; return the figures of the validation split if the training computes them."""
        inputs = learns(config, data, evaluated, say)
        facts = _make_facts(config, data, inputs)
        return system.fit(Training(config, inputs, out, folder, say, facts))

    with checkpoint_dir(out, {**identity, "train_on": config.train_on}, config.resume, say) as folder:
        known = train_once(config, out, folder)
        task_text = "to answer the questions" if answers else f"on the {config.train_on} text"
        yield f"{out}: {config.model} trained {task_text} of {config.split}"
        if evaluated is None and config.eval_split is None:
            say("not evaluated: no other split with labels; `eval_split` names one")
        if evaluated is not None and answers:
            model, gold = open_model(out), zip(*read_answers(evaluated, config.limit, config.seed), strict=True)
            scores = [answer_f1(model.answer_text(model.encode(one))[0], answer) for one, answer in gold]
            yield f"answers: F1 {float(np.mean(scores)):.3f} ({len(scores)} instances)"
        elif evaluated is not None and figures:
            instances, _ = read_examples(evaluated, limit=config.limit, seed=config.seed)
            marked = [one.has_rationale for one in instances if one.rationale is not None]
            yield from _describe_figures(config, out, evaluated, marked, known, say)
            if config.regimes:
                other = replace(config, train_on="rationale" if config.train_on == "full" else "full")
                second = folder / "regime"
                with checkpoint_dir(second, {**identity, "train_on": other.train_on}, config.resume, say) as inner:
                    known = train_once(other, second, inner)
                    yield from _describe_figures(other, second, evaluated, marked, known, say)


def _make_facts(config: TrainConfig, split: Split, data: Data) -> dict[str, Any]:
    """Return what ``model.json`` says about the data of a training."""
    return {
        "dataset": Path(config.dataset).name,
        "config": split.config,
        "split": config.split,
        "train_on": config.train_on,
        "uses_query": data.uses_query,
        "instances": len(data.train[0]),
        "label_names": list(data.label_names),
        **({"task": ANSWERS} if data.answers else {}),
        **({"paper": config.paper} if config.paper else {}),
    }


def _check_folder(config: TrainConfig, out: Path) -> None:
    if out.exists() and not out.is_dir():
        raise DataError("expected a folder, found a file", file=out, argument="out")
    inputs = find_inputs(config.dataset, config.model, config.encoder, config.tokenizer, config.embeddings)
    if out.is_dir() and any(os.path.samefile(out, place) for place in inputs):
        words = "expected another folder than an input of this run"
        raise DataError(words, file=out, argument="out")
    others = [path.name for path in out.iterdir() if path.name[0] != "."] if out.is_dir() else []
    if others and not (out / "model.json").is_file() and not (out / CHECKPOINT_DIR).is_dir():
        words = f"expected a new folder, or a model's of `train`, found {show(sorted(others)[0])} and no model.json"
        raise DataError(words, file=out, argument="out")


def check_config(config: TrainConfig, system: TrainedSystem) -> None:
    """Refuse, before any data are read, an unknown preset and options that the system does not use.

    Raises:
        DataError: An unknown preset, or an option that the system does not use.
    """
    find_preset(config.paper)  # it refuses an unknown one
    system.check(config)


def open_evaluation_split(config: TrainConfig) -> Split | None:
    """Return the split to evaluate on: ``eval_split``, or validation if it has labels and was not trained on.

    Raises:
        DataError: ``eval_split`` does not exist or has no labels.
    """
    if config.eval_split == "":
        return None
    if config.eval_split:
        split = open_split(config.dataset, config.config, config.eval_split)
        # looked for before the training, which may take hours
        if not has_labels(split):
            words = f"`eval_split` {config.eval_split}: expected labelled instances, found none"
            raise DataError(words, file=split.name)
        return split
    if dataset_split(config.split) == "validation":
        return None
    try:
        split = open_split(config.dataset, config.config, "validation")
    except DataError:
        return None
    return split if has_labels(split) else None


def _describe_figures(
    config: TrainConfig, model: Path, split: Split, marks: Sequence[bool], known: Evaluation | None, say: Say
) -> Iterator[str]:
    """Yield a line per regime.

    Args:
        config: The settings.
        model: The folder of the model.
        split: The split to evaluate on.
        marks: Whether each evaluated instance with a known rationale has a marked token.
        known: Figures that the training already computed.
        say: Receives lines of progress.
    """
    adapter = open_model(model, trust_remote_code=config.trust_remote_code)
    options: dict[str, Any] = {"limit": config.limit, "seed": config.seed, "say": say}
    for seen in ("full", "rationale"):
        name = REGIMES.get((config.train_on, seen))
        if name is None or (seen == "rationale" and not marks):
            continue
        if seen == "rationale" and not all(marks):
            marked = f"{sum(marks)} of {len(marks)} instances of {split.rows.split} are marked"
            if not any(marks):
                say(f"{name}: left out, for {marked}")
                continue
            say(f"{name}: {marked}; of the others nothing remains")
        rationale_only = seen == "rationale"
        figures = known if rationale_only == (config.train_on == "rationale") else None
        figures = figures or evaluate_on(adapter, split, rationale_only=rationale_only, **options)
        sampled = "" if config.limit is None else f"at most {config.limit} by `limit`: "
        text = "rationales alone" if rationale_only else "full text"
        yield f"{name}: {figures.describe()} ({sampled}{figures.instances} instances, {text})"


def _read_data(system: TrainedSystem, config: TrainConfig, split: Split, evaluated: Split | None, say: Say) -> Data:
    """Return the instances to train on, and those to validate on if the system validates."""
    query = has_different_queries(split) if config.query is None else config.query
    rationale_only = config.train_on == "rationale"
    options: dict[str, Any] = {"rationale_only": rationale_only, "uses_query": query, "seed": config.seed}
    instances, labels = read_examples(split, limit=config.limit, **options)
    label_counts = Counter(labels)
    if len(label_counts) < 2:
        words = f"expected at least two labels, found {', '.join(label_counts)}"
        raise DataError(words, file=split.name)
    names = list(split.label_names) or sorted(label_counts)
    if missing := [name for name in names if name not in label_counts]:
        words = f"labels that no instance of {config.split} has, and the model does not learn"
        say(f"{words}: {', '.join(missing)} ({len(missing)} of {len(names)})")
    has_folds = isinstance(system, Baseline) and config.folds != "instances"
    clusters = cluster_texts(instances, split.kind == "eraser") if has_folds else None
    if clusters is not None and not config.paper:
        words = f"{len(instances)} instances in {len(set(clusters.tolist()))} clusters that share documents"
        say(f"folds: {words}; no cluster is in two folds")
    if config.limit is not None:
        counts = ", ".join(f"{number} {label}" for label, number in sorted(label_counts.items()))
        say(f"`limit`: {len(labels)} labelled instances, drawn by seed {config.seed} with each label's share: {counts}")
    limit = system.validation_limit(config)
    validation: Labelled = ([], [])
    if evaluated is not None and limit != 0:
        validation = read_examples(evaluated, limit=limit, **options)
    return Data(
        (instances, labels),
        validation,
        names,
        query,
        clusters=clusters,
    )
