"""Page of a metric's Space: paste, upload or name predictions and references, see the scores.

The page scores an example when it opens. One app serves all metrics. In a Space the module is beside this file; in a
folder of several modules pass its name: ``python app.py eraser_agreement``.
"""

from __future__ import annotations

import ast
import concurrent.futures
import json
import os
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

try:
    # `evaluate` imports these where they are, for seconds, and a page does without
    for _name in ("transformers", "scipy"):
        sys.modules.setdefault(_name, None)  # type: ignore[arg-type]
    import evaluate
    import gradio as gr
except ImportError as error:
    raise SystemExit(f"this page needs {error.name}: pip install -r requirements.txt") from None
finally:
    for _name in ("transformers", "scipy"):
        if sys.modules.get(_name) is None:
            del sys.modules[_name]

from .app_rows import FILE_TYPES, Malformed, get_namespace, list_rows, load_gold, parse_box, read_file
from .app_scores import SCORE_STYLE, render_headline, render_table
from .score_explanations import explain_scores

MOST_BYTES_IN_BOX = 100_000  # a larger file is scored from the disk, and its box stays empty
COMPUTING_SECONDS = 300
BOX, DATASET = "the box or a file", "a dataset by name"
STYLE = """<style>
#predictions textarea, #references textarea, #options textarea, .code textarea { \
font: .8rem/1.5 ui-monospace, monospace; }
footer :is(a, button) { color: var(--body-text-color) !important; }
#submit { background: #b93c0a; color: #fff; }
#all :is(table, tr) { border: 0; }
#all table { border-collapse: collapse; margin: .5rem 0; }
#all :is(th, td) { padding: .25rem .8rem; text-align: left; border: 0; border-bottom: \
1px solid var(--border-color-primary); overflow-wrap: anywhere; }
#all tr:not(:first-child) th { font-weight: 400; }
</style>""".replace("</style>", f"{SCORE_STYLE}</style>")


# ----------------------------------------------------------------------------------- the module beside this file


def find_module(folder: Path, name: str | None = None) -> Path:
    """Find the metric module in a folder: the named one, or the only one that defines a metric.

    Raises:
        SystemExit: there is no such module, or there are several and no name.
    """
    others = [path for path in sorted(folder.glob("*.py")) if path.name != Path(__file__).name]
    modules = {path.stem: path for path in others if defines_metric(path)}
    if name is None and len(modules) == 1:
        return next(iter(modules.values()))
    if name in modules:
        return modules[str(name)]
    raise SystemExit(f"{folder}: expected the name of one metric, there are: {', '.join(modules) or 'none'}")


def defines_metric(path: Path) -> bool:
    """Return True if a file has a class derived from ``evaluate.Metric``, without running it."""
    classes = (node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.ClassDef))
    bases = (ast.unparse(base) for node in classes for base in node.bases)
    return any(base.rpartition(".")[2] in ("Metric", "EvaluationModule") for base in bases)


class PageExample(NamedTuple):
    """The example of a metric.

    Attributes:
        predictions: Its predictions; empty if the metric has none.
        references: Its references; None likewise.
        options: Keyword arguments.
        gold: Dataset, configuration and split whose rows are references of this metric.
    """

    predictions: list[Any]
    references: list[Any] | None
    options: dict[str, Any]
    gold: tuple[str, str, str]


def read_example(folder: Path, name: str) -> PageExample:
    """Return the example of a metric, empty if it has none."""
    beside, among_cards = folder / "example.json", folder / "cards" / f"{name}.json"
    path = beside if beside.is_file() else among_cards
    if not path.is_file():
        return PageExample([], None, {}, ("", "", ""))
    example = json.loads(path.read_text("utf-8"))
    dataset, config, split = example.get("gold", ("", "", ""))
    return PageExample(example["predictions"], example["references"], example["options"], (dataset, config, split))


# ------------------------------------------------------------------------------------------------------ the page


def format_rows(value: list[Any] | dict[str, Any] | None) -> str:
    """Format rows as JSON for a box, a row a line."""
    if isinstance(value, list) and value:
        return "[\n" + ",\n".join(f" {json.dumps(row, ensure_ascii=False)}" for row in value) + "\n]"
    return json.dumps(value, ensure_ascii=False) if value else ""


def upload(box: str, path: str) -> tuple[Any, Any, Any]:
    """Return the text of a small file for its box, the path of a large one, and the message.

    The box is unchanged if the file cannot be read.
    """
    try:
        rows = read_file(path, box)
    except Malformed as error:
        return gr.update(), None, gr.update(value=str(error), visible=True)
    size, hidden = Path(path).stat().st_size, gr.update(value="", visible=False)
    if max(size, getattr(rows, "nbytes", 0)) > MOST_BYTES_IN_BOX:  # Parquet may unpack to far more
        words = (
            f"{Path(path).name}: {len(rows):,} rows, {size / 1e6:.1f} MB, scored as a file; paste here to replace it"
        )
        return gr.update(value="", placeholder=words), path, hidden
    return gr.update(value="\n".join(json.dumps(row, ensure_ascii=False) for row in list_rows(rows))), None, hidden


def collect_rows(box: str, text: str, path: str | None) -> Any:
    """Return the rows of a box: its text, else the file that was given for it, else None."""
    rows = parse_box(text, box, list)
    return read_file(path, box) if rows is None and path else rows


def compute_scores(module: evaluate.EvaluationModule, rows: Mapping[str, Any], options: Mapping[str, Any]) -> Any:
    """Compute a module's result.

    Raises:
        Malformed: It takes more than `COMPUTING_SECONDS`.
    """
    pool = concurrent.futures.ThreadPoolExecutor(1)
    running = pool.submit(module.compute, **{key: value for key, value in rows.items() if value is not None}, **options)
    try:
        return running.result(COMPUTING_SECONDS)
    except concurrent.futures.TimeoutError:
        raise Malformed(f"not computed within {COMPUTING_SECONDS} s; use the module in Python") from None
    finally:
        pool.shutdown(wait=False)


def submit(
    module: evaluate.EvaluationModule,
    name: str,
    predictions_text: str,
    references_text: str,
    options_text: str,
    predictions_file: str | None = None,
    references_file: str | None = None,
    source: str = BOX,
    dataset: str = "",
    config: str = "",
    split: str = "",
) -> tuple[Any, ...]:
    """Compute message, headline, table and the whole result from the boxes, files or a dataset's name."""
    try:
        rows = {"predictions": collect_rows("predictions", predictions_text, predictions_file)}
        keywords = parse_box(options_text, "options", dict) or {}
        if clash := sorted({"predictions", "references"} & keywords.keys()):
            raise Malformed(f"options: {', '.join(clash)} belongs into its own box")
        rows["references"] = (
            load_gold(dataset, config, split)
            if source == DATASET
            else collect_rows("references", references_text, references_file)
        )
        scores = dict(compute_scores(module, rows, keywords) or {})
    except Exception as error:  # any error of pasted input: show its message, not its trace
        message = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
        return gr.update(value=message, visible=True), "", "", {}
    headline = explain_scores(
        name,
        scores,
        ranges=getattr(module, "RANGES", {}),
        headline=getattr(module.info, "headline", ()) or list(scores)[:4],
    )
    return gr.update(value="", visible=False), render_headline(headline), render_table(scores), scores


def make_code(name: str, example: PageExample) -> tuple[str, str]:
    """Return code that scores a file in Python, and on the command line."""
    namespace = get_namespace() or "ORG"
    dataset, config, split = example.gold
    sides = {"predictions": example.predictions, "references": example.references}
    sources = {
        side: f'[json.loads(line) for line in open("{side}.jsonl", encoding="utf-8")]'
        for side, rows in sides.items()
        if rows
    }
    if dataset and example.references:
        sources["references"] = f'load_dataset("{namespace}/{dataset}", "{config}", split="{split}")'
    lines = ["import json", ""] if "json.loads" in str(sources) else []
    lines += ["import evaluate", *["from datasets import load_dataset"] * ("load_dataset" in str(sources)), ""]
    lines.append(f'metric = evaluate.load("{namespace}/{name}")')
    lines += [f"{side} = {source}" for side, source in sources.items()]
    arguments = [f"{side}={side}" for side in sources]
    arguments += [f"{key}={value!r}" for key, value in example.options.items()]
    lines += [f"scores = metric.compute({', '.join(arguments)})", "print(scores)"]
    command = (
        f"eraser-hub score --dataset {namespace}/{dataset} --config {config} --split {split} "
        f"--predictions predictions.jsonl\neraser-hub report --dataset {namespace}/{dataset} --config {config} "
        f"--split {split} --predictions predictions.jsonl --out report"
    )
    return "\n".join(lines), command if dataset else ""


def build_page(module: evaluate.EvaluationModule, name: str) -> gr.Blocks:
    """Build the page of one metric."""
    example = read_example(Path(__file__).resolve().parent, name)
    filled = [format_rows(value) for value in example[:3]]
    blocks: gr.Blocks
    with gr.Blocks(title=name, analytics_enabled=False) as blocks:
        gr.HTML(STYLE)
        title = name.replace("_", " ").capitalize().replace("Eraser", "ERASER")
        gr.Markdown(f'# {title}\n\n{module.description or ""}\n\n`evaluate.load("{name}")`')
        message = gr.Textbox(label="message", visible=False, elem_id="message", lines=2)
        scores = gr.HTML(elem_id="scores")
        files = [gr.State(None), gr.State(None)]
        boxes, uploads = _add_boxes(filled)
        source, gold = _add_gold(example)
        with gr.Row():
            button = gr.Button("Submit", variant="primary", elem_id="submit")
            reset_button = gr.Button("Back to the example", elem_id="example")
        with gr.Accordion("All scores", open=False, elem_id="all_scores"):
            table = gr.HTML(elem_id="all")
        with gr.Accordion("The whole result as JSON", open=False):
            whole = gr.JSON(elem_id="whole")
        _add_code(module, name, example)
        # one event for both, so that the module computes one thing at a time
        shown_in, compute = [message, scores, table, whole], partial(submit, module, name)
        gr.on([blocks.load, button.click], compute, [*boxes, *files, source, *gold], shown_in, api_name="compute")
        reset_button.click(lambda: (*filled, None, None, BOX), None, [*boxes, *files, source])
        for (file, label), box, kept in zip(uploads, boxes, files, strict=False):
            file.upload(partial(upload, label), file, [box, kept, message])
    return blocks


def _add_boxes(filled: list[str]) -> tuple[list[gr.Textbox], list[tuple[gr.UploadButton, str]]]:
    """Add the boxes of predictions, references and options, and the buttons for files."""
    boxes, uploads = [], []
    with gr.Row():
        for value, label in zip(filled, ("predictions", "references", "options"), strict=True):
            with gr.Column(min_width=240):
                boxes.append(gr.Textbox(value, label=label, elem_id=label, lines=4, max_lines=12))
                if label != "options":
                    what = f"Upload {label} (JSON, JSON lines, Parquet)"
                    file = gr.UploadButton(what, file_types=FILE_TYPES, size="sm", elem_id=f"upload_{label}")
                    uploads.append((file, label))
    return boxes, uploads


def _add_gold(example: PageExample) -> tuple[gr.Radio, list[gr.Textbox]]:
    """Add the choice of a dataset's split as references."""
    with gr.Row():
        source = gr.Radio([BOX, DATASET], value=BOX, label="references from", elem_id="source")
        gold = [
            gr.Textbox(value, label=label, elem_id=f"gold_{label}", min_width=120)
            for value, label in zip(example.gold, ("dataset", "config", "split"), strict=True)
        ]
    return source, gold


def _add_code(module: evaluate.EvaluationModule, name: str, example: PageExample) -> None:
    """Add code to copy, and the description of the inputs."""
    python, command = make_code(name, example)
    with gr.Accordion("Code to copy", open=False, elem_id="code"):
        gr.Textbox(python, label="Python", lines=9, interactive=False, buttons=["copy"], elem_classes="code")
        if command:
            gr.Textbox(command, label="command line", interactive=False, buttons=["copy"], elem_classes="code")
    with gr.Accordion("What goes in", open=False):
        gr.Code(module.inputs_description or "", language="markdown", interactive=False)


def main() -> None:
    """Start the page of the module beside this file."""
    path = find_module(Path(__file__).resolve().parent, sys.argv[1] if len(sys.argv) > 1 else None)
    module = evaluate.load(str(path), keep_in_memory=True, experiment_id=f"app_{os.getpid()}")
    build_page(module, path.stem).launch()


if __name__ == "__main__":
    main()
