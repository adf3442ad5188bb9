"""A dataset of the samples to ask about."""

from __future__ import annotations

from pathlib import Path

import pytest

from eraser_hub.conversion import get_dataset


@pytest.fixture(scope="session")
def hub(tmp_path_factory: pytest.TempPathFactory, samples: Path) -> Path:
    """The samples' ``eraser``, built."""
    out = tmp_path_factory.mktemp("hub")
    get_dataset("eraser").build(["movies", "esnli", "fever"], out=out, source=samples / "eraser")
    return out / "eraser"
