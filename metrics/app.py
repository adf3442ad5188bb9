"""Page of a metric: an example with its scores; paste or upload predictions and references of your own.

A Space holds this file beside its module; in another folder name that: ``python app.py FOLDER``.
"""

import json
import math
import os
import sys
from pathlib import Path
from typing import Any

import evaluate
import gradio as gr

FOLDER = Path(sys.argv[1] if len(sys.argv) > 1 else __file__).resolve()
FOLDER = FOLDER if FOLDER.is_dir() else FOLDER.parent
EXAMPLE = json.loads((FOLDER / "example.json").read_text("utf-8"))
MODULE = next(path for path in FOLDER.glob("*.py") if path.name != "app.py")
METRIC = evaluate.load(str(MODULE))
SIDES = [side for side in ("predictions", "references") if EXAMPLE[side]]
STYLE = """
#scores :is(td, th) { word-break: normal; overflow-wrap: normal; vertical-align: top; }
#submit { background: #b93c0a; color: #fff; }
footer :is(a, button) { color: var(--body-text-color) !important; }
"""
DIRECTIONS = {True: "↑ Higher is better", False: "↓ Lower is better", None: "Neither is better"}
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
        result: Any = METRIC.compute(**rows, **EXAMPLE["options"])
    except (ValueError, TypeError, RecursionError) as error:
        return f"### Not scored\n\n```\n{where}{error}\n```", {}
    lines = ["| score | what it says |", "|---|---|"]
    for key, (rewards, misses) in EXAMPLE["headline"].items():
        value, chance = result.get(key, math.nan), result.get("chance", {}).get(key)
        value = f"**{value:.3f}**" + ("" if chance is None else f"<br>chance {chance:.3f}")
        direction = DIRECTIONS[vars(METRIC.info)["higher_is_better"][key]]
        lines.append(f"| {key.replace('_', '_<wbr>')}<br>{value} | {direction}. {rewards}<br>*Misses:* {misses} |")
    return "\n".join(lines), result


with gr.Blocks(title=MODULE.stem) as page:
    gr.Markdown(f"# {MODULE.stem}\n\n{METRIC.info.description}")
    boxes = []
    for side in SIDES:
        example = "\n".join(json.dumps(row, ensure_ascii=False) for row in EXAMPLE[side])
        boxes.append(gr.Textbox(example, label=f"{side}, JSON lines", lines=4, max_lines=12, elem_id=side))
        upload = gr.UploadButton(f"Upload {side} (.jsonl)", file_types=[".jsonl", ".json"], size="sm")
        upload.upload(lambda path: Path(path).read_text("utf-8"), upload, boxes[-1])
    button = gr.Button("Score", variant="primary", elem_id="submit")
    table = gr.Markdown(elem_id="scores")
    with gr.Accordion("All scores", open=False):
        whole = gr.JSON(elem_id="whole")
    with gr.Accordion("Code to copy", open=False):
        gr.Code(f"{CODE}print(metric.compute({', '.join(ARGUMENTS)}))", language="python", interactive=False)
    with gr.Accordion("What goes in and comes out", open=False):
        gr.Code(METRIC.info.inputs_description, interactive=False)
    gr.on([page.load, button.click], score, boxes, [table, whole], api_name="compute")

if __name__ == "__main__":
    page.launch(css=STYLE)
