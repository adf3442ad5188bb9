"""An instance in sub-words, and the model inputs that are cut from it, hundreds at a time.

Thousands of erased inputs differ from their instance in nothing but the tokens that are gone. So the whole input is
laid out once (special tokens, query, text) and erased ones are taken from it by their places, many in one step of
numpy: a handful of Python statements each.
"""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eraser_hub.attribution.adapter import Adapter, Encoded, View
from eraser_hub.attribution.erasure import Erased, compute_kept_flags
from eraser_hub.attribution.instances import Instance
from eraser_hub.records.errors import DataError

from .words import CutWords, Template

OVERLAP = 4  # a window starts three quarters of its length after the one before it
UNKNOWN = "texts most of whose tokens the tokenizer does not know: is it the model's own?"
HEADS_CUT = "queries or first texts cut, as they and the text exceed the window"
BLOCK = 1 << 18  # places that are looked through in one step: what numpy makes of them stays within some MiB
ID_SHIFT, TYPE_SHIFT = 16, 1  # of ids and token types in a code
SHORT = 32  # so many places are their own key, which is quicker than a digest
TYPES = (1 << ID_SHIFT) - (1 << TYPE_SHIFT)


def encode_places(ids: Any, types: Any, visible: Any) -> NDArray[np.int64]:
    """Encode id, token type (below 2 to the 15th) and attention flag of each place in one integer."""
    kinds = np.asarray(types, np.int64) << TYPE_SHIFT
    codes: NDArray[np.int64] = (np.asarray(ids, np.int64) << ID_SHIFT) | kinds | visible
    return codes


@dataclass(slots=True)
class Window:
    """One model input.

    Attributes:
        code: :func:`encode_places` each place; equal codes are equal inputs.
        piece: number of the erasable sub-word at each place, -1 for special tokens and the query.
    """

    code: NDArray[np.int64]
    piece: NDArray[np.int64]

    @property
    def ids(self) -> NDArray[np.int64]:
        """Sub-word ids."""
        return self.code >> ID_SHIFT

    @property
    def types(self) -> NDArray[np.int64]:
        """Token types: which text of a pair each place belongs to."""
        return (self.code & TYPES) >> TYPE_SHIFT

    @property
    def visible(self) -> NDArray[np.bool_]:
        """The attention mask: False where a token was erased by padding."""
        return (self.code & 1).astype(bool)

    @property
    def key(self) -> bytes:
        """Bytes that are equal exactly when the model's inputs are."""
        if len(self.code) <= SHORT:
            return self.code.tobytes()
        return hashlib.blake2b(self.code.data, digest_size=16).digest()


class Explained(NamedTuple):
    """A model input, and the part of its output that is explained.

    Attributes:
        unit: a window, or the windows of a choice's answers.
        places: of the output: a column, or the first and the last place of an answer; a column -1 for the one that the
            input has most of.
        owner: the number of the instance that it belongs to.
        target: the explained label.
    """

    unit: Any
    places: tuple[int, ...]
    owner: int = 0
    target: int = 0

    @property
    def windows(self) -> list[Window]:
        """The windows of the unit."""
        return self.unit if isinstance(self.unit, list) else [self.unit]


def pad_windows(
    windows: Sequence[Window], pad: int, at_start: bool = False
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Pad windows to ids, token types and attention masks, each of shape (windows, the longest's length)."""
    sizes = np.asarray([len(window.code) for window in windows])
    rows = np.full((len(windows), sizes.max(initial=0)), encode_places(pad, 0, 0))
    places = np.arange(rows.shape[1])
    inside = places >= rows.shape[1] - sizes[:, None] if at_start else places < sizes[:, None]
    rows[inside] = np.concatenate([window.code for window in windows])
    flat = Window(rows, rows)
    return flat.ids, flat.types, rows & 1


@dataclass(frozen=True, slots=True)
class Frame:
    """The whole input with nothing erased, as if the window had no end; only its first text is cut.

    Attributes:
        code: ids, token types and flags of its places.
        piece: number of the erasable sub-word at each place, -1 for special tokens and the query.
        source: the token that each place belongs to; the number of tokens for what always stays.
        holds: places that a masked or padded token keeps: the first sub-word of each.
        before: special tokens at the start.
        lead: places before the text that is cut into windows: special tokens, and the query or a pair's first text.
        tail: places behind it: special tokens, and the query where the model reads it last.
    """

    code: NDArray[np.int64]
    piece: NDArray[np.int64]
    source: NDArray[np.int64]
    holds: NDArray[np.bool_]
    before: int
    lead: int
    tail: int


class WindowModel(Adapter):
    """A network that reads windows of sub-words.

    Attributes:
        network: the torch module.
        tokenizer: its tokenizer of transformers.
        words: the tokenizer, word by word.
        window: the longest input, in sub-words.
        query_last: whether the query comes after the text.
        half: the half-precision type of forward passes, or None.
        explains_singly: whether inputs are explained one at a time, with passes of their own.
    """

    network: Any
    tokenizer: Any
    words: CutWords
    window: int
    query_last: bool
    half: Any
    explains_singly = False

    @abstractmethod
    def tensors(self, windows: Sequence[Any]) -> dict[str, Any]:
        """Return padded model inputs on the device, of windows, or of lists of those that are one input together."""

    @abstractmethod
    def inside(self, window: Window, places: int) -> slice:
        """Return the slice of a window in a padded row of so many places."""

    @abstractmethod
    def explained(self, encoded: Any, target: int) -> list[Explained]:
        """Return the inputs of an instance whose mean output is explained."""

    def to_outputs(self, logits: Any) -> Any:
        """Return the outputs of a head's logits; without a head of labels, the logits."""
        return logits

    @abstractmethod
    def explained_output(self, out: Any, places: Any, method: str) -> Any:
        """Return the value whose gradients are taken, (inputs,), from the network's output and `Explained.places`."""


@dataclass(slots=True)
class Pieces(Encoded):
    """An instance cut into sub-words."""

    instance: Instance
    model: WindowModel
    query: NDArray[np.int64]
    ids: NDArray[np.int64]  # sub-words of all documents, one after the other
    owner: NDArray[np.int64]  # the token that each belongs to
    first: NDArray[np.bool_]  # whether it is its token's first
    split: int  # sub-words of the pair's first text; 0: one text (or the query stands first)
    _frame: Frame | None = None

    def frame(self) -> Frame:
        """Return the whole input, laid out once."""
        if self._frame is None:
            template = self.model.words.pair if len(self.query) or self.split else self.model.words.single
            asked, numbers = len(self.query) > 0, np.arange(len(self.ids))
            split = 0 if asked else self.split
            head = (self.query if asked else self.ids[:split])[: self._head_room]
            head_pieces = np.full(len(head), -1) if asked else numbers[: len(head)]
            last = self.model.query_last and asked
            if last:
                whole = make_window(template, self.ids, numbers, head, head_pieces)
            else:
                whole = make_window(template, head, head_pieces, self.ids[split:], numbers[split:])
            text, tokens = whole.piece >= 0, self.bounds[-1]
            source, holds = np.full(len(text), tokens), np.zeros(len(text), dtype=bool)
            source[text], holds[text] = self.owner[whole.piece[text]], self.first[whole.piece[text]]
            before, after = len(template.before), len(template.after)
            more = len(head) + len(template.between)
            lead, after = (before, after + more) if last else (before + more, after)
            self._frame = Frame(whole.code, whole.piece, source, holds, before, lead, after)
        return self._frame

    @property
    def _head_room(self) -> int:
        """The number of sub-words of the query or a pair's first text that fit before the text.

        It is what the whole text leaves of the window, and at least half of it. Erased inputs are cut at the same
        place: erasing tokens of the text must not show the model more of the first text.
        """
        room, text = self.model.window - self.model.words.pair.size, len(self.ids)
        return max(1, room // 2, room - (text if len(self.query) else text - self.split))

    @property
    def is_head_cut(self) -> bool:
        """True if the query or a pair's first text loses sub-words: it and the text exceed the window."""
        return (len(self.query) or self.split) > self._head_room

    @property
    def bounds(self) -> list[int]:
        """Offsets of the documents in the instance's tokens."""
        return self.instance.bounds

    def substitute(self, erase: str) -> int:
        """Return the id that replaces an erased token."""
        words = self.model.words
        substitute = words.mask if erase == "mask" else words.pad
        if substitute is None or (erase == "pad" and not words.can_pad):
            message = f"`erase` {erase}: {self.model.description} has no {erase} token; use `erase` remove"
            raise DataError(message)
        return int(substitute)

    def remaining(self, kept: NDArray[np.bool_], erase: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return ids and numbers of the sub-words that remain; a masked or padded token keeps one place."""
        stays = kept[self.owner]
        if erase == "remove" or stays.all():
            places = np.flatnonzero(stays)
            return self.ids[places], places
        places = np.flatnonzero(stays | self.first)
        return np.where(stays[places], self.ids[places], self.substitute(erase)), places

    def cut(self, kept: NDArray[np.bool_], erase: str, overlap: bool = True) -> Iterator[list[Window]]:
        """Yield the model's inputs of many erased texts, one or several each.

        Args:
            kept: flags of the tokens that stay, shape (texts, tokens).
            erase: operator: remove, mask or pad.
            overlap: neighbouring windows of a text share a quarter of their places.
        """
        frame, window = self.frame(), self.model.window
        stays = np.concatenate([kept, np.ones((len(kept), 1), dtype=bool)], axis=1).take(frame.source, axis=1)
        remains = stays if erase == "remove" else stays | frame.holds
        texts, places = remains.nonzero()
        code, piece = frame.code.take(places), frame.piece.take(places)
        if erase != "remove":
            gone = ~stays[texts, places]
            if gone.any():
                code[gone] = (code[gone] & TYPES) | encode_places(self.substitute(erase), 0, erase == "mask")
        ends = np.cumsum(np.bincount(texts, minlength=len(kept))).tolist()
        leads = [frame.lead] * len(kept)
        if self.split:
            leads = np.count_nonzero(remains[:, : frame.lead], axis=1).tolist()
        for start, end, lead in zip([0, *ends[:-1]], ends, leads, strict=True):
            if end == start:
                yield [make_blank_window(self.model.words)]
            elif end - start <= window:
                yield [Window(code[start:end], piece[start:end])]
            else:
                parts = self._spread(start, end, lead, overlap)
                yield [Window(code.take(part), piece.take(part)) for part in parts]

    def _spread(self, start: int, end: int, lead: int, overlap: bool) -> Iterator[NDArray[np.int64]]:
        """Yield the places of each window of a text that does not fit into one window."""
        frame = self.frame()
        head = np.arange(start, start + lead)
        body, tail = np.arange(start + lead, end - frame.tail), np.arange(end - frame.tail, end)
        room = max(1, self.model.window - len(head) - len(tail))
        step = max(1, room - (room // OVERLAP if overlap else 0))
        place = 0
        while True:
            yield np.concatenate([head, body[place : place + room], tail])
            if place + room >= len(body):
                return
            place += step

    def windows(self, kept: NDArray[np.bool_], erase: str, overlap: bool = True) -> list[Window]:
        """Return the model's inputs for one text, as :meth:`cut` makes them."""
        return next(self.cut(kept[None], erase, overlap))

    def whole(self, overlap: bool = True) -> list[Window]:
        """Return the model's inputs for the text with nothing erased."""
        return self.windows(np.ones(self.bounds[-1], dtype=bool), "remove", overlap)

    def view(self, kept: NDArray[np.bool_], erase: str) -> View:
        """Return the input with the tokens that are not kept erased."""
        return _make_view(self.windows(kept, erase))

    def views(self, erased: Sequence[Erased], erase: str) -> Iterator[View]:
        """Yield a view of each of several erased inputs, many in one step."""
        rows = max(1, BLOCK // max(1, len(self.frame().code)))
        for start in range(0, len(erased), rows):
            for windows in self.cut(compute_kept_flags(erased[start : start + rows], self.bounds[-1]), erase):
                yield _make_view(windows)


def make_blank_window(words: CutWords) -> Window:
    """Return the input for an empty text where the tokenizer adds no special token (GPT-2): one token."""
    return Window(encode_places([words.blank], 0, 1), np.full(1, -1))


def _make_view(windows: list[Window]) -> View:
    return View(tuple([window.key for window in windows]), tuple([len(window.code) for window in windows]), windows)


def make_window(template: Template, head: Any, head_pieces: Any, ids: Any, pieces: Any, hidden: Any = None) -> Window:
    """Join special tokens, first text and second text in the template's order.

    Args:
        template: special tokens and their types.
        head: ids of the first text, () for none.
        head_pieces: number of the erasable sub-word at each of its places, or -1.
        ids: of the second (or only) text.
        pieces: of the second (or only) text.
        hidden: flags of the first text's places that the attention mask hides; None for none.
    """
    special = template.before, template.between, template.after
    types = [
        *template.special_types[0],
        *[template.types[0]] * len(head),
        *template.special_types[1],
        *[template.types[1]] * len(ids),
        *template.special_types[2],
    ]
    before, between, after = (np.asarray(part, np.int64) for part in special)
    none = [np.full(len(part), -1) for part in special]
    sequence = np.concatenate([before, head, between, ids, after])
    visible = np.ones(len(sequence), dtype=bool)
    if hidden is not None:
        visible[len(before) : len(before) + len(head)] = ~hidden
    return Window(
        encode_places(sequence, types, visible),
        np.concatenate([none[0], head_pieces, none[1], pieces, none[2]]).astype(np.int64),
    )
