"""The labels of a model and those of a dataset: brought together by name."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from eraser_hub.records.errors import DataError, UsageError

from .model import Model

MIN_BEGINNING = 3  # characters by which a name may begin another one


def align_labels(model: Model, dataset_names: Sequence[str], stated: Sequence[str] = ()) -> None:
    """Bring a model's labels into the dataset's order, by name; set its ``label_names`` and ``order``.

    Args:
        model: the model.
        dataset_names: the dataset's ClassLabel names; () where it has none: the model's own order stays.
        stated: names that the user states for the model's outputs, in the model's order.

    Raises:
        DataError: another number of labels, names that are not the dataset's, or stated names in another order than the
            model's own.
    """
    own = model.label_names if model.output_names is None else model.output_names
    names = tuple(stated) or own
    shown = ", ".join(names[:10])
    if len(set(names)) < len(names):
        raise DataError(f"{model.description}: expected different labels, found {shown}")
    if not names and not dataset_names and model.has_labels:
        raise UsageError(
            f"{model.description} does not name its labels, nor does the dataset: state them, in the model's order, "
            "with `label_names`, or with the model: NAME(labels=[A,B])",
            argument="label_names",
        )
    if own and len(names) != len(own):
        raise DataError(f"expected {len(own)} names (the model's outputs), found {len(names)}", argument="labels")
    if stated and _contradict(stated, own):
        message = f"expected the order of the model's own names, {', '.join(own)}, found {shown}"
        message += ": leave them out, or mend the model's names where they are wrong"
        raise DataError(message, argument="labels")
    model.output_names = names
    if dataset_names:
        model.order, model.label_names = _find_order(model, names, dataset_names), tuple(dataset_names)
    else:
        model.order, model.label_names = None, names


def _find_order(model: Model, names: Sequence[str], dataset_names: Sequence[str]) -> NDArray[np.int64]:
    """Return the output column of each of the dataset's labels."""
    listing, in_order = ", ".join(dataset_names), np.arange(len(dataset_names))
    if not names:
        if model.has_labels:
            model.notes.say(f"the model does not name its labels: taken in the dataset's order {listing}")
        return in_order
    shown = ", ".join(names[:10])
    if len(names) != len(dataset_names):
        message = f"{model.description}: expected {len(dataset_names)} labels ({listing}), found {len(names)} ({shown})"
        raise DataError(message)
    columns = {name.casefold(): column for column, name in enumerate(names)}
    if sorted(columns) == sorted(name.casefold() for name in dataset_names):
        order = np.asarray([columns[name.casefold()] for name in dataset_names])
        if (order != in_order).any():
            model.notes.say(f"the model's labels stand in another order ({shown}): matched by name to {listing}")
        return order
    if _are_generic(names):
        message = f"the model names its labels {names[0]}, ..: taken in the dataset's order {listing}"
        model.notes.say(f"{message}; state another with the model, NAME(labels=[A,B])")
        return in_order
    message = f"{model.description}: expected the labels {listing}, found {shown}; state the dataset's name of each "
    raise DataError(f"{message}output, in the model's order, with the model: NAME(labels=[A,B]), in Python label_names")


def _contradict(stated: Sequence[str], own: Sequence[str]) -> bool:
    """Return True if a stated name is the model's own name of another output, or the beginning of it, or begins so."""
    if _are_generic(own):
        return False
    folded = [name.casefold() for name in own]
    for column, name in enumerate(map(str.casefold, stated)):
        fitting = [at for at, other in enumerate(folded) if other == name] or [
            at
            for at, other in enumerate(folded)
            if min(len(name), len(other)) >= MIN_BEGINNING and name[: len(other)] == other[: len(name)]
        ]
        if len(fitting) == 1 and fitting != [column]:
            return True
    return False


def _are_generic(names: Sequence[str]) -> bool:
    """Return True for LABEL_0, LABEL_1 .., which are no names."""
    return all(name.upper() == f"LABEL_{column}" for column, name in enumerate(names))
