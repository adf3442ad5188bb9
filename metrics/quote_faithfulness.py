"""Whether a language model's quotes stand in the text, and how much of it they cover."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import evaluate
import numpy as np

from .batches import Measured, info
from .cells import as_list, as_number
from .clusters import connected as connected
from .fields import AGAIN_FIELD, ANSWERED, HEADLINE, INSTANCE, OUTCOME_FIELD, QUOTES_FIELD
from .offences import Offences, cut
from .pool import Statistics, divide
from .resampling import intervals as intervals
from .results import report as report
from .rows import Row, RowBatches, RowColumns, by_id, check_partners, scored_of
from .sources import ERASER
from .strangers import nearly as nearly
from .tokens import sentence_sizes

# what a model was asked again without, with, or by another model -> (the score, whether the label has to change)
AGAIN = {
    "redacted": ("label_flip_redacted", True), "removed": ("label_flip_removed", True),
    "random": ("label_flip_random", True), "alone": ("label_kept_alone", False), "simulated": ("simulatability", False),
}  # fmt: skip
STATUSES = ("exact", "normalised", "fuzzy", "ambiguous", "not_found", "empty")
HIGHER_IS_BETTER: dict[str, bool | None] = {
    "in_text": True, "exact": True, "normalised": None, "fuzzy": None, "ambiguous": None, "invented": False,
    "instances_with_invented": False, "quotes_per_instance": None, "quote_length": None, "coverage": None, "answered": True,
    "label_flip_redacted": True, "label_flip_removed": True, "label_flip_random": None, "label_kept_alone": True, "simulatability": True,
}  # fmt: skip
RANGES: dict[str, tuple[float | None, float | None]] = dict.fromkeys(HIGHER_IS_BETTER, (0.0, 1.0))
RANGES |= dict.fromkeys(("quotes_per_instance", "quote_length"), (0.0, None))

_DESCRIPTION = """\
Quotes that a language model gives for its answer, each with where it was found in the text: the share that stands there, as it
is or nearly, and the share that is invented.
"""

_INPUTS_DESCRIPTION = """
Args:
    predictions: instances {annotation_id, quotes, outcome}, as `eraser-hub ask` writes them: quotes is a list of {text, status,
        docid, start_token, end_token, similarity}, status one of exact, normalised, fuzzy, ambiguous, not_found, empty;
        outcome other than "answered" (optional) says that there is no answer, and so no quote. Optional: classification with
        asked_again, a list of {kind, classification, outcome}, kind one of redacted, removed, random, alone, simulated: what was
        answered to the changed question; classification is null where there was no answer.
    references: optional; rows {annotation_id, documents} of the dataset, for coverage.
    only_predicted: references without an instance are left out, and the signature says how many were scored.
    per_instance, confidence_level, n_resamples, seed, ci_method, cluster_by, by, label_names: as in all modules of this
        family.

Returns:
    in_text, exact, normalised, fuzzy, ambiguous, invented in [0, 1]: shares of the quotes (empty ones left out);
    instances_with_invented in [0, 1]: share of the answered instances with any invented quote; quotes_per_instance;
    quote_length, tokens of a quote in the text; coverage in [0, 1] (NaN without references), share of the documents' tokens that quotes
    cover; answered in [0, 1]; of the answered instances that were asked again, in [0, 1]: label_flip_redacted,
    label_flip_removed, label_flip_random, the share whose label changes (no answer is a change) without the quotes, or without
    random spans of their lengths; label_kept_alone, whose label is the same with the quotes alone; simulatability, of which another
    model gives the same label by the quotes (NaN where none was asked); quotes and empty, counts; signature. NaN where nothing is there to divide by.

Raises:
    ValueError: wrong input; it names the instance and the field.

Example:

    >>> import evaluate
    >>> metric = evaluate.load("quote_faithfulness")
    >>> place = {"docid": "d", "start_token": 0, "end_token": 2, "similarity": 1.0}
    >>> result = metric.compute(predictions=[
    ...     {"annotation_id": "a", "quotes": [{"text": "a fine", "status": "exact", **place},
    ...                                       {"text": "a masterpiece", "status": "not_found"}]},
    ...     {"annotation_id": "b", "quotes": [], "outcome": "refusal"}])
    >>> result["in_text"], result["invented"], result["answered"]
    (0.5, 0.5, 0.5)
"""


class Quotes:
    """What is counted of one instance's quotes.

    Args:
        row: the instance.
        name: its id.
        offences: where what is wrong is told.
    """

    def __init__(self, row: Row, name: str, offences: Offences) -> None:
        self.name, self.offences = name, offences
        self.statuses: list[str] = []
        self.spans: list[tuple[str, int, int]] = []
        outcome = row.get(OUTCOME_FIELD)
        if outcome is not None and not isinstance(outcome, str):
            self._say(OUTCOME_FIELD, f"expected a string, found {cut(outcome)}")
        self.answered = outcome is None or outcome == ANSWERED
        quotes = as_list(row.get(QUOTES_FIELD))
        if quotes is None:
            self._say(QUOTES_FIELD, f"expected a list of quotes, found {cut(row.get(QUOTES_FIELD))}")
        elif quotes and not self.answered:
            self._say(QUOTES_FIELD, "expected none, because the outcome is no answer")
        for at, quote in enumerate(quotes or ()):
            self._add(quote, f"{QUOTES_FIELD}[{at}]")
        self.again = dict[str, bool]()
        further = as_list(row.get(AGAIN_FIELD) or ())
        if further is None:
            self._say(AGAIN_FIELD, f"expected a list of answers, found {cut(row.get(AGAIN_FIELD))}")
        for at, one in enumerate(further or ()):
            self._add_again(one, f"{AGAIN_FIELD}[{at}]", row.get("classification"))

    def _say(self, field: str, message: str) -> None:
        self.offences.say_of("prediction", self.name, field, message)

    def _add(self, quote: Any, where: str) -> None:
        status = quote.get("status") if isinstance(quote, Mapping) else None
        if status not in STATUSES:
            self._say(f"{where}.status", f"expected one of {', '.join(STATUSES)}, found {cut(status)}")
            return
        self.statuses.append(status)
        if status in ("not_found", "empty"):
            return
        start, end = (as_number(quote.get(f"{side}_token")) for side in ("start", "end"))
        if start is None or end is None or not 0 <= start < end or start % 1 or end % 1:
            self._say(
                where,
                f"expected 0 <= start_token < end_token, found {cut([quote.get('start_token'), quote.get('end_token')])}",
            )
            return
        self.spans.append((str(quote.get("docid")), int(start), int(end)))

    def _add_again(self, one: Any, where: str, label: object) -> None:
        """Whether the score of its kind counts this further answer."""
        kind = one.get("kind") if isinstance(one, Mapping) else None
        if kind not in AGAIN or kind in self.again:
            self._say(f"{where}.kind", f"expected one of {', '.join(AGAIN)}, each once, found {cut(kind)}")
        elif not isinstance(label, str):
            self._say("classification", f"expected a label beside {AGAIN_FIELD}, found {cut(label)}")
        else:
            self.again[kind] = (one.get("classification") == label) != AGAIN[kind][1]

    def covered(self, sizes: Mapping[str, int]) -> int:
        """How many tokens of documents of these sizes the quotes cover."""
        tokens = set[tuple[str, int]]()
        for docid, start, end in self.spans:
            if docid not in sizes:
                self._say(f"{QUOTES_FIELD}.docid", f"no document {docid!r}")
            elif end > sizes[docid]:
                self._say(
                    f"{QUOTES_FIELD}.end_token", f"expected at most {sizes[docid]} (the document's tokens), found {end}"
                )
            else:
                tokens.update((docid, at) for at in range(start, end))
        return len(tokens)


# what is summed up per instance
COLUMNS = (
    *STATUSES, "quotes", "placed", "quoted_tokens", "any_invented", "answered", "instances", "covered", "tokens",
    *(f"{part}_{kind}" for part in ("asked", "counted") for kind in AGAIN),
)  # fmt: skip


def _finalize(sums: np.ndarray) -> dict[str, np.ndarray]:
    """From sums of `COLUMNS`."""
    column = dict(zip(COLUMNS, np.moveaxis(sums, -1, 0), strict=True))
    parts = {
        "in_text": ("placed", "quotes"), **{key: (key, "quotes") for key in ("exact", "normalised", "fuzzy", "ambiguous")},
        "invented": ("not_found", "quotes"), "instances_with_invented": ("any_invented", "answered"),
        "quotes_per_instance": ("quotes", "answered"), "quote_length": ("quoted_tokens", "placed"), "coverage": ("covered", "tokens"),
        "answered": ("answered", "instances"),
        **{key: (f"counted_{kind}", f"asked_{kind}") for kind, (key, _) in AGAIN.items()},
    }  # fmt: skip
    return {key: divide(column[part], column[whole], np.nan) for key, (part, whole) in parts.items()}


def _sizes(reference: Row, name: str, offences: Offences) -> dict[str, int]:
    """Docid -> tokens of a reference's documents."""
    sizes = {}
    for at, document in enumerate(as_list(reference.get("documents")) or ()):
        if not isinstance(document, Mapping) or not isinstance(document.get("text"), str):
            offences.say_of("reference", name, f"documents[{at}]", f"expected docid and text, found {cut(document)}")
        else:
            sizes[str(document.get("docid"))] = sum(sentence_sizes(document["text"]))
    return sizes


class QuoteFaithfulness(RowBatches, evaluate.Metric):
    """Faithfulness of quotes; see ``inputs_description``."""

    FORMAT = INSTANCE

    def _info(self) -> evaluate.MetricInfo:
        headline = HEADLINE["quote_faithfulness"]
        return info(_DESCRIPTION, ERASER, _INPUTS_DESCRIPTION, HIGHER_IS_BETTER, RANGES, headline)

    def _measure(
        self, predictions: Sequence[Row] | None, references: Sequence[Row] | None, only_predicted: bool = False
    ) -> Measured:
        """Per instance: counts of its quotes, of the tokens that they cover, and of its documents' tokens."""
        if not predictions:
            raise ValueError("expected predictions with quotes, found none")
        offences = Offences()
        rows = by_id(predictions, "prediction", offences)
        gold = by_id(references or (), "reference", offences)
        if gold:
            check_partners(rows, gold, offences, only_predicted)
        values = np.zeros((len(rows), len(COLUMNS)))
        for at, (name, row) in enumerate(rows.items()):
            quotes = Quotes(row, name, offences)
            counts = {status: quotes.statuses.count(status) for status in STATUSES}
            sizes = _sizes(gold[name], name, offences) if name in gold else {}
            counts |= {
                "quotes": len(quotes.statuses) - counts["empty"], "placed": len(quotes.spans),
                "quoted_tokens": sum(end - start for _, start, end in quotes.spans), "any_invented": counts["not_found"] > 0,
                "answered": quotes.answered, "instances": 1, "covered": quotes.covered(sizes) if sizes else 0,
                "tokens": sum(sizes.values()),
                **{f"asked_{kind}": kind in quotes.again for kind in AGAIN},
                **{f"counted_{kind}": quotes.again.get(kind, False) for kind in AGAIN},
            }  # fmt: skip
            values[at] = [counts[column] for column in COLUMNS]
        offences.stop()
        statistics = Statistics(list(rows), values, _finalize, _finalize(values), COLUMNS)
        totals = dict(zip(COLUMNS, values.sum(axis=0).astype(int).tolist(), strict=True))
        settings: dict[str, object] = {"coverage": "documents"} if gold else {}
        return Measured(
            statistics,
            RowColumns([[gold.get(name), row] for name, row in rows.items()]),
            settings | scored_of(len(rows), max(len(rows), len(gold))),
            {"quotes": totals["quotes"], "empty": totals["empty"]},
        )
