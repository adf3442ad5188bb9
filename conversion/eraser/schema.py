"""The one schema of ``eraser``, in the three forms that have to agree: Arrow, the card's YAML, and datasets.Features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

DOCUMENT = pa.struct([("docid", pa.string()), ("text", pa.string())])
EVIDENCE = pa.struct(
    [
        ("docid", pa.string()),
        ("text", pa.string()),
        ("start_token", pa.int32()),
        ("end_token", pa.int32()),
        ("start_sentence", pa.int32()),
        ("end_sentence", pa.int32()),
    ]
)
SCHEMA = pa.schema(
    [
        ("annotation_id", pa.string()),
        ("query", pa.string()),
        ("classification", pa.int64()),
        ("rationale", pa.string()),
        ("documents", pa.list_(DOCUMENT)),
        ("evidences", pa.list_(pa.list_(EVIDENCE))),
        ("rationale_positions", pa.list_(pa.list_(pa.int32()))),
        ("num_tokens", pa.int32()),
        ("num_sentences", pa.int32()),
        ("rationale_ratio", pa.float32()),
        ("query_type", pa.string()),
        ("position", pa.int32()),
    ]
)


LabelNames = Sequence[str] | Mapping[str, Sequence[str]]


def _class_labels(label_names: LabelNames) -> Mapping[str, Sequence[str]]:
    return label_names if isinstance(label_names, Mapping) else {"classification": label_names}


def yaml_features(label_names: LabelNames, schema: pa.Schema = SCHEMA) -> list[dict[str, Any]]:
    """The features as a card's ``dataset_info`` spells them, in the dialect that datasets 3.6 and newer both read.

    ``label_names`` are those of ``classification``, or column -> names for a schema with other ClassLabel columns.
    """
    labels = _class_labels(label_names)
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


def features_of(label_names: LabelNames, schema: pa.Schema = SCHEMA) -> Any:
    """The same as datasets.Features (imports datasets)."""
    from datasets import ClassLabel, Features, Value

    labels = _class_labels(label_names)

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
