"""Transformers: words and sub-words, pairs, windows, gradients, attention, multiple choice, question answering."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from eraser_hub.attribution.adapter import align_labels
from eraser_hub.attribution.engine import explain_instances
from eraser_hub.attribution.erasure import full, only, without
from eraser_hub.attribution.instances import Instance
from eraser_hub.attribution.open import open_model
from eraser_hub.attribution.runner import Runner
from eraser_hub.attribution.settings import ExplainSettings
from eraser_hub.attribution.transformers.multiple_choice import ChoiceModel
from eraser_hub.attribution.transformers.pieces import HEADS_CUT, UNKNOWN
from eraser_hub.attribution.transformers.question_answering import AnswerModel
from eraser_hub.attribution.transformers.sequence_model import SequenceModel
from eraser_hub.attribution.transformers.words import CutWords

from ...needs import needs
from ...refusals import refused
from ..conftest import CLOSE, byte_tokenizer, check_answers, instance, word_tokenizer

pytestmark = needs("torch", "transformers")


@pytest.fixture(autouse=True, scope="module")
def _late_imports() -> None:
    global RationaleSetAgreement, torch
    import torch

    from eraser_hub.metrics.rationale_set_agreement import RationaleSetAgreement


DOCUMENT = "the good plays - with bad 好电影 scene"


@pytest.fixture
def model(network, tokenizer):
    adapter = SequenceModel(network().double(), tokenizer)
    align_labels(adapter, ("NEG", "POS"))
    return adapter


def test_texts_of_unknown_words_are_counted(model):
    texts = ["the good plot", "one two three", "the good un known", "un known the", ""]
    list(explain_instances(model, [instance(text, text) for text in texts], ExplainSettings(method="random")))
    assert model.notes.counts[UNKNOWN] == 2


def soft(found):
    return [part["soft_rationale_predictions"] for part in found["rationales"]]


def test_probabilities_are_the_models_own(model, tokenizer):
    one = instance(DOCUMENT, query="Is it good ?")
    for uses_query in (False, True):
        model.uses_query = uses_query
        encoded = [model.encode(one)]
        found = Runner(model, "remove", 4).run(encoded, [full(0), without(0, [1, 2]), only(0, [0, 6])])
        texts = [one.tokens, [t for i, t in enumerate(one.tokens) if i not in (1, 2)], [one.tokens[0], one.tokens[6]]]
        for row, words in zip(found, texts, strict=True):
            first = (list(one.query), words) if uses_query else (words,)
            inputs = tokenizer(*first, is_split_into_words=True, return_tensors="pt")
            with torch.inference_mode():
                expected = torch.softmax(model.network(**inputs).logits, -1)[0].numpy()
            np.testing.assert_allclose(row, expected, rtol=0, atol=CLOSE)


def laid_out(model, one, kept, erase):
    """The windows of an erased text, put together one sub-word after the other."""
    words, limit = model.words, model.window

    def text(tokens, flags):
        found = []
        for (number, pieces), stays in zip(tokens, flags, strict=True):
            if stays:
                found += [(piece, True, number) for piece in pieces]
            elif erase != "remove" and pieces:
                found.append((words.mask if erase == "mask" else words.pad, erase == "mask", number))
        return found

    tokens = list(enumerate(words.cut(one.tokens)))
    query = [(piece, True, None) for word in words.cut(one.query) for piece in word] if model.uses_query else []
    split = len(one.documents[0]) if not query and len(one.documents) == 2 else 0
    template = words.pair if query or any(pieces for _, pieces in tokens[:split]) else words.single
    body = text(tokens[split:], kept[split:]) if template is words.pair else text(tokens, kept)
    # query and first text are cut beside the whole text, whatever is erased
    room = limit - template.size
    most = max(1, room // 2, room - sum(len(pieces) for _, pieces in tokens[split:]))
    starts = np.cumsum([0, *(len(pieces) for _, pieces in tokens[:split])])
    heads = [
        (number, pieces[: max(0, most - start)])
        for (number, pieces), start in zip(tokens[:split], starts, strict=False)
    ]
    first = (query[:most] or text(heads, kept[:split])) if template is words.pair else []
    room = limit - template.size - len(first)
    step = room - room // 4
    found, start = [], 0
    while not found or start + room - step < len(body):
        parts = [template.before, first, template.between, body[start : start + room], template.after]
        rows, lead = [], len(template.before) + len(first) + len(template.between)
        for part in parts:
            rows += [row if isinstance(row, tuple) else (row, True, None) for row in part]
        types = [template.types[place >= lead] for place in range(len(rows))]
        found.append([(piece, kind, seen, number) for (piece, seen, number), kind in zip(rows, types, strict=True)])
        start += step
    return found


@pytest.mark.parametrize("erase", ["remove", "mask", "pad"])
@pytest.mark.parametrize(
    "shape",
    ["single", "pair", "query", "long", "long first", "first fits", "long query", "query fits", "long all", "empty"],
)
def test_inputs_cut_many_at_a_time_are_those_put_together_word_by_word(model, erase, shape):
    words = ["good", "plays", "\u200b", "bad", "film", "好电影"]
    documents, query = {
        "single": ((words * 4,), ()),
        "pair": ((words, words[::-1]), ()),
        "query": ((words * 3,), ("Is", "it", "?")),
        "long": ((words * 30,), ()),
        "long first": ((words * 5, words), ()),
        "first fits": ((words * 3, words[:2]), ()),
        "query fits": ((words[:3],), ("good",) * 20),
        "long all": ((words * 9, words * 20), ()),
        "long query": ((words * 4,), ("good",) * 40),
        "empty": (([], []), ()),
    }[shape]
    model.uses_query = bool(query)
    one = Instance("x", query, tuple(map(str, range(len(documents)))), tuple(map(tuple, documents)))
    encoded, random, tokens = model.encode(one), np.random.default_rng(4), len(one.tokens)
    flags = [random.random(tokens) < share for share in (0.0, 0.1, 0.5, 0.9, 1.0) * 4]
    chosen = [(only if keep else without)(0, np.flatnonzero(row == keep)) for row in flags for keep in (True, False)]
    views = list(encoded.views(chosen, erase))
    assert len(views) == 2 * len(flags)
    for kept, *twice in zip(flags, views[::2], views[1::2], strict=True):
        expected = laid_out(model, one, kept, erase)
        for view in twice:
            found = [
                [
                    (int(i), int(t), bool(s), int(encoded.owner[p]) if p >= 0 else None)
                    for i, t, s, p in zip(w.ids, w.types, w.visible, w.piece, strict=True)
                ]
                for w in view.data
            ]
            assert found == expected
            assert view.sizes == tuple(map(len, expected))
    by_key: dict[bytes, object] = {}
    for view in views:
        for key, window in zip(view.keys, view.data, strict=True):
            content = (window.ids.tolist(), window.types.tolist(), window.visible.tolist())
            assert by_key.setdefault(key, content) == content
    assert len({str(content) for content in by_key.values()}) == len(by_key)


def test_equal_windows_of_long_texts_run_once(model):
    one = instance(" ".join(["good bad film the"] * 20))
    encoded, runner = [model.encode(one)], Runner(model, "mask", 4)
    (whole,) = runner.run(encoded, [full(0)])
    windows = runner.counts.passes
    assert windows > 2
    values = runner.run(encoded, [without(0, [place]) for place in range(80)])
    # a masked token changes the windows that hold it, two at most
    assert windows + 80 <= runner.counts.passes < windows + 2 * 80
    alone = [Runner(model, "mask", 4).run(encoded, [without(0, [place])])[0] for place in range(80)]
    np.testing.assert_allclose(values, alone, rtol=0, atol=CLOSE)
    assert not np.allclose(values, whole, atol=1e-9)


def test_pairs_that_differ_in_token_types_alone_are_two_inputs(model):
    # "[SEP]" as a word makes the ids of a b | c and a | b c alike, but not their token types
    texts = ((("good", "[SEP]", "bad"), ("film",)), (("good",), ("bad", "[SEP]", "film")))
    first, second = (
        model.encode(Instance("x", (), ("a", "b"), pair)).view(np.ones(4, dtype=bool), "remove") for pair in texts
    )
    assert first.data[0].ids.tolist() == second.data[0].ids.tolist()
    assert first.keys != second.keys


def test_long_texts_go_in_as_overlapping_windows(model):
    encoded = model.encode(instance(" ".join(["good bad film the"] * 20)))
    windows = encoded.windows(np.ones(80, dtype=bool), "remove")
    assert all(len(window.ids) <= 32 for window in windows) and len(windows) > 2
    covered = {int(piece) for window in windows for piece in window.piece if piece >= 0}
    assert covered == set(range(80))
    held = [set(window.piece[window.piece >= 0].tolist()) for window in windows]
    assert all(one & other for one, other in pairwise(held))
    alone = model.forward([(encoded.view(np.ones(80, dtype=bool), "remove"), n) for n in range(len(windows))])
    together = Runner(model, "remove", 4).run([encoded], [full(0)])[0]
    np.testing.assert_allclose(together, alone.mean(axis=0), rtol=0, atol=CLOSE)
    assert model.notes.counts["texts longer than the window"] == 1
    assert model.notes.counts["windows of those texts"] == len(windows)


@pytest.mark.parametrize("first", [20, 26, 27, 100])
@pytest.mark.parametrize("uses_query", [False, True])
def test_a_first_text_is_cut_and_counted_where_the_pair_exceeds_the_window(model, first, uses_query):
    model.uses_query = uses_query
    head, body = ("good",) * first, ("bad",) * 3
    one = Instance("q", head, ("d",), (body,)) if uses_query else Instance("x", (), ("a", "b"), (head, body))
    (window,) = model.encode(one).whole()
    # 29 sub-words beside the special ones: the second text is whole, the first loses no more than what does not fit
    assert len(window.ids) == model.words.pair.size + min(first + 3, 29)
    assert {*range(3)} <= {place - first * (not uses_query) for place in window.piece.tolist()}
    assert model.notes.counts.get(HEADS_CUT, 0) == (first > 26)


@pytest.mark.parametrize("rows", [1, 7, 64])
def test_integrated_gradients_are_captums(model, rows):
    captum = pytest.importorskip("captum.attr")
    from eraser_hub.attribution.transformers.gradients import compute_integrated_gradients

    inputs = model.tokenizer(instance(DOCUMENT).tokens, is_split_into_words=True, return_tensors="pt")
    embedded = model.network.get_input_embeddings()(inputs["input_ids"]).detach()

    def probability(points, seen):
        return torch.softmax(model.network(inputs_embeds=points, attention_mask=seen).logits, -1)[:, 1]

    more = (inputs["attention_mask"],)
    expected, delta = captum.IntegratedGradients(probability).attribute(
        embedded, torch.zeros_like(embedded), additional_forward_args=more, n_steps=30, return_convergence_delta=True
    )
    model.notes.maxima.clear()
    found = compute_integrated_gradients(model, probability, embedded, 30, rows, more)
    np.testing.assert_allclose(found, expected.sum(-1).detach(), rtol=0, atol=CLOSE)
    assert model.notes.maxima["largest convergence delta"] == pytest.approx(abs(float(delta)), abs=CLOSE)


@pytest.mark.parametrize("method", ["gradient", "simple-gradient", "input-x-gradient"])
def test_gradients_are_captums_in_one_backward_pass_for_all_inputs(model, method):
    captum = pytest.importorskip("captum.attr")
    from eraser_hub.attribution.transformers.gradients import compute_embedding_scores

    ids = model.tokenizer(["good plays film", "a dull scene"], return_tensors="pt", padding=True)["input_ids"]
    embedded = model.network.get_input_embeddings()(ids).detach()

    def probability(points):
        return torch.softmax(model.network(inputs_embeds=points).logits, -1)[:, 1]

    if method == "gradient":
        expected = captum.Saliency(probability).attribute(embedded.clone(), abs=False).norm(dim=-1)
    else:
        expected = captum.InputXGradient(probability).attribute(embedded.clone()).sum(-1)
        expected = expected if method == "input-x-gradient" else expected.abs()
    scores = compute_embedding_scores(model, probability, embedded, method, 1, 1)
    np.testing.assert_allclose(scores, expected.detach(), rtol=0, atol=CLOSE)


def explained(model, texts, settings):
    """Predictions, and how many inputs went through the network."""
    counts = []
    hook = model.network.register_forward_pre_hook(
        lambda module, arguments, named: counts.append(len(named["input_ids"])), with_kwargs=True
    )
    try:
        return list(explain_instances(model, texts, settings)), sum(counts)
    finally:
        hook.remove()


@pytest.mark.parametrize("method", ["gradient", "simple-gradient", "input-x-gradient", "integrated-gradients"])
@pytest.mark.parametrize("target", ["predicted", "POS"])
def test_predictions_come_of_the_gradients_own_passes(model, monkeypatch, method, target):
    settings = ExplainSettings(method=method, bins=(), target=target, steps=4)
    texts = [
        instance(text, text) for text in ("good plays film", "a dull scene film", "bad", "good bad film scene " * 9)
    ]
    windows = len(model.encode(texts[-1]).whole())
    ours, rows = explained(model, texts, settings)
    monkeypatch.setattr(SequenceModel, "ahead", lambda *arguments: {})
    theirs, more = explained(model, texts, settings)
    # a whole input goes through once; again only where a window of a long text has most of another label than the text
    spared = 0 if method == "integrated-gradients" else len(texts) - 1 + windows
    assert windows > 1 and spared - windows * (target == "predicted") <= more - rows <= spared
    assert more - rows == spared or target == "predicted"
    for one, other in zip(ours, theirs, strict=True):
        assert one["classification"] == other["classification"]
        assert one["classification_scores"] == pytest.approx(other["classification_scores"], abs=CLOSE)
        for row, expected in zip(soft(one), soft(other), strict=True):
            np.testing.assert_allclose(row, expected, rtol=0, atol=CLOSE)


def test_in_half_precision_predictions_have_passes_of_their_own(model):
    model.half = model.torch.bfloat16
    assert model.ahead("gradient", [model.encode(instance("good"))], [None]) == {}


def test_attention_is_the_last_layers_from_cls(model):
    one = instance("good plays film")
    (found,) = explain_instances(model, [one], ExplainSettings(method="attention"))
    inputs = model.tokenizer(one.tokens, is_split_into_words=True, return_tensors="pt")
    model.network.set_attn_implementation("eager")
    with torch.inference_mode():
        heads = model.network(**inputs, output_attentions=True).attentions[-1][0].mean(0)[0].numpy()
    owners = inputs.word_ids()
    expected = [sum(float(v) for v, w in zip(heads, owners, strict=True) if w == place) for place in range(3)]
    np.testing.assert_allclose(soft(found)[0], expected, rtol=0, atol=CLOSE)


def test_a_tokenizer_that_cuts_words_by_their_neighbours():
    """A tokenizer whose words are not independent is found out, and whole texts are cut."""

    class Sticky:
        def __init__(self, inner):
            self.inner = inner

        def __getattr__(self, name):
            return getattr(self.inner, name)

        def __call__(self, words, pair=None, **more):
            if pair is None and len(words) > 1:
                words = [word if word != "good" else "bad" for word in words]
            return self.inner(words, pair, **more)

    inner = word_tokenizer(["good", "bad", "film", "a", "b"])
    words = CutWords(Sticky(inner))
    bad = inner.convert_tokens_to_ids("bad")
    assert words.cut(["good", "film"])[0] == (bad,)
    assert words.cut(["good"])[0] == (inner.convert_tokens_to_ids("good"),)


def unigram():
    import transformers
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    pieces = [("<unk>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("▁", -2.0), *((c, -3.0) for c in "abdefgilmnoth好电影")]
    made = Tokenizer(models.Unigram(pieces, unk_id=0))
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    made.post_processor = processors.TemplateProcessing(
        single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 2)]
    )
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, unk_token="<unk>", eos_token="</s>", pad_token="<pad>", model_max_length=64
    )


@pytest.mark.parametrize("make", [byte_tokenizer, unigram, lambda: word_tokenizer(["good", "好"])])
@pytest.mark.parametrize(
    "text",
    ["the good film", "好电影 真 好 ！", "\u200b a \u00a0 \U0001f600 \ufe0f", "don't -- [MASK] <s>", "é e\u0301"],
)
def test_attribution_lengths_equal_token_counts(make, text, network):
    tokenizer = make()
    adapter = SequenceModel(network(vocab_size=len(tokenizer), max_position_embeddings=64), tokenizer)
    align_labels(adapter, ("NEG", "POS"))
    one = instance(text)
    for method in ("input-x-gradient", "attention", "occlusion"):
        (found,) = explain_instances(adapter, [one], ExplainSettings(method=method))
        assert len(soft(found)[0]) == len(one.tokens)
    pieces = adapter.words.cut(one.tokens)
    whole = tokenizer(one.tokens, is_split_into_words=True, add_special_tokens=False)
    assert [p for word in pieces for p in word] == whole["input_ids"]


def test_no_mask_token_is_said(network):
    adapter = SequenceModel(network(vocab_size=300, max_position_embeddings=64), unigram())
    align_labels(adapter, ("NEG", "POS"))
    with refused("`erase` mask", "`erase` remove", "BertForSequenceClassification"):
        list(explain_instances(adapter, [instance("good")], ExplainSettings(erase="mask")))


def test_folders_open_by_their_architecture(network, tokenizer, tmp_path):
    for kind, expected in (
        ("BertForSequenceClassification", SequenceModel),
        ("BertForMultipleChoice", ChoiceModel),
        ("BertForQuestionAnswering", AnswerModel),
    ):
        folder = tmp_path / kind
        network(kind).save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        assert type(open_model(folder)) is expected
    network("BertModel").save_pretrained(tmp_path / "plain")
    tokenizer.save_pretrained(tmp_path / "plain")
    with refused("BertModel", "--model"):
        open_model(tmp_path / "plain")


def test_window_is_checked(network, tokenizer):
    for window in (2, 10_000):
        with refused("window", window):
            SequenceModel(network(), tokenizer, window=window)
    assert SequenceModel(network(), tokenizer, window=16).window == 16


def test_multiple_choice(network, tokenizer):
    adapter = ChoiceModel(network("BertForMultipleChoice").double(), tokenizer)
    align_labels(adapter, ("A", "B", "C"))
    assert not adapter.notes.messages  # answers have no order of their own to be told about
    query = "good [sep] bad film [sep] the"
    one = instance("it plays a scene", query=query)
    for method in ("occlusion", "gradient", "input-x-gradient", "integrated-gradients"):
        (found,) = explain_instances(adapter, [one], ExplainSettings(method=method, bins=(0.0, 1.0), steps=100))
        assert len(soft(found)[0]) == 4
        assert found["thresholded_scores"][1]["sufficiency_classification_scores"] == found["classification_scores"]
    inputs = tokenizer(
        [one.tokens] * 3,
        [a.split() for a in query.split(" [sep] ")],
        is_split_into_words=True,
        padding=True,
        return_tensors="pt",
    )
    with torch.inference_mode():
        expected = torch.softmax(adapter.network(**{k: v[None] for k, v in inputs.items()}).logits, -1)[0].numpy()
    np.testing.assert_allclose(list(found["classification_scores"].values()), expected, rtol=0, atol=CLOSE)
    with refused("3", "[sep]", "2", instance="one", field="query"):
        adapter.encode(instance("it", query="good [sep] bad"))


def test_question_answering_gives_rankings(network, tokenizer):
    adapter = AnswerModel(network("BertForQuestionAnswering"), tokenizer)
    one = Instance("7", ("Is", "it", "?"), ("sequence_0",), (("the", "good", "film", "with", "a", "bad", "plot"),))
    check_answers(adapter, one)
