"""What a report reads: rows of a built dataset, and predictions, from disk and without a cache in between."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eraser_hub.records.built import open_built
from eraser_hub.records.errors import DataError, shown
from eraser_hub.records.splits import dataset_split


@dataclass(frozen=True, slots=True)
class Table:
    """One split of a built dataset.

    Attributes:
        folder, config, split: where it comes from.
        rows: the rows, in file order.
        label_names: names of the gold label's ClassLabel, None where the card has none.
        converted: the rows came as texts of tokens (``human_rationales``) and are laid out like those of ``eraser``.
    """

    folder: Path
    config: str
    split: str
    rows: list[dict[str, Any]]
    label_names: tuple[str, ...] | None
    converted: bool = False


def read_table(dataset: Path, config: str | None, split: str) -> Table:
    """The rows of a split, and the label names in the dataset's card.

    Args:
        dataset: a folder that ``eraser-hub build`` wrote.
        config: the config; None takes the card's default.
        split: ``validation`` or ``val``, both are understood.

    Raises:
        DataError: no such folder, config or split, naming those that are there.
    """
    built = open_built(dataset)
    if config is None:
        config = built.default_config
    rows = built.rows(config, split)
    converted = bool(rows) and {"id", "tokens", "rationale_mask"} <= rows[0].keys()
    if converted:
        rows = [as_eraser_row(row) for row in rows]
    return Table(dataset, config, dataset_split(split), rows, built.label_names(config), converted)


def as_eraser_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of ``human_rationales`` (tokens and their mask) like one of ``eraser``: one document, named like the row.

    Each run of rationale tokens is an evidence of the one group, as the whole mask is the rationale.
    """
    identity = str(row["id"])
    # a blank inside a token would be taken for the end of it
    tokens = [str(token).replace(" ", "\u00a0").replace("\n", "\u2424") or "\u200b" for token in row["tokens"]]
    runs: list[dict[str, Any]] = []
    for place, chosen in enumerate(row.get("rationale_mask") or ()):
        if not chosen:
            continue
        if runs and runs[-1]["end_token"] == place:
            runs[-1]["end_token"] = place + 1
        else:
            runs.append({"docid": identity, "start_token": place, "end_token": place + 1})
    for run in runs:
        run["text"] = " ".join(tokens[run["start_token"] : run["end_token"]])
        run["start_sentence"], run["end_sentence"] = 0, 1
    return {
        "annotation_id": identity,
        "query": "",
        "query_type": "",
        "classification": row.get("label"),
        "documents": [{"docid": identity, "text": " ".join(tokens)}],
        "evidences": [runs] if runs else [],
    }


def read_predictions(path: Path) -> list[dict[str, Any]]:
    """A model's output, an instance each: JSON lines, or Parquet of the same fields.

    Raises:
        DataError: not a file; a line that is not a JSON object (with its number); Parquet that cannot be read; no line.
    """
    if not path.is_file():
        raise DataError("expected a file of predictions, found none", file=path)
    if path.suffix == ".parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            instances = pq.read_table(path).to_pylist()
        except (pa.ArrowInvalid, OSError) as error:
            raise DataError(f"expected Parquet, found {shown(str(error))}", file=path) from None
    else:
        instances = list(_lines(path))
    if not instances:
        raise DataError("expected predictions, found an empty file", file=path)
    return instances


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    import orjson

    with path.open("rb") as stream:
        for number, line in enumerate(stream, 1):
            if not line.strip():
                continue
            try:
                instance = orjson.loads(line)
            except orjson.JSONDecodeError as error:
                raise DataError(f"expected a JSON object, found {shown(str(error))}", file=path, line=number) from None
            if not isinstance(instance, dict):
                raise DataError(f"expected a JSON object, found {type(instance).__name__}", file=path, line=number)
            yield instance


def by_id(instances: Sequence[Mapping[str, Any]], key: str, path: Path) -> dict[str, Mapping[str, Any]]:
    """The instances by id as a string.

    Raises:
        DataError: an instance without id, or an id twice.
    """
    out: dict[str, Mapping[str, Any]] = {}
    for instance in instances:
        if instance.get(key) is None:
            raise DataError("expected an id, found none", file=path, field=key)
        identity = str(instance[key])
        if identity in out:
            raise DataError("expected each id once, found it twice", file=path, instance=identity, field=key)
        out[identity] = instance
    return out


def paired(
    rows: Sequence[Mapping[str, Any]], instances: Mapping[str, Mapping[str, Any]], path: Path
) -> list[Mapping[str, Any]]:
    """The instances in the rows' order.

    Raises:
        DataError: a row without instance, or an instance without row.
    """
    ids = [str(row["annotation_id"]) for row in rows]
    for identity in ids:
        if identity not in instances:
            raise DataError("expected a prediction for every annotation, found none", file=path, instance=identity)
    known = set(ids)
    for identity in instances:
        if identity not in known:
            raise DataError("expected an annotation of this split, found none", file=path, instance=identity)
    ordered = [instances[identity] for identity in ids]
    for instance in ordered:
        check_lists(instance, path)
    return ordered


def check_lists(instance: Mapping[str, Any], path: Path) -> None:
    """The instance's lists of objects are that; what is in the objects is for the scorer to judge.

    Raises:
        DataError: another type, naming the field.
    """
    for field in ("rationales", "thresholded_scores", "occluded_scores", "random_rationales"):
        value = instance.get(field)
        if value is None:
            continue
        wrong = [item for item in value if not isinstance(item, dict)] if isinstance(value, list) else [value]
        if wrong:
            raise DataError(
                f"expected a list of objects, found {shown(wrong[0])}",
                file=path,
                instance=instance.get("annotation_id"),
                field=field,
            )
