"""Identity of gold: one digest, whatever the source that the gold is read from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

import numpy as np

from .flat import References

SHOWN_DIGITS = 12


def gold_digest(ids: Sequence[str], labels: Sequence[str | None], docids: Sequence[str], spans: np.ndarray) -> str:
    """Return the SHA-256 of ids, names of labels and gold spans, in the order of the ids.

    Args:
        ids: of the annotations.
        labels: the name of each annotation's label; None: none.
        docids: the names of documents.
        spans: integers (spans, 4): place of the annotation, place of the document's name, start, end.
    """
    order = sorted(range(len(ids)), key=ids.__getitem__)
    used, document = np.unique(spans[:, 1], return_inverse=True)
    names = [docids[int(place)] for place in used]
    by_name = sorted(range(len(names)), key=names.__getitem__)
    columns = np.empty(spans.shape, "<i8")
    columns[:, 0], columns[:, 1] = np.argsort(order)[spans[:, 0]], np.argsort(by_name)[document]
    columns[:, 2:] = spans[:, 2:]
    columns = columns[np.lexsort(columns.T[::-1])]
    words = [[ids[row] for row in order], [labels[row] for row in order], [names[place] for place in by_name]]
    text = json.dumps(words, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass") + columns.tobytes()).hexdigest()


def digest_references(references: References) -> str:
    """Return the digest of annotations with evidence."""
    names = [*references.labels, None]
    labels = [names[code] for code in references.classification.tolist()]
    annotation = references.group_instance[references.group]
    spans = np.stack([annotation, references.doc, references.start, references.end], axis=1).reshape(-1, 4)
    return gold_digest(list(references.ids), labels, references.docids, spans)


def shorten_digest(digest: str) -> str:
    """Return the digits of a digest that signatures and tables show; "none" if there is no digest."""
    return digest[:SHOWN_DIGITS] or "none"
