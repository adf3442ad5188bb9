"""Gradients, attention and masked embeddings of a network, over word tokens.

Scores of sub-words are summed to words. Where a text has several windows its probability is their mean, so the
gradient with respect to a sub-word is the sum over the windows that hold it, divided by the number of windows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from eraser_hub.attribution.methods._captum import Embedded, GradientMethod
from eraser_hub.records.errors import DataError
from eraser_hub.records.extras import need

from .devices import to_float64
from .inputs import run_in_halves
from .model import Model
from .pieces import Ints, Reading

if TYPE_CHECKING:
    from eraser_hub.attribution.method import Scores
    from eraser_hub.attribution.text import Text

    from .transformer import TransformerModel

Item = TypeVar("Item")
Result = TypeVar("Result")
FULL_LENGTH_ROWS = 16  # half as many as forward passes take: the backward pass keeps every layer's values
MAX_MASKS = 1 << 22  # numbers of embeddings that are masked together


class Explained(NamedTuple):
    """An input whose output is explained.

    Attributes:
        data: what :meth:`TransformerModel.tensors` takes.
        rows: the reading, and the places of it, of each row that the input consists of: a choice has one an answer.
        output: what is explained: a column, or the first and the last place of an answer.
    """

    data: Any
    rows: Sequence[tuple[Reading, Ints]]
    output: tuple[int, ...]


def map_inputs(
    model: Model,
    method: GradientMethod,
    work: Callable[[list[Item]], Sequence[Result]],
    items: Sequence[Item],
    sizes: Sequence[int],
) -> list[Result]:
    """Return the results of work that attributes batches of a gradient method's inputs; halved when memory runs out."""
    need("captum")
    if method.one_by_one:
        return [result for item in items for result in run_in_halves(work, [item], model.notes)]
    return model.map_batches(work, items, sizes, FULL_LENGTH_ROWS)


def compute_gradients(model: TransformerModel, texts: Sequence[Text], method: GradientMethod) -> list[Scores]:
    """Return token scores by a gradient method, which gets the embedded windows of texts in batches."""
    items = [(number, item) for number, text in enumerate(texts) for item in model.explained(text)]
    parts = np.bincount([number for number, _ in items], minlength=len(texts))

    def work(batch: list[tuple[int, Explained]]) -> list[NDArray[np.float64]]:
        tensors = model.tensors([item.data for _, item in batch])
        with torch.no_grad():
            vectors = model.network.get_input_embeddings()(tensors["input_ids"])
        outputs = torch.tensor([item.output for _, item in batch], device=vectors.device)

        def output(points: Any, outputs: Any, *values: Any) -> Any:
            out = run_embedded(model, points, dict(zip(tensors, values, strict=True)))
            return model.explained_output(out, outputs, method)

        inputs = Embedded(
            output=output,
            vectors=vectors,
            more=(outputs, *tensors.values()),
            baseline=make_baseline(model, tensors["input_ids"]),
            network=model.network,
            rows=model.rows_for(vectors.shape[-2], FULL_LENGTH_ROWS),
            choices=model.choices,
            notes=model.notes,
            description=model.description,
        )
        values = to_float64(method.attribute(inputs).detach()).cpu().numpy()
        return list(values.reshape(len(batch), -1, values.shape[-1]))

    rows = map_inputs(model, method, work, items, [len(item.rows[0][1]) for _, item in items])
    scores = [np.zeros(text.tokens + 1) for text in texts]  # one more for what is no token
    for (number, item), values in zip(items, rows, strict=True):
        for (reading, places), row in zip(item.rows, values, strict=True):
            values_of_window = row[model.inside(len(places), len(row))] / parts[number]
            np.add.at(scores[number], reading.source[places], values_of_window)
    return [row[:-1] for row in scores]


def run_embedded(model: TransformerModel, vectors: Any, inputs: dict[str, Any]) -> Any:
    """Run the network with ``vectors`` instead of its input embeddings.

    The ids go in as well, since a network may look at more in them than their embeddings: one that classifies at the
    last token finds by them where padding begins.

    Raises:
        DataError: the network does not embed its input exactly once.
    """
    times = 0

    def instead(module: Any, ids: Any, embedded: Any) -> Any:
        nonlocal times
        times += 1
        if model.network.config.model_type == "xlnet":
            return vectors.transpose(0, 1)  # it puts places before inputs
        if embedded.numel() == vectors.numel():
            return vectors.reshape(embedded.shape)
        # a network that pads by itself (Longformer, to whole attention windows): its padding stays
        rows = vectors.reshape(-1, *vectors.shape[-2:])
        return torch.cat([rows, embedded[:, rows.shape[1] :]], dim=1)

    hook = model.network.get_input_embeddings().register_forward_hook(instead)
    try:
        out = model.network(**inputs)
    finally:
        hook.remove()
    if times != 1:
        message = f"{model.description}: gradients need a network that looks up its input embeddings once, found "
        raise DataError(f"{message}{times} times; use occlusion or lime")
    return out


def make_baseline(model: TransformerModel, ids: Any) -> Any:
    """Return the embeddings from which integrated gradients start, by the paper's choice; None for zeros.

    ``pads``: padding between the first and the last token (Wang 2022's code), with the model's own ids in place of the
    authors' fixed ones, which are those of Chinese BERT alone.
    """
    if model.choices.baseline == "zero":
        return None
    pads = torch.full_like(ids, model.words.pad)
    pads[..., 0], pads[..., -1] = ids[..., 0], ids[..., -1]
    with torch.no_grad():
        return model.network.get_input_embeddings()(pads)


def compute_attention(model: TransformerModel, texts: Sequence[Text]) -> list[Scores]:
    """Return the last layer's attention to each token; a sub-word in several windows takes their mean."""
    windows = [(text.reading, places) for text in texts for places in text.reading.windows()]

    def work(batch: list[tuple[Reading, Ints]]) -> list[NDArray[np.float64]]:
        inputs = model.tensors([reading.code[places] for reading, places in batch])
        with torch.inference_mode():
            layers = getattr(model.network(**inputs, output_attentions=True), "attentions", None)
        size = inputs["input_ids"].shape[-1]
        last = layers[-1] if layers else None
        if last is None or last.ndim != 4 or last.shape[-2:] != (size, size):
            message = f"{model.description} gives no attention weights of every place to every other"
            raise DataError(message, argument="method")
        rows = []
        for (reading, places), matrix in zip(batch, to_float64(last.mean(dim=1)).cpu().numpy(), strict=True):
            inside = model.inside(len(places), size)
            rows.append(model.select_attention(reading, places, matrix[inside, inside]))
        return rows

    before = model.network.config._attn_implementation
    model.network.set_attn_implementation("eager")  # the fused kernels do not give their weights
    try:
        rows = iter(model.map_batches(work, windows, [len(places) for _, places in windows], FULL_LENGTH_ROWS))
    finally:
        model.network.set_attn_implementation(before)
    scores = []
    for text in texts:
        sums, times = np.zeros((2, len(text.reading.code)))
        for places in text.reading.windows():
            sums[places] += next(rows)
            times[places] += 1
        by_token = np.bincount(text.reading.source, weights=sums / times, minlength=text.tokens + 1)
        scores.append(by_token[: text.tokens].astype(np.float64))
    return scores


def compute_masked(
    model: TransformerModel,
    reading: Reading,
    label: int,
    keep: NDArray[np.float64],
    draws: int,
    random: np.random.Generator,
) -> NDArray[np.float64]:
    """Return p of a label, (draws,), with numbers of sub-words' embeddings masked at random.

    Special tokens and the query stay whole; overlapping windows share a sub-word's mask, and p is the mean over
    windows.
    """
    embedding = model.network.get_input_embeddings()
    shape = len(reading.code), embedding.weight.shape[1]
    is_text, windows = reading.is_text, reading.windows()
    share = keep[reading.source[is_text]][:, None]
    p = np.zeros(draws)
    rows = max(1, min(MAX_MASKS // (shape[0] * shape[1]), model.rows_for(len(windows[0]), FULL_LENGTH_ROWS)))
    for start in range(0, draws, rows):
        drawn = slice(start, min(start + rows, draws))
        masks = np.ones((drawn.stop - start, *shape), dtype=bool)
        masks[:, is_text] = random.random((len(masks), len(share), shape[1])) < share
        for places in windows:
            inputs = model.tensors([reading.code[places]] * len(masks))
            with torch.inference_mode():
                vectors = embedding(inputs["input_ids"])
                out = run_embedded(model, vectors * torch.from_numpy(masks[:, places]).to(vectors), inputs)
                p[drawn] += to_float64(out.logits).softmax(dim=-1)[:, model.column(label)].cpu().numpy() / len(windows)
    return p
