"""Answers of a causal language model in this process, several at a time, in the form that is asked for.

An answer is an object of JSON. Its keys are given; the model chooses what stands between them: the label among the
labels, each string up to its closing mark, and whether a list goes on. So any model answers, however small. Where no
form is wanted (``structured`` none, or spans of numbers), it writes freely.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import math
import time
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eraser_hub.attribution.run import compute_model_digest
from eraser_hub.attribution.transformers.devices import find_network_device, move_network
from eraser_hub.attribution.transformers.words import make_loading, open_network
from eraser_hub.records.errors import DataError, get_first_line

from .answers import BROKEN, QUOTED, Answer, make_schema
from .cache import Cache
from .client import TOP_LOGPROBS, AnswerClient, Message
from .settings import AskSettings

MOST_ITEMS = 8  # strings of a list
MOST_STRING = 64  # sub-words of a string
CLOSED = f"strings or lists closed by force, after {MOST_STRING} sub-words, {MOST_ITEMS} items or the most tokens"


@dataclass
class Choice:
    """Sub-words that a model may write next: some, or any.

    Attributes:
        allowed: the sub-words; None for all but the forbidden ones.
        forced: whether there is nothing to choose.
    """

    allowed: Sequence[int] | NDArray[np.int64] | None = None
    forced: bool = False


# the choices of sub-words, against the sub-word that was and the log-probabilities of all
Program = Generator[Choice, tuple[int, Any], Any]


@dataclass
class Writing:
    """One answer while it is written.

    Attributes:
        ids: sub-words of the prompt.
        request: as of `AnswerClient`.
        chosen: its sub-words.
        steps: log-probabilities at the label, as a server gives them.
        closed: whether a string or list was closed by force.
        words: the answer's text.
    """

    ids: list[int]
    request: dict[str, Any]
    chosen: list[int] = field(default_factory=list)
    steps: list[dict[str, Any]] = field(default_factory=list)
    closed: bool = False
    words: str = ""
    finish: str = "stop"


class Output(NamedTuple):
    """Text that a model writes behind a prompt.

    Attributes:
        ids: Its sub-words.
        counted: The places of those that are scored, ascending.
    """

    ids: list[int]
    counted: list[int]


class LocalModel:
    """A causal language model that writes answers.

    Args:
        name: A folder of transformers, or a GGUF file.
        device: Torch device; None: cuda if there is one.
        threads: Processor threads; 0 leaves it to torch.
        dtype: Type of the weights.
        device_map: Where its layers go, as transformers' from_pretrained takes it; "" for the device.

    Raises:
        DataError: it cannot be opened, or is no causal model.
    """

    def __init__(
        self, name: str, device: str | None = None, threads: int = 0, dtype: str = "float32", device_map: str = ""
    ) -> None:
        import torch

        if threads:
            torch.set_num_threads(threads)
        self.torch = torch
        network, self.tokenizer, self.description = open_network(
            name, False, lambda _: "AutoModelForCausalLM", make_loading(dtype, device_map, device)
        )
        if getattr(network.config, "is_encoder_decoder", False):
            raise DataError("expected a causal language model, found an encoder and decoder", rule="model", file=name)
        self.device = find_network_device(device, network)
        self.network = move_network(network, self.device, dtype != "float32")
        names = inspect.signature(self.network.forward).parameters
        self._cache_name = "cache" if "cache" in names else "past_key_values"
        self._keep_name = "logits_to_keep" if "logits_to_keep" in names else ""
        self.window = int(getattr(network.config, "max_position_embeddings", 0) or 1 << 30)

    @cached_property
    def vocabulary(self) -> list[str]:
        """The text of each sub-word."""
        size = self.network.get_output_embeddings().weight.shape[0]
        return list(self.tokenizer.batch_decode([[one] for one in range(min(size, len(self.tokenizer)))]))

    @cached_property
    def all_ids(self) -> NDArray[np.int64]:
        """All sub-words."""
        return np.arange(len(self.vocabulary))

    @cached_property
    def ends(self) -> frozenset[int]:
        """The sub-words that end an answer: the tokenizer's, and those of the network's settings."""
        own = getattr(getattr(self.network, "generation_config", None), "eos_token_id", None)
        listed = [*(own if isinstance(own, list) else [own]), self.tokenizer.eos_token_id]
        return frozenset(one for one in listed if one is not None)

    @cached_property
    def quoting(self) -> frozenset[int]:
        """The sub-words that end a string: with one quotation mark, and at most a comma or the list's end behind it."""
        marked = ((at, text.partition('"')) for at, text in enumerate(self.vocabulary) if '"' in text)
        return frozenset(at for at, (before, _, behind) in marked if behind.strip() in ("", ",", "]"))

    @cached_property
    def forbidden(self) -> NDArray[np.int64]:
        """The sub-words that no string holds: with a backslash, a control character or other marks; special ones."""
        special = set(self.tokenizer.all_special_ids)
        odd = (
            at in special
            or not text
            or "\\" in text
            or any(ord(letter) < 32 for letter in text)
            or ('"' in text and at not in self.quoting)
            for at, text in enumerate(self.vocabulary)
        )
        return np.flatnonzero(np.fromiter(odd, dtype=bool))

    def cut(self, text: str) -> list[int]:
        """Return the sub-words of a piece of an answer."""
        ids: list[int] = self.tokenizer(text, add_special_tokens=False)["input_ids"]
        return ids

    def lay_out(self, messages: Sequence[Message]) -> list[int]:
        """Return the sub-words of a prompt: by the chat template; a system message that it has no place for goes first.

        Raises:
            DataError: the chat template fails.
        """
        if not getattr(self.tokenizer, "chat_template", None):
            return list(self.tokenizer("\n\n".join(one["content"] for one in messages) + "\n\n")["input_ids"])
        joined, (first, *others) = [*messages], messages
        if first["role"] == "system" and others:
            joined = [{**others[0], "content": f"{first['content']}\n\n{others[0]['content']}"}, *others[1:]]
        failures: list[str] = []
        for attempt in (messages, joined):
            try:
                text = self.tokenizer.apply_chat_template([*attempt], tokenize=False, add_generation_prompt=True)
            except Exception as error:  # templates raise what they like
                failures.append(get_first_line(error))
                continue
            return self.cut(text)
        message = f"{self.description}: its chat template cannot be applied: {failures[-1]}"
        raise DataError(message, rule="model")

    def write(self, requests: Sequence[tuple[dict[str, Any], list[int]]]) -> list[Writing]:
        """Write answers to requests, given the sub-words of their prompts."""
        torch = self.torch
        writings = [Writing(ids, request) for request, ids in requests]
        programs = [self._program(writing) for writing in writings]
        waiting: list[Choice | None] = [next(program) for program in programs]
        ids, mask = self._pad([writing.ids for writing in writings])
        past = None
        generators = [np.random.default_rng(writing.request["seed"]) for writing in writings]
        with torch.inference_mode():
            while any(choice is not None for choice in waiting):
                out = self._run(ids, mask, 1, use_cache=True, **{self._cache_name: past})
                past = out.past_key_values
                logits = out.logits[:, -1].float().log_softmax(-1).cpu().numpy()
                tokens = []
                for row, choice in enumerate(waiting):
                    if choice is None:
                        tokens.append(0)
                        continue
                    token = self._pick(choice, logits[row], writings[row], generators[row])
                    tokens.append(token)
                    writings[row].chosen.append(token)
                    try:
                        waiting[row] = programs[row].send((token, logits[row]))
                    except StopIteration:
                        waiting[row] = None
                ids = torch.tensor(tokens, device=self.device)[:, None]
                mask = torch.cat([mask, torch.ones_like(ids)], dim=1)
        return writings

    def score(self, prompts: Sequence[list[int]], output: Output, batch_size: int) -> NDArray[np.float64]:
        """Compute the log-odds of an output's counted sub-words behind each prompt, shape (prompts, counted).

        Log-odds are ln p - ln(1 - p), where p is the probability among all sub-words, given those before.
        """
        torch, size = self.torch, len(output.ids)
        values = np.empty((len(prompts), len(output.counted)))
        places = torch.tensor(output.counted, device=self.device)
        own = torch.tensor(output.ids, device=self.device)[places][:, None]
        order = sorted(range(len(prompts)), key=lambda at: len(prompts[at]))
        with torch.inference_mode():
            for start in range(0, len(order), batch_size):
                rows = order[start : start + batch_size]
                ids, mask = self._pad([prompts[row] + output.ids for row in rows])
                logits = self._run(ids, mask, size + 1).logits[:, -size - 1 : -1]
                for row, one in zip(rows, logits, strict=True):  # in float64 those of one prompt at a time
                    scores = one[places].double()
                    others = scores.scatter(-1, own, -math.inf).logsumexp(-1)
                    values[row] = (scores.gather(-1, own)[:, 0] - others).cpu().numpy()
        return values

    def make_output(self, field: str, texts: Sequence[str]) -> Output:
        """Return the beginning of an answer up to one field; the texts in it are counted.

        Args:
            field: label, of one text, or steps.
            texts: The label, or the steps.
        """
        ids, counted = self.cut(f'{{"{field}": ' + ('"' if field == "label" else '["')), list[int]()
        for number, text in enumerate(texts):
            ids += self.cut('", "') if number else []
            own = self.cut(text)
            counted += range(len(ids), len(ids) + len(own))
            ids += own
        return Output(ids, counted)

    def _pad(self, rows: Sequence[list[int]]) -> tuple[Any, Any]:
        """Return sub-words, padded at their beginning, and which of them are visible."""
        longest = max(map(len, rows))
        ids = self.torch.full((len(rows), longest), self.tokenizer.pad_token_id or 0)
        mask = self.torch.zeros_like(ids)
        for at, row in enumerate(rows):
            ids[at, longest - len(row) :] = self.torch.tensor(row)
            mask[at, longest - len(row) :] = 1
        return ids.to(self.device), mask.to(self.device)

    def _run(self, ids: Any, mask: Any, kept: int, **more: Any) -> Any:
        """Run the network; of networks that choose, only logits of the last ``kept`` places are computed."""
        places = (mask.cumsum(-1) - 1).clamp(min=0)[:, -ids.shape[1] :]
        keep = {self._keep_name: kept} if self._keep_name else {}
        return self.network(input_ids=ids, attention_mask=mask, position_ids=places, **keep, **more)

    def _pick(
        self, choice: Choice, logprobs: NDArray[np.float32], writing: Writing, random: np.random.Generator
    ) -> int:
        if choice.forced and choice.allowed is not None:
            return int(choice.allowed[0])
        scores = logprobs[: len(self.vocabulary)].astype(np.float64)
        if choice.allowed is None:
            scores[self.forbidden] = -math.inf
            allowed = self.all_ids
        else:
            allowed = np.asarray(choice.allowed)
            scores = scores[allowed]
        temperature = writing.request["temperature"]
        if temperature:
            p = np.exp((scores - scores.max()) / temperature)
            return int(random.choice(allowed, p=p / p.sum()))
        return int(allowed[scores.argmax()])

    def _program(self, writing: Writing) -> Program:
        """Yield what may be written next, and take what was; see `Choice`."""
        request = writing.request
        schema = make_schema(request["labels"], request.get("answer", QUOTED), "steps" in request)
        lists = [one for one in schema["properties"].values() if one["type"] == "array"]
        if request["structured"] == "none" or any(one["items"]["type"] != "string" for one in lists):
            return self._write_freely(writing)
        return self._fill(writing, schema["properties"])

    def _write_freely(self, writing: Writing) -> Program:
        everything, ids = Choice(self.all_ids), writing.chosen
        while True:
            token, _ = yield everything
            if token in self.ends:
                ids = ids[:-1]
                break
            if len(ids) >= writing.request["max_tokens"]:
                writing.finish = "length"
                break
        writing.words = self.tokenizer.decode(ids, skip_special_tokens=True)

    def _fill(self, writing: Writing, properties: dict[str, dict[str, Any]]) -> Program:
        values, labels, most = dict[str, Any](), writing.request["labels"], writing.request["max_tokens"]
        openings = {
            name: ("{" if at == 0 else ", ") + f'"{name}": ' + ('"' if kind["type"] == "string" else "[")
            for at, (name, kind) in enumerate(properties.items())
        }
        label, end = max((len(self.cut(f'{one}"')) for one in labels), default=0), len(self.cut("]"))
        sizes = {name: label if kind["type"] == "string" else end for name, kind in properties.items()}
        closing = sum(len(self.cut(openings[name])) + size for name, size in sizes.items())
        if closing > most:
            message = f"expected at least {closing}, the sub-words of an answer without texts, found {most}"
            raise DataError(message, rule="option-value", argument="max_tokens")
        for name, kind in properties.items():
            yield from self._force(openings[name])
            closing -= len(self.cut(openings[name]))
            if kind["type"] == "string":
                values[name] = yield from self._choose_label(writing, labels)
            else:
                values[name] = yield from self._fill_list(writing, most - closing)
            closing -= sizes[name]
        writing.words = json.dumps(values, ensure_ascii=False)

    def _force(self, text: str) -> Program:
        for token in self.cut(text):
            yield Choice([token], forced=True)

    def _choose_label(self, writing: Writing, labels: Sequence[str]) -> Program:
        """Let the model choose a label, sub-word by sub-word; its log-probabilities are kept."""
        spellings = {label: self.cut(f'{label}"') for label in labels}
        writing.steps.append({"token": '{"label": "', "logprob": 0.0, "top_logprobs": []})
        at = 0
        while True:
            allowed = [*dict.fromkeys(spelling[at] for spelling in spellings.values() if len(spelling) > at)]
            token, logprobs = yield Choice(allowed, forced=len(allowed) == 1)
            top = sorted(allowed, key=lambda one: -logprobs[one])[:TOP_LOGPROBS]
            entries = [{"token": self.vocabulary[one], "logprob": min(float(logprobs[one]), 0.0)} for one in top]
            own = {"token": self.vocabulary[token], "logprob": min(float(logprobs[token]), 0.0)}
            writing.steps.append({**own, "top_logprobs": entries})
            at += 1
            spellings = {
                label: spelling
                for label, spelling in spellings.items()
                if len(spelling) >= at and spelling[at - 1] == token
            }
            if all(len(spelling) == at for spelling in spellings.values()):
                return next(iter(spellings))

    def _fill_list(self, writing: Writing, most: int) -> Program:
        """Let the model write strings until it closes the list, or ``most`` sub-words are chosen without its end."""
        items: list[str] = []
        (mark, *marks), (end, *_), (comma, *_) = self.cut('"'), self.cut("]"), self.cut(",")
        shortest = 2 + len(marks)  # a string of one sub-word and its closing mark
        if len(writing.chosen) + 1 + shortest > most:
            _, logprobs = yield Choice([end], forced=True)
            writing.closed |= bool(logprobs[mark] > logprobs[end])
            return items
        token, _ = yield Choice([mark, end])
        while token != end:
            left = most - len(writing.chosen) - 1 - len(marks)
            text, behind = yield from self._fill_string(writing, min(left, MOST_STRING))
            items.append(text)
            further = len(writing.chosen) + 1 + len(self.cut(' "')) + shortest
            is_last = len(items) == MOST_ITEMS or further > most
            if behind:
                token = comma if behind == "," else end
            elif is_last:
                token, logprobs = yield Choice([end], forced=True)
                writing.closed |= bool(logprobs[comma] > logprobs[end])
            else:
                token, _ = yield Choice([comma, end])
            if token != end and is_last:
                writing.closed = True
                yield from self._force("]")
                break
            if token != end:
                yield from self._force(' "')
        return items

    def _fill_string(self, writing: Writing, most: int) -> Program:
        """Let the model write a string up to its closing mark; return it, and what the mark's sub-word has behind."""
        ids: list[int] = []
        while len(ids) < most:
            token, _ = yield Choice()
            if token in self.quoting:
                before, _, behind = self.vocabulary[token].partition('"')
                return self.tokenizer.decode(ids) + before, behind.strip()
            ids.append(token)
        writing.closed = True
        yield from self._force('"')
        return self.tokenizer.decode(ids), ""


class LocalClient(AnswerClient):
    """A client of a model in this process; requests that wait together are answered together.

    Args:
        model: The model.
        settings: The settings of the answers, with the model's name and digest.
        cache: The cache of answers.
        budget: Most tokens that may be read and written.
        batch_size: Most answers that are written together.
    """

    def __init__(
        self, model: LocalModel, settings: AskSettings, cache: Cache, budget: int | None = None, batch_size: int = 8
    ) -> None:
        super().__init__(settings, cache, budget, None)
        self.model, self.batch_size = model, batch_size
        self._waiting: list[tuple[dict[str, Any], list[int], asyncio.Future[Writing]]] = []
        self._worker: asyncio.Task[None] | None = None
        self._open: dict[str, asyncio.Future[dict[str, Any]]] = {}
        self._turn = asyncio.Lock()  # one thread at a time computes

    async def _send(self, request: dict[str, Any], messages: Sequence[Message]) -> dict[str, Any] | Answer:
        ids = self.model.lay_out(messages)
        if len(ids) + request["max_tokens"] > self.model.window:
            size = f"{len(ids)} sub-words and {request['max_tokens']} of the answer"
            return Answer(BROKEN, reason=f"expected a prompt for {self.model.window} sub-words, found {size}")
        key = json.dumps(request, sort_keys=True)
        if key in self._open:  # asked by another instance, too: one answer, whatever it is batched with
            return await asyncio.shield(self._open[key])
        self._open[key] = asyncio.ensure_future(self._answer(request, ids))
        try:
            return await self._open[key]
        finally:
            del self._open[key]

    async def _answer(self, request: dict[str, Any], ids: list[int]) -> dict[str, Any]:
        future: asyncio.Future[Writing] = asyncio.get_running_loop().create_future()
        self._waiting.append((request, ids, future))
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._work())
        writing = await future
        tokens = len(ids) + len(writing.chosen)
        self.bill.paid += tokens
        self.bill.requests += 1
        if writing.closed:
            self.bill.note(CLOSED)
        choice: dict[str, Any] = {"message": {"content": writing.words}, "finish_reason": writing.finish}
        if "top_logprobs" in request and writing.steps:
            choice["logprobs"] = {"content": writing.steps}
        return {"choices": [choice], "usage": {"total_tokens": tokens}}

    async def score(self, prompts: Sequence[Sequence[Message]], output: Output) -> NDArray[np.float64]:
        """Return the log-odds of an output's counted sub-words behind each prompt, shape (prompts, counted).

        Raises:
            OutOfBudgetError: The budget does not cover all prompts, each with the output.
        """
        ids = [self.model.lay_out(messages) for messages in prompts]
        tokens = sum(map(len, ids)) + len(ids) * len(output.ids)
        self.bill.reserve(tokens)
        try:
            async with self._turn:
                started = time.perf_counter()
                values = await asyncio.to_thread(self.model.score, ids, output, self.batch_size)
                self.bill.seconds += time.perf_counter() - started
            self.bill.paid += tokens
        finally:
            self.bill.reserved -= tokens
        return values

    async def _work(self) -> None:
        """Answer what waits, a batch at a time, the longest prompts first."""
        await asyncio.sleep(0)
        while self._waiting:
            self._waiting.sort(key=lambda one: -len(one[1]))
            batch, self._waiting = self._waiting[: self.batch_size], self._waiting[self.batch_size :]
            started = time.perf_counter()
            try:
                async with self._turn:
                    writings = await asyncio.to_thread(self.model.write, [one[:2] for one in batch])
            except Exception as error:  # those who wait get it
                for *_, future in batch:
                    if not future.done():
                        future.set_exception(error)
                continue
            self.bill.seconds += time.perf_counter() - started
            for (*_, future), writing in zip(batch, writings, strict=True):
                if not future.done():
                    future.set_result(writing)


def name_model(name: str, dtype: str = "float32") -> str:
    """Return a local model's name with its digest: answers are kept under what the model is, not where it lies."""
    own = f"{Path(name).name}@{compute_model_digest(name)[:12]}"
    return own if dtype == "float32" else f"{own},{dtype}"
