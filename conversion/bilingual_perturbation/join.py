"""Public and gold records of the bilingual perturbation benchmark, joined by id."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import NamedTuple

from eraser_hub.records.errors import DataError, raise_all, shown

from .configs import PerturbationConfig
from .format import Example, Path_, Record, check_inside


class Joined(NamedTuple):
    """The examples of a configuration in file order, and what the join has to report (one sentence each)."""

    examples: list[Example]
    reports: list[str]


MAY_LACK = ("title", "question")  # gold files of the reading task hold the passage alone


def join(
    public: Iterable[Example] | None,
    gold: Iterable[Example] | None,
    config: PerturbationConfig,
    *,
    public_file: Path_ | None = None,
    gold_file: Path_ | None = None,
) -> Joined:
    """Join public and gold records by id: the public file's order, then what the gold alone has.

    Where both give ``rel_ids`` and they differ the gold's win, and a report says so.

    Raises:
        DataError: a record of the same id whose tokens differ (the rationale would mark other tokens), an index outside
            the tokens, a gold record without a public one that lacks tokens, text or sample type.
    """
    golds = {example.id: example for example in gold or ()}
    examples: list[Example] = []
    disagreeing: list[str] = []
    offences: list[DataError] = []
    for record in public or ():
        match = golds.pop(record.id, None)
        if match is not None and match.tokens is not None and match.tokens != record.tokens:
            offences.append(_other_tokens(record, match, public_file, gold_file))
            continue
        if match is not None:
            check_inside(match.rationale_ids or (), record.tokens or (), gold_file, _line(match), match.id, "rationale")
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
    raise_all(offences)
    for match in golds.values():
        _refuse_lacking(match, config, gold_file)
        examples.append(match)
    reports = []
    if disagreeing:
        some = ", ".join(disagreeing[:10]) + (" .." if len(disagreeing) > 10 else "")
        reports.append(
            f"rel_ids differ between public and gold file in {len(disagreeing)} of the records; the gold's win ({some})"
        )
    if golds and public_file is not None:
        reports.append(f"{len(golds)} gold records without a public one, appended in the gold's order")
    originals: dict[str, str] = {}  # the first original that names a record
    for example in examples:
        for rel_id in example.rel_ids or ():
            originals.setdefault(rel_id, example.id)
    return Joined([replace(example, original_id=originals.get(example.id)) for example in examples], reports)


def _line(example: Example) -> Record:
    record = example.gold or example.public
    assert record is not None
    return record


def _refuse_lacking(match: Example, config: PerturbationConfig, file: Path_ | None) -> None:
    """Refuse a gold record alone that does not hold what a row needs."""
    lacking = [name for name in ("tokens", "sample_type") if getattr(match, name) is None]
    lacking += [column for column in config.texts if column not in match.texts and column not in MAY_LACK]
    if lacking:
        message = f"expected a public record of the same id, or the gold's own {' and '.join(lacking)}"
        raise DataError(message, rule="key-missing", file=file, line=_line(match).line, instance=match.id)


def _other_tokens(record: Example, match: Example, public_file: Path_ | None, gold_file: Path_ | None) -> DataError:
    sequences: zip_longest[tuple[Sequence[str], Sequence[str]]]
    sequences = zip_longest(record.tokens or (), match.tokens or (), fillvalue=())
    wanted, there = (shown(" ".join(each)) for each in next(pair for pair in sequences if pair[0] != pair[1]))
    message = (
        f"expected the tokens of {public_file}:{_line(record).line}, which has the same id, {wanted}, found {there} "
        "(the gold file alone builds too, if the two number their examples differently)"
    )
    return DataError(message, rule="constant", file=gold_file, line=_line(match).line, instance=match.id)
