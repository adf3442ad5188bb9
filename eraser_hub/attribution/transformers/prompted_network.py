"""Language models as networks with one logit a label: the log-probability of the label's words behind the prompt."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

Layers = list[tuple[Tensor, Tensor]]  # keys and values of each layer, (rows, heads, places, width)


@dataclass(frozen=True, slots=True)
class LabelOutput:
    """The output of a network of labels.

    Attributes:
        logits: Shape (inputs, labels).
        attentions: Of each layer, as the language model gives them for the prompt; None if not asked for.
    """

    logits: Tensor
    attentions: Any = None


class LabelNetwork(nn.Module):
    """A causal language model behind the interface of a classifier.

    Attributes:
        lm: The language model.
        label_ids: Sub-words of each label's words.
        label_score: ``sum`` or ``mean`` of their log-probabilities, or the ``first`` one's.
    """

    def __init__(self, lm: nn.Module) -> None:
        super().__init__()
        self.lm: Any = lm
        self.label_ids: list[list[int]] = []
        self.label_score: Literal["sum", "mean", "first"] = "sum"
        # else it computes logits of the whole vocabulary at every place
        names = inspect.signature(lm.forward).parameters
        self._selects_places = "logits_to_keep" in names
        # transformers renames it
        self._cache_name = "cache" if "cache" in names else "past_key_values"

    @property
    def config(self) -> Any:
        """The language model's configuration."""
        return self.lm.config

    def set_attn_implementation(self, name: str) -> None:
        """Choose the code that computes attention."""
        self.lm.set_attn_implementation(name)

    def get_input_embeddings(self) -> nn.Module:
        """Return the module that embeds the prompt."""
        embedding: nn.Module = self.lm.get_input_embeddings()
        return embedding

    @property
    def can_continue(self) -> bool:
        """True if keys and values of every layer can be continued: no sliding windows, no recurrent states."""
        config = self.config.get_text_config() if hasattr(self.config, "get_text_config") else self.config
        kinds = getattr(config, "layer_types", None) or getattr(config, "layers_block_type", None) or ["full_attention"]
        has_attention = getattr(config, "num_attention_heads", None) is not None
        return has_attention and set(kinds) == {"full_attention"} and not getattr(config, "sliding_window", None)

    def forward(self, input_ids: Tensor, attention_mask: Tensor, output_attentions: bool = False) -> LabelOutput:
        """Return the labels' logits behind each prompt; prompts are padded at their end."""
        embedded = self.get_input_embeddings()(input_ids)
        if not self.can_continue:
            return self._run_whole(embedded, attention_mask, output_attentions)
        inputs, places_of_prompt = attention_mask.shape
        positions = torch.arange(places_of_prompt, device=attention_mask.device)
        last = (attention_mask * positions).argmax(dim=1)  # the last visible place of each row
        places = torch.unique(last)
        out = self.lm(
            inputs_embeds=embedded,
            attention_mask=attention_mask,
            position_ids=positions[None].expand(inputs, -1),
            use_cache=True,
            **({"logits_to_keep": places} if self._selects_places else {}),
            **({"output_attentions": True} if output_attentions else {}),
        )
        kept = out.logits if out.logits.shape[1] == len(places) else out.logits[:, places]
        rows = torch.arange(inputs, device=attention_mask.device)
        first = _to_log_probabilities(kept[rows, torch.searchsorted(places, last)])
        ids, counts = self._label_tensors(attention_mask.device)
        values = first[:, ids[:, 0]][..., None]  # (inputs, labels, 1)
        if ids.shape[1] > 1:
            more = self._continue_labels(_get_layers(out.past_key_values), attention_mask, last, ids)
            values = torch.cat([values, more], dim=-1)
        return LabelOutput(self._score_labels(values, counts), getattr(out, "attentions", None))

    def _run_whole(self, embedded: Tensor, mask: Tensor, output_attentions: bool) -> LabelOutput:
        """Return the output of prompts of one length, each label's words read behind them in a pass of its own."""
        ids, counts = self._label_tensors(mask.device)
        inputs, (labels, longest) = len(mask), ids.shape
        steps = ids.repeat(inputs, 1)
        words = self.get_input_embeddings().forward(steps[:, :-1])
        out = self.lm(
            inputs_embeds=torch.cat([embedded.repeat_interleave(labels, 0), words], dim=1),
            attention_mask=torch.cat([mask.repeat_interleave(labels, 0), torch.ones_like(steps[:, :-1])], dim=1),
            use_cache=False,
            **({"output_attentions": True} if output_attentions else {}),
        )
        values = _to_log_probabilities(out.logits[:, -longest:]).gather(-1, steps[..., None])[..., 0]
        layers, places = getattr(out, "attentions", None), embedded.shape[1]
        attentions = [one[::labels, :, :places, :places] for one in layers] if output_attentions and layers else None
        return LabelOutput(self._score_labels(values.reshape(inputs, labels, longest), counts), attentions)

    def _continue_labels(self, layers: Layers, mask: Tensor, last: Tensor, ids: Tensor) -> Tensor:
        """Return the log-probabilities of each label's sub-words behind its first, (inputs, labels, longest - 1)."""
        inputs, (labels, longest) = len(mask), ids.shape
        cache = _make_cache(
            [(keys.repeat_interleave(labels, 0), values.repeat_interleave(labels, 0)) for keys, values in layers]
        )
        steps = ids.repeat(inputs, 1)
        # not a call of the module, whose hooks see the prompt alone
        embedded = self.get_input_embeddings().forward(steps[:, :-1])
        seen = torch.cat([mask.repeat_interleave(labels, 0), torch.ones_like(steps[:, :-1])], dim=1)
        positions = last.repeat_interleave(labels)[:, None] + torch.arange(1, longest, device=mask.device)
        logits = self.lm(
            inputs_embeds=embedded,
            attention_mask=seen,
            position_ids=positions,
            use_cache=True,
            **{self._cache_name: cache},
        ).logits
        values = _to_log_probabilities(logits).gather(-1, steps[:, 1:, None])[..., 0]
        return values.reshape(inputs, labels, longest - 1)

    def _label_tensors(self, device: Any) -> tuple[Tensor, Tensor]:
        """Return the labels' sub-words and which of them count, each of shape (labels, longest)."""
        rows = [ids[:1] for ids in self.label_ids] if self.label_score == "first" else self.label_ids
        longest = max(map(len, rows))
        ids = torch.tensor([[*row, *[row[-1]] * (longest - len(row))] for row in rows], device=device)
        return ids, torch.tensor([[place < len(row) for place in range(longest)] for row in rows], device=device)

    def _score_labels(self, log_probabilities: Tensor, counts: Tensor) -> Tensor:
        """Return the logits, (inputs, labels), from the sub-words' log-probabilities, (inputs, labels, longest)."""
        scores = (log_probabilities * counts).sum(dim=-1)
        return scores / counts.sum(dim=-1) if self.label_score == "mean" else scores


def _to_log_probabilities(logits: Tensor) -> Tensor:
    return torch.log_softmax(logits if logits.dtype == torch.float64 else logits.float(), dim=-1)


def _get_layers(cache: Any) -> Layers:
    layers = getattr(cache, "layers", None)
    if layers is not None:
        return [(layer.keys, layer.values) for layer in layers]
    return [(keys, values) for keys, values in zip(cache.key_cache, cache.value_cache, strict=True)]


def _make_cache(layers: Layers) -> Any:
    from transformers.cache_utils import DynamicCache

    cache = DynamicCache()
    for number, (keys, values) in enumerate(layers):
        cache.update(keys, values, number)
    return cache
