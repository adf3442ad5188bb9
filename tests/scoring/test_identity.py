"""What scores are scores of: one digest of the gold, whatever it is read from, and the bytes of the predictions."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

import eraser_hub
from eraser_hub.metrics.eraser_agreement import EraserAgreement
from eraser_hub.metrics.gold import digest
from eraser_hub.records.predictions import run_path, write_run

CONFIGS = ("movies", "multirc", "fever", "boolq", "evidence_inference", "cose", "esnli")


@pytest.fixture(scope="module")
def hub(samples: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built samples."""
    out = tmp_path_factory.mktemp("hub")
    return eraser_hub.build("eraser", source=samples / "eraser", out=out).folder


def digest_of(predictions: Path, **where: object) -> str:
    return eraser_hub.score(predictions, split="val", **where).data_digest


def test_the_digest_is_of_ids_labels_and_spans_by_id() -> None:
    spans = np.array([[0, 1, 2, 4], [1, 0, 0, 1], [1, 0, 5, 6]])
    found = digest(["b", "a"], ["POS", None], ["y", "x"], spans)
    text = '[["a","b"],[null,"POS"],["x","y"]]'
    numbers = np.array([[0, 1, 0, 1], [0, 1, 5, 6], [1, 0, 2, 4]], "<i8")
    assert found == hashlib.sha256(text.encode() + numbers.tobytes()).hexdigest()
    assert found == digest(["a", "b"], [None, "POS"], ["x", "y", "z"], np.array(numbers)[[2, 1, 0]])
    assert found != digest(["b", "a"], ["NEG", None], ["y", "x"], spans)
    assert found != digest(["b", "a"], ["POS", None], ["y", "x"], spans[:2])
    empty = np.zeros((0, 4), int)
    assert digest(["10", "9"], ["A", "B"], [], empty) == digest(["9", "10"], ["B", "A"], ["d"], empty)


@pytest.mark.parametrize("config", CONFIGS)
def test_a_released_corpus_and_the_built_one_have_one_digest(hub: Path, samples: Path, config: str) -> None:
    predictions = samples / "predictions" / "eraser" / f"{config}.val.jsonl"
    built = digest_of(predictions, dataset=hub, config=config)
    assert built == digest_of(predictions, dataset=samples / "eraser" / config, config=config)


def test_a_module_signs_with_the_digest_of_the_score_file(hub: Path, samples: Path) -> None:
    predictions = samples / "predictions" / "eraser" / "movies.val.jsonl"
    expected = digest_of(predictions, dataset=hub, config="movies")
    gold, rows = (
        eraser_hub.load(hub, "movies", "val"),
        list(map(json.loads, predictions.read_text("utf-8").splitlines())),
    )
    for references, named in ((gold, {}), (gold.to_list(), {"label_names": ["NEG", "POS"]})):
        result = EraserAgreement().compute(predictions=rows, references=references, **named)
        assert result["signature"].startswith(f"eraser_agreement|data:{expected[:12]}|n:24|")


def test_predictions_are_known_by_the_bytes_of_their_file(hub: Path, samples: Path, tmp_path: Path) -> None:
    predictions = tmp_path / "p.jsonl"
    predictions.write_bytes((samples / "predictions" / "eraser" / "movies.val.jsonl").read_bytes())
    bytes_digest = hashlib.sha256(predictions.read_bytes()).hexdigest()
    write_run(predictions, {"signature": "method:x"})
    assert json.loads(run_path(predictions).read_text())["predictions_sha256"] == bytes_digest
    content = eraser_hub.score(predictions, dataset=hub, config="movies", split="val").as_json()
    assert content["predictions_sha256"] == [bytes_digest] and content["run"] == "method:x"
