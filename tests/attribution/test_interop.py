"""What other libraries say of a text's pieces, as a score for each of its tokens.

Objects here have the attributes that each library documents; captum's and lime's own results are read too.
"""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from eraser_hub import token_scores, write_scores
from eraser_hub.attribution.given import open_given
from eraser_hub.attribution.instances import Instance

from ..refusals import refused
from .conftest import byte_tokenizer

TEXT = "A fine film plays \nwith the zzz plot"
PIECES = ["[CLS]", "a", "fine", "film", "play", "##s", "with", "the", "[UNK]", "plot", "[SEP]"]
WORDS = [*PIECES[:4], "play ##s", *PIECES[6:8], "", *PIECES[9:]]
SHAP = np.array(["", "A ", "fine ", "film ", "play", "s \n", "with ", "the ", "zzz ", "plot", ""], dtype=object)
VALUES = np.array([9.0, 1, 2, 3, 4, 0.5, 6, 7, 8, -1, 9])
BOTH = np.stack([-VALUES, VALUES])  # of two labels
EXPECTED = [1.0, 2, 3, 4.5, 6, 7, 8, -1]
PAIRS = list(zip(PIECES, VALUES.tolist(), strict=True))


def ferret() -> Any:
    return SimpleNamespace(text=TEXT, tokens=PIECES, scores=VALUES, explainer="LIME", target=1)


def interpreto(attributions: Any = BOTH, elements: Any = PIECES, classes: Any = None) -> Any:
    return SimpleNamespace(attributions=attributions, elements=elements, classes=classes)


def shap(values: Any = BOTH.T, data: Any = SHAP, output_names: Any = ("NEG", "POS")) -> Any:
    return SimpleNamespace(values=values, base_values=np.zeros(2), data=data, output_names=output_names)


@pytest.mark.parametrize(
    ("result", "label"),
    [
        (ferret(), None),
        ([interpreto(classes=np.array([1, 0]))], 0),
        (interpreto(VALUES[None]), None),
        (interpreto(np.array([[*VALUES[:4], 4.5, *VALUES[6:]]]), WORDS), None),
        (shap(), "POS"),
        (shap(BOTH.T[None], (SHAP,)), "POS"),
        (SimpleNamespace(word_attributions=VALUES, raw_input_ids=PIECES, pred_class=1), None),  # captum's record
        (PAIRS, None),
        ({"NEG": [("a", 1.0)], "POS": PAIRS}, "POS"),
    ],
)
def test_each_library_s_result(result: Any, label: Any) -> None:
    assert token_scores(result, TEXT, label=label) == EXPECTED
    assert token_scores(result, [TEXT.split()[:3], TEXT.split()[3:]], label=label) == EXPECTED


@pytest.mark.parametrize(
    ("pieces", "text", "expected"),
    [
        ("<s> ▁Caf é ▁au ▁lait </s>", "Café au lait", [2 + 4, 8, 16]),
        ("<s> C af Ã©  Ġau Ġla it </s>", "Café au lait", [2 + 4 + 8, 32, 64 + 128]),
        ("caf ##e au lait", "Café au lait", [1 + 2, 4, 8]),
        ("好 坏 ##电", "好 坏电", [1, 2 + 4]),
        ("[ sep ] ##", "[SEP] ##", [1 + 2 + 4, 8]),
        # without a spelling a piece takes what is free; special tokens never do
        ("[UNK] b", "a b", [1, 2]),
        ("[CLS] [UNK] b [SEP]", "a b", [2, 4]),
    ],
)
def test_sub_words_of_every_spelling_are_summed(pieces: str, text: str, expected: list[float]) -> None:
    scores = [(piece, float(2**at)) for at, piece in enumerate(pieces.split(" "))]
    assert token_scores(scores, text) == expected


@pytest.mark.parametrize(
    ("result", "more", "mentions"),
    [
        (shap(), {}, ("'NEG', 'POS'",)),
        (shap(), {"label": 2}, ("'NEG', 'POS'", "2")),
        (interpreto(VALUES[None], classes=[1]), {"label": 0}, ("(1)", "0")),
        (ferret(), {"text": "another text"}, ("'fine'", "'nothertext'")),
        (ferret(), {"text": TEXT + " and more"}, ("2", "token 8, 'and'", "missing=0.0")),
        (np.zeros(5), {}, ("tokenizer", "5")),
        (SimpleNamespace(tokens=PIECES, scores=[1.0]), {}, ("11", "1")),
        (None, {}, ("captum, ferret", "'NoneType'")),
    ],
)
def test_what_does_not_fit_is_refused(result: Any, more: dict[str, Any], mentions: tuple[str, ...]) -> None:
    with refused(*mentions):
        token_scores(result, more.pop("text", TEXT), **more)


def test_one_number_a_token_needs_no_tokenizer() -> None:
    words = TEXT.split()
    numbers = [float(at) for at in range(len(words))]
    assert token_scores(numbers, TEXT) == numbers == token_scores(np.array(numbers), words)
    assert token_scores([9.0, *numbers], TEXT, query="why") == numbers == token_scores(numbers, TEXT, query="why")
    assert token_scores([0.5], "film") == [0.5]


def test_what_a_result_does_not_hold_is_said_or_asked_for() -> None:
    assert token_scores(ferret(), TEXT + " and more", missing=0.0) == [*EXPECTED, 0.0, 0.0]
    assert token_scores([("a", 1.0)], ["a", "\x00"]) == [1.0, 0.0]
    assert token_scores([("a b", 1.0)], "a b") == [0.5, 0.5]
    assert token_scores([], "") == []
    pairs = [("[CLS]", 9.0), ("is", 9.0), ("it", 9.0), ("[SEP]", 9.0), ("it", 1.0), ("[SEP]", 9.0)]
    assert token_scores(pairs, "it", query="Is it") == [1.0]  # what is before the text is left out


def test_numbers_alone_are_placed_by_the_tokenizer(tokenizer: Any) -> None:
    torch = pytest.importorskip("torch")
    text = "a fine film plays"
    whole = torch.tensor([9.0, 1, 2, 3, 4, 0.5, 9], requires_grad=True)
    vectors = whole.detach()[:, None] * torch.tensor([0.25, 0.75])
    forms = (whole, whole[None], (whole[None],), whole[1:-1].bfloat16(), vectors[None], (vectors[None],))
    for values in (*forms, torch.cat([whole, torch.zeros(3)])):  # padded
        assert token_scores(values, text, tokenizer=tokenizer) == [1, 2, 3, 4.5]
    with refused("token 2, 'film'"):
        token_scores(torch.ones(4), text, tokenizer=tokenizer)
    assert token_scores(torch.ones(4), text, tokenizer=tokenizer, missing=0.0) == [1, 1, 0, 0]
    pair = torch.tensor([9.0, 9, 9, 1, 2, 3, 4, 5, 9])
    assert token_scores(pair, text, query="it", tokenizer=tokenizer) == [1, 2, 3, 9]


@pytest.mark.parametrize("text", ["ab cd", "ab\ncd", "ab  cd", "ab \n cd", " ab cd\n"])
def test_blanks_and_line_ends_have_sub_words_of_their_own(text: str) -> None:
    pytest.importorskip("transformers")
    tokenizer = byte_tokenizer(prefix=False)
    pieces = tokenizer.convert_ids_to_tokens(tokenizer(text)["input_ids"])
    scores = np.array([1.0 if piece.strip("Ġ") in ("c", "d") else 0.0 for piece in pieces])
    shown = {"data": np.array(pieces, dtype=object), "output_names": None}
    record = SimpleNamespace(word_attributions=scores, raw_input_ids=pieces)
    for result in (scores, np.append(scores, [0.0, 0.0]), shap(scores, **shown), record):
        assert token_scores(result, text, tokenizer=tokenizer) == [0.0, 2.0]
    joined = len(tokenizer("ab cd")["input_ids"])
    if len(pieces) == joined:
        assert token_scores(scores, ["ab", "cd"], tokenizer=tokenizer) == [0.0, 2.0]
    else:
        with refused(f"{joined} sub-words", f"found {len(pieces)}", "the string that the model read"):
            token_scores(scores, ["ab", "cd"], tokenizer=tokenizer)


@pytest.mark.parametrize("bow", [True, False])
def test_lime_s_own(bow: bool) -> None:
    lime = pytest.importorskip("lime.lime_text")
    text = "good film with a good plot , bad end"

    def answers(texts: list[str]) -> np.ndarray:
        return np.array([[1 - one.count("good") / 4, one.count("good") / 4] for one in texts])

    explainer = lime.LimeTextExplainer(class_names=["NEG", "POS"], bow=bow, random_state=0)
    result = explainer.explain_instance(text, answers, num_samples=200, labels=(0, 1))
    scores = token_scores(result, text, label="POS")
    assert sorted(range(9), key=lambda at: -scores[at])[:2] == [0, 4] and scores[6] == 0
    assert token_scores(result, text, label=0)[0] < 0
    with refused("token 1, 'plot'"):
        token_scores(result, "good plot", label=1)


def test_written_scores_are_what_explain_takes(tmp_path: Path) -> None:
    documents = [{"docid": "d", "text": "a b"}, {"docid": "e", "text": ""}, {"docid": "f", "text": "c"}]
    row, pair = {"annotation_id": "x", "documents": documents}, {"id": 7, "tokens": [["a", "b"], ["c"]]}
    path = tmp_path / "scores.jsonl"
    assert write_scores(path, [row, pair], [[1, 2.5, 3], np.array([1.0, 2, 3])]) == 2
    found = open_given(path, "scores").attach(Instance("x", (), ("d", "e", "f"), (("a", "b"), (), ("c",))))
    assert found.scores == ((1.0, 2.5), (), (3.0,))
    second = json.loads(path.read_text().splitlines()[1])
    assert [part["docid"] for part in second["rationales"]] == ["sequence_0", "sequence_1"]
    for scores, field, mentions in (
        ([[1, 2]], "scores", ("3", "2")),
        ([1.0], "scores", ("3", "1.0")),
        ([[1, 2, float("inf")]], "soft_rationale_predictions", ("'f'",)),
        ([["a", "b", "c"]], "scores", ()),
        ([], None, ()),
        ([[1, 2, 3]] * 2, None, ("1",)),
    ):
        with refused(*mentions, field=field):
            write_scores(path, [row], scores)
    with refused("'s.csv'"):
        write_scores(tmp_path / "s.csv", [], [])
    assert len(path.read_text().splitlines()) == 2
