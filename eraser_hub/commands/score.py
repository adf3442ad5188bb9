"""``eraser-hub score``: a model's predictions against a corpus."""

from __future__ import annotations

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
)
from .usage import Format, OnlyPredicted, Revision, Seed, Split, at_revision, print_tables, say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eraser_hub.records.tables import Tables
    from eraser_hub.scoring.settings import Inputs, ScoreSettings

Results = Annotated[str, typer.Option(help="Predictions, jsonl or Parquet: a file, https:// or hf://.")]
ScoreFile = Annotated[Path | None, typer.Option(help="Where the scores go, as JSON.")]
Strict = Annotated[
    bool, typer.Option("--strict", help="Demand IOU thresholds, labels, class scores and comprehensiveness scores.")
]
AuprcPolicy = Annotated[
    str, typer.Option(help="AUPRC of a document without evidence: reference (0.5), skip, zero or one.")
]
RandomBaseline = Annotated[
    int, typer.Option(min=0, help="Also score this many shuffles of the soft scores (the papers: 10).")
]
SentenceThreshold = Annotated[float, typer.Option(help="A sentence is predicted from this score on.")]
ConfidenceLevel = Annotated[float | None, typer.Option(help="Adds bootstrap intervals, e.g. 0.95.")]
NResamples = Annotated[int | None, typer.Option(help="Bootstrap resamples (1000).")]
CiMethod = Annotated[str, typer.Option(help="bca or percentile.")]
PerInstance = Annotated[bool, typer.Option("--per-instance", help="Add every score of every instance.")]
By = Annotated[str | None, typer.Option(help="Break the scores down by this field of the annotations.")]
MaskLeak = Annotated[
    bool,
    typer.Option(
        "--mask-leak", help="Also how well the places and number of selected tokens alone tell the model's labels."
    ),
]
Paper = Annotated[str | None, typer.Option(help="Make all choices of this paper's code: eraser, wang2022.")]
EvalResults = Annotated[
    str | None,
    typer.Option(
        help="ORG/MODEL: also write the scores as the Hub shows a model's, below eval_results/ORG/MODEL; needs --dataset."
    ),
]
NumProc = Annotated[
    int, typer.Option(min=0, help="Processes that read predictions (0: more than one for large files).")
]


def score(
    results: Results, data_dir: DataDir = None, dataset: Dataset = None, config: Config = None, split: Split = "test",
    revision: Revision = None, score_file: ScoreFile = None, annotations: Annotations = None, iou_thresholds: IouThresholds = None,
    aopc_thresholds: AopcThresholds = None, strict: Strict = False, auprc_policy: AuprcPolicy = "reference",
    random_baseline: RandomBaseline = 0, sentence_threshold: SentenceThreshold = 0.5,
    confidence_level: ConfidenceLevel = None, n_resamples: NResamples = None, ci_method: CiMethod = "bca",
    seed: Seed = 0, per_instance: PerInstance = False, by: By = None, cluster_by: ClusterBy = "auto",
    only_predicted: OnlyPredicted = False, mask_leak: MaskLeak = False, paper: Paper = None, num_proc: NumProc = 0, eval_results: EvalResults = None,
    format: Format = "text",
) -> None:  # fmt: skip
    """Score predictions against a corpus: the reference scorer's keys, and more.

    Examples:

        eraser-hub score --data-dir corpora/movies --split val --results predictions.jsonl --score-file scores.json

        eraser-hub score --dataset hub/eraser --config movies --split test --results predictions.parquet

        eraser-hub score --data-dir corpora/movies --split val --results predictions.jsonl
        --iou-thresholds 0.1 --iou-thresholds 0.5 --confidence-level 0.95 --by classification
    """
    from eraser_hub.conversion.download.addresses import local_file
    from eraser_hub.scoring.result import nested, run_signature
    from eraser_hub.scoring.score import score as run
    from eraser_hub.scoring.score_tables import score_tables
    from eraser_hub.scoring.settings import Inputs

    check_source(data_dir, dataset, config, annotations)
    _check_model(eval_results, dataset)
    dataset = dataset if dataset is None else Path(at_revision(str(dataset), revision))
    if strict and not iou_thresholds:
        raise typer.BadParameter("--strict needs --iou-thresholds")
    settings = settings_of(
        iou_thresholds, aopc_thresholds, strict=strict, auprc_policy=auprc_policy, random_baseline=random_baseline,
        sentence_threshold=sentence_threshold, per_instance=per_instance, confidence_level=confidence_level,
        n_resamples=n_resamples, seed=seed, ci_method=ci_method, by=by, cluster_by=cluster_by,
        only_predicted=only_predicted, mask_leak=mask_leak, paper=paper, totals_only=True,
    )  # fmt: skip
    path = local_file(results)
    inputs = Inputs(data_dir, split, path, annotations, dataset=dataset, config=config)
    if inputs.holds_pairs:
        scores, tables, signatures = _score_pairs(inputs, settings)
        return _write(results, inputs, scores, (tables, signatures), score_file, eval_results, format)
    scored = run(inputs, settings, num_proc)
    for line in (*scored.notes, *scored.cautions()):
        say(line)
    scored.extra.update(inputs.names | run_signature(path))
    scores = nested(scored)
    tables = score_tables(scored, scores, ", ".join(inputs.names.values()))
    _write(results, inputs, scores, (tables, [str(scores["signature"])]), score_file, eval_results, format)


def _check_model(eval_results: str | None, dataset: Path | None) -> None:
    """Refuse what is no model's id, and a corpus as released, which has no place on the Hub."""
    if eval_results is None:
        return
    from eraser_hub.publishing.eval_results import check_model

    if dataset is None:
        raise typer.BadParameter("results answer a dataset of the Hub: give --dataset", param_hint="--eval-results")
    check_model(eval_results)


def _write(
    results: str, inputs: Inputs, scores: dict[str, object], printed: tuple[Tables, Sequence[str]],
    score_file: Path | None, eval_results: str | None, format: str,
) -> None:  # fmt: skip
    """Write the scores wherever they are asked for."""
    from eraser_hub.scoring.result import write_scores

    if score_file is not None:
        write_scores(score_file, scores)
    if eval_results is not None:
        from eraser_hub.publishing.eval_results import write_eval_results  # slow to import, seldom asked for

        source = results if results.startswith("https://") else None
        paths, notes = write_eval_results(eval_results, scores, inputs.built, source=source)
        for line in (*notes, *(f"written: {path}" for path in paths)):
            say(line)
    print_tables(printed[0], format, scores, printed[1])


def _score_pairs(inputs: Inputs, settings: ScoreSettings) -> tuple[dict[str, object], Tables, list[str]]:
    """Rows of the perturbation benchmark go to the modules that are made for them; scores, table and signatures."""
    from dataclasses import fields

    from eraser_hub.reports.metric_runs import score_pair_file
    from eraser_hub.reports.system_scores import ReportSettings
    from eraser_hub.scoring.score_tables import flat_table

    taken = ("confidence_level", "n_resamples", "seed", "only_predicted", "cluster_by", "paper", "totals_only")
    odd = [one.name for one in fields(settings) if one.name not in taken and getattr(settings, one.name) != one.default]
    if odd:
        raise typer.BadParameter(f"{', '.join(odd)}: not for bilingual_perturbation")
    own = ReportSettings(
        settings.confidence_level,
        settings.n_resamples,
        settings.seed,
        settings.only_predicted,
        settings.cluster_by,
        settings.paper,
    )
    scores, split = score_pair_file(inputs, own)
    for note in scores.missing:
        say(note)
    content = {key: value for key, value in scores.as_json(split).items() if key != "system"}
    return content, flat_table(content, ", ".join(inputs.names.values())), list(scores.signatures)
