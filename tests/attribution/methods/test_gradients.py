"""Gradient methods on networks whose scores are known, and against captum's own calls."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from eraser_hub.attribution.method import METHODS
from eraser_hub.attribution.methods._captum import Embedded
from eraser_hub.attribution.models.units import Notes
from eraser_hub.papers.presets import Choices

from ...needs import late, needs
from ...refusals import refused

pytestmark = needs("torch", "captum")
torch = late("torch")
PLACES, WIDTH = 5, 3


@pytest.fixture
def weights():
    return torch.from_numpy(np.random.default_rng(1).normal(size=(PLACES, WIDTH)))


def embedded(output, network=None, inputs=2, **more):
    random = np.random.default_rng(0)
    vectors = torch.from_numpy(random.normal(size=(inputs, PLACES, WIDTH)))
    facts = {"rows": 7, "choices": Choices(), "notes": Notes(), "description": "a network"}
    given = {"more": (), "baseline": None, **more}
    return Embedded(output, vectors, network=network or torch.nn.Identity(), **facts, **given)


def scores(method, inputs):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return METHODS.make(method).attribute(inputs).detach().numpy()


def test_scores_of_a_logistic_p_have_their_closed_form(weights):
    """The input times its weights, p (1 - p) times, or of the whole difference of p along the line."""

    def p(vectors, slopes=weights):
        return torch.sigmoid((vectors * slopes).sum(dim=(1, 2)) - 0.3)

    inputs = embedded(p)
    full, empty = p(inputs.vectors).numpy()[:, None], p(torch.zeros(1, PLACES, WIDTH)).numpy()
    products = (inputs.vectors * weights).sum(dim=-1).numpy()
    slope = full * (1 - full)
    close = {"rtol": 0, "atol": 1e-6}
    np.testing.assert_allclose(scores("input-x-gradient", inputs), slope * products, **close)
    np.testing.assert_allclose(scores("simple-gradient", inputs), np.abs(slope * products), **close)
    np.testing.assert_allclose(scores("gradient", inputs), slope * weights.norm(dim=-1).numpy(), **close)
    along = (full - empty) * products / products.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(scores("integrated-gradients(steps=60)", inputs), along, **close)
    assert 0 <= inputs.notes.maxima["largest convergence delta"] < 1e-6
    # further arguments go along with each input, and a baseline moves the line's beginning
    moved = embedded(p, more=(weights.expand(2, -1, -1),), baseline=inputs.vectors / 2)
    half = p(inputs.vectors / 2).numpy()[:, None]
    along = (full - half) * products / products.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(scores("integrated-gradients(steps=60)", moved), along, **close)


def test_deeplift_refuses_a_module_that_is_used_twice():
    bend = torch.nn.ReLU()
    network = torch.nn.Sequential(bend, torch.nn.Linear(WIDTH, WIDTH).double(), bend)
    inputs = embedded(lambda vectors: network(vectors).sum(dim=(1, 2)), network)
    with refused("deeplift is not possible with a network", argument="method"):
        scores("deeplift", inputs)
