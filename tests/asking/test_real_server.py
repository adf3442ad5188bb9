"""A real server: `transformers serve` with a tiny random model. Its words are noise: what is tested is the protocol."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from eraser_hub import ask

from ..attribution.conftest import byte_tokenizer
from ..needs import needs

pytestmark = [pytest.mark.slow, needs("openai", "torch", "fastapi", "uvicorn", "typer")]

START_SECONDS = 240
SERVE = "from transformers.cli.transformers import main; main()"


def save_model(folder: Path) -> None:
    """Save a Llama of one layer with random weights."""
    from transformers import LlamaConfig, LlamaForCausalLM

    chat = "{% for message in messages %}{{ message['content'] }}\n{% endfor %}"
    byte_tokenizer("llama", prefix=False, chat_template=chat).save_pretrained(folder)
    sizes = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    LlamaForCausalLM(LlamaConfig(vocab_size=300, max_position_embeddings=8192, **sizes)).save_pretrained(folder)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """(endpoint, model) of a running server."""
    folder = tmp_path_factory.mktemp("server")
    save_model(folder / "model")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    where = ["--host", "127.0.0.1", "--port", port, "--device", "cpu", str(folder / "model")]
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen([sys.executable, "-c", SERVE, "serve", *where], stdout=log, stderr=log, cwd=folder)
    try:
        until = time.monotonic() + START_SECONDS
        while True:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=2).close()
                break
            except OSError:
                words = (folder / "log").read_text(errors="replace").strip().rpartition("\n")[2]
                assert server.poll() is None and time.monotonic() < until, words
                time.sleep(0.5)
        yield f"http://127.0.0.1:{port}/v1", str(folder / "model")
    finally:
        server.terminate()
        server.wait()


def test_ask_and_score_a_real_server(served, hub, tmp_path):
    endpoint, model = served
    how = {"max_tokens": 12, "consistency": "redacted", "concurrency": 2, "timeout": 200}
    how |= {"dataset": hub, "config": "esnli", "limit": 2, "cache": tmp_path / "cache"}
    report = ask(model, endpoint=endpoint, out=tmp_path / "a.jsonl", **how)
    lines = [json.loads(line) for line in (tmp_path / "a.jsonl").read_text(encoding="utf-8").splitlines()]
    assert len(lines) == report.outcomes.total() == 2
    assert {line["outcome"] for line in lines} <= {"broken", "cut", "refusal", "answered"}
    assert any("2 answers" in note for note in report.notes)
    again = ask(model, endpoint="http://127.0.0.1:9/v1", out=tmp_path / "b.jsonl", **how)
    assert (tmp_path / "b.jsonl").read_bytes() == (tmp_path / "a.jsonl").read_bytes()  # nobody was asked
    assert "0 tokens paid for 0 answers, 2 answers from the cache" in again.notes
