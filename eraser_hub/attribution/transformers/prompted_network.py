"""Language models as networks with one logit a label: the log-probability of the label's words behind the prompt.

Erased inputs of one text differ late: what an input has in common with the one before it is not computed again
(:meth:`LabelNetwork.continue_prefix`).
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

# rows are run in two parts if each has so many and both together have less than this share of places to compute: the
# rows of a part begin alike for longer
LEAST_ROWS, LEAST_GAIN = 4, 0.85
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
        bias: Logits of a text that says nothing, which are subtracted, shape (labels,); None for none.
    """

    def __init__(self, lm: nn.Module) -> None:
        super().__init__()
        self.lm: Any = lm
        self.label_ids: list[list[int]] = []
        self.label_score: Literal["sum", "mean", "first"] = "sum"
        self.bias: Tensor | None = None
        # else it computes logits of the whole vocabulary at every place
        names = inspect.signature(lm.forward).parameters
        self._selects_places = "logits_to_keep" in names
        # transformers renames it
        self._cache_name = "cache" if "cache" in names else "past_key_values"
        self._prefix: tuple[NDArray[np.int64], Layers] = np.zeros(0, np.int64), []

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

    def forget(self) -> None:
        """Drop what is kept of the last prompt."""
        self._prefix = np.zeros(0, np.int64), []

    @property
    def keeps_prefixes(self) -> bool:
        """True if keys and values of every layer can be cut and continued: no sliding windows, no recurrent states."""
        config = self.config.get_text_config() if hasattr(self.config, "get_text_config") else self.config
        kinds = getattr(config, "layer_types", None) or getattr(config, "layers_block_type", None) or ["full_attention"]
        has_attention = getattr(config, "num_attention_heads", None) is not None
        return has_attention and set(kinds) == {"full_attention"} and not getattr(config, "sliding_window", None)

    def forward(self, input_ids: Tensor, attention_mask: Tensor, output_attentions: bool = False) -> LabelOutput:
        """Return the labels' logits behind each prompt."""
        embedded = self.get_input_embeddings()(input_ids)
        return self._run(embedded, attention_mask, [], output_attentions)[0]

    def continue_prefix(self, input_ids: Tensor, sizes: Sequence[int]) -> LabelOutput:
        """Return what :meth:`forward` returns, computing anew only what no prompt before it began with; no gradients.

        Args:
            input_ids: Padded at the end, shape (inputs, places); none of a prompt is hidden.
            sizes: Length of each prompt.
        """
        rows, half = input_ids.cpu().numpy(), len(sizes) // 2
        common = _count_start(rows, sizes)
        parts = slice(half), slice(half, None)
        if half >= LEAST_ROWS and sum(_count_computed(rows[one], sizes[one]) for one in parts) < LEAST_GAIN * (
            _count_computed(rows, sizes)
        ):
            logits = [self.continue_prefix(input_ids[one, : max(sizes[one])], sizes[one]).logits for one in parts]
            return LabelOutput(torch.cat(logits))
        kept, layers = self._prefix
        known = min(_count_common(kept, rows[0]), common)
        mask = torch.ones((1, common), dtype=torch.long, device=input_ids.device)
        embedding = self.get_input_embeddings()
        single = len(rows) == 1
        if known < common and not single:
            _, layers = self._run(embedding(input_ids[:1, known:common]), mask, _cut(layers, known), labels=False)
            self._prefix = rows[0, :common].copy(), layers
            known = common
        start = _cut(layers, known, len(rows))
        visible = (
            torch.arange(rows.shape[1], device=input_ids.device) < torch.tensor(sizes, device=input_ids.device)[:, None]
        )
        out, layers = self._run(embedding(input_ids[:, known:]), visible.long(), start)
        if single:
            self._prefix = rows[0].copy(), layers
        return out

    def _run(
        self, embedded: Tensor, mask: Tensor, before: Layers, output_attentions: bool = False, labels: bool = True
    ) -> tuple[LabelOutput, Layers]:
        """Run embedded places behind those that ``before`` holds; return the output, and keys and values of all.

        Args:
            embedded: Shape (inputs, places, width).
            mask: The attention mask of the places before and of these.
            before: Keys and values of the places before; [] if there are none.
            output_attentions: Whether attention is returned.
            labels: Whether the labels' logits are wanted.
        """
        if not self.keeps_prefixes:
            return self._run_whole(embedded, mask, output_attentions), []
        start = mask.shape[1] - embedded.shape[1]
        # the last visible place of each row, counted among the embedded ones
        last = (mask * torch.arange(mask.shape[1], device=mask.device)).argmax(dim=1) - start
        places = torch.unique(last)
        out = self.lm(
            inputs_embeds=embedded,
            attention_mask=mask,
            position_ids=torch.arange(start, mask.shape[1], device=mask.device)[None].expand(len(mask), -1),
            use_cache=True,
            **({self._cache_name: _make_cache(before)} if before else {}),
            **({"logits_to_keep": places} if self._selects_places else {}),
            **({"output_attentions": True} if output_attentions else {}),
        )
        layers = _get_layers(out.past_key_values)
        if not labels:
            return LabelOutput(out.logits), layers
        kept = out.logits if out.logits.shape[1] == len(places) else out.logits[:, places]
        rows = torch.arange(len(mask), device=mask.device)
        first = _to_log_probabilities(kept[rows, torch.searchsorted(places, last)])
        ids, counts = self._label_tensors(mask.device)
        values = first[:, ids[:, 0]][..., None]  # (inputs, labels, 1)
        if ids.shape[1] > 1:
            more = self._continue_labels(layers, mask, start + last, ids)
            values = torch.cat([values, more], dim=-1)
        return LabelOutput(self._score_labels(values, counts), getattr(out, "attentions", None)), layers

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
        if self.label_score == "mean":
            scores = scores / counts.sum(dim=-1)
        return scores if self.bias is None else scores - self.bias


def _to_log_probabilities(logits: Tensor) -> Tensor:
    return torch.log_softmax(logits if logits.dtype == torch.float64 else logits.float(), dim=-1)


def _count_start(rows: NDArray[np.int64], sizes: Sequence[int]) -> int:
    """Count the places at the start that all rows share; each has a further one."""
    same = (rows == rows[0]).all(axis=0)
    return min(int(same.argmin()) if not same.all() else len(same), min(sizes) - 1)


def _count_computed(rows: NDArray[np.int64], sizes: Sequence[int]) -> int:
    """Count the places of rows behind their shared start."""
    return len(sizes) * (max(sizes) - _count_start(rows, sizes))


def _count_common(first: NDArray[np.int64], second: NDArray[np.int64]) -> int:
    """Count the places at the start in which two sequences agree."""
    size = min(len(first), len(second))
    differ = first[:size] != second[:size]
    return int(differ.argmax()) if differ.any() else size


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


def _cut(layers: Layers, places: int, rows: int = 1) -> Layers:
    """Return keys and values of the first places, for several rows."""
    if not places:
        return []
    return [tuple(one[:, :, :places].expand(rows, -1, -1, -1) for one in pair) for pair in layers]  # type: ignore[misc]
