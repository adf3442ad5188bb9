"""What each module's predictions and references are, as ``features`` of its information say it.

They hold all fields that a module knows; which of them have to be there, and how else they may come, its description
says. Nothing is converted by them: `batches` keeps what comes in flat arrays, and checks it itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import datasets

from .fields import (
    AGAIN_FIELD,
    ERASED,
    ERASED_ANSWERS,
    FIDELITY_FIELDS,
    HARD_FIELD,
    LEAVE_ONE_OUT,
    LIST_FIELDS,
    OBJECT_NUMBERS,
    OUTCOME_FIELD,
    PLAIN_NUMBERS,
    PROBABILITIES,
    QUOTES_FIELD,
    SCORE_FIELDS,
    SOFT_FIELDS,
)

TEXT, WHOLE, NUMBER, FLAG = (datasets.Value(kind) for kind in ("string", "int64", "float64", "bool"))
# {label: probability}: labels are each dataset's own, and a struct would have to name them; datasets before 4.1 has no
# Json
BY_LABEL = datasets.Json() if hasattr(datasets, "Json") else TEXT

_ERASED = {SCORE_FIELDS[side]: BY_LABEL for side in ERASED}
_SPAN = {"start_token": WHOLE, "end_token": WHOLE}
_RATIONALE = {"docid": TEXT, HARD_FIELD: [_SPAN], **{soft.field: [NUMBER] for soft in SOFT_FIELDS.values()}}
_EVIDENCE = {"docid": TEXT, **_SPAN, "start_sentence": WHOLE, "end_sentence": WHOLE}
_ANNOTATION = {
    "annotation_id": TEXT,
    "classification": TEXT,
    "documents": [{"docid": TEXT, "text": TEXT}],
    "evidences": [[_EVIDENCE]],
}
_FAITHFULNESS = {
    "annotation_id": TEXT,
    "classification": TEXT,
    SCORE_FIELDS["full"]: BY_LABEL,
    **_ERASED,
    LIST_FIELDS["thresholds"].field: [{"threshold": NUMBER, **_ERASED}],
    LIST_FIELDS["draws"].field: [_ERASED],
    LEAVE_ONE_OUT: [NUMBER],
    **dict.fromkeys(PLAIN_NUMBERS, NUMBER),
    **{name: dict.fromkeys(numbers, NUMBER) for name, numbers in OBJECT_NUMBERS.items()},
    "rationales": [_RATIONALE],
}
_QUOTE = {"text": TEXT, "status": TEXT, "docid": TEXT, **_SPAN, "similarity": NUMBER}

FEATURES: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "eraser_agreement": {
        "predictions": {"annotation_id": TEXT, "rationales": [_RATIONALE]},
        "references": _ANNOTATION,
    },
    "eraser_faithfulness": {"predictions": _FAITHFULNESS, "references": _ANNOTATION},
    "normalized_fidelity": {
        "predictions": {
            "annotation_id": TEXT,
            **dict.fromkeys(FIDELITY_FIELDS, NUMBER),
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
            **{field: [NUMBER] for field in PROBABILITIES},
            "answer": TEXT,
            **dict.fromkeys(ERASED_ANSWERS, TEXT),
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
            QUOTES_FIELD: [_QUOTE],
            OUTCOME_FIELD: TEXT,
            "classification": TEXT,
            AGAIN_FIELD: [dict.fromkeys(("kind", "classification", OUTCOME_FIELD), TEXT)],
        },
        "references": {"annotation_id": TEXT, "documents": _ANNOTATION["documents"]},
    },
}
