"""Annotators: their marks as gold, and each one's scores against the majority of the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

import numpy as np

from eraser_hub.metrics.errors import DataError
from eraser_hub.metrics.gold import Gold
from eraser_hub.metrics.match import Matcher
from eraser_hub.metrics.predictions import HARD_FIELD, read_predictions
from eraser_hub.metrics.ranking import AgreementSettings, agreement_columns, agreement_scores
from eraser_hub.metrics.statistics import Statistics
from eraser_hub.metrics.tokens import spans_from_mask

from .result import MAX_ANNOTATORS

if TYPE_CHECKING:
    from eraser_hub.metrics.annotators import AnnotatedText

    from .scored_split import ScoredSplit

MIN_TEXTS = 2  # an annotator of fewer is left out
ENDS = ("start_token", "end_token")
OTHERS = "majority of the others"


def read_people(source: ScoredSplit) -> tuple[dict[str, AnnotatedText], Path | None]:
    """Return annotation id -> the marks and labels of its annotators, and the file; empty and None without a file."""
    if source.dataset is None:
        paths = sorted(source.data_dir.glob("annotators/*.parquet"))
    else:
        from eraser_hub.conversion.eraser.configs import get_annotators_path

        paths = source.built.paths(get_annotators_path(source.built_config))
    if len(paths) != 1:
        return {}, None
    from eraser_hub.conversion.eraser.human_agreement import read_annotators

    texts = read_annotators(paths[0], source.split)
    return {name: text for name, text in texts.items() if len(text.names)}, paths[0]


def choose_gold(gold: Gold, source: ScoredSplit, form: str, without: str | None = None) -> tuple[Gold, list[str]]:
    """Return the gold in a form that annotators' marks make, and notes.

    Args:
        gold: the annotations.
        source: their split, which has the annotators.
        form: "evidence" (as it is), "majority" or "union" of the annotators' marks.
        without: leave out this annotator.

    Raises:
        DataError: there are no annotators, or their marks do not fit the documents.
    """
    if form == "evidence":
        return gold, []
    texts, file = read_people(source)
    if not texts:
        message = f"{form} needs annotators of this split, found no annotators/NAME.parquet with marks of it"
        raise DataError(message, file=source.dataset or source.data_dir, argument="gold")
    from eraser_hub.metrics.annotators import majority  # most scores do without

    spans: list[tuple[int, int, int, int]] = []
    changed = np.zeros(len(gold.ids), dtype=bool)
    for row, name in enumerate(gold.ids):
        text = texts.get(name)
        chosen = [at for at, person in enumerate(text.names) if person != without] if text else []
        if text and chosen:
            changed[row], marks = True, text.marks[chosen]
            tokens = majority(marks) if form == "majority" else np.asarray(marks.any(axis=0))
            for doc, part in split_marks(gold, row, text, tokens, file):
                spans += [(row, doc, start, end) for start, end in spans_from_mask(part.tolist())]
    owners, docs, start, end = np.array(spans, np.int64).reshape(-1, 4).T
    sentences = gold.documents.sentence_spans(owners, docs, start, end) if owners.size else (start, end)
    kept = ~changed[gold.owner]
    owner = np.concatenate([gold.owner[kept], owners])
    order = np.argsort(owner, kind="stable")
    added = {"group": gold.group.max(initial=-1) + 1 + owners, "doc": docs, "start": start, "end": end}
    added |= {"first": sentences[0], "last": sentences[1]}
    columns: Any = {name: np.concatenate([getattr(gold, name)[kept], each])[order] for name, each in added.items()}
    offsets = np.append(0, np.cumsum(np.bincount(owner, minlength=len(gold.ids)))).astype(np.int64)
    rest = int((~changed).sum())
    words = f"gold {form}: {rest:,} of {changed.size:,} annotations have no annotators' marks; their evidence counts"
    return replace(gold, offsets=offsets, **columns), [words] if rest else []


def split_marks(
    gold: Gold, row: int, text: AnnotatedText, tokens: np.ndarray, file: Path | None
) -> Iterator[tuple[int, np.ndarray]]:
    """Yield the number of each document of an annotation, and the part of ``tokens`` that belongs to it.

    Raises:
        DataError: the marks do not fit the documents.
    """
    docids = text.row.get("docids")
    documents = gold.listed[1][gold.listed[0] == row] if docids is None else gold.documents.number(docids)
    sizes = gold.documents.lengths(np.full(documents.size, row), documents)[0]
    if (
        sizes.sum() != tokens.size
        or (documents < 0).any()
        or (docids is not None and [*text.lengths] != sizes.tolist())
    ):
        message = f"expected marks of the documents' {sizes.sum():,} tokens, found {tokens.size:,}"
        raise DataError(message, file=file, instance=gold.ids[row], field="num_tokens")
    return zip(documents.tolist(), np.split(tokens, np.cumsum(sizes)[:-1]), strict=True)


def compare_labels(texts: Iterable[AnnotatedText], person: str) -> list[bool]:
    """Return whether an annotator's labels are the most frequent ones of the others; ties are left out."""
    hits = []
    for text in texts:
        labels = Counter(label for name, label in text.labels.items() if name != person).most_common(2)
        if person in text.labels and labels and (len(labels) == 1 or labels[0][1] > labels[1][1]):
            hits.append(text.labels[person] == labels[0][0])
    return hits


def score_people(source: ScoredSplit, gold: Gold, settings: AgreementSettings) -> dict[str, Any] | None:
    """Score each annotator against the majority of the others, and average over annotators.

    The hard rationale of an annotator are the tokens that this annotator marks; the gold is what more than half of the
    others mark. ``accuracy`` compares labels with the most frequent label of the others; ties are left out. Texts where
    the others have no majority are treated as a system's are (``unmarked``): by default they are left out, while
    `annotator_agreement`, which stands beside no system, counts them 0 in ``leave_one_out_f1``.

    Args:
        source: the split.
        gold: its annotations.
        settings: of agreement.

    Returns:
        What `Scores.people` holds; no spread of two, and no scores of too many; None if no text has the marks of two.
    """
    if source.kind != "eraser":
        return None
    texts, file = read_people(source)
    texts = {name: text for name, text in texts.items() if len(text.names) > 1}
    counts = Counter(name for text in texts.values() for name in text.names)
    people = [name for name, count in counts.items() if count >= MIN_TEXTS]
    if not people:
        return None
    if len(people) > MAX_ANNOTATORS:
        return {"annotators": len(people), "gold": OTHERS, "scores": {}, "spread": {}}
    values: dict[str, list[float]] = {}
    rows = {name: row for row, name in enumerate(gold.ids)}
    for person in people:
        others, _ = choose_gold(gold, source, "majority", without=person)
        instances: list[dict[str, Any]] = []
        for name, text in texts.items():
            if person in text.names and name in rows:
                marks = text.marks[list(text.names).index(person)]
                rationales = [
                    {
                        "docid": gold.docids[doc],
                        HARD_FIELD: [dict(zip(ENDS, span, strict=True)) for span in spans_from_mask(part.tolist())],
                    }
                    for doc, part in split_marks(gold, rows[name], text, marks, file)
                ]
                instances.append({"annotation_id": name, "rationales": rationales})
        matcher = Matcher(others, only_predicted=True)
        columns = agreement_columns(matcher.add(read_predictions(instances)), settings)
        table = agreement_scores(columns, settings, matcher.used)
        statistics = Statistics([str(row["annotation_id"]) for row in instances], columns, table)
        if settings.unmarked == "skip":
            statistics = statistics.take(np.flatnonzero(columns["gold.marked"]))
        for key, value in statistics.values().items():
            if statistics.ids and not np.isnan(value):
                values.setdefault(key, []).append(float(value))
        hits = compare_labels(texts.values(), person)
        if hits:
            values.setdefault("accuracy", []).append(fmean(hits))
    # of two people each is scored against the other: their scores are alike by construction
    spread = {key: stdev(each) for key, each in values.items() if len(each) > 2}
    scores = {key: fmean(each) for key, each in values.items()}
    return {"annotators": len(people), "gold": OTHERS, "scores": scores, "spread": spread}
