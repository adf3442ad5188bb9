"""``eraser-hub score``: a model's predictions against a corpus."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def score(
    results: Annotated[Path, typer.Option(help="Predictions: ERASER instances, jsonl or Parquet.")],
    data_dir: Annotated[
        Path | None, typer.Option(help="The corpus as released: SPLIT.jsonl, docs/ or docs.jsonl.")
    ] = None,
    dataset: Annotated[
        Path | None, typer.Option(help="Instead of --data-dir: a built dataset, e.g. hub/eraser.")
    ] = None,
    config: Annotated[
        str | None,
        typer.Option(help="The configuration of --dataset, e.g. movies; with --data-dir the one whose labels count."),
    ] = None,
    split: Annotated[
        str, typer.Option(help="train, val (or validation), test, or a split of the corpus' own.")
    ] = "test",
    score_file: Annotated[Path | None, typer.Option(help="Where the scores go, as JSON.")] = None,
    annotations: Annotated[Path | None, typer.Option(help="An annotation file other than SPLIT.jsonl.")] = None,
    iou_thresholds: Annotated[list[float] | None, typer.Option(help="IOU threshold; repeat for several.")] = None,
    aopc_thresholds: Annotated[list[float] | None, typer.Option(help="AOPC threshold; repeat for several.")] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Demand IOU thresholds, labels, class scores and comprehensiveness scores.")
    ] = False,
    auprc_policy: Annotated[
        str, typer.Option(help="AUPRC of a document without evidence: reference (0.5), skip, zero or one.")
    ] = "reference",
    random_baseline: Annotated[
        int, typer.Option(min=0, help="Also score this many shuffles of the soft scores (the papers: 10).")
    ] = 0,
    sentence_threshold: Annotated[float, typer.Option(help="A sentence is predicted from this score on.")] = 0.5,
    confidence_level: Annotated[float | None, typer.Option(help="Adds bootstrap intervals, e.g. 0.95.")] = None,
    n_resamples: Annotated[int | None, typer.Option(help="Bootstrap resamples (1000).")] = None,
    ci_method: Annotated[str, typer.Option(help="percentile or bca.")] = "percentile",
    seed: Annotated[int, typer.Option(help="Seed of the bootstrap.")] = 0,
    per_instance: Annotated[bool, typer.Option("--per-instance", help="Add every score of every instance.")] = False,
    by: Annotated[str | None, typer.Option(help="Break the scores down by this field of the annotations.")] = None,
    num_proc: Annotated[
        int, typer.Option(min=0, help="Processes that read predictions (0: more than one for large files).")
    ] = 0,
) -> None:
    """Score predictions against a corpus: the reference scorer's keys, and more.

    Examples:

        eraser-hub score --data-dir corpora/movies --split val --results predictions.jsonl --score-file scores.json

        eraser-hub score --dataset hub/eraser --config movies --split test --results predictions.parquet

        eraser-hub score --data-dir corpora/movies --split val --results predictions.jsonl
        --iou-thresholds 0.1 --iou-thresholds 0.5 --confidence-level 0.95 --by classification
    """
    from eraser_hub.scoring.result import nested, run_signature, write_scores
    from eraser_hub.scoring.score import score as run
    from eraser_hub.scoring.settings import Inputs, ScoreSettings
    from eraser_hub.scoring.terminal import print_scores

    if (data_dir is None) == (dataset is None):
        raise typer.BadParameter("give either --data-dir, or --dataset with --config")
    if dataset is not None and config is None:
        raise typer.BadParameter("--dataset needs --config")
    if dataset is not None and annotations is not None:
        raise typer.BadParameter("--annotations goes with --data-dir")
    if strict and not iou_thresholds:
        raise typer.BadParameter("--strict needs --iou-thresholds")
    try:
        settings = ScoreSettings(
            iou_thresholds=tuple(iou_thresholds or (0.5,)),
            **({"aopc_thresholds": tuple(aopc_thresholds)} if aopc_thresholds else {}),  # type: ignore[arg-type]
            strict=strict,
            auprc_policy=auprc_policy,
            random_baseline=random_baseline,
            sentence_threshold=sentence_threshold,
            per_instance=per_instance,
            confidence_level=confidence_level,
            n_resamples=n_resamples,
            seed=seed,
            ci_method=ci_method,
            by=by,
            totals_only=True,
        )
        settings.check()
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    scored = run(Inputs(data_dir, split, results, annotations, dataset=dataset, config=config), settings, num_proc)
    if scored.note:
        typer.echo(scored.note, err=True)
    scored.extra.update(run_signature(results))
    found = nested(scored)
    if score_file is not None:
        write_scores(score_file, found)
    print_scores(scored, found)
