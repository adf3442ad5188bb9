"""Built folders -> repositories on the Hub: changed files only, one commit each, a tag per version.

A run can be repeated at any point: it lists what the Hub holds, uploads what differs, and sets the tags that are
missing. A repository's files come in one commit, so that no reader meets half of them, and the commit is compared with
the folder before it is called published.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from eraser_hub.records.errors import DataError, raise_all

from .eval_results import CARD, FOLDER, check_model, results_files
from .hub_errors import Refusal, redacted
from .publisher import Publisher, Say, client
from .uploads import Stamps, Upload, collect, compare, filled, plan_lines, stamps_of, verify

COLLECTION = "Human rationales: datasets, metrics, results"


@dataclass(frozen=True, slots=True)
class Checked:
    """Uploads that `verify` passed.

    Attributes:
        uploads: with the namespace filled in.
        built: name -> the files as they lie in the folder.
        stamps: name -> their sizes and times when they were checked.
    """

    uploads: list[Upload]
    built: Mapping[str, Upload]
    stamps: Mapping[str, Stamps]


def publish(
    folder: str | os.PathLike[str],
    namespace: str,
    *,
    datasets: Sequence[str] | None = None,
    metrics: Sequence[str] | None = None,
    eval_results: str | None = None,
    results_folder: Path = FOLDER,
    private: bool = False,
    revision: str = "main",
    dry_run: bool = False,
    check: bool = False,
    collection: bool = True,
    say: Say = print,
    endpoint: str | None = None,
    token: str | None = None,
    pause: float = 1.0,
    source: Path | None = None,
) -> list[str]:
    """Publish built folders under a namespace.

    Args:
        folder: what ``build`` wrote into, e.g. ``hub``.
        namespace: the user or organisation on the Hub.
        datasets, metrics: names; all that is built when neither is given, nor ``eval_results``. The board's Space counts
            as a metric, ``results_board``.
        eval_results: ``ORG/MODEL``, whose results (`eval_results.write_eval_results`) go to the model's repository.
        results_folder: where these lie.
        private: create repositories that do not exist yet as private ones.
        revision: the branch; tags are set for ``main`` alone.
        dry_run: check and print the plan, ask nothing of the Hub.
        check: compare what the Hub holds with the folder, and send nothing.
        collection: put datasets and Spaces into a collection of the namespace, on ``main`` alone.
        say: takes each line: the plan first, the addresses last.
        endpoint, token: of the Hub, by default the client's own settings.
        pause: seconds before the first further try of a failed request.
        source: the folder of metric modules, by default the package's own.

    Returns:
        The addresses of what was published; none after a dry run or a check.

    Raises:
        DataError: a folder is not as built or fails its check (nothing is sent then), the Hub holds something else
            (``check``), or refuses; what had been published by then is said, and running again uploads the rest.
    """
    folder = Path(folder)
    with tempfile.TemporaryDirectory(prefix="eraser-hub-") as aside:
        named = bool(datasets or metrics or eval_results is None)
        uploads = collect(folder, namespace, datasets, metrics, source=source) if named else []
        checked = _checked(uploads, folder, namespace, Path(aside), source)
        api = None if dry_run else client(endpoint, token, writes=not check)
        publisher = None if api is None else Publisher(api, say, revision=revision, private=private, pause=pause)
        if eval_results is not None:
            checked.uploads.append(
                _results(eval_results, namespace, (results_folder, Path(aside) / "model"), publisher)
            )
        different = _differences(checked.uploads, publisher, say)
        if publisher is None or check:
            raise_all(different)
            say(
                "what is published is what the folder holds"
                if check
                else "dry run: nothing was asked of the Hub, nothing sent"
            )
            return []
        addresses = _send(checked, publisher, folder)
        if collection and revision == "main" and uploads:
            publisher.collect(namespace, COLLECTION, checked.uploads)
        return addresses


def _checked(uploads: Sequence[Upload], folder: Path, namespace: str, aside: Path, source: Path | None) -> Checked:
    """Verify all, and fill the namespace in."""
    stamps = {}
    for upload in uploads:
        stamps[upload.name] = stamps_of(upload)
        verify(upload, folder, source)
    ready = [filled(upload, namespace, aside / upload.name) for upload in uploads]
    return Checked(ready, {upload.name: upload for upload in uploads}, stamps)


def _results(model: str, namespace: str, place: tuple[Path, Path], publisher: Publisher | None) -> Upload:
    """The upload of a model's results: below ``place[0]`` as they were written, below ``place[1]`` as they are sent."""
    check_model(model)
    card = "" if publisher is None else publisher.text(model, CARD)
    if card is None:
        raise DataError(f"there is no model {model} on the Hub (or this token may not see it): upload it first")
    files = results_files(model, namespace, card, place[1], place[0])
    return Upload(model, model, "model", files, (), "", keeps_others=True)


def _differences(uploads: Sequence[Upload], publisher: Publisher | None, say: Say) -> list[DataError]:
    """Say the plan of each upload; an error for each repository that does not hold what the folder does. Without a publisher
    none is asked."""
    errors = []
    for upload in uploads:
        remote = None if publisher is None else publisher.remote(upload)
        changes = None if publisher is None else compare(upload, remote or {})
        for line in plan_lines(upload, changes):
            say(line)
        if publisher is not None and remote is None:
            errors.append(DataError("not published, or this token may not see it", file=upload.repo_id))
        elif changes:
            counts = f"{len(changes.added)} missing, {len(changes.changed)} differ, {len(changes.removed)} too many"
            errors.append(DataError(f"what is published is not the folder: of its files {counts}", file=upload.repo_id))
    return errors


def _send(checked: Checked, publisher: Publisher, folder: Path) -> list[str]:
    """Publish one after another; their addresses."""
    addresses: list[str] = []
    for upload in checked.uploads:
        try:
            built = checked.built.get(upload.name)
            if built is not None and stamps_of(built) != checked.stamps[upload.name]:
                raise DataError("changed since it was checked: run the same command again", file=folder / upload.name)
            addresses.append(publisher.publish(upload))
        except DataError as error:
            waiting = [other.repo_id for other in checked.uploads[len(addresses) :]]
            done = f"published: {', '.join(addresses)}; " if addresses else ""
            again = f"{done}not published: {', '.join(waiting)}; the same command uploads the rest"
            raise DataError(f"{error}\n{again}") from None
        publisher.say(f"published {addresses[-1]}")
    return addresses


__all__ = ["Publisher", "Refusal", "Upload", "collect", "compare", "publish", "redacted", "verify"]
