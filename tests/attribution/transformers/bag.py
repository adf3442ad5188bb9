"""A bag of words behind a rectifier; imported by tests when they run, since it needs torch."""

from __future__ import annotations

import torch
import transformers


class Bag(transformers.PreTrainedModel):
    """A classifier of the mean embedding through one rectified layer; ``again`` uses its rectifier twice."""

    config_class = transformers.BertConfig
    again = False

    def __init__(self, config):
        super().__init__(config)
        self.embedding = torch.nn.Embedding(config.vocab_size, 8)
        self.hidden, self.bend, self.out = torch.nn.Linear(8, 6), torch.nn.ReLU(), torch.nn.Linear(6, 2)
        self.embedding.weight.data[:4] = 0  # padding and special tokens say nothing

    def get_input_embeddings(self):
        return self.embedding

    def forward(self, input_ids=None, attention_mask=None, **more):
        mean = (self.embedding(input_ids) * attention_mask[..., None]).sum(dim=1)
        hidden = self.bend(self.hidden(mean))
        return transformers.modeling_outputs.SequenceClassifierOutput(
            logits=self.out(self.bend(hidden) if self.again else hidden)
        )
