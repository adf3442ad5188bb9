"""Attention rollout."""

from __future__ import annotations

from ..method import InsideMethod


class AttentionRollout(InsideMethod):
    """Attention of all layers to each token, residual connections included (attention rollout), without sign.

    With W_l the mean over the heads of layer l, A_l = W_l + I, each row divided by its sum, and the rollout is
    A_L · … · A_2 · A_1, shape (places, places). A token's score is its share of the row of the CLS token, or of the
    last place of a model that decides there; sub-words are summed. One pass of the model, and a matrix product a layer.
    """

    source = "Abnar & Zuidema 2020"
    needs = ("attention-layers",)
    normalised = True
