"""Integrated gradients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from ..models.inputs import is_out_of_memory, release_memory
from ._captum import Embedded, GradientMethod

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class IntegratedGradients(GradientMethod):
    """The gradient of p along the line from a baseline to the input, times their difference.

    Sundararajan, Taly and Yan 2017.

    Attributes:
        steps: points of the integral, by Gauss and Legendre or a paper's trapezoid rule.
    """

    one_by_one = True  # the points of one integral fill a batch

    steps: Annotated[int, Meta(ge=1)] = 300

    def attribute(self, inputs: Embedded) -> Tensor:
        """Return captum's products, summed over the width; note how far they miss p(input) - p(baseline).

        Where memory runs out, half as many points go through the network together.
        """
        from captum import attr

        method, vectors, baseline = attr.IntegratedGradients(inputs.output), inputs.vectors, inputs.baseline
        trapezoid = inputs.choices.integral == "trapezoid" and self.steps > 1
        rule, rows = "riemann_trapezoid" if trapezoid else "gausslegendre", max(inputs.rows, len(vectors))
        while True:
            try:
                products = method.attribute(vectors, baseline, None, inputs.more, self.steps, rule, rows)
                break
            except (MemoryError, RuntimeError) as error:
                if not is_out_of_memory(error) or rows < 2 * len(vectors):
                    raise
            inputs.notes.say(f"out of memory with {rows} inputs at a time: halved to {rows // 2}")
            rows //= 2
            release_memory()
        if trapezoid:  # captum's n weights sum to (n - 1) / n, the authors' to 1
            products = products * (self.steps / (self.steps - 1))
        deltas = method.compute_convergence_delta(
            products, 0 if baseline is None else baseline, vectors, additional_forward_args=inputs.more
        )
        inputs.notes.keep_largest("largest convergence delta", float(deltas.abs().max()))
        scores: Tensor = products.sum(dim=-1)
        return scores
