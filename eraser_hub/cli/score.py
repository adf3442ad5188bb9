"""``eraser-hub score``: a model's predictions against a corpus."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .scored import (
    Annotations,
    AopcThresholds,
    ClusterBy,
    Config,
    DataDir,
    Dataset,
    IouThresholds,
    check_source,
    settings_of,
    spelled,
)
from .usage import Format, OnlyPredicted, Revision, Seed, Split, at_revision, chosen, print_tables, say, takes

if TYPE_CHECKING:
    from eraser_hub.scoring.scored_split import ScoredSplit
    from eraser_hub.scoring.scores import Scores
    from eraser_hub.scoring.settings import ScoreSettings


@dataclass(frozen=True, slots=True)
class ScoreOptions:
    """The options of ``eraser-hub score``, and their help.

    Attributes:
        results: Predictions, jsonl or Parquet: a file, https:// or hf://.
        score_file: Where the scores go, as JSON.
        strict: Demand IOU thresholds, labels, class scores and comprehensiveness scores.
        auprc_policy: AUPRC of a document without evidence: reference (0.5), skip, zero or one.
        random_baseline: Also score this many shuffles of the soft scores (the papers: 10).
        sentence_threshold: A sentence is predicted from this score on.
        confidence_level: Adds bootstrap intervals, e.g. 0.95.
        n_resamples: Bootstrap resamples (1000).
        ci_method: bca or percentile.
        per_instance: Add every score of every instance.
        by: Break the scores down by this field of the annotations.
        mask_leak: Also how well the places and number of selected tokens alone tell the model's labels.
        paper: Make all choices of this paper's code: eraser, wang2022.
        num_proc: Processes that read predictions (0: more than one for large files).
        eval_results: ORG/MODEL: also write the scores as the Hub shows a model's, below eval_results/ORG/MODEL; needs
            --dataset.
    """

    results: str
    data_dir: DataDir = None
    dataset: Dataset = None
    config: Config = None
    split: Split = "test"
    revision: Revision = None
    score_file: Path | None = None
    annotations: Annotations = None
    iou_thresholds: IouThresholds = None
    aopc_thresholds: AopcThresholds = None
    strict: Annotated[bool, typer.Option("--strict")] = False
    auprc_policy: str = "reference"
    random_baseline: Annotated[int, typer.Option(min=0)] = 0
    sentence_threshold: float = 0.5
    confidence_level: float | None = None
    n_resamples: int | None = None
    ci_method: str = "bca"
    seed: Seed = 0
    per_instance: Annotated[bool, typer.Option("--per-instance")] = False
    by: str | None = None
    cluster_by: ClusterBy = "auto"
    only_predicted: OnlyPredicted = False
    mask_leak: Annotated[bool, typer.Option("--mask-leak")] = False
    paper: str | None = None
    num_proc: Annotated[int, typer.Option(min=0)] = 0
    eval_results: str | None = None
    format: Format = "text"


@takes(ScoreOptions)
def score(options: ScoreOptions) -> None:
    """Score predictions against a corpus: the reference scorer's keys, and more.

    Examples:

        eraser-hub score --data-dir corpora/movies --split val --results predictions.jsonl --score-file scores.json

        eraser-hub score --dataset hub/eraser --config movies --split test --results predictions.parquet

        eraser-hub score --data-dir corpora/movies --split val --results predictions.jsonl
        --iou-thresholds 0.1 --iou-thresholds 0.5 --confidence-level 0.95 --by classification
    """
    from eraser_hub.conversion.download.addresses import local_file
    from eraser_hub.scoring.score import score as run
    from eraser_hub.scoring.scored_split import ScoredSplit

    check_source(options.data_dir, options.dataset, options.config, options.annotations)
    _check_model(options.eval_results, options.dataset)
    dataset = options.dataset and Path(at_revision(str(options.dataset), options.revision))
    if options.strict and not options.iou_thresholds:
        raise typer.BadParameter("--strict needs --iou-thresholds")
    more = chosen(
        options,
        "strict auprc_policy random_baseline sentence_threshold per_instance confidence_level n_resamples seed "
        "ci_method by cluster_by only_predicted mask_leak paper",
    )
    settings = settings_of(options.iou_thresholds, options.aopc_thresholds, totals_only=True, **more)
    path = local_file(options.results)
    source = ScoredSplit(dataset=dataset, **chosen(options, "data_dir split annotations config"))
    if source.holds_pairs:
        _refuse_odd(settings)
    scores = run(source, path, settings, options.num_proc)
    for line in (*scores.notes, *scores.cautions):
        say(spelled(line))
    _write(options, source, scores)


def _check_model(eval_results: str | None, dataset: Path | None) -> None:
    """Refuse what is no model's id, and a corpus as released, which has no place on the Hub."""
    if eval_results is None:
        return
    from eraser_hub.publishing.eval_results import check_model

    if dataset is None:
        raise typer.BadParameter("results answer a dataset of the Hub: give --dataset", param_hint="--eval-results")
    check_model(eval_results)


def _refuse_odd(settings: ScoreSettings) -> None:
    """Refuse settings that records of the perturbation benchmark are not scored by."""
    from dataclasses import fields

    taken = ("confidence_level", "n_resamples", "seed", "only_predicted", "cluster_by", "paper", "totals_only")
    odd = [one.name for one in fields(settings) if one.name not in taken and getattr(settings, one.name) != one.default]
    if odd:
        raise typer.BadParameter(f"{', '.join(odd)}: not for bilingual_perturbation")


def _write(options: ScoreOptions, source: ScoredSplit, scores: Scores) -> None:
    """Write the scores wherever they are asked for."""
    content = scores.as_json()
    if options.score_file is not None:
        scores.save(options.score_file)
    if options.eval_results is not None:
        from eraser_hub.publishing.eval_results import write_eval_results  # slow to import, seldom asked for

        address = options.results if options.results.startswith("https://") else None
        paths, notes = write_eval_results(options.eval_results, content, source.built, source=address)
        for line in (*notes, *(f"written: {path}" for path in paths)):
            say(line)
    signatures = scores.signatures if scores.reference is None else [scores.signature]
    print_tables(scores.table(), options.format, content, signatures)
