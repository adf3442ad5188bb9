"""Tokenizers and networks of transformers: opened, and words cut into sub-words."""

from __future__ import annotations

import socket
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies

import numpy as np

from eraser_hub.records.errors import DataError, UsageError, get_first_line
from eraser_hub.records.extras import need

from .pieces import Ints, Template, encode_places


def silence() -> None:
    """Let transformers print errors alone, and show no progress."""
    from transformers.utils import logging

    logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]


def find_loading_options(name: str, trust_remote_code: bool) -> dict[str, Any]:
    """Return options of from_pretrained, by which it does not try the Hub for half a minute where there is no network.

    Args:
        name: folder or Hub id.
        trust_remote_code: run the code that the model brings.
    """
    from huggingface_hub import constants

    offline = False
    if not Path(name).is_dir() and not getproxies():
        try:
            socket.getaddrinfo(urlsplit(constants.ENDPOINT).hostname, None)
        except OSError:
            offline = True
    return {"trust_remote_code": trust_remote_code, "local_files_only": offline}


def load_tokenizer(name: str, trust_remote_code: bool = False) -> Any:
    """Load the tokenizer of a model, set to take words (byte-level tokenizers need a blank before each)."""
    import transformers

    load, options = transformers.AutoTokenizer.from_pretrained, find_loading_options(name, trust_remote_code)
    tokenizer = load(name, **options)
    if getattr(tokenizer, "add_prefix_space", None) is False:
        tokenizer = load(name, add_prefix_space=True, **options)
    check_vocabulary(tokenizer, name)
    return tokenizer


def prepare_tokenizer(tokenizer: Any) -> Any:
    """Return a tokenizer in memory, set to take words."""
    if getattr(tokenizer, "add_prefix_space", None) is not False:
        return tokenizer
    with tempfile.TemporaryDirectory() as folder:
        tokenizer.save_pretrained(folder)
        return load_tokenizer(folder)


def check_vocabulary(tokenizer: Any, name: str) -> None:
    """Refuse a tokenizer of special tokens alone, which transformers makes where a model comes without a tokenizer.

    Raises:
        DataError: such a tokenizer.
    """
    added = (str(token) for token in tokenizer.added_tokens_decoder.values() if token.special)
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
        message = "the model brings its own code, which was not run: say `trust_remote_code` if you trust its source"
        return UsageError(message, file=name)
    words = "cannot open the model"
    if not Path(name).exists():
        words = "neither a folder here nor a model of the Hub can be opened under this name"
    return DataError(f"{words}: {get_first_line(error)}", file=name)


def open_network(
    name: str,
    find_class: Callable[[str], str],
    *,
    trust_remote_code: bool = False,
    dtype: str = "float32",
    device_map: str = "",
) -> tuple[Any, Any, str]:
    """Open a network from a local folder or Hub id; return it, its tokenizer and its architecture.

    Args:
        name: folder or Hub id.
        find_class: from the architecture to the class of transformers that opens it.
        trust_remote_code: run the code that the model brings.
        dtype: type of a language model's weights.
        device_map: where a language model's layers go.

    Raises:
        DataError: it cannot be opened; its files lack weights; what ``find_class`` refuses.
    """
    need("torch", "transformers")
    import torch
    import transformers

    silence()
    options = find_loading_options(name, trust_remote_code)
    try:
        config = transformers.AutoConfig.from_pretrained(name, **options)
        architecture = (config.architectures or ["an encoder without a task"])[0]
        class_name = find_class(architecture)
        if class_name == "AutoModelForCausalLM":
            # as it is: the prompt is one text, whose words stand behind blanks already
            tokenizer = transformers.AutoTokenizer.from_pretrained(name, **options)
            check_vocabulary(tokenizer, name)
            version = tuple(int(part) for part in transformers.__version__.split(".")[:2])
            if dtype != "float32" or device_map:
                options["dtype" if version >= (4, 56) else "torch_dtype"] = getattr(torch, dtype)
            if device_map:
                need("accelerate")
                options["device_map"] = device_map
        else:
            tokenizer = load_tokenizer(name, trust_remote_code)
        network, loaded = getattr(transformers, class_name).from_pretrained(name, output_loading_info=True, **options)
    except DataError:
        raise
    except Exception as error:  # transformers raises many kinds; its first line names what is missing
        raise make_open_error(error, name) from error
    if missing := sorted(loaded["missing_keys"]):
        message = f"its files lack {len(missing)} of the weights of {type(network).__name__}, which transformers "
        message += f"would draw at random ({', '.join(missing[:3])}): fine-tune it first"
        raise DataError(f"{message} (eraser-hub train --model {name})", file=name)
    return network, tokenizer, architecture


class CutWords:
    """Words to sub-words by any tokenizer that takes words, each word cut once and remembered.

    Attributes:
        single, pair: what stands around a text, and around two.
        pad, mask: ids; ``can_pad`` is False where the tokenizer has no padding of its own, and another id stands in.
        blank: the code of what stands for a text of which nothing is left, where no special token does.
    """

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer
        self._pieces: dict[str, tuple[int, ...]] = {}
        self._independent = True
        self._checks_left = 8
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
            options = {"add_special_tokens": False, "truncation": False, "verbose": False}
            encoded = self.tokenizer(list(words), is_split_into_words=True, **options)
            for piece, owner in zip(encoded["input_ids"], encoded.word_ids(), strict=True):
                if owner is not None:
                    pieces[owner].append(piece)
        return [tuple(word) for word in pieces]

    def cut_flat(self, words: Sequence[str]) -> tuple[Ints, Ints]:
        """Return the sub-word ids of all words, and the number of the word that each belongs to."""
        pieces = self.cut(words)
        ids = np.asarray([piece for word in pieces for piece in word], dtype=np.int64)
        return ids, np.repeat(np.arange(len(pieces)), [len(word) for word in pieces])


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
