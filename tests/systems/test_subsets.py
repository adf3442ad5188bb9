"""EVAL-X's evaluator: trained on random subsets, it tells a label from what is selected and from nothing else."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("sklearn")

from eraser_hub.attribution.adapters.plain import PlainModel
from eraser_hub.attribution.open import open_model
from eraser_hub.systems.baselines import fit_baseline
from eraser_hub.systems.data import SUBSETS_EACH, draw_subsets, rotate_copies
from eraser_hub.systems.system import SYSTEMS
from eraser_hub.systems.train_config import TrainConfig
from eraser_hub.systems.training import train_model
from tests.attribution.conftest import instance, told

from ..refusals import refused


def test_subsets_hang_on_seed_and_id_alone():
    one, other = instance("a b c d e f g h", "one"), instance("q r s t u v w x", "one")
    first = draw_subsets([one, instance("", "empty")], 1)
    assert len(first) == 2 * SUBSETS_EACH and [x.id for x in first[:2]] == ["one", "empty"]
    places = [[one.tokens.index(token) for token in x.tokens] for x in first[::2]]
    assert places == [[other.tokens.index(token) for token in x.tokens] for x in draw_subsets([other], 1)]
    assert all(places) and len({tuple(x) for x in places}) > 1
    assert places != [[one.tokens.index(token) for token in x.tokens] for x in draw_subsets([one], 2)]
    assert all(not x.tokens for x in first[1::2])


def test_shares_are_uniform():
    """Of 500 texts of 200 tokens: the shares kept have mean 1/2 and variance 1/12, in 5 standard errors (n 5000)."""
    texts = [instance(" ".join(["w"] * 200), str(number)) for number in range(500)]
    shares = np.array([len(one.tokens) / 200 for one in draw_subsets(texts, 1)])
    assert abs(shares.mean() - 0.5) <= 5 * np.sqrt(1 / 12 / 5000) + 0.001
    assert abs(shares.var() - 1 / 12) <= 5 * np.sqrt(1 / 180 / 5000) + 0.002


def test_an_epoch_sees_each_text_once():
    assert rotate_copies(5, 1) is None
    draw = rotate_copies(3, 4)
    assert draw is not None
    assert [draw(epoch).tolist() for epoch in (0, 1, 4)] == [[0, 1, 2], [3, 4, 5], [0, 1, 2]]


def test_copies_of_a_text_are_in_one_fold(monkeypatch):
    seen = []
    from eraser_hub.systems import baselines

    real = baselines.choose_size

    def watched(system, parts, *more):
        seen.extend(fold for *_, folds in parts for fold in folds)
        return real(system, parts, *more)

    monkeypatch.setattr(baselines, "choose_size", watched)
    texts = [instance(f"w{number} {'good' if number % 2 else 'bad'}", str(number)) for number in range(20)]
    labels = ["NEG", "POS"] * 10
    fit_baseline(SYSTEMS["logistic-regression"](), draw_subsets(texts, 1), labels * SUBSETS_EACH, copies=SUBSETS_EACH)
    assert seen
    for train, test in seen:
        assert not {*(train % 20)} & {*(test % 20)} and len(train) + len(test) == 20 * SUBSETS_EACH


def recipe_of(hub: Path, **more) -> TrainConfig:
    return replace(
        TrainConfig(
            dataset=str(hub),
            config="movies",
            split="train",
            eval_split="val",
            model="logistic-regression",
            train_on="subsets",
        ),
        **more,
    )


def test_a_linear_evaluator(hub, tmp_path):
    lines: list[str] = []
    figures = list(train_model(recipe_of(hub), tmp_path / "evaluator", lines.append))
    assert told(lines, "10 random subsets", "40")
    assert [line.partition(":")[0] for line in figures[1:]] == ["subsets-eval-full", "subsets-eval-rationale"]
    facts = json.loads((tmp_path / "evaluator" / "model.json").read_text())
    assert facts["train_on"] == "subsets" and facts["instances"] == 40
    again = list(train_model(recipe_of(hub), tmp_path / "again", lines.append))
    assert again[1:] == figures[1:]
    assert (tmp_path / "again" / "model.skops").read_bytes() == (tmp_path / "evaluator" / "model.skops").read_bytes()
    assert not isinstance(open_model(tmp_path / "evaluator"), PlainModel)


@pytest.mark.parametrize(
    ("more", "regimes", "rule", "mentions"),
    [
        ({"model": "lei"}, False, "unsupported", ("`train_on` subsets", "lei")),
        ({"model": "lehman"}, False, "unsupported", ("`train_on` subsets", "lehman")),
        ({"paper": "carton2020"}, False, "option-conflict", ("`train_on` subsets", "`paper` carton2020")),
        ({}, True, "option-conflict", ("regimes", "`train_on` full or rationale", "subsets")),
    ],
)
def test_what_random_subsets_cannot_train(hub, tmp_path, more, regimes, rule, mentions):
    with refused(rule, *mentions):
        list(train_model(recipe_of(hub, regimes=regimes, **more), tmp_path / "evaluator", lambda words: None))
    assert not (tmp_path / "evaluator").exists()


def test_networks_and_fine_tuning_take_subsets(hub, tmp_path, network, tokenizer):
    network().save_pretrained(tmp_path / "base")
    tokenizer.save_pretrained(tmp_path / "base")
    for model, more in (
        ("bilstm", {"hyper": ("min_count=1", "embedding_size=8", "hidden_size=8"), "epochs": 2.0}),
        (str(tmp_path / "base"), {"max_steps": 3, "batch_size": 4}),
    ):
        out = tmp_path / Path(model).name.replace("base", "tuned")
        done = list(train_model(recipe_of(hub, model=model, limit=8, **more), out, lambda words: None))
        assert done[1].startswith("subsets-eval-full: accuracy")
        assert json.loads((out / "model.json").read_text())["instances"] == 8
