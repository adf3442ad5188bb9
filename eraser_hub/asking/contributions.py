"""Contributions of the runs of a text to a language model's answer and to its steps, whose agreement is CC-SHAP.

Source: Parcalabescu and Frank, "On Measuring Faithfulness or Self-consistency of Natural Language Explanations" (ACL
2024), with the explanation before the answer ("CoT"). Their units are sub-words and their Shapley values estimates;
here runs of tokens are removed from the text, and Shapley values are exact.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eraser_hub.attribution.chunk import enumerate_coalitions
from eraser_hub.attribution.methods._shapley_values import compute_shapley_values

from .consistency import REMOVED, change_question
from .questions import Question

if TYPE_CHECKING:
    from .local import LocalClient, Output

    Message = dict[str, str]


class Run(NamedTuple):
    """Tokens of a text: its number from 0, the first token and the one behind the last."""

    document: int
    start: int
    end: int


def cut_runs(sizes: Sequence[int], count: int) -> list[Run]:
    """Cut texts into runs of about the same length: ``count`` of them, fewer if there are fewer tokens.

    Every text that has tokens has a run, so that there are more runs than ``count`` if there are more texts.

    Args:
        sizes: The number of tokens of each text.
        count: The number of runs.

    >>> cut_runs([4, 2], 3)
    [Run(document=0, start=0, end=2), Run(document=0, start=2, end=4), Run(document=1, start=0, end=2)]
    """
    counts = [min(size, 1) for size in sizes]
    while sum(counts) < min(count, sum(sizes)):
        longest = max(range(len(sizes)), key=lambda at: sizes[at] / max(counts[at], 1))
        counts[longest] += 1
    bounds = (np.linspace(0, *pair).round().astype(int) for pair in zip(sizes, [n + 1 for n in counts], strict=True))
    return [Run(at, *pair) for at, own in enumerate(bounds) for pair in pairwise(own.tolist())]


async def compute_contributions(
    client: LocalClient,
    question: Question,
    runs: Sequence[Run],
    make_messages: Callable[[Question], Sequence[Message]],
    output: Output,
) -> NDArray[np.float64]:
    """Compute what each run of a question's texts contributes to an output, shape (runs,).

    The value of a set of runs, for each sub-word of the output, is its log-odds behind the question without the other
    runs. Shapley values are divided by the sum of their absolute values over the runs; the mean over sub-words is
    returned (section 4 of the paper). A sub-word to which no run contributes counts as zeros.

    Args:
        client: The client of a model in this process.
        question: The question.
        runs: Runs of its texts, at most `settings.MOST_RUNS`.
        make_messages: Makes the prompt of a changed question.
        output: The text behind the prompt.
    """
    coalitions = enumerate_coalitions(len(runs))
    prompts = []
    for kept in coalitions.tolist():
        flags = [[False] * len(tokens) for tokens in question.instance.documents]
        for (document, start, end), stays in zip(runs, kept, strict=True):
            flags[document][start:end] = [not stays] * (end - start)
        prompts.append(make_messages(change_question(question, flags, REMOVED)))
    log_odds = await client.score(prompts, output)
    values = np.stack([compute_shapley_values(len(runs), column) for column in log_odds.T], axis=1)
    total = np.abs(values).sum(axis=0)
    ratios: NDArray[np.float64] = np.divide(values, total, out=np.zeros_like(values), where=total > 0)
    return np.asarray(ratios.mean(axis=1))
