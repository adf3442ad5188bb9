"""Models are opened by what they are; what is broken, hostile or nowhere is one clear error, soon."""

from __future__ import annotations

import numpy as np
import pytest

from eraser_hub.attribution import Instance, open_model
from eraser_hub.attribution.instances import make_text_instance
from eraser_hub.attribution.models import opening
from eraser_hub.attribution.models.opening import find_trainings, read_model_settings, split_model

from ...refusals import refused
from ..conftest import CountingModel

pytestmark = pytest.mark.unit
DEEP = "[" * 100_000 + "]" * 100_000


@pytest.mark.parametrize(
    ("content", "field"),
    [
        ("[]", None),
        (DEEP, None),
        ('{"window": "many"}', "window"),
        ('{"joiner": 7}', "joiner"),
        ('{"kind": "os.system"}', "kind"),
        ('{"uses_query": 1}', "uses_query"),
    ],
)
def test_the_facts_of_a_model(tmp_path, content, field):
    (tmp_path / "model.json").write_text(content)
    with refused(file=tmp_path / "model.json", field=field):
        open_model(tmp_path)


def test_an_immense_file_of_facts(tmp_path):
    with open(tmp_path / "model.json", "wb") as file:
        file.truncate(1 << 40)  # holes: they take no room
    with refused(file="model.json"):
        open_model(tmp_path)


@pytest.mark.parametrize("name", ["./models/none", "a/b/c", "none.skops", "~/none(window=9)"])
def test_a_path_that_is_nowhere(name):
    with refused("no such", file=split_model(name)[0]):
        open_model(name)


@pytest.mark.parametrize(
    "name", ["me:secret@org/m", "https://me:secret@host/m", "http:/me:secret@host/m(window=9)", "m?token=secret"]
)
def test_a_password_is_refused_and_not_repeated(name):
    for call in (open_model, split_model, read_model_settings, find_trainings):
        with refused(argument="model") as caught:
            call(name)
        assert "secret" not in str(caught.error) and caught.error.file is None


def test_the_name_of_a_system_is_no_model_yet():
    with refused("eraser-hub train", file="logistic-regression"):
        open_model("logistic-regression")


def test_what_is_no_model(tmp_path):
    (tmp_path / "m.txt").write_text("x")
    (tmp_path / "stopped" / ".training").mkdir(parents=True)
    (tmp_path / "stopped" / ".training" / "saving").touch()
    for path, mentions in (
        (".", ("model.skops", "config.json")),
        ("m.txt", (".skops", ".pkl")),
        ("stopped", ("stopped",)),
    ):
        with refused(*mentions, file=tmp_path / path):
            open_model(tmp_path / path)
    network = type("Network", (), {"save_pretrained": lambda self: None})()
    for thing, mention in ((object(), "object"), (len, "label_names"), (network, "tokenizer"), ((1, 2), "tuple")):
        with refused("predict_proba", mention, argument="model"):
            open_model(thing)


@pytest.mark.parametrize(
    ("settings", "mentions"),
    [
        ("windo=9", ("did you mean 'window'?",)),
        ("window=7", ("window", "of at least 8", "7")),
        ("task=translation", ("task", "auto, classification", "'translation'")),
        ("window=9, window=9", ("once",)),
        ("9", ("NAME(SETTING=VALUE, ..)",)),
    ],
)
def test_wrong_settings(settings, mentions):
    with refused(*mentions, argument="model"):
        open_model(f"some/model({settings})")


def test_settings_of_a_string(tmp_path):
    found = read_model_settings("m(labels=NEG, label_words=[a=1, 2], window=9, query=True, device=0, prompt=1)")
    assert (found.labels, found.label_words, found.window, found.query) == (("NEG",), ("a=1", "2"), 9, True)
    assert (found.device, found.prompt) == ("0", "1")
    odd = tmp_path / "m(window=9)"  # a file's name may have brackets, too
    odd.mkdir()
    assert split_model(str(odd)) == (str(odd), {})


def test_the_query_is_shown_as_stated_else_as_asked_else_as_trained(tmp_path, monkeypatch):
    class Plugin:
        @staticmethod
        def opens(place, facts):
            return (place / "mine").is_file()

        @staticmethod
        def open(place, facts, settings):
            seen.append(settings)
            return open_model(CountingModel())

    seen: list[opening.Opening] = []
    monkeypatch.setattr(opening, "entry_points", lambda group: [type("Point", (), {"load": lambda self: Plugin})()])
    (tmp_path / "mine").touch()
    (tmp_path / "model.json").write_text('{"uses_query": true}')
    model = open_model(f"{tmp_path}(query=False, window=9)", uses_query=True, config="movies")
    assert model.label_names == ("NEG", "POS")
    open_model(tmp_path, uses_query=False)
    open_model(tmp_path)
    assert [one.query for one in seen] == [False, False, True]
    assert (seen[0].window, seen[0].config, seen[1].window) == (9, "movies", None)


def test_a_model_is_returned_with_the_labels_that_it_has():
    model = open_model(CountingModel(), label_names=("POS", "NEG"))
    assert open_model(model) is model and model.label_names == ("POS", "NEG") and model.order.tolist() == [1, 0]
    assert open_model(model, label_names=("NEG", "POS")).order.tolist() == [0, 1]


@pytest.mark.parametrize("setting", ["prompt=p", "label_score=mean", "dtype=bfloat16"])
def test_settings_of_prompts_beside_another_model(setting):
    name, value = setting.split("=")
    with refused("prompted", "CountingModel", argument=name):
        open_model(CountingModel(), **{name: value})


def test_trainings(tmp_path):
    for name in ("seed-2", "seed-10", "seed-x", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "model.json").write_text("{}")
    folders = [(2, f"{tmp_path}/seed-2"), (10, f"{tmp_path}/seed-10")]
    assert find_trainings(tmp_path) == folders and find_trainings(tmp_path / "seed-2") == find_trainings("org/m") == []
    assert find_trainings(f"{tmp_path}(window=9)") == [(seed, f"{folder}(window=9)") for seed, folder in folders]
    (tmp_path / "seed-2" / ".training").mkdir()
    with refused("stopped", file=tmp_path / "seed-2"):
        find_trainings(tmp_path)


# --- objects with predict_proba ---


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
