"""Sequence classifiers: words and sub-words, pairs, windows, precision, memory, networks in memory."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

from eraser_hub.attribution import Instance, build_settings, explain_instances, explain_texts, open_model
from eraser_hub.attribution.engine import Engine

from ...needs import late, needs
from ...refusals import refused
from ..conftest import CLOSE, byte_tokenizer, instance, word_tokenizer
from .networks import ask, only, scores, without

pytestmark = needs("torch", "transformers", "captum")
torch, transformers = late("torch"), late("transformers")
MODELS = "eraser_hub.attribution.models"
subwords = late(f"{MODELS}.subwords")
DOCUMENT = "the good plays - with bad 好电影 scene"
HALVES = ("bfloat16", "float16")


@pytest.fixture
def opened(network, tokenizer):
    """Opens a network in memory, by default the small BERT in float64."""

    def opened(made=None, words=tokenizer, **settings):
        return open_model((made or network().double(), words), label_names=("NEG", "POS"), **settings)

    return opened


@pytest.fixture
def model(opened):
    return opened()


def expected(model: Any, *texts: Any) -> Any:
    """Probabilities by the documented way of transformers."""
    inputs = model.tokenizer(*map(list, texts), is_split_into_words=True, return_tensors="pt")
    with torch.inference_mode():
        return torch.softmax(model.network(**inputs).logits, -1)[0].numpy()


# --- inputs ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("uses_query", [False, True])
def test_probabilities_are_the_models_own(model, uses_query):
    model.uses_query = uses_query
    one = instance(DOCUMENT, query="Is it good ?")
    flags = [without(8), without(8, 1, 2), only(8, 0, 6)]
    for kept, row in zip(flags, ask(model, [one], [flags])[0], strict=True):
        words = [token for token, stays in zip(one.tokens, kept, strict=True) if stays]
        texts = (one.query, words) if uses_query else (words,)
        np.testing.assert_allclose(row, expected(model, *texts), rtol=0, atol=CLOSE)


VOCABULARY = ("good", "plays", "\u200b", "bad", "film", "好电影")
SHAPES = {
    "single": ((VOCABULARY * 4,), ()),
    "pair": ((VOCABULARY, VOCABULARY[::-1]), ()),
    "query": ((VOCABULARY * 3,), ("Is", "it", "?")),
    "long": ((VOCABULARY * 30,), ()),
    "long query": ((VOCABULARY * 4,), ("good",) * 40),
    "empty": (((), ()), ()),
}


# a first text or query is cut beside the whole text, whatever is removed
CUT = ("pair", "long query")


@pytest.mark.parametrize("erase", ["remove", "mask", "pad"])
@pytest.mark.parametrize("shape", SHAPES)
def test_erased_inputs_are_those_of_a_text_that_was_so_written(model, erase, shape):
    """Without the erased words, or with [MASK] or a hidden [PAD] for each; equal inputs, equal keys."""
    documents, query = SHAPES["query" if erase == "remove" and shape in CUT else shape]
    model.uses_query = bool(query)
    one = Instance("x", query, tuple(map(str, range(len(documents)))), documents)
    reading, random = model.read(one), np.random.default_rng(4)
    flags = np.stack([random.random(len(one.tokens)) < share for share in (0.0, 0.1, 0.5, 0.9, 1.0) * 2])
    contents: dict[bytes, Any] = {}
    for kept, units in zip(flags, model.cut(reading, flags, erase), strict=True):
        stays, texts = iter(kept), []
        for document in documents:
            fill = {"remove": [], "mask": ["[MASK]"], "pad": ["[PAD]"]}[erase]
            texts.append(tuple(word for token in document for word in ([token] if next(stays) else fill)))
        written = model.read(Instance("x", query, one.names, tuple(texts)))
        expected = [subwords.decode_places(written.code[places]) for places in written.windows()]
        found = [subwords.decode_places(unit.data) for unit in units]
        for (ids, types, seen), (own, kinds, _) in zip(found, expected, strict=True):
            assert (ids.tolist(), types.tolist()) == (own.tolist(), kinds.tolist())
            assert seen.tolist() == [not (erase == "pad" and number == model.words.pad) for number in ids]
        for unit, content in zip(units, found, strict=True):
            assert unit.size == len(content[0])
            assert contents.setdefault(unit.key, str(content)) == str(content)
    assert len(set(contents.values())) == len(contents)


def test_long_texts_go_in_as_overlapping_windows(model):
    one = instance(" ".join(["good bad film the"] * 20))
    engine = Engine(model, [model.read(one)], "mask", 4)
    (whole,) = engine.proba([(0, np.ones((1, 80), bool))])
    windows = engine.readings[0].windows()
    assert engine.passes == len(windows) > 2
    alone = model.forward([engine.readings[0].code[places] for places in windows]).numpy()
    np.testing.assert_allclose(whole[0], alone.mean(axis=0), rtol=0, atol=CLOSE)
    assert model.notes.counts["texts longer than the window"] == 1
    assert model.notes.counts["windows of those texts"] == len(windows)
    # a masked token changes the windows that hold it, two at most: the others run once
    before = engine.passes
    engine.proba([(0, ~np.eye(80, dtype=bool))])
    assert before + 80 <= engine.passes < before + 2 * 80
    apart = engine.readings[0].windows(overlap=False)
    assert np.concatenate([places[1:-1] for places in apart]).tolist() == list(range(1, 81))


def test_the_query_may_stand_behind_the_text_in_every_window(model):
    model.uses_query = model.query_last = True
    one = Instance("a", ("Is", "it", "good", "?"), ("d",), (("the", "film", "bad") * 12,))
    query, reading = model.tokenizer.convert_tokens_to_ids(list(one.query)), model.read(one)
    windows = [subwords.decode_places(reading.code[places]) for places in reading.windows()]
    assert len(windows) > 1
    for ids, types, _ in windows:
        assert len(ids) <= model.window and ids[-5:-1].tolist() == query and (types[1], types[-2]) == (0, 1)
    short = Instance("b", one.query, ("d",), (one.documents[0][:4],))
    np.testing.assert_allclose(
        ask(model, [short], [[without(4)]])[0][0], expected(model, short.tokens, one.query), rtol=0, atol=CLOSE
    )


# --- tokenizers --------------------------------------------------------------------------------------------------


def unigram():
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    letters = [("<unk>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("▁", -2.0), *((c, -3.0) for c in "abdefgilmnoth好电影")]
    made = Tokenizer(models.Unigram(letters, unk_id=0))
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    made.post_processor = processors.TemplateProcessing(
        single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 2)]
    )
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, unk_token="<unk>", eos_token="</s>", pad_token="<pad>", model_max_length=64
    )


@pytest.mark.parametrize("make", [byte_tokenizer, unigram, lambda: word_tokenizer(["good", "好"])])
def test_scores_are_of_tokens_whatever_the_tokenizer(make, network, opened):
    words = make()
    model = opened(network(vocab_size=len(words), max_position_embeddings=64), words)
    texts = [
        "the good film",
        "好电影 真 好 ！",
        "\u200b a \u00a0 \U0001f600 \ufe0f",
        "don't -- [MASK] <s>",
        "é e\u0301",
    ]
    instances = [instance(text, text) for text in texts]
    for method in ("input-x-gradient", "attention", "occlusion"):
        for one, row in zip(instances, scores(model, instances, method), strict=True):
            assert len(row) == len(one.tokens)


def test_no_mask_token_is_said(network, opened):
    model = opened(network(vocab_size=300, max_position_embeddings=64), unigram())
    with refused("`erase` mask", "`erase` remove", "BertForSequenceClassification"):
        scores(model, [instance("good")], "occlusion", erase="mask")


# --- opening -----------------------------------------------------------------------------------------------------


def test_folders_open_by_their_architecture(network, tokenizer, tmp_path):
    kinds = {"SequenceClassification": "Transformer", "MultipleChoice": "Choice", "QuestionAnswering": "Answer"}
    for kind, name in kinds.items():
        network(f"BertFor{kind}").save_pretrained(tmp_path / kind)
        tokenizer.save_pretrained(tmp_path / kind)
        assert type(open_model(tmp_path / kind)).__name__ == f"{name}Model"
    network("BertModel").save_pretrained(tmp_path / "plain")
    tokenizer.save_pretrained(tmp_path / "plain")
    for model in (tmp_path / "plain", (network("BertModel"), tokenizer)):
        with refused("BertModel", "--model"):
            open_model(model)
    with refused("BertForSequenceClassification"):
        open_model(tmp_path / "SequenceClassification", task="generation")
    several = network(problem_type="multi_label_classification")
    with refused("multi_label_classification"):
        open_model((several, tokenizer))


def test_a_pipeline_and_a_pair_in_memory_are_the_saved_model(network, tokenizer, tmp_path):
    network().save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    pipeline = transformers.pipeline("text-classification", model=network(), tokenizer=tokenizer)
    texts = ["the good film", "a bad scene with the film " * 9]
    found = [
        explain_texts(each, texts, method="gradient") for each in (str(tmp_path), pipeline, (network(), tokenizer))
    ]
    parameters = sum(weights.numel() for weights in network().parameters())
    assert open_model(pipeline).details == f"network:BertForSequenceClassification,{parameters}"
    assert found[0] == found[1] == found[2] and set(found[0][0]["classification_scores"]) == {"NEG", "POS"}


def test_a_model_s_own_code_runs_only_when_it_is_trusted(tmp_path, monkeypatch):
    import io

    from transformers import dynamic_module_utils

    folder, ran = tmp_path / "own", tmp_path / "it ran"
    folder.mkdir()
    (folder / "config.json").write_text(
        '{"model_type": "own", "architectures": ["OwnForSequenceClassification"],'
        ' "auto_map": {"AutoConfig": "own.Own"}}'
    )
    (folder / "own.py").write_text(
        f"from transformers import PretrainedConfig\nopen({str(ran)!r}, 'w')\n"
        "class Own(PretrainedConfig):\n    model_type = 'own'\n"
    )
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n" * 9))
    # transformers puts the folder of such code on the path, for good: evaluate's own would be looked for behind it
    monkeypatch.setattr(dynamic_module_utils, "HF_MODULES_CACHE", str(tmp_path / "modules"))
    monkeypatch.setattr("sys.path", [*sys.path])
    with refused("trust_remote_code", file="own"):
        open_model(folder)
    assert not ran.exists()
    with refused("tokenizer", file="own"):  # it has no tokenizer; but its code was run
        open_model(folder, trust_remote_code=True)
    assert ran.exists()


# --- devices and precision ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("precision", HALVES)
def test_half_precision_keeps_the_heads_digits(network, opened, precision):
    kind = getattr(torch, precision)
    plain, half = network(), opened(network(), precision=precision)
    assert half.half is kind and opened(network()).half is None
    assert any(f"passes in {precision}" in words and "`precision` float32" in words for words in half.notes.messages)
    codes = [half.read(instance("good plays film" + " the" * n)).code for n in range(12)]
    inputs, p = half.tensors(codes), half.forward(codes)
    with torch.inference_mode(), torch.autocast("cpu", dtype=kind):
        encoder_output = plain.bert(**inputs).pooler_output.float()
    with torch.inference_mode():
        np.testing.assert_array_equal(p, plain.classifier(encoder_output).double().softmax(-1))
    # what looks inside is not rounded
    for method in ("gradient", "attention"):
        one = [instance(DOCUMENT)]
        np.testing.assert_array_equal(
            scores(half, one, method, target="POS")[0], scores(opened(network()), one, method, target="POS")[0]
        )


def test_devices_and_precisions(monkeypatch):
    from eraser_hub.attribution.models import devices

    for name in ("gpu", "cuda:99", "meta", "", "xpu"):
        with refused(repr(name), argument="device"):
            devices.find_device(name)
    cpu = devices.find_device("cpu")
    with refused("auto, float32, bfloat16, float16", "'int8'", argument="precision"):
        devices.half_type("int8", cpu)
    for name, found in (("auto", None), ("float32", None), ("bfloat16", torch.bfloat16), ("float16", torch.float16)):
        assert devices.half_type(name, cpu) is found
    # bf16 that a GPU only imitates is not chosen
    monkeypatch.setattr(torch.cuda, "device", lambda device: nullcontext())
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation=True: including_emulation)
    assert devices.half_type("auto", torch.device("cuda:1")) is None


# --- memory that runs out ----------------------------------------------------------------------------------------


def tight(network, most: int):
    """The network, out of memory above ``most`` inputs at a time."""
    forward, sizes = network.forward, []

    def limited(*values, **named):
        rows = next(iter(named.values())).shape[0]
        if rows > most:
            raise torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
        sizes.append(rows)
        return forward(*values, **named)

    network.forward = limited
    return network, sizes


@pytest.mark.parametrize("method", ["occlusion", "gradient", "integrated-gradients", "attention"])
def test_batches_that_run_out_of_memory_are_halved(network, opened, method):
    documents = [instance("good plays film" + " the" * n, str(n)) for n in range(4)]
    narrow, sizes = tight(network().double(), 2)
    model = opened(narrow)
    for one, other in zip(scores(model, documents, method), scores(opened(), documents, method), strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=CLOSE)
    assert max(sizes) <= 2 and any("halved to" in words for words in model.notes.messages)
    with refused("window"):
        scores(opened(tight(network(), 0)[0]), documents, method)


# --- what looks inside ---


def test_scores_of_a_long_text_are_its_windows_means(model):
    """A gradient is the windows' sum over their number, attention each sub-word's mean."""
    one = instance(" ".join(["good bad film the"] * 12))
    reading = model.read(one)
    windows = reading.windows()
    assert len(windows) > 1
    for method in ("input-x-gradient", "attention"):
        (found,) = scores(model, [one], method, target="POS")
        sums, times = np.zeros((2, 48))
        for places in windows:
            tokens = reading.source[places[1:-1]]
            words = " ".join(one.tokens[token] for token in tokens)
            sums[tokens] += scores(model, [instance(words)], method, target="POS")[0]
            times[tokens] += 1
        times = times if method == "attention" else np.full(48, len(windows))
        np.testing.assert_allclose(found, sums / times, rtol=0, atol=CLOSE)


def test_a_network_that_embeds_twice_has_no_gradients(model):
    inner = model.network.forward
    model.network.forward = lambda **inputs: inner(**inputs) if inner(**inputs) else None
    with refused("once, found 2", "BertForSequenceClassification"):
        scores(model, [instance(DOCUMENT)], "gradient")


def test_numbers_of_embeddings_are_masked(model):
    """All kept is the whole input; windows share a sub-word's mask, and draws do not depend on how many go together."""
    short, random = model.read(instance(DOCUMENT)), np.random.default_rng(0)
    (found,) = explain_instances(
        model, [instance(DOCUMENT)], build_settings(measures=["soft(draws=3, masks=elements)"])
    )
    whole = model.mask_elements(short, 1, np.ones(8), 2, random)
    assert whole == pytest.approx([found["classification_scores"]["POS"]] * 2, abs=CLOSE)
    assert found["soft_scores"]["draws"] == 3
    long, keep = model.read(instance(" ".join(["good bad film"] * 30))), np.full(90, 0.5)
    together = model.mask_elements(long, 0, keep, 5, np.random.default_rng(1))
    model.rows_for = lambda size, rows: 2
    apart = model.mask_elements(long, 0, keep, 5, np.random.default_rng(1))
    np.testing.assert_allclose(together, apart, rtol=0, atol=CLOSE)
    assert len(set(together)) == 5
