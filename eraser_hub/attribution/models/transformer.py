"""Networks of ``transformers``: word tokens in, sub-words inside, probabilities out.

Each word is cut into sub-words once; erased inputs are cut from the sub-word arrays (:mod:`subwords`). A text longer
than the model's window goes in as overlapping windows whose probabilities are averaged; how many did is counted and
said. Scores of sub-words are summed to words: as a text's probability is the mean of its windows', the gradient with
respect to a sub-word is the sum over the windows that hold it, divided by the number of windows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from eraser_hub.attribution.instances import Instance
from eraser_hub.attribution.methods._captum import Embedded, GradientMethod
from eraser_hub.records.errors import DataError

from .devices import (
    describe_half,
    find_device,
    half_type,
    keep_heads_in_float32,
    move_network,
    to_float32,
    to_float64,
)
from .inputs import ModelInput
from .model import FULL_LENGTH_ROWS, Model
from .subwords import (
    Ints,
    Reading,
    SubwordTokenizer,
    decode_places,
    encode_places,
    find_longest_input,
    lay_out,
    make_key,
    pad_codes,
)

if TYPE_CHECKING:
    from eraser_hub.attribution.method import Scores
    from eraser_hub.attribution.text import Text


MAX_MASKS = 1 << 22  # numbers of embeddings that are masked together
PADDING_SEEN = 1e-4  # relative difference of logits; rounding makes a hundredth of it
UNKNOWN = "texts most of whose tokens the tokenizer does not know: is it the model's own?"
HEADS_CUT = "queries or first texts cut, as they and the text exceed the window"


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


class TransformerModel(Model):
    """A sequence classifier.

    With a query the input is the pair (query, documents); without one, two documents (premise and hypothesis, two
    sentences to compare) are the pair, and any other number is one text.

    On a GPU forward passes run in bfloat16 where it has it (autocast; the head behind the encoder, softmax, gradients
    and attention in float32 or better), and inputs go over from pinned memory; chosen by itself, and said.

    Args:
        network: the network, with a configuration of transformers.
        tokenizer: its tokenizer.
        uses_query: show the query to the model.
        query_last: the query comes behind the documents.
        window: the longest input in sub-words; None for the model's own limit.
        device: torch device; None to choose.
        precision: auto, float32, bfloat16 or float16 (autocast).
        description: for messages.
        dtype: type of the weights, which are float32 otherwise.

    Raises:
        DataError: a window that the model does not take; no such device; a network that does not fit into memory.
    """

    provides = frozenset({"probabilities", "gradients", "layers", "attention"})
    embeds = True
    cutter: ClassVar[type[SubwordTokenizer]] = SubwordTokenizer

    def __init__(
        self,
        network: Any,
        tokenizer: Any,
        *,
        uses_query: bool = False,
        query_last: bool = False,
        window: int | None = None,
        device: str | None = None,
        precision: str = "auto",
        description: str = "",
        dtype: str = "float32",
    ) -> None:
        super().__init__()
        self.description = description or type(network).__name__
        self.device = find_device(device, network)
        self.half = None if dtype != "float32" else half_type(precision, self.device)
        self.network = move_network(network, self.device, dtype != "float32")
        if self.half:
            keep_heads_in_float32(self.network, self.device.type)
            self.notes.say(describe_half(self.half, self.device))
        self.tokenizer, self.words = tokenizer, self.cutter(tokenizer)
        self.uses_query, self.query_last = uses_query, query_last
        names = getattr(network.config, "id2label", None) or {}
        self.label_names = tuple(str(names[number]) for number in sorted(names, key=int))
        longest = find_longest_input(network, tokenizer)
        if window is not None and not self.words.pair.size + 2 <= window <= longest:
            message = f"expected {self.words.pair.size + 2} to {longest} sub-words, found {window}"
            raise DataError(message, argument="window")
        self.window = window or longest
        if network.config.pad_token_id is None:
            network.config.pad_token_id = self.words.pad
        # XLNet and its like classify at the last place, whatever stands there
        self._pads_at_start = getattr(network.config, "summary_type", None) == "last"
        self.pads = not self.sees_padding()
        if not self.pads:
            self.notes.say(f"{self.description} sees its padding: only inputs of one length go together")

    # --- inputs --------------------------------------------------------------------------------------------------

    def read(self, instance: Instance) -> Any:
        """Cut the instance into the sub-words that the model reads."""
        ids, source = self.words.cut(instance.tokens)
        query = self.words.cut(instance.query)[0] if self.uses_query else source[:0]
        split = int(np.searchsorted(source, len(instance.documents[0]))) if len(instance.documents) == 2 else 0
        if len(query):
            texts = [(query, np.full(len(query), instance.bounds[-1])), (ids, source)]
        else:
            texts = [(ids[:split], source[:split]), (ids[split:], source[split:])]
        template, cut = self.words.pair, 1
        if len(texts[0][0]):
            # the query or first text keeps what the whole text leaves of the window, and at least half of it: erased
            # inputs are cut at the same place, as erasing tokens of the text must not show more of the first
            room = self.window - template.size
            room = max(1, room // 2, room - len(texts[1][0]))
            if len(texts[0][0]) > room:
                self.notes.count(HEADS_CUT)
            texts[0] = texts[0][0][:room], texts[0][1][:room]
            if len(query) and self.query_last:
                texts, cut = texts[::-1], 0
        else:
            template, texts, cut = self.words.single, texts[1:], 0
        reading = lay_out(instance, template, texts, cut, self.window, self.words.blank)
        self.count_limits(reading, ids, source)
        return reading

    def count_limits(self, reading: Reading, ids: Ints, source: Ints) -> None:
        """Count a text that is longer than the window, or whose tokens the tokenizer does not know."""
        tokens = reading.instance.bounds[-1]
        unknown = len(np.unique(source[ids == self.tokenizer.unk_token_id])) + tokens - len(np.unique(source))
        if 2 * unknown > tokens:
            self.notes.count(UNKNOWN)
        windows = len(reading.windows())
        if windows > 1:
            self.notes.count("texts longer than the window")
            self.notes.count("windows of those texts", windows)

    def find_substitute(self, erase: str) -> int | None:
        """Return the code, but for its token type, that replaces an erased token; None where it is removed.

        Raises:
            DataError: the tokenizer has no such token.
        """
        if erase == "remove":
            return None
        token = self.words.mask if erase == "mask" else self.words.pad
        if token is None or (erase == "pad" and not self.words.can_pad):
            message = f"`erase` {erase}: {self.description} has no {erase} token; use `erase` remove"
            raise DataError(message)
        return int(encode_places(token, 0, erase == "mask"))

    def cut(self, reading: Any, kept: NDArray[np.bool_], erase: str) -> Iterator[list[ModelInput]]:
        """Yield the windows of each erased variant."""
        for windows in reading.cut(kept, self.find_substitute(erase)):
            yield [ModelInput(make_key(codes), len(codes), codes) for codes in windows]

    def rows_for(self, size: int, batch_size: int) -> int:
        """Return the number of inputs in a batch."""
        # as many sub-words as batch_size inputs of full length (512, if that is less) have; on a processor an eighth
        # of that, since larger matrices leave its caches and go slower
        longest = min(self.window, 512 if self.device.type == "cuda" else 64)
        return max(1, min(batch_size * longest // max(size, 1), 32 * batch_size))

    def tensors(self, inputs: Sequence[Any]) -> dict[str, Any]:
        """Return padded inputs of the network on the device."""
        ids, types, visible = pad_codes(inputs, self.words.pad, self._pads_at_start)
        arrays = {"input_ids": ids, "attention_mask": visible}
        if "token_type_ids" in self.tokenizer.model_input_names:
            arrays["token_type_ids"] = types
        tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
        if self.device.type == "cuda":
            tensors = {name: tensor.pin_memory() for name, tensor in tensors.items()}
        return {name: tensor.to(self.device, non_blocking=True) for name, tensor in tensors.items()}

    def inside(self, size: int, places: int) -> slice:
        """Return the slice of an input of this size in a padded row of so many places."""
        return slice(places - size, places) if self._pads_at_start else slice(0, size)

    def sees_padding(self) -> bool:
        """Return True if a longer input beside it changes an input's states (convolutions, Fourier layers)."""
        texts = [Instance("", (), ("",), (("a",) * times,)) for times in (2, 12)]
        with self.uncounted():
            readings = [TransformerModel.read(self, text) for text in texts]
        codes = [reading.code[reading.windows()[0]] for reading in readings]
        encoder = getattr(self.network, "base_model", self.network)
        try:
            with torch.inference_mode():
                inputs = [TransformerModel.tensors(self, rows) for rows in (codes[:1], codes)]
                alone, beside = (encoder(**tensors)[0][0].float() for tensors in inputs)
        except Exception:  # the run itself reports what a network cannot take
            return False
        beside = beside[self.inside(len(alone), len(beside))]
        return bool((alone - beside).abs().max() > PADDING_SEEN * (1 + alone.abs().max()))

    # --- outputs -------------------------------------------------------------------------------------------------

    def forward(self, inputs: Sequence[Any]) -> Any:
        """Return the probabilities of a batch, a tensor on the device."""
        cast = torch.autocast(self.device.type, dtype=self.half) if self.half else nullcontext()
        with torch.inference_mode(), cast:
            logits = to_float32(self.network(**self.tensors(inputs)).logits)
        return to_float64(logits).softmax(dim=-1)

    # --- inside the network --------------------------------------------------------------------------------------

    def explained(self, text: Text) -> list[Explained]:
        """Return the inputs of a text, whose mean output is explained."""
        reading, column = text.reading, self.column(text.label)
        return [Explained(reading.code[places], [(reading, places)], (column,)) for places in reading.windows()]

    def explained_output(self, out: Any, places: Any, method: GradientMethod) -> Any:
        """Return the value that is differentiated, (inputs,), from the network's output and `Explained.output`."""
        logits = to_float32(out.logits)
        centred = logits - logits.mean(dim=-1, keepdim=True)
        return (centred if method.explains == "logit" else logits.softmax(dim=-1)).gather(1, places)[:, 0]

    def select_attention(self, reading: Reading, places: Ints, matrix: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the row of an attention matrix (places, places) that scores a window: CLS's, or the last token's."""
        first = int(decode_places(reading.code[places[:1]])[0][0])
        row: NDArray[np.float64] = matrix[0 if first == self.tokenizer.cls_token_id else len(places) - 1]
        return row

    def gradients(self, texts: Sequence[Text], method: GradientMethod) -> list[Scores]:
        """Return token scores by a gradient method, which gets the embedded windows of texts in batches."""
        items = [(number, item) for number, text in enumerate(texts) for item in self.explained(text)]
        parts = np.bincount([number for number, _ in items], minlength=len(texts))

        def work(batch: list[tuple[int, Explained]]) -> list[NDArray[np.float64]]:
            tensors = self.tensors([item.data for _, item in batch])
            with torch.no_grad():
                vectors = self.network.get_input_embeddings()(tensors["input_ids"])
            outputs = torch.tensor([item.output for _, item in batch], device=vectors.device)

            def output(points: Any, outputs: Any, *values: Any) -> Any:
                out = self.run_embedded(points, dict(zip(tensors, values, strict=True)))
                return self.explained_output(out, outputs, method)

            inputs = Embedded(
                output=output,
                vectors=vectors,
                more=(outputs, *tensors.values()),
                baseline=self._make_baseline(tensors["input_ids"]),
                network=self.network,
                rows=self.rows_for(vectors.shape[-2], FULL_LENGTH_ROWS),
                choices=self.choices,
                notes=self.notes,
                description=self.description,
            )
            values = to_float64(method.attribute(inputs).detach()).cpu().numpy()
            return list(values.reshape(len(batch), -1, values.shape[-1]))

        rows = self.map_inputs(method, work, items, [len(item.rows[0][1]) for _, item in items])
        scores = [np.zeros(text.tokens + 1) for text in texts]  # one more for what is no token
        for (number, item), values in zip(items, rows, strict=True):
            for (reading, places), row in zip(item.rows, values, strict=True):
                values_of_window = row[self.inside(len(places), len(row))] / parts[number]
                np.add.at(scores[number], reading.source[places], values_of_window)
        return [row[:-1] for row in scores]

    def run_embedded(self, vectors: Any, inputs: dict[str, Any]) -> Any:
        """Run the network with ``vectors`` instead of its input embeddings.

        The ids go in as well, since a network may look at more in them than their embeddings: one that classifies at
        the last token finds by them where padding begins.

        Raises:
            DataError: the network does not embed its input exactly once.
        """
        times = 0

        def instead(module: Any, ids: Any, embedded: Any) -> Any:
            nonlocal times
            times += 1
            if self.network.config.model_type == "xlnet":
                return vectors.transpose(0, 1)  # it puts places before inputs
            if embedded.numel() == vectors.numel():
                return vectors.reshape(embedded.shape)
            # a network that pads by itself (Longformer, to whole attention windows): its padding stays
            rows = vectors.reshape(-1, *vectors.shape[-2:])
            return torch.cat([rows, embedded[:, rows.shape[1] :]], dim=1)

        hook = self.network.get_input_embeddings().register_forward_hook(instead)
        try:
            out = self.network(**inputs)
        finally:
            hook.remove()
        if times != 1:
            message = f"{self.description}: gradients need a network that looks up its input embeddings once, found "
            raise DataError(f"{message}{times} times; use occlusion or lime")
        return out

    def _make_baseline(self, ids: Any) -> Any:
        """Return the embeddings from which integrated gradients start, by the paper's choice; None for zeros.

        ``pads``: padding between the first and the last token (Wang 2022's code), with the model's own ids in place of
        the authors' fixed ones, which are those of Chinese BERT alone.
        """
        if self.choices.baseline == "zero":
            return None
        pads = torch.full_like(ids, self.words.pad)
        pads[..., 0], pads[..., -1] = ids[..., 0], ids[..., -1]
        with torch.no_grad():
            return self.network.get_input_embeddings()(pads)

    def attention(self, texts: Sequence[Text]) -> list[Scores]:
        """Return the last layer's attention to each token; a sub-word in several windows takes their mean."""
        windows = [(text.reading, places) for text in texts for places in text.reading.windows()]

        def work(batch: list[tuple[Reading, Ints]]) -> list[NDArray[np.float64]]:
            inputs = self.tensors([reading.code[places] for reading, places in batch])
            with torch.inference_mode():
                layers = getattr(self.network(**inputs, output_attentions=True), "attentions", None)
            size = inputs["input_ids"].shape[-1]
            last = layers[-1] if layers else None
            if last is None or last.ndim != 4 or last.shape[-2:] != (size, size):
                message = f"{self.description} gives no attention weights of every place to every other"
                raise DataError(message, argument="method")
            rows = []
            for (reading, places), matrix in zip(batch, to_float64(last.mean(dim=1)).cpu().numpy(), strict=True):
                inside = self.inside(len(places), size)
                rows.append(self.select_attention(reading, places, matrix[inside, inside]))
            return rows

        before = self.network.config._attn_implementation
        self.network.set_attn_implementation("eager")  # the fused kernels do not give their weights
        try:
            rows = iter(self.map_batches(work, windows, [len(places) for _, places in windows]))
        finally:
            self.network.set_attn_implementation(before)
        scores = []
        for text in texts:
            sums, times = np.zeros((2, len(text.reading.code)))
            for places in text.reading.windows():
                sums[places] += next(rows)
                times[places] += 1
            by_token = np.bincount(text.reading.source, weights=sums / times, minlength=text.tokens + 1)
            scores.append(by_token[: text.tokens].astype(np.float64))
        return scores

    def mask_elements(
        self,
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
        embedding, column = self.network.get_input_embeddings(), self.column(label)
        shape = len(reading.code), embedding.weight.shape[1]
        is_text, windows = reading.is_text, reading.windows()
        share = keep[reading.source[is_text]][:, None]
        p = np.zeros(draws)
        rows = max(1, min(MAX_MASKS // (shape[0] * shape[1]), self.rows_for(len(windows[0]), FULL_LENGTH_ROWS)))
        for start in range(0, draws, rows):
            drawn = slice(start, min(start + rows, draws))
            masks = np.ones((drawn.stop - start, *shape), dtype=bool)
            masks[:, is_text] = random.random((len(masks), len(share), shape[1])) < share
            for places in windows:
                inputs = self.tensors([reading.code[places]] * len(masks))
                with torch.inference_mode():
                    vectors = embedding(inputs["input_ids"])
                    out = self.run_embedded(vectors * torch.from_numpy(masks[:, places]).to(vectors), inputs)
                    p[drawn] += to_float64(out.logits).softmax(dim=-1)[:, column].cpu().numpy() / len(windows)
        return p
