"""A language model's quotes in `score` and `compare`: as the module scores them, beside systems that quote nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import eraser_hub
from eraser_hub.conversion.built import open_built
from eraser_hub.metrics.quote_faithfulness import QuoteFaithfulness
from eraser_hub.records.files import to_json_bytes

from ..refusals import refused

NOWHERE = {"docid": None, "start_token": None, "end_token": None, "similarity": 0.0}
INVENTED = {"text": "never", "status": "not_found", **NOWHERE}


@pytest.fixture(scope="module")
def hub(tmp_path_factory, samples: Path) -> Path:
    return eraser_hub.build("eraser", samples / "eraser", config="movies", out=tmp_path_factory.mktemp("hub")).folder


@pytest.fixture
def rows(samples: Path) -> list[dict]:
    """Predictions that quote in three of four instances, in one of two something invented."""
    path = samples / "predictions/eraser/movies.val.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for at, row in enumerate(rows):
        place = {"docid": row["rationales"][0]["docid"], "start_token": at % 3, "end_token": 4, "similarity": 1.0}
        quote = {"text": "q", "status": ("exact", "normalised", "ambiguous")[at % 3], **place}
        row |= {"quotes": [quote] * (at % 4 > 0) + [INVENTED] * (at % 2), "outcome": "answered"}
    return rows


def written(path: Path, rows: list[dict]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_score_has_what_the_module_has_and_compare_what_both_have(hub, rows, tmp_path):
    where: Any = {"dataset": hub, "config": "movies", "split": "val", "resamples": 50}
    path = written(tmp_path / "llm.jsonl", rows)
    found = eraser_hub.score(path, confidence_level=0.95, **where).as_json()
    gold = open_built(hub).rows("movies", "validation")
    expected = QuoteFaithfulness().compute(predictions=rows, references=gold, confidence_level=0.95, n_resamples=50)
    data = f"|data:{found['data_digest'][:12]}|config:movies|split:validation|"
    assert expected.pop("signature").replace("|", data, 1) in found["signature"]
    assert json.loads(to_json_bytes(expected)).items() <= found.items()
    fewer = written(tmp_path / "two.jsonl", [{**row, "quotes": row["quotes"][:1]} for row in rows])
    none = written(tmp_path / "lime.jsonl", [{k: v for k, v in row.items() if k != "quotes"} for row in rows])
    for other in (fewer, none):
        keys = eraser_hub.compare(path, other, **where)["comparisons"][0]["keys"]
        assert "token_macro_f1" in keys and ("invented" in keys) == (other is fewer)


def test_a_corpus_folder_knows_no_coverage_and_says_so_and_wrong_quotes_are_told(hub, rows, samples, tmp_path):
    path = written(tmp_path / "llm.jsonl", rows)
    scores = eraser_hub.score(path, samples / "eraser/movies", split="val")
    assert scores.as_json()["coverage"] is None
    assert len([note for note in scores.notes if note.startswith("coverage is left out: a corpus folder")]) == 1
    rows[1]["quotes"] = [{**INVENTED, "status": "made up"}]
    with refused("'made up'", line=2, instance=rows[1]["annotation_id"], field="quotes[0].status"):
        eraser_hub.score(written(path, rows), hub, config="movies", split="val")


def test_quotes_of_pairs_stand_beside_map(samples, tmp_path):
    name = "bilingual_perturbation"
    folder = eraser_hub.build(name, samples / name, config="senti_ch", out=tmp_path).folder
    quote = {"text": "q", "status": "fuzzy", "docid": "sequence_0", "start_token": 0, "end_token": 2, "similarity": 1.0}
    lines = (samples / "predictions" / name / "senti_ch.jsonl").read_text(encoding="utf-8").splitlines()
    path = written(tmp_path / "p.jsonl", [json.loads(line) | {"quotes": [quote]} for line in lines])
    found = eraser_hub.score(path, folder, config="senti_ch", split="test")
    assert found["fuzzy"] == 1 and "map" in found
