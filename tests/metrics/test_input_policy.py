"""The input policy, row by row: through `score` of files (FILE:LINE) and through the modules (instance and field)."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eraser_hub.metrics.eraser_agreement import EraserAgreement
from eraser_hub.metrics.eraser_faithfulness import EraserFaithfulness
from eraser_hub.metrics.errors import DataError
from eraser_hub.records import predictions as reader
from eraser_hub.scoring.score import ScoreSettings
from eraser_hub.scoring.score import score as score_files

from ..refusals import refused
from ..scoring.small_corpora import Inputs, lines, written

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

    def write(self, folder: Path) -> Inputs:
        (folder / "movies").mkdir()
        inputs = written(folder / "movies", self.predictions, Case().rows(), "docs")
        lines(folder / "movies" / "val.jsonl", self.gold)
        return inputs

    def rows(self) -> list[dict[str, Any]]:
        documents = [{"docid": docid, "text": text} for docid, text in TEXTS.items()]
        return [{**row, "documents": documents} for row in self.gold]


def hard(spans: list[tuple[Any, Any]]) -> Callable[[Case], object]:
    def spoil(case: Case) -> None:
        case.rationale["hard_rationale_predictions"] = [{"start_token": a, "end_token": b} for a, b in spans]

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


def in_gold(value: Any, *path: Any) -> Callable[[Case], object]:
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
R, FULL, COMP = ("rationales", 0), "classification_scores", "comprehensiveness_classification_scores"
NAN, INF = math.nan, math.inf
HARD, SOFT, SENTENCE = (f"{kind}_predictions" for kind in ("hard_rationale", "soft_rationale", "soft_sentence"))


def maybe(case: Case) -> None:
    """A label that the corpus does not have, in all of an instance's scores."""
    case.second["classification"] = "MAYBE"
    for scored in (case.second, *case.second["thresholded_scores"]):
        scored |= {key: {"MAYBE": 0.5, "POS": 0.5} for key in scored if key.endswith("classification_scores")}


H, S, A = f"rationales.{HARD}", f"rationales.{SOFT}", "thresholded_scores.threshold"
SPAN, GOLD_SPAN = f"rationales[0].{HARD}[0]", ("evidences", 0, 0)
# what is done, the field as the modules name it, and what they show; of the second instance or annotation
REFUSED: dict[str, tuple[Callable[[Case], object], str, str]] = {
    "overlapping": (hard([(1, 4), (3, 5)]), H, "[1, 4) and [3, 5)"),
    "negative": (hard([(-1, 2)]), f"{H}.start_token", "[-1, 2)"),
    "reversed": (hard([(3, 1)]), f"{H}.start_token", "[3, 1)"),
    "empty span": (hard([(3, 3)]), f"{H}.start_token", "[3, 3)"),
    "past the end": (hard([(3, 8)]), f"{H}.end_token", "at most 7 (the document's tokens), found 8"),
    "float offset": (hard([(1, 3.0)]), f"{SPAN}.end_token", "found 3.0"),
    "bool offset": (hard([(True, 3)]), f"{SPAN}.start_token", "found True"),
    "string offset": (hard([("1", 3)]), f"{SPAN}.start_token", "found '1'"),
    "huge offset": (hard([(1, 10**30)]), H, str(10**30)),
    "large offset": (hard([(1, 2**62)]), f"{H}.end_token", str(2**62)),
    "no end": (setting([{"start_token": 1}], *R, HARD), f"{SPAN}.end_token", "found none"),
    "misspelt end": (setting([{"start_token": 1, "end_tokn": 2}], *R, HARD), f"{SPAN}.end_tokn", "'end_token'"),
    "gold reversed": (in_gold(0, *GOLD_SPAN, "end_token"), "evidences.start_token", "[1, 0)"),
    "gold past the end": (in_gold(8, *GOLD_SPAN, "end_token"), "evidences.end_token", "at most 7"),
    "gold unknown document": (in_gold("d9", *GOLD_SPAN, "docid"), "evidences.docid", "'d9'"),
    "gold past the sentences": (in_gold(3, *GOLD_SPAN, "end_sentence"), "evidences.end_sentence", "[0, 3)"),
    "gold id twice": (in_gold("a1", "annotation_id"), "annotation_id", "again"),
    "gold label unknown": (in_gold("MAYBE", "classification"), "classification", "NEG, POS, found 'MAYBE'"),
    "hard here and not there": (setting(DELETE, *R, HARD), H, "in all or in none"),
    "label here and not there": (setting(None, "classification"), "classification", "in all or in none"),
    "thresholds here and not there": (setting(None, "thresholded_scores"), "thresholded_scores", "in all or in none"),
    "erased here and not there": (
        setting(None, "thresholded_scores", 1, COMP),
        f"thresholded_scores.{COMP}",
        "at every threshold",
    ),
    "rationales here and not there": (setting(DELETE, "rationales"), "rationales", "in all or in none"),
    "soft missing": (setting([], "rationales"), S, "in every document with evidence"),
    "soft too short": (setting([0.5], *R, SOFT), S, "7 scores (the document's tokens), found 1"),
    "sentences too many": (setting([0.5] * 3, *R, SENTENCE), f"rationales.{SENTENCE}", "2 scores"),
    "soft NaN": (setting(NAN, *R, SOFT, 2), S, "finite numbers"),
    "soft null": (setting(None, *R, SOFT, 2), f"rationales[0].{SOFT}[2]", "found None"),
    "soft string": (setting("0.5", *R, SOFT, 2), f"rationales[0].{SOFT}[2]", "found '0.5'"),
    "unknown document": (setting("d9", *R, "docid"), "rationales.docid", "'d9'"),
    "document above": (setting("../val.jsonl", *R, "docid"), "rationales.docid", "'../val.jsonl'"),
    "no docid": (setting(DELETE, *R, "docid"), "rationales[0].docid", "found none"),
    "document twice": (
        lambda case: case.second["rationales"].append(copy.deepcopy(case.rationale)),
        *("rationales.docid", "'d2' again"),
    ),
    "unknown label": (maybe, "classification", "NEG, POS, found 'MAYBE'"),
    "label is a number": (setting(1, "classification"), "classification", "found 1"),
    "scores lack the label": (setting({"NEG": 1.0}, FULL), FULL, "'POS'"),
    "erased lack the label": (setting({"NEG": 1.0}, COMP), COMP, "'POS'"),
    "erased lack another label": (setting({"POS": 1.0}, COMP), COMP, f"the labels of {FULL}"),
    "scores of no label": (setting({}, FULL), FULL, "found none"),
    "negative probability": (setting({"NEG": 1.5, "POS": -0.5}, COMP), COMP, "-0.5"),
    "NaN probability": (setting({"NEG": NAN, "POS": 1.0}, COMP), COMP, "probabilities"),
    "string probability": (setting({"NEG": "x", "POS": 0.5}, COMP), f"{COMP}.NEG", "found 'x'"),
    "sum": (setting({"NEG": 0.5, "POS": 0.502}, COMP), COMP, "sum to 1, found a sum of 1.002"),
    "threshold missing": (lambda case: case.second["thresholded_scores"].pop(), A, "0.01, 0.05, 0.1, 0.2, 0.5"),
    "threshold doubled": (setting(0.01, "thresholded_scores", 1, "threshold"), A, "0.01 0.01"),
    "threshold not asked for": (setting(0.3, "thresholded_scores", 1, "threshold"), A, "0.3"),
    "no threshold": (setting(DELETE, "thresholded_scores", 1, "threshold"), "thresholded_scores[1].threshold", "none"),
    "annotation without instance": (lambda case: case.predictions.pop(), "", "1 of 2 "),
    "instance without annotation": (setting("a9", "annotation_id"), "annotation_id", "no annotation has this id"),
    "instance twice": (setting("a1", "annotation_id"), "annotation_id", "again"),
    "no instance": (lambda case: case.predictions.clear(), "predictions", "at least one instance"),
    "no id": (setting(DELETE, "annotation_id"), "annotation_id", "found none"),
    "negative flip": (setting(-1, "tokens_to_flip"), "tokens_to_flip", "found -1"),
    "text for a threshold": (setting("0.1", "thresholded_scores", 0, "threshold"), A.replace(".", "[0]."), "'0.1'"),
    "rationale null": (setting([None], "rationales"), "rationales[0]", "found None"),
    "spans no list": (setting(3, *R, HARD), f"rationales[0].{HARD}", "3"),
    "docid no string": (setting([{"docid": ["list"]}], "rationales"), "rationales[0].docid", "['list']"),
    "occlusion no object": (setting([7], "occluded_scores"), "occluded_scores[0]", "7"),
    "erased no object": (setting(1.0, COMP), COMP, "1.0"),
    "rationales no list": (setting({"docid": "d2"}, "rationales"), "rationales", "a list"),
    "scores no object": (setting([0.5, 0.5], FULL), FULL, "an object"),
}
INSTANCES = {"gold id twice": "a1", "instance without annotation": "a9", "instance twice": "a1"}
SAID_BY_THE_READER = {"no instance", "huge offset", "soft NaN", "NaN probability"}  # in its own words


@pytest.mark.parametrize("per_instance", [False, True])
@pytest.mark.parametrize("name", REFUSED)
def test_score_refuses_with_file_and_line_in_any_chunk(
    name: str, per_instance: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (spoil, _, shown), case = REFUSED[name], Case()
    spoil(case)
    monkeypatch.setattr(reader, "MAX_ROWS", 1)
    file = "val.jsonl" if name.startswith("gold") else "p.jsonl"
    line = None if name in ("no instance", "annotation without instance") else 2
    mentions = () if name in SAID_BY_THE_READER or file == "val.jsonl" else (shown,)
    with refused(*mentions, file=file, line=line):
        score_files(*case.write(tmp_path), ScoreSettings(per_instance=per_instance))


@pytest.mark.parametrize("name", REFUSED)
def test_module_refuses(name: str) -> None:
    (spoil, field, shown), case = REFUSED[name], Case()
    spoil(case)
    for module in (EraserAgreement(), EraserFaithfulness()):
        with pytest.raises(DataError) as caught:
            module.compute(predictions=case.predictions, references=case.rows(), label_names=["NEG", "POS"])
        error = caught.value
        nameless = name in ("no instance", "no id")
        assert error.instance == (None if nameless else INSTANCES.get(name, "a2")) and shown in str(error)
        assert field in (error.field or error.argument or "")


ALLOWED: dict[str, Callable[[Case], object]] = {
    "identical spans collapse": hard([(1, 3), (1, 3)]),
    "no hard spans in one": hard([]),
    "gold empty span": in_gold(1, *GOLD_SPAN, "end_token"),
    "document without evidence": lambda case: case.second["rationales"].append(
        {**case.rationale, "docid": "d3", "soft_rationale_predictions": [0.1, 0.2], "soft_sentence_predictions": [0.5]}
        | {"hard_rationale_predictions": []}
    ),
    "id is an integer": both(setting(17, "annotation_id"), in_gold("17", "annotation_id")),
    "unknown keys": setting([1], "attention"),
    "integer scores": setting([0, 1, 0, 0, 1, 0, 0], *R, "soft_rationale_predictions"),
    "threshold by arithmetic": setting(0.1 + 0.1, "thresholded_scores", 3, "threshold"),
}


@pytest.mark.parametrize("name", ALLOWED)
def test_allowed(name: str, tmp_path: Path) -> None:
    """Files and rows give the same scores."""
    case = Case()
    ALLOWED[name](case)
    found = score(case, tmp_path)
    options = {"references": case.rows(), "label_names": ["NEG", "POS"]}
    for module in (EraserAgreement(), EraserFaithfulness()):
        flat: Any = module.compute(predictions=case.predictions, **options)
        for key in flat.keys() - {"signature", "gold", "marked", "all"}:  # the three of a row without gold
            assert found[key] == pytest.approx(flat[key], abs=1e-12, nan_ok=True)


def score(case: Case, folder: Path) -> dict[str, Any]:
    return score_files(*case.write(folder)).as_json()


def agree(case: Case) -> dict[str, Any]:
    found: dict[str, Any] = EraserAgreement().compute(predictions=case.predictions, references=case.rows())
    return found


def test_a_row_with_one_document_twice_is_refused() -> None:
    references = Case().rows()
    references[1]["documents"] = [*references[1]["documents"], {"docid": "d2", "text": "shorter"}]
    with pytest.raises(DataError, match="'d2' again") as caught:
        EraserAgreement().compute(predictions=Case().predictions, references=references)
    assert (caught.value.instance, caught.value.field) == ("a2", "documents")


def test_identical_spans_count_once() -> None:
    case = Case()
    once = agree(case)
    hard([(1, 3), (1, 3)])(case)
    assert agree(case) == once


def test_instances_without_spans(tmp_path: Path) -> None:
    """Without the field there are no span scores; empty lists count 0."""
    case = Case()
    case.predictions[0]["rationales"][0][HARD] = []
    found = agree(case)
    assert (found["token_micro_p"], found["token_micro_r"]) == (1, 0.5)
    case.predictions = [{**row, "rationales": []} for row in case.predictions]
    found = score(case, tmp_path)
    assert "iou_macro_f1" not in found and "auprc" not in found and found["comprehensiveness"] == pytest.approx(0.25)


def test_what_has_no_number_is_null_in_files(tmp_path: Path) -> None:
    """KL with a zero in the original is infinite; rankings of single-class documents are undefined."""
    case = Case()
    case.second[FULL] = {"NEG": 0.0, "POS": 1.0}
    for row in case.gold:
        row["evidences"] = []
    result: Any = EraserFaithfulness().compute(predictions=case.predictions, references=case.rows())
    assert result["comprehensiveness_kl"] == math.inf
    found = agree(case)
    assert math.isnan(found["average_precision"]) and math.isnan(found["roc_auc_score"])
    found = score(case, tmp_path)
    keys = ("auprc", "average_precision", "roc_auc_score", "comprehensiveness_kl")
    assert [found[key] for key in keys] == [0.5, None, None, None]


def test_what_is_no_row_is_told_by_its_place() -> None:
    case = Case()
    with pytest.raises(DataError, match="found 7"):
        EraserAgreement().compute(predictions=[case.predictions[0], 7], references=case.rows())
    with pytest.raises(DataError, match=r"references\[1\].*found 7"):
        EraserAgreement().compute(predictions=case.predictions, references=[case.rows()[0], 7])
    for module in (EraserAgreement(), EraserFaithfulness()):
        with pytest.raises(DataError, match="at least one row, found none"):
            module.compute(predictions=case.predictions, references=[])
