"""Texts laid out for the eye: tokens, gold evidence, predicted rationale and soft scores over the same text.

Terminal, notebook and report draw from this one model, so that they cannot disagree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from eraser_hub.conversion.built import get_label_name
from eraser_hub.metrics import plain
from eraser_hub.metrics.tokens import escape_whitespace, find_runs, split_sentences
from eraser_hub.records.errors import DataError, show

if TYPE_CHECKING:
    from eraser_hub.scoring.scored_split import ScoredSplit

Row = Mapping[str, Any]
MAX_TOP = 10  # most important tokens that a side of a pair lists


@dataclass(frozen=True, slots=True)
class MarkedDocument:
    """A document's tokens and the marks over them; all spans are [start, end) over the tokens of all sentences.

    Attributes:
        docid: the document's name.
        sentences: the tokens, sentence by sentence.
        gold: (start, end, group) of each evidence, sorted; groups are counted from 0 over the annotation.
        predicted: (start, end) of each predicted span, sorted, equal ones once; None without a hard rationale.
        soft: one score per token, or None.
        empty_gold: number of evidences with start == end (real in some releases): there is nothing to mark.
    """

    docid: str
    sentences: tuple[tuple[str, ...], ...]
    gold: tuple[tuple[int, int, int], ...] = ()
    predicted: tuple[tuple[int, int], ...] | None = None
    soft: tuple[float, ...] | None = None
    empty_gold: int = 0

    @property
    def num_tokens(self) -> int:
        """The number of tokens in all sentences."""
        return sum(map(len, self.sentences))

    def shades(self, levels: int = 100) -> list[int] | None:
        """Return soft scores as steps 0 .. levels - 1, linear from the document's lowest to its highest score.

        A document whose scores are all equal has no contrast to show: every step is 0.
        """
        if self.soft is None:
            return None
        low, high = min(self.soft, default=0.0), max(self.soft, default=0.0)
        # divided before subtracting: two huge scores of opposite sign must not overflow
        width = high / 2 - low / 2
        return [min(levels - 1, int((score / 2 - low / 2) / width * levels)) if width else 0 for score in self.soft]


class MarkedQuote(NamedTuple):
    """A language model's quote: its words, how it was found, and where (nothing where it was not)."""

    text: str
    status: str
    place: str = ""


@dataclass(frozen=True, slots=True)
class MarkedInstance:
    """An annotation, and what a model said of it.

    For a pair of the perturbation benchmark the documents are its two sides, with ``titles``; ``tops`` are each side's
    most important tokens and ``ranks`` the rank of its marked tokens. ``label_known`` is False where the gold label is
    missing, or a number without its name.
    """

    annotation_id: str
    query: str
    label: str
    documents: tuple[MarkedDocument, ...]
    predicted_label: str | None = None
    probabilities: Mapping[str, float] = field(default_factory=dict)
    label_known: bool = True
    language: str = ""
    titles: tuple[str, ...] = ()
    tops: tuple[tuple[str, ...], ...] = ()
    ranks: tuple[Mapping[int, int], ...] = ()
    quotes: tuple[MarkedQuote, ...] = ()

    @property
    def right(self) -> bool | None:
        """True if the predicted label is the gold one; None if either is unknown."""
        return None if self.predicted_label is None or not self.label_known else self.predicted_label == self.label


def mark_instance(row: Row, instance: Row | None = None, *, label_names: Sequence[str] | None = None) -> MarkedInstance:
    """Lay a row of ``eraser`` and a model's output for it over the same tokens.

    Args:
        row: the row: annotation_id, documents, evidences, classification, query.
        instance: the output in the ERASER results format, which fits the row as scoring checks it; None shows the gold
            alone.
        label_names: the names of the ClassLabel, where the row holds its number.
    """
    output, documents = instance or {}, []
    rationales = {str(one["docid"]): one for one in output.get("rationales") or ()}
    for document in row["documents"]:
        rationale, gold = rationales.get(document["docid"], {}), []
        for group, evidences in enumerate(row["evidences"]):
            own = [evidence for evidence in evidences if evidence["docid"] == document["docid"]]
            gold += [(evidence["start_token"], evidence["end_token"], group) for evidence in own]
        spans, scores = (rationale.get(f"{kind}_rationale_predictions") for kind in ("hard", "soft"))
        hard = {(span["start_token"], span["end_token"]) for span in spans or ()}
        marked = MarkedDocument(
            document["docid"],
            tuple(map(tuple, split_sentences(document["text"]))),
            tuple(sorted(span for span in gold if span[0] < span[1])),
            None if spans is None else tuple(sorted(hard)),
            None if scores is None else tuple(map(float, scores)),
            sum(start == end for start, end, _ in gold),
        )
        documents.append(marked)
    identity = str(row["annotation_id"])
    # the built datasets hold the name of the class beside its number
    value = row["label"] if isinstance(row.get("label"), str) else row.get("classification")
    label = get_label_name(value, label_names, instance=identity)
    return MarkedInstance(
        identity,
        str(row.get("query") or ""),
        label or "",
        tuple(documents),
        output.get("classification"),
        # a table of Arrow gives every label's key to every row, with null where it had none
        {name: p for name, p in (output.get("classification_scores") or {}).items() if p is not None},
        isinstance(value, str) or (label is not None and label_names is not None),
        quotes=_mark_quotes(output, identity),
    )


def _mark_quotes(output: Row, identity: str, side: str = "") -> tuple[MarkedQuote, ...]:
    """Return the quotes of a model's output, in its order; ``side`` names the record of a pair."""
    marked = []
    for at, quote in enumerate(output.get("quotes") or ()):
        text, status = (quote.get(name) if isinstance(quote, Mapping) else None for name in ("text", "status"))
        if not isinstance(text, str) or not isinstance(status, str):
            message = f"expected a quote with text and status, found {show(quote)}"
            raise DataError(message, instance=identity, field=f"quotes[{at}]")
        places = [quote.get(name) for name in ("docid", "start_token", "end_token")]
        place = "" if None in places else f"{places[0]} {places[1]}–{places[2]}"
        marked.append(MarkedQuote(text, status, " · ".join(filter(None, (side, place)))))
    return tuple(marked)


# -- pairs of the perturbation benchmark ------------------------------------------------------------------------------


def pair_rows(rows: Sequence[Row]) -> list[tuple[Row, Row]]:
    """Return original and perturbed rows in the originals' order, without `find_lost_partners`."""
    known = {str(row["id"]): row for row in rows}
    return [(row, known[other]) for row, other in _list_partners(rows) if other in known]


def find_lost_partners(rows: Sequence[Row]) -> list[str]:
    """Return the perturbed records that originals name but the rows lack, as in parts of a release."""
    known = {str(row["id"]) for row in rows}
    return [other for _, other in _list_partners(rows) if other not in known]


def _list_partners(rows: Sequence[Row]) -> list[tuple[Row, str]]:
    return [(row, str(other)) for row in rows if row["sample_type"] == "ori" for other in row.get("rel_ids") or ()]


def mark_pair(
    pair: Sequence[Row], outputs: Mapping[str, Row] | None, label_names: Sequence[str] | None = None
) -> MarkedInstance:
    """Mark a pair of the perturbation benchmark, or one of its records alone.

    Args:
        pair: the original and the perturbed row; or one row.
        outputs: a model's rows by id; None shows the gold alone.
        label_names: the names of the ClassLabel, where the rows hold its number.

    Raises:
        DataError: a record without output, an index outside its sequence, another number of sequences.
    """
    first, ids = pair[0], [str(row["id"]) for row in pair]
    titles = ("original", "perturbed") if len(pair) > 1 else ()
    if lost := [name for name in ids if outputs is not None and name not in outputs]:
        raise DataError("expected a prediction for every record, found none for this one", instance=lost[0])
    chosen = [{} if outputs is None else outputs[name] for name in ids]
    sides = [_mark_side(*side) for side in zip(pair, chosen, titles or ("",), strict=True)]
    answered = outputs is not None
    return MarkedInstance(
        " / ".join(ids),
        str(first.get("question") or ""),
        get_label_name(first.get("label"), label_names, instance=ids[0], field="label") or "",
        tuple(document for document, _, _, _ in sides),
        get_label_name(chosen[0].get("pred_label"), label_names, instance=ids[0], field="pred_label"),
        label_known=first.get("label") is not None,
        language=str(first.get("language") or ""),
        titles=titles,
        tops=tuple(tuple(top) for _, top, _, _ in sides) if answered else (),
        ranks=tuple(ranks for _, _, ranks, _ in sides) if answered else (),
        quotes=tuple(quote for _, _, _, quotes in sides for quote in quotes),
    )


def _mark_side(
    row: Row, output: Row, title: str
) -> tuple[MarkedDocument, list[str], dict[int, int], Sequence[MarkedQuote]]:
    """Return a record with its marked tokens, its top tokens, the rank of each marked token, and quotes."""
    from eraser_hub.metrics.map import PERTURBATION_ROW, check_rows
    from eraser_hub.metrics.sets import read_indices

    name, sequences = str(row["id"]), row["tokens"]
    parts = {key: output[key] for key in ("rationale", "rationale_tokens") if output.get(key) is not None}
    check_rows({name: parts}, PERTURBATION_ROW)
    for key, part in parts.items():
        if len(part) != len(sequences):
            message = f"expected a list for each of the {len(sequences)} sequences, found {show(part)}"
            raise DataError(message, instance=name, field=key)
    rationale, ranking = parts.get("rationale"), parts.get("rationale_tokens")
    gold, predicted, top, ranks, offset = [], [], list[str](), dict[int, int](), 0
    for k, tokens in enumerate(sequences):
        for group, indices in enumerate(row["rationale_ids"][k] if row.get("rationale_ids") else ()):
            runs = find_runs(read_indices(indices, len(tokens), name, f"rationale_ids[{k}][{group}]"), offset)
            gold += [(start, end, group) for start, end in runs]
        chosen = sorted(read_indices(rationale[k], len(tokens), name, f"rationale[{k}]")) if rationale else []
        predicted += find_runs(chosen, offset)
        words = ranking[k] if ranking else []
        limit = len(chosen) or MAX_TOP
        top += words[: min(limit, MAX_TOP)]
        for rank, word in enumerate(words[:limit], 1):
            at = next((i + offset for i in chosen if tokens[i] == word and i + offset not in ranks), None)
            if at is not None:
                ranks[at] = rank
        offset += len(tokens)
    lines = tuple(tuple(map(escape_whitespace, tokens)) for tokens in sequences)
    hard = None if rationale is None else tuple(predicted)
    return MarkedDocument(name, lines, tuple(sorted(gold)), hard), top, ranks, _mark_quotes(output, name, title)


# -- predictions and gold of a split ----------------------------------------------------------------------------------


def read_answers(split: ScoredSplit, path: Path) -> dict[str, Row]:
    """Return predictions by id: instances, or records of the perturbation benchmark where the split holds pairs.

    Raises:
        DataError: a file that cannot be read or is empty; a prediction without id, or an id twice.
    """
    from eraser_hub.metrics.rows import index_rows
    from eraser_hub.records.predictions import read_rows
    from eraser_hub.scoring.gold import list_rows

    rows = read_rows(path)
    if split.kind != "perturbation" and plain.is_plain(rows[0]):
        rows, _, _ = plain.to_instances(rows, list_rows(split))
    try:
        return index_rows(rows, "predictions")
    except DataError as error:
        raise error.at(file=path) from None


def choose_evidences(split: ScoredSplit, form: str) -> tuple[dict[str, list[list[dict[str, Any]]]], str]:
    """Return annotation id -> the evidences of a form of the gold, and a note on it.

    Args:
        split: the split.
        form: "evidence" (nothing is returned: the rows have them), "majority" or "union" of the annotators' marks.

    Raises:
        DataError: there are no annotators, or their marks do not fit the documents.
    """
    from eraser_hub.scoring.gold import read_gold
    from eraser_hub.scoring.people import choose_gold

    if form == "evidence":
        return {}, ""
    gold, notes = choose_gold(read_gold(split)[0], split, form)
    evidences = {}
    for row, name in enumerate(gold.ids):
        groups: dict[int, list[dict[str, Any]]] = {}
        for at in range(gold.offsets[row], gold.offsets[row + 1]):
            span = {"docid": gold.docids[gold.doc[at]], "start_token": int(gold.start[at])}
            groups.setdefault(int(gold.group[at]), []).append({**span, "end_token": int(gold.end[at])})
        evidences[name] = list(groups.values())
    return evidences, "; ".join(notes)
