"""DeepLIFT."""

from __future__ import annotations

from ..method import InsideMethod


class Deeplift(InsideMethod):
    """DeepLIFT by captum, of the label's logit minus the mean of all labels'."""

    source = "Shrikumar, Greenside and Kundaje 2017, the rescale rule"
    packages = ("captum",)
    needs = ("layers",)
