"""Scoring files: golden values, samples, Parquet beside jsonl, built datasets, thresholds, clusters."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eraser_hub.conversion import get_dataset
from eraser_hub.records.files import shorten_digest, to_json_bytes
from eraser_hub.scoring.score import ScoreSettings, score
from eraser_hub.scoring.scored_split import ScoredSplit

from ..command_line import invoke
from ..metrics.eraser_rows import random_case
from ..refusals import refused
from .small_corpora import Inputs, compare, nested, written

CORPORA = ["movies", "multirc", "fever", "evidence_inference", "cose"]


def sample(samples: Path, config: str) -> Inputs:
    results = samples / "predictions" / "eraser" / f"{config}.val.jsonl"
    return Inputs(ScoredSplit(samples / "eraser" / config, "validation"), results)


@pytest.mark.parametrize("corpus", CORPORA)
@pytest.mark.parametrize("per_instance", [False, True])
def test_golden_values(corpus: str, per_instance: bool, reference_scores: Path, corpora: Path) -> None:
    """Expected values: golden/eraser_metrics/CORPUS/scores.json (the reference scorer), every key."""
    folder = reference_scores / corpus
    source = ScoredSplit(corpora / corpus, "val", folder / "annotations.jsonl")
    settings = ScoreSettings(iou_thresholds=(0.1, 0.5, 0.9), per_instance=per_instance)
    found = score(source, folder / "predictions.jsonl", settings).to_eraser()
    expected = json.loads((folder / "scores.json").read_text())
    compare(found, expected)
    assert found.keys() == expected.keys()
    assert found["classification_scores"].keys() == expected["classification_scores"].keys()


def test_parquet_errors_name_the_row(samples: Path, tmp_path: Path) -> None:
    source, results = sample(samples, "movies")
    rows = [json.loads(line) for line in results.read_text("utf-8").splitlines()]
    rows[1]["rationales"][0]["soft_rationale_predictions"][0] = None
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "p.parquet")
    field = "rationales[0].soft_rationale_predictions[0]"
    with refused(file="p.parquet", line=2, field=field):
        score(source, tmp_path / "p.parquet")


def test_the_command_line_prints_the_keys_of_the_reference_scorer(samples: Path) -> None:
    source, results = sample(samples, "movies")
    words = ["score", "--dataset", source.data_dir, "--split", "val", "--predictions", results, "--format", "eraser"]
    done = invoke(list(map(str, words)))
    expected = score(source, results)
    assert json.loads(done.stdout) == json.loads(to_json_bytes(expected.to_eraser()))
    assert json.loads(done.stdout)["token_prf"]["instance_macro"]["f1"] == expected["token_macro_f1"]


def test_the_modules_give_the_numbers_and_the_signatures_of_score(tmp_path: Path) -> None:
    from eraser_hub.metrics.eraser_agreement import EraserAgreement
    from eraser_hub.metrics.eraser_faithfulness import EraserFaithfulness

    predictions, references = random_case(4, n=20)
    aopc = [0.5, 0.01, 0.05, 0.2, 0.1]
    settings = ScoreSettings(iou_thresholds=(0.2, 0.5, 0.1), aopc_thresholds=aopc)
    scored = score(*written(tmp_path, predictions, references), settings)
    rows = {"predictions": predictions, "references": references}
    results = [
        EraserAgreement().compute(**rows, iou_thresholds=[0.1, 0.2]),
        EraserFaithfulness().compute(**rows, aopc_thresholds=aopc),
    ]
    data = f"|data:{shorten_digest(scored.data_digest)}|"
    names = "".join(f"{name}:{scored.names[name]}|" for name in ("config", "split"))
    for result, signature in zip(results, scored.signatures, strict=True):
        assert signature.replace(names, "") == result.pop("signature") and data in signature
        compare(scored.as_json(), {key: value for key, value in result.items() if key not in ("gold", "chance")})


def test_annotations_that_share_a_document_are_drawn_together(samples: Path) -> None:
    inputs = sample(samples, "multirc")
    rows = [json.loads(line) for line in (inputs.source.data_dir / "val.jsonl").read_text("utf-8").splitlines()]
    documents = {evidence["docid"] for row in rows for group in row["evidences"] for evidence in group}
    assert len(documents) < len(rows), "the sample's questions share documents"
    counts = {"auto": f"documents|clusters:{len(documents)}", "none": f"none|clusters:{len(rows)}"}
    counts["classification"] = "classification|clusters:2"
    scores = {by: score(*inputs, ScoreSettings(n_resamples=50, per_instance=True, cluster_by=by)) for by in counts}
    for by, scored in scores.items():
        assert all(f"|cluster:{counts[by]}|" in part for part in scored.signatures)
        assert scored["token_macro_f1"] == scores["none"]["token_macro_f1"]
    clusters = scores["auto"].as_json()["per_instance"]["cluster"]
    assert max(clusters) == len(documents) - 1 and clusters[0] == 0
    assert scores["auto"].intervals["token_macro_f1"] != scores["none"].intervals["token_macro_f1"]


FUNCTION = "def length(row, instance):\n    return len(instance['rationales'][0]['hard_rationale_predictions'])\n"


def test_a_score_of_ones_own_is_a_function_of_row_and_instance(samples: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(FUNCTION)
    inputs, own = sample(samples, "movies"), [f"{tmp_path}/mine.py:length"]
    rows = [json.loads(line) for line in inputs.results.read_text("utf-8").splitlines()]
    spans = [len(row["rationales"][0]["hard_rationale_predictions"]) for row in rows]
    scored = score(*inputs, ScoreSettings(n_resamples=20), own)
    low, high = scored.intervals["length"]
    assert scored["length"] == pytest.approx(sum(spans) / len(spans)) and low <= scored["length"] <= high
    assert scored.headline[-1] == "length"
    for wrong in (f"{tmp_path}/mine.py:nothing", "length", f"{tmp_path}/none.py:length"):
        with refused(argument="metric"):
            score(*inputs, ScoreSettings(), [wrong])


def test_a_built_dataset_scores_as_its_corpus_and_missing_files_are_told(samples: Path, tmp_path: Path) -> None:
    get_dataset("eraser").build(source=samples / "eraser", configs=["movies"], out=tmp_path)
    source, results = sample(samples, "movies")
    settings = ScoreSettings(by="classification", per_instance=True)
    built = ScoredSplit(split="val", dataset=tmp_path / "eraser", config="movies")
    found = nested(score(built, results, settings))
    assert found.pop("dataset") == "eraser" and found == nested(score(source, results, settings))
    with refused("train, validation, test,", "'dev'"):
        score(ScoredSplit(split="dev", dataset=tmp_path / "eraser", config="movies"), results)
    with refused("dev.jsonl", "'dev'", file=source.data_dir):
        score(ScoredSplit(source.data_dir, "dev"), results)
    with refused(file="nothing.jsonl"):
        score(source, tmp_path / "nothing.jsonl")
    (tmp_path / "val.jsonl").write_text("{}\n")
    with refused("docs.jsonl", file=tmp_path):
        score(ScoredSplit(tmp_path, "val"), results)


def test_thresholds_have_keys_and_a_signature_of_their_own_and_boolq_its_sentences(samples: Path) -> None:
    inputs, third = sample(samples, "movies"), 0.3333333
    scored = score(*inputs, ScoreSettings(iou_thresholds=(third, 0.5)))
    first = scored.to_eraser()["iou_scores"][0]
    assert first["threshold"] == third and first["micro"]["f1"] == scored[f"iou_micro_f1@{third!r}"]
    assert "|iou:0.5,0.3333333|" in scored.signature
    assert "sentences:[start,end)" in score(*sample(samples, "boolq")).signature
