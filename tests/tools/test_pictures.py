"""Pictures of the dataset cards and of the documents are checked in, and small."""

from __future__ import annotations

from importlib.resources import files

import pytest

from eraser_hub.conversion import list_datasets
from tools.pictures import DOCUMENT_IMAGES, SHOWN

CARDS = files("eraser_hub.datasets_scripts").joinpath("cards")


@pytest.mark.unit
def test_cards_and_documents_have_small_pictures():
    assert set(SHOWN) <= set(list_datasets())
    assert {path.stem for path in DOCUMENT_IMAGES.glob("*.png")} == {"documents", "highlight", "report"}
    for path in (*(CARDS.joinpath(f"{name}.png") for name in SHOWN), *DOCUMENT_IMAGES.glob("*.png")):
        content = path.read_bytes()
        assert content.startswith(b"\x89PNG") and 2_000 < len(content) < 150_000
