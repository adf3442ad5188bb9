"""Gradients, integrated gradients and attention of a transformers model, over word tokens.

Scores of sub-words are summed to words. Where a text has several windows its probability is their mean, so the
gradient with respect to a sub-word is the sum over the windows that hold it, divided by the number of windows.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from eraser_hub.attribution.adapter import Notes, is_out_of_memory, run_in_halves
from eraser_hub.attribution.methods.integrated_gradients import make_path_points
from eraser_hub.papers.presets import Choices
from eraser_hub.records.errors import DataError

from .devices import to_float32, to_float64
from .pieces import Explained

if TYPE_CHECKING:
    from .pieces import Pieces, Window, WindowModel

# scores of the places of an input's windows, by its key and the explained column
Known: TypeAlias = dict[tuple[bytes, int], list[NDArray[np.float64]]]
PassScores: TypeAlias = tuple[list[NDArray[np.float64]], NDArray[np.float64], int]
PLAIN = ("gradient", "simple-gradient", "input-x-gradient")  # methods of one backward pass
FULL_LENGTH_ROWS = 16  # half as many as forward passes take: the backward pass keeps every layer's values


class Differentiable(Protocol):
    """A model as gradients need it: its network, notes, choices and description."""

    network: Any
    notes: Notes
    choices: Choices
    description: str


def list_windows(encoded: Sequence[Pieces]) -> tuple[list[Window], list[int]]:
    """Return every window of every text with nothing erased, and the number of the text that it belongs to."""
    pairs = [(window, number) for number, one in enumerate(encoded) for window in one.whole()]
    return [window for window, _ in pairs], [number for _, number in pairs]


def compute_embedding_scores(
    model: Differentiable,
    probability: Callable[..., Any],
    embedded: Any,
    method: str,
    steps: int,
    rows: int,
    more: tuple[Any, ...] = (),
    baseline: Any = None,
    ends: tuple[float, float] | None = None,
) -> NDArray[np.float64]:
    """Compute scores of every place of ``embedded`` (inputs, .., places, width), shape (inputs, .., places).

    The width is summed away. Each input's probability depends on its own embeddings alone, so one backward pass gives
    all gradients.

    Args:
        model: the model.
        probability: input embeddings (and ``more``) to the explained probability of each input, shape (inputs,).
        embedded: input embeddings, shape (inputs, .., places, width).
        method: name of the method.
        steps: integration steps.
        rows: integration points that go through the model together; halved when memory runs out.
        more: further arguments of ``probability``: tensors of shape (inputs, ..).
        baseline: embeddings from which integrated gradients start; None for zeros.
        ends: as of :func:`compute_integrated_gradients`.
    """
    embedded = embedded.detach().requires_grad_()
    if method == "integrated-gradients":
        # what is halved is the number of points in one batch
        scores = run_in_halves(
            lambda points: (
                [compute_integrated_gradients(model, probability, embedded, steps, len(points), more, baseline, ends)]
                * len(points)
            ),
            range(max(rows, 1)),
            model.notes,
            all_of=False,
        )[0]
    elif method == "deeplift":
        scores = compute_deeplift(model, probability, embedded, more)
    else:
        import torch

        (gradients,) = torch.autograd.grad(probability(embedded, *more).sum(), embedded)
        products = (gradients * embedded).sum(dim=-1)
        signed = products.abs() if method == "simple-gradient" else products
        scores = gradients.norm(dim=-1) if method == "gradient" else signed
    numbers: NDArray[np.float64] = to_float64(scores.detach()).cpu().numpy()
    return numbers


def compute_output(model: WindowModel, embedded: Any, inputs: dict[str, Any]) -> Any:
    """Run the network with ``embedded`` instead of its input embeddings.

    The ids go in as well, since a network may look at more in them than their embeddings: one that classifies at the
    last token finds by them where padding begins.

    Raises:
        DataError: the network does not embed its input exactly once.
    """
    import torch

    times = 0

    def instead(module: Any, ids: Any, vectors: Any) -> Any:
        nonlocal times
        times += 1
        if model.network.config.model_type == "xlnet":
            return embedded.transpose(0, 1)  # it puts places before inputs
        if vectors.numel() == embedded.numel():
            return embedded.reshape(vectors.shape)
        # a network that pads by itself (Longformer, to whole attention windows): its padding stays
        rows = embedded.reshape(-1, *embedded.shape[-2:])
        return torch.cat([rows, vectors[:, rows.shape[1] :]], dim=1)

    hook = model.network.get_input_embeddings().register_forward_hook(instead)
    try:
        out = model.network(**inputs)
    finally:
        hook.remove()
    if times != 1:
        raise DataError(
            f"{model.description}: gradients need a network that looks up its input embeddings once, found {times} "
            "times; use occlusion or lime",
        )
    return out


def compute_integrated_gradients(
    model: Differentiable,
    probability: Callable[..., Any],
    embedded: Any,
    steps: int,
    rows: int,
    more: tuple[Any, ...] = (),
    baseline: Any = None,
    ends: tuple[float, float] | None = None,
) -> Any:
    """Compute integrated gradients (Sundararajan et al., 2017, equation 1) of one input.

    Our own and not captum's, which computes the integration points anew for every input; its values are the same.

    Args:
        model: the model.
        probability: function of embeddings and ``more`` to the explained probability.
        embedded: shape (1, .., places, width).
        steps: integration steps.
        rows: points in one batch.
        more: further arguments of ``probability``: tensors of shape (1, ..).
        baseline: embeddings of the same shape; None for zeros.
        ends: probabilities of the input and of the baseline where they are known; None: a pass for each finds them out.

    Returns:
        A tensor of shape (1, .., places).
    """
    import torch

    def values(points: Any) -> Any:
        return probability(points, *(one.expand(len(points), *one.shape[1:]) for one in more))

    start_at = torch.zeros_like(embedded) if baseline is None else baseline.detach().to(embedded)
    difference = embedded.detach() - start_at
    alphas, weights = (torch.from_numpy(one).to(embedded) for one in make_path_points(steps, model.choices.integral))
    shape = (-1, *(1 for _ in embedded.shape[1:]))
    sums = torch.zeros_like(embedded)
    for start in range(0, steps, rows):
        alpha, weight = alphas[start : start + rows].view(shape), weights[start : start + rows].view(shape)
        points = (start_at + difference * alpha).requires_grad_()
        (gradients,) = torch.autograd.grad(values(points).sum(), points)
        sums += (gradients * weight).sum(dim=0, keepdim=True)
    with torch.no_grad():
        scores = (sums * difference).sum(dim=-1)
        input_probability, baseline_probability = (
            values(torch.cat([embedded, start_at])).tolist() if ends is None else ends
        )
    model.notes.largest(
        "largest convergence delta", abs(float(scores.sum()) - (input_probability - baseline_probability))
    )
    return scores


def compute_deeplift(
    model: Differentiable, logit: Callable[..., Any], embedded: Any, more: tuple[Any, ...] = ()
) -> Any:
    """Compute DeepLIFT (Shrikumar et al., 2017, the rescale rule) by captum, from the all-zero embeddings.

    What is explained is the label's logit minus the mean of all labels' (their section 3.6), and not the probability:
    captum's rule for a softmax mixes the inputs of a batch. Captum has the rule for ReLU, ELU, sigmoid, tanh and
    softplus modules; whatever else bends (GELU, attention, layer normalisation) passes plain gradients on, and the
    scores then miss the difference by the convergence delta, which is kept in the model's notes.

    Returns:
        A tensor of shape (inputs, .., places).

    Raises:
        DataError: the network uses one module twice, which captum cannot follow.
    """
    import captum.attr
    import torch

    class Whole(torch.nn.Module):
        """The network, whose modules captum finds."""

        def __init__(self) -> None:
            super().__init__()
            self.network = model.network

        def forward(self, vectors: Any, *values: Any) -> Any:
            """Return the explained logits."""
            return logit(vectors, *values)

    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Setting forward, backward hooks")
            products, deltas = captum.attr.DeepLift(Whole()).attribute(
                embedded, torch.zeros_like(embedded), additional_forward_args=more, return_convergence_delta=True
            )
    except (AssertionError, RuntimeError) as error:
        if is_out_of_memory(error):
            raise
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        message = f"`method` deeplift: {model.description} does not allow it: {reason}"
        raise DataError(message) from error
    model.notes.largest("largest convergence delta", float(deltas.abs().max()))
    return products.sum(dim=-1)


def make_baseline(model: WindowModel, ids: Any) -> Any:
    """Return the embeddings from which integrated gradients start, by the paper's choice; None for zeros.

    ``pads``: padding between the first and the last token (Wang 2022's code), with the model's own ids in place of the
    authors' fixed ones, which are those of Chinese BERT alone.
    """
    import torch

    if model.choices.baseline == "zero":
        return None
    pads = torch.full_like(ids, model.words.pad)
    pads[..., 0], pads[..., -1] = ids[..., 0], ids[..., -1]
    with torch.no_grad():
        return model.network.get_input_embeddings()(pads)


def compute_gradients_ahead(
    model: WindowModel, encoded: Sequence[Pieces], columns: Sequence[int | None], method: str
) -> tuple[dict[bytes, NDArray[np.float64]], Known]:
    """Compute probabilities of whole windows together with the scores of their gradients.

    Args:
        model: the model.
        encoded: the instances as the model sees them.
        columns: the output to explain of each instance; None for the one that each window has most of.
        method: one of `PLAIN`.

    Returns:
        the output of each window by its key; the scores of its places by key and explained column.
    """
    windows, owner = list_windows(encoded)
    wanted = [columns[number] for number in owner]
    inputs = [Explained(one, (-1 if at is None else at,)) for one, at in zip(windows, wanted, strict=True)]
    outputs, known = dict[bytes, NDArray[np.float64]](), Known()
    for number, (values, p, column) in compute_place_scores(model, inputs, method, 0, ahead=True):
        outputs[windows[number].key], known[windows[number].key, column] = p, values
    return outputs, known


def compute_place_scores(
    model: WindowModel, inputs: Sequence[Explained], method: str, steps: int, ahead: bool = False
) -> Iterator[tuple[int, PassScores]]:
    """Yield each input's number, the scores of each of its windows' places, its probabilities and the explained column.

    Args:
        model: the model.
        inputs: the model inputs to explain.
        method: name of the method.
        steps: integration steps.
        ahead: whether the last two are wanted, which the same passes give.
    """
    import torch

    baseline_probabilities: dict[tuple[bytes, int], float] = {}
    # the points of one integral fill a batch by themselves
    single = method == "integrated-gradients" or model.explains_singly
    embedding, none = model.network.get_input_embeddings(), np.zeros(0)

    def score_batch(batch: list[int]) -> list[PassScores]:
        tensors = model.tensors([inputs[number].unit for number in batch])
        seen: list[tuple[NDArray[np.float64], int]] = []

        def output(embedded: Any, places: Any, *values: Any) -> Any:
            # what is expanded shares its memory, which a network that flattens its input cannot
            more = {name: value.contiguous() for name, value in zip(tensors, values, strict=True)}
            out = compute_output(model, embedded, more)
            if ahead:
                logits = to_float32(out.logits)
                places = torch.where(places < 0, logits.argmax(dim=-1, keepdim=True), places)
                p = model.to_outputs(to_float64(logits.detach()))
                seen.extend(zip(p.cpu().numpy(), places[:, 0].tolist(), strict=True))
            return model.explained_output(out, places, method)

        with torch.no_grad():
            embedded = embedding(tensors["input_ids"])
        places = torch.tensor([inputs[number].places for number in batch], device=embedded.device)
        more = (places, *tensors.values())
        rows = model.rows_for(embedded.shape[-2], FULL_LENGTH_ROWS)
        start_at = ends = None
        if method == "integrated-gradients":
            start_at = make_baseline(model, tensors["input_ids"])
            p = partial(output, torch.zeros_like(embedded) if start_at is None else start_at, *more)
            ends = compute_ends(model, inputs[batch[0]], p, baseline_probabilities)
        scores = compute_embedding_scores(model, output, embedded, method, steps, rows, more, start_at, ends)
        window_rows = list[list[NDArray[np.float64]]]()
        for number, own in zip(batch, scores.reshape(len(batch), -1, scores.shape[-1]), strict=True):
            pairs = zip(inputs[number].windows, own, strict=True)
            window_rows.append([row[model.inside(window, len(row))] for window, row in pairs])
        return [(own, *pair) for own, pair in zip(window_rows, seen or [(none, 0)] * len(batch), strict=True)]

    sizes = [len(one.windows[0].code) for one in inputs]
    for batch in [[number] for number in range(len(inputs))] if single else model.batches(sizes, FULL_LENGTH_ROWS):
        rows = score_batch(batch) if single else run_in_halves(score_batch, batch, model.notes)
        yield from zip(batch, rows, strict=True)


def compute_gradient_scores(
    model: WindowModel, encoded: Sequence[Any], targets: Sequence[int], method: str, steps: int, known: Known
) -> list[NDArray[np.float64]]:
    """Compute scores for the probability of each instance's explained class.

    ``known`` has what `compute_gradients_ahead` found out; the rest is computed.

    ``gradient`` is the Euclidean norm of the gradient with respect to a sub-word's input embedding;
    ``input-x-gradient`` the inner product of both; ``simple-gradient`` its absolute value (ERASER's);
    ``integrated-gradients`` the inner product of embedding and mean gradient along the line from the baseline (by
    default all-zero embeddings, ``steps`` Gauss-Legendre points). The convergence delta, the difference between the sum
    of integrated gradients and p(x) - p(baseline), is kept in the model's notes.
    """
    pairs = enumerate(zip(encoded, targets, strict=True))
    inputs = [
        one._replace(owner=number, target=target)
        for number, (own, target) in pairs
        for one in model.explained(own, target)
    ]
    parts = np.bincount([one.owner for one in inputs], minlength=len(encoded))
    rows = [known.get((one.windows[0].key, one.places[0])) if known else None for one in inputs]
    missing = [number for number, row in enumerate(rows) if row is None]
    for at, (row, _, _) in compute_place_scores(model, [inputs[number] for number in missing], method, steps):
        rows[missing[at]] = row
    scores = [np.zeros(len(one.instance.tokens)) for one in encoded]
    for one, window_scores in zip(inputs, rows, strict=True):
        for window, values in zip(one.windows, window_scores or (), strict=True):
            add_to_words(scores[one.owner], encoded[one.owner], window, values / parts[one.owner])
    return scores


def compute_ends(
    model: WindowModel,
    one: Explained,
    p_of_baseline: Callable[[], Any],
    baseline_probabilities: dict[tuple[bytes, int], float],
) -> tuple[float, float] | None:
    """Return the probabilities of a window and of its baseline from passes that were made already.

    The window's is its prediction's. The baseline has none of its words, so one pass serves all windows of its length,
    special tokens and query: ``baseline_probabilities`` keeps them. None where predictions were made otherwise than
    gradients (in half precision, of several windows together, or not yet).
    """
    import torch

    window = one.windows[0]
    if model.half or model.explains_singly or window.key not in model.outputs:
        return None
    key = np.where(window.piece < 0, window.code, -1).tobytes(), one.target
    if key not in baseline_probabilities:
        with torch.no_grad():
            baseline_probabilities[key] = float(p_of_baseline())
    return float(model.outputs[window.key][one.target]), baseline_probabilities[key]


def compute_masked_probabilities(
    model: WindowModel,
    one: Pieces,
    column: int,
    keep: NDArray[np.float64],
    draws: int,
    random: np.random.Generator,
) -> NDArray[np.float64]:
    """Compute p of an output column, (draws,), with elements of sub-words' embeddings masked at random.

    Special tokens and the query stay whole; overlapping windows share a sub-word's mask, and p is the mean over
    windows.
    """
    import torch

    windows, embedding = one.whole(), model.network.get_input_embeddings()
    p = np.zeros((len(windows), draws))
    piece_keep = keep[one.owner][:, None]
    for draw in range(draws):
        stays = random.random((len(one.ids), embedding.weight.shape[1])) < piece_keep
        for number, window in enumerate(windows):
            inputs = model.tensors([window])
            with torch.inference_mode():
                embedded = embedding(inputs["input_ids"]).clone()
                mask = np.ones(embedded.shape[1:], dtype=bool)
                erasable = window.piece >= 0
                mask[model.inside(window, len(mask))][erasable] = stays[window.piece[erasable]]
                logits = compute_output(model, embedded * torch.from_numpy(mask).to(embedded), inputs).logits
                p[number, draw] = float(model.to_outputs(to_float64(logits))[0, column])
    return np.asarray(p.mean(axis=0))


def compute_attention_scores(model: WindowModel, encoded: Sequence[Pieces]) -> list[NDArray[np.float64]]:
    """Compute attention of the last layer from the CLS token to each word.

    A model without CLS token (one that classifies at the last token) gives the last token's attention. A sub-word in
    several windows takes the mean of its windows.
    """
    import torch

    windows, owner = list_windows(encoded)
    sums = [np.zeros(len(one.ids)) for one in encoded]  # of each sub-word over the windows that hold it
    times = [np.zeros(len(one.ids)) for one in encoded]

    def get_weights(batch: list[int]) -> list[NDArray[np.float64]]:
        inputs = model.tensors([windows[number] for number in batch])
        with torch.inference_mode():
            layers = getattr(model.network(**inputs, output_attentions=True), "attentions", None)
        places = inputs["input_ids"].shape[-1]
        last = layers[-1] if layers else None
        if last is None or last.ndim != 4 or last.shape[-2:] != (places, places):
            message = f"{model.description} gives no attention weights of every place to every other"
            raise DataError(f"`method` attention: {message}")
        weights = to_float64(last.mean(dim=1)).cpu().numpy()
        return [
            _select_attention(model, windows[number], matrix) for number, matrix in zip(batch, weights, strict=True)
        ]

    before = model.network.config._attn_implementation
    model.network.set_attn_implementation("eager")  # the fused kernels do not give their weights
    try:
        sizes = [len(window.code) for window in windows]
        rows = model.map_batches(get_weights, range(len(windows)), sizes, FULL_LENGTH_ROWS)
    finally:
        model.network.set_attn_implementation(before)
    for window, number, row in zip(windows, owner, rows, strict=True):
        erasable = window.piece >= 0
        sums[number][window.piece[erasable]] += row[erasable]
        times[number][window.piece[erasable]] += 1
    return [
        np.bincount(one.owner, weights=total / np.maximum(count, 1), minlength=len(one.instance.tokens)).astype(float)
        for one, total, count in zip(encoded, sums, times, strict=True)
    ]


def _select_attention(model: WindowModel, window: Window, matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the row of the CLS token, or of the last one, in a window's attention matrix (places, places).

    By Wang 2022's choice in reading comprehension: the mean of the question's rows, as shares of the passage's columns.
    """
    inside = model.inside(window, len(matrix))
    if model.gives_answers and model.choices.question_to_passage:
        passage, template = window.piece >= 0, model.words.pair
        question = slice(len(template.before), int(passage.argmax()) - len(template.between))
        return compute_question_attention(matrix[inside, inside], question, passage)
    asking = 0 if window.ids[0] == model.tokenizer.cls_token_id else len(window.code) - 1
    row: NDArray[np.float64] = matrix[inside, inside][asking]
    return row


def compute_question_attention(
    matrix: NDArray[np.float64], question: slice, passage: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Compute attention from the question to each place, the passage's divided by their sum."""
    row = matrix[question].mean(axis=0) if question.stop > question.start else matrix[0]
    return np.asarray(row / row[passage].sum())


def add_to_words(scores: NDArray[np.float64], one: Any, window: Window, values: NDArray[np.float64]) -> None:
    """Sum a window's values, one for each of its places, into its words' scores."""
    erasable = window.piece >= 0
    np.add.at(scores, one.owner[window.piece[erasable]], values[erasable])
