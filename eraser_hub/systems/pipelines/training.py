"""Train a pipeline: a selector, then a classifier of its selection; they share no weights."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from eraser_hub.attribution.adapter import align_labels
from eraser_hub.attribution.open import open_model
from eraser_hub.records.errors import DataError
from eraser_hub.records.files import atomic_write
from eraser_hub.records.readers import read_json
from eraser_hub.systems.data import Data, Training
from eraser_hub.systems.evaluation import CHUNK, TextProbabilities, compute_figures
from eraser_hub.systems.finetuning import finetune
from eraser_hub.systems.folder import CHECKPOINT, checkpoint_dir, mark_saving, write_facts
from eraser_hub.systems.grid import TrialScore, train_grid
from eraser_hub.systems.networks.training import train_network
from eraser_hub.systems.system import NetworkSystem

from .pipeline import SENTENCE_LABELS, make_extract_examples, make_sampler, make_sentence_examples

CONFIG = "config.json"
LEAST = 1e-12  # of a probability whose logarithm is taken


def train_pipeline(system: NetworkSystem, training: Training) -> None:
    """Train and save a pipeline that ``explain`` opens.

    It is an identifier of evidence sentences, and a classifier of these sentences.

    Raises:
        DataError: No human rationales for an identifier, or the training of a stage fails.
    """
    # the whole pipeline is judged, which selects by itself: the classifier's own validation is on human rationales
    score_pipeline = partial(_judge, data=training.data)
    place, rows = train_grid(training, partial(_train_stages, system), score_pipeline)
    out = training.out
    with mark_saving(out):
        for name in system.stages:
            shutil.rmtree(out / name, ignore_errors=True)
            (place / name).replace(out / name)
        (place / CONFIG).replace(out / CONFIG)
        write_facts({**_make_facts(system, training), **({"grid": rows} if rows else {})}, out)


def _judge(folder: Path, data: Data) -> TrialScore:
    """Evaluate a pipeline on the validation split, by accuracy, then by cross entropy."""
    model = open_model(folder, precision="float32")
    align_labels(model, data.label_names)
    instances, labels = data.validation
    text_probabilities, numbers = TextProbabilities(model), [data.label_names.index(label) for label in labels]
    parts = [text_probabilities.compute(instances[start : start + CHUNK]) for start in range(0, len(instances), CHUNK)]
    probabilities = np.concatenate(parts)
    right = probabilities[np.arange(len(numbers)), numbers]
    accuracy = compute_figures(numbers, probabilities.argmax(axis=1).tolist())["accuracy"]
    loss = float(-np.log(np.maximum(right, LEAST)).mean())
    return TrialScore((accuracy, -loss), {"accuracy": accuracy, "loss": loss})


def _train_stages(system: NetworkSystem, training: Training) -> Path:
    """Train a pipeline's stages in the training's folder, complete it to a model, and return it."""
    folder = training.folder
    hyper: Any = system.make_hyper(training.config)
    _train_sentence_stages(system, training, hyper)
    config = {**training.describe(stages=system.stages), "hyper": asdict(hyper)}
    atomic_write(folder / CONFIG, (json.dumps(config, ensure_ascii=False, indent=2) + "\n").encode())
    write_facts(_make_facts(system, training), folder)
    return folder


def _make_facts(system: NetworkSystem, training: Training) -> dict[str, Any]:
    config = training.config
    return {**training.facts, "network": config.model, "stages": list(system.stages), "seed": config.seed}


def _train_stage(system: NetworkSystem, training: Training, hyper: Any, name: str, data: Callable[[], Data]) -> Path:
    """Train a stage unless it was trained before a stop; return its folder.

    The training's checkpoint lists the names of finished stages.
    """
    config, say = training.config, training.say
    place, path = training.folder / name, training.folder / CHECKPOINT
    finished = read_json(path) if path.is_file() else []
    if not isinstance(finished, list):
        words = "expected the names of finished stages, found another checkpoint; delete it to start anew"
        raise DataError(words, file=path, argument="resume")
    if name in finished and place.is_dir():  # a stop while the pipeline was saved may have moved it away
        say(f"{name}: trained before the stop")
        return place
    atomic_write(path, json.dumps(finished).encode())  # from here on there is something to go on with
    stage_data = data()
    say(f"{name}: {len(stage_data.train[0])} texts")
    names = list(stage_data.label_names)
    facts = {**training.facts, "uses_query": stage_data.uses_query, "label_names": names, "stage": name}
    with checkpoint_dir(place, {"stage": name}, config.resume and place.is_dir(), say) as folder:
        stage = replace(training, data=stage_data, out=place, folder=folder, facts=facts)
        if system.network:
            train_network(system, stage)
        else:
            encoder = replace(config, model=config.encoder, encoder="", task="classification", window=hyper.window)
            finetune(replace(stage, config=encoder, facts={**facts, "task": "classification"}), hyper)
    atomic_write(path, json.dumps([*finished, name]).encode())
    return place


def _train_sentence_stages(system: NetworkSystem, training: Training, hyper: Any) -> None:
    """Train an identifier of evidence sentences, and a classifier of human rationales (teacher forcing)."""
    data, seed = training.data, training.config.seed
    sentences, labels = make_sentence_examples(data.train[0])
    if not sentences:
        words = f"{training.config.model} learns which sentences are evidence from human rationales, found none in "
        raise DataError(words + f"{len(data.train[0])} instances")
    without = sum(not one.has_rationale for one in data.train[0])
    if without:
        training.say(f"{without} of {len(data.train[0])} instances have no human rationale: left out")

    def make_identifier_data() -> Data:
        draw = make_sampler(labels, hyper.negatives, seed)
        validation = make_sentence_examples(data.validation[0])
        if validation[0]:
            chosen = make_sampler(validation[1], hyper.negatives, seed)(0)
            validation = [validation[0][number] for number in chosen], [validation[1][number] for number in chosen]
        return Data((sentences, labels), validation, SENTENCE_LABELS, data.uses_query, draw)

    def make_classifier_data() -> Data:
        train, validation = (make_extract_examples(*part, hyper.sentences) for part in (data.train, data.validation))
        return replace(data, train=train, validation=validation)

    for name, stage in zip(system.stages, (make_identifier_data, make_classifier_data), strict=True):
        _train_stage(system, training, hyper, name, stage)
