"""Share of the data's digest in the processor time of `eraser-hub score` on raw corpora.

python -m benchmarks.data_digest [--turns N] [SHAPE ..]

Each shape of `benchmarks.scoring` (those of e-SNLI with 15,000 rows) is scored in turn with the digest and without it,
once for predictions of spans alone, which are the quickest to score, and once with token scores and class scores too.
A line gives the least processor time of each side, their ratio, and the floor: the ratio if the digest did no more
than hash the documents' bytes by SHA-256.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from contextlib import ExitStack
from hashlib import sha256
from pathlib import Path
from unittest import mock

import orjson

from benchmarks import scoring
from eraser_hub.metrics.data_digest import DataDigest, KeyedLines
from eraser_hub.scoring import documents, references

DEFAULT = ["esnli_train", "movies", "multirc", "evidence_inference"]


class NoLines(KeyedLines):
    """Lines that are not made."""

    def add(self, values: object) -> None:
        """Make nothing."""

    def select(self, chosen: object) -> KeyedLines:
        """Return no lines."""
        return self


class NoDigest(DataDigest):
    """Digest of nothing."""

    def __init__(self, kind: str, to_lines: object = None) -> None:
        super().__init__(kind)
        self.rows = NoLines()


class NoHash:
    """Hash of nothing."""

    def __init__(self, data: bytes) -> None:
        pass

    def hexdigest(self) -> str:
        """Return no digits."""
        return ""


def write_spans(folder: Path) -> None:
    """Write spans/predictions.jsonl beside a corpus' predictions: the same without scores."""
    (folder / "spans").mkdir()
    with (
        open(folder / "predictions.jsonl", "rb") as whole,
        open(folder / "spans" / "predictions.jsonl", "wb") as spans,
    ):
        for line in whole:
            instance = orjson.loads(line)
            rationales = [
                {key: one[key] for key in ("docid", "hard_rationale_predictions")} for one in instance["rationales"]
            ]
            spans.write(orjson.dumps({"annotation_id": instance["annotation_id"], "rationales": rationales}) + b"\n")


def time_score(folder: Path, predictions: Path, digest: bool) -> float:
    """Return the processor seconds of one scoring."""
    from eraser_hub.scoring.score import score
    from eraser_hub.scoring.scored_split import ScoredSplit
    from eraser_hub.scoring.settings import ScoreSettings

    settings = ScoreSettings(iou_thresholds=scoring.THRESHOLDS, totals_only=True)
    with ExitStack() as stack:
        if not digest:
            stack.enter_context(mock.patch.object(references, "DataDigest", NoDigest))
            stack.enter_context(mock.patch.object(documents, "KeyedLines", NoLines))
            stack.enter_context(mock.patch.object(documents, "sha256", NoHash))
        begin = scoring.cpu_seconds()
        score(ScoredSplit(folder, "test"), predictions, settings).as_json()
        return scoring.cpu_seconds() - begin


def time_hashes(folder: Path) -> float:
    """Return the least processor seconds of SHA-256 over each document of a corpus."""
    lines = folder / "docs.jsonl"
    if lines.is_file():
        texts = [orjson.loads(line)["document"].encode() for line in lines.read_bytes().splitlines()]
    else:
        texts = [file.read_bytes() for file in (folder / "docs").iterdir()]
    times = []
    for _ in range(5):
        begin = time.process_time()
        for text in texts:
            sha256(text).hexdigest()
        times.append(time.process_time() - begin)
    return min(times)


def main() -> int:
    """Print a line per shape and kind of predictions."""
    options = argparse.ArgumentParser(prog="python -m benchmarks.data_digest", description=__doc__)
    options.add_argument("--turns", type=int, default=15)
    options.add_argument("shapes", nargs="*", default=DEFAULT)
    given = options.parse_args()
    for name in given.shapes:
        n, *rest = scoring.SHAPES[name]
        scoring.SHAPES[name] = (min(n, 15000), *rest)  # type: ignore[assignment]
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place) / "corpus"
            scoring.generate(folder, name)
            write_spans(folder)
            hashes = time_hashes(folder)
            for kind, predictions in (("spans", folder / "spans"), ("all", folder)):
                times: dict[bool, list[float]] = {True: [], False: []}
                for turn in range(given.turns):
                    for digest in (True, False) if turn % 2 else (False, True):
                        times[digest].append(time_score(folder, predictions / "predictions.jsonl", digest))
                with_digest, without = min(times[True]), min(times[False])
                print(
                    f"{name} {kind}: {with_digest:.3f} s with, {without:.3f} s without, ratio "
                    f"{with_digest / without:.3f}, floor {1 + hashes / without:.3f}",
                    flush=True,
                )
    return 0


if __name__ == "__main__":
    sys.exit(main())
