"""The results board's Space, ``hub/results_board``: written as a whole, and known again by the digests of its files.

app.py board.json README.md requirements.txt    what the Space runs and shows
settings.json                                   whose datasets and metrics it takes: empty here, `publish` fills it in
written.json                                    path -> SHA-256 of the files above, by which `publish` knows them
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
    """Write the Space's folder all at once; files of other names in it are people's, and stay.

    Args:
        folder: where to, e.g. ``hub/results_board``.
        files: name -> text.
        beside: writes what belongs to it, once the Space is written and before it takes its name: where either fails,
            neither is there.

    Returns:
        The files written.

    Raises:
        DataError: a folder that is none of this function's, a file or a link in its place, or it cannot be written;
            what stands there is as it was.
    """
    refuse_others(folder, WRITTEN, "eraser-hub board", "space")
    contents = {name: text.encode() for name, text in files.items()}
    contents[SETTINGS] = b'{"namespace": ""}\n'
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in sorted(contents.items())}
    contents[WRITTEN] = (json.dumps(digests, indent=1) + "\n").encode()
    write_space(folder, contents, contents, beside)
    return [folder / name for name in contents]


def verify_board_space(folder: Path, files: Mapping[str, Path]) -> None:
    """Raise a DataError for each file of the Space that is not as `write_board_space` wrote it, or not of it.

    Args:
        folder: the Space's.
        files: path -> file, of what is to be published.
    """
    again = "run `eraser-hub board` again"
    try:
        digests = json.loads((folder / WRITTEN).read_bytes())
        names = dict[str, str](digests)
    except FileNotFoundError:
        raise DataError(f"no such file: {again}", rule="file-missing", file=folder / WRITTEN) from None
    except (ValueError, TypeError):
        message = f"expected the digests of the Space's files: {again}"
        raise DataError(message, rule="syntax", file=folder / WRITTEN) from None
    verify_written({path: file for path, file in files.items() if path != WRITTEN}, names, folder, "board")


def verify_written(files: Mapping[str, Path], digests: Mapping[str, str], folder: Path | str, verb: str) -> None:
    """Raise a DataError for each file that a verb did not write so, or not at all, and for each that is missing.

    Args:
        files: path -> file, of what is to be published.
        digests: path -> SHA-256 of what the verb wrote.
        folder: which errors name for a missing file.
        verb: of ``eraser-hub``.
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
