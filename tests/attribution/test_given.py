"""Rationales and scores from people and files: what is refused, and that they are erased as a method's own."""

from __future__ import annotations

import json

import numpy as np
import pytest

import eraser_hub
from eraser_hub.attribution.dataset import open_split
from eraser_hub.attribution.given import attach_scores, open_given
from eraser_hub.attribution.instances import Instance
from eraser_hub.records.predictions import read_plain_rows

from ..refusals import refused
from .conftest import CountingModel, made_row, make_hub, write_hub

TEXT = Instance("x", (), ("d", "e"), (("good", "film"), ()))
PAIR = Instance("7", (), ("sequence_0", "sequence_1"), (("good", "film"), ("a",)))
SOFT, HARD = "soft_rationale_predictions", "hard_rationale_predictions"


def soft(scores=(0.1, 0.2), name="x", docid="d", times=1):
    return json.dumps({"annotation_id": name, "rationales": [{"docid": docid, SOFT: list(scores)}] * times})


def hard(*spans):
    listed = [{"start_token": start, "end_token": end} for start, end in spans]
    return json.dumps({"annotation_id": "x", "rationales": [{"docid": "d", HARD: listed}]})


def pair(rationale, name=7):
    return json.dumps({"id": name, "rationale": rationale})


@pytest.mark.parametrize(
    ("what", "lines", "line", "field", "mentions"),
    [
        ("scores", ["{"], 1, None, ()),
        ("scores", [hard()], 1, f"rationales[0].{SOFT}", ("none",)),
        ("rationales", [soft()], 1, f"rationales[0].{HARD}", ("none",)),
        ("scores", [soft(), soft()], 2, None, ("again",)),
        ("scores", [soft(times=2)], 1, "rationales[1].docid", ("'d'",)),
        ("scores", [soft(name="y")], None, None, ("none of its ids",)),
        ("scores", [soft(docid="other")], 1, "rationales", ("'d'", "'other'")),
        ("scores", [soft([1])], 1, SOFT, ("2", "'d'", "1")),
        ("scores", [soft().replace("0.1", "1e999")], 1, None, ("finite",)),
        ("scores", [soft(), soft(name="y"), soft(name="z")], 2, None, ("another (and 1 more)",)),
        ("rationales", [hard((0, 2), (1, 2))], 1, HARD, ("2", "'d'", "[1, 2]")),
        ("rationales", [hard((-1, 1))], 1, HARD, ("[-1, 1]",)),
        ("pairs", [pair([[1], [1]])], 1, "rationale", ("1", "'sequence_1'")),
        ("pairs", [pair([[1]])], 1, "rationales", ("'sequence_1'",)),
        ("pairs", [pair([[], []], True)], 1, "id", ("True",)),
    ],
)
def test_bad_files_are_refused_with_their_place(tmp_path, what, lines, line, field, mentions):
    path = tmp_path / "s.jsonl"
    path.write_text("\n".join(lines), "utf-8")
    with refused(*mentions, file=path, line=line, field=field):
        if what == "pairs":
            open_given(path, "rationales", "perturbation").check([PAIR], partly=True)
        else:
            open_given(path, what).check([TEXT], partly=False)


def test_a_file_is_named_by_its_argument(tmp_path):
    for path in (tmp_path / "none.jsonl", tmp_path / "s.csv"):
        with refused(path.name, argument="scores"):
            open_given(path, "scores")
    with refused("human, model or", "'humans'", argument="rationales"):
        open_given("humans", "rationales")


def test_what_fits_is_attached(tmp_path):
    path = tmp_path / "s.jsonl"
    cases = [
        ("scores", "", TEXT, soft(), None, ((0.1, 0.2), ())),
        ("rationales", "", TEXT, hard((1, 2), (0, 1), (1, 2)), ((True, True), ()), None),
        ("rationales", "", TEXT, hard(), ((False, False), ()), None),
        ("rationales", "perturbation", PAIR, pair([[1, 1], []]), ((False, True), (False,)), None),
    ]
    for what, kind, instance, line, rationale, scores in cases:
        path.write_text(line, "utf-8")
        given = open_given(path, what, kind)
        assert given.check([instance], partly=False) is None and len(given.digest) == 12
        found = given.attach(instance)
        assert (found.rationale, found.scores) == (rationale, scores)


def test_scores_in_memory():
    texts, rows = ["good film bad", "the plot end"], [[0.5, 0.25, -1.0], [0.0, 1.0, 0.25]]
    for scores in (rows, np.array(rows), pytest.importorskip("torch").tensor(rows, requires_grad=True)):
        found = eraser_hub.explain_texts(CountingModel(), texts, scores=scores, kd=0.3)
        assert [row["rationales"][0][SOFT] for row in found] == rows
        assert found[1]["rationales"][0][HARD] == [{"start_token": 1, "end_token": 2}]
    for rows, field in (([[1], []], SOFT), ([[1, float("nan")], []], SOFT), ([["a", 2], []], "scores")):
        with refused(instance="x", field=field):
            attach_scores(TEXT, rows)
    with refused("[[1, 2], [3, 4]]", instance="x", field="scores"):
        attach_scores(TEXT, [[[1, 2], [3, 4]], []])


def test_instances_without_a_human_rationale_are_left_out_and_counted(hub, tmp_path):
    rows = [{**made_row(number), **({"evidences": None} if number % 3 else {})} for number in range(21)]
    some = write_hub(tmp_path / "some", "movies", {"validation": rows}, ["NEG", "POS"])
    how = {"rationales": "human", "split": "val", "out": tmp_path / "p.jsonl"}
    (report,) = eraser_hub.explain(CountingModel(), some, **how)
    assert report.instances == 7 and "14 of 21" in str(report)
    with refused("none of 21", argument="rationales"):
        eraser_hub.explain(CountingModel(), make_hub(tmp_path / "hub", validation={"evidences": []}), **how)


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
@pytest.mark.parametrize("what", ["scores", "rationales"])
def test_a_result_gives_itself_again(hub, tmp_path, ending, what):
    files = [tmp_path / f"{name}.{ending}" for name in ("first", "again")]
    data = {"config": "movies", "split": "val", "random_draws": 2, "chunk": 4}
    first = {"rationales": "human"} if what == "rationales" else {"method": "occlusion"}
    eraser_hub.explain(CountingModel(), hub, out=files[0], **first, **data)
    (report,) = eraser_hub.explain(CountingModel(), hub, out=files[1], **{what: files[0]}, **data)
    assert files[0].read_bytes() == files[1].read_bytes()
    assert f"{what}:{open_given(files[0], what).digest}|" in report.signature
    gold = {instance.id: instance for instance in open_split(hub, "movies", "val").instances()}
    for _, row in read_plain_rows(files[1]) if what == "rationales" else ():
        (rationale,), flags = row["rationales"], gold[row["annotation_id"]].rationale[0]
        spans = [(span["start_token"], span["end_token"]) for span in rationale[HARD]]
        assert [at for start, end in spans for at in range(start, end)] == [at for at, flag in enumerate(flags) if flag]
        assert SOFT not in rationale and len(row["random_rationales"]) == 2
