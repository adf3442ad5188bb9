"""The match-LSTM that answers: it learns to point at words of the text, and explains what it points at."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eraser_hub.attribution import Instance, explain_instances, open_model
from eraser_hub.attribution.config import ExplainConfig
from eraser_hub.attribution.run import explain
from eraser_hub.attribution.settings import ExplainSettings, build_settings
from eraser_hub.attribution.transformers.question_answering import LONGEST_ANSWER
from eraser_hub.conversion import get_dataset
from eraser_hub.systems.data import Data, Training, find_answer_span
from eraser_hub.systems.system import SYSTEMS
from eraser_hub.systems.train_config import ANSWERS, TrainConfig
from eraser_hub.systems.training import train_model
from tests.attribution.conftest import check_answers, told

from ...needs import needs
from ...refusals import refused

pytestmark = needs("torch")


@pytest.fixture(autouse=True, scope="module")
def _late_imports() -> None:
    global \
        torch, \
        AnswerNetwork, \
        find_best_answer, \
        WordEmbedder, \
        AnswerPointer, \
        pad_readings, \
        read_instance, \
        Shape, \
        TaughtReading
    global train_network, RationaleSetAgreement, Vocabulary
    import torch

    from eraser_hub.metrics.rationale_set_agreement import RationaleSetAgreement
    from eraser_hub.systems.networks.classifiers import Shape, TaughtReading
    from eraser_hub.systems.networks.embedders import WordEmbedder
    from eraser_hub.systems.networks.matching import AnswerPointer
    from eraser_hub.systems.networks.network_model import AnswerNetwork, find_best_answer
    from eraser_hub.systems.networks.readings import Vocabulary, pad_readings, read_instance
    from eraser_hub.systems.networks.training import train_network


THINGS = [f"thing{number}" for number in range(5)]
COLOURS = [f"colour{number}" for number in range(5)]
SMALL = ("embedding_size=16", "hidden_size=16", "patience=0", "monitor=loss", "batch_size=8", "learning_rate=0.02")
# central differences of step h in float64: h² of the third derivative and 2^-52 / h of rounding, both near 1e-10
STEP, CLOSE = 1e-5, {"rtol": 1e-6, "atol": 1e-8}


def asked(number):
    """Things and their colours; the colour of one is asked for, of every fourth one that is not there."""
    random = np.random.default_rng(number)
    things = random.permutation(THINGS)[:3].tolist()
    colours = random.permutation(COLOURS)[:3].tolist()
    missing = number % 4 == 0
    thing = next(one for one in THINGS if one not in things) if missing else things[int(random.integers(3))]
    text = tuple(word for pair in zip(things, colours, strict=True) for word in (*pair, "."))
    answer = "" if missing else colours[things.index(thing)]
    return Instance(str(number), ("which", "colour", "has", thing, "?"), ("sequence_0",), (text,)), answer


def data_of(numbers):
    pairs = [asked(number) for number in numbers]
    return [one for one, _ in pairs], [answer for _, answer in pairs]


def pointer(seed=0, size=4):
    """An untrained network in float64."""
    torch.manual_seed(seed)
    hyper = replace(SYSTEMS["match-lstm"].hyper, hidden_size=size, dropout=0.0)
    embedder = WordEmbedder(Vocabulary([*THINGS, *COLOURS, ".", "?", "which", "has"], False), 5)
    return AnswerPointer(embedder, hyper, Shape(0, True, True)).double().eval()


def reading(network, one):
    return read_instance(one, network.embedder.lexicon, True, True).reading


@pytest.mark.slow
def test_it_learns_to_point_and_to_give_no_answer(tmp_path):
    train, (instances, answers) = data_of(range(300)), data_of(range(1000, 1100))
    recipe = TrainConfig(
        dataset="made", model="match-lstm", hyper=(*SMALL, "epochs=12", "hidden_size=32", "learning_rate=0.01")
    )
    (tmp_path / "work").mkdir()
    data = Data(train, (instances, answers), (), True, answers=True)
    job = Training(recipe, data, tmp_path / "m", tmp_path / "work", lambda words: None)
    train_network(SYSTEMS["match-lstm"](), job)
    model = open_model(tmp_path / "m", device="cpu")
    settings = build_settings("", "", True, False, kd=0.1, method="attention")
    predictions = list(explain_instances(model, instances, settings, kind="perturbation"))
    right = [found["pred_label"] == answer for found, answer in zip(predictions, answers, strict=True)]
    # how many are right differs between processors; it is nearer to all than to the best constant answer's number
    (_, constant), *_ = Counter(answers).most_common(1)
    assert sum(right) > (constant + len(answers)) / 2
    assert {bool(answer) for answer in answers} == {True, False}  # both kinds are among them


def test_what_it_predicts_is_what_the_benchmark_takes():
    check_answers(AnswerNetwork(pointer(), (), device="cpu"), asked(1)[0])


def test_probabilities_are_of_the_text_alone_and_batches_change_nothing():
    network = pointer(3)
    instances = [asked(number)[0] for number in (1, 2)] + [
        Instance("short", ("which", "?"), ("a",), (("thing1", "colour2"),)),
        Instance("empty", ("which", "?"), ("a",), ((),)),
    ]
    readings = [reading(network, one) for one in instances]
    with torch.no_grad():
        together = torch.softmax(network(pad_readings(readings, torch.device("cpu"))), dim=-1)
        for one, own, row in zip(instances, readings, together, strict=True):
            size = len(one.tokens) + 1
            alone = torch.softmax(network(pad_readings([own], torch.device("cpu"))), dim=-1)[0]
            # the same sums of a few hundred products in another order
            np.testing.assert_allclose(row[:, :size], alone[:, :size], rtol=0, atol=2.0**-40)
            assert not row[:, size:].any() and row.sum(dim=1).tolist() == pytest.approx([1, 1], abs=2.0**-40)
    assert together[3, :, 0].tolist() == [1, 1]  # nothing to point at


def test_gradients_are_those_of_finite_differences():
    network = pointer(5)
    instances = [asked(number)[0] for number in (1, 4)]
    batch = pad_readings([reading(network, one) for one in instances], torch.device("cpu"))
    examples = [
        TaughtReading(reading(network, one), span=span) for one, span in zip(instances, ((2, 3), (0, 0)), strict=True)
    ]
    loss = network.loss(batch, examples)
    with torch.no_grad():
        p = torch.softmax(network(batch), dim=-1)
    expected = -np.log([p[0, 0, 2] * p[0, 1, 3], p[1, 0, 0] * p[1, 1, 0]]).mean()
    assert float(loss.detach()) == pytest.approx(expected, rel=2.0**-40)
    loss.backward()
    for name, weights in network.named_parameters():
        place = int(weights.grad.abs().argmax())
        flat = weights.detach().view(-1)
        values = []
        for step in (STEP, -STEP):
            flat[place] += step
            values.append(float(network.loss(batch, examples).detach()))
            flat[place] -= step
        slope = (values[0] - values[1]) / (2 * STEP)
        np.testing.assert_allclose(weights.grad.view(-1)[place], slope, **CLOSE, err_msg=name)


@given(st.integers(1, 40), st.integers(0, 2**32 - 1))
def test_the_best_answer_is_the_best_of_all(size, seed):
    random = np.random.default_rng(seed)
    start, end = random.dirichlet(np.full(size + 1, 0.3), 2)
    best = find_best_answer(start, end)
    spans = [(i, j) for i in range(1, size + 1) for j in range(i, min(i + LONGEST_ANSWER, size + 1))]
    assert best.p == max(start[i] * end[j] for i, j in [*spans, (0, 0)])
    assert (best.first, best.last) in [*spans, (0, 0)]


@pytest.mark.parametrize(
    ("tokens", "answer", "span"),
    [
        ("built by Tom Reed in 1903", "tom  reed", (3, 4)),
        ("春 天 采 摘 春 天", "春天", (1, 2)),
        ("planted ants ant", "ant", (3, 3)),  # at the borders of a token
        ("it cost $1,903 then", "1,903", (3, 3)),  # nowhere else
        ("a b", "", (0, 0)),
        ("a b", " ", (0, 0)),
        ("a b", "c", None),
        ("", "c", None),
        ("well- known", "well-known", (1, 2)),
    ],
)
def test_where_an_answer_stands(tokens, answer, span):
    assert find_answer_span(tokens.split(), answer) == span


@pytest.fixture(scope="module")
def built(samples, tmp_path_factory):
    out = tmp_path_factory.mktemp("answers_hub")
    get_dataset("bilingual_perturbation").build(
        ["mrc_en", "mrc_ch", "senti_en"], source=samples / "bilingual_perturbation", out=out
    )
    return out / "bilingual_perturbation"


def recipe_of(built, config, **more):
    return TrainConfig(
        dataset=str(built),
        config=config,
        split="test",
        eval_split="test",
        model="match-lstm",
        hyper=(*SMALL, "epochs=1"),
        **more,
    )


@pytest.mark.parametrize("config", ["mrc_en", "mrc_ch"])
def test_from_questions_to_scores(built, config, tmp_path):
    words = list(train_model(recipe_of(built, config), tmp_path / "m", say=lambda words: None))
    assert told(words[:1], tmp_path / "m", "match-lstm", "test")
    assert words[1].startswith("answers: F1 ") and words[1].endswith("(6 instances)")
    facts = json.loads((tmp_path / "m" / "model.json").read_text("utf-8"))
    assert (facts["task"], facts["label_names"], facts["uses_query"]) == (ANSWERS, [], True)
    job = ExplainConfig(str(built), config, "test", str(tmp_path / "m"))
    explain(job, ExplainSettings(method="attention", kd=0.1), tmp_path / "p.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "p.jsonl").read_text("utf-8").splitlines()]
    assert len(rows) == 6 and all(isinstance(row["pred_label"], str) for row in rows)


def test_where_nothing_can_be_learned_to_answer_it_is_said(built, tmp_path):
    def train(config="mrc_en", **more):
        list(train_model(recipe_of(built, config, **more), tmp_path / "m", say=print))

    with refused("task question-answering", field="answer"):
        train("senti_en", task=ANSWERS)
    for argument, more in (
        ("train_on", {"train_on": "rationale"}),
        ("regimes", {"regimes": True}),
        ("query", {"query": False}),
    ):
        with refused("task=classification", argument="model" if argument == "query" else argument):
            train(**more)
    with refused("monitor", "'macro_f1'"):
        train(grid=("monitor=macro_f1",))
    job = replace(recipe_of(built, "mrc_en", task=ANSWERS), model="bilstm")
    with refused("task question-answering", "match-lstm", "'bilstm'"):
        list(train_model(job, tmp_path / "m", say=print))
    words = list(train_model(recipe_of(built, "mrc_en", task="classification"), tmp_path / "c", say=lambda words: None))
    assert words[1].startswith("no-rationale: accuracy")  # whether there is an answer
