"""Train every combination of a grid, and keep the best; one after the other, or side by side by Ray Tune."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from eraser_hub.attribution.work import count_threads
from eraser_hub.records.atomic import atomic_write
from eraser_hub.records.errors import DataError, first_line
from eraser_hub.records.extras import need

from .data import Training, silent
from .folder import CHECKPOINT
from .hyper import grid_of
from .recipe import Say

# what Ray Tune would print and write besides, and its warning about processors without a graphics one
SETTINGS = {
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",
    "RAY_AIR_NEW_OUTPUT": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}
PLACE = "ray"  # folder of what Ray Tune writes, in a training's
Result = TypeVar("Result")
Train = Callable[[Training], Result]


@dataclass(frozen=True, slots=True)
class Judged:
    """How well a combination does on the validation split.

    Attributes:
        score: the greatest is the best, of equal ones the first.
        figures: name -> what is told of it, the one that decides first.
    """

    score: tuple[float, float]
    figures: Mapping[str, float]


def best_of_grid(
    training: Training, train: Train[Result], judge: Callable[[Result], Judged]
) -> tuple[Result, list[dict[str, object]]]:
    """Train every combination of a grid's values; without a grid the one there is, unjudged.

    With ``workers`` above 1 so many are trained side by side. Each combination has a folder in the training's, and what
    is done of one is not done again.

    Args:
        train: trains a recipe in a folder, from which it goes on where it was stopped there.

    Returns:
        What ``train`` gives of the best by the validation split, and of each combination its settings and figures.

    Raises:
        DataError: no validation split to choose by; what ``train`` raises; see `side_by_side`.
    """
    recipe, folder, say = training.recipe, training.folder, training.say
    trials = grid_of(recipe.grid)
    recipes = [replace(recipe, hyper=(*recipe.hyper, *trial), grid=()) for trial in trials]
    if len(trials) == 1:
        return train(replace(training, recipe=recipes[0])), []
    if not training.data.validation[0]:
        words = "expected a validation split with labels to choose by; `eval_split` names one"
        raise DataError(words, rule="option-missing", argument="grid")
    places = [folder / f"trial-{number}" for number in range(1, len(trials) + 1)]
    for place in places:
        place.mkdir(exist_ok=True)
    several = [replace(training, recipe=one, folder=place) for one, place in zip(recipes, places, strict=True)]
    if recipe.workers > 1:
        atomic_write(folder / CHECKPOINT, b"")  # what is done of the grid is worth going on with
        # silent: the progress of trainings side by side would mix
        jobs = [partial(train, replace(one, folder=one.folder.resolve(), say=silent)) for one in several]
        side_by_side(jobs, recipe.workers, folder, say)
    best, rows = None, list[dict[str, object]]()
    for number, (trial, one) in enumerate(zip(trials, several, strict=True), 1):
        settings = ", ".join(trial)
        say(f"`grid`: {number} of {len(trials)}: {settings}")
        result = train(one)
        judged = judge(result)
        figures = ", ".join(f"{name} {value:.4f}" for name, value in judged.figures.items())
        say(f"`grid`: {settings}: validation {figures}")
        rows.append({"settings": list(trial), **judged.figures})
        atomic_write(folder / CHECKPOINT, b"")
        if best is None or judged.score > best[1].score:
            best = result, judged, settings
    assert best is not None
    name, value = next(iter(best[1].figures.items()))
    say(f"`grid`: {best[2]} is the best by {name}: {value:.4f}")
    return best[0], rows


def side_by_side(jobs: Sequence[Callable[[], object]], workers: int, folder: Path, say: Say) -> None:
    """Run every job in a process of Ray's, at most ``workers`` of them at a time, each on a processor of its own.

    Each leaves in its folder what a training leaves that was stopped behind its last step. So the loop finds there what
    it would have trained itself, to the byte.

    Args:
        jobs: trainings that keep what they do in folders of their own.
        folder: on a file system that all workers see.

    Raises:
        DataError: Ray is not installed; a job's own error, in its words.
    """
    need("ray")
    os.environ.update({name: os.environ.get(name, value) for name, value in SETTINGS.items()})
    import ray
    from ray import tune

    starts = not ray.is_initialized()
    if starts:
        ray.init(include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    try:
        say(f"`workers`: {len(jobs)} trainings, at most {workers} side by side by Ray Tune")
        run = tune.with_parameters(_run, jobs=jobs, threads=count_threads(), place=os.getcwd())
        tuner = tune.Tuner(
            tune.with_resources(run, {"cpu": 1, "gpu": _share_of_gpu(workers)}),
            param_space={"number": tune.grid_search(list(range(len(jobs))))},
            tune_config=tune.TuneConfig(max_concurrent_trials=workers),
            run_config=tune.RunConfig(storage_path=str((folder / PLACE).resolve()), verbose=0),
        )
        results = tuner.fit()
        ends = [(one.metrics or {}, one.error) for one in map(results.__getitem__, range(len(results)))]
    finally:
        if starts:
            ray.shutdown()
    for told, error in ends:
        if told.get("error"):
            raise DataError(told["error"], rule=told["rule"])
        if error:
            raise DataError(f"a Ray worker failed: {first_line(error)}", rule="device")


def _share_of_gpu(workers: int) -> float:
    """What each of the workers gets of the graphics processors: one, or its part of one."""
    import torch

    return min(1.0, torch.cuda.device_count() / workers)


def _run(config: dict[str, Any], jobs: Sequence[Callable[[], object]], threads: int, place: str) -> dict[str, str]:
    """One job, in Ray's process: with the driver's threads, since sums differ with their number, and in its folder."""
    import torch

    torch.set_num_threads(threads)
    os.chdir(place)
    try:
        jobs[config["number"]]()
    except DataError as error:  # told to the driver, which raises it
        return {"error": error.text({str(error.argument): f"`{error.argument}`"}), "rule": error.rule}
    return {"error": ""}
