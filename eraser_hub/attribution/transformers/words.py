"""Words to sub-words, by any tokenizer that takes words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eraser_hub.records.errors import DataError, UsageError, get_first_line
from eraser_hub.records.extras import need

# the class of transformers that generates text, and the ends of the names of its architectures
GENERATOR, GENERATOR_ENDINGS = "AutoModelForCausalLM", ("ForCausalLM", "LMHeadModel")


def silence() -> None:
    """Let transformers print errors alone, and show no progress."""
    from transformers.utils import logging

    logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]


def load_tokenizer(name: str, trust_remote_code: bool = False) -> Any:
    """Load the tokenizer of a model, set to take words (byte-level tokenizers need a blank before each)."""
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(name, trust_remote_code=trust_remote_code)
    if getattr(tokenizer, "add_prefix_space", None) is False:
        tokenizer = transformers.AutoTokenizer.from_pretrained(
            name, add_prefix_space=True, trust_remote_code=trust_remote_code
        )
    check_vocabulary(tokenizer, name)
    return tokenizer


def check_vocabulary(tokenizer: Any, name: str) -> None:
    """Refuse a tokenizer of special tokens alone, which transformers makes where a model comes without a tokenizer.

    Raises:
        DataError: such a tokenizer.
    """
    added = (str(one) for one in tokenizer.added_tokens_decoder.values() if one.special)
    words = tokenizer.get_vocab().keys() - {*tokenizer.all_special_tokens, *added}
    if not any(word.strip("\u2581\u0120 ") for word in words):  # some have a sign for a blank of their own
        raise _make_no_tokenizer_error(name)


def _make_no_tokenizer_error(name: str) -> DataError:
    message = (
        "expected the model's tokenizer beside its weights (such as tokenizer.json or vocab.txt), found none: write it "
        f"there by tokenizer.save_pretrained({name!r})"
    )
    return DataError(message, file=name)


def make_open_error(error: Exception, name: str) -> DataError:
    """Return the error for a model that transformers did not open; its first line names what is missing."""
    if "the backend tokenizer" in str(error) and Path(name).is_dir():
        return _make_no_tokenizer_error(name)
    if "trust_remote_code" in str(error):
        return UsageError(
            "the model brings its own code, which was not run: say `trust_remote_code` if you trust its source",
            file=name,
        )
    words = f"cannot open the model: {get_first_line(error)}"
    if not Path(name).exists():
        words = f"neither a folder here nor a model of the Hub can be opened under this name: {get_first_line(error)}"
    return DataError(words, file=name)


def make_loading(dtype: str, device_map: str, device: str | None) -> dict[str, Any]:
    """Return the arguments of from_pretrained for the type of a language model's weights, and for its places.

    Raises:
        DataError: ``device_map`` beside a device, or without the package accelerate.
    """
    import torch
    import transformers

    if device_map and device is not None:
        message = f"expected `device` or `device_map`, found both: {device} and {device_map}"
        raise DataError(message, argument="device_map")
    if device_map:
        need("accelerate")
    version = tuple(int(part) for part in transformers.__version__.split(".")[:2])
    name = "dtype" if version >= (4, 56) else "torch_dtype"
    placed = {"device_map": device_map} if device_map else {}
    return {name: getattr(torch, dtype), **placed} if placed or dtype != "float32" else {}


def open_network(
    name: str, trust_remote_code: bool, find_class: Callable[[str], str], loading: Mapping[str, Any] | None = None
) -> tuple[Any, Any, str]:
    """Open a network from a local folder or Hub id; return it, its tokenizer and its description.

    Args:
        name: folder or Hub id.
        trust_remote_code: run the code that the model brings.
        find_class: from the architecture to the class of transformers that opens it.
        loading: further arguments of from_pretrained, of a language model: see :func:`make_loading`.

    Raises:
        DataError: it cannot be opened; its files lack weights; what ``find_class`` refuses.
    """
    import transformers

    silence()
    options = dict[str, Any](trust_remote_code=trust_remote_code)
    try:
        config = transformers.AutoConfig.from_pretrained(name, **options)
        architecture = (config.architectures or ["an encoder without a task"])[0]
        class_name = find_class(architecture)
        if class_name == GENERATOR:
            # as it is: the prompt is one text, whose words stand behind blanks already
            tokenizer = transformers.AutoTokenizer.from_pretrained(name, **options)
            check_vocabulary(tokenizer, name)
            options |= loading or {}
        else:
            tokenizer = load_tokenizer(name, trust_remote_code)
        network, loaded = getattr(transformers, class_name).from_pretrained(name, output_loading_info=True, **options)
        missing = sorted(loaded["missing_keys"])
        if missing:
            message = f"its files lack {len(missing)} of the weights of {type(network).__name__}, which transformers "
            message += f"would draw at random ({', '.join(missing[:3])}): fine-tune it first"
            raise DataError(f"{message} (eraser-hub train --model {name})", file=name)
    except DataError:
        raise
    except Exception as error:  # transformers raises many kinds; its first line names what is missing
        raise make_open_error(error, name) from error
    return network, tokenizer, f"{architecture} {Path(name).name}"


@dataclass(frozen=True, slots=True)
class Template:
    """Special tokens around a text, or around a pair of texts, and token types.

    Attributes:
        before, between, after: special tokens; there is nothing between with a single text.
        special_types: token types of those three.
        types: token types of the first and of the second (or only) text.
    """

    before: tuple[int, ...]
    between: tuple[int, ...]
    after: tuple[int, ...]
    special_types: tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]
    types: tuple[int, int]

    @property
    def size(self) -> int:
        """Number of special tokens."""
        return len(self.before) + len(self.between) + len(self.after)


class CutWords:
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
        # what stands for a text of which nothing is left, where no special token does
        starts = (tokenizer.bos_token_id, tokenizer.eos_token_id, self.pad)
        self.blank = next(start for start in starts if start is not None)

    def _template(self, pair: bool) -> Template:
        encoded = self.tokenizer(["a"], ["b"] if pair else None, is_split_into_words=True)
        ids, types = encoded["input_ids"], encoded.get("token_type_ids")
        owners = encoded.sequence_ids() if self.tokenizer.is_fast else self._owners(ids, pair)
        first = [place for place, owner in enumerate(owners) if owner == 0]
        if not first or (pair and 1 not in owners):
            message = "the tokenizer gives no sub-word for the words 'a' and 'b': it cannot be used with words"
            raise DataError(message)
        types = types or [0] * len(ids)
        second = [place for place, owner in enumerate(owners) if owner == 1] if pair else first
        between = slice(first[-1] + 1, second[0] if pair else first[-1] + 1)
        parts = slice(0, first[0]), between, slice(second[-1] + 1, None)
        before, middle, after = (tuple(ids[part]) for part in parts)
        kinds = tuple(types[parts[0]]), tuple(types[parts[1]]), tuple(types[parts[2]])
        return Template(before, middle, after, kinds, (types[first[0]], types[second[0]]))

    def _owners(self, ids: Sequence[int], pair: bool) -> list[int | None]:
        """Return the number of the text that each id belongs to, for tokenizers that do not give it."""
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
        """Return the sub-word ids of each word; a word that the tokenizer drops (a zero-width blank) has none.

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
