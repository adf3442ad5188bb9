"""Identity of scores: the digests of the data and of the predictions that they are scores of."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from eraser_hub.metrics.data_digest import shorten_digest
from eraser_hub.records.errors import DataError
from eraser_hub.records.run_record import read_data_digest
from eraser_hub.records.splits import dataset_split


class Identity(NamedTuple):
    """What scores are scores of.

    Attributes:
        data: digest of the split's data.
        split: the dataset's name of the split.
        other: digest of the data that the predictions were made of, if that differs and is allowed to.
        note: a line for the reader if the predictions' data are not known.
    """

    data: str
    split: str
    other: str = ""
    note: str = ""

    def sign(self, signature: str) -> str:
        """Return a signature with the data and the split behind the name of its metric."""
        name, _, settings = signature.partition("|")
        own = [f"data:{shorten_digest(self.data)}"] * ("|data:" not in signature)
        own += [f"predicted_on:{shorten_digest(self.other)}"] * bool(self.other)
        return "|".join([name, *own, f"split:{self.split}", settings])


def identify(predictions: Path, data: str, split: str, allow_mismatch: bool = False) -> Identity:
    """Return the identity of scores of a file of predictions.

    Args:
        predictions: the file; the record of its run lies beside it, or nothing does.
        data: digest of the split that they are scored against.
        split: the split.
        allow_mismatch: accept predictions that were made of other data.

    Raises:
        DataError: the predictions were made of other data.
    """
    made_of, note = read_data_digest(predictions)
    if not data:
        note = note or f"{predictions}: made of the data {shorten_digest(made_of)}; the split lacks columns of a digest"
    if made_of in ("", data) or not data:
        return Identity(data, dataset_split(split), note=note)
    if not allow_mismatch:
        expected, found = shorten_digest(data), shorten_digest(made_of)
        message = f"expected predictions made of the data {expected}, found a run on the data {found}"
        raise DataError(
            f"{message} (`allow_mismatch` scores them all the same)", rule="data-mismatch", file=predictions
        )
    note = f"{predictions}: made of the data {shorten_digest(made_of)}, scored against {shorten_digest(data)}"
    return Identity(data, dataset_split(split), made_of, note)
