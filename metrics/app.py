"""Page of a metric's Space: paste or upload predictions and references, see the scores and their tokens.

The page scores an example when it opens. One app serves all metrics. In a Space the module is beside this file; in the
folder of all modules pass its name: ``python app.py eraser_agreement``.
"""

from __future__ import annotations

import ast
import html
import json
import math
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby, zip_longest
from pathlib import Path
from typing import Any

try:
    import evaluate
    import gradio as gr
    from pyarrow import ArrowException, parquet
except ImportError as error:
    raise SystemExit(f"this page needs {error.name}: pip install -r requirements.txt") from None

MOST_CHARACTERS = 5_000_000
FILE_TYPES = [".json", ".jsonl", ".parquet"]
MOST_ROWS_DRAWN = 5
MOST_TOKENS_DRAWN = 2_000
# grounds so light that INK on them has a contrast of 7:1 or more, on a light page as on a dark one
GREEN, AMBER, BLUE, RED = "#a5d6a7", "#ffe082", "#90caf9", "#ef9a9a"
INK = "#111"
LINES = ("solid", "dashed", "dotted", "double")  # underlines, which distinguish labels without colour
STYLE = """<style>
#predictions textarea, #references textarea, #options textarea { font: .8rem/1.5 ui-monospace, monospace; }
footer :is(a, button) { color: var(--body-text-color) !important; }
#submit { background: #b93c0a; color: #fff; }
#scores :is(table, tr) { border: 0; }
#scores table { border-collapse: collapse; margin: .5rem 0; }
#scores :is(th, td) { padding: .25rem .8rem; text-align: left; border: 0; border-bottom: \
1px solid var(--border-color-primary); overflow-wrap: anywhere; }
#scores tr:not(:first-child) th { font-weight: 400; }
#tokens { line-height: 1.9; overflow-wrap: anywhere; }
#tokens mark { color: INK; padding: .05em .2em .25em; border-radius: 3px; text-decoration: underline 2px; \
text-underline-offset: 3px; }
</style>""".replace("INK", INK)
Segments = list[tuple[str, str | float | None]]


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


# ------------------------------------------------------------------------------------------------ tokens to draw


def split_tokens(text: str) -> list[str]:
    """Split a document into tokens, like `tokens.split_tokens`: not every Space has that leaf."""
    return re.findall(r"[^ \n]+", text)


def merge_segments(tokens: Sequence[str], labels: Sequence[str | None]) -> Segments:
    """Join neighbouring tokens of one label to one piece of text."""
    runs = groupby(zip(tokens[:MOST_TOKENS_DRAWN], labels, strict=False), key=lambda pair: pair[1])
    pieces: Segments = [(" ".join(token for token, _ in run) + " ", label) for label, run in runs]
    if len(tokens) > MOST_TOKENS_DRAWN:
        pieces.append((f"… {len(tokens) - MOST_TOKENS_DRAWN} more tokens ", None))
    return pieces


def compare_positions(predicted: Iterable[int], reference: Iterable[int], size: int) -> list[str | None]:
    """Return the label of each position: in both sets, in one of them, in none."""
    ours, theirs = set(predicted), set(reference)
    return [
        "both" if at in ours and at in theirs else "predicted" if at in ours else "reference" if at in theirs else None
        for at in range(size)
    ]


def find_covered(spans: Iterable[Mapping[str, Any]]) -> set[int]:
    """Return the positions that spans cover, as far as they are drawn."""
    return {at for span in spans for at in range(span["start_token"], min(span["end_token"], MOST_TOKENS_DRAWN + 1))}


def draw_instances(predictions: list[Any], references: list[Any]) -> Iterator[Segments]:
    """Draw each document of each instance: the hard rationale (or the soft one at 0.5) against the evidence."""
    rows = {str(row["annotation_id"]): row for row in references}
    for instance in predictions:
        row = rows.get(str(instance["annotation_id"]), {})
        texts = {document["docid"]: document["text"] for document in row.get("documents") or []}
        gold = [evidence for group in row.get("evidences") or [] for evidence in group]
        for rationale in instance.get("rationales") or []:
            docid = rationale["docid"]
            soft = rationale.get("soft_rationale_predictions") or []
            hard = rationale.get("hard_rationale_predictions")
            ours = find_covered(hard) if hard is not None else {at for at, score in enumerate(soft) if score >= 0.5}
            theirs = find_covered(evidence for evidence in gold if evidence["docid"] == docid)
            size = max({*ours, *theirs, len(soft) - 1, -1}) + 1
            tokens = split_tokens(texts[docid]) if docid in texts else [str(at) for at in range(size)]
            head = (f"{instance['annotation_id']} · {docid}: ", None)
            yield [head, *merge_segments(tokens, compare_positions(ours, theirs, len(tokens)))]


def draw_pairs(predictions: list[Any], references: list[Any]) -> Iterator[Segments]:
    """Draw each original's tokens, most important first, then each of its perturbed texts': kept or changed."""
    tokens = {str(row["id"]): row["rationale_tokens"] for row in predictions}
    for row in references:
        for other in row.get("rel_ids") or []:
            for ours, theirs in zip(tokens[str(row["id"])], tokens[str(other)], strict=False):
                for name, here, there in ((row["id"], ours, theirs), (other, theirs, ours)):
                    labels = ["kept" if token in set(there) else "changed" for token in here]
                    yield [(f"{name}: ", None), *merge_segments(here, labels)]


def draw_sets(predictions: list[Any], references: list[Any]) -> Iterator[Segments]:
    """Draw each sequence's positions: predicted, in any gold set, in both; with tokens if a row has ``tokens``."""
    rows = {str(row["id"]): row for row in references}
    for row in predictions:
        other = rows.get(str(row["id"]), {})
        texts = other.get("tokens") or row.get("tokens") or []
        for ours, golds, tokens in zip_longest(row["rationale"], other.get("rationale_ids") or [], texts, fillvalue=()):
            theirs = {at for gold in golds for at in gold}
            size = min(max({*ours, *theirs, len(tokens) - 1, -1}), MOST_TOKENS_DRAWN) + 1
            words = [tokens[at] if at < len(tokens) else str(at) for at in range(size)]
            yield [(f"{row['id']}: ", None), *merge_segments(words, compare_positions(ours, theirs, size))]


def draw_annotators(predictions: list[Any], references: list[Any]) -> Iterator[Segments]:
    """Draw each text's positions: marked by all annotators, by some, by none."""
    for row in references or predictions:
        marks = list(zip(*row["annotators"], strict=False))
        labels = ["all" if all(mark) else "some" if any(mark) else None for mark in marks]
        tokens = row.get("tokens") or [str(at) for at in range(len(marks))]
        yield [(f"{row.get('annotation_id', '')}: ", None), *merge_segments(tokens, labels)]


def draw_quotes(predictions: list[Any], references: list[Any]) -> Iterator[Segments]:
    """Draw each quote of each instance, by its status."""
    for row in predictions:
        quotes = [(f"{quote['text']} ", quote["status"]) for quote in row["quotes"]]
        yield [(f"{row.get('annotation_id', '')}: ", None), *quotes]


def draw_probabilities(predictions: list[Any], references: list[Any]) -> Iterator[Segments]:
    """Draw the four probabilities of each instance, coloured by their size."""
    for at, row in enumerate(predictions):
        cells = [(f"{key} {row[key]:.3f} ", float(row[key])) for key in PROBABILITIES if key in row]
        yield [(f"{row.get('annotation_id', row.get('id', at))}: ", None), *cells]


# ---------------------------------------------------------------------------------------- the example of a page

PROBABILITIES = ("p_full", "p_rationale", "p_complement", "p_empty")
# draw function -> label -> colour; probabilities are shaded by their size
Draw = Callable[[list[Any], list[Any]], Iterator[Segments]]
COLOURS: dict[Draw, dict[str, str]] = {
    draw_instances: {"both": GREEN, "predicted": AMBER, "reference": BLUE},
    draw_sets: {"both": GREEN, "predicted": AMBER, "reference": BLUE},
    draw_pairs: {"kept": GREEN, "changed": RED},
    draw_annotators: {"all": GREEN, "some": AMBER},
    draw_quotes: dict.fromkeys(("exact", "normalised"), GREEN)
    | {"fuzzy": AMBER, "ambiguous": BLUE, "not_found": RED, "empty": RED},
}
DRAW_FUNCTIONS = {each.__name__.removeprefix("draw_"): each for each in (*COLOURS, draw_probabilities)}


def read_example(folder: Path, name: str) -> tuple[list[Any], list[Any] | None, dict[str, Any], Draw]:
    """Return the example of a metric: predictions, references, options and draw function; empty if it has none."""
    beside, among_cards = folder / "example.json", folder / "cards" / f"{name}.json"
    path = beside if beside.is_file() else among_cards
    if not path.is_file():
        return [], None, {}, draw_instances
    example = json.loads(path.read_text("utf-8"))
    return example["predictions"], example["references"], example["options"], DRAW_FUNCTIONS[example["drawn"]]


# ------------------------------------------------------------------------------------------------------ the page


class Malformed(ValueError):
    """Box with wrong content."""


def parse_box(text: str | None, box: str, kind: type) -> Any:
    """Parse the JSON of one box: a list of rows, JSON lines, or an object; None if the box is empty."""
    text = (text or "").strip()
    if not text:
        return None
    if len(text) > MOST_CHARACTERS:
        raise Malformed(f"{box}: {len(text)} characters, at most {MOST_CHARACTERS} here; use the module in Python")
    try:
        value = json.loads(text)
    except RecursionError:
        raise Malformed(f"{box}: nested too deeply") from None
    except ValueError as error:
        try:
            # lines end at \n alone: U+2028 and its like may stand inside a string
            value = [json.loads(line) for line in text.split("\n") if line.strip()] if kind is list else None
        except (ValueError, RecursionError):
            value = None
        if value is None:
            raise Malformed(f"{box}: no JSON: {error}") from None
    if kind is list and isinstance(value, dict):
        value = [value]
    if not isinstance(value, kind):
        expected = "a list of rows" if kind is list else "an object"
        raise Malformed(f"{box}: expected {expected}, found {type(value).__name__}")
    return value


def format_rows(value: list[Any] | dict[str, Any] | None) -> str:
    """Format rows as JSON for a box, a row a line."""
    if isinstance(value, list) and value:
        return "[\n" + ",\n".join(f" {json.dumps(row, ensure_ascii=False)}" for row in value) + "\n]"
    return json.dumps(value, ensure_ascii=False) if value else ""


def format_score(value: float) -> str:
    """Format a score for the table."""
    return repr(value) if isinstance(value, (int, bool)) or not math.isfinite(value) else f"{value:.6g}"


def render_table(scores: Mapping[str, Any]) -> str:
    """Render the flat numbers of a result as an HTML table, with intervals if any has one."""
    numbers = {key: value for key, value in scores.items() if isinstance(value, (int, float))}
    intervals = {key: scores[f"{key}_ci"] for key in numbers if scores.get(f"{key}_ci")}
    heads = ["score", "value", *(["interval"] if intervals else [])]
    lines = ["<tr>" + "".join(f'<th scope="col">{head}</th>' for head in heads) + "</tr>"]
    for key, value in numbers.items():
        cells = [format_score(value), *([" – ".join(map(format_score, intervals.get(key, ())))] if intervals else [])]
        row = "".join(f"<td>{cell}</td>" for cell in cells)
        lines.append(f'<tr><th scope="row">{html.escape(key)}</th>{row}</tr>')
    return f"<table>{''.join(lines)}</table>"


def draw_rows(draw: Draw, predictions: list[Any], references: list[Any]) -> Segments:
    """Draw the first rows' tokens; rows that cannot be drawn give a message, because their scores are valid."""
    result: Segments = []
    try:
        for at, row in enumerate(draw(predictions, references)):
            if at == MOST_ROWS_DRAWN:
                result.append(("… further rows are scored and not drawn", None))
                break
            result += [*row, ("\n", None)]
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        result.append((f"not drawn: {type(error).__name__}: {error}", None))
    return result


def render_segments(segments: Segments, colours: Mapping[str, str]) -> str:
    """Render segments as HTML: a legend, then the text; labels have a background and a line, numbers a shade."""

    def mark(text: str, label: str | float | None) -> str:
        if label is None:
            return html.escape(text).replace("\n", "<br>")
        if isinstance(label, str):
            line = LINES[list(colours).index(label) % len(LINES)]
            style = f"background:{colours[label]};text-decoration-style:{line}"
        else:
            style = f"background:hsl(123 38% {98 - 30 * min(max(label, 0), 1):.0f}%);text-decoration:none"
        return f'<mark style="{style}" title="{html.escape(str(label))}">{html.escape(text.strip())}</mark> '

    legend = "".join(mark(label, label) for label in colours)
    return (f"<p>{legend}</p>" if legend else "") + f"<p>{''.join(mark(*segment) for segment in segments)}</p>"


def read_file(path: str, box: str) -> str:
    """Read an uploaded file for a box: JSON unchanged, Parquet a row a line.

    Raises:
        Malformed: the file is too large, not UTF-8, no Parquet, or has a column that JSON does not support.
    """
    if Path(path).suffix.lower() == ".parquet":
        try:
            file = parquet.ParquetFile(path)
            size = sum(file.metadata.row_group(at).total_byte_size for at in range(file.metadata.num_row_groups))
            if size <= MOST_CHARACTERS:
                return "\n".join(json.dumps(row, ensure_ascii=False) for row in file.read().to_pylist())
        except (ArrowException, OSError, TypeError, ValueError) as error:
            raise Malformed(f"{box}: cannot read {Path(path).name}: {error}") from None
    else:
        size = Path(path).stat().st_size
        if size <= MOST_CHARACTERS:
            try:
                return Path(path).read_bytes().decode("utf-8-sig")
            except UnicodeDecodeError as error:
                raise Malformed(f"{box}: {Path(path).name} is no UTF-8: {error}") from None
    raise Malformed(f"{box}: {size} bytes, at most {MOST_CHARACTERS} here; use the module in Python")


def upload(box: str, path: str) -> tuple[Any, Any]:
    """Return the text of a file for its box, and the message; the box is unchanged if the file cannot be read."""
    try:
        return read_file(path, box), gr.update(value="", visible=False)
    except Malformed as error:
        return gr.update(), gr.update(value=str(error), visible=True)


def submit(
    module: evaluate.EvaluationModule, draw: Draw, predictions_text: str, references_text: str, options_text: str
) -> tuple[Any, ...]:
    """Compute message, table, tokens and the whole result from the three boxes."""
    try:
        texts = {"predictions": predictions_text, "references": references_text}
        rows = {box: parse_box(text, box, list) for box, text in texts.items()}
        keywords = parse_box(options_text, "options", dict) or {}
        if clash := sorted(rows.keys() & keywords.keys()):
            raise Malformed(f"options: {', '.join(clash)} belongs into its own box")
        scores = module.compute(**{key: value for key, value in rows.items() if value is not None}, **keywords)
    except Exception as error:  # any error of pasted input: show its message, not its trace
        message = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
        return gr.update(value=message, visible=True), "", "", {}
    scores = dict(scores or {})
    tokens = render_segments(
        draw_rows(draw, rows["predictions"] or [], rows["references"] or []), COLOURS.get(draw, {})
    )
    return gr.update(value="", visible=False), render_table(scores), tokens, scores


def build_page(module: evaluate.EvaluationModule, name: str) -> gr.Blocks:
    """Build the page of one metric."""
    predictions, references, options, draw = read_example(Path(__file__).resolve().parent, name)
    filled = [format_rows(value) for value in (predictions, references, options)]
    blocks: gr.Blocks
    with gr.Blocks(title=name, analytics_enabled=False) as blocks:
        gr.HTML(STYLE)
        gr.Markdown(f"# {name}\n\n{module.description or ''}")
        boxes: list[gr.Textbox] = []
        uploads: list[tuple[gr.UploadButton, str]] = []
        with gr.Row():
            for value, label in zip(filled, ("predictions", "references", "options"), strict=True):
                with gr.Column(min_width=240):
                    boxes.append(gr.Textbox(value, label=label, elem_id=label, lines=4, max_lines=12))
                    if label != "options":
                        what = f"Upload {label} (JSON, JSON lines, Parquet)"
                        file = gr.UploadButton(what, file_types=FILE_TYPES, size="sm", elem_id=f"upload_{label}")
                        uploads.append((file, label))
        with gr.Row():
            button = gr.Button("Submit", variant="primary", elem_id="submit")
            reset_button = gr.Button("Back to the example", elem_id="example")
        message = gr.Textbox(label="message", visible=False, elem_id="message", lines=2)
        with gr.Row():
            with gr.Column(min_width=300):
                scores = gr.HTML(elem_id="scores")
            with gr.Column(min_width=300, scale=2):
                tokens = gr.HTML(elem_id="tokens")
        with gr.Accordion("The whole result as JSON", open=False):
            whole = gr.JSON(elem_id="whole")
        with gr.Accordion("What goes in", open=False):
            gr.Code(module.inputs_description or "", language="markdown", interactive=False)
        # one event for both, so that the module computes one thing at a time
        shown_in, compute = [message, scores, tokens, whole], partial(submit, module, draw)
        gr.on([blocks.load, button.click], compute, boxes, shown_in, api_name="compute")
        reset_button.click(lambda: filled, None, boxes)
        for (file, label), box in zip(uploads, boxes, strict=False):
            file.upload(partial(upload, label), file, [box, message])
    return blocks


def main() -> None:
    """Start the page of the module beside this file."""
    path = find_module(Path(__file__).resolve().parent, sys.argv[1] if len(sys.argv) > 1 else None)
    module = evaluate.load(str(path), keep_in_memory=True, experiment_id=f"app_{os.getpid()}")
    build_page(module, path.stem).launch()


if __name__ == "__main__":
    main()
