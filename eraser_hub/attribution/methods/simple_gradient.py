"""ERASER's gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._captum import Embedded
from .input_x_gradient import InputXGradient

if TYPE_CHECKING:
    from torch import Tensor


class SimpleGradient(InputXGradient):
    """The absolute inner product of a token's embedding and the gradient of p.

    DeYoung et al. 2020, ERASER: as its authors' code has it.
    """

    normalised = True

    def attribute(self, inputs: Embedded) -> Tensor:
        """Return the products without sign."""
        return super().attribute(inputs).abs()
