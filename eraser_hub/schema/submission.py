"""Description of a system that is submitted to a board: ``system.yaml`` beside its predictions."""

from __future__ import annotations

from dataclasses import dataclass

from .record import column, describe


@dataclass(kw_only=True)
class SystemRecord:
    """A submitted system."""

    name: str = column("the name that the board shows", required=True)
    authors: list[str] = column("the authors", required=True)
    license: str = column("the licence of the predictions, as the Hub names it", required=True)
    trained_on: str = column("the data that the system was trained on", required=True)
    link: str | None = column("an address of the paper, the code or the model")
    seeds: list[int] | None = column("the seeds of its runs")
    erasing: str | None = column("how tokens were erased: remove, mask or pad")
    cost: str | None = column("the cost of the predictions, such as GPU hours or forward passes")
    data_digest: str | None = column("digest of the data that the predictions answer; see docs/identity.md")


SYSTEM = describe(SystemRecord)
