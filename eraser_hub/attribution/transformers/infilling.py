"""A masked language model that puts words in the places of erased ones (``erase="infill"``).

Removing, masking or padding leaves no text of the kind that the explained model was trained on. Infilling does:
each erased token becomes a mask, and a word is drawn for it from what a masked language model expects there (Kim et al.
2020; Hase et al. 2021). The drawn words depend on the kept tokens and on the seed, never on the erased ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eraser_hub.attribution.erasure import make_generator
from eraser_hub.attribution.instances import Instance
from eraser_hub.records.errors import DataError

from .devices import to_float64
from .pieces import Pieces, Window
from .sequence_model import SequenceModel
from .words import open_network

BATCH_SIZE = 8  # windows of full length at a time: their outputs have a number for each word of the vocabulary


class Gap(NamedTuple):
    """An erased token: its instance's number, its flat position, and the mask's place in its window."""

    instance: int
    token: int
    place: int


class Infiller(SequenceModel):
    """Draws words for erased tokens.

    A word is drawn for each by itself, in one pass: with probability softmax(logits at its mask) over the sub-words
    that are words by themselves. The query is not read. A text longer than the model's window is read in overlapping
    windows, each token where it stands farthest from an end.

    Args:
        seed: with an instance's id it makes one number from 0 to 1 for each of its tokens, by which words are drawn
            (inverse distribution function): what else is erased changes a token's word only by changing what is
            expected.

    Raises:
        DataError: a tokenizer without a mask, or none of whose sub-words is a word.
    """

    def __init__(self, network: Any, tokenizer: Any, seed: int, **how: Any) -> None:
        super().__init__(network, tokenizer, **how)
        self.seed, self.passes = seed, 0  # passes: windows that went through the network
        mask = tokenizer.mask_token
        if mask is None or self.words.cut([mask]) != [(tokenizer.mask_token_id,)]:
            message = f"{self.description} has no mask token, expected a masked language model"
            raise DataError(message, argument="infill", rule="model")
        self.allowed, self.drawn = self._vocabulary()
        if not len(self.allowed):
            raise DataError(f"no sub-word of {self.description} is a word by itself", argument="infill", rule="model")

    def _vocabulary(self) -> tuple[NDArray[np.int64], list[str]]:
        """Return the ids of the sub-words that are one whole word, and these words."""
        tokenizer, special = self.tokenizer, {*self.tokenizer.all_special_ids}
        size = min(len(tokenizer), self.network.config.vocab_size)
        ids = [number for number in range(size) if number not in special]
        pieces = tokenizer.convert_ids_to_tokens(ids)
        words = [tokenizer.convert_tokens_to_string([piece]).strip() for piece in pieces]
        known = [number for number, word in enumerate(words) if word and not any(map(str.isspace, word))]
        cut = tokenizer([[words[number]] for number in known], is_split_into_words=True, add_special_tokens=False)
        whole = [number for number, one in zip(known, cut["input_ids"], strict=True) if list(one) == [ids[number]]]
        return np.asarray([ids[number] for number in whole], dtype=np.int64), [words[number] for number in whole]

    def _first_output(self, windows: Sequence[Window]) -> Any:
        # one row of logits for each place: those of the first window's own places
        logits = self.network(**self.tensors(windows)).logits[0]
        return logits[self.inside(windows[0], len(logits))]

    def fill(self, instances: Sequence[Instance], kept: Sequence[NDArray[np.bool_]]) -> list[Instance]:
        """Return each instance with every token that is not kept replaced by a drawn word.

        Args:
            instances: the instances.
            kept: for each instance flags of the tokens that stay, shape (tokens,).
        """
        windows: list[tuple[Window, list[Gap]]] = []
        for number, (one, flags) in enumerate(zip(instances, kept, strict=True)):
            windows += self._masked(number, one, flags)
        words = [list(one.tokens) for one in instances]
        numbers = {number: make_generator(self.seed, one.id, "infill") for number, one in enumerate(instances)}
        uniform = {number: random.random(len(words[number])) for number, random in numbers.items()}
        sizes = [len(window.code) for window, _ in windows]
        drawn = self.map_batches(lambda some: self._drawn(some, uniform), windows, sizes, BATCH_SIZE)
        self.passes += len(windows)
        for (_, places), row in zip(windows, drawn, strict=True):
            for place, word in zip(places, row, strict=True):
                words[place.instance][place.token] = self.drawn[word]
        filled = list[Instance]()
        for one, tokens in zip(instances, words, strict=True):
            documents = tuple(tuple(tokens[start:end]) for start, end in pairwise(one.bounds))
            filled.append(replace(one, documents=documents, rationale=None, scores=None))
        return filled

    def _masked(self, number: int, one: Instance, kept: NDArray[np.bool_]) -> list[tuple[Window, list[Gap]]]:
        """Return the windows of a text with masks for erased tokens, those that hold the best view of a mask."""
        mask = str(self.tokenizer.mask_token)
        tokens = tuple(token if stays else mask for token, stays in zip(one.tokens, kept, strict=True))
        pieces: Pieces = self.encode(Instance(one.id, (), (one.id,), (tokens,)))
        best: dict[int, tuple[int, int, int]] = {}  # token -> distance from the nearer end, window, place
        windows = pieces.whole()
        for at, window in enumerate(windows):
            for place in np.flatnonzero(window.piece >= 0).tolist():
                token = int(pieces.owner[window.piece[place]])
                margin = min(place, len(window.code) - 1 - place)
                if not kept[token] and margin > best.get(token, (-1, 0, 0))[0]:
                    best[token] = margin, at, place
        if len(best) < int(np.count_nonzero(~kept)):
            message = f"{self.description} drops masks of this text"
            raise DataError(message, argument="infill", rule="model", instance=one.id)
        chosen: dict[int, list[Gap]] = {}
        for token, (_, at, place) in sorted(best.items()):
            chosen.setdefault(at, []).append(Gap(number, token, place))
        return [(windows[at], places) for at, places in sorted(chosen.items())]

    def _drawn(
        self, batch: Sequence[tuple[Window, list[Gap]]], uniform: dict[int, NDArray[np.float64]]
    ) -> list[list[int]]:
        """Draw for each window the number of the word at each of its masks."""
        logits = self.logits(self.tensors([window for window, _ in batch]))
        rows = []
        for (window, places), row in zip(batch, logits, strict=True):
            start = self.inside(window, len(row)).start
            at = self.torch.tensor([start + one.place for one in places], device=row.device)
            shares = self.torch.softmax(
                to_float64(row[at][:, self.torch.from_numpy(self.allowed).to(row.device)]), dim=-1
            )
            sums = shares.cpu().numpy().cumsum(axis=1)
            rows.append(
                [
                    min(
                        int(np.searchsorted(below, uniform[one.instance][one.token] * below[-1], side="right")),
                        len(below) - 1,
                    )
                    for below, one in zip(sums, places, strict=True)
                ]
            )
        return rows


def open_infiller(name: str, seed: int, *, trust_remote_code: bool = False, **how: Any) -> Infiller:
    """Open a masked language model, a local folder or Hub id.

    Args:
        name: folder or Hub id.
        seed: seed of the draws.
        trust_remote_code: run the code that the model brings.
        **how: device and precision, as for :func:`eraser_hub.attribution.open_model`.

    Raises:
        DataError: it cannot be opened, or is no masked language model.
    """

    def find_class(architecture: str) -> str:
        if not architecture.endswith(("ForMaskedLM", "ForPreTraining")):
            message = f"expected a masked language model, found {architecture}"
            raise DataError(message, argument="infill", rule="model", file=name)
        return "AutoModelForMaskedLM"

    network, tokenizer, description = open_network(name, trust_remote_code, find_class)
    return Infiller(network, tokenizer, seed, description=description, **how)
