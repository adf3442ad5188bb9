"""Networks of the papers: by golden values and finite differences; nothing leaks that was erased or not selected."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eraser_hub.attribution import Instance, build_settings, explain_instances
from eraser_hub.systems.system import SYSTEMS
from eraser_hub.systems.training import make_system

from ..needs import late, needs
from ..refusals import refused

pytestmark = needs("torch", "transformers", "captum", "skops")
torch, functional, readings = late("torch"), late("torch.nn.functional"), late("eraser_hub.systems.readings")
lei, networks = late("eraser_hub.systems.lei"), late("eraser_hub.systems.networks")
embedders = late("eraser_hub.systems.embedders")


# of the systems with one network
NAMES = ("bert-lstm", "bilstm", "glove-lstm", "lehman", "lei", "lei-unsupervised", "lstm", "match-lstm")
WORDS = [f"w{number}" for number in range(2, 64)]
# central differences of step h in float64: h² of the third derivative and 2^-52 / h of rounding, both near 1e-10
STEP, CLOSE = 1e-5, {"rtol": 1e-6, "atol": 1e-8}
TEXTS = [(5, 3), (9, 1), (1, 4), (7, 2)]  # words of the document and of the query


def small(name, apart=None, answers=False):
    """An untrained network in float64, its weights large enough to matter."""
    system = make_system(name, {"hidden_size": 4, "dropout": 0.0, **({"encoder": "x"} if name == "bert-lstm" else {})})
    torch.manual_seed(0)
    vocabulary = readings.Vocabulary(WORDS, False)
    shape = networks.Shape(2, system.reads_apart if apart is None else apart, answers)
    network = system.build(lambda: embedders.WordEmbedder(vocabulary, 3), shape)
    with torch.no_grad():
        for weights in network.parameters():
            weights.mul_(2)
    return network.double().eval()


def test_rare_words_share_a_vector_where_labels_alone_are_learned_from():
    built = readings.Vocabulary.build([("Good", "film"), ("good",)], True, min_count=2)
    assert built.numbers(["good", "GOOD", "film"]).tolist() == [3, 3, readings.UNKNOWN]
    assert (SYSTEMS["lei-unsupervised"].min_count, SYSTEMS["lei"].min_count) == (2, 1)


def words_of(random, number):
    return tuple(random.choice(WORDS, number).tolist())


def read(network, one):
    return readings.read_instance(one, network.embedder.lexicon, bool(one.query), network.shape.apart).reading


def pad(network, *instances):
    return readings.pad_readings([read(network, one) for one in instances], torch.device("cpu"))


def make_texts(seed=0):
    random = np.random.default_rng(seed)
    return [
        Instance(str(at), words_of(random, asked), ("d",), (words_of(random, size),))
        for at, (size, asked) in enumerate(TEXTS)
    ]


def slope(weights, at, value):
    """The central difference of a value by one number of the weights."""
    values = []
    with torch.no_grad():
        for step in (STEP, -STEP):
            weights[at] += step
            values.append(float(value()))
            weights[at] -= step
    return (values[0] - values[1]) / (2 * STEP)


CASES = [*((name, False) for name in NAMES), ("match-lstm", True)]


@pytest.mark.parametrize(("name", "answers"), CASES)
def test_a_text_s_output_does_not_depend_on_those_beside_it(name, answers):
    network, texts = small(name, answers=answers), [*make_texts(), Instance("empty", ("w2",), ("d",), ((),))]
    batch = pad(network, *texts)
    for one, row in zip(texts, torch.softmax(network(batch), dim=-1), strict=True):
        alone = torch.softmax(network(pad(network, one))[0], dim=-1)
        torch.testing.assert_close(row[..., : alone.shape[-1]], alone, rtol=1e-12, atol=1e-12)
        assert not row[..., alone.shape[-1] :].any() and torch.isfinite(row).all()
    if network.attends:
        assert not network.attention(network.embedder(batch), batch)[~batch.visible].any()


@pytest.mark.parametrize(("name", "answers"), CASES)
def test_gradients_are_those_of_finite_differences(name, answers):
    """Of -log p of the first output, by a number of each of the weights and by twelve of the words' vectors."""
    network = small(name, answers=answers)
    batch = pad(network, *make_texts())
    vectors = network.embedder(batch).detach().requires_grad_()

    def loss():
        return -torch.log_softmax(network.logits(vectors, batch), dim=-1)[..., 0].mean()

    loss().backward()
    random = np.random.default_rng(1)
    asked = [(weights, 1) for label, weights in network.named_parameters() if label.split(".")[0] != "embedder"]
    for weights, count in [*asked, (vectors, 12)]:
        if weights.grad is None:  # a hard selection has no gradient: that is REINFORCE's
            assert any(weights is one for one in network.generator.parameters())
            continue
        for at in zip(*(random.integers(0, size, count) for size in weights.shape), strict=True):
            np.testing.assert_allclose(float(weights.grad[at]), slope(weights, at, loss), **CLOSE)
    assert not vectors.grad[~batch.inside].any()  # padding has no part in it


@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize("both", [False, True])
@settings(max_examples=20, deadline=None)
@given(lengths=st.lists(st.integers(0, 7), min_size=1, max_size=5))
def test_a_recurrent_layer_is_torch_s_over_packed_sequences(gated, both, lengths):
    torch.manual_seed(0)
    ours = networks.Recurrent(3, 4, both=both, gated=gated).double()
    theirs = (torch.nn.GRU if gated else torch.nn.LSTM)(3, 4, batch_first=True, bidirectional=both).double()
    with torch.no_grad():
        for number, cells in enumerate(ours.cells):
            for name, weights in cells.named_parameters():
                getattr(theirs, name + "_reverse" * number).copy_(weights)
    sizes, vectors = torch.tensor(lengths), torch.randn(len(lengths), 7, 3, dtype=torch.float64)
    vectors = (vectors * (torch.arange(7) < sizes[:, None])[..., None]).requires_grad_()
    states, last = ours(vectors, sizes)
    packing = torch.nn.utils.rnn
    packed = packing.pack_padded_sequence(vectors, sizes.clamp(min=1), batch_first=True, enforce_sorted=False)
    expected, ends = theirs(packed)
    ends = ends[0] if isinstance(ends, tuple) else ends
    whole, _ = packing.pad_packed_sequence(expected, batch_first=True, total_length=7)
    torch.testing.assert_close(states, whole, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(last, ends.transpose(0, 1).flatten(1), rtol=1e-12, atol=1e-12)
    gradients = [torch.autograd.grad((one**2).sum(), vectors, retain_graph=True)[0] for one in (states, whole)]
    torch.testing.assert_close(*gradients, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("erase", ["remove", "mask", "pad"])
def test_erased_words_do_not_matter(name, erase):
    network, random = small(name), np.random.default_rng(4)
    one = Instance("a", ("w9", "w8"), ("d",), (words_of(random, 10),))
    kept, outputs = random.random(10) < 0.5, []
    for trial in range(3):
        pairs = zip(one.documents[0], words_of(random, 10), kept, strict=True)
        words = tuple(other if trial and not stays else word for word, other, stays in pairs)
        reading = read(network, replace(one, documents=(words,))).erase(kept, erase)
        outputs.append(network(readings.pad_readings([reading], torch.device("cpu"))))
    assert all(torch.equal(outputs[0], other) for other in outputs[1:])


def test_the_lstm_s_attention_is_paper_002_s():
    network = small("lstm")
    batch = pad(network, make_texts()[0])
    vectors = network.embedder(batch)
    weights = network.attention(vectors, batch)[0].detach()
    parts = zip(network.readers, (vectors[:, :5], vectors[:, 5:]), strict=True)
    states = [reader.cells[0](part)[0][0] for reader, part in parts]
    joined = network.joined(torch.cat([part[-1] for part in states])[None])[0]
    for part, found in zip(states, (weights[:5], weights[5:]), strict=True):
        products = part @ joined
        torch.testing.assert_close(found, (products / products.sum()).detach(), rtol=1e-9, atol=1e-12)


# --- Lei et al. --------------------------------------------------------------------------------------------------

FOUR = Instance("a", (), ("d",), (("w3", "w4", "w5", "w6"),))


def test_reinforce_has_the_gradient_of_the_expected_cost():
    """All 2^n selections of a short text: E[cost(z) grad log p(z)] against finite differences of E[cost(z)]."""
    network = small("lei-unsupervised")
    batch, label = pad(network, FOUR), torch.tensor([1])
    choices = torch.tensor(np.array(np.meshgrid(*[[0, 1]] * 4)).reshape(4, -1).T).bool()
    rows = []
    for choice in choices:
        chosen = torch.cat([choice, torch.tensor([False])])[None]
        cost = functional.cross_entropy(network.classify_selection(batch, chosen), label, reduction="none")
        rows.append((cost + network.settings.sparsity * network.compute_regulariser(batch, chosen)).detach())
    cost, weights = torch.cat(rows), network.generator.head.weight

    def log_probabilities():
        logits = network.generator(batch)[:, :4].expand(16, 4)
        return -functional.binary_cross_entropy_with_logits(logits, choices.double(), reduction="none").sum(dim=1)

    logs = log_probabilities()
    (estimate,) = torch.autograd.grad((logs.exp().detach() * cost * logs).sum(), weights)
    expected = slope(weights, (0, 0), lambda: (log_probabilities().exp() * cost).sum())
    np.testing.assert_allclose(float(estimate[0, 0]), expected, **CLOSE)


@pytest.mark.parametrize("name", ["lei", "lei-unsupervised"])
def test_the_encoder_sees_nothing_that_was_not_selected(name):
    network, random = small(name), np.random.default_rng(3)
    one = Instance("a", ("w9",), ("d",), (words_of(random, 12),))
    chosen, outputs = random.random(12) < 0.4, []
    for trial in range(5):
        pairs = zip(one.documents[0], words_of(random, 12), chosen, strict=True)
        words = tuple(other if trial and not stays else word for word, other, stays in pairs)
        batch = pad(network, replace(one, documents=(words,)))
        flags = torch.zeros_like(batch.erasable)
        flags[0, :12] = torch.from_numpy(chosen)
        outputs.append(network.classify_selection(batch, flags))
    assert all(torch.equal(outputs[0], other) for other in outputs[1:])
    # neither does their number matter
    batch = pad(network, replace(one, documents=(tuple(np.asarray(one.documents[0])[chosen].tolist()),)))
    torch.testing.assert_close(network.classify_selection(batch, batch.erasable), outputs[0], rtol=1e-12, atol=1e-12)


def test_the_regulariser_counts_tokens_and_changes_and_rationales_train_where_there_are_any():
    network = small("lei")
    batch, chosen = pad(network, FOUR), torch.tensor([[True, False, False, True, False]])
    # two of four tokens, and two changes at three places between neighbours, of weight 2
    assert float(network.compute_regulariser(batch, chosen)[0]) == pytest.approx(0.5 + 2 * 2 / 3)
    reading, gold = read(network, FOUR), np.array([True, False, False, True, False])
    logits = torch.linspace(-1, 1, 10, dtype=torch.float64).view(2, 5)
    examples = [readings.Example(reading, 0, gold), readings.Example(reading, 1)]
    p = torch.sigmoid(logits[0, :4])
    expected = -(torch.log(p[0]) + torch.log(1 - p[1]) + torch.log(1 - p[2]) + torch.log(p[3])) / 4
    assert float(lei.compute_rationale_loss(logits, pad(network, FOUR, FOUR), examples)) == pytest.approx(
        float(expected)
    )


def test_lei_has_no_scores_but_a_rationale_of_its_own(train_planted, planted):
    sizes = "embedding_size=4, hidden_size=4, max_steps=1"
    model, (one,) = train_planted(f"lei-unsupervised({sizes})", 9), planted("test", 1)[0][:1]
    with refused("lei-unsupervised m", "random", argument="method"):
        list(explain_instances(model, [one], build_settings(method="attention")))
    (own,), (found,) = model.select([model.read(one)]), explain_instances(model, [one], build_settings(selects=True))
    spans = found["rationales"][0]["hard_rationale_predictions"]
    assert [at for span in spans for at in range(span["start_token"], span["end_token"])] == own.positions.tolist()
