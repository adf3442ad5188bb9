"""What the seven modules have in common: how evaluate drives them, containers, keyword arguments, what is refused."""

from __future__ import annotations

import copy
import doctest
import importlib
import json
import math
import pickle
import re
import sys
import types
import warnings
from collections.abc import Iterator
from fnmatch import fnmatch
from itertools import product
from pathlib import Path
from typing import Any

import datasets
import evaluate
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eraser_hub.metrics.errors import DataError

from .family import MODULES, made_up

NAMES = sorted(MODULES)
COUNTS = {"signature", "aopc_thresholds", "pairs", "comparisons", "undefined_kappas", "quotes", "empty", "gold"}
ROOT = Path(__file__).resolve().parents[2]
METRICS, SCORES_PAGE = ROOT / "metrics", ROOT / "docs" / "scores.md"
each = pytest.mark.parametrize("name", NAMES)
Rows = list[dict[str, Any]]


def compute(name: str, predictions: Any, references: Any, **options: Any) -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return MODULES[name]().compute(predictions=predictions, references=references, **options)


def same(one: dict[str, Any], two: dict[str, Any], atol: float = 1e-12) -> None:
    assert one.keys() == two.keys()
    for key, value in one.items():
        if isinstance(value, (float, list)):
            assert np.allclose(value, two[key], atol=atol, equal_nan=True), key


def id_field(rows: Rows) -> str:
    return "annotation_id" if "annotation_id" in rows[0] else "id"


def classify(texts: list[str]) -> list[list[dict[str, Any]]]:
    """What a text classifier of transformers returns; one that knows a single word."""
    p = 0.9 if "delight" in texts[0] else 0.1
    return [[{"label": "POSITIVE", "score": p}, {"label": "NEGATIVE", "score": 1 - p}]]


# -------------------------------------------------------------------------------------------------- how evaluate drives
@each
def test_loads_as_a_space_and_its_card_and_docstring_run(
    name: str, spaces: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs = made_up(name)
    same(evaluate.load(str(spaces / name)).compute(predictions=inputs[0], references=inputs[1]), compute(name, *inputs))
    monkeypatch.chdir(spaces)
    card = Path(name, "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", card, flags=re.DOTALL)
    sessions = "\n".join(block for block in blocks if ">>>" in block)
    for text in (sessions, MODULES[name]().inputs_description):
        test = doctest.DocTestParser().get_doctest(text, {}, name, None, 0)
        assert test.examples and doctest.DocTestRunner(verbose=False).run(test).failed == 0
    library: Any = types.ModuleType("transformers")
    library.pipeline = lambda task, **options: classify
    monkeypatch.setitem(sys.modules, "transformers", library)
    for block in (block for block in blocks if ">>>" not in block):
        namespace: dict[str, Any] = {}
        exec(block, namespace)
        assert namespace["scores"]["comprehensiveness"] == pytest.approx(0.8)
        assert namespace["scores"]["sufficiency"] == pytest.approx(0)


@pytest.mark.parametrize("leaf", sorted(path.stem for path in METRICS.glob("*.py") if path.stem not in (*NAMES, "app")))
def test_examples_of_the_leaves_run(leaf: str) -> None:
    assert doctest.testmod(importlib.import_module(f"eraser_hub.metrics.{leaf}")).failed == 0


@each
def test_every_score_has_direction_range_and_a_line_in_the_documents(name: str) -> None:
    found, info = compute(name, *made_up(name)), MODULES[name]().info
    assert set(info.higher_is_better) == set(info.ranges) >= {*found} - COUNTS and {*info.headline} <= {*found}
    assert set(info.higher_is_better.values()) <= {True, False, None} and info.citation.startswith("@")
    for key in found.keys() - COUNTS:
        low, high = info.ranges[key]
        for value in np.ravel(found[key]):
            assert math.isnan(value) or ((low is None or value >= low) and (high is None or value <= high))
    lines = [line for line in SCORES_PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    keys = [key for line in lines for key in named_in(line.split("|")[1])]
    wanted = {key.removesuffix("_std") for key in info.ranges}
    assert [key for key in sorted(wanted) if not any(fnmatch(key, known) for known in keys)] == []


def named_in(cell: str) -> Iterator[str]:
    """The keys in a cell of the table: ``{a,b}_c`` names two, ``*`` stands for any."""
    for words in re.findall(r"`([^`]+)`", cell):
        yield from map("".join, product(*(part.split(",") for part in re.split(r"[{}]", words))))


@each
def test_add_add_batch_and_compute_agree(name: str, tmp_path: Path) -> None:
    predictions, references = made_up(name)
    whole = compute(name, predictions, references)
    batches, singles, cut = MODULES[name](), MODULES[name](), len(predictions) // 3
    batch = predictions[:cut]
    batches.add_batch(predictions=batch)
    batch.clear()
    batches.add_batch(predictions=predictions[cut:], references=references)
    assert len(batches) == len(predictions)
    same(batches.compute(), whole)
    assert len(batches) == 0
    for at, row in enumerate(predictions):
        singles.add(prediction=row, reference=references[at] if references and at < len(references) else None)
    same(singles.compute(), whole)
    with pytest.raises(DataError):
        singles.compute(predictions=[{"id": "no", "annotation_id": "no"}], references=references)
    same(singles.compute(predictions=predictions, references=references), whole)  # nothing is left behind
    several = MODULES[name](num_process=2, process_id=0, experiment_id="pair", cache_dir=str(tmp_path))
    with pytest.raises(DataError, match="expected 1 process, found 2"):
        several.compute(predictions=predictions, references=references)


def as_text_ids(rows: Rows) -> Rows:
    """Ids as strings, as an Arrow column has them in all rows."""
    rows = [
        {key: str(value) if key in ("id", "annotation_id") else value for key, value in row.items()} for row in rows
    ]
    return [{**row, "rel_ids": [*map(str, row["rel_ids"] or ())]} if "rel_ids" in row else row for row in rows]


@each
def test_saves_combines_and_pickles(name: str, tmp_path: Path) -> None:
    predictions, references = made_up(name)
    whole = compute(name, predictions, references)
    result = compute(name, predictions, references, per_instance=True, n_resamples=10, by="group")
    saved = evaluate.save(tmp_path / "result.json", **result)
    assert json.loads(Path(saved).read_text())["signature"] == result["signature"]
    again = pickle.loads(pickle.dumps(MODULES[name]()))
    same(again.compute(predictions=predictions, references=references), whole)
    both = evaluate.combine([MODULES[name](), again], force_prefix=True)
    assert len(both.compute(predictions=predictions, references=references)) == 2 * len(whole)


# ----------------------------------------------------------------------------------------------------------- containers


def tensors(value: Any) -> Any:
    """The value with its lists of numbers as tensors."""
    if isinstance(value, dict):
        return {key: tensors(inner) for key, inner in value.items()}
    if isinstance(value, list) and value and all(isinstance(one, (int, float)) for one in value):
        return pytest.importorskip("torch").tensor(value)
    return [tensors(inner) for inner in value] if isinstance(value, list) else value


CONTAINERS: dict[str, Any] = {
    "Dataset of numpy": lambda rows: datasets.Dataset.from_list(rows).with_format("numpy"),
    "IterableDataset": lambda rows: datasets.Dataset.from_list(rows).to_iterable_dataset(),
    "table": pa.Table.from_pylist,
    "frame": pd.DataFrame,
    "columns": lambda rows: {key: [row[key] for row in rows] for key in rows[0]},
    "tensors": lambda rows: [tensors(row) for row in rows],
    "iterator": iter,
}


@each
@pytest.mark.parametrize("form", CONTAINERS)
def test_every_container_scores_the_same(name: str, form: str) -> None:
    predictions, references = made_up(name)
    rows = [as_text_ids(predictions), references and as_text_ids(references)]
    before, convert = copy.deepcopy(rows), CONTAINERS[form]
    found = compute(name, convert(rows[0]), convert(rows[1]) if rows[1] else None)
    same(found, compute(name, predictions, references), atol=1e-6)  # tensors are float32
    assert rows == before


# ----------------------------------------------------------------------------------------------------------- invariants
@each
@given(seed=st.integers(0, 10**6), n=st.integers(2, 7), data=st.data())
@settings(max_examples=10, deadline=None, derandomize=True)
def test_order_and_names_of_rows_do_not_matter(name: str, seed: int, n: int, data: st.DataObject) -> None:
    predictions, references = made_up(name, n, seed)
    whole = compute(name, predictions, references)
    shuffled = data.draw(st.permutations(predictions))
    same(compute(name, shuffled, data.draw(st.permutations(references)) if references else None), whole)

    def rename(row: dict[str, Any]) -> dict[str, Any]:
        new = {**row, **{key: f"new-{row[key]}" for key in ("id", "annotation_id") if key in row}}
        return {**new, "rel_ids": [f"new-{one}" for one in row["rel_ids"]]} if row.get("rel_ids") else new

    same(compute(name, [*map(rename, predictions)], references and [*map(rename, references)]), whole)


# ---------------------------------------------------------------------------------------------------- keyword arguments
@each
def test_per_instance_by_and_intervals(name: str) -> None:
    bca = {"confidence_level": np.float32(0.5), "n_resamples": 60, "seed": np.int64(3)}
    found = compute(name, *made_up(name), per_instance=np.True_, by="group", **bca)
    whole = compute(name, *made_up(name), **bca)
    columns = found["per_instance"]
    assert {len(column) for column in columns.values()} == {8} and len(columns["cluster"]) == 8
    assert set(found["by"]) == {"x", "y", "z"}
    for key in MODULES[name]().info.ranges.keys() & found.keys():
        bounds = np.array(found[f"{key}_ci"])
        assert (np.isnan(bounds).any(axis=-1) | (bounds[..., 0] <= bounds[..., 1])).all()
        assert all(key in group for group in found["by"].values()) and key in columns
        assert np.array_equal(bounds, whole[f"{key}_ci"], equal_nan=True)
    assert re.search(
        r"\|level:0\.5\|resamples:60\|seed:3\|cluster:(original|documents|none)\|clusters:\d+\|by:group\|",
        found["signature"],
    )


WRONG_SETTINGS = {
    "by": ["colour", 3],
    "cluster_by": ["colour"],
    "only_predicted": ["yes"],
    "per_instance": ["False"],
    "confidence_level": [2],
    "n_resamples": [0, True],
    "seed": [-1, None],
}


@each
@pytest.mark.parametrize("argument", WRONG_SETTINGS)
def test_wrong_settings_are_refused(name: str, argument: str) -> None:
    for value in WRONG_SETTINGS[argument]:
        with pytest.raises(DataError, match=r"expected .*found") as caught:
            compute(name, *made_up(name), **{argument: value})
        assert caught.value.argument == argument and repr(value) in str(caught.value)
    with pytest.raises(TypeError, match=r"'per_instances'.* 'per_instance'\?"):
        compute(name, *made_up(name), per_instances=True)


@each
def test_what_is_no_row_and_ids_that_are_none_or_stand_twice_are_refused(name: str) -> None:
    for rows in ("text", 3, [1, 2], [None], {"id": 1}, [], None, np.array(0.5), b"x"):
        with pytest.raises(DataError, match="expected "):
            compute(name, rows, made_up(name)[1])
    for wrong in (None, True, 1.5, ["a"], {"a": 1}):
        predictions, references = made_up(name)
        predictions[2][id_field(predictions)] = wrong
        with pytest.raises(DataError, match=r"expected .*found"):
            compute(name, predictions, references)
    predictions, references = made_up(name)
    table = pa.Table.from_pylist(as_text_ids(predictions))
    with pytest.raises(DataError, match=r"predictions: .* twice"):
        compute(name, table.append_column(table.column_names[-1], table.column(-1)), references)
    field = id_field(predictions)
    predictions.append({**predictions[0], field: str(predictions[0][field])})
    with pytest.raises(DataError, match="again"):
        compute(name, predictions, references)


@each
def test_only_predicted(name: str) -> None:
    """Those that have a prediction are scored as if the others were not there; without the option they are an error."""
    predictions, references = made_up(name)
    field = id_field(predictions)
    references = references or [{field: row[field]} for row in predictions]
    with pytest.raises(DataError, match=r"expected a prediction .* of \d+ annotations have none; `?only_predicted"):
        compute(name, predictions[:2], references)
    found = compute(name, predictions[:2], references, only_predicted=True)
    same(found, compute(name, predictions[:2], references[:2]))
    assert re.search(r"\|scored:\d/\d", found["signature"])
    with pytest.raises(DataError, match=r"none of the [\d,]+ ids .*split\?"):
        compute(name, [{**row, field: f"other {row[field]}"} for row in predictions], references)


@each
def test_a_misspelt_field_is_an_error_and_an_unknown_one_is_not_scored(name: str) -> None:
    (predictions, references), (wrong, meant) = made_up(name), MISSPELT[name]
    zebras = [{**row, "zebra": 1} for row in predictions]
    same(compute(name, zebras, references), compute(name, predictions, references))
    if name.startswith("eraser"):
        with pytest.warns(UserWarning, match=r"zebra \(in 8\)"):
            MODULES[name]().compute(predictions=zebras, references=references)
    predictions[1][wrong] = predictions[1].pop(meant)
    with pytest.raises(DataError, match=f"did you mean '{meant}'") as caught:
        compute(name, predictions, references)
    assert caught.value.field == wrong


MISSPELT = {
    "eraser_agreement": ("rationale", "rationales"),
    "eraser_faithfulness": ("comprehensivness_classification_scores", "comprehensiveness_classification_scores"),
    "perturbation_map": ("rationale_token", "rationale_tokens"),
    "rationale_set_agreement": ("rationalle", "rationale"),
    "normalized_fidelity": ("p_compliment", "p_complement"),
    "annotator_agreement": ("anotators", "annotators"),
    "quote_faithfulness": ("qoutes", "quotes"),
}
