"""Scores as tables: text, JSON, markdown, LaTeX, CSV, as `score` and `board` print them."""

from __future__ import annotations

import csv
import io
import json
import math

import pytest
from typer.testing import CliRunner

from eraser_hub.__main__ import _register, app
from eraser_hub.scoring.comparison import compare
from eraser_hub.scoring.tables import make_breakdown_table, make_comparison_tables

pytestmark = pytest.mark.unit


@pytest.fixture(scope="module")
def scored(samples, tmp_path_factory):
    """(arguments of `score` on the sample movies, the scores that it writes)."""
    _register()
    path = tmp_path_factory.mktemp("scores") / "ours.json"
    where = ["--source", str(samples / "eraser" / "movies"), "--split", "val"]
    results = ["--predictions", str(samples / "predictions" / "eraser" / "movies.val.jsonl")]
    arguments = ["score", *where, *results, "--confidence-level", "0.9", "--by", "classification"]
    done = CliRunner().invoke(app, [*arguments, "--out", str(path)])
    assert done.exit_code == 0, done.output
    return arguments, path


def printed(scored, format):
    done = CliRunner().invoke(app, [*scored[0], "--format", format])
    assert done.exit_code == 0, done.output
    return done.stdout


def test_json_is_the_score_file(scored):
    assert json.loads(printed(scored, "json")) == json.loads(scored[1].read_bytes())


def test_csv_holds_all_digits_and_the_intervals(scored):
    flat = json.loads(scored[1].read_bytes())
    rows = {
        (row["table"], row["score"]): row
        for text in printed(scored, "csv").split("\n\n")
        for row in csv.DictReader(io.StringIO(text))
    }
    keys = [key for key, value in flat.items() if isinstance(value, float)]
    assert {"token_macro_f1", "comprehensiveness"} <= set(keys)
    for key in keys:
        row = rows.get(("agreement", key)) or rows["faithfulness", key]
        assert float(row["value"]) == flat[key]
        ends = [math.nan if end is None else end for end in flat[f"{key}_ci"]]
        assert [float(row["value_low"]), float(row["value_high"])] == pytest.approx(ends, abs=0, nan_ok=True)
    for group, scores in flat["by"].items():
        for block, key in (("agreement_by", "auprc"), ("faithfulness_by", "accuracy")):
            assert float(rows[block, key][group]) == scores[key]
    points = flat["sufficiency_aopc_points"]
    named = [f"sufficiency_aopc_points@{t:g}" for t in flat["aopc_thresholds"]]
    assert [float(rows["faithfulness", name]["value"]) for name in named] == points


@pytest.mark.parametrize(
    ("format", "words"),
    [
        ("text", ["Faithfulness: movies, validation\n", "\ntoken_macro_f1", "\neraser_agreement|data:"]),
        ("markdown", ["**Faithfulness: movies, validation**", "| token_macro_f1 | 0.7563 [", "\n`eraser_agreement|"]),
        ("latex", ["% eraser_agreement|", r"\toprule", r"token\_macro\_f1 & 0.7563 {\scriptsize ["]),
    ],
)
def test_the_other_forms_name_title_scores_and_signature(scored, format, words):
    text = printed(scored, format)
    assert all(word in text for word in words), text


def test_an_unknown_form_is_bad_usage(scored):
    done = CliRunner().invoke(app, [*scored[0], "--format", "xml"])
    assert done.exit_code == 2 and "'xml'" in done.output


def test_a_score_file_says_what_it_answers(scored):
    names = json.loads(scored[1].read_bytes())
    assert (names["config"], names["split"], "dataset" in names) == ("movies", "validation", False)


def test_board_prints_a_papers_table(scored, tmp_path):
    other = tmp_path / "lime.json"
    content = json.loads(scored[1].read_bytes())
    content |= {"auprc": 1.0, "auprc_ci": [0.9, 1.0]}
    other.write_text(json.dumps(content))
    files = ["--scores", str(scored[1]), "--scores", str(other), "--no-published"]
    latex = CliRunner().invoke(app, ["board", *files, "--format", "latex"])
    assert latex.exit_code == 0, latex.output
    assert r"lime & 1.000 {\scriptsize [0.900, 1.000]} &" in latex.stdout, (
        "a score file cannot be tested: nothing is bold"
    )
    assert "textbf" not in latex.stdout
    assert (
        r"system & AUPRC & IOU F1 (macro) &" in latex.stdout
        and r"\caption{movies, validation, n 24, data 914ebab402fa, a score file, self-reported. gold" in latex.stdout
        and "not comprehensive. a sample: 24 annotations" in latex.stdout
    )
    table = CliRunner().invoke(app, ["board", *files, "--format", "csv"])
    (lime, ours) = csv.DictReader(io.StringIO(table.stdout))
    assert (ours["system"], lime["auprc"]) == ("ours", "1.0") and "token_micro_p" in ours
    assert float(ours["auprc"]) == json.loads(scored[1].read_bytes())["auprc"]
    assert CliRunner().invoke(app, ["board", *files]).exit_code == 2, "nowhere to write to"


def test_systems_may_be_called_like_columns():
    one = {"f1": 0.75, "per_instance": {"annotation_id": ["a", "b"], "f1": [1.0, 0.5]}}
    two = {"f1": 0.25, "per_instance": {"annotation_id": ["b", "a"], "f1": [0.0, 0.5]}}
    (table,) = make_comparison_tables(compare(one, two, names=["p", "difference"], n_resamples=100)).tables
    ((_, cells),) = table.rows
    assert [str(cells[name]) for name in ("p (system)", "difference (system)")] == ["0.7500", "0.2500"]


def test_a_label_heads_its_column_as_it_stands():
    table = make_breakdown_table("by", "By label", {"not_enough": {"f1": 0.5}}, {})
    assert str(table).split("\n")[1].split() == ["score", "not_enough"]
