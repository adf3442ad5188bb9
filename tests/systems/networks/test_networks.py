"""Networks of the papers: by golden values and finite differences; nothing leaks that was erased or not selected."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eraser_hub.attribution import Instance, explain_instances
from eraser_hub.attribution.adapter import align_labels
from eraser_hub.attribution.settings import build_settings
from eraser_hub.systems.system import SYSTEMS

from ...attribution.test_presets import ERASER, check_saliency
from ...needs import needs

pytestmark = needs("torch")


@pytest.fixture(autouse=True, scope="module")
def _late_imports() -> None:
    global \
        torch, \
        AdditiveClassifier, \
        WordEmbedder, \
        build_network, \
        NetworkModel, \
        pad_readings, \
        erase_tokens, \
        read_instance
    global AdditiveAttention, Recurrent, pool_states, Shape, TaughtReading, TokenNetwork, GoldenNetwork, Vocabulary
    import torch

    from eraser_hub.systems.networks.classifiers import (
        AdditiveAttention,
        AdditiveClassifier,
        Recurrent,
        Shape,
        TaughtReading,
        TokenNetwork,
        pool_states,
    )
    from eraser_hub.systems.networks.embedders import WordEmbedder
    from eraser_hub.systems.networks.files import build_network
    from eraser_hub.systems.networks.network_model import NetworkModel
    from eraser_hub.systems.networks.readings import Vocabulary, erase_tokens, pad_readings, read_instance

    from .golden_network import GoldenNetwork


# of the systems with one network; the first test holds them to the registry, which cannot be read without torch
NAMES = ["bert-lstm", "bilstm", "glove-lstm", "lehman", "lei", "lei-unsupervised", "lstm", "match-lstm"]
WORDS = [f"w{number}" for number in range(2, 64)]
# central differences of step h in float64: h² of the third derivative and 2^-52 / h of rounding, both near 1e-10
STEP, CLOSE = 1e-5, {"rtol": 1e-6, "atol": 1e-8}


def test_every_network_is_tested():
    assert [name for name in SYSTEMS if getattr(SYSTEMS[name], "network", "")] == NAMES


def golden_case(case):
    """The case's instance behind the project's adapter: separators and query are always kept."""
    ids, kept = case["token_ids"], case["always_keep"]
    documents, query = [[]], []
    for number, always in zip(ids, kept, strict=True):
        if number == 1:
            documents.append([])
        else:
            (query if always else documents[-1]).append(f"w{number}")
    documents = tuple(tuple(one) for one in documents if one)
    model = NetworkModel(
        network := GoldenNetwork(ERASER["models"][case["model"]]), [], uses_query=bool(query), device="cpu"
    )
    network.shape = replace(network.shape, apart=ids[-1] != 1)  # read without separators
    model.label_names = tuple(str(label) for label in range(network.shape.labels))
    align_labels(model, ())
    names = tuple(f"d{number}" for number in range(len(documents)))
    return model, Instance("case", tuple(query), names, documents)


@pytest.mark.parametrize("case", [one for one in ERASER["cases"] if one["model"] == "additive"])
@pytest.mark.parametrize("method", ["attention", "simple_gradient"])
def test_eraser_s_attention_and_gradient(case, method):
    check_saliency(*golden_case(case), case, method)


def small(name, apart=False, seed=0):
    """An untrained network in float64, its weights large enough to matter."""
    torch.manual_seed(seed)
    hyper = replace(SYSTEMS[name].hyper, hidden_size=4, dropout=0.0)
    vocabulary = Vocabulary(WORDS, False)
    network = build_network(name, hyper, Shape(2, apart), lambda layers: WordEmbedder(vocabulary, 3))
    with torch.no_grad():
        for weights in network.parameters():
            weights.mul_(2)
    return network.double().eval()


def words_of(random, number):
    return tuple(random.choice(WORDS, number).tolist())


def get_reading(network, one):
    return read_instance(one, network.embedder.lexicon, bool(one.query), network.shape.apart).reading


TEXTS = [(5, 3), (9, 1), (1, 4), (7, 2)]  # words of the document and of the query


def some_texts(seed=0):
    random = np.random.default_rng(seed)
    return [
        Instance(str(at), words_of(random, asked), ("d",), (words_of(random, size),))
        for at, (size, asked) in enumerate(TEXTS)
    ]


@pytest.mark.parametrize("name", NAMES)
def test_a_text_s_output_does_not_depend_on_those_beside_it(name):
    network = small(name, apart=SYSTEMS[name].reads_apart)
    readings = [get_reading(network, one) for one in some_texts()]
    together = network(pad_readings(readings, torch.device("cpu")))
    for reading, row in zip(readings, together, strict=True):
        torch.testing.assert_close(
            network(pad_readings([reading], torch.device("cpu")))[0], row, rtol=1e-12, atol=1e-12
        )
    if network.attends:
        batch = pad_readings(readings, torch.device("cpu"))
        weights = network.attention(network.embedder(batch), batch)
        assert not weights[~batch.visible].any()


@pytest.mark.parametrize("name", NAMES)
def test_gradients_are_those_of_finite_differences(name):
    """Of the loss, by a number of each of the weights and by twelve of the words' vectors."""
    network = small(name, apart=SYSTEMS[name].reads_apart)
    batch = pad_readings([get_reading(network, one) for one in some_texts()], torch.device("cpu"))
    vectors = network.embedder(batch).detach().requires_grad_()

    def loss():
        return torch.nn.functional.cross_entropy(network.logits(vectors, batch), torch.tensor([0, 1, 0, 1]))

    loss().backward()
    random = np.random.default_rng(1)
    asked = [(weights, 1) for label, weights in network.named_parameters() if label.split(".")[0] != "embedder"]
    for weights, count in [*asked, (vectors, 12)]:
        if weights.grad is None:  # a hard selection has no gradient: that is REINFORCE's
            assert any(weights is one for one in network.generator.parameters())
            continue
        for at in zip(*(random.integers(0, size, count) for size in weights.shape), strict=True):
            values = []
            for sign in (1, -1):
                with torch.no_grad():
                    weights[at] += sign * STEP
                    values.append(float(loss()))
                    weights[at] -= sign * STEP
            np.testing.assert_allclose(float(weights.grad[at]), (values[0] - values[1]) / (2 * STEP), **CLOSE)
    assert not vectors.grad[~batch.inside].any()  # padding has no part in it


@pytest.mark.parametrize("asked", [False, True])
def test_a_sentence_reader_has_no_weights_that_nothing_trains(asked):
    """Where a query asks, no vector is learned to ask in its place."""
    network = small("lehman", apart=asked)
    batch = pad_readings([get_reading(network, one) for one in some_texts()], torch.device("cpu"))
    network(batch).sum().backward()
    assert [name for name, weights in network.named_parameters() if weights.grad is None] == []
    assert ("weights.query" in dict(network.named_parameters())) is not asked


@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize("both", [False, True])
@settings(max_examples=20, deadline=None)
@given(lengths=st.lists(st.integers(0, 7), min_size=1, max_size=5))
def test_a_recurrent_layer_is_torch_s_over_packed_sequences(gated, both, lengths):
    torch.manual_seed(0)
    ours = Recurrent(3, 4, both=both, gated=gated).double()
    theirs = (torch.nn.GRU if gated else torch.nn.LSTM)(3, 4, batch_first=True, bidirectional=both).double()
    with torch.no_grad():
        for number, cells in enumerate(ours.cells):
            for name, weights in cells.named_parameters():
                getattr(theirs, name + "_reverse" * number).copy_(weights)
    vectors = torch.randn(len(lengths), 7, 3, dtype=torch.float64)
    for row, length in zip(vectors, lengths, strict=True):
        row[length:] = 0
    sizes = torch.tensor(lengths)
    states, last = ours(vectors.requires_grad_(), sizes)
    packed = torch.nn.utils.rnn.pack_padded_sequence(
        vectors, sizes.clamp(min=1), batch_first=True, enforce_sorted=False
    )
    expected, ends = theirs(packed)
    ends = ends[0] if isinstance(ends, tuple) else ends
    whole, _ = torch.nn.utils.rnn.pad_packed_sequence(expected, batch_first=True, total_length=7)
    torch.testing.assert_close(states, whole, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(last, ends.transpose(0, 1).flatten(1), rtol=1e-12, atol=1e-12)
    gradients = [torch.autograd.grad((one**2).sum(), vectors, retain_graph=True)[0] for one in (states, whole)]
    torch.testing.assert_close(*gradients, rtol=1e-12, atol=1e-12)


def test_reinforce_has_the_gradient_of_the_expected_cost():
    """All 2^n selections of a short text: E[cost(z) grad log p(z)] against finite differences of E[cost(z)]."""
    network = small("lei-unsupervised")
    one = Instance("a", (), ("d",), (("w3", "w4", "w5", "w6"),))
    batch = pad_readings([get_reading(network, one)], torch.device("cpu"))
    choices = torch.tensor(np.array(np.meshgrid(*[[0, 1]] * 4)).reshape(4, -1).T).bool()
    label = torch.tensor([1])

    def costs():
        rows = []
        for choice in choices:
            chosen = torch.cat([choice, torch.tensor([False])])[None]
            cost = torch.nn.functional.cross_entropy(network.classify_selection(batch, chosen), label, reduction="none")
            rows.append((cost + network.hyper.sparsity * network.compute_regulariser(batch, chosen)).detach())
        return torch.cat(rows)

    def log_probabilities():
        logits = network.generator(batch)[:, :4]
        return -torch.nn.functional.binary_cross_entropy_with_logits(
            logits.expand(16, 4), choices.double(), reduction="none"
        ).sum(dim=1)

    cost, weights = costs(), network.generator.head.weight
    logs = log_probabilities()
    (estimate,) = torch.autograd.grad((logs.exp().detach() * cost * logs).sum(), weights)
    with torch.no_grad():
        values = []
        for sign in (1, -1):
            weights[0, 0] += sign * STEP
            values.append(float((log_probabilities().exp() * cost).sum()))
            weights[0, 0] -= sign * STEP
    np.testing.assert_allclose(float(estimate[0, 0]), (values[0] - values[1]) / (2 * STEP), **CLOSE)


@pytest.mark.parametrize("name", ["lei", "lei-unsupervised"])
def test_the_encoder_sees_nothing_that_was_not_selected(name):
    network = small(name)
    random = np.random.default_rng(3)
    one = Instance("a", ("w9",), ("d",), (words_of(random, 12),))
    chosen = random.random(12) < 0.4
    outputs = []
    for trial in range(5):
        words = list(one.documents[0])
        for place in np.flatnonzero(~chosen):
            if trial:
                words[place] = str(random.choice(WORDS))
        batch = pad_readings([get_reading(network, replace(one, documents=(tuple(words),)))], torch.device("cpu"))
        flags = torch.zeros_like(batch.erasable)
        flags[0, :12] = torch.from_numpy(chosen)
        outputs.append(network.classify_selection(batch, flags))
    assert all(torch.equal(outputs[0], other) for other in outputs[1:])
    # neither does their number matter
    shorter = replace(one, documents=(tuple(np.asarray(one.documents[0])[chosen].tolist()),))
    batch = pad_readings([get_reading(network, shorter)], torch.device("cpu"))
    torch.testing.assert_close(network.classify_selection(batch, batch.erasable), outputs[0], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("erase", ["remove", "mask", "pad"])
def test_erased_words_do_not_matter(name, erase):
    network = small(name, apart=SYSTEMS[name].reads_apart)
    random = np.random.default_rng(4)
    one = Instance("a", ("w9", "w8"), ("d",), (words_of(random, 10),))
    kept = random.random(10) < 0.5
    outputs = []
    for trial in range(3):
        words = [
            str(random.choice(WORDS)) if trial and not stays else word
            for word, stays in zip(one.documents[0], kept, strict=True)
        ]
        reading = erase_tokens(get_reading(network, replace(one, documents=(tuple(words),))), kept, erase)
        outputs.append(network(pad_readings([reading], torch.device("cpu"))))
    assert all(torch.equal(outputs[0], other) for other in outputs[1:])


@pytest.mark.parametrize("name", NAMES)
def test_empty_texts_have_an_output(name):
    network = small(name, apart=SYSTEMS[name].reads_apart)
    model = NetworkModel(network, ("a", "b"), uses_query=True, device="cpu")
    align_labels(model, ("a", "b"))
    empty = Instance("empty", (), ("d",), ((),))
    found = list(explain_instances(model, [empty, some_texts()[0]], build_settings("", "", True, kd=0.5, bins=(0.1,))))
    assert abs(sum(found[0]["classification_scores"].values()) - 1) < 1e-9


def test_lei_s_regulariser_counts_tokens_and_changes():
    network = small("lei")
    one = Instance("a", (), ("d",), (("w3", "w4", "w5", "w6"),))
    batch = pad_readings([get_reading(network, one)], torch.device("cpu"))
    chosen = torch.tensor([[True, False, False, True, False]])
    # two of four tokens, and two changes at three places between neighbours, of weight 2
    assert float(network.compute_regulariser(batch, chosen)[0]) == pytest.approx(0.5 + 2 * 2 / 3)


def test_rationales_train_only_where_there_are_any():
    network = small("lei")
    one = Instance("a", (), ("d",), (("w3", "w4", "w5", "w6"),))
    reading = get_reading(network, one)
    batch = pad_readings([reading, reading], torch.device("cpu"))
    from eraser_hub.systems.networks.lei import compute_rationale_loss

    gold = np.array([True, False, False, True, False])
    logits = torch.linspace(-1, 1, 10, dtype=torch.float64).view(2, 5)
    both = compute_rationale_loss(logits, batch, [TaughtReading(reading, 0, gold), TaughtReading(reading, 1)])
    p = torch.sigmoid(logits[0, :4])
    expected = -(torch.log(p[0]) + torch.log(1 - p[1]) + torch.log(1 - p[2]) + torch.log(p[3])) / 4
    assert float(both) == pytest.approx(float(expected), rel=1e-12)


def test_the_lstm_s_attention_is_paper_002_s():
    network = small("lstm", apart=True)
    one = some_texts()[0]
    batch = pad_readings([get_reading(network, one)], torch.device("cpu"))
    weights = network.attention(network.embedder(batch), batch)[0].detach()
    vectors = network.embedder(batch)
    states = [
        reader.cells[0](part)[0][0]
        for reader, part in zip(network.readers, (vectors[:, :5], vectors[:, 5:]), strict=True)
    ]
    joined = network.joined(torch.cat([part[-1] for part in states])[None])[0]
    for part, found in zip(states, (weights[:5], weights[5:]), strict=True):
        products = part @ joined
        torch.testing.assert_close(found, (products / products.sum()).detach(), rtol=1e-9, atol=1e-12)


def test_blind_selections_say_nothing_of_the_text_and_have_all_sizes():
    from eraser_hub.systems.networks.lei import draw_random_selections

    network = small("lei-unsupervised")
    batch = pad_readings([get_reading(network, one) for one in some_texts()], torch.device("cpu")).repeat(500)
    torch.manual_seed(0)
    chosen = draw_random_selections(batch)
    assert not (chosen & ~batch.erasable).any()
    shares = (chosen.sum(dim=1) / batch.erasable.sum(dim=1))[2::4]  # of the text of one word and of the others
    assert set(shares.tolist()) == {0.0, 1.0}
    whole = chosen[1::4, :9].sum(dim=1)  # of nine words any number is as likely: one tenth of 500, sd 6.7
    assert all(abs(int(count) - 50) < 5 * 6.7 for count in torch.bincount(whole, minlength=10))


@pytest.mark.parametrize("supervision", [0.0, 1.0])
def test_an_encoder_of_blind_selections_does_not_hear_the_generator(supervision):
    """Until the free epochs are over labels train the encoder alone; after them the generator learns from its loss."""
    network = small("lei")
    network.hyper = replace(network.hyper, random_selections=True, free_epochs=1, supervision=supervision)
    readings = [get_reading(network, one) for one in some_texts()]
    batch, examples = (
        pad_readings(readings, torch.device("cpu")),
        [TaughtReading(one, number % 2) for number, one in enumerate(readings)],
    )
    for network.epoch in (0, 1):
        network.zero_grad()
        torch.manual_seed(0)
        network.loss(batch, examples).backward()
        moved = {
            name: weights.grad is not None and bool(weights.grad.any()) for name, weights in network.named_parameters()
        }
        assert any(moved[name] for name in moved if name.startswith("generator")) is (network.epoch == 1)
        assert moved["reader.cells.0.weight_ih_l0"]


def test_entropy_keeps_a_generator_from_certainty():
    """Its gradient leads a logit towards 0, by p (1 - p) times the logit; without it a certain generator stays."""
    from eraser_hub.systems.networks.lei import compute_entropy

    logits = torch.tensor([-6.0, -1.0, 0.0, 3.0], dtype=torch.float64, requires_grad=True)
    values = compute_entropy(logits)
    p = torch.sigmoid(logits)
    torch.testing.assert_close(values, -p * p.log() - (1 - p) * (1 - p).log(), rtol=1e-9, atol=1e-12)
    (gradient,) = torch.autograd.grad(values.sum(), logits)
    torch.testing.assert_close(gradient, -logits * p * (1 - p), rtol=1e-9, atol=1e-12)


def test_a_draw_is_judged_by_the_others():
    from eraser_hub.systems.networks.lei import compute_others_mean

    assert compute_others_mean(torch.tensor([[1.0, 2.0, 6.0]])).tolist() == [[4.0, 3.5, 1.5]]
    assert compute_others_mean(torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 9.0]])).tolist() == [
        [4, 6.5],
        [3, 5.5],
        [2, 3],
    ]
    assert compute_others_mean(torch.tensor([[5.0]])).tolist() == [[0.0]]
