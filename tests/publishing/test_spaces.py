"""build metrics: a Space holds its module and leaves as one file that evaluate loads; other imports are refused."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import evaluate
import pytest

from eraser_hub.metrics.errors import DataError
from eraser_hub.publishing.spaces import (
    build_metrics,
    get_metrics_folder,
    join_module,
    list_metric_names,
    make_space_files,
    read_space_card,
)

FOLDER = get_metrics_folder()


def test_module_and_leaves_are_one_file_that_loads(metric_source: Path, tmp_path: Path) -> None:
    (folder,) = build_metrics(tmp_path / "out", source=metric_source)
    names = {path.name for path in folder.iterdir()}
    assert names == {"README.md", "app.py", "example.json", "requirements.txt", "toy_overlap.py"}
    text = (folder / "toy_overlap.py").read_text()
    assert text.count("import annotations") == 1 and "from ." not in text and "numpy" not in text
    assert text.index("def twice") < text.index("def unique") < text.index("class ToyOverlap")
    assert evaluate.load(str(folder)).compute(predictions=[1, 2, 2]) == {"share": 8}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("import torch", "found torch"),
        ("from eraser_hub.records.errors import DataError", "found eraser_hub"),
        ("from . import leaf", "from .leaf import name"),
        ("from .leaf import unique as other", "from .leaf import name"),
        ("def f():\n    from .leaf import unique", "at the top"),
        ("from .missing import x", "missing.py"),
        ("def f(:", "Python"),
    ],
)
def test_an_import_that_a_space_could_not_resolve_is_refused(
    metric_source: Path, tmp_path: Path, line: str, words: str
) -> None:
    (metric_source / "deep.py").write_text(f"{line}\n")
    with pytest.raises(DataError, match=words):
        build_metrics(tmp_path / "out", source=metric_source)
    assert not (tmp_path / "out").exists(), "nothing is written when anything is refused"


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        ("sdk: gradio", "sdk: docker", "sdk"),
        ("app_file: app.py", "app_file: main.py", "app_file"),
        ("- evaluate", "- other", "tags"),
        ("title: ", "subtitle: ", "title"),
    ],
)
def test_a_card_that_no_space_takes_is_refused(
    metric_source: Path, tmp_path: Path, old: str, new: str, field: str
) -> None:
    card = metric_source / "cards" / "toy_overlap.md"
    card.write_text(card.read_text().replace(old, new, 1))
    with pytest.raises(DataError) as error:
        build_metrics(tmp_path / "out", source=metric_source)
    assert (error.value.field, error.value.file) == (field, card)


def test_unknown_metrics_missing_files_and_foreign_folders(metric_source: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="toy_overlap, found 'rouge'"):
        build_metrics(tmp_path, ["rouge"], source=metric_source)
    (tmp_path / "toy_overlap").mkdir()
    (tmp_path / "toy_overlap" / "mine.txt").write_text("x")
    with pytest.raises(DataError, match="another `out`"):
        build_metrics(tmp_path, source=metric_source)
    (metric_source / "cards" / "toy_overlap.json").unlink()
    with pytest.raises(DataError, match=r"toy_overlap\.json"):
        build_metrics(tmp_path / "out", source=metric_source)


# -- the project's own metrics ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", list_metric_names())
def test_each_metric_makes_a_space_whose_example_scores(name: str, tmp_path: Path) -> None:
    (folder,) = build_metrics(tmp_path, [name])
    metric: Any = evaluate.load(str(folder))
    assert metric.name == name and metric.description and metric.citation and metric.inputs_description
    example = json.loads((folder / "example.json").read_text("utf-8"))
    sides = {side: example[side] for side in ("predictions", "references") if example[side]}
    result = metric.compute(**sides, **example["options"])
    values = [round(result[key], 2) for key in example["headline"]]
    assert len({*values}) == len(values) and not {0.0, 1.0} & {*values}, "an example shows something"
    assert all(key in metric.info.higher_is_better for key in example["headline"])


def test_a_space_runs_without_the_package(tmp_path: Path) -> None:
    (folder,) = build_metrics(tmp_path, ["eraser_agreement"])
    code = f"""
import sys
sys.modules["eraser_hub"] = sys.modules["rapidfuzz"] = None
import evaluate
print(evaluate.load({str(folder)!r}).compute(predictions=[[0, 1, 1]], references=[[0, 1, 0]])["token_macro_p"])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.strip() == "0.5"


@pytest.mark.parametrize("name", list_metric_names())
def test_a_space_has_few_files_each_name_once_and_no_library_of_its_own(name: str) -> None:
    text, bound = join_module(name, FOLDER), dict[str, set[str]]()
    assert text.count(f"# {'-' * 20} ") <= 9
    for node in (each for each in ast.parse(text).body if not isinstance(each, ast.AugAssign)):
        for target in getattr(node, "targets", [getattr(node, "target", node)]):
            bound.setdefault(getattr(target, "name", getattr(target, "id", "")), set()).add(ast.unparse(node))
    assert [name for name, said in bound.items() if name and len(said) > 1] == [], "one would replace the other"
    lines = make_space_files(name)["requirements.txt"].decode().splitlines()
    assert all("==" in line for line in lines if line and not line.startswith("#")), "pinned"
    assert any("rapidfuzz" in line for line in lines) == (name == "quote_faithfulness")
    header, _ = read_space_card(FOLDER / "cards" / f"{name}.md")
    assert 0 < len(header["short_description"]) <= 60, "what the Hub shows below a Space's name"
