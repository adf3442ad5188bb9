"""A language model's quotes in a prediction file, scored as the module of this name does."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from eraser_hub.metrics import quotes
from eraser_hub.metrics.cells import Row
from eraser_hub.metrics.issues import Issues, cut
from eraser_hub.metrics.results import describe_lacking, describe_scored
from eraser_hub.metrics.statistics_builder import Statistics
from eraser_hub.records.predictions import read_plain_rows
from eraser_hub.schema.instance import QUOTES_FIELD
from eraser_hub.schema.rows import ID_FIELDS

from .references import Gold, make_issue_error

# the module's name, as score files and signatures have it
BLOCK = "quote_faithfulness"
_NO_DOCUMENTS = "a corpus folder does not say which documents were read (`dataset` does)"


class BlockScores(NamedTuple):
    """Statistics of one block of scores: agreement, faithfulness, or what a language model says in a file.

    Attributes:
        statistics: of the annotations, in order; those of a language model's words have no clusters yet.
        counts: what stands beside the scores.
        settings: settings for the signature.
        notes: notes on what was left out.
        lacking: the scores that no instance has the field for.
        rows: the annotations that are scored; None: all.
    """

    statistics: Statistics
    counts: Mapping[str, object]
    settings: dict[str, object]
    notes: Sequence[str] = ()
    lacking: Collection[str] = ()
    rows: np.ndarray | None = None


def score_by_rows(results: Path, gold: Gold) -> dict[str, BlockScores]:
    """Score the quotes of a prediction file, whose ids are those of the annotations, each once.

    Coverage is the share of an annotation's own documents, which the rows of a built dataset hold; a corpus folder does
    not say which documents a model was shown, and there it is undefined; the note says so.

    Args:
        results: the file.
        gold: the annotations.

    Returns:
        Module -> its statistics.

    Raises:
        DataError: instances without the field, or with invalid values; at most ten faults.
    """
    rows, lines = dict[str, Row](), dict[str, int]()
    for line, row in read_plain_rows(results):
        name = next(str(row[field]) for field in ID_FIELDS if row.get(field) is not None)
        rows[name], lines[name] = row, line
    issues = Issues()
    ordered = {name: rows[name] for name in gold.references.ids if name in rows}
    settings = describe_scored(len(ordered), len(gold.references.ids))
    sizes = _sizes(gold)
    statistics, counts = quotes.quote_statistics(ordered, sizes, issues)
    coverage: dict[str, object] = {"coverage": "documents"} if sizes else {}
    notes = [] if sizes else [f"no coverage of {QUOTES_FIELD}: {_NO_DOCUMENTS}"]
    places = {cut(name): (line, name) for name, line in lines.items()}  # as issues name them
    for at, (line, name) in enumerate([places[str(issue.name)] for issue in issues]):
        issues[at] = issues[at]._replace(row=line, id=name)
    if issues.total:
        raise make_issue_error(issues, {"prediction": results})
    lacking = quotes.find_lacking(ordered.values())
    notes += describe_lacking(lacking)
    return {BLOCK: BlockScores(statistics, counts, coverage | settings, notes, lacking)}


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
