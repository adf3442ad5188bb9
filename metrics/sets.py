"""Predicted tokens against alternative gold sets; labels and answers on the rationale alone and on the rest.

Sources: Wang et al. (2022), "A Fine-grained Interpretability Evaluation Benchmark for Neural NLP", equations 1 and 3;
answers: SQuAD (Rajpurkar et al., 2016) for English; CMRC 2018 (Cui et al., 2019) and DuReader for Chinese.
"""

from __future__ import annotations

import string
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from difflib import SequenceMatcher
from typing import Any

import numpy as np

from .errors import DataError, check_choice, cut
from .map import PAPERS, PERTURBATION_ROW, check_rows, cluster_originals
from .rows import index_rows, join_rows
from .statistics import Measured, Score, Statistics, mean, mean_columns

Rows = Mapping[str, Mapping[str, Any]]  # by id, checked
FULL, ALONE, REST = "pred_proba", "rationale_pred_proba", "non_rationale_pred_proba"
# the probabilities on an input -> the answer on it
INPUTS = {FULL: "pred_label", ALONE: "rationale_pred_label", REST: "non_rationale_pred_label"}
SUM_SLACK = 1e-3  # of probabilities
GOLD_RECORD = {"rationale_ids": [[[(str, int)]]], "tokens": [[str]], "rel_ids": [(str, int)], "label": (str, int)}
GOLD_RECORD |= {"answer": str, "answers": [str]}
LANGUAGES = ("en", "zh")
SET_SCORES = {
    "token_f1": Score(mean("token_f1")),
    "token_f1_single": Score(mean("token_f1_single")),
    "iou_f1": Score(mean("iou_f1"), units="iou_f1.count"),
    "sufficiency": Score(mean("sufficiency"), higher_is_better=False, low=-1.0),
    "comprehensiveness": Score(mean("comprehensiveness"), low=-1.0),
    "new_p": Score(mean("new_p"), units="new_p.count"),
    "accuracy_rationale": Score(mean("accuracy_rationale"), units="accuracy_rationale.count"),
    "accuracy_no_rationale": Score(mean("accuracy_no_rationale"), False, units="accuracy_no_rationale.count"),
    "answer_f1": Score(mean("answer_f1")),
}


def set_f1(truth: Set[int], predicted: Set[int]) -> float:
    """Return 2 abs(truth & predicted) / (abs(truth) + abs(predicted)); 0 if a side is empty."""
    return 2 * len(truth & predicted) / max(len(truth) + len(predicted), 1)


def find_truth(gold_sets: Sequence[Set[int]], predicted: Set[int]) -> Set[int]:
    """Find the gold tokens to compare a prediction with.

    A single gold set is the truth. Among several it is the set with the best F1 (the first of equals), or a union with
    a better one. A union starts at each set but the last and walks the sets in order: a set that overlaps the
    prediction, is not yet contained in the union and raises its F1 joins it. Without any overlap the truth is empty.

    Args:
        gold_sets: at least one set of token indices.
        predicted: token indices.

    >>> sorted(find_truth([{1, 2}, {4, 5}, {8}], {1, 2, 4}))
    [1, 2, 4, 5]
    """
    if len(gold_sets) == 1:
        return gold_sets[0]
    candidates = list(gold_sets)
    for start in range(len(gold_sets) - 1):
        union: Set[int] = frozenset()
        for gold in gold_sets[start:]:
            if gold & predicted and not gold <= union and set_f1(union | gold, predicted) > set_f1(union, predicted):
                union = union | gold
        candidates.append(union)
    best = max(candidates, key=lambda gold: set_f1(gold, predicted))
    return best if best & predicted else frozenset()


def split_answer(answer: str, language: str) -> list[str]:
    """Return the units of an answer, in lower case and without punctuation.

    English: words between blanks, without the articles a, an, the. Chinese: each Chinese character alone, and each run
    of other letters and digits.

    >>> split_answer("The Normans' north.", "en"), split_answer("在2008年，NBA！", "zh")
    (['normans', 'north'], ['在', '2008', '年', 'nba'])
    """
    if language == "en":
        kept = "".join(character for character in answer.lower() if character not in string.punctuation)
        return [word for word in kept.split() if word not in ("a", "an", "the")]
    blank = {character: " " for character in answer.lower() if unicodedata.category(character)[0] in "PSCZ"}
    alone = (blank.get(each, f" {each} " if is_chinese(each) else each) for each in answer.lower())
    return "".join(alone).split()


def is_chinese(character: str) -> bool:
    """Return True if a character is a Chinese one (CJK ideographs and their extensions)."""
    return any(low <= ord(character) <= high for low, high in ((0x3400, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x323AF)))


def answer_f1(predicted: str, golds: str | Sequence[str], language: str | None = None) -> float:
    """Return the best F1 of a predicted answer over the gold answers, in [0, 1].

    English: F1 of the two bags of words. Chinese: F1 of the longest common run of units.

    Args:
        predicted: the answer; "" for none.
        golds: one gold answer or several; "" (or none at all) where the question has no answer, and then a prediction
            without units scores 1 and any other 0.
        language: "en", "zh", or None: Chinese if a text holds a Chinese character.

    Raises:
        DataError: an unknown language.

    >>> answer_f1("in the north", ["north of France", "the north"])
    0.6666666666666666
    >>> answer_f1("北京市", "北京")
    0.8
    """
    golds = [golds] if isinstance(golds, str) else list(golds) or [""]
    if language is None:
        language = "zh" if any(map(is_chinese, "".join([predicted, *golds]))) else "en"
    check_choice(language, LANGUAGES, "language")
    ours, scores = split_answer(predicted, language), []
    for theirs in (split_answer(gold, language) for gold in golds):
        common = (Counter(ours) & Counter(theirs)).total()
        if language == "zh":
            common = SequenceMatcher(None, ours, theirs, autojunk=False).find_longest_match().size
        scores.append(2 * common / (len(ours) + len(theirs)) if ours and theirs else float(ours == theirs))
    return max(scores)


def read_indices(indices: Sequence[int | str], size: int, name: str, field: str) -> frozenset[int]:
    """Return token indices, whole numbers or strings of digits as in gold files, as a set.

    Args:
        indices: the indices.
        size: the number of tokens.
        name: the row's id, for errors.
        field: the field, for errors.

    Raises:
        DataError: something else, or an index outside the tokens.
    """
    for index in map(str, indices):
        if not (index.isascii() and index.isdecimal() and len(index) < 10 and int(index) < size):
            raise DataError(f"expected token indices from 0 to {size - 1}, found {index}", instance=name, field=field)
    return frozenset(map(int, indices))


def score_sets(rows: Rows, records: Rows, threshold: float) -> dict[str, np.ndarray]:
    """Return the agreement with gold sets, means over each row's sequences: {key: (n,)}; NaN without gold sets.

    Raises:
        DataError: another number of sequences, a sequence without a gold set, or an index outside the tokens.
    """
    scores = np.full((3, len(rows)), np.nan)
    for at, (name, row) in enumerate(rows.items()):
        golds, chosen, tokens = records[name].get("rationale_ids"), row["rationale"], records[name].get("tokens", ())
        if not golds:
            continue
        if not all(golds) or len(chosen) != len(golds):
            message = f"expected the tokens of each sequence that has gold sets, found {cut(chosen)} for {cut(golds)}"
            raise DataError(message, instance=name, field="rationale")
        sizes = list(map(len, tokens)) if len(tokens) == len(golds) else [10**9] * len(golds)
        sequences = []
        for number, size in enumerate(sizes):
            predicted = read_indices(chosen[number], size, name, f"rationale[{number}]")
            gold_sets = [read_indices(gold, size, name, f"rationale_ids[{number}]") for gold in golds[number]]
            truth = find_truth(gold_sets, predicted)
            hit = len(truth & predicted) >= threshold * max(len(truth | predicted), 1)
            sequences.append((set_f1(truth, predicted), max(set_f1(gold, predicted) for gold in gold_sets), hit))
        scores[:, at] = np.mean(sequences, axis=0)
    return dict(zip(("token_f1", "token_f1_single", "iou_f1"), scores, strict=True))


def read_outputs(rows: Rows) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Return what a model says of the inputs that the rows have: the full one, the rationale alone, and the rest.

    Returns:
        The probability of the predicted label on each input, float64 (n,), empty for answers; and the label or the
        answer on each input, strings (n,).

    Raises:
        DataError: a predicted label or its probabilities are missing, or probabilities are wrong.
    """
    name, first = next(iter(rows.items()))
    fields = [field for field in INPUTS if field in first]
    if not fields:
        answers = {field: answer for field, answer in INPUTS.items() if answer in first}
        said = {field: [str(row[answer]) for row in rows.values()] for field, answer in answers.items()}
        return {}, {field: np.array(texts, object) for field, texts in said.items()}
    for field in ("pred_label", FULL):
        if field not in first:
            raise DataError(f"expected it beside {fields[-1]}, found none", instance=name, field=field)
    p = {field: np.zeros(len(rows)) for field in fields}
    outputs = {field: np.full(len(rows), "", object) for field in fields}
    for at, (name, row) in enumerate(rows.items()):
        label = outputs[FULL][at] = str(row["pred_label"])
        for field in fields:
            cells = dict(enumerate(row[field])) if isinstance(row[field], list) else row[field]
            scores = {str(key): value for key, value in cells.items()} if isinstance(cells, dict) else {}
            sound = all(type(value) in (int, float) and value >= 0 for value in scores.values())
            if not sound or not abs(sum(scores.values()) - 1) <= SUM_SLACK or label not in scores:
                message = f"expected probabilities that sum to 1, with one of label {label!r}, found {cut(row[field])}"
                raise DataError(message, instance=name, field=field)
            p[field][at] = scores[label]
            if field != FULL:
                outputs[field][at] = max(scores, key=scores.__getitem__)
    return p, outputs


def score_labels(rows: Rows, records: Rows) -> dict[str, np.ndarray]:
    """Return sufficiency, comprehensiveness, New-P and accuracies of each row, as far as it has fields: {key: (n,)}.

    New-P is 1 where label(rationale) = label(full) != label(rest), for answers likewise.
    """
    p, outputs = read_outputs(rows)
    sides = {"sufficiency": ALONE, "comprehensiveness": REST}
    values = {key: p[FULL] - p[field] for key, field in sides.items() if field in p}
    if len(outputs) == 3:
        values["new_p"] = ((outputs[ALONE] == outputs[FULL]) & (outputs[REST] != outputs[FULL])).astype(float)
    gold = [str(records[name].get("label", -1)) for name in rows]
    # numbers do not compare with names; -1 is no label
    known = [a != "-1" and a.isdecimal() == b.isdecimal() for a, b in zip(gold, outputs.get(FULL, gold), strict=True)]
    for key, field in (("accuracy_rationale", ALONE), ("accuracy_no_rationale", REST)):
        if field in p and any(known):
            values[key] = np.where(known, outputs[field] == np.array(gold, object), np.nan)
    return values


def score_answers(rows: Rows, records: Rows, language: str | None) -> dict[str, np.ndarray]:
    """Return the F1 of each row's answer, if it has one: {"answer_f1": (n,)}.

    An answer is the field ``answer``, or a ``pred_label`` that is a string where every reference has answers.

    Raises:
        DataError: a reference without answers.
    """
    golds = {name: records[name].get("answers", records[name].get("answer")) for name in rows}
    if any("answer" in row for row in rows.values()):
        missing = next((name for name, gold in golds.items() if gold is None), None)
        if missing is not None:
            raise DataError("expected the gold answers (strings), found none", instance=missing, field="answers")
    elif None in golds.values() or any(type(row.get("pred_label")) is not str or FULL in row for row in rows.values()):
        return {}
    found = [answer_f1(row.get("answer", row.get("pred_label")), golds[name], language) for name, row in rows.items()]
    return {"answer_f1": np.array(found)}


def measure_sets(
    predictions: Sequence[Mapping[str, Any]],
    references: Sequence[Mapping[str, Any]],
    iou_threshold: float = 0.5,
    language: str | None = None,
    only_predicted: bool = False,
    paper: str | None = None,
) -> Measured:
    """Measure agreement with gold sets, and labels and answers on the rationale alone and on the rest.

    Args:
        predictions: rows {id, rationale}, or with other fields of the module.
        references: rows {id, rationale_ids}, likewise.
        iou_threshold: in (0, 1].
        language: of answers, "en" or "zh"; None: by the text.
        only_predicted: leave out references without a prediction.
        paper: "wang2022": New-P is a share of all references; one without a prediction is a miss.

    Raises:
        DataError: wrong rows or settings, a prediction that is missing, or nothing to score.
    """
    settings: dict[str, object] = {} if paper is None else {"paper": check_choice(paper, PAPERS, "paper")}
    if not 0 < iou_threshold <= 1:
        raise DataError(f"expected a number in (0, 1], found {iou_threshold!r}", argument="iou_threshold")
    settings |= {"iou": iou_threshold} if iou_threshold != 0.5 else {}
    settings |= {} if language is None else {"language": check_choice(language, LANGUAGES, "language")}
    listed = index_rows(references, "references")
    cells = {name: {field: row.get(field) for field in GOLD_RECORD} for name, row in listed.items()}
    records = check_rows(cells, GOLD_RECORD)
    joined = {name: row for name, row, _ in join_rows(predictions, references, only_predicted or paper is not None)}
    rows = check_rows(joined, PERTURBATION_ROW, ("rationale", *INPUTS, *INPUTS.values(), "answer"))
    unmarked = sum(not records[name].get("rationale_ids") for name in rows)
    marked = any("rationale" in row for row in rows.values())
    values = score_sets(rows, records, iou_threshold) if marked and unmarked < len(rows) else {}
    values |= score_labels(rows, records) | score_answers(rows, records, language)
    if not values:
        fields = "rationale (and rationale_ids in the references), pred_label with pred_proba, or answer"
        raise DataError(f"nothing to score: expected {fields}, found none of them", argument="predictions")
    notes = [] if marked else ["token and IOU F1 are left out: the predictions have no rationale"]
    if marked and unmarked:
        notes = [f"token and IOU F1 leave out references without rationale_ids: {unmarked:,}"]
    ids = list(rows)
    if paper is not None:
        ids += [name for name in records if name not in rows]
    elif len(rows) < len(records):
        settings["scored"] = f"{len(rows)}/{len(records)}"
    columns: dict[str, np.ndarray] = {}
    for key, column in values.items():
        missed = np.full(len(ids) - len(rows), 0.0 if key == "new_p" else np.nan)
        columns |= mean_columns(key, np.append(column, missed))
    scores = {key: score for key, score in SET_SCORES.items() if key in values}
    clusters = cluster_originals({name: records[name] for name in ids})
    return Measured(Statistics(ids, columns, scores, *clusters), settings, notes=notes)
