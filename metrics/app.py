"""Page of a metric: an example with its scores; paste or upload predictions and references of your own.

A Space holds this file beside its module; in another folder name that: ``python app.py FOLDER``.
"""

import json
import os
import sys
import warnings
from pathlib import Path
from typing import Any

import evaluate
import gradio as gr
from gradio.themes import Default
from gradio.themes.utils.fonts import LocalFont

FOLDER = Path(sys.argv[1] if len(sys.argv) > 1 else __file__).resolve()
FOLDER = FOLDER if FOLDER.is_dir() else FOLDER.parent
EXAMPLE = json.loads((FOLDER / "example.json").read_text("utf-8"))
MODULE = next(path for path in FOLDER.glob("*.py") if path.name != "app.py")
METRIC = evaluate.load(str(MODULE))
SIDES = [side for side in ("predictions", "references") if EXAMPLE[side]]
# gradio's own theme asks for weight 600, and that file holds Cyrillic letters alone
THEME = Default(font=[LocalFont("Source Sans Pro", (400, 700)), "system-ui", "sans-serif"])
STYLE = """
#scores table { width: 100%; }
#scores :is(table, tr, th, td) { border-color: var(--border-color-primary); border-width: 1px 0; }
#scores :is(td, th) { word-break: normal; overflow-wrap: normal; vertical-align: top; padding-left: 0; }
#scores :is(td, th):first-child { white-space: nowrap; }
#scores strong { font-size: 1.3em; }
#submit { background: #b93c0a; color: #fff; }
footer :is(a, button) { color: var(--body-text-color) !important; }
@media (max-width: 480px) { #scores :is(td, th):first-child { white-space: normal; padding-right: 1em; } }
"""
DIRECTIONS = {True: "↑ Higher is better.", False: "↓ Lower is better.", None: "Neither direction is better."}
CODE = f"""import json
import evaluate

metric = evaluate.load("{os.environ.get("SPACE_ID", f"ORG/{MODULE.stem}")}")
""" + "".join(f'{side} = [json.loads(line) for line in open("{side}.jsonl", encoding="utf-8")]\n' for side in SIDES)
ARGUMENTS = [f"{side}={side}" for side in SIDES] + [f"{key}={value!r}" for key, value in EXAMPLE["options"].items()]


def score(*texts: str) -> tuple[str, dict[str, object]]:
    """Return the headline scores of the boxes as a table, or the error; and the whole result."""
    rows: dict[str, list[object]] = {}
    where = ""
    try:
        for side, text in zip(SIDES, texts, strict=True):
            for number, line in enumerate(text.split("\n"), 1):
                where = f"{side}, line {number}: "
                if line.strip():
                    rows.setdefault(side, []).append(json.loads(line))
        where = ""
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            result: Any = METRIC.compute(**rows, **EXAMPLE["options"])
    except (ValueError, TypeError, RecursionError) as error:
        return f"### Not scored\n\n```\n{where}{error}\n```", {}
    lines = ["| score | what it says |", "|---|---|"]
    for key, (rewards, misses) in EXAMPLE["headline"].items():
        if key in result:
            chance = result.get("chance", {}).get(key)
            value = f"**{result[key]:.3f}**" + ("" if chance is None else f"<br>chance {chance:.3f}")
            says = f"{DIRECTIONS[vars(METRIC.info)['higher_is_better'][key]]} {rewards}<br>*Misses:* {misses}"
            lines.append(f"| {key.replace('_', '_<wbr>')}<br>{value} | {says} |")
    if not lines[2:]:
        lines = ["None of the scores that this page explains. The others are below, under “All scores”."]
    notes = [f"- {note.message}" for note in said if issubclass(note.category, UserWarning)]
    return "\n".join([*lines, "", *notes]), result


with gr.Blocks(title=MODULE.stem) as page:
    gr.Markdown(f"# {MODULE.stem}\n\n{METRIC.info.description}")
    boxes = []
    with gr.Row():
        for side in SIDES:
            with gr.Column(min_width=320):
                example = "\n".join(json.dumps(row, ensure_ascii=False) for row in EXAMPLE[side])
                boxes.append(gr.Textbox(example, label=f"{side}, JSON lines", lines=6, max_lines=6, elem_id=side))
                upload = gr.UploadButton(f"Upload {side} (.jsonl)", file_types=[".jsonl", ".json"], size="sm")
                upload.upload(lambda path: Path(path).read_text("utf-8"), upload, boxes[-1])
    button = gr.Button("Score", variant="primary", elem_id="submit")
    table = gr.Markdown(elem_id="scores")
    with gr.Accordion("All scores", open=False):
        whole = gr.JSON(elem_id="whole")
    with gr.Accordion("Code to copy", open=True):
        # no language: the editor's colours of code have too little contrast on a light page
        gr.Code(f"{CODE}print(metric.compute({', '.join(ARGUMENTS)}))", interactive=False, wrap_lines=True)
    with gr.Accordion("What goes in and comes out", open=False):
        gr.Code(METRIC.info.inputs_description, interactive=False)
    gr.on([page.load, button.click], score, boxes, [table, whole], api_name="compute")

if __name__ == "__main__":
    page.launch(theme=THEME, css=STYLE)
