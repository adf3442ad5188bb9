"""Whether a language model's quotes stand in the text, and how much of it they cover."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import evaluate

from .batches import Batches, Measured
from .cells import Row, as_list
from .fields import AGAIN_FIELD, ANNOTATION, INSTANCE, OUTCOME_FIELD, QUOTES_FIELD
from .offences import InputError, Offences, cut
from .quotes import quote_statistics
from .results import scored_of
from .rows import RowColumns, by_id, check_partners
from .sources import ERASER
from .tokens import sentence_sizes

HIGHER_IS_BETTER: dict[str, bool | None] = {
    "in_text": True,
    "exact": True,
    "normalised": None,
    "fuzzy": None,
    "ambiguous": None,
    "invented": False,
    "instances_with_invented": False,
    "quotes_per_instance": None,
    "quote_length": None,
    "coverage": None,
    "answered": True,
    "label_flip_redacted": True,
    "label_flip_removed": True,
    "label_flip_random": None,
    "label_kept_alone": True,
    "simulatability": True,
}
RANGES: dict[str, tuple[float | None, float | None]] = dict.fromkeys(HIGHER_IS_BETTER, (0.0, 1.0))
RANGES |= dict.fromkeys(("quotes_per_instance", "quote_length"), (0.0, None))


def _sizes(reference: Row, name: str, offences: Offences) -> dict[str, int]:
    """Docid -> tokens of a reference's documents."""
    sizes = {}
    for at, document in enumerate(as_list(reference.get("documents")) or ()):
        docid = document.get("docid") if isinstance(document, Mapping) else None
        if not isinstance(document, Mapping) or not isinstance(document.get("text"), str):
            offences.say_of(
                "reference", name, f"documents[{at}]", f"expected docid and text, found {cut(document)}", "type"
            )
        elif not isinstance(docid, str | int):
            offences.say_of(
                "reference", name, f"documents[{at}].docid", f"expected a string, found {cut(docid)}", "type"
            )
        else:
            sizes[str(docid)] = sum(sentence_sizes(document["text"]))
    return sizes


class QuoteFaithfulness(Batches, evaluate.Metric):  # type: ignore[misc]  # evaluate is untyped
    """Quotes that a language model gives for its answer, each with where it was found in the text: the share that
    stands there, as it is or nearly, and the share that is invented.

    Args:
        predictions: instances {annotation_id, quotes, outcome}, as `eraser-hub ask` writes them: quotes is a
            list of {text, status, docid, start_token, end_token, similarity}, status one of exact, normalised,
            fuzzy, ambiguous, not_found, empty; outcome other than "answered" (optional) says that there is no
            answer, and so no quote. Optional: classification with asked_again, a list of {kind, classification,
            outcome}, kind one of redacted, removed, random, alone, simulated: what was answered to the changed
            question; classification is null where there was no answer.
        references: optional; rows {annotation_id, documents} of the dataset, for coverage.
        only_predicted: references without an instance are left out, and the signature says how many were
            scored.
        per_instance, confidence_level, n_resamples, seed, ci_method, cluster_by, by, label_names: as in all
            modules of this family.

    Returns:
        in_text, exact, normalised, fuzzy, ambiguous, invented in [0, 1]: shares of the quotes (empty ones left
        out); instances_with_invented in [0, 1]: share of the answered instances with any invented quote;
        quotes_per_instance; quote_length, tokens of a quote in the text; coverage in [0, 1] (NaN without
        references), share of the documents' tokens that quotes cover; answered in [0, 1]; of the answered
        instances that were asked again, in [0, 1]: label_flip_redacted, label_flip_removed, label_flip_random,
        the share whose label changes (no answer is a change) without the quotes, or without random spans of
        their lengths; label_kept_alone, whose label is the same with the quotes alone; simulatability, of which
        another model gives the same label by the quotes (NaN where none was asked); quotes and empty, counts;
        signature. NaN where nothing is there to divide by.

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

    SOURCE = ERASER._replace(codebase="")
    INPUTS = (
        (INSTANCE, ("annotation_id", QUOTES_FIELD, OUTCOME_FIELD, "classification", AGAIN_FIELD)),
        (ANNOTATION, ("annotation_id", "documents")),
    )
    HIGHER_IS_BETTER, RANGES = HIGHER_IS_BETTER, RANGES

    def _measure(
        self, predictions: Sequence[Row] | None, references: Sequence[Row] | None, only_predicted: bool = False
    ) -> Measured:
        """Per instance: counts of its quotes, of the tokens that they cover, and of its documents' tokens."""
        if not predictions:
            raise InputError("expected predictions with quotes, found none", "empty")
        offences = Offences()
        rows = by_id(predictions, "prediction", offences)
        gold = by_id(references or (), "reference", offences)
        if gold:
            check_partners(rows, gold, offences, only_predicted)
        sizes = {name: _sizes(reference, name, offences) for name, reference in gold.items()}
        statistics, counts = quote_statistics(rows, sizes, offences)
        offences.stop()
        settings: dict[str, object] = {"coverage": "documents"} if gold else {}
        return Measured(
            statistics,
            RowColumns([[gold.get(name), row] for name, row in rows.items()]),
            settings | scored_of(len(rows), max(len(rows), len(gold))),
            counts,
        )
