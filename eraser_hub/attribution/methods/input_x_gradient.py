"""Input times gradient."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._captum import Embedded, GradientMethod

if TYPE_CHECKING:
    from torch import Tensor


class InputXGradient(GradientMethod):
    """The inner product of a token's embedding and the gradient of p.

    Shrikumar, Greenside and Kundaje 2017.
    """

    def attribute(self, inputs: Embedded) -> Tensor:
        """Return captum's products, summed over the width."""
        from captum import attr

        products: Tensor = attr.InputXGradient(inputs.output).attribute(inputs.leaf(), None, inputs.more)
        return products.sum(dim=-1)
