"""From a recipe to a model folder and its figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from eraser_hub.attribution.dataset import Split, kd_of, open_split, queries_differ
from eraser_hub.attribution.open import UNFINISHED, open_model
from eraser_hub.attribution.settings import preset_of
from eraser_hub.records.errors import DataError, shown
from eraser_hub.records.extras import need
from eraser_hub.records.splits import dataset_split

from .answers import learns_answers, train_answers
from .data import SUBSETS_EACH, Data, Labelled, Training, examples, facts_of, has_labels, in_turn, subsets_of
from .evaluation import Evaluation, evaluate_on
from .folder import unfinished
from .recipe import LARGEST_SEED, SUBSETS, Recipe, Say
from .system import TrainedSystem, find_system

# paper 004, Table 3
REGIMES = {
    ("full", "full"): "no-rationale",
    ("full", "rationale"): "eval-rationale",
    ("rationale", "rationale"): "train-eval-rationale",
    ("subsets", "full"): "subsets-eval-full",
    ("subsets", "rationale"): "subsets-eval-rationale",
}


def train_model(recipe: Recipe, out: Path, say: Say = lambda words: None, figures: bool = True) -> Iterator[str]:
    """Train, save into ``out``, and give a line of figures per regime.

    Args:
        recipe: what to train on what; with ``regimes`` it is trained the other way too, beside ``out``'s model, for
            paper 004's three regimes.
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
    identity = recipe.identity()
    with unfinished(out, {**identity, "train_on": recipe.train_on}, recipe.resume, say) as folder:
        if answers:
            yield from train_answers(recipe, system, data, evaluated, out, folder, say)
        else:
            known = _fit(recipe, system, data, evaluated, out, folder, say)
            yield f"{out}: {recipe.model} trained on the {recipe.train_on} text of {recipe.split}"
        if evaluated is None and recipe.eval_split is None:
            say("not evaluated: no other split with labels; `eval_split` names one")
        if evaluated is None or answers or not figures:
            return
        yield from _figures(recipe, out, evaluated, known, say)
        if recipe.regimes:
            other = replace(recipe, train_on="rationale" if recipe.train_on == "full" else "full")
            beside = folder / "regime"
            with unfinished(beside, {**identity, "train_on": other.train_on}, recipe.resume, say) as inner:
                known = _fit(other, system, data, evaluated, beside, inner, say)
                yield from _figures(other, beside, evaluated, known, say)


def _check_folder(recipe: Recipe, out: Path) -> None:
    if not 0 <= recipe.seed <= LARGEST_SEED:
        words = f"expected 0 to {LARGEST_SEED}, found {recipe.seed}"
        raise DataError(words, rule="option-value", argument="seed")
    if out.exists() and not out.is_dir():
        raise DataError("expected a folder, found a file", rule="file-kind", file=out, argument="out")
    others = [path.name for path in out.iterdir() if path.name[0] != "."] if out.is_dir() else []
    if others and not (out / "model.json").is_file() and not (out / UNFINISHED).is_dir():
        words = f"expected a new folder, or a model's of `train`, found {shown(sorted(others)[0])} and no model.json"
        raise DataError(words, rule="file-exists", file=out, argument="out")


def check_recipe(recipe: Recipe, system: TrainedSystem) -> None:
    """Refuse, before anything is read, an unknown preset and what the system would not use.

    Raises:
        DataError: says which.
    """
    preset_of(recipe.paper)  # it refuses an unknown one
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
    first = next(split.instances(), None)
    marked = first is not None and first.rationale is not None
    for seen in ("full", "rationale"):
        name = REGIMES.get((recipe.train_on, seen))
        if name is None or (seen == "rationale" and not marked):
            continue
        rationale_only = seen == "rationale"
        figures = known if rationale_only == (recipe.train_on == "rationale") else None
        if figures is None:
            figures = evaluate_on(
                adapter, split, rationale_only=rationale_only, limit=recipe.limit, seed=recipe.seed, say=say
            )
        drawn = "" if recipe.limit is None else f"at most {recipe.limit} by `limit`: "
        yield (
            f"{name}: accuracy {figures.accuracy:.3f}, macro F1 {figures.macro_f1:.3f} "
            f"({drawn}{figures.instances} instances)"
        )


def _fit(
    recipe: Recipe, system: TrainedSystem, split: Split, evaluated: Split | None, out: Path, folder: Path, say: Say
) -> Evaluation | None:
    """Train and save; gives how well the model does on the validation split, where training had to find that out."""
    data = _data(recipe, system, split, evaluated, say)
    facts = facts_of(recipe, split, data)
    return system.fit(Training(recipe, data, out, folder, say, facts, share=lambda: kd_of(split)))


def _data(recipe: Recipe, system: TrainedSystem, split: Split, evaluated: Split | None, say: Say) -> Data:
    """The instances of the recipe's training text, and those to validate on, where the system does."""
    query = queries_differ(split) if recipe.query is None else recipe.query
    how: dict[str, Any] = {
        "rationale_only": recipe.train_on == "rationale",
        "uses_query": query,
        "seed": recipe.seed,
    }
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
        say(
            f"{SUBSETS}: {copies} random subsets of each of {texts} texts, "
            "of a share between none and all of its tokens"
        )
    limit = system.validation_limit(recipe)
    unseen: Labelled = ([], []) if evaluated is None or limit == 0 else examples(evaluated, limit=limit, **how)
    return Data((instances, labels), unseen, names, query, in_turn(texts, copies), copies=copies)
