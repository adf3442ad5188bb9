"""Gold rationales from the marks of several annotators, in three forms.

``evidence`` is the dataset's evidence as it stands; ``majority`` and ``union`` are the tokens that more than half or
any of a text's annotators mark.
Annotations without annotators' marks keep their evidence, which is counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from eraser_hub.metrics.annotator_rows import AnnotatedText
from eraser_hub.metrics.annotators import majority
from eraser_hub.metrics.flat import EVIDENCE_COLUMNS
from eraser_hub.metrics.token_rows import find_mask_runs
from eraser_hub.records.arguments import GoldForm
from eraser_hub.records.errors import DataError

from ..references import Gold
from ..scored_split import ScoredSplit

Evidence = Mapping[str, Any]
"""A span with its docid, start_token and end_token."""
EVIDENCE: GoldForm = "evidence"
MAJORITY: GoldForm = "majority"


def read_people(source: ScoredSplit) -> tuple[Mapping[str, AnnotatedText], Path | None]:
    """Return annotation id -> the marks and labels of its annotators, and the file; empty and None without a file.

    Raises:
        DataError: the file is faulty.
    """
    if source.dataset is None:
        paths = sorted(source.data_dir.glob("annotators/*.parquet"))
    else:
        from eraser_hub.conversion.eraser.configs import get_annotators_path

        paths = source.built.paths(get_annotators_path(source.built_config))
    if len(paths) != 1:
        return {}, None
    # the Arrow libraries are slow to import: only where there are annotators
    from eraser_hub.conversion.eraser.annotators import read_annotators

    return read_annotators(paths[0], source.split), paths[0]


def choose_gold(gold: Gold, source: ScoredSplit, form: GoldForm, without: str | None = None) -> Gold:
    """Return the gold in a form that annotators' marks make.

    Args:
        gold: the annotations.
        source: their split, which has the annotators.
        form: the form, other than evidence.
        without: leave out this annotator.

    Raises:
        DataError: there are no annotators, or their marks do not fit the documents.
    """
    people, file = read_people(source)
    texts = {name: text for name, text in people.items() if len(text.names)}
    if not texts:
        place = f"{source.built_config}" if source.dataset is not None else str(source.data_dir)
        message = f"expected annotators of {place}, of which `gold` {form} is made, found no annotators/NAME.parquet"
        raise DataError(f"{message} with marks of this split", rule="file-missing", argument="gold")
    spans: list[tuple[int, int, int, int]] = []
    kept, others = [], 0
    for row, name in enumerate(gold.references.ids):
        text = texts.get(name)
        marks = None if text is None else _select_marks(text, without)
        if text is None or marks is None or not len(marks):
            kept.append(row)
            continue
        others += 1
        try:
            documents, sizes = list_documents(gold, row, text)
        except DataError as error:
            raise error.at(file=file) from None
        parts = np.split(_choose_tokens(marks, form), np.cumsum(sizes)[:-1])
        for number, part in zip(documents, parts, strict=True):
            spans += [(row, number, start, end) for start, end in find_mask_runs(part.tolist())]
    table = np.array(spans, dtype=np.int64).reshape(len(spans), 4)
    changed = _replace_evidence(gold, np.array(kept, dtype=np.int64), table)
    note = _describe_kept(form, len(kept), len(kept) + others)
    return replace(changed, notes=(note, *gold.notes)) if without is None else changed


def choose_evidences(source: ScoredSplit, form: GoldForm) -> tuple[dict[str, list[list[Evidence]]], str]:
    """Return annotation id -> the evidences of a form, for display; and a note on those without marks.

    Those of majority and union are one group. Annotations without marks are left out.
    """
    evidences: dict[str, list[list[Evidence]]] = {}
    if form == EVIDENCE:
        return evidences, ""
    rows = {str(row["annotation_id"]): row for row in source.rows}
    for name, text in read_people(source)[0].items():
        if name not in rows or not len(text.names):
            continue
        docids = text.row.get("docids") or [document["docid"] for document in rows[name]["documents"]]
        evidences[name] = [
            [
                {"docid": docid, "start_token": start, "end_token": end}
                for docid, part in zip(docids, text.documents(), strict=True)
                for start, end in find_mask_runs(_choose_tokens(part, form).tolist())
            ]
        ]
    return evidences, _describe_kept(form, len(rows) - len(evidences), len(rows))


def _describe_kept(form: GoldForm, kept: int, total: int) -> str:
    words = f"gold {form}: {kept:,} of {total:,} annotations have no annotators' marks; their evidence counts"
    return words if kept else ""


def _select_marks(text: AnnotatedText, without: str | None) -> np.ndarray:
    return text.marks[[at for at, name in enumerate(text.names) if name != without]]


def _choose_tokens(marks: np.ndarray, form: GoldForm) -> np.ndarray:
    return majority(marks) if form == MAJORITY else np.asarray(marks.any(axis=0))


def list_documents(gold: Gold, row: int, text: AnnotatedText) -> tuple[list[int], list[int]]:
    """Return the numbers of an annotation's documents, in the order of the marks, and their tokens.

    Raises:
        DataError: the marks do not fit the documents.
    """
    docids = text.row.get("docids")
    if docids is None:  # a file of version 2 has no documents: they are those of the annotation
        owner, listed = gold.listed or (np.zeros(0, int), np.zeros(0, int))
        documents = listed[owner == row]
    else:
        documents = gold.documents.number(docids)
    sizes = gold.documents.lengths(np.full(documents.size, row), documents)[0].tolist()
    fits = (documents >= 0).all() and (list(text.lengths) == sizes if docids is not None else True)
    if not fits or sum(sizes) != text.marks.shape[1]:
        message = f"expected marks of the documents' {sum(sizes):,} tokens, found {text.marks.shape[1]:,}"
        raise DataError(message, rule="length", instance=gold.references.ids[row], field="num_tokens")
    return documents.tolist(), sizes


def _replace_evidence(gold: Gold, kept: np.ndarray, spans: np.ndarray) -> Gold:
    """Return the gold with the evidence of the annotations ``kept``, and one group of these spans for each other one.

    Args:
        gold: the annotations.
        kept: the annotations whose evidence stays.
        spans: annotation, document, start, end: int (n, 4), in the order of annotations.
    """
    r = gold.references
    groups = np.flatnonzero(np.isin(r.group_instance, kept))
    evidence = np.flatnonzero(np.isin(r.group, groups))
    owner, first = np.unique(spans[:, 0], return_inverse=True)
    row, doc, start, end = spans.T
    sentences = gold.documents.sentence_spans(row, doc, start, end) if len(spans) else (start, end)
    # kept groups come first, then the new ones; a stable sort by annotation gives the order of the annotations
    instances = np.concatenate([r.group_instance[groups], owner])
    order = np.argsort(instances, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(order.size)
    group = np.concatenate([np.searchsorted(groups, r.group[evidence]), groups.size + first])
    group = place[group] if order.size else group
    by_group = np.argsort(group, kind="stable")
    columns = {
        name: np.concatenate([getattr(r, name)[evidence], added])[by_group].astype(getattr(r, name).dtype)
        for name, added in zip(EVIDENCE_COLUMNS, (doc, start, end, *sentences), strict=True)
    }
    changed = replace(
        r,
        group_instance=instances[order].astype(r.group_instance.dtype),
        group=group[by_group].astype(r.group.dtype),
        **columns,  # type: ignore[arg-type]
    )
    return replace(gold, references=changed)
