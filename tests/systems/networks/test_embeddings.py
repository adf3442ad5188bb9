"""Word vectors from files: GloVe, word2vec and gensim's, and those that are damaged."""

from __future__ import annotations

import pickle
import sys
from types import ModuleType

import numpy as np
import pytest

from tests.attribution.conftest import told

from ...needs import needs
from ...refusals import refused

pytestmark = needs("torch")


@pytest.fixture(autouse=True, scope="module")
def _late_imports() -> None:
    global read_embeddings, UNKNOWN, VOCABULARY
    from eraser_hub.systems.networks.embedders import read_embeddings
    from eraser_hub.systems.networks.readings import UNKNOWN, Vocabulary

    VOCABULARY = Vocabulary(["good", "film", "zebra", "plot"], lowercase=True)


def table(path, words=None):
    return read_embeddings(path, VOCABULARY, 1, (words if words is not None else []).append)


@pytest.mark.parametrize("first", ["", "4 3\n"])
def test_text_vectors_of_the_corpus_words(tmp_path, first):
    path, words = tmp_path / "glove.txt", []
    path.write_text(first + "the 0 0 0\ngood 1 2.5 -3\n. . . 4 5 6\nfilm 7e-1 8 9 \ngood 9 9 9\n", "utf-8")
    rows = table(path, words)
    assert rows.shape == (7, 3) and rows.dtype == np.float32
    assert rows[VOCABULARY.numbers(["Good", "film"])].tolist() == [[1, 2.5, -3], [np.float32(0.7), 8, 9]]
    assert not rows[0].any() and rows[VOCABULARY.numbers(["zebra"])].any()
    assert len(words) == 1 and told(words, "2 of 4", "glove.txt", "3 dimensions")
    assert (table(path) == rows).all()
    assert VOCABULARY.numbers(["unheard"]).tolist() == [UNKNOWN]


@pytest.mark.parametrize(
    ("content", "mentions", "line"),
    [
        ("", (), None),
        ("good\n", ("good",), 1),
        ("the 1 2\ngood 1\n", ("2", "1"), 2),
        ("the 1 2\ngood 1 x\n", ("2",), 2),
        ("the 1 2\nfilm 1 nan\n", ("2",), 2),
        ("the 1 2\na 3 4\n", ("embeddings", "4"), None),
    ],
)
def test_damaged_text_vectors(tmp_path, content, mentions, line):
    path = tmp_path / "v.txt"
    path.write_text(content, "utf-8")
    with refused(*mentions, file=path) as caught:
        table(path)
    assert caught.first.line == line


@pytest.fixture
def keyed(monkeypatch):
    """gensim's class as far as its pickles go: attributes, and large arrays in a file of their own."""
    module = ModuleType("gensim.models.keyedvectors")

    class KeyedVectors:
        pass

    KeyedVectors.__module__, KeyedVectors.__qualname__ = module.__name__, "KeyedVectors"
    module.KeyedVectors = KeyedVectors
    for name in ("gensim", "gensim.models", module.__name__):
        monkeypatch.setitem(sys.modules, name, module)
    return KeyedVectors


@pytest.mark.parametrize("beside", [True, False])
def test_gensim_s_files(tmp_path, keyed, beside):
    stored, path = keyed(), tmp_path / "v.kv"
    vectors = np.arange(6, dtype=np.float32).reshape(3, 2)
    stored.index_to_key, stored.vectors = ["the", "film", "plot"], None if beside else vectors
    path.write_bytes(pickle.dumps(stored, protocol=4))
    if beside:
        np.save(tmp_path / "v.kv.vectors.npy", vectors)
    assert table(path)[VOCABULARY.numbers(["film", "plot"])].tolist() == [[2, 3], [4, 5]]


class Evil:
    def __reduce__(self):
        return (print, ("run",))


def test_gensim_s_files_run_no_code(tmp_path, keyed, capsys):
    path = tmp_path / "v.kv"
    path.write_bytes(pickle.dumps(Evil()))
    with refused("embeddings", "builtins.print", file=path):
        table(path)
    assert capsys.readouterr().out == ""
    stored = keyed()
    stored.index_to_key, stored.vectors = ["the"], np.zeros((2, 2))
    path.write_bytes(pickle.dumps(stored))
    with refused("embeddings", file=path):
        table(path)
