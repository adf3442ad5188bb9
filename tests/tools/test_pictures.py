"""Pictures: those of the dataset cards are checked in and small; a page is taken in both widths and themes."""

from __future__ import annotations

import io
from importlib.resources import files

import pytest

from eraser_hub.conversion import list_datasets
from eraser_hub.reports.highlight import highlight
from tools.browser import VIEWS, take_views
from tools.pictures import DOCUMENT_IMAGES, SHOWN, card_picture, open_file

CARDS = files("eraser_hub.datasets_scripts").joinpath("cards")


@pytest.mark.unit
def test_cards_and_documents_have_small_pictures():
    assert set(SHOWN) <= set(list_datasets())
    assert {path.stem for path in DOCUMENT_IMAGES.glob("*.png")} == {"documents", "highlight", "report"}
    for path in (*(CARDS.joinpath(f"{name}.png") for name in SHOWN), *DOCUMENT_IMAGES.glob("*.png")):
        content = path.read_bytes()
        assert content.startswith(b"\x89PNG") and 2_000 < len(content) < 150_000


@pytest.mark.browser
def test_a_highlight_is_drawn_whole(browser, tmp_path):
    image = pytest.importorskip("PIL.Image", reason="skipped: no pillow")
    row = {"annotation_id": "a", "query": "", "classification": "POS"}
    row["evidences"] = [[{"docid": "d", "start_token": 1, "end_token": 2}]]
    heights = []
    for lines in (1, 61):
        path = tmp_path / f"{lines}.png"
        document = {"docid": "d", "text": "\n".join(["a fine film"] * lines)}
        card_picture(browser, highlight({**row, "documents": [document]}, fold=False), path)
        heights.append(image.open(path).height)
    assert heights[1] > heights[0] + 60 * 20, "what lies below the window is in the picture"


@pytest.mark.browser
def test_a_page_is_taken_in_both_widths_and_themes(browser, tmp_path):
    image = pytest.importorskip("PIL.Image", reason="skipped: no pillow")
    page = tmp_path / "page.html"
    page.write_text(
        '<!DOCTYPE html><meta name="viewport" content="width=device-width">'
        '<style>:root { color-scheme: light dark }</style><p id="there">x'
    )
    paths = take_views(browser, "page", tmp_path, lambda: open_file(browser, page, "#there"))
    assert [path.name for path in paths] == [f"page-{width}-{scheme}.png" for width, scheme in VIEWS]
    for path, (width, scheme) in zip(paths, VIEWS, strict=True):
        picture = image.open(io.BytesIO(path.read_bytes())).convert("L")
        assert picture.width == width and (picture.getpixel((0, 0)) > 128) == (scheme == "light")
