"""Word vectors from files, GloVe's and word2vec's, and those that are damaged."""

from __future__ import annotations

import numpy as np
import pytest

from ..needs import late, needs
from ..refusals import refused

pytestmark = needs("torch", "transformers")
embedders = late("eraser_hub.systems.embedders")


@pytest.fixture
def vocabulary():
    from eraser_hub.systems.readings import Vocabulary

    return Vocabulary(["good", "film", "zebra", "plot"], lowercase=True)


@pytest.mark.parametrize("first", ["", "4 3\n"])
def test_text_vectors_of_the_corpus_words(vocabulary, tmp_path, caplog, first):
    path = tmp_path / "glove.txt"
    path.write_text(first + "the 0 0 0\ngood 1 2.5 -3\n. . . 4 5 6\nfilm 7e-1 8 9 \ngood 9 9 9\n", "utf-8")
    rows = embedders.read_embeddings(path, vocabulary, 1)
    assert rows.shape == (7, 3) and rows.dtype == np.float32
    assert rows[vocabulary.numbers(["Good", "film"])].tolist() == [[1, 2.5, -3], [np.float32(0.7), 8, 9]]
    assert not rows[0].any() and rows[vocabulary.numbers(["zebra"])].any()
    assert "2 of 4 words of the corpus in glove.txt, 3 dimensions" in caplog.messages[0]
    assert (embedders.read_embeddings(path, vocabulary, 1) == rows).all()
    assert vocabulary.numbers(["unheard"]).tolist() == [1]


@pytest.mark.parametrize(
    ("content", "mentions", "line"),
    [
        ("", (), None),
        ("the 1 2\ngood 1\n", ("2", "1"), 2),
        ("the 1 2\ngood 1 x\n", ("2",), 2),
        ("the 1 2\na 3 4\n", ("4",), None),
    ],
)
def test_damaged_text_vectors(vocabulary, tmp_path, content, mentions, line):
    path = tmp_path / "v.txt"
    path.write_text(content, "utf-8")
    with refused(*mentions, file=path) as caught:
        embedders.read_embeddings(path, vocabulary, 1)
    assert caught.first.line == line
