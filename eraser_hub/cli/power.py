"""``eraser-hub power``: the documents and runs that a comparison needs, from a pilot."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from eraser_hub.records.arguments import Force
from eraser_hub.records.outputs import OutputWriter
from eraser_hub.scoring.options import PowerArguments

from .usage import TableFormat, call_with_options, print_tables, spell_arguments, with_options


@dataclass(frozen=True, kw_only=True)
class PowerOptions(PowerArguments):
    """The options of ``eraser-hub power``.

    Attributes:
        out: JSON file to write the plan to.
    """

    out: Path | None = None
    format: TableFormat = "text"
    force: Force = False


@with_options(PowerOptions)
def power(options: PowerOptions) -> None:
    """Plan a comparison: the documents and runs that it needs to find a difference, from a pilot.

    The pilot is a comparison of two systems or more. The first table of a pair has the number of documents that find a
    difference of each score in four cases of five, for each number of runs, and the sources of the difference's
    variance. The second one has the difference that so many documents and runs find. Give the pilot several runs of
    each system: with one run it knows nothing of how much runs differ.

    **Examples**

        eraser-hub power --dataset hub/eraser --config movies --predictions a.jsonl --predictions b.jsonl

        eraser-hub power --comparison compared.json --primary token_macro_f1 --effect 0.02 --effect 0.05 --runs 3

        eraser-hub power --scores ours=a1.json,a2.json,a3.json --scores theirs=b1.json,b2.json,b3.json --format json
    """
    from eraser_hub import api

    if options.out is not None:
        OutputWriter(options.inputs, options.force).check(options.out)
    plan = call_with_options(api.power, options)
    plan["notes"] = [spell_arguments(line) for line in plan["notes"]]
    if options.out is not None:
        plan.save(options.out, options.force)
    print_tables(plan.table(), options.format, plan, [plan["signature"]])
