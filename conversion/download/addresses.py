"""Files by address: a local path, ``https://..``, or ``hf://..`` on the Hub."""

from __future__ import annotations

import atexit
import contextlib
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from eraser_hub.records.errors import DataError, get_first_line
from eraser_hub.records.files import RUN_SUFFIX

REMOTE = ("https://", "http://", "hf://")  # the beginnings of addresses of files that must be downloaded

# of an address of the Hub, whose @ stands before a revision otherwise
_HUB_CREDENTIALS = re.compile(r":[^/@]*@|hf_[^/@]*@|[?&]\w*token=")


def fetch_file(address: str) -> Path:
    """Return the path of the file at an address; download a remote one, with its ``.run.json`` if there is one.

    Args:
        address: a path, ``https://HOST/FILE``, or ``hf://datasets/ORG/NAME[@REVISION]/FILE`` (``hf://spaces/..``).

    Raises:
        DataError: the file cannot be downloaded; the message has the address.
    """
    if not address.startswith(REMOTE):
        return Path(address)
    if not address.startswith("hf://"):
        return _fetch_from_web(address)
    if _HUB_CREDENTIALS.search(address):
        message = "expected an address of the Hub without user name, password and token; a token comes from HF_TOKEN"
        raise DataError(message)
    return _fetch_from_hub(address)


def _fetch_from_web(address: str) -> Path:
    from .http import FileNotOnServer, download  # imports ssl, which local files do not need

    folder = Path(tempfile.mkdtemp(prefix="eraser-hub-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = folder / (Path(unquote(urlsplit(address).path)).name or "file")
    download(address, path, name=path.name)
    with contextlib.suppress(FileNotOnServer):
        url = urlsplit(address)
        download(
            url._replace(path=url.path + RUN_SUFFIX).geturl(),
            folder / (path.name + RUN_SUFFIX),
            name=path.name + RUN_SUFFIX,
        )
    return path


def _fetch_from_hub(address: str) -> Path:
    from huggingface_hub import HfFileSystem, hf_hub_download
    from huggingface_hub.errors import EntryNotFoundError

    try:
        place: Any = HfFileSystem().resolve_path(address)  # a bucket has no repository: this raises below

        def fetch(name: str) -> Path:
            return Path(hf_hub_download(place.repo_id, name, repo_type=place.repo_type, revision=place.revision))

        path = fetch(place.path_in_repo)
        with contextlib.suppress(EntryNotFoundError):
            fetch(place.path_in_repo + RUN_SUFFIX)
    except Exception as error:  # huggingface_hub raises many types; their text names the cause
        raise DataError(f"cannot be fetched: {get_first_line(error)}", file=address) from None
    return path
