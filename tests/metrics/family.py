"""Inputs of the seven modules, made up at random, for the tests of what they have in common."""

from __future__ import annotations

from typing import Any

import numpy as np

from eraser_hub.metrics.annotator_agreement import AnnotatorAgreement
from eraser_hub.metrics.eraser_agreement import EraserAgreement
from eraser_hub.metrics.eraser_faithfulness import EraserFaithfulness
from eraser_hub.metrics.normalized_fidelity import NormalizedFidelity
from eraser_hub.metrics.perturbation_map import PerturbationMap
from eraser_hub.metrics.quote_faithfulness import QuoteFaithfulness
from eraser_hub.metrics.rationale_set_agreement import RationaleSetAgreement

from .eraser_rows import Rows, random_case

MODULES = {
    "eraser_agreement": EraserAgreement,
    "eraser_faithfulness": EraserFaithfulness,
    "perturbation_map": PerturbationMap,
    "rationale_set_agreement": RationaleSetAgreement,
    "normalized_fidelity": NormalizedFidelity,
    "annotator_agreement": AnnotatorAgreement,
    "quote_faithfulness": QuoteFaithfulness,
}


def make_row(name: str, at: int, random: np.random.Generator) -> tuple[dict[str, Any], dict[str, Any]]:
    """Prediction and reference of one instance, but for the two modules of ERASER and pairs."""

    def draw() -> list[float]:
        p = float(random.uniform(0.05, 0.95))
        return [p, 1 - p]

    if name == "normalized_fidelity":
        return dict(zip(("p_full", "p_rationale", "p_complement", "p_empty"), draw() + draw(), strict=True)), {}
    if name == "annotator_agreement":
        return {"annotators": random.integers(0, 2, size=(2 + at % 2, 5 + at)).tolist()}, {}
    if name == "rationale_set_agreement":
        sets = [[str(k) for k in sorted({int(k) for k in random.integers(0, 9, 3)})] for _ in range(1 + at % 3)]
        full = draw()
        prediction = {"rationale": random.integers(0, 9, (2, 4)).tolist(), "pred_label": int(full[1] > full[0])}
        prediction |= {"pred_proba": full, "rationale_pred_proba": draw(), "non_rationale_pred_proba": draw()}
        return prediction | {"answer": "north"[at % 2 :]}, {"rationale_ids": [sets, sets[:1]], "answer": "the north"}
    start, docid = int(random.integers(0, 5)), f"d{at}"
    found = {"text": "w w", "status": "exact", "docid": docid, "start_token": start, "end_token": start + 2}
    quotes = [{**found, "similarity": 1.0}, {"text": "x", "status": "not_found"}][: 1 + at % 2]
    evidence = {"docid": docid, "start_token": 0, "end_token": 1}
    reference = {"documents": [{"docid": docid, "text": "w " * (8 + at)}], "evidences": [[evidence]]}
    return {"quotes": quotes, "outcome": "answered"}, reference


def made_up(name: str, n: int = 8, seed: int = 0) -> tuple[Rows, Rows | None]:
    """(predictions, references) of n instances, valid for the metric."""
    random = np.random.default_rng(seed)
    predictions, references = random_case(seed, n) if name.startswith("eraser") else ([], [])
    for row, group in zip(references, "xyz" * n, strict=False):
        row["group"] = group
    if predictions:
        return predictions, references
    for at in range(n):
        if name == "perturbation_map":
            others = [f"{at}p{k}" for k in range(1 + at % 2)]
            references.append({"id": at, "sample_type": "ori", "rel_ids": others, "group": "xyz"[at % 3]})
            references += [{"id": one, "sample_type": "disturb", "rel_ids": None, "group": "p"} for one in others]
            for one in (at, *others):
                tokens = [f"w{k}" for k in random.integers(0, 6, int(random.integers(1, 12)))]
                predictions.append({"id": one, "rationale_tokens": [tokens]})
            continue
        field = "id" if name == "rationale_set_agreement" else "annotation_id"
        prediction, reference = make_row(name, at, random)
        predictions.append({field: at, **prediction, **({} if reference else {"group": "xyz"[at % 3]})})
        references.append({field: at, **reference, "group": "xyz"[at % 3]})
    return predictions, None if name in ("normalized_fidelity", "annotator_agreement") else references
