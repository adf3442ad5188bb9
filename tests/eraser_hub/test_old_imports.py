"""Imports that 2.0 documents still work: ``eraser_hub.explain`` was a folder."""

from __future__ import annotations

import importlib

import pytest

import eraser_hub.attribution as attribution


@pytest.mark.parametrize("name", ["ExplainSettings", "Instance", "explain_instances", "explain_texts", "open_model"])
def test_names_of_explain(name):
    assert getattr(importlib.import_module("eraser_hub.explain"), name) is getattr(attribution, name)


@pytest.mark.parametrize(
    ("module", "names"), [("adapter", ["Adapter", "Encoded", "View"]), ("instances", ["Instance"])]
)
def test_modules_of_explain(module, names):
    old = importlib.import_module(f"eraser_hub.explain.{module}")
    new = importlib.import_module(f"eraser_hub.attribution.{module}")
    assert [getattr(old, name) for name in names] == [getattr(new, name) for name in names]


def test_an_adapter_of_2_0_names_its_methods():
    """There it said so in ``supports``, by names alone."""
    from eraser_hub.attribution.method import supports
    from eraser_hub.explain import explain_texts
    from eraser_hub.explain.adapter import Adapter, Encoded, View

    class Lengths(Encoded):
        def __init__(self, instance):
            self.instance = instance

        def view(self, kept, erase):
            return View((bytes([int(kept.sum())]),), (int(kept.sum()),), int(kept.sum()))

    class Long(Adapter):
        label_names = ("no", "yes")
        description = "a model of lengths"

        def encode(self, instance):
            return Lengths(instance)

        def forward(self, units):
            import numpy as np

            p = np.array([view.data / (1 + view.data) for view, _ in units])
            return np.stack([1 - p, p], axis=1)

        def supports(self, method):
            return method == "coefficients" or super().supports(method)

        def scores(self, method, encoded, targets, steps):
            import numpy as np

            return [np.ones(len(one.instance.tokens)) for one in encoded]

    assert supports(Long(), "coefficients") and supports(Long(), "lime") and not supports(Long(), "gradient")
    for method in ("coefficients", "occlusion"):
        (row,) = explain_texts(Long(), ["a long film"], method=method)
        assert row["classification"] == "yes"
