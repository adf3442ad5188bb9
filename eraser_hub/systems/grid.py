"""Train every combination of a grid, one after another, and keep the best."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from eraser_hub.records.errors import DataError
from eraser_hub.records.files import atomic_write

from .data import Training
from .folder import CHECKPOINT
from .hyper import parse_grid

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

    Each combination has a folder in the training's folder; finished combinations are not trained again.

    Args:
        training: The training, with the grid in its config.
        train: Trains one config, resuming in its folder.
        judge: Returns the validation result of a trained combination.

    Returns:
        The result of ``train`` for the best combination, and the settings and figures of each combination.

    Raises:
        DataError: No validation split to choose by, or an error of ``train``.
    """
    config, folder, say = training.config, training.folder, training.say
    trials = parse_grid(config.grid)
    configs = [replace(config, hyper=(*config.hyper, *trial), grid=()) for trial in trials]
    if len(trials) == 1:
        return train(replace(training, config=configs[0])), []
    if not training.data.validation[0]:
        words = "several values: expected a validation split with labels to choose by; `eval_split` names one"
        raise DataError(words, argument="model")
    places = [folder / f"trial-{number}" for number in range(1, len(trials) + 1)]
    for place in places:
        place.mkdir(exist_ok=True)
    several = [replace(training, config=one, folder=place) for one, place in zip(configs, places, strict=True)]
    atomic_write(folder / CHECKPOINT, b"")  # a stopped grid search resumes from here
    best, rows = None, list[dict[str, object]]()
    for number, (trial, one) in enumerate(zip(trials, several, strict=True), 1):
        settings = ", ".join(trial)
        say(f"search: {number} of {len(trials)}: {settings}")
        result = train(one)
        trial_score = judge(result)
        figures = ", ".join(f"{name} {value:.4f}" for name, value in trial_score.figures.items())
        say(f"search: {settings}: validation {figures}")
        rows.append({"settings": list(trial), **trial_score.figures})
        if best is None or trial_score.score > best[1].score:
            best = result, trial_score, settings
    assert best is not None
    name, value = next(iter(best[1].figures.items()))
    say(f"search: {best[2]} is the best by {name}: {value:.4f}")
    return best[0], rows
