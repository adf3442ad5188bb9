"""The system of Lei et al. (2016), as DeYoung et al. (2020) train it."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar

from eraser_hub.records.errors import DataError
from eraser_hub.systems.data import Data
from eraser_hub.systems.hyper import NetworkHyper, Size
from eraser_hub.systems.system import NetworkSystem
from eraser_hub.systems.train_config import Say, TrainConfig


@dataclass(frozen=True, slots=True)
class LeiHyper(NetworkHyper):
    """Hyper-parameters of Lei et al. (2016), as DeYoung et al. (2020) train it.

    Attributes:
        sparsity: Weight of the share of tokens that are selected.
        contiguity: Weight, in multiples of ``sparsity``, of the share of neighbours of which only one is selected.
        draws: Selections that are drawn of each text in a step. With several, each one is compared with the text's
            other draws, which makes the estimate less noisy.
        free_epochs: Epochs at the start without ``sparsity`` and ``contiguity``: a generator that learns to select
            nothing before the encoder has learned anything never recovers. With ``random_selections`` the generator
            waits that long.
        entropy: Weight of the selection's entropy, a mean over tokens (Williams and Peng, 1991): a generator that is
            certain draws nothing else any more and stops learning.
        reinforce: Weight of the generator's REINFORCE loss.
        supervision: Weight of the generator's cross entropy against the human rationale; 0: unsupervised.
        random_selections: Train the encoder on random selections (Jethani et al., 2021) instead of the generator's: an
            empty selection then carries no information on the label.
        generator_layers: Number of trained layers of the generator's own encoder.
    """

    sparsity: float = 0.01
    contiguity: float = 2.0
    draws: Size = 1
    free_epochs: int = 0
    entropy: float = 0.0
    reinforce: float = 1.0
    supervision: float = 1.0
    random_selections: bool = False
    generator_layers: int = 2


class LeiSystem(NetworkSystem):
    """A generator of masks, trained by human rationales too, and an encoder of the selected tokens."""

    hyper = LeiHyper()
    with_encoder = MappingProxyType({"learning_rate": 2e-5})
    encoder = "optional"
    network = "eraser_hub.systems.networks.lei:Lei"
    needs: ClassVar[tuple[str, ...]] = ("rationales",)
    selects = True

    def check_data(self, config: TrainConfig, hyper: Any, data: Data, say: Say) -> None:
        """Refuse data without human rationales if the system learns from them."""
        instances = data.train[0]
        without = len(instances) - sum(one.has_rationale for one in instances) if hyper.supervision else 0
        if without == len(instances):
            words = f"found none in {without} instances; lei-unsupervised needs none"
            raise DataError(f"{config.model} learns from human rationales, {words}")
        if without:
            say(f"{without} of {len(instances)} instances have no human rationale: they train by their labels alone")
