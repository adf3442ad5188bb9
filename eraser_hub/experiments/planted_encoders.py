"""Pretrained encoders that learn planted rules: fine-tuned as ``train`` does it, until they know them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from eraser_hub.attribution.open import open_model
from eraser_hub.attribution.transformers.words import CutWords, load_tokenizer, make_open_error
from eraser_hub.records.errors import DataError
from eraser_hub.systems.data import Data, Training, say_nothing
from eraser_hub.systems.finetuning import finetune
from eraser_hub.systems.folder import checkpoint_dir
from eraser_hub.systems.system import FineTuning
from eraser_hub.systems.train_config import TrainConfig

from .planted_networks import is_rule_learned
from .plantings import KINDS

FINETUNING: Mapping[str, Any] = {"epochs": 8.0, "learning_rate": 1e-4, "batch_size": 16}


def check_encoder(encoder: str, kinds: Sequence[str]) -> str:
    """Return an encoder's mask token, by which the study erases.

    Args:
        encoder: A transformers folder or Hub id.
        kinds: The kinds of planting that it is to learn.

    Raises:
        DataError: The encoder's tokenizer cannot be opened, has no mask, or does not tell the planted words apart.
    """
    try:
        tokenizer = load_tokenizer(encoder)
    except DataError:
        raise
    except Exception as error:  # transformers raises many kinds
        raise make_open_error(error, encoder) from error
    if tokenizer.mask_token is None:
        words = "expected a tokenizer with a mask token, by which the study erases; found none"
        raise DataError(words, rule="model", file=encoder, argument="encoder")
    deciding = sorted(frozenset[str]().union(*(KINDS[kind].words for kind in kinds)))
    pieces = CutWords(tokenizer).cut(deciding)
    lost = [
        word
        for word, own in zip(deciding, pieces, strict=True)
        if not own or tokenizer.unk_token_id in own or pieces.count(own) > 1
    ]
    if lost:
        words = f"expected a tokenizer with sub-words of its own for each word that decides, found none for {lost}"
        raise DataError(words, rule="model", file=encoder, argument="encoder")
    return str(tokenizer.mask_token)


def finetune_encoder(encoder: str, data: Data, seed: int) -> Any:
    """Fine-tune an encoder on planted texts, and open it as a model of ``explain``."""
    config = TrainConfig(dataset="planted", model=encoder, task="classification", seed=seed, **FINETUNING)
    with TemporaryDirectory() as folder, checkpoint_dir(Path(folder), {}, False, say_nothing) as checkpoints:
        training = Training(config, data, Path(folder), checkpoints, say_nothing)
        finetune(training, FineTuning.hyper, is_rule_learned)
        return open_model(folder, precision="float32")
