"""The public functions `score` and `compare`."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from os.path import exists
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from eraser_hub.records.arguments import PYTHON, GoldForm, Place
from eraser_hub.records.errors import UsageError

if TYPE_CHECKING:
    from .compare import Comparison
    from .result import Scores

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
    from .runs import parse_systems
    from .score import ScoreSettings, score_system
    from .scored_split import open_split

    (system,) = parse_systems([predictions], seeds=True)
    source = open_split(dataset, config, split, annotations)
    inputs = check_output(out, force, [*system.paths, dataset, annotations])
    settings = ScoreSettings(
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
    scores = score_system(source, system, settings, metrics)
    # a file's own name is none of a system
    scores.name = system.name if str(predictions).startswith(f"{system.name}=") and not exists(predictions) else ""
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
        dataset: Built dataset, a corpus as released, Hub id, or file of gold rationales.
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

    from .compare import compare as compare_runs
    from .compare import compare_files, name_runs
    from .runs import parse_systems
    from .score import ScoreSettings
    from .scored_split import open_split
    from .statistics import DRAWS

    shown, resamples = split_keys(scores), DRAWS if resamples is None else resamples
    check_inference(confidence_level, resamples, seed, "resamples")
    inference: dict[str, Any] = {"primary": split_keys(primary), "minimum_effect": minimum_effect, "seed": seed}
    inference |= {"confidence_level": confidence_level, "resamples": resamples}
    given = list(systems[0]) if len(systems) == 1 and isinstance(systems[0], list | tuple) else list(systems)
    if len(given) == 1 and isinstance(given[0], Mapping) and not hasattr(given[0], "statistics"):
        predictions, given = given[0], []
    if given and not predictions and not any(isinstance(system, str | os.PathLike) for system in given):
        beside: dict[str, Any] = {"dataset": dataset, "config": config, "split": split, "gold": gold}
        beside |= {
            "cluster_by": cluster_by,
            "annotations": annotations,
            "iou_thresholds": tuple(iou_thresholds),
            "unmarked": unmarked,
        }
        beside |= {"aopc_thresholds": aopc_thresholds, "only_predicted": only_predicted}
        for name, value in beside.items():
            if value != inspect.signature(compare).parameters[name].default:
                raise UsageError("expected files of predictions beside it: scores have theirs already", argument=name)
        inputs = check_output(out, force, [place for system in given for place in getattr(system, "inputs", ())])
        comparison = compare_runs(**name_runs(given, names), **inference)
    else:
        if names is not None:
            raise UsageError("expected NAME=FILE for files, which names a system", argument="names")
        files = parse_systems(given, predictions, seeds=True)
        if len(files) < 2:
            raise UsageError("expected the predictions of at least two systems", argument="predictions")
        if dataset is None:
            raise UsageError("expected the dataset that the predictions answer, found none", argument="dataset")
        source = open_split(dataset, config, split, annotations)
        inputs = check_output(out, force, [*(path for system in files for path in system.paths), dataset, annotations])
        settings = ScoreSettings(
            iou_thresholds=tuple(iou_thresholds) or (0.5,),
            aopc_thresholds=aopc_thresholds,
            unmarked=unmarked,
            gold=gold,
            only_predicted=only_predicted,
            cluster_by=cluster_by,
            people=False,
            keep_rows=True,
        )
        comparison = compare_files(source, files, settings, **inference)
    comparison.inputs = inputs
    comparison.show(shown)
    if out is not None:
        comparison.save(out, force)
    return comparison


def check_output(out: Place | None, force: bool, places: Sequence[Any]) -> Sequence[Path]:
    """Return the files and folders that are read; an output that may not be replaced is refused before any work."""
    from eraser_hub.records.files import OutputWriter
    from eraser_hub.records.predictions import find_inputs

    inputs = find_inputs(*(None if place is None else Path(place) for place in places))
    if out is not None:
        if form := {".csv": "csv", ".md": "markdown", ".tex": "latex"}.get(Path(out).suffix):
            message = f"expected a JSON file, found {Path(out).name}: `--format {form}` prints the table"
            raise UsageError(message, argument="out")
        OutputWriter(inputs, force).check(Path(out))
    return inputs


def split_keys(keys: str | Sequence[str]) -> tuple[str, ...]:
    """Return the keys of one string, or of several, with commas between them.

    >>> split_keys("token_macro_f1,auprc"), split_keys(["auprc"])
    (('token_macro_f1', 'auprc'), ('auprc',))
    """
    several = [keys] if isinstance(keys, str) else keys
    return tuple(key.strip() for text in several for key in text.split(",") if key.strip())
