"""``eraser-hub roar``: remove what a method ranks first, and train anew."""

from __future__ import annotations

from dataclasses import dataclass, replace

from eraser_hub.experiments.configs import RoarConfig
from eraser_hub.records.arguments import Revision
from eraser_hub.records.hub import at_revision

from .usage import TableFormat, print_note, print_tables, with_options


@dataclass(frozen=True, kw_only=True)
class RoarOptions(RoarConfig):
    """The options of ``eraser-hub roar``: a plan, and how the result is printed."""

    revision: Revision = None
    format: TableFormat = "text"


@with_options(RoarOptions)
def roar(options: RoarOptions) -> None:
    """Retrain without the tokens that a method ranks first, and report the accuracy (ROAR).

    The tokens are removed from training and test texts. The accuracy after removing as many random tokens is shown
    beside it.

    **Examples**

        eraser-hub experiment roar --dataset hub/eraser --config movies --model logistic-regression --method occlusion
        --out roar
    """
    from eraser_hub.experiments.roar import make_roar_tables
    from eraser_hub.experiments.roar import roar as run

    result = run(replace(options, dataset=at_revision(options.dataset, options.revision)), print_note)
    print_tables(make_roar_tables(result), options.format, result, [result["signature"]])
