"""Pairs of the perturbation benchmark laid out for the eye: original and perturbed, with their top tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

from eraser_hub.conversion.built import get_label_name
from eraser_hub.metrics.plain import escape_whitespace, find_runs
from eraser_hub.records.errors import DataError, show

from .marked_instances import MarkedDocument, MarkedInstance, read_marked_quotes

MAX_TOP = 10


def _indices(value: Any, tokens: int, where: str, identity: str) -> list[int]:
    for index in value:
        if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index < tokens:
            message = f"expected a token's index below {tokens}, found {show(index)}"
            raise DataError(message, instance=identity, field=where)
    return list(value)


def _sequences(value: Any, count: int, where: str, identity: str) -> list[Any]:
    if not isinstance(value, list) or len(value) != count or any(not isinstance(part, list) for part in value):
        message = f"expected a list for each of the {count} sequences, found {show(value)}"
        raise DataError(message, instance=identity, field=where)
    return value


def mark_side(
    row: Mapping[str, Any], instance: Mapping[str, Any] | None
) -> tuple[MarkedDocument, tuple[str, ...], dict[int, int]]:
    """Mark one side of a pair: its marked tokens, its top tokens and the rank of each marked token.

    Args:
        row: a row of ``bilingual_perturbation``.
        instance: the model's output for it, or None.

    Raises:
        DataError: an index outside its sequence, or another number of sequences.
    """
    identity, sequences = str(row["id"]), [list(sequence) for sequence in row["tokens"]]
    offsets = [sum(map(len, sequences[:k])) for k in range(len(sequences))]
    gold = []
    for k, sets in enumerate(row.get("rationale_ids") or ()):
        for group, indices in enumerate(sets):
            checked = _indices(indices, len(sequences[k]), f"rationale_ids[{k}][{group}]", identity)
            gold += [(start, end, group) for start, end in find_runs(checked, offsets[k])]
    chosen, ranked = ((instance or {}).get(name) for name in ("rationale", "rationale_tokens"))
    parts = None if chosen is None else _sequences(chosen, len(sequences), "rationale", identity)
    order = None if ranked is None else _sequences(ranked, len(sequences), "rationale_tokens", identity)
    predicted, top, ranks = list[tuple[int, int]](), list[str](), dict[int, int]()
    for k, sequence in enumerate(sequences):
        indices = [] if parts is None else _indices(parts[k], len(sequence), f"rationale[{k}]", identity)
        predicted += find_runs(indices, offsets[k])
        words = [] if order is None else [str(word) for word in order[k]]
        wanted = len(set(indices)) or MAX_TOP
        top += words[: min(wanted, MAX_TOP)]
        for rank, word in enumerate(words[:wanted], 1):
            place = next((i for i in sorted(indices) if sequence[i] == word and i + offsets[k] not in ranks), None)
            if place is not None:
                ranks[place + offsets[k]] = rank
    document = MarkedDocument(
        identity,
        tuple(tuple(map(escape_whitespace, sequence)) for sequence in sequences),
        tuple(sorted(gold)),
        None if parts is None else tuple(predicted),
    )
    return document, tuple(top), ranks


def pair_rows(rows: Sequence[Mapping[str, Any]]) -> list[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Return original and perturbed rows in the originals' order, without `find_lost_partners`."""
    known = {str(row["id"]): row for row in rows}
    return [(row, known[other]) for row, other in _named(rows) if other in known]


def find_lost_partners(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the perturbed records that originals name but the rows lack, as in parts of a release."""
    known = {str(row["id"]) for row in rows}
    return [other for _, other in _named(rows) if other not in known]


def _named(rows: Sequence[Mapping[str, Any]]) -> list[tuple[Mapping[str, Any], str]]:
    originals = (row for row in rows if row["sample_type"] == "ori")
    return [(row, str(other)) for row in originals for other in row.get("rel_ids") or ()]


def mark_pair(
    pair: tuple[Mapping[str, Any], Mapping[str, Any]],
    outputs: Mapping[str, Mapping[str, Any]] | None,
    label_names: Sequence[str] | None = None,
) -> MarkedInstance:
    """Mark a pair.

    Args:
        pair: the original and the perturbed row.
        outputs: a model's rows by id; None shows the gold alone.
        label_names: the names of the ClassLabel, if the rows hold its number.

    Raises:
        DataError: a record without output, or one that does not fit it.
    """
    instances = [None if outputs is None else outputs.get(str(row["id"])) for row in pair]
    without = [outputs is not None and instance is None for instance in instances]
    if any(without):
        alone = pair[without.index(True)]["id"]
        message = "expected a prediction for every record of a pair, found none"
        raise DataError(message, instance=alone)
    names = ("original", "perturbed")
    return _marked(pair, instances, label_names, names, titles=names)


def mark_record(
    row: Mapping[str, Any], instance: Mapping[str, Any] | None = None, label_names: Sequence[str] | None = None
) -> MarkedInstance:
    """Mark one record of the benchmark without its partner; arguments and errors as in `mark_pair`."""
    return _marked([row], [instance], label_names)


def _marked(
    rows: Sequence[Mapping[str, Any]],
    instances: Sequence[Mapping[str, Any] | None],
    label_names: Sequence[str] | None,
    names: Sequence[str] = ("",),
    titles: tuple[str, ...] = (),
) -> MarkedInstance:
    """Mark records side by side; ``names`` are those of the sides in front of quotes."""
    first, answer = rows[0], (instances[0] or {}).get("pred_label")
    sides = [mark_side(row, instance) for row, instance in zip(rows, instances, strict=True)]
    answered = any(instance is not None for instance in instances)
    return MarkedInstance(
        annotation_id=" / ".join(str(row["id"]) for row in rows),
        query=str(first.get("question") or ""),
        label=get_label_name(first.get("label"), label_names, instance=first["id"], field="label") or "",
        documents=tuple(document for document, _, _ in sides),
        predicted_label=get_label_name(answer, label_names, instance=first["id"], field="pred_label"),
        label_known=first.get("label") is not None,
        tops=tuple(top for _, top, _ in sides) if answered else (),
        ranks=tuple(ranks for _, _, ranks in sides) if answered else (),
        language=str(first.get("language") or ""),
        quotes=tuple(chain.from_iterable(map(read_marked_quotes, instances, names))),
        titles=titles,
    )
