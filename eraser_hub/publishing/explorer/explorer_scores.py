"""Scores of what a reader marked, computed by the metric modules, and the curves and formulas around them."""

from __future__ import annotations

import html
import math
import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import evaluate

from eraser_hub.metrics.app_scores import render_headline
from eraser_hub.metrics.quote_alignment import Document, align
from eraser_hub.metrics.score_explanations import explain_scores, format_value
from eraser_hub.metrics.tokens import split_tokens

from .explorer_model import WordCountModel

THRESHOLDS = (0.01, 0.05, 0.1, 0.2, 0.5)
WIDTH, HEIGHT, LEFT, RIGHT, TOP = 300, 150, 34, 18, 10  # of the curves' drawing
MOST_QUOTES = 50


@lru_cache(maxsize=8)
def load_module(name: str) -> evaluate.EvaluationModule:
    """Load a module of the Space."""
    path = Path(__file__).parent / "metrics" / f"{name}.py"
    return evaluate.load(str(path), keep_in_memory=True, experiment_id=f"explorer_{os.getpid()}")


def compute(name: str, *, predictions: Any = None, references: Any = None, **options: Any) -> dict[str, Any]:
    """Return a module's result and its headline as HTML: ``scores`` and ``html``."""
    module = load_module(name)
    rows = {"predictions": predictions, "references": references}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # on fields that this page leaves out
        scores = module.compute(**{key: value for key, value in rows.items() if value is not None}, **options) or {}
    shown = explain_scores(name, scores, predictions or (), references or (), ranges=getattr(module, "RANGES", {}))
    values = {one.key: one.value if math.isfinite(one.value) else None for one in shown}
    return {"html": render_headline(shown), "values": values}


def list_tokens(row: Mapping[str, Any]) -> list[tuple[str, int, str]]:
    """Return (docid, position in the document, token) of each token of a row, in order."""
    return [
        (str(document["docid"]), at, token)
        for document in row["documents"]
        for at, token in enumerate(split_tokens(document["text"]))
    ]


def make_rationales(
    tokens: Sequence[tuple[str, int, str]], marks: Iterable[int], soft: Sequence[float] | None
) -> list[dict[str, Any]]:
    """Return the rationales of an instance: spans of the marked tokens, and the soft scores where there are any."""
    marked, rationales = set(marks), dict[str, dict[str, Any]]()
    for place, (docid, at, _) in enumerate(tokens):
        rationale = rationales.setdefault(docid, {"docid": docid, "hard_rationale_predictions": []})
        if soft is not None:
            rationale.setdefault("soft_rationale_predictions", []).append(soft[place])
        if place in marked:
            spans = rationale["hard_rationale_predictions"]
            if spans and spans[-1]["end_token"] == at:
                spans[-1]["end_token"] += 1
            else:
                spans.append({"start_token": at, "end_token": at + 1})
    return list(rationales.values())


def answer_erased(model: WordCountModel, words: Sequence[str], marked: set[int]) -> dict[str, dict[str, float]]:
    """Return the model's probabilities on the whole text, without the marked tokens, and on these alone."""
    return {
        "classification_scores": model.predict(words),
        "comprehensiveness_classification_scores": model.predict(words, set(range(len(words))) - marked),
        "sufficiency_classification_scores": model.predict(words, marked),
    }


def make_instance(
    row: Mapping[str, Any], marks: Sequence[int], soft: Sequence[float] | None, model: WordCountModel | None
) -> dict[str, Any]:
    """Return the ERASER instance of what a reader marked and brushed.

    Args:
        row: The dataset's row.
        marks: The marked tokens, counted over all documents.
        soft: A score for each token; None where nothing is brushed.
        model: Answers the erased texts; None leaves their scores out.
    """
    tokens = list_tokens(row)
    words = [token for _, _, token in tokens]
    instance: dict[str, Any] = {
        "annotation_id": row["annotation_id"],
        "rationales": make_rationales(tokens, marks, soft),
    }
    if model is None:
        return instance
    instance |= answer_erased(model, words, set(marks))
    before = instance["classification_scores"]
    instance["classification"] = max(before, key=before.get)
    if soft is not None:
        ranking = sorted(range(len(words)), key=lambda at: (-soft[at], at))
        instance["thresholded_scores"] = [
            {"threshold": threshold, **answer_erased(model, words, set(ranking[: math.ceil(threshold * len(words))]))}
            for threshold in THRESHOLDS
        ]
        for scores in instance["thresholded_scores"]:
            del scores["classification_scores"]
    return instance


def score_marks(
    row: Mapping[str, Any], marks: Sequence[int], soft: Sequence[float] | None, model: WordCountModel | None
) -> dict[str, Any]:
    """Return the scores of what a reader marked: HTML of agreement and faithfulness, values, the model's answers."""
    instance = make_instance(row, marks, soft, model)
    words = [token for _, _, token in list_tokens(row)]
    agreement = compute("eraser_agreement", predictions=[instance], references=[row], levels=True)
    result = {"agreement": agreement["html"], "faithfulness": "", "answers": "", "curves": "", "values": {}}
    result["values"] = agreement["values"]
    if model is None:
        return result
    faithfulness = compute("eraser_faithfulness", predictions=[instance])
    result["faithfulness"] = faithfulness["html"]
    result["values"] = agreement["values"] | faithfulness["values"]
    result["answers"] = render_answers(instance, model, words)
    if soft is not None:
        result["curves"] = draw_curves(instance)
    return result


def render_answers(instance: Mapping[str, Any], model: WordCountModel, words: Sequence[str]) -> str:
    """Render the model's answers to the whole text, to the text without the marks, and to the marks alone."""
    label = instance["classification"]
    lines = []
    for name, field in (
        ("the whole text", "classification_scores"),
        ("without your marks", "comprehensiveness_classification_scores"),
        ("your marks alone", "sufficiency_classification_scores"),
    ):
        p = instance[field][label]
        lines.append(
            f'<li data-answer="{field}" data-value="{p!r}"><span class="what">{name}</span><span class="bar" '
            f'aria-hidden="true"><i style="width:{100 * p:.1f}%"></i></span><b>{format_value(p)}</b></li>'
        )
    known = model.count_known(words)
    return (
        f'<h3>The model says <em>{html.escape(label)}</em></h3><ul class="answers">{"".join(lines)}</ul>'
        f'<p class="small">Probability of {html.escape(label)}. A logistic regression over word counts, trained on '
        f"{model.texts} sample texts; it knows {known} of these {len(words)} tokens.</p>"
    )


def draw_curves(instance: Mapping[str, Any]) -> str:
    """Draw the probability of the predicted class as the best tokens are erased, and as they alone are kept."""
    label, before = instance["classification"], instance["classification_scores"]

    def place(x: float, y: float) -> str:
        return f"{LEFT + x * (WIDTH - LEFT - RIGHT):.1f},{TOP + (1 - y) * (HEIGHT - TOP - 24):.1f}"

    parts, words = [], []
    for field, name, dash in (
        ("comprehensiveness_classification_scores", "without them", ""),
        ("sufficiency_classification_scores", "they alone", ' stroke-dasharray="5 3"'),
    ):
        points = [(row["threshold"], row[field][label]) for row in instance["thresholded_scores"]]
        line = " ".join(place(2 * x, y) for x, y in points)
        dots = "".join(
            '<circle cx="{}" cy="{}" r="2.6" fill="currentColor"/>'.format(*place(2 * x, y).split(","))
            for x, y in points
        )
        parts.append(
            f'<g class="curve"><polyline points="{line}" fill="none" stroke="currentColor" '
            f'stroke-width="1.8"{dash}/>{dots}</g>'
        )
        words.append(f"{name}: " + ", ".join(f"{x:.0%} {format_value(y)}" for x, y in points))
    x, y = place(0, before[label]).split(",")
    whole = (
        f'<line x1="{x}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}" stroke="currentColor" stroke-width="1" opacity=".55"/>'
    )
    axes = "".join(
        f'<text x="{LEFT - 6}" y="{float(place(0, level).split(",")[1]) + 4:.1f}" text-anchor="end">{level:g}</text>'
        for level in (0, 0.5, 1)
    ) + "".join(
        f'<text x="{place(2 * t, 0).split(",")[0]}" y="{HEIGHT - 6}" text-anchor="middle">{t:.0%}</text>'
        for t in (0.05, 0.2, 0.5)
    )
    title = html.escape(f"p({label}) by share of tokens, {'; '.join(words)}")
    return (
        f'<figure><svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{title}">{whole}{axes}'
        f"{''.join(parts)}</svg>"
        f"<figcaption>p({html.escape(label)}) as the tokens with the highest scores are erased (solid) or alone kept "
        "(dashed); thin line: the whole text. AOPC is the mean distance from it.</figcaption></figure>"
    )


def score_quotes(row: Mapping[str, Any], quotes: Sequence[str]) -> dict[str, Any]:
    """Return the scores of quotes, and each quote's status and place among all tokens."""
    documents = [Document(str(one["docid"]), split_tokens(one["text"])) for one in row["documents"]]
    aligned = align([quote for quote in quotes if quote.strip()][:MOST_QUOTES], documents)
    starts, total = dict[str | None, int](), 0
    for one in row["documents"]:
        starts[str(one["docid"])] = total
        total += len(split_tokens(one["text"]))
    keys = ("text", "status", "docid", "start_token", "end_token", "similarity")
    instance = {
        "annotation_id": row["annotation_id"],
        "quotes": [{key: getattr(quote, key) for key in keys} for quote in aligned],
    }
    result = compute("quote_faithfulness", predictions=[instance], references=[row])
    places = [
        [starts[quote.docid] + quote.start_token, starts[quote.docid] + quote.end_token]
        if quote.start_token is not None and quote.end_token is not None
        else None
        for quote in aligned
    ]
    shown = [{"text": quote.text, "status": quote.status} for quote in aligned]
    return result | {"quotes": [one | {"place": place} for one, place in zip(shown, places, strict=True)]}


def score_annotators(size: int, marks: Sequence[Sequence[int]]) -> dict[str, Any]:
    """Return the agreement of people who marked a text of ``size`` tokens."""
    rows = [[int(at in one) for at in range(size)] for one in map(set, marks)]
    return compute("annotator_agreement", references=[{"annotation_id": "text", "annotators": rows}])


def score_pair(pair: Mapping[str, Any], ranked: Sequence[Sequence[int]]) -> dict[str, Any]:
    """Return MAP of the rankings of an original text and its changed form."""
    tokens = [[words[at] for at in order] for words, order in zip(pair["tokens"], ranked, strict=True)]
    first, second = str(pair["id"]), f"{pair['id']}, changed"
    return compute(
        "perturbation_map",
        predictions=[{"id": first, "rationale_tokens": [tokens[0]]}, {"id": second, "rationale_tokens": [tokens[1]]}],
        references=[
            {"id": first, "sample_type": "ori", "rel_ids": [second]},
            {"id": second, "sample_type": "disturb", "rel_ids": None},
        ],
    )
