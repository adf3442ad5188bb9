"""Windows of an encoder below a network are no longer than its positions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from eraser_hub.systems.train_config import TrainConfig
from eraser_hub.systems.training import train_model

from ...needs import needs
from ...refusals import refused

pytestmark = needs("torch", "transformers", "sklearn", "skops")


def test_a_window_longer_than_the_encoder_s_positions_is_refused(
    hub: Path, network: Callable[..., Any], tokenizer: Any, tmp_path: Path
) -> None:
    network("BertModel").save_pretrained(tmp_path / "encoder")
    tokenizer.save_pretrained(tmp_path / "encoder")
    recipe = TrainConfig(
        dataset=str(hub), config="movies", model="bert-lstm", encoder=str(tmp_path / "encoder"), max_steps=1
    )
    with refused("32", "512", argument="model"):
        list(train_model(recipe, tmp_path / "m"))
    assert not (tmp_path / "m").exists()
