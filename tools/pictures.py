"""Pictures of what a browsing person sees, all out of the bundled samples: ``make screenshots``, ``make pictures``.

Report, board and metric Spaces go to a folder of views, in a wide and a narrow window, in a light and a dark theme.
Beside the cards go a highlighted rationale for each dataset, and each Space's page. The documents' own pictures, in
docs/images, are `make pictures`.
"""

from __future__ import annotations

import sys
import tempfile
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

from eraser_hub import samples
from eraser_hub.conversion import get_dataset
from eraser_hub.publishing.spaces import build_metrics, get_metrics_folder, list_metric_names
from eraser_hub.reports.board import board
from eraser_hub.reports.highlight import Highlight, highlight
from eraser_hub.reports.marks import mark_pair, pair_rows, read_answers
from eraser_hub.reports.report_page import ReportFiles, make_report
from eraser_hub.scoring.runs import parse_systems
from eraser_hub.scoring.scored_split import ScoredSplit, read_split

from .browser import headless_browser, open_page, picture, running_apps, take_views, view_as, wait_for

# dataset -> the config, split and row that its card shows
SHOWN = {
    "bilingual_perturbation": ("senti_en", "test", None),
    "eraser": ("movies", "validation", None),
    "human_rationales": ("sst", "validation", None),
}
DOCUMENT_IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
_STYLE = "margin:0;padding:1rem 1.4rem;width:max-content;max-width:44rem;background:#fff;color:#1c1c1c"
_PAPER = f'<!DOCTYPE html><html lang="en"><meta charset="utf-8"><body style="{_STYLE}">'


def show(split: ScoredSplit, identity: str | None = None, predictions: Path | None = None) -> Highlight:
    """Highlight a row of a split, by default the first; of the perturbation benchmark the first pair."""
    if split.kind == "perturbation":
        return Highlight({"": mark_pair(pair_rows(split.rows)[0], None, split.labels.names)})
    row = next(row for row in split.rows if identity in (None, row["annotation_id"]))
    answer = None if predictions is None else read_answers(split, predictions)[row["annotation_id"]]
    return highlight(row, answer, label_names=split.labels.names)


def card_picture(browser: Any, shown: Highlight, path: Path) -> None:
    """Save what `highlight` draws in a notebook as a PNG."""
    with tempfile.NamedTemporaryFile("w", suffix=".html", encoding="utf-8") as page:
        page.write(_PAPER + shown._repr_html_())
        page.flush()
        view_as(browser, scheme="light")
        browser.get(Path(page.name).as_uri())
        path.write_bytes(picture(browser, "body"))


def dataset_pictures(browser: Any, hub: Path, cards: Path) -> list[Path]:
    """A highlighted rationale for each dataset's card, ``NAME.png`` beside it.

    Args:
        browser: as of `headless_browser`.
        hub: the built samples.
        cards: the folder of the cards.
    """
    paths = []
    for name, (config, split, identity) in SHOWN.items():
        paths.append(cards / f"{name}.png")
        card_picture(browser, show(read_split(hub / name, config, split), identity), paths[-1])
    return paths


def sample_report(hub: Path) -> ReportFiles:
    """Write the report on the two sample predictions for movies."""
    predictions = samples.path("predictions", "eraser")
    systems = parse_systems(
        [f"ours={predictions / 'movies.val.jsonl'}", f"baseline={predictions / 'movies.val.baseline.jsonl'}"]
    )
    return make_report(hub / "eraser", config="movies", split="validation", systems=systems, out=hub / "report")


def document_pictures(browser: Any, hub: Path, images: Path) -> list[Path]:
    """Save the pictures of README.md and docs/: the top of a report, its documents, and a highlighted text.

    Args:
        browser: as of `headless_browser`.
        hub: the built samples.
        images: the folder of the pictures.
    """
    page = sample_report(hub).page
    taken = []
    for name, width, selector, height in (("report", 720, "body", 640), ("documents", 1100, "#browser", 640)):
        view_as(browser, width, "light")
        open_file(browser, page, "#documents .text")
        taken.append(images / f"{name}.png")
        taken[-1].write_bytes(picture(browser, selector, height))
    config, split, identity = SHOWN["eraser"]
    predictions = samples.path("predictions", "eraser") / "movies.val.jsonl"
    taken.append(images / "highlight.png")
    card_picture(browser, show(read_split(hub / "eraser", config, split), identity, predictions), taken[-1])
    return taken


def page_pictures(browser: Any, hub: Path, views: Path) -> list[Path]:
    """The views of a report on movies, and of a board that has its scores.

    Raises:
        DataError: a page does not show its content.
    """
    report = sample_report(hub)

    def unfold() -> None:
        open_file(browser, report.page, "html[data-ready] #documents .text")
        browser.execute_script("document.querySelectorAll('main details').forEach(one => { one.open = true; })")

    board_page, _ = board([str(path) for path in report.score_files], out=hub / "board").files
    taken = []
    for name, page, content in (
        ("report", report.page, "#documents .text"),
        ("board", board_page, "table"),
    ):
        taken += take_views(browser, name, views, partial(open_file, browser, page, content))
    taken += take_views(browser, "report-unfolded", views, unfold)
    return taken


def open_file(browser: Any, page: Path, content: str) -> None:
    """Open a page from disk and wait until it shows an element."""
    browser.get(page.as_uri())
    wait_for(browser, lambda shown: shown.find_elements("css selector", content), content)


def space_pictures(browser: Any, views: Path, names: list[str] | None = None, cards: Path | None = None) -> list[Path]:
    """Save each metric's page with its example's result: its views, and ``NAME.png`` beside its card.

    Args:
        browser: as of `headless_browser`.
        views: a folder for the views of `take_views`.
        names: the metrics; all by default.
        cards: the folder of the cards, by default the package's own.

    Raises:
        DataError: a page does not show its result; its card keeps the picture that it has.
    """
    cards = cards or get_metrics_folder() / "cards"
    names = names or list_metric_names()
    for name in names:
        _provide_pictures(name, cards)
    pictures = []
    with tempfile.TemporaryDirectory() as place:
        folders = build_metrics(place, names)
        with running_apps(folders) as urls:
            for name, url in zip(names, urls, strict=True):
                views_of = take_views(browser, name, views, partial(open_page, browser, url))
                (cards / f"{name}.png").write_bytes(views_of[0].read_bytes())
                pictures += [*views_of, cards / f"{name}.png"]
    return pictures


def _provide_pictures(name: str, cards: Path) -> None:
    """A card may show the picture that is only about to be made: an empty one lets its Space be built."""
    picture = cards / f"{name}.png"
    if not picture.exists():
        picture.write_bytes(b"")


def main() -> None:
    """Take all pictures; the argument is the folder of views, or `documents` for those of docs/images alone."""
    argument = sys.argv[1] if len(sys.argv) > 1 else "build/screenshots"
    with tempfile.TemporaryDirectory() as place, headless_browser() as browser:
        for name in SHOWN:
            get_dataset(name).build(None, out=Path(place), source=samples.path(name))
        if argument == "documents":
            pictures = document_pictures(browser, Path(place), DOCUMENT_IMAGES)
        else:
            views = Path(argument)
            views.mkdir(parents=True, exist_ok=True)
            cards = Path(str(files("eraser_hub.datasets_scripts").joinpath("cards")))
            pictures = dataset_pictures(browser, Path(place), cards)
            pictures += page_pictures(browser, Path(place), views)
            pictures += space_pictures(browser, views)
    for path in pictures:
        print(path, path.stat().st_size)


if __name__ == "__main__":
    main()
