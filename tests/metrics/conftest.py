"""The metrics' Spaces, as `evaluate` loads them."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def spaces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the Space of every metric."""
    from eraser_hub.publishing.spaces import build_metrics

    out = tmp_path_factory.mktemp("spaces")
    build_metrics(out)
    return out
