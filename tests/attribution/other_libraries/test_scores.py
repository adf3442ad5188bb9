"""What other libraries say of a text's pieces, as a score for each of its tokens.

Objects here have the attributes that each library documents; of an installed library its own results are read too.
"""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import eraser_hub
from eraser_hub import token_scores, write_scores
from eraser_hub.attribution import Instance, explain_texts
from eraser_hub.attribution.given import open_given
from tests.attribution.conftest import CountingModel

from ...refusals import refused

TEXT = "A fine film plays \nwith the zzz plot"
PIECES = ["[CLS]", "a", "fine", "film", "play", "##s", "with", "the", "[UNK]", "plot", "[SEP]"]
VALUES = [9.0, 1, 2, 3, 4, 0.5, 6, 7, 8, -1, 9]
EXPECTED = [1.0, 2, 3, 4.5, 6, 7, 8, -1]


def two(values: list[float]) -> np.ndarray:
    """Values of two labels, the first one's the other way round, shape (pieces, labels)."""
    return np.stack([-np.array(values), np.array(values)], axis=1)


def ferret() -> Any:
    return SimpleNamespace(text=TEXT, tokens=PIECES, scores=np.array(VALUES), explainer="LIME", target=1)


def inseq(**more: Any) -> Any:
    source = [SimpleNamespace(token=piece, id=1) for piece in PIECES]
    values = {"source": source, "target": source[:2], "source_attributions": two(VALUES) * [0, 1], "attr_pos_start": 1}
    sequence = SimpleNamespace(**{**values, "target_attributions": None, **more})
    return SimpleNamespace(sequence_attributions=[sequence])


def inseq_of_a_prompt() -> Any:
    """A model that continues its prompt: what lies ahead of a step is not a number."""
    target = [SimpleNamespace(token=piece, id=1) for piece in (*PIECES, "good")]
    values = np.array([*VALUES, np.nan])[:, None, None] * np.array([0.6, 0.8])
    return inseq(target=target, source_attributions=None, target_attributions=np.abs(values), attr_pos_start=11)


def interpreto(**more: Any) -> Any:
    values = {"attributions": two(VALUES).T, "elements": PIECES, "targets": np.array([0, 1]), "classes": None}
    return SimpleNamespace(**{**values, **more})


def shap_pieces() -> list[str]:
    return ["", "A ", "fine ", "film ", "play", "s \n", "with ", "the ", "zzz ", "plot", ""]


def shap(**more: Any) -> Any:
    values = {"values": two(VALUES), "base_values": np.zeros(2), "data": np.array(shap_pieces(), dtype=object)}
    return SimpleNamespace(**{**values, "output_names": ["NEG", "POS"], **more})


def captum_record() -> Any:
    return SimpleNamespace(word_attributions=np.array(VALUES), raw_input_ids=PIECES, pred_class=1)


@pytest.mark.parametrize(
    ("result", "more"),
    [
        (ferret(), {}),
        ([ferret()], {}),
        (inseq(), {}),
        (inseq().sequence_attributions[0], {}),
        (interpreto(), {"label": 1}),
        ([interpreto(classes=np.array([0, 1]))], {"label": 1}),
        (interpreto(attributions=np.array([VALUES])), {}),
        (
            interpreto(
                elements=[*PIECES[:4], "play ##s", *PIECES[6:8], "", *PIECES[9:]],
                attributions=np.array([[*VALUES[:4], 4.5, *VALUES[6:]]]),
            ),
            {},
        ),
        (shap(), {"label": "POS"}),
        (shap(), {"label": 1}),
        (shap(values=np.array(VALUES), output_names="POS"), {}),
        (shap(values=two(VALUES)[None], data=(np.array(shap_pieces(), dtype=object),)), {"label": "POS"}),
        (captum_record(), {}),
        (SimpleNamespace(seq_attr=np.array(VALUES), input_tokens=PIECES, output_tokens=["yes"]), {}),
        (list(zip(PIECES, VALUES, strict=True)), {}),
        ({"NEG": [("a", 1.0)], "POS": list(zip(PIECES, VALUES, strict=True))}, {"label": "POS"}),
        (SimpleNamespace(word_attributions=list(zip(PIECES, VALUES, strict=True))), {}),
    ],
)
def test_each_library_s_result(result: Any, more: dict[str, Any]) -> None:
    assert token_scores(result, TEXT, **more) == EXPECTED
    assert token_scores(result, [TEXT.split()[:3], TEXT.split()[3:]], **more) == EXPECTED


def test_a_prompt_s_attribution_has_the_length_of_its_vectors() -> None:
    assert token_scores(inseq_of_a_prompt(), TEXT) == pytest.approx(np.abs(EXPECTED), rel=1e-15)


@pytest.mark.parametrize(
    ("pieces", "text", "expected"),
    [
        (["<s>", "▁Caf", "é", "▁au", "▁lait", "</s>"], "Café au lait", [2 + 4, 8, 16]),
        (["<s>", "C", "af", "Ã©", "Ġau", "Ġla", "it", "</s>"], "Café au lait", [2 + 4 + 8, 16, 32 + 64]),
        (["C", "af", "Ã", "©", "Ġau", "Ġlait"], "Café au lait", [1 + 2 + 4 + 8, 16, 32]),
        (["caf", "##e", "au", "lait"], "Café au lait", [1 + 2, 4, 8]),
        (["cafe</w>", "au</w>", "lait</w>"], "Café au lait", [1, 2, 4]),
        (["好", "坏", "##电"], "好 坏电", [1, 2 + 4]),
        (["[", "sep", "]", "##"], "[SEP] ##", [1 + 2 + 4, 8]),
        (["don", "'", "t"], "don't", [1 + 2 + 4]),
        # without a spelling a piece takes what is free
        (["[UNK]", "b"], "a b", [1, 2]),
        (["[UNK]", "[UNK]"], "a b", [1, 2]),
        (["a", "[UNK]"], "a b", [1, 2]),
        (["a b"], "a b", [0.5, 0.5]),
    ],
)
def test_sub_words_of_every_spelling_are_summed(pieces: list[str], text: str, expected: list[float]) -> None:
    scores = [(piece, float(2**at)) for at, piece in enumerate(pieces)]
    assert token_scores(scores, text) == expected


@given(st.data())
def test_the_tokens_sum_is_the_pieces_sum(data: st.DataObject) -> None:
    """Whatever the cut: every piece's number goes to the tokens that it touches, whole."""
    tokens = data.draw(st.lists(st.text("ab-é好", min_size=1, max_size=4), min_size=1, max_size=6))
    raw = " ".join(tokens)
    cuts = sorted(data.draw(st.sets(st.integers(1, len(raw)), max_size=8)))
    pieces = [raw[start:end] for start, end in zip([0, *cuts], [*cuts, len(raw)], strict=True)]
    values = [float(2**at) for at in range(len(pieces))]
    scores = token_scores(list(zip(pieces, values, strict=True)), tokens)
    # shared numbers are thirds and fifths: each sum is right to the last digits of its largest term
    expected = sum(value for piece, value in zip(pieces, values, strict=True) if piece.strip())
    assert len(scores) == len(tokens) and sum(scores) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("result", "more", "mentions"),
    [
        (shap(), {}, ("('NEG', 'POS')",)),
        (shap(), {"label": "MAYBE"}, ("('NEG', 'POS')", "'MAYBE'")),
        (shap(), {"label": 2}, ("('NEG', 'POS')", "2")),
        ([ferret(), ferret()], {}, ("2", "result[0]")),
        (SimpleNamespace(sequence_attributions=[1, 2]), {}, ("2", ".sequence_attributions")),
        (ferret(), {"text": "another text"}, ("'fine'", "'nothertext'")),
        (ferret(), {"text": TEXT + " and more"}, ("2", "token 8, 'and'", "missing=0.0")),
        (np.zeros(5), {}, ("tokenizer", "5")),
        (SimpleNamespace(tokens=PIECES, scores=[1.0]), {}, ("11", "1")),
        (list(zip(PIECES, [np.nan] * 11, strict=True)), {}, ("11",)),
        ("a string", {}, ("captum, ferret", "'str'")),
        (None, {}, ("captum, ferret", "'NoneType'")),
        (np.zeros((2, 3, 4)), {}, ("'ndarray' (2, 3, 4)",)),
    ],
)
def test_what_does_not_fit_is_refused(result: Any, more: dict[str, Any], mentions: tuple[str, ...]) -> None:
    text = more.pop("text", TEXT)
    with refused(*mentions):
        token_scores(result, text, **more)


def test_one_number_a_token_needs_no_tokenizer() -> None:
    words = TEXT.split(" ")
    numbers = [float(at) for at in range(len(words))]
    assert token_scores(numbers, TEXT) == numbers == token_scores(np.array(numbers), words)
    assert token_scores([9.0, *numbers], TEXT, query="why") == numbers
    assert token_scores(numbers, TEXT, query="why") == numbers


def test_what_a_result_does_not_hold_is_said_or_asked_for() -> None:
    assert token_scores(ferret(), TEXT + " and more", missing=0.0) == [*EXPECTED, 0.0, 0.0]
    assert token_scores([("a", 1.0)], ["a", "\x00"]) == [1.0, 0.0]
    assert token_scores([], "") == []
    pairs = [("[CLS]", 9.0), ("is", 9.0), ("it", 9.0), ("[SEP]", 9.0), ("it", 1.0), ("[SEP]", 9.0)]
    assert token_scores(pairs, "it", query="Is it") == [1.0]  # what is before the text is left out


def test_numbers_alone_are_placed_by_the_tokenizer(tokenizer: Any) -> None:
    torch = pytest.importorskip("torch")
    text, words = "a fine film plays", ["a", "fine", "film", "play", "##s"]
    whole = torch.tensor([9.0, 1, 2, 3, 4, 0.5, 9], requires_grad=True)
    assert token_scores(whole, text, tokenizer=tokenizer) == [1, 2, 3, 4.5]
    assert token_scores(whole[None], text, tokenizer=tokenizer) == [1, 2, 3, 4.5]
    assert token_scores(whole[1:-1].bfloat16(), text, tokenizer=tokenizer) == [1, 2, 3, 4.5]
    vectors = whole.detach()[:, None] * torch.tensor([0.25, 0.75])
    assert token_scores(vectors[None], text, tokenizer=tokenizer) == [1, 2, 3, 4.5]
    pad_windows = torch.cat([whole, torch.zeros(3)])
    assert token_scores(pad_windows, text, tokenizer=tokenizer) == [1, 2, 3, 4.5]
    with refused("token 2, 'film'"):
        token_scores(torch.ones(4), text, tokenizer=tokenizer)
    assert token_scores(torch.ones(4), text, tokenizer=tokenizer, missing=0.0) == [1, 1, 0, 0]
    pair = torch.tensor([9.0, 9, 9, *range(1, len(words) + 1), 9])
    assert token_scores(pair, text, query="it", tokenizer=tokenizer) == [1, 2, 3, 9]


@pytest.fixture(scope="module")
def by_bytes() -> Any:
    """A byte-level tokenizer, which has sub-words for blanks and line ends, and one for a blank and the letter c."""
    transformers = pytest.importorskip("transformers")
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    names = ["<s>", "</s>", "<pad>", *sorted(pre_tokenizers.ByteLevel.alphabet()), "Ġc"]
    made = Tokenizer(models.BPE({name: at for at, name in enumerate(names)}, [("Ġ", "c")]))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.post_processor = processors.RobertaProcessing(("</s>", 1), ("<s>", 0), trim_offsets=True)
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, bos_token="<s>", eos_token="</s>", pad_token="<pad>"
    )


@pytest.mark.parametrize("text", ["ab cd", "ab\ncd", "ab  cd", "ab \n cd", " ab cd\n"])
def test_blanks_and_line_ends_have_sub_words_of_their_own(by_bytes: Any, text: str) -> None:
    pieces = by_bytes.convert_ids_to_tokens(by_bytes(text)["input_ids"])
    scores = np.array([1.0 if piece in ("c", "d", "Ġc") else 0.0 for piece in pieces])
    expected = [0.0, scores.sum()]
    assert token_scores(scores, text, tokenizer=by_bytes) == expected
    assert token_scores(np.append(scores, [0.0, 0.0]), text, tokenizer=by_bytes) == expected, "padded"
    explained = SimpleNamespace(values=scores, base_values=0.0, data=np.array(pieces, dtype=object))
    assert token_scores(explained, text) == expected
    record = SimpleNamespace(word_attributions=scores, raw_input_ids=pieces, pred_class=1)
    assert token_scores(record, text) == expected
    joined = len(by_bytes("ab cd")["input_ids"])
    if len(pieces) == joined:
        assert token_scores(scores, ["ab", "cd"], tokenizer=by_bytes) == expected
    else:
        with refused(f"{joined} sub-words", f"found {len(pieces)}", "the string that the model read"):
            token_scores(scores, ["ab", "cd"], tokenizer=by_bytes)


def test_captum_s_own(network: Any, tokenizer: Any) -> None:
    captum = pytest.importorskip("captum.attr")
    model, encoded = network(), tokenizer(TEXT.lower(), return_tensors="pt")
    method = captum.LayerIntegratedGradients(
        lambda ids, visible: model(input_ids=ids, attention_mask=visible).logits.softmax(-1),
        model.get_input_embeddings(),
    )
    values = method.attribute(
        encoded["input_ids"], additional_forward_args=(encoded["attention_mask"],), target=1, n_steps=5
    )
    scores = token_scores(values, TEXT.lower(), tokenizer=tokenizer)
    places = values[0].detach().double().sum(-1)
    pieces = [place for place, owner in enumerate(encoded.word_ids()) if owner is not None]
    assert len(scores) == 8 and sum(scores) == pytest.approx(float(places[pieces].sum()), rel=2**-40, abs=2**-40)


def test_lime_s_own() -> None:
    lime = pytest.importorskip("lime.lime_text")
    text = "good film with a good plot , bad end"

    def answers(texts: list[str]) -> np.ndarray:
        return np.array([[1 - one.count("good") / 4, one.count("good") / 4] for one in texts])

    for bow in (True, False):
        explainer = lime.LimeTextExplainer(class_names=["NEG", "POS"], bow=bow, random_state=0)
        result = explainer.explain_instance(text, answers, num_samples=200, labels=(0, 1))
        scores = token_scores(result, text, label="POS")
        assert sorted(range(9), key=lambda at: -scores[at])[:2] == [0, 4] and scores[6] == 0
        assert token_scores(result, text, label=0)[0] < 0
        with refused("(0, 1)"):
            token_scores(result, text)
        with refused("token 1, 'plot'"):
            token_scores(result, "good plot", label=1)


@pytest.mark.parametrize("kind", ["list", "numpy", "torch"])
def test_scores_of_any_kind_are_erased(kind: str) -> None:
    texts, rows = ["good film bad", "the plot end"], [[0.5, 0.25, -1.0], [0.0, 1.0, 0.25]]
    scores: Any = np.array(rows)
    if kind == "torch":
        scores = pytest.importorskip("torch").tensor(rows, requires_grad=True)
    expected = explain_texts(CountingModel(), texts, scores=rows, kd=0.3)
    assert explain_texts(CountingModel(), texts, scores=rows if kind == "list" else scores, kd=0.3) == expected
    assert expected[1]["rationales"][0]["hard_rationale_predictions"] == [{"start_token": 1, "end_token": 2}]


def test_written_scores_are_what_explain_takes(tmp_path: Path) -> None:
    row = {
        "annotation_id": "x",
        "documents": [{"docid": "d", "text": "a b"}, {"docid": "e", "text": ""}, {"docid": "f", "text": "c"}],
    }
    pair = {"id": 7, "tokens": [["a", "b"], ["c"]]}
    path = tmp_path / "scores.jsonl"
    assert write_scores(path, [row, pair], [[1, 2.5, 3], np.array([1.0, 2, 3])]) == 2
    given_scores = ExternalScores(path)
    one = given_scores.attach(Instance("x", (), ("d", "e", "f"), (("a", "b"), (), ("c",))))
    assert one.scores == ((1.0, 2.5), (), (3.0,))
    first = json.loads(path.read_text().splitlines()[1])
    assert [part["docid"] for part in first["rationales"]] == ["sequence_0", "sequence_1"]
    for scores, where, mentions in (
        ([[1, 2]], {"instance": "x", "field": "scores"}, ("3", "(2,)")),
        ([[1, 2, float("inf")]], {"instance": "x", "field": "soft_rationale_predictions"}, ("'f'",)),
        ([["a", "b", "c"]], {"instance": "x", "field": "scores"}, ()),
        ([], {"instance": "x"}, ()),
        ([[1, 2, 3]] * 2, {}, ("1",)),
    ):
        with refused(*mentions, **where):
            write_scores(path, [row], scores)
    with refused("'s.csv'"):
        write_scores(tmp_path / "s.csv", [], [])
    assert eraser_hub.tokens(row) == [["a", "b"], [], ["c"]] and len(path.read_text().splitlines()) == 2
