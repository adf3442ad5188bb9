"""``transformers`` models: word tokens in, sub-words inside, probabilities out.

Each word is cut into sub-words once; erased inputs are cut from the sub-word arrays (:mod:`pieces`). A text longer than
the model's window goes in as overlapping windows whose probabilities are averaged; how many did is counted and said.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eraser_hub.attribution.adapter import Encoded, View
from eraser_hub.attribution.instances import Instance
from eraser_hub.records.errors import DataError

from .devices import (
    describe_half,
    find_network_device,
    half_type,
    keep_heads_in_float32,
    move_network,
    to_float32,
    to_float64,
)
from .gradients import (
    PLAIN,
    Known,
    compute_attention_scores,
    compute_gradient_scores,
    compute_gradients_ahead,
    compute_masked_probabilities,
)
from .pieces import HEADS_CUT, UNKNOWN, Explained, Pieces, Window, WindowModel, make_window, pad_windows
from .words import CutWords

PADDING_SEEN = 1e-4  # relative difference of logits; rounding makes a hundredth of it


class SequenceModel(WindowModel):
    """A sequence classifier.

    With a query the input is the pair (query, documents); without one, two documents (premise and hypothesis, two
    sentences to compare) are the pair, and any other number is one text.

    On a GPU forward passes run in bfloat16 where it has it (autocast; the head behind the encoder, softmax, gradients
    and attention in float32 or better), and inputs go over from pinned memory; chosen by itself, and said.
    """

    has_embeddings = True
    provides = frozenset({"probabilities", "gradients", "embeddings", "attention", "layers"})

    def __init__(
        self,
        network: Any,
        tokenizer: Any,
        *,
        uses_query: bool = False,
        query_last: bool = False,
        window: int | None = None,
        device: str | None = None,
        precision: str = "auto",
        description: str = "",
        dtype: str = "float32",
    ) -> None:
        import torch

        super().__init__()
        self.torch = torch
        self.device = find_network_device(device, getattr(network, "lm", network))
        self.half = None if dtype != "float32" else half_type(precision, self.device)
        self.network = move_network(network, self.device, dtype != "float32")
        if self.half:
            keep_heads_in_float32(self.network, self.device.type)
            self.notes.add_message(describe_half(self.half, self.device))
        self.tokenizer, self.words, self.uses_query = tokenizer, self.make_words(tokenizer), uses_query
        self.query_last = query_last
        self.description = description or type(network).__name__
        names = getattr(network.config, "id2label", None) or {}
        self.label_names = tuple(str(names[number]) for number in sorted(names, key=int))
        longest = find_longest_input(network, tokenizer)
        if window is not None and not self.words.pair.size + 2 <= window <= longest:
            message = f"expected {self.words.pair.size + 2} to {longest} sub-words, found {window}"
            raise DataError(message, argument="window")
        self.window = window or longest
        self._known: Known = {}
        if network.config.pad_token_id is None:
            network.config.pad_token_id = self.words.pad
        # XLNet and its like classify at the last place, whatever stands there
        self._pads_at_start = getattr(network.config, "summary_type", None) == "last"
        self.pads = not self._sees_padding()
        if not self.pads:
            self.notes.add_message(f"{self.description} sees its padding: only inputs of one length go together")

    @staticmethod
    def make_words(tokenizer: Any) -> CutWords:
        """Return the tokenizer, word by word."""
        return CutWords(tokenizer)

    def _sees_padding(self) -> bool:
        """Return True if a longer input beside it changes an input's outputs (convolutions, Fourier layers)."""
        (word,) = self.words.cut(["a"])
        short, long = (
            make_window(self.words.single, (), (), word * times, np.arange(len(word) * times))
            for times in (2, max(2, min(12, (self.window - self.words.single.size) // len(word))))
        )
        try:
            with self.torch.inference_mode():
                alone, beside = (self._first_output(some).float() for some in ([short], [short, long]))
        except Exception:  # the run itself reports what a network cannot take
            return False
        return bool((alone - beside).abs().max() > PADDING_SEEN * (1 + alone.abs().max()))

    def _first_output(self, windows: Sequence[Any]) -> Any:
        """Return the network's output for the first of several windows."""
        return self.network(**self.tensors(windows)).logits[0]

    def encode(self, instance: Instance) -> Pieces:
        """Cut the instance into the units that the model reads."""
        pieces = self.words.cut(instance.tokens)
        counts = np.asarray([len(word) for word in pieces], dtype=np.int64)
        owner = np.repeat(np.arange(len(pieces)), counts)
        ids = np.asarray([piece for word in pieces for piece in word], dtype=np.int64)
        first = np.ones(len(owner), dtype=bool)
        first[1:] = owner[1:] != owner[:-1]
        query = [piece for word in self.words.cut(instance.query) for piece in word] if self.uses_query else []
        split = 0
        if not query and len(instance.documents) == 2:
            split = int(np.searchsorted(owner, len(instance.documents[0])))
        encoded = Pieces(instance, self, np.asarray(query, dtype=np.int64), ids, owner, first, split)
        self.count_limits(encoded)
        if encoded.is_head_cut:
            self.notes.count(HEADS_CUT)
        return encoded

    def count_limits(self, encoded: Pieces) -> None:
        """Count a text that is longer than the window, or whose words the tokenizer does not know."""
        tokens, owner = encoded.bounds[-1], encoded.owner
        unknown = len(np.unique(owner[encoded.ids == self.tokenizer.unk_token_id])) + tokens - len(np.unique(owner))
        if 2 * unknown > tokens:
            self.notes.count(UNKNOWN)
        windows = len(encoded.whole())
        if windows > 1:
            self.notes.count("texts longer than the window", 1)
            self.notes.count("windows of those texts", windows)

    def rows_for(self, size: int, batch_size: int) -> int:
        """Return the number of units in a batch."""
        # as many sub-words as batch_size inputs of full length (512, if that is less) have; on a processor an eighth
        # of that, since larger matrices leave its caches and go slower
        longest = min(self.window, 512 if self.device.type == "cuda" else 64)
        return max(1, min(batch_size * longest // max(size, 1), 32 * batch_size))

    def tensors(self, windows: Sequence[Any]) -> dict[str, Any]:
        """Return padded model inputs on the device."""
        ids, types, visible = pad_windows(windows, self.words.pad, self._pads_at_start)
        arrays = {"input_ids": ids, "attention_mask": visible}
        if "token_type_ids" in self.tokenizer.model_input_names:
            arrays["token_type_ids"] = types
        return {name: self._move(array) for name, array in arrays.items()}

    def inside(self, window: Window, places: int) -> slice:
        """Return the slice of a window in a padded row of so many places."""
        size = len(window.code)
        return slice(places - size, places) if self._pads_at_start else slice(0, size)

    def _move(self, array: NDArray[Any]) -> Any:
        tensor = self.torch.from_numpy(array)
        if self.device.type == "cuda":
            return tensor.pin_memory().to(self.device, non_blocking=True)
        return tensor.to(self.device)

    def logits(self, inputs: dict[str, Any]) -> Any:
        """Return the network's logits, in float32 or better."""
        with self.torch.inference_mode(), self._cast():
            return to_float32(self.network(**inputs).logits)

    def _cast(self) -> AbstractContextManager[object]:
        return self.torch.autocast(self.device.type, dtype=self.half) if self.half else nullcontext()

    def forward(self, units: Sequence[tuple[View, int]]) -> Any:
        """Return the probabilities of a batch, a tensor on the device."""
        logits = self.logits(self.tensors([view.data[number] for view, number in units]))
        return self.to_outputs(to_float64(logits))

    def to_outputs(self, logits: Any) -> Any:
        """Return the outputs of a head's logits: probabilities by softmax, shape (inputs, labels)."""
        return self.torch.softmax(logits, dim=-1)

    def scores(
        self, method: str, encoded: Sequence[Encoded], targets: Sequence[int], steps: int
    ) -> list[NDArray[np.float64]]:
        """Compute token scores by a method that looks inside the model."""
        if method == "attention":
            return compute_attention_scores(self, [one for one in encoded if isinstance(one, Pieces)])
        known, self._known = self._known, {}
        return compute_gradient_scores(self, encoded, targets, method, steps, known)

    def explained(self, encoded: Any, target: int) -> list[Explained]:
        """Return the model inputs to explain."""
        return [Explained(window, (self.column(target),), target=target) for window in encoded.whole()]

    def explained_output(self, out: Any, places: Any, method: str) -> Any:
        """Return the output whose gradient is taken, shape (inputs,)."""
        logits = to_float32(out.logits)
        # of DeepLIFT logits, see `deeplift`
        centred = logits - logits.mean(dim=-1, keepdim=True) if method == "deeplift" else logits.softmax(dim=-1)
        return centred.gather(1, places)[:, 0]

    def ahead(
        self, method: str, encoded: Sequence[Encoded], targets: Sequence[int | None]
    ) -> dict[bytes, NDArray[np.float64]]:
        """Return the outputs of whole inputs that the gradients' passes give."""
        self._known = {}
        # in half precision passes are not those of the gradient
        if self.half or method not in PLAIN or self.explains_singly:
            return {}
        pieces = [one for one in encoded if isinstance(one, Pieces)]
        columns = [None if target is None else self.column(target) for target in targets]
        outputs, self._known = compute_gradients_ahead(self, pieces, columns, method)
        return outputs

    def masked_elements(
        self, encoded: Encoded, target: int, keep: NDArray[np.float64], draws: int, random: np.random.Generator
    ) -> NDArray[np.float64]:
        """Return p of a label with elements of token embeddings masked at random."""
        if not isinstance(encoded, Pieces):
            return super().masked_elements(encoded, target, keep, draws, random)
        return compute_masked_probabilities(self, encoded, self.column(target), keep, draws, random)


def find_longest_input(network: Any, tokenizer: Any) -> int:
    """Return the longest input in sub-words that both the tokenizer and the position embeddings allow."""
    limits = [tokenizer.model_max_length] if tokenizer.model_max_length < 1_000_000 else []
    positions = count_positions(network)
    limits += [positions] if positions else []
    return int(min(limits)) if limits else 512


def count_positions(network: Any) -> int:
    """Return the longest input in sub-words that the position embeddings allow; 0 for any."""
    positions = getattr(network.config, "max_position_embeddings", None)
    if not isinstance(positions, int) or positions <= 0:
        return 0
    # RoBERTa and its kin number positions from the one behind the padding's on
    embeddings = getattr(getattr(network, "base_model", None), "embeddings", None)
    padding = getattr(getattr(embeddings, "position_embeddings", None), "padding_idx", None)
    return positions if padding is None else positions - padding - 1
