"""The other side of the scoring benchmark: the same scores, written plainly.

Sets of spans and tokens, one scikit-learn call per document and measure, json.loads per line, documents split into
tokens: what one writes without thinking of speed.
"""

from __future__ import annotations

import json
import warnings
from collections import defaultdict
from pathlib import Path

import numpy as np


def _lines(path: Path) -> list[dict]:
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def _documents(folder: Path, docids: set[str]) -> dict[str, list[list[str]]]:
    def split(text: str) -> list[list[str]]:
        return [[token for token in line.split(" ") if token] for line in text.split("\n") if line]

    if (folder / "docs.jsonl").exists():
        return {record["docid"]: split(record["document"]) for record in _lines(folder / "docs.jsonl")}
    return {docid: split((folder / "docs" / docid).read_text(encoding="utf-8")) for docid in docids}


def _f1(p: float, r: float) -> float:
    return 0.0 if p == 0 or r == 0 else 2 * p * r / (p + r)


def _by_key(spans: set[tuple]) -> dict[tuple, set[tuple]]:
    found: dict[tuple, set[tuple]] = defaultdict(set)
    for span in spans:
        found[span[:2]].add(span)
    return found


def _prf(truth: set[tuple], predicted: set[tuple]) -> dict[str, dict[str, float]]:
    p, r = len(truth & predicted) / len(predicted), len(truth & predicted) / len(truth)
    of_truth, of_predicted = _by_key(truth), _by_key(predicted)
    ps, rs, fs = [], [], []
    for key in of_truth.keys() | of_predicted.keys():
        hits = len(of_truth[key] & of_predicted[key])
        ps.append(hits / len(of_predicted[key]) if of_predicted[key] else 0.0)
        rs.append(hits / len(of_truth[key]) if of_truth[key] else 0.0)
        fs.append(_f1(ps[-1], rs[-1]))
    macro = {name: float(np.mean(values)) for name, values in (("p", ps), ("r", rs), ("f1", fs))}
    return {"instance_micro": {"p": p, "r": r, "f1": _f1(p, r)}, "instance_macro": macro}


def _iou(truth: set[tuple], predicted: set[tuple], threshold: float) -> dict[str, dict[str, float]]:
    of_truth, of_predicted = _by_key(truth), _by_key(predicted)
    hits: dict[tuple, int] = defaultdict(int)
    for key in of_truth.keys() | of_predicted.keys():
        for _, _, start, end in of_predicted[key]:
            best = 0.0
            for _, _, first, last in of_truth[key]:
                tokens, others = set(range(start, end)), set(range(first, last))
                best = max(best, len(tokens & others) / len(tokens | others))
            hits[key] += best >= threshold
    total = sum(hits.values())
    p, r = total / len(predicted), total / len(truth)
    macro_p = float(np.mean([hits[key] / len(spans) for key, spans in of_predicted.items() if spans]))
    macro_r = float(np.mean([hits[key] / len(spans) for key, spans in of_truth.items() if spans]))
    macro = {"p": macro_p, "r": macro_r, "f1": _f1(macro_p, macro_r)}
    return {"micro": {"p": p, "r": r, "f1": _f1(p, r)}, "macro": macro}


def _soft(instances: list[dict], annotations: list[dict], tokens: dict[str, int]) -> dict[str, float]:
    from sklearn.metrics import auc, average_precision_score, precision_recall_curve, roc_auc_score

    truth: dict[tuple, list[bool]] = {}
    for annotation in annotations:
        for group in annotation["evidences"]:
            for evidence in group:
                key = (annotation["annotation_id"], evidence["docid"])
                marks = truth.setdefault(key, [False] * tokens[evidence["docid"]])
                for token in range(evidence["start_token"], evidence["end_token"]):
                    marks[token] = True
    areas, precisions, rocs = [], [], []
    for instance in instances:
        for rationale in instance["rationales"]:
            docid, scores = rationale["docid"], rationale["soft_rationale_predictions"]
            marks = truth.get((instance["annotation_id"], docid), [False] * tokens[docid])
            if len(scores) != len(marks):
                raise ValueError("lengths differ")
            y = [int(mark) for mark in marks]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                precision, recall, _ = precision_recall_curve(y, scores)
            areas.append(auc(recall, precision))
            if any(marks) and not all(marks):
                precisions.append(average_precision_score(y, scores))
                rocs.append(roc_auc_score(y, scores))
    values = {"auprc": areas, "average_precision": precisions, "roc_auc_score": rocs}
    return {name: float(np.mean(column)) for name, column in values.items()}


def _classes(instances: list[dict], annotations: list[dict]) -> dict[str, object]:
    from scipy.stats import entropy
    from sklearn.metrics import accuracy_score, classification_report

    by_id = {instance["annotation_id"]: instance for instance in instances}
    truth = [annotation["classification"] for annotation in annotations]
    predicted = [by_id[annotation["annotation_id"]]["classification"] for annotation in annotations]
    result: dict[str, object] = {"accuracy": float(accuracy_score(truth, predicted))}
    result["prf"] = classification_report(truth, predicted, output_dict=True, zero_division=0)
    for side in ("comprehensiveness", "sufficiency"):
        drops, entropies, divergences, curves = [], [], [], []
        for instance in instances:
            label, full = instance["classification"], instance["classification_scores"]
            erased = instance[f"{side}_classification_scores"]
            drops.append(full[label] - erased[label])
            entropies.append(entropy(list(full.values())) - entropy(list(erased.values())))
            divergences.append(entropy([erased[name] for name in full], list(full.values())))
            if "thresholded_scores" in instance:
                entries = instance["thresholded_scores"]
                curves.append([full[label] - entry[f"{side}_classification_scores"][label] for entry in entries])
        result[side] = float(np.mean(drops))
        result[f"{side}_entropy"], result[f"{side}_kl"] = float(np.mean(entropies)), float(np.mean(divergences))
        if curves:
            result[f"{side}_aopc"] = float(np.mean(curves))
            result[f"{side}_aopc_points"] = np.mean(curves, axis=0).tolist()
    return result


def score(folder: Path, split: str, results: Path, thresholds: tuple[float, ...]) -> dict[str, object]:
    """Scores of a prediction file, in the reference scorer's keys."""
    instances, annotations = _lines(results), _lines(folder / f"{split}.jsonl")
    docids = {rationale["docid"] for instance in instances for rationale in instance["rationales"]}
    docids |= {evidence["docid"] for one in annotations for group in one["evidences"] for evidence in group}
    tokens = {docid: sum(map(len, lines)) for docid, lines in _documents(folder, docids).items()}
    truth = {
        (one["annotation_id"], evidence["docid"], evidence["start_token"], evidence["end_token"])
        for one in annotations
        for group in one["evidences"]
        for evidence in group
    }
    predicted = {
        (one["annotation_id"], rationale["docid"], span["start_token"], span["end_token"])
        for one in instances
        for rationale in one["rationales"]
        for span in rationale["hard_rationale_predictions"]
    }

    def flat(spans: set[tuple]) -> set[tuple]:
        return {(name, docid, token) for name, docid, start, end in spans for token in range(start, end)}

    return {
        "classification_scores": _classes(instances, annotations),
        "iou_scores": [{"threshold": threshold, **_iou(truth, predicted, threshold)} for threshold in thresholds],
        "rationale_prf": _prf(truth, predicted),
        "token_prf": _prf(flat(truth), flat(predicted)),
        "token_soft_metrics": _soft(instances, annotations, tokens),
    }
