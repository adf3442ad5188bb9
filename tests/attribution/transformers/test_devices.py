"""Where a network runs: devices, precisions, pinned transfers, and memory that runs out."""

from __future__ import annotations

import numpy as np
import pytest

from eraser_hub.attribution import runner
from eraser_hub.attribution.adapter import align_labels, is_out_of_memory
from eraser_hub.attribution.engine import explain_instances
from eraser_hub.attribution.erasure import full, only, without
from eraser_hub.attribution.open import open_model
from eraser_hub.attribution.runner import Runner
from eraser_hub.attribution.settings import ExplainSettings
from eraser_hub.attribution.transformers import devices
from eraser_hub.attribution.transformers.sequence_model import SequenceModel

from ...needs import needs
from ...refusals import refused
from ..conftest import CLOSE, instance

pytestmark = needs("torch", "transformers")


@pytest.fixture(autouse=True, scope="module")
def _late_imports() -> None:
    global torch
    import torch


DOCUMENT = "the good plays - with bad 好电影 scene"
HALVES = ("bfloat16", "float16")


def opened(network, tokenizer, **more) -> SequenceModel:
    adapter = SequenceModel(network, tokenizer, **more)
    align_labels(adapter, ("NEG", "POS"))
    return adapter


def soft(found):
    return np.concatenate([part["soft_rationale_predictions"] for part in found["rationales"]])


@pytest.mark.parametrize("kind", HALVES)
def test_a_half_precision_checkpoint_computes_in_float32(network, tokenizer, tmp_path, kind):
    network().to(getattr(torch, kind)).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    adapter = open_model(tmp_path)
    assert {weights.dtype for weights in adapter.network.parameters()} == {torch.float32}
    align_labels(adapter, ("NEG", "POS"))
    list(
        explain_instances(
            adapter, [instance(DOCUMENT)], ExplainSettings(method="integrated-gradients", steps=60, bins=())
        )
    )
    assert adapter.notes.maxima["largest convergence delta"] < 1e-3


@pytest.mark.parametrize("precision", HALVES)
def test_half_precision_keeps_the_heads_digits(network, tokenizer, precision):
    kind = getattr(torch, precision)
    plain, half = network(), opened(network(), tokenizer, precision=precision)
    assert half.half is kind and opened(network(), tokenizer).half is None
    assert any(f"passes in {precision}" in words and "`precision` float32" in words for words in half.notes.messages)
    documents = [instance("good plays film" + " the" * n, str(n)) for n in range(12)]
    windows = [half.encode(one).view(np.ones(len(one.tokens), dtype=bool), "remove").data[0] for one in documents]
    inputs = half.tensors(windows)
    logits = half.logits(inputs)
    assert logits.dtype == torch.float32
    assert not torch.equal(logits, logits.to(kind).float())
    with torch.inference_mode(), torch.autocast("cpu", dtype=kind):
        encoder_output = plain.bert(**inputs).pooler_output.float()
    with torch.inference_mode():
        np.testing.assert_array_equal(logits, plain.classifier(encoder_output))
    for one, found in zip(
        documents, explain_instances(half, documents, ExplainSettings(method="occlusion")), strict=True
    ):
        assert abs(sum(found["classification_scores"].values()) - 1) < 1e-12 and len(soft(found)) == len(one.tokens)


@pytest.mark.parametrize("method", ["gradient", "input-x-gradient", "integrated-gradients", "attention"])
def test_what_looks_inside_is_not_rounded_to_half_precision(network, tokenizer, method):
    one = instance(DOCUMENT)
    found = []
    for precision in ("float32", *HALVES):
        adapter = opened(network(), tokenizer, precision=precision)
        encoded = [adapter.encode(one)]
        found.append(adapter.scores(method, encoded, [1], 20)[0])
    for half in found[1:]:
        np.testing.assert_array_equal(half, found[0])


@pytest.mark.parametrize("name", ["gpu", "cuda", "cuda:99", "meta", "", "xpu"])
def test_a_device_that_is_not_there(name):
    if name.startswith("cuda") and torch.cuda.is_available() and name != "cuda:99":
        pytest.skip("it is there")
    with refused("device", repr(name)):
        devices.find_device(name)
    assert devices.find_device("cpu").type == "cpu"


def test_an_unknown_precision():
    with refused("precision", "auto, float32, bfloat16, float16", "'int8'"):
        devices.half_type("int8", torch.device("cpu"))
    types = {precision: devices.half_type(precision, torch.device("cpu")) for precision in devices.PRECISIONS}
    assert types == {"auto": None, "float32": None, "bfloat16": torch.bfloat16, "float16": torch.float16}


def test_numbers_beyond_float16_are_an_error(network, tokenizer):
    wide = network()
    with torch.no_grad():
        wide.bert.pooler.dense.bias.fill_(1e6)
        wide.bert.encoder.layer[0].output.dense.weight.fill_(1e6)
    half = opened(wide, tokenizer, precision="float16")
    with refused("1 of 1", instance="one"):
        list(explain_instances(half, [instance(DOCUMENT)], ExplainSettings(method="occlusion")))


def test_where_a_device_has_no_float64_the_processor_computes_in_it():
    class OfAMac:
        device = torch.device("mps")

        def cpu(self):
            return torch.tensor([0.1])

    assert devices.to_float64(OfAMac()).dtype == torch.float64
    assert devices.to_float64(torch.tensor([0.1])).dtype == torch.float64


@pytest.mark.parametrize("age", ["new", "old"])
def test_bf16_that_a_gpu_only_imitates_is_not_chosen(monkeypatch, age):
    from contextlib import nullcontext

    def new(including_emulation=True):
        return including_emulation

    def old():
        return True

    asked = []
    monkeypatch.setattr(torch.cuda, "device", lambda device: asked.append(device) or nullcontext())
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", new if age == "new" else old)
    assert devices.half_type("auto", torch.device("cuda:1")) is (torch.bfloat16 if age == "old" else None)
    assert asked == [torch.device("cuda:1")]  # the card in use is asked, not the first


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


@pytest.mark.parametrize("method", ["occlusion", "gradient", "input-x-gradient", "integrated-gradients", "attention"])
def test_batches_that_run_out_of_memory_are_halved(network, tokenizer, method):
    documents = [instance("good plays film" + " the" * n, str(n)) for n in range(5)]
    settings = ExplainSettings(method=method, bins=(), steps=6)
    whole = [soft(found) for found in explain_instances(opened(network().double(), tokenizer), documents, settings)]
    narrow, sizes = tight(network().double(), 3)
    adapter = opened(narrow, tokenizer)
    found = [soft(one) for one in explain_instances(adapter, documents, settings)]
    assert max(sizes) <= 3
    for one, other in zip(found, whole, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=CLOSE)
    assert any("out of memory" in words and "halved to" in words for words in adapter.notes.messages)
    with refused("window"):
        list(explain_instances(opened(tight(network(), 0)[0], tokenizer), documents, settings))


@pytest.mark.parametrize(
    ("error", "memory"),
    [
        (MemoryError(), True),
        (lambda: torch.cuda.OutOfMemoryError("CUDA out of memory."), True),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate(handle)"), True),
        (RuntimeError("[enforce fail at alloc_cpu.cpp:117] DefaultCPUAllocator: not enough memory: you tried"), True),
        (RuntimeError("MPS backend out of memory"), True),
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied"), False),
    ],
)
def test_what_counts_as_out_of_memory(error, memory):
    assert is_out_of_memory(error() if callable(error) else error) is memory


def test_a_network_that_does_not_fit(network, tokenizer, monkeypatch):
    broken = network()

    def to(*_):
        raise torch.cuda.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(broken, "to", to)
    with refused("`device` cpu"):
        SequenceModel(broken, tokenizer)


def test_short_inputs_keep_large_batches_after_long_ones_ran_out(network, tokenizer, monkeypatch):
    adapter = opened(network(), tokenizer)
    start, sizes = adapter.forward, []

    def limited(units):
        if sum(view.sizes[number] for view, number in units) > 100:
            raise MemoryError
        sizes.append(len(units))
        return start(units)

    monkeypatch.setattr(adapter, "forward", limited)
    encoded = [adapter.encode(instance("good bad film the " * 7 + f"{'scene ' * n}")) for n in range(3)]
    few = [only(0, [place, place + 1]) for place in range(27)] + [only(0, [place]) for place in range(27)]
    found = Runner(adapter, "remove", 8).run(encoded, [*map(full, range(3)), *few])
    assert len(found) == 57 and np.allclose(found.sum(axis=1), 1)
    assert sizes[0] == 4 < max(sizes)  # rows follow the inputs' length, not the first failure's number


def test_memory_is_given_back_when_the_failed_pass_is_gone(network, tokenizer, monkeypatch):
    """Inside ``except`` the error's frames still hold the failed batch's tensors: nothing could be freed there."""
    import sys

    adapter = opened(network(), tokenizer)
    start, handled = adapter.forward, []

    def limited(units):
        if len(units) > 2:
            raise MemoryError
        return start(units)

    monkeypatch.setattr(adapter, "forward", limited)
    monkeypatch.setattr("eraser_hub.attribution.runner.release_memory", lambda: handled.append(sys.exc_info()[0]))
    list(explain_instances(adapter, [instance(DOCUMENT)], ExplainSettings(method="occlusion")))
    assert handled and set(handled) == {None}


def test_a_batch_is_started_before_the_one_before_it_is_read(network, tokenizer, monkeypatch):
    """On a GPU that keeps it busy; whatever the order, every result belongs to its input."""
    adapter = opened(network().double(), tokenizer)
    encoded = [adapter.encode(instance("good plays bad film " * 3))]
    asked = [without(0, list(range(place))) for place in range(12)]
    expected = Runner(adapter, "remove", 32).run(encoded, asked)
    start, read, order = adapter.forward, runner.to_array, []
    monkeypatch.setattr(adapter, "forward", lambda units: order.append("start") or start(units))
    monkeypatch.setattr(runner, "to_array", lambda value: order.append("read") or read(value))
    monkeypatch.setattr(adapter, "rows_for", lambda size, rows: 4)
    np.testing.assert_allclose(Runner(adapter, "remove", 32).run(encoded, asked), expected, rtol=0, atol=CLOSE)
    assert order == ["start", "start", "read", "start", "read", "read"]
