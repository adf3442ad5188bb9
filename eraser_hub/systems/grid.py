"""Train every combination of a grid and keep the best, one after another or in parallel by Ray Tune."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from eraser_hub.attribution.work import count_threads, open_ray
from eraser_hub.records.atomic import atomic_write
from eraser_hub.records.errors import DataError, get_first_line
from eraser_hub.records.extras import need

from .data import Training, say_nothing
from .folder import CHECKPOINT
from .hyper import parse_grid
from .train_config import Say

# turn off further output of Ray Tune, and its warning about machines without a GPU
SETTINGS = {
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",
    "RAY_AIR_NEW_OUTPUT": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}
PLACE = "ray"  # folder of Ray Tune's files in a training's folder
Result = TypeVar("Result")
Train = Callable[[Training], Result]


@dataclass(frozen=True, slots=True)
class TrialScore:
    """The validation result of one combination.

    Attributes:
        score: The greatest is the best; of equal scores the first wins.
        figures: Names and values to report; the first one decides.
    """

    score: tuple[float, float]
    figures: Mapping[str, float]


def train_grid(
    training: Training, train: Train[Result], judge: Callable[[Result], TrialScore]
) -> tuple[Result, list[dict[str, object]]]:
    """Train every combination of a grid's values; without a grid, train once and do not judge.

    With ``workers`` above 1, that many are trained in parallel. Each combination has a folder in the training's folder;
    finished combinations are not trained again.

    Args:
        training: The training, with the grid in its config.
        train: Trains one config, resuming in its folder.
        judge: Returns the validation result of a trained combination.

    Returns:
        The result of ``train`` for the best combination, and the settings and figures of each combination.

    Raises:
        DataError: No validation split to choose by, or an error of ``train`` or `run_in_parallel`.
    """
    config, folder, say = training.config, training.folder, training.say
    trials = parse_grid(config.grid)
    configs = [replace(config, hyper=(*config.hyper, *trial), grid=()) for trial in trials]
    if len(trials) == 1:
        return train(replace(training, config=configs[0])), []
    if not training.data.validation[0]:
        words = "expected a validation split with labels to choose by; `eval_split` names one"
        raise DataError(words, argument="grid")
    places = [folder / f"trial-{number}" for number in range(1, len(trials) + 1)]
    for place in places:
        place.mkdir(exist_ok=True)
    several = [replace(training, config=one, folder=place) for one, place in zip(configs, places, strict=True)]
    atomic_write(folder / CHECKPOINT, b"")  # a stopped grid search resumes from here
    if config.workers > 1:
        # silent: the progress of trainings side by side would mix
        jobs = [partial(train, replace(one, folder=one.folder.resolve(), say=say_nothing)) for one in several]
        run_in_parallel(jobs, config.workers, folder, say)
    best, rows = None, list[dict[str, object]]()
    for number, (trial, one) in enumerate(zip(trials, several, strict=True), 1):
        settings = ", ".join(trial)
        say(f"`grid`: {number} of {len(trials)}: {settings}")
        result = train(one)
        trial_score = judge(result)
        figures = ", ".join(f"{name} {value:.4f}" for name, value in trial_score.figures.items())
        say(f"`grid`: {settings}: validation {figures}")
        rows.append({"settings": list(trial), **trial_score.figures})
        if best is None or trial_score.score > best[1].score:
            best = result, trial_score, settings
    assert best is not None
    name, value = next(iter(best[1].figures.items()))
    say(f"`grid`: {best[2]} is the best by {name}: {value:.4f}")
    return best[0], rows


def run_in_parallel(jobs: Sequence[Callable[[], object]], workers: int, folder: Path, say: Say) -> None:
    """Run every job in a Ray process, at most ``workers`` at a time, each on its own processor.

    Each job leaves in its folder the files of a training that was stopped after its last step. The loop then finds
    there the bytes that it would have produced itself.

    Args:
        jobs: Trainings that write to their own folders.
        workers: Largest number of jobs at a time.
        folder: A folder on a file system that all workers see.
        say: Receives lines of progress.

    Raises:
        DataError: Ray is not installed, or a job failed.
    """
    need("ray")
    os.environ.update({name: os.environ.get(name, value) for name, value in SETTINGS.items()})
    import torch
    from ray import tune

    with open_ray():
        say(f"`workers`: {len(jobs)} trainings, at most {workers} side by side by Ray Tune")
        run = tune.with_parameters(_run_trial, jobs=jobs, threads=count_threads(), place=os.getcwd())
        tuner = tune.Tuner(
            tune.with_resources(run, {"cpu": 1, "gpu": min(1.0, torch.cuda.device_count() / workers)}),
            param_space={"number": tune.grid_search(list(range(len(jobs))))},
            tune_config=tune.TuneConfig(max_concurrent_trials=workers),
            run_config=tune.RunConfig(storage_path=str((folder / PLACE).resolve()), verbose=0),
        )
        results = tuner.fit()
        ends = [(one.metrics or {}, one.error) for one in map(results.__getitem__, range(len(results)))]
    for outcome, error in ends:
        if outcome.get("error"):
            raise DataError(outcome["error"])
        if error:
            raise DataError(f"a Ray worker failed: {get_first_line(error)}")


def _run_trial(
    config: dict[str, Any], jobs: Sequence[Callable[[], object]], threads: int, place: str
) -> dict[str, str]:
    """Run one job in Ray's process, in its folder and with the driver's number of threads: sums depend on it."""
    import torch

    torch.set_num_threads(threads)
    os.chdir(place)
    try:
        jobs[config["number"]]()
    except DataError as error:  # the driver raises it
        return {"error": error.text({str(error.argument): f"`{error.argument}`"})}
    return {"error": ""}
