"""Publish built folders as repositories of the Hub, and a model's scores in its own.

Each folder is copied, the copy is checked, and the copy is uploaded: a build that runs meanwhile changes nothing of it.
"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from eraser_hub.records.arguments import PYTHON, Place
from eraser_hub.records.errors import DataError
from eraser_hub.version import __version__

log = logging.getLogger("eraser_hub")


def publish(
    namespace: str,
    folder: Place = "hub",
    *,
    dataset: str | Sequence[str] = (),
    metric: str | Sequence[str] = (),
    private: bool = False,
    dry_run: bool = False,
    allow_sample: bool = False,
    eval_results: str | Sequence[str] = (),
    revision: Annotated[str, PYTHON] = "main",
    endpoint: Annotated[str | None, PYTHON] = None,
    token: Annotated[str | None, PYTHON] = None,
) -> list[str]:
    """Publish built datasets, metric Spaces and a model's results to the Hub.

    Changed files alone are uploaded, and the version becomes a tag. A folder that `check` refuses is not sent. The
    token is the one of `hf auth login` or HF_TOKEN, and is never printed; HF_ENDPOINT names another Hub.

    Args:
        namespace: User or organisation on the Hub: org for org/eraser.
        folder: Folder that `build` wrote.
        dataset: Dataset to publish; repeat it for several. Without datasets, metrics and results: all that is built.
        metric: Metric to publish; repeat it for several.
        private: Create new repositories as private ones.
        dry_run: Print which files would be added, changed and deleted, and send nothing.
        allow_sample: Publish a dataset that is a sample, or a part of the release.
        eval_results: ORG/MODEL=FILE, a score file, for the Hub's leaderboards; repeat it for several.
        revision: branch to publish to; only main gets tags.
        endpoint: address of another Hub.
        token: token in place of the one that is stored.

    Returns:
        The addresses of the published repositories; of a dry run the lines of its plan.

    Raises:
        DataError: a folder is not as built or fails its check (nothing is sent then), or the Hub refuses. The error
            names what was published before, and running again uploads the rest.

    Examples:
        >>> from eraser_hub import publish
        >>> publish("org", "hub", dataset="eraser", dry_run=True)[-1]
        'dry run: nothing was sent, nothing compared (HF_HUB_OFFLINE is set)'

        $ eraser-hub publish --namespace org --dataset eraser --metric eraser_agreement --dry-run
        $ eraser-hub publish --namespace org --eval-results my-org/my-model=scores.json --dry-run
    """
    if "/" in namespace:
        raise DataError(f"expected a user or an organisation of the Hub, found {namespace}", argument="namespace")
    import huggingface_hub
    from huggingface_hub.utils import logging as hub_logging

    from .eval_results import parse_results, stage_results
    from .hub import compare, describe_plan, explain_errors, list_published, upload
    from .staging import find_built, stage_dataset, stage_space

    folder, results = Path(folder), parse_results([eval_results] if isinstance(eval_results, str) else eval_results)
    datasets = [dataset] if isinstance(dataset, str) else list(dataset)
    metrics = [metric] if isinstance(metric, str) else list(metric)
    built = find_built(folder)
    if unknown := {*datasets, *metrics} - {*built[0], *built[1]}:
        listed = ", ".join([*built[0], *built[1]]) or "none"
        message = f"expected a folder that `eraser-hub build` wrote ({listed}), found none"
        raise DataError(message, file=folder / min(unknown))
    if not (datasets or metrics or results):
        datasets, metrics = built
        if not datasets and not metrics:
            raise DataError("expected folders that `eraser-hub build` wrote, found none", file=folder)
    # its warnings repeat our errors, and name addresses that hold signatures
    hub_logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    api = huggingface_hub.HfApi(endpoint=endpoint, token=token, library_name="eraser-hub", library_version=__version__)
    is_offline = dry_run and huggingface_hub.constants.HF_HUB_OFFLINE
    plan: list[str] = []
    addresses: list[str] = []
    with tempfile.TemporaryDirectory(prefix="eraser-hub-") as temporary:
        place = Path(temporary)
        repositories = [
            *(stage_dataset(folder / name, namespace, place, allow_sample, dry_run) for name in datasets),
            *(stage_space(folder / name, namespace, place) for name in metrics),
            *(stage_results(model, files, namespace, place) for model, files in results.items()),
        ]
        for repository in repositories:
            with explain_errors(api, repository.repo_id, addresses):
                changes = compare(repository, {} if is_offline else list_published(api, repository, revision))
                plan += (lines := describe_plan(repository, changes))
                if not dry_run:
                    log.info("\n".join(lines))
                    addresses.append(upload(api, repository, changes, revision, private))
    if dry_run:
        return [*plan, f"dry run: nothing was sent{', nothing compared (HF_HUB_OFFLINE is set)' if is_offline else ''}"]
    return addresses
