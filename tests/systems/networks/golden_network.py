"""The network of the golden saliency file; imported by its tests when they run, since it needs torch."""

from __future__ import annotations

import torch

from eraser_hub.systems.networks.classifiers import AdditiveAttention, Shape, TokenNetwork, pool_states
from eraser_hub.systems.networks.embedders import WordEmbedder
from eraser_hub.systems.networks.readings import Vocabulary
from eraser_hub.systems.system import SYSTEMS

WORDS = [f"w{number}" for number in range(2, 64)]


class GoldenNetwork(TokenNetwork):
    """The golden file's classifier: word vectors, the project's additive attention, a linear layer."""

    attends = True

    def __init__(self, facts) -> None:
        def tensor(name):
            return torch.tensor(facts[name], dtype=torch.float64)

        table = tensor("embedding")
        vectors = torch.cat([table[:1], table[:1], table[1:]])  # [PAD], [UNK], [SEP], then w2 and so on
        embedder = WordEmbedder(Vocabulary(WORDS, False), 4).double()
        super().__init__(embedder, SYSTEMS["glove-lstm"].hyper, Shape(len(facts["bias"]), False))
        self.weights = AdditiveAttention(4).double()
        self.head = torch.nn.Linear(4, len(facts["bias"])).double()
        with torch.no_grad():
            embedder.table.weight.copy_(vectors)
            for ours, name in (("query", "q"), ("of_query", "W"), ("of_states", "U"), ("vector", "v")):
                getattr(self.weights, ours).copy_(tensor(name).view(getattr(self.weights, ours).shape))
            self.head.weight.copy_(tensor("linear"))
            self.head.bias.copy_(tensor("bias"))

    def attention(self, vectors, batch):
        return self.weights(vectors, batch.visible)

    def logits(self, vectors, batch):
        return self.head(pool_states(vectors, self.attention(vectors, batch)))
