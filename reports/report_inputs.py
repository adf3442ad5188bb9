"""What a report reads: the rows of a built dataset's split, and systems' predictions, from disk without a cache between."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eraser_hub.records.built import label_name, open_built
from eraser_hub.records.errors import DataError, shown
from eraser_hub.records.splits import dataset_split

Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class ReportedSplit:
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

    @property
    def holds_pairs(self) -> bool:
        """Whether the rows are records of the perturbation benchmark."""
        return bool(self.rows) and "sample_type" in self.rows[0]

    @property
    def id_field(self) -> str:
        """The column that holds a row's id."""
        return "id" if self.holds_pairs else "annotation_id"

    @property
    def ids(self) -> list[str]:
        """Each row's id."""
        return [str(row[self.id_field]) for row in self.rows]

    def labelled(self) -> list[dict[str, Any]]:
        """The rows with the label's name in place of its number."""
        field = "label" if self.holds_pairs else "classification"
        return [
            {**row, field: label_name(row.get(field), self.label_names, instance=identity, field=field)}
            for row, identity in zip(self.rows, self.ids, strict=True)
        ]


def read_split(dataset: Path, config: str | None, split: str) -> ReportedSplit:
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
    converted = bool(rows) and is_token_row(rows[0])
    if converted:
        rows = [as_eraser_row(row) for row in rows]
    return ReportedSplit(dataset, config, dataset_split(split), rows, built.label_names(config), converted)


def is_token_row(row: Mapping[str, Any]) -> bool:
    """Whether a row is one of ``human_rationales``."""
    return {"id", "tokens", "rationale_mask"} <= row.keys()


def as_eraser_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of ``human_rationales`` (tokens and their mask) like one of ``eraser``: one document, named like the row.

    Each run of rationale tokens is an evidence of the one group, as the whole mask is the rationale.
    """
    identity, tokens = str(row["id"]), [one_token(str(token)) or "\u200b" for token in row["tokens"]]
    spans = runs([place for place, chosen in enumerate(row["rationale_mask"] or ()) if chosen])
    evidences = [
        {
            "docid": identity,
            "text": " ".join(tokens[start:end]),
            "start_token": start,
            "end_token": end,
            "start_sentence": 0,
            "end_sentence": 1,
        }
        for start, end in spans
    ]
    return {
        "annotation_id": identity,
        "query": "",
        "query_type": "",
        "classification": row.get("label"),
        "documents": [{"docid": identity, "text": " ".join(tokens)}],
        "evidences": [evidences] if evidences else [],
    }


def one_token(text: str) -> str:
    """A token that stays one in a document: a blank or a line's end inside it would be taken for its own end."""
    return text.replace(" ", "\u00a0").replace("\n", "\u2424")


def runs(indices: Sequence[int], offset: int = 0) -> list[tuple[int, int]]:
    """Token indices as spans [start, end), neighbours joined; ``offset`` is added to both.

    >>> runs([5, 1, 2, 2])
    [(1, 3), (5, 6)]
    """
    spans: list[tuple[int, int]] = []
    for index in sorted(set(indices)):
        if spans and spans[-1][1] == index + offset:
            spans[-1] = (spans[-1][0], index + offset + 1)
        else:
            spans.append((index + offset, index + offset + 1))
    return spans


@dataclass(frozen=True, slots=True)
class System:
    """A file of predictions and what it is called in the report."""

    name: str
    path: Path

    @property
    def file_name(self) -> str:
        """The name as a file's: no separator, no leading dot."""
        return "".join(c if c.isalnum() or c in "-_.+" else "_" for c in self.name).lstrip(".") or "system"

    def by_id(self, field: str) -> dict[str, Mapping[str, Any]]:
        """The predictions by their ids, which stand in that field; errors as of `answers`."""
        return by_id(read_predictions(self.path), field, self.path)

    def answers(self, split: ReportedSplit) -> dict[str, Mapping[str, Any]]:
        """The system's predictions for the split's rows: id -> prediction.

        Raises:
            DataError: a file that cannot be read; a prediction without id, or an id twice. For annotations (not for the
                records of pairs) also one without prediction, or the other way round.
        """
        answers = self.by_id(split.id_field)
        if split.holds_pairs:
            return answers
        return paired(split.ids, answers, self.path)


def named_systems(arguments: Sequence[str], *, draws: bool = False) -> list[System]:
    """``PATH`` or ``NAME=PATH``; a path's stem names the system, and its folder too where two stems are equal.

    Args:
        arguments: as given on the command line.
        draws: several files under one name given are draws of one system, not a mistake.

    Raises:
        DataError: two systems of one name.
    """
    systems = []
    for argument in arguments:
        name, equals, path = argument.partition("=")
        if equals and name and not Path(argument).exists():
            systems.append(System(name, Path(path)))
        else:
            systems.append(System(Path(argument).stem, Path(argument)))
    stems = [system.path.stem for system in systems if system.name == system.path.stem]
    systems = [
        System(f"{system.path.parent.name}/{system.name}", system.path) if stems.count(system.name) > 1 else system
        for system in systems
    ]
    for system in systems:
        if not draws and sum(other.name == system.name for other in systems) > 1:
            raise DataError(f"expected a name of its own for each system (NAME=PATH), found {shown(system.name)} twice")
    return systems


def systems_words(systems: Sequence[System]) -> str:
    """How many systems there are, and their names."""
    if not systems:
        return "gold rationales alone, no predictions were given"
    return f"{len(systems)} {'system' if len(systems) == 1 else 'systems'}: " + ", ".join(s.name for s in systems)


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


def paired(ids: Sequence[str], answers: Mapping[str, Mapping[str, Any]], path: Path) -> dict[str, Mapping[str, Any]]:
    """The answers in the order of the ids.

    Raises:
        DataError: an id without answer, or an answer without id.
    """
    for identity in ids:
        if identity not in answers:
            raise DataError("expected a prediction for every annotation, found none", file=path, instance=identity)
    known = set(ids)
    for identity in answers:
        if identity not in known:
            raise DataError("expected an annotation of this split, found none", file=path, instance=identity)
        check_lists(answers[identity], path)
    return {identity: answers[identity] for identity in ids}


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
