"""Human performance: each annotator scored as a system, against the majority of the others (leave-one-out)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from statistics import fmean, stdev
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from eraser_hub.metrics.annotator_rows import AnnotatedText
from eraser_hub.metrics.token_rows import find_mask_runs
from eraser_hub.schema.instance import HARD_FIELD

from ..references import Gold, read_gold
from ..score import score_without
from ..scored_split import ScoredSplit
from ..scores import HumanPerformance
from ..settings import ScoreSettings
from .forms import list_documents, read_people

# above this many annotators each is scored on a few texts, and the time is long
MOST_ANNOTATORS = 20
# an annotator on fewer texts than this is left out
FEWEST_TEXTS = 2


def score_people(source: ScoredSplit, settings: ScoreSettings) -> HumanPerformance | None:
    """Score each annotator against the majority of the others, and average over annotators.

    The hard rationale of an annotator are the tokens that this annotator marks; the gold is what more than half of the
    others mark. ``accuracy`` compares labels with the most frequent label of the others; ties are left out.

    Args:
        source: the split.
        settings: how systems are scored; ``gold`` and intervals do not matter.

    Returns:
        The mean of each score, and its spread over three annotators or more; None if no text has the marks of two.

    Raises:
        DataError: the file of annotators is faulty.
    """
    if source.kind != "eraser":
        return None
    texts = {name: text for name, text in read_people(source)[0].items() if len(text.names) > 1}
    counts = Counter(name for text in texts.values() for name in text.names)
    people = [name for name, count in counts.items() if count >= FEWEST_TEXTS]
    if not people:
        return None
    if len(people) > MOST_ANNOTATORS:
        return HumanPerformance(annotators=len(people), note=f"more than {MOST_ANNOTATORS} annotators are not scored")
    gold = read_gold(source, (), listed=True)
    plain = replace(settings.plain(), by=None, per_instance=False, only_predicted=True, fidelity=False, strict=False)
    plain = replace(plain, totals_only=False, gold="evidence")
    values: dict[str, list[float]] = {}
    with TemporaryDirectory() as folder:
        for name in people:
            path = Path(folder) / "person.jsonl"
            rows = [json.dumps(row) for row in _make_instances(gold, texts, name)]
            path.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
            scores = score_without(source, path, plain, name)
            for key in scores.blocks.get("agreement", {}):
                if (number := scores.number(key)) is not None and not np.isnan(number):
                    values.setdefault(key, []).append(number)
    if (accuracy := _compute_accuracy(texts, people)) is not None:
        values["accuracy"] = accuracy
    if not values:
        return None
    # of two people each is scored against the other: their scores are alike by construction
    spread = {key: stdev(own) for key, own in values.items() if len(own) > 2}
    return HumanPerformance({key: fmean(own) for key, own in values.items()}, spread, len(people))


def _make_instances(gold: Gold, texts: Mapping[str, AnnotatedText], person: str) -> Iterator[dict[str, Any]]:
    """Yield the instances of a person as a system, of texts that others have marked too."""
    docids = gold.references.docids
    for row, name in enumerate(gold.references.ids):
        text = texts.get(name)
        if text is None or person not in text.names:
            continue
        documents, sizes = list_documents(gold, row, text)
        marks = np.split(text.marks[list(text.names).index(person)], np.cumsum(sizes)[:-1])
        rationales = [
            {
                "docid": str(docids[number]),
                HARD_FIELD: [{"start_token": a, "end_token": b} for a, b in find_mask_runs(own.tolist())],
            }
            for number, own in zip(documents, marks, strict=True)
        ]
        yield {"annotation_id": name, "rationales": rationales}


def _compute_accuracy(texts: Mapping[str, AnnotatedText], people: list[str]) -> list[float] | None:
    """Return each person's share of labels that equal the most frequent label of the others."""
    shares = []
    for person in people:
        hits = []
        for text in texts.values():
            others = Counter(label for name, label in text.labels.items() if name != person).most_common(2)
            if person in text.labels and others and (len(others) == 1 or others[0][1] > others[1][1]):
                hits.append(text.labels[person] == others[0][0])
        if hits:
            shares.append(fmean(hits))
    return shares or None
