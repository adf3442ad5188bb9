"""Tokens, mask and sub-words of a dataset's row, which the package's own names give."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pytest

import eraser_hub
from eraser_hub.conversion import get_dataset
from eraser_hub.conversion.built import open_built

from ..refusals import refused

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


def test_tokens_of_each_document_or_sequence() -> None:
    assert eraser_hub.tokens(ROW) == [["a", "fine", "film", "with", "a", "dull", "end"], []]
    assert eraser_hub.tokens(PAIR) == [["Is", "it"], ["a", "film"]]
    assert eraser_hub.tokens(TEXT) == [["a", "fine film"]]


def test_rows_of_pandas_give_the_same_and_a_whole_dataset_is_refused() -> None:
    for row in (ROW, PAIR, TEXT):
        dataset = datasets.Dataset.from_list([row])
        cells = dataset.to_pandas().iloc[0].to_dict()
        assert eraser_hub.tokens(cells) == eraser_hub.tokens(row) and eraser_hub.mask(cells) == eraser_hub.mask(row)
        with refused("Dataset", "dataset[0]", argument="row"):
            eraser_hub.tokens(dataset)


def test_the_mask_covers_what_any_rationale_covers() -> None:
    assert eraser_hub.mask(ROW) == [[False, True, True, True, False, False, False], []]
    assert eraser_hub.mask(PAIR) == [[True, False], [True, True]]
    assert eraser_hub.mask(TEXT) == [[False, True]]
    with refused(instance="p"):
        eraser_hub.mask({**PAIR, "rationale_ids": None})
    with refused("['text']"):
        eraser_hub.tokens({"text": "a film"})


@pytest.mark.parametrize(
    "change", [{"docid": "d3"}, {"end_token": 8}, {"start_token": -1}, {"start_token": 3, "end_token": 2}]
)
def test_a_span_of_no_document_is_refused(change: dict[str, Any]) -> None:
    row = {**ROW, "evidences": [[{**ROW["evidences"][0][0], **change}]]}
    with refused(*change.values(), instance="one", field="evidences[0][0]"):
        eraser_hub.mask(row)


def test_the_mask_is_the_positions_of_the_built_rows(samples: Path, tmp_path: Path) -> None:
    folder = get_dataset("eraser").build(["movies", "esnli"], out=tmp_path, source=samples / "eraser").folder
    for config in ("movies", "esnli"):
        for row in open_built(folder).rows(config, "train"):
            positions = [[place for place, flag in enumerate(flags) if flag] for flags in eraser_hub.mask(row)]
            assert positions == row["rationale_positions"]
            assert sum(map(len, eraser_hub.tokens(row))) == row["num_tokens"]


@pytest.mark.parametrize("row", [{**ROW, "query": "Is it ?"}, ROW, PAIR, TEXT])
@pytest.mark.parametrize("stride", [0, 1])
def test_windows_hold_every_sub_word_with_its_token_and_flag(tokenizer: Any, row: Any, stride: int) -> None:
    aligned = eraser_hub.align(row, tokenizer, max_length=10, stride=stride)
    flags, words = eraser_hub.mask(row), eraser_hub.tokens(row)
    pieces: dict[tuple[int, int], list[int]] = {}
    for window in aligned.windows:
        fields = [getattr(window, name) for name in window.__slots__]
        assert {len(values) for values in fields} == {len(window.input_ids)} and len(window.input_ids) <= 10
        inside: dict[tuple[int, int], list[int]] = {}
        for piece, label, *place in zip(window.input_ids, window.labels, window.documents, window.tokens, strict=True):
            if place == [-1, -1]:
                assert label == -100
            else:
                assert label == flags[place[0]][place[1]]
                inside.setdefault((place[0], place[1]), []).append(piece)
        pieces |= {place: max(inside[place], pieces.get(place, []), key=len) for place in inside}
    assert not aligned.query_cut and not aligned.without_pieces
    expected = {(d, t): word for d, document in enumerate(words) for t, word in enumerate(document)}
    cut = tokenizer([[word] for word in expected.values()], is_split_into_words=True, add_special_tokens=False)
    assert pieces == dict(zip(expected, cut["input_ids"], strict=True))


def test_one_window_is_what_the_tokenizer_itself_makes(tokenizer: Any) -> None:
    row = {**ROW, "query": "Is it ?"}
    (window,) = eraser_hub.align(row, tokenizer).windows
    alone = tokenizer(["Is", "it", "?"], eraser_hub.tokens(row)[0], is_split_into_words=True)
    for name in ("input_ids", "token_type_ids", "attention_mask"):
        assert getattr(window, name) == alone[name]


def test_a_long_query_that_fits_beside_a_short_text_is_whole(tokenizer: Any) -> None:
    row = {**ROW, "query": "Is it ? - Is it ? -"}
    ids = [piece for window in eraser_hub.align(row, tokenizer).windows for piece in window.input_ids]
    aligned = eraser_hub.align(row, tokenizer, max_length=len(ids))
    assert not aligned.query_cut and [window.input_ids for window in aligned.windows] == [ids]
    aligned = eraser_hub.align(row, tokenizer, max_length=len(ids) - 1)
    assert aligned.query_cut == 1 and len(aligned.windows) == 1


def test_what_does_not_fit_is_counted_or_refused(tokenizer: Any) -> None:
    aligned = eraser_hub.align({**ROW, "query": "Is it ? - Is it ? -"}, tokenizer, max_length=9)
    assert aligned.query_cut == 5 and len(aligned.windows) == 3
    for options in ({"max_length": 2}, {"max_length": 9, "stride": 7}, {"stride": -1}):
        with pytest.raises(ValueError, match=r"stride -?\d"):
            eraser_hub.align(ROW, tokenizer, **options)


@pytest.mark.parametrize("tensors", ["np", "pt"])
def test_batches_are_padded_and_a_model_takes_them(tokenizer: Any, network: Any, tensors: str) -> None:
    import torch

    windows = [*eraser_hub.align(ROW, tokenizer).windows, *eraser_hub.align(PAIR, tokenizer).windows]
    batch = eraser_hub.Collator(tokenizer, return_tensors=tensors)(windows)
    assert {tuple(values.shape) for values in batch.values()} == {(2, 9)}
    assert batch["labels"][1].tolist() == [-100, 1, 0, 1, 1, *[-100] * 4]
    assert batch["attention_mask"].sum(1).tolist() == [9, 6]
    if tensors == "pt":
        names = ("input_ids", "token_type_ids", "attention_mask", "labels")
        made = network("BertForTokenClassification")(**{name: batch[name] for name in names})
        assert torch.isfinite(made.loss)
    else:
        assert isinstance(batch["tokens"], np.ndarray)
    with pytest.raises(ValueError, match="'tf'"):
        eraser_hub.Collator(tokenizer, return_tensors="tf")


ALL = {"eraser": ["movies", "esnli"], "bilingual_perturbation": ["senti_en"], "human_rationales": ["sst", "wikiattack"]}


@pytest.mark.parametrize("name", list(ALL))
@pytest.mark.parametrize("format", [None, "torch"])
def test_a_data_loader_takes_every_dataset(name: str, format: str | None, samples: Path, tmp_path: Path) -> None:
    import datasets
    import torch
    from torch.utils.data import DataLoader

    folder = get_dataset(name).build(ALL[name], out=tmp_path, source=samples / name).folder
    for config in ALL[name]:
        for split, plain in datasets.load_dataset(str(folder), config, cache_dir=str(tmp_path / "cache")).items():
            rows = plain.with_format(format)
            (batch,) = DataLoader(rows, batch_size=len(rows), collate_fn=eraser_hub.collate)
            assert list(batch) == plain.column_names, (config, split)
            for column, values in batch.items():
                expected = plain[column][:]
                if isinstance(values, torch.Tensor):
                    there = [value is not None for value in expected]
                    assert values.shape == (len(plain),) and values[there].tolist() == [
                        v for v in expected if v is not None
                    ]
                    assert not any(there) or values.dtype in (torch.int64, torch.float32, torch.bool)
                    assert all(value == -100 or value != value for value in values[[not one for one in there]].tolist())
                else:
                    assert values == expected


@pytest.mark.parametrize("format", [None, "torch"])
def test_a_collator_takes_a_datasets_rows(tokenizer: Any, format: str | None, samples: Path, tmp_path: Path) -> None:
    import datasets
    from torch.utils.data import DataLoader

    folder = get_dataset("eraser").build(["movies"], out=tmp_path, source=samples / "eraser").folder
    plain = datasets.load_dataset(str(folder), "movies", split="train", cache_dir=str(tmp_path / "cache"))
    loader = DataLoader(plain.with_format(format), batch_size=5, collate_fn=eraser_hub.Collator(tokenizer))
    seen = 0
    for batch in loader:
        first, shape = seen, batch["input_ids"].shape
        seen += int(batch["row"].max()) + 1
        assert batch["labels"].shape == shape and batch["row"].shape == batch["classification"].shape == shape[:1]
        assert [plain[first + place]["classification"] for place in batch["row"].tolist()] == batch[
            "classification"
        ].tolist()
        windows = [window for at in range(first, seen) for window in eraser_hub.align(plain[at], tokenizer).windows]
        assert batch["labels"].tolist() == eraser_hub.Collator(tokenizer, "np")(windows)["labels"].tolist()
    assert seen == len(plain)
