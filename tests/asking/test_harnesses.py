"""Tasks of lm-evaluation-harness and inspect_ai, run by themselves on a model that says what a test wants."""

from __future__ import annotations

import json
import math

import pytest

pytest.importorskip("openai", reason="skipped: the extra llm is not installed")
pytest.importorskip("rapidfuzz", reason="skipped: the extra llm is not installed")

from eraser_hub.asking.answers import QUOTED
from eraser_hub.asking.formats import make_gold_answer
from eraser_hub.asking.harnesses import SCORES, answer_scores, inspect_task, lm_eval_task
from eraser_hub.asking.run import AskConfig, make_plan
from eraser_hub.asking.settings import AskSettings

from ..refusals import refused

SETTINGS = AskSettings("any")


def said(question, label: str) -> str:
    return json.dumps(
        {"label": label, "quotes": [*make_gold_answer(question, QUOTED)["quotes"][:1], "never said anywhere here"]}
    )


@pytest.mark.parametrize("config", ["movies", "esnli", "fever"])
def test_an_answer_has_scores(hub, config):
    plan = make_plan(AskConfig(str(hub), config, "test"), SETTINGS)
    question = next(one for one in plan.questions() if one.gold_runs())
    scores = answer_scores(question, said(question, question.instance.label), plan.settings, plan.split.label_names)
    assert (scores["right"], scores["answered"], scores["in_text"], scores["invented"]) == (1, 1, 0.5, 0.5)
    assert 0 < scores["token_f1"] <= 1 and tuple(scores) == tuple(SCORES)
    refused = answer_scores(question, "I'm sorry, I can't.", plan.settings, plan.split.label_names)
    assert (refused["right"], refused["answered"], refused["token_f1"]) == (0, 0, 0)
    assert math.isnan(refused["in_text"])


def test_a_harness_that_is_not_installed_is_named(hub, monkeypatch):
    import importlib.util

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    for make, name in ((lm_eval_task, "lm_eval"), (inspect_task, "inspect_ai")):
        with refused("extra-missing", name, "'eraser-hub[harness]'"):
            make(str(hub), "movies")


@pytest.fixture
def questions(hub):
    plan = make_plan(AskConfig(str(hub), "movies", "test"), SETTINGS)
    return [one for one in plan.questions() if one.instance.label is not None]


def test_lm_evaluation_harness(hub, questions):
    lm_eval = pytest.importorskip("lm_eval", reason="skipped: the extra harness is not installed")
    from lm_eval.api.model import LM

    class Gold(LM):
        """Says what people said, of every other text."""

        def generate_until(self, requests):
            prompts = [request.args[0] for request in requests]
            return [self._answer(prompt) for prompt in prompts]

        def _answer(self, prompt):
            at, one = next((at, one) for at, one in enumerate(questions) if one.texts[0].strip() in prompt)
            return said(one, one.instance.label) if at % 2 else "I'm sorry, I can't."

        def loglikelihood(self, requests):
            raise AssertionError

        loglikelihood_rolling = loglikelihood

    task = lm_eval_task(str(hub), "movies")
    result = lm_eval.evaluate(Gold(), {"eraser_movies": task}, bootstrap_iters=0, log_samples=False)
    scores = {key.split(",")[0]: value for key, value in result["results"]["eraser_movies"].items()}
    share = sum(at % 2 for at in range(len(questions))) / len(questions)
    assert scores["right"] == scores["answered"] == pytest.approx(share)
    assert scores["in_text"] + scores["invented"] == pytest.approx(1) and 0 < scores["token_f1"] < share + 1e-9


def test_inspect_ai(hub, questions, tmp_path):
    inspect_ai = pytest.importorskip("inspect_ai", reason="skipped: the extra harness is not installed")
    from inspect_ai.model import ModelOutput, ModelUsage, get_model

    outputs = [
        ModelOutput.from_content("mockllm/model", said(one, one.instance.label) if at % 2 else "I'm sorry, I can't.")
        for at, one in enumerate(questions)
    ]
    for output in outputs:
        output.usage = ModelUsage(
            input_tokens=1, output_tokens=1, total_tokens=2
        )  # else it is counted, by a file of the web
    model = get_model("mockllm/model", custom_outputs=outputs)
    task, alone = inspect_task(str(hub), "movies"), {"max_connections": 1, "max_samples": 1}
    (log,) = inspect_ai.eval(task, model=model, log_dir=str(tmp_path), display="none", **alone)
    assert log.status == "success", log.error
    scores = {one.name: next(iter(one.metrics.values())).value for one in log.results.scores}
    share = sum(at % 2 for at in range(len(questions))) / len(questions)
    assert scores["right"] == scores["answered"] == pytest.approx(share)
    assert scores["in_text"] + scores["invented"] == pytest.approx(1)
