"""Contributions to answer and steps: against transformers' own, and of planted networks whose agreement is known."""

from __future__ import annotations

import asyncio
import json
import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("openai", reason="skipped: the extra llm is not installed")
pytest.importorskip("rapidfuzz", reason="skipped: the extra llm is not installed")

from eraser_hub.asking.answers import ANSWERED, Answer
from eraser_hub.asking.cache import Cache
from eraser_hub.asking.client import OutOfBudgetError
from eraser_hub.asking.contributions import Run, cut_runs
from eraser_hub.asking.local import LocalClient, LocalModel
from eraser_hub.asking.questions import Question
from eraser_hub.asking.reasoning import ReasoningTests
from eraser_hub.asking.settings import AskArguments, AskSettings
from eraser_hub.attribution.instances import Instance
from eraser_hub.attribution.prompts import open_prompt
from eraser_hub.metrics.reasoning_faithfulness import ReasoningFaithfulness

from ..refusals import refused
from .scripted_server import completion
from .test_client import Asking
from .test_local import folder, messages, model, run

__all__ = ["folder", "model"]  # fixtures of these names
WORDS = ("alpha", "bravo", "charlie", "delta", "echo", "foxtrot", "golf", "hotel")
QUESTION = Question(Instance("one", (), ("d",), (WORDS,)), (" ".join(WORDS),), "", " ")
ANSWER = Answer(ANSWERED, "POS", steps=("It is warm.", "So it is good."))


class Planted:
    """A network whose log-odds of each next sub-word are the sum of the weights of the words in the prompt."""

    def __init__(self, model: LocalModel, label: dict[str, float], steps: dict[str, float]) -> None:
        self.model, self.size, self.weights = model, len(model.vocabulary), {'{"label"': label, '{"steps"': steps}

    def __call__(self, input_ids: Any, attention_mask: Any, **_: Any) -> Any:
        import torch

        logits = torch.zeros(*input_ids.shape, self.size)
        for row, (ids, visible) in enumerate(zip(input_ids, attention_mask, strict=True)):
            text = self.model.tokenizer.decode(ids[visible.bool()])
            prompt, _, written = text.rpartition("[assistant]")
            weights = self.weights[written[: len('{"label"')]]
            value = sum(weight for word, weight in weights.items() if word in prompt)
            logits[row, torch.arange(len(ids) - 1), ids[1:]] = value + math.log(self.size - 1)
        return SimpleNamespace(logits=logits)


def compare(model: LocalModel, tmp_path: Any, monkeypatch: Any, label: dict, steps: dict, **how: Any) -> list[dict]:
    settings = AskSettings("planted", contributions=how.pop("runs", 4))
    monkeypatch.setattr(model, "network", Planted(model, label, steps))
    tests = ReasoningTests("movies", open_prompt("movies"), ["NEG", "POS"], settings)
    client = LocalClient(model, settings, Cache(tmp_path / "cache"), how.pop("budget", None))
    return asyncio.run(tests.compare_contributions(client, QUESTION, how.pop("answer", ANSWER)))


def score(rows: list[dict], **more: Any) -> dict:
    row = {"annotation_id": "one", "classification": "POS", "reasoning_steps": ["a"], "contributions": rows}
    return ReasoningFaithfulness().compute(predictions=[{**row, **more}]) or {}


def test_runs_cover_every_text():
    assert cut_runs([8], 4) == [Run(0, 0, 2), Run(0, 2, 4), Run(0, 4, 6), Run(0, 6, 8)]
    assert cut_runs([3], 5) == [Run(0, 0, 1), Run(0, 1, 2), Run(0, 2, 3)]
    assert cut_runs([2, 0, 9], 2) == [Run(0, 0, 2), Run(2, 0, 9)]
    assert cut_runs([1, 1, 1], 2) == [Run(0, 0, 1), Run(1, 0, 1), Run(2, 0, 1)] and cut_runs([0], 2) == []


# runs are two words each; a difference of two words' weights is what their run contributes
PLANTED = {"alpha": 1.0, "charlie": -0.5, "golf": 1.5}
SHARES = [1 / 3, -1 / 6, 0, 1 / 2]


@pytest.mark.parametrize(
    ("steps", "shares", "agreement"),
    [
        (PLANTED, SHARES, 1.0),  # the steps rest on what the answer rests on
        ({word: -3 * weight for word, weight in PLANTED.items()}, [-x for x in SHARES], -1.0),
        ({"echo": 2.0}, [0, 0, 1, 0], 0.0),  # they rest on another run
        ({"bravo": 1.0, "foxtrot": 1.0}, [1 / 2, 0, 1 / 2, 0], (1 / 6) / math.sqrt(7 / 18 * 1 / 2)),
    ],
)
def test_consistent_and_other_explanations_are_told_apart(model, tmp_path, monkeypatch, steps, shares, agreement):
    rows = compare(model, tmp_path, monkeypatch, PLANTED, steps)
    assert [(row["docid"], row["start_token"], row["end_token"]) for row in rows] == [
        ("d", start, start + 2) for start in (0, 2, 4, 6)
    ]
    assert [row["answer"] for row in rows] == pytest.approx(SHARES, abs=1e-5)
    assert [row["steps"] for row in rows] == pytest.approx(shares, abs=1e-5)
    result = score(rows)
    assert result["cc_shap"] == pytest.approx(agreement, abs=1e-4)
    orders = [float(np.dot(SHARES, np.roll(shares, turn))) for turn in range(4)]  # every run meets every other once
    scale = np.linalg.norm(SHARES) * np.linalg.norm(shares)
    assert result["cc_shap_control"] == pytest.approx(np.mean(orders) / scale, abs=1e-4)


def test_what_has_no_contributions_is_left_out(model, tmp_path, monkeypatch):
    rows = compare(model, tmp_path, monkeypatch, PLANTED, {})
    assert [row["steps"] for row in rows] == [0, 0, 0, 0]
    assert math.isnan(score(rows)["cc_shap"]) and math.isnan(score(rows)["cc_shap_control"])
    assert compare(model, tmp_path, monkeypatch, PLANTED, {}, answer=Answer(ANSWERED, "POS")) == []
    with pytest.raises(OutOfBudgetError):
        compare(model, tmp_path, monkeypatch, PLANTED, {}, budget=100)


@pytest.mark.parametrize("rows", [[{"answer": 0.5}], [{"answer": "a", "steps": 0.5}], ["a"], "a"])
def test_wrong_contributions_are_refused(rows):
    with pytest.raises(ValueError, match=r"'one': contributions: expected a list of \{answer, steps\}"):
        score(rows)


def test_log_odds_are_those_of_the_model(model):
    import torch

    output = model.make_output("steps", ["the film is dull", "POS"])
    prompts = [model.lay_out(messages(text)) for text in ("the film is great", "a", "dull " * 20)]
    values = model.score(prompts, output, 2)
    written = model.tokenizer.decode(output.ids)
    assert written == '{"steps": ["the film is dull", "POS'
    assert model.tokenizer.decode([output.ids[at] for at in output.counted]) == "the film is dullPOS"
    for ids, found in zip(prompts, values, strict=True):
        with torch.no_grad():
            p = model.network(torch.tensor([ids + output.ids])).logits[0].double().softmax(-1)
        own = np.array([float(p[len(ids) + at - 1, output.ids[at]]) for at in output.counted])
        np.testing.assert_allclose(found, np.log(own) - np.log1p(-own), rtol=0, atol=1e-4)


def test_a_run_writes_and_scores_them(hub, folder, tmp_path):
    lines, report = run(hub, folder, tmp_path / "steps.jsonl", contributions=3, reasoning=True)
    assert all(len(line["contributions"]) == 3 for line in lines if line["reasoning_steps"])
    for line in lines:
        for key in ("answer", "steps"):
            shares = [abs(row[key]) for row in line["contributions"]]
            assert not shares or 0 < sum(shares) <= 1 + 1e-9
        ends = [row["end_token"] for row in line["contributions"]]
        assert [row["start_token"] for row in line["contributions"]] == [0, *ends][: len(ends)]
    assert "|contributions:3|" in report.signature
    result = ReasoningFaithfulness().compute(predictions=lines) or {}
    assert -1 <= result["cc_shap"] <= 1 and -1 <= result["cc_shap_control"] <= 1
    json.dumps(lines)


def test_a_server_does_not_give_them(hub, tmp_path):
    with refused("option-value", "expected a model here", argument="contributions"):
        Asking(hub, tmp_path)(lambda request, before: completion("{}"), contributions=3)
    with refused("option-value", "2 to 10 runs", argument="contributions"):
        AskArguments("any", dataset=hub, out=tmp_path / "a.jsonl", contributions=1)
