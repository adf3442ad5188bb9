"""Original and perturbed examples side by side, with a model's output where there is one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from eraser_hub.records.errors import DataError, show


def pairs(
    rows: Iterable[Mapping[str, Any]], predictions: Iterable[Mapping[str, Any]] | None = None
) -> list[dict[str, Any]]:
    """Return the pairs of an original row and a perturbed row, in the order of the originals.

    Args:
        rows: rows of a configuration of ``bilingual_perturbation`` (a Dataset, or dicts).
        predictions: a model's outputs for the rows, dicts with ``id``; their other fields are not changed.

    Returns:
        dicts ``{original_id, perturbed_id, original, perturbed}``, and with predictions ``original_prediction`` and
        ``perturbed_prediction``. ``datasets.Dataset.from_list`` accepts them. A ``rel_id`` without a row makes no
        pair; `eraser-hub check` counts these.

    Raises:
        DataError: an id is repeated, or a row of a pair has no prediction.

    >>> rows = [{"id": "1", "sample_type": "ori", "rel_ids": ["2"]}, {"id": "2", "sample_type": "disturb"}]
    >>> [(pair["original_id"], pair["perturbed_id"]) for pair in pairs(rows)]
    [('1', '2')]
    """
    by_id = _index_by_id(rows, "row")
    outputs = None if predictions is None else _index_by_id(predictions, "prediction")
    joined = []
    for reference in map_references(by_id.values()):
        for rel_id in reference["rel_ids"] if reference["sample_type"] == "ori" else ():
            pair = {"original_id": reference["id"], "perturbed_id": rel_id}
            for side in ("original", "perturbed"):
                identifier = pair[f"{side}_id"]
                pair[side] = dict(by_id[identifier])
                if outputs is not None:
                    if identifier not in outputs:
                        raise DataError(f"expected a prediction for the {side} row, found none", instance=identifier)
                    pair[f"{side}_prediction"] = dict(outputs[identifier])
            joined.append(pair)
    return joined


def map_references(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return rows ``{id, sample_type, rel_ids}`` with only those ``rel_ids`` that name given rows.

    `perturbation_map` takes the rows of a complete configuration unchanged, and counts a missing row as an error. In a
    partial configuration (a gold file with a few records) rows are missing on purpose: this function drops their ids.

    >>> rows = [{"id": "1", "sample_type": "ori", "rel_ids": ["2", "9"]}, {"id": "2", "sample_type": "disturb"}]
    >>> map_references(rows)[0]
    {'id': '1', 'sample_type': 'ori', 'rel_ids': ['2']}
    """
    by_id = _index_by_id(rows, "row")
    return [
        {
            "id": identifier,
            "sample_type": row["sample_type"],
            "rel_ids": [rel_id for rel_id in map(str, row.get("rel_ids") or ()) if rel_id in by_id],
        }
        for identifier, row in by_id.items()
    ]


def _index_by_id(items: Iterable[Mapping[str, Any]], what: str) -> dict[str, Mapping[str, Any]]:
    by_id: dict[str, Mapping[str, Any]] = {}
    for item in items:
        identifier = str(item["id"])
        if identifier in by_id:
            message = f"expected one {what} of each id, found two of {show(identifier)}"
            raise DataError(message, instance=identifier)
        by_id[identifier] = item
    return by_id
