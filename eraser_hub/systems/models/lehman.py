"""The system of Lehman et al. (2019), as DeYoung et al. (2020) train it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from eraser_hub.systems.hyper import NetworkHyper, Size
from eraser_hub.systems.system import NetworkSystem


@dataclass(frozen=True, slots=True)
class LehmanHyper(NetworkHyper):
    """Hyper-parameters of both stages of Lehman et al. (2019), as DeYoung et al. (2020) train them.

    Attributes:
        cell: Kind of the recurrent layers.
        sentences: Number of sentences that are selected.
        negatives: Other sentences per evidence sentence in an epoch of the identifier's training.
    """

    cell: Literal["gru", "lstm"] = "gru"
    sentences: Size = 1
    negatives: float = 1.0


class LehmanSystem(NetworkSystem):
    """A sentence identifier and a classifier of its sentences, GRUs with attention."""

    hyper = LehmanHyper(embedding_size=200, dropout=0.05, batch_size=32, epochs=50, patience=10, monitor="loss")
    network = "eraser_hub.systems.networks.classifiers:SentenceReader"
    trainer = "eraser_hub.systems.pipelines.training:train_pipeline"
    reads_apart = True
    needs = ("rationales",)
    selects = True
    stages = ("identifier", "classifier")
