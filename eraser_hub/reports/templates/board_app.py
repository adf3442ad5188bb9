"""The results board as a Space: the board's own page, and beside it a page that scores a file and shows its line.

/                                     index.html, as ``eraser-hub board`` writes it, with a link to the other page
/board.json, /feed.xml, /feed.json    its data and its feeds
/submit/                              a predictions file is scored here, never taken as numbers

See board_scoring.py for the settings. The server listens where GRADIO_SERVER_NAME and GRADIO_SERVER_PORT say, by
default at 0.0.0.0:7860 in a Space, and at 127.0.0.1:7860 elsewhere.
"""

from __future__ import annotations

import os
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

try:
    import fastapi
    import gradio as gr
    import uvicorn
    from starlette.requests import Request
    from starlette.responses import FileResponse, RedirectResponse, Response
except ImportError as error:
    raise SystemExit(f"this page needs {error.name}: pip install -r requirements.txt") from None

from .board_scoring import BOARD, HERE, MOST_BYTES, MOST_NAME, NAMESPACE, Refused, Table, score_file

SUBMIT = "/submit"
PAGES = {
    "/": ("index.html", "text/html"),
    "/board.json": ("board.json", "application/json"),
    "/feed.xml": ("feed.xml", "application/rss+xml"),
    "/feed.json": ("feed.json", "application/feed+json"),
}
SPLITS = ["validation", "test", "train"]
# gradio's own button and footer fall short of a contrast of 4.5:1
STYLE = """<style>
footer :is(a, button), .or { color: var(--body-text-color) !important; }
#score { background: #b93c0a; color: #fff; }
</style>"""
BACK = '<nav aria-label="pages"><a href="../">Back to the board</a></nav>'  # gradio's Markdown would open another tab
WORDS = """# Submit a system

A submission is a predictions file (one ERASER instance a line, JSON), never a number: it is scored here by the scorer
of every other line, and nothing of it is kept. To have it on the board, open a pull request: `eraser-hub submit
PREDICTIONS --system system.yaml --repository ORG/rationale_submissions`.""".replace("ORG", NAMESPACE or "ORG")
PRIVATE = """The gold of some splits is private here. For these a system needs a name, and the page shows its line
alone: no scores of single instances, and no error that could quote the gold. The number of files that are scored a
day is limited, for each name and for all."""


def submit(file: str | None, config: str, split: str, name: str = "") -> tuple[Table, Table, str, str]:
    """Score a file; its line beside others, all scores that are shown, their signatures and a note.

    Raises:
        gr.Error: no file, or as `score_file` says.
    """
    if not file:
        raise gr.Error("Choose a predictions file: one ERASER instance a line.")
    try:
        scored = score_file(Path(file), config, split, name)
    except Refused as error:
        raise gr.Error(str(error)) from None
    scores = {"headers": ["Score", "Value"], "data": [list(one) for one in scored.scores.items()]}
    return scored.line, scores, "\n".join(scored.signatures), scored.note


def build() -> gr.Blocks:
    """Build the page that scores a file."""
    scored = Counter(row["dataset"] for row in BOARD["rows"] if row["kind"] == "scored")
    configs = sorted(
        {"movies", *(row["dataset"] for row in BOARD["rows"])}, key=lambda one: (-scored[one], one != "movies")
    )
    page = gr.Blocks(title="Submit a system")
    with page:
        gr.HTML(STYLE + BACK, padding=False)
        gr.Markdown(WORDS)
        if os.environ.get("BOARD_GOLD"):
            gr.Markdown(PRIVATE)
        file = gr.File(label="Predictions", file_types=[".jsonl", ".json"], type="filepath", elem_id="predictions")
        with gr.Row():
            name = gr.Textbox("", label="System", max_length=MOST_NAME, elem_id="system")
            config = gr.Dropdown(configs, value=configs[0], label="Config", allow_custom_value=True)
            split = gr.Dropdown(SPLITS, value=SPLITS[0], label="Split", allow_custom_value=True, elem_id="split")
        button = gr.Button("Score", variant="primary", elem_id="score")
        line = gr.Dataframe(interactive=False, label="Its line beside others", elem_id="line", datatype="str")
        note = gr.Markdown(elem_id="note")
        scores = gr.Dataframe(interactive=False, label="Scores", elem_id="scores")
        signature = gr.Textbox(label="Signatures", lines=2, interactive=False)
        button.click(submit, [file, config, split, name], [line, scores, signature, note], api_name="submit")
    return page


def make_app() -> fastapi.FastAPI:
    """Return the application: the board's files, and the page of submissions below `SUBMIT`."""
    app = fastapi.FastAPI(docs_url=None, redoc_url=None, openapi_url=None)

    def send(file: str, kind: str, request: Request) -> Response:
        return FileResponse(HERE / file, media_type=kind)

    for path, page in PAGES.items():
        app.add_route(path, partial(send, *page))

    def add_slash(request: Request) -> Response:
        # relative: behind the Hub's proxy an absolute address would lose https
        return RedirectResponse(f".{SUBMIT}/")

    app.add_route(SUBMIT, add_slash)
    # an error that is not meant for readers could quote a private gold
    shown: dict[str, Any] = {"show_error": False, "ssr_mode": False, "run_history": False}
    gr.mount_gradio_app(app, build(), SUBMIT, max_file_size=MOST_BYTES, **shown)
    return app


if __name__ == "__main__":
    port = int(os.environ.get("GRADIO_SERVER_PORT", "7860"))
    everywhere = os.environ.get("SYSTEM") == "spaces"
    host = os.environ.get("GRADIO_SERVER_NAME") or ("0.0.0.0" if everywhere else "127.0.0.1")
    print(f"the board is at http://{host}:{port}/", flush=True)
    uvicorn.run(make_app(), host=host, port=port, log_level="warning")
