"""The arguments of `score` and `compare`, declared once for Python and the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from eraser_hub.records.options import Option

if TYPE_CHECKING:  # the command line reads the declarations without waiting for numpy
    pass

OnlyPredicted = Annotated[
    bool,
    Option(group="Settings of scores", help="Score only annotations with an instance, and print their number."),
]
MinimumEffect = Annotated[
    float,
    Option(
        min=0,
        group="Uncertainty",
        help="Smallest difference that matters, in the scores' units; 0 by default.",
    ),
]
_CLUSTERS = "Clusters of intervals and tests: auto (annotations that share a document), none, or a field of "
ClusterBy = Annotated[str, Option(group="Uncertainty", help=f"{_CLUSTERS}the annotations.")]
