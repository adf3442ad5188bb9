"""What ``fast`` makes smaller, so that the rows of all tables finish on two cores in about an hour."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .rows import ENCODER

SAMPLE = 50  # instances that are explained, with each label's share
SAMPLES: Mapping[str, int] = {"bert-lstm": 10}  # of whole texts through an encoder, each erased some forty times
SETTINGS = {"lime_samples": 30, "fidelity_trials": 0}
RANDOM_DRAWS, FAST_RANDOM_DRAWS = 10, 2  # ERASER averages ten random rankings
SMALL = ("min_count=3", "embedding_size=64", "hidden_size=64")
FROZEN = ("hidden_size=64", "trained_layers=0")
RECIPES: Mapping[str, Mapping[str, Any]] = {
    "lei": {"epochs": 6.0, "hyper": SMALL},
    "lei-unsupervised": {"epochs": 3.0, "hyper": SMALL},
    "lehman": {"epochs": 4.0, "batch_size": 128, "hyper": SMALL},
    "bert-to-bert": {"max_steps": 100, "batch_size": 16, "window": 128, "learning_rate": 5e-5},
    "glove-lstm": {"epochs": 6.0, "hyper": SMALL},
    "bert-lstm": {"epochs": 2.0, "limit": 100, "batch_size": 4, "learning_rate": 2e-3, "hyper": FROZEN},
    "bilstm": {"epochs": 4.0, "hyper": SMALL},
    ENCODER: {"max_steps": 40, "batch_size": 8, "window": 256, "learning_rate": 5e-5},
}


def sample_of(model: str) -> int:
    """How many instances of a model are explained."""
    return SAMPLES.get(model, SAMPLE)


def in_words(model: str) -> str:
    """Return what ``fast`` changes of a model's training, in one line; "" for nothing."""
    parts = [f"{name} {value}" for name, value in RECIPES.get(model, {}).items() if name != "hyper"]
    if model in SAMPLES:
        parts.append(f"{SAMPLES[model]} instances explained")
    return ", ".join([*parts, *RECIPES.get(model, {}).get("hyper", ())])
