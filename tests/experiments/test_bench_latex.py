"""The LaTeX table of a bench is compiled, with names that LaTeX reads as commands; bold is for verdicts alone."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from eraser_hub.experiments.bench import ExplainedSystem, make_table
from eraser_hub.records.tables import Tables

pytestmark = pytest.mark.slow

NAMES = ("a_b & 50 %", "LR, $x^2$ {y} #1 ~ \\z", "Ümläut", "random")
DOCUMENT = (
    r"\documentclass{article}\usepackage[T1]{fontenc}\usepackage[utf8]{inputenc}\usepackage{booktabs}"
    r"\begin{document}%s\end{document}"
)


def compile_latex(body: str, folder: Path) -> str:
    """Compile a document's body; the log."""
    program = shutil.which("pdflatex")
    if program is None:
        pytest.skip("skipped: no pdflatex (`make latex` installs it where Debian's packages can be reached)")
    (folder / "page.tex").write_text(DOCUMENT % body, "utf-8")
    command = [program, "-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape", "page.tex"]
    done = subprocess.run(command, cwd=folder, capture_output=True, timeout=120, check=False)
    log = done.stdout.decode("utf-8", "replace")
    assert done.returncode == 0, log[-3000:]
    assert (folder / "page.pdf").stat().st_size > 5000
    return log


def test_the_table_of_a_bench(tmp_path):
    methods = ("occlusion", "lime", "people", "random")
    systems = {name: ExplainedSystem("LR", method, []) for name, method in zip(NAMES, methods, strict=True)}
    own = {"auprc": 0.5, "auprc_ci": [0.4, 0.6], "sufficiency": 0.1, "chance": {"auprc": 0.125}}
    pairs = [
        {"first": NAMES[0], "second": other, "keys": {"auprc": {"verdict": "better"}}} for other in (NAMES[1], NAMES[3])
    ]
    table = make_table("movies_small & more, 100 %", systems, dict.fromkeys(NAMES, own), {"comparisons": pairs})
    rows = {left[0]: cells for left, cells in table.rows}
    assert [name for name in rows if "auprc" in rows[name] and rows[name]["auprc"].better] == [NAMES[0]]
    assert "auprc" not in rows[NAMES[2]] and rows["chance"]["auprc"].value == 0.125
    assert "Missing character" not in compile_latex(Tables("movies", [table]).written("latex"), tmp_path)
