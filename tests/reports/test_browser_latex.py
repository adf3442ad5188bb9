"""The LaTeX that a report's page saves is compiled, with names and marks that LaTeX reads as commands."""

from __future__ import annotations

import pytest

from ..experiments.test_bench_latex import NAMES, compile_latex
from .test_browser_report import wait

pytestmark = pytest.mark.slow


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
    wait(browser, "return document.documentElement.dataset.ready === 'yes'")
    body = browser.execute_script("return FORMATS.LaTeX[2](read(document.querySelector('main .scroll > table')))")
    assert body.count(r"\textbf") == len(NAMES) and "★" not in body
    compile_latex(body, tmp_path)
