"""Token scores from elsewhere go through the same erasure as our own."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import islice

import pytest

pytest.importorskip("sklearn")

from eraser_hub.attribution import Instance, explain_instances, explain_texts, open_model
from eraser_hub.attribution.dataset import open_split
from eraser_hub.attribution.external_rationales import ExternalScores, ExternalSpans, GoldRationales
from eraser_hub.attribution.run import explain
from eraser_hub.attribution.settings import ExplainSettings

from ..command_line import invoke
from ..refusals import refused
from .conftest import CountingModel, make_hub, told

SETTINGS = ExplainSettings(method="occlusion", chunk=4, random_draws=2)


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_the_scores_of_a_run_give_its_predictions_again(job, tmp_path, ending):
    first = tmp_path / f"occlusion.{ending}"
    explain(job, SETTINGS, first)
    again = explain(replace(job, scores=first), SETTINGS, tmp_path / f"again.{ending}")
    assert (tmp_path / f"again.{ending}").read_bytes() == first.read_bytes()
    assert "method:given" in again.signature and f"scores:{ExternalScores(first).digest}" in again.signature


def row(name="x", scores=(0.1, 0.2), docid="d", **more):
    return {"annotation_id": name, "rationales": [{"docid": docid, "soft_rationale_predictions": list(scores)}], **more}


@pytest.mark.parametrize(
    ("lines", "where", "mentions"),
    [
        (["{"], {"line": 1}, ()),
        (["[]"], {"line": 1}, ("object",)),
        ([json.dumps({"annotation_id": "x"})], {"line": 1, "instance": "x"}, ("rationales",)),
        (
            [json.dumps({"annotation_id": "x", "rationales": [{"docid": "d"}]})],
            {"line": 1, "instance": "x", "field": "rationales[0].soft_rationale_predictions"},
            ("scores",),
        ),
        ([json.dumps(row()), json.dumps(row())], {"line": 2, "instance": "x"}, ()),
        ([json.dumps(row()), "", json.dumps(row())], {"line": 2}, ()),
        (
            [json.dumps(row(scores=["0.5", 1]))],
            {"line": 1, "instance": "x", "field": "rationales[0].soft_rationale_predictions[0]"},
            (),
        ),
        (
            [json.dumps({**row(), "rationales": row()["rationales"] * 2})],
            {"line": 1, "instance": "x", "field": "rationales[1].docid"},
            ("'d'",),
        ),
        ([json.dumps(row(name="other"))], {"instance": "x"}, ("scores",)),
        (
            [json.dumps(row(docid="other"))],
            {"line": 1, "instance": "x", "field": "rationales"},
            ("'d'", "'other'"),
        ),
        (
            [json.dumps({"annotation_id": "x", "rationales": []})],
            {"line": 1, "instance": "x", "field": "rationales"},
            ("soft_rationale_predictions", "'d'"),
        ),
        (
            [json.dumps(row(scores=[1]))],
            {"line": 1, "instance": "x", "field": "soft_rationale_predictions"},
            ("2", "'d'", "1"),
        ),
        ([json.dumps(row()).replace("0.1", "1e999")], {"line": 1}, ("finite",)),
    ],
)
def test_bad_files_are_refused_with_their_place(tmp_path, lines, where, mentions):
    path = tmp_path / "s.jsonl"
    path.write_text("\n".join(lines), "utf-8")
    with refused(*mentions, file=path, **where):
        ExternalScores(path).attach(Instance("x", (), ("d",), (("good", "film"),)))


def test_a_document_without_tokens_needs_no_scores(tmp_path):
    (tmp_path / "s.jsonl").write_text(json.dumps(row()) + "\n", "utf-8")
    found = ExternalScores(tmp_path / "s.jsonl").attach(Instance("x", (), ("d", "e"), (("good", "film"), ())))
    assert found.scores == ((0.1, 0.2), ())


def test_the_first_that_is_missing_is_told_with_the_number_of_others(job, tmp_path):
    explain(job, SETTINGS, tmp_path / "whole.jsonl")
    lines = (tmp_path / "whole.jsonl").read_text().splitlines()
    (tmp_path / "s.jsonl").write_text("\n".join(lines[15:]))
    with refused("(and 14 more)", file="s.jsonl", instance="doc100"):
        explain(replace(job, scores=tmp_path / "s.jsonl"), SETTINGS, tmp_path / "p.jsonl")
    (tmp_path / "s.jsonl").write_text(json.dumps(row("none of these")) + "\n", "utf-8")
    with refused("none of its ids occur", file="s.jsonl"):
        explain(replace(job, scores=tmp_path / "s.jsonl"), SETTINGS, tmp_path / "p.jsonl")
    assert not list(tmp_path.glob("p.jsonl*"))
    first = islice(open_split(job.dataset, "movies", "val").instances(), 20)
    with refused(file="whole.jsonl", line=21, instance="doc120"):
        ExternalScores(tmp_path / "whole.jsonl").check(first, partly=False)
    explain(replace(job, scores=tmp_path / "whole.jsonl", limit=4), SETTINGS, tmp_path / "p.jsonl")


def test_the_command_line_takes_a_method_or_scores(job, tmp_path):
    words = ["explain", "--dataset", job.dataset, "--config", "movies", "--split", "val", "--model", job.model]
    scores = ["--scores", str(tmp_path / "none.jsonl"), "--out", str(tmp_path / "p.jsonl")]
    both = invoke([*words, *scores, "--method", "lime"])
    assert both.exit_code == 2 and "found both" in both.stderr
    assert invoke([*words, *scores]).exit_code == 1


def test_scores_from_python():
    own = explain_texts(CountingModel(), ["the good film"], method="occlusion", kd=0.3)
    scores = [own[0]["rationales"][0]["soft_rationale_predictions"]]
    assert explain_texts(CountingModel(), ["the good film"], scores=scores, kd=0.3) == own
    other = explain_texts(CountingModel(), ["the good film"], scores=[[3, 2, 1]], kd=0.3)
    assert other[0]["rationales"][0]["hard_rationale_predictions"] == [{"start_token": 0, "end_token": 1}]
    with refused("3", "'0'", "2", instance="0", field="soft_rationale_predictions"):
        explain_texts(CountingModel(), ["the good film"], scores=[[1, 2]])
    with refused(instance="0", field="soft_rationale_predictions"):
        explain_texts(CountingModel(), ["the good"], scores=[[1, float("nan")]])
    with refused("1", "2", argument="scores"):
        explain_texts(CountingModel(), ["the good"], scores=[[1, 2], [1, 2]])
    with refused("['a', 2]", instance="0", field="scores"):
        explain_texts(CountingModel(), ["the good"], scores=[["a", 2]])


# --- rationales --------------------------------------------------------------------------------------------------

SPANS_OF_HUMANS = ExplainSettings(
    method="rationales", chunk=4, random_draws=1, fidelity_trials=1, fidelity_rates=(0.0, 1.0)
)


def to_spans(prediction):
    return [tuple(span.values()) for part in prediction["rationales"] for span in part["hard_rationale_predictions"]]


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_human_rationales_are_erased_as_they_are(job, hub, tmp_path, ending):
    from eraser_hub.records.predictions import read_plain_rows

    out = tmp_path / f"human.{ending}"
    report = explain(replace(job, rationales="human"), SPANS_OF_HUMANS, out)
    assert report.signature.startswith("rationales:human|erase:remove") and "bins" not in report.signature
    gold = {one.id: one for one in open_split(hub, "movies", "val").instances()}
    model = open_model(job.model)
    for _, found in read_plain_rows(out):
        one = gold[found["annotation_id"]]
        (document,) = found["rationales"]
        places = [at for start, end in to_spans(found) for at in range(start, end)]
        assert places == [at for at, flag in enumerate(one.rationale[0]) if flag]
        assert "soft_rationale_predictions" not in document and "thresholded_scores" not in found
        alone = replace(one, query=(), documents=(tuple(one.documents[0][at] for at in places),))
        (expected,) = explain_instances(model, [alone], ExplainSettings(method="random", bins=()))
        assert found["sufficiency_classification_scores"] == expected["classification_scores"]
        points = found["occluded_scores"]
        assert points[0]["sufficiency_classification_scores"] == found["sufficiency_classification_scores"]
        assert points[1]["sufficiency_classification_scores"] == found["null_classification_scores"]
        assert len(found["random_rationales"]) == 1


def test_instances_without_a_human_rationale_are_left_out_and_counted(job, hub, tmp_path):
    data = make_hub(tmp_path / "hub", validation={"evidences": []})
    with refused("`rationales` human", "21"):
        explain(replace(job, dataset=str(data), rationales="human"), SPANS_OF_HUMANS, tmp_path / "p.jsonl")
    whole = open_split(hub, "movies", "val").instances()
    some = [replace(one, rationale=None) if number % 3 else one for number, one in enumerate(whole)]
    given = GoldRationales()
    assert [one.id for one in given.attach_all(some)] == [one.id for one in some[::3]]
    assert told([given.check(some, partly=False)], "14 of 21")


def test_the_rationales_of_a_file_are_erased(job, tmp_path):
    first, again, out = (tmp_path / name for name in ("human.jsonl", "again.jsonl", "file.jsonl"))
    explain(replace(job, rationales="human"), SPANS_OF_HUMANS, first)
    report = explain(replace(job, rationales=str(first)), SPANS_OF_HUMANS, again)
    assert first.read_bytes() == again.read_bytes()
    assert f"rationales:{ExternalSpans(first).digest}|" in report.signature
    rows = [json.loads(line) for line in first.read_text().splitlines()]
    rows[0]["rationales"][0]["hard_rationale_predictions"] = []  # a model may mark nothing
    out.write_text("\n".join(map(json.dumps, rows)))
    explain(replace(job, rationales=str(out)), SPANS_OF_HUMANS, again, force=True)
    found = json.loads(again.read_text().splitlines()[0])
    assert to_spans(found) == [] and found["sufficiency_classification_scores"] == found["null_classification_scores"]
    for spans in (
        [[0, 2], [1, 3]],
        [[3, 3]],
        [[-1, 2]],
        [[5, 99]],
    ):
        rows[0]["rationales"][0]["hard_rationale_predictions"] = [{"start_token": a, "end_token": b} for a, b in spans]
        out.write_text("\n".join(map(json.dumps, rows)))
        place = {"file": "file.jsonl", "line": 1, "instance": "doc100", "field": "hard_rationale_predictions"}
        with refused("30", spans[-1], **place):
            explain(replace(job, rationales=str(out)), SPANS_OF_HUMANS, again)


def test_given_rationales_allow_no_target(job, tmp_path):
    with refused(argument="target"):
        explain(replace(job, rationales="human"), replace(SPANS_OF_HUMANS, target="gold"), tmp_path / "p.jsonl")


def test_the_gold_label_or_any_other_is_explained(job, hub):
    model, instances = open_model(job.model), list(open_split(hub, "movies", "val").instances())
    by = {
        target: list(explain_instances(model, instances, ExplainSettings(target=target, bins=())))
        for target in ("predicted", "gold", "NEG", "POS")
    }
    for number, one in enumerate(instances):
        soft = {name: rows[number]["rationales"][0]["soft_rationale_predictions"] for name, rows in by.items()}
        assert soft["gold"] == soft[one.label] and soft["predicted"] == soft[by["gold"][number]["classification"]]
        assert soft["NEG"] == pytest.approx([-score for score in soft["POS"]], abs=1e-12)
    with refused("`target` neutral", "predicted, gold, NEG, POS", "'neutral'"):
        list(explain_instances(model, instances, ExplainSettings(target="neutral")))
    with refused("`target` gold", "None", instance="doc100"):
        list(explain_instances(model, [replace(instances[0], label=None)], ExplainSettings(target="gold")))
    assert "target:gold" in ExplainSettings(target="gold").signature()
