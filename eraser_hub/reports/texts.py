"""The texts of a report: gold and every system's rationale over the same tokens, as data that the page's script draws.

Twenty systems over 200 reviews would be tens of megabytes of static markup; as data a text is stored once, a system's
spans and shades take a few hundred bytes. Data come in blocks of `BLOCK` texts, the first of them in the page, the
others in a file beside it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eraser_hub.metrics import plain
from eraser_hub.metrics.rows import index_rows
from eraser_hub.records.errors import DataError, show
from eraser_hub.records.files import GENERATOR
from eraser_hub.records.predictions import read_rows
from eraser_hub.scoring.gold import list_rows, read_gold
from eraser_hub.scoring.people import choose_gold
from eraser_hub.scoring.result import Scores
from eraser_hub.scoring.runs import System
from eraser_hub.scoring.scored_split import ScoredSplit

from .catalogue import metric
from .findings import merge_notes
from .marks import MarkedText, Row, join_outputs, join_records, mark_answer, mark_text, pair_records
from .page import pack

BLOCK = 200
GOLD = {
    "evidence": "gold evidence",
    "majority": "gold: more than half of the annotators",
    "union": "gold: any annotator",
}
# per-instance scores that texts show and are ordered by; the first that systems share tells where they differ
KEYS = (
    *("token_macro_f1", "token_f1", "auprc", "map", "comprehensiveness_aopc", "comprehensiveness"),
    *("sufficiency_aopc", "sufficiency", "average_precision", "iou_f1"),
    *("normalized_comprehensiveness", "normalized_sufficiency"),
)


@dataclass(slots=True)
class Texts:
    """The texts of a page.

    Attributes:
        index: what the page knows of every text, those first on which systems differ most: ids, labels, answers,
            scores, position in the file.
        blocks: `BLOCK` texts each, packed; the first stands in the page.
        counts: their number in words.
        notes: what is not marked, and why.
        has_pairs: whether each text is an original and its perturbation.
    """

    index: dict[str, Any]
    blocks: list[str]
    counts: str
    notes: list[str]
    has_pairs: bool

    @property
    def beside(self) -> list[str]:
        """The script that stands beside the page and has all blocks but the first; empty if there is no other."""
        added = [f'addBlock({place},"{block}");\n' for place, block in enumerate(self.blocks) if place]
        return [f'// "generator": "{GENERATOR}"\n', *added] if added else []


def make_texts(
    split: ScoredSplit,
    systems: Sequence[System],
    scored: Sequence[Scores],
    gold: str = "evidence",
    hidden: Sequence[str] = (),
) -> Texts:
    """Mark the texts of a split that any system answers, those first on which systems differ most.

    Args:
        split: the split; of the perturbation benchmark a text is an original beside its perturbation.
        systems: the systems; of several runs the first is marked. None: the gold alone.
        scored: their scores, with values per instance.
        gold: the form of the gold.
        hidden: systems that do not count for where systems differ.

    Raises:
        DataError: an answer that does not fit its text, with the system's file.
    """
    has_pairs, names = split.kind == "perturbation", split.labels.names
    rows, note = choose_evidences(split, gold)
    sources: list[tuple[Row, ...]] = [(row,) for row in rows]
    lost: list[str] = []
    if has_pairs:
        sources, lost = pair_records(rows)
    answers = {system.name: read_answers(split, system.path) for system in systems}
    texts, ids = list[MarkedText](), list[str]()
    for source in sources:
        own = [str(record["id" if has_pairs else "annotation_id"]) for record in source]
        found = {name: instances for name, instances in answers.items() if instances.keys() >= {*own}}
        if systems and not found:
            continue
        ids.append(own[0])
        texts.append(mark_text(join_records(source) if has_pairs else source[0], names))
        for system in systems:
            try:
                instance = None
                if system.name in found:
                    instances = found[system.name]
                    instance = join_outputs(source, instances, names) if has_pairs else instances[own[0]]
                texts[-1].answers[system.name] = mark_answer(texts[-1], instance)
            except DataError as error:
                raise error.at(file=system.path) from None
    notes = [*([note] if note else []), *describe_unmarked(texts, list(answers), has_pairs)]
    if lost:
        notes.append(f"{len(lost)} perturbed records are named and not among the rows ({show(lost[0])} first)")
    if has_pairs and not any(row.get("rationale_ids") for row in rows):
        notes.append("no gold rationales are marked: this release of the benchmark has none")
    counts = f"{len(texts)} of {len(sources)}" if len(texts) < len(sources) else str(len(texts))
    counts += f" pairs of {len(rows)} records" if has_pairs else " texts"
    index = make_index(texts, ids, names or (), scored, hidden)
    index["gold_words"] = GOLD[gold]
    ordered = [texts[n] for n in index["position"]]
    blocks = [pack(make_block(ordered[start : start + BLOCK])) for start in range(0, len(ordered), BLOCK)]
    return Texts(index, blocks, counts, notes, has_pairs)


def read_answers(split: ScoredSplit, path: Path) -> dict[str, Row]:
    """Return predictions by id: instances, or records of the perturbation benchmark where the split holds pairs.

    Raises:
        DataError: a file that cannot be read or is empty; a prediction without id, or an id twice.
    """
    rows = read_rows(path)
    if split.kind != "perturbation" and plain.is_plain(rows[0]):
        rows, _, _ = plain.to_instances(rows, list_rows(split))
    try:
        return index_rows(rows, "predictions")
    except DataError as error:
        raise error.at(file=path) from None


def choose_evidences(split: ScoredSplit, form: str) -> tuple[list[dict[str, Any]], str]:
    """Return the rows of a split, as those of ``eraser``, with the evidences of a form of the gold, and a note on it.

    Args:
        split: the split.
        form: "evidence" (as the rows have them), "majority" or "union" of the annotators' marks.

    Raises:
        DataError: there are no annotators, or their marks do not fit the documents.
    """
    annotations = (plain.to_instances([], split.rows)[1] or []) if split.kind == "file" else split.rows
    if form == "evidence":
        return annotations, ""
    gold, notes = choose_gold(read_gold(split)[0], split, form)
    rows = []
    for row, start, end in zip(annotations, gold.offsets[:-1], gold.offsets[1:], strict=True):
        groups: dict[int, list[dict[str, Any]]] = {}
        for at in range(start, end):
            span = {"docid": gold.docids[gold.doc[at]], "start_token": int(gold.start[at])}
            groups.setdefault(int(gold.group[at]), []).append({**span, "end_token": int(gold.end[at])})
        rows.append({**row, "evidences": list(groups.values())})
    return rows, "; ".join(notes)


def describe_unmarked(texts: Sequence[MarkedText], systems: Sequence[str], has_pairs: bool) -> list[str]:
    """Return notes on what the predictions of a system have no fields for."""
    fields = {
        "no predicted spans are marked": ("hard", "hard_rationale_predictions"),
        "no shades are drawn": ("soft", "soft_rationale_predictions"),
        "right and wrong are unknown": ("label", "classification"),
    }
    if has_pairs:
        fields = {"no predicted rationale is marked": ("hard", "rationale (lists of token indices)")}
    missing = []
    for name in systems:
        for words, (attribute, field) in fields.items():
            if all(getattr(text.answers[name], attribute) is None for text in texts):
                missing.append((name, f"{words}: the predictions have no {field}"))
    return merge_notes(missing, systems)


def make_index(
    texts: Sequence[MarkedText],
    ids: Sequence[str],
    label_names: Sequence[str],
    scored: Sequence[Scores],
    hidden: Sequence[str],
) -> dict[str, Any]:
    """Return what the page knows of every text, those first on which systems differ most.

    The two systems that are shown at first are the best and the worst on the first text.

    Args:
        texts: the texts.
        ids: the annotation of each, which has its scores.
        label_names: the labels that are known.
        scored: the systems' scores.
        hidden: systems that do not count for where systems differ.
    """
    values: dict[str, dict[str, list[float | None]]] = {}
    for system in scored:
        rows, known = {name: row for row, name in enumerate(system.ids)}, {}
        for key in KEYS:
            column = system.per_instance.get(key, ())
            found = [column[rows[name]] if column and name in rows else None for name in ids]
            if any(value is not None for value in found):
                known[key] = [None if value is None else round(value, 6) for value in found]
        values[system.name] = known
    names = list(values)
    watched, shown = [name for name in names if name not in hidden], [*range(len(names))][:2]
    shared = [key for key in KEYS if watched and all(key in values[name] for name in watched)]
    order, words = list(range(len(texts))), ""
    if shared and texts:
        columns = {name: values[name][shared[0]] for name in watched}
        numbers = [
            {name: number for name, column in columns.items() if (number := column[n]) is not None}
            for n in range(len(texts))
        ]
        if len(watched) > 1:
            words = f"systems differ most in {metric(shared[0]).label}"
            interest = [max(own.values()) - min(own.values()) if len(own) > 1 else -1.0 for own in numbers]
        else:
            words = f"right label, lowest {metric(shared[0]).label}"
            wrong = [text.is_right(watched[0]) is False for text in texts]
            interest = [
                -math.inf if is_wrong or not own else -own[watched[0]]
                for own, is_wrong in zip(numbers, wrong, strict=True)
            ]
        order.sort(key=lambda n: -interest[n])
        first = numbers[order[0]]
        if len(first) > 1:
            shown = [names.index(choose(first, key=first.__getitem__)) for choose in (max, min)]
    ordered = [texts[n] for n in order]
    told = [text.label for text in ordered] + [a.label or "" for text in ordered for a in text.answers.values()]
    labels = [label for label in dict.fromkeys([*label_names, *told]) if label]
    places: dict[str | None, int] = {label: place for place, label in enumerate(labels)}
    return {
        "systems": names,
        "shown": shown,
        "labels": labels,
        "names": {key: metric(key).label for known in values.values() for key in known},
        "interest": words,
        "ids": [text.annotation_id for text in ordered],
        "position": order,
        "gold": [places.get(text.label, -1) if text.label_known else -1 for text in ordered],
        "predicted": [[places.get(text.answers[name].label, -1) for text in ordered] for name in names],
        "values": [{key: [column[n] for n in order] for key, column in values[name].items()} for name in names],
        "block": BLOCK,
    }


def make_block(texts: Sequence[MarkedText]) -> dict[str, Any]:
    """Return a block's documents, each once, and its texts, which name them by place."""
    documents: list[dict[str, Any]] = []
    places: dict[tuple[str, str], int] = {}
    rows = []
    for text in texts:
        numbers = []
        for document in text.documents:
            lines = [" ".join(sentence) for sentence in document.sentences]
            key = document.docid, "\n".join(lines)
            if key not in places:
                places[key] = len(documents)
                documents.append({"id": document.docid, "lines": lines})
            numbers.append(places[key])
        rows.append(
            {
                "query": text.query,
                "lang": text.language,
                "docs": numbers,
                "gold": text.gold,
                "empty": text.empty_gold,
                "systems": list(text.answers.values()),
            }
        )
    return {"docs": documents, "rows": rows}
