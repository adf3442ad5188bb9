"""Language models that are prompted for a label: its probability is that of the label's words behind the prompt.

The prompt is laid out once, with the place of each of the documents' words; erased inputs are cut from it. So the
instructions, the query and the chat template's own tokens stay whatever is erased.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from eraser_hub.attribution.instances import Instance
from eraser_hub.attribution.prompts import LABEL, find_language, open_prompt
from eraser_hub.records.errors import DataError, UsageError, get_first_line, show

from .devices import keep_heads_in_float32, to_float32
from .subwords import Reading, SubwordTokenizer, Template, encode_places
from .transformer import TransformerModel

LEADS = {"en": "\n\nLabel:", "zh": "\n\n标签："}  # before the answer of a model without chat template
_MARKS = "\ue000{}\ue001"  # where a document stands in the prompt
_MARK = re.compile("\ue000([0-9]+)\ue001")
MIN_ROOM = 8  # sub-words that a prompt leaves for the text


class LabelOutput(NamedTuple):
    """The output of a network of labels.

    Attributes:
        logits: shape (inputs, labels).
        attentions: of each layer, as the language model gives them for the prompt; None if not asked for.
    """

    logits: Tensor
    attentions: Any = None


class LabelNetwork(nn.Module):
    """A causal language model behind the interface of a classifier.

    Attributes:
        lm: the language model.
        answers: sub-words of each label's words.
        label_score: ``sum`` or ``mean`` of their log-probabilities, or the ``first`` one's.
    """

    def __init__(self, lm: nn.Module, label_score: str = "sum") -> None:
        super().__init__()
        self.lm: Any = lm
        self.config, self.label_score = self.lm.config, label_score
        self.hf_device_map = getattr(lm, "hf_device_map", None)
        self.answers: list[tuple[int, ...]] = []
        # else it computes logits of the whole vocabulary at every place
        self._selects_places = "logits_to_keep" in inspect.signature(lm.forward).parameters

    @property
    def prefixes(self) -> list[tuple[int, ...]]:
        """What the model reads behind a prompt to score the answers: each without its last sub-word."""
        return list(dict.fromkeys(answer[:-1] for answer in self.answers))

    def set_attn_implementation(self, name: str) -> None:
        """Choose the code that computes attention."""
        self.lm.set_attn_implementation(name)

    def get_input_embeddings(self) -> Any:
        """Return the module that embeds the prompt."""
        return self.lm.get_input_embeddings()

    def forward(self, input_ids: Tensor, attention_mask: Tensor, output_attentions: bool = False) -> LabelOutput:
        """Return the labels' logits behind each prompt; prompts are padded at their end."""
        prefixes, device, (inputs, size) = self.prefixes, input_ids.device, input_ids.shape
        rows, longest = len(prefixes), max(map(len, prefixes))
        table = torch.tensor([[*ids, *[0] * (longest - len(ids))] for ids in prefixes], dtype=torch.long, device=device)
        # a prefix goes between a prompt's last visible place and its padding, which no place before it sees then
        places = torch.arange(size + longest, device=device)
        last = (attention_mask * places[:size]).argmax(dim=1)[:, None]
        behind = torch.where(places <= last + longest, places - last - 1 + size, places - longest)
        order = torch.where(places <= last, places, behind)
        mask = torch.cat([attention_mask, attention_mask.new_ones(inputs, longest)], dim=1).gather(1, order)
        # the answers' words do not call the module, whose hooks see the prompt alone
        embedding = self.get_input_embeddings()
        prompts, words = embedding(input_ids).repeat_interleave(rows, 0), embedding.forward(table).repeat(inputs, 1, 1)
        vectors = torch.cat([prompts, words], dim=1)
        kept = torch.unique(last + torch.arange(longest + 1, device=device))
        out = self.lm(
            inputs_embeds=vectors.gather(1, order.repeat_interleave(rows, 0)[..., None].expand_as(vectors)),
            attention_mask=mask.repeat_interleave(rows, 0),
            use_cache=False,
            **({"logits_to_keep": kept} if self._selects_places else {}),
            **({"output_attentions": True} if output_attentions else {}),
        )
        logits = out.logits if out.logits.shape[1] == len(kept) else out.logits[:, kept]
        numbers, scores = torch.arange(inputs, device=device)[:, None], []
        for answer in self.answers:
            steps = torch.arange(len(answer), device=device)
            found = logits[prefixes.index(answer[:-1]) :: rows][numbers, torch.searchsorted(kept, last + steps)]
            values = to_float32(found).log_softmax(dim=-1)[:, steps, torch.tensor(answer, device=device)]
            scores.append(values.mean(dim=1) if self.label_score == "mean" else values.sum(dim=1))
        layers = getattr(out, "attentions", None) or ()
        return LabelOutput(torch.stack(scores, dim=1), [layer[::rows, :, :size, :size] for layer in layers] or None)


class PromptTokenizer(SubwordTokenizer):
    """The tokenizer of a prompt, which is one text: no special tokens around words."""

    def make_template(self, words: str) -> Template:
        """Return nothing."""
        return Template((np.zeros(0, np.int64),) * (len(words) + 1), (0,) * len(words))


class PromptedModel(TransformerModel):
    """A causal language model that answers a prompt with a label.

    The labels are the dataset's. With ``label_score`` sum the probabilities are those of the labels' words, given that
    one of them is the answer.

    Args:
        network: the language model.
        tokenizer: its tokenizer, a fast one.
        config: the dataset's config, by which the prompt is chosen.
        prompt: a jinja2 file of one's own.
        label_words: the answers, ``LABEL=WORDS`` each; by default the labels.
        label_score: sum, mean or first, see :class:`LabelNetwork`.
        dtype: type of the weights, and of the passes.
        **more: as of :class:`TransformerModel`.
    """

    has_labels = False
    prompted = True
    provides = frozenset({"probabilities", "gradients", "attention"})
    cutter = PromptTokenizer

    def __init__(
        self,
        network: Any,
        tokenizer: Any,
        *,
        config: str = "",
        prompt: str | Path | None = None,
        label_words: Sequence[str] = (),
        label_score: str = "sum",
        dtype: str = "float32",
        **more: Any,
    ) -> None:
        if dtype != "float32" and more.get("precision", "auto") not in ("auto", dtype):
            message = f"expected `precision` {dtype} or auto beside `dtype`, found {more['precision']}"
            raise DataError(message, argument="precision")
        if not tokenizer.is_fast:
            raise DataError(f"expected a fast tokenizer (tokenizer.json), found {type(tokenizer).__name__}")
        labels = LabelNetwork(network, label_score)
        super().__init__(labels, tokenizer, **{**more, "query_last": False, "dtype": dtype})
        if self.half:
            keep_heads_in_float32(network, self.device.type)
        self.label_names, self.label_words = (), tuple(label_words)
        self.prompt = open_prompt(config, Path(prompt) if prompt else None)
        language = find_language(config)
        self._lead, self._blank = LEADS[language], "" if language == "zh" else " "
        self._has_chat = bool(getattr(tokenizer, "chat_template", None))
        self._prepared: tuple[str, ...] = ()
        self._answers: list[str] = []
        self._limit = self.window
        words = [f"label-words:{','.join(label_words)}"] if label_words else []
        kinds = [f"dtype:{dtype}"] if dtype != "float32" else []
        name = f"prompt:{Path(self.prompt.name).name if prompt else self.prompt.name}-{self.prompt.digest}"
        self.details = "|".join([name, *words, f"label-score:{label_score}", *kinds])

    def sees_padding(self) -> bool:
        """Return False: a causal model reads nothing that stands behind."""
        return False

    def rows_for(self, size: int, batch_size: int) -> int:
        """Return the number of prompts in a batch."""
        return max(1, super().rows_for(size, batch_size) // max(len(self.network.prefixes), 1))

    def read(self, instance: Instance) -> Reading:
        """Lay out the prompt of the instance."""
        if self._prepared != self.label_names or not self._prepared:
            self._prepare()
        ids, owner = self._cut(*self.write(instance))
        inside = np.flatnonzero(owner >= 0)
        lead, tail = (int(inside[0]), len(ids) - 1 - int(inside[-1])) if len(inside) else (len(ids), 0)
        if lead + tail + MIN_ROOM > self.window and len(inside):
            message = f"expected a prompt that leaves room for the text in {self.window} sub-words, found {lead + tail}"
            raise DataError(message, argument="prompt", instance=instance.id)
        source = np.where(owner >= 0, owner, instance.bounds[-1])
        reading = Reading(instance, encode_places(ids, 0, 1), source, lead, tail, self.window, self.words.blank)
        self.count_limits(reading, ids[inside], owner[inside])
        return reading

    def _prepare(self) -> None:
        """Set the labels' words, once the labels are known.

        Raises:
            DataError: no labels; words that the tokenizer does not know, or that do not tell labels apart.
        """
        if not self.label_names:
            message = f"{self.description} answers with the dataset's labels, of which there are none: name them"
            raise DataError(message, argument="labels")
        self._answers = _read_label_words(self.label_words, self.label_names)
        before = self._blank if not self._has_chat else ""
        first = self.network.label_score == "first"
        scored = [tuple(self._cut_part(before + word)[: 1 if first else None]) for word in self._answers]
        if () in scored:
            message = f"expected words that the tokenizer knows, found {show(self._answers[scored.index(())])}"
            raise DataError(message, argument="label_words")
        if len(set(scored)) < len(scored):
            message = f"expected answers that begin with different sub-words, found {', '.join(self._answers)}"
            message += ": say NAME(label_words=[A,B])" + (" or NAME(label_score=sum)" if first else "")
            raise DataError(message, argument="label_score" if first else "label_words")
        self.network.answers, self._prepared = scored, self.label_names
        self.window = self._limit - max(map(len, scored))
        self.notes.say(f"prompt {self.prompt.name} {self.prompt.digest}; answers: {', '.join(self._answers)}")

    def write(self, instance: Instance) -> tuple[str, list[tuple[int, int]]]:
        """Return the prompt's text, and the characters of each of the documents' tokens in it.

        Raises:
            DataError: a prompt that does not show each document once, in order.
        """
        count, query = len(instance.documents), self._blank.join(instance.query) if self.uses_query else ""
        documents = [{"docid": name, "text": _MARKS.format(at)} for at, name in enumerate(instance.names)]
        messages = [self.prompt.render(part, documents, query, self._answers, LABEL) for part in ("system", "user")]
        parts = _MARK.split(self._join(*messages))
        numbers = [int(number) for number in parts[1::2]]
        if numbers != list(range(count)):
            found = ", ".join(str(number + 1) for number in numbers) or "none"
            message = f"expected a prompt that shows each of {count} documents' text once, in order; found {found}"
            raise UsageError(message, argument="prompt", file=self.prompt.name)
        text, spans = parts[0], []
        for tokens, behind in zip(instance.documents, parts[2::2], strict=True):
            for number, token in enumerate(tokens):
                text += self._blank if number else ""
                spans.append((len(text), len(text) + len(token)))
                text += token
            text += behind
        return text, spans

    def _join(self, system: str, user: str) -> str:
        """Return the messages as the model reads them: by its chat template, else one after the other."""
        together = "\n\n".join(filter(None, [system, user]))
        if not self._has_chat:
            return together + self._lead
        ways = [[("user", together)]]
        if system:
            ways.insert(0, [("system", system), ("user", user)])
        failed = Exception()
        for number, way in enumerate(ways):
            messages = [{"role": role, "content": content} for role, content in way]
            try:
                text: str = self.tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
            except Exception as error:  # templates raise what they like
                failed = error
                continue
            if number:
                self.notes.say("the chat template has no system message: it stands before the question")
            return text
        message = f"{self.description}: its chat template cannot be applied: {get_first_line(failed)}"
        raise DataError(message) from failed

    def _cut(self, text: str, spans: Sequence[tuple[int, int]]) -> tuple[Any, Any]:
        """Cut the prompt as one text; return its sub-words and the token of each (-1: none), int64 (sub-words,).

        A sub-word that holds letters of two tokens, or of a token and the prompt, is cut again at their border.
        """
        options = {"return_offsets_mapping": True, "truncation": False, "verbose": False}
        encoded = self.tokenizer(text, add_special_tokens=not self._has_chat, **options)
        pieces = list(zip(encoded["input_ids"], encoded["offset_mapping"], strict=True))
        if not self._has_chat and pieces and pieces[-1][0] == self.tokenizer.eos_token_id:
            pieces = pieces[:-1]  # the end that a tokenizer adds, behind which a decoder would not go on
        letters, behind = [-1] * len(text), -1
        for number, (start, end) in enumerate(spans):
            joins = number and text[behind:start] == self._blank
            first = behind if joins else start  # a blank between words goes with the second
            letters[first:end], behind = [number] * (end - first), end
        ids: list[int] = []
        owners: list[int] = []
        for piece, (start, end) in pieces:
            runs = groupby(range(start, end), letters.__getitem__)
            parts = [(number, "".join(text[at] for at in run)) for number, run in runs]
            held = [number for number, part in parts if number >= 0 or not part.isspace()]
            if len(held) > 1:
                self.notes.count("sub-words that words share: cut again between them")
                for number, part in parts:
                    again = self._cut_part(part)
                    ids, owners = [*ids, *again], [*owners, *[number] * len(again)]
            else:
                ids.append(piece)
                owners.append(held[0] if held else -1)
        return np.asarray(ids, dtype=np.int64), np.asarray(owners, dtype=np.int64)

    def _cut_part(self, text: str) -> list[int]:
        ids: list[int] = self.tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"] if text else []
        return ids


def _read_label_words(pairs: Sequence[str], label_names: Sequence[str]) -> list[str]:
    """Return the words of each label, from ``LABEL=WORDS`` each; a label's own name where none are given.

    Raises:
        DataError: no such pair, an unknown label, a label twice, no words, equal words of two labels.
    """
    words: dict[str, str] = {}
    for pair in pairs:
        label, equals, answer = pair.partition("=")
        if not equals or label not in label_names or label in words or not answer.strip():
            message = f"expected LABEL=WORDS, once for a label among {', '.join(label_names)}; found {show(pair)}"
            raise DataError(message, argument="label_words")
        words[label] = answer.strip()
    answers = [words.get(label, label) for label in label_names]
    if len(set(answers)) < len(answers):
        message = f"expected different words for each label, found {', '.join(answers)}"
        raise DataError(message, argument="label_words")
    return answers
