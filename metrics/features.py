"""What each module's predictions and references are, as ``features`` of its information say it.

They hold all fields that a module knows; which of them have to be there, and how else they may come, its description says.
Nothing is converted by them: `batches` keeps what comes in flat arrays, and checks it itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import datasets

from .fields import LEAVE_ONE_OUT, NUMBER_FIELDS

TEXT, WHOLE, NUMBER, FLAG = (datasets.Value(kind) for kind in ("string", "int64", "float64", "bool"))
# {label: probability}: labels are each dataset's own, and a struct would have to name them (datasets before 4.1 has no Json)
BY_LABEL = datasets.Json() if hasattr(datasets, "Json") else TEXT

_ERASED = {
    "comprehensiveness_classification_scores": BY_LABEL,
    "sufficiency_classification_scores": BY_LABEL,
}
_SPAN = {"start_token": WHOLE, "end_token": WHOLE}
_RATIONALE = {
    "docid": TEXT,
    "hard_rationale_predictions": [_SPAN],
    "soft_rationale_predictions": [NUMBER],
    "soft_sentence_predictions": [NUMBER],
}
_EVIDENCE = {"docid": TEXT, **_SPAN, "start_sentence": WHOLE, "end_sentence": WHOLE}
_ANNOTATION = {
    "annotation_id": TEXT,
    "classification": TEXT,
    "documents": [{"docid": TEXT, "text": TEXT}],
    "evidences": [[_EVIDENCE]],
}
_OBJECTS = {number.path[0] for number in NUMBER_FIELDS.values() if len(number.path) > 1}
_FAITHFULNESS = {
    "annotation_id": TEXT,
    "classification": TEXT,
    "classification_scores": BY_LABEL,
    **_ERASED,
    "thresholded_scores": [{"threshold": NUMBER, **_ERASED}],
    "random_rationales": [_ERASED],
    LEAVE_ONE_OUT: [NUMBER],
    **{number.path[0]: NUMBER for number in NUMBER_FIELDS.values() if len(number.path) == 1},
    **{
        name: {number.path[1]: NUMBER for number in NUMBER_FIELDS.values() if number.path[0] == name}
        for name in sorted(_OBJECTS)
    },
    "rationales": [_RATIONALE],
}
_QUOTE = {"text": TEXT, "status": TEXT, "docid": TEXT, **_SPAN, "similarity": NUMBER}
_PROBABILITIES = ("p_full", "p_rationale", "p_complement", "p_empty")

FEATURES: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "eraser_agreement": {
        "predictions": {"annotation_id": TEXT, "rationales": [_RATIONALE]},
        "references": _ANNOTATION,
    },
    "eraser_faithfulness": {"predictions": _FAITHFULNESS, "references": _ANNOTATION},
    "normalized_fidelity": {
        "predictions": {
            "annotation_id": TEXT,
            **dict.fromkeys(_PROBABILITIES, NUMBER),
            "occlusion_rate": NUMBER,
            "trial": WHOLE,
        },
        "references": {"annotation_id": TEXT},
    },
    "perturbation_map": {
        "predictions": {"id": TEXT, "rationale_tokens": [[TEXT]], "kd": [NUMBER], "ranked_tokens": [[TEXT]]},
        "references": {"id": TEXT, "sample_type": TEXT, "rel_ids": [TEXT]},
    },
    "rationale_set_agreement": {
        "predictions": {
            "id": TEXT,
            "rationale": [[WHOLE]],
            "pred_label": WHOLE,
            "pred_proba": [NUMBER],
            "rationale_pred_proba": [NUMBER],
            "non_rationale_pred_proba": [NUMBER],
            "answer": TEXT,
            "rationale_pred_label": TEXT,
            "non_rationale_pred_label": TEXT,
        },
        "references": {
            "id": TEXT,
            "rationale_ids": [[[WHOLE]]],
            "label": WHOLE,
            "answer": TEXT,
            "answers": [TEXT],
            "has_gold": FLAG,
        },
    },
    "annotator_agreement": {
        "predictions": {"annotation_id": TEXT, "annotators": [[WHOLE]]},
        "references": {"annotation_id": TEXT, "annotators": [[WHOLE]]},
    },
    "quote_faithfulness": {
        "predictions": {
            "annotation_id": TEXT,
            "quotes": [_QUOTE],
            "outcome": TEXT,
            "classification": TEXT,
            "asked_again": [{"kind": TEXT, "classification": TEXT, "outcome": TEXT}],
        },
        "references": {"annotation_id": TEXT, "documents": _ANNOTATION["documents"]},
    },
}
