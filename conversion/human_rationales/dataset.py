"""``human_rationales``: sentiment trees and WikiAttack's masks -> a Hub dataset folder -> the files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from eraser_hub.conversion.built import BuiltDataset
from eraser_hub.conversion.card import SPAN_HEADLINES, ConfigInfo
from eraser_hub.conversion.checks import CheckResult, Quirk
from eraser_hub.conversion.dataset import HubDataset, RawConfig
from eraser_hub.papers import load_paper
from eraser_hub.records.errors import DataError, UsageError, show
from eraser_hub.records.tables import Cell, Table, Tables

from .trees import make_tree_row, read_tree_rows
from .wikiattack import find_kind, make_attack_rows, read_attacks, read_comments, read_masks

SST_URL = "https://nlp.stanford.edu/sentiment/trainDevTestTrees_PTB.zip"
RATIONALES_URL = "https://github.com/shcarton/rcnn/tree/master/deliberativeness/data/processed/wiki/personal_attacks"
FILES = {
    "sst": {"train": "train.txt", "validation": "dev.txt", "test": "test.txt"},
    "wikiattack": {"validation": "wiki_attack_dev_rationale.csv", "test": "wiki_attack_test_rationale.csv"},
}
# the folders that may contain them, and the folder under which `export` writes them
FOLDERS = {"sst": ("sst/trees", "sst", "trees", ""), "wikiattack": ("wikiattack", "")}
WANTED = {
    "sst": f"sst/trees/{{{','.join(FILES['sst'].values())}}} ({SST_URL})",
    "wikiattack": f"wikiattack/{{{','.join(FILES['wikiattack'].values())}}} ({RATIONALES_URL})",
}
# what is lost without the files of the comments' release
OTHER_FILES = {
    "comments": ("attack_annotated_comments.tsv", "https://ndownloader.figshare.com/files/7554634", "text or tokens"),
    "annotations": ("attack_annotations.tsv", "https://ndownloader.figshare.com/files/7554637", "label"),
}
SENTIMENTS = ("very negative", "negative", "neutral", "positive", "very positive")
SPAN = pa.struct([("start_token", pa.int32()), ("end_token", pa.int32()), ("sentiment", pa.int32())])


class HumanRationales(HubDataset):
    """SST's trees and WikiAttack's CSVs, in one schema."""

    name = "human_rationales"
    configs = {  # noqa: RUF012 - never written to
        "sst": ConfigInfo(
            "English sentiment trees: a sentence's label, and as rationale the phrases that explain it.",
            {"label": ("negative", "positive"), "sentiment": SENTIMENTS},
            "https://nlp.stanford.edu/sentiment/",
            citation=load_paper("carton_2020").citation,
            min_rows=9_613,
        ),
        "wikiattack": ConfigInfo(
            "English comments on Wikipedia talk pages, with what people highlighted as a personal attack.",
            {"label": ("no-attack", "personal-attack"), "sentiment": SENTIMENTS},
            RATIONALES_URL,
            citation=load_paper("carton_2020").citation,
            min_rows=1_049,
        ),
    }
    default_config = "sst"
    schema = pa.schema(
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
    required = ("id", "tokens[]", "rationale_mask", "rationale_scores", "rationale_ratio", "position")
    headlines = SPAN_HEADLINES
    quirks = {  # noqa: RUF012
        ("wikiattack", "*", "no text"): Quirk("the comments file was not at hand; masks alone"),
        ("wikiattack", "*", "no label"): Quirk("the annotations were not at hand"),
        ("wikiattack", "*", "empty mask"): Quirk("the comment has no token"),
    }

    def find(self, source: Path | None, configs: Sequence[str] | None) -> Mapping[str, Callable[[], RawConfig]]:
        """Find the tree files and the CSVs of masks, in a folder of the configuration's name or in ``source``."""
        if source is None:
            raise UsageError(f"expected the folder of {' or '.join(WANTED.values())}", argument="source")
        found: dict[str, tuple[Path, dict[str, Path]]] = {}
        for config, names in FILES.items():
            for place in FOLDERS[config]:
                files = {split: path for split, name in names.items() if (path := source / place / name).is_file()}
                if files and config not in found:
                    found[config] = source / place, files
        chosen = self.choose_found(configs, found, source, WANTED)
        open_config = {"sst": open_trees, "wikiattack": open_wikiattack}
        return {name: partial(open_config[name], *found[name]) for name in chosen}

    def check_config(self, built: BuiltDataset, config: str, result: CheckResult) -> None:
        """Check masks against tokens and scores, tokens against texts, and trees against what follows from them."""
        for split in built.splits(config):
            for row in built.rows(config, split, None, self.schema, self.required):
                where, mask, tokens = f"id {row['id']}", row["rationale_mask"], row["tokens"]
                if tokens is None or row["text"] is None:
                    result.add(config, split, "no text", [where])
                elif len(tokens) != len(mask):
                    result.add(config, split, "mask length", [f"{where}: {len(mask)} of {len(tokens)} tokens"])
                elif "".join(row["text"].split()) != "".join("".join(tokens).split()):
                    result.add(config, split, "tokens do not spell the text", [f"{where}: {show(' '.join(tokens))}"])
                if [score > 0 for score in row["rationale_scores"]] != mask:
                    result.add(config, split, "mask and scores differ", [where])
                if row["label"] is None:
                    result.add(config, split, "no label", [where])
                if not mask:
                    result.add(config, split, "empty mask", [where])
                if config == "sst":
                    try:
                        made = make_tree_row(row["tree"] or "")
                    except DataError as error:
                        result.add(config, split, "tree", [f"{where}: {error}"])
                        continue
                    differ = [name for name in made if name != "rationale_ratio" and made[name] != row[name]]
                    result.add(config, split, "tree and row differ", [f"{where}: {', '.join(differ)}"][: len(differ)])

    def make_tables(self, built: BuiltDataset, configs: Sequence[str], raw: Path | None = None) -> Tables:
        """Return the paper's Table 2, which is over all splits, and Figure 1, recomputed.

        Lengths are means over the rows; a row without tokens counts with the share 0. ``score_length`` and
        ``score_percent`` are sum and mean of the scores, of a tree token ``|sentiment| / 2`` of its phrase.
        """
        printed = load_paper("carton_2020").tables
        names = ("rows", "text_length", "rationale_length", "rationale_percent", "score_length", "score_percent")
        lengths = Table("table_2", printed["table_2"].title, ("config", "split"), names, printed["table_2"].source)
        lengths.notes.append(
            "Rationale: tokens in the mask. Score: sum of rationale_scores, for trees half the magnitude of the "
            "token's phrase; its figures, not the mask's, are near those that the paper prints for SST."
        )
        figure = printed["figure_1"]
        shares = Table("figure_1", figure.title, ("config", "label"), ("rows", "rationale_percent"), figure.source)
        columns = ("label", "rationale_mask", "rationale_scores")
        for config in configs:
            rows = {
                split: built.rows(config, split, columns, self.schema, columns[1:]) for split in built.splits(config)
            }
            rows["all"] = [row for part in rows.values() for row in part]
            for split, part in rows.items():
                about: dict[str, str | None] = {**printed["table_2"].row(config)} if split == "all" else {}
                if config == "sst":  # the paper's figures for trees match the scores; for masks both are equal
                    about |= {f"score_{name}": about.pop(f"rationale_{name}", None) for name in ("length", "percent")}
                figures = compute_lengths(part)
                lengths.add(config, split, **{name: Cell(figures[name], about.get(name)) for name in figures})
            for number, label in enumerate(self.configs[config].label_names["label"]):
                masks = [row["rationale_mask"] for row in rows["all"] if row["label"] == number]
                if masks:
                    share = 100 * sum(sum(mask) / max(len(mask), 1) for mask in masks) / len(masks)
                    percent = Cell(share, figure.row(config, label).get("rationale_percent"))
                    shares.add(config, label, rows=Cell(len(masks)), rationale_percent=percent)
        return Tables(self.name, [table for table in (lengths, shares) if table.rows])


DATASET = HumanRationales()


def compute_lengths(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Return the figures of Table 2 for rows, of which there is one at least."""
    figures: dict[str, float] = {"rows": len(rows)}
    figures["text_length"] = sum(len(row["rationale_mask"]) for row in rows) / len(rows)
    for name, column in (("rationale", "rationale_mask"), ("score", "rationale_scores")):
        values = [row[column] for row in rows]
        figures[f"{name}_length"] = sum(map(sum, values)) / len(rows)
        figures[f"{name}_percent"] = 100 * (sum(sum(value) / len(value) for value in values if value) / len(rows))
    return figures


def open_trees(folder: Path, files: Mapping[str, Path]) -> RawConfig:
    """Read the tree files; a split of neutral trees alone has no rows, but a note."""
    parts = {split: read_tree_rows(path) for split, path in files.items()}
    others = [path for path in sorted(folder.glob("*.txt")) if path.name not in FILES["sst"].values()]
    notes = [f"{path}: skipped: no file of this corpus" for path in others]
    return _make_raw("sst", folder, files, parts, notes)


def open_wikiattack(folder: Path, files: Mapping[str, Path]) -> RawConfig:
    """Read the masks, and from files beside them, known by their columns, texts and labels."""
    notes, others = list[str](), dict[str, Path]()
    for path in sorted(folder.iterdir()):
        if path.is_file() and path.suffix.lower() in (".tsv", ".csv") and path.name not in FILES["wikiattack"].values():
            kind = find_kind(path)
            if kind is None:
                notes.append(f"{path}: skipped: its columns are neither those of comments nor of annotations")
            elif kind in others:
                raise DataError(f"expected one file of {kind}, found {others[kind].name} as well", file=path)
            else:
                others[kind] = path
    for kind, (name, url, lost) in OTHER_FILES.items():
        if kind not in others:
            notes.append(f"{folder / name}: not there; rows have no {lost} (download: {url})")
    if others:
        names = ", ".join(path.name for path in others.values())
        notes.append(f"wikiattack: {names}: in the rows, but not kept as files; `export` writes the masks alone")
    masks = {split: read_masks(path) for split, path in files.items()}
    wanted = {comment_id for part in masks.values() for comment_id in part}
    comments = read_comments(others["comments"], wanted) if "comments" in others else None
    attacks = read_attacks(others["annotations"], wanted) if "annotations" in others else None
    parts = {split: make_attack_rows(path, masks[split], comments, attacks) for split, path in files.items()}
    return _make_raw("wikiattack", folder, files, parts, notes, others.values())


def _make_raw(
    config: str,
    folder: Path,
    files: Mapping[str, Path],
    parts: Mapping[str, tuple[list[dict[str, Any]], dict[str, int]]],
    notes: list[str],
    others: Iterable[Path] = (),
) -> RawConfig:
    """Return what a build needs of rows, and why -> how many lines have none, by split."""
    missing = [
        f"{folder / name}: not there; no split {split}" for split, name in FILES[config].items() if split not in files
    ]
    for split, (rows, skipped) in parts.items():
        notes += [f"{files[split]}: {count} {reason}" for reason, count in skipped.items() if count]
        notes += [] if rows else [f"{files[split]}: no row is left for the split {split}"]
    splits = {split: [pa.Table.from_pylist(rows, schema=DATASET.schema)] for split, (rows, _) in parts.items() if rows}
    if not splits:
        raise DataError("expected a tree whose root is not neutral, found none", file=next(iter(files.values())))
    released = {f"trees/{path.name}" if config == "sst" else path.name: path for path in files.values()}
    return RawConfig(splits, files=released, sources=[*files.values(), *others], notes=[*missing, *notes])
