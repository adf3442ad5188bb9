"""``eraser-hub score``: a model's predictions against a corpus."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from eraser_hub.records.arguments import Force
from eraser_hub.records.errors import UsageError, hide_credentials
from eraser_hub.records.options import Option
from eraser_hub.records.outputs import OutputWriter
from eraser_hub.records.tables import FORMATS
from eraser_hub.scoring.options import ScoreArguments

from .usage import call_with_options, print_note, print_tables, with_options


@dataclass(frozen=True, kw_only=True)
class ScoreOptions(ScoreArguments):
    """The options of ``eraser-hub score``.

    Attributes:
        out: JSON file to write the scores to.
        eval_results: ORG/MODEL: also write the scores in the Hub's format for models to eval_results/ORG/MODEL; needs
            `dataset`.
        all: Print all scores, not the headline scores alone.
    """

    out: Path | None = None
    eval_results: str | None = None
    all: bool = False
    format: Annotated[
        Literal["text", "json", "markdown", "latex", "csv", "eraser"],
        Option(help=f"{', '.join(FORMATS)}, or eraser: the keys of ERASER's scorer."),
    ] = "text"
    force: Force = False


@with_options(ScoreOptions)
def score(options: ScoreOptions) -> None:
    """Score predictions against a corpus.

    **Examples**

        eraser-hub score --dataset hub/eraser --config movies --predictions p.jsonl --out scores.json

        eraser-hub score --dataset corpora/movies --split val --predictions p.parquet

        eraser-hub score --dataset gold.jsonl --predictions p.jsonl

        eraser-hub score --dataset corpora/movies --split val --predictions p.jsonl
        --iou-thresholds 0.1 --iou-thresholds 0.5 --confidence-level 0.95 --by classification
    """
    from eraser_hub.scoring import verbs

    if options.eval_results is not None and options.dataset is None:  # a corpus as released has no place on the Hub
        message = "results answer a dataset of the Hub: give `dataset`"
        raise UsageError(message, argument="eval_results")
    writer = OutputWriter(options.inputs, options.force)
    if options.out is not None:
        writer.check(options.out)
    if options.eval_results is not None:
        from eraser_hub.publishing.eval_results import check_model

        check_model(options.eval_results, writer)
    scores = call_with_options(verbs.score, options)
    for line in (*scores.notes, *scores.cautions):
        print_note(line)
    if options.out is not None:
        scores.save(options.out, options.force)
    if options.eval_results is not None:
        from eraser_hub.publishing.eval_results import write_eval_results  # slow to import, seldom asked for

        is_address = options.predictions.startswith("https://")
        address = hide_credentials(options.predictions) if is_address else None
        paths, notes = write_eval_results(
            options.eval_results,
            scores.as_json(),
            options.scored_split.built,
            source=address,
            writer=OutputWriter(options.inputs),
        )
        for line in (*notes, *(f"written: {path}" for path in paths)):
            print_note(line)
    if options.format == "eraser":
        print_tables(scores.table(), "json", scores.to_eraser(), ())
        return
    content = scores.as_json() if options.format == "json" else {}
    print_tables(scores.table(whole=options.all), options.format, content, scores.signatures)
