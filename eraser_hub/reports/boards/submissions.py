"""Submissions to a board: a folder for each, in a dataset repository or on disk, and the check of one.

    CONFIG.SPLIT/SYSTEM/system.yaml               name, authors, licence, .. (`schema.submission.SystemRecord`)
    CONFIG.SPLIT/SYSTEM/predictions.jsonl         or predictions.parquet: instances, never numbers

A submission is checked in a process of its own, with limits of time, memory and files, and nothing of it is executed.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from eraser_hub.conversion.eraser.corpus_yaml import load_yaml_values
from eraser_hub.conversion.typed import convert_type
from eraser_hub.metrics.unknown_fields import find_similar
from eraser_hub.records.atomic import atomic_write
from eraser_hub.records.digests import compute_file_digest
from eraser_hub.records.errors import DataError, show
from eraser_hub.records.lines import read_utf8_file, wrap_read_errors
from eraser_hub.records.splits import dataset_split
from eraser_hub.schema.submission import SYSTEM, SystemRecord
from eraser_hub.version import __version__

CARD = "system.yaml"
PREDICTIONS = ("predictions.jsonl", "predictions.parquet")
MOST_BYTES = 200_000_000  # of predictions
MOST_CARD_BYTES = 1 << 16
MOST_NAME = 100
MOST_TEXT = 500
SECONDS = 600
MEMORY = 8 << 30
_FOLDER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}")
_GROUP = re.compile(r"([A-Za-z0-9][A-Za-z0-9_-]{0,95})\.([A-Za-z0-9_]{1,60})")
_LINK = re.compile(r"https?://[^\s<>\"'`]{1,500}")
_DATA_DIGEST = re.compile(r"[0-9a-f]{12,64}")
_LICENSE = re.compile(r"[a-z0-9][a-z0-9.-]{0,60}")
_OUT_OF_MEMORY = re.compile(r"[\w.]*MemoryError\b")


@dataclass(frozen=True)
class Submission:
    """One submission.

    Attributes:
        place: ``CONFIG.SPLIT/SYSTEM``.
        config, split: what the predictions answer.
        system: what system.yaml says.
        predictions: their file.
        digest: the digest of the file, if it is known without reading it.
    """

    place: str
    config: str
    split: str
    system: SystemRecord
    predictions: Path
    digest: str = ""


def read_system_yaml(path: Path) -> SystemRecord:
    """Read the description of a system.

    Raises:
        DataError: the file is too large, no YAML, has a key that it should not have, or lacks one.
    """
    with wrap_read_errors(path):
        if path.stat().st_size > MOST_CARD_BYTES:
            raise DataError(f"expected at most {MOST_CARD_BYTES:,} bytes", rule="size-limit", file=path)
        values, lines = load_yaml_values(read_utf8_file(str(path)).decode("utf-8"), path)
    for key in values:
        if key not in SYSTEM:
            hint = f": did you mean {near!r}?" if (near := find_similar(key, tuple(SYSTEM))) else ""
            words = f"expected the keys {', '.join(SYSTEM)} alone, found {show(key)}{hint}"
            raise DataError(words, rule="key-unknown", file=path, line=lines[key])
    for key, field in SYSTEM.items():
        if field.required and not values.get(key):
            raise DataError(f"expected the key {key}, found none", rule="key-missing", file=path, field=key)
    digest = values.get("data_digest", "")
    if "data_digest" in values and not (isinstance(digest, str) and _DATA_DIGEST.fullmatch(digest)):
        words = f"expected 12 to 64 of the digits 0-9a-f, or no such line, found {show(digest)}"
        words += " (quote it: YAML reads digits alone as a number)" if type(digest) is int else ""
        raise DataError(words, rule="choice", file=path, line=lines["data_digest"], field="data_digest")
    try:
        system: SystemRecord = convert_type(values, SystemRecord)
    except DataError as error:
        raise error.at(file=path) from None
    _check_words(system, path)
    return system


def _check_words(system: SystemRecord, path: Path) -> None:
    """Refuse texts that a reader could mistake, and links that are none."""
    for field, text in (("name", system.name), *(("authors", one) for one in system.authors)):
        _check_text(text, MOST_NAME, path, field)
        if "<" in text or ">" in text or text != text.strip():
            words = f"expected a name without < and >, and no blanks around it, found {show(text)}"
            raise DataError(words, rule="choice", file=path, field=field)
    for field in ("trained_on", "erasing", "cost"):
        _check_text(getattr(system, field) or "", MOST_TEXT, path, field)
    if system.link is not None and not _LINK.fullmatch(system.link):
        raise DataError(f"expected an address, found {show(system.link)}", rule="choice", file=path, field="link")
    if not _LICENSE.fullmatch(system.license):
        words = f"expected the Hub's name of a licence, as cc-by-4.0, found {show(system.license)}"
        raise DataError(words, rule="choice", file=path, field="license")


def _check_text(text: str, most: int, path: Path, field: str) -> None:
    """Refuse a text that is long, or has characters that control a terminal or turn the direction of text."""
    if len(text) > most or any(unicodedata.category(one)[0] == "C" or one in "\u2028\u2029" for one in text):
        words = f"expected up to {most} printable characters on one line, found {show(text)}"
        raise DataError(words, rule="text", file=path, field=field)


def parse_place(place: str) -> tuple[str, str]:
    """Return the config and the split of ``CONFIG.SPLIT/SYSTEM``.

    Raises:
        DataError: it has another form.
    """
    group, _, system = place.partition("/")
    match = _GROUP.fullmatch(group)
    if match is None or not _FOLDER.fullmatch(system):
        words = "expected CONFIG.SPLIT/SYSTEM of letters, digits, '.', '_' and '-'"
        raise DataError(words, rule="file-name", file=place)
    return match[1], dataset_split(match[2])


def read_submission(folder: Path, place: str) -> Submission:
    """Read the submission in ``folder/place``, without its predictions.

    Raises:
        DataError: a wrong name, a link, another file than the two, a file that is too large, or a wrong system.yaml.
    """
    config, split = parse_place(place)
    target = folder / place
    names = sorted(entry.name for entry in os.scandir(target))
    predictions = [name for name in names if name in PREDICTIONS]
    if CARD not in names or len(predictions) != 1 or len(names) != 2:
        listed = ", ".join(map(show, names[:6])) or "none"
        expected = f"expected {CARD} and one of {', '.join(PREDICTIONS)}"
        raise DataError(f"{expected}, found {listed}", rule="file-missing", file=place)
    for name in names:
        if (target / name).is_symlink() or not (target / name).is_file():
            raise DataError("expected a file, found a link or a folder", rule="file-kind", file=f"{place}/{name}")
    size = (target / predictions[0]).stat().st_size
    check_size(f"{place}/{predictions[0]}", size)
    return Submission(place, config, split, read_system_yaml(target / CARD), target / predictions[0])


def check_size(path: str, size: int) -> None:
    """Raise a DataError if a file of predictions is too large."""
    if size > MOST_BYTES:
        words = f"expected at most {MOST_BYTES:,} bytes, found {size:,}"
        raise DataError(words, rule="size-limit", file=path)


def normalize_name(name: str) -> str:
    """Return a system's name in the form by which names are the same."""
    return unicodedata.normalize("NFKC", name).casefold()


def refuse_duplicates(
    submissions: Iterable[Submission], accepted: Iterable[Submission] = ()
) -> tuple[list[Submission], list[DataError]]:
    """Return the submissions, and an error for each that repeats a name or the predictions of an earlier one.

    Args:
        submissions: the submissions.
        accepted: earlier ones, which are not returned.
    """
    kept, errors, taken = list[Submission](), list[DataError](), dict[tuple[str, ...], str]()

    def make_keys(one: Submission, digest: str) -> list[tuple[str, ...]]:
        own = ("name", normalize_name(one.system.name)), ("predictions", digest)
        return [(what, value, one.config, one.split) for what, value in own]

    for one in accepted:
        taken |= dict.fromkeys(make_keys(one, one.digest), one.place)
    for one in submissions:
        keys = make_keys(one, one.digest or compute_file_digest(one.predictions))
        earlier = next((key for key in keys if key in taken), None)
        if earlier is None:
            kept.append(one)
            taken |= dict.fromkeys(keys, one.place)
        else:
            words = f"expected another {earlier[0]} than {taken[earlier]}"
            errors.append(DataError(words, rule="id-twice", file=one.place))
    return kept, errors


def check_submission(submission: Submission, dataset: Path, data_digest: str, cache: Path | None = None) -> None:
    """Score a submission in a process of its own; the outcome is kept by the digests of its files and of the data.

    Args:
        submission: the submission.
        dataset: the folder of the built dataset.
        data_digest: the digest of the split.
        cache: the folder of outcomes; None keeps none.

    Raises:
        DataError: what the scorer says of the predictions; the limit that they exceed; another digest of the data.
    """
    claimed = submission.system.data_digest
    if claimed and not data_digest.startswith(claimed):
        words = f"expected predictions for the data {data_digest[:12]}, found {show(claimed)}"
        raise DataError(words, rule="data-mismatch", file=submission.place, field="data_digest")
    file_type = submission.predictions.suffix.lstrip(".")
    key = f"{compute_file_digest(submission.predictions)}-{data_digest[:16]}-{__version__}-{file_type}.json"
    kept = None if cache is None else cache / key
    outcome = None
    if kept is not None:
        with suppress(OSError, msgspec.DecodeError):  # there is none, or the file is damaged
            outcome = msgspec.json.decode(kept.read_bytes(), type=Outcome)
    if outcome is None:
        outcome = _score_apart(submission, dataset)
        if kept is not None and outcome.lasting:
            kept.parent.mkdir(parents=True, exist_ok=True)
            atomic_write(kept, msgspec.json.encode(outcome))
    if outcome.error:
        raise DataError(outcome.error, rule="check", file=submission.place)


class Outcome(msgspec.Struct):
    """The outcome of scoring a file of predictions.

    Attributes:
        error: its error; "" for good predictions.
        lasting: whether it says so each time: a deadline or a full memory may be the machine's.
    """

    error: str
    lasting: bool = True


def _score_apart(submission: Submission, dataset: Path) -> Outcome:
    """Score a submission in a process of its own."""
    words = ["--dataset", str(dataset.resolve()), "--config", submission.config, "--split", submission.split]
    names = ("PATH", "PYTHONPATH", "LANG", "LC_ALL", "HOME", "TMPDIR", "SYSTEMROOT")
    environment = {name: os.environ[name] for name in names if name in os.environ}
    environment |= {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "NO_COLOR": "1"}
    with tempfile.TemporaryDirectory(prefix="eraser-hub-") as aside:
        name = submission.predictions.name
        os.symlink(submission.predictions.resolve(), os.path.join(aside, name))
        command = [sys.executable, "-m", "eraser_hub", "score", *words, "--predictions", name, "--out", "scores.json"]
        options: dict[str, Any] = {"preexec_fn": _limit} if os.name == "posix" else {}
        try:
            done = subprocess.run(
                command, cwd=aside, env=environment, capture_output=True, timeout=SECONDS, check=False, **options
            )
        except subprocess.TimeoutExpired:
            return Outcome(f"not scored within {SECONDS} s", lasting=False)
    return parse_outcome(done.returncode, done.stderr.decode("utf-8", "replace"), name)


def parse_outcome(returncode: int, stderr: str, name: str) -> Outcome:
    """Return what the scorer's exit status and messages say of the file of predictions ``name``.

    Only a success and an error that names the file are the predictions' own.
    """
    if returncode == 0:
        return Outcome("")
    lines = stderr.strip().splitlines() or [f"exit status {returncode}"]
    crashed = lines[0].startswith("Traceback (most recent call last)")
    if returncode < 0 or (crashed and _OUT_OF_MEMORY.match(lines[-1])):
        return Outcome(f"not scored within {MEMORY >> 30} GB of memory and {SECONDS} s", lasting=False)
    if crashed:
        return Outcome(f"the scorer ended in an error: {lines[-1][:500]}", lasting=False)
    of_predictions = [line for line in lines if line.startswith(name)]
    return Outcome((of_predictions or lines)[0][:500], lasting=bool(of_predictions))


def _limit() -> None:
    """Limit the process that scores: memory, processor time, and the size of the files that it writes."""
    import resource

    for name, most in (("RLIMIT_AS", MEMORY), ("RLIMIT_CPU", max(1, int(SECONDS))), ("RLIMIT_FSIZE", 1 << 28)):
        resource.setrlimit(getattr(resource, name), (most, most))


def list_places(folder: Path) -> list[str]:
    """Return ``CONFIG.SPLIT/SYSTEM`` of each folder two levels below ``folder``; hidden ones do not count."""
    groups = [entry.name for entry in os.scandir(folder) if entry.is_dir() and not entry.name.startswith(".")]
    return sorted(f"{group}/{entry.name}" for group in groups for entry in os.scandir(folder / group))


def read_submissions(
    folder: Path, places: Sequence[str] | None = None, say: Callable[[str], None] = lambda words: None
) -> list[Submission]:
    """Return the submissions below a folder; a line names each that is none.

    Args:
        folder: the folder of submissions.
        places: the submissions to read; None: all.
        say: receives the line of each error.
    """
    found = list[Submission]()
    for place in list_places(folder) if places is None else places:
        try:
            found.append(read_submission(folder, place))
        except (DataError, OSError) as error:
            say(f"not on the board: {error}")
    return found
