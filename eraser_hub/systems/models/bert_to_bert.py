"""Paper 000's BERT-to-BERT."""

from __future__ import annotations

from dataclasses import dataclass

from eraser_hub.systems.hyper import Hyper, Size
from eraser_hub.systems.system import NetworkSystem


@dataclass(frozen=True, slots=True)
class BertToBertHyper(Hyper):
    """Of both stages of DeYoung et al. (2020)'s BERT-to-BERT.

    Attributes:
        window: sub-words that go through the encoder together.
        sentences: so many are selected.
        negatives: other sentences for each evidence sentence in an epoch of the identifier's training.
    """

    window: Size = 512
    sentences: Size = 1
    negatives: float = 1.0


class BertToBertSystem(NetworkSystem):
    """A sentence identifier and a classifier of its sentences, two encoders."""

    paper = "DeYoung et al. (2020), Table 3"
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
    trainer = "eraser_hub.systems.pipelines.training:train_sentence_pipeline"
    needs = ("rationales",)
    selects = True
    stages = ("identifier", "classifier")
