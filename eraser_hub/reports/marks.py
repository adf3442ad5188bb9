"""Texts laid out for the eye: tokens, gold evidence, and what each system says of the same tokens.

Terminal, notebook and report draw from this one model, so that they cannot disagree. Records of the perturbation
benchmark are laid out as rows of ``eraser``: a document for the original, and one for its perturbation.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from eraser_hub.conversion.built import get_label_name
from eraser_hub.metrics.tokens import escape_whitespace, find_runs, split_sentences
from eraser_hub.records.errors import DataError, show

Row = Mapping[str, Any]
STEPS = 5  # of token scores
MAX_TOP = 10  # most important tokens that a side of a pair lists


class MarkedDocument(NamedTuple):
    """A document's name, and its tokens, sentence by sentence."""

    docid: str
    sentences: list[list[str]]

    @property
    def num_tokens(self) -> int:
        """The number of tokens in all sentences."""
        return sum(map(len, self.sentences))


class MarkedQuote(NamedTuple):
    """A language model's quote: its words, how it was found, and where (nothing where it was not)."""

    text: str
    status: str
    place: str = ""


class Answer(msgspec.Struct, omit_defaults=True):
    """What a system says of a text, as the page of a report has it; all spans are [start, end) over all sentences.

    Attributes:
        label: the predicted label; None: none.
        p: label -> probability.
        hard: (document, start, end) of the predicted spans, sorted, equal ones once; None without a hard rationale.
        soft: of each document a digit for each token, see `to_steps`, or None; None without scores.
        tops: of each document its most important tokens, where the predictions rank them.
        quotes: of a language model, in its order.
    """

    label: str | None = None
    p: dict[str, float] = {}
    hard: list[tuple[int, int, int]] | None = None
    soft: list[str | None] | None = None
    tops: list[list[str]] = []
    quotes: list[MarkedQuote] = []


class MarkedText(msgspec.Struct):
    """An annotation with its gold, and each system's answer.

    Attributes:
        annotation_id, query, label, language: of the annotation; "" where there is none.
        label_known: False where the gold label is missing, or a number without its name.
        documents: its documents.
        gold: (document, start, end, group) of each evidence, sorted; groups are counted from 0.
        empty_gold: number of evidences with start == end (real in some releases): there is nothing to mark.
        answers: name of the system -> its answer.
    """

    annotation_id: str
    query: str
    label: str
    language: str
    label_known: bool
    documents: list[MarkedDocument]
    gold: list[tuple[int, int, int, int]]
    empty_gold: int
    answers: dict[str, Answer] = {}

    def is_right(self, name: str) -> bool | None:
        """Return whether a system's label is the gold one; None if either is unknown."""
        predicted = self.answers[name].label
        return None if predicted is None or not self.label_known else predicted == self.label


def mark_text(row: Row, label_names: Sequence[str] | None = None) -> MarkedText:
    """Return a row of ``eraser`` with its gold, and no answers.

    Args:
        row: the row: annotation_id, documents, evidences, classification, query.
        label_names: the names of the ClassLabel, where the row holds its number.
    """
    sides = {document["docid"]: d for d, document in enumerate(row["documents"])}
    gold = [
        (sides[evidence["docid"]], evidence["start_token"], evidence["end_token"], group)
        for group, evidences in enumerate(row["evidences"])
        for evidence in evidences
    ]
    marked = sorted(span for span in gold if span[1] < span[2])
    documents = [
        MarkedDocument(document["docid"], document.get("sentences") or split_sentences(document["text"]))
        for document in row["documents"]
    ]
    identity = str(row["annotation_id"])
    # the built datasets hold the name of the class beside its number
    value = row["label"] if isinstance(row.get("label"), str) else row.get("classification")
    label = get_label_name(value, label_names, instance=identity)
    is_known = isinstance(value, str) or (label is not None and label_names is not None)
    about = identity, str(row.get("query") or ""), label or "", str(row.get("language") or "")
    return MarkedText(*about, is_known, documents, marked, len(gold) - len(marked))


def mark_answer(text: MarkedText, instance: Row | None) -> Answer:
    """Return a system's output over the same tokens.

    Args:
        text: the text.
        instance: the output in the ERASER results format, which fits the row as scoring checks it; None: there is none.

    Raises:
        DataError: a quote without text and status.
    """
    output, quotes = instance or {}, []
    for at, quote in enumerate(output.get("quotes") or ()):
        words, status = (quote.get(name) if isinstance(quote, Mapping) else None for name in ("text", "status"))
        if not isinstance(words, str) or not isinstance(status, str):
            message = f"expected a quote with text and status, found {show(quote)}"
            raise DataError(message, instance=text.annotation_id, field=f"quotes[{at}]")
        places = [quote.get(name) for name in ("docid", "start_token", "end_token")]
        quotes.append(MarkedQuote(words, status, "" if None in places else f"{places[0]} {places[1]}–{places[2]}"))
    by_document = {str(rationale["docid"]): rationale for rationale in output.get("rationales") or ()}
    rationales = [by_document.get(document.docid, {}) for document in text.documents]
    spans = [rationale.get("hard_rationale_predictions") for rationale in rationales]
    scores = [rationale.get("soft_rationale_predictions") for rationale in rationales]
    hard = {(d, span["start_token"], span["end_token"]) for d, own in enumerate(spans) for span in own or ()}
    tops = [rationale.get("ranked_tokens", []) for rationale in rationales]
    return Answer(
        output.get("classification"),
        # a table of Arrow gives every label's key to every row, with null where it had none
        {name: p for name, p in (output.get("classification_scores") or {}).items() if p is not None},
        None if spans == [None] * len(spans) else sorted(hard),
        None if scores == [None] * len(scores) else [None if own is None else to_steps(own) for own in scores],
        tops if any(tops) else [],
        quotes,
    )


def to_steps(scores: Sequence[float]) -> str:
    """Return scores as digits from 0 to `STEPS` - 1, linear from the lowest to the highest; all 0 if all are equal.

    >>> to_steps([0.1, 0.2, 0.5]), to_steps([0.5, 0.5])
    ('014', '00')
    """
    low, high = min(scores, default=0.0), max(scores, default=0.0)
    # divided before subtracting: two huge scores of opposite sign must not overflow
    width = high / 2 - low / 2
    steps = (int((score / 2 - low / 2) / width * STEPS) if width else 0 for score in scores)
    return "".join(str(min(STEPS - 1, step)) for step in steps)


# -- records of the perturbation benchmark ----------------------------------------------------------------------------


def pair_records(rows: Sequence[Row]) -> tuple[list[tuple[Row, ...]], list[str]]:
    """Return original and perturbed records, and the ids of those that originals name but the rows lack."""
    known = {str(row["id"]): row for row in rows}
    named = [(row, str(other)) for row in rows if row["sample_type"] == "ori" for other in row.get("rel_ids") or ()]
    return [(row, known[other]) for row, other in named if other in known], [o for _, o in named if o not in known]


def name_sides(records: Sequence[Row]) -> list[str]:
    """Return the document of each record of a pair; that of a single record has its id."""
    titles = ("original · ", "perturbed · ") if len(records) > 1 else ("",)
    return [f"{title}{record['id']}" for title, record in zip(titles, records, strict=True)]


def join_records(records: Sequence[Row]) -> dict[str, Any]:
    """Return an original and its perturbation, or one record alone, as a row of ``eraser``: a document each."""
    from eraser_hub.metrics.sets import read_indices

    documents, groups = [], dict[int, list[dict[str, Any]]]()
    for docid, record in zip(name_sides(records), records, strict=True):
        offset = 0
        for k, tokens in enumerate(record["tokens"]):
            for group, indices in enumerate(record["rationale_ids"][k] if record.get("rationale_ids") else ()):
                chosen = read_indices(indices, len(tokens), str(record["id"]), f"rationale_ids[{k}][{group}]")
                spans = find_runs(chosen, offset)
                groups.setdefault(group, []).extend(
                    {"docid": docid, "start_token": start, "end_token": end} for start, end in spans
                )
            offset += len(tokens)
        sentences = [list(map(escape_whitespace, tokens)) for tokens in record["tokens"]]
        documents.append({"docid": docid, "sentences": sentences})
    first = records[0]
    row = {"annotation_id": " / ".join(str(record["id"]) for record in records), "query": first.get("question")}
    row |= {"classification": first.get("label"), "language": first.get("language"), "documents": documents}
    return row | {"evidences": [groups.get(group, []) for group in range(max(groups, default=-1) + 1)]}


def join_outputs(
    records: Sequence[Row], outputs: Mapping[str, Row], label_names: Sequence[str] | None = None
) -> dict[str, Any]:
    """Return a model's rows for `join_records` as one instance; its label and probabilities are the first record's.

    Args:
        records: the records.
        outputs: the model's rows by id.
        label_names: the names of the ClassLabel, where ``pred_label`` is its number.

    Raises:
        DataError: a record without output, an index outside its sequence, another number of sequences.
    """
    from eraser_hub.metrics.map import PERTURBATION_ROW, check_rows
    from eraser_hub.metrics.sets import read_indices

    rationales, quotes = list[dict[str, Any]](), list[Any]()
    for docid, record in zip(name_sides(records), records, strict=True):
        name, sequences = str(record["id"]), record["tokens"]
        if name not in outputs:
            raise DataError("expected a prediction for every record, found none for this one", instance=name)
        output = outputs[name]
        parts = {key: output[key] for key in ("rationale", "rationale_tokens") if output.get(key) is not None}
        check_rows({name: parts}, PERTURBATION_ROW)
        for key, part in parts.items():
            if len(part) != len(sequences):
                message = f"expected a list for each of the {len(sequences)} sequences, found {show(part)}"
                raise DataError(message, instance=name, field=key)
        rationale: dict[str, Any] = {"docid": docid, "ranked_tokens": []}
        if "rationale" in parts:
            rationale["hard_rationale_predictions"] = []
        offset = 0
        for k, tokens in enumerate(sequences):
            chosen: Collection[int] = ()
            if "rationale" in parts:
                chosen = read_indices(parts["rationale"][k], len(tokens), name, f"rationale[{k}]")
                spans = find_runs(chosen, offset)
                rationale["hard_rationale_predictions"] += [
                    {"start_token": start, "end_token": end} for start, end in spans
                ]
            if "rationale_tokens" in parts:
                rationale["ranked_tokens"] += parts["rationale_tokens"][k][: min(len(chosen) or MAX_TOP, MAX_TOP)]
            offset += len(tokens)
        rationales.append(rationale)
        quotes += output.get("quotes") or ()
    first = outputs[str(records[0]["id"])]
    label = get_label_name(first.get("pred_label"), label_names, instance=records[0]["id"], field="pred_label")
    return {"rationales": rationales, "classification": label, "quotes": quotes}
