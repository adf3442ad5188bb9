"""``eraser-hub compare``: do two or more systems' scores differ?"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

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


@dataclass(frozen=True, slots=True)
class CompareOptions:
    """The options of ``eraser-hub compare``, and their help.

    Attributes:
        results: A system's predictions, FILE or NAME=FILE (a file, https:// or hf://); several runs of one (seeds) as
            NAME=FILE,FILE,..; files of several ways of erasing are told apart by their run records; give two systems or
            more.
        n_resamples: Resamples of either test.
        confidence_level: Of the differences' intervals, in (0, 1).
        adjust: Correction of p over the family; bh: Benjamini and Hochberg.
        primary: A score declared in advance: the family, in place of the headline scores; repeat for several.
        equivalence: Also test whether systems differ by less than this, either way (TOST).
    """

    results: list[str]
    data_dir: DataDir = None
    dataset: Dataset = None
    config: Config = None
    split: Split = "test"
    annotations: Annotations = None
    iou_thresholds: IouThresholds = None
    aopc_thresholds: AopcThresholds = None
    n_resamples: Annotated[int, typer.Option(min=1)] = 10_000
    seed: Seed = 0
    confidence_level: float = 0.95
    adjust: Literal["holm", "bh", "none"] = "holm"
    primary: list[str] | None = None
    equivalence: float | None = None
    cluster_by: ClusterBy = "auto"
    only_predicted: OnlyPredicted = False
    revision: Revision = None
    format: Format = "text"


@takes(CompareOptions)
def compare(options: CompareOptions) -> None:
    """Compare systems on the same split, score by score.

    Every pair of systems is compared by approximate randomisation and by the paired bootstrap, over documents where
    annotations share them. "p Holm" is the former corrected over the headline scores times the pairs, and a star stands
    where it is at most 0.05; the other scores are exploratory. "detectable" is the difference that these documents
    would show in four cases of five. Where predictions hold random rationales (explain --random-draws), each system's
    p-value against chance is corrected over the systems. Of predictions by several ways of erasing (explain --erase
    remove,mask: give the name asked for with --out) the tables are the first way's, and a further one has every way's
    verdict, and flags those that flip.

    Examples:

        eraser-hub compare --data-dir corpora/movies --split val --results ours.jsonl --results baseline.jsonl

        eraser-hub compare --dataset hub/eraser --config movies --split test --results a.parquet --results b.parquet
        --results c.parquet --primary token_macro_f1 --equivalence 0.02 --format json

        eraser-hub compare --data-dir corpora/movies --results ours=a1.jsonl,a2.jsonl,a3.jsonl --results theirs=b.jsonl
    """
    from eraser_hub.scoring.comparison import Inference, compare_files
    from eraser_hub.scoring.runs import named_systems
    from eraser_hub.scoring.scored_split import ScoredSplit
    from eraser_hub.scoring.tables import comparison_tables

    sizes = (options.n_resamples, options.seed, options.confidence_level)
    inference = Inference(*sizes, options.adjust, tuple(options.primary or ()), options.equivalence)
    try:
        inference.check()
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    check_source(options.data_dir, options.dataset, options.config, options.annotations)
    dataset = options.dataset and Path(at_revision(str(options.dataset), options.revision))
    more = chosen(options, "cluster_by only_predicted")
    settings = settings_of(options.iou_thresholds, options.aopc_thresholds, **more)
    source = ScoredSplit(dataset=dataset, **chosen(options, "data_dir split annotations config"))
    systems = named_systems(options.results, ways=True)
    if len(systems) < 2:
        raise typer.BadParameter("expected the predictions of at least two systems", param_hint="--results")
    result = compare_files(source, systems, settings, inference)
    if "score_notes" in result:
        result["score_notes"] = [spelled(line) for line in result["score_notes"]]
    for line in result.get("score_notes", ()):
        say(line)
    signatures = [result["signature"], *result.get("score_signatures", ())]
    print_tables(comparison_tables(result), options.format, result, signatures)
