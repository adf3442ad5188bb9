"""Agreement of people on rationales: ERASER's Table 2, and the annotators of a corpus of one's own.

Movies and BoolQ compare each annotator with the annotators' majority, per token; the others compare each annotator with
the release's rationale (DeYoung et al., 2020, Table 2). A text is all documents of an annotation. Figures are means and
standard deviations over (text, annotator).

The annotators of a corpus of one's own are in ``annotators/CONFIG.parquet``, in corpus folders and built datasets: a
row per text and person (:data:`.schema.ANNOTATORS`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from eraser_hub.conversion.built import BuiltDataset, read_rows
from eraser_hub.metrics.annotators import (
    AnnotatedText,
    compare_marks,
    compute_annotator_statistics,
    majority,
    read_annotated_texts,
)
from eraser_hub.metrics.errors import DataError as RowError
from eraser_hub.metrics.predictions import HARD_FIELD
from eraser_hub.records.errors import DataError
from eraser_hub.records.places import dataset_split
from eraser_hub.records.predictions import read_instances
from eraser_hub.records.tables import Cell

from .documents import open_documents
from .rows import PLACES
from .schema import ANNOTATORS, SCHEMA

PATTERN = "human_performance*.jsonl"
AMONG_THEMSELVES = ("movies", "boolq")
BETWEEN = ("krippendorff_alpha", "fleiss_kappa", "label_krippendorff_alpha", "label_fleiss_kappa")


def human_agreement(built: BuiltDataset, config: str, corpus: Path | None) -> tuple[dict[str, Cell], str]:
    """Return a config's row of Table 2 and a note; both are empty without human-performance files.

    Args:
        built: the built dataset, which has the documents and the release's rationales.
        config: the config.
        corpus: the raw folder that may contain the files, or None.

    Raises:
        DataError: a file cannot be read, with its line.
    """
    paths = sorted(corpus.glob(PATTERN)) if corpus is not None and corpus.is_dir() else []
    if not paths:
        return {}, ""
    people = [{str(row["annotation_id"]): row.get("rationales") or () for _, row in read_instances(p)} for p in paths]
    left, cut, scores = set[str]().union(*people), 0, list[dict[str, np.ndarray]]()
    documents = open_documents(built, config, with_texts=False)
    lengths = documents.counts(np.arange(len(documents.names)))[:, 0].tolist()
    sizes = dict(zip(documents.names.to_pylist(), lengths, strict=True))
    columns, whole = ("annotation_id", *PLACES), ("annotation_id", "documents", "evidences")
    files = [path for paths in built.splits(config).values() for path in paths]
    for table in read_rows(files, columns, kinds=SCHEMA, whole=whole):
        for row in (row for row in table.to_pylist() if row["annotation_id"] in left):
            left.discard(row["annotation_id"])
            places, length = dict[str, tuple[int, int]](), 0
            for document in row["documents"]:
                places[document["docid"]] = length, sizes.get(document["docid"], 0)
                length += sizes.get(document["docid"], 0)
            evidences = [evidence for group in row["evidences"] for evidence in group]
            spans = ((span["docid"], span["start_token"], span["end_token"]) for span in evidences)
            gold, masks = _make_mask(spans, places, length)[0], list[np.ndarray]()
            for rationales in (
                instances[row["annotation_id"]] for instances in people if row["annotation_id"] in instances
            ):
                marked = [(str(one["docid"]), span) for one in rationales for span in one.get(HARD_FIELD) or ()]
                spans = ((docid, span["start_token"], span["end_token"]) for docid, span in marked)
                mask, outside = _make_mask(spans, places, length)
                masks.append(mask)
                cut += outside
            if config not in AMONG_THEMSELVES:
                scores.append(compare_marks(np.stack(masks), gold))
            elif len(masks) > 1:
                scores.append(compare_marks(np.stack(masks), majority(np.stack(masks))))
    note = f"{config}: from {', '.join(path.name for path in paths)}"
    note += f"; {len(left)} of their annotations are in no split, and left out" if left else ""
    note += f"; {cut} of their spans are not within a document of the row, and are cut" if cut else ""
    if not scores:
        return {}, f"{note}; nothing in them can be compared."
    return _make_cells(scores) | {"annotators": Cell(len(paths)), "documents": Cell(len(scores))}, f"{note}."


def _make_mask(
    spans: Iterable[tuple[str, int, int]], places: Mapping[str, tuple[int, int]], length: int
) -> tuple[np.ndarray, int]:
    """Return a mask over the tokens of a row, and the number of spans that are not within a document and are cut.

    Args:
        spans: document, first token, and the token behind the last one.
        places: document -> its first token in the row, and its number of tokens.
        length: number of tokens of the row.
    """
    mask, cut = np.zeros(length, bool), 0
    for docid, start, end in spans:
        begin, size = places.get(docid, (0, -1))
        cut += not 0 <= start <= end <= size
        mask[begin + min(max(start, 0), size) : begin + min(max(end, 0), size)] = True
    return mask, cut


def _make_cells(scores: Sequence[Mapping[str, np.ndarray]]) -> dict[str, Cell]:
    values = {key: np.concatenate([score[key] for score in scores]) for key in ("cohen_kappa", "f1", "p", "r")}
    return {key: Cell(f"{np.nanmean(value):.3f} ± {np.nanstd(value):.3f}") for key, value in values.items()}


def compute_annotator_agreement(path: Path) -> tuple[dict[str, Cell], dict[str, Cell], str]:
    """Return an own corpus's row of Table 2, its agreement between annotators, and a note; from its annotators' file.

    Raises:
        DataError: the file cannot be read, or marks of one text differ in length.
    """
    texts = [*read_annotators(path).values()]
    note = f"{path.stem}: each annotator against the majority of the text's, {path.name}."
    people = [max(len(text.names), len(text.labels)) for text in texts]
    if max(people, default=0) < 2:
        return {"documents": Cell(0)}, {"documents": Cell(len(texts))}, note
    statistics = compute_annotator_statistics(texts)
    bounds = statistics.intervals()
    between = {
        key: Cell(float(score), None, 3, float(bounds[key][0]), float(bounds[key][1]))
        for key, score in statistics.values().items()
        if key in BETWEEN
    }
    between["annotators"] = Cell(" to ".join(dict.fromkeys([str(min(people)), str(max(people))])))
    marks = [text.marks for text in texts if len(text.names) > 1]
    cells = _make_cells([compare_marks(one, majority(one)) for one in marks]) if marks else {}
    return cells | {"documents": Cell(len(marks))}, between | {"documents": Cell(len(texts))}, note


# columns that hold no null; others may hold one as a whole
_WHOLE = ("annotation_id", "annotator", "split", "docids", "num_tokens", "rationale_positions[]")


def read_annotators(path: Path, split: str | None = None) -> Mapping[str, AnnotatedText]:
    """Return annotation id -> the marks and labels of its annotators.

    Args:
        path: the file.
        split: the split, under the dataset's name or the release's; None: all.

    Raises:
        DataError: the file cannot be read, or has other columns; marks of one text differ in length; a person stands
            twice in a text.
    """
    wanted = None if split is None else dataset_split(split)
    tables = read_rows([path], ANNOTATORS.names, kinds=ANNOTATORS, whole=_WHOLE)
    rows = [row for table in tables for row in table.to_pylist() if wanted in (None, row["split"])]
    try:
        return {text.id: text for text in read_annotated_texts(rows)}
    except RowError as error:
        raise DataError(error.message, file=path, instance=error.instance, field=error.field) from None
