"""Perturbation pairs side by side."""

from __future__ import annotations

import json

import pytest

import eraser_hub
from eraser_hub.reports.marks import pair_rows
from eraser_hub.scoring.scored_split import read_split


@pytest.fixture(scope="module")
def bilingual(samples, tmp_path_factory):
    from eraser_hub.conversion import get_dataset

    out = tmp_path_factory.mktemp("hub")
    get_dataset("bilingual_perturbation").build(None, out=out, source=samples / "bilingual_perturbation")
    return out / "bilingual_perturbation"


def predictions_for(rows):
    """A system that takes each sequence's longest tokens first."""
    out = []
    for row in rows:
        orders = [sorted(range(len(sequence)), key=lambda i, s=sequence: (-len(s[i]), i)) for sequence in row["tokens"]]
        out.append(
            {
                "id": row["id"],
                "rationale": [order[: max(1, len(order) // 4)] for order in orders],
                "rationale_tokens": [[s[i] for i in order] for s, order in zip(row["tokens"], orders, strict=True)],
                "pred_label": 1,
            }
        )
    return out


def test_a_report_counts_its_pairs(bilingual, tmp_path):
    rows = read_split(bilingual, "mrc_ch", "test").rows
    (tmp_path / "p.jsonl").write_text("".join(json.dumps(row) + "\n" for row in predictions_for(rows)))
    files = eraser_hub.report(bilingual, tmp_path / "p.jsonl", config="mrc_ch", out=tmp_path / "out", resamples=20)
    assert f"{len(pair_rows(rows))} pairs" in files.page.read_text("utf-8")
