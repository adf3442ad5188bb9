"""`score` and `compare` on the command line: tables and files, systems of several runs, what is refused."""

from __future__ import annotations

import json

import pytest

import eraser_hub
from eraser_hub.records.files import to_json_bytes

from ..command_line import invoke
from ..refusals import refused


def run(*words):
    return invoke(list(map(str, words)))


def test_json_is_the_score_file(samples, tmp_path):
    words = ["score", "--dataset", samples / "eraser" / "movies", "--split", "val", "--by", "classification"]
    words += ["--predictions", samples / "predictions" / "eraser" / "movies.val.jsonl", "--confidence-level", "0.9"]
    done = run(*words, "--format", "json", "--out", tmp_path / "ours.json")
    found = json.loads(done.stdout)
    assert done.exit_code == 0 and found == json.loads((tmp_path / "ours.json").read_bytes())
    assert (found["config"], found["split"], "dataset" in found) == ("movies", "validation", False)
    assert set(found["by"]) == {"NEG", "POS"} and "|level:0.9|" in found["signature"][0]


@pytest.fixture
def movies(samples):
    """The place of the gold, and two systems."""
    folder = samples / "predictions" / "eraser"
    common = {"dataset": samples / "eraser" / "movies", "split": "val", "resamples": 200}
    return common, [folder / "movies.val.jsonl", folder / "movies.val.baseline.jsonl"]


def compare(common, *files, **options):
    return json.loads(to_json_bytes(eraser_hub.compare(*files, **common, **options)))


def print_comparison(common, *files, **options):
    words = [word for name, value in {**common, **options}.items() for word in (f"--{name.replace('_', '-')}", value)]
    return run("compare", *words, *(word for file in files for word in ("--predictions", file)))


def changed(path, source, change, digest=""):
    """A copy of predictions with changed records, and the digest of their model beside it."""
    records = list(map(json.loads, source.read_text(encoding="utf-8").splitlines()))
    for record in records:
        change(record)
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    if digest:
        path.with_name(f"{path.name}.run.json").write_text(json.dumps({"model": {"digest": digest}}))
    return path


def test_a_table_and_json(movies):
    common, (ours, baseline) = movies
    table = print_comparison(common, f"ours={ours}", f"difference={baseline}")
    assert table.exit_code == 0, table.output
    assert "token_macro_f1" in table.output and "ours against difference" in table.output
    assert "difference (system)" in table.output, "a system may be called as a column is"
    found = compare(common, ours, baseline, seed=3)
    assert any(note.startswith("different models (movies.val and movies.val.baseline)") for note in found["notes"])
    assert found["signature"].startswith("compare|") and "|n:24|" in found["signature"]
    headline = ["token_macro_f1", "iou_macro_f1", "average_precision"]
    assert found["family"] == [*headline, "comprehensiveness_aopc", "sufficiency_aopc", "macro_f1"]
    keys, scores = found["comparisons"][0]["keys"], found["scores"]
    for key, sign in (("token_macro_f1", 1), ("sufficiency", -1)):  # a lower sufficiency is better
        difference = scores["movies.val"][key] - scores["movies.val.baseline"][key]
        assert keys[key]["difference"] == pytest.approx(sign * difference)
    assert set(found["chance"]) == set(scores) and "token_macro_f1" in found["chance"]["movies.val"]


def test_runs_clusters_and_the_family(movies, tmp_path):
    pytest.importorskip("scipy")
    common, (ours, baseline) = movies
    second = changed(tmp_path / "second.jsonl", ours, lambda record: None)
    options = {"primary": "auprc", "minimum_effect": 0.1, "cluster_by": "classification"}
    found = compare(common, f"ours={ours},{second}", f"theirs={baseline}", **options)
    tested = found["comparisons"][0]["keys"]["auprc"]
    assert tested["p_holm"] is None and tested["verdict"] == "undecided", "two clusters decide nothing"
    assert (tested["minimum_effect"], found["family"]) == (0.1, ["auprc"])
    assert set(found["spread"]) == {"ours"} and found["spread"]["ours"]["auprc"] == 0
    assert found["runs"] == {"ours": 2, "theirs": 1}
    assert "|cluster:classification|clusters:2|" in found["signature"]


def test_models_are_known_by_their_digests(movies, tmp_path):
    common, (ours, _) = movies
    files = [
        changed(tmp_path / f"{name}.jsonl", ours, lambda record: None, digest)
        for name, digest in (("one", "m1"), ("two", "m1"), ("three", "m2"))
    ]
    found = compare(common, *files)
    pairs = {(one["first"], one["second"]): one["keys"]["comprehensiveness_aopc"] for one in found["comparisons"]}
    (note,) = [note for note in found["notes"] if note.startswith("different models")]
    assert "(one and three; two and three)" in note and "comprehensiveness_aopc" in note
    assert [pair for pair, test in pairs.items() if test["exploratory"]] == [("one", "three"), ("two", "three")]


def remove(*fields):
    def change(record):
        for field in fields:
            record.pop(field, None)
            for rationale in record["rationales"]:
                rationale.pop(field, None)

    return change


def test_systems_with_other_optional_fields_share_what_both_have(movies, tmp_path):
    common, (ours, baseline) = movies
    lacking = ("soft_rationale_predictions", "thresholded_scores", "tokens_to_flip")
    poorer = changed(tmp_path / "poorer.jsonl", baseline, remove(*lacking))
    whole, shared = (compare(common, ours, other) for other in (baseline, poorer))
    first, second = whole["comparisons"][0]["keys"], shared["comparisons"][0]["keys"]
    assert set(first) - set(second) == set(shared["left_out"]["movies.val"])
    assert {"auprc", "tokens_to_flip_ratio", "comprehensiveness_aopc"} <= set(first) - set(second)
    uncorrected = ("difference", "ci", "p", "detectable")
    assert all(second[key][name] == first[key][name] for key in second for name in uncorrected)
    turned = print_comparison(common, poorer, ours)
    assert "not compared, movies.val alone has them:" in turned.output and "auprc" in turned.output


def test_sentences_by_scores_and_by_spans_are_not_compared(movies, tmp_path):
    common, (ours, baseline) = movies
    spans = changed(tmp_path / "spans.jsonl", baseline, remove("soft_sentence_predictions"))
    for pair in ((ours, spans), (spans, ours)):
        found = compare(common, *pair)
        keys = found["comparisons"][0]["keys"]
        assert "token_micro_f1" in keys and not any(key.startswith("sentence") for key in keys)
        assert all("sentence_macro_f1" in found["left_out"][name] for name in ("movies.val", "spans"))


def test_wrong_usage_and_wrong_data(movies, tmp_path):
    common, (ours, baseline) = movies
    for words in ((common, ours), ({**common, "format": "xml"}, ours, baseline), ({"split": "val"}, ours, baseline)):
        assert print_comparison(*words).exit_code == 2, words
    cut = tmp_path / "cut.jsonl"
    cut.write_text(ours.read_text(encoding="utf-8")[:500], encoding="utf-8")
    for other, options, said, place in (
        (cut, {}, "", {"file": "cut.jsonl", "line": 1}),
        (baseline, {"cluster_by": "qery"}, "did you mean 'query'", {"file": "val.jsonl", "line": 1}),
        (baseline, {"cluster_by": "evidences"}, "", {"file": "val.jsonl", "line": 1, "field": "evidences"}),
        (baseline, {"config": "movis"}, "did you mean 'movies'", {"argument": "config"}),
    ):
        with refused(said, **place):
            compare(common, ours, other, **options)
