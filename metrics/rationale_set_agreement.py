"""Token-F1 and IOU-F1 against the best of several gold rationale sets; sufficiency, comprehensiveness and New-P."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import evaluate
import numpy as np

from eraser_hub.schema.instance import PROBABILITY_SLACK
from eraser_hub.schema.rows import ERASED_ANSWERS, PERTURBATION_RECORD, PERTURBATION_ROW, PROBABILITIES

from .answer_f1 import answer_f1
from .batches import Batches, Measured
from .cells import Row, as_list, as_number, as_scalar
from .issues import InputError, Issues
from .rationale_sets import SCORES, SETS, new_p, score_against_sets
from .results import describe_scored
from .rows import CellReader, RowColumns, find_optional_fields, index_by_id, joined
from .sources import FINE_GRAINED, WANG2022, check_paper
from .statistics_builder import StatisticsBuilder, make_info


@dataclass
class RowPair:
    """Prediction and its reference."""

    prediction: CellReader
    reference: CellReader

    @property
    def has_gold(self) -> bool:
        """True unless the row of bilingual_perturbation has no gold rationale in the release."""
        row = self.reference.row
        return row.get("has_gold") is not False or bool(as_list(row.get("rationale_ids")))


def _parse_index(value: Any) -> int | None:
    """Return a token index, an integer from 0 or a string of digits (as in gold files); None for other values."""
    value = as_scalar(value)
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31 else None


def _parse_index_set(reader: CellReader, field: str, value: Any, size: int | None) -> frozenset[int]:
    """Return a list of indices as a set; add an issue for a value that is no index or past the end."""
    items = as_list(value)
    if not reader.expect(items is not None, field, "a list of token indices", value):
        return frozenset()
    indices = set()
    for item in items or ():
        index = _parse_index(item)
        if index is None:
            reader.expect(False, field, "token indices from 0", item)
            return frozenset()
        if size is not None and index >= size:
            reader.expect(False, field, f"an index within the {size} tokens", index, "range")
            return frozenset()
        indices.add(index)
    return frozenset(indices)


def _read_sequences(pair: RowPair) -> list[tuple[list[frozenset[int]], frozenset[int]]]:
    """Return the gold sets and the predicted set per sequence of one instance."""
    prediction, reference = pair.prediction, pair.reference
    golds, chosen = as_list(reference.row.get("rationale_ids")) or [], as_list(prediction.row.get("rationale"))
    value = reference.row.get("rationale_ids")
    if not reference.expect(bool(golds), "rationale_ids", "gold sets per sequence", value, "span-missing"):
        return []
    sound, what = chosen is not None and len(chosen) == len(golds), f"indices for {len(golds)} sequences"
    if not prediction.expect(sound, "rationale", what, prediction.row.get("rationale"), "length"):
        return []
    tokens = as_list(reference.row.get("tokens")) or []
    sizes = [len(sequence) if as_list(sequence) is not None else None for sequence in tokens]
    sizes = sizes if len(sizes) == len(golds) else [None] * len(golds)
    pairs = []
    for at, (sets, indices, size) in enumerate(zip(golds, chosen or (), sizes, strict=True)):
        field, alternatives = f"rationale_ids[{at}]", as_list(sets) or []
        if reference.expect(bool(alternatives), field, "at least one gold set", sets, "span-missing"):
            gold = [
                _parse_index_set(reference, f"{field}[{number}]", one, size) for number, one in enumerate(alternatives)
            ]
            pairs.append((gold, _parse_index_set(prediction, f"rationale[{at}]", indices, size)))
    return pairs


def _read_probabilities(reader: CellReader, field: str) -> dict[Any, float]:
    """Return {label or class number: probability}; {}, and an issue, for a wrong distribution."""
    value = reader.row[field]
    if isinstance(value, Mapping):
        pairs = [(label, p) for label, p in value.items() if p is not None]
    else:
        pairs = list(enumerate(as_list(value) or ()))
    numbers = {label: number for label, p in pairs if (number := as_number(p)) is not None and number >= 0}
    wrong = [p for label, p in pairs if p is not None and label not in numbers]
    sound = bool(pairs) and not wrong
    if not reader.expect(sound, field, "probabilities", wrong[0] if wrong else value, "probabilities"):
        return {}
    total = sum(numbers.values())
    if abs(total - 1) > PROBABILITY_SLACK:
        reader.add(field, f"expected probabilities that sum to 1, found a sum of {total:g}", "probabilities")
        return {}
    return numbers


def _score_labels(rows: Sequence[RowPair], fields: set[str]) -> dict[str, np.ndarray]:
    """Compute sufficiency, comprehensiveness, New-P and accuracies of each instance, as far as the fields allow."""
    present = [field for field in PROBABILITIES if field in fields]
    if not present:
        return {}
    missing = next((field for field in ("pred_proba", "pred_label") if field not in fields), None)
    if missing:
        rows[0].prediction.add(missing, f"expected it beside {present[-1]}, found none", "key-missing")
        return {}
    p = {field: np.full(len(rows), np.nan) for field in PROBABILITIES}  # of the predicted label
    classes = {field: np.full(len(rows), -1) for field in ("pred_label", *PROBABILITIES)}
    numbers: dict[Any, int] = {}
    for at, reader in enumerate(pair.prediction for pair in rows):
        label = as_scalar(reader.row["pred_label"])
        known = isinstance(label, (int, str)) and not isinstance(label, bool)
        if not reader.expect(known, "pred_label", "a class number or a label", label):
            continue
        classes["pred_label"][at] = numbers.setdefault(label, len(numbers))
        for field in present:
            scores, what = _read_probabilities(reader, field), f"a probability of the label {label!r}"
            if scores and reader.expect(label in scores, field, what, reader.row[field], "score-missing"):
                p[field][at] = scores[label]
                # the first of equal ones, like argmax
                best = max(scores, key=scores.__getitem__)
                classes[field][at] = numbers.setdefault(best, len(numbers))
    full, alone, rest = PROBABILITIES
    result = {
        key: p[full] - p[field]
        for key, field in (("sufficiency", alone), ("comprehensiveness", rest))
        if field in present
    }
    if len(present) == 3:
        result["new_p"] = new_p(classes["pred_label"], classes[alone], classes[rest]).astype(float)
    gold = [as_scalar(pair.reference.row.get("label")) for pair in rows]
    truth = np.array([numbers.get(label, -2) if isinstance(label, (int, str)) else -1 for label in gold])
    # labels by name and classes by number do not compare; -1 is "no label"
    real = np.array([type(label) in {*map(type, numbers)} and label != -1 for label in gold])
    for key, field in (("accuracy_rationale", alone), ("accuracy_no_rationale", rest)):
        if field in present and real.any():
            result[key] = np.where(real, truth == classes[field], np.nan)
    return result


def _score_answer_changes(rows: Sequence[RowPair], fields: set[str]) -> dict[str, np.ndarray]:
    """Compute New-P from answers in place of labels: strings are equal or not, as in the authors' code."""
    if not fields.issuperset(ERASED_ANSWERS) or fields & set(PROBABILITIES):
        return {}
    answers = np.full((len(rows), 3), "", dtype=object)
    for at, reader in enumerate(pair.prediction for pair in rows):
        for place, field in enumerate(("pred_label", *ERASED_ANSWERS)):
            answers[at, place] = answer = reader.row.get(field)
            reader.expect(isinstance(answer, str), field, "an answer (a string)", answer)
    full, alone, rest = answers.T
    return {"new_p": new_p(full, alone, rest).astype(float)}


def _find_answer_field(rows: Sequence[RowPair], fields: set[str]) -> str | None:
    """Return "pred_label" if labels are answers: strings without probabilities, and every reference has an answer."""
    if "pred_label" not in fields or fields & set(PROBABILITIES):
        return None
    texts = all(isinstance(pair.prediction.row["pred_label"], str) for pair in rows)
    golds = (pair.reference.row for pair in rows)
    return "pred_label" if texts and all(row.get("answer", row.get("answers")) is not None for row in golds) else None


def _score_answers(rows: Sequence[RowPair], fields: set[str], language: str | None) -> dict[str, np.ndarray]:
    """Compute the F1 of each instance's answer, if predictions have answers."""
    field = "answer" if "answer" in fields else _find_answer_field(rows, fields)
    if field is None:
        return {}
    scores = np.zeros(len(rows))
    for at, pair in enumerate(rows):
        answer, reference = pair.prediction.row[field], pair.reference.row
        gold = reference.get("answer") if reference.get("answers") is None else reference["answers"]
        golds = [gold] if isinstance(gold, str) else as_list(gold)
        known = golds is not None and all(isinstance(one, str) for one in golds)
        if pair.prediction.expect(isinstance(answer, str), field, "a string", answer) and pair.reference.expect(
            known, "answers", "the gold answers (strings)", gold
        ):
            scores[at] = answer_f1(answer, golds or (), language)
    return {"answer_f1": scores}


def _score_sets(rows: Sequence[RowPair], threshold: float, issues: Issues) -> dict[str, np.ndarray]:
    """Compute agreement with the gold sets, averaged over each instance's sequences; NaN without gold sets."""
    scores = np.full((len(rows), len(SETS)), np.nan)
    for at, pair in enumerate(rows):
        pairs = _read_sequences(pair) if pair.has_gold else []
        if pairs and not issues.total:
            scores[at] = np.mean([score_against_sets(gold, chosen, threshold) for gold, chosen in pairs], axis=0)
    return dict(zip(SETS, scores.T, strict=True))


def _describe_left_out(rows: Sequence[RowPair], scores: Mapping[str, np.ndarray]) -> list[str]:
    """Return lines on the scores and references that are left out, with the missing fields."""
    gold = sum(pair.has_gold for pair in rows)
    needs = {
        "token F1, IOU F1": (SETS[0], "rationale in the predictions" if gold else "rationale_ids in the references"),
        "sufficiency": ("sufficiency", "rationale_pred_proba"),
        "comprehensiveness": ("comprehensiveness", "non_rationale_pred_proba"),
    }
    listed = "; ".join(f"{words} (no {field})" for words, (key, field) in needs.items() if key not in scores)
    notes = [f"left out: {listed}"] if listed else []
    if SETS[0] in scores and gold < len(rows):
        notes.append(f"token F1 and IOU F1 leave out {len(rows) - gold:,} references without gold rationales")
    return notes


class RationaleSetAgreement(Batches, evaluate.Metric):  # type: ignore[misc]  # evaluate is untyped
    """Agreement of predicted rationales with human ones, if an input has several alternative gold sets of tokens.

    Token-F1 and IOU-F1 against the set, or union of sets, that fits the prediction best. With labels and probabilities
    also sufficiency, comprehensiveness and New-P; with answers also their F1.

    Args:
        predictions: rows {id, rationale}; rationale holds, per sequence of the input, the indices of the chosen
            tokens: [[index, ..], ..]. Optional, in all rows or in none: pred_label with pred_proba,
            rationale_pred_proba and non_rationale_pred_proba (a list of probabilities with a class number as
            label, or {label: probability}); answer (a string; "" for none; a pred_label that is a string,
            without probabilities, is one where the references have answers) with rationale_pred_label and
            non_rationale_pred_label, the answers to the rationale alone and to the rest, for new_p.
        references: rows {id, rationale_ids}; per sequence the alternative gold sets: [[[index, ..], ..], ..];
            with answers also answers (a list of strings) or answer; with labels also label. Rows of
            bilingual_perturbation are accepted as they are: those that say has_gold: False are left out of
            token F1 and IOU F1.
        iou_threshold: 0.5.
        language: "en", "zh" or None (by the text), for answer_f1.
        only_predicted: leave out references without a prediction; by default they are an error.
        paper: "wang2022": New-P is a share of all references, as in the authors' code; one without a prediction
            is a miss.
        per_instance: adds the scores of each instance.
        confidence_level, n_resamples, seed: add KEY_ci: [low, high], the BCa interval over instances.
        cluster_by: the rows that are drawn together: "auto" (those that share documents, or an original with its
            perturbed records), "none", or a column of the rows.
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
    HIGHER_IS_BETTER, RANGES = make_info(SCORES)

    def _measure(
        self,
        predictions: Sequence[Row] | None,
        references: Sequence[Row] | None,
        iou_threshold: float = 0.5,
        language: str | None = None,
        only_predicted: bool = False,
        paper: str | None = None,
    ) -> Measured:
        """Compute per instance the sum of each score (0 or one number), and the count of numbers."""
        threshold = float(iou_threshold)
        if not 0 < threshold <= 1:
            raise InputError(f"expected a number in (0, 1], found {iou_threshold!r}", "option-value", "iou_threshold")
        if language not in (None, "en", "zh"):
            raise InputError(f"expected 'en', 'zh' or None, found {language!r}", "option-value", "language")
        check_paper(paper, WANG2022)
        issues = Issues()
        joint = joined(predictions, references, issues, only_predicted or paper == WANG2022)
        optional = ("rationale", "pred_label", *PROBABILITIES, *ERASED_ANSWERS, "answer")
        fields = find_optional_fields([(name, row) for name, row, _ in joint], optional, issues)
        issues.raise_if_any()
        rows = [
            RowPair(CellReader(row, name, issues), CellReader(reference, name, issues, "reference"))
            for name, row, reference in joint
        ]
        with_sets = "rationale" in fields and any(pair.has_gold for pair in rows)
        scores = _score_sets(rows, threshold, issues) if with_sets else {}
        scores |= _score_labels(rows, fields)
        scores |= _score_answer_changes(rows, fields)
        scores |= _score_answers(rows, fields, language)
        issues.raise_if_any()
        if not scores and "rationale" in fields:
            raise InputError("nothing to score: expected rationale_ids in a row, found none", "empty", "references")
        if not scores:
            expected = "rationale, pred_label with pred_proba and rationale_pred_proba, or answer"
            message = f"nothing to score: expected {expected}, found none of them"
            raise InputError(message, "score-missing", "predictions")
        names = [name for name, _, _ in joint]
        named = index_by_id(references or (), "reference", Issues())
        missed = [name for name in named if name not in {*names}] if paper == WANG2022 else []
        settings: dict[str, object] = {"iou": threshold}
        if "answer_f1" in scores:
            settings["answers"] = language or "by text"
        settings |= {"paper": paper} if paper else describe_scored(len(joint), len(references or ()))
        builder = StatisticsBuilder(len(names) + len(missed))
        for key, column in scores.items():
            # references without a prediction have New-P 0, and no other score
            builder.add_mean(key, np.append(column, np.full(len(missed), 0.0 if key == "new_p" else np.nan)))
        columns = RowColumns([*([reference, row] for _, row, reference in joint), *([named[name]] for name in missed)])
        return Measured(
            builder.statistics([*names, *missed]), columns, settings, notes=_describe_left_out(rows, scores)
        )
