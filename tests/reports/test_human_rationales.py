"""Texts of tokens (human_rationales) in report and highlight."""

from __future__ import annotations

import json

import pytest

from eraser_hub.reports.board_lines import read_score_file
from eraser_hub.reports.highlight import highlight
from eraser_hub.reports.report_page import make_report
from eraser_hub.scoring.runs import parse_systems
from eraser_hub.scoring.scored_split import read_split
from eraser_hub.scoring.settings import ScoreSettings

pytestmark = pytest.mark.unit


@pytest.fixture(scope="module")
def dataset(samples, tmp_path_factory):
    from eraser_hub.conversion import get_dataset

    out = tmp_path_factory.mktemp("hub")
    get_dataset("human_rationales").build(None, out=out, source=samples / "human_rationales")
    return out / "human_rationales"


def outputs(table, wanted):
    """Predictions that mark the first token, in the ERASER results format."""
    for row in table.rows:
        tokens = row["documents"][0]["text"].split(" ")
        p = {name: 1.0 if name == wanted else 0.0 for name in table.labels.names}
        yield {
            "annotation_id": row["annotation_id"],
            "rationales": [
                {
                    "docid": row["annotation_id"],
                    "hard_rationale_predictions": [{"start_token": 0, "end_token": 1}],
                    "soft_rationale_predictions": [1.0] + [0.0] * (len(tokens) - 1),
                }
            ],
            "classification": wanted,
            "classification_scores": p,
            "comprehensiveness_classification_scores": p,
            "sufficiency_classification_scores": p,
        }


def test_a_row_of_tokens_is_drawn():
    row = {"id": 7, "label": 1, "tokens": ["a", "b c", "", "d"], "rationale_mask": [True, True, False, True]}
    assert "‹¹a b\u00a0c›" in str(highlight(row)) and "‹¹d›" in str(highlight(row))
    assert "‹" not in str(highlight({"id": 7, "label": 1, "tokens": ["a"], "rationale_mask": [False]}))


@pytest.mark.parametrize("config", ["sst", "wikiattack"])
def test_report_and_comparison(dataset, tmp_path, config):
    table = read_split(dataset, config, "validation")
    assert len(table.labels.names) == 2
    paths = []
    for name in table.labels.names:
        path = tmp_path / f"always {name}.jsonl"
        path.write_text("".join(json.dumps(instance) + "\n" for instance in outputs(table, name)))
        paths.append(str(path))
    written = make_report(
        dataset,
        config=config,
        split="val",
        systems=parse_systems(paths),
        out=tmp_path / "out",
        settings=ScoreSettings(n_resamples=20),
    )
    text = written.page.read_text()
    assert text.count('class="signature"') >= 5 and "no block of scores in common" not in text
    entry = read_score_file(written.score_files[0])
    assert entry.dataset == config and 0 <= entry.scores["token_micro_p"] <= 1
    assert entry.scores["comprehensiveness"] == 0
