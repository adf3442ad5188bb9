"""A model's labels, brought into the dataset's order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from eraser_hub.records.errors import DataError

from .adapter import Adapter


def align_labels(adapter: Adapter, dataset_names: Sequence[str], stated: Sequence[str] = ()) -> None:
    """Bring a model's labels into the dataset's order, by name.

    Args:
        dataset_names: the dataset's ClassLabel names; () where it has none, then the model's own order stays.
        stated: names stated by hand for the model's outputs (``--labels``).

    Raises:
        DataError: another number of labels, or names that are not the dataset's.
    """
    if adapter.output_names is None:
        adapter.output_names = adapter.label_names
    names = tuple(stated) or adapter.output_names
    if len(set(names)) < len(names):
        words = f"{adapter.description}: expected different labels, found {', '.join(names[:10])}"
        raise DataError(words, rule="label-unknown")
    if not names and not dataset_names and adapter.has_labels:
        raise DataError(
            f"{adapter.description} does not name its labels, nor does the dataset: state them, in the model's order, "
            "with `labels`",
            rule="option-missing",
        )
    if adapter.output_names and len(names) != len(adapter.output_names):
        words = f"expected {len(adapter.output_names)} names (the model's outputs), found {len(names)}"
        raise DataError(words, argument="labels", rule="option-value")
    if dataset_names:
        adapter.order = _order(adapter, names, dataset_names)
        adapter.label_names = tuple(dataset_names)
    else:
        adapter.order = np.arange(len(names)) if names else None
        adapter.label_names = names


def _order(adapter: Adapter, names: Sequence[str], dataset_names: Sequence[str]) -> NDArray[np.int64]:
    """The output column of each of the dataset's labels."""
    listing, in_order = ", ".join(dataset_names), np.arange(len(dataset_names))
    if not names:
        if adapter.has_labels:
            adapter.notes.say(f"the model does not name its labels: taken in the dataset's order {listing}")
        return in_order
    if len(names) != len(dataset_names):
        raise DataError(
            f"{adapter.description}: expected {len(dataset_names)} labels ({listing}), "
            f"found {len(names)} ({', '.join(names[:10])})",
            rule="length",
        )
    columns = {name.casefold(): column for column, name in enumerate(names)}
    if sorted(columns) == sorted(name.casefold() for name in dataset_names):
        order = np.asarray([columns[name.casefold()] for name in dataset_names])
        if (order != in_order).any():
            adapter.notes.say(
                f"the model's labels stand in another order ({', '.join(names)}): matched by name to {listing}"
            )
        return order
    if all(name.upper() == f"LABEL_{column}" for column, name in enumerate(names)):
        adapter.notes.say(
            f"the model names its labels {names[0]}, ..: taken in the dataset's order {listing}; "
            "say `labels` if it is another"
        )
        return in_order
    raise DataError(
        f"{adapter.description}: expected the labels {listing}, found {', '.join(names[:10])}; "
        "state the dataset's name of each output, in the model's order, with `labels`",
        rule="label-unknown",
    )
