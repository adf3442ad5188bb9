"""The match-LSTM that answers: it learns to point at words of the text, and explains what it points at."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eraser_hub import explain, train
from eraser_hub.attribution import Instance
from eraser_hub.conversion import get_dataset
from eraser_hub.systems.data import find_answer_span
from tests.attribution.conftest import check_answers

from ..needs import needs
from ..refusals import refused
from .test_networks import small

pytestmark = needs("torch", "transformers", "captum", "skops")


SMALL = "embedding_size=16, hidden_size=16, patience=0, monitor=loss, batch_size=8, learning_rate=0.02"


def test_what_it_predicts_is_what_the_benchmark_takes():
    from eraser_hub.systems.network_model import AnswerNetwork

    one = Instance("a", ("w3", "?"), ("sequence_0",), (("w5", "w6", ".", "w7", "w8", "w9", "w10", "w11"),))
    check_answers(AnswerNetwork(small("match-lstm", answers=True), (), device="cpu"), one)


@given(st.integers(1, 40), st.integers(0, 2**32 - 1))
def test_the_best_answer_is_the_best_of_all(size, seed):
    from eraser_hub.attribution.models.question_answering import LONGEST_ANSWER
    from eraser_hub.systems.network_model import find_best_answer

    random = np.random.default_rng(seed)
    start, end = random.dirichlet(np.full(size + 1, 0.3), 2)
    first, last, p = find_best_answer(start, end)
    spans = [(i, j) for i in range(1, size + 1) for j in range(i, min(i + LONGEST_ANSWER, size + 1))]
    assert p == max(start[i] * end[j] for i, j in [*spans, (0, 0)]) and (first, last) in [*spans, (0, 0)]


@pytest.mark.parametrize(
    ("tokens", "answer", "span"),
    [
        ("built by Tom Reed in 1903", "tom  reed", (3, 4)),
        ("春 天 采 摘 春 天", "春天", (1, 2)),
        ("planted ants ant", "ant", (3, 3)),  # at the borders of a token
        ("it cost $1,903 then", "1,903", (3, 3)),  # nowhere else
        ("", "c", None),
    ],
)
def test_where_an_answer_stands(tokens, answer, span):
    assert find_answer_span(tokens.split(), answer) == span


@pytest.fixture(scope="module")
def built(samples, tmp_path_factory):
    out, name = tmp_path_factory.mktemp("answers_hub"), "bilingual_perturbation"
    get_dataset(name).build(["mrc_en", "mrc_ch", "senti_en"], source=samples / name, out=out)
    return out / name


@pytest.mark.parametrize("config", ["mrc_en", "mrc_ch"])
def test_from_questions_to_rankings(built, config, tmp_path):
    where = {"config": config, "split": "test"}
    lines = train(built, f"match-lstm({SMALL}, epochs=1)", **where, eval_split="test", out=tmp_path / "m").lines
    assert lines[0].endswith("trained to answer the questions of test")
    assert lines[1].startswith("answers: F1 ") and lines[1].endswith("(6 instances)")
    facts = json.loads((tmp_path / "m" / "model.json").read_text("utf-8"))
    assert (facts["shape"]["answers"], facts["label_names"], facts["uses_query"]) == (True, [], True)
    explain(tmp_path / "m", built, **where, method="attention", kd=0.1, out=tmp_path / "p.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "p.jsonl").read_text("utf-8").splitlines()]
    assert len(rows) == 6 and all(isinstance(row["pred_label"], str) for row in rows)


@pytest.mark.parametrize(
    ("config", "setting", "more", "mentions", "argument"),
    [
        ("senti_en", "task=question-answering", {}, ("question-answering",), None),
        ("mrc_en", "epochs=1", {"train_on": "rationale"}, ("task=classification",), "train_on"),
        ("mrc_en", "query=False", {}, ("task=classification",), "model"),
        ("mrc_en", "monitor=macro_f1", {}, ("monitor", "'macro_f1'"), "model"),
    ],
)
def test_where_nothing_can_be_learned_to_answer_it_is_said(built, config, setting, more, mentions, argument, tmp_path):
    call = f"match-lstm({SMALL.replace('monitor=loss, ', '')}, {setting})"
    with refused(*mentions, argument=argument):
        train(built, call, config=config, split="test", eval_split="test", out=tmp_path / "m", **more)
