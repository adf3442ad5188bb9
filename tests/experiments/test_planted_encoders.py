"""A pretrained encoder that learns planted rules: its words, its training, its units beside those of other families."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from eraser_hub.experiments import score_benchmark
from eraser_hub.experiments.configs import CLOSED, ENCODER, ENCODER_KINDS, BenchmarkConfig
from eraser_hub.experiments.plantings import DISTRACTORS, KINDS
from eraser_hub.experiments.score_benchmark import FAST, benchmark, judge_unit, make_benchmark_settings
from eraser_hub.samples.plant import FILLER

from ..attribution.conftest import word_tokenizer
from ..needs import needs
from ..refusals import refused

pytestmark = needs("torch", "transformers")
TINY = replace(FAST, kinds=("word", "redundant"), networks=2, size=4, method_texts=2, soft_draws=2, samples=8)
WORDS = sorted({*FILLER, *DISTRACTORS, ".", *(word for kind in KINDS.values() for word in kind.words)})


def save_encoder(folder, words=WORDS, width=32, **tokens):
    """Save a small random BERT without a head, and its tokenizer."""
    import torch
    import transformers

    tokenizer = word_tokenizer(words, 64)
    for name, token in tokens.items():
        setattr(tokenizer, name, token)
    torch.manual_seed(0)
    sizes = {"hidden_size": width, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 2 * width}
    config = transformers.BertConfig(vocab_size=len(tokenizer), max_position_embeddings=64, **sizes)
    transformers.BertModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return save_encoder(tmp_path_factory.mktemp("encoder") / "small")


def test_the_mask_is_the_encoders_own(encoder, tmp_path):
    from eraser_hub.experiments.planted_encoders import check_encoder

    assert check_encoder(encoder, ENCODER_KINDS) == "[MASK]"
    assert check_encoder(save_encoder(tmp_path / "a", mask_token="."), ["word"]) == "."


def test_encoders_that_cannot_read_plantings_are_refused(tmp_path):
    from eraser_hub.experiments.planted_encoders import check_encoder

    with refused("model", "a tokenizer with a mask token", argument="encoder"):
        check_encoder(save_encoder(tmp_path / "a", mask_token=None), ["word"])
    without = save_encoder(tmp_path / "b", [word for word in WORDS if word not in ("tedious",)])
    with refused("model", "sub-words of its own for each word that decides", "tedious", argument="encoder"):
        check_encoder(without, ["word"])
    assert check_encoder(without, ["shortcut"]) == "[MASK]"
    with refused("model", "neither a folder here nor a model of the Hub"):
        check_encoder(str(tmp_path / "nowhere"), ["word"])


def test_plantings_that_there_are_not_are_refused(encoder):
    for kinds in (("irony",), (), ("word", "word"), ("leak",)):
        with refused("option-value", "some of word, redundant", argument="encoder_kinds"):
            benchmark(replace(TINY, encoder=encoder, encoder_kinds=kinds))


def test_options_become_settings():
    settings = make_benchmark_settings(BenchmarkConfig(fast=True, encoder="some/longer-encoder"))
    assert settings.places[: 3 * len(KINDS)] == make_benchmark_settings(BenchmarkConfig(fast=True)).places
    assert settings.places[3 * len(KINDS) :] == [(kind, ENCODER, n) for n in range(3) for kind in ENCODER_KINDS]
    assert "|encoder:some/longer-encoder,negation,redundant,3|" in settings.signature()
    chosen = make_benchmark_settings(BenchmarkConfig(encoder="a", encoder_kinds=("leak",), networks=4))
    assert chosen.places[-4:] == [("leak", ENCODER, n) for n in range(4)]
    without = make_benchmark_settings(BenchmarkConfig(encoder_kinds=("leak",)))
    assert without.signature() == make_benchmark_settings(BenchmarkConfig()).signature()


def test_an_encoder_joins_a_folder_of_other_models_and_another_one_does_not(encoder, tmp_path, monkeypatch):
    made = []

    def judge(settings, kind, family, number):
        made.append((kind, family, number))
        if family == CLOSED:
            return judge_unit(settings, kind, family, number)
        unit = {**judge_unit(settings, kind, CLOSED, number), "family": family, "erased_inputs": number % 2 == 1}
        return {**unit, "encoder": score_benchmark._describe_encoder(settings.encoder)}

    monkeypatch.setattr(score_benchmark, "judge_unit", judge)
    out, settings = tmp_path / "study", replace(TINY, networks=1, method_texts=0, curves=False)
    alone = benchmark(settings, out=out)
    both = replace(settings, encoder=encoder, encoder_kinds=("redundant",), encoder_networks=3)
    result = benchmark(both, out=out)
    assert made == [("word", CLOSED, 0), ("redundant", CLOSED, 0), *(("redundant", ENCODER, n) for n in range(3))]
    assert sorted(path.name for path in (out / "units").glob(f"*{ENCODER}*")) == [
        f"redundant-encoder-0{number}.json" for number in range(3)
    ]
    assert result["kinds"] == {**alone["kinds"], ENCODER: {"redundant": {"models": 3, "judges": 3}}}
    by_name = {one["name"]: one["families"] for one in result["scores"]}
    assert (
        by_name["sufficiency"][CLOSED]
        == {one["name"]: one["families"] for one in alone["scores"]}["sufficiency"][CLOSED]
    )
    assert by_name["sufficiency"][ENCODER]["networks_ci"]
    assert benchmark(settings, out=out) == alone and len(made) == 5  # without it, the folder is as it was
    other = save_encoder(tmp_path / "other", width=16)
    with refused("resume", "a unit of the encoder other@", "found one of small@", argument="encoder"):
        benchmark(replace(both, encoder=other), out=out)


@pytest.mark.slow
def test_an_encoder_learns_a_rule_and_judges(encoder, monkeypatch):
    """A random one learns by a rate a hundred times as large as a pretrained one."""
    from eraser_hub.experiments import planted_encoders

    monkeypatch.setattr(planted_encoders, "FINETUNING", {"epochs": 12.0, "learning_rate": 3e-3, "batch_size": 16})
    settings = replace(TINY, train_texts=400, encoder=encoder, curves=False)
    first, second = (judge_unit(settings, "word", ENCODER, 1) for _ in range(2))
    assert first == second and json.loads(json.dumps(first)) == first
    assert first["judges"] and first["erased_inputs"] and first["encoder"].startswith("small@")
    assert set(first["methods"]) >= {"attention", "integrated-gradients", "occlusion", "lime"}
    whole = judge_unit(replace(settings, method_texts=0), "word", ENCODER, 0)
    assert whole["digest"] != first["digest"] and whole["erased_inputs"] is False
