"""The input policy, row by row: through `score` of files (FILE:LINE) and through the modules (instance and field)."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eraser_hub.metrics.eraser_agreement import EraserAgreement
from eraser_hub.metrics.eraser_faithfulness import EraserFaithfulness
from eraser_hub.records import predictions as reader
from eraser_hub.scoring.score import score as score_files

from ..refusals import refused
from ..scoring.small_corpora import Inputs, lines, written

TEXTS = {"d1": "a dull film .\nno one laughs .", "d2": "what a joy ,\nstart to end", "d3": "another one"}
DELETE = object()
R, FULL = ("rationales", 0), "classification_scores"
COMP, SUFF = f"comprehensiveness_{FULL}", f"sufficiency_{FULL}"
NAN = math.nan
HARD, SOFT, SENTENCE = (f"{kind}_predictions" for kind in ("hard_rationale", "soft_rationale", "soft_sentence"))


def scores(p: float) -> dict[str, float]:
    return {"NEG": 1 - p, "POS": p}


def instance(name: str, docid: str, size: int, label: str) -> dict[str, Any]:
    soft = {SOFT: [(k * 7 % 5) / 5 for k in range(size)], SENTENCE: [0.75, 0.25]}
    rationale = {"docid": docid, HARD: [{"start_token": 1, "end_token": 3}], **soft}
    row = {"annotation_id": name, "rationales": [rationale], "classification": label, "tokens_to_flip": 2}
    row |= {FULL: scores(0.75 if label == "POS" else 0.25), COMP: scores(0.5), SUFF: scores(0.625)}
    bins = [{"threshold": at, COMP: scores(0.5), SUFF: scores(0.625)} for at in (0.01, 0.05, 0.1, 0.2, 0.5)]
    return row | {"thresholded_scores": bins}


def annotation(name: str, docid: str, label: str) -> dict[str, Any]:
    place = {"docid": docid, "text": "", "start_token": 1, "end_token": 3, "start_sentence": 0, "end_sentence": 1}
    return {"annotation_id": name, "query": "", "classification": label, "evidences": [[place]]}


class Case:
    """Gold annotations, predictions and documents that are in order, to be spoilt."""

    def __init__(self) -> None:
        self.gold = [annotation("a1", "d1", "NEG"), annotation("a2", "d2", "POS")]
        self.predictions = [instance("a1", "d1", 8, "NEG"), instance("a2", "d2", 7, "POS")]

    @property
    def second(self) -> dict[str, Any]:
        return self.predictions[1]

    def write(self, folder: Path) -> Inputs:
        (folder / "movies").mkdir()
        inputs = written(folder / "movies", self.predictions, Case().rows(), "docs")
        lines(folder / "movies" / "val.jsonl", self.gold)
        return inputs

    def rows(self) -> list[dict[str, Any]]:
        documents = [{"docid": docid, "text": text} for docid, text in TEXTS.items()]
        return [{**row, "documents": documents} for row in self.gold]


def put(value: Any, *path: Any, side: str = "predictions") -> Callable[[Case], None]:
    """Put a value at a path of the second instance, or of the second annotation (``side="gold"``)."""

    def spoil(case: Case) -> None:
        target: Any = getattr(case, side)[1]
        for key in path[:-1]:
            target = target[key]
        if value is DELETE:
            del target[path[-1]]
        else:
            target[path[-1]] = value

    return spoil


def gold(value: Any, *path: Any) -> Callable[[Case], None]:
    return put(value, *path, side="gold")


def hard(*spans: tuple[Any, Any]) -> Callable[[Case], None]:
    return put([{"start_token": start, "end_token": end} for start, end in spans], *R, HARD)


def maybe(case: Case) -> None:
    """A label that the corpus does not have, in all of an instance's scores."""
    case.second["classification"] = "MAYBE"
    for scored in (case.second, *case.second["thresholded_scores"]):
        scored |= {key: {"MAYBE": 0.5, "POS": 0.5} for key in scored if key.endswith("classification_scores")}


def repeat(case: Case) -> None:
    case.second["rationales"] *= 2


H, S, A = f"rationales.{HARD}", f"rationales.{SOFT}", "thresholded_scores.threshold"
SPAN, GOLD_SPAN = f"rationales[0].{HARD}[0]", ("evidences", 0, 0)
BIN = ("thresholded_scores", 1)
# what is done, the field as the modules name it, and what they show; of the second instance or annotation
REFUSED: dict[str, tuple[Callable[[Case], object], str, str]] = {
    "overlapping": (hard((1, 4), (3, 5)), H, "[1, 4) and [3, 5)"),
    "negative": (hard((-1, 2)), f"{H}.start_token", "[-1, 2)"),
    "empty span": (hard((3, 3)), f"{H}.start_token", "[3, 3)"),
    "past the end": (hard((3, 8)), f"{H}.end_token", "at most 7 (the document's tokens), found 8"),
    "float offset": (hard((1, 3.0)), f"{SPAN}.end_token", "found 3.0"),
    "huge offset": (hard((1, 10**30)), f"{SPAN}.end_token", str(10**30)),
    "misspelt end": (put([{"start_token": 1, "end_tokn": 2}], *R, HARD), f"{SPAN}.end_tokn", "'end_token'"),
    "gold reversed": (gold(0, *GOLD_SPAN, "end_token"), "evidences.start_token", "[1, 0)"),
    "gold past the end": (gold(8, *GOLD_SPAN, "end_token"), "evidences.end_token", "at most 7"),
    "gold unknown document": (gold("d9", *GOLD_SPAN, "docid"), "evidences.docid", "'d9'"),
    "gold past the sentences": (gold(3, *GOLD_SPAN, "end_sentence"), "evidences.end_sentence", "[0, 3)"),
    "gold id twice": (gold("a1", "annotation_id"), "annotation_id", "again"),
    "gold label unknown": (gold("MAYBE", "classification"), "classification", "NEG, POS, found 'MAYBE'"),
    "hard here and not there": (put(DELETE, *R, HARD), H, "in all or in none"),
    "label here and not there": (put(None, "classification"), "classification", "in all or in none"),
    "erased here and not there": (put(None, *BIN, COMP), f"thresholded_scores.{COMP}", "at every threshold"),
    "rationales here and not there": (put(DELETE, "rationales"), "rationales", "in all or in none"),
    "soft missing": (put([], "rationales"), S, "in every document with evidence"),
    "soft too short": (put([0.5], *R, SOFT), S, "7 scores (the document's tokens), found 1"),
    "sentences too many": (put([0.5] * 3, *R, SENTENCE), f"rationales.{SENTENCE}", "2 scores"),
    "soft NaN": (put(NAN, *R, SOFT, 2), S, "finite numbers"),
    "soft null": (put(None, *R, SOFT, 2), f"rationales[0].{SOFT}[2]", "found None"),
    "unknown document": (put("d9", *R, "docid"), "rationales.docid", "'d9'"),
    "no docid": (put(DELETE, *R, "docid"), "rationales[0].docid", "found none"),
    "document twice": (repeat, "rationales.docid", "'d2' again"),
    "unknown label": (maybe, "classification", "NEG, POS, found 'MAYBE'"),
    "label is a number": (put(1, "classification"), "classification", "found 1"),
    "scores lack the label": (put({"NEG": 1.0}, FULL), FULL, "'POS'"),
    "erased lack another label": (put({"POS": 1.0}, COMP), COMP, f"the labels of {FULL}"),
    "scores of no label": (put({}, FULL), FULL, "found none"),
    "negative probability": (put({"NEG": 1.5, "POS": -0.5}, COMP), COMP, "-0.5"),
    "NaN probability": (put({"NEG": NAN, "POS": 1.0}, COMP), f"{COMP}.NEG", "nan"),
    "sum": (put({"NEG": 0.5, "POS": 0.502}, COMP), COMP, "sum to 1, found a sum of 1.002"),
    "threshold missing": (lambda case: case.second["thresholded_scores"].pop(), A, "0.01, 0.05, 0.1, 0.2, 0.5"),
    "threshold doubled": (put(0.01, *BIN, "threshold"), A, "0.01 0.01"),
    "no threshold": (put(DELETE, *BIN, "threshold"), "thresholded_scores[1].threshold", "none"),
    "annotation without instance": (lambda case: case.predictions.pop(), "", "1 of 2 "),
    "instance without annotation": (put("a9", "annotation_id"), "annotation_id", "no annotation has this id"),
    "instance twice": (put("a1", "annotation_id"), "annotation_id", "again"),
    "no instance": (lambda case: case.predictions.clear(), "predictions", "at least one instance"),
    "no id": (put(DELETE, "annotation_id"), "annotation_id", "found none"),
    "negative flip": (put(-1, "tokens_to_flip"), "tokens_to_flip", "found -1"),
    "rationales no list": (put({"docid": "d2"}, "rationales"), "rationales", "a list"),
}
INSTANCES = {"gold id twice": "a1", "instance without annotation": "a9", "instance twice": "a1"}
SAID_BY_THE_READER = {"no instance", "huge offset", "soft NaN", "NaN probability"}  # in its own words


def add_document(case: Case) -> None:
    """A document without evidence, and what is predicted of it."""
    more = {"docid": "d3", HARD: [], SOFT: [0.1, 0.2], SENTENCE: [0.5]}
    case.second["rationales"].append({**case.second["rationales"][0], **more})


def number_ids(case: Case) -> None:
    case.second["annotation_id"], case.gold[1]["annotation_id"] = 17, "17"


ALLOWED: dict[str, Callable[[Case], object]] = {
    "identical spans collapse": hard((1, 3), (1, 3)),
    "no hard spans in one": hard(),
    "gold empty span": gold(1, *GOLD_SPAN, "end_token"),
    "document without evidence": add_document,
    "id is an integer": number_ids,
    "unknown keys": put([1], "attention"),
    "integer scores": put([0, 1, 0, 0, 1, 0, 0], *R, SOFT),
    "threshold by arithmetic": put(0.1 + 0.1, "thresholded_scores", 3, "threshold"),
}


@pytest.mark.parametrize("name", ALLOWED)
def test_allowed(name: str, tmp_path: Path) -> None:
    """Files and rows give the same scores."""
    case = Case()
    ALLOWED[name](case)
    found = score_files(*case.write(tmp_path)).as_json()
    options = {"references": case.rows(), "label_names": ["NEG", "POS"]}
    for module in (EraserAgreement(), EraserFaithfulness()):
        flat: Any = module.compute(predictions=case.predictions, **options)
        for key in flat.keys() - {"signature", "gold", "marked", "all"}:  # the three of a row without gold
            assert found[key] == pytest.approx(flat[key], abs=1e-12, nan_ok=True)
    assert name != "identical spans collapse" or found["token_micro_p"] == 1


def test_instances_without_spans(tmp_path: Path) -> None:
    """Without the field there are no span scores; empty lists count 0."""
    case = Case()
    case.predictions[0]["rationales"][0][HARD] = []
    found: Any = EraserAgreement().compute(predictions=case.predictions, references=case.rows())
    assert (found["token_micro_p"], found["token_micro_r"]) == (1, 0.5)
    case.predictions = [{**row, "rationales": []} for row in case.predictions]
    found = score_files(*case.write(tmp_path)).as_json()
    assert "iou_macro_f1" not in found and "auprc" not in found and found["comprehensiveness"] == pytest.approx(0.25)


def test_what_has_no_number_is_null_in_files(tmp_path: Path) -> None:
    """KL with a zero in the original is infinite; rankings of single-class documents are undefined."""
    case = Case()
    case.second[FULL] = {"NEG": 0.0, "POS": 1.0}
    for row in case.gold:
        row["evidences"] = []
    rows = {"predictions": case.predictions, "references": case.rows()}
    faithful, agreed = EraserFaithfulness().compute(**rows), EraserAgreement().compute(**rows)
    assert faithful["comprehensiveness_kl"] == math.inf
    assert math.isnan(agreed["average_precision"]) and math.isnan(agreed["roc_auc_score"])
    found = score_files(*case.write(tmp_path)).as_json()
    keys = ("auprc", "average_precision", "roc_auc_score", "comprehensiveness_kl")
    assert [found[key] for key in keys] == [0.5, None, None, None]


@pytest.mark.parametrize("name", REFUSED)
def test_files_and_rows_are_refused(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (spoil, field, shown), case = REFUSED[name], Case()
    spoil(case)
    monkeypatch.setattr(reader, "MAX_ROWS", 1)
    file = "val.jsonl" if name.startswith("gold") else "p.jsonl"
    line = None if name in ("no instance", "annotation without instance") else 2
    mentions = () if name in SAID_BY_THE_READER or file == "val.jsonl" else (shown,)
    with refused(*mentions, file=file, line=line):
        score_files(*case.write(tmp_path))
    for module in (EraserAgreement(), EraserFaithfulness()):
        with refused(shown) as caught:
            module.compute(predictions=case.predictions, references=case.rows(), label_names=["NEG", "POS"])
        nameless = name in ("no instance", "no id")
        assert caught.error.instance == (None if nameless else INSTANCES.get(name, "a2"))
        assert field in (caught.error.field or caught.error.argument or "")
