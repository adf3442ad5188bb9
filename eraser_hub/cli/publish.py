"""``eraser-hub publish``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer


def publish(
    namespace: Annotated[str, typer.Option(help="The user or organisation on the Hub, e.g. `org` for `org/eraser`.")],
    folder: Annotated[Path, typer.Option("--dir", help="The folder that `build` wrote.")] = Path("hub"),
    dataset: Annotated[list[str] | None, typer.Option(help="Publish this dataset. May be given again.")] = None,
    metric: Annotated[list[str] | None, typer.Option(help="Publish this metric. May be given again.")] = None,
    private: Annotated[bool, typer.Option("--private", help="Create new repositories as private ones.")] = False,
    revision: Annotated[str, typer.Option(help="The branch to publish to; tags are set for main alone.")] = "main",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check and print the plan, without network.")] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Compare what is published with the folder, and send nothing.")
    ] = False,
    eval_results: Annotated[
        str | None,
        typer.Option(
            help="ORG/MODEL: send this model's results, which `score --eval-results` wrote, to its repository."
        ),
    ] = None,
    collection: Annotated[bool, typer.Option(help="Put it all into a collection of the namespace.")] = True,
) -> None:
    """Publish the built datasets, metric Spaces and results board: changed files only, one commit each, a tag per
    version.

        eraser-hub publish --namespace org --dry-run

        eraser-hub publish --namespace org

        eraser-hub publish --namespace org --dataset eraser --metric eraser_agreement --private

        eraser-hub publish --namespace org --check

        eraser-hub publish --namespace org --eval-results my-org/my-model

    The board of `board --space hub/results_board` is the metric `results_board`. What `check` does not pass is refused.
    The token is the one of `hf auth login` or HF_TOKEN, and is never printed. A run that failed can be run again: it
    uploads the rest. HF_ENDPOINT names another Hub.
    """
    if not re.fullmatch(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,94}[A-Za-z0-9])?", namespace) or re.search(
        r"--|\.\.", namespace
    ):
        raise typer.BadParameter(
            f"expected the name of a user or organisation, found {namespace!r}", param_hint="--namespace"
        )
    if not re.fullmatch(r"[A-Za-z0-9][\w./-]{0,200}", revision) or ".." in revision:
        raise typer.BadParameter(f"expected the name of a branch, found {revision!r}", param_hint="--revision")

    if check and dry_run:
        raise typer.BadParameter("asks the Hub, which --dry-run does not", param_hint="--check")
    from eraser_hub.publishing.publish import publish as publish_folder

    publish_folder(
        folder,
        namespace,
        datasets=dataset,
        metrics=metric,
        eval_results=eval_results,
        private=private,
        revision=revision,
        dry_run=dry_run,
        check=check,
        collection=collection,
        say=typer.echo,
    )
