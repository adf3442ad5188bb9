"""The module eraser_agreement: annotations without gold, chance, signature, notes, wrong input."""

from __future__ import annotations

import warnings
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest

from eraser_hub.metrics.eraser_agreement import EraserAgreement
from eraser_hub.metrics.errors import DataError

pytestmark = pytest.mark.unit

SENTENCES = {"start_sentence": 0, "end_sentence": 1}
SPANS = {"a": [{"start_token": 1, "end_token": 3}], "b": [], "c": [{"start_token": 0, "end_token": 1}]}
REFERENCES = [
    {
        "annotation_id": name,
        "documents": [{"docid": f"d{name}", "text": "a fine film .\nit drags a little ."}],
        "evidences": [[{"docid": f"d{name}", **span, **SENTENCES}] for span in spans],
    }
    for name, spans in SPANS.items()
]


SCORES = [0.1, 0.9, 0.6, 0.2, 0.1, 0.7, 0.1, 0.1, 0.1]


HARD = {"hard_rationale_predictions": [{"start_token": 1, "end_token": 2}], "soft_rationale_predictions": SCORES}
PREDICTIONS = [{"annotation_id": name, "rationales": [{"docid": f"d{name}", **HARD}]} for name in "cab"]


def compute(predictions: Any = PREDICTIONS, references: Any = REFERENCES, **settings: Any) -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return EraserAgreement().compute(predictions=predictions, references=references, **settings)


def test_annotations_without_gold() -> None:
    scored, skipped = compute(), compute(unmarked="skip")
    assert scored["gold"] == skipped["gold"] == {"marked_rows": 2, "unmarked_rows": 1, "density": (2 + 1) / 18}
    assert scored["token_macro_f1"] == scored["all"]["token_macro_f1"] == pytest.approx((2 / 3) / 3)
    assert skipped["token_macro_f1"] == scored["marked"]["token_macro_f1"] == pytest.approx((2 / 3) / 2)
    assert "|n:3|" in scored["signature"] and "|n:2|" in skipped["signature"]
    assert "unmarked:skip|marked_rows:2|unmarked_rows:1" in skipped["signature"]
    alone = compute(PREDICTIONS[:2], REFERENCES[::2], chance=True, per_instance=True, n_resamples=9)
    skipped = compute(unmarked="skip", chance=True, per_instance=True, n_resamples=9)
    assert {"marked", "all", "gold"} == skipped.keys() - alone.keys() | {"gold"}
    for key in alone.keys() - {"signature", "gold"}:
        assert skipped[key] == pytest.approx(alone[key], nan_ok=True) if key != "per_instance" else True, key


def test_chance_is_the_mean_over_all_rationales_of_the_size() -> None:
    chance = compute(chance=True, unmarked="skip")["chance"]
    assert chance["token_micro_p"] == pytest.approx((2 / 9 + 1 / 9) / 2)
    assert chance["roc_auc_score"] == 0.5 and "sentence_auprc" not in chance
    gold = [[0, 1, 1, 0, 0, 0], [1, 0, 0, 0, 1]]
    chance = compute([[1, 1, 0, 0, 0, 0], [0, 1, 1, 1, 0]], gold, chance=True)["chance"]
    masks = [[[int(at in one) for at in range(n)] for one in combinations(range(n), k)] for n, k in ((6, 2), (5, 3))]
    drawn = [compute(list(both), gold) for both in product(*masks)]
    for key in (f"token_{kind}_{part}" for kind in ("micro", "macro") for part in ("p", "r", "f1")):
        assert chance[key] == pytest.approx(np.mean([one[key] for one in drawn]), abs=1e-12), key


def test_an_instance_without_answer_has_no_spans_and_scores_of_0() -> None:
    silent = {"annotation_id": "c", "outcome": "refused", "rationales": []}
    empty = {"docid": "dc", "hard_rationale_predictions": [], "soft_rationale_predictions": [0.0] * 9}
    found, expected = (compute([row, *PREDICTIONS[1:]]) for row in (silent, {**PREDICTIONS[0], "rationales": [empty]}))
    assert "|answered:2/3|" in found.pop("signature") and "answered" not in expected.pop("signature")
    assert found.pop("gold") == expected.pop("gold")
    for key in ("marked", "all"):
        assert found.pop(key) == pytest.approx(expected.pop(key), nan_ok=True)
    assert found == pytest.approx(expected, nan_ok=True)
    with pytest.raises(DataError, match="neither label nor rationales"):
        compute([{**PREDICTIONS[0], "outcome": "refused"}, *PREDICTIONS[1:]])


def test_signature_names_what_differs_from_the_defaults() -> None:
    assert "iou:" not in compute()["signature"] and "sentences_from:spans" in compute()["signature"]
    found = compute(iou_threshold=0.1, iou_thresholds=[0.9, 0.5], auprc_policy="skip")
    assert "iou:0.1,0.5,0.9|auprc_no_positives:skip" in found["signature"]
    assert found["iou_micro_f1"] >= found["iou_micro_f1@0.5"] >= found["iou_micro_f1@0.9"]
    assert "scored:1/3" in compute(PREDICTIONS[:1], only_predicted=True)["signature"]


def test_note_on_constant_scores() -> None:
    flat = {**HARD, "soft_rationale_predictions": [0.5] * 9}
    rows = [{"annotation_id": name, "rationales": [{"docid": f"d{name}", **flat}]} for name in "ca"]
    notes = EraserAgreement().measure([*rows, PREDICTIONS[2]], REFERENCES).notes
    assert any(note.startswith("all tokens have one score in 2 of 3 documents") for note in notes)
    assert not any(note.startswith("all tokens") for note in EraserAgreement().measure(PREDICTIONS, REFERENCES).notes)


@pytest.mark.parametrize(
    ("predictions", "references", "settings", "words"),
    [
        (PREDICTIONS, None, {}, "references"),
        (PREDICTIONS, REFERENCES[1:2], {}, "no annotation has this id"),
        (PREDICTIONS[2:], REFERENCES[1:2], {"unmarked": "skip"}, "references: nothing to score: expected a gold"),
        ([{"annotation_id": "a", "rationales": []}], REFERENCES[:1], {}, "nothing to score: expected rationales"),
        ([{"id": "a", "rationale": [0, 1]}], [], {}, "references: expected at least one row"),
    ],
)
def test_wrong_input(predictions: Any, references: Any, settings: dict[str, Any], words: str) -> None:
    with pytest.raises(DataError, match=words):
        compute(predictions, references, **settings)
