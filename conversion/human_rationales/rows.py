"""Sentiment trees and WikiAttack records as rows of one schema."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from eraser_hub.conversion.errors import raise_all
from eraser_hub.records.errors import DataError

from .sentiment_trees import NEUTRAL, compute_rationale_scores, find_rationale_phrases, read_trees
from .wikiattack import RATIONALE_COLUMNS, Comment, format_rationale, read_rationales, tokenize_comment

SPAN = pa.struct([("start_token", pa.int32()), ("end_token", pa.int32()), ("sentiment", pa.int32())])
SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("text", pa.string()),
        ("tokens", pa.list_(pa.string())),
        ("label", pa.int64()),
        ("rationale_mask", pa.list_(pa.bool_())),
        ("rationale_scores", pa.list_(pa.float32())),
        ("num_tokens", pa.int32()),
        ("rationale_ratio", pa.float32()),
        ("position", pa.int32()),
        ("sentiment", pa.int64()),
        ("phrases", pa.list_(SPAN)),
        ("tree", pa.string()),
        ("attack_share", pa.float32()),
    ]
)
SENTIMENTS = ("very negative", "negative", "neutral", "positive", "very positive")
LABEL_NAMES: dict[str, dict[str, Sequence[str]]] = {
    "sst": {"label": ("negative", "positive"), "sentiment": SENTIMENTS},
    "wikiattack": {"label": ("no-attack", "personal-attack"), "sentiment": SENTIMENTS},
}
ATTACK_SHARE = 0.5  # a comment is an attack if at least half of its annotators say so


@dataclass(slots=True)
class SplitRows:
    """Rows of a split, and facts of its file.

    Attributes:
        rows: the rows.
        records: (line, text) of lines that rows cannot restore.
        lines: number of lines.
        skipped: reason -> number of lines without a row.
    """

    rows: list[dict[str, Any]] = field(default_factory=list)
    records: list[tuple[int, str]] = field(default_factory=list)
    lines: int = 0
    skipped: dict[str, int] = field(default_factory=dict)

    def skip(self, reason: str) -> None:
        """Count a line without a row."""
        self.skipped[reason] = self.skipped.get(reason, 0) + 1


def read_tree_rows(path: Path) -> SplitRows:
    """Return the rows of a tree file, one for each tree whose root is not neutral.

    Raises:
        DataError: see `sentiment_trees.read_trees`; also a file without a tree.
    """
    split = SplitRows()
    for line in read_trees(path):
        split.lines += 1
        number = line.position + 1
        if line.tree is None or line.tree.sentiment == NEUTRAL:
            split.skip("blank lines" if line.tree is None else "neutral roots")
            split.records.append((number, line.text))
            continue
        tree, tokens = line.tree, list(line.tree.tokens)
        scores = compute_rationale_scores(tree)
        mask = [score > 0 for score in scores]
        split.rows.append(
            {
                "id": f"{path.stem}_{number}",
                "text": " ".join(tokens),
                "tokens": tokens,
                "label": int(tree.sentiment > NEUTRAL),
                "rationale_mask": mask,
                "rationale_scores": scores,
                "num_tokens": len(tokens),
                "rationale_ratio": sum(mask) / len(mask),
                "position": number,
                "sentiment": tree.sentiment,
                "phrases": [phrase._asdict() for phrase in find_rationale_phrases(tree)],
                "tree": line.text,
            }
        )
    if split.lines == split.skipped.get("blank lines", 0):
        raise DataError("expected a tree a line, found none", file=path, line=1)
    return split


def read_wikiattack_rows(
    path: Path, comments: dict[str, Comment] | None, attacks: dict[str, float] | None, comments_file: Path | None
) -> SplitRows:
    """Return the rows of a rationale CSV, with texts and labels if available.

    Raises:
        DataError: see `wikiattack.read_rationales`; also a mask whose length differs from its comment's tokens.
    """
    split = SplitRows()
    issues: list[DataError] = []
    with path.open("rb") as file:
        header = file.readline().decode("utf-8", "replace").removeprefix("\ufeff").removesuffix("\n")
    if header != ",".join(RATIONALE_COLUMNS):  # quoted, or with a carriage return
        split.records.append((1, header))
    for record in read_rationales(path):
        comment = (comments or {}).get(record.comment_id)
        if comments is not None and comment is None:
            split.skip("ids without a comment")
        tokens = None if comment is None else tokenize_comment(comment.text)
        if comment is not None and tokens is not None and len(tokens) != len(record.mask):
            other = f"{comments_file}:{comment.line}"
            message = f"expected a mask of {len(tokens)} tokens, those of {other}, found one of {len(record.mask)}"
            instance = record.comment_id
            error = DataError(message, file=path, line=record.line, instance=instance, field="rationale")
            issues.append(error)
            continue
        share = None if attacks is None else attacks.get(record.comment_id)
        if attacks is not None and share is None:
            split.skip("ids without annotations")
        split.rows.append(
            {
                "id": record.comment_id,
                "text": None if comment is None else comment.text,
                "tokens": tokens,
                "label": None if share is None else int(share >= ATTACK_SHARE),
                "rationale_mask": list(record.mask),
                "rationale_scores": [float(bit) for bit in record.mask],
                "num_tokens": len(record.mask),
                "rationale_ratio": sum(record.mask) / len(record.mask) if record.mask else 0.0,
                "position": record.line,
                "attack_share": share,
            }
        )
        if format_rationale(record.comment_id, record.mask) != record.text:
            split.records.append((record.line, record.text))
    raise_all(issues)
    if not split.rows:
        raise DataError("expected a record a line, found the header alone", file=path, line=1)
    return split
