"""What the four row-shaped metrics have in common: how rows come in, how evaluate drives them, what is refused."""

from __future__ import annotations

import copy
import doctest
import json
import multiprocessing
import os
import pickle
import re
import sys
from pathlib import Path

import datasets
import evaluate
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eraser_hub.metrics.rows import to_rows

from ..refusals import refused
from . import family

MODULES, made_up = family.MODULES, family.made_up

NAMES = sorted(MODULES)
METRICS = Path(__file__).resolve().parents[2] / "metrics"
each = pytest.mark.parametrize("name", NAMES)


def compute(name, predictions, references, **settings):
    return MODULES[name]().compute(predictions=predictions, references=references, **settings)


def same(one, two, ignore=("signature",)):
    assert one.keys() == two.keys()
    for key, value in one.items():
        if key not in ignore and isinstance(value, (float, list)):
            # some hundred numbers up to 1, summed in another order: as many spacings
            assert np.allclose(value, two[key], atol=1e-12, equal_nan=True), key


def scores(result):
    return {key: value for key, value in result.items() if isinstance(value, float)}


# ------------------------------------------------------------------------------------------- how evaluate loads them
@each
def test_loads_by_file_by_folder_and_by_name_with_equal_results(name, spaces, monkeypatch):
    inputs = made_up(name)
    whole = compute(name, *inputs)
    for path in (spaces / name, spaces / name / f"{name}.py"):
        loaded = evaluate.load(str(path))
        same(loaded.compute(predictions=inputs[0], references=inputs[1]), whole)
    monkeypatch.chdir(spaces)
    same(evaluate.load(name).compute(predictions=inputs[0], references=inputs[1]), whole)


@each
def test_doctests_of_the_module_and_of_its_card_run(name, spaces, monkeypatch):
    monkeypatch.chdir(spaces)
    card = Path(name, "README.md").read_text(encoding="utf-8")
    blocks = "\n".join(re.findall(r"```python\n(.*?)```", card, flags=re.DOTALL))
    for text in (blocks, MODULES[name]().inputs_description):
        test = doctest.DocTestParser().get_doctest(text, {}, name, None, 0)
        assert test.examples
        assert doctest.DocTestRunner(verbose=False).run(test).failed == 0


def test_the_spaces_import_with_their_siblings_alone(spaces):
    modules = "; ".join(f"import {name}.{name}" for name in NAMES)
    code = f"import sys; sys.path.insert(0, {str(spaces)!r}); {modules}; assert 'eraser_hub' not in sys.modules"
    assert os.spawnv(os.P_WAIT, sys.executable, [sys.executable, "-c", code]) == 0


@each
def test_info_tells_direction_and_range_of_every_score(name):
    metric = MODULES[name]()
    result = scores(metric.compute(predictions=made_up(name)[0], references=made_up(name)[1]))
    assert set(metric.info.higher_is_better) <= set(metric.info.ranges)
    assert set(result) <= set(metric.info.ranges)
    for key, value in result.items():
        low, high = metric.info.ranges[key]
        assert (low is None or low <= value) and (high is None or value <= high)
    assert metric.citation.startswith("@") and metric.info.reference_urls


# ----------------------------------------------------------------------------------------------- how evaluate drives
@each
def test_add_add_batch_and_compute_agree(name):
    predictions, references = made_up(name)
    whole = compute(name, predictions, references)
    batches, singles = MODULES[name](), MODULES[name]()
    cut = len(predictions) // 3
    batches.add_batch(predictions=predictions[:cut])
    batches.add_batch(predictions=predictions[cut:], references=references)
    assert len(batches) == len(predictions)
    same(batches.compute(), whole)
    assert len(batches) == 0
    for at, row in enumerate(predictions):
        singles.add(prediction=row, reference=references[at] if references else None)
    same(singles.compute(), whole)
    same(singles.compute(predictions=predictions, references=references), whole)


@each
def test_a_batch_may_be_cleared_by_its_owner(name):
    predictions, references = made_up(name)
    metric, batch = MODULES[name](), list(predictions)
    metric.add_batch(predictions=batch, references=references)
    batch.clear()
    same(metric.compute(), compute(name, predictions, references))


@each
def test_a_failed_computation_leaves_nothing_behind(name):
    predictions, references = made_up(name)
    metric = MODULES[name]()
    with pytest.raises(ValueError) as error:
        metric.compute(predictions=[{"id": "no", "annotation_id": "no"}], references=references)
    assert error.value.rule != "input"
    same(metric.compute(predictions=predictions, references=references), compute(name, predictions, references))


@each
def test_saves_combines_and_pickles(name, tmp_path):
    predictions, references = made_up(name)
    metric = MODULES[name]()
    result = metric.compute(
        predictions=predictions, references=references, per_instance=True, n_resamples=10, by="group"
    )
    saved = evaluate.save(tmp_path / "result.json", **result)
    assert json.loads(Path(saved).read_text())["signature"] == result["signature"]
    again = pickle.loads(pickle.dumps(metric))
    same(again.compute(predictions=predictions, references=references), compute(name, predictions, references))
    both = evaluate.combine([MODULES[name](), again], force_prefix=True)
    combined = both.compute(predictions=predictions, references=references)
    assert len(combined) == 2 * len(compute(name, predictions, references))
    added = evaluate.combine([MODULES[name]()])
    for at, row in enumerate(predictions):
        added.add(row, references[at] if references else None)
    same(added.compute(), compute(name, predictions, references))


def _worker(name, cache, process, predictions, references, queue):
    metric = MODULES[name](num_process=2, process_id=process, experiment_id="pair", cache_dir=cache)
    queue.put((process, metric.compute(predictions=predictions, references=references)))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["perturbation_map", "normalized_fidelity"])
def test_two_processes_share_the_work(name, tmp_path):
    predictions, references = made_up(name)
    cut = len(predictions) // 2
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    parts = [
        (predictions[:cut], references[: cut - 1] if references else None),
        (predictions[cut:], references[cut - 1 :] if references else None),
    ]
    workers = [
        context.Process(target=_worker, args=(name, str(tmp_path), process, *parts[process], queue), daemon=True)
        for process in range(2)
    ]
    for worker in workers:
        worker.start()
    found = dict(queue.get(timeout=60) for _ in workers)
    for worker in workers:
        worker.join(timeout=60)
    assert found[1] is None
    same(found[0], compute(name, predictions, references))


@each
def test_dataset_table_columns_and_rows_are_the_same_input(name):
    predictions, references = made_up(name)
    whole = compute(name, predictions, references)
    text = [
        {key: str(value) if key in ("id", "annotation_id") else value for key, value in row.items()}
        for row in predictions
    ]
    texts = references and [
        {key: str(value) if key in ("id", "annotation_id") else value for key, value in row.items()}
        for row in references
    ]
    for convert in (
        datasets.Dataset.from_list,
        pa.Table.from_pylist,
        lambda rows: datasets.Dataset.from_list(rows).with_format("numpy"),
        lambda rows: {key: [row[key] for row in rows] for key in rows[0]},
        iter,
        tuple,
    ):
        same(compute(name, convert(text), convert(texts) if texts else None), whole)
    metric = MODULES[name]()
    table = pa.Table.from_pylist(text)
    metric.add_batch(predictions=table.slice(0, 3), references=datasets.Dataset.from_list(texts) if texts else None)
    metric.add_batch(predictions=table.slice(3))
    same(metric.compute(), whole)


def test_arrow_cells_are_what_pyarrow_gives():
    rows = [
        {"s": "a", "l": ["x", None, "x"], "n": [[["1"], []], []], "i": [1, 2], "f": 0.5, "d": {"k": [1]}},
        {"s": None, "l": None, "n": [[None], None], "i": [], "f": None, "d": None},
        {"s": "", "l": [], "n": None, "i": None, "f": 1.5, "d": {"k": None}},
    ]
    table = pa.Table.from_pylist(rows)
    for one in (table, table.slice(1), table.slice(1, 1), table.slice(3), pa.concat_tables([table.slice(2), table])):
        assert to_rows(one, "prediction") == one.to_pylist()
        assert to_rows(datasets.Dataset(one), "prediction") == one.to_pylist()
    shuffled = datasets.Dataset(table).select([2, 0])
    assert to_rows(shuffled, "prediction") == [rows[2], rows[0]]
    assert to_rows(table.to_struct_array(), "prediction") == rows


def test_class_numbers_of_a_dataset_become_their_names():
    rows, _ = made_up("normalized_fidelity", 6)
    features = datasets.Features(
        {"annotation_id": datasets.Value("int64"), "label": datasets.ClassLabel(names=["NEG", "POS"])}
    )
    references = datasets.Dataset.from_list(
        [{"annotation_id": at, "label": at % 2} for at in range(6)], features=features
    )
    assert set(compute("normalized_fidelity", rows, references, by="label")["by"]) == {"NEG", "POS"}
    plain = [{**row, "label": at % 2} for at, row in enumerate(rows)]
    assert set(compute("normalized_fidelity", plain, None, by="label", label_names=["a", "b"])["by"]) == {"a", "b"}


# ------------------------------------------------------------------------------------------------------- invariants
@each
@given(seed=st.integers(0, 10**6), n=st.integers(2, 7), data=st.data())
@settings(max_examples=15, deadline=None, derandomize=True)
def test_order_batches_and_ids_do_not_matter(name, seed, n, data):
    predictions, references = made_up(name, n, seed)
    whole = compute(name, predictions, references)
    shuffled = data.draw(st.permutations(predictions))
    others = data.draw(st.permutations(references)) if references else None
    same(compute(name, shuffled, others), whole)

    def renamed(row):
        new = {**row, **{key: f"new-{row[key]}" for key in ("id", "annotation_id") if key in row}}
        return {**new, "rel_ids": [f"new-{one}" for one in row["rel_ids"]]} if row.get("rel_ids") else new

    same(compute(name, [*map(renamed, predictions)], references and [*map(renamed, references)]), whole)


@each
@given(seed=st.integers(0, 10**6))
@settings(max_examples=8, deadline=None, derandomize=True)
def test_statistics_of_disjoint_batches_are_those_of_one_call(name, seed):
    first, second = made_up(name, 4, seed), made_up(name, 4, seed + 1)

    def moved(row):
        new = {**row, **{key: f"second-{row[key]}" for key in ("id", "annotation_id") if key in row}}
        return {**new, "rel_ids": [f"second-{one}" for one in row["rel_ids"]]} if row.get("rel_ids") else new

    second = ([*map(moved, second[0])], second[1] and [*map(moved, second[1])])
    metric = MODULES[name]()
    parts = [metric.statistics(*first), metric.statistics(*second)]
    both = (first[0] + second[0], first[1] + second[1] if first[1] else None)
    whole = metric.statistics(*both)
    assert [one for part in parts for one in part.ids] == whole.ids
    if (
        name == "annotator_agreement"
    ):  # its further columns are those of the pairs of annotators and of lengths of spans
        for part in parts:
            assert part.values.shape[1] > 10
        assert np.allclose(np.concatenate([part.values[:, :10] for part in parts]), whole.values[:, :10])
        return
    values = np.concatenate([part.values for part in parts])
    assert np.allclose(values, whole.values)
    for key, value in parts[0].finalize(values.sum(axis=0)).items():
        assert np.allclose(value, whole.scores()[key], equal_nan=True)


@each
def test_inputs_are_left_as_they_were(name):
    inputs = made_up(name)
    before = copy.deepcopy(inputs)
    compute(name, *inputs, per_instance=True, by="group")
    assert inputs == before


# --------------------------------------------------------------------------------------------- common keyword arguments
@each
def test_per_instance_by_and_intervals(name):
    predictions, references = made_up(name)
    bca = {"confidence_level": 0.9, "n_resamples": 60, "seed": 3}
    found = compute(name, predictions, references, per_instance=True, by="group", **bca)
    columns = found["per_instance"]
    assert len({len(column) for column in columns.values()}) == 1
    assert columns["annotation_id"] == [str(at) for at in range(8)]
    for key, value in scores(found).items():
        low, high = found[f"{key}_ci"]
        assert low <= high
        assert all(key in group for group in found["by"].values())
        assert type(value) is float
    assert set(found["by"]) == {"x", "y", "z"}
    one = compute(name, predictions, references, **bca)
    assert all(one[key] == found[key] for key in one if key.endswith("_ci"))
    drawn = r"cluster:(original|documents|none)\|clusters:8"
    assert re.search(
        rf"ci:bca\|(exact:[a-z_0-9,]+\|)?level:0.9\|resamples:60\|seed:3\|{drawn}\|by:group", found["signature"]
    )


@each
def test_unknown_settings_and_columns_are_refused(name):
    predictions, references = made_up(name)
    with pytest.raises(TypeError, match="confidence"):
        compute(name, predictions, references, confidence=0.9)
    with refused("option-value", "by: ", "'colour'", field="by"):
        compute(name, predictions, references, by="colour")
    with refused("option-value", "confidence_level: ", "found 2", field="confidence_level"):
        compute(name, predictions, references, confidence_level=2)


@each
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("only_predicted", "yes"),
        ("per_instance", "False"),
        ("per_instance", 1),
        ("confidence_level", "0.95"),
        ("n_resamples", "many"),
        ("seed", "1"),
        ("seed", -1),
        ("seed", None),
    ],
)
def test_settings_of_a_wrong_type_are_refused(name, field, value):
    for others in ({}, {"n_resamples": 5}):
        with refused("option-value", f"{field}: ", f"found {value!r}", field=field):
            compute(name, *made_up(name), **{**others, field: value})


@each
def test_numbers_and_flags_of_numpy_are_settings(name):
    settings = {"per_instance": np.True_, "confidence_level": np.float32(0.5), "seed": np.int64(1)}
    assert "per_instance" in compute(name, *made_up(name), **settings)


@each
def test_nothing_given_is_refused(name):
    for predictions, references in ((None, None), ([], None), ([], [])):
        with refused("empty", total=1):
            compute(name, predictions, references)


@each
@pytest.mark.parametrize(
    ("rows", "found"), [("text", "'text'"), (3, 3), ([1, 2], 1), ([None], None), ([[1]], [1]), ({"id": 1}, "'id'")]
)
def test_what_is_no_row_is_refused(name, rows, found):
    with refused("type", found, field="predictions[0]" if isinstance(rows, list) else "predictions", total=1):
        compute(name, rows, made_up(name)[1])


@each
@pytest.mark.parametrize("wrong", [None, True, 1.5, ["a"], {"a": 1}])
def test_an_id_of_another_kind_is_refused(name, wrong):
    predictions, references = made_up(name)
    field = "annotation_id" if "annotation_id" in predictions[0] else "id"
    predictions[2][field] = wrong
    with refused("type", "row 2: ", f"found {wrong!r}", field="annotation_id"):
        compute(name, predictions, references)


@each
def test_an_id_twice_is_refused_also_as_string_and_number(name):
    predictions, references = made_up(name)
    field = "annotation_id" if "annotation_id" in predictions[0] else "id"
    predictions.append({**predictions[0], field: str(predictions[0][field])})
    with refused("id-twice", f"row {len(predictions) - 1}: ", instance="0"):
        compute(name, predictions, references)


@pytest.mark.parametrize("name", ["perturbation_map", "rationale_set_agreement"])
def test_ten_offenders_are_named_and_all_are_counted(name):
    predictions, references = made_up(name, 40)
    with refused("id-missing") as seen:
        compute(name, predictions[:1], references)
    lines, total = str(seen.error).splitlines(), seen.error.total
    assert len(lines) == 11 and lines[-1] == f"… and {total - 10} more ({total} in all)"
    assert total >= len(references) - 1 and len(seen.error.errors) == 10


@pytest.mark.parametrize("name", ["normalized_fidelity", "annotator_agreement"])
def test_references_of_other_ids_are_refused(name):
    rows, _ = made_up(name)
    with refused("id-missing", "reference '99'", instance="99"):
        compute(name, rows, [{"annotation_id": row["annotation_id"], "g": 1} for row in rows] + [{"annotation_id": 99}])
    with refused("id-unknown", "prediction '0'", instance="0"):
        compute(name, rows, [{"annotation_id": row["annotation_id"], "g": 1} for row in rows[1:]])
