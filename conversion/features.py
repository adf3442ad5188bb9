"""A schema in the three forms that have to agree: Arrow, the card's YAML, and datasets.Features."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from datasets import Features


def yaml_features(schema: pa.Schema, labels: Mapping[str, Sequence[str]]) -> list[dict[str, Any]]:
    """The features as a card's ``dataset_info`` spells them, in the dialect that datasets 3.6 and newer both read.

    Args:
        schema: the columns.
        labels: column -> label names, of the ClassLabel columns.
    """
    features = []
    for column in schema:
        if column.name in labels:
            names = {str(number): name for number, name in enumerate(labels[column.name])}
            features.append({"name": column.name, "dtype": {"class_label": {"names": names}}})
        else:
            features.append({"name": column.name, **_yaml_type(column.type)})
    return features


def _yaml_type(kind: pa.DataType) -> dict[str, Any]:
    if pa.types.is_list(kind):
        inner = kind.value_type
        if pa.types.is_struct(inner):
            return {"list": [{"name": field.name, **_yaml_type(field.type)} for field in inner]}
        if pa.types.is_list(inner):
            return {"list": _yaml_type(inner)}
        return {"list": _yaml_type(inner)["dtype"]}
    return {"dtype": "float32" if kind == pa.float32() else str(kind)}


def features_of(schema: pa.Schema, labels: Mapping[str, Sequence[str]]) -> Features:
    """The same as datasets.Features (imports datasets)."""
    from datasets import ClassLabel, Features, Value

    def feature(kind: pa.DataType) -> Any:
        if pa.types.is_list(kind):
            return [feature(kind.value_type)]
        if pa.types.is_struct(kind):
            return {field.name: feature(field.type) for field in kind}
        return Value("float32" if kind == pa.float32() else str(kind))

    return Features(
        {
            column.name: ClassLabel(names=list(labels[column.name])) if column.name in labels else feature(column.type)
            for column in schema
        }
    )


def class_names(features: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield (column, names) of each ClassLabel in datasets.Features; ``a.b`` for a column below another."""
    for name, feature in features.items():
        kind = feature
        while isinstance(kind, list) or getattr(kind, "feature", None) is not None:
            kind = kind[0] if isinstance(kind, list) else kind.feature
        if isinstance(kind, dict):
            yield from class_names(kind, f"{above}{name}.")
        elif getattr(kind, "names", None):
            yield f"{above}{name}", tuple(kind.names)
