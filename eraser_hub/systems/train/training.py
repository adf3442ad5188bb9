"""``eraser-hub train``: from a recipe to a model folder and its figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from eraser_hub.attribution.dataset import Split, kd_of, open_split, queries_differ
from eraser_hub.attribution.instances import Instance
from eraser_hub.attribution.models.subwords import subwords_of
from eraser_hub.attribution.open import TOKENIZER, UNFINISHED, looks_like_a_path, open_model
from eraser_hub.attribution.settings import preset_of
from eraser_hub.attribution.transformers.multiple_choice import answers_of
from eraser_hub.papers.presets import preset
from eraser_hub.records.errors import DataError, shown
from eraser_hub.records.extras import need
from eraser_hub.records.splits import dataset_split
from eraser_hub.systems.networks.systems import SYSTEMS, grid_of, hyper_of

from .answers import learns_answers, train_answers
from .baselines import BASELINES, LARGEST_SEED, examples, fit_baseline, save_baseline
from .carton import PAPER, fit_carton
from .data import Data, Labelled
from .evaluation import Evaluation, evaluate_on
from .recipe import CLASSIFICATION, MULTIPLE_CHOICE, TASKS, Recipe
from .subsets import SUBSETS, SUBSETS_EACH, in_turn, subsets_of
from .unfinished import saving, unfinished

# paper 004, Table 3
REGIMES = {
    ("full", "full"): "no-rationale",
    ("full", "rationale"): "eval-rationale",
    ("rationale", "rationale"): "train-eval-rationale",
    ("subsets", "full"): "subsets-eval-full",
    ("subsets", "rationale"): "subsets-eval-rationale",
}
TRAIN_ON = ("full", "rationale", SUBSETS)


def train_model(
    recipe: Recipe, out: Path, train_on: str, regimes: bool, say: Callable[[str], None], figures: bool = True
) -> Iterator[str]:
    """Train, save into ``out``, and give a line of figures per regime.

    Args:
        out: the model's folder; a model that lies there is replaced.
        train_on: ``full``, ``rationale`` (the human rationale's tokens alone), or ``subsets`` (random ones, for
            EVAL-X).
        regimes: train the other way too, beside ``out``'s model, for paper 004's three regimes.
        say: called with lines of progress.
        figures: evaluate what was trained; where it is False the evaluation split serves validation alone.

    Raises:
        DataError: unknown model or split, no labels, no rationales where they are asked for, a seed out of range.
    """
    need("sklearn", "skops")
    if not 0 <= recipe.seed <= LARGEST_SEED:
        raise DataError(f"--seed: expected 0 to {LARGEST_SEED}, found {recipe.seed}", rule="option-value")
    if out.exists() and not out.is_dir():
        raise DataError("--out: expected a folder, found a file", rule="file-kind", file=out)
    strangers = [path.name for path in out.iterdir() if path.name[0] != "."] if out.is_dir() else []
    if strangers and not (out / "model.json").is_file() and not (out / UNFINISHED).is_dir():
        raise DataError(
            f"--out: expected a new folder, or a model's of `train`, found {shown(sorted(strangers)[0])} "
            "and no model.json",
            rule="file-exists",
            file=out,
        )
    data = open_split(recipe.dataset, recipe.config, recipe.split)
    query = queries_differ(data) if recipe.query is None else recipe.query
    if recipe.task not in TASKS:
        raise DataError(f"--task: expected one of {', '.join(TASKS)}; found {shown(recipe.task)}", rule="option-value")
    check_options(recipe)
    if train_on == SUBSETS:
        check_evaluator(recipe, regimes)
    answers = learns_answers(recipe, data, train_on, regimes)
    evaluated = evaluation_split(recipe)
    identity = {**recipe.identity(), "train_on": train_on}
    known: Evaluation | None = None
    with unfinished(out, identity, recipe.resume, say) as folder:
        if answers:
            yield from train_answers(recipe, data, evaluated, out, folder, say)
        else:
            known = _fit(recipe, data, out, folder, train_on, query, evaluated, say)
            yield f"{out}: {recipe.model} trained on the {train_on} text of {recipe.split}"
        if evaluated is None and recipe.eval_split is None:
            say("not evaluated: no other split with labels; --eval-split names one")
        if evaluated is None or answers or not figures:
            return
        yield from _figures(recipe, out, train_on, evaluated, known, say)
        if regimes:
            other = "rationale" if train_on == "full" else "full"
            with unfinished(folder / "regime", {**identity, "train_on": other}, recipe.resume, say) as inner:
                known = _fit(recipe, data, folder / "regime", inner, other, query, evaluated, say)
                yield from _figures(recipe, folder / "regime", other, evaluated, known, say)


def check_options(recipe: Recipe) -> None:
    """Refuse, before anything is read, an unknown preset and options that the model would not use.

    Raises:
        DataError: says which.
    """
    if recipe.model in SYSTEMS:
        for trial in grid_of(recipe.grid):
            settings = (*recipe.hyper, *trial)
            hyper_of(recipe.model, recipe.encoder, {**recipe.options(), "window": recipe.window}, settings)
        if recipe.encoder and recipe.embeddings:
            raise DataError("--embeddings: expected --embeddings or --encoder, found both", rule="option-conflict")
    else:
        for option, value in (
            ("--encoder", recipe.encoder),
            ("--embeddings", recipe.embeddings),
            ("--set", recipe.hyper),
            ("--grid", recipe.grid),
        ):
            if value:
                raise DataError(f"{option}: only {', '.join(SYSTEMS)} take it, not {recipe.model}", rule="unsupported")
    if recipe.task == MULTIPLE_CHOICE and recipe.model in (*BASELINES, *SYSTEMS):
        words = f"--task {MULTIPLE_CHOICE}: transformers models alone learn to choose, not {recipe.model}"
        raise DataError(words, rule="unsupported")
    if recipe.workers > 1:
        if not recipe.grid:
            words = "--workers: combinations of a --grid are trained side by side, found no --grid"
            raise DataError(words, rule="option-missing")
        need("ray")
    preset_of(recipe.paper)  # it refuses an unknown one
    if recipe.tokenizer and not (recipe.paper == PAPER and recipe.model in BASELINES):
        raise DataError(f"--tokenizer: only the baselines of --paper {PAPER} count sub-words", rule="option-conflict")


def check_evaluator(recipe: Recipe, regimes: bool) -> None:
    """Refuse what random subsets cannot train.

    Raises:
        DataError: says what.
    """
    system = SYSTEMS.get(recipe.model)
    if system is not None and (system.selects or system.stages):
        words = f"--train-on {SUBSETS}: expected a model that reads all it is given, {recipe.model} selects for itself"
        raise DataError(words, rule="unsupported")
    if recipe.paper == PAPER and recipe.model in BASELINES:
        words = f"--train-on {SUBSETS}: not with --paper {PAPER}, which trains on whole texts"
        raise DataError(words, rule="option-conflict")
    if regimes:
        words = f"--regimes: expected --train-on full or rationale beside it, found {SUBSETS}"
        raise DataError(words, rule="option-conflict")


def evaluation_split(recipe: Recipe) -> Split | None:
    """The split to evaluate on: the one asked for, or validation where it has labels and was not trained on.

    Raises:
        DataError: the split asked for is not there, or has no labels.
    """
    if recipe.eval_split == "":
        return None
    if recipe.eval_split:
        split = open_split(recipe.dataset, recipe.config, recipe.eval_split)
        # looked for before the training, which may take hours
        if not has_labels(split):
            words = f"--eval-split {recipe.eval_split}: expected labelled instances, found none"
            raise DataError(words, rule="label-missing", file=split.name)
        return split
    if dataset_split(recipe.split) == "validation":
        return None
    try:
        split = open_split(recipe.dataset, recipe.config, "validation")
    except DataError:
        return None
    return split if has_labels(split) else None


def _figures(
    recipe: Recipe, model: Path, train_on: str, split: Split, known: Evaluation | None, say: Callable[[str], None]
) -> Iterator[str]:
    """A line for each regime; ``known``: what the training already found on the text that it trains on."""
    adapter = open_model(model, trust_remote_code=recipe.trust_remote_code)
    for seen in ("full", "rationale"):
        name = REGIMES.get((train_on, seen))
        if name is None or (seen == "rationale" and not has_rationales(split)):
            continue
        rationale_only = seen == "rationale"
        figures = known if rationale_only == (train_on == "rationale") else None
        if figures is None:
            figures = evaluate_on(
                adapter, split, rationale_only=rationale_only, limit=recipe.limit, seed=recipe.seed, say=say
            )
        drawn = "" if recipe.limit is None else f"at most {recipe.limit} by --limit: "
        yield (
            f"{name}: accuracy {figures.accuracy:.3f}, macro F1 {figures.macro_f1:.3f} "
            f"({drawn}{figures.instances} instances)"
        )


def all_choices(instances: Sequence[Instance], label_names: Sequence[str]) -> bool:
    """Whether every query holds one answer for each label, ``[sep]`` between."""
    return len(label_names) > 1 and all(len(answers_of(one)) == len(label_names) for one in instances)


def has_labels(split: Split) -> bool:
    """Whether any of the split's rows has a label."""
    return any(one.label is not None for one in split.instances())


def has_rationales(split: Split) -> bool:
    """Whether the split's rows carry human rationales."""
    first = next(split.instances(), None)
    return first is not None and first.rationale is not None


def _fit(
    recipe: Recipe,
    data: Split,
    out: Path,
    folder: Path,
    train_on: str,
    query: bool,
    evaluated: Split | None,
    say: Callable[[str], None],
) -> Evaluation | None:
    """Train and save; gives how well the model does on the validation split, where training had to find that out."""
    rationale_only = train_on == "rationale"
    instances, labels = examples(
        data, rationale_only=rationale_only, uses_query=query, limit=recipe.limit, seed=recipe.seed
    )
    among = Counter(labels)
    if len(among) < 2:
        words = f"expected at least two labels to tell apart, found {', '.join(among)}"
        raise DataError(words, rule="label-missing", file=data.name)
    if recipe.limit is not None:
        counts = ", ".join(f"{number} {label}" for label, number in sorted(among.items()))
        say(f"--limit: {len(labels)} labelled instances, drawn by seed {recipe.seed} with each label's share: {counts}")
    counted = len(instances)
    if train_on == SUBSETS:
        instances, labels = subsets_of(instances, recipe.seed), labels * SUBSETS_EACH
        say(
            f"{SUBSETS}: {SUBSETS_EACH} random subsets of each of {counted} texts, "
            "of a share between none and all of its tokens"
        )
    copies = len(instances) // counted
    facts: dict[str, Any] = {
        "dataset": Path(recipe.dataset).name,
        "config": data.config,
        "split": recipe.split,
        "train_on": train_on,
        "uses_query": query,
        "instances": counted,
        "label_names": list(data.label_names) or sorted(set(labels)),
        **({"paper": recipe.paper} if recipe.paper else {}),
    }
    if recipe.model in BASELINES and recipe.paper == PAPER:
        _fit_carton(recipe, (instances, labels), evaluated, facts, out, say)
        return None
    if recipe.model in BASELINES:
        joiner = recipe.joiner if recipe.joiner is not None else "" if recipe.features == "characters" else " "
        model, more = fit_baseline(
            recipe.model,
            instances,
            labels,
            features=recipe.features,
            joiner=joiner,
            seed=recipe.seed,
            say=say,
            copies=copies,
        )
        with saving(out):
            save_baseline(model, {**facts, **more}, out)
        return None
    unseen: tuple[list[Instance], list[str]] = ([], [])
    if recipe.model in SYSTEMS and evaluated is not None:
        unseen = examples(
            evaluated, rationale_only=rationale_only, uses_query=query, limit=recipe.limit, seed=recipe.seed
        )
    whole = Data((instances, labels), unseen, facts["label_names"], query, in_turn(counted, copies))
    if recipe.model in SYSTEMS:
        return _fit_system(recipe, whole, facts, out, folder, say, share=lambda: kd_of(data))
    _finetuned(recipe, whole, facts, out, folder, say)
    return None


def _fit_system(
    recipe: Recipe,
    data: Data,
    facts: dict[str, Any],
    out: Path,
    folder: Path,
    say: Callable[[str], None],
    share: Callable[[], float],
) -> Evaluation | None:
    need("torch", "transformers")
    if SYSTEMS[recipe.model].stages:
        from .pipelines import train_pipeline

        train_pipeline(recipe, data, facts, out, folder, say, share)
        return None
    from .networks import train_network

    figures = train_network(recipe, data, facts, out, folder, say)
    return Evaluation(figures["accuracy"], figures["macro_f1"], len(data.validation[0])) if figures else None


def _fit_carton(
    recipe: Recipe,
    train: Labelled,
    evaluated: Split | None,
    facts: dict[str, Any],
    out: Path,
    say: Callable[[str], None],
) -> None:
    """A baseline as the code of paper 004 fits it.

    Raises:
        DataError: no validation split to choose by.
    """
    if evaluated is None:
        words = f"--paper {PAPER}: expected a validation split with labels to choose by; --eval-split names one"
        raise DataError(words, rule="option-missing", file=recipe.dataset)
    theirs = preset(PAPER).training["tokenizer"]
    subwords = subwords_of(recipe.tokenizer or theirs, preset(PAPER).training["pieces"])
    say(f"sub-words by {recipe.tokenizer or theirs}" + (f", the paper's are {theirs}'s" if recipe.tokenizer else ""))
    validation = examples(evaluated, rationale_only=facts["train_on"] == "rationale", uses_query=facts["uses_query"])
    model, more = fit_carton(recipe.model, train, validation, subwords, recipe.seed, say)
    with saving(out):
        save_baseline(model, {**facts, **more}, out)
        subwords.tokenizer.save_pretrained(out / TOKENIZER)


def _finetuned(
    recipe: Recipe, data: Data, facts: dict[str, Any], out: Path, folder: Path, say: Callable[[str], None]
) -> None:
    if looks_like_a_path(recipe.model) and not Path(recipe.model).is_dir():
        words = f"--model: expected {', '.join((*BASELINES, *SYSTEMS))}, or a transformers folder or Hub id"
        raise DataError(words, rule="option-value", file=recipe.model)
    need("torch", "transformers")
    from .finetuning import finetune

    task = recipe.task
    if task == "auto":
        # CoS-E's labels are letters that stand for another answer in every question
        chooses = facts["uses_query"] and all_choices(data.train[0], data.label_names)
        task = MULTIPLE_CHOICE if chooses else CLASSIFICATION
    facts["task"] = task
    if preset(recipe.paper).choices.query_last:
        facts["query_last"] = True
    finetune(replace(recipe, task=task), data, out, folder, facts, say)
