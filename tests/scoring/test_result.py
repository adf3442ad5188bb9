"""The object of scores: what it is made of, its JSON, its tables, and the mean of several runs."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from eraser_hub.metrics.errors import DataError
from eraser_hub.metrics.statistics import Score, Statistics, mean
from eraser_hub.scoring.result import Scores, average_runs

AGREEMENT = {
    "token_macro_f1": 0.5,
    "token_macro_f1_ci": [0.25, math.nan],
    "auprc": 0.75,
    "sufficiency": 0.1,
    "marked": {"auprc": 0.8},
    "gold": {"marked_rows": 3, "unmarked_rows": 1, "density": 0.25},
    "chance": {"auprc": 0.3},
    "by": {"NEG": {"auprc": 0.7}, "POS": {"auprc": 0.9}},
    "per_instance": {
        "annotation_id": ["c", "a"],
        "cluster": [0, 1],
        "auprc": [1.0, math.nan],
        "points": [[1.0], [0.0]],
    },
    "signature": "eraser_agreement|split:test|n:4|version:1.0.0",
}
FAITHFULNESS = {
    "sufficiency": 0.9,
    "sufficiency_ci": [0.8, 1.0],
    "pairs": 4,
    "aopc_thresholds": [0.1, 0.5],
    "sufficiency_aopc_points": [0.2, 0.4],
    "sufficiency_aopc_points_ci": [[0.1, 0.3], [0.3, 0.5]],
    "by": {"NEG": {"auprc": 0.0, "macro_f1": 1.0}},
    "signature": "eraser_faithfulness|split:test|n:4|version:1.0.0",
}
PEOPLE = {"annotators": 2, "gold": "majority of the others", "scores": {"token_macro_f1": 0.6}, "spread": {}}
REPORT = {"NEG": {"precision": 1.0, "recall": 1.0, "f1-score": 1.0, "support": 2.0}}


def make_scores() -> Scores:
    scores = Scores("ours", {"dataset": "eraser", "split": "test"}, ["a", "b", "c"], by="classification", people=PEOPLE)
    columns = {"x.sum": np.array([1.0, 0.0, 1.0]), "x.count": np.ones(3)}
    statistics = Statistics(["c", "a", "b"], columns, {"x": Score(mean("x"))}, np.array([0, 1, 1]), "documents")
    scores.add("eraser_agreement", AGREEMENT, statistics)
    scores.add("eraser_faithfulness", FAITHFULNESS)
    return replace(scores, data_digest="01" * 32, predictions_sha256=["ff"])


def test_scores_are_a_mapping_of_which_the_first_metric_wins() -> None:
    scores = make_scores()
    assert scores["sufficiency"] == 0.1 and "sufficiency" not in scores.intervals
    assert scores.intervals["sufficiency_aopc_points"] == [[0.1, 0.3], [0.3, 0.5]]
    assert list(scores)[:2] == ["token_macro_f1", "auprc"] and len(scores) == 6 and "pairs" in scores
    assert scores.get("map") is None and scores.number("pairs") is None and scores.number("auprc") == 0.75
    assert scores.per_instance == {"auprc": [None, None, 1.0]} and scores.counted("auprc") == 1
    assert scores.by_class["NEG"] == {"auprc": 0.7, "macro_f1": 1.0}
    assert [list(statistics) for statistics in scores.runs] == [["eraser_agreement"]]


def test_json_holds_everything_in_one_layout(tmp_path) -> None:
    scores = make_scores()
    scores.save(tmp_path / "scores.json")
    content = json.loads((tmp_path / "scores.json").read_bytes())
    assert content == scores.as_json()
    assert content["system"] == "ours" and content["split"] == "test" and content["token_macro_f1_ci"] == [0.25, None]
    rows = {"annotation_id": ["a", "b", "c"], "cluster": [1, 1, 0], "auprc": [None, None, 1.0]}
    assert content["per_instance"] == rows
    assert content["people"]["scores"] == {"token_macro_f1": 0.6} and content["chance"] == {"auprc": 0.3}
    assert content["gold"]["marked_rows"] == 3 and content["marked"] == {"auprc": 0.8} and "all" not in content
    assert [line.partition("|")[0] for line in content["signature"]] == ["eraser_agreement", "eraser_faithfulness"]
    assert "per_instance" not in scores.as_json(per_instance=False)
    with pytest.raises(ValueError, match="input of this run"):
        replace(scores, inputs=[tmp_path / "scores.json"]).save(tmp_path / "scores.json", force=True)


def test_headline_scores_are_printed_beside_chance_and_people() -> None:
    scores = make_scores()
    scores.notes.append("one was left out")
    lines = repr(scores).splitlines()
    assert lines[0] == "Scores: eraser, test" and lines[1].split() == ["score", "value", "chance", "people"]
    assert [line.split()[0] for line in lines[2:5]] == ["token_macro_f1", "auprc", "sufficiency"]
    assert lines[3].split() == ["auprc", "0.7500", "0.3000", "–"]
    assert "one was left out" in lines and any("25.0% of the tokens" in line for line in lines)
    whole = scores.table(whole=True).written("csv")
    assert "sufficiency_aopc_points@0.5,0.4,0.3,0.5" in whole and "scores_by,auprc,,,,,,0.7,0.9" in whole
    frame = scores.to_frame()
    assert frame.loc["token_macro_f1", "people"] == 0.6 and frame.loc["auprc", "chance"] == 0.3
    assert "token_macro_f1" in scores._repr_html_() and "pairs" not in frame.index
    one = Statistics(["a"], {"length.sum": np.ones(1), "length.count": np.ones(1)}, {"length": Score(mean("length"))})
    scores.add("custom", {"length": 1.0}, one)
    assert scores.headline == ["token_macro_f1", "auprc", "sufficiency", "length"]
    assert "in_text" in repr(Scores(scores={"in_text": 1.0}))  # no headline score: all


def test_runs_are_averaged_with_their_spread() -> None:
    first, second = make_scores(), make_scores()
    second.scores |= {"auprc": 0.25, "sufficiency_aopc_points": [0.4, 0.4]}
    first.scores["sufficiency_kl"] = second.scores["sufficiency_kl"] = math.inf
    second.notes = ["one was left out"]
    both = average_runs([first, second])
    assert both["auprc"] == 0.5 and both.spread["auprc"] == pytest.approx(math.sqrt(0.125))
    assert both["sufficiency_kl"] == math.inf and math.isnan(both.spread["sufficiency_kl"])
    assert both["sufficiency_aopc_points"] == pytest.approx([0.3, 0.4]) and both["pairs"] == 4
    assert both.intervals == {} and len(both.runs) == 2 and both.predictions_sha256 == ["ff", "ff"]
    content = both.as_json()
    assert content["runs"] == 2 and content["auprc_spread"] == both.spread["auprc"]
    assert content["signature"][0] == "eraser_agreement|split:test|n:4|runs:2|version:1.0.0"
    assert both.notes == ["another run: one was left out"] and average_runs([first]) is first


def test_the_layout_of_the_reference_scorer() -> None:
    kinds, parts = ("micro", "macro"), ("p", "r", "f1")
    given = {f"{unit}_{kind}_{part}": 0.5 for unit in ("exact", "token") for kind in kinds for part in parts}
    iou = {f"iou_{kind}_{part}": 0.4 for kind in (*kinds, "matched") for part in parts}
    ranking = dict.fromkeys(("auprc", "average_precision", "roc_auc_score"), 0.3)
    given |= iou | {f"{key}@0.1": 0.6 for key in iou} | ranking
    given |= {"accuracy": 1.0, "aopc_thresholds": [0.1], "sufficiency_aopc_points": [0.2]}
    nested = Scores(scores=given, label_report=REPORT, iou_thresholds=(0.5, 0.1)).to_eraser()
    assert [entry["micro"]["p"] for entry in nested["iou_scores"]] == [0.4, 0.6]
    assert nested["classification_scores"]["prf"] == REPORT and nested["classification_scores"]["sufficiency"] is None
    assert nested["token_prf"]["instance_macro"] == {"p": 0.5, "r": 0.5, "f1": 0.5}
    assert nested["token_soft_metrics"] == ranking and "sentence_soft_metrics" not in nested
    with pytest.raises(DataError, match="scores of ERASER"):
        Scores(scores={"map": 0.5}).to_eraser()
