"""Words in sub-words, and the inputs of a network that are cut from an instance, hundreds at a time.

Thousands of erased inputs differ from their instance in nothing but the tokens that are gone. So the whole input is
laid out once (special tokens, query, text), and erased ones are taken from it by their places, many in one step of
numpy: a handful of Python statements each.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eraser_hub.attribution.instances import Instance
from eraser_hub.records.errors import DataError

Ints = NDArray[np.int64]
OVERLAP = 4  # a window starts three quarters of its length after the one before it
BLOCK = 1 << 18  # places that are looked through in one step: what numpy makes of them stays within some MiB
SHORT = 32  # so many places are their own key, which is quicker than a digest
ID_SHIFT, TYPE_SHIFT = 16, 1  # of ids and token types in a code
TYPES = (1 << ID_SHIFT) - (1 << TYPE_SHIFT)


def encode_places(ids: Any, types: Any, visible: Any) -> Ints:
    """Encode id, token type (below 2 to the 15th) and attention flag of each place in one integer."""
    kinds = np.asarray(types, np.int64) << TYPE_SHIFT
    codes: Ints = (np.asarray(ids, np.int64) << ID_SHIFT) | kinds | visible
    return codes


def decode_places(codes: Ints) -> tuple[Ints, Ints, Ints]:
    """Return ids, token types and attention flags of codes."""
    return codes >> ID_SHIFT, (codes & TYPES) >> TYPE_SHIFT, codes & 1


def make_key(codes: Ints) -> bytes:
    """Return bytes that are equal exactly when inputs are."""
    return codes.tobytes() if len(codes) <= SHORT else hashlib.blake2b(codes.data, digest_size=16).digest()


def pad_codes(rows: Sequence[Ints], pad: int, at_start: bool = False) -> tuple[Ints, Ints, Ints]:
    """Pad inputs to ids, token types and attention flags, each of shape (inputs, the longest's length)."""
    sizes = np.asarray([len(row) for row in rows])
    padded = np.full((len(rows), sizes.max(initial=0)), encode_places(pad, 0, 0))
    places = np.arange(padded.shape[1])
    padded[places >= padded.shape[1] - sizes[:, None] if at_start else places < sizes[:, None]] = np.concatenate(rows)
    return decode_places(padded)


class Template(NamedTuple):
    """What stands around a text, or around a pair of texts.

    Attributes:
        special: codes of the special tokens before, between and behind the texts.
        types: the token type of each text.
    """

    special: tuple[Ints, ...]
    types: tuple[int, ...]

    @property
    def size(self) -> int:
        """Number of special tokens."""
        return sum(map(len, self.special))


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """An instance as a network reads it: the whole input, nothing erased, as if the window had no end.

    Attributes:
        instance: the instance.
        code: :func:`encode_places` each place.
        source: the token that each place belongs to; the number of tokens for what always stays.
        lead: places before the text that is cut into windows: special tokens, and the query or a pair's first text.
        tail: places behind it: special tokens, and the query where the model reads it last.
        window: the longest input.
        blank: the code of an input of which nothing is left, where no special token is.
        first: flags of the first sub-word of each token, whose place a masked or padded token keeps.
    """

    instance: Instance
    code: Ints
    source: Ints
    lead: int
    tail: int
    window: int
    blank: int
    first: NDArray[np.bool_] = field(init=False)

    def __post_init__(self) -> None:
        before = np.concatenate([[-1], self.source])[:-1]
        object.__setattr__(self, "first", (self.source != before) & self.is_text)

    @property
    def is_text(self) -> NDArray[np.bool_]:
        """Flags of the places that can be erased."""
        return self.source < self.instance.bounds[-1]

    def cut(self, kept: NDArray[np.bool_], substitute: int | None) -> Iterator[list[Ints]]:
        """Yield the codes of each erased input; several windows of one that is too long.

        Args:
            kept: flags of the tokens that stay, (inputs, tokens).
            substitute: the code, but for its token type, in place of an erased token; None removes it.
        """
        rows = max(1, BLOCK // len(self.code))
        for start in range(0, len(kept), rows):
            flags = kept[start : start + rows]
            always = np.ones((len(flags), 1), dtype=bool)
            stays = np.concatenate([flags, always], axis=1).take(self.source, axis=1)
            remains = stays if substitute is None else stays | self.first
            inputs, places = remains.nonzero()
            codes = self.code.take(places)
            if substitute is not None:
                gone = ~stays[inputs, places]
                codes[gone] = (codes[gone] & TYPES) | substitute
            ends = np.cumsum(np.bincount(inputs, minlength=len(flags))).tolist()
            for row, (begin, end) in enumerate(pairwise([0, *ends])):
                if begin == end:
                    yield [np.array([self.blank])]
                elif end - begin <= self.window:
                    yield [codes[begin:end]]
                else:
                    lead = int(np.count_nonzero(remains[row, : self.lead]))
                    yield [codes[begin + places] for places in self._spread(end - begin, lead)]

    def windows(self, overlap: bool = True) -> list[Ints]:
        """Return the places of each window of the whole input.

        Args:
            overlap: neighbouring windows share a quarter of their places.
        """
        size = len(self.code)
        return [np.arange(size)] if size <= self.window else list(self._spread(size, self.lead, overlap))

    def _spread(self, size: int, lead: int, overlap: bool = True) -> Iterator[Ints]:
        """Yield the places of each window of an input that does not fit into one."""
        head, body, tail = np.split(np.arange(size), [lead, size - self.tail])
        room = max(1, self.window - len(head) - len(tail))
        step = max(1, room - (room // OVERLAP if overlap else 0))
        for start in range(0, max(1, len(body) - room + step), step):
            yield np.concatenate([head, body[start : start + room], tail])


def lay_out(
    instance: Instance,
    template: Template,
    texts: Sequence[tuple[Ints, Ints]],
    cut: int,
    window: int,
    blank: int,
) -> Reading:
    """Return the reading of an instance from its sub-words.

    Args:
        instance: the instance.
        template: special tokens around the texts.
        texts: sub-words, and the token of each, of one or two texts.
        cut: number of the text that is cut into windows.
        window: the longest input.
        blank: the code of an input of nothing.
    """
    codes, sources = [template.special[0]], [np.full(len(template.special[0]), instance.bounds[-1])]
    for (ids, source), kind, special in zip(texts, template.types, template.special[1:], strict=True):
        codes += [encode_places(ids, kind, 1), special]
        sources += [source, np.full(len(special), instance.bounds[-1])]
    before, behind = (sum(map(len, rows)) for rows in (codes[: 2 * cut + 1], codes[2 * cut + 2 :]))
    code, source = np.concatenate(codes), np.concatenate(sources)
    if not len(code):
        code, source = np.array([blank]), np.array([instance.bounds[-1]])
    return Reading(instance, code, source, before, behind, window, blank)


class SubwordTokenizer:
    """Words to sub-words by any tokenizer that takes words.

    Attributes:
        single, pair: what stands around a text, and around two.
        pad, mask: ids; ``can_pad`` is False where the tokenizer has no padding of its own, and another id stands in.
        blank: the code of what stands for a text of which nothing is left, where no special token does.
    """

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer
        self.single, self.pair = self.make_template("a"), self.make_template("ab")
        pad = tokenizer.pad_token_id
        self.pad: int = pad if pad is not None else (tokenizer.eos_token_id or 0)
        self.can_pad, self.mask = pad is not None, tokenizer.mask_token_id
        starts = (tokenizer.bos_token_id, tokenizer.eos_token_id, self.pad)
        self.blank = int(encode_places(next(start for start in starts if start is not None), 0, 1))

    def make_template(self, words: str) -> Template:
        """Return what stands around a text of the one word, and around a second of the other.

        Raises:
            DataError: the tokenizer cannot be used with words.
        """
        encoded = self.tokenizer(*([word] for word in words), is_split_into_words=True)
        ids = encoded["input_ids"]
        types = encoded.get("token_type_ids") or [0] * len(ids)
        special: list[Ints] = []
        kinds: list[int] = []
        behind = 0
        for word in words:
            pieces = self.tokenizer([word], is_split_into_words=True, add_special_tokens=False)["input_ids"]
            starts = (at for at in range(behind, len(ids)) if pieces and ids[at : at + len(pieces)] == pieces)
            start = next(starts, None)
            if start is None:
                raise DataError(f"the tokenizer gives no sub-word for the word {word!r}: it cannot be used with words")
            special.append(encode_places(ids[behind:start], types[behind:start], 1))
            kinds.append(types[start])
            behind = start + len(pieces)
        return Template((*special, encode_places(ids[behind:], types[behind:], 1)), tuple(kinds))

    def cut(self, words: Sequence[str]) -> tuple[Ints, Ints]:
        """Return the sub-word ids of a text's words, and the number of the word that each belongs to."""
        options = {"is_split_into_words": True, "add_special_tokens": False, "truncation": False, "verbose": False}
        if not words:
            pairs = []
        elif self.tokenizer.is_fast:
            encoded = self.tokenizer(list(words), **options)
            pairs = list(zip(encoded["input_ids"], encoded.word_ids(), strict=True))
        else:  # it does not tell the words of sub-words
            cut = self.tokenizer([[word] for word in words], **options)["input_ids"]
            pairs = [(piece, number) for number, pieces in enumerate(cut) for piece in pieces]
        kept = np.asarray([pair for pair in pairs if pair[1] is not None], dtype=np.int64).reshape(-1, 2)
        return kept[:, 0], kept[:, 1]


def find_longest_input(network: Any, tokenizer: Any) -> int:
    """Return the longest input in sub-words that both the tokenizer and the position embeddings allow."""
    limits = [tokenizer.model_max_length] if tokenizer.model_max_length < 1_000_000 else []
    limits += filter(None, [count_positions(network)])
    return int(min(limits, default=512))


def count_positions(network: Any) -> int:
    """Return the longest input in sub-words that the position embeddings allow; 0 for any."""
    positions = getattr(network.config, "max_position_embeddings", None)
    if not isinstance(positions, int) or positions <= 0:
        return 0
    # RoBERTa and its kin number positions from the one behind the padding's on
    embeddings = getattr(getattr(network, "base_model", None), "embeddings", None)
    padding = getattr(getattr(embeddings, "position_embeddings", None), "padding_idx", None)
    return positions if padding is None else positions - padding - 1
