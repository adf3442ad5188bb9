"""ERASER's Table 2 from the releases' human-performance files: agreement of annotators on rationales.

Movies and BoolQ compare each annotator with the annotators' majority, per token; the others compare each annotator with
the release's rationale (DeYoung et al., 2020, Table 2). A text is all documents of an annotation with marks or
evidence. Figures are means and standard deviations over (text, annotator).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from eraser_hub.conversion.built import BuiltDataset
from eraser_hub.metrics.annotators import compare_marks, compute_annotator_statistics, majority
from eraser_hub.metrics.match import HARD_FIELD
from eraser_hub.metrics.plain import mask_from_spans, split_tokens
from eraser_hub.records.predictions import read_instances
from eraser_hub.records.tables import Cell

from .annotators import read_annotators
from .schema import SCHEMA

PATTERN = "human_performance*.jsonl"
AMONG_THEMSELVES = ("movies", "boolq")
COLUMNS = ("annotation_id", "documents", "evidences")
KEYS = ("cohen_kappa", "f1", "p", "r")
BETWEEN = ("krippendorff_alpha", "fleiss_kappa", "label_krippendorff_alpha", "label_fleiss_kappa")
Spans = dict[str, list[tuple[int, int]]]


def human_agreement(built: BuiltDataset, config: str, corpus: Path | None) -> tuple[dict[str, Cell], str]:
    """Return a config's row of Table 2 and a note; both are empty without human-performance files.

    Args:
        built: the built dataset, which has the texts.
        config: the config.
        corpus: the raw folder that may contain the files, or None.

    Raises:
        DataError: a file cannot be read, with its line.
    """
    paths = sorted(corpus.glob(PATTERN)) if corpus is not None and corpus.is_dir() else []
    if not paths:
        return {}, ""
    marked = [{str(row["annotation_id"]): _get_spans(row) for _, row in read_instances(path)} for path in paths]
    scores, unknown, cut = _compute_scores(built, config, marked)
    note = f"{config}: from {', '.join(path.name for path in paths)}"
    if unknown:
        note += f"; {unknown} of their annotations are in no split, and left out"
    if cut:
        note += f"; {cut} of their spans are not within a document of the row, and are cut"
    if not scores:
        return {}, f"{note}; nothing in them can be compared."
    return _make_table_cells(scores) | {"annotators": Cell(len(paths)), "documents": Cell(len(scores))}, f"{note}."


def _make_table_cells(scores: Sequence[Mapping[str, np.ndarray]]) -> dict[str, Cell]:
    values = {key: np.concatenate([each[key] for each in scores]) for key in KEYS}
    return {key: Cell(f"{np.nanmean(value):.3f} ± {np.nanstd(value):.3f}") for key, value in values.items()}


def compute_annotator_agreement(path: Path) -> tuple[dict[str, Cell], dict[str, Cell], str]:
    """Return a custom corpus' row of Table 2, its agreement between annotators, and a note; from its annotators' file.

    Raises:
        DataError: the file cannot be read, or marks of one text differ in length.
    """
    texts = [*read_annotators(path).values()]
    note = f"{path.stem}: each annotator against the majority of the text's, {path.name}."
    if not any(max(len(text.names), len(text.labels)) > 1 for text in texts):
        return {"documents": Cell(0)}, {"documents": Cell(len(texts))}, note
    statistics = compute_annotator_statistics(texts)
    several = [text.marks for text in texts if len(text.names) > 1]
    sizes = sorted({max(len(text.names), len(text.labels)) for text in texts})
    own = _make_table_cells([compare_marks(marks, majority(marks)) for marks in several]) if several else {}
    bounds = statistics.intervals()
    between = {
        key: Cell(float(score), None, 3, float(bounds[key][0]), float(bounds[key][1]))
        for key, score in statistics.values().items()
        if key in BETWEEN
    } | {"annotators": Cell(" to ".join(map(str, dict.fromkeys(sizes[:1] + sizes[-1:]))))}
    return own | {"documents": Cell(len(several))}, between | {"documents": Cell(len(texts))}, note


def _get_spans(row: Mapping[str, Any]) -> Spans:
    return {
        str(rationale["docid"]): [(span["start_token"], span["end_token"]) for span in rationale.get(HARD_FIELD) or ()]
        for rationale in row.get("rationales") or ()
    }


def _compute_scores(
    built: BuiltDataset, config: str, marked: list[dict[str, Spans]]
) -> tuple[list[dict[str, np.ndarray]], int, int]:
    """Return the scores of each text's annotators, the number of annotations in no split, and of spans that are cut."""
    left, cut = set().union(*marked), 0
    scores = []
    rows = (row for split in built.splits(config) for row in built.rows(config, split, COLUMNS, SCHEMA, COLUMNS))
    for row in (row for row in rows if row["annotation_id"] in left):
        left.discard(row["annotation_id"])
        people = [spans[row["annotation_id"]] for spans in marked if row["annotation_id"] in spans]
        gold: Spans = {}
        for evidence in (evidence for group in row["evidences"] for evidence in group):
            gold.setdefault(evidence["docid"], []).append((evidence["start_token"], evidence["end_token"]))
        sizes = {document["docid"]: len(split_tokens(document["text"])) for document in row["documents"]}
        bounds = ((docid, *one) for spans in people for docid, several in spans.items() for one in several)
        cut += sum(not 0 <= start <= end <= sizes.get(docid, -1) for docid, start, end in bounds)
        masks = np.stack([_make_mask(spans, sizes) for spans in (gold, *people)])
        if config not in AMONG_THEMSELVES:
            scores.append(compare_marks(masks[1:], masks[0]))
        elif len(people) > 1:
            scores.append(compare_marks(masks[1:], majority(masks[1:])))
    return scores, len(left), cut


def _make_mask(spans: Spans, sizes: Mapping[str, int]) -> np.ndarray:
    """Return a bool mask over the tokens of a row's documents; parts of spans outside a document are ignored."""
    parts = []
    for docid, size in sizes.items():
        clipped = [(max(start, 0), min(end, size)) for start, end in spans.get(docid, ())]
        clipped = [(start, end) for start, end in clipped if start < end]
        parts.append(np.array(mask_from_spans(clipped, size), bool))
    return np.concatenate(parts) if parts else np.zeros(0, bool)
