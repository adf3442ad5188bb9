"""A language model's quotes in a prediction file, scored as `metrics.quote_faithfulness` does."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

from eraser_hub.metrics.cells import Row
from eraser_hub.metrics.issues import Issues, cut
from eraser_hub.metrics.quotes import quote_statistics
from eraser_hub.metrics.results import describe_scored
from eraser_hub.metrics.statistics_builder import Statistics
from eraser_hub.records.predictions import read_plain_rows
from eraser_hub.schema.instance import QUOTES_FIELD
from eraser_hub.schema.rows import ID_FIELDS

from .references import Gold, raise_issues

BLOCK = "quote_faithfulness"  # the module's name, as score files and signatures have it


class Quoted(NamedTuple):
    """Statistics of the quotes in a file.

    Attributes:
        statistics: statistics of the annotations that have an instance, in order, without clusters.
        counts: the number of quotes, and of empty ones.
        settings: settings for the signature.
        note: a note on what was left out; "" for nothing.
    """

    statistics: Statistics
    counts: dict[str, object]
    settings: dict[str, object]
    note: str = ""


def score_quotes(results: Path, gold: Gold) -> Quoted:
    """Score the quotes of a prediction file, whose ids are those of the annotations, each once.

    Coverage is the share of an annotation's own documents, which the rows of a built dataset hold; a corpus folder does
    not say which documents a model was shown, and there it is undefined.

    Raises:
        DataError: instances without the field, or with invalid quotes; at most ten faults.
    """
    rows, lines = dict[str, Row](), dict[str, int]()
    for line, row in read_plain_rows(results):
        name = next(str(row[field]) for field in ID_FIELDS if row.get(field) is not None)
        rows[name], lines[name] = row, line
    sizes = _sizes(gold)
    issues = Issues()
    ordered = {name: rows[name] for name in gold.references.ids if name in rows}
    statistics, counts = quote_statistics(ordered, sizes, issues)
    places = {cut(name): (line, name) for name, line in lines.items()}  # as issues name them
    for at, (line, name) in enumerate([places[str(issue.name)] for issue in issues]):
        issues[at] = issues[at]._replace(row=line, id=name)
    raise_issues(issues, {"prediction": results})
    settings: dict[str, object] = {"coverage": "documents"} if sizes else {}
    note = (
        ""
        if sizes
        else f"no coverage of {QUOTES_FIELD}: a corpus folder does not say which documents were read (`dataset` does)"
    )
    return Quoted(statistics, counts, settings | describe_scored(len(ordered), len(gold.references.ids)), note)


def _sizes(gold: Gold) -> dict[str, dict[str, int]]:
    """Return the number of tokens of each document, by annotation."""
    references = gold.references
    sizes = defaultdict[str, dict[str, int]](dict)
    owners: list[int] = references.document_instance.tolist()
    for instance, document, tokens in zip(
        owners, references.document.tolist(), references.tokens.tolist(), strict=True
    ):
        if instance >= 0:
            sizes[references.ids[instance]][str(references.docids[document])] = tokens
    return dict(sizes)
