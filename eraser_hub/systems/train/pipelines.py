"""Train a pipeline: a selector and a classifier of what it selects, one after the other, no weights shared."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from eraser_hub.attribution.adapter import align_labels
from eraser_hub.attribution.instances import Instance
from eraser_hub.attribution.open import open_model
from eraser_hub.records.atomic import atomic_write
from eraser_hub.records.errors import DataError
from eraser_hub.systems.networks.systems import (
    SYSTEMS,
    BertToBertHyper,
    FreshHyper,
    Hyper,
    LehmanHyper,
    hyper_of,
)
from eraser_hub.systems.pipelines.pipeline import extract
from eraser_hub.systems.pipelines.selectors import AttentionSelector, Stage
from eraser_hub.systems.pipelines.sentences import SENTENCE_LABELS, sampled, to_classify, to_identify

from .baselines import write_facts
from .data import Data, Labelled
from .evaluation import figures_of
from .finetuning import finetune
from .grid import Judged, best_of_grid
from .networks import is_marked, train_network
from .recipe import CLASSIFICATION, Recipe, Say
from .unfinished import CHECKPOINT, saving, unfinished

CHUNK = 64  # texts that are explained together
CONFIG = "config.json"
LEAST = 1e-12  # of a probability whose logarithm is taken


@dataclass(frozen=True, slots=True)
class StagedTraining:
    """A pipeline that is trained stage by stage.

    Attributes:
        recipe, hyper, data: what is trained how on what; ``data`` are whole texts.
        facts: what ``model.json`` says of the data.
        folder: of :func:`unfinished.unfinished`; finished stages wait in it.
    """

    recipe: Recipe
    hyper: Hyper
    data: Data
    facts: dict[str, Any]
    folder: Path
    say: Say

    def stage(self, name: str, data: Callable[[], Data]) -> Path:
        """Train a stage where that was not done before a stop; gives its folder."""
        place = self.folder / name
        if name in self._done():
            self.say(f"{name}: trained before the stop")
            return place
        self._finished([])  # from here on there is something to go on with
        stage = data()
        self.say(f"{name}: {len(stage.train[0])} texts")
        facts = {**self.facts, "uses_query": stage.uses_query, "label_names": list(stage.label_names), "stage": name}
        with unfinished(place, {"stage": name}, self.recipe.resume and place.is_dir(), self.say) as folder:
            if isinstance(self.hyper, LehmanHyper):
                train_network(self.recipe, stage, facts, place, folder, self.say)
            else:
                recipe = replace(
                    self.recipe,
                    model=self.recipe.encoder,
                    encoder="",
                    task=CLASSIFICATION,
                    window=getattr(self.hyper, "window", None),
                )
                finetune(recipe, stage, place, folder, {**facts, "task": CLASSIFICATION}, self.say, self.hyper)
        self._finished([name])
        return place

    def _done(self) -> list[str]:
        path = self.folder / CHECKPOINT
        return json.loads(path.read_text("utf-8")) if path.is_file() else []

    def _finished(self, names: Sequence[str]) -> None:
        atomic_write(self.folder / CHECKPOINT, json.dumps([*self._done(), *names]).encode())


def train_pipeline(
    recipe: Recipe, data: Data, facts: dict[str, Any], out: Path, folder: Path, say: Say, share: Callable[[], float]
) -> None:
    """Train and save a pipeline that ``eraser-hub explain`` opens.

    Args:
        data: whole texts with their labels and, for sentence selectors, human rationales.
        facts: what ``model.json`` says of the data.
        folder: of :func:`unfinished.unfinished`.
        share: the average length of a rationale, where the hyper-parameters do not say how much is extracted.

    Raises:
        DataError: no human rationales where sentences are to be identified; what the training of a stage raises.
    """

    def train(one: Recipe, place: Path, say: Say) -> Path:
        _train_stages(one, data, facts, place, say, share)
        return place

    # the whole pipeline is judged, which selects by itself: the classifier's own validation is on human rationales
    place, rows = best_of_grid(recipe, data, folder, train, lambda place: _judged(place, data), say)
    grid = {"grid": rows} if rows else {}
    stages = SYSTEMS[recipe.model].stages
    with saving(out):
        for name in stages:
            shutil.rmtree(out / name, ignore_errors=True)
            (place / name).replace(out / name)
        (place / CONFIG).replace(out / CONFIG)
        write_facts({**_facts_of(recipe, facts), **grid}, out)


def _judged(folder: Path, data: Data) -> Judged:
    """A whole pipeline on the validation split, by accuracy, then by cross entropy."""
    model = open_model(folder, precision="float32")
    align_labels(model, data.label_names)
    instances, labels = data.validation
    stage, numbers = Stage(model), [data.label_names.index(label) for label in labels]
    parts = [stage.probabilities(instances[start : start + CHUNK]) for start in range(0, len(instances), CHUNK)]
    probabilities = np.concatenate(parts)
    right = probabilities[np.arange(len(numbers)), numbers]
    accuracy = figures_of(numbers, probabilities.argmax(axis=1).tolist())["accuracy"]
    loss = float(-np.log(np.maximum(right, LEAST)).mean())
    return Judged((accuracy, -loss), {"accuracy": accuracy, "loss": loss})


def _train_stages(
    recipe: Recipe, data: Data, facts: dict[str, Any], folder: Path, say: Say, share: Callable[[], float]
) -> None:
    """Train a pipeline's stages in a folder, and make it a model's there."""
    hyper = hyper_of(recipe.model, recipe.encoder, {**recipe.options(), "window": recipe.window}, recipe.hyper)
    if isinstance(hyper, FreshHyper) and not hyper.share:
        hyper = replace(hyper, share=share())
        say(f"extracts {hyper.share:g} of the tokens, the average rationale's share; --set share=SHARE takes another")
    training = StagedTraining(recipe, hyper, data, facts, folder, say)
    (_token_stages if isinstance(hyper, FreshHyper) else _sentence_stages)(training)
    config = {
        "system": recipe.model,
        "label_names": list(data.label_names),
        "uses_query": data.uses_query,
        "stages": SYSTEMS[recipe.model].stages,
        "encoder": Path(recipe.encoder).name,
        "embeddings": Path(recipe.embeddings).name,
        "seed": recipe.seed,
        "hyper": asdict(hyper),
    }
    atomic_write(folder / CONFIG, (json.dumps(config, ensure_ascii=False, indent=2) + "\n").encode())
    write_facts(_facts_of(recipe, facts), folder)


def _facts_of(recipe: Recipe, facts: dict[str, Any]) -> dict[str, Any]:
    return {**facts, "network": recipe.model, "stages": list(SYSTEMS[recipe.model].stages), "seed": recipe.seed}


def _sentence_stages(training: StagedTraining) -> None:
    """An identifier of evidence sentences, and a classifier of the human rationale's (teacher forcing)."""
    data, hyper, seed = training.data, training.hyper, training.recipe.seed
    assert isinstance(hyper, (LehmanHyper, BertToBertHyper))
    sentences, labels = to_identify(data.train[0])
    if not sentences:
        words = f"{training.recipe.model} learns which sentences are evidence from human rationales, found none in "
        raise DataError(words + f"{len(data.train[0])} instances", rule="span-missing")
    without = sum(not is_marked(one) for one in data.train[0])
    if without:
        training.say(f"{without} of {len(data.train[0])} instances have no human rationale: left out")

    def identification() -> Data:
        draw = sampled(labels, hyper.negatives, seed)
        unseen = to_identify(data.validation[0])
        if unseen[0]:
            chosen = sampled(unseen[1], hyper.negatives, seed)(0)
            unseen = [unseen[0][number] for number in chosen], [unseen[1][number] for number in chosen]
        return Data((sentences, labels), unseen, SENTENCE_LABELS, data.uses_query, draw)

    def classification() -> Data:
        train, validation = (to_classify(*part, hyper.sentences) for part in (data.train, data.validation))
        return replace(data, train=train, validation=validation)

    training.stage("identifier", identification)
    training.stage("classifier", classification)


def _token_stages(training: StagedTraining) -> None:
    """A classifier of full texts that explains them by attention, and a classifier of the extracts."""
    data, hyper = training.data, training.hyper
    assert isinstance(hyper, FreshHyper)
    explainer = training.stage("explainer", lambda: data)

    def extracts(part: Labelled) -> Labelled:
        selector = AttentionSelector(open_model(explainer, precision="float32"), hyper.share, hyper.extractor)
        cut = list[Instance]()
        for start in range(0, len(part[0]), CHUNK):
            texts = part[0][start : start + CHUNK]
            pairs = zip(texts, selector.select(texts), strict=True)
            cut += [replace(extract(one, selection), rationale=None, evidence_documents=()) for one, selection in pairs]
        return cut, part[1]

    training.stage(
        "classifier", lambda: replace(data, train=extracts(data.train), validation=extracts(data.validation))
    )
