"""The first screen's parts: findings of one system, how tests were made, the example, definitions, merged notes."""

from __future__ import annotations

import json
import math
import re

import pytest

from eraser_hub.reports.curves import make_aopc_figures
from eraser_hub.reports.documents import compute_disagreement
from eraser_hub.reports.explorer.definitions import define_score, describe_score
from eraser_hub.reports.explorer.example import LINES, TOKENS, choose_example
from eraser_hub.reports.explorer.forest import (
    PEOPLE,
    drop_agreement,
    find_systems,
    make_panels,
    render_panel,
)
from eraser_hub.reports.explorer.overview import (
    Compared,
    describe_alone,
    make_overview,
)
from eraser_hub.reports.marked_instances import MarkedDocument, MarkedInstance
from eraser_hub.reports.report_tables import make_score_blocks
from eraser_hub.scoring.result import HEADLINE, Scores

pytestmark = pytest.mark.unit


def make_marked(identity, spans, label="POS", size=20):
    words = tuple(f"w{k}" for k in range(size))
    document = MarkedDocument("d", (words, words), ((1, 3, 0),), spans)
    return MarkedInstance(identity, "", "POS", (document,), label)


def make_system(name="ours", low=0.4, **more):
    scores = {"token_macro_f1": 0.5, "comprehensiveness_aopc": 0.2, "macro_f1": 0.9, **more}
    intervals = {"token_macro_f1": (low, 0.6)}
    return Scores(name, scores=scores, intervals=intervals, chance={"token_macro_f1": 0.3})


@pytest.mark.parametrize(("low", "words"), [(0.4, "better than"), (0.2, "no better than")])
def test_one_system_beside_chance(low, words):
    first, second, third = describe_alone(make_system(low=low))
    assert first == (
        f"ours agrees with people's rationales {words} chance: Token F1 (macro) 0.500 [{low:.3f}, 0.600], "
        "by chance 0.300."
    )
    assert second == "ours: Comprehensiveness (AOPC) 0.200." and third == "ours: Macro F1 0.900."


def test_a_screen_of_two_systems_folds_findings_and_leads_with_agreement_and_faithfulness():
    overview = make_overview([make_system("a"), make_system("b")], Compared(None), [], None)
    assert len(overview.shown) == 3 and len(overview.folded) == 3
    assert len(overview.panels) == 3 and overview.lead == ["token_macro_f1", "comprehensiveness_aopc"]


def test_the_example_is_where_two_systems_differ_most():
    rows = [[make_marked("same", ((1, 3),)), make_marked("same", ((1, 3),))]]
    rows.append([make_marked("other", ((30, 32),), "NEG"), make_marked("other", ((1, 3),))])
    values = [{"token_macro_f1": [1.0, 0.0]}, {"token_macro_f1": [1.0, 1.0]}]
    example = choose_example(rows, ["a", "b, c"], values)
    assert example is not None and example.identity == "other" and example.gold == "POS"
    assert [column.system for column in example.columns] == ["b, c", "a"], "the better one first"
    assert example.columns[1].facts == "Token F1 (macro) 0.000 · NEG ✗"
    assert example.link == "#doc=other&systems=b%2C%20c,a"
    assert choose_example(rows[:1], ["a", "b"], [{"token_macro_f1": [1.0]}] * 2) is None, "no difference, no example"
    assert choose_example(rows, ["a", "b"], [{}, {}]) is None and choose_example([], [], []) is None


def test_the_example_of_one_system_is_a_right_label_with_a_bad_rationale():
    rows = [[make_marked("wrong", (), "NEG")], [make_marked("bad", ((9, 10),))], [make_marked("good", ((1, 3),))]]
    example = choose_example(rows, ["a"], [{"token_macro_f1": [0.0, 0.1, 1.0]}])
    assert example is not None and example.identity == "bad" and example.words.startswith("Of the right labels")


def test_a_long_text_is_cut_to_its_marks():
    rows = [[make_marked("long", ((900, 905),), size=1000), make_marked("long", ((1900, 1905),), size=1000)]]
    example = choose_example(rows, ["a", "b"], [{"auprc": [1.0]}, {"auprc": [0.0]}])
    assert example is not None
    assert all(len(column.lines) <= LINES for column in example.columns)
    assert all(len(line) == TOKENS for column in example.columns for line in column.lines)
    assert any(piece.predicted for line in example.columns[1].lines for piece in line)


@pytest.mark.parametrize(
    ("spans", "wanted"),
    [
        ([((0, 2),), ((0, 2),)], 0.0),
        ([((0, 2),), ((2, 4),)], 1.0),
        ([((0, 2),), ((1, 3),)], 0.6667),
        ([((0, 1),), ((0, 1),), ((1, 2),)], 1.0),
        ([((0, 1),), None], None),
        ([(), ()], None),
    ],
)
def test_disagreement(spans, wanted):
    """Of two systems 1 minus intersection over union; of three the most pairs that can disagree on a token are two."""
    assert compute_disagreement([make_marked("i", own) for own in spans]) == wanted


def test_a_definition_has_this_datas_numbers():
    system = make_system()
    system.per_instance["token_macro_f1"] = [0.5, None, math.nan, 0.5]
    one = define_score("token_macro_f1", [system] * 6)
    assert one.facts == "higher is better; from 0 to 1"
    assert one.numbers[0] == "ours: 0.500 over 2 texts · [0.400, 0.600] · chance\u00a00.300"
    assert len(one.numbers) == 5 and one.numbers[-1] == "and 2 more systems"


def test_gold_rationales_have_no_agreement_with_themselves(tmp_path):
    """A run of people's rationales is drawn where the model answers, not where its rationales are compared."""
    systems = [make_system("people", token_macro_f1=1.0, sufficiency_aopc=0.2), make_system("lime", token_macro_f1=0.3)]
    for system, words in zip(systems, ("rationales:human|erase:remove", "method:lime|erase:remove"), strict=True):
        path = tmp_path / f"{system.name}.jsonl"
        path.write_text("")
        (tmp_path / f"{path.name}.run.json").write_text(json.dumps({"signature": words}))
        system.files = (path,)
    assert find_systems(systems, PEOPLE) == ["people"]
    agreement, faithfulness = make_panels(
        systems, ["token_macro_f1", "sufficiency_aopc"], {}, find_systems(systems, PEOPLE)
    )
    assert [row.system for row in agreement.rows] == ["lime"]
    assert [row.system for row in faithfulness.rows] == ["people"]
    trust = make_overview(systems, Compared(None), [], None).trust
    assert trust.startswith("people: erased by what people marked, so no agreement with them is drawn.")


def test_a_panel_is_drawn_of_hostile_and_endless_numbers():
    system = make_system("<script>&\u202e", token_macro_f1=0.0)
    (panel,) = make_panels([system, Scores("b", scores={"token_macro_f1": math.inf})], ["token_macro_f1", "none"], {})
    drawn = render_panel(panel)
    assert len(panel.rows) == 1 and "<script>" not in drawn and "\u202e" not in drawn
    assert not re.search(r"\b(nan|inf)\b", drawn)
    assert "chance 0.300" in drawn


@pytest.mark.parametrize("count", [4, 5])
def test_chance_is_a_line_of_a_table_of_many_systems(count):
    systems = [make_system(f"s{k}") for k in range(count)]
    systems[0] = drop_agreement(systems[0])
    systems[1].chance["token_macro_f1"] = 0.4
    (block, *_) = make_score_blocks(systems, ["token_macro_f1", "macro_f1"])
    cells = {row.name: [(cell.text, cell.small) for cell in row.cells] for row in block.rows}
    if count == 4:
        one, two = (f"[0.400, 0.600] · chance\u00a0{chance}" for chance in ("0.400", "0.300"))
        assert [cell[1] for cell in cells["Token F1 (macro)\u00a0↑"]] == ["", one, two, two]
        return
    assert cells["s0"] == [("", ""), ("0.900", "")], "people have no agreement with themselves"
    assert cells["s1"][0] == ("0.500", "[0.400, 0.600]")
    assert cells["chance"] == [("0.325", "[0.300, 0.400]"), ("", "")]


def test_a_baseline_that_is_a_system_is_drawn_once():
    points = {"aopc_thresholds": [0.1, 0.5], "comprehensiveness_aopc_points": [0.2, 0.4]}
    ours, chance = Scores("ours", scores=points), Scores("random", scores=points)
    figure = make_aopc_figures([ours, chance], [chance])[0]
    assert [line.name for line in figure.series] == ["ours", "random"]
    assert [line.name for line in make_aopc_figures([ours], [chance])[0].series] == ["ours", "random"]


def test_every_headline_score_has_a_definition():
    assert not [key for choices in HEADLINE for key in choices if not all(describe_score(key))]
    assert describe_score("iou_macro_f1@0.1")[0].endswith("At 0.1.") and describe_score("no_such") == ("", "")
