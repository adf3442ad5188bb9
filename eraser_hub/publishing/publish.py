"""Publish built folders as repositories on the Hub: changed files only, one commit each, one tag per version.

A run can be repeated at any point: it lists the files on the Hub, uploads those that differ, and sets missing tags. A
repository's files come in one commit, so readers never see half of them. The commit is compared with the folder before
it counts as published.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from eraser_hub.records.errors import DataError, raise_all
from eraser_hub.records.options import as_list

from .eval_results import CARD, FOLDER, check_model, make_results_files
from .options import PublishArguments
from .publisher import Publisher, Say, client
from .uploads import Upload, add_manifest, collect, describe_plan, fill_namespace, read_stamps, verify


def publish(
    what: PublishArguments,
    *,
    results_folder: Path = FOLDER,
    say: Say = print,
    endpoint: str | None = None,
    token: str | None = None,
    pause: float = 1.0,
    source: Path | None = None,
) -> list[str]:
    """Publish built folders under a namespace.

    Args:
        what: The folder, the namespace and the choices. Without datasets, metrics and ``eval_results``, everything that
            is built.
        results_folder: The folder of the models' results (`eval_results.write_eval_results`).
        say: Receives each line: the plan first, the addresses last.
        endpoint: The Hub's address; by default the client's own setting.
        token: The Hub's token; by default the client's own setting.
        pause: Seconds before the first retry of a failed request.
        source: The folder of metric modules, by default the package's own.

    Returns:
        The published addresses; none after a dry run or a check.

    Raises:
        DataError: A folder is not as built or fails its check (nothing is sent then), or the Hub holds other files
            (``check``) or refuses; the message lists what is published, and a further run uploads the rest.
    """
    folder, namespace, check = Path(what.folder), what.namespace, what.check
    datasets, metrics = as_list(what.datasets), as_list(what.metrics)
    with tempfile.TemporaryDirectory(prefix="eraser-hub-") as aside:
        named = bool(datasets or metrics or what.eval_results is None)
        built = collect(folder, namespace, datasets, metrics, source=source) if named else []
        for upload in built:
            verify(upload, folder, source)
        filled = [fill_namespace(upload, namespace, Path(aside) / upload.name) for upload in built]
        uploads = [add_manifest(upload, Path(aside) / upload.name) for upload in filled]
        api = None if what.dry_run else client(endpoint, token, writes=not check)
        options: dict[str, Any] = {"revision": what.revision, "private": what.private, "pause": pause}
        publisher = None if api is None else Publisher(api, say, **options)
        if what.eval_results is not None:
            uploads.append(
                _collect_results(what.eval_results, namespace, publisher, results_folder, Path(aside) / "model")
            )
        different = _find_differences(uploads, publisher, say)
        if publisher is None or check:
            raise_all(different)
            say(
                "what is published is what the folder holds"
                if check
                else "dry run: nothing was asked of the Hub, nothing sent"
            )
            return []
        return _publish_all(uploads, publisher, folder)


def _collect_results(model: str, namespace: str, publisher: Publisher | None, folder: Path, out: Path) -> Upload:
    """Return the upload of a model's results: read below ``folder``, written below ``out``."""
    check_model(model)
    card = "" if publisher is None else publisher.read_text(model, CARD)
    if card is None:
        message = f"there is no model {model} on the Hub (or this token may not see it): upload it first"
        raise DataError(message)
    files = make_results_files(model, namespace, card, out, folder)
    return Upload(model, model, "model", files, (), "", keeps_others=True)


def _find_differences(uploads: Sequence[Upload], publisher: Publisher | None, say: Say) -> list[DataError]:
    """Report the plan of each upload; return an error for each repository that differs from its folder.

    Without a publisher the Hub is not asked.
    """
    errors = []
    for upload in uploads:
        changes = None if publisher is None else publisher.find_changes(upload)
        for line in describe_plan(upload, changes):
            say(line)
        if changes is not None and not changes.exists:
            errors.append(DataError("not published, or this token may not see it", file=upload.repo_id))
        elif changes:
            counts = f"{len(changes.added)} missing, {len(changes.changed)} differ, {len(changes.removed)} too many"
            message = f"what is published is not the folder: of its files {counts}"
            errors.append(DataError(message, file=upload.repo_id))
    return errors


def _publish_all(uploads: Sequence[Upload], publisher: Publisher, folder: Path) -> list[str]:
    """Publish the uploads one after another; return their addresses."""
    addresses: list[str] = []
    for upload in uploads:
        try:
            if read_stamps(upload.stamps) != upload.stamps:
                message = "changed since it was checked: run the same command again"
                raise DataError(message, file=folder / upload.name)
            addresses.append(publisher.publish(upload))
        except DataError as error:
            waiting = [other.repo_id for other in uploads[len(addresses) :]]
            published = f"published: {', '.join(addresses)}; " if addresses else ""
            again = f"{published}not published: {', '.join(waiting)}; the same command uploads the rest"
            raise DataError(f"{error}\n{again}") from None
        publisher.say(f"published {addresses[-1]}")
    return addresses
