"""The public functions `score` and `compare`."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from os.path import exists
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from eraser_hub.records.arguments import PYTHON, GoldForm, Place
from eraser_hub.records.errors import UsageError
from eraser_hub.records.places import find_place

if TYPE_CHECKING:
    from .compare import Comparison
    from .result import Scores
    from .scored_split import ScoredSplit
    from .settings import ScoreSettings

SCORES, UNCERTAINTY, OUTPUT = Parameter(group="Scores"), Parameter(group="Uncertainty"), Parameter(group="Output")


def score(
    predictions: Place,
    dataset: Place,
    *,
    config: str | None = None,
    split: str = "test",
    gold: Annotated[GoldForm, SCORES] = "evidence",
    by: Annotated[str | None, SCORES] = None,
    paper: Annotated[Literal["eraser", "wang2022"] | None, SCORES] = None,
    metric: Annotated[str | Callable[..., float] | Sequence[str | Callable[..., float]], SCORES] = (),
    only_predicted: Annotated[bool, SCORES] = False,
    confidence_level: Annotated[float | None, UNCERTAINTY] = None,
    resamples: Annotated[int | None, UNCERTAINTY] = None,
    cluster_by: Annotated[str, UNCERTAINTY] = "auto",
    seed: Annotated[int, UNCERTAINTY] = 0,
    out: Annotated[Place | None, OUTPUT] = None,
    force: Annotated[bool, OUTPUT] = False,
    iou_thresholds: Annotated[Sequence[float], PYTHON] = (0.5,),
    aopc_thresholds: Annotated[Sequence[float] | None, PYTHON] = None,
    auprc_policy: Annotated[str, PYTHON] = "reference",
    sentence_threshold: Annotated[float, PYTHON] = 0.5,
    unmarked: Annotated[str | None, PYTHON] = None,
    per_instance: Annotated[bool, PYTHON] = False,
    people: Annotated[bool, PYTHON] = True,
    annotations: Annotated[Place | None, PYTHON] = None,
) -> Scores:
    """Score predictions against a corpus.

    Args:
        predictions: Predictions, JSON Lines or Parquet: a file, https:// or hf://; NAME=FILE,FILE for runs of a system.
        dataset: Built dataset, a corpus as released, Hub id, or file of gold rationales.
        config: Config; by default the only or the default one.
        split: Split, as the Hub or the release calls it.
        gold: Gold rationales: as they stand, or the majority or union of the annotators' marks.
        by: Break the scores down by this field of the annotations.
        paper: Make all choices of this paper's code.
        metric: A score of your own, FILE.py:FUNCTION, of (row, instance) to a number.
        only_predicted: Score only annotations with an instance.
        confidence_level: Level of intervals, as .95; no intervals by default.
        resamples: Bootstrap resamples; 1000 by default.
        cluster_by: What intervals draw together: auto (annotations that share a document), none, or a field.
        seed: Seed of all random draws.
        out: JSON file to write the scores to.
        force: Replace a file that no run wrote.
        iou_thresholds: those of IOU, in (0, 1]; keys of .5 (else of the first) have no suffix.
        aopc_thresholds: those that every instance must have; by default those of the first.
        auprc_policy: AUPRC of a document without evidence: reference (0.5), skip, zero or one.
        sentence_threshold: the lowest score of a predicted sentence.
        unmarked: "score" or "skip" annotations without gold rationale in agreement; by default skip, but score those
            of the configs that this package builds.
        per_instance: keep every score of every instance.
        people: score each annotator against the majority of the others, where annotators are known.
        annotations: annotation file of a corpus as released, in place of SPLIT.jsonl.

    Returns:
        The scores, a mapping; ``table()``, ``to_frame()`` and ``save(path)`` give them in other forms.

    Raises:
        DataError: bad data: the first fault, with file and line, and the number of further ones.

    Examples:
        >>> from eraser_hub import samples, score
        >>> predictions = samples.path("predictions", "eraser", "movies.val.jsonl")
        >>> scores = score(predictions, "hub/eraser", config="movies", split="val")
        >>> scores.names["split"], "token_macro_f1" in scores
        ('validation', True)

        $ eraser-hub score --predictions p.jsonl --dataset hub/eraser --config movies --split val --out scores.json
        $ eraser-hub score --predictions p.jsonl --dataset corpora/movies --split val --confidence-level .95 \
          --by classification
    """
    from .result import average_runs
    from .runs import parse_systems
    from .score import score_flat, score_system

    given = as_path(predictions)
    systems = parse_systems([given], seeds=True)
    source = find_references(dataset, config, split, annotations)
    inputs = check_output(out, force, [*systems[0].paths, dataset, annotations])
    settings = make_settings(
        iou_thresholds=tuple(iou_thresholds) or (0.5,),
        aopc_thresholds=aopc_thresholds,
        auprc_policy=auprc_policy,
        sentence_threshold=sentence_threshold,
        unmarked=unmarked,
        gold=gold,
        only_predicted=only_predicted,
        by=by,
        cluster_by=cluster_by,
        per_instance=per_instance,
        confidence_level=confidence_level,
        n_resamples=resamples,
        seed=seed,
        paper=paper,
        people=people,
    )
    metrics = [metric] if isinstance(metric, str) or callable(metric) else list(metric)
    if isinstance(source, Path):
        for name, value, default in (("config", config, None), ("split", split, "test"), ("paper", paper, None)):
            if value != default:
                message = f"expected none beside the file of gold rationales {source}, found {value!r}"
                raise UsageError(message, argument=name)
        scores = average_runs([score_flat(source, path, settings, metrics) for path in systems[0].paths])
    else:
        scores = score_system(source, systems[0], settings, metrics)
    # a file's own name is none of a system
    scores.name = systems[0].name if given.startswith(f"{systems[0].name}=") and not exists(given) else ""
    scores.inputs = inputs
    if out is not None:
        scores.save(out, force)
    return scores


def compare(
    *systems: Any,
    predictions: str | Sequence[str] | Mapping[str, Any] = (),
    dataset: Place | None = None,
    config: str | None = None,
    split: str = "test",
    gold: Annotated[GoldForm, SCORES] = "evidence",
    primary: Annotated[str | Sequence[str], SCORES] = (),
    scores: Annotated[str | Sequence[str], SCORES] = (),
    minimum_effect: Annotated[float, UNCERTAINTY] = 0.0,
    confidence_level: Annotated[float, UNCERTAINTY] = 0.95,
    resamples: Annotated[int | None, UNCERTAINTY] = None,
    cluster_by: Annotated[str, UNCERTAINTY] = "auto",
    seed: Annotated[int, UNCERTAINTY] = 0,
    out: Annotated[Place | None, OUTPUT] = None,
    force: Annotated[bool, OUTPUT] = False,
    names: Annotated[Sequence[str] | None, PYTHON] = None,
    iou_thresholds: Annotated[Sequence[float], PYTHON] = (0.5,),
    aopc_thresholds: Annotated[Sequence[float] | None, PYTHON] = None,
    unmarked: Annotated[str | None, PYTHON] = None,
    only_predicted: Annotated[bool, PYTHON] = False,
    annotations: Annotated[Place | None, PYTHON] = None,
) -> Comparison:
    """Compare systems on the same split, score by score.

    Every pair is tested: one run each by exchanging documents, several runs by a model of documents and runs.
    "p Holm" is corrected over the headline scores times the pairs; a star marks the better system. "detectable" is
    the difference that the test finds in four cases of five.

    Args:
        systems: two or more: files of predictions, or one mapping of names to files, which need ``dataset``; or what
            ``score(.., per_instance=True)`` gave; or statistics of a metric module.
        predictions: FILE, NAME=FILE, or NAME=FILE,FILE for runs of one system; repeat it for each system.
        dataset: Built dataset, a corpus as released, or Hub id.
        config: Config; by default the only or the default one.
        split: Split, as the Hub or the release calls it.
        gold: Gold rationales: as they stand, or the majority or union of the annotators' marks.
        primary: Score to test, declared in advance, in place of the headline scores.
        scores: Scores to print, in this order: KEY,KEY.
        minimum_effect: Smallest difference that matters, in the scores' units.
        confidence_level: Level of the intervals of differences.
        resamples: Exchanges of documents of the test, where more than 12 differ; 10,000 by default.
        cluster_by: What belongs together: auto (annotations that share a document), none, or a field.
        seed: Seed of all random draws.
        out: JSON file to write the result to.
        force: Replace a file that no run wrote.
        names: names of scores or statistics.
        iou_thresholds: those of IOU, in (0, 1].
        aopc_thresholds: those that every instance must have; by default those of the first.
        unmarked: "score" or "skip" annotations without gold rationale in agreement.
        only_predicted: compare on the annotations that all systems have.
        annotations: annotation file of a corpus as released, in place of SPLIT.jsonl.

    Returns:
        A dictionary: ``scores``, ``comparisons`` with differences, intervals and p-values, ``notes`` and ``signature``.
        ``table()``, ``to_frame()`` and ``save(path)`` give it in other forms, and a notebook shows it.

    Raises:
        DataError: what ``score`` refuses; systems that share no score or no instances.

    Examples:
        >>> from eraser_hub import compare, samples
        >>> folder = samples.path("predictions", "eraser")
        >>> one, other = folder / "movies.val.jsonl", folder / "movies.val.baseline.jsonl"
        >>> result = compare(one, other, dataset="hub/eraser", config="movies", split="val", resamples=100)
        >>> [(pair["first"], pair["second"]) for pair in result["comparisons"]]
        [('movies.val', 'movies.val.baseline')]

        $ eraser-hub compare --dataset hub/eraser --config movies --predictions ours=a1.jsonl,a2.jsonl \
          --predictions theirs=b.jsonl
        $ eraser-hub compare --dataset hub/eraser --config movies --predictions a.jsonl --predictions b.jsonl \
          --format latex --scores token_macro_f1,auprc
    """
    from eraser_hub.metrics.statistics import check_inference

    from .compare import compare as run
    from .runs import parse_systems
    from .score import compare_systems
    from .statistics import DRAWS

    shown = split_keys(scores)
    check_inference(confidence_level, DRAWS if resamples is None else resamples, seed, "resamples")
    inference: dict[str, Any] = {"primary": split_keys(primary), "minimum_effect": minimum_effect, "seed": seed}
    inference |= {"confidence_level": confidence_level} | ({} if resamples is None else {"resamples": resamples})
    given: list[Any] = list(systems)
    if len(given) == 1 and isinstance(given[0], Mapping) and not hasattr(given[0], "statistics"):
        predictions, given = given[0], []
    elif len(given) == 1 and isinstance(given[0], list | tuple):
        given = list(given[0])
    if given and not predictions and not any(isinstance(system, str | os.PathLike) for system in given):
        beside: dict[str, tuple[Any, Any]] = {
            "dataset": (dataset, None),
            "config": (config, None),
            "split": (split, "test"),
            "gold": (gold, "evidence"),
            "cluster_by": (cluster_by, "auto"),
            "annotations": (annotations, None),
            "iou_thresholds": (tuple(iou_thresholds), (0.5,)),
            "aopc_thresholds": (aopc_thresholds, None),
            "unmarked": (unmarked, None),
            "only_predicted": (only_predicted, False),
        }
        for name in (name for name, (value, default) in beside.items() if value != default):
            raise UsageError("expected files of predictions beside it: scores have theirs already", argument=name)
        inputs = check_output(out, force, [place for system in given for place in getattr(system, "inputs", ())])
        return finish_comparison(run(**gather_runs(given, names), **inference), shown, inputs, out, force)
    if names is not None:
        raise UsageError("expected NAME=FILE for files, which names a system", argument="names")
    files = parse_systems([*map(as_path, given), *name_files(predictions)], seeds=True)
    if len(files) < 2:
        raise UsageError("expected the predictions of at least two systems", argument="predictions")
    if dataset is None:
        raise UsageError("expected the dataset that the predictions answer, found none", argument="dataset")
    source = find_references(dataset, config, split, annotations)
    if isinstance(source, Path):
        raise UsageError(
            f"expected a built dataset or a corpus as released, found the file {source}", argument="dataset"
        )
    inputs = check_output(out, force, [*(path for system in files for path in system.paths), dataset, annotations])
    settings = make_settings(
        iou_thresholds=tuple(iou_thresholds) or (0.5,),
        aopc_thresholds=aopc_thresholds,
        unmarked=unmarked,
        gold=gold,
        only_predicted=only_predicted,
        cluster_by=cluster_by,
        people=False,
        keep_rows=True,
    )
    return finish_comparison(compare_systems(source, files, settings, **inference), shown, inputs, out, force)


def find_references(
    dataset: Place, config: str | None = None, split: str = "test", annotations: Place | None = None
) -> ScoredSplit | Path:
    """Return the split that predictions answer; of a file of gold rationales the file.

    Args:
        dataset: a built dataset's folder, its id on the Hub, a corpus as released, or a file of gold rationales.
        config: of a built dataset; of a corpus as released the one that gives the labels.
        split: the split.
        annotations: annotation file of a corpus as released, in place of SPLIT.jsonl.
    """
    from .scored_split import ScoredSplit

    if "/" not in os.fspath(dataset) and not exists(dataset) and exists(Path("hub") / dataset / "README.md"):
        dataset = Path("hub") / dataset  # by its name, as `check` and `explain` take it
    path, kind = Path(dataset), find_place(dataset).kind
    if kind == "rows":
        return path
    if kind == "raw":
        return ScoredSplit(path, split, None if annotations is None else Path(annotations), config=config)
    if annotations is not None:
        raise UsageError("expected a corpus as released beside it, found a built dataset", argument="annotations")
    return ScoredSplit(split=split, dataset=path, config=config)


def make_settings(**values: Any) -> ScoreSettings:
    """Return how predictions are scored; a `DataError` names an argument that is out of its range."""
    from .settings import ScoreSettings

    settings = ScoreSettings(**values)
    settings.check()
    return settings


def check_output(out: Place | None, force: bool, places: Sequence[Any]) -> Sequence[Path]:
    """Return the files and folders that are read; an output that may not be replaced is refused before any work."""
    from eraser_hub.records.files import OutputWriter
    from eraser_hub.records.predictions import find_inputs

    inputs = find_inputs(*(None if place is None else Path(place) for place in places))
    if out is not None:
        OutputWriter(inputs, force).check(Path(out))
    return inputs


def split_keys(keys: str | Sequence[str]) -> tuple[str, ...]:
    """Return the keys of one string, or of several, with commas between them.

    >>> split_keys("token_macro_f1,auprc"), split_keys(["auprc"])
    (('token_macro_f1', 'auprc'), ('auprc',))
    """
    several = [keys] if isinstance(keys, str) else keys
    return tuple(key.strip() for text in several for key in text.split(",") if key.strip())


def as_path(system: Any) -> str:
    """Return a file of predictions as a string."""
    if not isinstance(system, str | os.PathLike):
        message = f"expected a file, or NAME=FILE,FILE for several runs of a system, found {system!r}"
        raise UsageError(message, argument="predictions")
    return os.fspath(system)


def name_files(predictions: str | Sequence[str] | Mapping[str, Any]) -> list[str]:
    """Return ``NAME=FILE,FILE`` for each name of a mapping; strings as they are."""
    if not isinstance(predictions, Mapping):
        several = [predictions] if isinstance(predictions, str | os.PathLike) else predictions
        return [as_path(file) for file in several]
    named = []
    for name, files in predictions.items():
        several = [as_path(file) for file in ([files] if isinstance(files, str | os.PathLike) else files)]
        if not isinstance(name, str) or not name or "=" in name or (len(several) > 1 and "," in "".join(several)):
            message = f"expected names without = and several paths without commas, found {name!r}: {several}"
            raise UsageError(message, argument="predictions")
        named.append(f"{name}={','.join(several)}")
    return named


def gather_runs(systems: Sequence[Any], names: Sequence[str] | None) -> dict[str, Any]:
    """Return the arguments ``systems`` and ``chance`` of `compare.compare` for scores, or statistics of modules."""
    from .result import Scores
    from .score import get_runs

    if names is not None and len(set(names)) != len(systems):
        raise UsageError(f"expected {len(systems)} different names, found {list(names)}", argument="names")
    given = [getattr(system, "name", "") or f"system {number}" for number, system in enumerate(systems, 1)]
    data = {system.data_digest[:12] for system in systems if isinstance(system, Scores)}
    if len(data) > 1:
        raise UsageError(f"expected scores of the same data, found {', '.join(sorted(data))}", argument="systems")
    named = dict(zip(names or given, systems, strict=True))
    chance = {name: system.chance for name, system in named.items() if isinstance(system, Scores)}
    return {"systems": {name: get_runs(system) for name, system in named.items()}, "chance": chance}


def finish_comparison(
    comparison: Comparison, shown: Sequence[str], inputs: Sequence[Path], out: Place | None, force: bool
) -> Comparison:
    """Set what a comparison shows and what it was made from, and save it where a file is named."""
    comparison.inputs = inputs
    comparison.show(shown)
    if out is not None:
        comparison.save(out, force)
    return comparison
