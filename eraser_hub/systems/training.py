"""From a recipe to a model folder and its figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from eraser_hub.attribution.adapter import Adapter
from eraser_hub.attribution.dataset import Split, draw_stratified, find_kd, has_different_queries, open_split
from eraser_hub.attribution.instances import Instance, read_perturbation_row
from eraser_hub.attribution.open import CHECKPOINT_DIR, open_model
from eraser_hub.attribution.settings import find_preset
from eraser_hub.metrics.answer_f1 import answer_f1
from eraser_hub.records.errors import DataError, shown
from eraser_hub.records.extras import need
from eraser_hub.records.splits import dataset_split

from .data import SUBSETS_EACH, Data, Labelled, Training, examples, has_labels, in_turn, silent, span_of, subsets_of
from .evaluation import Evaluation, evaluate_on
from .folder import unfinished
from .recipe import ANSWERS, LARGEST_SEED, SUBSETS, Recipe, Say
from .system import TrainedSystem, answering_systems, find_system

# Carton et al. (2020), Table 3
REGIMES = {
    ("full", "full"): "no-rationale",
    ("full", "rationale"): "eval-rationale",
    ("rationale", "rationale"): "train-eval-rationale",
    ("subsets", "full"): "subsets-eval-full",
    ("subsets", "rationale"): "subsets-eval-rationale",
}


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
    partly = {"train_on": recipe.train_on != "full", "regimes": recipe.regimes, "query": recipe.query is False}
    for argument in (name for name, other in partly.items() if other):
        words = "answers are learned from whole texts and their questions; `task` classification learns"
        raise DataError(f"{words} whether there is one", rule="option-conflict", argument=argument)
    return True


def _answers_data(recipe: Recipe, split: Split, evaluated: Split | None, say: Say) -> Data:
    """The questions to learn to answer, and those to validate on.

    Raises:
        DataError: no answer that stands in its text.
    """
    train = with_spans(answered(split, recipe.limit, recipe.seed), recipe.split, say)
    unseen: Labelled = ([], [])
    if evaluated is not None:
        unseen = with_spans(answered(evaluated, recipe.limit, recipe.seed), str(evaluated.rows.split), say)
    return Data(train, unseen, (), True, answers=True)


def has_answers(split: Split) -> bool:
    """Whether any of the split's rows asks a question whose answer, a text or "" for none, is known."""
    return split.kind == "perturbation" and any(answer is not None for _, answer in split.read(_answered))


def _answered(row: Mapping[str, Any], label_names: Sequence[str]) -> tuple[Instance, str | None]:
    one, answer = read_perturbation_row(row, label_names), row.get("answer")
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
        chosen = draw_stratified([str(bool(answer)) for _, answer in rows], limit, seed)
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


def train_model(recipe: Recipe, out: Path, say: Say = silent, figures: bool = True) -> Iterator[str]:
    """Train, save into ``out``, and give a line of figures per regime.

    Args:
        recipe: what to train on what; with ``regimes`` it is trained the other way too, beside ``out``'s model, for
            Carton et al. (2020)'s three regimes.
        out: the model's folder; a model that lies there is replaced.
        say: called with lines of progress.
        figures: evaluate what was trained; where it is False the evaluation split serves validation alone.

    Raises:
        DataError: unknown model or split, no labels, no rationales where they are asked for, a seed out of range.
    """
    need("sklearn", "skops")
    _check_folder(recipe, out)
    data = open_split(recipe.dataset, recipe.config, recipe.split)
    system = find_system(recipe.model)
    check_recipe(recipe, system)
    answers = learns_answers(recipe, system, data)
    evaluated = evaluation_split(recipe)
    identity, learns = recipe.identity(), _answers_data if answers else partial(_data, system)

    def trained(recipe: Recipe, out: Path, folder: Path) -> Evaluation | None:
        """Figures of the validation split, where training had to find them out."""
        what = learns(recipe, data, evaluated, say)
        facts = _facts_of(recipe, data, what)
        return system.fit(Training(recipe, what, out, folder, say, facts, share=lambda: find_kd(data)))

    with unfinished(out, {**identity, "train_on": recipe.train_on}, recipe.resume, say) as folder:
        known = trained(recipe, out, folder)
        what = "to answer the questions" if answers else f"on the {recipe.train_on} text"
        yield f"{out}: {recipe.model} trained {what} of {recipe.split}"
        if evaluated is None and recipe.eval_split is None:
            say("not evaluated: no other split with labels; `eval_split` names one")
        if evaluated is not None and answers:
            yield figures_of_answers(open_model(out), answered(evaluated, recipe.limit, recipe.seed))
        elif evaluated is not None and figures:
            yield from _figures(recipe, out, evaluated, known, say)
            if recipe.regimes:
                other = replace(recipe, train_on="rationale" if recipe.train_on == "full" else "full")
                beside = folder / "regime"
                with unfinished(beside, {**identity, "train_on": other.train_on}, recipe.resume, say) as inner:
                    known = trained(other, beside, inner)
                    yield from _figures(other, beside, evaluated, known, say)


def _facts_of(recipe: Recipe, split: Split, data: Data) -> dict[str, Any]:
    """Return what ``model.json`` says of the data that a model was trained on."""
    return {
        "dataset": Path(recipe.dataset).name,
        "config": split.config,
        "split": recipe.split,
        "train_on": recipe.train_on,
        "uses_query": data.uses_query,
        "instances": len(data.train[0]) // data.copies,
        "label_names": list(data.label_names),
        **({"task": ANSWERS} if data.answers else {}),
        **({"paper": recipe.paper} if recipe.paper else {}),
    }


def _check_folder(recipe: Recipe, out: Path) -> None:
    if not 0 <= recipe.seed <= LARGEST_SEED:
        words = f"expected 0 to {LARGEST_SEED}, found {recipe.seed}"
        raise DataError(words, rule="option-value", argument="seed")
    if out.exists() and not out.is_dir():
        raise DataError("expected a folder, found a file", rule="file-kind", file=out, argument="out")
    others = [path.name for path in out.iterdir() if path.name[0] != "."] if out.is_dir() else []
    if others and not (out / "model.json").is_file() and not (out / CHECKPOINT_DIR).is_dir():
        words = f"expected a new folder, or a model's of `train`, found {shown(sorted(others)[0])} and no model.json"
        raise DataError(words, rule="file-exists", file=out, argument="out")


def check_recipe(recipe: Recipe, system: TrainedSystem) -> None:
    """Refuse, before anything is read, an unknown preset and what the system would not use.

    Raises:
        DataError: says which.
    """
    find_preset(recipe.paper)  # it refuses an unknown one
    system.check(recipe)
    if recipe.workers > 1:
        if not recipe.grid:
            words = "combinations of a `grid` are trained side by side, found no `grid`"
            raise DataError(words, rule="option-missing", argument="workers")
        need("ray")
    if recipe.train_on == SUBSETS and recipe.regimes:
        words = f"expected `train_on` full or rationale beside it, found {SUBSETS}"
        raise DataError(words, rule="option-conflict", argument="regimes")


def evaluation_split(recipe: Recipe) -> Split | None:
    """Return the split to evaluate on: the one asked for, or validation where it has labels and was not trained on.

    Raises:
        DataError: the split asked for is not there, or has no labels.
    """
    if recipe.eval_split == "":
        return None
    if recipe.eval_split:
        split = open_split(recipe.dataset, recipe.config, recipe.eval_split)
        # looked for before the training, which may take hours
        if not has_labels(split):
            words = f"`eval_split` {recipe.eval_split}: expected labelled instances, found none"
            raise DataError(words, rule="label-missing", file=split.name)
        return split
    if dataset_split(recipe.split) == "validation":
        return None
    try:
        split = open_split(recipe.dataset, recipe.config, "validation")
    except DataError:
        return None
    return split if has_labels(split) else None


def _figures(recipe: Recipe, model: Path, split: Split, known: Evaluation | None, say: Say) -> Iterator[str]:
    """A line for each regime; ``known``: what the training already found on the text that it trains on."""
    adapter = open_model(model, trust_remote_code=recipe.trust_remote_code)
    how: dict[str, Any] = {"limit": recipe.limit, "seed": recipe.seed, "say": say}
    first = next(split.instances(), None)
    marked = first is not None and first.rationale is not None
    for seen in ("full", "rationale"):
        name = REGIMES.get((recipe.train_on, seen))
        if name is None or (seen == "rationale" and not marked):
            continue
        rationale_only = seen == "rationale"
        figures = known if rationale_only == (recipe.train_on == "rationale") else None
        figures = figures or evaluate_on(adapter, split, rationale_only=rationale_only, **how)
        drawn = "" if recipe.limit is None else f"at most {recipe.limit} by `limit`: "
        words = f"accuracy {figures.accuracy:.3f}, macro F1 {figures.macro_f1:.3f}"
        yield f"{name}: {words} ({drawn}{figures.instances} instances)"


def _data(system: TrainedSystem, recipe: Recipe, split: Split, evaluated: Split | None, say: Say) -> Data:
    """The instances of the recipe's training text, and those to validate on, where the system does."""
    query = has_different_queries(split) if recipe.query is None else recipe.query
    rationale_only = recipe.train_on == "rationale"
    how: dict[str, Any] = {"rationale_only": rationale_only, "uses_query": query, "seed": recipe.seed}
    instances, labels = examples(split, limit=recipe.limit, **how)
    among = Counter(labels)
    if len(among) < 2:
        words = f"expected at least two labels to tell apart, found {', '.join(among)}"
        raise DataError(words, rule="label-missing", file=split.name)
    names = list(split.label_names) or sorted(among)
    if recipe.limit is not None:
        counts = ", ".join(f"{number} {label}" for label, number in sorted(among.items()))
        say(f"`limit`: {len(labels)} labelled instances, drawn by seed {recipe.seed} with each label's share: {counts}")
    texts, copies = len(instances), 1
    if recipe.train_on == SUBSETS:
        copies = SUBSETS_EACH
        instances, labels = subsets_of(instances, recipe.seed), labels * copies
        words = "of a share between none and all of its tokens"
        say(f"{SUBSETS}: {copies} random subsets of each of {texts} texts, {words}")
    limit = system.validation_limit(recipe)
    unseen: Labelled = ([], []) if evaluated is None or limit == 0 else examples(evaluated, limit=limit, **how)
    return Data((instances, labels), unseen, names, query, in_turn(texts, copies), copies=copies)
