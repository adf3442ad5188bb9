"""Papers whose own choices a module can make all at once (``paper=``)."""

from __future__ import annotations

from .offences import InputError

# Wang et al. (2022): means over gold records, scored or not
WANG2022 = "wang2022"
PAPERS = ("eraser", WANG2022, "carton2020")


def check_paper(paper: str | None, *known: str) -> None:
    """Raise a ValueError where a paper is named that these scores have no choices of."""
    if paper is not None and paper not in known:
        of = f", whose choices differ here; {paper} changes nothing in these scores" if paper in PAPERS else ""
        raise InputError(
            f"expected {' or '.join(map(repr, known)) or 'None'}{of}, found {paper!r}", "option-value", "paper"
        )
