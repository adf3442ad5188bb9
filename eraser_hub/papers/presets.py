"""Choices of a paper's code where its text is open or differs: ``--paper``.

One table, ``presets.json``, serves explaining and training. Differences in counting belong to the metrics.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files
from typing import Any

import msgspec

PRESETS = ("eraser", "wang2022", "carton2020")


@dataclass(frozen=True, slots=True)
class Choices:
    """Choices about scores and inputs that no option sets; the defaults are ours.

    Attributes:
        ties: which of equal scores leads, the ``first`` of the text or the ``last``.
        normalise: scores of gradients, attention and LIME are divided by their sum.
        lime_features: ``positions`` (each token is a feature), ``words`` (each different word is one, erased wherever
            it occurs), or ``twice the rationale`` (lime's own selection of min(n, 2 ceil(kd n)) positions, negative
            weights cut to 0).
        query_last: the model reads the document before the query.
        filler: the text in place of a sequence of which nothing is left; "" for none.
        integral: of integrated gradients: ``gauss-legendre``, or ``trapezoid`` (both ends among the points).
        baseline: of integrated gradients: ``zero`` embeddings, or ``pads`` between the first and the last token.
        question_to_passage: attention in reading comprehension is that of the question's tokens, as shares of the
            passage's.
        signed_sum: integrated gradients in reading comprehension are of the span's logits, and divided by their sum
            with its sign, so that a negative one reverses the ranking.
        occlusion: of the fidelity curves: a ``count`` of the rationale's tokens goes, or ``each`` by itself.
    """

    ties: str = "first"
    normalise: bool = False
    lime_features: str = "positions"
    query_last: bool = False
    filler: str = ""
    integral: str = "gauss-legendre"
    baseline: str = "zero"
    question_to_passage: bool = False
    signed_sum: bool = False
    occlusion: str = "count"

    def words(self) -> list[str]:
        """Return the choices that differ from ours, for a signature."""
        ours = Choices()
        pairs = ((name, getattr(self, name)) for name in self.__slots__)
        return [f"{name}:{'yes' if value is True else value}" for name, value in pairs if value != getattr(ours, name)]


@dataclass(frozen=True, slots=True)
class Preset:
    """A paper's choices.

    Attributes:
        of: the paper.
        method: where the model has embeddings; "" where the paper compares no methods.
        method_without_embeddings: for other models.
        rationales: in place of a method: ``human`` ones.
        kd: config -> share of a hard rationale, one per sequence; other configs have that of the paper's text.
        steps: task (the config's first word) -> integration steps.
        methods: method -> its settings.
        settings: option -> value.
        choices: those that no option says.
        training: what ``train`` of a baseline does.
    """

    of: str = ""
    method: str = ""
    method_without_embeddings: str = ""
    rationales: str = ""
    kd: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    steps: Mapping[str, int] = field(default_factory=dict)
    methods: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    choices: Choices = field(default_factory=Choices)
    training: Mapping[str, Any] = field(default_factory=dict)


@lru_cache
def load_preset(name: str) -> Preset:
    """Return the preset of this name, one of :data:`PRESETS`; "" gives our choices."""
    if not name:
        return Preset()
    content = files("eraser_hub.papers").joinpath("presets.json").read_bytes()
    return msgspec.json.decode(content, type=dict[str, Preset])[name]
