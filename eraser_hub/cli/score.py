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
)
from .usage import Format, OnlyPredicted, Revision, Seed, Split, at_revision, chosen, print_tables, say, takes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eraser_hub.records.tables import Tables
    from eraser_hub.scoring.settings import Inputs, ScoreSettings


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
    from eraser_hub.scoring.result import nested, run_signature
    from eraser_hub.scoring.score import score as run
    from eraser_hub.scoring.score_tables import score_tables
    from eraser_hub.scoring.settings import Inputs

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
    inputs = Inputs(results=path, dataset=dataset, **chosen(options, "data_dir split annotations config"))
    if inputs.holds_pairs:
        return _write(options, inputs, *_score_pairs(inputs, settings))
    scored = run(inputs, settings, options.num_proc)
    for line in (*scored.notes, *scored.cautions()):
        say(line)
    scored.extra.update(inputs.names | run_signature(path))
    scores = nested(scored)
    tables = score_tables(scored, scores, ", ".join(inputs.names.values()))
    _write(options, inputs, scores, tables, [str(scores["signature"])])


def _check_model(eval_results: str | None, dataset: Path | None) -> None:
    """Refuse what is no model's id, and a corpus as released, which has no place on the Hub."""
    if eval_results is None:
        return
    from eraser_hub.publishing.eval_results import check_model

    if dataset is None:
        raise typer.BadParameter("results answer a dataset of the Hub: give --dataset", param_hint="--eval-results")
    check_model(eval_results)


def _write(
    options: ScoreOptions, inputs: Inputs, scores: dict[str, object], tables: Tables, signatures: Sequence[str]
) -> None:
    """Write the scores wherever they are asked for."""
    from eraser_hub.scoring.result import write_scores

    if options.score_file is not None:
        write_scores(options.score_file, scores)
    if options.eval_results is not None:
        from eraser_hub.publishing.eval_results import write_eval_results  # slow to import, seldom asked for

        source = options.results if options.results.startswith("https://") else None
        paths, notes = write_eval_results(options.eval_results, scores, inputs.built, source=source)
        for line in (*notes, *(f"written: {path}" for path in paths)):
            say(line)
    print_tables(tables, options.format, scores, signatures)


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
