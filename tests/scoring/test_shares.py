"""Several processes that share a prediction file: the numbers and the errors of one."""

from __future__ import annotations

import json
import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eraser_hub.records.errors import DataError
from eraser_hub.scoring import score as scoring
from eraser_hub.scoring import shares
from eraser_hub.scoring.corpus import blocks_of
from eraser_hub.scoring.score import Inputs, Settings, nested, score
from eraser_hub.scoring.shares import shares_of

from ..metrics.eraser_rows import random_case
from .small_corpora import compare, lines, written


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.binary(max_size=40).map(lambda line: line.replace(b"\n", b"")), max_size=30),
    st.integers(1, 9),
    st.booleans(),
)
def test_shares_are_whole_lines_and_the_whole_file(tmp_path_factory: Any, rows: list[bytes], count: int, ends: bool) -> None:  # fmt: skip
    path = tmp_path_factory.mktemp("shares") / "p.jsonl"
    path.write_bytes(b"\n".join(rows) + (b"\n" if ends else b""))
    found = shares_of(path, count)
    data = path.read_bytes()
    assert found[0].start == 0 and found[-1].end == len(data) and len(found) <= count
    assert all(one.end == two.start for one, two in pairwise(found))
    assert all(data[share.end - 1] == 10 for share in found[:-1])
    read = [[line for block in blocks_of(path, *share) for line in block] for share in found]
    assert [line for part in read for line in part] == data.splitlines(keepends=True) or b"\r" in data
    assert b"".join(line for part in read for line in part) == data
    assert all(b"".join(part) == data[slice(*share)] for part, share in zip(read, found, strict=True))


def test_a_small_file_is_one_share_unless_asked_for_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "p.jsonl"
    path.write_bytes(b"{}\n" * 100)
    monkeypatch.setattr(shares, "_cores", lambda: 8)
    assert len(shares_of(path)) == 1 and len(shares_of(path, 3)) == 3
    monkeypatch.setattr(shares, "SHARE_BYTES", 100)
    assert len(shares_of(path)) == 3
    monkeypatch.setattr(shares, "SHARE_BYTES", 1)
    assert len(shares_of(path)) == shares.MOST_PROCESSES


def test_three_processes_give_the_numbers_of_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    predictions, references = random_case(5, n=40)
    random.Random(1).shuffle(predictions)
    inputs = written(tmp_path, predictions, references)
    wanted = Settings(iou_thresholds=(0.2, 0.5), random_baseline=2)
    expected = nested(score(inputs, wanted))
    monkeypatch.setattr(scoring, "assess", None)  # to read everything at once would be an error
    totals = Settings(iou_thresholds=(0.2, 0.5), random_baseline=2, totals_only=True)
    found = nested(score(inputs, totals, num_proc=3))
    compare(found, expected)
    assert found["signature"] == expected["signature"]
    assert nested(score(inputs, totals, num_proc=3)) == found


def another_field(rows: list[dict[str, Any]]) -> None:
    del rows[-1]["tokens_to_flip"]


def twice(rows: list[dict[str, Any]]) -> None:
    rows[-1] = rows[0]


def not_json(rows: list[dict[str, Any]]) -> None:
    rows[-1]["classification_scores"] = {"NEG": float("nan")}


@pytest.mark.parametrize("change", [another_field, twice, not_json])
def test_what_is_wrong_in_another_share_is_told_as_by_one_process(change: Any, tmp_path: Path) -> None:
    predictions, references = random_case(3, n=12)
    change(predictions)
    inputs = written(tmp_path, predictions, references)
    told = []
    for count in (1, 2):
        with pytest.raises(DataError, match=r"p.jsonl:12: ") as error:
            score(inputs, Settings(totals_only=True), num_proc=count)
        told.append(str(error.value))
    assert told[0] == told[1]


def test_a_helper_that_cannot_run_costs_time_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    predictions, references = random_case(3, n=12)
    inputs = written(tmp_path, predictions, references)
    expected = nested(score(inputs, Settings(totals_only=True)))
    monkeypatch.setattr(shares.sys, "executable", "/bin/false")
    compare(nested(score(inputs, Settings(totals_only=True), num_proc=2)), expected)
    monkeypatch.setattr(shares.sys, "executable", str(tmp_path / "nowhere"))
    compare(nested(score(inputs, Settings(totals_only=True), num_proc=2)), expected)


def test_no_helper_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    predictions, references = random_case(3, n=12)
    inputs = written(tmp_path, predictions, references)
    started = []
    popen = shares.subprocess.Popen

    def remembered(*arguments: Any, **more: Any) -> Any:
        started.append(popen(*arguments, **more))
        return started[-1]

    def stopped(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(shares.subprocess, "Popen", remembered)
    monkeypatch.setattr(scoring, "add_share", stopped)
    with pytest.raises(KeyboardInterrupt):
        score(inputs, Settings(totals_only=True), num_proc=2)
    assert len(started) == 1 and started[0].returncode is not None


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    predictions, references = random_case(3, n=3)
    inputs = written(tmp_path, predictions, references)
    with pytest.raises(DataError, match=r"nowhere\.jsonl: cannot be read: No such file"):
        score(Inputs(tmp_path, "val", tmp_path / "nowhere.jsonl"), Settings(totals_only=True), num_proc=2)
    lines(inputs.results, [])
    with pytest.raises(DataError, match=r"p\.jsonl"):
        score(inputs, Settings(totals_only=True), num_proc=2)
    assert json.loads((tmp_path / "val.jsonl").read_text("utf-8").splitlines()[0])
