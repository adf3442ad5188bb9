"""``eraser-hub roar``: remove what a method ranks first, and train anew."""

from __future__ import annotations

from dataclasses import dataclass, replace

from eraser_hub.experiments.configs import RoarConfig
from eraser_hub.records.arguments import Revision
from eraser_hub.records.hub import at_revision

from .usage import TableFormat, print_tables, say, takes


@dataclass(frozen=True, kw_only=True)
class RoarOptions(RoarConfig):
    """The options of ``eraser-hub roar``: a plan, and how the result is printed."""

    revision: Revision = None
    format: TableFormat = "text"


@takes(RoarOptions)
def roar(options: RoarOptions) -> None:
    """Remove the tokens that a method ranks first from training and test texts, train anew, and tell the accuracy
    (ROAR).

    Beside each share removed stands the accuracy where as many random tokens were removed.

    Examples:

        eraser-hub experiment roar --dataset hub/eraser --config movies --model logistic-regression --method occlusion
        --out roar
    """
    from eraser_hub.experiments.roar import make_roar_tables
    from eraser_hub.experiments.roar import roar as run

    result = run(replace(options, dataset=at_revision(options.dataset, options.revision)), say)
    print_tables(make_roar_tables(result), options.format, result, [result["signature"]])
