"""How fast a report of 10,000 instances opens, beside one of 10 with the same texts, in headless Chromium.

Open = from navigation until the first document is drawn. Bar: under two seconds.

    python -m benchmarks.reports [--instances 10000] [--tokens 327]
"""

from __future__ import annotations

import argparse
import platform
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from eraser_hub.reports.documents import index_documents
from eraser_hub.reports.marked_instances import MarkedDocument, MarkedInstance
from eraser_hub.reports.page import ReportContent, write_report

RESULTS = Path(__file__).with_name("results_reports.md")
BAR = 2.0
ROUNDS = 5


def instances(count: int, tokens: int) -> Iterator[list[MarkedInstance]]:
    """Instances of two systems with spans and soft scores; the defaults are FEVER's length."""
    draw = random.Random(0)
    words = [f"word{i}" for i in range(5000)]
    for i in range(count):
        sentences, left = [], tokens
        while left:
            size = min(left, draw.randint(8, 30))
            sentences.append(tuple(draw.choices(words, k=size)))
            left -= size
        gold, said = draw.randrange(tokens - 20), draw.randrange(tokens - 20)
        soft = tuple(draw.random() for _ in range(tokens))
        document = MarkedDocument(f"doc{i}", tuple(sentences), ((gold, gold + 10, 0),), ((said, said + 9),), soft)
        probabilities = {"POS": 0.7, "NEG": 0.3}
        yield [MarkedInstance(f"instance_{i}", "a query", "NEG", (document,), "POS", probabilities, 1)] * 2


def page(path: Path, count: int, tokens: int) -> int:
    """Write a report of that many instances; its size in bytes."""
    browsed = index_documents(instances(count, tokens), ["one", "two"], ["NEG", "POS"])
    draw = random.Random(1)
    values = [{key: [draw.random() for _ in range(count)] for key in ("auprc", "sufficiency")} for _ in range(2)]
    write_report(path, ReportContent("t", "", [], browsed, values))
    return path.stat().st_size


def opened(browser, path: Path) -> float:
    """Seconds until the first document of the page is drawn."""
    browser.get("about:blank")
    start = time.perf_counter()
    browser.get(path.as_uri())
    while not browser.execute_script("return document.querySelector('#documents .text p') !== null"):
        if time.perf_counter() - start > 60:
            raise TimeoutError(f"{path} did not open in a minute")
        time.sleep(0.005)
    return time.perf_counter() - start


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--instances", type=int, default=10_000)
    parser.add_argument("--tokens", type=int, default=327)
    asked = parser.parse_args()
    if shutil.which("chromium") is None or shutil.which("chromedriver") is None:
        print("skipped: no chromium or no chromedriver", file=sys.stderr)
        return 0
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    with tempfile.TemporaryDirectory() as folder:
        small, large = Path(folder) / "small.html", Path(folder) / "large.html"
        page(small, 10, asked.tokens)
        size = page(large, asked.instances, asked.tokens)
        browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
        try:
            # in turns, so that whatever else the machine does falls on both
            times = [(opened(browser, small), opened(browser, large)) for _ in range(ROUNDS)]
        finally:
            browser.quit()
    first, worst = times[0][1], max(two for _, two in times)
    ratio = sorted(two / one for one, two in times)[ROUNDS // 2]
    text = (
        f"## A report of {asked.instances:,} instances\n\n`python -m benchmarks.reports` "
        f"({platform.machine()}, Python {platform.python_version()}, headless Chromium)\n\n"
        f"| instances | tokens each | systems | page | first opening | slowest of {ROUNDS} | "
        "against a page of 10 | bar |\n"
        "|---|---|---|---|---|---|---|---|\n"
        f"| {asked.instances:,} | {asked.tokens} | 2 | {size / 1e6:.1f} MB | {first:.2f} s | {worst:.2f} s | "
        f"{ratio:.1f} times as long | {BAR:.0f} s: {'held' if worst < BAR else 'MISSED'} |\n"
    )
    RESULTS.write_text(text, encoding="utf-8")
    print(text)
    return 0 if worst < BAR else 1


if __name__ == "__main__":
    sys.exit(main())
