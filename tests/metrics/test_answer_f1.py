"""F1 of answers in English words and Chinese characters."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eraser_hub.metrics.answer_f1 import answer_f1, detect_language, split_chinese_units, split_english_words

from ..refusals import refused

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("predicted", "golds", "expected"),
    [
        ("north", "north", 1),
        ("The North!", "north", 1),
        ("in the north", "the north of France", 2 * 1 / (2 + 3)),  # "in north" against "north of france"
        ("to be or not to be", "to be", 2 * 2 / 8),  # words count as often as they stand in both
        ("south", ["north", "the south"], 1),
        ("", "", 1),
        ("", [], 1),
        ("the", "", 1),
        ("north", "", 0),
        ("", "north", 0),
        ("北京市", "北京", 4 / 5),
        ("市北京", "北京，市", 4 / 6),  # the longest common run: 北京
        ("2008年", "2008 年。", 1),
        ("NBA篮球", "nba", 2 / 4),
        ("12", "北京", 0),
    ],
)
def test_by_hand(predicted, golds, expected):
    assert answer_f1(predicted, golds) == pytest.approx(expected)


def test_units_and_language():
    assert split_english_words("A dog's, an  owl; the U.S.") == ["dogs", "owl", "us"]
    assert split_chinese_units("在2008年，NBA ok！") == ["在", "2008", "年", "nba", "ok"]
    assert detect_language("a", "b") == "en" and detect_language("a", "是") == "zh"
    with refused("option-value", "en, zh", "'fr'", field="language"):
        answer_f1("a", "b", "fr")


@given(
    st.text(alphabet="abc 北京市,。", max_size=12),
    st.text(alphabet="abc 北京市,。", max_size=12),
    st.sampled_from(["en", "zh", None]),
)
@settings(max_examples=150, deadline=None, derandomize=True)
def test_range_symmetry_and_identity(one, two, language):
    score = answer_f1(one, two, language)
    assert 0 <= score <= 1
    assert score == answer_f1(two, one, language)
    assert answer_f1(one, one, language) == 1
    assert answer_f1(one, [two, one], language) == 1
