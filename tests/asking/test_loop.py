"""Ask, score, report: a server that quotes gold evidence, mangled by a seed, has its offsets brought back."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

pytest.importorskip("openai", reason="skipped: the extra llm is not installed")
pytest.importorskip("openai", reason="skipped: the extra llm is not installed")

from eraser_hub.asking.cache import NAME
from eraser_hub.conversion.built import open_built
from eraser_hub.metrics.plain import split_tokens

from ..mangling import NORMALISATIONS
from .scripted_server import Reply, Script, ScriptedServer, answer, completion

# a quote in marks or with dots may mean the text's own; a person knows no better
KINDS = [kind for kind in NORMALISATIONS if kind not in ("wrapped", "trailing dots")]


def gold_script(hub: Path, config: str, refuse: int = 0) -> Script:
    """Answers with gold label and mangled gold quotes; the first so many rows are refused."""
    built = open_built(hub)
    names = built.label_names(config)
    rows = built.rows(config, "test")

    def script(request: dict, before: int) -> Reply:
        asked = request["messages"][-1]["content"]
        at, row = next(
            (at, row)
            for at, row in enumerate(rows)
            if all(document["text"].strip("\n") in asked for document in row["documents"])
            and (row["query"] or "") in asked
        )
        if at < refuse:
            return completion("I'm sorry, I can't say.")
        chance, quotes = random.Random(at), []
        texts = {document["docid"]: split_tokens(document["text"]) for document in row["documents"]}
        for group in row["evidences"]:
            for one in group:
                words = " ".join(texts[one["docid"]][one["start_token"] : one["end_token"]])
                quotes.append(NORMALISATIONS[chance.choice(KINDS)](words, chance))
        return answer(names[row["classification"]], *filter(None, quotes))

    return script


def eraser_hub(*arguments: object, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "eraser_hub", *map(str, arguments)]
    environment = {**os.environ, "XDG_CACHE_HOME": str(cwd / "cache"), **environment}
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, env=environment, check=False)


@pytest.mark.parametrize(
    "config", ["movies", pytest.param("esnli", marks=pytest.mark.slow), pytest.param("fever", marks=pytest.mark.slow)]
)
def test_ask_score_and_report(hub, tmp_path, config):
    where = ("--dataset", hub, "--config", config, "--split", "test")
    with ScriptedServer(gold_script(hub, config, refuse=1)) as server:
        model = ("--endpoint", server.endpoint, "--model", "scripted")
        asked = eraser_hub("ask", *where, *model, "--out", "quotes.jsonl", cwd=tmp_path)
    assert asked.returncode == 0, asked.stderr
    count = len(open_built(hub).rows(config, "test"))
    scored = eraser_hub("score", *where, "--predictions", "quotes.jsonl", "--format", "json", cwd=tmp_path)
    assert scored.returncode == 0, scored.stderr
    assert f"answered:{count - 1}/{count}" in scored.stdout
    assert "quotes" not in scored.stderr  # a known field
    lines = [json.loads(line) for line in (tmp_path / "quotes.jsonl").read_text().splitlines()]
    rows = open_built(hub).rows(config, "test")
    gold = {
        (row["annotation_id"], one["docid"], one["start_token"], one["end_token"])
        for row in rows[1:]
        for group in row["evidences"]
        for one in group
        if one["start_token"] < one["end_token"]
    }
    said = {
        (line["annotation_id"], quote["docid"], quote["start_token"], quote["end_token"])
        for line in lines
        for quote in line["quotes"]
        if quote["status"] != "ambiguous"
    }
    several = [quote for line in lines for quote in line["quotes"] if quote["status"] == "ambiguous"]
    assert len(gold - said) <= len(several)
    assert len(said - gold) == 0


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
