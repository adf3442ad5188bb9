"""Gradients, integrated gradients and attention of a transformers model, over word tokens.

Scores of sub-words are summed to words. Where a text has several windows its probability is their mean, so the
gradient with respect to a sub-word is the sum over the windows that hold it, divided by the number of windows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from eraser_hub.errors import DataError

from .models import need

if TYPE_CHECKING:
    from .transformers_model import Pieces, SequenceModel, Window


def batches(model: SequenceModel, windows: Sequence[Window], rows: int) -> list[list[int]]:
    """Window numbers in batches of like length."""
    order = sorted(range(len(windows)), key=lambda number: -len(windows[number].ids))
    return [order[start : start + rows] for start in range(0, len(order), rows)]


def gradient_scores(
    model: SequenceModel, encoded: Sequence[Pieces], columns: Sequence[int], method: str, steps: int
) -> list[NDArray[np.float64]]:
    """Scores for the probability of each instance's explained class, by captum.

    ``gradient`` is the Euclidean norm of the gradient with respect to a sub-word's input embedding; ``input-x-gradient``
    the inner product of both; ``integrated-gradients`` the inner product of embedding and mean gradient along the line
    from the all-zero embeddings (``steps`` Gauss-Legendre points; paper 002 takes 300). The convergence delta, the
    difference between the sum of integrated gradients and p(x) - p(baseline), is kept in the model's notes.
    """
    need("captum")
    import captum.attr
    import torch

    windows, owner = [], []
    for number, one in enumerate(encoded):
        for window in one.windows(np.ones(len(one.instance.tokens), dtype=bool), "remove"):
            windows.append(window)
            owner.append(number)
    parts = np.bincount(owner, minlength=len(encoded))
    scores = [np.zeros(len(one.instance.tokens)) for one in encoded]
    embedding = model.network.get_input_embeddings()

    def probability(embedded: Any, seen: Any, types: Any) -> Any:
        extra = {"token_type_ids": types} if types is not None else {}
        return torch.softmax(model.network(inputs_embeds=embedded, attention_mask=seen, **extra).logits.float(), dim=-1)

    rows = 1 if method == "integrated-gradients" else 8
    for batch in batches(model, windows, rows):
        inputs = model.tensors([windows[number] for number in batch])
        target = [columns[owner[number]] for number in batch]
        more = (inputs["attention_mask"], inputs.get("token_type_ids"))
        with torch.no_grad():
            embedded = embedding(inputs["input_ids"]).detach()
        embedded.requires_grad_()
        if method == "integrated-gradients":
            found, delta = captum.attr.IntegratedGradients(probability).attribute(
                embedded, baselines=torch.zeros_like(embedded), target=target, additional_forward_args=more,
                n_steps=steps, internal_batch_size=16, return_convergence_delta=True,
            )  # fmt: skip
            model.notes.largest("largest convergence delta", float(delta.abs().max()))
            values = found.sum(dim=-1)
        elif method == "input-x-gradient":
            values = captum.attr.InputXGradient(probability).attribute(
                embedded, target=target, additional_forward_args=more
            ).sum(dim=-1)  # fmt: skip
        else:
            values = captum.attr.Saliency(probability).attribute(
                embedded, target=target, abs=False, additional_forward_args=more
            ).norm(dim=-1)  # fmt: skip
        for number, row in zip(batch, values.detach().double().cpu().numpy(), strict=True):
            _add(scores[owner[number]], encoded[owner[number]], windows[number], row / parts[owner[number]])
    return scores


def attention_scores(model: SequenceModel, encoded: Sequence[Pieces]) -> list[NDArray[np.float64]]:
    """Attention of the last layer from the CLS token to each sub-word, the mean over heads, summed to words.

    A model without CLS token (one that classifies at the last token) gives the last token's attention. A sub-word in
    several windows takes the mean of its windows.
    """
    import torch

    windows, owner = [], []
    for number, one in enumerate(encoded):
        for window in one.windows(np.ones(len(one.instance.tokens), dtype=bool), "remove"):
            windows.append(window)
            owner.append(number)
    sums = [np.zeros(len(one.ids)) for one in encoded]
    times = [np.zeros(len(one.ids)) for one in encoded]
    before = model.network.config._attn_implementation
    model.network.set_attn_implementation("eager")  # the fused kernels do not give their weights
    try:
        for batch in batches(model, windows, 8):
            inputs = model.tensors([windows[number] for number in batch])
            with torch.inference_mode():
                layers = model.network(**inputs, output_attentions=True).attentions
            if not layers:
                raise DataError(f"--method attention: {model.description} gives no attention weights")
            heads = layers[-1].mean(dim=1).double().cpu().numpy()
            for row, number in enumerate(batch):
                window = windows[number]
                at = 0 if window.ids[0] == model.tokenizer.cls_token_id else len(window.ids) - 1
                held = window.piece >= 0
                sums[owner[number]][window.piece[held]] += heads[row, at, : len(window.ids)][held]
                times[owner[number]][window.piece[held]] += 1
    finally:
        model.network.set_attn_implementation(before)
    return [
        np.bincount(one.owner, weights=total / np.maximum(count, 1), minlength=len(one.instance.tokens)).astype(float)
        for one, total, count in zip(encoded, sums, times, strict=True)
    ]


def _add(scores: NDArray[np.float64], one: Pieces, window: Window, values: NDArray[np.float64]) -> None:
    """Sum a window's sub-word values into its words' scores."""
    held = window.piece >= 0
    np.add.at(scores, one.owner[window.piece[held]], values[: len(window.ids)][held])
