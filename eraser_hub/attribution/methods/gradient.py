"""Saliency by gradients."""

from __future__ import annotations

from ..method import InsideMethod


class Gradient(InsideMethod):
    """The length of the gradient of p along a token's embedding, without sign."""

    source = "Simonyan, Vedaldi and Zisserman 2014"
