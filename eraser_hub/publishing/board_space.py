"""The Space of the results board, ``hub/results_board``, written as a whole and identified by the digests of its files.

app.py board_scoring.py README.md requirements.txt    the Space's code
index.html board.json feed.xml feed.json        the board, as `eraser-hub board` writes it
settings.json                                   the namespace of its datasets and metrics: empty here, set by `publish`
written.json                                    path -> SHA-256 of the files above, by which `publish` identifies them
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path

from eraser_hub.records.digests import compute_file_digest
from eraser_hub.records.errors import DataError, raise_all

from .spaces import refuse_others, write_space

BOARD, SETTINGS, WRITTEN = "results_board", "settings.json", "written.json"


def write_board_space(folder: Path, files: Mapping[str, str], beside: Callable[[], object]) -> list[Path]:
    """Write the Space's folder at once; files of other names in it are kept.

    Args:
        folder: The folder, e.g. ``hub/results_board``.
        files: Maps a name to its text.
        beside: Writes further files, after the Space is written and before it takes its name: if either fails, neither
            exists.

    Returns:
        The files written.

    Raises:
        DataError: The folder was not written by this function, is a file or a link, or cannot be written; it stays
            unchanged.
    """
    refuse_others(folder, WRITTEN, "eraser-hub board", "space")
    contents = {name: text.encode(errors="replace") for name, text in files.items()}  # as a page is written
    contents[SETTINGS] = b'{"namespace": ""}\n'
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in sorted(contents.items())}
    contents[WRITTEN] = (json.dumps(digests, indent=1) + "\n").encode()
    write_space(folder, contents, contents, beside)
    return [folder / name for name in contents]


def verify_board_space(folder: Path, files: Mapping[str, Path]) -> None:
    """Raise a DataError for each file of the Space that `write_board_space` did not write so.

    Args:
        folder: The folder of the Space.
        files: Maps the path of a file to publish to the file.
    """
    again = "run `eraser-hub board` again"
    try:
        digests = json.loads((folder / WRITTEN).read_bytes())
        names = dict[str, str](digests)
    except FileNotFoundError:
        raise DataError(f"no such file: {again}", rule="file-missing", file=folder / WRITTEN) from None
    except (ValueError, TypeError, RecursionError):
        message = f"expected the digests of the Space's files: {again}"
        raise DataError(message, rule="syntax", file=folder / WRITTEN) from None
    verify_written({path: file for path, file in files.items() if path != WRITTEN}, names, folder, "board")


def verify_written(files: Mapping[str, Path], digests: Mapping[str, str], folder: Path | str, verb: str) -> None:
    """Raise a DataError for each file that a verb did not write so, or not at all, and for each missing file.

    Args:
        files: Maps the path of a file to publish to the file.
        digests: Maps a path to the SHA-256 of the file that the verb wrote.
        folder: The folder that errors name for a missing file.
        verb: The verb of ``eraser-hub``.
    """
    errors = []
    for path in sorted(digests.keys() | files.keys()):
        if path not in digests:
            errors.append(DataError(f"not written by `eraser-hub {verb}`", rule="check", file=files[path]))
        elif path not in files:
            message = f"no such file: run `eraser-hub {verb}` again"
            errors.append(DataError(message, rule="file-missing", file=f"{folder}/{path}"))
        elif compute_file_digest(files[path]) != digests[path]:
            words = f"not as `eraser-hub {verb}` wrote it: run `eraser-hub {verb}` again"
            errors.append(DataError(words, rule="file-changed", file=files[path]))
    raise_all(errors)
