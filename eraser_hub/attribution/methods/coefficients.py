"""Coefficients of a linear model."""

from __future__ import annotations

from ..method import InsideMethod


class Coefficients(InsideMethod):
    """Each token's share of a linear model's weighted features, in closed form."""

    needs = ("coefficients",)
