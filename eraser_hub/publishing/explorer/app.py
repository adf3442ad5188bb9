"""The explorer: mark tokens of a text, and see the scores of that explanation move.

The metric modules compute every value, on the server; the page draws. `explorer.js` calls the functions of `FUNCTIONS`.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

try:
    # `evaluate` imports these where they are, for seconds, and a page does without
    for _name in ("transformers", "scipy"):
        sys.modules.setdefault(_name, None)  # type: ignore[arg-type]
    import evaluate  # noqa: F401
    import gradio as gr
except ImportError as error:
    raise SystemExit(f"this page needs {error.name}: pip install -r requirements.txt") from None
finally:
    for _name in ("transformers", "scipy"):
        if sys.modules.get(_name) is None:
            del sys.modules[_name]

from eraser_hub.metrics.app_rows import Malformed
from eraser_hub.metrics.app_scores import SCORE_STYLE
from eraser_hub.metrics.score_explanations import HEADLINES

from .explorer_data import SAMPLES, get_rationales, list_instances, read_row, read_samples
from .explorer_model import WordCountModel, read_models
from .explorer_scores import list_tokens, load_module, score_annotators, score_marks, score_pair, score_quotes

HERE = Path(__file__).parent
OWN_WEIGHTS = "the model's own weights"
SHARE = 0.1  # of the tokens, which ERASER's first version keeps for movies
TITLE = "How good is this explanation?"
# gradio's own footer falls short of a contrast of 4.5:1
FOOTER = "footer :is(a, button) { color: var(--body-text-color) !important; }"
Answer = dict[str, Any]


def answering(function: Callable[[Answer], Answer]) -> Callable[[Answer], Answer]:
    """Return a function whose errors of input are an answer, ``{"error": message}``, that the page shows."""

    def call(request: Answer) -> Answer:
        try:
            return function(request)
        except Malformed as error:
            return {"error": str(error)}
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            return {"error": f"{type(error).__name__}: {error}"}

    call.__name__ = function.__name__
    return call


@lru_cache(maxsize=1)
def _models() -> dict[str, WordCountModel]:
    return read_models(HERE)


def _place(request: Answer) -> tuple[str, str, str]:
    return request["dataset"], request["config"], request["split"]


@answering
def list_split(request: Answer) -> Answer:
    """Return the ids of a split."""
    return list_instances(*_place(request))


@answering
def open_instance(request: Answer) -> Answer:
    """Return a text as the page draws it: documents, gold positions, and the rationales of the sample systems."""
    row = read_row(*_place(request), request["id"])
    tokens = list_tokens(row)
    places = {(docid, at): place for place, (docid, at, _) in enumerate(tokens)}
    gold = {
        places[str(span["docid"]), at]
        for group in row["evidences"]
        for span in group
        for at in range(span["start_token"], span["end_token"])
    }
    systems = {}
    if (model := _models().get(request["config"])) is not None:
        scores = model.explain([token for _, _, token in tokens])
        best = sorted(range(len(scores)), key=lambda at: (-scores[at], at))[: math.ceil(SHARE * len(scores))]
        systems[OWN_WEIGHTS] = {"marks": sorted(at for at in best if scores[at]), "soft": scores}
    known = read_samples()["corpora"].get(request["config"], {}).get("systems", {})
    for name in known if request["dataset"] == SAMPLES else ():
        if rationales := get_rationales(request["config"], name, request["id"]):
            hard = [places[one["docid"], at] for one in rationales for s, e in one["hard"] for at in range(s, e)]
            soft = [0.0] * len(tokens)
            for one in rationales:
                for at, score in enumerate(one["soft"]):
                    soft[places[one["docid"], at]] = score
            systems[name] = {"marks": sorted(hard), "soft": soft if any(soft) else None}
    return {
        "query": row.get("query") or "",
        "label": row["classification"],
        "documents": row["documents"],
        "gold": sorted(gold),
        "systems": systems,
        "model": model is not None,
    }


@answering
def score(request: Answer) -> Answer:
    """Return the scores of the marks and soft scores of a text."""
    row, soft = read_row(*_place(request), request["id"]), request["soft"]
    return score_marks(row, request["marks"], soft, _models().get(request["config"]))


@answering
def quotes(request: Answer) -> Answer:
    """Return the scores of quotes of a text."""
    return score_quotes(read_row(*_place(request), request["id"]), request["quotes"])


@answering
def annotators(request: Answer) -> Answer:
    """Return the agreement of two people's marks of a text."""
    row = read_row(*_place(request), request["id"])
    return score_annotators(len(list_tokens(row)), request["marks"])


@answering
def pair(request: Answer) -> Answer:
    """Return MAP of two rankings; the page names a pair by its place in the samples."""
    return score_pair(read_samples()["pairs"][request["pair"]], request["ranked"])


FUNCTIONS = [list_split, open_instance, score, quotes, annotators, pair]


def build_page() -> gr.Blocks:
    """Build the page."""
    samples = read_samples()
    start = {
        "corpora": {name: list(corpus["splits"]) for name, corpus in samples["corpora"].items()},
        "pairs": [{key: one[key] for key in ("tokens", "ranked")} for one in samples["pairs"]],
        "samples": SAMPLES,
    }
    # in an attribute that no template reads: `</script>` in a text would end the element
    data = json.dumps(start, ensure_ascii=False).replace("<", "\\u003c")
    markup = (HERE / "explorer.html").read_text(encoding="utf-8")
    style = f"<style>{(HERE / 'explorer.css').read_text(encoding='utf-8')}{SCORE_STYLE}{FOOTER}</style>"
    blocks: gr.Blocks
    with gr.Blocks(title=TITLE, analytics_enabled=False) as blocks:
        gr.HTML(
            value="",
            html_template=style.replace("${", "$ {") + markup,
            js_on_load=f"const START = {data};\n" + (HERE / "explorer.js").read_text(encoding="utf-8"),
            server_functions=FUNCTIONS,
            apply_default_css=False,
            elem_id="explorer",
        )
    return blocks


def main() -> None:
    """Start the page; the modules are loaded before the first click."""
    for name in sorted(path.stem for path in (HERE / "metrics").glob("*.py") if HEADLINES.get(path.stem)):
        load_module(name)
    build_page().launch()


if __name__ == "__main__":
    main()
