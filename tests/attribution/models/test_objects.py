"""Objects with ``predict_proba`` are asked token lists; see also tests/attribution/test_engine.py."""

from __future__ import annotations

import numpy as np
import pytest

from eraser_hub.attribution import Instance, open_model
from eraser_hub.attribution.instances import make_text_instance

from ..conftest import CountingModel

pytestmark = pytest.mark.unit


class Apart:
    """Takes queries by themselves, and keeps what it was asked."""

    classes_ = np.array([0, 1])
    pad_token = "[PAD]"

    def predict_proba(self, token_lists, queries=None):
        self.asked = token_lists, queries
        return [[0.25, 0.75]] * len(token_lists)


def cut(model, instance, kept, erase="remove"):
    return [unit for (unit,) in model.cut(model.read(instance), np.array(kept, bool), erase)]


def test_a_query_is_given_apart_where_it_is_asked_for():
    model = open_model(Apart(), uses_query=True)
    assert model.label_names == ("0", "1")
    model.proba([["a", "b"], []], queries=["is it", "so"])
    assert model.model.asked == ([["a", "b"], []], [["is", "it"], ["so"]])
    one = Instance("x", ("is", "it"), ("d",), (("a", "b", "c"),))
    model.forward([unit.data for unit in cut(model, one, [[1, 0, 1], [0, 0, 0]], "pad")])
    assert model.model.asked[0] == [["a", "[PAD]", "c"], ["[PAD]", "[PAD]", "[PAD]"]]


def test_equal_inputs_have_equal_keys_in_all_texts():
    model = open_model(CountingModel(), uses_query=True)
    long, short = make_text_instance("x", "a b a c"), make_text_instance("y", "b a")
    keys = [
        unit.key for unit in cut(model, long, [[1, 1, 0, 0], [0, 1, 1, 0], [1, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]])
    ]
    assert keys[1] == cut(model, short, [[1, 1]])[0].key and keys[2] == keys[3]
    assert keys[4] == cut(model, short, [[0, 0]])[0].key and len(set(keys)) == 4
    asked, empty = make_text_instance("z", "b a", "q"), make_text_instance("w", [""])
    assert len({*keys, cut(model, asked, [[1, 1]])[0].key, cut(model, empty, [[1]])[0].key}) == 6
