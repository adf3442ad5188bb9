"""Extractive question answering: scores of the passage's tokens for the predicted answer span (rankings for MAP).

What is explained is p(start) · p(end) of the model's best span. Erased inputs change which spans there are, so there
are no comprehensiveness and sufficiency for this task (paper 002, Table 6), and methods that erase are refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eraser_hub.errors import DataError

from .models import Encoded, View, need
from .transformers_model import GRADIENT_METHODS, Pieces, SequenceModel, Window

LONGEST_ANSWER = 30


class AnswerModel(SequenceModel):
    """An extractive question-answering model: (question, passage) in, the best span out."""

    def __init__(self, network: Any, tokenizer: Any, **more: Any) -> None:
        super().__init__(network, tokenizer, uses_query=True, **more)
        self.label_names = ()

    def forward(self, units: Sequence[tuple[View, int]]) -> NDArray[np.float64]:
        raise DataError(
            f"{self.description}: question answering gives spans, not label probabilities: rankings only "
            "(--method random, gradient, input-x-gradient, integrated-gradients or attention)"
        )

    def supports(self, method: str) -> bool:
        return method in ("random", "attention", *GRADIENT_METHODS)

    def answer(self, one: Pieces) -> tuple[Window, int, int, float]:
        """The best span of a passage: its window, its first and last place there, and p(start) · p(end)."""
        windows = one.windows(np.ones(len(one.instance.tokens), dtype=bool), "remove")
        best: tuple[Window, int, int, float] | None = None
        for window in windows:
            with self.torch.inference_mode():
                out = self.network(**self.tensors([window]))
            start = self.torch.softmax(out.start_logits.double(), dim=-1)[0].cpu().numpy()
            end = self.torch.softmax(out.end_logits.double(), dim=-1)[0].cpu().numpy()
            held = window.piece >= 0
            pairs = np.triu(np.outer(start * held, end * held)) - np.triu(np.outer(start, end), LONGEST_ANSWER)
            first, last = np.unravel_index(int(np.argmax(pairs)), pairs.shape)
            p = float(start[first] * end[last])
            if not np.isfinite(p):
                raise DataError(
                    f"{self.description}: its output holds NaN or infinite values", instance=one.instance.id
                )
            if best is None or p > best[3]:
                best = (window, int(first), int(last), p)
        if best is None:
            raise DataError("the passage is empty: nothing to answer from", instance=one.instance.id)
        return best

    def answer_text(self, one: Pieces) -> tuple[str, float]:
        """The answer's words, blank between, and its probability."""
        window, first, last, p = self.answer(one)
        pieces = window.piece[first : last + 1]
        words = sorted({int(one.owner[piece]) for piece in pieces if piece >= 0})
        return " ".join(one.instance.tokens[word] for word in words), p

    def scores(
        self, method: str, encoded: Sequence[Encoded], targets: Sequence[int], steps: int
    ) -> list[NDArray[np.float64]]:
        from .gradients import attention_scores

        pieces = [one for one in encoded if isinstance(one, Pieces)]
        if method == "attention":
            return attention_scores(self, pieces)
        return [self._gradient(one, method, steps) for one in pieces]

    def _gradient(self, one: Pieces, method: str, steps: int) -> NDArray[np.float64]:
        need("captum")
        import captum.attr

        torch = self.torch
        window, first, last, _ = self.answer(one)
        inputs = self.tensors([window])
        with torch.no_grad():
            embedded = self.network.get_input_embeddings()(inputs["input_ids"]).detach()
        embedded.requires_grad_()
        rest = {name: value for name, value in inputs.items() if name != "input_ids"}

        def probability(batch: Any) -> Any:
            out = self.network(
                inputs_embeds=batch, **{name: value.expand(len(batch), -1) for name, value in rest.items()}
            )
            return torch.softmax(out.start_logits, dim=-1)[:, first] * torch.softmax(out.end_logits, dim=-1)[:, last]

        if method == "integrated-gradients":
            values, delta = captum.attr.IntegratedGradients(probability).attribute(
                embedded, baselines=torch.zeros_like(embedded), n_steps=steps, internal_batch_size=8,
                return_convergence_delta=True,
            )  # fmt: skip
            self.notes.largest("largest convergence delta", float(delta.abs().max()))
            pieces = values.sum(dim=-1)[0]
        elif method == "input-x-gradient":
            pieces = captum.attr.InputXGradient(probability).attribute(embedded).sum(dim=-1)[0]
        else:
            pieces = captum.attr.Saliency(probability).attribute(embedded, abs=False).norm(dim=-1)[0]
        scores = np.zeros(len(one.instance.tokens))
        held = window.piece >= 0
        np.add.at(
            scores, one.owner[window.piece[held]], pieces.detach().double().cpu().numpy()[: len(window.ids)][held]
        )
        return scores
