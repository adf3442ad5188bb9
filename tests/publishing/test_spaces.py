"""build metrics: a Space holds its module and leaves as one file that evaluate loads."""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path
from typing import Any

import evaluate
import pytest

from eraser_hub.conversion.built import read_card
from eraser_hub.publishing.spaces import (
    build_metrics,
    get_metrics_folder,
    join_module,
    list_metric_names,
    make_space_files,
)

from ..refusals import refused

# what a Space installs (requirements.txt), beside the standard library
LIBRARIES = {"evaluate", "datasets", "numpy", "pyarrow", "rapidfuzz"}


def test_leaves_stand_before_what_imports_them(tmp_path: Path) -> None:
    lines = ["from __future__ import annotations", "from .deep import (", "    twice,", ")", "from .leaf import f"]
    (tmp_path / "toy.py").write_text("\n".join([*lines, "x = twice(f())\n"]))
    (tmp_path / "leaf.py").write_text("from .deep import twice\n\n\ndef f():\n    return twice(1)\n")
    (tmp_path / "deep.py").write_text("def twice(x):\n    return 2 * x\n")
    text, names = join_module(tmp_path / "toy.py"), dict[str, Any]()
    exec(text, names)
    assert names["x"] == 4 and text.count("import") == 1 and text.count("def twice") == 1


@pytest.mark.parametrize(
    "line",
    ["from . import leaf", "from .leaf import f as g", "from ..leaf import f", "def f():\n    from .leaf import f"],
)
def test_an_import_that_one_file_cannot_resolve_is_refused(tmp_path: Path, line: str) -> None:
    (tmp_path / "toy.py").write_text(f"import os\n{line}\n")
    with refused(file=tmp_path / "toy.py", line=2 + line.count("\n")):
        join_module(tmp_path / "toy.py")


def test_unknown_metrics_and_foreign_folders(tmp_path: Path) -> None:
    with refused("rouge", argument="metric"):
        build_metrics(tmp_path, ["rouge"])
    (tmp_path / "perturbation_map").mkdir()
    (tmp_path / "perturbation_map" / "mine.txt").write_text("x")
    with refused(file=tmp_path / "perturbation_map"):
        build_metrics(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["perturbation_map"]


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


@pytest.mark.parametrize("name", list_metric_names())
def test_a_space_has_few_files_each_name_once_and_a_card_that_the_hub_takes(name: str) -> None:
    files = make_space_files(name)
    text, bound = files[f"{name}.py"].decode(), dict[str, set[str]]()
    assert text.count(f"# {'-' * 20} ") <= 13
    for node in (each for each in ast.parse(text).body if not isinstance(each, ast.AugAssign)):
        for target in getattr(node, "targets", [getattr(node, "target", node)]):
            bound.setdefault(getattr(target, "name", getattr(target, "id", "")), set()).add(ast.unparse(node))
    assert [name for name, said in bound.items() if name and len(said) > 1] == [], "one would replace the other"
    imports = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Import | ast.ImportFrom)]
    modules = {getattr(node, "module", node.names[0].name).partition(".")[0] for node in imports}
    assert modules <= LIBRARIES | sys.stdlib_module_names
    pins = dict(line.split("==") for line in files["requirements.txt"].decode().splitlines() if line[0] != "#")
    assert ("rapidfuzz" in pins) == (name == "quote_faithfulness")
    header, _ = read_card(get_metrics_folder() / "cards" / f"{name}.md")
    assert (header["sdk"], header["sdk_version"], header["app_file"]) == ("gradio", pins["gradio"], "app.py")
    assert header["title"] and header["python_version"] == "3.11" and {"evaluate", "metric"} <= {*header["tags"]}
    assert 0 < len(header["short_description"]) <= 60, "what the Hub shows below a Space's name"
