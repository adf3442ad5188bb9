"""The networks of Lei et al. (2016), Rationalizing neural predictions, as DeYoung et al. (2020) build and train them.

See section 6.1 and appendix C.1. A generator gives each token a probability to be selected. An encoder (called decoder
by DeYoung et al.) classifies the selected tokens and sees nothing else: the other tokens are cut out of its input. In
training the selection is a draw, and the generator learns by REINFORCE: the draw's log-probability is weighted by the
encoder's loss, the share of selected tokens and the share of neighbours of which only one is selected. In use, tokens
with a probability above one half are selected.

Labels alone allow a shortcut: of two labels only one needs a selection, since the encoder learns that an empty
selection means the other label. ``random_selections`` prevents it as Jethani et al. (2021), Have we learned to
explain?, do: the encoder learns from random selections, so it learns what tokens say and that their absence says
nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from .embedders import Embedder
from .networks import LstmClassifier, Recurrent, Shape
from .readings import Example, PaddedReadings

if TYPE_CHECKING:
    from .network_systems import LeiSystem


class Generator(nn.Module):
    """A bidirectional LSTM, dropout, and a logit for each place."""

    def __init__(self, embedder: Embedder, settings: LeiSystem) -> None:
        super().__init__()
        self.embedder = embedder
        self.reader = Recurrent(embedder.width, settings.hidden_size)
        self.dropout = nn.Dropout(settings.dropout)
        self.head = nn.Linear(self.reader.width, 1)

    def forward(self, batch: PaddedReadings) -> Tensor:
        """Return logits that a place is selected, shape (rows, places)."""
        states, _ = self.reader(self.embedder(batch), batch.lengths)
        return self.head(self.dropout(states))[..., 0]  # type: ignore[no-any-return]


class Lei(LstmClassifier):
    """The encoder, an LSTM with additive attention, and its generator; each has its own embedder.

    Separators and the query are always selected.
    """

    selects = True
    settings: LeiSystem

    def __init__(self, embedder: Embedder, settings: LeiSystem, shape: Shape, generators: Embedder) -> None:
        super().__init__(embedder, settings, shape)
        self.attends = False
        self.generator = Generator(generators, settings)

    def selected(self, batch: PaddedReadings) -> Tensor:
        """Return True at the selected tokens, shape (rows, places)."""
        logits: Tensor = self.generator(batch)
        return (logits > 0) & batch.erasable & batch.visible

    def forward(self, batch: PaddedReadings) -> Tensor:
        """Return logits of shape (rows, labels)."""
        return self.classify_selection(batch, self.selected(batch))

    def classify_selection(self, batch: PaddedReadings, selected: Tensor) -> Tensor:
        """Return the logits of the encoder, which sees only the selected tokens."""
        kept = batch.only(selected | ~batch.erasable)
        return self.logits(self.embedder(kept), kept)

    def loss(self, batch: PaddedReadings, examples: Sequence[Example]) -> Tensor:
        """Return the loss of encoder and generator."""
        settings, logits, many = self.settings, self.generator(batch), batch.repeat(self.settings.draws)
        labels = torch.tensor([one.label for one in examples] * settings.draws, device=logits.device)
        loss: Tensor = logits.new_zeros(())
        if settings.supervision:
            loss = settings.supervision * compute_rationale_loss(logits, batch, examples)
        if settings.random_selections:
            loss = loss + functional.cross_entropy(self.classify_selection(many, draw_random_selections(many)), labels)
            if self.epoch < settings.free_epochs:  # the generator waits until there is something to learn from
                return loss
        drawn = logits.repeat(settings.draws, 1)
        chosen = torch.bernoulli(torch.sigmoid(drawn.detach())).bool() & many.erasable
        losses = functional.cross_entropy(self.classify_selection(many, chosen), labels, reduction="none")
        cost = losses.detach()
        if not settings.random_selections:
            loss = loss + losses.mean()
        if self.epoch >= settings.free_epochs:
            cost = cost + settings.sparsity * self.compute_regulariser(many, chosen)
        neg_log_prob = functional.binary_cross_entropy_with_logits(drawn, chosen.to(drawn.dtype), reduction="none")
        advantage = cost - compute_others_mean(cost.view(settings.draws, -1)).flatten()
        loss = loss - (advantage * compute_share(neg_log_prob, many.erasable)).mean()
        if settings.entropy:
            # in nats: log 2 at logit 0, near 0 for a certain draw
            entropy = functional.binary_cross_entropy_with_logits(logits, torch.sigmoid(logits), reduction="none")
            loss = loss - settings.entropy * compute_share(entropy, batch.erasable).mean()
        return loss

    def penalty(self, batch: PaddedReadings) -> Tensor:
        """Return the weighted regulariser of the selection, shape (rows,)."""
        return self.settings.sparsity * self.compute_regulariser(batch, self.selected(batch))

    def compute_regulariser(self, batch: PaddedReadings, chosen: Tensor) -> Tensor:
        """Return the share of selected tokens plus ``contiguity`` times the share of neighbours that differ."""
        neighbours = batch.erasable[:, 1:] & batch.erasable[:, :-1]
        changes = compute_share((chosen[:, 1:] != chosen[:, :-1]).float(), neighbours)
        return compute_share(chosen.float(), batch.erasable) + self.settings.contiguity * changes


def compute_share(values: Tensor, among: Tensor) -> Tensor:
    """Return the mean of each row's values at the places ``among``; 0 if there are none."""
    return (values * among).sum(dim=1) / among.sum(dim=1).clamp(min=1)


def draw_random_selections(batch: PaddedReadings) -> Tensor:
    """Draw selections that do not depend on the text: each token with the row's probability, drawn between 0 and 1.

    Jethani et al. (2021) use one half. A generator that selects few tokens needs an encoder that has seen few.
    """
    shares = torch.rand(len(batch.words), 1, device=batch.words.device)
    return (torch.rand(batch.words.shape, device=batch.words.device) < shares) & batch.erasable


def compute_others_mean(costs: Tensor) -> Tensor:
    """Return for each draw the mean cost of the text's other draws; with one draw, of the batch's other texts.

    The mean does not depend on the draw itself: subtracting it keeps the expected gradient and lowers its variance.

    Args:
        costs: costs, shape (draws, texts).
    """
    if len(costs) == 1:
        return (costs.sum() - costs) / max(costs.numel() - 1, 1)
    return (costs.sum(dim=0) - costs) / (len(costs) - 1)


def compute_rationale_loss(logits: Tensor, batch: PaddedReadings, examples: Sequence[Example]) -> Tensor:
    """Return the cross entropy of selection and human rationale, averaged over tokens, then rows with one."""
    gold, marked = torch.zeros_like(logits), [one.rationale is not None for one in examples]
    for row, one in zip(gold, examples, strict=True):
        if one.rationale is not None:
            row[: len(one.rationale)] = torch.from_numpy(one.rationale.astype(np.float32)).to(row)
    losses = compute_share(functional.binary_cross_entropy_with_logits(logits, gold, reduction="none"), batch.erasable)
    return losses[torch.tensor(marked, device=losses.device)].sum() / max(sum(marked), 1)
