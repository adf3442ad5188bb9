"""Publish built folders as repositories on the Hub: changed files only, one commit each, one tag per version.

A run can be repeated at any point: it lists the files on the Hub, uploads those that differ, and sets missing tags. A
repository's files come in one commit, so readers never see half of them. The commit is compared with the folder before
it counts as published.
"""

from __future__ import annotations

import logging
import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from eraser_hub.records.arguments import PYTHON, Place
from eraser_hub.records.errors import DataError, UsageError, add_count, show

if TYPE_CHECKING:
    from .publisher import Publisher
    from .uploads import Upload

log = logging.getLogger("eraser_hub")
NAMESPACE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,94}[A-Za-z0-9])?")
BRANCH = re.compile(r"[A-Za-z0-9][\w./-]{0,200}")


def publish(
    namespace: str,
    folder: Place = "hub",
    *,
    dataset: str | Sequence[str] = (),
    metric: str | Sequence[str] = (),
    private: bool = False,
    dry_run: bool = False,
    check: bool = False,
    eval_results: str | Sequence[str] | Mapping[str, Any] = (),
    revision: Annotated[str, PYTHON] = "main",
    endpoint: Annotated[str | None, PYTHON] = None,
    token: Annotated[str | None, PYTHON] = None,
) -> list[str]:
    """Publish built datasets, metric Spaces and a model's results to the Hub.

    Only changed files are uploaded, in one commit each, with a tag per version. A folder that `check` refuses is not
    sent. The token is the one of `hf auth login` or HF_TOKEN, and is never printed; HF_ENDPOINT names another Hub.

    Args:
        namespace: User or organisation on the Hub: org for org/eraser.
        folder: Folder that `build` wrote.
        dataset: Dataset to publish; repeat it for several. Without datasets, metrics and results: all that is built.
        metric: Metric to publish; repeat it for several.
        private: Create new repositories as private ones.
        dry_run: Check and print the plan, without network.
        check: Compare the Hub with the folder, and send nothing.
        eval_results: ORG/MODEL=FILE, a score file, for the Hub's leaderboards; repeat it for several.
        revision: branch to publish to; only main gets tags.
        endpoint: address of another Hub.
        token: token in place of the one that is stored.

    Returns:
        The addresses of the published repositories; of a dry run or a check the lines of its report.

    Raises:
        DataError: a folder is not as built or fails its check (nothing is sent then), the Hub holds something else
            (``check``), or refuses. The error names what was published, and running again uploads the rest.

    Examples:
        >>> from eraser_hub import publish
        >>> publish("org", "hub", dataset="eraser", dry_run=True)[-1]
        'dry run: nothing was asked of the Hub, nothing sent'

        $ eraser-hub publish --namespace org --dataset eraser --metric eraser_agreement --dry-run
        $ eraser-hub publish --namespace org --eval-results my-org/my-model=scores.json --dry-run
    """
    if not NAMESPACE.fullmatch(namespace) or re.search(r"--|\.\.", namespace):
        message = f"expected the name of a user or organisation, found {show(namespace)}"
        raise UsageError(message, argument="namespace")
    if not BRANCH.fullmatch(revision) or ".." in revision:
        raise UsageError(f"expected the name of a branch, found {show(revision)}", argument="revision")
    if check and dry_run:
        raise UsageError("asks the Hub, which `dry_run` does not", argument="check")
    return publish_folder(
        Path(folder),
        namespace,
        [dataset] if isinstance(dataset, str) else list(dataset),
        [metric] if isinstance(metric, str) else list(metric),
        parse_results(eval_results),
        revision=revision,
        private=private,
        dry_run=dry_run,
        check=check,
        endpoint=endpoint,
        token=token,
    )


def parse_results(results: str | Sequence[str] | Mapping[str, Any]) -> dict[str, list[Path]]:
    """Return the score files of each model: of ``ORG/MODEL=FILE``, or of a mapping.

    >>> parse_results(["lab/lstm=a.json", "lab/lstm=b.json"])["lab/lstm"] == [Path("a.json"), Path("b.json")]
    True
    """
    if isinstance(results, Mapping):
        listed = {model: [files] if isinstance(files, str | os.PathLike) else files for model, files in results.items()}
        return {model: list(map(Path, files)) for model, files in listed.items()}
    found: dict[str, list[Path]] = {}
    for text in [results] if isinstance(results, str) else results:
        model, equals, file = text.partition("=")
        if not equals:
            raise UsageError(f"expected ORG/MODEL=FILE, found {show(text)}", argument="eval_results")
        found.setdefault(model, []).append(Path(file))
    return found


def publish_folder(
    folder: Path,
    namespace: str,
    datasets: Sequence[str],
    metrics: Sequence[str],
    results: Mapping[str, Sequence[Path]],
    *,
    revision: str = "main",
    private: bool = False,
    dry_run: bool = False,
    check: bool = False,
    endpoint: str | None = None,
    token: str | None = None,
    pause: float = 1.0,
    source: Path | None = None,
) -> list[str]:
    """Publish built folders, and models' results (score files by model); arguments and errors as of `publish`.

    ``pause`` is the number of seconds before the first retry of a failed request, ``source`` the folder of metric
    modules, by default the package's own.
    """
    from .publisher import Publisher, client
    from .uploads import add_manifest, collect, describe_plan, fill_namespace, verify

    with tempfile.TemporaryDirectory(prefix="eraser-hub-") as aside:
        named = bool(datasets or metrics or not results)
        built = collect(folder, namespace, datasets, metrics, source=source) if named else []
        for upload in built:
            verify(upload, folder, source)
        filled = [fill_namespace(upload, namespace, Path(aside) / upload.name) for upload in built]
        uploads = [add_manifest(upload, Path(aside) / upload.name) for upload in filled]
        api = None if dry_run else client(endpoint, token, writes=not check)
        publisher = None if api is None else Publisher(api, revision=revision, private=private, pause=pause)
        for number, (model, files) in enumerate(results.items()):
            uploads.append(collect_results(model, files, namespace, publisher, Path(aside) / f"model-{number}"))
        lines: list[str] = []
        different: list[DataError] = []
        for upload in uploads:
            changes = None if publisher is None else publisher.find_changes(upload)
            lines += describe_plan(upload, changes)
            if changes is not None and not changes.exists:
                different.append(DataError("not published, or this token may not see it", file=upload.repo_id))
            elif changes:
                counts = f"{len(changes.added)} missing, {len(changes.changed)} differ, {len(changes.removed)} too many"
                message = f"what is published is not the folder: of its files {counts}"
                different.append(DataError(message, file=upload.repo_id))
            if publisher is None and upload.kind == "model":
                lines += [line for path in upload.files.values() for line in path.read_text("utf-8").splitlines()]
        if publisher is None:
            return [*lines, "dry run: nothing was asked of the Hub, nothing sent"]
        if check and not different:
            return [*lines, "what is published is what the folder holds"]
        for line in lines:
            log.info(line)
        if check:
            raise add_count(different[0], len(different))
        return publish_all(uploads, publisher, folder)


def collect_results(
    model: str, files: Sequence[Path], namespace: str, publisher: Publisher | None, out: Path
) -> Upload:
    """Return the upload of a model's results, written below ``out``; without a publisher the Hub is not asked."""
    from .eval_results import check_model, make_results_files
    from .uploads import Upload

    def read(path: str) -> str:
        if publisher is None:
            return ""
        text = publisher.read_text(model, path)
        if text is None:
            message = f"there is no model {model} on the Hub (or this token may not see it): upload it first"
            raise DataError(message)
        return text

    check_model(model)
    return Upload(
        model, model, "model", make_results_files(model, files, namespace, read, out), (), "", keeps_others=True
    )


def publish_all(uploads: Sequence[Upload], publisher: Publisher, folder: Path) -> list[str]:
    """Publish the uploads one after another; return their addresses."""
    from .uploads import read_stamps

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
        log.info(f"published {addresses[-1]}")
    return addresses
