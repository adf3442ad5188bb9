"""build metrics: a Space's folder holds what its module imports, and what evaluate's loader would miss is refused."""

from __future__ import annotations

import os

import pytest

from eraser_hub.conversion import HUB_DATASETS
from eraser_hub.publishing.spaces import (
    ALL_TOGETHER,
    APP,
    build_metrics,
    get_metrics_folder,
    list_metric_names,
    read_space_card,
    space_code,
)
from eraser_hub.records.atomic import hold_lock
from eraser_hub.records.errors import BusyError

from ..refusals import refused

MODULE_IMPORT = "from ..kernels.toy_positions import unique_positions"


def test_the_folder_holds_exactly_what_is_imported(metric_source, tmp_path):
    assert build_metrics(tmp_path / "out", source=metric_source) == [tmp_path / "out" / "toy_overlap"]
    names = {path.name for path in (tmp_path / "out" / "toy_overlap").iterdir()}
    assert names == {"README.md", *ALL_TOGETHER, "toy_overlap.py", "toy_positions.py"}
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
        ("from .leaves.deep import x", "file-missing", None, ("leaves/deep.py",)),
        ("from .cards import x", "code", 6, ("from .leaf import name",)),
        ("from .\\\n  toy_positions import x", "code", 6, ("broken",)),
        ("from .toy_overlap.deeper import x", "file-missing", None, ("toy_overlap/deeper.py",)),
        ("from eraser_hub.schema import x", "code", 6, (" eraser_hub.schema,",)),
        ("from eraser_hub.schema.lost import x", "file-missing", None, ("schema/lost.py",)),
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


def test_the_closure_of_leaves_comes_along_and_nothing_else(metric_source, tmp_path):
    """A leaf of a leaf of a leaf, too: the module names it at its end, where evaluate's loader reads it."""
    module, leaf = metric_source / "toy_overlap.py", metric_source / "toy_positions.py"
    leaf.write_text("from .unused_leaf import x\n" + leaf.read_text())
    (metric_source / "unused_leaf.py").write_text("from .deep_leaf import y as x\n")
    (metric_source / "deep_leaf.py").write_text("y = 1\n")
    (folder,) = build_metrics(tmp_path / "out", source=metric_source)
    leaves = {"toy_positions.py", "unused_leaf.py", "deep_leaf.py"}
    assert {path.name for path in folder.glob("*.py")} == {*APP, "toy_overlap.py", *leaves}
    assert all((folder / name).read_bytes() == (metric_source / name).read_bytes() for name in leaves)
    written, text = (folder / "toy_overlap.py").read_text(), module.read_text()
    assert written.startswith(text) and written.removeprefix(text).splitlines()[2:] == [
        "from .deep_leaf import __name__ as _",
        "from .unused_leaf import __name__ as _",
    ]
    module.write_bytes((folder / "toy_overlap.py").read_bytes())
    assert build_metrics(tmp_path / "again", source=metric_source)
    assert (tmp_path / "again" / "toy_overlap" / "toy_overlap.py").read_bytes() == module.read_bytes()
    leaf.write_text(leaf.read_text().replace("from .unused_leaf import x\n", ""))
    module.write_text(text)
    (folder,) = build_metrics(tmp_path / "out", source=metric_source)
    assert {path.name for path in folder.glob("*.py")} == {*APP, "toy_overlap.py", "toy_positions.py"}


@pytest.fixture
def deep_source(metric_source):
    """The small metric in a subfolder, its leaf in another; the leaf uses the schema, whose files use each other."""
    for folder in ("scores", "kernels", "../schema"):
        (metric_source / folder).mkdir()
    (metric_source / "kernels" / "toy_positions.py").write_text(
        "from eraser_hub.schema.spans import (\n    as_set,\n)\n\nfrom ..unused_leaf import numpy\n\n\n"
        "def unique_positions(positions):\n    return as_set(numpy.asarray(positions))\n"
    )
    (metric_source / "toy_positions.py").unlink()
    text = (metric_source / "toy_overlap.py").read_text().replace("from .toy", "from ..kernels.toy")
    (metric_source / "scores" / "toy_overlap.py").write_text(text)
    (metric_source / "toy_overlap.py").unlink()
    schema = metric_source.parent / "schema"
    (schema / "spans.py").write_text("from .plain import as_list\n\n\ndef as_set(x):\n    return set(as_list(x))\n")
    (schema / "plain.py").write_text("def as_list(x):\n    return x.tolist()\n")
    return metric_source


def test_subfolders_and_the_schema_become_a_flat_space(deep_source, tmp_path, child):
    """It loads where there is no eraser_hub, and each line has its number."""
    (folder,) = build_metrics(tmp_path / "out", source=deep_source)
    leaves = {"toy_positions.py", "unused_leaf.py", "schema_spans.py", "schema_plain.py"}
    assert {path.name for path in folder.glob("*.py")} == {*APP, "toy_overlap.py", *leaves}
    lines = (folder / "toy_positions.py").read_text().splitlines()
    assert lines[0] == "from .schema_spans import (" and lines[4] == "from .unused_leaf import numpy"
    assert (folder / "schema_spans.py").read_text().startswith("from .schema_plain import as_list\n")
    before = (deep_source / "scores" / "toy_overlap.py").read_text().splitlines()
    after = (folder / "toy_overlap.py").read_text().splitlines()
    assert [at for at, line in enumerate(before) if after[at] != line] == [before.index(MODULE_IMPORT)]
    assert space_code(folder / "toy_overlap.py") == {
        name: (folder / name).read_bytes() for name in (*leaves, "toy_overlap.py")
    }
    code = (
        "import json, sys; sys.modules['eraser_hub'] = None; import evaluate\n"
        f"metric = evaluate.load({str(folder)!r})\n"
        "rows = [{'id': 'a', 'rationale': [1, 2]}]\n"
        "print(json.dumps(metric.compute(predictions=rows, references=[{'id': 'a', 'rationale': [2]}])))"
    )
    assert child.run(code, "http://127.0.0.1:9", HF_HUB_OFFLINE="1") == {"share": 0.5}


@pytest.mark.parametrize("rival", ["unused_leaf", "app", "schema_spans"])
def test_two_files_of_one_name_in_the_space_are_refused(deep_source, tmp_path, rival):
    (deep_source / "kernels" / f"{rival}.py").write_text("x = 1\n")
    leaf = deep_source / "kernels" / "toy_positions.py"
    leaf.write_text(f"from .{rival} import x\n{leaf.read_text()}")
    with refused("code", f"{rival}.py"):
        build_metrics(tmp_path / "out", source=deep_source)


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
    with hold_lock(tmp_path / ".toy_overlap.lock", ""), refused("busy", file=tmp_path, type=BusyError):
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


@pytest.mark.parametrize("name", list_metric_names())
def test_each_metric_of_the_project_makes_a_space(name, tmp_path):
    import evaluate

    (folder,) = build_metrics(tmp_path, [name])
    module = evaluate.load(str(folder))
    assert module.name == name
    assert module.description and module.citation and module.inputs_description
    assert space_code(folder / f"{name}.py").keys() == {path.name for path in folder.glob("*.py")} - set(APP)


@pytest.mark.parametrize("name", list_metric_names())
def test_each_card_is_a_space_readme_that_says_what_users_ask(name):
    path = get_metrics_folder() / "cards" / f"{name}.md"
    text = path.read_text(encoding="utf-8")
    assert read_space_card(path)[0]["title"]
    assert 0 < len(read_space_card(path)[0]["short_description"]) <= 60, "what the Hub shows below a Space's name"
    assert set(read_space_card(path)[0]["datasets"]) <= set(HUB_DATASETS), "`publish` puts the namespace before them"
    prose = text.lower()
    for word in ("input", "output", "limitation", "citation", "example"):
        assert word in prose, f"{path.name} says nothing of {word}"


def test_requirements_are_pinned():
    lines = (get_metrics_folder() / "requirements.txt").read_text().splitlines()
    assert all("==" in line for line in lines if line and not line.startswith("#"))


def test_a_folder_that_cannot_be_written(metric_source, tmp_path):
    if os.geteuid() == 0:
        (tmp_path / "out").write_text("a file where the folder should be")
    else:
        (tmp_path / "out").mkdir(mode=0o500)
    with refused("file-unreadable", file=tmp_path / "out"):
        build_metrics(tmp_path / "out", source=metric_source)
