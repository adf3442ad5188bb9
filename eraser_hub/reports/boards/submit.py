"""Submission of a system's predictions to a board: a check here, the line it becomes, and a pull request on the Hub."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from eraser_hub.conversion.eraser.corpus_yaml import load_yaml_values
from eraser_hub.records.built import open_built
from eraser_hub.records.errors import DataError, show
from eraser_hub.records.hub import find_place
from eraser_hub.records.lines import read_utf8_file
from eraser_hub.records.splits import dataset_split
from eraser_hub.schema.submission import SystemRecord
from eraser_hub.scoring.runs import System
from eraser_hub.scoring.scored_split import read_split
from eraser_hub.scoring.settings import ScoreSettings

from ..board import collect_board_lines
from ..board_lines import BoardLine, score_submissions
from ..catalogue import AGREEMENT, metric
from ..options import SubmitArguments
from .repository import check_repository, describe, score_repository
from .submissions import CARD, PREDICTIONS, Submission, check_size, normalize_name, parse_place, read_system_yaml

WITHHELD = (
    "{dataset} has no gold rationale of {split}: scores of agreement are left out here; if the gold is kept elsewhere, "
    "the board's keeper scores the submission"
)
WITHOUT_GOLD = "{file}: data_digest is that of the data without gold; a board of data with gold refuses it"
_DIGEST = re.compile(r"(^|-)[0-9a-f]{8}$")


@dataclass(frozen=True)
class SubmitResult:
    """Outcome of a submission.

    Attributes:
        place: ``CONFIG.SPLIT/SYSTEM`` in the repository.
        lines: the lines of its config and split, its own among them.
        notes: lines for the user.
        address: the pull request; "" after a dry run.
    """

    place: str
    lines: list[BoardLine]
    notes: list[str]
    address: str = ""


def make_place(config: str, split: str, name: str) -> str:
    """Return the place of a system's submission.

    A name of other characters than a-z, 0-9 and single hyphens gets a digest, so that no two names share a place.

    >>> make_place("movies", "test", "bert-saliency")
    'movies.test/bert-saliency'
    >>> make_place("movies", "test", "BERT + Saliency (ours)")
    'movies.test/bert-saliency-ours-06105c40'
    """
    key = normalize_name(name)
    plain = unicodedata.normalize("NFKD", key).encode("ascii", "ignore").decode()
    slug = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:80]
    if slug != key or _DIGEST.search(slug):
        slug = f"{slug}-{hashlib.sha256(key.encode()).hexdigest()[:8]}".lstrip("-")
    return f"{config}.{split}/{slug}"


def submit(arguments: SubmitArguments) -> SubmitResult:
    """Check a submission here, and open a pull request with it.

    Args:
        arguments: what is submitted, and where to; the repository may be a folder of the same form.

    Raises:
        DataError: what `board` would refuse, or the Hub refuses.
    """
    predictions, system_file, dataset = arguments.predictions, arguments.system, arguments.dataset
    repository, say = arguments.repository, arguments.say or (lambda words: None)
    if predictions.suffix not in (".jsonl", ".parquet"):
        raise DataError("expected a file .jsonl or .parquet", rule="file-name", file=predictions)
    if repository:
        check_repository(repository, "repository")
    system, built = read_system_yaml(system_file), open_built(dataset)
    check_size(str(predictions), predictions.stat().st_size if predictions.is_file() else 0)
    config, split = arguments.config or built.default_config, dataset_split(arguments.split)
    place = make_place(config, split, system.name)
    parse_place(place)
    settings = ScoreSettings(confidence_level=0.95)
    source = read_split(dataset, config, split)
    (line,) = score_submissions([System(system.name, (predictions,))], source, settings)
    digest, withheld = built.data_digest(config, split), line.gold.get("marked_rows") == 0
    claimed = system.data_digest or ""
    # other data may have the gold, and another digest
    if not withheld and not digest.startswith(claimed):
        words = f"expected the data {digest[:12]}, found {claimed[:12]}"
        raise DataError(words, rule="data-mismatch", file=system_file, field="data_digest")
    stated = None if withheld else digest
    submission = Submission(place, config, split, replace(system, data_digest=stated), predictions)
    card = add_digest(system_file, system, stated)
    own, others = describe(line, submission), list[BoardLine]()
    if repository and (not arguments.dry_run or Path(repository).is_dir()):
        others = score_repository(repository, dataset=dataset, settings=settings, say=say)
    for other in others:
        if other.predictions == own.predictions and normalize_name(other.system) != normalize_name(own.system):
            words = f"expected other predictions than those of {show(other.system)}"
            raise DataError(words, rule="id-twice", file=predictions)
    others = [one for one in others if one.system != own.system or (one.dataset, one.split) != (own.dataset, own.split)]
    lines, notes = [own, *others], list(line.notes)
    if withheld:
        # agreement means nothing where no row has a gold
        for at, one in enumerate(lines):
            if (one.dataset, one.data) == (own.dataset, own.data):
                scores = {key: value for key, value in one.scores.items() if metric(key).family != AGREEMENT}
                lines[at] = replace(one, scores=scores)
        notes.append(WITHHELD.format(dataset=dataset, split=split))
        notes += [WITHOUT_GOLD.format(file=system_file)] * (bool(claimed) and digest.startswith(claimed))
    lines = [one for one in collect_board_lines(lines) if (one.dataset, one.split) == (own.dataset, own.split)]
    address = "" if arguments.dry_run else _open_request(submission, card, repository, say)
    return SubmitResult(place, lines, notes, address)


def add_digest(file: Path, system: SystemRecord, digest: str | None) -> str:
    """Return the text of system.yaml with the digest of the data, if it states none and there is one to state.

    Raises:
        DataError: the line cannot be added.
    """
    text = read_utf8_file(str(file)).decode("utf-8").rstrip("\r\n") + "\n"
    if system.data_digest or not digest:
        return text
    text += f"data_digest: {digest}\n"
    try:
        values, _ = load_yaml_values(text, file)
    except DataError:
        values = {}
    if values.get("data_digest") != digest:
        words = f"expected lines of `key: value`, to which a line can be added; add `data_digest: {digest}` yourself"
        raise DataError(words, rule="syntax", file=file)
    return text


def _open_request(submission: Submission, card: str, repository: str, say: Callable[[str], None]) -> str:
    """Commit the two files as a pull request; return its address."""
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete

    from eraser_hub.publishing.publisher import Publisher, client

    place = find_place(repository)
    if place.repository is None:
        raise DataError("expected ORG/NAME of the Hub", rule="option-value", argument="repository")
    name = f"predictions{submission.predictions.suffix}"
    files: list[Any] = [
        CommitOperationAdd(f"{submission.place}/{CARD}", card.encode()),
        CommitOperationAdd(f"{submission.place}/{name}", str(submission.predictions)),
    ]
    publisher = Publisher(client(None, None), say)
    for other in (one for one in PREDICTIONS if one != name):  # of an earlier request, in the other format
        path, exists = f"{submission.place}/{other}", cast(Any, publisher.api.file_exists)
        if publisher.attempt(f"list {place.repository}", exists, place.repository, path, repo_type="dataset"):
            files.append(CommitOperationDelete(path))
    of: dict[str, Any] = {"repo_type": "dataset", "create_pr": True}
    message = f"Submit {submission.system.name} to {submission.config}, {submission.split}"
    what, create = f"open a request at {place.repository}", cast(Any, publisher.api.create_commit)
    made = publisher.attempt(what, create, place.repository, files, commit_message=message, **of)
    return str(made.pr_url)
