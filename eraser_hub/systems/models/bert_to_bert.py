"""The BERT-to-BERT of DeYoung et al. (2020)."""

from __future__ import annotations

from dataclasses import dataclass

from eraser_hub.systems.hyper import Hyper, Size
from eraser_hub.systems.system import NetworkSystem


@dataclass(frozen=True, slots=True)
class BertToBertHyper(Hyper):
    """Hyper-parameters of both stages of BERT-to-BERT (DeYoung et al., 2020).

    Attributes:
        window: Sub-words that the encoder reads together.
        sentences: Number of sentences that are selected.
        negatives: Other sentences per evidence sentence in an epoch of the identifier's training.
    """

    window: Size = 512
    sentences: Size = 1
    negatives: float = 1.0


class BertToBertSystem(NetworkSystem):
    """A sentence identifier and a classifier of its sentences, two encoders."""

    hyper = BertToBertHyper(
        learning_rate=1e-5,
        batch_size=32,
        epochs=10,
        patience=10,
        monitor="loss",
        warmup_steps=50,
        linear_decay=True,
        clip=1.0,
    )
    encoder = "required"
    trainer = "eraser_hub.systems.pipelines.training:train_pipeline"
    needs = ("rationales",)
    selects = True
    stages = ("identifier", "classifier")
