"""ERASER's gradients."""

from __future__ import annotations

from ..method import InsideMethod


class SimpleGradient(InsideMethod):
    """The absolute inner product of a token's embedding and the gradient of p."""

    source = "DeYoung et al. 2020, ERASER: as its authors' code has it"
    needs = ("embeddings",)
    normalised = True
