"""``transformers`` models: word tokens in, sub-words inside, probabilities out.

Each word is cut into sub-words once; erased inputs are cut from the sub-word arrays. A text longer than the model's
window goes in as overlapping windows whose probabilities are averaged; how many did is counted and said.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eraser_hub.errors import DataError

from .devices import device_for, heads_in_float32, in_bf16, placed
from .instances import Instance, first_line
from .models import Adapter, Encoded, View

GRADIENT_METHODS = ("gradient", "input-x-gradient", "integrated-gradients")
OVERLAP = 4  # a window starts three quarters of its length after the one before it


def open_transformer(
    name: str,
    *,
    task: str = "auto",
    uses_query: bool | None = None,
    window: int | None = None,
    device: str | None = None,
    precision: str = "auto",
) -> Adapter:
    """Open a local folder or Hub id as the adapter that its architecture asks for.

    Raises:
        DataError: cannot be opened, or an architecture that classifies nothing.
    """
    import transformers

    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    try:
        config = transformers.AutoConfig.from_pretrained(name)
        tokenizer = load_tokenizer(name)
        architecture = (config.architectures or ["an encoder without a task"])[0]
        if task == "auto":
            task = next(
                (
                    known
                    for ending, known in (
                        ("ForSequenceClassification", "classification"),
                        ("ForMultipleChoice", "multiple-choice"),
                        ("ForQuestionAnswering", "question-answering"),
                    )
                    if architecture.endswith(ending)
                ),
                "",
            )
        if not task:
            raise DataError(
                f"expected a model for sequence classification, multiple choice or question answering, found "
                f"{architecture}; fine-tune it first (eraser-hub train --model {name})"
            )
        kinds = {
            "classification": transformers.AutoModelForSequenceClassification,
            "multiple-choice": transformers.AutoModelForMultipleChoice,
            "question-answering": transformers.AutoModelForQuestionAnswering,
        }
        network = kinds[task].from_pretrained(name)
    except DataError:
        raise
    except Exception as error:  # transformers raises many kinds; its first line names what is missing
        raise DataError(f"cannot open the model: {first_line(error)}", file=name) from error
    more: dict[str, Any] = {
        "window": window, "device": device, "precision": precision, "description": f"{architecture} {Path(name).name}",
    }  # fmt: skip
    if task == "multiple-choice":
        from .multiple_choice import ChoiceModel

        return ChoiceModel(network, tokenizer, **more)
    if task == "question-answering":
        from .question_answering import AnswerModel

        return AnswerModel(network, tokenizer, **more)
    return SequenceModel(network, tokenizer, uses_query=bool(uses_query), **more)


def load_tokenizer(name: str) -> Any:
    """The tokenizer of a model, set to take words (byte-level tokenizers need a blank before each)."""
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(name)
    if getattr(tokenizer, "add_prefix_space", None) is False:
        tokenizer = transformers.AutoTokenizer.from_pretrained(name, add_prefix_space=True)
    return tokenizer


@dataclass(frozen=True, slots=True)
class Template:
    """Special tokens around a text, or around a pair of texts, and the token types of both parts."""

    before: tuple[int, ...]
    between: tuple[int, ...]
    after: tuple[int, ...]
    types: tuple[int, int]

    @property
    def size(self) -> int:
        """Number of special tokens."""
        return len(self.before) + len(self.between) + len(self.after)


class Words:
    """Words to sub-words by any tokenizer that takes words, each word cut once and remembered."""

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer
        self._pieces: dict[str, tuple[int, ...]] = {}
        self._independent = True
        self._checks_left = 8
        self.single, self.pair = self._template(False), self._template(True)
        pad = tokenizer.pad_token_id
        self.pad = pad if pad is not None else (tokenizer.eos_token_id or 0)
        self.can_pad, self.mask = pad is not None, tokenizer.mask_token_id

    def _template(self, pair: bool) -> Template:
        encoded = self.tokenizer(["a"], ["b"] if pair else None, is_split_into_words=True)
        ids, types = encoded["input_ids"], encoded.get("token_type_ids")
        owners = encoded.sequence_ids() if self.tokenizer.is_fast else self._owners(ids, pair)
        first = [place for place, owner in enumerate(owners) if owner == 0]
        if not first or (pair and 1 not in owners):
            raise DataError("the tokenizer gives no sub-word for the words 'a' and 'b': it cannot be used with words")
        if not pair:
            return Template(
                tuple(ids[: first[0]]), (), tuple(ids[first[-1] + 1 :]), (types[first[0]] if types else 0,) * 2
            )
        second = [place for place, owner in enumerate(owners) if owner == 1]
        return Template(
            tuple(ids[: first[0]]),
            tuple(ids[first[-1] + 1 : second[0]]),
            tuple(ids[second[-1] + 1 :]),
            (types[first[0]], types[second[0]]) if types else (0, 0),
        )

    def _owners(self, ids: Sequence[int], pair: bool) -> list[int | None]:
        """Which text each id belongs to, for tokenizers that do not say."""
        owners: list[int | None] = [None] * len(ids)
        place = 0
        for number, word in enumerate(("a", "b") if pair else ("a",)):
            pieces = self.tokenizer([word], is_split_into_words=True, add_special_tokens=False)["input_ids"]
            while ids[place : place + len(pieces)] != pieces and place < len(ids):
                place += 1
            owners[place : place + len(pieces)] = [number] * len(pieces)
            place += len(pieces)
        return owners

    def cut(self, words: Sequence[str]) -> list[tuple[int, ...]]:
        """Sub-word ids of each word; a word that the tokenizer drops (a zero-width blank) has none.

        Most tokenizers cut a word the same way whatever stands beside it. That is checked on the first texts; for a
        tokenizer that does not, whole texts are cut and assigned to words.
        """
        if not self._independent:
            return self._cut_whole(words)
        new = [word for word in dict.fromkeys(words) if word not in self._pieces]
        if new:
            cut = self.tokenizer([[word] for word in new], is_split_into_words=True, add_special_tokens=False)
            self._pieces.update(zip(new, map(tuple, cut["input_ids"]), strict=True))
        pieces = [self._pieces[word] for word in words]
        if self._checks_left and len(words) > 1 and self.tokenizer.is_fast:
            self._checks_left -= 1
            whole = self._cut_whole(words)
            if whole != pieces:
                self._independent = False
                return whole
        return pieces

    def _cut_whole(self, words: Sequence[str]) -> list[tuple[int, ...]]:
        pieces: list[list[int]] = [[] for _ in words]
        if words:
            encoded = self.tokenizer(
                list(words), is_split_into_words=True, add_special_tokens=False, truncation=False, verbose=False
            )
            for piece, owner in zip(encoded["input_ids"], encoded.word_ids(), strict=True):
                if owner is not None:
                    pieces[owner].append(piece)
        return [tuple(word) for word in pieces]


@dataclass(slots=True)
class Window:
    """One model input: sub-words of the first and second text, and for each the flat position in the encoding."""

    ids: NDArray[np.int64]
    types: NDArray[np.int64]
    seen: NDArray[np.bool_]
    piece: NDArray[np.int64]  # number of the erasable sub-word at each place, -1 for specials and the query


def key_of(windows: Sequence[Window]) -> bytes:
    """Bytes that are equal exactly when the model's inputs are."""
    digest = hashlib.blake2b(digest_size=16)
    for window in windows:
        for part in (window.ids, window.types, window.seen):
            digest.update(part.data)
        digest.update(b"\x1d")
    return digest.digest()


@dataclass(frozen=True, slots=True)
class Frame:
    """The whole input with nothing erased, as if the window had no end: erased inputs that fit are cut from it."""

    whole: Window
    fixed: NDArray[np.bool_]  # special tokens and the query, which always stay
    places: NDArray[np.int64]  # where each erasable sub-word stands
    head: int  # erasable sub-words of the first text
    most: int  # how many of those fit


@dataclass(slots=True)
class Pieces(Encoded):
    """An instance cut into sub-words."""

    instance: Instance
    model: SequenceModel
    query: NDArray[np.int64]
    ids: NDArray[np.int64]  # sub-words of all documents, one after the other
    owner: NDArray[np.int64]  # the token that each belongs to
    first: NDArray[np.bool_]  # whether it is its token's first
    split: int  # sub-words of the pair's first text; 0: one text (or the query stands first)
    _frame: Frame | None = None

    def frame(self) -> Frame:
        """Made once; thousands of erased inputs are cut from it."""
        if self._frame is None:
            words, head = self.model.words, len(self.query) or self.split
            template = words.pair if head else words.single
            most = max(1, (self.model.window - template.size) // 2)
            numbers, hidden = np.arange(len(self.ids)), np.zeros(len(self.ids), dtype=bool)
            if len(self.query):
                query = self.query[:most]
                none = np.full(len(query), -1), np.zeros(len(query), dtype=bool)
                whole = _window(template, query, *none, self.ids, numbers, hidden)
            else:
                cut = self.split
                whole = _window(
                    template, self.ids[:cut], numbers[:cut], hidden[:cut], self.ids[cut:], numbers[cut:], hidden[cut:]
                )
            fixed = whole.piece < 0
            self._frame = Frame(whole, fixed, np.flatnonzero(~fixed), self.split, most)
        return self._frame

    def one_window(self, kept: NDArray[np.bool_], erase: str) -> Window | None:
        """The model's input where it fits into one window, which is what most erased inputs do; else None."""
        frame, stays = self.frame(), kept[self.owner]
        whole = frame.whole
        stay = stays if erase == "remove" else stays | self.first
        if frame.head > frame.most and np.count_nonzero(stay[: frame.head]) > frame.most:
            return None
        flags = frame.fixed.copy()
        flags[frame.places] = stay
        (chosen,) = flags.nonzero()
        if len(chosen) > self.model.window:
            return None
        # take is the quickest of numpy's ways, and this is done for every erased input
        ids, seen = whole.ids.take(chosen), whole.seen[: len(chosen)]
        if erase != "remove" and not stays.all():
            flags[frame.places] = stays
            gone = ~flags.take(chosen)
            ids[gone] = self.substitute(erase)
            if erase == "pad":
                seen = ~gone
        return Window(ids, whole.types.take(chosen), seen, whole.piece.take(chosen))

    def substitute(self, erase: str) -> int:
        """The id that stands for an erased token."""
        words = self.model.words
        substitute = words.mask if erase == "mask" else words.pad
        if substitute is None or (erase == "pad" and not words.can_pad):
            raise DataError(f"--erase {erase}: {self.model.description} has no {erase} token; use --erase remove")
        return int(substitute)

    def erased(self, kept: NDArray[np.bool_], erase: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Ids and numbers of the sub-words that remain; a masked or padded token keeps one place."""
        stays = kept[self.owner]
        if erase == "remove" or stays.all():
            places = np.flatnonzero(stays)
            return self.ids[places], places
        places = np.flatnonzero(stays | self.first)
        return np.where(stays[places], self.ids[places], self.substitute(erase)), places

    def windows(self, kept: NDArray[np.bool_], erase: str, overlap: bool = True) -> list[Window]:
        """The model's inputs for the text, one or several, which overlap by a quarter unless told otherwise."""
        one = self.one_window(kept, erase)
        if one is not None:
            return [one]
        ids, places = self.erased(kept, erase)
        hidden = ~kept[self.owner[places]] if erase == "pad" else np.zeros(len(ids), dtype=bool)
        words = self.model.words
        if len(self.query):
            template, head, head_places = words.pair, self.query, np.full(len(self.query), -1)
            head_hidden = np.zeros(len(self.query), dtype=bool)
        elif self.split:
            template = words.pair
            cut = int(np.searchsorted(places, self.split))
            head, head_places, head_hidden = ids[:cut], places[:cut], hidden[:cut]
            ids, places, hidden = ids[cut:], places[cut:], hidden[cut:]
        else:
            template = words.single
            head, head_places, head_hidden = ids[:0], places[:0], hidden[:0]
        limit = max(1, (self.model.window - template.size) // 2)
        if len(head) > limit:
            head, head_places, head_hidden = head[:limit], head_places[:limit], head_hidden[:limit]
        room = max(1, self.model.window - template.size - len(head))
        starts = [0]
        while starts[-1] + room < len(ids):
            starts.append(starts[-1] + max(1, room - (room // OVERLAP if overlap else 0)))
        return [
            _window(
                template, head, head_places, head_hidden, ids[s : s + room], places[s : s + room], hidden[s : s + room]
            )
            for s in starts
        ]

    def view(self, kept: NDArray[np.bool_], erase: str) -> View:
        windows = self.windows(kept, erase)
        return View(key_of(windows), tuple(len(window.ids) for window in windows), windows)


def _window(
    template: Template, head: Any, head_places: Any, head_hidden: Any, ids: Any, places: Any, hidden: Any
) -> Window:
    """Specials, first text and second text in the template's order."""
    before, between, after = (
        np.asarray(part, dtype=np.int64) for part in (template.before, template.between, template.after)
    )
    none = [np.full(len(part), -1) for part in (before, between, after)]
    lead = len(before) + len(head) + len(between)
    sequence = np.concatenate([before, head, between, ids, after])
    return Window(
        sequence,
        np.where(np.arange(len(sequence)) < lead, *template.types),
        ~np.concatenate([none[0] > 0, head_hidden, none[1] > 0, hidden, none[2] > 0]),
        np.concatenate([none[0], head_places, none[1], places, none[2]]).astype(np.int64),
    )


class SequenceModel(Adapter):
    """A sequence classifier.

    With a query the input is the pair (query, documents); without one, two documents (premise and hypothesis, two
    sentences to compare) are the pair, and any other number is one text.

    On a GPU forward passes run in bf16 where it has it (autocast; the head behind the encoder, softmax, gradients and
    attention in float32 or better), and inputs go over from pinned memory; chosen by itself, and said.
    """

    def __init__(
        self,
        network: Any,
        tokenizer: Any,
        *,
        uses_query: bool = False,
        window: int | None = None,
        device: str | None = None,
        precision: str = "auto",
        description: str = "",
    ) -> None:
        import torch

        super().__init__()
        self.torch = torch
        self.device = device_for(device)
        self.half = in_bf16(precision, self.device)
        self.network = placed(network, self.device)
        if self.half:
            heads_in_float32(self.network, self.device.type)
            self.notes.say(f"forward passes in bf16 on {self.device}; --precision float32 for more digits")
        self.tokenizer, self.words, self.uses_query = tokenizer, Words(tokenizer), uses_query
        self.description = description or type(network).__name__
        names = getattr(network.config, "id2label", None) or {}
        self.label_names = tuple(str(names[number]) for number in sorted(names, key=int))
        longest = longest_input(network.config, tokenizer)
        if window is not None and not self.words.pair.size + 2 <= window <= longest:
            raise DataError(f"--window: expected {self.words.pair.size + 2} to {longest} sub-words, found {window}")
        self.window = window or longest
        if network.config.pad_token_id is None:
            network.config.pad_token_id = self.words.pad

    def encode(self, instance: Instance) -> Pieces:
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
        windows = len(encoded.windows(np.ones(len(pieces), dtype=bool), "remove"))
        if windows > 1:
            self.notes.count("texts longer than the window", 1)
            self.notes.count("windows of those texts", windows)
        if (len(query) or split) > (self.window - self.words.pair.size) // 2:
            self.notes.count("queries or first texts cut to half the window")
        return encoded

    def rows_for(self, size: int, batch_size: int) -> int:
        # as many sub-words as batch_size inputs of full length (512, if that is less) have; on a processor an eighth
        # of that, since larger matrices leave its caches and go slower
        longest = min(self.window, 512 if self.device.type == "cuda" else 64)
        return max(1, min(batch_size * longest // max(size, 1), 32 * batch_size))

    def tensors(self, windows: Sequence[Window]) -> dict[str, Any]:
        """Padded model inputs on the device."""
        longest = max(len(window.ids) for window in windows)
        ids = np.full((len(windows), longest), self.words.pad, dtype=np.int64)
        types = np.zeros_like(ids)
        seen = np.zeros_like(ids)
        for row, window in enumerate(windows):
            size = len(window.ids)
            ids[row, :size], types[row, :size], seen[row, :size] = window.ids, window.types, window.seen
        arrays = {"input_ids": ids, "attention_mask": seen}
        if "token_type_ids" in self.tokenizer.model_input_names:
            arrays["token_type_ids"] = types
        return {name: self._move(array) for name, array in arrays.items()}

    def _move(self, array: NDArray[Any]) -> Any:
        tensor = self.torch.from_numpy(array)
        if self.device.type == "cuda":
            return tensor.pin_memory().to(self.device, non_blocking=True)
        return tensor.to(self.device)

    def logits(self, inputs: dict[str, Any]) -> Any:
        """The network's logits, float32."""
        context = self.torch.autocast(self.device.type, dtype=self.torch.bfloat16) if self.half else nullcontext()
        with self.torch.inference_mode(), context:
            return self.network(**inputs).logits.float()

    def forward(self, units: Sequence[tuple[View, int]]) -> NDArray[np.float64]:
        logits = self.logits(self.tensors([view.data[number] for view, number in units]))
        return self.torch.softmax(logits.double(), dim=-1).cpu().numpy()

    def supports(self, method: str) -> bool:
        return method in (*GRADIENT_METHODS, "attention") or super().supports(method)

    def scores(
        self, method: str, encoded: Sequence[Encoded], targets: Sequence[int], steps: int
    ) -> list[NDArray[np.float64]]:
        from .gradients import attention_scores, gradient_scores

        pieces = [one for one in encoded if isinstance(one, Pieces)]
        if method == "attention":
            return attention_scores(self, pieces)
        return gradient_scores(self, pieces, [self.column(target) for target in targets], method, steps)


def longest_input(config: Any, tokenizer: Any) -> int:
    """The longest input in sub-words that both the tokenizer and the position embeddings allow."""
    limits = [tokenizer.model_max_length] if tokenizer.model_max_length < 1_000_000 else []
    positions = getattr(config, "max_position_embeddings", None)
    if isinstance(positions, int) and positions > 0:
        # RoBERTa and its kin number positions from the padding index on
        offset = config.model_type in (
            "roberta",
            "xlm-roberta",
            "camembert",
            "mpnet",
            "longformer",
            "xlm-roberta-xl",
            "data2vec-text",
        )
        limits.append(positions - (config.pad_token_id or 0) - 1 if offset else positions)
    return int(min(limits)) if limits else 512
