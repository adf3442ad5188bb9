"""The scores that modules are judged by, and the fields that they read, which `schema` declares."""

from __future__ import annotations

from eraser_hub.schema.instance import *  # noqa: F403
from eraser_hub.schema.rows import *  # noqa: F403

# how a caller asks that annotations without an instance be left out
ONLY_PREDICTED = "only_predicted=True"
# module -> the scores that it is judged by: `compare` corrects its p-values over these, all others are exploratory
HEADLINE = {
    "eraser_agreement": ("token_macro_f1", "iou_macro_f1", "auprc", "sentence_macro_f1"),
    "eraser_faithfulness": ("comprehensiveness_aopc", "sufficiency_aopc", "macro_f1"),
    "perturbation_map": ("map",),
    "rationale_set_agreement": ("token_f1",),
    "normalized_fidelity": ("normalized_sufficiency", "normalized_comprehensiveness"),
    "annotator_agreement": ("cohen_kappa",),
    "quote_faithfulness": ("in_text",),
}

# shares of the tokens at which the area over the perturbation curve is measured
AOPC_THRESHOLDS: tuple[float, ...] = (0.01, 0.05, 0.1, 0.2, 0.5)
