"""Constants that the papers print, a JSON file per paper.

========================  =========================================================================
``eraser_acl_2020``       DeYoung et al., ERASER (ACL 2020): Tables 1, 2, 5, 6 and some results
``eraser_first_version``  its first version (arXiv 1911.03429v1): kd and results
``wang_2022``             the bilingual perturbation benchmark (CoNLL 2022): Table 3 and results
``carton_2020``           Carton, Rathore and Tan (EMNLP 2020): Table 2
========================  =========================================================================

A figure is a string with the printed digits. The defaults of a metric stand with the metric.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any

# whether gold is comprehensive, in words
COMPREHENSIVE: dict[bool | None, str] = {
    True: "comprehensive",
    False: "not comprehensive",
    None: "comprehensive or not: unknown",
}
# shares of the tokens at which the area over the perturbation curve is measured (DeYoung et al. 2020)
AOPC_THRESHOLDS = (0.01, 0.05, 0.1, 0.2, 0.5)
PAPERS = ("carton_2020", "eraser_acl_2020", "eraser_first_version", "wang_2022")


@dataclass(frozen=True, slots=True)
class PrintedTable:
    """A table of figures.

    Attributes:
        title: what it shows.
        source: paper and number.
        rows: (config,) or (config, split) -> column -> figure.
    """

    title: str
    source: str
    rows: Mapping[tuple[str, ...], Mapping[str, str]]

    def row(self, *left: str) -> Mapping[str, str]:
        """Return the figures of a row by column; none where the paper has no such row."""
        return self.rows.get(left, {})


@dataclass(frozen=True, slots=True)
class PrintedResult:
    """Result that a paper prints for a system on a dataset.

    Attributes:
        table: its number in the paper.
        dataset, system: a config of ours, and the paper's name of the system.
        scores: key of ours -> number; percentages are turned into shares.
        settings: what tells two otherwise equal columns apart, e.g. a single k_d or AOPC.
        notes: sentences on how to read the scores, the settings among them.
    """

    table: str
    dataset: str
    system: str
    scores: Mapping[str, float]
    settings: str
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Paper:
    """One paper.

    Attributes:
        title: with venue and year.
        short: a few words, for tables.
        citation: BibTeX in one line.
        split: the split that its results are of.
        comprehensive: config -> split -> whether all of the text that supports the label is gold, by the paper.
        kd: config -> share of a document's tokens that make a hard rationale of soft scores; empty where it gives none.
        tables: name, e.g. ``table_1`` -> figures.
        results: the results that it prints, in its order.
    """

    title: str
    short: str
    citation: str
    split: str
    comprehensive: Mapping[str, Mapping[str, bool]]
    kd: Mapping[str, float]
    tables: Mapping[str, PrintedTable]
    results: tuple[PrintedResult, ...]


@lru_cache
def load_paper(name: str) -> Paper:
    """Return the paper of this name, one of `PAPERS`."""
    content = json.loads(files("eraser_hub.papers").joinpath(f"{name}.json").read_text(encoding="utf-8"))
    tables = {
        key: PrintedTable(table["title"], table["source"], dict(_rows((), table["figures"])))
        for key, table in content["tables"].items()
    }
    kd: dict[str, float] = {}
    if "kd" in content:
        table, column = content["kd"]
        kd = {left[0]: _share(float(row[column])) for left, row in tables[table].rows.items()}
    results = tuple(result for table in content.get("results", ()) for result in _results(table, kd))
    title, short, citation, split = (content[key] for key in ("title", "short", "citation", "split"))
    return Paper(title, short, citation, split, content.get("comprehensive", {}), kd, tables, results)


def find_comprehensive(config: str, split: str) -> bool | None:
    """Return whether the gold of a split is comprehensive; None for a corpus of which ERASER does not say it.

    Table 1 and Appendix A: the test split of movies, and the extra test files of BoolQ and Evidence Inference, were
    annotated comprehensively; FEVER, MultiRC, CoS-E and e-SNLI are more or less comprehensive by default.
    """
    by_config = load_paper("eraser_acl_2020").comprehensive
    name = config.removesuffix("_simplified").removesuffix("_flat")
    return by_config.get(config if config in by_config else name, {}).get(split)


def _rows(left: tuple[str, ...], figures: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], Mapping[str, str]]]:
    """Yield the rows of nested objects, whose innermost are column -> figure."""
    if all(isinstance(figure, str) for figure in figures.values()):
        yield left, figures
        return
    for key, below in figures.items():
        yield from _rows((*left, key), below)


def _results(table: Mapping[str, Any], kd: Mapping[str, float]) -> Iterator[PrintedResult]:
    percent, unstated = table.get("percent", ()), table.get("unstated", {})
    for row in table["rows"]:
        scores = {key: _share(value) if key in percent else float(value) for key, value in row["scores"].items()}
        note = f"at k_d = {kd[row['dataset']]:.0%} of the tokens" if table.get("at_kd") else row.get("note", "")
        notes = [table["about"], table["settings"], note, *(words for key, words in unstated.items() if key in scores)]
        yield PrintedResult(
            table["table"], row["dataset"], row["system"], scores, table["settings"], tuple(filter(None, notes))
        )


def _share(percent: float) -> float:
    """Return a percentage as a share; rounding makes 36.9 / 100 exactly 0.369."""
    return round(percent / 100, 9)


@lru_cache(maxsize=1)
def read_released_gold() -> Mapping[str, Mapping[str, Mapping[str, Any]]]:
    """Return config -> split -> number of annotations and digest of the gold, of releases that were at hand."""
    return json.loads(files(__package__).joinpath("released_gold.json").read_text(encoding="utf-8"))  # type: ignore[no-any-return]
