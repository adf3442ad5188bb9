"""The card of ``hub/eraser``: YAML from release.json, prose from ``datasets_scripts/cards/eraser.md``.

A folder of custom corpora alone takes its prose from ``own_corpora.md``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from eraser_hub.conversion.card import CARDS, ConfigWords, add_configs, make_card_text
from eraser_hub.conversion.licenses import get_license_path
from eraser_hub.papers import COMPREHENSIVE, load_paper
from eraser_hub.records.errors import DataError, show_controls
from eraser_hub.records.tables import Cell

from .configs import CONFIGS, DEFAULT_CONFIG, EraserConfig
from .schema import SCHEMA

HOMEPAGE = "https://www.eraserbenchmark.com/"
TITLE = "ERASER: Evaluating Rationales And Simple English Reasoning"
PLACEHOLDERS = ("splits", "own corpora", "gold", "table 5", "licences")
TAGS = ("explainability", "rationales", "interpretability", "faithfulness")
LABEL_NAMES = """Labels are numbers, whose names are those of the feature:

```python
label = rows[next(iter(rows))].features["classification"]
named = [label.int2str(number) for number in rows[next(iter(rows))]["classification"]]
```

"""
CUSTOM_TITLE = "A corpus in ERASER's format"


def make_readme(release: dict[str, Any], facts: Mapping[str, EraserConfig], dataset: str = "eraser") -> str:
    """Return the text of README.md.

    Args:
        release: the configs of ``release.json``.
        facts: the descriptions of these configs.
        dataset: name of the dataset; of one's own name it has one config, which needs no name.
    """
    infos = []
    for name, config in facts.items():
        entry = release[name]
        splits = {split: (of["num_bytes"], of["num_examples"]) for split, of in entry["splits"].items()}
        infos.append(describe_config(config).make_entry(name, SCHEMA, entry["version"], splits, entry["download_size"]))
    prose = (CARDS / "eraser.md").read_text(encoding="utf-8")
    if CONFIGS.keys().isdisjoint(facts):  # the card of custom corpora has only the section of columns in common
        columns = prose[prose.index("## Columns") : prose.index("## Statistics")].strip()
        custom = (CARDS / "own_corpora.md").read_text(encoding="utf-8")
        first = next(iter(facts))
        load = f'load_dataset("eraser", "{first}")' if dataset == "eraser" else f'load_dataset("{dataset}")'
        prose = custom.replace("<!-- columns -->", columns).replace('load_dataset("eraser", "CONFIG")', load)
        if dataset != "eraser":
            start, end = prose.index("Labels are numbers, each"), prose.index("A row (shortened")
            prose = prose[:start] + LABEL_NAMES + prose[end:]
            title = facts[first].title
            prose = prose.replace("# Corpora of human rationales", f"# {_escape_cell(title)}: human rationales")
            prose = prose.replace("the corpora are none of ERASER's", "the corpus is none of ERASER's")
    elif not CONFIGS.keys() <= facts.keys():
        prose = _describe_part(prose, release, [name for name in facts if name in CONFIGS])
    metadata = add_configs(_make_metadata(facts, dataset), infos, DEFAULT_CONFIG, "{config}/{split}-*-of-*.parquet")
    return make_card_text(metadata, fill_prose(prose, release, facts))


def describe_config(config: EraserConfig) -> ConfigWords:
    """Return the description of a config, released or custom, for the card."""
    released = config.name in CONFIGS
    return ConfigWords(
        f"{'ERASER' if released else CUSTOM_TITLE}: {config.title}. {config.license_note}",
        {"classification": config.label_names},
        HOMEPAGE if released else "",
        config.license,
        load_paper("eraser_acl_2020").citation if released else config.citation,
    )


def _describe_part(prose: str, release: Mapping[str, Any], names: Sequence[str]) -> str:
    """Return the card's prose of a folder that has some of the released configs: what it says is in the folder."""
    listed = ", ".join(f"`{name}`" for name in names)
    prose = prose.replace("Seven corpora of English text", f"Corpora of English text ({listed})", 1)
    start, end = prose.index("```python\nfrom datasets"), prose.index("```\n\n## Configurations")
    split = next(iter(release[names[0]]["splits"]))
    others = f"  # or {', '.join(names[1:])}" if len(names) > 1 else ""
    snippet = f"""```python
from datasets import load_dataset

corpus = load_dataset("eraser", "{names[0]}"){others}
row = corpus["{split}"][0]
tokens = [t for t in row["documents"][0]["text"].replace("\\n", " ").split(" ") if t]
marked = [tokens[position] for position in row["rationale_positions"][0]]
"""
    return prose[:start] + snippet + prose[end:]


def _make_metadata(facts: Mapping[str, EraserConfig], dataset: str) -> dict[str, Any]:
    """Return the card's metadata of the whole dataset, without the keys that custom corpora leave open."""
    released = [config for name, config in facts.items() if name in CONFIGS]
    languages = sorted({code for config in facts.values() for code in config.language})
    sources = {f"extended|{config.source}" for config in released}
    creators = {
        "annotations_creators": sorted({who for config in released for who in config.annotations_creators}),
        "language_creators": sorted({who for config in released for who in config.language_creators}),
    }
    return {
        "pretty_name": TITLE if released else ", ".join(facts),
        **({"language": languages} if languages else {}),
        "license": sorted({config.license for config in facts.values()}),
        **({"multilinguality": ["monolingual" if len(languages) == 1 else "multilingual"]} if languages else {}),
        "task_categories": sorted({config.task for config in facts.values()}),
        "task_ids": sorted({config.task_id for config in facts.values()}),
        "size_categories": [],
        **(creators if released else {}),
        "source_datasets": sorted(sources | ({"original"} if len(released) < len(facts) else set())),
        "tags": [*TAGS, *(["eraser"] if dataset == "eraser" else [])],
    }


def fill_prose(prose: str, release: Mapping[str, Any], facts: Mapping[str, EraserConfig]) -> str:
    """Return the prose with its placeholders, such as ``<!-- splits -->``, replaced by tables.

    Args:
        prose: the card's text below the YAML, with all of `PLACEHOLDERS`.
        release: config -> its entry in ``release.json``, with splits and their numbers of rows.
        facts: config -> its facts, in the card's order.

    Raises:
        DataError: a placeholder is missing.
    """
    main = ("train", "validation", "test")
    splits = ["| config | train | validation | test | further splits |", "|---|---:|---:|---:|---|"]
    own = ["Corpora of this folder's own:", "", "| config | labels | languages |", "|---|---|---|"]
    gold = ["| config | split | rows with gold | without | gold tokens % | | annotators |"]
    gold.append("|---|---|---:|---:|---:|---|---:|")
    licences = ["| config | licence | | the release's file |", "|---|---|---|---|"]
    citations: list[str] = []
    for name, config in facts.items():
        entry = release[name]
        rows = {split: of["num_examples"] for split, of in entry["splits"].items()}
        further = ", ".join(f"`{split}` {count:,}" for split, count in rows.items() if split not in main) or "–"
        cells = [f"{rows[split]:,}" if split in rows else "–" for split in main]
        splits.append(f"| `{name}` | {' | '.join(cells)} | {further} |")
        if name not in CONFIGS:
            labels = " ".join(f"`{_escape_cell(label)}`" for label in config.label_names)
            own.append(f"| `{name}` | {labels} | {', '.join(config.language) or '–'} |")
            lines = map(_escape_cell, config.citation.splitlines())
            citations += ["", "```bibtex", *lines, "```"] if config.citation else []
        for split, of in entry["splits"].items():
            figures = of.get("statistics", {})
            counts = (Cell(figures.get(key)) for key in ("marked_rows", "unmarked_rows"))
            comprehensive = COMPREHENSIVE[config.is_comprehensive(split)]
            density = Cell(figures.get("density_percent"), None, 2)
            cells = list(map(str, [*counts, density, comprehensive, entry.get("annotators") or "–"]))
            gold.append(f"| `{name}` | {split} | {' | '.join(cells)} |")
        files = [f"[{file}]({get_license_path(name, file)})" for file in entry.get("licenses", ())]
        licences.append(f"| `{name}` | {config.license} | {config.license_note} | {', '.join(files) or '–'} |")
    own = [*own, *citations] if facts.keys() - CONFIGS.keys() else []
    tables = (splits, own, gold, _list_table_five(release, facts), licences)
    for mark, table in zip(PLACEHOLDERS, tables, strict=True):
        comment = f"<!-- {mark} -->"
        if comment not in prose:
            raise DataError(f"expected the mark {comment} in the card's prose, found none")
        prose = prose.replace(comment if table else f"{comment}\n\n", "\n".join(table))
    return prose


def _escape_cell(text: str) -> str:
    """Replace the characters that end a table cell or a fenced block."""
    return show_controls(text).replace("|", "\\|").replace("`", "'")


def _list_table_five(release: Mapping[str, Any], facts: Mapping[str, EraserConfig]) -> list[str]:
    lines = ["| config | split | documents | instances | rationale % | evidence statements | evidence length |"]
    lines.append("|---|---|---:|---:|---:|---:|---:|")
    printed = load_paper("eraser_acl_2020").tables["table_5"]
    columns = ("documents", "instances", "rationale_percent", "evidences", "evidence_length")
    for name in facts:
        of_paper = [split for config, split in printed.rows if config == name]
        built = release[name]["splits"]
        # for a split that this folder lacks, the printed figures stand alone in brackets
        for split in dict.fromkeys([*of_paper, *built]):
            figures, row = built.get(split, {}).get("statistics", {}), printed.row(name, split)
            digits = {"rationale_percent": 2}
            cells = [str(Cell(figures.get(c), row.get(c), digits.get(c, 1))) for c in columns]
            lines.append(f"| `{name}` | {split} | {' | '.join(cells)} |")
    return lines
