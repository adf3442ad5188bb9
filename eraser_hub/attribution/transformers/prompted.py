"""Language models that are prompted for a label: its probability is that of the label's words behind the prompt.

The prompt is laid out once, with the place of each of the documents' words; erased inputs are cut from it. So the
instructions, the query and the chat template's own tokens stay whatever is erased.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from eraser_hub.attribution.config import Prompting
from eraser_hub.attribution.instances import Instance
from eraser_hub.attribution.prompts import LABEL, find_language, open_prompt
from eraser_hub.records.errors import DataError, UsageError, get_first_line, show

from .devices import keep_heads_in_float32
from .pieces import Frame, Pieces, encode_places
from .sequence_model import SequenceModel
from .words import CutWords, Template

if TYPE_CHECKING:
    from .prompted_network import LabelNetwork

LEADS = {"en": "\n\nLabel:", "zh": "\n\n标签："}  # before the answer of a model without chat template
_MARKS = "\ue000{}\ue001"  # where a document stands in the prompt
_MARK = re.compile("\ue000([0-9]+)\ue001")


class PromptWords(CutWords):
    """The tokenizer of a prompt, which is one text: no special tokens around words."""

    def _template(self, pair: bool) -> Template:
        return Template((), (), (), ((), (), ()), (0, 0))


class PromptedModel(SequenceModel):
    """A causal language model that answers a prompt with a label.

    The labels are the dataset's. With ``label_score`` sum the probabilities are those of the labels' words, given that
    one of them is the answer.
    """

    has_labels, prompted = False, True

    def __init__(self, network: Any, tokenizer: Any, *, prompting: Prompting, **more: Any) -> None:
        from .prompted_network import LabelNetwork

        if prompting.dtype != "float32" and more.get("precision", "auto") not in ("auto", prompting.dtype):
            message = f"expected `precision` {prompting.dtype} or auto beside `dtype`, found {more['precision']}"
            raise DataError(message, argument="precision")
        super().__init__(LabelNetwork(network), tokenizer, **{**more, "query_last": False, "dtype": prompting.dtype})
        if self.half:
            keep_heads_in_float32(network, self.device.type)
        self.provides = frozenset({"probabilities", "gradients", "embeddings", "attention"})
        self.prompting, self.label_names = prompting, ()
        self.prompt = open_prompt(prompting.config, prompting.prompt)
        self._language = find_language(prompting.config)
        self._blank = "" if self._language == "zh" else " "
        self._has_chat = bool(getattr(tokenizer, "chat_template", None))
        self._joins_messages = False
        self._prepared: tuple[str, ...] = ()
        self._words: list[str] = []
        self._limit = self.window

    @staticmethod
    def make_words(tokenizer: Any) -> CutWords:
        """Return the tokenizer, for a prompt."""
        return PromptWords(tokenizer)

    def _sees_padding(self) -> bool:
        return not self.network.can_continue

    def encode(self, instance: Instance) -> Pieces:
        """Lay out the prompt of the instance."""
        self._prepare()
        encoded = self._lay_out(instance)
        self.count_limits(encoded)
        return encoded

    def _prepare(self) -> None:
        """Set the labels' words, once the labels are known."""
        if self._prepared == self.label_names and self._prepared:
            return
        if not self.label_names:
            message = f"{self.description} answers with the dataset's labels, of which there are none: name them"
            raise DataError(message, argument="labels")
        network: LabelNetwork = self.network
        network.label_score = self.prompting.label_score
        self._words = _read_label_words(self.prompting.label_words, self.label_names)
        before = self._blank if not self._has_chat else ""
        network.label_ids = [
            self.tokenizer(before + word, add_special_tokens=False)["input_ids"] for word in self._words
        ]
        _check_label_ids(network, self._words)
        self.window = self._limit - max(map(len, network.label_ids))
        self._prepared = self.label_names
        self.notes.add_message(f"prompt {self.prompt.name} {self.prompt.digest}; answers: {', '.join(self._words)}")

    def _lay_out(self, instance: Instance) -> Pieces:
        """Return the prompt in sub-words, and the token that each belongs to."""
        text, words = self._write(instance)
        cut: tuple[Any, Any] | None = self._cut_whole(text, words)
        if cut is None:
            self.notes.count("texts whose words share sub-words: cut word by word")
            cut = self._cut_apart(text, words)
        places, owner = (np.asarray(one, dtype=np.int64) for one in cut)
        inside = owner >= 0
        piece = np.where(inside, np.cumsum(inside) - 1, -1)
        ids, owners = places[inside], owner[inside]
        first = np.ones(len(ids), dtype=bool)
        first[1:] = owners[1:] != owners[:-1]
        holds = np.zeros(len(places), dtype=bool)
        holds[inside] = first
        tokens = instance.bounds[-1]
        at = np.flatnonzero(inside)
        lead, tail = (int(at[0]), len(places) - 1 - int(at[-1])) if len(at) else (len(places), 0)
        if lead + tail + 8 > self.window and len(at):
            message = f"expected a prompt that leaves room for the text in {self.window} sub-words, found {lead + tail}"
            raise DataError(message, argument="prompt", instance=instance.id)
        source = np.where(inside, owner, tokens)
        frame = Frame(encode_places(places, 0, 1), piece, source, holds, lead, lead, tail)
        return Pieces(instance, self, np.zeros(0, np.int64), ids, owners, first, 0, frame)

    def _write(self, instance: Instance) -> tuple[str, list[tuple[int, int]]]:
        """Return the prompt's text, and the characters of each of the documents' tokens in it.

        Raises:
            DataError: A prompt that does not show each document once, in order.
        """
        parts = _MARK.split(self._render(instance))
        numbers, count = [int(one) for one in parts[1::2]], len(instance.documents)
        if numbers != list(range(count)):
            shown = ", ".join(str(number + 1) for number in numbers) or "none"
            message = f"expected a prompt that shows each of {count} documents' text once, in order; found {shown}"
            raise UsageError(message, argument="prompt", file=self.prompt.name)
        text, spans = parts[0], list[tuple[int, int]]()
        for tokens, behind in zip(instance.documents, parts[2::2], strict=True):
            for number, token in enumerate(tokens):
                text += self._blank if number else ""
                spans.append((len(text), len(text) + len(token)))
                text += token
            text += behind
        return text, spans

    def _render(self, instance: Instance) -> str:
        """Return the prompt with marks in place of the documents."""
        query = self._blank.join(instance.query) if self.uses_query else ""
        pairs = enumerate(instance.names)
        documents: list[Mapping[str, str]] = [{"docid": name, "text": _MARKS.format(at)} for at, name in pairs]
        system, user = (self.prompt.render(part, documents, query, self._words, LABEL) for part in ("system", "user"))
        others = [one for one in self.prompting.examples if one.id != instance.id]
        shown = [self._show_example(one) for one in others[: self.prompting.shots]]
        return self._make_prompt(system, shown, user)

    def _show_example(self, one: Instance) -> list[str]:
        """Return the messages of an example, of the user and of the model; of plain text both in one."""
        texts = map(self._blank.join, one.documents)
        documents: list[Mapping[str, str]] = [
            {"docid": name, "text": text} for name, text in zip(one.names, texts, strict=True)
        ]
        query = self._blank.join(one.query) if self.uses_query else ""
        user = self.prompt.render("user", documents, query, self._words, LABEL)
        word = self._words[self.label_names.index(str(one.label))]
        return [user, word] if self._has_chat else [f"{user}{LEADS[self._language]}{self._blank}{word}"]

    def _make_prompt(self, system: str, shown: Sequence[Sequence[str]], user: str) -> str:
        """Return the messages as the model reads them: by its chat template, else one after the other."""
        turns = [*(text for one in shown for text in one), user]
        if not self._has_chat:
            return "\n\n".join([*([system] if system else []), *turns]) + LEADS[self._language]
        messages = [{"role": "system", "content": system}] if system and not self._joins_messages else []
        if system and not messages:
            turns[0] = f"{system}\n\n{turns[0]}"
        messages += [{"role": ("user", "assistant")[at % 2], "content": text} for at, text in enumerate(turns)]
        try:
            text: str = self.tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        except Exception as error:  # templates raise what they like
            if self._joins_messages or not system:
                message = f"its chat template cannot be applied: {get_first_line(error)}"
                raise DataError(f"{self.description}: {message}") from error
            self._joins_messages = True
            self.notes.add_message("the chat template has no system message: it stands before the question")
            return self._make_prompt(system, shown, user)
        return text

    def _cut_whole(self, text: str, words: Sequence[tuple[int, int]]) -> tuple[list[int], NDArray[np.int64]] | None:
        """Cut the prompt as one text; return sub-words and the token of each (-1: none), None if any belongs to two."""
        if not self.tokenizer.is_fast:
            return None
        encoded = self.tokenizer(
            text,
            add_special_tokens=not self._has_chat,
            return_offsets_mapping=True,
            return_attention_mask=False,
            truncation=False,
            verbose=False,
        )
        ids, offsets = encoded["input_ids"], encoded["offset_mapping"]
        if not self._has_chat and ids and ids[-1] == self.tokenizer.eos_token_id:
            ids = ids[:-1]  # the end that a tokenizer adds, behind which a decoder would not go on
        # the word of each letter, and the next word of a blank between two words of a document
        letters, blanks = np.full(len(text) + 1, -1), np.full(len(text) + 1, -1)
        behind = 0
        for number, (start, end) in enumerate(words):
            letters[start:end] = number
            if number and text[behind:start] == self._blank:
                blanks[behind:start] = number
            behind = end
        owner = np.full(len(ids), -1)
        for place, (start, end) in enumerate(offsets[: len(ids)]):
            own = letters[start:end]
            held = set(own[own >= 0].tolist())
            beside = [text[at] for at in range(start, end) if letters[at] < 0]
            if len(held) > 1 or (held and not all(map(str.isspace, beside))):
                return None
            if held:
                owner[place] = held.pop()
            elif end > start:
                owner[place] = blanks[start]
        return ids, owner

    def _cut_apart(self, text: str, words: Sequence[tuple[int, int]]) -> tuple[list[int], list[int]]:
        """Cut each word by itself, and what stands between."""
        first = list[int]()
        if not self._has_chat:  # the sub-words that the tokenizer adds before a prompt
            alone, whole = self._cut_part("a"), list[int](self.tokenizer("a")["input_ids"])
            starts = (at for at in range(len(whole)) if whole[at : at + len(alone)] == alone)
            first = whole[: next(starts, 0)]
        ids, owner, behind = list(first), [-1] * len(first), 0
        for number, (start, end) in enumerate([*words, (len(text), len(text))]):
            between = text[behind:start]
            joins = 0 < number < len(words) and between == self._blank
            fixed = [] if joins else self._cut_part(between)
            own = self._cut_part((between if joins else "") + text[start:end])
            ids += [*fixed, *own]
            owner += [-1] * len(fixed) + [number] * len(own)
            behind = end
        return ids, owner

    def _cut_part(self, part: str) -> list[int]:
        ids: list[int] = self.tokenizer(part, add_special_tokens=False, verbose=False)["input_ids"] if part else []
        return ids


def _read_label_words(pairs: Sequence[str], label_names: Sequence[str]) -> list[str]:
    """Return the words of each label, from ``LABEL=WORDS`` each; a label's own name where none are given.

    Raises:
        DataError: No such pair, an unknown label, a label twice, no words, equal words of two labels.
    """
    words = dict(zip(label_names, label_names, strict=True))
    seen = set[str]()
    for pair in pairs:
        label, equals, own = pair.partition("=")
        if not equals or label not in words or label in seen or not own.strip():
            message = f"expected LABEL=WORDS, once for a label among {', '.join(label_names)}; found {show(pair)}"
            raise DataError(message, argument="label_words")
        seen.add(label)
        words[label] = own.strip()
    if len(set(words.values())) < len(words):
        message = f"expected different words for each label, found {', '.join(words.values())}"
        raise DataError(message, argument="label_words")
    return list(words.values())


def _check_label_ids(network: LabelNetwork, words: Sequence[str]) -> None:
    """Refuse words without sub-words, and labels that their scored sub-words do not tell apart."""
    first = network.label_score == "first"
    scored = [tuple(ids[:1] if first else ids) for ids in network.label_ids]
    empty = next((word for word, ids in zip(words, scored, strict=True) if not ids), None)
    if empty is not None:
        message = f"expected words that the tokenizer knows, found {show(empty)}"
        raise DataError(message, argument="label_words")
    if len(set(scored)) < len(scored):
        message = f"expected answers that begin with different sub-words, found {', '.join(words)}"
        message += "; say `label_words` or `label_score` sum" if first else "; say `label_words`"
        raise DataError(message, argument="label_score" if first else "label_words")
