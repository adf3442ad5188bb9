"""Input times gradient."""

from __future__ import annotations

from ..method import InsideMethod


class InputXGradient(InsideMethod):
    """The inner product of a token's embedding and the gradient of p."""

    source = "Shrikumar, Greenside and Kundaje 2017"
