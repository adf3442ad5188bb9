"""Write the folder of the study of scores, from which a reader can make everything again.

OUT/benchmark-scores.json   every setting, the seed among them; of an encoder, units and result.json name it
OUT/units/                  the judgement of each model; a rerun goes on from them
OUT/data/KIND.jsonl         the texts that were explained, with the importance of each token
OUT/models.csv              accuracy and digest of each model
OUT/result.json             all figures, with intervals
OUT/tables.csv, .tex, .md   the tables
OUT/figures/NAME.svg        shares by explanation and by planting; NAME.csv beside it has the numbers
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from eraser_hub.experiments.benchmark_tables import get_rows, make_cell
from eraser_hub.experiments.plantings import make_planted_texts, read_sentences
from eraser_hub.experiments.score_benchmark import BenchmarkSettings
from eraser_hub.records.atomic import atomic_write
from eraser_hub.records.tables import Tables

from .dot_plots import draw_dots, make_plot

TABLES = {"csv": "csv", "latex": "tex", "markdown": "md"}


def write_study(out: Path, settings: BenchmarkSettings, result: Mapping[str, Any], tables: Tables) -> list[Path]:
    """Write data, models, figures and tables beside the units of a run.

    Args:
        out: The folder of the run.
        settings: Its settings.
        result: The figures.
        tables: Their tables.

    Returns:
        The files, in order.
    """
    files: dict[str, str] = {}
    sentences = read_sentences(Path(settings.texts)) if settings.texts else ()
    for kind in settings.kinds:
        texts = make_planted_texts(kind, "test", settings.size, settings.seed, sentences)
        lines = (json.dumps({**one.row, "importance": one.importance.tolist()}, ensure_ascii=False) for one in texts)
        files[f"data/{kind}.jsonl"] = "".join(f"{line}\n" for line in lines)
    files["models.csv"] = _write_rows(result["models"])
    files["result.json"] = json.dumps(result, indent=1) + "\n"
    files |= {f"tables.{suffix}": tables.written(form).rstrip("\n") + "\n" for form, suffix in TABLES.items()}
    for family, kinds in result["kinds"].items():
        alone = all(facts["judges"] <= 1 for facts in kinds.values())
        for name, column in (("explanations", "explanation"), ("kinds", "kind")):
            rows = make_figure_rows(result["scores"], family, name, column)
            files[f"figures/{family}-{name}.csv"] = _write_rows(rows)
            plot = make_plot(family, column, settings.confidence_level, alone)
            files[f"figures/{family}-{name}.svg"] = draw_dots(plot, rows)
    for name, text in files.items():
        path = out / name
        path.parent.mkdir(exist_ok=True)
        atomic_write(path, text.encode())
    return [out / name for name in files]


def make_figure_rows(scores: Sequence[Mapping[str, Any]], family: str, name: str, column: str) -> list[dict[str, str]]:
    """Return a row for each panel and score of a figure: ``column``, score, better, value, low, high, mark, weak.

    Scores stand in one order in all panels, that of the tables: by falling share over all explanations and plantings,
    those that are decided by construction last; ``weak`` says why.

    Args:
        scores: The scores of the result.
        family: The family of models.
        name: ``explanations`` or ``kinds``.
        column: The name of the panels' column.
    """
    own = get_rows(scores, family)
    panels = list(dict.fromkeys(panel for _, part in own for panel in part[name]))
    rows = []
    for panel in ["all", *panels] if name == "explanations" else panels:
        for (score, better, construction), whole in own:
            part = whole if panel == "all" else whole[name].get(panel)
            if not part or part["auc"] is None:
                continue
            cell = make_cell(part)
            ends = {"low": _round(cell.low), "high": _round(cell.high), "mark": cell.mark, "weak": construction}
            rows.append({column: panel, "score": score, "better": better, "value": f"{part['auc']:.2f}", **ends})
    return rows


def _round(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _write_rows(rows: Sequence[Mapping[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
