"""The input policy, line by line: through the command (exit 1, FILE:LINE) and through the modules (ValueError)."""

from __future__ import annotations

import atexit
import copy
import functools
import json
import math
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import eraser_hub.__main__ as door
from eraser_hub.metrics.eraser_agreement import EraserAgreement
from eraser_hub.metrics.eraser_faithfulness import EraserFaithfulness

TEXTS = {"d1": "a dull film .\nno one laughs .", "d2": "what a joy ,\nstart to end", "d3": "another one"}
AOPC = (0.01, 0.05, 0.1, 0.2, 0.5)


def evidence(docid: str, start: int, end: int, first: int = 0, last: int = 1) -> dict[str, Any]:
    return {
        "docid": docid, "text": "", "start_token": start, "end_token": end, "start_sentence": first, "end_sentence": last
    }  # fmt: skip


def scores(p: float) -> dict[str, float]:
    return {"NEG": 1 - p, "POS": p}


def instance(name: str, docid: str, size: int, label: str) -> dict[str, Any]:
    return {
        "annotation_id": name,
        "rationales": [
            {
                "docid": docid,
                "hard_rationale_predictions": [{"start_token": 1, "end_token": 3}],
                "soft_rationale_predictions": [(k * 7 % 5) / 5 for k in range(size)],
                "soft_sentence_predictions": [0.75, 0.25],
            }
        ],
        "classification": label,
        "classification_scores": scores(0.75),
        "comprehensiveness_classification_scores": scores(0.5),
        "sufficiency_classification_scores": scores(0.625),
        "tokens_to_flip": 2,
        "thresholded_scores": [
            {
                "threshold": threshold,
                "comprehensiveness_classification_scores": scores(0.5),
                "sufficiency_classification_scores": scores(0.625),
            }
            for threshold in AOPC
        ],
    }


@functools.cache
def documents() -> Path:
    """One folder of documents for all cases: hundreds of small files are slow to write and to remove."""
    holder = tempfile.TemporaryDirectory()
    atexit.register(holder.cleanup)
    for docid, text in TEXTS.items():
        (Path(holder.name) / docid).write_text(text)
    return Path(holder.name)


class Case:
    """Gold annotations, predictions and documents that are in order, to be spoilt."""

    def __init__(self) -> None:
        self.gold: list[dict[str, Any]] = [
            {"annotation_id": "a1", "query": "", "classification": "NEG", "evidences": [[evidence("d1", 1, 3)]]},
            {"annotation_id": "a2", "query": "", "classification": "POS", "evidences": [[evidence("d2", 1, 3)]]},
        ]
        self.predictions = [instance("a1", "d1", 8, "NEG"), instance("a2", "d2", 7, "POS")]
        self.options: list[str] = []

    @property
    def second(self) -> dict[str, Any]:
        return self.predictions[1]

    @property
    def rationale(self) -> dict[str, Any]:
        return self.second["rationales"][0]

    def write(self, folder: Path) -> Path:
        corpus = folder / "movies"
        corpus.mkdir()
        (corpus / "docs").symlink_to(documents())
        (corpus / "val.jsonl").write_text("".join(json.dumps(row) + "\n" for row in self.gold))
        (folder / "predictions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in self.predictions))
        return corpus

    def rows(self) -> list[dict[str, Any]]:
        documents = [{"docid": docid, "text": text} for docid, text in TEXTS.items()]
        return [{**row, "documents": documents} for row in self.gold]


def run(folder: Path, corpus: Path, monkeypatch: pytest.MonkeyPatch, *options: str) -> int:
    target = ["--results", str(folder / "predictions.jsonl"), "--score-file", str(folder / "scores.json")]
    command = ["eraser-hub", "score", "--data-dir", str(corpus), "--split", "val", *target, *options]
    monkeypatch.setattr(sys, "argv", command)
    with pytest.raises(SystemExit) as ended:
        door.main()
    return int(ended.value.code or 0)


def hard(spans: list[tuple[Any, Any]]) -> Callable[[Case], None]:
    def spoil(case: Case) -> None:
        case.rationale["hard_rationale_predictions"] = [{"start_token": a, "end_token": b} for a, b in spans]

    return spoil


def soft(value: Any, field: str = "soft_rationale_predictions", at: int = 2) -> Callable[[Case], None]:
    def spoil(case: Case) -> None:
        case.rationale[field][at % len(case.rationale[field])] = value

    return spoil


def setting(value: Any, *path: Any) -> Callable[[Case], None]:
    def spoil(case: Case) -> None:
        target: Any = case.second
        for key in path[:-1]:
            target = target[key]
        if value is DELETE:
            del target[path[-1]]
        else:
            target[path[-1]] = value

    return spoil


def gold(value: Any, *path: Any) -> Callable[[Case], None]:
    def spoil(case: Case) -> None:
        target: Any = case.gold[1]
        for key in path[:-1]:
            target = target[key]
        target[path[-1]] = value

    return spoil


def both(*spoilers: Callable[[Case], None]) -> Callable[[Case], None]:
    def spoil(case: Case) -> None:
        for one in spoilers:
            one(case)

    return spoil


DELETE = object()
R, COMP = ("rationales", 0), "comprehensiveness_classification_scores"
first_evidence = ("evidences", 0, 0)
NAN, INF = math.nan, math.inf
REFUSED: dict[str, tuple[Callable[[Case], None], str, str]] = {
    # name: (what is done, which file and line tells it, part of the message)
    "overlapping": (hard([(1, 4), (3, 5)]), "predictions.jsonl:2", "do not overlap"),
    "negative": (hard([(-1, 2)]), "predictions.jsonl:2", "0 <= start_token < end_token"),
    "reversed": (hard([(3, 1)]), "predictions.jsonl:2", "0 <= start_token < end_token"),
    "empty span": (hard([(3, 3)]), "predictions.jsonl:2", "0 <= start_token < end_token"),
    "past the end": (hard([(3, 8)]), "predictions.jsonl:2", "at most 7"),
    "float offset": (hard([(1, 3.0)]), "predictions.jsonl:2", "xpected"),
    "bool offset": (hard([(True, 3)]), "predictions.jsonl:2", "xpected"),
    "string offset": (hard([("1", 3)]), "predictions.jsonl:2", "xpected"),
    "huge offset": (hard([(1, 10**30)]), "predictions.jsonl:2", "within the document"),
    "large offset": (hard([(1, 2**62)]), "predictions.jsonl:2", "at most 7"),
    "no end": (setting([{"start_token": 1}], *R, "hard_rationale_predictions"), "predictions.jsonl:2", "end_token"),
    "gold reversed": (gold(0, *first_evidence, "end_token"), "val.jsonl:2", "start_token <= end_token|expected an end at or after the start"),
    "gold past the end": (gold(8, *first_evidence, "end_token"), "val.jsonl:2", "at most 7|which has 7 tokens"),
    "gold unknown document": (gold("d9", *first_evidence, "docid"), "val.jsonl:2", "no document 'd9'|found 'd9', which is not there"),
    "gold past the sentences": (gold(3, *first_evidence, "end_sentence"), "val.jsonl:2", "at most 2"),
    "gold id twice": (gold("a1", "annotation_id"), "val.jsonl:2", "once"),
    "gold label unknown": (gold("MAYBE", "classification"), "val.jsonl:2", "NEG, POS|'NEG', 'POS'"),
    "hard here and not there": (setting(DELETE, *R, "hard_rationale_predictions"), "predictions.jsonl:2", "found none"),
    "hard null": (setting(None, *R, "hard_rationale_predictions"), "predictions.jsonl:2", "found none"),
    "soft here and not there": (setting(DELETE, *R, "soft_rationale_predictions"), "predictions.jsonl:2", "found none"),
    "label here and not there": (setting(None, "classification"), "predictions.jsonl:2", "found none"),
    "scores here and not there": (setting(DELETE, "classification_scores"), "predictions.jsonl:2", "found none"),
    "flip here and not there": (setting(DELETE, "tokens_to_flip"), "predictions.jsonl:2", "found none"),
    "thresholds here and not there": (setting(None, "thresholded_scores"), "predictions.jsonl:2", "found none"),
    "erased here and not there": (setting(None, "thresholded_scores", 1, COMP), "predictions.jsonl:2", "found none"),
    "rationales here and not there": (setting(DELETE, "rationales"), "predictions.jsonl:2", "found none"),
    "soft missing": (setting([], "rationales"), "predictions.jsonl:2", "has evidence"),
    "soft too short": (setting([0.5], *R, "soft_rationale_predictions"), "predictions.jsonl:2", "expected 7 scores"),
    "sentences too many": (setting([0.5] * 3, *R, "soft_sentence_predictions"), "predictions.jsonl:2", "expected 2 scores"),
    "soft NaN": (soft(NAN), "predictions.jsonl:2", "NaN"),
    "soft infinite": (soft(INF), "predictions.jsonl:2", "nfinity"),
    "soft null": (soft(None), "predictions.jsonl:2", "xpected"),
    "soft string": (soft("0.5"), "predictions.jsonl:2", "xpected"),
    "soft bool": (soft(True), "predictions.jsonl:2", "xpected"),
    "sentence null": (soft(None, "soft_sentence_predictions"), "predictions.jsonl:2", "xpected"),
    "unknown document": (setting("d9", *R, "docid"), "predictions.jsonl:2", "no document 'd9'"),
    "document above": (setting("../val.jsonl", *R, "docid"), "predictions.jsonl:2", "no document"),
    "no docid": (setting(DELETE, *R, "docid"), "predictions.jsonl:2", "docid"),
    "document twice": (lambda case: case.second["rationales"].append(copy.deepcopy(case.rationale)), "predictions.jsonl:2", "once"),
    "unknown label": (
        both(setting("MAYBE", "classification"), *(
            setting({"MAYBE": 0.5, "POS": 0.5}, *path)
            for path in [("classification_scores",), (COMP,), ("sufficiency_classification_scores",)]
            + [("thresholded_scores", k, f"{side}_classification_scores") for k in range(5) for side in ("comprehensiveness", "sufficiency")]
        )),
        "predictions.jsonl:2", "MAYBE",
    ),
    "label is a number": (setting(1, "classification"), "predictions.jsonl:2", "xpected"),
    "scores lack the label": (setting({"NEG": 1.0}, "classification_scores"), "predictions.jsonl:2", "'POS'"),
    "erased lack the label": (setting({"NEG": 1.0}, COMP), "predictions.jsonl:2", "'POS'"),
    "erased lack another label": (setting({"POS": 1.0}, COMP), "predictions.jsonl:2", "others"),
    "thresholded lack the label": (setting({"NEG": 1.0}, "thresholded_scores", 2, COMP), "predictions.jsonl:2", "'POS'"),
    "scores of no label": (setting({}, "classification_scores"), "predictions.jsonl:2", "found none"),
    "negative probability": (setting({"NEG": 1.5, "POS": -0.5}, COMP), "predictions.jsonl:2", "probabilities"),
    "NaN probability": (setting({"NEG": NAN, "POS": 0.5}, COMP), "predictions.jsonl:2", "NaN"),
    "string probability": (setting({"NEG": "x", "POS": 0.5}, COMP), "predictions.jsonl:2", "xpected"),
    "sum": (setting({"NEG": 0.5, "POS": 0.502}, COMP), "predictions.jsonl:2", "sum to 1"),
    "threshold missing": (lambda case: case.second["thresholded_scores"].pop(), "predictions.jsonl:2", "0.01, 0.05"),
    "threshold doubled": (setting(0.01, "thresholded_scores", 1, "threshold"), "predictions.jsonl:2", "each once"),
    "threshold not asked for": (setting(0.3, "thresholded_scores", 1, "threshold"), "predictions.jsonl:2", "each once"),
    "no threshold": (setting(DELETE, "thresholded_scores", 1, "threshold"), "predictions.jsonl:2", "xpected"),
    "annotation without instance": (lambda case: case.predictions.pop(), "val.jsonl:2", "expected an instance"),
    "instance without annotation": (setting("a9", "annotation_id"), "predictions.jsonl:2", "'a9'"),
    "instance twice": (setting("a1", "annotation_id"), "predictions.jsonl:2", "once"),
    "no instance": (lambda case: case.predictions.clear(), "predictions.jsonl", "at least one"),
    "no id": (setting(DELETE, "annotation_id"), "predictions.jsonl:2", "annotation_id"),
    "negative flip": (setting(-1, "tokens_to_flip"), "predictions.jsonl:2", "tokens_to_flip"),
    "rationales no list": (setting({"docid": "d2"}, "rationales"), "predictions.jsonl:2", "xpected"),
    "scores no object": (setting([0.5, 0.5], "classification_scores"), "predictions.jsonl:2", "xpected"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_command_refuses(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    spoil, place, message = REFUSED[name]
    case = Case()
    spoil(case)
    assert run(tmp_path, case.write(tmp_path), monkeypatch) == 1
    told = capsys.readouterr().err
    assert f"{place}: " in told or f"{place}:" in told
    assert any(words in told for words in message.split("|"))
    assert "Traceback" not in told
    assert not (tmp_path / "scores.json").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["movies", "predictions.jsonl"]


@pytest.mark.parametrize("name", REFUSED)
def test_module_refuses(name: str) -> None:
    spoil, place, message = REFUSED[name]
    case = Case()
    spoil(case)
    told = []
    for module in (EraserAgreement(), EraserFaithfulness()):
        try:
            module.compute(predictions=case.predictions, references=case.rows(), label_names=["NEG", "POS"])
        except ValueError as error:
            told.append(str(error))
    assert told
    text = "\n".join(told)
    assert any(words.lower() in text.lower() for words in message.split("|"))
    if case.predictions and place != "predictions.jsonl" and name not in ("no id",):
        assert "'a2'" in text or "'a1'" in text or "'a9'" in text


ALLOWED: dict[str, Callable[[Case], None]] = {
    "identical spans collapse": hard([(1, 3), (1, 3)]),
    "no hard spans in one": hard([]),
    "gold empty span": gold(1, *first_evidence, "end_token"),
    "document without evidence": lambda case: case.second["rationales"].append(
        {**case.rationale, "docid": "d3", "soft_rationale_predictions": [0.1, 0.2], "soft_sentence_predictions": [0.5]}
        | {"hard_rationale_predictions": []}
    ),
    "id is an integer": both(setting(17, "annotation_id"), gold("17", "annotation_id")),
    "unknown keys": setting([1], "attention"),
    "integer scores": setting([0, 1, 0, 0, 1, 0, 0], *R, "soft_rationale_predictions"),
    "threshold by arithmetic": setting(0.1 + 0.1, "thresholded_scores", 3, "threshold"),
}


@pytest.mark.parametrize("name", ALLOWED)
def test_allowed(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case()
    ALLOWED[name](case)
    assert run(tmp_path, case.write(tmp_path), monkeypatch) == 0
    found = json.loads((tmp_path / "scores.json").read_text())
    options = {"references": case.rows(), "label_names": ["NEG", "POS"]}
    agreement = EraserAgreement().compute(predictions=case.predictions, **options)
    faithfulness = EraserFaithfulness().compute(predictions=case.predictions, **options)
    for flat, part in ((agreement, found["agreement"]), (faithfulness, found["faithfulness"])):
        assert flat.keys() == part.keys()
        for key, value in flat.items():
            if key != "signature":
                assert part[key] == pytest.approx(value, abs=1e-12, nan_ok=True)


def test_a_row_with_one_document_twice_is_refused() -> None:
    case = Case()
    references = case.rows()
    references[1]["documents"].append({"docid": "d2", "text": "shorter"})
    with pytest.raises(ValueError, match=r"'a2'.*each document once.*'d2'"):
        EraserAgreement().compute(predictions=case.predictions, references=references)


def test_identical_spans_count_once() -> None:
    case = Case()
    once = EraserAgreement().compute(predictions=case.predictions, references=case.rows())
    hard([(1, 3), (1, 3)])(case)
    assert EraserAgreement().compute(predictions=case.predictions, references=case.rows()) == once


def test_no_hard_field_leaves_span_scores_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case()
    for one in case.predictions:
        one["rationales"] = []
    assert run(tmp_path, case.write(tmp_path), monkeypatch) == 0
    found = json.loads((tmp_path / "scores.json").read_text())
    assert "iou_scores" not in found and "token_soft_metrics" not in found
    assert found["classification_scores"]["comprehensiveness"] == pytest.approx(0.0)


def test_all_empty_lists_score_zero(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case()
    for one in case.predictions:
        one["rationales"][0]["hard_rationale_predictions"] = []
    assert run(tmp_path, case.write(tmp_path), monkeypatch) == 0
    found = json.loads((tmp_path / "scores.json").read_text())
    assert found["token_prf"]["instance_micro"] == {"p": 0.0, "r": 0.0, "f1": 0.0}
    assert found["rationale_prf"]["instance_macro"] == {"p": 0.0, "r": 0.0, "f1": 0.0}


def test_first_instance_with_empty_list_keeps_span_scores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case()
    case.predictions[0]["rationales"][0]["hard_rationale_predictions"] = []
    assert run(tmp_path, case.write(tmp_path), monkeypatch) == 0
    assert json.loads((tmp_path / "scores.json").read_text())["token_prf"]["instance_micro"]["r"] == 0.5


def test_kl_is_infinite_where_the_original_has_a_zero(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case()
    case.second["classification_scores"] = {"NEG": 0.0, "POS": 1.0}
    result = EraserFaithfulness().compute(predictions=case.predictions, references=case.rows())
    assert result["comprehensiveness_kl"] == math.inf
    assert run(tmp_path, case.write(tmp_path), monkeypatch) == 0
    assert json.loads((tmp_path / "scores.json").read_text())["classification_scores"]["comprehensiveness_kl"] is None


def test_single_class_documents_give_nan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case()
    for row in case.gold:
        row["evidences"] = []
    result = EraserAgreement().compute(predictions=case.predictions, references=case.rows())
    assert math.isnan(result["average_precision"]) and math.isnan(result["roc_auc_score"])
    assert result["auprc"] == 0.5
    assert run(tmp_path, case.write(tmp_path), monkeypatch) == 0
    soft_metrics = json.loads((tmp_path / "scores.json").read_text())["token_soft_metrics"]
    assert soft_metrics == {"auprc": 0.5, "average_precision": None, "roc_auc_score": None}


BROKEN = {
    "not JSON": b"{'annotation_id': 'a2'}\n",
    "cut line": b'{"annotation_id": "a2", "rationales": [',
    "not an object": b'["a2"]\n',
    "a number": b"17\n",
    "broken UTF-8": b'{"annotation_id": "a\xff2", "rationales": []}\n',
    "broken UTF-8 in an unknown key": b'{"annotation_id": "a2", "note": "\xff", "rationales": []}\n',
    "NaN": b'{"annotation_id": "a2", "rationales": [], "tokens_to_flip": NaN}\n',
}


@pytest.mark.parametrize("side", ["predictions.jsonl", "val.jsonl"])
@pytest.mark.parametrize("name", BROKEN)
def test_broken_lines(
    name: str, side: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    corpus = Case().write(tmp_path)
    path = tmp_path / side if side == "predictions.jsonl" else corpus / side
    path.write_bytes(path.read_bytes().splitlines(keepends=True)[0] + BROKEN[name])
    assert run(tmp_path, corpus, monkeypatch) == 1
    told = capsys.readouterr().err
    assert f"{side}:2: " in told and "Traceback" not in told


def test_ten_offenders_and_their_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    case = Case()
    case.gold = [{**case.gold[0], "annotation_id": f"a{k}"} for k in range(25)]
    case.predictions = [{**copy.deepcopy(case.predictions[0]), "annotation_id": f"a{k}"} for k in range(25)]
    for one in case.predictions:
        one["rationales"][0]["hard_rationale_predictions"] = [{"start_token": 3, "end_token": 99}]
    assert run(tmp_path, case.write(tmp_path), monkeypatch) == 1
    told = capsys.readouterr().err.strip().splitlines()
    assert len(told) == 11 and "25" in told[-1]
    with pytest.raises(ValueError, match="25 in all") as error:
        EraserAgreement().compute(predictions=case.predictions, references=case.rows())
    assert len(str(error.value).splitlines()) == 11


def test_strict_demands_thresholds_and_scores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    case = Case()
    corpus = case.write(tmp_path)
    assert run(tmp_path, corpus, monkeypatch, "--strict") == 2
    assert run(tmp_path, corpus, monkeypatch, "--strict", "--iou-thresholds", "0.5") == 0
    for one in case.predictions:
        del one[COMP]
    (tmp_path / "predictions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in case.predictions))
    assert run(tmp_path, corpus, monkeypatch, "--strict", "--iou-thresholds", "0.5") == 1
    assert "comprehensiveness" in capsys.readouterr().err


@pytest.mark.parametrize(
    "options",
    [
        ["--iou-thresholds", "0"],
        ["--iou-thresholds", "1.5"],
        ["--aopc-thresholds", "-1"],
        ["--auprc-policy", "best"],
        ["--confidence-level", "2"],
        ["--n-resamples", "0"],
        ["--ci-method", "magic"],
        ["--dataset", "x"],
    ],
)
def test_bad_usage(options: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(tmp_path, Case().write(tmp_path), monkeypatch, *options) == 2


@pytest.mark.parametrize("value", [None, True, 1.5, []])
def test_an_instance_without_a_readable_id_is_told_by_its_line(
    value: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    case = Case()
    case.second["annotation_id"] = value
    assert run(tmp_path, case.write(tmp_path), monkeypatch) == 1
    told = capsys.readouterr().err
    assert "predictions.jsonl:2: annotation_id: expected" in told and "instance '" not in told


def test_what_is_no_object_is_told_once() -> None:
    case = Case()
    for predictions, references, message in (
        ([case.predictions[0], 7], case.rows(), "predictions[1]: expected an object, found 7"),
        (case.predictions, [case.rows()[0], 7], "references[1]: expected an object, found 7"),
    ):
        with pytest.raises(ValueError) as error:
            EraserAgreement().compute(predictions=predictions, references=references)
        assert str(error.value) == message


def test_nothing_at_all_is_told_by_its_side() -> None:
    case = Case()
    with pytest.raises(ValueError) as error:
        EraserAgreement().compute(predictions=[], references=case.rows())
    assert str(error.value).splitlines()[0] == "predictions: expected at least one instance, found none"
    for module in (EraserAgreement(), EraserFaithfulness()):
        with pytest.raises(ValueError, match=r"^references: expected at least one row, found none$"):
            module.compute(predictions=case.predictions, references=[])


def test_no_threshold_at_all_is_told_as_none() -> None:
    case = Case()
    case.second["thresholded_scores"] = []
    with pytest.raises(ValueError, match=r"each once, found none$"):
        EraserFaithfulness().compute(predictions=case.predictions)
