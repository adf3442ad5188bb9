"""build metrics: a Space's folder holds what its module imports, and what evaluate's loader would miss is refused."""

from __future__ import annotations

import os

import pytest

from eraser_hub.conversion import HUB_DATASETS
from eraser_hub.publishing.spaces import build_metrics, imported_leaves, metric_names, metrics_folder, space_card
from eraser_hub.records.errors import BusyError
from eraser_hub.records.locks import exclusive

from ..refusals import refused


def test_the_folder_holds_exactly_what_is_imported(metric_source, tmp_path):
    assert build_metrics(tmp_path / "out", source=metric_source) == [tmp_path / "out" / "toy_overlap"]
    names = {path.name for path in (tmp_path / "out" / "toy_overlap").iterdir()}
    assert names == {"README.md", "app.py", "requirements.txt", "toy_overlap.py", "toy_positions.py"}
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["toy_overlap"], "nothing else is left behind"


def test_building_again_replaces_what_builds_write_and_nothing_else(metric_source, tmp_path):
    (folder,) = build_metrics(tmp_path, source=metric_source)
    first = {path.name: path.read_bytes() for path in folder.iterdir()}
    (folder / "mine.py").write_text("x")
    (folder / "README.md").write_text("x")
    build_metrics(tmp_path, source=metric_source)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == first | {"mine.py": b"x"}


def test_the_built_folder_loads_as_it_stands(metric_source, tmp_path):
    import evaluate

    (folder,) = build_metrics(tmp_path, source=metric_source)
    metric = evaluate.load(str(folder))
    rows = [{"id": "a", "rationale": [1, 2]}]
    assert metric.compute(predictions=rows, references=[{"id": "a", "rationale": [2]}]) == {"share": 0.5}


@pytest.mark.parametrize(
    ("line", "rule", "at", "mentions"),
    [
        ("from .toy_positions import unique_positions  # a comment: From", "code", None, ("evaluate", "toy_positions")),
        ("from . import toy_positions", "code", 6, ("from .leaf import name",)),
        ("from .leaves.deep import x", "code", 6, ("from .leaf import name",)),
        ("from ..toy_positions import x", "code", 6, ("from .leaf import name",)),
        ("from .missing_leaf import x", "file-missing", None, ("missing_leaf.py",)),
        ("import json, re", "code", None, ("'json,'",)),
        ("import torch", "code", 6, (" torch,",)),
        ("from eraser_hub.records.errors import DataError", "code", 6, (" eraser_hub.records.errors,",)),
        ("def f():\n    from .unused_leaf import x", "code", 7, ("block",)),
        ("def f(:", "code", 6, ("invalid syntax",)),
        ("'''\nfrom .unused_leaf import x\n'''", "code", None, (" toy_positions, unused_leaf ",)),
    ],
)
def test_an_import_that_a_space_could_not_resolve_is_refused(metric_source, tmp_path, line, rule, at, mentions):
    module = metric_source / "toy_overlap.py"
    module.write_text(module.read_text().replace("import numpy as np\n", f"import numpy as np\n{line}\n", 1))
    with refused(rule, *mentions, line=at):
        build_metrics(tmp_path / "out", source=metric_source)
    assert not (tmp_path / "out").exists(), "nothing is written when anything is refused"


def test_a_leaf_of_a_leaf_must_be_named_by_the_module(metric_source, tmp_path):
    """A leaf of a leaf of a leaf, too; named for the loader alone they come along; nothing comes that no leaf needs."""
    module, leaf = metric_source / "toy_overlap.py", metric_source / "toy_positions.py"
    leaf.write_text("from .unused_leaf import x\n" + leaf.read_text())
    (metric_source / "unused_leaf.py").write_text("from .deep_leaf import y as x\n")
    (metric_source / "deep_leaf.py").write_text("y = 1\n")
    named = module.read_text().replace(
        "import numpy as np\n",
        "import numpy as np\nfrom .unused_leaf import x as x\nfrom .deep_leaf import y as y\n",
        1,
    )
    for line, missing, file in (
        ("from .unused_leaf import x as x\n", "unused_leaf", "toy_positions.py"),
        ("from .deep_leaf import y as y\n", "deep_leaf", "unused_leaf.py"),
    ):
        module.write_text(named.replace(line, ""))
        with refused("code", f" .{missing},", "toy_overlap.py", file=file):
            build_metrics(tmp_path / "out", source=metric_source)
    module.write_text(named)
    (folder,) = build_metrics(tmp_path / "out", source=metric_source)
    leaves = {"toy_positions.py", "unused_leaf.py", "deep_leaf.py"}
    assert {path.name for path in folder.glob("*.py")} == {"app.py", "toy_overlap.py", *leaves}
    leaf.write_text(leaf.read_text().replace("from .unused_leaf import x\n", ""))
    with refused("code", " .deep_leaf,", " .unused_leaf,", file="toy_overlap.py", total=2):
        build_metrics(tmp_path / "out", source=metric_source)


@pytest.mark.parametrize(
    ("old", "new", "rule", "field", "mentions"),
    [
        ("sdk: gradio", "sdk: docker", "code", "sdk", ("'gradio'", "'docker'")),
        ("app_file: app.py", "app_file: main.py", "code", "app_file", ("'app.py'", "'main.py'")),
        ("[evaluate, metric]", "[evaluate]", "code", "tags", ("'metric'",)),
        ("title: toy_overlap", "title:", "code", "title", ()),
        ("---\ntitle", "title", "syntax", None, ("YAML metadata",)),
        ("sdk: gradio", "sdk: [", "syntax", None, ("line 4",)),
    ],
)
def test_a_card_that_no_space_takes_is_refused(metric_source, tmp_path, old, new, rule, field, mentions):
    card = metric_source / "cards" / "toy_overlap.md"
    card.write_text(card.read_text().replace(old, new, 1))
    with refused(rule, *mentions, file=card, field=field):
        build_metrics(tmp_path / "out", source=metric_source)


def test_unknown_metrics_and_occupied_names(metric_source, tmp_path):
    with refused("option-value", "'rouge'", " toy_overlap"):
        build_metrics(tmp_path, ["rouge"], source=metric_source)
    (tmp_path / "toy_overlap").write_text("a file")
    with refused("file-kind", file=tmp_path / "toy_overlap"):
        build_metrics(tmp_path, source=metric_source)


def test_two_builds_at_once_do_not_mix(metric_source, tmp_path):
    with exclusive(tmp_path / ".toy_overlap.lock", ""), refused("busy", file=tmp_path, type=BusyError):
        build_metrics(tmp_path, source=metric_source)
    assert not (tmp_path / "toy_overlap").exists()


def test_a_picture_that_the_card_shows_comes_along(metric_source, tmp_path):
    card = metric_source / "cards" / "toy_overlap.md"
    card.write_text(card.read_text() + "\n![The app](toy_overlap.png)\n")
    with refused("file-missing", file="cards/toy_overlap.png"):
        build_metrics(tmp_path / "out", source=metric_source)
    card.with_suffix(".png").write_bytes(b"\x89PNG")
    (folder,) = build_metrics(tmp_path / "out", source=metric_source)
    assert (folder / "toy_overlap.png").read_bytes() == b"\x89PNG"


# -- the project's own metrics ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", metric_names())
def test_each_metric_of_the_project_makes_a_space(name, tmp_path):
    import evaluate

    (folder,) = build_metrics(tmp_path, [name])
    module = evaluate.load(str(folder))
    assert module.name == name
    assert module.description and module.citation and module.inputs_description
    assert not {"eraser_hub", "conversion"} & set(imported_leaves(folder / f"{name}.py"))


@pytest.mark.parametrize("name", metric_names())
def test_each_card_is_a_space_readme_that_says_what_users_ask(name):
    path = metrics_folder() / "cards" / f"{name}.md"
    text = path.read_text(encoding="utf-8")
    assert space_card(path)[0]["title"]
    assert 0 < len(space_card(path)[0]["short_description"]) <= 60, "what the Hub shows below a Space's name"
    assert set(space_card(path)[0]["datasets"]) <= set(HUB_DATASETS), "`publish` puts the namespace before them"
    prose = text.lower()
    for word in ("input", "output", "limitation", "citation", "example"):
        assert word in prose, f"{path.name} says nothing of {word}"


def test_requirements_are_pinned():
    lines = (metrics_folder() / "requirements.txt").read_text().splitlines()
    assert all("==" in line for line in lines if line and not line.startswith("#"))


def test_a_folder_that_cannot_be_written(metric_source, tmp_path):
    if os.geteuid() == 0:
        (tmp_path / "out").write_text("a file where the folder should be")
    else:
        (tmp_path / "out").mkdir(mode=0o500)
    with refused("file-unreadable", file=tmp_path / "out"):
        build_metrics(tmp_path / "out", source=metric_source)
