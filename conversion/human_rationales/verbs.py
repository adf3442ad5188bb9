"""Verbs of ``human_rationales``: sentiment trees and WikiAttack's masks -> a Hub dataset folder -> the files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from eraser_hub.conversion.built import BuiltDataset
from eraser_hub.conversion.card import ConfigWords
from eraser_hub.conversion.checks import Tally
from eraser_hub.conversion.dataset import read_file_ends
from eraser_hub.conversion.small_dataset import ConfigTables, Row, SmallDataset, Sources
from eraser_hub.papers import load_paper
from eraser_hub.records.errors import DataError, show

from . import DATASET
from .rows import LABEL_NAMES, SCHEMA, read_tree_rows, read_wikiattack_rows
from .sentiment_trees import NEUTRAL, compute_rationale_scores, parse_tree
from .sources import RATIONALES_URL, SST_URL, find_human_rationales
from .statistics import make_card_tables, make_tables
from .wikiattack import (
    RATIONALE_COLUMNS,
    format_rationale,
    read_attacks,
    read_comments,
    read_rationales,
    tokenize_comment,
)


class HumanRationalesVerbs(SmallDataset):
    """The verbs, on SST's trees and WikiAttack's CSVs."""

    facts = DATASET
    schema = SCHEMA
    whole = ("id", "tokens[]", "rationale_mask", "rationale_scores", "rationale_ratio", "position")
    wanted = (
        f"DIR with sst/trees/train.txt dev.txt test.txt ({SST_URL}) or "
        f"wikiattack/wiki_attack_dev_rationale.csv wiki_attack_test_rationale.csv ({RATIONALES_URL})"
    )
    words = {  # noqa: RUF012 - never written to
        "sst": ConfigWords(
            "English sentiment trees: a sentence's label, and as rationale the phrases that explain it.",
            LABEL_NAMES["sst"],
            "https://nlp.stanford.edu/sentiment/",
            citation=load_paper("carton_2020").citation,
        ),
        "wikiattack": ConfigWords(
            "English comments on Wikipedia talk pages, with what people highlighted as a personal attack.",
            LABEL_NAMES["wikiattack"],
            RATIONALES_URL,
            citation=load_paper("carton_2020").citation,
        ),
    }
    notes = {  # noqa: RUF012
        "no text": "the comments file was not at hand; masks alone",
        "no label": "the annotations were not at hand",
        "empty mask": "the comment has no token",
    }

    find = staticmethod(find_human_rationales)  # pyright: ignore[reportAssignmentType]
    stats = staticmethod(make_tables)  # pyright: ignore[reportAssignmentType]
    card_tables = staticmethod(make_card_tables)  # pyright: ignore[reportAssignmentType]

    def read(self, config: str, sources: Sources, notes: list[str]) -> ConfigTables:
        """Read a configuration; a split with neutral trees only has no rows but a note."""
        paths = sources.files[config]
        if config == "sst":
            parts = {split: read_tree_rows(path) for split, path in paths.items()}
        else:
            wanted = {record.comment_id for path in paths.values() for record in read_rationales(path)}
            texts, votes = (sources.beside.get(kind) for kind in ("comments", "annotations"))
            comments = None if texts is None else read_comments(texts, wanted)
            attacks = None if votes is None else read_attacks(votes, wanted)
            parts = {split: read_wikiattack_rows(path, comments, attacks, texts) for split, path in paths.items()}
        files: list[dict[str, Any]] = []
        records: list[tuple[str, int, str]] = []
        for split, part in parts.items():
            path, name = paths[split], paths[split].relative_to(sources.root[config]).as_posix()
            kept = {"split": split if part.rows else None, **read_file_ends(path), "lines": part.lines}
            files.append({"file": name, **kept, "skipped": part.skipped})
            records += [(name, line, text) for line, text in part.records]
            notes += [f"{path}: {count} {reason}" for reason, count in part.skipped.items()]
            notes += [f"{path}: no row is left for the split {split}"] * (not part.rows)
        splits = {name: pa.Table.from_pylist(part.rows, schema=SCHEMA) for name, part in parts.items() if part.rows}
        if not splits:
            message = "expected a tree whose root is not neutral, found none"
            raise DataError(message, file=next(iter(paths.values())))
        return ConfigTables(splits, files, records)

    def lines(
        self, config: str, file: Mapping[str, Any], kept: Mapping[int, str], built: Callable[[], BuiltDataset]
    ) -> list[str]:
        """Return the lines of a tree file or a CSV; lines in another form are stored as released."""
        rows = built().rows(config, file["split"]) if file["split"] else []
        if config == "sst":
            trees = iter(rows)  # the lines between them are neutral trees
            numbers = range(1, len(rows) + len(kept) + 1)
            return [kept[number] if number in kept else next(trees)["tree"] for number in numbers]
        lines = [kept.get(1, ",".join(RATIONALE_COLUMNS))]
        number = 2
        for row in rows:
            text = kept.get(number, format_rationale(row["id"], row["rationale_mask"]))
            lines.append(text)
            number += text.count("\n") + 1
        return lines

    def describe_export(self, configs: Sequence[str]) -> list[str]:
        """Return a note that WikiAttack's comments, which belong to another release, are not exported."""
        note = "wikiattack: masks alone; comments and annotations are files of another release"
        return [note] * ("wikiattack" in configs)

    def look_at_row(self, row: Row, config: str, tally: Tally) -> None:
        """Check one row: mask against tokens, tree against columns, and derived columns."""
        where = f"id {row['id']}"
        mask, tokens = row["rationale_mask"], row["tokens"]
        if tokens is None or row["text"] is None:
            tally.add("no text", 1, [where])
        elif len(tokens) != len(mask):
            tally.add("mask and tokens differ in length", 1, [f"{where}: {len(mask)} and {len(tokens)}"])
        elif "".join(row["text"].split()) != "".join("".join(token.split()) for token in tokens):
            tally.add("tokens do not spell the text", 1, [f"{where}: {show(' '.join(tokens))}"])
        elif config == "wikiattack" and tokenize_comment(row["text"]) != tokens:
            tally.add("tokens are not those of the text", 1, [where])
        if [score > 0 for score in row["rationale_scores"]] != mask:
            tally.add("mask and scores differ", 1, [where])
        if row["label"] is None:
            tally.add("no label", 1, [where])
        if not mask:
            tally.add("empty mask", 1, [where])
        elif abs(row["rationale_ratio"] - sum(mask) / len(mask)) > 1e-6:
            tally.add("rationale_ratio", 1, [f"{where}: {row['rationale_ratio']}"])
        if config != "sst":
            return
        try:
            tree = parse_tree((row["tree"] or "").removesuffix("\r"))
        except DataError as error:
            tally.add("tree", 1, [f"{where}: {error}"])
            return
        if list(tree.tokens) != row["tokens"] or compute_rationale_scores(tree) != row["rationale_scores"]:
            tally.add("tree and row differ", 1, [where])
        if tree.sentiment == NEUTRAL:
            tally.add("neutral root", 1, [where])
        elif (tree.sentiment, int(tree.sentiment > NEUTRAL)) != (row["sentiment"], row["label"]):
            tally.add("label", 1, [f"{where}: {row['label']}, the root says {tree.sentiment}"])


VERBS = HumanRationalesVerbs()
