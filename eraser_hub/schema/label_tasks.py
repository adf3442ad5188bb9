"""Tasks of labels: one class a text, several labels a text, or a number.

A *multi-label* corpus has one annotation for each pair of a text and a label: the query is the label, and the class is
`PRESENT` or `ABSENT`. In a *regression* corpus the classes are the decimal texts of the gold values, and predictions
have one output, `VALUE`, in place of probabilities.
"""

from __future__ import annotations

from typing import Final, Literal

LabelTask = Literal["classification", "multi-label", "regression"]
CLASSIFICATION: Final = "classification"
MULTI_LABEL: Final = "multi-label"
REGRESSION: Final = "regression"
ABSENT, PRESENT = "absent", "present"
VALUE = "value"  # the one output of a regression: no other predictions have a single label
