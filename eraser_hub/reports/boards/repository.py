"""A repository of submissions: a dataset of the Hub, or a folder of the same form, and the board's lines of it."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from datetime import timezone
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from eraser_hub.conversion.download.fetch import get_cache_folder
from eraser_hub.publishing.publisher import Publisher, client
from eraser_hub.records.built import open_built
from eraser_hub.records.errors import DataError, show
from eraser_hub.records.hub import find_place
from eraser_hub.scoring.runs import System
from eraser_hub.scoring.scored_split import read_split
from eraser_hub.scoring.settings import ScoreSettings

from ..board_lines import BoardLine, score_submissions
from .submissions import (
    CARD,
    MOST_CARD_BYTES,
    PREDICTIONS,
    Submission,
    check_size,
    check_submission,
    list_places,
    parse_place,
    read_submissions,
    read_system_yaml,
    refuse_duplicates,
)

MOST_PLACES = 1_000
MOST_FILES = 10 * MOST_PLACES
MOST_BYTES_OF_ALL = 5_000_000_000
Say = Callable[[str], None]
_COST = re.compile(r"(\d{1,3}(?:,\d{3}){1,4}(?![\d,])|\d{1,15}(?:\.\d{1,9})?)(?: ([^\W\d_][^;]{0,59}))?")


class RemoteFile(NamedTuple):
    """Size in bytes, and digest, of a file on the Hub."""

    size: int
    digest: str


@dataclass(frozen=True)
class Listing:
    """The submissions of one commit of a repository on the Hub.

    Attributes:
        name: ``ORG/NAME``.
        commit: the commit.
        places: ``CONFIG.SPLIT/SYSTEM`` -> path -> file.
        publisher: the client of the Hub.
    """

    name: str
    commit: str
    places: Mapping[str, Mapping[str, RemoteFile]]
    publisher: Publisher

    def fetch(self, folder: Path, places: Collection[str], names: Collection[str] = (CARD, *PREDICTIONS)) -> None:
        """Download the files of these names of some submissions into a folder.

        Raises:
            DataError: one of them cannot be read.
        """
        download: Any = self.publisher.api.hf_hub_download
        of: dict[str, Any] = {"repo_type": "dataset", "revision": self.commit, "local_dir": str(folder)}
        for path in (path for place in places for path in self.places[place] if path.rpartition("/")[2] in names):
            self.publisher.attempt(f"read {path} of {self.name}", download, self.name, path, **of)

    def find_dates(self, places: Collection[str]) -> dict[str, str]:
        """Return when the predictions of some places were last changed, in UTC; places without a date are left out.

        Raises:
            DataError: the repository cannot be asked.
        """
        ask: Any = self.publisher.api.get_paths_info
        paths = {path: place for place in places for path in self.places[place] if not path.endswith(CARD)}
        of: dict[str, Any] = {"repo_type": "dataset", "revision": self.commit, "expand": True}
        rows = self.publisher.attempt(f"list {self.name}", ask, self.name, list(paths), **of) if paths else []
        made = {row.path: row.last_commit.date.astimezone(timezone.utc) for row in rows if row.last_commit}
        return {paths[path]: date.strftime("%Y-%m-%dT%H:%M:%SZ") for path, date in made.items()}

    def read_accepted(self, folder: Path, places: Collection[str]) -> list[Submission]:
        """Return the other submissions of the groups of some places, without predictions; broken ones do not count.

        Raises:
            DataError: a description cannot be downloaded.
        """
        groups = {place.partition("/")[0] for place in places}
        others = [one for one in self.places if one.partition("/")[0] in groups and one not in places]
        self.fetch(folder, others, [CARD])
        accepted = list[Submission]()
        for place in others:
            with suppress(DataError):
                system = read_system_yaml(folder / place / CARD)
                accepted.append(Submission(place, *parse_place(place), system, folder, self.get_digest(place)))
        return accepted

    def get_digest(self, place: str) -> str:
        """Return the digest of a submission's predictions on the Hub."""
        return next((file.digest for path, file in self.places[place].items() if not path.endswith(CARD)), "")


def score_repository(
    repository: str,
    *,
    dataset: Path,
    settings: ScoreSettings,
    say: Say,
    cache: Path | None = None,
    only: Collection[str] | None = None,
    texts: int = 0,
) -> list[BoardLine]:
    """Return a verified line for each sound submission of a repository; a line names every other one.

    Args:
        repository: ``ORG/NAME`` on the Hub, with ``@REVISION`` behind it or not, or a folder.
        dataset: the built dataset with the gold, of which the repository may know nothing.
        settings: how the submissions are scored.
        say: receives the line of each submission that is not shown.
        cache: the folder of outcomes; by default one in the cache of downloads.
        texts: as of `score_submissions`.
        only: the places on the Hub to score; the other submissions are sound already, and keep their names.

    Raises:
        DataError: there is no such repository, or it cannot be reached.
    """
    cache = get_cache_folder() / "submissions" if cache is None else cache
    built, lines, groups = open_built(dataset), list[BoardLine](), dict[tuple[str, str], list[Submission]]()
    sound, accepted, prefix = list[Submission](), list[Submission](), ""
    digests, dates = dict[str, str](), dict[str, str]()
    with ExitStack() as stack:
        if os.path.isdir(repository):
            folder, places = Path(repository), list_places(Path(repository))
        else:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="eraser-hub-")))
            listing, prefix = list_submissions(repository, say), f"{folder}{os.sep}"
            places = list(listing.places if only is None else only)
            listing.fetch(folder, places)
            dates = listing.find_dates(places)
            if only is not None:
                accepted = listing.read_accepted(folder, places)
                digests = {place: listing.get_digest(place) for place in places}
        # files of the Hub are named by their place there
        for one in read_submissions(folder, places, lambda words: say(words.replace(prefix, "") if prefix else words)):
            if one.config not in built.configs or one.split not in built.splits(one.config):
                say(f"not on the board: {one.place}: expected a config and a split of {dataset}, found another")
                continue
            try:
                check_submission(one, built.folder, built.data_digest(one.config, one.split), cache)
            except DataError as error:
                say(f"not on the board: {error}")
                continue
            sound.append(replace(one, digest=digests.get(one.place, "")))
        kept, repeated = refuse_duplicates(sound, accepted)  # a broken one takes no name
        for other in repeated:
            say(f"not on the board: {other}")
        for one in kept:
            groups.setdefault((one.config, one.split), []).append(one)
        for (config, split), own in groups.items():
            systems = [System(one.system.name, (one.predictions,)) for one in own]
            scored = score_submissions(systems, read_split(dataset, config, split), settings, texts)
            for line, one in zip(scored, own, strict=True):
                lines.append(replace(describe(line, one), date=dates.get(one.place, "")))
    return lines


def describe(line: BoardLine, submission: Submission) -> BoardLine:
    """Return a line with what its submission says of the system."""
    system = submission.system
    words = [
        f"by {', '.join(system.authors)}",
        f"trained on {system.trained_on}",
        f"licence {system.license}",
        *(f"{name} {value}" for name, value in (("erasing", system.erasing), ("cost", system.cost)) if value),
        *([f"seeds {', '.join(map(str, system.seeds))}"] if system.seeds else []),
        *([system.link] if system.link else []),
    ]
    detail = f"{line.detail} · {'; '.join(words)}"
    return replace(line, source="a submission, scored here", detail=detail, cost=parse_cost(system.cost or ""))


def parse_cost(text: str) -> tuple[float, str] | None:
    """Return the number and the unit with which the text of a cost begins; None if it begins with no number.

    >>> parse_cost("1,200 forward passes")
    (1200.0, 'forward passes')
    >>> parse_cost("a GPU for a day")
    """
    match = _COST.fullmatch(text.strip())
    return (float(match[1].replace(",", "")), (match[2] or "").strip()) if match else None


def check_repository(repository: str, argument: str) -> None:
    """Raise a DataError if a name is that of no repository on the Hub, and of no folder."""
    if not os.path.isdir(repository) and find_place(repository).repository is None:
        words = f"expected ORG/NAME of the Hub, or a folder, found {show(repository)}"
        raise DataError(words, rule="option-value", argument=argument)


def list_submissions(repository: str, say: Say) -> Listing:
    """List the submissions of a repository of the Hub; a line names each that is too large or misplaced.

    Raises:
        DataError: the repository cannot be listed, or has too many submissions or bytes.
    """
    from huggingface_hub.hf_api import RepoFile

    check_repository(repository, "from_hub")
    place = find_place(repository)
    name = place.repository or repository
    publisher = Publisher(client(None, None, writes=False), say)
    api: Any = publisher.api
    what = f"list {name}"
    # a branch may move between listing and downloads
    commit = publisher.attempt(what, lambda: api.dataset_info(name, revision=place.revision).sha)
    of: dict[str, Any] = {"repo_type": "dataset", "revision": commit}
    rows = publisher.attempt(what, lambda: [*islice(api.list_repo_tree(name, recursive=True, **of), MOST_FILES + 1)])
    files = {
        row.path: RemoteFile(row.size, row.lfs.sha256 if row.lfs else row.blob_id)
        for row in rows
        if isinstance(row, RepoFile) and not row.path.startswith(".")
    }
    if len(rows) > MOST_FILES:
        raise DataError(f"expected at most {MOST_FILES:,} files and folders", rule="size-limit", file=name)
    places = dict[str, dict[str, RemoteFile]]()
    for path in sorted(files):
        if path.count("/"):
            places.setdefault("/".join(path.split("/")[:2]), {})[path] = files[path]
    for own in list(places):
        try:
            _check_files(own, places[own])
        except DataError as error:
            say(f"not on the board: {error}")
            del places[own]
    if len(places) > MOST_PLACES:
        words = f"expected at most {MOST_PLACES:,} submissions, found {len(places):,}"
        raise DataError(words, rule="size-limit", file=name)
    if (total := sum(file.size for own in places.values() for file in own.values())) > MOST_BYTES_OF_ALL:
        words = f"expected at most {MOST_BYTES_OF_ALL:,} bytes, found {total:,}"
        raise DataError(words, rule="size-limit", file=name)
    return Listing(name, commit, places, publisher)


def _check_files(place: str, files: Mapping[str, RemoteFile]) -> None:
    """Raise a DataError if a submission has a wrong place, another file than the two, or a file that is too large."""
    parse_place(place)
    known = {f"{place}/{name}" for name in (CARD, *PREDICTIONS)}
    for path, file in files.items():
        if path not in known:
            raise DataError(f"expected {CARD} and predictions alone", rule="file-kind", file=path)
        if path.endswith(CARD) and file.size > MOST_CARD_BYTES:
            raise DataError(f"expected at most {MOST_CARD_BYTES:,} bytes", rule="size-limit", file=path)
        check_size(path, file.size)
