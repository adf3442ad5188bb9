"""Tokens, mask and sub-words of a dataset's row, which the package's own names give."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pytest

import eraser_hub
from eraser_hub.conversion import get_dataset

from ..refusals import refused
from .conftest import byte_tokenizer

ROW = {
    "annotation_id": "one",
    "documents": [{"docid": "d1", "text": "a fine film\n\nwith  a dull end"}, {"docid": "d2", "text": ""}],
    "evidences": [
        [{"docid": "d1", "start_token": 1, "end_token": 3}, {"docid": "d1", "start_token": 2, "end_token": 4}],
        [{"docid": "d2", "start_token": 0, "end_token": 0}],
    ],
}
PAIR = {"id": "p", "tokens": [["Is", "it"], ["a", "film"]], "rationale_ids": [[[0]], [[1], [0, 1]]], "label": None}
TEXT = {"id": "t", "tokens": ["a", "fine film"], "rationale_mask": [False, True]}
LONG = {**ROW, "query": "Is it ? - Is it ? -"}


@pytest.mark.parametrize(
    ("row", "tokens", "mask"),
    [
        (ROW, [["a", "fine", "film", "with", "a", "dull", "end"], []], [[0, 1, 1, 1, 0, 0, 0], []]),
        (PAIR, [["Is", "it"], ["a", "film"]], [[1, 0], [1, 1]]),
        (TEXT, [["a", "fine film"]], [[0, 1]]),
    ],
)
def test_tokens_and_mask(row: Any, tokens: Any, mask: Any) -> None:
    dataset = datasets.Dataset.from_list([row])
    for form in (row, dataset.to_pandas().iloc[0].to_dict(), dataset.with_format("torch")[0]):
        assert eraser_hub.tokens(form) == tokens and eraser_hub.mask(form) == mask
    with refused("Dataset", "dataset[0]", argument="row"):
        eraser_hub.tokens(dataset)


def test_rows_of_another_kind_are_refused() -> None:
    with refused(instance="p"):
        eraser_hub.mask({**PAIR, "rationale_ids": None})
    with refused("['text']"):
        eraser_hub.tokens({"text": "a film"})


@pytest.mark.parametrize("row", [{**ROW, "query": "Is it ?"}, ROW, PAIR, TEXT])
@pytest.mark.parametrize("stride", [0, 1])
@pytest.mark.parametrize("manner", ["bert", "xlnet", "llama"])
def test_windows_hold_every_sub_word_with_its_token_and_flag(
    tokenizer: Any, row: Any, stride: int, manner: str
) -> None:
    tokenizer, longest = (tokenizer, 10) if manner == "bert" else (byte_tokenizer(manner), 20)
    aligned = eraser_hub.align(row, tokenizer, max_length=longest, stride=stride)
    flags, words = eraser_hub.mask(row), eraser_hub.tokens(row)
    pieces: dict[tuple[int, int], list[int]] = {}
    for number, window in enumerate(aligned.windows):
        assert {len(getattr(window, name)) for name in window.__slots__} == {len(window.input_ids)}
        assert len(window.input_ids) <= longest
        inside = [at for at, document in enumerate(window.documents) if document >= 0]
        assert all(label == -100 for at, label in enumerate(window.labels) if at not in inside)
        for at in inside[stride if number else 0 :]:
            place = window.documents[at], window.tokens[at]
            assert window.labels[at] == flags[place[0]][place[1]]
            pieces.setdefault(place, []).append(window.input_ids[at])
    assert not aligned.query_cut and not aligned.without_pieces
    expected = {(d, t): word for d, document in enumerate(words) for t, word in enumerate(document)}
    cut = tokenizer([[word] for word in expected.values()], is_split_into_words=True, add_special_tokens=False)
    assert pieces == dict(zip(expected, cut["input_ids"], strict=True))


@pytest.mark.parametrize("query", [None, "Is it ?"])
def test_one_window_is_what_the_tokenizer_itself_makes(tokenizer: Any, query: str | None) -> None:
    (window,) = eraser_hub.align({**ROW, "query": query}, tokenizer).windows
    texts = [eraser_hub.tokens(ROW)[0]] if query is None else [query.split(), eraser_hub.tokens(ROW)[0]]
    for name, values in tokenizer(*texts, is_split_into_words=True).items():
        assert getattr(window, name) == values


def test_what_does_not_fit_is_counted_or_refused(tokenizer: Any) -> None:
    ids = [piece for window in eraser_hub.align(LONG, tokenizer).windows for piece in window.input_ids]
    for length, windows, cut in ((len(ids), 1, 0), (len(ids) - 1, 1, 1), (9, 3, 5)):
        aligned = eraser_hub.align(LONG, tokenizer, max_length=length)
        assert (len(aligned.windows), aligned.query_cut) == (windows, cut)
    for options in ({"max_length": 2}, {"max_length": 9, "stride": 7}, {"stride": -1}):
        with pytest.raises(ValueError, match=r"stride -?\d"):
            eraser_hub.align(ROW, tokenizer, **options)


@pytest.mark.parametrize("tensors", ["np", "pt"])
def test_batches_are_padded_and_a_model_takes_them(tokenizer: Any, network: Any, tensors: str) -> None:
    windows = [*eraser_hub.align(ROW, tokenizer).windows, *eraser_hub.align(PAIR, tokenizer).windows]
    batch = eraser_hub.Collator(tokenizer, return_tensors=tensors)(windows)
    assert {tuple(values.shape) for values in batch.values()} == {(2, 9)}
    assert batch["labels"][1].tolist() == [-100, 1, 0, 1, 1, *[-100] * 4]
    assert batch["attention_mask"].sum(1).tolist() == [9, 6]
    if tensors == "np":
        assert isinstance(batch["tokens"], np.ndarray)
    else:
        names = ("input_ids", "token_type_ids", "attention_mask", "labels")
        assert network("BertForTokenClassification")(**{name: batch[name] for name in names}).loss.isfinite()
    at_start = eraser_hub.Collator(byte_tokenizer("gpt2", padding_side="left"), "np")(windows)
    assert at_start["labels"][1].tolist() == [*[-100] * 4, 1, 0, 1, 1, -100]
    with pytest.raises(ValueError, match="'tf'"):
        eraser_hub.Collator(tokenizer, return_tensors="tf")


@pytest.mark.parametrize("form", [None, "torch"])
def test_a_data_loader_takes_a_dataset(form: str | None, tokenizer: Any, samples: Path, tmp_path: Path) -> None:
    from torch.utils.data import DataLoader

    for name, config, label in (
        ("eraser", "movies", "classification"),
        ("bilingual_perturbation", "senti_en", "label"),
        ("human_rationales", "sst", "label"),
    ):
        folder = get_dataset(name).build([config], out=tmp_path, source=samples / name).folder
        splits = datasets.load_dataset(str(folder), config, cache_dir=str(tmp_path / "cache"))
        rows = next(iter(splits.values())).select(range(5))
        (batch,) = DataLoader(rows.with_format(form), batch_size=5, collate_fn=eraser_hub.collate)
        for column in rows.column_names:
            found = batch[column] if isinstance(batch[column], list) else batch[column].tolist()
            assert [None if one == -100 or one != one else one for one in found] == rows[column][:]
        collator = eraser_hub.Collator(tokenizer)
        (batch,) = DataLoader(rows.with_format(form), batch_size=5, collate_fn=collator)
        windows = [window for row in rows for window in eraser_hub.align(row, tokenizer).windows]
        assert batch["labels"].tolist() == collator(windows)["labels"].tolist()
        labels = [rows[label][row] for row in batch["row"].tolist()]
        assert [-100 if one in (None, -1) else one for one in labels] == batch["classification"].tolist()
