"""Language models that are prompted for a label: its probability is that of the label's words behind the prompt.

The prompt is laid out once, with the place of each of the documents' words; erased inputs are cut from it. So the
instructions, the query and the chat template's own tokens stay whatever is erased.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from eraser_hub.attribution.instances import Instance
from eraser_hub.attribution.prompts import LABEL, find_language, open_prompt
from eraser_hub.records.errors import DataError, UsageError, get_first_line, show

from .devices import keep_heads_in_float32, to_float32
from .pieces import Reading, Template, encode_places
from .transformer import TransformerModel
from .words import CutWords

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
        label_ids: sub-words of each label's words.
        label_score: ``sum`` or ``mean`` of their log-probabilities, or the ``first`` one's.
        can_continue: whether keys and values of every layer can be continued: no sliding windows, no recurrent states.
    """

    def __init__(self, lm: nn.Module, label_score: str = "sum") -> None:
        super().__init__()
        self.lm: Any = lm
        self.config, self.label_score = self.lm.config, label_score
        self.hf_device_map = getattr(lm, "hf_device_map", None)
        self.label_ids: list[list[int]] = []
        # else it computes logits of the whole vocabulary at every place
        self._selects_places = "logits_to_keep" in inspect.signature(lm.forward).parameters
        config: Any = self.lm.config
        config = config.get_text_config() if hasattr(config, "get_text_config") else config
        kinds = getattr(config, "layer_types", None) or getattr(config, "layers_block_type", None) or ["full_attention"]
        has_attention = getattr(config, "num_attention_heads", None) is not None
        sliding = getattr(config, "sliding_window", None)
        self.can_continue = has_attention and set(kinds) == {"full_attention"} and not sliding

    def set_attn_implementation(self, name: str) -> None:
        """Choose the code that computes attention."""
        self.lm.set_attn_implementation(name)

    def get_input_embeddings(self) -> Any:
        """Return the module that embeds the prompt."""
        return self.lm.get_input_embeddings()

    def forward(self, input_ids: Tensor, attention_mask: Tensor, output_attentions: bool = False) -> LabelOutput:
        """Return the labels' logits behind each prompt; prompts are padded at their end."""
        rows = [ids[:1] for ids in self.label_ids] if self.label_score == "first" else self.label_ids
        longest = max(map(len, rows))
        padded = [[*row, *[row[-1]] * (longest - len(row))] for row in rows]
        ids = torch.tensor(padded, device=input_ids.device)  # (labels, longest)
        counts = torch.tensor([[place < len(row) for place in range(longest)] for row in rows], device=input_ids.device)
        # the labels' words do not call the module, whose hooks see the prompt alone
        steps = ids.repeat(len(input_ids), 1)
        words = self.get_input_embeddings().forward(steps[:, :-1])
        mask = torch.cat([attention_mask.repeat_interleave(len(ids), 0), torch.ones_like(steps[:, :-1])], dim=1)
        asked = {"output_attentions": True} if output_attentions else {}
        run = self._run_cached if self.can_continue else self._run_whole
        values, attentions = run(self.get_input_embeddings()(input_ids), attention_mask, steps, words, mask, asked)
        scores = (values.reshape(len(input_ids), *ids.shape) * counts).sum(dim=-1)
        return LabelOutput(scores / counts.sum(dim=-1) if self.label_score == "mean" else scores, attentions)

    def _run_cached(
        self, vectors: Tensor, prompts: Tensor, steps: Tensor, words: Tensor, mask: Tensor, asked: dict[str, Any]
    ) -> tuple[Tensor, Any]:
        """Return log-probabilities of the labels' sub-words, (inputs x labels, longest): prompts are read once."""
        inputs, labels = len(prompts), len(steps) // len(prompts)
        positions = torch.arange(prompts.shape[1], device=prompts.device)
        last = (prompts * positions).argmax(dim=1)  # the last visible place of each prompt
        places = torch.unique(last)
        out = self.lm(
            inputs_embeds=vectors,
            attention_mask=prompts,
            position_ids=positions[None].expand(inputs, -1),
            use_cache=steps.shape[1] > 1,
            **({"logits_to_keep": places} if self._selects_places else {}),
            **asked,
        )
        kept = out.logits if out.logits.shape[1] == len(places) else out.logits[:, places]
        rows = torch.arange(inputs, device=prompts.device)
        first = to_float32(kept[rows, torch.searchsorted(places, last)]).log_softmax(dim=-1)
        values = first.repeat_interleave(labels, 0).gather(1, steps[:, :1])
        if steps.shape[1] > 1:
            cache = out.past_key_values
            cache.batch_repeat_interleave(labels)
            positions = last.repeat_interleave(labels)[:, None] + torch.arange(1, steps.shape[1], device=prompts.device)
            logits = self.lm(
                inputs_embeds=words,
                attention_mask=mask,
                position_ids=positions,
                use_cache=True,
                past_key_values=cache,
            ).logits
            more = to_float32(logits).log_softmax(dim=-1).gather(-1, steps[:, 1:, None])[..., 0]
            values = torch.cat([values, more], dim=1)
        return values, getattr(out, "attentions", None)

    def _run_whole(
        self, vectors: Tensor, prompts: Tensor, steps: Tensor, words: Tensor, mask: Tensor, asked: dict[str, Any]
    ) -> tuple[Tensor, Any]:
        """Return the same of prompts of one length, each read once a label, the label's words behind it."""
        labels, size = len(steps) // len(prompts), vectors.shape[1]
        whole = torch.cat([vectors.repeat_interleave(labels, 0), words], dim=1)
        out = self.lm(inputs_embeds=whole, attention_mask=mask, use_cache=False, **asked)
        logits = to_float32(out.logits[:, -steps.shape[1] :])
        layers = getattr(out, "attentions", None) or ()
        attentions = [layer[::labels, :, :size, :size] for layer in layers] or None
        return logits.log_softmax(dim=-1).gather(-1, steps[..., None])[..., 0], attentions


class PromptWords(CutWords):
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
        tokenizer: its tokenizer.
        config: the dataset's config, by which the prompt is chosen.
        prompt: a jinja2 file of one's own.
        label_words: the answers, ``LABEL=WORDS`` each; by default the labels.
        label_score: sum, mean or first, see :class:`LabelNetwork`.
        dtype: type of the weights, and of the passes.
        shots: examples before the question.
        examples: instances with labels that these are taken from, one more than ``shots``: none is its own example.
        **more: as of :class:`TransformerModel`.
    """

    has_labels = False
    prompted = True
    provides = frozenset({"probabilities", "gradients", "attention"})
    cutter = PromptWords

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
        shots: int = 0,
        examples: Sequence[Instance] = (),
        **more: Any,
    ) -> None:
        if dtype != "float32" and more.get("precision", "auto") not in ("auto", dtype):
            message = f"expected `precision` {dtype} or auto beside `dtype`, found {more['precision']}"
            raise DataError(message, argument="precision")
        labels = LabelNetwork(network, label_score)
        super().__init__(labels, tokenizer, **{**more, "query_last": False, "dtype": dtype})
        if self.half:
            keep_heads_in_float32(network, self.device.type)
        self.label_names, self.label_words = (), tuple(label_words)
        self.shots, self.examples = shots, examples
        self.prompt = open_prompt(config, Path(prompt) if prompt else None)
        self.language = find_language(config)
        self._blank = "" if self.language == "zh" else " "
        self._has_chat = bool(getattr(tokenizer, "chat_template", None))
        self._joins_messages = False
        self._prepared: tuple[str, ...] = ()
        self._answers: list[str] = []
        self._limit = self.window
        words = [f"label-words:{','.join(label_words)}"] if label_words else []
        numbers = [f"shots:{shots}"] * bool(shots) + [f"dtype:{dtype}"] * (dtype != "float32")
        name = f"prompt:{Path(self.prompt.name).name if prompt else self.prompt.name}-{self.prompt.digest}"
        self.details = "|".join([name, *words, f"label-score:{label_score}", *numbers])

    def sees_padding(self) -> bool:
        """Return True if the language model reads places one after the other, whatever is hidden."""
        return not self.network.can_continue

    def read(self, instance: Instance) -> Reading:
        """Lay out the prompt of the instance."""
        if self._prepared != self.label_names or not self._prepared:
            self._prepare()
        text, spans = self.write(instance)
        cut = self._cut_whole(text, spans)
        if cut is None:
            self.notes.count("texts whose words share sub-words: cut word by word")
            cut = self._cut_apart(text, spans)
        ids, owner = (np.asarray(numbers, dtype=np.int64) for numbers in cut)
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
        ids = [self._cut_part(before + word) for word in self._answers]
        first = self.network.label_score == "first"
        scored = [tuple(pieces[:1] if first else pieces) for pieces in ids]
        if () in scored:
            message = f"expected words that the tokenizer knows, found {show(self._answers[scored.index(())])}"
            raise DataError(message, argument="label_words")
        if len(set(scored)) < len(scored):
            message = f"expected answers that begin with different sub-words, found {', '.join(self._answers)}"
            message += "; say `label_words` or `label_score` sum" if first else "; say `label_words`"
            raise DataError(message, argument="label_score" if first else "label_words")
        self.network.label_ids, self._prepared = ids, self.label_names
        self.window = self._limit - max(map(len, ids))
        self.notes.say(f"prompt {self.prompt.name} {self.prompt.digest}; answers: {', '.join(self._answers)}")

    # --- the prompt's text ---------------------------------------------------------------------------------------

    def write(self, instance: Instance) -> tuple[str, list[tuple[int, int]]]:
        """Return the prompt's text, and the characters of each of the documents' tokens in it.

        Raises:
            DataError: a prompt that does not show each document once, in order.
        """
        marks = [_MARKS.format(number) for number in range(len(instance.documents))]
        user = self._render("user", instance, marks)
        others = [example for example in self.examples if example.id != instance.id]
        shown = [self._show_example(example) for example in others[: self.shots]]
        parts = _MARK.split(self._join(self._render("system", instance, marks), shown, user))
        numbers, count = [int(number) for number in parts[1::2]], len(instance.documents)
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

    def _render(self, part: str, instance: Instance, texts: Sequence[str]) -> str:
        pairs = zip(instance.names, texts, strict=True)
        documents: list[Mapping[str, str]] = [{"docid": name, "text": text} for name, text in pairs]
        query = self._blank.join(instance.query) if self.uses_query else ""
        return self.prompt.render(part, documents, query, self._answers, LABEL)

    def _show_example(self, instance: Instance) -> list[str]:
        """Return the messages of an example, of the user and of the model; of plain text both in one."""
        user = self._render("user", instance, list(map(self._blank.join, instance.documents)))
        word = self._answers[self.label_names.index(str(instance.label))]
        return [user, word] if self._has_chat else [f"{user}{LEADS[self.language]}{self._blank}{word}"]

    def _join(self, system: str, shown: Sequence[Sequence[str]], user: str) -> str:
        """Return the messages as the model reads them: by its chat template, else one after the other."""
        turns = [*(text for messages in shown for text in messages), user]
        if not self._has_chat:
            return "\n\n".join([*([system] if system else []), *turns]) + LEADS[self.language]
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
            self.notes.say("the chat template has no system message: it stands before the question")
            return self._join(system, shown, user)
        return text

    # --- its sub-words -------------------------------------------------------------------------------------------

    def _cut_whole(self, text: str, spans: Sequence[tuple[int, int]]) -> tuple[list[int], list[int]] | None:
        """Cut the prompt as one text; return sub-words and the token of each (-1: none), None if any belongs to two."""
        if not self.tokenizer.is_fast:
            return None
        options = {"return_offsets_mapping": True, "truncation": False, "verbose": False}
        encoded = self.tokenizer(text, add_special_tokens=not self._has_chat, **options)
        ids, offsets = encoded["input_ids"], encoded["offset_mapping"]
        if not self._has_chat and ids and ids[-1] == self.tokenizer.eos_token_id:
            ids = ids[:-1]  # the end that a tokenizer adds, behind which a decoder would not go on
        letters, behind = np.full(len(text), -1), -1
        for number, (start, end) in enumerate(spans):
            joins = number and text[behind:start] == self._blank
            letters[behind if joins else start : end] = number  # a blank between words goes with the second
            behind = end
        owner = []
        for start, end in offsets[: len(ids)]:
            held = {*letters[start:end].tolist()}
            tokens = held - {-1}
            beside = (text[at] for at in range(start, end) if letters[at] < 0)
            if len(tokens) > 1 or (tokens and not all(map(str.isspace, beside))):
                return None
            owner.append(tokens.pop() if tokens else -1)
        return ids, owner

    def _cut_apart(self, text: str, spans: Sequence[tuple[int, int]]) -> tuple[list[int], list[int]]:
        """Cut each word by itself, and what stands between."""
        ids: list[int] = []
        if not self._has_chat:  # the sub-words that the tokenizer adds before a prompt
            alone, whole = self._cut_part("a"), self.tokenizer("a")["input_ids"]
            starts = (at for at in range(len(whole)) if whole[at : at + len(alone)] == alone)
            ids += whole[: next(starts, 0)]
        owner, behind = [-1] * len(ids), 0
        for number, (start, end) in enumerate([*spans, (len(text), len(text))]):
            joins = 0 < number < len(spans) and text[behind:start] == self._blank
            fixed = [] if joins else self._cut_part(text[behind:start])
            pieces = self._cut_part(text[behind if joins else start : end])
            ids += [*fixed, *pieces]
            owner += [-1] * len(fixed) + [number] * len(pieces)
            behind = end
        return ids, owner

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
