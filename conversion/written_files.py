"""The data files that a build wrote, by the digests in its ``release.json``."""

from __future__ import annotations

from pathlib import Path

from eraser_hub.conversion.errors import raise_all
from eraser_hub.records.errors import DataError
from eraser_hub.records.files import compute_file_digest

from .dataset import RELEASE, parse_release


def read_digests(folder: Path) -> dict[str, str]:
    """Return path -> SHA-256 of the Parquet files that the folder's build wrote.

    Raises:
        DataError: there is no ``release.json``, or none that a build wrote.
    """
    release = parse_release(folder)
    digests: dict[str, str] = {}
    try:
        for config, entry in release["configs"].items():
            digests |= entry.get("digests", {})
            for facts in entry["splits"].values():
                digests |= {f"{config}/{name}": digest for name, digest in facts["files"].items()}
    except (KeyError, TypeError, AttributeError):
        message = "expected the digests of the files that build wrote: build the dataset again"
        raise DataError(message, file=folder / RELEASE) from None
    return digests


def is_recorded(folder: Path, path: str) -> bool:
    """Return True if the folder's build wrote a data file; where it kept no digests, it may have written any."""
    try:
        return path in read_digests(folder)
    except DataError:
        return True


def verify_digests(folder: Path) -> None:
    """Raise a DataError if a data file differs from its digest in ``release.json``."""
    digests = read_digests(folder)
    files = (path.relative_to(folder) for path in folder.rglob("*") if path.suffix in (".parquet", ".json"))
    present = {path.as_posix() for path in files if path.as_posix() != RELEASE and not path.name.startswith(".")}
    errors = [DataError("not written by build", file=folder / name) for name in sorted(present - digests.keys())]
    for name, digest in digests.items():
        if not (folder / name).is_file():  # a pipe would never end
            errors.append(DataError("no such file: build again", file=folder / name))
        elif compute_file_digest(folder / name) != digest:
            message = "its content is not what build wrote: build again"
            errors.append(DataError(message, file=folder / name))
    raise_all(errors)
