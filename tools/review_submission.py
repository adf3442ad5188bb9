"""Review a pull request at a board's submissions: ``python -m tools.review_submission ORG/NAME --revision refs/pr/1``.

The submissions that differ from the main branch's are scored as ``eraser-hub board --from-hub`` scores them. Printed
are their lines, the errors that the request adds, and the submissions that it lacks. With ``--comment`` the same text
is also posted to the request; the token, of HF_TOKEN, needs no more than the right to discuss. The exit status is 1 if
there is an error or no line. .github/workflows/submission.yml runs this by hand.
"""

from __future__ import annotations

import argparse
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from eraser_hub.publishing.publisher import Publisher, client
from eraser_hub.records.errors import DataError
from eraser_hub.reports.board import collect_board_lines, make_board_tables
from eraser_hub.reports.board_lines import BoardLine
from eraser_hub.reports.boards.repository import list_submissions, score_repository
from eraser_hub.scoring.settings import ScoreSettings

_REQUEST = re.compile(r"refs/pr/([1-9]\d{0,8})")


@dataclass
class Review:
    """What a pull request does to a board.

    Attributes:
        lines: the lines that it adds or changes.
        errors: what a board says of the request and not of the main branch.
        absent: the places of the main branch's submissions that it lacks: merged after it was opened, or removed by it.
    """

    lines: list[BoardLine] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)

    @property
    def sound(self) -> bool:
        """Whether the request adds lines and no errors."""
        return bool(self.lines) and not self.errors

    def __str__(self) -> str:
        parts = [*self.errors]
        if self.lines:
            parts += [make_board_tables(self.lines).written("text"), "", *(line.detail for line in self.lines)]
        elif not self.errors:
            parts.append("expected a new or a changed submission, found none")
        if self.absent:
            parts.append(f"not in this request (merged after it, or removed by it): {', '.join(self.absent)}")
        return "\n".join(parts)


def review(repository: str, revision: str, dataset: Path, *, cache: Path | None = None) -> Review:
    """Score the submissions of a pull request that differ from those of the main branch.

    Args:
        repository: ``ORG/NAME`` of the submissions on the Hub.
        revision: ``refs/pr/NUMBER``.
        dataset: the built dataset with the gold: a folder, or an id on the Hub.
        cache: as of `score_repository`.

    Raises:
        DataError: another revision; no such repository or request.
    """
    find_request(revision)
    known, said, settings = list[str](), list[str](), ScoreSettings(confidence_level=0.95)
    before = list_submissions(repository, known.append)
    after = list_submissions(f"{repository}@{revision.replace('/', '%2F')}", lambda words: None)
    changed = [place for place, files in after.places.items() if files != before.places.get(place)]
    place = f"{repository}@{after.commit}"
    lines = score_repository(place, dataset=dataset, settings=settings, say=said.append, cache=cache, only=changed)
    errors = [words for words in said if words not in known]
    absent = [place for place in before.places if place not in after.places]
    return Review(collect_board_lines(lines, published=False), errors, absent)


def find_request(revision: str) -> int:
    """Return the number of a pull request's revision.

    >>> find_request("refs/pr/12")
    12

    Raises:
        DataError: it is none of a pull request.
    """
    match = _REQUEST.fullmatch(revision)
    if match is None:
        raise DataError(f"expected refs/pr/NUMBER, found {revision!r}", rule="option-value", argument="revision")
    return int(match[1])


def write_comment(review: Review) -> str:
    """Return the text of a comment: an indented block, in which no name or message is taken as Markdown."""
    block = "\n".join(f"    {line}".rstrip() for line in str(review).splitlines())
    head = "The line on the board:" if review.sound else "This is not on the board as it is:"
    return f"{head}\n\n{block}\n"


def post(review: Review, repository: str, revision: str) -> None:
    """Post a review as a comment on its request.

    Raises:
        DataError: what the Hub refuses.
    """
    publisher = Publisher(client(None, None), lambda words: print(words, file=sys.stderr))
    number, call = find_request(revision), cast(Any, publisher.api.comment_discussion)
    publisher.attempt(f"comment on {revision}", call, repository, number, write_comment(review), repo_type="dataset")


def main(arguments: list[str] | None = None) -> int:
    """Print the review of a request, and post it if asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("repository", help="ORG/NAME of the submissions on the Hub")
    parser.add_argument("--revision", required=True, help="the request: refs/pr/NUMBER")
    parser.add_argument(
        "--dataset", type=Path, default=Path("hub/eraser"), help="the gold: a folder, or an id of the Hub"
    )
    parser.add_argument("--comment", action="store_true", help="also post the text to the request")
    given = parser.parse_args(arguments)
    try:
        found = review(given.repository, given.revision, given.dataset)
        print(found)
        if given.comment:
            post(found, given.repository, given.revision)
    except DataError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0 if found.sound else 1


if __name__ == "__main__":
    sys.exit(main())
