"""Tables of figures in each form."""

from __future__ import annotations

import csv
import io
import json
import math
import shutil
import subprocess

import pytest

from eraser_hub.records.tables import FORMATS, Cell, Table, Tables

pytestmark = pytest.mark.unit


@pytest.fixture
def tables() -> Tables:
    table = Table("scores", "Scores_of 100 %", ("system",), ("f1", "flips"), "a paper")
    table.add("a & b|c", f1=Cell(0.25, digits=3, low=0.2, high=0.3), flips=Cell(-0.5, digits=2, better=True))
    table.add("d_e", f1=Cell(0.5, digits=3, better=True), flips=Cell(math.nan))
    table.add("f", f1=Cell(0.5, "0.49"), flips=Cell(2.0))
    table.notes.append("a note")
    return Tables("movies", [table])


TEXT = """\
Scores_of 100 %
system                     f1   flips
a & b|c  0.250 [0.200, 0.300]  -0.50*
d_e                    0.500*       –
f          0.50 (0.49, +0.01)     2.0
Recomputed (printed, difference); =: rounds to what is printed. Printed: a paper.
a note"""


def test_a_table_shows_itself_and_zero_has_no_sign(tables):
    assert repr(tables) == str(tables) == tables.written("text") == TEXT and str(tables.tables[0]) == TEXT
    assert [str(Cell(value, digits=2)) for value in (-0.001, -0.0, -0.006)] == ["0.00", "0.00", "-0.01"]


def test_names_of_the_data_stand_as_they_are():
    table = Table("scores_by", "By label", ("score",), ("not_enough",), is_verbatim=True)
    table.add("f1", not_enough=Cell(0.5, digits=2))
    assert str(table).splitlines()[1].split() == ["score", "not_enough"]


def test_latex_is_booktabs_with_what_is_better_bold_and_intervals_small(tables):
    latex = tables.written("latex")
    assert r"\toprule" in latex and r"\begin{tabular}{lrr}" in latex and r"\label{tab:scores}" in latex
    assert r"a \& b\textbar{}c & 0.250 {\scriptsize [0.200, 0.300]} & \textbf{$-$0.50$^{*}$} \\" in latex
    assert r"d\_e & \textbf{0.500$^{*}$} & -- \\" in latex
    assert r"f & 0.50 {\scriptsize (0.49, +0.01)} & 2.0 \\" in latex
    assert r"\caption{Scores\_of 100 \%. Recomputed" in latex
    assert latex.isascii()


HOSTILE = ("=HYPERLINK(0)", "+1+1", "-cmd", "@x", "\tx", "\rx", "a\x1b[2Jb", "a\nb", "\\input{/etc/passwd}", "-0.5")


@pytest.fixture
def hostile() -> Tables:
    table = Table("}\\input{x}_a b", "\x1b]0;x\x07", ("system",), ("f1", "note"), notes=["\x9b31m"])
    for name in HOSTILE:
        table.add(name, f1=Cell(-0.5), note=Cell(name))
    return Tables("m", [table])


def test_hostile_cells_are_harmless_in_every_form(hostile):
    for name in set(FORMATS) - {"json"}:
        assert all(line.isprintable() for line in hostile.written(name).split("\n"))
        assert "x" in Tables("d", [Table("t", "T", ("x",), ("y",))]).written(name), "a table without rows"
    assert "a b" in hostile.written("text") and "| a b |" in hostile.written("markdown")
    assert len(hostile.written("text").splitlines()) == len(HOSTILE) + 3
    latex = hostile.written("latex")
    assert r"\label{tab:--input-x--a-b}" in latex and "aU+001B[2Jb" in latex
    assert r"\input" not in latex and r"\textbackslash{}input\{/etc/passwd\}" in latex
    _, *rows = csv.reader(io.StringIO(hostile.written("csv")))
    names = ["'=HYPERLINK(0)", "'+1+1", "'-cmd", "'@x", "'␉x", "'␍x", "a␛[2Jb", "a\nb", HOSTILE[-2], "-0.5"]
    assert [row[1] for row in rows] == [row[3] for row in rows] == names
    assert {row[2] for row in rows} == {"-0.5"}, "numbers stay numbers"


def test_json_and_markdown(tables):
    (row, other, _) = json.loads(tables.written("json"))["tables"]["scores"]["rows"]
    assert row["f1"] == {"value": 0.25, "printed": None, "difference": None, "low": 0.2, "high": 0.3}
    assert other["flips"]["value"] is None  # JSON has no NaN
    markdown = tables.written("markdown")
    assert "| d_e | **0.500\\*** | – |" in markdown and "a & b\\|c" in markdown and markdown.endswith("\n\na note")


@pytest.mark.parametrize(
    ("cell", "text", "difference"),
    [
        (Cell(1599, "1599"), "1,599 (=)", 0),
        (Cell(1086, "1092"), "1,086 (1,092, -6)", -6),
        (Cell(9.349, "9.35"), "9.35 (=)", 0),
        (Cell(7.25001, "7.2"), "7.3 (7.2, +0.1)", 0.1),
        (Cell(None, "0.618 ± 0.194"), "(0.618 ± 0.194)", None),
        (Cell(None, "200"), "(200)", None),
        (Cell(None), "–", None),
    ],
)
def test_a_figure_beside_the_printed_one(cell: Cell, text: str, difference: float | None) -> None:
    assert (str(cell), cell.difference) == (text, difference)


def test_csv_holds_the_numbers_in_full_under_one_heading(tables):
    other = Table("sizes", "Sizes", ("config", "system"), ("f1", "rows"))
    other.add("c", "g", f1=Cell(0.1), rows=Cell(3))
    tables.tables.append(other)
    rows = list(csv.DictReader(io.StringIO(tables.written("csv"))))
    assert ",".join(rows[0]) == "table,system,config,f1,f1_low,f1_high,f1_printed,flips,rows"
    assert list(rows[0].values()) == ["scores", "a & b|c", "", "0.25", "0.2", "0.3", "", "-0.5", ""]
    assert (rows[2]["f1_printed"], rows[1]["f1_low"], rows[1]["flips"]) == ("0.49", "", "")
    assert (rows[3]["config"], rows[3]["system"], rows[3]["f1"], rows[3]["rows"]) == ("c", "g", "0.1", "3")


@pytest.mark.slow
def test_latex_of_hostile_names_compiles(tables, hostile, tmp_path):
    program = shutil.which("pdflatex")
    if program is None:
        pytest.skip("skipped: no pdflatex (`make latex` installs it where Debian's packages can be reached)")
    packages = r"\usepackage[T1]{fontenc}\usepackage[utf8]{inputenc}\usepackage{booktabs}"
    body = "\n".join(one.written("latex") for one in (tables, hostile))
    page = rf"\documentclass{{article}}{packages}\begin{{document}}{body}\end{{document}}"
    (tmp_path / "page.tex").write_text(page, "utf-8")
    command = [program, "-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape", "page.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=120, check=False)
    log = done.stdout.decode("utf-8", "replace")
    assert done.returncode == 0 and "Missing character" not in log, log[-3000:]
