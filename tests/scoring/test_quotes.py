"""A language model's quotes in `score` and `compare`: as the module scores them, beside systems that quote nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import eraser_hub
from eraser_hub.conversion import get_dataset
from eraser_hub.conversion.built import open_built
from eraser_hub.metrics.quote_faithfulness import QuoteFaithfulness
from eraser_hub.records.files import to_json_bytes

from ..command_line import Result, invoke
from ..refusals import refused

INVENTED = {
    "text": "never",
    "status": "not_found",
    "docid": None,
    "start_token": None,
    "end_token": None,
    "similarity": 0.0,
}
ADDED = ("quotes", "asked_again", "outcome")
KEYS = ("in_text", "exact", "normalised", "fuzzy", "ambiguous", "invented", "coverage", "answered")


@pytest.fixture(scope="module")
def hub(tmp_path_factory, samples: Path) -> Path:
    out = tmp_path_factory.mktemp("hub")
    get_dataset("eraser").build(["movies"], out=out, source=samples / "eraser")
    return out / "eraser"


@pytest.fixture
def rows(samples: Path) -> list[dict]:
    """Predictions that quote in three of four instances, in one of two something invented; the last one refuses."""
    path = samples / "predictions/eraser/movies.val.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for at, row in enumerate(rows):
        place = {"docid": row["rationales"][0]["docid"], "start_token": at % 3, "end_token": 4, "similarity": 1.0}
        status = ("exact", "normalised", "ambiguous")[at % 3]
        row["quotes"] = ([{"text": "q", "status": status, **place}] if at % 4 else []) + ([INVENTED] if at % 2 else [])
        other = "NEG" if row["classification"] == "POS" else "POS"
        label = other if at % 2 else row["classification"]
        row["asked_again"] = [{"kind": "redacted", "classification": label, "outcome": "answered"}]
        row["outcome"] = "answered"
    return rows


def written(path: Path, rows: list[dict]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def run(verb: str, hub: Path, *arguments: object) -> Result:
    where = ["--dataset", hub, "--config", "movies", "--split", "validation"]
    return invoke(list(map(str, [verb, *where, *arguments])))


def scores(hub: Path, path: Path, *arguments: object) -> dict:
    done = run("score", hub, "--predictions", path, "--format", "json", *arguments)
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_score_has_what_the_module_has(hub, rows, tmp_path):
    result = scores(hub, written(tmp_path / "llm.jsonl", rows), "--confidence-level", 0.95, "--resamples", 50)
    gold = open_built(hub).rows("movies", "validation")
    expected = QuoteFaithfulness().compute(predictions=rows, references=gold, confidence_level=0.95, n_resamples=50)
    data = f"|data:{result['data_digest'][:12]}|config:movies|split:validation|"
    expected["signature"] = expected["signature"].replace("|", data, 1)
    assert expected.pop("signature") in result["signature"]
    assert json.loads(to_json_bytes(expected)).items() <= result.items()
    by = scores(hub, written(tmp_path / "turned.jsonl", rows[::-1]), "--by", "classification")
    assert {key: by[key] for key in KEYS} == {key: result[key] for key in KEYS} and set(by["by"]) == {"NEG", "POS"}
    low, high = expected["invented_ci"]
    assert low < expected["invented"] < high


def test_a_corpus_folder_knows_no_coverage_and_says_so(rows, samples, tmp_path):
    path = written(tmp_path / "llm.jsonl", rows)
    where = ["--dataset", samples / "eraser/movies", "--split", "val", "--predictions", path, "--format", "json"]
    done = invoke(list(map(str, ["score", *where])))
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["coverage"] is None
    assert done.stderr.count("coverage is left out: a corpus folder does not say") == 1


def test_wrong_quotes_are_told_with_their_line(hub, rows, tmp_path):
    rows[1]["quotes"] = [{**INVENTED, "status": "made up"}]
    done = run("score", hub, "--predictions", written(tmp_path / "llm.jsonl", rows))
    with refused("'made up'", file="llm.jsonl", line=2, instance=rows[1]["annotation_id"], field="quotes[0].status"):
        raise done.exception


def test_compare_takes_quotes_where_both_systems_have_them(hub, rows, samples, tmp_path):
    one = written(tmp_path / "one.jsonl", rows)
    two = written(tmp_path / "two.jsonl", [{**row, "quotes": row["quotes"][:1]} for row in rows])
    none = written(tmp_path / "lime.jsonl", [{k: v for k, v in row.items() if k not in ADDED} for row in rows])
    for other in (two, none):
        files = ("--predictions", one, "--predictions", other)
        done = run("compare", hub, *files, "--resamples", 100, "--format", "json")
        assert done.exit_code == 0, done.output
        result = json.loads(done.stdout)
        assert ("invented" in result["comparisons"][0]["keys"]) == (other is two)
        assert "token_macro_f1" in result["comparisons"][0]["keys"]


def test_quotes_of_pairs_stand_beside_map(samples, tmp_path):
    folder = eraser_hub.build(
        "bilingual_perturbation", samples / "bilingual_perturbation", config="senti_ch", out=tmp_path
    ).folder
    path = samples / "predictions/bilingual_perturbation/senti_ch.jsonl"
    quote = {"text": "q", "status": "fuzzy", "docid": "sequence_0", "start_token": 0, "end_token": 2, "similarity": 1.0}
    rows = [json.loads(line) | {"quotes": [quote]} for line in path.read_text(encoding="utf-8").splitlines()]
    found = eraser_hub.score(written(tmp_path / "p.jsonl", rows), folder, config="senti_ch", split="test")
    assert found["fuzzy"] == 1 and "map" in found
