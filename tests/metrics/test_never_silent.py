"""What modules say of fields they do not know, of what they leave out, and of input of odd kinds."""

from __future__ import annotations

import copy
import warnings
from typing import Any, get_args

import datasets
import evaluate
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from eraser_hub.metrics.annotator_agreement import AnnotatorAgreement
from eraser_hub.metrics.eraser_agreement import EraserAgreement
from eraser_hub.metrics.eraser_faithfulness import EraserFaithfulness
from eraser_hub.metrics.normalized_fidelity import NormalizedFidelity
from eraser_hub.metrics.perturbation_map import PerturbationMap
from eraser_hub.metrics.rationale_set_agreement import RationaleSetAgreement
from eraser_hub.records.rules import Rule

from ..refusals import refused
from .test_input_policy import Case

Rows = list[dict[str, Any]]


def eraser_case() -> tuple[Rows, Rows]:
    case = Case()
    return case.predictions, case.rows()


def map_case() -> tuple[Rows, Rows]:
    predictions = [{"id": at, "rationale_tokens": [["a", "b"]], "kd": 0.5} for at in range(4)]
    return predictions, [
        {"id": at, "sample_type": "disturb" if at % 2 else "ori", "rel_ids": [] if at % 2 else [at + 1]}
        for at in range(4)
    ]


def sets_case() -> tuple[Rows, Rows]:
    predictions = [{"id": at, "rationale": [[0, at]]} for at in range(3)]
    return predictions, [{"id": at, "rationale_ids": [[[0], [1]]]} for at in range(3)]


def fidelity_case() -> tuple[Rows, Rows]:
    p = {"p_full": 0.9, "p_rationale": 0.8, "p_complement": 0.4, "p_empty": 0.5}
    return [{"annotation_id": at, **p} for at in range(3)], [{"annotation_id": at, "kind": "x"} for at in range(3)]


def annotators_case() -> tuple[Rows, Rows]:
    marks = [[0, 1, 1], [0, 1, 0]]
    return [{"annotation_id": at, "annotators": marks} for at in range(3)], [
        {"annotation_id": at, "kind": "x"} for at in range(3)
    ]


MODULES: dict[type[evaluate.Metric], Any] = {
    EraserAgreement: eraser_case,
    EraserFaithfulness: eraser_case,
    PerturbationMap: map_case,
    RationaleSetAgreement: sets_case,
    NormalizedFidelity: fidelity_case,
    AnnotatorAgreement: annotators_case,
}


def compute(module: type[evaluate.Metric], predictions: Any, references: Any, **settings: Any) -> tuple[Any, str]:
    """(the result, what was said beside it)."""
    if module in (EraserAgreement, EraserFaithfulness):
        settings.setdefault("label_names", ["NEG", "POS"])
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        result = module().compute(predictions=predictions, references=references, **settings)
    return result, "\n".join(str(one.message) for one in said)


@pytest.mark.parametrize("module", MODULES)
def test_an_unknown_field_is_said_once_and_not_scored(module: type[evaluate.Metric]) -> None:
    predictions, references = MODULES[module]()
    expected, _ = compute(module, predictions, references)
    for row in predictions:
        row["zebra"] = 1
    found, said = compute(module, predictions, references)
    assert said.count("zebra") == 1 and f"zebra (in {len(predictions)})" in said
    assert str(found) == str(expected)
    table, said = compute(module, pa.Table.from_pylist(predictions), references)
    assert f"zebra (in {len(predictions)})" in said and str(table) == str(expected)


@pytest.mark.parametrize(
    ("module", "name", "wrong"),
    [
        (EraserAgreement, "rationales", "rationale"),
        (EraserFaithfulness, "comprehensiveness_classification_scores", "comprehensivness_classification_scores"),
        (PerturbationMap, "rationale_tokens", "rationale_token"),
        (RationaleSetAgreement, "rationale", "rationalle"),
        (NormalizedFidelity, "p_complement", "p_compliment"),
        (AnnotatorAgreement, "annotators", "anotators"),
    ],
)
@pytest.mark.parametrize("beside", [False, True])
def test_a_misspelt_field_is_an_error(module: type[evaluate.Metric], name: str, wrong: str, beside: bool) -> None:
    predictions, references = MODULES[module]()
    predictions[1][wrong] = predictions[1][name] if beside else predictions[1].pop(name)
    with refused("key-unknown", wrong, f"'{name}'", field=wrong, total=1) as seen:
        compute(module, predictions, references)
    assert seen.first.side == "prediction"


def test_a_misspelt_field_is_an_error_at_any_depth() -> None:
    for path, wrong, meant in (
        (("rationales", 0), "hard_rationale_prediction", "hard_rationale_predictions"),
        (("rationales", 0, "hard_rationale_predictions", 0), "strat_token", "start_token"),
        (("thresholded_scores", 1), "treshold", "threshold"),
    ):
        predictions, references = eraser_case()
        owner: Any = predictions[1]
        for step in path:
            owner = owner[step]
        owner[wrong] = 1
        for form in (predictions, pa.Table.from_pylist(predictions)):
            with refused("key-unknown", f"'{meant}'") as seen:
                compute(EraserAgreement, form, references)
            assert seen.first.field.endswith(f".{wrong}")


def test_a_field_of_a_reference_that_is_misspelt_or_lacks() -> None:
    predictions, references = eraser_case()
    references[1]["evidense"] = references[1].pop("evidences")
    with refused("key-unknown", "'evidences'", instance="a2", field="evidense"):
        compute(EraserAgreement, predictions, references)
    del references[1]["evidense"]
    with refused("key-missing", instance="a2", field="evidences"):
        compute(EraserAgreement, predictions, references)
    for odd in ("", {}):
        references[1]["evidences"] = odd
        with refused("type", f"found {odd!r}", instance="a2", field="evidences"):
            compute(EraserAgreement, predictions, references)
        references[1]["evidences"] = [odd]
        with refused("type", f"found {odd!r}", instance="a2", field="evidences[0]"):
            compute(EraserAgreement, predictions, references)


def test_what_is_left_out_is_said() -> None:
    predictions, references = eraser_case()
    assert compute(EraserAgreement, predictions, references)[1] == ""
    for row in predictions:
        del row["rationales"][0]["soft_rationale_predictions"], row["thresholded_scores"]
    _, said = compute(EraserAgreement, predictions, references)
    assert said.splitlines() == [said] and "AUPRC, AP, ROC-AUC (no soft_rationale_predictions)" in said
    _, said = compute(EraserAgreement, predictions, references, random_baseline=True)
    assert "the random baseline" not in said  # sentences have one
    _, said = compute(EraserFaithfulness, predictions, references)
    assert said.endswith(": AOPC (no thresholded_scores)")
    for row in predictions:
        row["rationales"] = []
    soft = ("soft_rationale_predictions", "soft_sentence_predictions")
    with refused("score-missing", "hard_rationale_predictions", *soft, field="predictions"):
        compute(EraserAgreement, predictions, references)
    _, said = compute(RationaleSetAgreement, *sets_case())
    assert said.endswith(": sufficiency (no rationale_pred_proba); comprehensiveness (no non_rationale_pred_proba)")


@pytest.mark.parametrize("module", [EraserAgreement, EraserFaithfulness])
def test_nothing_to_score_is_an_error(module: type[evaluate.Metric]) -> None:
    predictions, references = eraser_case()
    bare = [{"annotation_id": row["annotation_id"]} for row in predictions]
    field = "hard_rationale_predictions" if module is EraserAgreement else "thresholded_scores"
    with refused("score-missing", field, field="predictions", total=1):
        compute(module, bare, references)


@pytest.mark.parametrize("module", MODULES)
def test_only_predicted(module: type[evaluate.Metric]) -> None:
    """Those that have an instance are scored as if the others were not there; without the option they are an error."""
    predictions, references = MODULES[module]()
    kept = 2 if module is PerturbationMap else 1
    some, whole = predictions[:kept], len(references)
    with refused("id-missing", f"{whole - kept} of {whole} ", "only_predicted=True", total=whole - kept) as seen:
        compute(module, some, references)
    assert seen.first.side == "reference"
    found, _ = compute(module, some, references, only_predicted=True, per_instance=True)
    expected, _ = compute(module, some, references[:kept], per_instance=True)
    unit = "1/2" if module in (EraserAgreement, EraserFaithfulness, PerturbationMap) else "1/3"
    assert f"|scored:{unit}|" in found.pop("signature")
    del expected["signature"]
    assert str(found) == str(expected)


@pytest.mark.parametrize("module", MODULES)
def test_predictions_of_another_corpus(module: type[evaluate.Metric]) -> None:
    predictions, references = MODULES[module]()
    for row in predictions:
        row["annotation_id" if "annotation_id" in row else "id"] = (
            f"of another {row.get('annotation_id')}{row.get('id')}"
        )
    with refused("id-unknown", f" {len(predictions)} ids", f" {len(references)} ", "split?", total=1) as seen:
        compute(module, predictions, references)
    assert "\n" not in str(seen.error) and seen.first.instance.startswith("of another")


@pytest.mark.parametrize("module", MODULES)
def test_an_unknown_keyword_is_told_without_private_names(module: type[evaluate.Metric]) -> None:
    with pytest.raises(TypeError, match=r"'per_instances'.* 'per_instance'\?") as error:
        compute(module, *MODULES[module](), per_instances=True)
    assert "_measure" not in str(error.value)


def test_numbers_as_labels_are_told_once() -> None:
    predictions, references = eraser_case()
    for row in references:
        row["classification"] = 1
    metric = EraserFaithfulness()
    metric.add_batch(predictions=predictions, references=references)
    with refused("label-unknown", "(1)", "2 rows", "label_names=[..]", field="classification", total=1) as seen:
        metric.compute()
    assert seen.first.instance == "a1" and "\n" not in str(seen.error)
    for row in predictions:
        row["classification"] = 1
    with refused("type", "found 1", instance="a1", field="classification", total=2):
        EraserFaithfulness().compute(predictions=predictions)


# ---------------------------------------------------------------------------------------------------------- odd kinds
@pytest.mark.parametrize("module", MODULES)
@pytest.mark.parametrize("form", ["IterableDataset", "tensors", "uint16", "int8", "frame", "generator"])
def test_other_containers_score_the_same(module: type[evaluate.Metric], form: str) -> None:
    predictions, references = MODULES[module]()
    if module in (EraserAgreement, EraserFaithfulness):
        for row in references:
            row["classification"] = ["NEG", "POS"].index(row["classification"])
    expected, _ = compute(module, predictions, references)
    forms: dict[str, Any] = {
        "IterableDataset": lambda rows: datasets.Dataset.from_list(rows).to_iterable_dataset(),
        "tensors": lambda rows: [tensors(row) for row in rows],
        "uint16": lambda rows: narrow(rows, pa.uint16()),
        "int8": lambda rows: narrow(rows, pa.int8()),
        "frame": pd.DataFrame,
        "generator": iter,
    }
    found, _ = compute(module, forms[form](copy.deepcopy(predictions)), forms[form](copy.deepcopy(references)))
    assert {key: value for key, value in found.items() if isinstance(value, float)} == pytest.approx(
        {key: value for key, value in expected.items() if isinstance(value, float)}, abs=1e-6, nan_ok=True
    )


def tensors(value: Any) -> Any:
    """The value with its lists of numbers as tensors."""
    if isinstance(value, dict):
        return {key: tensors(inner) for key, inner in value.items()}
    if isinstance(value, list) and value and all(isinstance(one, (int, float)) for one in value):
        import torch

        return torch.tensor(value)
    return [tensors(inner) for inner in value] if isinstance(value, list) else value


def narrow(rows: Rows, width: pa.DataType) -> pa.Table:
    def cast(kind: pa.DataType) -> pa.DataType:
        if pa.types.is_list(kind):
            return pa.list_(cast(kind.value_type))
        if pa.types.is_struct(kind):
            return pa.struct([pa.field(inner.name, cast(inner.type)) for inner in kind])
        return width if pa.types.is_int64(kind) else kind

    table = pa.Table.from_pylist(rows)
    return table.cast(pa.schema([pa.field(field.name, cast(field.type)) for field in table.schema]))


@pytest.mark.parametrize("module", MODULES)
def test_a_column_twice_is_refused(module: type[evaluate.Metric]) -> None:
    predictions, references = MODULES[module]()
    table = pa.Table.from_pylist(predictions)
    name = table.column_names[-1]
    twice = table.append_column(name, table.column(name))
    with refused("key-twice", f"'{name}'", field="predictions", total=1):
        compute(module, twice, references)


def loop() -> list[Any]:
    own: list[Any] = []
    own.append(own)
    return own


def deep() -> list[Any]:
    value: list[Any] = []
    for _ in range(5000):
        value = [value]
    return value


def odd_values() -> list[Any]:
    import torch

    arrays = [*map(np.array, (0.5, "x", None, [], [None, 1])), np.array([1, "x"], dtype=object), torch.tensor(1.0)]
    return [*arrays, np.ma.masked, pd.NA, pd.NaT, loop(), deep(), {"a": loop()}, object(), b"x", {1}, 1j, ...]


@pytest.mark.parametrize("module", MODULES)
def test_odd_values_end_in_a_score_or_one_clear_error(module: type[evaluate.Metric]) -> None:
    for odd in odd_values():
        for side in (0, 1):
            for place in cells(MODULES[module]()[side]):
                both = MODULES[module]()
                container: Any = both[side]
                for step in place[:-1]:
                    container = container[step]
                container[place[-1]] = odd
                try:
                    compute(module, *both)
                except ValueError as error:
                    assert str(error) and error.rule in get_args(Rule)
        with pytest.raises((ValueError, TypeError)):
            compute(module, odd, MODULES[module]()[1])


def cells(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths to the second row's values; of long lists to the first item alone."""
    if not path:
        return cells(value[1], (1,))
    keys = list(value) if isinstance(value, dict) else [0] if isinstance(value, list) and value else []
    return [place for key in keys for place in ((*path, key), *cells(value[key], (*path, key)))]


# -------------------------------------------------------------------------------------------- no answer, no sentences
def test_what_is_no_answer_has_no_spans_zero_scores_and_a_wrong_label() -> None:
    predictions, references = eraser_case()
    for row in predictions:
        row["outcome"] = "answered"
    silent = {"annotation_id": "a2", "outcome": "refused", "classification": None, "rationales": []}
    agreement, _ = compute(EraserAgreement, [predictions[0], silent], references)
    spelt = copy.deepcopy(predictions)
    spelt[1]["rationales"][0] |= {"hard_rationale_predictions": []}
    for field in ("soft_rationale_predictions", "soft_sentence_predictions"):
        spelt[1]["rationales"][0][field] = [0.0] * len(spelt[1]["rationales"][0][field])
    expected, _ = compute(EraserAgreement, spelt, references)
    assert "|answered:1/2|" in agreement.pop("signature")
    del expected["signature"]
    assert agreement == pytest.approx(expected, nan_ok=True)
    faithfulness, _ = compute(EraserFaithfulness, [predictions[0], silent], references)
    alone, _ = compute(EraserFaithfulness, predictions[:1], references[:1])
    assert faithfulness["accuracy"] == alone["accuracy"] / 2 and "|answered:1/2|" in faithfulness["signature"]
    assert faithfulness["comprehensiveness"] == alone["comprehensiveness"]
    assert faithfulness["sufficiency_aopc_points"] == alone["sufficiency_aopc_points"]
    silent["classification"] = "POS"
    with refused("constant", "null", instance="a2", field="classification"):
        compute(EraserFaithfulness, [predictions[0], silent], references)


def test_sentence_scores_leave_out_what_has_no_sentences() -> None:
    predictions, references = eraser_case()
    expected, _ = compute(EraserAgreement, predictions[:1], references[:1])
    references[1]["evidences"][0][0] |= {"start_sentence": -1, "end_sentence": -1}
    found, said = compute(EraserAgreement, predictions, references)
    assert said.splitlines() == [said] and " 1 annotations " in said and "sentence offsets" in said
    sentences = [key for key in expected if key.startswith("sentence_")]
    assert len(sentences) == 9 and {key: found[key] for key in sentences} == {key: expected[key] for key in sentences}


def test_groups_by_gold_label_have_no_macro_f1() -> None:
    predictions, references = eraser_case()
    found, said = compute(EraserFaithfulness, predictions, references, by="classification")
    assert "macro_f1" in found and all("macro_f1" not in group for group in found["by"].values())
    assert said.splitlines() == [said] and "macro_f1" in said


@pytest.mark.parametrize("module", [EraserAgreement, EraserFaithfulness])
def test_documents_of_rationales_are_known_and_stand_once(module: type[evaluate.Metric]) -> None:
    predictions, references = eraser_case()
    predictions[1]["rationales"][0]["docid"] = "nowhere"
    with refused("document-unknown", "'nowhere'", instance="a2", field="rationales[0].docid"):
        compute(module, predictions, references)
    predictions, references = eraser_case()
    predictions[1]["rationales"] *= 2
    with refused("document-twice", "'d2'", instance="a2", field="rationales[1].docid"):
        compute(module, predictions, references)
    if module is EraserFaithfulness:
        with refused("document-twice", "'d2'", instance="a2", field="rationales[1].docid"):
            module().compute(predictions=predictions)
