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

from ..refusals import refused

TEXTS = {"d1": "a dull film .\nno one laughs .", "d2": "what a joy ,\nstart to end", "d3": "another one"}
AOPC = (0.01, 0.05, 0.1, 0.2, 0.5)


def evidence(docid: str, start: int, end: int, first: int = 0, last: int = 1) -> dict[str, Any]:
    sentences = {"start_sentence": first, "end_sentence": last}
    return {"docid": docid, "text": "", "start_token": start, "end_token": end, **sentences}


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
        "classification_scores": scores(0.75 if label == "POS" else 0.25),
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


def end(folder: Path, corpus: Path, monkeypatch: pytest.MonkeyPatch, *options: str) -> SystemExit:
    """How `score` ends; what it refuses is the context."""
    target = ["--predictions", str(folder / "predictions.jsonl"), "--out", str(folder / "scores.json")]
    command = ["eraser-hub", "score", "--source", str(corpus), "--split", "val", *target, *options]
    monkeypatch.setattr(sys, "argv", command)
    with pytest.raises(SystemExit) as ended:
        door.main()
    return ended.value


def run(folder: Path, corpus: Path, monkeypatch: pytest.MonkeyPatch, *options: str) -> int:
    return int(end(folder, corpus, monkeypatch, *options).code or 0)


def hard(spans: list[tuple[Any, Any]]) -> Callable[[Case], object]:
    def spoil(case: Case) -> None:
        case.rationale["hard_rationale_predictions"] = [{"start_token": a, "end_token": b} for a, b in spans]

    return spoil


def soft(value: Any, field: str = "soft_rationale_predictions", at: int = 2) -> Callable[[Case], object]:
    def spoil(case: Case) -> None:
        case.rationale[field][at % len(case.rationale[field])] = value

    return spoil


def setting(value: Any, *path: Any) -> Callable[[Case], object]:
    def spoil(case: Case) -> None:
        target: Any = case.second
        for key in path[:-1]:
            target = target[key]
        if value is DELETE:
            del target[path[-1]]
        else:
            target[path[-1]] = value

    return spoil


def gold(value: Any, *path: Any) -> Callable[[Case], object]:
    def spoil(case: Case) -> None:
        target: Any = case.gold[1]
        for key in path[:-1]:
            target = target[key]
        target[path[-1]] = value

    return spoil


def both(*spoilers: Callable[[Case], object]) -> Callable[[Case], object]:
    def spoil(case: Case) -> None:
        for one in spoilers:
            one(case)

    return spoil


DELETE = object()
R, COMP, SUFF = ("rationales", 0), "comprehensiveness_classification_scores", "sufficiency_classification_scores"
first_evidence = ("evidences", 0, 0)
NAN, INF = math.nan, math.inf
HARD, SOFT, SENTENCE = (f"{kind}_predictions" for kind in ("hard_rationale", "soft_rationale", "soft_sentence"))


class Refusal:
    """What is done to a case, and how it is refused.

    Args:
        spoil: what is done.
        rule: the rule that is broken.
        field: the field as the modules name it.
        mentions: what both the command and the modules show.
        command: the rule that the command names, where its reader sees it before the rules of scores.
        file, line: where the command says it stands.
        instance: whose it is.
    """

    def __init__(
        self,
        spoil: Callable[[Case], object],
        rule: str,
        field: str,
        *mentions: str,
        command: str = "",
        file: str = "predictions.jsonl",
        line: int | None = 2,
        instance: str | None = "a2",
    ) -> None:
        self.spoil, self.rule, self.field, self.mentions = spoil, rule, field, mentions
        self.command, self.file, self.line, self.instance = command or rule, file, line, instance


def gold_refusal(spoil: Callable[[Case], object], rule: str, field: str, *mentions: str, **more: Any) -> Refusal:
    return Refusal(spoil, rule, field, *mentions, file="val.jsonl", **more)


def not_there(value: Any, *path: Any) -> Refusal:
    """A field of the first instance that the second lacks."""
    field = ".".join(key for key in path if isinstance(key, str))
    return Refusal(setting(value, *path), "key-missing", field, field)


def maybe(case: Case) -> None:
    """A label that the corpus does not have, in all of an instance's scores."""
    case.second["classification"] = "MAYBE"
    for scored in (case.second, *case.second["thresholded_scores"]):
        scored |= {key: {"MAYBE": 0.5, "POS": 0.5} for key in scored if key.endswith("classification_scores")}


REFUSED: dict[str, Refusal] = {
    "overlapping": Refusal(
        hard([(1, 4), (3, 5)]), "span-overlap", f"rationales[0].{HARD}[1].start_token", "[1, 4)", "[3, 5)"
    ),
    "negative": Refusal(hard([(-1, 2)]), "span-order", f"rationales[0].{HARD}[0].start_token", "[-1, 2)"),
    "reversed": Refusal(hard([(3, 1)]), "span-order", f"rationales[0].{HARD}[0].start_token", "[3, 1)"),
    "empty span": Refusal(hard([(3, 3)]), "span-order", f"rationales[0].{HARD}[0].start_token", "[3, 3)"),
    "past the end": Refusal(hard([(3, 8)]), "span-bounds", f"rationales[0].{HARD}[0].end_token", "7", "8"),
    "float offset": Refusal(hard([(1, 3.0)]), "type", f"rationales[0].{HARD}[0].end_token"),
    "bool offset": Refusal(hard([(True, 3)]), "type", f"rationales[0].{HARD}[0].start_token"),
    "string offset": Refusal(hard([("1", 3)]), "type", f"rationales[0].{HARD}[0].start_token"),
    "huge offset": Refusal(hard([(1, 10**30)]), "range", f"rationales[0].{HARD}[0].end_token", "64 bits"),
    "large offset": Refusal(hard([(1, 2**62)]), "span-bounds", f"rationales[0].{HARD}[0].end_token", "7", str(2**62)),
    "no end": Refusal(setting([{"start_token": 1}], *R, HARD), "type", f"rationales[0].{HARD}[0].end_token", "None"),
    "gold reversed": gold_refusal(gold(0, *first_evidence, "end_token"), "span-order", "evidences[0][0].start_token"),
    "gold past the end": gold_refusal(
        gold(8, *first_evidence, "end_token"), "span-bounds", "evidences[0][0].end_token", "7", "8"
    ),
    "gold unknown document": gold_refusal(
        gold("d9", *first_evidence, "docid"),
        "document-unknown",
        "evidences[0][0].docid",
        "'d9'",
        command="document-missing",
    ),
    "gold past the sentences": gold_refusal(
        gold(3, *first_evidence, "end_sentence"), "span-bounds", "evidences[0][0].end_sentence", "2", "3"
    ),
    "gold id twice": gold_refusal(gold("a1", "annotation_id"), "id-twice", "annotation_id", "'a1'", instance="a1"),
    "gold label unknown": gold_refusal(
        gold("MAYBE", "classification"), "label-unknown", "classification", "NEG", "POS", "'MAYBE'"
    ),
    "hard here and not there": not_there(DELETE, *R, HARD),
    "hard null": not_there(None, *R, HARD),
    "soft here and not there": not_there(DELETE, *R, SOFT),
    "label here and not there": not_there(None, "classification"),
    "scores here and not there": not_there(DELETE, "classification_scores"),
    "flip here and not there": not_there(DELETE, "tokens_to_flip"),
    "thresholds here and not there": not_there(None, "thresholded_scores"),
    "erased here and not there": not_there(None, "thresholded_scores", 1, COMP),
    "rationales here and not there": not_there(DELETE, "rationales"),
    "soft missing": Refusal(setting([], "rationales"), "score-missing", f"rationales.{SOFT}", "'d2'"),
    "soft too short": Refusal(setting([0.5], *R, SOFT), "length", f"rationales[0].{SOFT}", "7 scores", "1 for 'd2'"),
    "sentences too many": Refusal(
        setting([0.5] * 3, *R, SENTENCE), "length", f"rationales[0].{SENTENCE}", "2 scores", "3 for 'd2'"
    ),
    "soft NaN": Refusal(soft(NAN), "range", f"rationales[0].{SOFT}", "NaN", command="syntax"),
    "soft infinite": Refusal(soft(INF), "range", f"rationales[0].{SOFT}", "nfinity", command="syntax"),
    "soft null": Refusal(soft(None), "type", f"rationales[0].{SOFT}[2]"),
    "soft string": Refusal(soft("0.5"), "type", f"rationales[0].{SOFT}[2]"),
    "soft bool": Refusal(soft(True), "type", f"rationales[0].{SOFT}[2]"),
    "sentence null": Refusal(soft(None, SENTENCE), "type", f"rationales[0].{SENTENCE}[0]"),
    "unknown document": Refusal(setting("d9", *R, "docid"), "document-unknown", "rationales[0].docid", "'d9'"),
    "document above": Refusal(
        setting("../val.jsonl", *R, "docid"), "document-unknown", "rationales[0].docid", "'../val.jsonl'"
    ),
    "no docid": Refusal(setting(DELETE, *R, "docid"), "type", "rationales[0].docid", "None"),
    "document twice": Refusal(
        lambda case: case.second["rationales"].append(copy.deepcopy(case.rationale)),
        *("document-twice", "rationales[1].docid", "'d2'"),
    ),
    "unknown label": Refusal(maybe, "label-unknown", "classification", "NEG, POS", "'MAYBE'"),
    "label is a number": Refusal(setting(1, "classification"), "type", "classification"),
    "scores lack the label": Refusal(
        setting({"NEG": 1.0}, "classification_scores"), "score-missing", "classification_scores", "'POS'"
    ),
    "erased lack the label": Refusal(setting({"NEG": 1.0}, COMP), "score-missing", COMP, "'POS'"),
    "erased lack another label": Refusal(setting({"POS": 1.0}, COMP), "constant", COMP, "classification_scores"),
    "thresholded lack the label": Refusal(
        setting({"NEG": 1.0}, "thresholded_scores", 2, COMP), "score-missing", f"thresholded_scores.{COMP}", "'POS'"
    ),
    "scores of no label": Refusal(
        setting({}, "classification_scores"), "probabilities", "classification_scores", "none"
    ),
    "negative probability": Refusal(setting({"NEG": 1.5, "POS": -0.5}, COMP), "probabilities", COMP, "1.5, -0.5"),
    "NaN probability": Refusal(setting({"NEG": NAN, "POS": 0.5}, COMP), "probabilities", COMP, "NaN", command="syntax"),
    "string probability": Refusal(setting({"NEG": "x", "POS": 0.5}, COMP), "probabilities", COMP, "'x'"),
    "sum": Refusal(setting({"NEG": 0.5, "POS": 0.502}, COMP), "probabilities", COMP, "sum to 1", "1.002"),
    "threshold missing": Refusal(
        lambda case: case.second["thresholded_scores"].pop(),
        *("constant", "thresholded_scores.threshold", "0.01, 0.05, 0.1, 0.2, 0.5, ", "found 0.01, 0.05, 0.1, 0.2"),
    ),
    "threshold doubled": Refusal(
        setting(0.01, "thresholded_scores", 1, "threshold"), "constant", "thresholded_scores.threshold", "0.01, 0.01"
    ),
    "threshold not asked for": Refusal(
        setting(0.3, "thresholded_scores", 1, "threshold"), "constant", "thresholded_scores.threshold", "0.3"
    ),
    "no threshold": Refusal(
        setting(DELETE, "thresholded_scores", 1, "threshold"), "type", "thresholded_scores[1].threshold", "None"
    ),
    "annotation without instance": gold_refusal(
        lambda case: case.predictions.pop(), "id-missing", "annotation_id", "1 of 2 ", "only"
    ),
    "instance without annotation": Refusal(
        setting("a9", "annotation_id"), "id-unknown", "annotation_id", "'a9'", instance="a9"
    ),
    "instance twice": Refusal(setting("a1", "annotation_id"), "id-twice", "annotation_id", "'a1'", instance="a1"),
    "no instance": Refusal(lambda case: case.predictions.clear(), "empty", "", line=None, instance=None),
    "no id": Refusal(setting(DELETE, "annotation_id"), "type", "annotation_id", "None", instance=None),
    "negative flip": Refusal(setting(-1, "tokens_to_flip"), "range", "tokens_to_flip", "-1"),
    "rationales no list": Refusal(setting({"docid": "d2"}, "rationales"), "type", "rationales"),
    "scores no object": Refusal(
        setting([0.5, 0.5], "classification_scores"), "type", "classification_scores", "an object"
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_command_refuses(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    expected, case = REFUSED[name], Case()
    expected.spoil(case)
    ended = end(tmp_path, case.write(tmp_path), monkeypatch)
    assert ended.code == 1
    with refused(expected.command, *expected.mentions, file=expected.file, line=expected.line) as seen:
        raise ended.__context__ or AssertionError
    assert seen.first.line == expected.line
    told = capsys.readouterr().err
    assert f"{expected.file}:{expected.line}: " in told if expected.line else f"{expected.file}: " in told
    assert all(value in told for value in expected.mentions)
    assert "Traceback" not in told
    assert not (tmp_path / "scores.json").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["movies", "predictions.jsonl"]


@pytest.mark.parametrize("name", REFUSED)
def test_module_refuses(name: str) -> None:
    """By the module that reads the field; of the other nothing is asked but that it says the same or nothing."""
    expected, case, told = REFUSED[name], Case(), 0
    expected.spoil(case)
    for module in (EraserAgreement(), EraserFaithfulness()):
        try:
            module.compute(predictions=case.predictions, references=case.rows(), label_names=["NEG", "POS"])
        except ValueError as error:
            with refused(expected.rule, *expected.mentions, field=expected.field) as seen:
                raise error
            assert seen.first.instance == expected.instance
            told += 1
    assert told


ALLOWED: dict[str, Callable[[Case], object]] = {
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
    agreement: Any = EraserAgreement().compute(predictions=case.predictions, **options)
    faithfulness: Any = EraserFaithfulness().compute(predictions=case.predictions, **options)
    for flat in (agreement, faithfulness):
        assert flat.keys() <= found.keys()
        for key, value in flat.items():
            if key in ("gold", "marked", "all"):  # of a row without gold
                assert json.loads(json.dumps(value, default=float).replace("NaN", "null")).items() <= found[key].items()
            elif key != "signature":
                assert found[key] == pytest.approx(value, abs=1e-12, nan_ok=True)


def test_a_row_with_one_document_twice_is_refused() -> None:
    case = Case()
    references = case.rows()
    references[1]["documents"].append({"docid": "d2", "text": "shorter"})
    with refused("document-twice", "'a2'", "'d2'", field="documents", total=2):  # both have this list
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
    assert "iou_macro_f1" not in found and "auprc" not in found
    assert found["comprehensiveness"] == pytest.approx(0.25)


def test_all_empty_lists_score_zero(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case()
    for one in case.predictions:
        one["rationales"][0]["hard_rationale_predictions"] = []
    assert run(tmp_path, case.write(tmp_path), monkeypatch) == 0
    found = json.loads((tmp_path / "scores.json").read_text())
    assert [found[f"{name}_{part}"] for name in ("token_micro", "exact_macro") for part in ("p", "r", "f1")] == [
        0.0
    ] * 6


def test_first_instance_with_empty_list_keeps_span_scores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case()
    case.predictions[0]["rationales"][0]["hard_rationale_predictions"] = []
    assert run(tmp_path, case.write(tmp_path), monkeypatch) == 0
    assert json.loads((tmp_path / "scores.json").read_text())["token_micro_r"] == 0.5


def test_kl_is_infinite_where_the_original_has_a_zero(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case()
    case.second["classification_scores"] = {"NEG": 0.0, "POS": 1.0}
    result: Any = EraserFaithfulness().compute(predictions=case.predictions, references=case.rows())
    assert result["comprehensiveness_kl"] == math.inf
    assert run(tmp_path, case.write(tmp_path), monkeypatch) == 0
    assert json.loads((tmp_path / "scores.json").read_text())["comprehensiveness_kl"] is None


def test_single_class_documents_give_nan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case()
    for row in case.gold:
        row["evidences"] = []
    result: Any = EraserAgreement().compute(predictions=case.predictions, references=case.rows())
    assert math.isnan(result["average_precision"]) and math.isnan(result["roc_auc_score"])
    assert result["auprc"] == 0.5
    assert run(tmp_path, case.write(tmp_path), monkeypatch) == 0
    found = json.loads((tmp_path / "scores.json").read_text())
    assert [found[key] for key in ("auprc", "average_precision", "roc_auc_score")] == [0.5, None, None]


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
    with refused("span-bounds", "99", "15 more", "25 in all", instance="a0", total=25) as seen:
        EraserAgreement().compute(predictions=case.predictions, references=case.rows())
    assert len(str(seen.error).splitlines()) == 11
    assert [one.instance for one in seen.error.errors] == [f"a{k}" for k in range(10)]


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
        ["--resamples", "0"],
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
    for predictions, references, field in (
        ([case.predictions[0], 7], case.rows(), "predictions[1]"),
        (case.predictions, [case.rows()[0], 7], "references[1]"),
    ):
        with refused("type", field, "found 7", field=field, total=1) as seen:
            EraserAgreement().compute(predictions=predictions, references=references)
        assert "\n" not in str(seen.error)


def test_nothing_at_all_is_told_by_its_side() -> None:
    case = Case()
    with refused("empty") as seen:
        EraserAgreement().compute(predictions=[], references=case.rows())
    assert str(seen.error) == "predictions: expected at least one instance, found none"
    assert (seen.first.side, seen.first.row, seen.first.instance) == ("prediction", -1, None)
    for module in (EraserAgreement(), EraserFaithfulness()):
        with refused("empty", "references: ", field="references", total=1):
            module.compute(predictions=case.predictions, references=[])


def test_no_threshold_at_all_is_told_as_none() -> None:
    case = Case()
    case.second["thresholded_scores"] = []
    with refused("constant", "0.01, 0.05, 0.1, 0.2, 0.5", "none", instance="a2", field="thresholded_scores.threshold"):
        EraserFaithfulness().compute(predictions=case.predictions)
