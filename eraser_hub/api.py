"""Public functions: one for each command, with typed keyword arguments and objects as results.

The arguments of each function are the fields of one dataclass, from which the command line makes its options; see
:mod:`eraser_hub.records.options`. Each function imports what it needs when it is called.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from eraser_hub.records.options import with_keywords
from eraser_hub.reports.options import BenchArguments
from eraser_hub.scoring.verbs import compare as compare
from eraser_hub.scoring.verbs import score as score

if TYPE_CHECKING:
    from eraser_hub.experiments.bench_run import BenchResult

Place = str | os.PathLike[str]


# -- scoring ----------------------------------------------------------------------------------------------------------


@with_keywords(BenchArguments)
def bench(arguments: BenchArguments) -> BenchResult | list[str]:
    """Find out which explanations are better: train, explain, score, compare and report in one call.

    Models are explained by several methods, beside tokens drawn by chance and what people marked. Finished files in
    ``out`` are reused.

    Returns:
        The findings in words, the table, the comparison and the report's page; with ``dry_run`` the lines of the plan.

    Raises:
        DataError: wrong data, models or settings; ``out`` holds a run with other settings.
        BusyError: another run is at work in ``out``.

    Examples:
        >>> from eraser_hub import bench
        >>> model = "logistic-regression"
        >>> result = bench(dataset="hub/eraser", config="movies", model=model, out="bench")  # doctest: +SKIP
        >>> result.findings  # doctest: +SKIP
    """
    from eraser_hub.experiments.bench_run import bench as run

    return run(arguments)
