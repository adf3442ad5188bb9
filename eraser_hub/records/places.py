"""What ``--dataset`` names, found by looking, and the two names of a split.

find_place("hub/eraser")                        Place("hub/eraser", None, None)             a folder, or a file
find_place("org/eraser@v2")                     Place("org/eraser", "org/eraser", "v2")     a dataset of the Hub
find_place("hf://datasets/org/eraser@v2")       the same
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Literal, NamedTuple
from urllib.parse import unquote

from .errors import DataError, get_first_line

HUB_ID = r"([A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*)(?:@([^/]+))?/?"
# a Path makes one stroke of the two behind "hf:"
ADDRESS = re.compile(rf"(?:hf:/{{1,2}}datasets/)?{HUB_ID}")
CARD = "README.md"
HUB = "hub"  # the folder into which `build` builds where it is told no other
# files that builds write; other files of a repository are not read
BUILT_FILES = ("*.md", "*.json", "*.yaml", "*.png", "*.parquet")
# the releases say "val", the Hub says "validation"; both are understood everywhere
DATASET_SPLITS, RELEASE_SPLITS = {"val": "validation"}, {"validation": "val"}


class Place(NamedTuple):
    """Location of a dataset.

    Attributes:
        name: the name that the caller gave.
        repository: its id on the Hub; None for what is here.
        revision: a branch, a tag or a commit of it.
    """

    name: str
    repository: str | None
    revision: str | None

    @property
    def kind(self) -> Literal["built", "raw", "rows"]:
        """What it is by looking: a file of rows, a corpus as released (by its documents), or else a built dataset."""
        if self.repository is None and os.path.isfile(self.name):
            return "rows"
        is_raw = any(os.path.exists(os.path.join(self.name, documents)) for documents in ("docs", "docs.jsonl"))
        return "raw" if self.repository is None and is_raw else "built"

    @property
    def dataset(self) -> str:
        """The name of the dataset without its folder or namespace: ``eraser``."""
        return (self.repository or str(Path(self.name).resolve())).rpartition("/")[2]

    def fetch(self, patterns: Sequence[str] = BUILT_FILES) -> Path:
        """Return the folder with the files of these patterns: the local folder, or the Hub library's cache.

        Raises:
            DataError: the Hub has no such dataset or revision, or cannot be reached and the cache does not have it.
        """
        if self.repository is None:
            return Path(self.name)
        from huggingface_hub import snapshot_download
        from huggingface_hub.utils import disable_progress_bars  # type: ignore[attr-defined]  # exported when asked for

        disable_progress_bars()
        # with a file that is there: the library warns of patterns that match none
        wanted = list(dict.fromkeys([*patterns, CARD]))
        try:
            folder = snapshot_download(
                self.repository, repo_type="dataset", revision=self.revision, allow_patterns=wanted
            )
        except Exception as error:  # the library raises many kinds, its HTTP client's among them
            message = f"no folder of that name is here, and the Hub does not give it ({get_first_line(error)})"
            raise DataError(message, file=self.name) from error
        return Path(folder)


def find_place(dataset: str | PathLike[str]) -> Place:
    """Return the place that a ``--dataset`` names.

    What exists here comes first, then a folder of the name in hub/, then a dataset of the Hub (``org/name``,
    ``hf://datasets/org/name``; a revision may follow behind ``@``), then a folder that does not exist.
    """
    name = os.fspath(dataset)
    if "/" not in name and not os.path.lexists(name) and os.path.isfile(os.path.join(HUB, name, CARD)):
        name = f"{HUB}/{name}"
    is_here = os.path.lexists(name) or name.startswith(f"{HUB}/")
    match = None if is_here else ADDRESS.fullmatch(name)
    if match is None:
        return Place(name, None, None)
    return Place(name, match[1], unquote(match[2]) if match[2] else None)


def dataset_split(name: str) -> str:
    """Return the split's name in a Hub dataset (``val`` -> ``validation``; any other name stays as it is)."""
    return DATASET_SPLITS.get(name, name)


def release_split(name: str) -> str:
    """Return the split's name in a release's files (``validation`` -> ``val``; any other name stays as it is)."""
    return RELEASE_SPLITS.get(name, name)
