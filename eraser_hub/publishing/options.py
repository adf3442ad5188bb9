"""The arguments of `publish`, declared once for Python and the command line."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from eraser_hub.records.errors import UsageError
from eraser_hub.records.options import Option, Options

Folder = Annotated[str | os.PathLike[str], Option(name="dir", help="The folder that `build` wrote.")]
_NAMESPACE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,94}[A-Za-z0-9])?")
_BRANCH = re.compile(r"[A-Za-z0-9][\w./-]{0,200}")


@dataclass(frozen=True)
class PublishArguments(Options):
    """The folder to publish, and its destination.

    Attributes:
        namespace: User or organisation on the Hub, e.g. `org` for `org/eraser`.
        datasets: Dataset to publish; repeatable.
        metrics: Metric to publish; repeatable.
        private: Create new repositories as private ones.
        revision: Branch to publish to; only main gets tags.
        dry_run: Check and print the plan, without network.
        check: Compare the Hub with the folder, and send nothing.
        eval_results: ORG/MODEL: publish the results that `score` wrote with `eval_results`.
    """

    namespace: str
    folder: Folder = "hub"
    datasets: Annotated[str | Sequence[str] | None, Option(name="dataset")] = None
    metrics: Annotated[str | Sequence[str] | None, Option(name="metric")] = None
    private: bool = False
    revision: str = "main"
    dry_run: bool = False
    check: bool = False
    eval_results: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not _NAMESPACE.fullmatch(self.namespace) or re.search(r"--|\.\.", self.namespace):
            message = f"expected the name of a user or organisation, found {self.namespace!r}"
            raise UsageError(message, argument="namespace")
        if not _BRANCH.fullmatch(self.revision) or ".." in self.revision:
            message = f"expected the name of a branch, found {self.revision!r}"
            raise UsageError(message, argument="revision")
        if self.check and self.dry_run:
            raise UsageError("asks the Hub, which `dry_run` does not", argument="check")
