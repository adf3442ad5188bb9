"""Requests to an OpenAI-compatible server: concurrent, retried if the server asks for it, each paid once."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import openai

from eraser_hub.records.errors import DataError, get_first_line, show

from .answers import BROKEN, Answer, make_schema, read_answer
from .cache import Cache
from .settings import AskSettings

Message = dict[str, str]
KEY_VARIABLE = "OPENAI_API_KEY"
TOP_LOGPROBS = 20  # alternatives of a token; servers allow no more
BYTES_A_TOKEN = 4  # of UTF-8, for estimates
MAX_BYTES = 32 << 20  # of an answer; log-probabilities of 16,000 tokens take so much
# what is asked for beside the answer, as notes name it, and what is done where a server does not take it
NAMES = {"schema": "JSON schema", "log-probabilities": "log-probabilities"}
INSTEAD = {"schema": "answers are read from the words", "log-probabilities": "answers come without them"}
# what asking further does not mend
_HOPELESS = (openai.AuthenticationError, openai.PermissionDeniedError, openai.NotFoundError)
# what is wrong with one request alone: too long for the model, or refused by a filter
_OF_THE_REQUEST = (openai.BadRequestError, openai.UnprocessableEntityError)


class OutOfBudgetError(Exception):
    """The tokens that may be paid are used up."""


class UnreachableError(Exception):
    """The server did not answer in the allowed number of attempts."""


def estimate_tokens(messages: Sequence[Message]) -> int:
    """Estimate the tokens of a prompt from its bytes."""
    return sum(len(message["content"].encode()) for message in messages) // BYTES_A_TOKEN + 4 * len(messages)


@dataclass(slots=True)
class Bill:
    """The requests and their costs.

    Attributes:
        budget: Most tokens that may be paid; None for any number.
        paid: Tokens that the server counted, or an estimate if it does not count.
        reserved: Estimated cost of the open requests.
        requests: Number of paid answers.
        from_cache: Number of answers from the cache.
        notes: Events that a reader of the results must know, and how often they were.
    """

    budget: int | None = None
    paid: int = 0
    reserved: int = 0
    requests: int = 0
    from_cache: int = 0
    notes: dict[str, int] = field(default_factory=dict)

    def reserve(self, tokens: int) -> None:
        """Reserve tokens for a request.

        Raises:
            OutOfBudgetError: Fewer tokens are left.
        """
        if self.budget is not None and self.paid + self.reserved + tokens > self.budget:
            raise OutOfBudgetError
        self.reserved += tokens

    def note(self, words: str) -> None:
        """Count an event that a reader of the results must know."""
        self.notes[words] = self.notes.get(words, 0) + 1


class Client:
    """A client of a server, which answers each prompt once: answers are kept in a cache.

    Args:
        endpoint: The server's base URL, such as ``http://localhost:8000/v1``.
        settings: The settings of the answers.
        cache: The cache of paid answers.
        budget: Most tokens that may be paid.
        attempts: Number of attempts before a request counts as failed.
        timeout: Seconds that an answer may take, repeated attempts and waits included.

    Attributes:
        foreign: The first answer of the server that is no chat completion; "" for none.

    Raises:
        DataError: The endpoint is not a web address, or one with a user name or password.
    """

    def __init__(
        self,
        endpoint: str,
        settings: AskSettings,
        cache: Cache,
        budget: int | None = None,
        attempts: int = 6,
        timeout: float = 600.0,
    ) -> None:
        _check_endpoint(endpoint)
        self.settings, self.cache, self.bill, self.timeout = settings, cache, Bill(budget), timeout
        self.gives_probabilities, self.foreign, self._completions = False, "", 0
        self.key = os.environ.get(KEY_VARIABLE, "")
        # each character may stand as an escape of JSON, also of JSON within a string of JSON
        signs = (rf"\\{{0,8}}(?:{re.escape(sign)}|(?i:u{ord(sign):04x}))" for sign in self.key)
        self._key_pattern = re.compile("".join(signs)) if len(self.key) > 3 else None
        self.structured = settings.structured != "none"
        self.logprobs = bool(settings.consistency)
        self.endpoint = endpoint
        # aiohttp: the default transport looks through all connections for each request, half of a request's time at 64
        # a redirect would carry prompt and key to wherever the server says
        web = openai.DefaultAioHttpClient(event_hooks={"response": [_limit_body]}, follow_redirects=False)
        self._client = openai.AsyncOpenAI(
            base_url=endpoint,
            api_key=self.key or "none",
            max_retries=attempts - 1,
            timeout=timeout,
            http_client=web,
            default_headers={"Accept-Encoding": "identity"},  # a small compressed body may become an immense one
        )

    @property
    def is_foreign(self) -> bool:
        """True if the server answered, but never as an OpenAI-compatible one does."""
        return bool(self.foreign) and not self._completions

    async def close(self) -> None:
        """Close the connections, and the cache."""
        await self._client.close()
        self.cache.close()

    async def ask(
        self,
        messages: Sequence[Message],
        labels: Sequence[str],
        sample: int = 0,
    ) -> Answer:
        """Return the model's answer to a prompt, from the cache if it was paid for before.

        Args:
            messages: The prompt.
            labels: The labels.
            sample: The number of the answer among several answers to the same prompt.

        Raises:
            DataError: The server will not answer any request (a wrong key, no such model).
            UnreachableError: The server gave no answer.
            OutOfBudgetError: The budget does not cover the request.
        """
        request = self._make_request(messages, labels, sample)
        cached = self.cache.get(request)
        if cached is not None:
            self.bill.from_cache += 1
            return self._parse_response(cached, request)
        reserved = estimate_tokens(messages) + self.settings.max_tokens
        self.bill.reserve(reserved)
        try:
            answer = await asyncio.wait_for(self._send(request, messages), self.timeout)
        except TimeoutError:
            raise UnreachableError(f"no answer within {self.timeout:g} s (`timeout`)") from None
        finally:
            self.bill.reserved -= reserved
        if isinstance(answer, Answer):
            return answer
        try:
            self.cache.put(request, answer)
        except (ValueError, RecursionError) as error:  # half a surrogate pair, or nesting without end
            return Answer(BROKEN, reason=f"expected an answer that can be stored, found another ({error})")
        return self._parse_response(answer, request)

    def _parse_response(self, cached: dict[str, Any], request: dict[str, Any]) -> Answer:
        choice = cached["choices"][0] if cached["choices"] else None
        self.gives_probabilities |= isinstance(choice, dict) and bool(choice.get("logprobs"))
        return read_answer(choice, request["labels"])

    def _make_request(self, messages: Sequence[Message], labels: Sequence[str], sample: int) -> dict[str, Any]:
        """Return everything that decides an answer; the cache is keyed by it."""
        settings = self.settings
        return {
            "model": settings.model,
            "messages": list(messages),
            "temperature": settings.sample_temperature if sample else settings.temperature,
            "seed": settings.seed + sample,
            "max_tokens": settings.max_tokens,
            "structured": settings.structured,
            "labels": list(labels),
            **({"top_logprobs": TOP_LOGPROBS} if settings.consistency and not sample else {}),
        }

    async def _send(self, request: dict[str, Any], messages: Sequence[Message]) -> dict[str, Any] | Answer:
        """Return the server's answer, or a broken one if it refuses the request."""
        try:
            return await self._send_with_extras(request, messages)
        except _OF_THE_REQUEST as error:
            self._note_kind(error.body, self._redact_key(show(error.body, 1000))[:80])
            return Answer(BROKEN, reason=f"the server refuses the request: {self._describe_error(error)}")

    async def _send_with_extras(self, request: dict[str, Any], messages: Sequence[Message]) -> dict[str, Any] | Answer:
        """Return the server's answer, with a schema and log-probabilities if the server supports them."""
        requested = {"schema": self.structured, "log-probabilities": self.logprobs and "top_logprobs" in request}
        extras = [name for name, on in requested.items() if on]
        optional = [name for name in extras if name != "schema" or self.settings.structured != "schema"]
        try:
            return self._to_cached(await self._post(request, extras), messages)
        except _OF_THE_REQUEST as error:
            first = error
        for dropped in dict.fromkeys([*((name,) for name in optional), tuple(optional)]):
            try:
                raw = await self._post(request, [name for name in extras if name not in dropped])
            except _OF_THE_REQUEST:
                continue  # these were not the reason
            self.structured &= "schema" not in dropped
            self.logprobs &= "log-probabilities" not in dropped
            for name in dropped:
                reason = self._describe_error(first)[:80]
                self.bill.note(f"the server takes no {NAMES[name]} ({reason}): {INSTEAD[name]}")
            return self._to_cached(raw, messages)
        raise first

    async def _post(self, request: dict[str, Any], extras: Sequence[str]) -> str:
        body = {name: request[name] for name in ("model", "messages", "temperature", "seed", "max_tokens")}
        if "schema" in extras:
            schema = make_schema(request["labels"])
            named = {"name": "answer", "strict": True, "schema": schema}
            body["response_format"] = {"type": "json_schema", "json_schema": named}
        if "log-probabilities" in extras:
            body |= {"logprobs": True, "top_logprobs": request["top_logprobs"]}
        try:
            # not by the method of this address, which walks through arguments and answer by their types
            words = await self._client.post("/chat/completions", cast_to=str, body=body)
        except _HOPELESS as error:
            words = f"the server answers {self._describe_error(error)}"
            raise DataError(words, argument="endpoint") from None
        except _OF_THE_REQUEST:
            raise
        except aiohttp.ClientResponseError as error:  # the head of the answer is none of HTTP
            found = f"found {show(self._redact_key(' '.join(error.message.split())), 200)}"
            words = f"expected a server that speaks HTTP at {self.endpoint}, {found}"
            if self._completions:
                raise UnreachableError(words) from None
            raise DataError(words, argument="endpoint") from None
        except openai.APIStatusError as error:
            if 300 <= error.status_code < 400:
                words = f"the server answers {error.status_code}, a redirect, which is not followed: give its address"
                raise DataError(words, argument="endpoint") from None
            raise UnreachableError(self._describe_error(error)) from None
        except (openai.APIError, aiohttp.ClientError) as error:
            raise UnreachableError(self._describe_error(error)) from None
        return self._redact_key(words)

    def _to_cached(self, raw: str, messages: Sequence[Message]) -> dict[str, Any] | Answer:
        """Count the cost of a server's answer and return the part to cache; a broken answer becomes an `Answer`."""
        try:
            answer = json.loads(raw)
        except (ValueError, RecursionError):
            answer = None
        answer = answer if isinstance(answer, dict) else {}
        choices = answer.get("choices")
        self._note_kind(choices or None, show(raw))
        if not isinstance(choices, list) or not choices:
            words = f"expected a chat completion of at most {MAX_BYTES >> 20} MiB, found {show(raw)}"
            return Answer(BROKEN, reason=words)
        first, usage = choices[0], answer.get("usage")
        tokens = usage.get("total_tokens") if isinstance(usage, dict) else None
        if not isinstance(tokens, int) or isinstance(tokens, bool) or tokens < 0:
            tokens = estimate_tokens(messages) + len(raw.encode()) // BYTES_A_TOKEN
            self.bill.note("answers without a count of tokens: it is estimated")
        self.bill.paid += tokens
        self.bill.requests += 1
        return {"choices": [first], "usage": {"total_tokens": tokens}}

    def _note_kind(self, body: object, words: str) -> None:
        """Note whether an answer has the form of the API: its choices, or its description of an error."""
        if isinstance(body, (list, dict)):
            self._completions += 1
        else:
            self.foreign = self.foreign or words

    def _describe_error(self, error: Exception) -> str:
        status = getattr(error, "status_code", None)
        words = self._redact_key(get_first_line(error))[:300]
        return words if status is None or str(status) in words else f"{status}: {words}"

    def _redact_key(self, text: str) -> str:
        return text if self._key_pattern is None else self._key_pattern.sub("[key]", text)


def _check_endpoint(endpoint: str) -> None:
    """Refuse what is no web address, and one with a user name or password, which is not repeated.

    Raises:
        DataError: Such an endpoint.
    """
    authority = re.split("[/?#]", endpoint.partition("://")[2] or endpoint, maxsplit=1)[0]
    if "@" in authority:
        words = f"expected an address without user name and password; a key comes from {KEY_VARIABLE}"
        raise DataError(words, argument="endpoint")
    if not endpoint.startswith(("http://", "https://")):
        words = f"expected an address http://.. or https://.., found {show(endpoint)}"
        raise DataError(words, argument="endpoint")


async def _limit_body(response: Any) -> None:
    """Cut the body of a response at `MAX_BYTES`, and read it as UTF-8 whatever its head says."""
    read = response.aiter_bytes

    async def read_first_bytes() -> AsyncIterator[bytes]:
        size = 0
        async with aclosing(read()) as parts:
            async for part in parts:
                yield part
                size += len(part)
                if size > MAX_BYTES:
                    await response.aclose()
                    return

    response.aiter_bytes = read_first_bytes
    response.encoding = "utf-8"
    if response.headers.get("content-encoding") not in ("gzip", "deflate"):  # others unpack without a bound
        response.headers.pop("content-encoding", None)


async def gather(tasks: Sequence[Any]) -> None:
    """Wait for all tasks; if one fails, stop the others before raising its error."""
    running = [asyncio.ensure_future(task) for task in tasks]
    try:
        await asyncio.gather(*running)
    finally:
        for one in running:
            one.cancel()
        await asyncio.gather(*running, return_exceptions=True)
