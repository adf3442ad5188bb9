"""What gradient methods refuse; their values: test_conformance.py, the golden files and models/."""

from __future__ import annotations

from eraser_hub.attribution.method import METHODS
from eraser_hub.attribution.methods._captum import Embedded
from eraser_hub.attribution.models.inputs import Notes
from eraser_hub.papers.presets import Choices

from ...needs import late, needs
from ...refusals import refused

pytestmark = needs("torch", "captum")
torch = late("torch")


def test_deeplift_refuses_a_module_that_is_used_twice():
    bend, vectors = torch.nn.ReLU(), torch.ones(2, 5, 3, dtype=torch.float64)
    network = torch.nn.Sequential(bend, torch.nn.Linear(3, 3).double(), bend)
    more = {"more": (), "baseline": None, "rows": 7, "choices": Choices(), "notes": Notes(), "description": "a network"}
    inputs = Embedded(lambda given: network(given).sum(dim=(1, 2)), vectors, network=network, **more)
    with refused("deeplift is not possible with a network", argument="method"):
        METHODS.make("deeplift").attribute(inputs)
