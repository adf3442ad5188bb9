"""``bilingual_perturbation``: six public files and their gold files -> a Hub dataset folder -> the files."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa

from eraser_hub.conversion.built import BuiltDataset
from eraser_hub.conversion.card import ConfigInfo, Headline
from eraser_hub.conversion.checks import CheckResult, Quirk
from eraser_hub.conversion.dataset import HubDataset, RawConfig
from eraser_hub.conversion.readers import read_json_lines
from eraser_hub.papers import load_paper
from eraser_hub.records.errors import DataError, UsageError, show
from eraser_hub.records.tables import Cell, Table, Tables

from .format import CONFIGS, GOLD_FIELDS, LABEL_NAMES, SCHEMA, join, make_rows, read_records

HOMEPAGE = "https://www.luge.ai/#/luge/task/taskDetail?taskId=15"
SPLIT = "test"
LANGUAGES = {"en": "English", "zh": "Chinese"}
TASKS = {"senti": "sentiment analysis", "similarity": "textual similarity", "mrc": "reading comprehension"}
NAME = re.compile(rf"({'|'.join(CONFIGS)})(?![A-Za-z0-9])(.*)")
PUBLIC_SUFFIXES = ("", ".jsonl", ".json", ".txt", ".tsv")
GOLD_FOLDERS = ("gold", "golden")


class BilingualPerturbation(HubDataset):
    """Original and perturbed examples with rationale sets, three tasks in two languages."""

    name = "bilingual_perturbation"
    configs = {  # noqa: RUF012 - never written to
        name: ConfigInfo(
            f"{TASKS[task.name].capitalize()} in {LANGUAGES[task.language]}: original and perturbed examples, "
            "with rationale sets of tokens where the gold file was at hand.",
            {"label": LABEL_NAMES[task.name]},
            HOMEPAGE,
            citation=load_paper("wang_2022").citation,
            task="question-answering" if task.name == "mrc" else "text-classification",
            min_rows=int(load_paper("wang_2022").tables["table_3"].row(name)["pairs"]),
        )
        for name, task in CONFIGS.items()
    }
    default_config = "senti_en"
    schema = SCHEMA
    required = ("id", "tokens", "sample_type", "rel_ids[]", "rationale_ids[]", "has_gold")
    headlines = (Headline("map", "map"), Headline("token_f1", "token_f1"), Headline("iou_f1", "iou_f1"))
    quirks = {  # noqa: RUF012
        ("*", "*", kind): Quirk(why)
        for kind, why in {
            "rel_ids beyond a partial gold": "a gold of some records names perturbed ones outside of it",
            "empty gold set of an unanswerable question": "nothing in the passage supports an answer",
        }.items()
    }

    def find(self, source: Path | None, configs: Sequence[str] | None) -> Mapping[str, Callable[[], RawConfig]]:
        """Find the public files by name, and gold files beside them or in a folder ``gold`` or ``golden``."""
        if source is None:
            files = f"{' '.join(CONFIGS)} (and gold files such as senti_ch_golden.jsonl)"
            raise UsageError(f"expected the folder of {files}; {HOMEPAGE} has them", argument="source")
        found: dict[str, list[tuple[str, Path]]] = {}
        for place in (source, *(source / name for name in ("luge", self.name, *CONFIGS))):
            for folder in (place, *(place / name for name in GOLD_FOLDERS)):
                for path in sorted(folder.iterdir()) if folder.is_dir() else ():
                    if path.is_file() and (match := NAME.fullmatch(path.name)):
                        found.setdefault(match[1], []).append((path.relative_to(place).as_posix(), path))
        chosen = self.choose_found(configs, found, source, {name: str(source / name) for name in CONFIGS}, HOMEPAGE)
        return {name: partial(open_config, name, found[name]) for name in chosen}

    def check_config(self, built: BuiltDataset, config: str, result: CheckResult) -> None:
        """Check tokens against texts, gold sets, and the relations of originals and perturbed records."""
        for split in built.splits(config):
            rows = built.rows(config, split, None, SCHEMA, self.required)
            for kind, example in chain(chain.from_iterable(check_row(row, config) for row in rows), check_pairs(rows)):
                result.add(config, split, kind, [example])

    def make_tables(self, built: BuiltDataset, configs: Sequence[str], raw: Path | None = None) -> Tables:
        """Return Table 3 of the paper, recomputed, and the numbers of rows."""
        printed = load_paper("wang_2022").tables["table_3"]
        columns = ("pairs", "rationale_percent", "rationale_percent_of_one_set", "sets")
        sizes = Table("table_3", printed.title, ("config",), columns, printed.source)
        sizes.notes.append(
            "Rationale %: mean over the rows with gold of the share of tokens that stand in any set; of one set: the "
            "mean set's share. The paper does not say which of the two it prints."
        )
        counted = ("rows", "originals", "perturbed", "with_rationales", "tokens")
        counts = Table("rows", "Rows", ("config", "language", "task"), counted, "no paper counts them")
        for name in configs:
            figures = summarize(built.rows(name, SPLIT, None, SCHEMA, self.required))
            sizes.add(name, **{key: Cell(figures[key], printed.row(name).get(key)) for key in columns})
            words = LANGUAGES[CONFIGS[name].language], TASKS[CONFIGS[name].name]
            counts.add(name, *words, **{key: Cell(figures[key]) for key in counted})
        return Tables(self.name, [sizes, counts])


DATASET = BilingualPerturbation()


def open_config(config: str, found: Sequence[tuple[str, Path]]) -> RawConfig:
    """Read and join the files of a configuration.

    Args:
        config: the configuration.
        found: (name for `export`, path) of each file of its name.

    Raises:
        DataError: see `read_records` and `join`; two files have the same role.
    """
    task, notes = CONFIGS[config], list[str]()
    files, names = dict[str, Path](), dict[str, Path]()
    for name, path in found:
        kind = "public" if "/" not in name and path.name.removeprefix(config) in PUBLIC_SUFFIXES else "gold"
        if kind == "gold" and not next(read_json_lines(path), (0, {}))[1].keys() & {*GOLD_FIELDS}:
            notes.append(f"{path}: skipped: its records have no rationale sets; predictions are for scoring")
        elif kind in files:
            raise DataError(f"expected one {kind} file of {config}, found {files[kind]} as well", file=path)
        else:
            files[kind] = names[name] = path
    if not files:
        raise DataError(f"expected a public or a gold file of {config}, found neither", file=found[0][1])
    records = {kind: read_records(path, task, kind == "gold") for kind, path in files.items()}
    if "public" not in files:
        notes.append(f"{files['gold']}: {config} is built from its gold file alone")
    if "gold" not in files:
        notes.append(f"{files['public']}: no gold file beside it ({config}_golden.jsonl); built without rationales")
    joined, reports = join(records.get("public", []), records.get("gold", []), task, files)
    notes += [f"{config}: {report}" for report in reports]
    table = pa.Table.from_pylist(make_rows(joined, task), schema=SCHEMA)
    return RawConfig({SPLIT: [table]}, files=names, sources=list(files.values()), notes=notes)


def check_row(row: Mapping[str, Any], config: str) -> Iterator[tuple[str, str]]:
    """Yield (kind, example) of what is wrong in a row."""
    where, task, tokens = f"id {row['id']}", CONFIGS[config], row["tokens"]
    spelled = ["".join("".join(sequence).split()) for sequence in tokens]
    texts = {column: "".join((row[column] or "").split()) for column in task.texts}
    expected = [[text] for text in texts.values()]
    if task.name == "mrc":  # its tokens cover passage and title, in either order
        expected = [[texts["context"] + texts["title"], texts["title"] + texts["context"]]]
    if len(spelled) != len(expected) or any(text not in one for text, one in zip(spelled, expected, strict=True)):
        yield "tokens do not spell the text", f"{where}: {show(tokens)}"
    if row["rationale_ids"] is None:
        return
    for sets, sequence in zip(row["rationale_ids"], tokens, strict=False):
        if not sets or not all(sets):
            unanswerable = task.name == "mrc" and row["answer"] == ""
            yield f"empty gold set{' of an unanswerable question' * unanswerable}", where
        for chosen in sets:
            if any(not 0 <= index < len(sequence) for index in chosen):
                yield "index outside the tokens", f"{where}: {show(chosen)} of {len(sequence)} tokens"


def check_pairs(rows: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """Yield (kind, example) of what is wrong in the relations of originals and perturbed records."""
    kinds = {row["id"]: row["sample_type"] for row in rows}
    is_partial = any(row["has_gold"] for row in rows) and not all(row["has_gold"] for row in rows)
    for row in rows:
        where = f"id {row['id']}"
        for rel_id in row["rel_ids"] or ():
            if rel_id not in kinds:
                beyond = row["has_gold"] and is_partial
                yield "rel_ids beyond a partial gold" if beyond else "rel_ids without a record", f"{where}: {rel_id}"
            elif kinds[rel_id] != "disturb":
                yield "rel_ids name an original", f"{where}: {rel_id}"
        if row["rel_ids"] and row["sample_type"] == "disturb":
            yield "rel_ids of a perturbed record", where


def summarize(rows: Sequence[Mapping[str, Any]]) -> dict[str, float | None]:
    """Return the figures of Table 3 for rows of a configuration, and the counts behind them.

    Returns:
        ``rows``, ``originals``, ``perturbed``, ``with_rationales``: numbers of rows. ``pairs``: number of (original,
        perturbed) with both rows present, the paper's Size. ``tokens``: mean number per input. ``rationale_percent``:
        mean over rows of (tokens in any set) / (tokens), the paper's RLR; None without gold.
        ``rationale_percent_of_one_set``: the same for the mean set. ``sets``: mean number of sets per sequence with a
        set, the paper's RSN.
    """
    ids, lengths = {row["id"] for row in rows}, [sum(map(len, row["tokens"])) for row in rows]
    ratios, ratios_of_one, numbers = list[float](), list[float](), list[float]()
    for row, length in zip(rows, lengths, strict=True):
        if row["rationale_ids"] is None or not length:
            continue
        sequences = [[set(chosen) for chosen in sets] for sets in row["rationale_ids"]]
        ratios.append(sum(len(set().union(*sets)) for sets in sequences) / length)
        ratios_of_one.append(sum(sum(map(len, sets)) / len(sets) for sets in sequences if sets) / length)
        if with_sets := [len(sets) for sets in sequences if sets]:
            numbers.append(sum(with_sets) / len(with_sets))

    def mean(values: Sequence[float], times: int = 1) -> float | None:
        return times * (sum(values) / len(values)) if values else None

    return {
        "rows": len(rows),
        "originals": sum(row["sample_type"] == "ori" for row in rows),
        "perturbed": sum(row["sample_type"] == "disturb" for row in rows),
        "with_rationales": sum(bool(row["has_gold"]) for row in rows),
        "pairs": sum(rel_id in ids for row in rows if row["sample_type"] == "ori" for rel_id in row["rel_ids"] or ()),
        "tokens": mean(lengths) or 0.0,
        "rationale_percent": mean(ratios, 100),
        "rationale_percent_of_one_set": mean(ratios_of_one, 100),
        "sets": mean(numbers),
    }
