"""The builder of ``bilingual_perturbation``: its rows in the metrics, and pairs as a dataset."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from eraser_hub.datasets_scripts.bilingual_perturbation import BilingualPerturbation, pairs


def test_the_metrics_take_rows_and_predictions_as_they_are(samples: Path, tmp_path: Path, spaces: Path) -> None:
    import evaluate

    builder = BilingualPerturbation("senti_ch", cache_dir=str(tmp_path))
    builder.download_and_prepare()
    rows = builder.as_dataset(split="test")
    text = (samples / "predictions" / "bilingual_perturbation" / "senti_ch.jsonl").read_text(encoding="utf-8")
    predictions = [json.loads(line) for line in text.splitlines()]
    perturbation_map = evaluate.load(str(spaces / "perturbation_map"))
    result = perturbation_map.compute(predictions=predictions, references=rows)
    assert result["pairs"] == len(pairs(rows)) == 32 and 0 < result["map"] < 1
    agreement = evaluate.load(str(spaces / "rationale_set_agreement"))
    assert 0 < agreement.compute(predictions=predictions, references=rows)["token_f1"] < 1
    ranked = {row["id"]: [sorted(row["tokens"][0])] for row in rows if row["sample_type"] == "ori"}
    alike = [{"id": row["id"], "rationale_tokens": ranked[row["original_id"] or row["id"]]} for row in rows]
    assert perturbation_map.compute(predictions=alike, references=rows)["map"] == pytest.approx(1.0)
