"""The integrity of ``human_rationales``: masks fit tokens, trees fit rows, derived columns are derived."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from eraser_hub.conversion.checks import CheckRules, Report, Tally, UniqueStrings, check_folder, repeated
from eraser_hub.records.built import open_built
from eraser_hub.records.errors import DataError, shown

from .rows import SCHEMA, WHOLE
from .sentiment_trees import NEUTRAL, parse_tree, rationale_scores
from .wikiattack import comment_tokens

NOTES = {
    "no text": "the comments file was not at hand; masks alone",
    "no label": "the annotations were not at hand",
    "empty mask": "the comment has no token",
}


class HumanRationalesSplitCheck:
    """What is looked at in one split."""

    documents: int | None = None

    def __init__(self, config: str) -> None:
        self.config = config
        self.rows = 0
        self._ids = UniqueStrings()

    def batch(self, rows: pa.Table, tally: Tally) -> None:
        """Look at the next rows."""
        self.rows += rows.num_rows
        self._ids.add(rows["id"])
        for row in rows.to_pylist():
            look_at_row(row, self.config, tally)

    def finish(self, tally: Tally) -> None:
        """Ids are unique."""
        for identifier, times in self._ids.repeated():
            tally.add("repeated ids", 1, [f"id {identifier}: {times} times"])


def look_at_row(row: Mapping[str, Any], config: str, tally: Tally) -> None:
    """What one row shows."""
    where = f"id {row['id']}"
    mask, tokens = row["rationale_mask"], row["tokens"]
    if tokens is None or row["text"] is None:
        tally.add("no text", 1, [where])
    elif len(tokens) != len(mask):
        tally.add("mask and tokens differ in length", 1, [f"{where}: {len(mask)} and {len(tokens)}"])
    elif "".join(row["text"].split()) != "".join("".join(token.split()) for token in tokens):
        tally.add("tokens do not spell the text", 1, [f"{where}: {shown(' '.join(tokens))}"])
    elif config == "wikiattack" and comment_tokens(row["text"]) != tokens:
        tally.add("tokens are not those of the text", 1, [where])
    if [score > 0 for score in row["rationale_scores"]] != mask:
        tally.add("mask and scores differ", 1, [where])
    if row["label"] is None:
        tally.add("no label", 1, [where])
    if not mask:
        tally.add("empty mask", 1, [where])
    elif abs(row["rationale_ratio"] - sum(mask) / len(mask)) > 1e-6:
        tally.add("rationale_ratio", 1, [f"{where}: {row['rationale_ratio']}"])
    if config == "sst":
        _look_at_tree(row, where, tally)


def _look_at_tree(row: Mapping[str, Any], where: str, tally: Tally) -> None:
    try:
        tree = parse_tree((row["tree"] or "").removesuffix("\r"))
    except DataError as error:
        tally.add("tree", 1, [f"{where}: {error}"])
        return
    if list(tree.tokens) != row["tokens"] or rationale_scores(tree) != row["rationale_scores"]:
        tally.add("tree and row differ", 1, [where])
    if tree.sentiment == NEUTRAL:
        tally.add("neutral root", 1, [where])
    elif (tree.sentiment, int(tree.sentiment > NEUTRAL)) != (row["sentiment"], row["label"]):
        tally.add("label", 1, [f"{where}: {row['label']}, the root says {tree.sentiment}"])


def check_human_rationales(folder: Path, configs: Sequence[str] | None = None, leakage: bool = False) -> Report:
    """The integrity report of a built folder.

    With ``leakage`` the report says which texts stand in more than one split, or more than once in one.
    """
    rules = CheckRules(
        dataset="human_rationales",
        columns=tuple(SCHEMA.names),
        split=lambda config, split: HumanRationalesSplitCheck(config),
        notes=NOTES,
        kinds=SCHEMA,
        whole=WHOLE,
    )
    report, checks = check_folder(folder, rules, configs)
    if leakage:
        built = open_built(folder)
        for config, splits in checks.items():
            texts = (
                (row["text"], f"{split} {row['id']}")
                for split in splits
                for row in built.rows(config, split, ("id", "text"))
                if row["text"]
            )
            report.leakage += repeated(f"{config}: the same text several times", texts)
    return report
