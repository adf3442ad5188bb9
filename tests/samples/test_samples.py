"""The bundled samples: each corpus holds the quirks that its real release has, and the predictions fit them."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from eraser_hub.conversion.eraser.configs import CONFIGS
from eraser_hub.metrics.plain import split_sentences, split_tokens

from ..raw_corpora import annotations, document_ids, documents, evidences

pytestmark = pytest.mark.unit

SPLITS = ("train.jsonl", "val.jsonl", "test.jsonl")
THRESHOLDS = [0.01, 0.05, 0.1, 0.2, 0.5]


def lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


def spans(record: dict[str, Any]) -> list[dict[str, Any]]:
    return [evidence for group in record["evidences"] for evidence in group]


def used(records: list[dict[str, Any]]) -> set[str]:
    return {evidence["docid"] for record in records for evidence in spans(record)}


@pytest.fixture
def eraser(samples: Path) -> Path:
    return samples / "eraser"


def test_every_configuration_has_a_sample_of_the_releases_layout(eraser):
    assert {folder.name for folder in eraser.iterdir() if folder.is_dir()} == set(CONFIGS)
    for name, facts in CONFIGS.items():
        folder = eraser / name
        assert all((folder / split).is_file() for split in SPLITS), name
        assert (folder / "docs").is_dir() != (folder / "docs.jsonl").is_file(), name
        for split in facts.extra_splits:
            assert (folder / f"{split}.jsonl").is_file(), (name, split)


def test_the_samples_are_small(samples):
    size = sum(path.stat().st_size for path in (samples / "eraser").rglob("*") if path.is_file())
    assert size < 300_000


@pytest.mark.parametrize("name", sorted(CONFIGS))
def test_spans_texts_labels_and_splits_are_in_order(eraser, name):
    texts = documents(eraser / name)
    held: dict[str, set[str]] = {}
    differing = 0
    for split in SPLITS:
        records = annotations(eraser / name / split)
        assert len({str(record["annotation_id"]) for record in records}) == len(records) >= 4
        assert {record["classification"] for record in records} <= set(CONFIGS[name].label_names)
        assert len({record["classification"] for record in records}) > 1
        held[split] = {docid for record in records for docid in document_ids(record)}
        for evidence in (evidence for record in records for evidence in evidences(record)):
            tokens, start, end = split_tokens(texts[evidence["docid"]]), evidence["start_token"], evidence["end_token"]
            assert 0 <= start <= end <= len(tokens)
            differing += " ".join(tokens[start:end]) != evidence["text"]
    assert (differing > 0) == (name in ("cose", "cose_simplified"))
    assert held["train.jsonl"].isdisjoint(held["val.jsonl"] | held["test.jsonl"])
    assert len(held["val.jsonl"] & held["test.jsonl"]) == (1 if name == "boolq" else 0)
    assert name in ("cose_simplified", "esnli_flat") or set(texts) - set().union(*held.values())


def test_movies(eraser):
    folder = eraser / "movies"
    train, val, test = (lines(folder / split) for split in SPLITS)
    assert min(len(train), len(val), len(test)) >= 12 and max(len(train), len(val)) <= 30
    assert all("docids" not in record for record in train + val)
    assert all(record["docids"] is None for record in test)
    assert all(len(group) == 1 for record in train + val for group in record["evidences"])
    assert sum(record["evidences"] == [] for record in train) == 1
    assert all(len(record["evidences"]) == 1 and len(record["evidences"][0]) > 1 for record in test)
    assert all(e["start_sentence"] == e["end_sentence"] == -1 for record in test for e in spans(record))
    assert any(e["start_token"] == e["end_token"] for record in test for e in spans(record))
    backup = lines(folder / "test.jsonl.bak")
    (missing,) = {r["annotation_id"] for r in backup} - {r["annotation_id"] for r in test}
    assert (folder / "docs" / missing).is_file()
    human = [lines(path) for path in sorted(folder.glob("human_performance*.jsonl"))]
    assert len(human) == 2 and all("rationales" in record for records in human for record in records)
    assert all(missing in {record["annotation_id"] for record in records} for records in human)
    contents = [path.read_bytes() for path in (folder / "docs").iterdir()]
    assert any(b"\x12" in content for content in contents)
    assert any("\u200b".encode() in content for content in contents)
    assert Counter(contents).most_common(1)[0][1] == 2, "one review stands under two names"
    lengths = [len(split_tokens(content.decode())) for content in contents]
    assert min(lengths) >= 60 and max(lengths) <= 200


def test_multirc(eraser):
    records = [record for split in SPLITS for record in lines(eraser / "multirc" / split)]
    assert all(record["docids"] is None and " || " in record["query"] for record in records)
    assert {record["classification"] for record in records} == {"True", "False"}
    assert all(len(record["evidences"]) == 1 for record in records)
    assert any(len(record["evidences"][0]) > 2 for record in records)


def test_fever(eraser):
    folder = eraser / "fever"
    records = [record for split in SPLITS for record in lines(folder / split)]
    names = {path.name for path in (folder / "docs").iterdir()}
    assert any(not name.isascii() for name in names)
    assert any(name.endswith(".") for name in names) and any("'" in name for name in names)
    assert all(isinstance(record["docids"], list) for record in records)
    keys = [[(e["docid"], e["start_token"], e["end_token"]) for e in spans(record)] for record in records]
    assert any(len(set(key)) < len(key) for key in keys)
    assert any(len(record["docids"]) > 1 for record in records)
    dev = lines(folder / "dev.jsonl")
    assert all("__" in record["annotation_id"] for record in dev)
    assert used(dev) & used(lines(folder / "val.jsonl"))
    assert all("rationales" in r for path in folder.glob("human_performance*.jsonl") for r in lines(path))


def test_boolq(eraser):
    folder = eraser / "boolq"
    texts = documents(folder)
    records = [record for split in SPLITS for record in lines(folder / split)]
    assert all(type(record["annotation_id"]) is int for record in records)
    for evidence in (evidence for record in records for evidence in spans(record)):
        sizes = [len(tokens) for tokens in split_sentences(texts[evidence["docid"]])]
        last = next(k for k in range(len(sizes)) if sum(sizes[: k + 1]) >= evidence["end_token"])
        assert evidence["end_sentence"] == last, "inclusive"
    assert (folder / "train.jsonl").read_bytes().endswith(b"\n")
    assert not (folder / "val.jsonl").read_bytes().endswith(b"\n")
    comprehensive = lines(folder / "test_comprehensive.jsonl")
    assert all(record["docids"] is None for record in comprehensive)
    assert any(e["start_token"] == e["end_token"] for record in comprehensive for e in spans(record))
    assert lines(folder / "test_original.jsonl")
    beside = [r for name in ("dev", "test") for r in lines(folder / f"{name}_data.jsonl")]
    assert all(type(r["docids"]) is str and type(r["evidences"][0]) is dict for r in beside), "no annotations"


def test_evidence_inference(eraser):
    folder = eraser / "evidence_inference"
    assert all(record["query"].count(" | ") == 2 for split in SPLITS for record in lines(folder / split))
    double = lines(folder / "test_exhaustive.jsonl")
    assert all(isinstance(record, str) for record in double)
    assert used([json.loads(record) for record in double]) <= used(lines(folder / "test.jsonl"))


def test_cose(eraser):
    folder = eraser / "cose"
    records = [record for split in SPLITS for record in lines(folder / split)]
    assert all(record["query"].count(" [sep] ") == 4 and isinstance(record["query_type"], str) for record in records)
    assert all(e["start_sentence"] == e["end_sentence"] == -1 for record in records for e in spans(record))
    for split in ("train", "val"):
        assert used(lines(folder / f"{split}_sanity.jsonl")) <= used(lines(folder / f"{split}.jsonl"))
    simple = lines(eraser / "cose_simplified" / "val.jsonl")
    assert Counter(record["classification"] for record in simple) == {"false": 12, "true": 3}


def test_esnli(eraser):
    records = [record for split in SPLITS for record in lines(eraser / "esnli" / split)]
    for record in records:
        name = record["annotation_id"]
        assert record["docids"] == [f"{name}_hypothesis", f"{name}_premise"]
    kinds = {frozenset(e["docid"].rpartition("_")[2] for e in spans(record)) for record in records}
    assert {frozenset({"hypothesis"}), frozenset({"hypothesis", "premise"})} <= kinds
    assert all(len(group) == 1 for r in lines(eraser / "esnli_flat" / "val.jsonl") for group in [used([r])])


# ------------------------------------------------------------------------------------------------------- predictions


def prediction_files(samples: Path) -> Iterator[tuple[str, Path]]:
    for path in sorted((samples / "predictions" / "eraser").glob("*.jsonl")):
        yield path.name.partition(".")[0], path


def test_there_are_predictions_for_every_configuration_and_two_systems_for_movies(samples):
    counts = Counter(name for name, _ in prediction_files(samples))
    assert counts == {name: 2 if name == "movies" else 1 for name in CONFIGS}


def test_predictions_are_complete_and_fit_their_documents(samples):
    for name, path in prediction_files(samples):
        texts = documents(samples / "eraser" / name)
        gold = {str(record["annotation_id"]): record for record in annotations(samples / "eraser" / name / "val.jsonl")}
        instances = lines(path)
        assert sorted(instance["annotation_id"] for instance in instances) == sorted(gold)
        labels = set(CONFIGS[name].label_names)
        for instance in instances:
            scored = [instance, *instance["thresholded_scores"]]
            fields = ("comprehensiveness_classification_scores", "sufficiency_classification_scores")
            distributions = [instance["classification_scores"]]
            distributions += [entry[field] for entry in scored for field in fields]
            for scores in distributions:
                assert set(scores) == labels and abs(sum(scores.values()) - 1) < 1e-3 and min(scores.values()) >= 0
            best = max(instance["classification_scores"].values())
            assert instance["classification_scores"][instance["classification"]] == best
            assert [entry["threshold"] for entry in instance["thresholded_scores"]] == THRESHOLDS
            marked = {evidence["docid"] for evidence in evidences(gold[instance["annotation_id"]])}
            held = [rationale["docid"] for rationale in instance["rationales"]]
            assert len(set(held)) == len(held) and marked <= set(held)
            total = 0
            for rationale in instance["rationales"]:
                text = texts[rationale["docid"]]
                count = len(split_tokens(text))
                total += count
                assert len(rationale["soft_rationale_predictions"]) == count
                assert len(rationale["soft_sentence_predictions"]) == len(split_sentences(text))
                end = 0
                for span in rationale["hard_rationale_predictions"]:
                    assert end <= span["start_token"] < span["end_token"] <= count
                    end = span["end_token"]
            assert type(instance["tokens_to_flip"]) is int and 1 <= instance["tokens_to_flip"] <= total


def test_predictions_of_pairs_rank_the_share_that_they_say(samples):
    rows = lines(samples / "bilingual_perturbation" / "senti_ch")
    predictions = lines(samples / "predictions" / "bilingual_perturbation" / "senti_ch.jsonl")
    assert [row["id"] for row in predictions] == [row["id"] for row in rows]
    for row, prediction in zip(rows, predictions, strict=True):
        (ranked,), (kd,), (places,) = prediction["ranked_tokens"], prediction["kd"], prediction["rationale"]
        assert sorted(ranked) == sorted(row["sent_token"])
        assert prediction["rationale_tokens"] == [ranked[: math.ceil(kd * len(ranked))]]
        assert [row["sent_token"][at] for at in places] == prediction["rationale_tokens"][0]
