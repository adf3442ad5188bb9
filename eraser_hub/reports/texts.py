"""The texts of a report: gold and every system's rationale over the same tokens, as data that the page's script draws.

Twenty systems over 200 reviews would be tens of megabytes of static markup; as data a text is stored once, a system's
spans and shades take a few hundred bytes. Data come in blocks of `BLOCK` texts, the first of them in the page, the
others in a file beside it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from eraser_hub.records.errors import DataError, show
from eraser_hub.records.files import GENERATOR
from eraser_hub.scoring.result import Scores
from eraser_hub.scoring.runs import System
from eraser_hub.scoring.scored_split import ScoredSplit

from .catalogue import metric
from .findings import merge_notes
from .marks import (
    MarkedInstance,
    choose_evidences,
    find_lost_partners,
    mark_instance,
    mark_pair,
    pair_rows,
    read_answers,
)
from .page import pack

Answers = Mapping[str, Mapping[str, Any]]

BLOCK = 200
GOLD = {
    "evidence": ("gold evidence, group 1", "group 2", "group 3"),
    "majority": ("gold: more than half of the annotators",),
    "union": ("gold: any annotator",),
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
        gold: words for each group of gold marks, for the legend.
        has_pairs: whether each text is an original and its perturbation.
    """

    index: dict[str, Any]
    blocks: list[str] = field(default_factory=list)
    counts: str = ""
    notes: list[str] = field(default_factory=list)
    gold: Sequence[str] = ()
    has_pairs: bool = False

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
        split: the split.
        systems: the systems; of several runs the first is marked. None: the gold alone.
        scored: their scores, with values per instance.
        gold: the form of the gold.
        hidden: systems that do not count for where systems differ.

    Raises:
        DataError: an answer that does not fit its text, with the system's file.
    """
    answers = [read_answers(split, system.path) for system in systems]
    texts, ids, counts, notes = (_mark_pairs if split.kind == "perturbation" else _mark_rows)(
        split, systems, answers, gold
    )
    values = [_take_values(system, ids) for system in scored]
    watched = [at for at, system in enumerate(systems) if system.name not in hidden]
    key = next((key for key in KEYS if watched and all(key in values[at] for at in watched)), None)
    interest, words = [0.0] * len(texts), ""
    if key is not None:
        columns = [values[at][key] for at in watched]
        known = [[value for column in columns if (value := column[n]) is not None] for n in range(len(texts))]
        label = metric(key).label
        if len(watched) > 1:
            interest = [max(found) - min(found) if len(found) > 1 else -1.0 for found in known]
            words = f"systems differ most in {label}"
        else:
            right = [text[watched[0]].right is not False for text in texts]
            interest = [-found[0] if found and ok else -math.inf for found, ok in zip(known, right, strict=True)]
            words = f"right label, lowest {label}"
    order = sorted(range(len(texts)), key=lambda n: -interest[n])
    shown = list(range(len(systems)))[:2]
    if key is not None and len(watched) > 1 and order:
        answered = {at: value for at in watched if (value := values[at][key][order[0]]) is not None}
        ranked = sorted(answered, key=lambda at: -answered[at])
        shown = [ranked[0], ranked[-1]] if len(ranked) > 1 else shown
    texts = [texts[n] for n in order]
    labels = list(split.labels.names or ()) if split.kind != "perturbation" else []
    labels += dict.fromkeys(
        label
        for text in texts
        for one in text
        for label in (one.label, one.predicted_label)
        if label and label not in labels
    )
    places: dict[str | None, int] = {label: at for at, label in enumerate(labels)}
    blocks = [texts[start : start + BLOCK] for start in range(0, len(texts), BLOCK)]
    index = {
        "systems": [system.name for system in systems],
        "shown": shown,
        "labels": labels,
        "names": {key: metric(key).label for columns in values for key in columns},
        "interest": words,
        "ids": [text[0].annotation_id for text in texts],
        "position": order,
        "gold": [places.get(text[0].label, -1) if text[0].label_known else -1 for text in texts],
        "predicted": [[places.get(text[at].predicted_label, -1) for text in texts] for at in range(len(systems))],
        "values": [{key: [column[n] for n in order] for key, column in columns.items()} for columns in values],
        "block": BLOCK,
        "blocks": len(blocks),
    }
    packed = [pack(_make_block(block, bool(systems))) for block in blocks]
    return Texts(index, packed, counts, notes, GOLD.get(gold, GOLD["evidence"]), split.kind == "perturbation")


def _take_values(system: Scores, ids: Sequence[str]) -> dict[str, list[float | None]]:
    """Return the per-instance scores of a system by key, for these annotations."""
    rows, taken = {identity: row for row, identity in enumerate(system.ids)}, {}
    for key in KEYS:
        column = system.per_instance.get(key, ())
        if any(value is not None for value in column):
            found = [column[rows[identity]] if identity in rows else None for identity in ids]
            taken[key] = [None if value is None or not math.isfinite(value) else round(value, 6) for value in found]
    return taken


def _mark_rows(
    split: ScoredSplit, systems: Sequence[System], answers: Sequence[Answers], gold: str
) -> tuple[list[list[MarkedInstance]], list[str], str, list[str]]:
    """Return the marked texts, their ids, their number in words, and notes on what is not marked."""
    evidences, note = choose_evidences(split, gold)
    shown = [
        row
        for row, identity in zip(split.rows, split.ids, strict=True)
        if not systems or any(identity in found for found in answers)
    ]
    texts = []
    for row in shown:
        identity = str(row["annotation_id"])
        chosen = {**row, "evidences": evidences.get(identity, row["evidences"])}
        texts.append(_mark_for_all(mark_instance, chosen, systems, [found.get(identity) for found in answers], split))
    missing = []
    for system, found in zip(systems, answers, strict=True):
        rationales = [rationale for instance in found.values() for rationale in instance.get("rationales") or ()]
        for name, words in (("hard", "no predicted spans are marked"), ("soft", "no shades are drawn")):
            if all(rationale.get(f"{name}_rationale_predictions") is None for rationale in rationales):
                missing.append((system.name, f"{words}: the predictions have no {name}_rationale_predictions"))
        if all(instance.get("classification") is None for instance in found.values()):
            missing.append((system.name, "right and wrong are unknown: the predictions have no classification"))
    counts = f"{len(shown)} of {len(split.rows)} texts" if len(shown) < len(split.rows) else f"{len(shown)} texts"
    notes = [note] if note else []
    notes += merge_notes(missing, [system.name for system in systems])
    return texts, [str(row["annotation_id"]) for row in shown], counts, notes


def _mark_for_all(
    mark: Callable[..., MarkedInstance], row: Any, systems: Sequence[System], answers: Sequence[Any], split: ScoredSplit
) -> list[MarkedInstance]:
    """Return a row or pair with each system's answer; with the gold alone if there is no system."""
    marked = []
    for system, answer in zip(systems, answers, strict=True):
        try:
            marked.append(mark(row, answer, label_names=split.labels.names))
        except DataError as error:
            raise error.at(file=system.path) from None
    return marked or [mark(row, None, label_names=split.labels.names)]


def _mark_pairs(
    split: ScoredSplit, systems: Sequence[System], answers: Sequence[Answers], gold: str
) -> tuple[list[list[MarkedInstance]], list[str], str, list[str]]:
    """Return the marked pairs, as `_mark_rows` does; a record's own scores stand beside each of its pairs."""
    pairs, texts, ids = pair_rows(split.rows), [], []
    for pair in pairs:
        both = [found if all(str(row["id"]) in found for row in pair) else None for found in answers]
        if systems and not any(both):
            continue
        texts.append(_mark_for_all(mark_pair, pair, systems, both, split))
        ids.append(str(pair[0]["id"]))
    words = "no predicted rationale is marked: the predictions have no rationale (lists of token indices)"
    missing = [
        (system.name, words)
        for system, found in zip(systems, answers, strict=True)
        if all(row.get("rationale") is None for row in found.values())
    ]
    notes = merge_notes(missing, [system.name for system in systems])
    if lost := find_lost_partners(split.rows):
        notes.append(f"{len(lost)} perturbed records are named and not among the rows ({show(lost[0])} first)")
    if not any(row.get("rationale_ids") for row in split.rows):
        notes.append("no gold rationales are marked: this release of the benchmark has none")
    counts = f"{len(texts)} of {len(pairs)}" if len(texts) < len(pairs) else str(len(pairs))
    return texts, ids, f"{counts} pairs of {len(split.rows)} records", notes


def _make_block(texts: Sequence[Sequence[MarkedInstance]], has_systems: bool) -> dict[str, Any]:
    """Return a block's documents, each once, and its texts, which name them by place."""
    documents: list[dict[str, Any]] = []
    places: dict[tuple[str, tuple[tuple[str, ...], ...]], int] = {}
    rows = []
    for text in texts:
        first = text[0]
        for document in first.documents:
            if places.setdefault((document.docid, document.sentences), len(documents)) == len(documents):
                documents.append({"id": document.docid, "lines": [" ".join(line) for line in document.sentences]})
        rows.append(
            {
                "query": first.query,
                "lang": first.language,
                "titles": first.titles,
                "docs": [places[document.docid, document.sentences] for document in first.documents],
                "gold": [[d, *span] for d, document in enumerate(first.documents) for span in document.gold],
                "empty": sum(document.empty_gold for document in first.documents),
                "systems": [_make_system(one) for one in text] if has_systems else [],
            }
        )
    return {"docs": documents, "rows": rows}


def _make_system(marked: MarkedInstance) -> dict[str, Any]:
    """Return a system's spans, shades (a digit a token), ranks, quotes and probabilities."""
    made: dict[str, Any] = {}
    if any(document.predicted is not None for document in marked.documents):
        made["hard"] = [[d, *span] for d, document in enumerate(marked.documents) for span in document.predicted or ()]
    if any(document.soft is not None for document in marked.documents):
        shades = [document.shades(10) for document in marked.documents]
        made["soft"] = [None if steps is None else "".join(map(str, steps)) for steps in shades]
    if marked.tops:
        made["tops"] = marked.tops
        made["ranks"] = marked.ranks
    if marked.quotes:
        made["quotes"] = marked.quotes
    if marked.probabilities:
        made["p"] = {name: round(float(p), 4) for name, p in marked.probabilities.items()}
    return made
