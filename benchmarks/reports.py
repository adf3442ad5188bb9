"""How large pages are and how fast they open: reports of 20 systems and of 5,000 claims.

Made-up corpora of the papers' sizes and made-up predictions (spans, soft scores, probabilities), through `make_report`.
Open = from navigation until the first document is drawn, in headless Chromium. Bars: a second of the processor time of
the page's main thread until then (parsing, layout, script), 15 MB, and 8,000 pixels at widths of 1280 and 390, with all
sections folded but those that open by themselves; the findings end within the window's first 1,000 pixels.

    python -m benchmarks.reports
"""

from __future__ import annotations

import json
import os
import platform
import random
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eraser_hub.conversion import HUB_DATASETS
from eraser_hub.reports.report import make_report
from eraser_hub.scoring.runs import System
from eraser_hub.scoring.scored_split import ScoredSplit, read_split
from eraser_hub.scoring.settings import ScoreSettings
from tools.browser import headless_browser, missing_programs, view_as

from .paper_size_corpora import write_corpus

RESULTS = Path(__file__).with_name("results_reports.md")
SECONDS, MEGABYTES, PIXELS, SCREEN = 1.0, 15.0, 8000, 1000
ROUNDS = 5
THRESHOLDS = (0.01, 0.05, 0.1, 0.2, 0.5)
DOCUMENT_DRAWN = "document.querySelector('#documents .text p') !== null"
RESAMPLES = 20  # the intervals' width does not change the page


@dataclass(frozen=True)
class Case:
    """A report: config of the corpus, its scale, systems and instances."""

    config: str
    scale: float
    systems: int
    instances: int


CASES = (Case("movies", 1.0, 20, 200), Case("fever", 0.9, 2, 5000))


def write_predictions(split: ScoredSplit, path: Path, count: int, seed: int) -> Path:
    """Write predictions for the first rows of a split; a higher seed agrees less with the gold."""
    draw, names = random.Random(seed), list(split.labels.names or ())
    with path.open("w", encoding="utf-8") as stream:
        for row in split.rows[:count]:
            stream.write(json.dumps(make_prediction(row, names, draw, 1 / (1 + seed))) + "\n")
    return path


def make_prediction(row: dict[str, Any], names: list[str], draw: random.Random, skill: float) -> dict[str, Any]:
    """Return spans, soft scores and probabilities for a row."""
    gold = {
        (e["docid"], t) for group in row["evidences"] for e in group for t in range(e["start_token"], e["end_token"])
    }
    rationales = []
    for document in row["documents"]:
        tokens = len(document["text"].split())
        soft = [round(draw.random() + skill * ((document["docid"], t) in gold), 4) for t in range(tokens)]
        starts = sorted(range(0, tokens, 10), key=lambda t: -sum(soft[t : t + 10]))[: max(1, tokens // 100)]
        spans = [{"start_token": t, "end_token": min(tokens, t + 10)} for t in starts]
        rationales.append(
            {"docid": document["docid"], "hard_rationale_predictions": spans, "soft_rationale_predictions": soft}
        )
    label = names[row["classification"]] if draw.random() < 0.5 + skill / 2 else draw.choice(names)

    def scores(p: float) -> dict[str, float]:
        rest = (1 - p) / (len(names) - 1)
        return {name: p if name == label else rest for name in names}

    p = draw.uniform(0.6, 1.0)
    without, alone = p - draw.random() * 0.3 * (1 + skill), p - draw.random() * 0.3
    points = [
        {
            "threshold": t,
            "comprehensiveness_classification_scores": scores(p - draw.random() * t),
            "sufficiency_classification_scores": scores(p - draw.random() * (1 - t) / 2),
        }
        for t in THRESHOLDS
    ]
    return {
        "annotation_id": row["annotation_id"],
        "rationales": rationales,
        "classification": label,
        "classification_scores": scores(p),
        "comprehensiveness_classification_scores": scores(without),
        "sufficiency_classification_scores": scores(alone),
        "thresholded_scores": points,
    }


def write_case(case: Case, folder: Path) -> Path:
    """Write a case's report; its page."""
    dataset, systems = write_systems(case, folder)
    settings = ScoreSettings(n_resamples=RESAMPLES, only_predicted=True)
    out = folder / f"report-{case.config}"
    return make_report(
        dataset, config=case.config, split="validation", systems=systems, out=out, settings=settings
    ).page


def open_page(browser: Any, page: Path) -> float:
    """Return the seconds until the page shows its first document."""
    browser.get("about:blank")
    start = time.perf_counter()
    browser.get(page.as_uri())
    while not browser.execute_script(f"return {DOCUMENT_DRAWN}"):
        if time.perf_counter() - start > 60:
            raise TimeoutError(f"{page} did not open in a minute")
        time.sleep(0.005)
    return time.perf_counter() - start


def measure_heights(browser: Any, page: Path) -> list[int]:
    """Return the page's height in pixels in a window of 1280 and of 390 pixels."""
    heights = []
    for width in (1280, 390):
        view_as(browser, width)
        open_page(browser, page)
        heights.append(browser.execute_script("return document.documentElement.scrollHeight"))
    view_as(browser, 1280)
    return heights


def measure(case: Case, page: Path, browser: Any) -> tuple[str, bool]:
    """Return a line of the table, and whether all bars hold."""
    times = [open_page(browser, page) for _ in range(ROUNDS)]
    tasks = [measure_main_thread(browser, page) for _ in range(ROUNDS)]
    heights = measure_heights(browser, page)
    open_page(browser, page)
    findings = browser.execute_script("return document.querySelector('.findings').getBoundingClientRect().bottom")
    size = page.stat().st_size / 1e6
    held = max(tasks) < SECONDS and size < MEGABYTES and max(heights) < PIXELS and findings < SCREEN
    line = (
        f"| {case.systems} | {case.instances:,} | {case.config} | {size:.1f} MB | {max(times):.2f} s | "
        f"{max(tasks):.2f} s | {heights[0]:,} | {heights[1]:,} | {findings:.0f} | {'held' if held else 'MISSED'} |\n"
    )
    return line, held


def write_systems(case: Case, folder: Path) -> tuple[Path, list[System]]:
    """Build a case's corpus, and write its predictions; the dataset, and its systems."""
    corpus = write_corpus(folder / "corpora", case.config, case.scale)
    hub = folder / "hub"
    HUB_DATASETS["eraser"].build([case.config], out=hub, source=corpus.parent)
    split = read_split(hub / "eraser", case.config, "validation")
    systems = [
        System(f"system {n + 1}", (write_predictions(split, folder / f"{case.config}.{n}.jsonl", case.instances, n),))
        for n in range(case.systems)
    ]
    return hub / "eraser", systems


def measure_main_thread(browser: Any, page: Path) -> float:
    """Return the seconds of processor time of the page's main thread until it shows what it should."""
    browser.get("about:blank")
    before = read_task_seconds(browser)
    open_page(browser, page)
    after = read_task_seconds(browser)
    return after - before if after > before else after  # a process of its own starts at 0


def read_task_seconds(browser: Any) -> float:
    browser.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
    metrics = browser.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
    return float(next(one["value"] for one in metrics if one["name"] == "TaskDuration"))


def main() -> int:
    if missing := missing_programs():
        print(f"skipped: no {' and no '.join(missing)}", file=sys.stderr)
        return 0
    text = (
        f"## Large reports\n\n`python -m benchmarks.reports` ({platform.machine()}, Python "
        f"{platform.python_version()}, headless Chromium; slowest of {ROUNDS} openings; bars: {SECONDS:.0f} s of "
        f"the main thread's processor time, {MEGABYTES:.0f} MB, {PIXELS:,} pixels at both widths, findings within "
        f"{SCREEN:,} pixels; load of the machine's {os.cpu_count()} cores {os.getloadavg()[0]:.1f})\n\n"
        "| systems | instances | size of | page | opens in | main thread | pixels at 1280 | at 390 | findings end at "
        "| bars |\n"
        "|--:|--:|---|--:|--:|--:|--:|--:|--:|---|\n"
    )
    good = True
    for case in CASES:
        with tempfile.TemporaryDirectory() as folder, headless_browser() as browser:
            line, held = measure(case, write_case(case, Path(folder)), browser)
        print(line, flush=True)
        text, good = text + line, good and held
    RESULTS.write_text(text, encoding="utf-8")
    print(text)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
