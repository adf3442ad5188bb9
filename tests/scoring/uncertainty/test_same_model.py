"""Systems of one model and of several: draws, and what compares between models."""

from __future__ import annotations

import json

import pytest

from eraser_hub.scoring.comparison import Inference, compare_files
from eraser_hub.scoring.runs import System
from eraser_hub.scoring.scored_split import ScoredSplit
from eraser_hub.scoring.uncertainty.same_model import share_trainings

QUICK = Inference(n_resamples=100)


@pytest.fixture
def write(samples, tmp_path):
    """Write a copy of the sample predictions under a name, with changes and the digest of a model."""
    lines = (samples / "predictions" / "eraser" / "movies.val.jsonl").read_text(encoding="utf-8").splitlines()

    def copy(name, digest="", **changed):
        records = [json.loads(line) for line in lines]
        for record in records:
            record |= {key: value(record) if callable(value) else value for key, value in changed.items()}
            for key in [key for key, value in changed.items() if value is None]:
                del record[key]
        path = tmp_path / f"{name}.jsonl"
        path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
        if digest:
            (tmp_path / f"{name}.jsonl.run.json").write_text(json.dumps({"model": {"digest": digest}}))
        return path

    return copy


@pytest.fixture
def compare(samples):
    source = ScoredSplit(samples / "eraser" / "movies", "val")
    return lambda **systems: compare_files(
        source, [System(name, tuple(paths)) for name, paths in systems.items()], None, QUICK
    )


def notes_on_models(result):
    return [note for note in result["notes"] if note.startswith("different models")]


def test_models_are_told_apart_by_their_digests(write, compare):
    same = compare(one=[write("a", "m1")], two=[write("b", "m1")])
    assert notes_on_models(same) == [] and "comprehensiveness_aopc" in same["family"]
    other = compare(one=[write("a", "m1")], two=[write("b", "m2")])
    (note,) = notes_on_models(other)
    assert "(one and two)" in note and "comprehensiveness_aopc" in note and "sufficiency_kl" in note
    assert not {"comprehensiveness_aopc", "sufficiency_aopc"} & set(other["family"]) and "macro_f1" in other["family"]
    test = other["comparisons"][0]["keys"]["comprehensiveness_aopc"]
    assert test["p_holm"] is None and test["verdict"] not in ("better", "worse")


def test_faithfulness_is_tested_within_each_model_alone(write, compare):
    result = compare(one=[write("a", "m1")], two=[write("b", "m1")], three=[write("c", "m2")])
    assert "comprehensiveness_aopc" in result["family"]
    tests = {(pair["first"], pair["second"]): pair["keys"] for pair in result["comparisons"]}
    assert tests["one", "two"]["comprehensiveness_aopc"]["p_holm"] is not None
    for pair in (("one", "three"), ("two", "three")):
        assert tests[pair]["comprehensiveness_aopc"]["exploratory"] and not tests[pair]["macro_f1"]["exploratory"]
    assert "|tests:" in result["signature"] and "one and three; two and three" in notes_on_models(result)[0]


def test_without_digests_by_the_scores_of_the_full_inputs(write, compare):
    assert (
        notes_on_models(compare(one=[write("a")], two=[write("b", comprehensiveness_classification_scores=None)])) == []
    )
    full = {"NEG": 0.5, "POS": 0.5}
    assert len(notes_on_models(compare(one=[write("a")], two=[write("b", classification_scores=full)]))) == 1


def test_normalised_scores_are_the_headline_between_models(write, compare):
    bounds = {"lower": 0.1, "upper": 0.9, "sufficiency_lower": 0.1, "sufficiency_upper": 0.9}
    result = compare(one=[write("a", "m1", aopc_bounds=bounds)], two=[write("b", "m2", aopc_bounds=bounds)])
    assert {"naopc_comprehensiveness", "naopc_sufficiency"} <= set(result["family"])
    assert "naopc_comprehensiveness, naopc_sufficiency are headline scores instead" in notes_on_models(result)[0]


def test_files_of_one_model_are_draws_and_no_runs(write, compare):
    def shift(record):
        scores, label = record["comprehensiveness_classification_scores"], record["classification"]
        return {name: p + (0.1 if name == label else -0.1) for name, p in scores.items()}

    draws = [write("a", "m1"), write("b", "m1", comprehensiveness_classification_scores=shift)]
    result = compare(ours=draws, theirs=[write("c", "m1")])
    components = result["comparisons"][0]["keys"]["comprehensiveness"]["components"]
    assert components["draws"] > 0 and components["runs"] == 0
    assert any(note.startswith("each system has one run") for note in result["notes"])
    runs = [draws[0], write("d", "m2", comprehensiveness_classification_scores=shift)]
    result = compare(ours=runs, theirs=[draws[1]])
    components = result["comparisons"][0]["keys"]["comprehensiveness"]["components"]
    assert components["runs"] > 0 and components["draws"] == 0


def test_systems_that_explain_the_same_trainings_have_paired_runs(write, compare):
    def runs(name, digests):
        return [write(f"{name}{at}", digest) for at, digest in enumerate(digests)]

    note = "one and two explain the same trainings: their runs are paired"
    assert note in compare(one=runs("a", ["m1", "m2"]), two=runs("b", ["m2", "m1"]))["notes"]
    # draws of a random method in each training
    assert note in compare(one=runs("c", ["m1", "m2"]), two=runs("d", ["m1", "m1", "m2", "m2"]))["notes"]
    for other in (["m1", "m3"], ["m1", "m2", "m2"], ["m1", "m1"], ["", ""]):
        result = compare(one=runs("e", ["m1", "m2"]), two=runs("f" + "".join(other), other))
        assert not any("same trainings" in line for line in result["notes"]), other


def test_which_trainings_are_shared():
    assert share_trainings([0, 1], [1, 0]) and share_trainings([0, 1], [0, 0, 1, 1])
    assert (
        not share_trainings([0], [0]) and not share_trainings([0, 1], [0, 1, 1]) and not share_trainings([0, 1], [0, 2])
    )
