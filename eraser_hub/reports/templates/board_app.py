"""The results board as a Space: the table of board.json, and submissions that are scored here, never taken as numbers.

Whose dataset and metrics: BOARD_DATASET (the dataset's id or folder) and BOARD_METRICS (put before the metrics' names,
e.g. ``my-org/``) of the environment; else the folders beside this one that ``eraser-hub build`` wrote; else those of
the namespace in settings.json, which ``eraser-hub publish`` fills in.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections import Counter
from pathlib import Path
from typing import Any

try:
    import gradio as gr
except ImportError as error:
    raise SystemExit(f"this page needs {error.name}: pip install -r requirements.txt") from None

HERE = Path(__file__).parent
BOARD = json.loads((HERE / "board.json").read_text(encoding="utf-8"))
NAMESPACE = json.loads((HERE / "settings.json").read_text(encoding="utf-8"))["namespace"]
ARROWS = {"higher": " ↑", "lower": " ↓", "": ""}
SPLITS = ["validation", "test", "train"]
STAR = "★ "
STARRED = "★ better than every other submission for its dataset and split, by its verdict"
MOST_BYTES = 200_000_000
# gradio's own button and footer fall short of a contrast of 4.5:1
STYLE = """<style>
footer :is(a, button), .or { color: var(--body-text-color) !important; }
#score { background: #b93c0a; color: #fff; }
</style>"""
Table = dict[str, Any]


def table(dataset: str, family: str, parts: bool = False) -> Table:
    """Return the board's lines on a dataset (or "all") with one family's metrics, the most frequent first."""
    rows = [row for row in BOARD["rows"] if dataset in ("all", row["group"])]
    filled = Counter(key for row in rows for key in row["scores"])
    columns = [
        column
        for column in BOARD["columns"]
        if family in ("all", column["family"]) and filled[column["key"]] and (parts or not column["part"])
    ]
    columns.sort(key=lambda column: (column["family"], -filled[column["key"]]))  # equal ones stay by label
    heads = [
        "System",
        "Group",
        "Split",
        "Source",
        *(column["label"] + ARROWS[column["better"]] for column in columns),
    ]
    lines = [[*_names(row), *(row["scores"].get(column["key"]) for column in columns)] for row in rows]
    data = [[_shown(cell) for cell in line] for line in lines]
    keys = [""] * 4 + [column["key"] for column in columns]
    # a number sorts as a number, and is shown with its star
    signs = [
        [_starred(key in row.get("better", ()), cell) for key, cell in zip(keys, line, strict=True)]
        for row, line in zip(rows, data, strict=True)
    ]
    return {"headers": heads, "data": data, "metadata": {"display_value": signs}}


def _names(row: dict[str, Any]) -> list[str]:
    return [row["system"], row["group"], row["split"] or "–", row["source"]]


def _shown(cell: Any) -> Any:
    return round(cell, 4) if isinstance(cell, float) else cell


def _starred(better: bool, cell: Any) -> str:
    return STAR * better + ("" if cell is None else str(cell))


def drawn(dataset: str, family: str, parts: bool = False) -> gr.Dataframe:
    """Return `table` with typed columns: numbers sort as numbers, and text is never markup."""
    value = table(dataset, family, parts)
    numbers = len(value["headers"]) - 4
    kinds: list[Any] = ["str"] * 4 + ["number"] * numbers
    widths: list[Any] = [250, 170, 110, 250] + [130] * numbers
    return gr.Dataframe(
        value=value, datatype=kinds, column_widths=widths, interactive=False, wrap=True, elem_id="board"
    )


def details(dataset: str) -> Table:
    """Return the origin of each line of a dataset: the paper's table and settings, or the scorer's signature."""
    rows = [row for row in BOARD["rows"] if dataset in ("all", row["group"])]
    return {
        "headers": ["System", "Group", "Split", "Source", "Settings"],
        "data": [[*_names(row), row["detail"]] for row in rows],
    }


def place_of(name: str, chosen: str | None) -> str:
    """Return the place of a dataset or metric: as chosen, else the folder beside this one, else in the namespace.

    Raises:
        gr.Error: none of the three.
    """
    if chosen is not None:
        return chosen
    if (HERE.parent / name / "README.md").is_file():
        return str(HERE.parent / name)
    if not NAMESPACE:
        raise gr.Error(
            f"Nothing can be scored here: this Space does not know whose {name} to take. Publish it with `eraser-hub "
            "publish --namespace ORG`, or set the variables BOARD_DATASET=ORG/eraser and BOARD_METRICS=ORG/."
        )
    return f"{NAMESPACE}/{name}"


def submit(file: str | None, config: str, split: str, name: str = "") -> tuple[Table, Table, str]:
    """Score a predictions file against the dataset; its line beside others, all scores, and their signatures.

    Raises:
        gr.Error: no file, no such config or split, not predictions, or what the scorer does not take (in its words).
    """
    import datasets
    import evaluate

    if not file:
        raise gr.Error("Choose a predictions file: one ERASER instance a line.")
    if Path(file).stat().st_size > MOST_BYTES:
        raise gr.Error(f"The file is larger than {MOST_BYTES // 1_000_000} MB.")
    predictions = _read(Path(file))
    split = "validation" if split.strip() == "val" else split.strip()  # the releases say val
    place, before = place_of("eraser", os.environ.get("BOARD_DATASET")), os.environ.get("BOARD_METRICS")
    try:
        references = datasets.load_dataset(place, config.strip(), split=split)
    except Exception as error:  # an unknown config or split, or no network: its message says which
        raise gr.Error(f"{place}, {config}, {split}: {error}") from None
    scores, signatures = dict[str, Any](), list[str]()
    for metric in ("eraser_agreement", "eraser_faithfulness"):
        module = evaluate.load(place_of(metric, None if before is None else f"{before}{metric}"))
        try:
            result = module.compute(predictions=predictions, references=references) or {}
        except ValueError as error:
            raise gr.Error(f"{metric}: {error}") from None
        signatures.append(result.pop("signature"))
        scores |= {
            key: round(value, 6) if math.isfinite(value) else str(value)
            for key, value in result.items()
            if isinstance(value, (int, float)) and not isinstance(value, bool)
        }
    line = place_beside(name, config.strip(), split, scores, signatures[0])
    return line, {"headers": ["Score", "Value"], "data": [list(one) for one in scores.items()]}, "\n".join(signatures)


def place_beside(name: str, config: str, split: str, scores: dict[str, Any], signature: str) -> Table:
    """Return the line that a file would be, above the board's lines that were scored on the same data."""
    stated = re.search(r"\|data:([0-9a-f]{12})", signature)
    rows = [
        row
        for row in BOARD["rows"]
        if (row["kind"], row["dataset"], row["split"]) == ("scored", config, split)
        and stated is not None
        and row["data"].startswith(stated[1])
    ]
    columns = [column for column in BOARD["columns"] if column["key"] in scores and not column["part"]]
    own = {"system": f"{name.strip() or 'your system'} (this file)", "status": "not submitted", "scores": scores}
    heads = ["System", "Status", *(column["label"] + ARROWS[column["better"]] for column in columns)]
    data = [
        [row["system"], row["status"], *(_shown(row["scores"].get(column["key"])) for column in columns)]
        for row in [own, *rows]
    ]
    return {"headers": heads, "data": data}


def _read(path: Path) -> list[dict[str, Any]]:
    instances, number = [], 0
    try:
        # lines end at \n alone: U+2028 and its like may stand inside a string
        for number, line in enumerate(path.read_bytes().decode("utf-8").split("\n"), 1):
            if line.strip():
                instances.append(json.loads(line))
                if not isinstance(instances[-1], dict):
                    raise gr.Error(f"Line {number}: expected a JSON object, found {type(instances[-1]).__name__}.")
    except UnicodeDecodeError:
        raise gr.Error("Expected UTF-8 text.") from None
    except (json.JSONDecodeError, RecursionError):
        raise gr.Error(f"Line {number}: expected a JSON object.") from None
    if not instances:
        raise gr.Error("Expected predictions, found an empty file.")
    return instances


def build() -> gr.Blocks:
    """The page."""
    counts = Counter(row["group"] for row in BOARD["rows"])
    names = sorted(counts)
    scored = Counter(row["dataset"] for row in BOARD["rows"] if row["kind"] == "scored")
    configs = sorted(
        {"movies", *(row["dataset"] for row in BOARD["rows"])}, key=lambda one: (-scored[one], one != "movies")
    )
    first = max(names, key=counts.__getitem__, default="all")  # the dataset of most lines
    families = ["all", *sorted({column["family"] for column in BOARD["columns"]})]
    page = gr.Blocks(title="Results board")
    with page:
        gr.HTML(STYLE)
        gr.Markdown("# Results board\n" + BOARD["note"])
        with gr.Tab("Board"):
            with gr.Row():
                dataset = gr.Dropdown(["all", *names], value=first, label="Dataset")
                family = gr.Dropdown(families, value="all", label="Metrics")
                parts = gr.Checkbox(False, label="precision and recall")
            board = drawn(first, "all")
            if any(row.get("better") for row in BOARD["rows"]):
                gr.Markdown(STARRED)
            with gr.Accordion("Where each line comes from", open=False):
                sources = gr.Dataframe(value=details(first), interactive=False, wrap=True, datatype="str")
            for control in (dataset, family, parts):
                control.change(drawn, [dataset, family, parts], board)
            dataset.change(details, dataset, sources)
        with gr.Tab("Submit"):
            gr.Markdown(
                "A submission is a predictions file (one ERASER instance a line, JSON), never a number: it is scored "
                "here by the scorer of every other line, and nothing is kept. To have it on the board, open a pull "
                "request: `eraser-hub submit PREDICTIONS --system system.yaml --repository ORG/rationale_submissions`."
            )
            file = gr.File(label="Predictions", file_types=[".jsonl", ".json"], type="filepath", elem_id="predictions")
            with gr.Row():
                name = gr.Textbox("", label="System", max_length=100)
                config = gr.Dropdown(configs, value=configs[0], label="Config", allow_custom_value=True)
                split = gr.Dropdown(SPLITS, value=SPLITS[0], label="Split", allow_custom_value=True)
            button = gr.Button("Score", variant="primary", elem_id="score")
            line = gr.Dataframe(interactive=False, label="Its line beside others", elem_id="line", datatype="str")
            scores = gr.Dataframe(interactive=False, label="Scores", elem_id="scores")
            signature = gr.Textbox(label="Signatures", lines=2, interactive=False)
            button.click(submit, [file, config, split, name], [line, scores, signature])
    return page


if __name__ == "__main__":
    build().launch(show_error=True)
