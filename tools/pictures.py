"""Pictures of what a browsing person sees, all out of the bundled samples: ``make screenshots``, ``make pictures``.

Reports of two and of twenty systems, the board, the metric Spaces and, where `make docs` has built it, the site go to a
folder of views, in a wide and a narrow window, in a light and a dark theme. Beside the cards go a highlighted rationale
for each dataset, and each Space's page. The documents' own pictures, in docs/images, are `make pictures`.
"""

from __future__ import annotations

import json
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import datasets

from eraser_hub import board, highlight, report, samples
from eraser_hub.conversion import get_dataset
from eraser_hub.publishing.spaces import build_metrics, get_metrics_folder, list_metric_names
from eraser_hub.reports.highlight import Highlight
from eraser_hub.reports.marks import join_records, mark_answer, mark_text, pair_records

from .browser import headless_browser, open_page, picture, running_apps, take_views, view_as, wait_for

ROOT = Path(__file__).resolve().parents[1]
DOCUMENT_IMAGES = ROOT / "docs" / "images"
# dataset -> the config and split of which its card shows the first row, or pair
SHOWN = {
    "bilingual_perturbation": ("senti_en", "test"),
    "eraser": ("movies", "validation"),
    "human_rationales": ("sst", "validation"),
}
PREDICTIONS = samples.path("predictions", "eraser")
SYSTEMS = {"ours": PREDICTIONS / "movies.val.jsonl", "baseline": PREDICTIONS / "movies.val.baseline.jsonl"}
STYLE = "margin:0;padding:1rem 1.4rem;width:max-content;max-width:44rem;background:#fff;color:#1c1c1c"
PAPER = f'<!DOCTYPE html><html lang="en"><meta charset="utf-8"><body style="{STYLE}">'


def open_file(browser: Any, page: Path, content: str) -> None:
    """Open a page from disk and wait until it shows an element."""
    browser.get(page.as_uri())
    wait_for(browser, lambda shown: shown.find_elements("css selector", content), content)


def card_picture(browser: Any, shown: Highlight, path: Path) -> None:
    """Save what `highlight` draws in a notebook as a PNG."""
    with tempfile.NamedTemporaryFile("w", suffix=".html", encoding="utf-8") as page:
        page.write(PAPER + shown._repr_html_())
        page.flush()
        view_as(browser, scheme="light")
        browser.get(Path(page.name).as_uri())
        path.write_bytes(picture(browser, "body"))


def highlight_first(hub: Path, name: str, answer: Any = None) -> Highlight:
    """Highlight the first row of a built dataset; of the perturbation benchmark the first pair."""
    config, split = SHOWN[name]
    rows = datasets.load_dataset(str(hub / name), config, split=split, cache_dir=str(hub / "cache"))
    names = next(column.names for column in rows.features.values() if isinstance(column, datasets.ClassLabel))
    if name == "bilingual_perturbation":
        pair = mark_text(join_records(pair_records(rows.to_list())[0][0]), names)
        pair.answers[""] = mark_answer(pair, None)
        return Highlight(pair)
    return highlight(rows[0], answer, label_names=names)


def take_document_pictures(browser: Any, hub: Path) -> list[Path]:
    """Save the pictures of README.md and docs/: the top of a report, its texts, and a highlighted text."""
    page = report(hub / "eraser", SYSTEMS, config="movies", split="validation", out=hub / "report").page
    for name, width, selector, height in (("report", 720, "body", 640), ("documents", 1100, "#view", 640)):
        view_as(browser, width, "light")
        open_file(browser, page, "#text .document")
        (DOCUMENT_IMAGES / f"{name}.png").write_bytes(picture(browser, selector, height))
    answer = json.loads(SYSTEMS["ours"].read_text("utf-8").partition("\n")[0])
    card_picture(browser, highlight_first(hub, "eraser", answer), DOCUMENT_IMAGES / "highlight.png")
    return sorted(DOCUMENT_IMAGES.glob("*.png"))


def take_page_pictures(browser: Any, hub: Path, views: Path) -> list[Path]:
    """Save the views of two reports on movies, of a board that has their scores, and of the site's first page."""
    many = {}
    for number in range(20):  # the two systems, with fewer and fewer of their spans
        many[f"system {number:02}"] = hub / f"{number}.jsonl"
        rows = [json.loads(line) for line in list(SYSTEMS.values())[number % 2].read_text("utf-8").splitlines()]
        for row in rows:
            del row["rationales"][0]["hard_rationale_predictions"][number // 2 + 1 :]
        (hub / f"{number}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    how: dict[str, Any] = {"config": "movies", "split": "validation"}
    two, twenty = (
        report(hub / "eraser", systems, out=hub / f"report-{len(systems)}", **how) for systems in (SYSTEMS, many)
    )
    shown = board([str(path) for path in two.score_files], out=hub / "board").files[0]
    pages = [("report-2", two.page, "#text .document"), ("report-20", twenty.page, "#text .document")]
    pages += [("board", shown, "table"), ("site", ROOT / "site" / "index.html", "main")]
    taken = []
    for name, page, content in pages:
        if page.is_file():
            taken += take_views(browser, name, views, partial(open_file, browser, page, content))
    return taken


def take_space_pictures(browser: Any, hub: Path, views: Path) -> list[Path]:
    """Save each metric's page with its example's result: its views, and ``NAME.png`` beside its card."""
    cards, names = get_metrics_folder() / "cards", list_metric_names()
    for name in names:  # a card may show a picture that is only about to be made: an empty one lets it be built
        (cards / f"{name}.png").touch()
    taken = []
    with running_apps(build_metrics(hub, names)) as urls:
        for name, url in zip(names, urls, strict=True):
            taken += take_views(browser, name, views, partial(open_page, browser, url))
            (cards / f"{name}.png").write_bytes((views / f"{name}-1280-light.png").read_bytes())
    return taken


def main() -> None:
    """Take all pictures; the argument is the folder of views, or `documents` for those of docs/images alone."""
    argument = sys.argv[1] if len(sys.argv) > 1 else "build/screenshots"
    with tempfile.TemporaryDirectory() as place, headless_browser() as browser:
        hub = Path(place)
        for name in SHOWN:
            get_dataset(name).build(None, out=hub, source=samples.path(name))
        if argument == "documents":
            pictures = take_document_pictures(browser, hub)
        else:
            views = Path(argument)
            views.mkdir(parents=True, exist_ok=True)
            for name in SHOWN:
                card_picture(browser, highlight_first(hub, name), ROOT / "datasets_scripts" / "cards" / f"{name}.png")
            pictures = take_page_pictures(browser, hub, views) + take_space_pictures(browser, hub, views)
    for path in pictures:
        print(path, path.stat().st_size)


if __name__ == "__main__":
    main()
