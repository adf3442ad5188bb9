"""The agreement module: golden values, invariances, every way in, evaluate's machinery."""

from __future__ import annotations

import copy
import doctest
import math
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import datasets
import evaluate
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eraser_hub.metrics.eraser_agreement import EraserAgreement

from ..refusals import refused
from . import eraser_rows as rows

ROOT = Path(__file__).resolve().parents[2]

seeds = st.integers(0, 10_000)
profile = settings(max_examples=15, derandomize=True, deadline=None)


def compute(predictions: Any, references: Any, **options: Any) -> dict[str, Any]:
    result = EraserAgreement().compute(predictions=predictions, references=references, **options)
    assert result is not None
    return result


def same(first: dict[str, Any], second: dict[str, Any]) -> None:
    assert first.keys() == second.keys()
    for key, value in first.items():
        if isinstance(value, float):
            # some hundred numbers up to 1, summed in another order: as many spacings
            assert second[key] == pytest.approx(value, abs=1e-12, nan_ok=True), key


@pytest.mark.parametrize("corpus", ["movies", "multirc", "fever", "evidence_inference", "cose"])
def test_golden_values(corpus: str, reference_scores: Path, corpora: Path) -> None:
    """Values: golden/eraser_metrics/CORPUS/scores.json (the reference scorer), every key, lists and Dataset."""
    predictions, references, scores = rows.golden_case(reference_scores, corpora, corpus)
    ways = [
        (predictions, references),
        (datasets.Dataset.from_list(predictions), datasets.Dataset.from_list(references)),
    ]
    for way in ways:
        found = compute(*way, iou_thresholds=[0.1, 0.9])
        for entry in scores["iou_scores"]:
            end = "" if entry["threshold"] == 0.5 else f"@{entry['threshold']:g}"
            for kind in ("micro", "macro"):
                for part, value in entry[kind].items():
                    assert found[f"iou_{kind}_{part}{end}"] == pytest.approx(value, abs=1e-9)
        for part, name in (("rationale_prf", "exact"), ("token_prf", "token")):
            for kind in ("micro", "macro"):
                for key, value in scores[part][f"instance_{kind}"].items():
                    assert found[f"{name}_{kind}_{key}"] == pytest.approx(value, abs=1e-9)
        for part, prefix in (("token_soft_metrics", ""), ("sentence_soft_metrics", "sentence_")):
            for key, value in scores.get(part, {}).items():
                assert found[f"{prefix}{key}"] == pytest.approx(value, abs=1e-9)
            assert (f"{prefix}auprc" in found) == (part in scores)


@profile
@given(seeds)
def test_order_does_not_matter(seed: int) -> None:
    predictions, references = rows.random_case(seed)
    expected = compute(predictions, references)
    random = np.random.default_rng(seed)
    shuffled, gold = copy.deepcopy(predictions), copy.deepcopy(references)
    for side in (shuffled, gold):
        random.shuffle(side)  # type: ignore[arg-type]
    for one in shuffled:
        one["rationales"].reverse()
    for row in gold:
        row["evidences"].reverse()
        row["documents"].reverse()
    same(expected, compute(shuffled, gold))


@profile
@given(seeds)
def test_merging_batches_equals_one_call(seed: int) -> None:
    predictions, references = rows.random_case(seed)
    expected = compute(predictions, references)
    metric = EraserAgreement()
    metric.add_batch(predictions=predictions[:2], references=references[3:])
    metric.add_batch(predictions=datasets.Dataset.from_list(predictions[2:4]), references=references[:1])
    for one in predictions[4:]:
        metric.add(prediction=one)
    metric.add_batch(references=pa.Table.from_pylist(references[1:3]))
    assert len(metric) == len(predictions)
    same(expected, metric.compute() or {})


@profile
@given(seeds)
def test_new_names_change_nothing(seed: int) -> None:
    predictions, references = rows.random_case(seed)
    expected = compute(predictions, references)
    for one in predictions:
        one["annotation_id"] = int(one["annotation_id"][1:]) + 7
        for rationale in one["rationales"]:
            rationale["docid"] += "é"
    for row in references:
        row["annotation_id"] = str(int(row["annotation_id"][1:]) + 7)
        for document in row["documents"]:
            document["docid"] += "é"
        for group in row["evidences"]:
            for evidence in group:
                evidence["docid"] += "é"
    same(expected, compute(predictions, references))


@profile
@given(seeds)
def test_a_perfect_prediction_scores_one(seed: int) -> None:
    _, references = rows.random_case(seed)
    found = compute(rows.perfect(references), references)
    one_sentence = all("\n" not in document["text"] for row in references for document in row["documents"])
    for key, value in found.items():
        if key == "signature" or (one_sentence and key.startswith("sentence_")):
            continue
        assert value == pytest.approx(1.0), key


@profile
@given(seeds)
def test_ranges_and_directions_are_described(seed: int) -> None:
    found = compute(*rows.random_case(seed))
    info: Any = EraserAgreement().info
    for key, value in found.items():
        if key != "signature" and not math.isnan(value):
            low, high = info.ranges[key]
            assert info.higher_is_better[key] is True
            assert value >= low and (high is None or value <= high)


@profile
@given(seeds)
def test_arrow_rows_and_columns_agree(seed: int) -> None:
    predictions, references = rows.random_case(seed)
    expected = compute(predictions, references)
    data = datasets.Dataset.from_list(predictions).shuffle(seed=seed)
    gold = datasets.Dataset.from_list(references)
    gold = gold.cast_column("classification", datasets.ClassLabel(names=rows.LABELS))
    same(expected, compute(data, gold))
    same(expected, compute(data.with_format("arrow")[:], gold.select(range(len(gold))[::-1])))
    same(expected, compute({key: data[key][:] for key in data.column_names}, references))
    same(expected, compute(pa.Table.from_pylist(predictions).to_batches()[0], pa.Table.from_pylist(references)))


def test_frames_of_pandas_agree() -> None:
    """Out of pandas a list is an array, whose truth is ambiguous."""
    predictions, references = rows.random_case(5)
    expected = compute(predictions, references)
    for frame in (datasets.Dataset.from_list(references).to_pandas(), datasets.Dataset.from_list(references)):
        same(expected, compute(predictions, frame))
    same(expected, compute(datasets.Dataset.from_list(predictions).to_pandas(), references))


def test_close_thresholds_have_keys_of_their_own() -> None:
    result = compute(*rows.random_case(5), iou_thresholds=[0.5, 0.1, 0.30000001, 0.30000002])
    assert {"iou_micro_f1", "iou_micro_f1@0.1", "iou_micro_f1@0.30000001", "iou_micro_f1@0.30000002"} <= result.keys()


def test_arrow_errors_are_those_of_rows() -> None:
    predictions, references = rows.random_case(1)
    predictions[3]["rationales"][0]["hard_rationale_predictions"][0]["start_token"] = None
    with refused("type", instance="a3", field="rationales[0].hard_rationale_predictions[0].start_token"):
        compute(pa.Table.from_pylist(predictions), references)


def test_settings_extend_the_result() -> None:
    predictions, references = rows.random_case(5)
    asked: dict[str, Any] = {
        "per_instance": True,
        "confidence_level": 0.9,
        "n_resamples": 50,
        "seed": 3,
    }
    more: dict[str, Any] = {"by": "classification", "random_baseline": True, "iou_thresholds": [0.1]}
    found = compute(predictions, references, **asked, **more)
    assert found["per_instance"]["annotation_id"] == [row["annotation_id"] for row in references]
    assert len(found["per_instance"]["token_micro_f1"]) == len(references)
    assert found["token_micro_f1_ci"][0] <= found["token_micro_f1"] <= found["token_micro_f1_ci"][1]
    assert set(found["by"]) <= set(rows.LABELS)
    assert {"auprc_random", "sentence_roc_auc_score_random", "iou_micro_f1@0.1", "iou_matched_f1@0.1"} <= found.keys()
    for part in ("shuffles:10", "level:0.9", "seed:3", "iou:0.5,0.1", "by:classification", "version:"):
        assert part in found["signature"]
    by_source = compute(predictions, references, by="source")["by"]
    assert set(by_source) == {"s0", "s1"}
    alone = [[one for at, one in enumerate(side) if at % 2 == 0] for side in (predictions, references)]
    assert by_source["s0"]["token_macro_f1"] == pytest.approx(compute(*alone)["token_macro_f1"])


def test_results_are_plain_and_can_be_saved(tmp_path: Path) -> None:
    found = compute(*rows.random_case(2), per_instance=True)
    assert {type(value) for value in found.values()} <= {float, str, dict}
    evaluate.save(tmp_path / "saved.json", **found)


@pytest.mark.parametrize(
    "options",
    [
        {"iou_threshold": 0},
        {"iou_thresholds": [2]},
        {"auprc_policy": "best"},
        {"random_baseline": -1},
        {"by": "nothing"},
        {"confidence_level": 1},
        {"n_resamples": 0},
        {"iou_threshold": [0.1, 0.5]},
        {"iou_thresholds": 0.5},
        {"sentence_threshold": "0.5"},
        {"auprc_policy": ["zero"]},
        {"chance": "no"},
        {"label_names": "ab"},
        {"by": ["source"]},
    ],
)
def test_bad_settings(options: dict[str, Any]) -> None:
    ((name, value),) = options.items()
    found = 2 if value == [2] else value
    with refused("option-value", f"{name}: ", f"found {found!r}", field=name, total=1):
        compute(*rows.random_case(0), **options)


def test_a_list_for_one_threshold_leads_to_the_setting_that_takes_several() -> None:
    with refused("option-value", "iou_thresholds", field="iou_threshold"):
        compute(*rows.random_case(0), iou_threshold=[0.1, 0.5])


def test_unknown_setting() -> None:
    with pytest.raises(TypeError, match="per_instnace"):
        compute(*rows.random_case(0), per_instnace=True)


def test_loaded_from_a_file_and_pickled(spaces: Path) -> None:
    metric = evaluate.load(str(spaces / "eraser_agreement"))
    predictions, references = rows.random_case(3)
    expected = compute(predictions, references)
    metric.add_batch(predictions=predictions[:3], references=references)
    copied = pickle.loads(pickle.dumps(metric))
    copied.add_batch(predictions=predictions[3:])
    same(expected, copied.compute())
    pickle.dumps(copied)


def test_combined_with_faithfulness(spaces: Path) -> None:
    paths = [str(spaces / name) for name in ("eraser_agreement", "eraser_faithfulness")]
    both = evaluate.combine(paths)
    predictions, references = rows.random_case(4)
    found = both.compute(predictions=predictions, references=references)
    assert {"token_micro_f1", "comprehensiveness", "eraser_agreement_signature"} <= found.keys()
    for one, row in zip(predictions, references, strict=True):
        both.add(one, row)
    same(found, both.compute())


def test_doctests_run(spaces: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(spaces)
    tests = doctest.DocTestParser().get_doctest(EraserAgreement().inputs_description, {}, "inputs", None, None)
    runner = doctest.DocTestRunner()
    runner.run(tests)
    assert tests.examples and runner.failures == 0


CHILD = """
import sys
import eraser_hub.metrics.eraser_agreement as module
import importlib.util
spec = importlib.util.spec_from_file_location("eraser_rows", sys.argv[2])
rows = importlib.util.module_from_spec(spec)
spec.loader.exec_module(rows)
own = int(sys.argv[1])
predictions, references = rows.random_case(9)
metric = module.EraserAgreement(num_process=2, process_id=own, experiment_id="two", cache_dir=sys.argv[3])
metric.add_batch(predictions=predictions[own::2], references=references[own::2])
found = metric.compute(by="source")
print("none" if found is None else [found["token_micro_f1"], sorted(found["by"])])
"""


@pytest.mark.slow
def test_two_processes(tmp_path: Path) -> None:
    command = [sys.executable, "-c", CHILD]
    ends = [str(Path(__file__).with_name("eraser_rows.py")), str(tmp_path)]
    running = [subprocess.Popen([*command, str(k), *ends], stdout=subprocess.PIPE, text=True) for k in range(2)]
    told = [process.communicate(timeout=120)[0].strip() for process in running]
    expected = compute(*rows.random_case(9))["token_micro_f1"]
    assert told == [str([expected, ["s0", "s1"]]), "none"]


def sentence_case() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Two annotations: sentences of 3, 2 and 4 tokens (with an empty line and a double blank), and one sentence."""

    def evidence(docid: str, *offsets: int) -> dict[str, Any]:
        names = ("start_token", "end_token", "start_sentence", "end_sentence")
        return {"docid": docid, **dict(zip(names, offsets, strict=True))}

    def rationale(docid: str, *spans: tuple[int, int]) -> dict[str, Any]:
        return {
            "docid": docid,
            "hard_rationale_predictions": [{"start_token": start, "end_token": end} for start, end in spans],
        }

    references = [
        {
            "annotation_id": "a",
            "documents": [{"docid": "d", "text": "a b c\n\nd  e\nf g h i"}, {"docid": "e", "text": "x y"}],
            "evidences": [[evidence("d", 0, 3, 0, 1)], [evidence("d", 3, 5, 1, 2)]],
        },
        {
            "annotation_id": "b",
            "documents": [{"docid": "d", "text": "a b"}],
            "evidences": [[evidence("d", 0, 1, 0, 1)]],
        },
    ]
    predictions = [
        {"annotation_id": "b", "rationales": [rationale("d")]},
        {"annotation_id": "a", "rationales": [rationale("e", (1, 2)), rationale("d", (4, 6), (8, 9))]},
    ]
    return predictions, references


def test_sentences_from_spans() -> None:
    """By hand: of a/d sentences 0 and 1 are gold, 1 and 2 predicted; a/e and b/d are of one sentence, and left out."""
    predictions, references = sentence_case()
    found = compute(predictions, references, per_instance=True)
    assert found["sentence_micro_p"] == found["sentence_micro_r"] == 0.5
    assert found["sentence_macro_p"] == found["sentence_macro_r"] == found["sentence_macro_f1"] == 0.5
    assert found["per_instance"]["sentence_micro_p"] == pytest.approx([0.5, math.nan], nan_ok=True)
    assert "|sentences_from:spans|" in found["signature"]
    table = pa.Table.from_pylist(predictions), pa.Table.from_pylist(references)
    with pytest.warns(UserWarning, match="sentence.* 2 documents"):
        again = compute(*table, per_instance=True)
    assert str(again) == str(found)


def test_sentences_come_from_spans_only_where_nothing_else_says_them() -> None:
    predictions, references = sentence_case()
    for row in references:
        for group in row["evidences"]:
            group[0] |= {"start_sentence": -1, "end_sentence": -1}
    found = compute(predictions, references)
    assert not any(key.startswith("sentence") for key in found) and "sentences" not in found["signature"]
    predictions, references = sentence_case()
    scores = {("a", "d"): [1.0, 0.0, 0.0], ("a", "e"): [0.0], ("b", "d"): [1.0]}
    for row in predictions:
        for rationale in row["rationales"]:
            rationale["soft_sentence_predictions"] = scores[row["annotation_id"], rationale["docid"]]
    found = compute(predictions, references)
    assert found["sentence_micro_p"] == 1 and "sentences_from" not in found["signature"]


def test_gold_sentences_past_the_end_or_reversed_are_refused() -> None:
    for offsets, rule, field, found in (
        ((2, 4), "span-bounds", "evidences[0][0].end_sentence", "4"),
        ((2, 1), "span-order", "evidences[0][0].start_sentence", "[2, 1)"),
    ):
        predictions, references = sentence_case()
        start, end = offsets
        references[0]["evidences"][0][0] |= {"start_sentence": start, "end_sentence": end}
        with refused(rule, f"found {found}", instance="a", field=field) as seen:
            compute(predictions, references)
        assert seen.first.side == "reference"
