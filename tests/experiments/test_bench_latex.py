"""LaTeX tables are compiled: the bench's, with names and notes that LaTeX reads as commands; the page's own."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from eraser_hub.experiments.bench_run import PlannedSystem, make_table
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


def make_scores(number: float) -> dict:
    keys = ("token_macro_f1", "auprc", "comprehensiveness_aopc")
    return (
        dict.fromkeys(keys, number)
        | {f"{key}_ci": [number - 0.1, number + 0.1] for key in keys}
        | {"chance": {"auprc": 0.1}}
    )


def test_the_table_of_a_bench(tmp_path):
    methods = ("occlusion", "lime", "people", "random")
    systems = [PlannedSystem(name, "LR", method, []) for name, method in zip(NAMES, methods, strict=True)]
    flat = {name: make_scores(0.2 + at / 10) for at, name in enumerate(NAMES)}
    table = make_table("movies_small & more, 100 %", systems, flat, None)
    body = Tables("movies", [table]).written("latex")
    assert "chance" in body
    log = compile_latex(body, tmp_path)
    assert "Missing character" not in log


@pytest.mark.browser
def test_tables_saved_from_a_report(browser, tmp_path):
    """The script's own writer of LaTeX, on the marks that tables have."""
    from eraser_hub.reports.documents import index_documents
    from eraser_hub.reports.page import ReportContent, write_report
    from eraser_hub.reports.report_tables import Block, Section, ShownCell, ShownRow

    cells = (ShownCell("★ +0.120", "[0.100, 0.140] · p <0.001 · better"), ShownCell("–", "±0.010"), ShownCell("∞"))
    rows = tuple(ShownRow(name, cells) for name in NAMES)
    section = Section("x", "Scores", [Block(("score", "Token F1\u00a0↑", "ECE\u00a0↓", "Kendall's τ"), rows)])
    write_report(tmp_path / "index.html", ReportContent("t", "", [section], index_documents([], []), []))
    browser.get((tmp_path / "index.html").as_uri())
    from ..reports.test_browser_report import wait

    wait(browser, "return document.documentElement.dataset.ready === 'yes'")
    body = browser.execute_script("return FORMATS.LaTeX[2](read(document.querySelector('main .scroll > table')))")
    assert body.count(r"\textbf") == len(NAMES) and "★" not in body
    compile_latex(body, tmp_path)
