"""Attention weights."""

from __future__ import annotations

from ..method import InsideMethod


class Attention(InsideMethod):
    """Attention of the last layer to each token, the mean over heads, without sign."""

    source = "DeYoung et al. 2020, ERASER"
    needs = ("attention",)
    normalised = True
