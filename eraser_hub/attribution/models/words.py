"""Names of models and their tokenizers: folders here or models of the Hub, and words cut into sub-words."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np

from eraser_hub.records.errors import DataError, UsageError, get_first_line

from .pieces import Ints, Template, encode_places

HUB_SECONDS = 5.0  # in which the Hub is to answer


def silence() -> None:
    """Let transformers print errors alone, and show no progress."""
    from transformers.utils import logging

    logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]


def find_loading_options(name: str, trust_remote_code: bool) -> dict[str, Any]:
    """Return options of from_pretrained, by which it takes the Hub's files from the cache where the Hub is silent.

    Args:
        name: folder or Hub id.
        trust_remote_code: run the code that the model brings.

    Raises:
        DataError: no folder, and no model of the Hub; or the Hub does not answer and the cache does not have it.
    """
    answer = "yes" if Path(name).is_dir() else ask_hub(name)
    if answer not in ("yes", "cached"):
        hub = "has no such model" if answer == "no" else "does not answer"
        raise DataError(f"expected a model, found no folder of this name, and the Hub {hub}{hint(name)}", file=name)
    return {"trust_remote_code": trust_remote_code, "local_files_only": answer == "cached"}


def ask_hub(name: str) -> str:
    """Return whether the Hub has a model: yes, no, "" where it does not answer; else whether the cache has it: cached.

    Its client waits for half a minute where there is no network, also against its own timeout: a name is looked up, and
    what looks it up does not listen.
    """
    from huggingface_hub import HfApi, try_to_load_from_cache
    from huggingface_hub.errors import GatedRepoError, HFValidationError, RepositoryNotFoundError

    answers: list[str] = []

    def ask() -> None:
        with suppress(Exception):  # the library raises many kinds, its HTTP client's among them
            try:
                HfApi().model_info(name, timeout=HUB_SECONDS)
                answers.append("yes")
            except (HFValidationError, RepositoryNotFoundError) as error:
                answers.append("yes" if isinstance(error, GatedRepoError) else "no")

    thread = Thread(target=ask, daemon=True)
    thread.start()
    thread.join(HUB_SECONDS)
    files: list[Any] = []
    if answers != ["yes"]:
        with suppress(HFValidationError):
            files = [try_to_load_from_cache(name, file) for file in ("config.json", "tokenizer_config.json")]
    return "cached" if any(isinstance(file, str) for file in files) else "".join(answers)


def hint(name: str) -> str:
    """Return ``: did you mean 'models/mine'?`` where there is a file or folder here of nearly this name, else ""."""
    nearest = Path()
    for part in Path(name).parts:
        if not (nearest / part).exists():
            near = get_close_matches(part, [entry.name for entry in nearest.iterdir()], 1) if nearest.is_dir() else []
            if not near:
                return ""
            part = near[0]
        nearest /= part
    return f": did you mean {str(nearest)!r}?"


def load_tokenizer(name: str, options: Mapping[str, Any]) -> Any:
    """Load the tokenizer of a model, set to take words (byte-level tokenizers need a blank before each).

    Args:
        name: folder or Hub id.
        options: of :func:`find_loading_options`.
    """
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(name, **options)
    if getattr(tokenizer, "add_prefix_space", None) is False:
        tokenizer = transformers.AutoTokenizer.from_pretrained(name, add_prefix_space=True, **options)
    check_vocabulary(tokenizer, name)
    return tokenizer


def prepare_tokenizer(tokenizer: Any) -> Any:
    """Return a tokenizer in memory, set to take words."""
    if getattr(tokenizer, "add_prefix_space", None) is not False:
        return tokenizer
    with tempfile.TemporaryDirectory() as folder:
        tokenizer.save_pretrained(folder)
        return load_tokenizer(folder, {})


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
    return DataError(f"cannot open the model: {get_first_line(error)}", file=name)


class CutWords:
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

    def cut(self, words: Sequence[str]) -> list[tuple[int, ...]]:
        """Return the sub-word ids of each word; a word that the tokenizer drops (a zero-width blank) has none."""
        ids, owners = self.cut_flat(words)
        ends = np.searchsorted(owners, np.arange(1, len(words)))
        return [tuple(part.tolist()) for part in np.split(ids, ends)][: len(words)]

    def cut_flat(self, words: Sequence[str]) -> tuple[Ints, Ints]:
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
