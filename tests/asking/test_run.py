"""Whole runs: prompts, changed texts, what is kept of a run that stops, and what is refused before it begins."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing
from itertools import count

import pytest

pytest.importorskip("openai", reason="skipped: the extra llm is not installed")

from eraser_hub import ask
from eraser_hub.asking.client import CACHE_FILE
from eraser_hub.conversion.built import open_built
from eraser_hub.metrics.eraser_faithfulness import EraserFaithfulness

from ..refusals import refused
from .scripted_server import ScriptedServer, answer, completion, error
from .test_prompts import logprobs, step

GOOD = answer("NEG", "the dialogue is painfully flat")


def test_the_documents_stand_in_the_prompt_word_for_word(asking, hub):
    asking(lambda request, before: GOOD, limit=None, concurrency=1)
    texts = [row["documents"][0]["text"] for row in open_built(hub).rows("movies", "test")]
    asked = [request["messages"][-1]["content"] for request in asking.server.requests]
    assert all(text.strip("\n") in words for text, words in zip(texts, asked, strict=True))
    schema = asking.server.requests[0]["response_format"]["json_schema"]["schema"]
    assert schema["properties"]["label"]["enum"] == ["NEG", "POS"]


def test_a_dry_run_shows_two_prompts_with_examples_drawn_by_the_seed(hub):
    def dry(**how):
        return ask("scripted", hub, config="movies", endpoint="http://h", dry_run=True, **how)

    *prompts, counted, signature = dry()
    assert sum(part.startswith("===") for part in prompts) == 2
    assert "nothing was asked" in counted and "model:scripted|prompt:en/sentiment@" in signature
    shown = "".join(dry(limit=1, shots=2, split="train"))
    assert shown == "".join(dry(limit=1, shots=2, split="train")) and shown.count("--- assistant") == 2
    with refused("9999", argument="shots"):
        dry(shots=9999)


def test_overlapping_quotes_are_one_span_and_the_first_scores_highest(asking):
    def script(request, before):
        words = next(line for line in request["messages"][-1]["content"].splitlines() if line.count(" ") > 8).split(" ")
        return answer("NEG", *(" ".join(words[start:end]) for start, end in ((0, 4), (2, 6), (6, 8))), "never said")

    (line,) = asking(script)
    spans = line["rationales"][0]["hard_rationale_predictions"]
    first = spans[0]["start_token"]
    assert [(span["start_token"] - first, span["end_token"] - first) for span in spans] == [(0, 6), (6, 8)]
    soft = line["rationales"][0]["soft_rationale_predictions"]
    assert [soft[first + at] for at in (0, 3, 4, 7)] == [1.0, 1.0, 0.75, 0.5] and sum(map(bool, soft)) == 8
    assert [quote["status"] for quote in line["quotes"]] == ["exact"] * 3 + ["not_found"]


# -- changed texts ----------------------------------------------------------------------------------------------------


def reader(request, before):
    """Say NEG as long as there is a ladder, and quote it."""
    text = request["messages"][-1]["content"].casefold()
    label, other, p = ("NEG", "POS", 0.9) if "ladder" in text else ("POS", "NEG", 0.6)
    reply = answer(label, *(["a ladder"] if "a ladder" in text else []))
    if not request.get("logprobs"):
        return reply
    body = json.loads(reply.body)
    body["choices"][0] |= logprobs(step('{"label": "'), step(label, **{label: p, other: 1 - p}))
    return reply._replace(body=json.dumps(body).encode())


def test_flips_and_probabilities_of_a_model_that_reads_its_quotes(asking):
    changes = ("redacted", "removed", "alone", "random")
    lines = asking(reader, limit=None, consistency=changes)
    marked = [line for line in lines if line["classification"] == "NEG"]
    for line in marked:
        again = {one["kind"]: one["classification"] for one in line["asked_again"]}
        assert again == {"redacted": "POS", "removed": "POS", "alone": "NEG", "random": "NEG"}
        assert line["classification_scores"] == pytest.approx({"NEG": 0.9, "POS": 0.1})
        assert line["comprehensiveness_classification_scores"]["NEG"] == pytest.approx(0.4)
        assert line["sufficiency_classification_scores"]["NEG"] == pytest.approx(0.9)
    share = len(marked) / len(lines)  # the others quote nothing, so nothing is taken from them
    with pytest.warns(UserWarning, match="thresholded_scores"):
        scores = EraserFaithfulness().compute(predictions=lines)
    assert 0 < share < 1 and scores["comprehensiveness"] == pytest.approx(0.5 * share)
    assert f"|again:{','.join(changes)}|" in asking.report.signature
    assert asking(lambda request, before: error(500, "no"), limit=None, consistency=changes, force=True) == lines


def test_samples_where_there_are_no_log_probabilities(asking):
    seeds = set()

    def script(request, before):
        seeds.add((request["seed"], request["temperature"]))
        return answer("NEG" if request["seed"] % 4 else "POS", "the dialogue is painfully flat")

    (line,) = asking(script, consistency="removed", samples=4)
    assert seeds == {(1, 0.0), *((seed, 1.0) for seed in range(2, 6))}
    assert line["classification_scores"] == {"NEG": 0.75, "POS": 0.25}
    assert "comprehensiveness_classification_scores" in line and "sufficiency_classification_scores" not in line
    assert any("4 answers" in note and "0.250" in note for note in asking.notes)


def test_no_answer_is_not_asked_again_and_no_answer_to_a_changed_text_is_said(asking):
    (line,) = asking(lambda request, before: completion("no object"), consistency="redacted")
    assert line["asked_again"] == [] and len(asking.server.requests) == 1

    def script(request, before):
        text = request["messages"][-1]["content"]
        return answer("NEG", text.split()[20]) if "[REDACTED]" not in text and len(text) > 100 else completion("")

    (line,) = asking(script, consistency=("redacted", "alone"), force=True, seed=2)
    assert [(one["classification"], one["outcome"]) for one in line["asked_again"]] == [(None, "broken")] * 2


# -- runs that stop ---------------------------------------------------------------------------------------------------


def test_a_server_that_goes_on_failing_is_an_error_and_answers_are_kept(asking):
    prompts: dict[str, int] = {}

    def script(request, before):
        number = prompts.setdefault(request["messages"][-1]["content"], len(prompts))
        return error(500, "oh") if number in (1, 4) else GOOD

    with refused("`resume`", "instance '", "(and 1 more)", file=asking.out) as caught:
        asking(script, limit=None, concurrency=1)
    assert not asking.out.exists()
    with refused("temperature was 0.0, now 0.5", argument="resume"):
        asking(script, limit=None, resume=True, temperature=0.5)
    lines = asking(lambda request, before: GOOD, limit=None, resume=True)
    assert {line["outcome"] for line in lines} == {"answered"}
    assert f"{len(lines) - len(asking.server.requests)} answers are kept" in str(caught.error)


@pytest.mark.slow
def test_a_killed_run_loses_no_answer_that_came(hub, tmp_path):
    """The server answers twelve requests and lets all others wait: each of the eight workers has stored what it got."""
    go_on, number, answered = threading.Event(), count(1), list[str]()

    def script(request, before):
        if next(number) > 12:
            go_on.wait(60)
        else:
            answered.append(request["messages"][-1]["content"])
        return answer("NEG")

    with ScriptedServer(script) as server:
        place = ["--dataset", hub, "--config", "movies", "--split", "train", "--out", "quotes.jsonl"]
        words = ["-m", "eraser_hub", "ask", *place, "--endpoint", server.endpoint, "--model", "scripted"]
        command = [sys.executable, *map(str, words)]
        how = {"cwd": tmp_path, "env": {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}}
        run = subprocess.Popen(command, **how)
        while len(server.requests) < 20 and run.poll() is None:
            time.sleep(0.01)
        run.send_signal(signal.SIGKILL)
        run.wait()
        go_on.set()
        with closing(sqlite3.connect(tmp_path / "cache" / "eraser-hub" / "ask" / CACHE_FILE)) as answers:
            assert answers.execute("SELECT count(*) FROM answers").fetchall() == [(12,)]
        stopped = subprocess.run(command, **how, capture_output=True, text=True, check=False)
        assert (stopped.returncode, "resume" in stopped.stderr) == (1, True)
        subprocess.run([*command, "--resume"], **how, check=True)
        rows = len(open_built(hub).rows("movies", "train"))
        assert len((tmp_path / "quotes.jsonl").read_text().splitlines()) == rows > 20
        later = [request["messages"][-1]["content"] for request in server.requests[20:]]
        assert len(later) >= 8 and not set(answered) & set(later)


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        *[("limit", 0), ("budget", 0), ("shots", -1), ("seed", 2**63), ("temperature", 2.5), ("threshold", 0.4)],
        *[("max_tokens", 0), ("attempts", 0), ("concurrency", True), ("timeout", 0), ("structured", "")],
        *[
            ("several", ""),
            ("samples", 3),
            ("sample_temperature", 0.0),
            ("model", "a\udc80"),
            ("out", "p.parquet"),
            ("out", None),
        ],
        *[("consistency", ("erased",)), ("consistency", ("alone", "alone"))],
    ],
)
def test_values_out_of_range_are_refused(hub, tmp_path, argument, value):
    how = {"model": "m", "dataset": hub, "config": "movies", "endpoint": "http://h", "out": tmp_path / "p.jsonl"}
    with refused(argument=argument):
        ask(**how | {argument: value})
