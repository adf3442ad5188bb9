"""``eraser-hub publish``: upload of datasets, metric Spaces and models' results."""

from __future__ import annotations

from eraser_hub.publishing.options import PublishArguments

from .usage import print_line, with_options


@with_options(PublishArguments)
def publish(options: PublishArguments) -> None:
    """Publish the built datasets and metric Spaces to the Hub.

    Only changed files are uploaded, in one commit each, with a tag per version.

        eraser-hub publish --namespace org --dry-run

        eraser-hub publish --namespace org

        eraser-hub publish --namespace org --dataset eraser --metric eraser_agreement --private

        eraser-hub publish --namespace org --check

        eraser-hub publish --namespace org --eval-results my-org/my-model

    It refuses what `check` refuses.
    The token is the one of `hf auth login` or HF_TOKEN, and is never printed. A run that failed can be run again: it
    uploads the rest. HF_ENDPOINT names another Hub.
    """
    from eraser_hub.publishing.publish import publish as run

    run(options, say=print_line)
