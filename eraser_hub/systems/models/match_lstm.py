"""The match-LSTM of Wang et al. (2022)."""

from __future__ import annotations

from typing import Any

from eraser_hub.records.errors import UsageError
from eraser_hub.systems.data import Data
from eraser_hub.systems.hyper import NetworkHyper
from eraser_hub.systems.system import NetworkSystem
from eraser_hub.systems.train_config import ANSWERS, Say, TrainConfig


class MatchLstmSystem(NetworkSystem):
    """A text read word by word, matched with the question by attention; it may learn to answer."""

    hyper = NetworkHyper(hidden_size=150, dropout=0.0, batch_size=32, epochs=10, patience=3, clip=5.0)
    network = "eraser_hub.systems.networks.matching:MatchLstm"
    pointer = "eraser_hub.systems.networks.matching:AnswerPointer"
    reads_apart = True
    needs = ("pairs",)
    tasks = (ANSWERS,)

    def check_data(self, config: TrainConfig, hyper: Any, data: Data, say: Say) -> None:
        """Refuse data without pairs of texts."""
        if not data.has_pairs:
            words = "match-lstm matches a text with a question: expected query=True or pairs of texts, found neither"
            raise UsageError(words)
