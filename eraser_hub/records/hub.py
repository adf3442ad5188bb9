"""A dataset's folder, wherever it is: here, or on the Hub, from where it is fetched into the Hub library's cache.

place_of("hub/eraser")                          Place("hub/eraser", None, None)             a folder
place_of("org/eraser@v2")                       Place("org/eraser", "org/eraser", "v2")     a dataset of the Hub
place_of("hf://datasets/org/eraser@v2")         the same
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

from .errors import DataError, get_first_line

_NAME = r"([A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*)(?:@([^/]+))?/?"
# a Path makes one stroke of the two behind "hf:"
_ADDRESS = re.compile(rf"hf:/{{1,2}}datasets/{_NAME}")
_ID = re.compile(_NAME)
# files that builds write; other files of a repository are not read
BUILT = ("*.md", "*.json", "*.yaml", "*.png", "*.parquet", "licenses/*")


class Place(NamedTuple):
    """Location of a dataset.

    Attributes:
        name: the name that the caller gave.
        repository: its id on the Hub; None for a folder.
        revision: a branch, a tag or a commit of it.
    """

    name: str
    repository: str | None
    revision: str | None

    @property
    def dataset(self) -> str:
        """The name of the dataset without its folder or namespace: ``eraser``."""
        return (self.repository or str(Path(self.name).resolve())).rpartition("/")[2]

    def fetch(self, patterns: Sequence[str] = BUILT) -> Path:
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
        wanted = list(dict.fromkeys([*patterns, "README.md"]))
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

    An existing folder comes first, then a dataset of the Hub (``org/name``, ``hf://datasets/org/name``; a revision may
    follow behind ``@``), then a folder that does not exist.

    Args:
        dataset: the caller's name of the dataset.
    """
    name = os.fspath(dataset)
    match = None
    if not os.path.lexists(name):
        match = _ADDRESS.fullmatch(name) or _ID.fullmatch(name)
    if match is None:
        return Place(name, None, None)
    at = match[2]
    return Place(name, match[1], unquote(at) if at else None)
