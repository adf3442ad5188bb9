"""What a network learns from that answers questions with words of the text, and how well it does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from eraser_hub.attribution.adapter import Adapter
from eraser_hub.attribution.dataset import Split, stratified
from eraser_hub.attribution.instances import Instance, instance_of_perturbation
from eraser_hub.attribution.open import open_model
from eraser_hub.metrics.answer_f1 import answer_f1
from eraser_hub.records.errors import DataError, shown

from .data import Data, Labelled, Training, facts_of, span_of
from .recipe import ANSWERS, Recipe, Say
from .system import TrainedSystem, answering_systems


def learns_answers(recipe: Recipe, system: TrainedSystem, data: Split) -> bool:
    """Return whether a model is to answer with words of the text: where asked for, and where answers are known.

    Raises:
        DataError: a system that does not learn to answer, no answers, parts of the texts, no question.
    """
    able = ANSWERS in system.tasks
    if recipe.task != ANSWERS and not (recipe.task == "auto" and able and has_answers(data)):
        return False
    if not able:
        words = f"{', '.join(answering_systems())} alone learns to answer, not {shown(recipe.model)}"
        raise DataError(f"`task` {ANSWERS}: {words}", rule="unsupported")
    if not has_answers(data):
        words = f"`task` {ANSWERS}: expected questions with answers, found none"
        raise DataError(words, rule="label-missing", file=data.name, field="answer")
    for argument, other in (
        ("train_on", recipe.train_on != "full"),
        ("regimes", recipe.regimes),
        ("query", recipe.query is False),
    ):
        if other:
            words = "answers are learned from whole texts and their questions; `task` classification learns"
            raise DataError(f"{words} whether there is one", rule="option-conflict", argument=argument)
    return True


def train_answers(
    recipe: Recipe, system: TrainedSystem, data: Split, evaluated: Split | None, out: Path, folder: Path, say: Say
) -> Iterator[str]:
    """Train and save a network that answers; give a line on how well it does.

    Args:
        evaluated: to validate and to evaluate on; None for none.
        folder: of :func:`folder.unfinished`.

    Raises:
        DataError: no answer that stands in its text; what training raises.
    """
    train = with_spans(answered(data, recipe.limit, recipe.seed), recipe.split, say)
    asked: Labelled = ([], []) if evaluated is None else answered(evaluated, recipe.limit, recipe.seed)
    unseen = asked if evaluated is None else with_spans(asked, str(evaluated.rows.split), say)
    what = Data(train, unseen, (), True, answers=True)
    system.fit(Training(recipe, what, out, folder, say, facts_of(recipe, data, what)))
    yield f"{out}: {recipe.model} trained to answer the questions of {recipe.split}"
    if evaluated is not None:
        yield figures_of_answers(open_model(out), asked)


def has_answers(split: Split) -> bool:
    """Whether any of the split's rows asks a question whose answer, a text or "" for none, is known."""
    return split.kind == "perturbation" and any(answer is not None for _, answer in split.read(_answered))


def _answered(row: Mapping[str, Any], label_names: Sequence[str]) -> tuple[Instance, str | None]:
    one, answer = instance_of_perturbation(row, label_names), row.get("answer")
    if answer is not None and not isinstance(answer, str):
        raise DataError(f"expected a string, found {shown(answer)}", rule="type", instance=one.id, field="answer")
    return one, answer


def answered(split: Split, limit: int | None = None, seed: int = 1) -> Labelled:
    """Instances of a split whose answer is known, and their answers, "" where the text holds none.

    Args:
        limit: so many, with the share of questions without answer as in the split; None: all.
        seed: of that draw.

    Raises:
        DataError: no answers at all, an answer that is no string.
    """
    rows = [(one, answer) for one, answer in split.read(_answered) if answer is not None]
    if not rows:
        words = "expected questions with answers, found none"
        raise DataError(words, rule="label-missing", file=split.name, field="answer")
    if limit is not None:
        chosen = stratified([str(bool(answer)) for _, answer in rows], limit, seed)
        rows = [row for place, row in enumerate(rows) if place in chosen]
    return [one for one, _ in rows], [answer for _, answer in rows]


def with_spans(part: Labelled, name: str, say: Say) -> Labelled:
    """The instances whose answers are words of their texts; how many others there are is said.

    Raises:
        DataError: none.
    """
    pairs = [pair for pair in zip(*part, strict=True) if span_of(pair[0].tokens, pair[1]) is not None]
    if not pairs:
        words = f"{name}: expected answers that stand in their texts, found none in {len(part[0])} instances"
        raise DataError(words, rule="span-missing")
    if len(pairs) < len(part[0]):
        say(f"{name}: {len(part[0]) - len(pairs)} of {len(part[0])} answers do not stand in their texts: left out")
    return [one for one, _ in pairs], [answer for _, answer in pairs]


def figures_of_answers(model: Adapter, part: Labelled) -> str:
    """F1 of a model's answers, in a line."""
    scores = [answer_f1(model.answer_text(model.encode(one))[0], gold) for one, gold in zip(*part, strict=True)]
    return f"answers: F1 {float(np.mean(scores)):.3f} ({len(scores)} instances)"
