"""Requests to an OpenAI-compatible server: concurrent, repeated, bounded in time and bytes, each paid for once."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import aclosing
from itertools import combinations
from pathlib import Path
from typing import Any

from eraser_hub.records.errors import DataError, get_first_line, show

from .prompts import BROKEN, Answer, AskSettings, make_schema, read_answer

Messages = Sequence[dict[str, str]]
KEY_VARIABLE = "OPENAI_API_KEY"
TOP_LOGPROBS = 20  # alternatives of a token; servers allow no more
BYTES_PER_TOKEN = 4  # of UTF-8, for estimates
MAX_BYTES = 32 << 20  # of an answer; log-probabilities of 16,000 tokens take so much
CACHE_FILE = "answers.sqlite"
PATIENCE = 60  # seconds that another run may take to write to the cache
# what is asked for beside the words, and what becomes of a run whose server does not take it
SCHEMA, LOGPROBS = "JSON schema", "log-probabilities"
WITHOUT = {SCHEMA: "answers are read from the words", LOGPROBS: "answers come without them"}


class NoAnswerError(Exception):
    """A request that may be answered another time: the server failed, or the budget is used up."""


class RefusedError(Exception):
    """A request that the server will never answer: it is too long, or a filter stopped it."""


def estimate_tokens(messages: Messages) -> int:
    """Estimate the tokens of a prompt from its bytes."""
    return sum(len(message["content"].encode()) for message in messages) // BYTES_PER_TOKEN + 4 * len(messages)


class Client:
    """A client that asks a server for labels and quotes; an answer that was paid for comes from the cache.

    Args:
        endpoint: The server's base URL, such as ``http://localhost:8000/v1``.
        settings: The settings of the answers.
        labels: The labels.
        folder: The folder of the cache.
        budget: Most tokens that may be paid.
        attempts: Number of attempts before a request counts as failed.
        timeout: Seconds that an answer may take, repeated attempts and waits included.

    Attributes:
        paid: Tokens that the server counted, or an estimate if it does not count.
        requests: Number of paid answers.
        from_cache: Number of answers from the cache.
        gives_probabilities: True if an answer had log-probabilities.
        notes: Events that a reader of the results must know, and how often they were.

    Raises:
        DataError: The endpoint is not a web address, or one with a user name or password; no cache can be kept.
    """

    def __init__(
        self,
        endpoint: str,
        settings: AskSettings,
        labels: Sequence[str],
        folder: Path,
        budget: int | None = None,
        attempts: int = 6,
        timeout: float = 600.0,
    ) -> None:
        import openai  # a dry run does without

        authority = re.split(r"[/?#]", endpoint.partition("://")[2] or endpoint, maxsplit=1)[0]
        if "@" in authority:  # the message must not repeat them
            words = f"expected an address without user name and password; a key comes from {KEY_VARIABLE}"
            raise DataError(words, argument="endpoint")
        if not endpoint.startswith(("http://", "https://")):
            message = f"expected an address http://.. or https://.., found {show(endpoint)}"
            raise DataError(message, argument="endpoint")
        self.endpoint, self.settings, self.labels = endpoint, settings, labels
        self.budget, self.timeout = budget, timeout
        self.paid = self.reserved = self.requests = self.from_cache = 0
        self.gives_probabilities, self.notes = False, Counter[str]()
        self.extras = {SCHEMA} if settings.structured != "none" else set[str]()
        if settings.consistency:
            self.extras.add(LOGPROBS)
        key = os.environ.get(KEY_VARIABLE, "")
        # each character may stand as an escape of JSON, also of JSON within a string of JSON
        signs = (rf"\\{{0,8}}(?:{re.escape(sign)}|(?i:u{ord(sign):04x}))" for sign in key)
        self._key = re.compile("".join(signs)) if len(key) > 3 else None
        self._client = openai.AsyncOpenAI(
            base_url=endpoint,
            api_key=key or "none",
            max_retries=attempts - 1,
            timeout=timeout,
            # a redirect would carry prompt and key to wherever the server says
            http_client=openai.DefaultAsyncHttpxClient(event_hooks={"response": [limit_body]}, follow_redirects=False),
            default_headers={"Accept-Encoding": "identity"},  # a small compressed body may become an immense one
        )
        self._cache = Cache(folder)

    async def close(self) -> None:
        """Close the connections, and the cache."""
        await self._client.close()
        self._cache.close()

    async def ask(self, messages: Messages, sample: int = 0) -> Answer:
        """Return the answer to a prompt.

        Args:
            messages: The prompt.
            sample: The number of the answer among several answers to the same prompt.

        Raises:
            DataError: The server will not answer any request (a wrong key, no such model).
            NoAnswerError: The server failed, or the budget does not cover the request.
        """
        settings = self.settings
        request = {
            "model": settings.model,
            "messages": list(messages),
            "temperature": settings.sample_temperature if sample else settings.temperature,
            "seed": settings.seed + sample,
            "max_tokens": settings.max_tokens,
        }
        wanted = self.extras - {LOGPROBS} if sample else self.extras
        # not what this server takes: another server's answer is as good
        decisive = [request, list(self.labels), settings.structured, bool(settings.consistency and not sample)]
        name = hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).digest()
        choice = self._cache.get(name)
        if choice is None:
            cost = estimate_tokens(messages) + settings.max_tokens
            if self.budget is not None and self.paid + self.reserved + cost > self.budget:
                raise NoAnswerError("the budget is used up")
            self.reserved += cost
            try:
                async with asyncio.timeout(self.timeout):
                    raw = await self._send(request, wanted)
            except TimeoutError:
                raise NoAnswerError(f"no answer within {self.timeout:g} s (in Python timeout= sets it)") from None
            except RefusedError as error:
                return Answer(BROKEN, reason=f"the server refuses the request: {error}")
            finally:
                self.reserved -= cost
            choice = self._read_completion(raw, messages)
            self._cache.put(name, choice)
        else:
            self.from_cache += 1
        self.gives_probabilities |= isinstance(choice, dict) and bool(choice.get("logprobs"))
        return read_answer(choice, self.labels)

    async def _send(self, request: dict[str, Any], wanted: Collection[str]) -> str:
        """Return the body of the answer, with as much of what is wanted beside the words as the server takes."""
        needed = {SCHEMA} & set(wanted) if self.settings.structured == "schema" else set[str]()
        refusal: RefusedError | None = None
        for size in range(len(wanted), -1, -1):
            for extras in combinations(sorted(wanted), size):
                if not needed <= set(extras):
                    continue
                try:
                    body = await self._post(request, extras)
                except RefusedError as error:
                    refusal = refusal or error
                    continue
                for extra in set(wanted) - set(extras):
                    self.extras.discard(extra)
                    self.notes[f"the server takes no {extra} ({str(refusal)[:80]}): {WITHOUT[extra]}"] += 1
                return body
        raise refusal or RefusedError

    async def _post(self, request: dict[str, Any], extras: Collection[str]) -> str:
        import openai

        if SCHEMA in extras:
            schema = {"name": "answer", "strict": True, "schema": make_schema(self.labels)}
            request = {**request, "response_format": {"type": "json_schema", "json_schema": schema}}
        if LOGPROBS in extras:
            request = {**request, "logprobs": True, "top_logprobs": TOP_LOGPROBS}
        try:
            response = await self._client.chat.completions.with_raw_response.create(**request)
            return self._hide_key(response.text)
        except openai.APIStatusError as error:
            status, words = error.status_code, self._hide_key(get_first_line(error))[:300]
            words = words if str(status) in words else f"{status}: {words}"
            if status in (400, 422):
                raise RefusedError(words) from None
            if 300 <= status < 400:
                words = f"the server answers {status}, a redirect, which is not followed: give its address"
                raise DataError(words, argument="endpoint") from None
            if status in (401, 403, 404):
                raise DataError(f"the server answers {words}", argument="endpoint") from None
            raise NoAnswerError(words) from None
        except openai.APIError as error:  # what was wrong with the connection, or with its HTTP, says the cause
            words = self._hide_key(get_first_line(error.__cause__ or error))[:300]
            raise NoAnswerError(f"expected an answer of {self.endpoint}, found {words}") from None

    def _read_completion(self, body: str, messages: Messages) -> object:
        """Return the first choice of a chat completion, and count what it costs."""
        try:
            completion = json.loads(body)
        except (ValueError, RecursionError):
            completion = None
        choices = completion.get("choices") if isinstance(completion, dict) else None
        if not isinstance(completion, dict) or not isinstance(choices, list) or not choices:
            expected = f"a chat completion of at most {MAX_BYTES >> 20} MiB"
            words = f"expected {expected}, found {show(body)}: is {self.endpoint} an OpenAI-compatible endpoint?"
            raise NoAnswerError(words)
        usage = completion.get("usage")
        tokens = usage.get("total_tokens") if isinstance(usage, dict) else None
        if not isinstance(tokens, int) or isinstance(tokens, bool) or tokens < 0:
            tokens = estimate_tokens(messages) + len(body.encode(errors="replace")) // BYTES_PER_TOKEN
            self.notes["answers without a count of tokens: it is estimated"] += 1
        self.paid += tokens
        self.requests += 1
        return choices[0]

    def _hide_key(self, text: str) -> str:
        return text if self._key is None else self._key.sub("[key]", text)


async def limit_body(response: Any) -> None:
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


class Cache:
    """Paid answers of all runs in one SQLite database, by the digest of their request.

    Args:
        folder: The folder of ``answers.sqlite``.

    Raises:
        DataError: The database cannot be opened.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.file = folder / CACHE_FILE
        self._database: sqlite3.Connection | None = None
        # a log that writers append to: an answer is on disk in a tenth of the time that a file of its own takes
        self._execute("PRAGMA journal_mode = WAL")
        self._execute("PRAGMA synchronous = NORMAL")
        self._execute("CREATE TABLE IF NOT EXISTS answers (request BLOB PRIMARY KEY, answer BLOB) WITHOUT ROWID")

    def get(self, request: bytes) -> object:
        """Return the answer to a request; None if there is none, or a damaged one."""
        rows = self._execute("SELECT answer FROM answers WHERE request = ?", request)
        try:
            return json.loads(rows[0][0]) if rows else None
        except (TypeError, ValueError, RecursionError):
            return None

    def put(self, request: bytes, answer: object) -> None:
        """Store an answer; once this returns, a killed process does not lose it."""
        self._execute("INSERT OR REPLACE INTO answers VALUES (?, ?)", request, json.dumps(answer).encode())

    def close(self) -> None:
        """Close the database."""
        if self._database is not None:
            self._database.close()

    def _execute(self, statement: str, *values: bytes) -> list[tuple[bytes, ...]]:
        try:
            if self._database is None:
                self._database = sqlite3.connect(self.file, timeout=PATIENCE, isolation_level=None)
            return self._database.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            words = f"the answers that were paid for cannot be read or written here ({get_first_line(error)})"
            raise DataError(f"{words}: in Python cache= names another folder", file=self.file) from None
