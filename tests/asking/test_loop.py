"""A run that is killed goes on where it stopped."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

pytest.importorskip("openai", reason="skipped: the extra llm is not installed")

from eraser_hub.asking.cache import NAME
from eraser_hub.conversion.built import open_built

from .scripted_server import Reply, ScriptedServer, answer


def eraser_hub(*arguments: object, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "eraser_hub", *map(str, arguments)]
    environment = {**os.environ, "XDG_CACHE_HOME": str(cwd / "cache"), **environment}
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, env=environment, check=False)


@pytest.mark.slow
def test_a_killed_run_loses_no_answer_that_came(hub, tmp_path):
    arguments = [
        "ask",
        "--dataset",
        hub,
        "--config",
        "movies",
        "--split",
        "train",
        "--model",
        "scripted",
        "--out",
        "quotes.jsonl",
    ]

    def script(request: dict, before: int) -> Reply:
        return answer("NEG")

    with ScriptedServer(script, latency=0.1) as server:
        arguments += ["--endpoint", server.endpoint]
        command = [sys.executable, "-m", "eraser_hub", *map(str, arguments)]
        environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
        run = subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.DEVNULL)
        while len(server.requests) < 20 and run.poll() is None:
            pass
        run.send_signal(signal.SIGKILL)
        run.wait()
        with closing(sqlite3.connect(tmp_path / "cache" / "eraser-hub" / "ask" / NAME)) as answers:
            ((kept,),) = answers.execute("SELECT count(*) FROM answers")
        asked = len(server.requests)
        assert 1 <= kept <= asked <= kept + 8  # no more than were under way
        refused = eraser_hub(*arguments, cwd=tmp_path)
        assert (refused.returncode, "resume" in refused.stderr) == (1, True)
        resumed = eraser_hub(*arguments, "--resume", cwd=tmp_path)
        assert resumed.returncode == 0, resumed.stderr
        count = len(open_built(hub).rows("movies", "train"))
        assert len((tmp_path / "quotes.jsonl").read_text().splitlines()) == count
        prompts = {request["messages"][-1]["content"] for request in server.requests}
        assert len(server.requests) == asked + len(prompts) - kept
