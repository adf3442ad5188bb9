"""Saliency by gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._captum import Embedded, GradientMethod

if TYPE_CHECKING:
    from torch import Tensor


class Gradient(GradientMethod):
    """The length of the gradient of p along a token's embedding, without sign.

    Simonyan, Vedaldi and Zisserman 2014.
    """

    def attribute(self, inputs: Embedded) -> Tensor:
        """Return the Euclidean norm of captum's saliency."""
        from captum.attr import Saliency

        slopes: Tensor = Saliency(inputs.output).attribute(inputs.leaf(), None, False, inputs.more)
        norms: Tensor = slopes.norm(dim=-1)
        return norms
