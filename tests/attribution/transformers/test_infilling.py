"""Words drawn for erased tokens: never by what was erased, always by what stays and the seed."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from eraser_hub.attribution.adapters.plain import PlainModel
from eraser_hub.attribution.api import explain_texts
from eraser_hub.attribution.engine import explain_instances
from eraser_hub.attribution.erasure import empty, full, only, without
from eraser_hub.attribution.instances import Instance
from eraser_hub.attribution.runner import INFILLED, Runner
from eraser_hub.attribution.settings import ExplainSettings
from eraser_hub.attribution.transformers.infilling import Infiller, open_infiller

from ...needs import needs
from ...refusals import refused
from ..conftest import CLOSE, WORDS, CountingModel, instance, word_tokenizer

pytestmark = needs("torch")


@pytest.fixture(autouse=True, scope="module")
def _late_imports() -> None:
    global torch
    import torch


HOW = {"device": None, "precision": "float32", "trust_remote_code": False}


@pytest.fixture
def masked(network, tokenizer):
    """Makes an infiller over a small random BERT."""

    def make(seed: int = 1, **more: Any) -> Infiller:
        return Infiller(network("BertForMaskedLM", **more), tokenizer, seed, device="cpu", precision="float32")

    return make


@pytest.fixture
def folder(network, tokenizer, tmp_path):
    """That network as a folder."""
    network("BertForMaskedLM").save_pretrained(tmp_path / "masked")
    tokenizer.save_pretrained(tmp_path / "masked")
    return tmp_path / "masked"


def filled(infiller: Infiller, one: Instance, gone: list[int]) -> list[str]:
    kept = np.ones(len(one.tokens), dtype=bool)
    kept[gone] = False
    return infiller.fill([one], [kept])[0].tokens


TEXT = "the good film and a plot of warm scene with the bad"


def test_the_words_that_stay_stay_and_the_erased_say_nothing(masked):
    infiller, gone = masked(), [1, 2, 7, 11]
    one, other = instance(TEXT), instance("the cold grey and a plot of electricplaying scene with the 好")
    drawn = filled(infiller, one, gone)
    assert [drawn[at] for at in range(12) if at not in gone] == [one.tokens[at] for at in range(12) if at not in gone]
    assert drawn == filled(infiller, other, gone), (
        "the erased words alone differ, one of many sub-words and one unknown"
    )
    assert drawn == filled(masked(), one, gone)
    assert any(filled(masked(seed), one, gone) != drawn for seed in range(2, 6))
    assert set(filled(infiller, one, list(range(12)))) <= {*WORDS}
    assert filled(infiller, one, []) == one.tokens


def test_only_whole_words_are_drawn(masked):
    infiller = masked()
    assert set(infiller.drawn) == {word for word in WORDS if not word.startswith("##")}


def test_drawn_words_have_the_model_s_shares(masked, network):
    """One erased token, 600 ids of its instance: each word as often as softmax says, within 4 standard errors."""
    infiller = masked(initializer_range=0.2)
    text, draws = "the good film", 600
    flags = np.array([True, False, True])
    words = infiller.fill([instance(text, str(number)) for number in range(draws)], [flags] * draws)
    counts = Counter(one.tokens[1] for one in words)
    ids = [2, *(infiller.tokenizer.convert_tokens_to_ids(word) for word in ("the", "[MASK]", "film")), 3]
    with torch.inference_mode():
        logits = infiller.network(input_ids=torch.tensor([ids])).logits[0, 2, torch.from_numpy(infiller.allowed)]
    shares = torch.softmax(logits.double(), dim=-1).numpy()
    for word, share in zip(infiller.drawn, shares, strict=True):
        assert abs(counts[word] / draws - share) <= 4 * np.sqrt(share * (1 - share) / draws) + 1 / draws


def test_batches_windows_and_two_documents(masked):
    """What goes together changes nothing; a text of several windows and a pair lose no erased word."""
    infiller = masked()
    long = instance(" ".join(["good", "film", "and", "plot"] * 20), "long")
    pair = Instance("pair", ("Is", "it"), ("a", "b"), (("bad",) * 25, ("good",) * 25), "POS")
    short = instance(TEXT, "short")
    gone = {"long": list(range(0, 80, 2)), "pair": list(range(50)), "short": [3]}
    kept = [np.array([at not in gone[one.id] for at in range(len(one.tokens))]) for one in (long, pair, short)]
    together = infiller.fill([long, pair, short], kept)
    for one, flags, drawn in zip((long, pair, short), kept, together, strict=True):
        assert infiller.fill([one], [flags])[0] == drawn
        assert list(map(len, drawn.documents)) == list(map(len, one.documents)) and drawn.query == one.query
    quiet = replace(long, documents=(tuple("bad" if at % 2 == 0 else word for at, word in enumerate(long.tokens)),))
    assert infiller.fill([quiet], [kept[0]])[0] == together[0], "no window sees an erased word"
    assert together[1] != pair


def test_a_runner_infills(masked):
    """Whole inputs stay whole; erased ones are what the model says of the infilled text; equal ones run once."""
    model, infiller = CountingModel(), masked()
    adapter = PlainModel(model)
    runner = Runner(adapter, "infill", 8, infiller=infiller)
    one = instance(TEXT)
    asked = [full(0), without(0, [1]), only(0, [0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]), empty(0)]
    values = runner.run([adapter.encode(one)], asked, filler="nothing")
    texts = [one.tokens, filled(infiller, one, [1]), filled(infiller, one, [1]), filled(infiller, one, list(range(12)))]
    np.testing.assert_allclose(values, CountingModel().predict_proba(texts), rtol=0, atol=CLOSE)
    assert runner.counts.inputs == 4 and adapter.notes.counts[INFILLED] == 2
    np.testing.assert_array_equal(runner.with_operator("remove").run([adapter.encode(one)], asked[:1]), values[:1])


def test_blocks_of_many_inputs_are_as_one(masked, monkeypatch):
    adapter, one = PlainModel(CountingModel()), instance(TEXT)
    asked = [without(0, [at]) for at in range(12)]
    whole = Runner(adapter, "infill", 8, infiller=masked()).run([adapter.encode(one)], asked)
    monkeypatch.setattr("eraser_hub.attribution.runner.MAX_KEPT_TOKENS", 30)
    parts = Runner(adapter, "infill", 8, infiller=masked()).run([adapter.encode(one)], asked)
    np.testing.assert_array_equal(whole, parts)


def test_a_linear_model_s_bag_is_infilled_by_place(linear, masked):
    """Equal words at other places get words of their own, though a bag of words cannot tell them."""
    from eraser_hub.attribution.open import open_model

    model = open_model(linear)
    one, runner = instance("good good good film"), Runner(open_model(linear), "infill", 8, infiller=masked())
    values = runner.run([model.encode(one)], [without(0, [at]) for at in range(3)])
    texts = [replace(one, documents=(tuple(filled(masked(), one, [at])),)) for at in range(3)]
    plain = Runner(model, "remove", 8).run(list(map(model.encode, texts)), [full(at) for at in range(3)])
    np.testing.assert_allclose(values, plain, rtol=0, atol=CLOSE)


def test_several_ways_of_one_chunk_share_scores_and_rationales(masked):
    """Each way's numbers are those of a run of its own on the first one's scores."""
    from eraser_hub.attribution.engine import explain_chunk
    from eraser_hub.attribution.external_rationales import attach_scores
    from eraser_hub.attribution.settings import GIVEN

    settings = ExplainSettings(
        kd=0.25,
        also_erase=("mask", "infill"),
        infill="tiny",
        random_draws=1,
        tokens_to_flip=True,
        sensitivity_draws=2,
        aopc_bounds=True,
    )
    one = instance("the good film and a warm plot")
    runner = Runner(PlainModel(CountingModel()), "remove", 8, infiller=masked())
    first, second, third = explain_chunk(runner, [one], settings)
    assert first["rationales"] == second["rationales"] == third["rationales"]
    assert first["sensitivity_max"] == second["sensitivity_max"] == third["sensitivity_max"]
    assert list(first) == list(second)
    scores = first["rationales"][0]["soft_rationale_predictions"]
    for operator, prediction in (("remove", first), ("mask", second), ("infill", third)):
        model = "tiny" if operator == "infill" else ""
        alone = replace(settings, method=GIVEN, erase=operator, also_erase=(), sensitivity_draws=0, infill=model)
        runner = Runner(PlainModel(CountingModel()), operator, 8, infiller=masked())
        (expected,) = explain_chunk(runner, [attach_scores(one, [scores])], alone)
        assert expected == {key: value for key, value in prediction.items() if key != "sensitivity_max"}


def test_what_cannot_infill_is_refused(network, tokenizer, tmp_path, folder):
    with refused("option-value", "infill", "''"):
        ExplainSettings(erase="infill")
    with refused("option-value", "infill", "erase", "'tiny'"):
        ExplainSettings(infill="tiny")
    with refused("option-value", "erase", "('mask', 'mask')"):
        ExplainSettings(erase="mask", also_erase=("mask",))
    with refused("option-value", "erase", "remove, mask, pad, infill", "'drop'"):
        ExplainSettings(also_erase=("drop",))
    with refused("option-value", "erase", "remove, mask"):
        list(explain_instances(PlainModel(CountingModel()), [instance(TEXT)], ExplainSettings(also_erase=("mask",))))
    network().save_pretrained(tmp_path / "classifier")
    with refused("model", "infill", "BertForSequenceClassification"):
        open_infiller(str(tmp_path / "classifier"), 1, **HOW)
    with refused("model", file=tmp_path / "nothing"):
        open_infiller(str(tmp_path / "nothing"), 1, **HOW)
    bare = word_tokenizer(WORDS)
    bare.mask_token = None
    with refused("model", "infill", "BertForMaskedLM"):
        Infiller(network("BertForMaskedLM"), bare, 1, device="cpu")
    with refused("option-missing", "`erase` infill", "infill"):
        Runner(PlainModel(CountingModel()), "infill", 8).run(
            [PlainModel(CountingModel()).encode(instance("a"))], [empty(0)]
        )


def test_texts_in_memory_are_infilled(folder):
    (one,) = explain_texts(CountingModel(), [TEXT], erase="infill", infill=folder, kd=0.25, seed=3)
    again = explain_texts(CountingModel(), [TEXT], erase="infill", infill=str(folder), kd=0.25, seed=3)
    infiller = open_infiller(str(folder), 3, **HOW)
    drawn = filled(infiller, instance(TEXT, "0"), list(range(12)))
    ((_, positive),) = CountingModel().predict_proba([drawn])
    assert [one] == again and abs(one["null_classification_scores"]["POS"] - positive) <= CLOSE
