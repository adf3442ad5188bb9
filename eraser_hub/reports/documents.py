"""The documents of a report: a small index that the page reads at once, and chunks that it unpacks when looked at.

A text is stored once per chunk however many annotations share the document; soft scores take two digits a token.
"""

from __future__ import annotations

import base64
import gzip
import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .marked_instances import MarkedInstance

CHUNK_TOKENS = 60_000  # about half a megabyte of text: unpacked in a few milliseconds


def to_embedded_json(value: Any) -> str:
    """Return JSON that is safe inside a script element: no ``<``, no line separators, NaN and infinity as null."""
    text = json.dumps(_finite(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    text = text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    # a lone surrogate cannot be written as UTF-8
    text = text.encode("utf-8", "backslashreplace").decode("utf-8")
    return text.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value


@dataclass(slots=True)
class DocumentIndex:
    """Index of the instances in the page's list, and their chunks.

    Attributes:
        ids, gold: annotation id and the gold label's place in ``labels``, per instance; -1 where it is unknown.
        predicted: per system, per instance, the predicted label's place, -1 for none.
        confidence: per system, per instance, the probability of the predicted label; None where it is unknown.
        lengths: tokens of the instance's documents.
        disagreement: how far the systems' rationales differ, see `compute_disagreement`; None where fewer than two
            have one.
        chunks: the first instance of each chunk.
        packed: the chunks, gzip then base64.
    """

    systems: list[str]
    labels: list[str] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    gold: list[int] = field(default_factory=list)
    predicted: list[list[int]] = field(default_factory=list)
    confidence: list[list[float | None]] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    disagreement: list[float | None] = field(default_factory=list)
    chunks: list[int] = field(default_factory=list)
    packed: list[str] = field(default_factory=list)

    def place_of(self, label: str) -> int:
        """Return the label's place in ``labels``; a new label is added at the end."""
        if label not in self.labels:
            self.labels.append(label)
        return self.labels.index(label)

    def index(self, names: Mapping[str, str]) -> str:
        """Return the index as JSON; ``names`` are the labels of per-instance scores."""
        columns = ("systems", "labels", "ids", "gold", "predicted", "confidence", "lengths", "disagreement")
        values = {name: getattr(self, name) for name in columns}
        return to_embedded_json({**values, "names": dict(names), "chunks": self.chunks})


def round_values(values: Sequence[Mapping[str, Sequence[float | None]]]) -> list[dict[str, list[float | None]]]:
    """Return each system's per-instance scores rounded to six digits, without NaN and infinity."""
    return [
        {
            key: [None if v is None or not math.isfinite(v) else round(v, 6) for v in column]
            for key, column in own.items()
        }
        for own in values
    ]


def compute_disagreement(marked: Sequence[MarkedInstance]) -> float | None:
    """Return how far systems select different tokens of an instance, from 0 (the same) to 1.

    Over the tokens that any system selects, the mean share of the pairs of systems that disagree on the token, of the
    most pairs that can. Of two systems it is 1 minus intersection over union. None where fewer than two systems have a
    hard rationale, or none selects a token.
    """
    counts: Counter[tuple[int, int]] = Counter()
    systems = 0
    for one in marked:
        if any(document.predicted is not None for document in one.documents):
            systems += 1
            tokens = {
                (d, token)
                for d, document in enumerate(one.documents)
                for start, end in document.predicted or ()
                for token in range(start, end)
            }
            counts.update(tokens)
    most = (systems // 2) * (systems - systems // 2)
    if not most or not counts:
        return None
    return round(sum(count * (systems - count) for count in counts.values()) / most / len(counts), 4)


def pack(value: Any) -> str:
    """Return values as JSON in gzip in base64; gzip has no time stamp, so equal data gives equal bytes."""
    raw = json.dumps(value, ensure_ascii=True, separators=(",", ":"), allow_nan=False).encode("ascii")
    return base64.b64encode(gzip.compress(raw, compresslevel=6, mtime=0)).decode("ascii")


def unpack(packed: str) -> Any:
    """Return the values that `pack` packed."""
    return json.loads(gzip.decompress(base64.b64decode(packed)))


def index_documents(
    instances: Iterable[Sequence[MarkedInstance]],
    systems: Sequence[str],
    labels: Sequence[str] = (),
) -> DocumentIndex:
    """Make the index and the chunks of the documents.

    Args:
        instances: for each annotation what each system made of it, in the systems' order; with no system one
            MarkedInstance that holds the gold alone.
        systems: their names.
        labels: the labels in the dataset's order; others are added as they come.
    """
    browsed = DocumentIndex(
        list(systems), list(labels), predicted=[[] for _ in systems], confidence=[[] for _ in systems]
    )
    chunk, tokens = _Chunk(), 0
    for marked in instances:
        if chunk.rows and tokens > CHUNK_TOKENS:
            browsed.packed.append(chunk.pack())
            chunk, tokens = _Chunk(), 0
        if not chunk.rows:
            browsed.chunks.append(len(browsed.ids))
        first = marked[0]
        browsed.ids.append(first.annotation_id)
        browsed.gold.append(browsed.place_of(first.label) if first.label_known else -1)
        browsed.lengths.append(sum(document.num_tokens for document in first.documents))
        browsed.disagreement.append(compute_disagreement(marked))
        for column, sure, seen in zip(browsed.predicted, browsed.confidence, marked, strict=False):
            column.append(-1 if seen.predicted_label is None else browsed.place_of(seen.predicted_label))
            p = seen.probabilities.get(seen.predicted_label or "")
            sure.append(None if p is None else round(p, 4))
        tokens += chunk.add(marked if systems else marked[:1], with_systems=bool(systems))
    if chunk.rows:
        browsed.packed.append(chunk.pack())
    return browsed


class _Chunk:
    def __init__(self) -> None:
        self.docs: list[dict[str, Any]] = []
        self.rows: list[dict[str, Any]] = []
        self._places: dict[tuple[str, int], int] = {}

    def pack(self) -> str:
        return pack({"docs": self.docs, "rows": self.rows})

    def add(self, marked: Sequence[MarkedInstance], *, with_systems: bool) -> int:
        """Add one annotation; the number of tokens that it added to the chunk."""
        first, added, places = marked[0], 0, []
        for document in first.documents:
            key = (document.docid, hash(document.sentences))
            if key not in self._places:
                self._places[key] = len(self.docs)
                shown = {"id": document.docid, "text": "\n".join(map(" ".join, document.sentences))}
                self.docs.append({**shown, "lang": first.language} if first.language else shown)
                added += document.num_tokens
            places.append(self._places[key])
        row: dict[str, Any] = {
            "query": first.query,
            "docs": places,
            "gold": [[d, *span] for d, document in enumerate(first.documents) for span in document.gold],
            "systems": [_system(seen) for seen in marked] if with_systems else [],
        }
        if first.titles:
            row["pair"], row["titles"] = True, list(first.titles)
        empty = sum(document.empty_gold for document in first.documents)
        if empty:
            row["empty"] = empty
        self.rows.append(row)
        return added + sum(document.num_tokens for seen in marked for document in seen.documents if document.soft) // 3


def _system(marked: MarkedInstance) -> dict[str, Any]:
    out: dict[str, Any] = {}
    if any(document.predicted is not None for document in marked.documents):
        out["hard"] = [[d, *span] for d, document in enumerate(marked.documents) for span in document.predicted or ()]
    if any(document.soft is not None for document in marked.documents):
        out["soft"] = [
            None if shades is None else "".join(f"{shade:02d}" for shade in shades)
            for shades in (document.shades(100) for document in marked.documents)
        ]
    if marked.tops:
        out["top"] = [list(top) for top in marked.tops]
        out["shared"] = sorted(set.intersection(*map(set, marked.tops)))
    if any(marked.ranks):
        out["ranks"] = [{str(token): rank for token, rank in ranks.items()} for ranks in marked.ranks]
    if marked.quotes:
        out["quotes"] = [list(quote) for quote in marked.quotes]
    if marked.probabilities:
        out["p"] = {name: round(p, 6) for name, p in marked.probabilities.items()}
    return out


def render_chunks(packed: Iterable[str]) -> Iterator[str]:
    """Return the chunks as script elements that no browser runs."""
    for number, text in enumerate(packed):
        yield f'<script type="application/octet-stream" id="chunk-{number}">{text}</script>\n'
