"""docs/api.ipynb runs from end to end, and its outputs are those that it shows."""

from __future__ import annotations

import copy
import json

import pytest

from tools.notebook import PAGE, run_cells


def test_the_notebook_runs(tmp_path, monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    shown = json.loads(PAGE.read_text(encoding="utf-8"))["cells"]
    cells = copy.deepcopy(shown)
    run_cells(cells)
    assert [len(cell.get("outputs", ())) for cell in cells] == [len(cell.get("outputs", ())) for cell in shown]
    assert (tmp_path / "report" / "index.html").is_file() and (tmp_path / "occlusion.scores.json").is_file()
