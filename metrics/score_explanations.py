"""Headline scores in words: the formula with a result's numbers, the direction, what a score rewards and misses.

The values come from the modules; nothing here computes a score. A formula is shown with numbers only if these numbers
give the module's value; else it says what the mean is taken over. A Space holds this file beside its app.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

Scores = Mapping[str, Any]
Rows = Sequence[Mapping[str, Any]]
Formula = Callable[[str, Scores, Rows, Rows], str]
MOST_SUMMANDS = 6
MOST_ROWS = 200  # a formula with numbers is for few texts: more of them give a mean
ARROWS = {"higher": "↑", "lower": "↓", "": ""}
DIRECTIONS = {"higher": "higher is better", "lower": "lower is better", "": "neither is better"}


@dataclass(frozen=True)
class Explanation:
    """A headline score as a page shows it.

    Attributes:
        key: The key in the result.
        label: The name for people.
        value: The module's value.
        better: ``higher``, ``lower``, or empty where neither is better.
        range: Least and greatest value; None for no bound.
        formula: The formula with the numbers of this result; empty where the page has none.
        rewards: A sentence on good values.
        misses: A sentence on its blind spot.
        chance: The score of random rationales of the same size; None where it is not known.
    """

    key: str
    label: str
    value: float
    better: str
    range: tuple[float | None, float | None]
    formula: str
    rewards: str = ""
    misses: str = ""
    chance: float | None = None


def explain_scores(
    module: str,
    scores: Scores,
    predictions: Rows = (),
    references: Rows = (),
    *,
    ranges: Mapping[str, tuple[float | None, float | None]] | None = None,
    headline: Iterable[str] = (),
) -> list[Explanation]:
    """Return the headline scores of a result, in the order of `HEADLINES`.

    Args:
        module: The module's name, e.g. ``eraser_faithfulness``.
        scores: Its result.
        predictions: The rows that it scored, for the formulas; without them (or with many) means are named as means.
        references: Likewise.
        ranges: Key -> least and greatest value, as the module declares them (``RANGES``).
        headline: The scores of a module that `HEADLINES` does not list.
    """
    few = len(predictions) <= MOST_ROWS and len(references) <= MOST_ROWS
    predictions, references = (predictions, references) if few else ((), ())
    labels = read_labels()
    shown = []
    for key in HEADLINES.get(module, tuple(headline)):
        value = scores.get(key)
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            continue
        formula, rewards, misses = TEXTS.get(key, ("", "", ""))
        label, better = labels.get(key, (key, ""))
        chance = (scores.get("chance") or {}).get(key)
        if isinstance(formula, str):
            line = formula.format(format_value(value))
        else:
            line = formula(key, scores, predictions, references)
        bounds = (ranges or {}).get(key, (None, None))
        shown.append(Explanation(key, label, value, better, bounds, line, rewards, misses, chance))
    return shown


def read_labels() -> dict[str, tuple[str, str]]:
    """Return key -> (name for people, better direction) of every score in ``catalogue.json``."""
    families = json.loads((Path(__file__).resolve().parent / "catalogue.json").read_text(encoding="utf-8"))
    return {
        key: (label, better)
        for directions in families.values()
        for better, labels in directions.items()
        for key, label in labels.items()
    }


def format_value(value: float, digits: int = 2) -> str:
    """Format a score for people: fixed digits, a minus sign, and a dash where it is undefined."""
    if not math.isfinite(value):
        return "undefined" if math.isnan(value) else "∞" if value > 0 else "−∞"
    text = f"{value:.{digits}f}"
    return text.replace("-", "−") if float(text) else text.lstrip("-")


def fill(template: str, compute: Callable[..., float], numbers: Sequence[float], value: float) -> str:
    """Fill a formula with rounded numbers, with as many digits (2 to 4) as make it come out.

    Returns:
        The formula; empty if the numbers do not give the value.

    >>> fill("{} − {} = {}", lambda a, b: a - b, (0.9, 0.3), 0.6)
    '0.90 − 0.30 = 0.60'
    """
    try:
        if not math.isclose(compute(*numbers), value, rel_tol=1e-9, abs_tol=1e-9):
            return ""
        digits = 2
        while digits < 4 and round(compute(*(round(x, digits) for x in numbers)), digits) != round(value, digits):
            digits += 1
    except ZeroDivisionError:
        return ""
    return template.format(*(format_value(number, digits) for number in (*numbers, value)))


# -- agreement with gold evidence -------------------------------------------------------------------------------------


def _harmonic_mean(p: float, r: float) -> float:
    return 2 * p * r / (p + r) if p and r else 0.0


def _list_token_counts(predictions: Rows, references: Rows) -> list[tuple[int, int, int]]:
    """Return (both, predicted, gold) tokens of each document with any."""
    rows, counts = {str(row.get("annotation_id")): row for row in references}, []
    for instance in predictions:
        row = rows.get(str(instance.get("annotation_id")), {})
        ours, theirs = dict[str, set[int]](), dict[str, set[int]]()
        for rationale in instance.get("rationales") or ():
            for span in rationale.get("hard_rationale_predictions") or ():
                ours.setdefault(rationale["docid"], set()).update(range(span["start_token"], span["end_token"]))
        for group in row.get("evidences") or ():
            for span in group:
                theirs.setdefault(span["docid"], set()).update(range(span["start_token"], span["end_token"]))
        pairs = [(ours.get(docid, set()), theirs.get(docid, set())) for docid in {**theirs, **ours}]
        counts += [(len(marked & gold), len(marked), len(gold)) for marked, gold in pairs]
    return counts


def _fill_token_f1(key: str, scores: Scores, predictions: Rows, references: Rows) -> str:
    counts = _list_token_counts(predictions, references)
    if len(counts) == 1 and all(counts[0]):
        both, predicted, gold = counts[0]
        p, r = both / predicted, both / gold
        line = fill("2 × {0} × {1} / ({0} + {1}) = {2}", _harmonic_mean, (p, r), scores[key])
        return line and f"precision {both} / {predicted}, recall {both} / {gold}: {line}"
    parts = [_harmonic_mean(both / (predicted or 1), both / (gold or 1)) for both, predicted, gold in counts]
    return _fill_mean(parts, scores[key], "documents") or "mean over documents of 2 P R / (P + R)"


def _fill_f1(key: str, scores: Scores, predictions: Rows, references: Rows) -> str:
    p, r = (scores.get(f"{key.removesuffix('f1')}{part}", math.nan) for part in "pr")
    words = {"iou_macro_f1": "spans that overlap by half or more", "sentence_macro_f1": "sentences"}[key]
    if not p or not r:
        return f"{words}: precision {format_value(p)}, recall {format_value(r)}: F1 is 0"
    line = fill("2 × {0} × {1} / ({0} + {1}) = {2}", _harmonic_mean, (p, r), scores[key])
    return f"{words}: " + (line or "mean over documents of 2 P R / (P + R)")


def _fill_mean(parts: Sequence[float], value: float, what: str) -> str:
    if not 1 < len(parts) <= MOST_SUMMANDS:
        return ""
    places = " + ".join(["{}"] * len(parts))
    line = fill(f"({places}) / {len(parts)} = {{}}", lambda *xs: sum(xs) / len(xs), parts, value)
    return line and f"mean over {len(parts)} {what}: {line}"


def _fill_best_set(key: str, scores: Scores, predictions: Rows, references: Rows) -> str:
    rows, parts = {str(row.get("id")): row for row in references}, []
    for row in predictions:
        golds = rows.get(str(row.get("id")), {}).get("rationale_ids") or []
        for ours, sets in zip_longest(row.get("rationale") or [], golds, fillvalue=()):
            f1s = [(2 * len({*ours} & {*gold}) / ((len({*ours}) + len({*gold})) or 1), gold) for gold in sets]
            best, gold = max(f1s, default=(0.0, ()))
            parts.append((best, len({*ours} & {*gold}), len({*ours}), len({*gold})))
    if len(parts) == 1 and math.isclose(parts[0][0], scores[key], abs_tol=1e-9):
        best, both, predicted, gold_size = parts[0]
        return f"best gold set: 2 × {both} / ({predicted} + {gold_size}) = {format_value(best)}"
    line = _fill_mean([part[0] for part in parts], scores[key], "texts")
    return line or "mean over texts, each with its best gold set"


# -- what the model does without it -----------------------------------------------------------------------------------

_ERASED = {
    "comprehensiveness": "comprehensiveness_classification_scores",
    "sufficiency": "sufficiency_classification_scores",
}


def _fill_drop(key: str, scores: Scores, predictions: Rows, references: Rows) -> str:
    full, erased = [], []
    for row in predictions:
        label, before, after = row.get("classification"), row.get("classification_scores"), row.get(_ERASED[key])
        if not isinstance(before, Mapping) or not isinstance(after, Mapping) or label not in before.keys() & after:
            return ""
        full.append(before[label])
        erased.append(after[label])
    if not full:
        return "mean of p(full) − p(erased)"
    words = f"p(whole text) − p({'without it' if key == 'comprehensiveness' else 'rationale alone'})"
    numbers = (sum(full) / len(full), sum(erased) / len(erased))
    mean = "" if len(full) == 1 else f"means of {len(full)} texts, "
    line = fill("{} − {} = {}", lambda a, b: a - b, numbers, scores[key])
    return f"{mean}{words}{': ' if line else ''}{line}"


def _fill_aopc(key: str, scores: Scores, predictions: Rows, references: Rows) -> str:
    points, thresholds = scores.get(f"{key}_points") or [], scores.get("aopc_thresholds") or []
    lengths = ", ".join(f"{threshold:.0%}" for threshold in thresholds)
    return _fill_mean(points, scores[key], f"lengths (top {lengths})") or f"mean over the top {lengths} of tokens"


def _fill_normalized(key: str, scores: Scores, predictions: Rows, references: Rows) -> str:
    parts = []
    for row in predictions:
        if not {"p_full", "p_rationale", "p_complement", "p_empty"} <= row.keys():
            return "mean over texts"
        null = max(0.0, row["p_full"] - row["p_empty"])
        if key == "normalized_sufficiency":
            part = (null - max(0.0, row["p_full"] - row["p_rationale"])) / (null or 1)
        else:
            part = max(0.0, row["p_full"] - row["p_complement"]) / (null or 1)
        parts.append(min(max(part, 0.0), 1.0))
    if len(parts) == 1 and math.isclose(parts[0], scores[key], abs_tol=1e-9):
        return f"share of the drop to the empty text: {format_value(parts[0])}"
    return _fill_mean(parts, scores[key], "texts") or "mean over texts"


# -- rankings, annotators, quotes -------------------------------------------------------------------------------------


def _fill_map(key: str, scores: Scores, predictions: Rows, references: Rows) -> str:
    tokens = {str(row.get("id")): row.get("rationale_tokens") or [] for row in predictions}
    parts: list[list[float]] = []
    for row in references:
        for other in row.get("rel_ids") or ():
            for ours, theirs in zip(tokens.get(str(row.get("id")), []), tokens.get(str(other), []), strict=False):
                parts.append(
                    [sum(token in ours[:size] for token in theirs[:size]) / size for size in range(1, len(theirs) + 1)]
                )
    if len(parts) == 1:
        line = _fill_mean(parts[0], scores[key], "prefixes")
        return line and f"shared tokens in the first 1, 2, … of both rankings, {line}"
    means = [sum(part) / (len(part) or 1) for part in parts]
    return _fill_mean(means, scores[key], "pairs") or "mean over pairs and prefixes"


def _list_annotators(row: Mapping[str, Any]) -> list[Sequence[Any]]:
    """Return the marks of each annotator who read the text."""
    return [codes for codes in row.get("annotators") or () if codes is not None]


def _fill_kappa(key: str, scores: Scores, predictions: Rows, references: Rows) -> str:
    marks = [_list_annotators(row) for row in references or predictions]
    if len(marks) == 1 and len(marks[0]) == 2 and marks[0][0] and not any(None in codes for codes in marks[0]):
        first, second = marks[0]
        n = len(first)
        observed = sum(a == b for a, b in zip(first, second, strict=True)) / n
        a, b = sum(first) / n, sum(second) / n
        line = fill(
            "({0} − {1}) / (1 − {1}) = {2}",
            lambda seen, chance: (seen - chance) / (1 - chance),
            (observed, a * b + (1 - a) * (1 - b)),
            scores[key],
        )
        return line and f"(observed − by chance) / (1 − by chance): {line}"
    over = {"pairwise_kappa": "pairs of annotators", "cohen_kappa": "annotators, each against the majority"}[key]
    return f"(observed − by chance) / (1 − by chance), mean over {over}"


def _fill_alpha(key: str, scores: Scores, predictions: Rows, references: Rows) -> str:
    observed = ones = zeros = 0.0
    for row in references or predictions:
        for marks in zip(*_list_annotators(row), strict=False):
            codes = [mark for mark in marks if mark is not None]
            if len(codes) > 1:
                marked = sum(map(bool, codes))
                ones, zeros = ones + marked, zeros + len(codes) - marked
                observed += 2 * marked * (len(codes) - marked) / (len(codes) - 1)
    n = ones + zeros
    if n < 2 or not ones or not zeros:
        return "1 − disagreement observed / disagreement by chance"
    numbers = (observed / n, 2 * ones * zeros / (n * (n - 1)))
    line = fill("1 − {} / {} = {}", lambda a, b: 1 - a / b, numbers, scores[key])
    return f"1 − disagreement observed / by chance{': ' if line else ''}{line}"


def _fill_share(key: str, scores: Scores, predictions: Rows, references: Rows) -> str:
    total = scores.get("quotes") or 0
    part = round(scores[key] * total) if total and math.isfinite(scores[key]) else 0
    words = {"in_text": "quotes that stand in the text", "invented": "quotes that stand nowhere"}[key]
    return f"{words}: {part} / {total} = {format_value(scores[key])}" if total else ""


HEADLINES: dict[str, tuple[str, ...]] = {
    "eraser_agreement": ("token_macro_f1", "iou_macro_f1", "auprc", "sentence_macro_f1"),
    "eraser_faithfulness": ("comprehensiveness", "sufficiency", "comprehensiveness_aopc", "sufficiency_aopc"),
    "perturbation_map": ("map",),
    "rationale_set_agreement": ("token_f1", "iou_f1"),
    "normalized_fidelity": ("normalized_sufficiency", "normalized_comprehensiveness"),
    "annotator_agreement": ("krippendorff_alpha", "pairwise_kappa", "cohen_kappa"),
    "quote_faithfulness": ("in_text", "invented", "coverage"),
}
# key -> formula (or a text with the score's place), what it rewards, what it misses
TEXTS: dict[str, tuple[Formula | str, str, str]] = {
    "token_macro_f1": (
        _fill_token_f1,
        "Rewards marking the tokens that people marked, and no others.",
        "It does not ask whether the model used them, and it counts a token beside the evidence as wrong.",
    ),
    "iou_macro_f1": (
        _fill_f1,
        "Rewards spans that overlap a gold span by half or more; exact ends are not needed.",
        "A span of which a little less than half overlaps counts nothing.",
    ),
    "auprc": (
        "precision at every recall, as tokens are taken from the highest score down; the area under that curve",
        "Rewards soft scores that put gold tokens before all others; no threshold is needed.",
        "The size of the scores does not count, only their order.",
    ),
    "sentence_macro_f1": (
        _fill_f1,
        "Rewards choosing the sentences that hold the evidence.",
        "One token is enough to choose a sentence.",
    ),
    "token_f1": (
        _fill_best_set,
        "Rewards agreement with one of several gold sets, the best one.",
        "The other gold sets count nothing.",
    ),
    "iou_f1": (
        "",
        "Rewards spans that overlap a gold span by half or more.",
        "A span of which a little less than half overlaps counts nothing.",
    ),
    "comprehensiveness": (
        _fill_drop,
        "Rewards tokens that the model needs: without them it loses its confidence.",
        "A long rationale takes much away and scores high; an erased text is unlike any that the model has seen.",
    ),
    "sufficiency": (
        _fill_drop,
        "Rewards tokens that are enough: on them alone the model keeps its confidence.",
        "The whole text as a rationale scores a perfect 0.",
    ),
    "comprehensiveness_aopc": (
        _fill_aopc,
        "Rewards soft scores that put the tokens first that the model needs, at several lengths.",
        "It depends on the model: values of two models are not comparable.",
    ),
    "sufficiency_aopc": (
        _fill_aopc,
        "Rewards soft scores that put the tokens first that are enough, at several lengths.",
        "It depends on the model: values of two models are not comparable.",
    ),
    "normalized_sufficiency": (
        _fill_normalized,
        "Rewards a rationale that keeps the confidence which the empty text loses.",
        "Texts whose confidence does not drop without any text say nothing.",
    ),
    "normalized_comprehensiveness": (
        _fill_normalized,
        "Rewards a rationale that takes away the confidence which the empty text loses.",
        "Values above 1 count as 1.",
    ),
    "map": (
        _fill_map,
        "Rewards a ranking that stays when the text is changed and its meaning is not.",
        "A ranking that is always wrong in the same way scores 1.",
    ),
    "krippendorff_alpha": (
        _fill_alpha,
        "Rewards agreement of all annotators beyond chance, token by token.",
        "A span that is one token too long counts as little as a stray token.",
    ),
    "pairwise_kappa": (
        _fill_kappa,
        "Rewards agreement of two people beyond what their shares of marked tokens give by chance.",
        "It is low where marks are rare, even if most tokens agree.",
    ),
    "cohen_kappa": (
        _fill_kappa,
        "Rewards agreement with the majority of the annotators.",
        "Each annotator is part of that majority, so chance is above 0.",
    ),
    "in_text": (
        _fill_share,
        "Rewards quotes that stand in the text, word for word or but for case, blanks and marks.",
        "A true quote may be beside the point.",
    ),
    "invented": (
        _fill_share,
        "Counts quotes that stand nowhere in the text.",
        "A model without quotes invents none.",
    ),
    "coverage": (
        "quoted tokens / all tokens = {}",
        "Tells how much of the text is quoted.",
        "Neither much nor little is better.",
    ),
}
