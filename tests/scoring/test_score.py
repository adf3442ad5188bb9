"""Scoring files: golden values, Parquet beside jsonl, built datasets, split names, the score file."""

from __future__ import annotations

import json
import math
from pathlib import Path

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from eraser_hub.__main__ import _register, app
from eraser_hub.metrics.arrow_columns import count_texts
from eraser_hub.metrics.gold_digest import shorten_digest
from eraser_hub.metrics.tokens import sentence_sizes
from eraser_hub.records.run_record import read_signature
from eraser_hub.scoring.score import score
from eraser_hub.scoring.scored_split import ScoredSplit
from eraser_hub.scoring.scores import Scores, to_json_bytes
from eraser_hub.scoring.settings import ScoreSettings

from ..metrics.eraser_rows import random_case
from ..refusals import refused
from .small_corpora import Inputs, compare, nested, written

CORPORA = ["movies", "multirc", "fever", "evidence_inference", "cose"]
SAMPLES = [
    "movies",
    "boolq",
    "cose",
    "esnli",
    "evidence_inference",
    "fever",
    "multirc",
    "cose_simplified",
    "esnli_flat",
]


def golden_inputs(reference_scores: Path, corpora: Path, corpus: str) -> Inputs:
    folder = reference_scores / corpus
    return Inputs(ScoredSplit(corpora / corpus, "val", folder / "annotations.jsonl"), folder / "predictions.jsonl")


@pytest.mark.parametrize("corpus", CORPORA)
@pytest.mark.parametrize("totals", [False, True])
def test_golden_values(corpus: str, totals: bool, reference_scores: Path, corpora: Path) -> None:
    """Expected values: golden/eraser_metrics/CORPUS/scores.json (the reference scorer), every key."""
    settings = ScoreSettings(iou_thresholds=(0.1, 0.5, 0.9), totals_only=totals)
    found = nested(score(*golden_inputs(reference_scores, corpora, corpus), settings))
    expected = json.loads((reference_scores / corpus / "scores.json").read_text())
    compare(found, expected)
    ours = {"agreement", "faithfulness", "gold", "chance", "signature", "config", "split"}
    assert found.keys() - ours == expected.keys()
    assert found["classification_scores"].keys() == expected["classification_scores"].keys()


@pytest.mark.parametrize("config", SAMPLES)
def test_samples_of_every_config(config: str, samples: Path) -> None:
    results = samples / "predictions" / "eraser" / f"{config}.val.jsonl"
    found = nested(score(ScoredSplit(samples / "eraser" / config, "validation"), results))
    assert 0 <= found["token_prf"]["instance_micro"]["f1"] <= 1


@pytest.mark.parametrize("config", SAMPLES)
def test_parquet_predictions_score_the_same(config: str, samples: Path, tmp_path: Path) -> None:
    results = samples / "predictions" / "eraser" / f"{config}.val.jsonl"
    rows = [json.loads(line) for line in results.read_text("utf-8").splitlines()]
    datasets.Dataset.from_list(rows).to_parquet(str(tmp_path / "predictions.parquet"))
    settings = ScoreSettings(per_instance=True, random_baseline=2)
    inputs = Inputs(ScoredSplit(samples / "eraser" / config, "val"), results)
    expected = nested(score(*inputs, settings))
    again = Inputs(ScoredSplit(inputs.source.data_dir, "val"), tmp_path / "predictions.parquet")
    assert json.dumps(nested(score(*again, settings))) == json.dumps(expected)


def test_parquet_errors_name_the_row(samples: Path, tmp_path: Path) -> None:
    results = samples / "predictions" / "eraser" / "movies.val.jsonl"
    rows = [json.loads(line) for line in results.read_text("utf-8").splitlines()]
    rows[1]["rationales"][0]["soft_rationale_predictions"][0] = None
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "p.parquet")
    with refused("type", "soft_rationale_predictions[0]", file="p.parquet", line=2):
        score(ScoredSplit(samples / "eraser" / "movies", "val"), tmp_path / "p.parquet")
    (tmp_path / "cut.parquet").write_bytes((tmp_path / "p.parquet").read_bytes()[:400])
    with refused("syntax", "Parquet", file="cut.parquet"):
        score(ScoredSplit(samples / "eraser" / "movies", "val"), tmp_path / "cut.parquet")


def test_a_built_dataset_scores_as_its_corpus(samples: Path, tmp_path: Path) -> None:
    from eraser_hub.conversion import HUB_DATASETS

    HUB_DATASETS["eraser"].build(source=samples / "eraser", configs=["movies"], out=tmp_path)
    results = samples / "predictions" / "eraser" / "movies.val.jsonl"
    settings = ScoreSettings(by="classification", random_baseline=3)
    expected = nested(score(ScoredSplit(samples / "eraser" / "movies", "val"), results, settings))
    built = Inputs(ScoredSplit(split="val", dataset=tmp_path / "eraser", config="movies"), results)
    found = nested(score(*built, settings))
    assert found.pop("dataset") == "eraser" and json.dumps(found) == json.dumps(expected)
    with refused("option-value", "train, validation, test,", "'dev'"):
        score(ScoredSplit(split="dev", dataset=tmp_path / "eraser", config="movies"), results)


def test_the_command_line_prints_the_keys_of_the_reference_scorer(samples: Path) -> None:
    _register(("score",))
    results = samples / "predictions" / "eraser" / "movies.val.jsonl"
    words = ["score", "--source", samples / "eraser" / "movies", "--split", "val", "--predictions", results]
    done = CliRunner().invoke(app, [*map(str, words), "--format", "eraser"])
    expected = score(ScoredSplit(samples / "eraser" / "movies", "val"), results)
    compare(json.loads(done.stdout), json.loads(to_json_bytes(expected.reference or {})))
    assert json.loads(done.stdout)["token_prf"]["instance_macro"]["f1"] == pytest.approx(
        expected.scores["token_macro_f1"]
    )


def test_boolq_sentences_are_read_as_the_reference_reads_them(samples: Path) -> None:
    results = samples / "predictions" / "eraser" / "boolq.val.jsonl"
    found = nested(score(ScoredSplit(samples / "eraser" / "boolq", "val"), results))
    assert "sentences:[start,end)" in found["signature"]


def test_missing_files_are_told(samples: Path, tmp_path: Path) -> None:
    results = samples / "predictions" / "eraser" / "movies.val.jsonl"
    with refused("file-missing", "dev.jsonl", "'dev'", file=samples / "eraser" / "movies"):
        score(ScoredSplit(samples / "eraser" / "movies", "dev"), results)
    with refused("file-missing", file="nothing.jsonl"):
        score(ScoredSplit(samples / "eraser" / "movies", "val"), tmp_path / "nothing.jsonl")
    (tmp_path / "val.jsonl").write_text("{}\n")
    with refused("file-missing", "docs.jsonl", file=tmp_path):
        score(ScoredSplit(tmp_path, "val"), results)


def test_doubly_encoded_annotations(samples: Path, tmp_path: Path) -> None:
    source = samples / "eraser" / "movies"
    lines = (source / "val.jsonl").read_text("utf-8").splitlines()
    path = tmp_path / "twice.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    results = samples / "predictions" / "eraser" / "movies.val.jsonl"
    assert nested(score(ScoredSplit(source, "val", path), results)) == nested(
        score(ScoredSplit(source, "val"), results)
    )


def test_statistics_are_those_of_the_scores(samples: Path) -> None:
    results = samples / "predictions" / "eraser" / "movies.val.jsonl"
    scored = score(ScoredSplit(samples / "eraser" / "movies", "val"), results)
    flat = nested(scored)
    assert scored.statistics["agreement"].scores()["token_micro_f1"] == flat["agreement"]["token_micro_f1"]
    assert scored.statistics["faithfulness"].scores()["comprehensiveness"] == flat["faithfulness"]["comprehensiveness"]


def test_thresholds_of_many_digits_have_keys_and_a_signature_of_their_own(samples: Path) -> None:
    results = samples / "predictions" / "eraser" / "movies.val.jsonl"
    inputs = Inputs(ScoredSplit(samples / "eraser" / "movies", "val"), results)
    third = 0.3333333
    found = nested(score(*inputs, ScoreSettings(iou_thresholds=(third, 0.5))))
    assert found["iou_scores"][0]["threshold"] == third
    assert found["iou_scores"][0]["micro"]["f1"] == found["agreement"][f"iou_micro_f1@{third!r}"]
    rounded = nested(score(*inputs, ScoreSettings(iou_thresholds=(0.333333, 0.5))))
    assert "|iou:0.5,0.3333333|" in found["signature"] and "|iou:0.5,0.333333|" in rounded["signature"]


def test_the_module_gives_the_numbers_and_the_signature_of_score(tmp_path: Path) -> None:
    from eraser_hub.metrics.eraser_agreement import EraserAgreement
    from eraser_hub.metrics.eraser_faithfulness import EraserFaithfulness

    predictions, references = random_case(4, n=20)
    inputs = written(tmp_path, predictions, references)
    aopc = (0.5, 0.01, 0.05, 0.2, 0.1)
    settings = ScoreSettings(iou_thresholds=(0.2, 0.5, 0.1), aopc_thresholds=aopc, random_baseline=2)
    scored = score(*inputs, settings)
    found = nested(scored)
    agreement = EraserAgreement().compute(
        predictions=predictions, references=references, iou_thresholds=[0.1, 0.2], random_baseline=2
    )
    faithfulness = EraserFaithfulness().compute(predictions=predictions, references=references, aopc_thresholds=aopc)
    for name, result in (("agreement", agreement), ("faithfulness", faithfulness)):
        assert found[name].keys() == result.keys()
        data = f"|data:{shorten_digest(scored.digests()['data_digest'])}|split:validation|"
        assert data in found[name]["signature"]
        assert found[name]["signature"].replace("|split:validation|", "|", 1) == result.pop("signature")
        compare(found[name], result)


def test_score_file_holds_null_and_is_whole(tmp_path: Path) -> None:
    Scores(scores={"a": math.nan, "b": math.inf, "c": [1.0, "é"]}).save(tmp_path / "deep" / "scores.json")
    text = (tmp_path / "deep" / "scores.json").read_text("utf-8")
    assert json.loads(text) == {"a": None, "b": None, "c": [1.0, "é"], "signature": []}
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["scores.json"]
    (tmp_path / "file").write_text("")
    with refused("file-unreadable", file=tmp_path / "file" / "scores.json"):
        Scores().save(tmp_path / "file" / "scores.json")


def test_the_run_beside_the_predictions_is_told(tmp_path: Path) -> None:
    assert read_signature(tmp_path / "p.jsonl") == ""
    (tmp_path / "p.jsonl.run.json").write_text('{"signature": "method:random"}')
    assert read_signature(tmp_path / "p.jsonl") == "method:random"


TEXTS = [
    "",
    " ",
    "\n",
    "a",
    "a b",
    "a  b",
    " a",
    "a ",
    "a\nb c",
    "a\n\nb",
    "a \n b\n",
    "é ü\nß",
    "a\u00a0b c",
    "a\tb",
    "\n\n a \n",
]


@pytest.mark.parametrize("text", TEXTS)
def test_tokens_are_counted_as_they_are_split(text: str) -> None:
    lines = [[token for token in line.split(" ") if token] for line in text.split("\n")]
    expected = [len(line) for line in lines if line]
    long = "\n".join(["x y"] * 300 + [text] + ["z"] * 300)
    longer = [2] * 300 + expected + [1] * 300
    assert sentence_sizes(text) == expected and sentence_sizes(long) == longer
    tokens, sentences, sizes = count_texts(pa.array(["x y", text, text, "z"])[1:])
    assert tokens.tolist() == [sum(expected)] * 2 + [1]
    assert sentences.tolist() == [len(expected)] * 2 + [1]
    assert sizes.tolist() == [*expected, *expected, 1]


def test_annotations_that_share_a_document_are_drawn_together(samples: Path) -> None:
    results = samples / "predictions" / "eraser" / "multirc.val.jsonl"
    inputs = Inputs(ScoredSplit(samples / "eraser" / "multirc", "val"), results)
    rows = [json.loads(line) for line in (inputs.source.data_dir / "val.jsonl").read_text("utf-8").splitlines()]
    documents = {evidence["docid"] for row in rows for group in row["evidences"] for evidence in group}
    assert len(documents) < len(rows), "the sample's questions share documents"
    found, alone, labels = (
        score(*inputs, ScoreSettings(n_resamples=50, per_instance=True, cluster_by=by))
        for by in ("auto", "none", "classification")
    )
    for scored, words in (
        (found, f"|cluster:documents|clusters:{len(documents)}|"),
        (alone, f"|cluster:none|clusters:{len(rows)}|"),
        (labels, "|cluster:classification|clusters:2|"),
    ):
        assert all(words in part for part in nested(scored)["signature"].split("; "))
    clusters = nested(found)["agreement"]["per_instance"]["cluster"]
    assert max(clusters) == len(documents) - 1 and clusters[0] == 0
    assert found.blocks["agreement"]["token_macro_f1_ci"] != alone.blocks["agreement"]["token_macro_f1_ci"]
    assert found.blocks["agreement"]["token_macro_f1"] == alone.blocks["agreement"]["token_macro_f1"]
