"""Arguments that several public functions have, with their words: types of the fields of their options."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Annotated, Literal, TypeAlias, get_args

from cyclopts import Parameter

from .options import Option

Place: TypeAlias = str | os.PathLike[str]
PYTHON = Parameter(parse=False)  # of an argument in Python that is no option of the command line

DatasetPlace = Annotated[str, Option(help="Dataset folder (hub/eraser), Hub id or hf:// path.")]
Config = Annotated[str | None, Option(help="Config; by default the dataset's default config.")]
Resume = Annotated[bool, Option(group="Run", help="Go on with a stopped run.")]
Force = Annotated[
    bool, Option(group="Run", help="Replace results that were made otherwise, and files that no run wrote.")
]
GoldForm: TypeAlias = Literal["evidence", "majority", "union"]
GOLD_FORMS: tuple[GoldForm, ...] = get_args(GoldForm)
_GOLD = "Gold rationales: evidence (as it stands), or of the annotators' marks the majority or the union."
Gold = Annotated[GoldForm, Option(group="Settings of scores", help=_GOLD)]
Progress = Annotated[Callable[[str], None] | None, Option(help="Called with each line of progress.", python_only=True)]
Split = Annotated[
    str, Option(announced=True, help="test, validation (or val), train, or a split of the dataset's own.")
]
