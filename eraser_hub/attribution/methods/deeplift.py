"""DeepLIFT."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING

from eraser_hub.records.errors import DataError

from ..models.inputs import is_out_of_memory
from ._captum import Embedded, GradientMethod

if TYPE_CHECKING:
    from torch import Tensor, nn


class Deeplift(GradientMethod):
    """DeepLIFT of the label's logit less the mean of all labels', from embeddings of zeros.

    Shrikumar, Greenside and Kundaje 2017, the rescale rule; the logit by their section 3.6, since captum's rule for a
    softmax mixes the inputs of a batch. Captum has rules for ReLU, ELU, sigmoid, tanh and softplus modules; whatever
    else bends (GELU, attention, layer normalisation) passes plain gradients on, and the scores then miss the difference
    by the convergence delta.
    """

    needs = ("layers",)
    explains = "logit"

    def attribute(self, inputs: Embedded) -> Tensor:
        """Return captum's products, summed over the width; note how far they miss the difference of logits.

        Raises:
            DataError: the network uses a module twice, or as captum cannot follow.
        """
        import torch
        from captum import attr

        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message="Setting forward, backward hooks")
                products, deltas = attr.DeepLift(_join(inputs.network, inputs.output)).attribute(
                    inputs.leaf(),
                    torch.zeros_like(inputs.vectors),
                    additional_forward_args=inputs.more,
                    return_convergence_delta=True,
                )
        except (AssertionError, RuntimeError) as error:
            if is_out_of_memory(error):
                raise
            reason = str(error).strip().partition("\n")[0] or type(error).__name__
            message = f"deeplift is not possible with {inputs.description}: {reason}"
            raise DataError(message, argument="method") from error
        inputs.notes.keep_largest("largest convergence delta", float(deltas.abs().max()))
        scores: Tensor = products.sum(dim=-1)
        return scores


def _join(network: nn.Module, output: Callable[..., Tensor]) -> nn.Module:
    """Return a module that computes the output and holds the network, whose modules captum finds in it."""
    from torch import nn

    class Joined(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.network = network

        def forward(self, *tensors: Tensor) -> Tensor:
            return output(*tensors)

    return Joined()
