"""The card of ``hub/eraser``, and of a corpus of one's own: prose from ``datasets_scripts/cards``, and its marks."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from eraser_hub.conversion.card import CARDS, ConfigInfo
from eraser_hub.papers import COMPREHENSIVE, load_paper
from eraser_hub.records.errors import show_controls
from eraser_hub.records.tables import Tables

from .check import MAIN_SPLITS
from .configs import CONFIGS, EraserConfig

TITLE = "ERASER: Evaluating Rationales And Simple English Reasoning"
TAGS = ("explainability", "rationales", "interpretability", "faithfulness")
MIN_SHARE = 0.98  # released files have up to 1.2 % fewer instances than the paper prints
FIGURES = (("table_5", "evidence"), ("gold",))  # the tables of the splits' figures
WHETHER = {COMPREHENSIVE[True]: "yes", COMPREHENSIVE[False]: "no", COMPREHENSIVE[None]: "?"}
LOAD = """```python
from datasets import load_dataset

dataset = load_dataset({arguments})
row = dataset["{split}"][0]
tokens = [token for token in row["documents"][0]["text"].replace("\\n", " ").split(" ") if token]
rationale = [tokens[position] for position in row["rationale_positions"][0]]
```"""


def describe_config(config: EraserConfig) -> ConfigInfo:
    """Return the description of a config, released or one's own, for the card and the builder."""
    labels = {"classification": config.label_names}
    if config.corpus_yaml:
        words = f"A corpus in ERASER's format: {config.title}. {config.license_note}"
        return ConfigInfo(words, labels, "", config.license, config.citation, config.task)
    words, citation = f"ERASER: {config.title}. {config.license_note}", load_paper("eraser_acl_2020").citation
    return ConfigInfo(words, labels, "https://www.eraserbenchmark.com/", config.license, citation, config.task)


def make_card_parts(
    name: str,
    facts: Mapping[str, EraserConfig],
    counts: Mapping[str, Mapping[str, int]],
    default: str,
    tables: Tables,
) -> tuple[dict[str, Any], str, dict[str, str]]:
    """Return the metadata and the prose of a card, and mark in the prose -> text.

    Args:
        name: the dataset.
        facts: config -> what is known of it, of the configs in the folder.
        counts: config -> split -> number of rows.
        default: the config that a load without a name takes.
        tables: see `statistics.make_tables`.
    """
    prose, first = (CARDS / "eraser.md").read_text(encoding="utf-8"), facts[default]
    is_own, printed = bool(first.corpus_yaml), load_paper("eraser_acl_2020").tables["table_1"]
    partial = {config for config in facts if not is_own and not is_whole(config, counts[config])}
    part = " (a sample, or a part of the release)" if partial else ""
    languages = sorted({code for config in facts.values() for code in config.language})
    metadata: dict[str, Any] = {
        "pretty_name": first.title if is_own else f"{TITLE}{part}",
        "language": languages or None,
        "license": sorted({config.license for config in facts.values()}),
        "multilinguality": ["monolingual" if len(languages) == 1 else "multilingual"] if languages else None,
        "task_categories": sorted({config.task for config in facts.values()}),
        "task_ids": sorted({config.task_id for config in facts.values()}),
        "source_datasets": ["original"] if is_own else sorted({f"extended|{one.source}" for one in facts.values()}),
        "tags": [*TAGS] if is_own else [*TAGS, "eraser"],
    }
    parts = {
        "title": _escape(metadata["pretty_name"]),
        "load": LOAD.format(
            arguments=f'"{name}"' if is_own else f'"{name}", "{first.name}"',
            split=next(iter(counts[first.name])),
        ),
        "statistics": _list_figures(tables, partial),
        "licences": "\n".join(
            ["| config | licence | |", "|---|---|---|"]
            + [
                f"| `{config}` | {_escape(of.license)} | {_escape(of.license_note)} |"
                for config, of in facts.items()
                if config == find_base(config) or find_base(config) not in facts
            ]
        ),
    }
    if is_own:
        columns = prose[prose.index("## Columns") : prose.index("## Statistics")]
        prose = (CARDS / "own_corpora.md").read_text(encoding="utf-8").replace("<!-- columns -->", columns.strip())
        further = [table for table in tables.tables if table.name in ("gold", "table_2", "annotators")]
        parts["further tables"] = Tables(name, further).written("markdown")
        parts["labels"] = ", ".join(f"`{_escape(label)}`" for label in first.label_names)
        citation = "\n".join(map(show_controls, first.citation.strip().split("\n"))).replace("`", "'")
        parts["citation"] = f"```bibtex\n{citation}\n```" if first.citation else ""
        return metadata, prose, parts
    metadata["annotations_creators"] = sorted({who for config in facts.values() for who in config.annotations_creators})
    metadata["language_creators"] = sorted({who for config in facts.values() for who in config.language_creators})
    for config in CONFIGS.keys() - facts.keys():
        prose = re.sub(rf"\| `{config}` \|.*\n", "", prose)
    for config, splits in counts.items():
        words = [" / ".join(f"{splits[split]:,}" if split in splits else "–" for split in MAIN_SPLITS)]
        if config in partial and config in {left[0] for left in printed.rows}:
            words[0] += f" of {' / '.join(f'{int(printed.row(config)[split]):,}' for split in MAIN_SPLITS)}"
        words += [f"{split} {count:,}" for split, count in splits.items() if split not in MAIN_SPLITS]
        parts[f"instances {config}"] = ", ".join(words)
    total = sum(sum(splits.values()) for splits in counts.values())
    listed = ", ".join(f"`{config}`" for config in facts if config in partial)
    if partial:
        which = "none of the configurations is whole" if len(partial) == len(facts) else f"{listed} are not whole"
        parts["extent"] = f"**A sample, or a part of the release**: {total:,} instances; {which}."
    else:
        which = "the release" if len(facts) == len(CONFIGS) else ", ".join(f"`{config}`" for config in facts)
        parts["extent"] = f"This dataset holds {which} whole: each annotation, evidence group, offset and document."
    return metadata, prose, parts


def find_base(config: str) -> str:
    """Return the corpus of which a configuration is a variant, for example ``esnli`` of ``esnli_flat``; else itself."""
    return re.sub("_simplified$|_flat$", "", config)


def is_whole(config: str, counts: Mapping[str, int]) -> bool:
    """Return True if a released configuration has about the numbers of instances that the paper prints."""
    printed = load_paper("eraser_acl_2020").tables["table_1"].row(find_base(config))
    return all(counts.get(split, 0) >= MIN_SHARE * int(printed[split]) for split in MAIN_SPLITS)


def _list_figures(tables: Tables, partial: Collection[str]) -> str:
    """Return the table of the splits' figures, with what the paper prints of configurations that are whole."""
    per_split, gold = (next(table for table in tables.tables if table.name in names) for names in FIGURES)
    columns = [column for column in per_split.columns if column != "instances"]
    heads = ("config", "split", *columns, "all marked")
    lines = [" | ".join(heads).replace("_percent", " %").replace("_", " "), " | ".join(["---"] * len(heads))]
    for ((config, split), cells), (_, about) in zip(per_split.rows, gold.rows, strict=True):
        figures = [cells[column] for column in columns]
        if config in partial:
            figures = [replace(cell, printed=None, digits=min(cell.digits, 1)) for cell in figures]
        marked = WHETHER[str(about["gold"].value)]
        lines.append(" | ".join([f"`{config}`", split, *map(str, figures), marked]))
    return "\n".join(f"| {line} |" for line in lines)


def _escape(text: str) -> str:
    """Replace the characters that end a table cell, a fenced block or a comment."""
    return show_controls(text).replace("|", "\\|").replace("`", "'").replace("<", "&lt;")
