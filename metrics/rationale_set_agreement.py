"""Token-F1 and IOU-F1 against the best of several gold rationale sets; sufficiency, comprehensiveness and New-P."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import evaluate
import numpy as np

from .answer_f1 import answer_f1
from .batches import Batches, Measured
from .cells import Row, as_list, as_number, as_scalar
from .fields import ERASED_ANSWERS, PERTURBATION_RECORD, PERTURBATION_ROW, PROBABILITIES, PROBABILITY_SLACK
from .offences import InputError, Offences, cut
from .pool import Pool, Statistics
from .presets import WANG2022, check_paper
from .rationale_sets import new_p, set_scores
from .results import scored_of
from .rows import RowColumns, by_id, joined, optional_fields
from .sources import FINE_GRAINED

HIGHER_IS_BETTER = {
    "token_f1": True,
    "token_f1_single": True,
    "iou_f1": True,
    "sufficiency": False,
    "comprehensiveness": True,
    "new_p": True,
    "accuracy_rationale": True,
    "accuracy_no_rationale": False,
    "answer_f1": True,
}
SETS = ("token_f1", "token_f1_single", "iou_f1")
RANGES = {key: ((-1.0, 1.0) if key in ("sufficiency", "comprehensiveness") else (0.0, 1.0)) for key in HIGHER_IS_BETTER}


def _index(value: Any) -> int | None:
    """A token index: a whole number from 0, also as a string of digits (gold files write them so)."""
    value = as_scalar(value)
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31 else None


def _index_set(value: Any, side: str, name: str, field: str, offences: Offences, size: int | None) -> frozenset[int]:
    """A list of indices as a set (repeated ones collapse); offences for what is none or lies past the end."""
    items = as_list(value)
    if items is None:
        offences.say_of(side, name, field, f"expected a list of token indices, found {cut(value)}", "type")
        return frozenset()
    indices = [_index(item) for item in items]
    for item, index in zip(items, indices, strict=True):
        if index is None:
            offences.say_of(side, name, field, f"expected token indices from 0, found {cut(item)}", "type")
            return frozenset()
        if size is not None and index >= size:
            offences.say_of(side, name, field, f"expected an index within the {size} tokens, found {index}", "range")
            return frozenset()
    return frozenset(index for index in indices if index is not None)


def _sequences(
    name: str, row: Row, reference: Row, offences: Offences
) -> list[tuple[list[frozenset[int]], frozenset[int]]]:
    """Per sequence of one instance: the gold sets and the predicted set."""
    golds, chosen = as_list(reference.get("rationale_ids")), as_list(row.get("rationale"))
    if not golds:
        value = reference.get("rationale_ids")
        offences.say_of(
            "reference", name, "rationale_ids", f"expected gold sets per sequence, found {cut(value)}", "span-missing"
        )
        return []
    if chosen is None or len(chosen) != len(golds):
        what = f"expected indices for {len(golds)} sequences, found {cut(row.get('rationale'))}"
        offences.say_of("prediction", name, "rationale", what, "length")
        return []
    tokens = as_list(reference.get("tokens")) or []
    sizes = [len(sequence) if as_list(sequence) is not None else None for sequence in tokens]
    sizes = sizes if len(sizes) == len(golds) else [None] * len(golds)
    pairs = []
    for at, (sets, indices) in enumerate(zip(golds, chosen, strict=True)):
        field = f"rationale_ids[{at}]"
        alternatives = as_list(sets)
        if not alternatives:
            offences.say_of(
                "reference", name, field, f"expected at least one gold set, found {cut(sets)}", "span-missing"
            )
            continue
        gold = [
            _index_set(one, "reference", name, f"{field}[{number}]", offences, sizes[at])
            for number, one in enumerate(alternatives)
        ]
        pairs.append((gold, _index_set(indices, "prediction", name, f"rationale[{at}]", offences, sizes[at])))
    return pairs


def _probabilities(name: str, row: Row, field: str, offences: Offences) -> dict[Any, float]:
    """{label or class number: probability}, {} and a fault for what is no distribution."""
    value = row[field]
    items = value if isinstance(value, Mapping) else as_list(value)
    if not items:
        offences.say_of("prediction", name, field, f"expected probabilities, found {cut(value)}", "probabilities")
        return {}
    pairs = (
        [(label, p) for label, p in items.items() if p is not None]
        if isinstance(items, Mapping)
        else list(enumerate(items))
    )
    numbers = {label: as_number(p) for label, p in pairs}
    wrong = next((p for label, p in pairs if (number := numbers[label]) is None or number < 0), None)
    if len(numbers) == 0 or wrong is not None:
        message = f"expected probabilities, found {cut(value if wrong is None else wrong)}"
        offences.say_of("prediction", name, field, message, "probabilities")
        return {}
    total = sum(number for number in numbers.values() if number is not None)
    if abs(total - 1) > PROBABILITY_SLACK:
        message = f"expected probabilities that sum to 1, found a sum of {total:g}"
        offences.say_of("prediction", name, field, message, "probabilities")
        return {}
    return {label: number for label, number in numbers.items() if number is not None}


def _label_scores(rows: Sequence[tuple[str, Row, Row]], fields: set[str], offences: Offences) -> dict[str, np.ndarray]:
    """Sufficiency, comprehensiveness, New-P and accuracies of each instance, as far as the fields allow."""
    present = [field for field in PROBABILITIES if field in fields]
    if not present:
        return {}
    if "pred_proba" not in fields or "pred_label" not in fields:
        missing = "pred_proba" if "pred_proba" not in fields else "pred_label"
        offences.say_of(
            "prediction", rows[0][0], missing, f"expected it beside {present[-1]}, found none", "key-missing"
        )
        return {}
    p = {field: np.full(len(rows), np.nan) for field in PROBABILITIES}  # of the predicted label
    classes = {field: np.full(len(rows), -1) for field in ("pred_label", *PROBABILITIES)}
    numbers: dict[Any, int] = {}
    for at, (name, row, _) in enumerate(rows):
        label = as_scalar(row["pred_label"])
        if isinstance(label, bool) or not isinstance(label, (int, str)):
            offences.say_of(
                "prediction", name, "pred_label", f"expected a class number or a label, found {cut(label)}", "type"
            )
            continue
        classes["pred_label"][at] = numbers.setdefault(label, len(numbers))
        for field in present:
            scores = _probabilities(name, row, field, offences)
            if scores and label not in scores:
                message = f"expected a probability of the label {label!r}, found {cut(row[field])}"
                offences.say_of("prediction", name, field, message, "score-missing")
            elif scores:
                p[field][at] = scores[label]
                # the first of equal ones, as argmax gives it
                best = max(scores, key=scores.__getitem__)
                classes[field][at] = numbers.setdefault(best, len(numbers))
    full, alone, rest = PROBABILITIES
    result = {}
    if alone in present:
        result["sufficiency"] = p[full] - p[alone]
    if rest in present:
        result["comprehensiveness"] = p[full] - p[rest]
    if len(present) == 3:
        result["new_p"] = new_p(classes["pred_label"], classes[alone], classes[rest]).astype(float)
    gold = [as_scalar(reference.get("label")) for _, _, reference in rows]
    truth = np.array([numbers.get(label, -2) if isinstance(label, (int, str)) else -1 for label in gold])
    # labels by name and classes by number do not compare; -1 is "no label"
    real = np.array([type(label) in {*map(type, numbers)} and label != -1 for label in gold])
    for key, field in (("accuracy_rationale", alone), ("accuracy_no_rationale", rest)):
        if field in present and real.any():
            result[key] = np.where(real, truth == classes[field], np.nan)
    return result


def _answer_changes(
    rows: Sequence[tuple[str, Row, Row]], fields: set[str], offences: Offences
) -> dict[str, np.ndarray]:
    """New-P where answers stand in the place of labels: strings are equal or not, as in the authors' code."""
    if not fields.issuperset(ERASED_ANSWERS) or fields & set(PROBABILITIES):
        return {}
    answers = np.full((len(rows), 3), "", dtype=object)
    for at, (name, row, _) in enumerate(rows):
        for place, field in enumerate(("pred_label", *ERASED_ANSWERS)):
            if not isinstance(row.get(field), str):
                offences.say_of(
                    "prediction", name, field, f"expected an answer (a string), found {cut(row.get(field))}", "type"
                )
            answers[at, place] = row.get(field)
    full, alone, rest = answers.T
    return {"new_p": new_p(full, alone, rest).astype(float)}


def _answers_as_labels(rows: Sequence[tuple[str, Row, Row]], fields: set[str]) -> str | None:
    """ "pred_label" where the labels are answers: strings without probabilities, and every reference has an answer."""
    if "pred_label" not in fields or fields & set(PROBABILITIES):
        return None
    texts = all(isinstance(row["pred_label"], str) for _, row, _ in rows)
    answered = all(reference.get("answer", reference.get("answers")) is not None for _, _, reference in rows)
    return "pred_label" if texts and answered else None


def _answer_scores(
    rows: Sequence[tuple[str, Row, Row]], fields: set[str], language: str | None, offences: Offences
) -> dict[str, np.ndarray]:
    """F1 of each instance's answer, where predictions carry one."""
    field = "answer" if "answer" in fields else _answers_as_labels(rows, fields)
    if field is None:
        return {}
    scores = np.zeros(len(rows))
    for at, (name, row, reference) in enumerate(rows):
        gold = reference.get("answers")
        gold = reference.get("answer") if gold is None else gold
        golds = [gold] if isinstance(gold, str) else as_list(gold)
        if not isinstance(row[field], str):
            offences.say_of("prediction", name, field, f"expected a string, found {cut(row[field])}", "type")
        elif golds is None or not all(isinstance(one, str) for one in golds):
            offences.say_of(
                "reference", name, "answers", f"expected the gold answers (strings), found {cut(gold)}", "type"
            )
        else:
            scores[at] = answer_f1(row[field], golds, language)
    return {"answer_f1": scores}


def _set_scores(rows: Sequence[tuple[str, Row, Row]], threshold: float, offences: Offences) -> dict[str, np.ndarray]:
    """Agreement with the gold sets, averaged over each instance's sequences; NaN where a reference says it has none."""
    scores = np.full((len(rows), len(SETS)), np.nan)
    for at, (name, row, reference) in enumerate(rows):
        if _has_no_gold(reference):
            continue
        pairs = _sequences(name, row, reference, offences)
        if pairs and not offences.total:
            scores[at] = np.mean([set_scores(gold, chosen, threshold) for gold, chosen in pairs], axis=0)
    return dict(zip(SETS, scores.T, strict=True))


def _has_no_gold(reference: Row) -> bool:
    """Whether a row of bilingual_perturbation says that the release has no gold rationale of it."""
    return reference.get("has_gold") is False and not as_list(reference.get("rationale_ids"))


def _notes(rows: Sequence[tuple[str, Row, Row]], scores: Mapping[str, np.ndarray]) -> list[str]:
    """What is left out, and for want of what."""
    gold = sum(not _has_no_gold(reference) for _, _, reference in rows)
    needs = {
        "token F1, IOU F1": (SETS[0], "rationale in the predictions" if gold else "rationale_ids in the references"),
        "sufficiency": ("sufficiency", "rationale_pred_proba"),
        "comprehensiveness": ("comprehensiveness", "non_rationale_pred_proba"),
    }
    told = "; ".join(f"{words} (no {field})" for words, (key, field) in needs.items() if key not in scores)
    notes = [f"left out: {told}"] if told else []
    if SETS[0] in scores and gold < len(rows):
        notes.append(f"token F1 and IOU F1 leave out {len(rows) - gold:,} references without gold rationales")
    return notes


class RationaleSetAgreement(Batches, evaluate.Metric):  # type: ignore[misc]  # evaluate is untyped
    """Agreement of predicted rationales with human ones where an input has several alternative gold sets of tokens:
    token-F1 and IOU-F1 against the set, or union of sets, that fits the prediction best. With labels and
    probabilities also sufficiency, comprehensiveness and New-P; with answers also their F1.

    Args:
        predictions: rows {id, rationale}; rationale holds, per sequence of the input, the indices of the chosen
            tokens: [[index, ..], ..]. Optional, in all rows or in none: pred_label with pred_proba,
            rationale_pred_proba and non_rationale_pred_proba (a list of probabilities with a class number as
            label, or {label: probability}); answer (a string; "" for none; a pred_label that is a string,
            without probabilities, is one where the references have answers) with rationale_pred_label and
            non_rationale_pred_label, the answers to the rationale alone and to the rest, for new_p.
        references: rows {id, rationale_ids}; per sequence the alternative gold sets: [[[index, ..], ..], ..];
            with answers also answers (a list of strings) or answer; with labels also label. Rows of
            bilingual_perturbation are understood as they come: those that say has_gold: False are left out of
            token F1 and IOU F1.
        iou_threshold: 0.5.
        language: "en", "zh" or None (by the text), for answer_f1.
        only_predicted: references without a prediction are left out; without it they are an error.
        paper: "wang2022": New-P is a share of all references, as in the authors' code; one without a prediction
            is a miss.
        per_instance: adds the scores of each instance.
        confidence_level, n_resamples, seed, ci_method: add KEY_ci, by the bootstrap over instances; ci_method
            is "bca" or "percentile".
        cluster_by: what is drawn together: "auto" (what shares documents, or an original with its perturbed
            records), "none", or a column of the rows.
        by: a column of the rows; adds the scores per value of it.
        label_names: names of the class numbers in that column.

    Returns:
        token_f1, iou_f1: in [0, 1], higher is better; token_f1_single: token F1 against the best single set;
        sufficiency = p(full) - p(rationale), in [-1, 1], lower is better; comprehensiveness = p(full) -
        p(rest), in [-1, 1], higher is better; new_p: share of instances with label(rationale) = label(full) !=
        label(rest); accuracy_rationale, accuracy_no_rationale (Acc_r, Acc_nr): share of instances whose label
        on the rationale alone, or on the rest, is the gold one; answer_f1: in [0, 1]; signature.

    Raises:
        ValueError: wrong input; it names the instance and the field.

    Example:

        >>> import evaluate
        >>> metric = evaluate.load("rationale_set_agreement")
        >>> result = metric.compute(predictions=[{"id": 1, "rationale": [[1, 2, 4]]}],
        ...                         references=[{"id": 1, "rationale_ids": [[["1", "2"], ["4", "5"], ["8"]]]}])
        >>> round(result["token_f1"], 4), result["iou_f1"]
        (0.8571, 1.0)
    """

    SOURCE = FINE_GRAINED
    INPUTS = (
        (PERTURBATION_ROW, ("id", "rationale", "pred_label", *PROBABILITIES, "answer", *ERASED_ANSWERS)),
        (PERTURBATION_RECORD, ("id", "rationale_ids", "label", "answer", "answers", "has_gold")),
    )
    HIGHER_IS_BETTER, RANGES = HIGHER_IS_BETTER, RANGES

    def _measure(
        self,
        predictions: Sequence[Row] | None,
        references: Sequence[Row] | None,
        iou_threshold: float = 0.5,
        language: str | None = None,
        only_predicted: bool = False,
        paper: str | None = None,
    ) -> Measured:
        """Per instance the sum of each score over it (0 or one number), and how many numbers that are."""
        threshold = as_number(iou_threshold)
        if threshold is None or not 0 < threshold <= 1:
            raise InputError(f"expected a number in (0, 1], found {iou_threshold!r}", "option-value", "iou_threshold")
        if language not in (None, "en", "zh"):
            raise InputError(f"expected 'en', 'zh' or None, found {language!r}", "option-value", "language")
        check_paper(paper, WANG2022)
        offences = Offences()
        joint = joined(predictions, references, offences, only_predicted or paper == WANG2022)
        rows = [(name, row) for name, row, _ in joint]
        fields = optional_fields(
            rows, ("rationale", "pred_label", *PROBABILITIES, *ERASED_ANSWERS, "answer"), "prediction", offences
        )
        offences.stop()
        with_sets = "rationale" in fields and not all(_has_no_gold(reference) for _, _, reference in joint)
        scores = _set_scores(joint, threshold, offences) if with_sets else {}
        scores |= _label_scores(joint, fields, offences)
        scores |= _answer_changes(joint, fields, offences)
        scores |= _answer_scores(joint, fields, language, offences)
        offences.stop()
        if not scores:
            expected = "rationale, pred_label with pred_proba and rationale_pred_proba, or answer"
            raise InputError(
                f"nothing to score: expected {expected}, found none of them", "score-missing", "predictions"
            )
        named = by_id(references or (), "reference", Offences())
        missed = [name for name in named if name not in dict(rows)] if paper == WANG2022 else []
        settings: dict[str, object] = {"iou": threshold}
        if "answer_f1" in scores:
            settings["answers"] = language or "by text"
        settings |= {"paper": paper} if paper else scored_of(len(joint), len(references or ()))
        sources = [[reference, row] for _, row, reference in joint] + [[named[name]] for name in missed]
        return Measured(
            _statistics([name for name, _ in rows], missed, scores),
            RowColumns(sources),
            settings,
            notes=_notes(joint, scores),
        )


def _statistics(names: Sequence[str], missed: Sequence[str], scores: Mapping[str, np.ndarray]) -> Statistics:
    """Sums and counts per instance; of references without a prediction (``missed``) New-P alone is said, and is 0."""
    pool = Pool(len(names) + len(missed))
    for key, column in scores.items():
        pool.add_mean(key, np.append(column, np.full(len(missed), 0.0 if key == "new_p" else np.nan)))
    return pool.statistics([*names, *missed])
