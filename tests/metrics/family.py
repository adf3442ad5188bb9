"""Inputs of the seven modules, made up at random, for the tests of what they have in common."""

from __future__ import annotations

import numpy as np

from eraser_hub.metrics.annotator_agreement import AnnotatorAgreement
from eraser_hub.metrics.eraser_agreement import EraserAgreement
from eraser_hub.metrics.eraser_faithfulness import EraserFaithfulness
from eraser_hub.metrics.normalized_fidelity import NormalizedFidelity
from eraser_hub.metrics.perturbation_map import PerturbationMap
from eraser_hub.metrics.quote_faithfulness import QuoteFaithfulness
from eraser_hub.metrics.rationale_set_agreement import RationaleSetAgreement

from .eraser_rows import random_case

MODULES = {
    "eraser_agreement": EraserAgreement,
    "eraser_faithfulness": EraserFaithfulness,
    "perturbation_map": PerturbationMap,
    "rationale_set_agreement": RationaleSetAgreement,
    "normalized_fidelity": NormalizedFidelity,
    "annotator_agreement": AnnotatorAgreement,
    "quote_faithfulness": QuoteFaithfulness,
}


def draw_distribution(random: np.random.Generator) -> list[float]:
    p = float(random.uniform(0.05, 0.95))
    return [p, 1 - p]


def made_up(name: str, n: int = 8, seed: int = 0) -> tuple[list[dict], list[dict] | None]:
    """(predictions, references) of n instances, valid for the metric."""
    random = np.random.default_rng(seed)
    groups = ["x", "y", "z"]

    if name.startswith("eraser"):
        predictions, references = random_case(seed, n)
        return predictions, [{**row, "group": groups[at % 3]} for at, row in enumerate(references)]
    if name == "perturbation_map":
        predictions, references = [], []
        for at in range(n):
            others = [f"{at}p{k}" for k in range(1 + at % 2)]
            references.append({"id": at, "sample_type": "ori", "rel_ids": others, "group": groups[at % 3]})
            references += [{"id": one, "sample_type": "disturb", "rel_ids": None, "group": "p"} for one in others]
            for one in (at, *others):
                size = int(random.integers(1, 12))
                predictions.append({"id": one, "rationale_tokens": [[f"w{k}" for k in random.integers(0, 6, size)]]})
        return predictions, references
    if name == "rationale_set_agreement":
        predictions, references = [], []
        for at in range(n):
            sets = [[str(k) for k in sorted({int(k) for k in random.integers(0, 9, 3)})] for _ in range(1 + at % 3)]
            references.append(
                {"id": at, "rationale_ids": [sets, sets[:1]], "group": groups[at % 3], "answer": "the north"}
            )
            chosen = [[int(k) for k in random.integers(0, 9, 4)] for _ in range(2)]
            full, alone, rest = (draw_distribution(random) for _ in range(3))
            row = {"id": at, "rationale": chosen, "pred_label": int(full[1] > full[0]), "answer": "north"[at % 2 :]}
            proba = {"pred_proba": full, "rationale_pred_proba": alone, "non_rationale_pred_proba": rest}
            predictions.append(row | proba)
        return predictions, references
    if name == "quote_faithfulness":
        predictions, references = [], []
        for at in range(n):
            start = int(random.integers(0, 5))
            place = {"docid": f"d{at}", "start_token": start, "end_token": start + 2, "similarity": 1.0}
            quotes = [{"text": "w w", "status": "exact", **place}, {"text": "x", "status": "not_found"}][: 1 + at % 2]
            predictions.append({"annotation_id": at, "quotes": quotes, "outcome": "answered"})
            document = {"docid": f"d{at}", "text": "w " * (8 + at)}
            evidence = {"docid": f"d{at}", "start_token": 0, "end_token": 1}
            references.append(
                {"annotation_id": at, "documents": [document], "evidences": [[evidence]], "group": groups[at % 3]}
            )
        return predictions, references
    if name == "normalized_fidelity":
        keys = ("p_full", "p_rationale", "p_complement", "p_empty")
        return [
            {"annotation_id": at, "group": groups[at % 3], **{key: float(random.uniform()) for key in keys}}
            for at in range(n)
        ], None
    rows = []
    for at in range(n):
        marks = random.integers(0, 2, size=(2 + at % 2, 5 + at)).tolist()
        rows.append({"annotation_id": at, "group": groups[at % 3], "annotators": marks})
    return rows, None
