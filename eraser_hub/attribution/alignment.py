"""A row of any of the three datasets for those who build models: its tokens, its mask, and both in sub-words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np

from eraser_hub.conversion.built import LABEL_COLUMNS
from eraser_hub.records.errors import DataError, show

from .instances import READERS, Instance

IGNORED = -100  # the label that torch's cross entropy leaves out
UNLIMITED = 1 << 20  # transformers writes 10**30 where a tokenizer knows no longest input
DEFAULT_LENGTH = 512


def to_plain(value: Any) -> Any:
    """Return a value of a row in plain Python: arrays and tensors, which formats put into rows, become lists."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {name: to_plain(inner) for name, inner in value.items()}
    return [to_plain(inner) for inner in value] if isinstance(value, (list, tuple)) else value


def read_instance(row: Mapping[str, Any]) -> Instance:
    """Read a row of any of the three datasets as `explain` does, without its label.

    Raises:
        DataError: a row of none of the three datasets, or one that is not as it should be, with instance and field.
    """
    if not isinstance(row, Mapping):
        message = f"expected a row (of a dataset, such as `dataset[0]`), found {type(row).__name__}"
        raise DataError(message, argument="row")
    row = {column: to_plain(value) for column, value in row.items() if column not in LABEL_COLUMNS}
    if "documents" in row:
        return READERS["eraser"](row)
    if "tokens" not in row:
        raise DataError(f"expected documents (eraser) or tokens, found the columns {show(sorted(row))}")
    nested = any(isinstance(each, (list, tuple)) for each in row["tokens"] or ())
    return READERS["perturbation" if nested else "tokens"](row)


def tokens(row: Mapping[str, Any]) -> list[list[str]]:
    """Return the tokens of each document of a row (of each sequence, in ``bilingual_perturbation``).

    Args:
        row: a row of ``eraser``, ``bilingual_perturbation`` or ``human_rationales``.

    Examples:
        >>> tokens({"annotation_id": "a", "documents": [{"docid": "d", "text": "a fine film .\\nnothing more"}]})
        [['a', 'fine', 'film', '.', 'nothing', 'more']]
    """
    return [list(document) for document in read_instance(row).documents]


def mask(row: Mapping[str, Any]) -> list[list[bool]]:
    """Return for each document of a row one flag per token: True if the human rationale holds it.

    The rationale is the union of the evidences (``eraser``), of the gold sets (``bilingual_perturbation``), or the mask
    itself (``human_rationales``).

    Args:
        row: a row of one of the three datasets.

    Raises:
        DataError: the row has no rationale; an evidence of another document, or that does not lie within its document.

    Examples:
        >>> mask({"annotation_id": "a", "documents": [{"docid": "d", "text": "a fine film"}],
        ...       "evidences": [[{"docid": "d", "start_token": 1, "end_token": 3}]]})
        [[False, True, True]]
    """
    instance = read_instance(row)
    if instance.rationale is None:
        raise DataError("expected a human rationale, found none", instance=instance.id)
    return [list(flags) for flags in instance.rationale]


@dataclass(frozen=True, slots=True)
class AlignedWindow:
    """One model input; all lists have its length.

    Attributes:
        input_ids, token_type_ids, attention_mask: as the model takes them, special tokens included.
        labels: 1 where the sub-word's token belongs to the human rationale, 0 where it does not, -100 for special
            tokens and the query (and everywhere in a row without a rationale).
        documents, tokens: the number of the sub-word's document, and of its token in it; -1 where there is none.
    """

    input_ids: list[int]
    token_type_ids: list[int]
    attention_mask: list[int]
    labels: list[int]
    documents: list[int]
    tokens: list[int]


@dataclass(frozen=True, slots=True)
class Alignment:
    """A row in sub-words.

    Attributes:
        id: the row's.
        windows: the inputs, which together hold every sub-word of every document.
        query_cut: sub-words of the query that did not fit beside the text: it keeps at least half a window.
        without_pieces: tokens for which the tokenizer has no sub-word, as (document, token).
    """

    id: str
    windows: list[AlignedWindow]
    query_cut: int = 0
    without_pieces: list[tuple[int, int]] = field(default_factory=list)


def align(row: Mapping[str, Any], tokenizer: Any, *, max_length: int | None = None, stride: int = 0) -> Alignment:
    """Cut a row into a tokenizer's sub-words, in windows that hold the token and the label of each.

    The query, where there is one, stands whole before each window's text, as in `explain`.

    Args:
        row: a row of ``eraser``, ``bilingual_perturbation`` or ``human_rationales``.
        tokenizer: any of transformers that takes words (byte-level ones: made with ``add_prefix_space=True``).
        max_length: the longest input, special tokens included; by default the tokenizer's own, 512 where it has none.
        stride: how many sub-words a window shares with the one before it.

    Raises:
        DataError: a row that is not as it should be; a tokenizer that takes no words.
        ValueError: a length that leaves no room for text, or a stride that leaves no progress.
    """
    from .models.subwords import SubwordTokenizer, decode_places, lay_out

    instance, words = read_instance(row), SubwordTokenizer(tokenizer)
    ids, owners = words.cut(instance.tokens)
    query, _ = words.cut(instance.query)
    template = words.pair if len(query) else words.single
    if max_length is None:
        own = getattr(tokenizer, "model_max_length", None)
        max_length = DEFAULT_LENGTH if own is None or own > UNLIMITED else int(own)
    room = max_length - template.size
    kept = query[: max(1, room // 2, room - max(len(ids), stride + 1))]
    room -= len(kept)
    if room < 1 or not 0 <= stride < room:
        message = f"expected room for text, and a stride below it: max_length {max_length} leaves {room} sub-words"
        raise ValueError(f"{message}, found stride {stride}")
    # of each token by its number; behind them of special tokens and the query, which belong to none
    sizes = list(map(len, instance.documents))
    gold = [IGNORED] * sum(sizes) if instance.rationale is None else chain.from_iterable(instance.rationale)
    labels = np.array([*map(int, gold), IGNORED])
    documents = np.append(np.repeat(np.arange(len(sizes)), sizes), -1)
    places = np.array([*chain.from_iterable(map(range, sizes)), -1])
    lead = [(kept, np.full(len(kept), sum(sizes)))] if len(query) else []
    windows = []
    for start in range(0, max(1, len(ids) - stride), room - stride):
        part = slice(start, start + room)
        texts = [*lead, (ids[part], owners[part])]
        window = lay_out(instance, template, texts, len(lead), max_length, words.blank)
        facts = (values[window.source] for values in (labels, documents, places))
        windows.append(AlignedWindow(*(column.tolist() for column in (*decode_places(window.code), *facts))))
    lost = np.setdiff1d(np.arange(sum(sizes)), owners)
    pairs = list(zip(documents[lost].tolist(), places[lost].tolist(), strict=True))
    return Alignment(instance.id, windows, len(query) - len(kept), pairs)


def collate(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Put rows of a dataset into a batch, for ``DataLoader(rows, collate_fn=collate)``.

    Args:
        rows: of one of the three datasets, formatted (``with_format("torch")``) or not.

    Returns:
        column -> a tensor (rows,) of numbers and flags, in which a label (or another whole number) that is not there is
        -100, as cross entropy leaves out, and a fraction NaN; a list of the rows' values for every other column (texts,
        nested lists).
    """
    import torch

    batch: dict[str, Any] = {}
    for name in rows[0]:
        values = [to_plain(row[name]) for row in rows]
        kinds = {type(value) for value in values if value is not None}
        if kinds <= {int, float, bool} and (kinds or name in LABEL_COLUMNS):
            gap = float("nan") if float in kinds else IGNORED
            batch[name] = torch.tensor([gap if value is None else value for value in values])
        else:
            batch[name] = values
    return batch


class Collator:
    """Pads aligned windows into one batch; `transformers.Trainer` takes it as ``data_collator``.

    A DataLoader over a dataset's rows takes it as ``collate_fn``: rows are aligned first.

    Args:
        tokenizer: its padding id and side are used.
        return_tensors: ``pt`` for torch, ``np`` for numpy.
    """

    def __init__(self, tokenizer: Any, return_tensors: str = "pt") -> None:
        if return_tensors not in ("pt", "np"):
            raise ValueError(f"return_tensors: expected pt or np, found {return_tensors!r}")
        self.tokenizer, self.tensors = tokenizer, return_tensors
        self.at_start = getattr(tokenizer, "padding_side", "right") == "left"
        pad = tokenizer.pad_token_id
        self.padding = {"input_ids": (tokenizer.eos_token_id or 0) if pad is None else pad, "labels": IGNORED}
        self.padding |= {"token_type_ids": 0, "attention_mask": 0, "documents": -1, "tokens": -1}

    def __call__(self, windows: Sequence[AlignedWindow | Mapping[str, Sequence[int]]]) -> dict[str, Any]:
        """Pad windows to int64 arrays (windows, the longest's length), by name.

        Args:
            windows: of one or more rows, or their fields as mappings (rows of a Dataset made of them); or a dataset's
                rows.

        Returns:
            the windows' fields; of a dataset's rows also ``row`` (windows,), the place of each window's row among them,
            and ``classification`` (windows,), its label where it is a number, else -100.
        """
        batch: dict[str, Any] = {}
        if windows and isinstance(windows[0], Mapping) and "input_ids" not in windows[0]:
            given: list[Any] = list(windows)
            aligned = [align(row, self.tokenizer).windows for row in given]
            labels = [next((to_plain(row[name]) for name in LABEL_COLUMNS if name in row), None) for row in given]
            numbers = [label if isinstance(label, int) and label >= 0 else IGNORED for label in labels]
            batch["row"] = np.repeat(np.arange(len(aligned)), list(map(len, aligned)))
            batch["classification"] = np.array(numbers, np.int64)[batch["row"]]
            windows = list(chain.from_iterable(aligned))
        for name, pad in self.padding.items():
            rows = [each[name] if isinstance(each, Mapping) else getattr(each, name) for each in windows]
            padded = np.full((len(rows), max(map(len, rows))), pad, np.int64)
            for row, values in zip(padded, rows, strict=True):
                row[len(row) - len(values) if self.at_start else 0 :][: len(values)] = values
            batch[name] = padded
        if self.tensors == "np":
            return batch
        import torch

        return {name: torch.from_numpy(values) for name, values in batch.items()}
