"""Types of arguments that several public functions have."""

from __future__ import annotations

import os
from typing import Literal, TypeAlias

from cyclopts import Parameter

Place: TypeAlias = str | os.PathLike[str]
GoldForm: TypeAlias = Literal["evidence", "majority", "union"]  # as it stands, or of the annotators' marks
PYTHON = Parameter(parse=False)  # of an argument in Python that is no option of the command line
