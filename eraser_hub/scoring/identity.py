"""Identity of scores: the digests of the data and of the predictions that they are scores of."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from eraser_hub.metrics.data_digest import shorten_digest
from eraser_hub.records.digests import compute_file_digest
from eraser_hub.records.errors import DataError
from eraser_hub.records.predictions import compute_predictions_digest
from eraser_hub.records.run_record import read_run, run_path
from eraser_hub.records.splits import dataset_split


class Identity(NamedTuple):
    """The data that scores are scores of.

    Attributes:
        data: digest of the split's data.
        split: the dataset's name of the split.
        other: digest of the data that the predictions were made of, if that differs and is allowed to.
        note: a line for the reader if the predictions' data are not known.
        run: signature of the run that wrote the predictions; "" for none.
    """

    data: str
    split: str
    other: str = ""
    note: str = ""
    run: str = ""

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
        DataError: the predictions were made of other data; the record is no JSON object.
    """
    record, name = read_run(predictions), run_path(predictions).name
    kept, made_of, run = record.get("predictions_sha256"), "", record.get("signature")
    identity = Identity(data, dataset_split(split), run=run if isinstance(run, str) else "")
    digest = record["data"].get("data_digest") if isinstance(record.get("data"), dict) else None
    if not record or not predictions.is_file():
        note = f"{predictions.name}: no {name} beside the predictions"
    elif not isinstance(digest, str) or not digest or not isinstance(kept, str):
        note = f"{name}: the record has no digests"
    elif kept != compute_file_digest(predictions) and (
        record.get("predictions_digest") != compute_predictions_digest(predictions)
    ):
        note = f"{name}: the record is that of other predictions"
    else:
        made_of, note = digest, ""
    if note:
        note = f"{note}: the data that they were made of are not known"
    elif not data:
        note = f"{predictions}: made of the data {shorten_digest(made_of)}; the split lacks columns of a digest"
    if made_of in ("", data) or not data:
        return identity._replace(note=note)
    if not allow_mismatch:
        expected, found = shorten_digest(data), shorten_digest(made_of)
        message = f"expected predictions made of the data {expected}, found a run on the data {found}"
        raise DataError(
            f"{message} (`allow_mismatch` scores them all the same)", rule="data-mismatch", file=predictions
        )
    note = f"{predictions}: made of the data {shorten_digest(made_of)}, scored against {shorten_digest(data)}"
    return identity._replace(other=made_of, note=note)
