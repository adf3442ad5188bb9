"""Networks of ``transformers``: word tokens in, sub-words inside, probabilities out.

Each word is cut into sub-words once; erased inputs are cut from the sub-word arrays (:mod:`pieces`). A text longer than
the model's window goes in as overlapping windows whose probabilities are averaged; how many did is counted and said.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
import transformers
from numpy.typing import NDArray

from eraser_hub.attribution.instances import Instance
from eraser_hub.records.errors import DataError
from eraser_hub.records.extras import need

from .devices import (
    describe_half,
    find_device,
    half_type,
    keep_heads_in_float32,
    move_network,
    to_float32,
    to_float64,
)
from .embedding import Explained, compute_attention, compute_gradients, compute_masked
from .inputs import ModelInput
from .model import Model
from .pieces import Ints, Reading, decode_places, encode_places, lay_out, make_key, pad_codes
from .words import (
    CutWords,
    check_vocabulary,
    find_loading_options,
    find_longest_input,
    load_tokenizer,
    make_open_error,
    prepare_tokenizer,
    silence,
)

if TYPE_CHECKING:
    from eraser_hub.attribution.method import Scores
    from eraser_hub.attribution.methods._captum import GradientMethod
    from eraser_hub.attribution.text import Text

    from .opening import Opening

PADDING_SEEN = 1e-4  # relative difference of logits; rounding makes a hundredth of it
UNKNOWN = "texts most of whose tokens the tokenizer does not know: is it the model's own?"
HEADS_CUT = "queries or first texts cut, as they and the text exceed the window"
# task -> our module and class, and the ends of its architectures' names; the first is that of the class that opens it
KINDS = {
    "classification": ("transformer", "TransformerModel", "ForSequenceClassification"),
    "multiple-choice": ("multiple_choice", "ChoiceModel", "ForMultipleChoice"),
    "question-answering": ("question_answering", "AnswerModel", "ForQuestionAnswering"),
    "generation": ("prompted", "PromptedModel", "ForCausalLM", "LMHeadModel"),
}


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
    cutter: ClassVar[type[CutWords]] = CutWords

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
        ids, source = self.words.cut_flat(instance.tokens)
        query = self.words.cut_flat(instance.query)[0] if self.uses_query else source[:0]
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

    def gradients(self, texts: Sequence[Text], method: GradientMethod) -> list[Scores]:
        """Return token scores by a gradient method."""
        return compute_gradients(self, texts, method)

    def attention(self, texts: Sequence[Text]) -> list[Scores]:
        """Return the last layer's attention from the CLS token to each token, the mean over heads."""
        return compute_attention(self, texts)

    def mask_elements(
        self, reading: Any, label: int, keep: NDArray[np.float64], draws: int, random: np.random.Generator
    ) -> NDArray[np.float64]:
        """Return p of a label where each number of a sub-word's embedding stays with its token's probability."""
        return compute_masked(self, reading, label, keep, draws, random)

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


def find_task(architecture: str, task: str = "auto", name: str = "") -> str:
    """Return what a network computes, one of :data:`KINDS`.

    Args:
        architecture: the name of its class.
        task: what it is said to compute; auto: by its architecture.
        name: of the model, for the error.

    Raises:
        DataError: none of these, or another architecture that generates no text.
    """
    found = next((kind for kind, (_, _, *ends) in KINDS.items() if architecture.endswith(tuple(ends))), "")
    chosen = found if task in ("auto", found) else "" if task == "generation" else task
    if not chosen:
        message = "expected a model for sequence classification, multiple choice, question answering or generation, "
        message += f"found {architecture}; fine-tune it first (eraser-hub train --model {name})"
        raise DataError(message, argument="model")
    return chosen


def open_folder(place: str | Path, facts: Mapping[str, Any], settings: Opening) -> TransformerModel:
    """Open a network of transformers by its architecture.

    Args:
        place: folder or Hub id.
        facts: what ``train`` wrote beside it: a model reads as much at a time as it did in training.
        settings: of the model.

    Raises:
        DataError: it cannot be opened, or is no network for one of the tasks.
    """
    name = str(place)
    if settings.device_map and settings.device is not None:
        message = f"expected `device` or `device_map`, found both: {settings.device} and {settings.device_map}"
        raise DataError(message, argument="device_map")
    options = find_loading_options(name, settings.trust_remote_code)
    need(*(["accelerate"] if settings.device_map else []))

    silence()
    try:
        config = transformers.AutoConfig.from_pretrained(name, **options)
        architecture = (config.architectures or ["an encoder without a task"])[0]
        task = find_task(architecture, settings.task, name)
        weights = dict(options)
        if task == "generation":  # its tokenizer stays as it is: the prompt is one text
            tokenizer = transformers.AutoTokenizer.from_pretrained(name, **options)
            check_vocabulary(tokenizer, name)
            weights |= {"dtype": getattr(torch, settings.dtype)} if settings.dtype != "float32" else {}
            weights |= {"device_map": settings.device_map} if settings.device_map else {}
        else:
            tokenizer = load_tokenizer(name, options)
        kind = getattr(transformers, f"AutoModel{KINDS[task][2]}")
        network, loaded = kind.from_pretrained(name, output_loading_info=True, **weights)
        if missing := sorted(loaded["missing_keys"]):
            message = f"its files lack {len(missing)} of the weights of {type(network).__name__}, which transformers "
            message += f"would draw at random ({', '.join(missing[:3])}): fine-tune it first"
            raise DataError(f"{message} (eraser-hub train --model {name})", file=name)
        return _make_model(
            network,
            tokenizer,
            task,
            settings,
            query_last=bool(facts.get("query_last")),
            window=facts.get("window") if settings.window is None else settings.window,
            device=settings.device,
            description=f"{architecture} {Path(name).name}",
        )
    except DataError:
        raise
    except Exception as error:  # transformers and tokenizers raise many kinds; the first line names what is missing
        raise make_open_error(error, name) from error


def from_objects(network: Any, tokenizer: Any, settings: Opening) -> TransformerModel:
    """Return a loaded network and its tokenizer, of a pipeline or as they are, as a model; it stays where it is.

    Raises:
        DataError: a network of transformers for none of the tasks; a tokenizer that takes no words.
    """
    architecture, task = type(network).__name__, "classification"
    if settings.task != "auto" or type(network).__module__.startswith("transformers."):
        task = find_task(architecture, settings.task)  # else it is a class of one's own
    model = _make_model(
        network,
        tokenizer if task == "generation" else prepare_tokenizer(tokenizer),
        task,
        settings,
        window=settings.window,
        device=settings.device or str(next(network.parameters()).device),
        description=architecture,
    )
    # no record tells one network of a class from another but by these
    name = Path(getattr(network, "name_or_path", "")).name or architecture
    facts = f"network:{name},{sum(weights.numel() for weights in network.parameters())}"
    model.details = f"{model.details}|{facts}" if model.details else facts
    return model


def _make_model(network: Any, tokenizer: Any, task: str, settings: Opening, **options: Any) -> TransformerModel:
    module, name, *_ = KINDS[task]
    kind: type[TransformerModel] = getattr(importlib.import_module(f"{__package__}.{module}"), name)
    options |= {"uses_query": bool(settings.query), "precision": settings.precision}
    if task == "generation":
        names = ("prompt", "label_words", "label_score", "dtype", "config")
        options |= {name: getattr(settings, name) for name in names}
    if task == "classification":
        problem = getattr(network.config, "problem_type", None)
        if problem not in (None, "single_label_classification") or getattr(network.config, "num_labels", 2) == 1:
            message = f"expected a classifier with one label per text, found {problem or 'one output'}"
            raise DataError(f"{options['description']}: {message}")
    return kind(network, tokenizer, **options)
