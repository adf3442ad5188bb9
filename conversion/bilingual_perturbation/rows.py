"""Public and gold records of the bilingual perturbation benchmark, joined by id, as rows of one schema."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any, NamedTuple

import pyarrow as pa

from eraser_hub.conversion.errors import raise_all
from eraser_hub.records.errors import DataError, show

from .configs import PerturbationConfig
from .format import Example, Record, check_inside

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("language", pa.string()),
        ("task", pa.string()),
        ("title", pa.string()),
        ("context", pa.string()),
        ("question", pa.string()),
        ("sentence1", pa.string()),
        ("sentence2", pa.string()),
        ("tokens", pa.list_(pa.list_(pa.string()))),
        ("sample_type", pa.string()),
        ("rel_ids", pa.list_(pa.string())),
        ("original_id", pa.string()),
        ("label", pa.int64()),
        ("answer", pa.string()),
        ("rationale_ids", pa.list_(pa.list_(pa.list_(pa.int32())))),
        ("has_gold", pa.bool_()),
        ("num_tokens", pa.int32()),
        ("rationale_ratio", pa.float32()),
        ("position", pa.int32()),
    ]
)
# the columns of `check` and `stats` without nulls
NOT_NULL = ("id", "tokens", "sample_type", "rel_ids[]", "rationale_ids[]", "has_gold")


def make_row(example: Example, config: PerturbationConfig) -> dict[str, Any]:
    """Return the row of an example, in plain values."""
    tokens = example.tokens or ()
    num_tokens = sum(map(len, tokens))
    record = example.public or example.gold
    ratio = None
    if example.rationale_ids is not None and num_tokens:
        marked = sum(len({i for chosen in sets for i in chosen}) for sets in example.rationale_ids)
        ratio = marked / num_tokens
    alike = ("id", "sample_type", "rel_ids", "original_id", "label", "answer", "rationale_ids")
    return {
        **{name: getattr(example, name) for name in alike},
        **example.texts,
        "language": config.language,
        "task": config.task,
        "tokens": tokens,
        "has_gold": example.gold is not None,
        "num_tokens": num_tokens,
        "rationale_ratio": ratio,
        "position": record.line if record else None,
    }


OPTIONAL_COLUMNS = ("title", "question")  # gold files of the reading task have the passage alone


class JoinedRecords(NamedTuple):
    """The examples of a configuration in file order, and notes on the join (one sentence each)."""

    examples: list[Example]
    reports: list[str]


def join(public: Iterable[Example] | None, gold: Iterable[Example] | None, config: PerturbationConfig) -> JoinedRecords:
    """Join public and gold records by id, in the order of the public file, then of the remaining gold records.

    If their ``rel_ids`` differ, those of the gold are used, and a note says so.

    Raises:
        DataError: tokens of the same id differ (the rationale would mark other tokens), an index lies outside the
            tokens, or a gold record without a public one lacks tokens, text or sample type.
    """
    golds = {example.id: example for example in gold or ()}
    examples: list[Example] = []
    disagreeing: list[str] = []
    issues: list[DataError] = []
    for record in public or ():
        match = golds.pop(record.id, None)
        if match is not None and match.tokens is not None and match.tokens != record.tokens:
            issues.append(_make_tokens_error(record, match))
            continue
        if match is not None:
            check_inside(match.rationale_ids or (), record.tokens or (), _get_record(match), match.id, "rationale")
            if match.rel_ids is not None and match.rel_ids != record.rel_ids:
                disagreeing.append(f"{record.id}: {' '.join(record.rel_ids or ['none'])} -> {' '.join(match.rel_ids)}")
            record = replace(
                match,
                texts=record.texts,
                tokens=record.tokens,
                sample_type=match.sample_type or record.sample_type,
                rel_ids=record.rel_ids if match.rel_ids is None else match.rel_ids,
                public=record.public,
            )
        examples.append(record)
    raise_all(issues)
    for match in golds.values():
        lacking = [name for name in ("tokens", "sample_type") if getattr(match, name) is None]
        lacking += [name for name in config.texts if name not in match.texts and name not in OPTIONAL_COLUMNS]
        if lacking:
            message = f"expected a public record of the same id, or the gold's own {' and '.join(lacking)}"
            origin = _get_record(match)
            raise DataError(message, file=origin.file, line=origin.line, instance=match.id)
        examples.append(match)
    reports = []
    if disagreeing:
        some = ", ".join(disagreeing[:10]) + (" .." if len(disagreeing) > 10 else "")
        reports.append(
            f"rel_ids differ between public and gold file in {len(disagreeing)} of the records; the gold's win ({some})"
        )
    if golds and public is not None:
        reports.append(f"{len(golds)} gold records without a public one, appended in the gold's order")
    originals: dict[str, str] = {}  # the first original that names a record
    for example in examples:
        for rel_id in example.rel_ids or ():
            originals.setdefault(rel_id, example.id)
    return JoinedRecords([replace(example, original_id=originals.get(example.id)) for example in examples], reports)


def _get_record(example: Example) -> Record:
    record = example.gold or example.public
    assert record is not None
    return record


def _make_tokens_error(record: Example, match: Example) -> DataError:
    sequences: zip_longest[tuple[Sequence[str], Sequence[str]]]
    sequences = zip_longest(record.tokens or (), match.tokens or (), fillvalue=())
    wanted, actual = (show(" ".join(each)) for each in next(pair for pair in sequences if pair[0] != pair[1]))
    public, gold = _get_record(record), _get_record(match)
    message = (
        f"expected the tokens of {public.file}:{public.line}, which has the same id, {wanted}, found {actual} "
        "(the gold file alone builds too, if the two number their examples differently)"
    )
    return DataError(message, file=gold.file, line=gold.line, instance=match.id)
