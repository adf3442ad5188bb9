"""``eraser-hub compare``: tests of the differences between systems' scores."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from eraser_hub.records.arguments import Force
from eraser_hub.records.outputs import OutputWriter
from eraser_hub.scoring.options import CompareArguments

from .usage import TableFormat, call_with_options, print_note, print_tables, spell_arguments, with_options


@dataclass(frozen=True, kw_only=True)
class CompareOptions(CompareArguments):
    """The options of ``eraser-hub compare``.

    Attributes:
        out: JSON file to write the result to.
        all: Print all scores, not those alone that are tested.
    """

    out: Path | None = None
    all: bool = False
    format: TableFormat = "text"
    force: Force = False


@with_options(CompareOptions)
def compare(options: CompareOptions) -> None:
    """Compare systems on the same split, score by score.

    Every pair of systems is compared: with one run each "p" is that of the exchange of documents, with several runs
    that of a model of documents and runs, which also gives the interval; annotations that share a document belong
    together. "p Holm" is p, corrected over the headline scores times the pairs. The verdict on the first system is
    better, worse, equivalent or undecided; a star marks the score of the system that is better.
    Scores without p Holm are exploratory, and never better or worse. "detectable" is the difference that a test finds
    in four cases of five.

    **Examples**

        eraser-hub compare --dataset hub/eraser --config movies --predictions a.jsonl --predictions b.jsonl

        eraser-hub compare --dataset hub/eraser --config movies --predictions a.parquet --predictions b.parquet
        --predictions c.parquet --primary token_macro_f1 --minimum-effect 0.02 --format json

        eraser-hub compare --source corpora/movies --predictions ours=a1.jsonl,a2.jsonl --predictions theirs=b.jsonl
    """
    from eraser_hub.scoring import verbs

    if options.out is not None:
        OutputWriter(options.inputs, options.force).check(options.out)
    result = call_with_options(verbs.compare, options)
    for notes in ("notes", "score_notes"):
        result[notes] = [spell_arguments(line) for line in result.get(notes, ())]
    for line in result.get("score_notes", ()):
        print_note(line)
    if options.out is not None:
        result.save(options.out, options.force)
    signatures = [result["signature"], *result.get("score_signatures", ())]
    print_tables(result.table(whole=options.all), options.format, result, signatures)
