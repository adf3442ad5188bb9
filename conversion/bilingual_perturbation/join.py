"""Public and gold records of the bilingual perturbation benchmark as rows, joined by id."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest

from eraser_hub.records.errors import DataError, raise_all, shown

from .configs import PerturbationConfig
from .format import GoldExample, Path_, PublicExample, RationaleSets, Record, check_inside


@dataclass(frozen=True, slots=True)
class Example:
    """One row: a public record, its gold, or both; ``original_id`` is the inverse of the original's ``rel_ids``.

    ``texts`` maps the columns of TEXT_COLUMNS that the task has. ``rationale_ids`` is None without gold.
    """

    id: str
    texts: Mapping[str, str]
    tokens: tuple[tuple[str, ...], ...]
    sample_type: str
    rel_ids: tuple[str, ...] | None
    original_id: str | None = None
    label: int | None = None
    answer: str | None = None
    rationale_ids: RationaleSets | None = None
    public: Record | None = None
    gold: Record | None = None


@dataclass(frozen=True, slots=True)
class Joined:
    """The examples of a configuration in file order, and what the join has to report (one sentence each)."""

    examples: list[Example]
    reports: list[str] = field(default_factory=list)


MAY_LACK = ("title", "question")  # gold files of the reading task hold the passage alone


def join(
    public: Iterable[PublicExample] | None,
    gold: Iterable[GoldExample] | None,
    config: PerturbationConfig,
    *,
    public_file: Path_ | None = None,
    gold_file: Path_ | None = None,
) -> Joined:
    """Public records and gold records as rows, joined by id: the public file's order, then what the gold alone has.

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
            check_inside(
                match.rationale_ids,
                record.tokens,
                file=gold_file,
                line=match.record.line,
                instance=match.id,
                field="rationale",
            )
            if match.rel_ids is not None and match.rel_ids != record.rel_ids:
                disagreeing.append(f"{record.id}: {' '.join(record.rel_ids or ['none'])} -> {' '.join(match.rel_ids)}")
        examples.append(_of_public(record, match))
    raise_all(offences)
    examples += [_of_gold(match, config, gold_file) for match in golds.values()]
    reports = []
    if disagreeing:
        some = ", ".join(disagreeing[:10]) + (" .." if len(disagreeing) > 10 else "")
        reports.append(
            f"rel_ids differ between public and gold file in {len(disagreeing)} of the records; the gold's win ({some})"
        )
    if golds and public_file is not None:
        reports.append(f"{len(golds)} gold records without a public one, appended in the gold's order")
    return Joined(_with_originals(examples), reports)


def _of_public(record: PublicExample, match: GoldExample | None) -> Example:
    """A public record, with what the gold of the same id says."""
    if match is None:
        return Example(record.id, record.texts, record.tokens, record.sample_type, record.rel_ids, public=record.record)
    return Example(
        record.id,
        record.texts,
        record.tokens,
        match.sample_type or record.sample_type,
        record.rel_ids if match.rel_ids is None else match.rel_ids,
        label=match.label,
        answer=match.answer,
        rationale_ids=match.rationale_ids,
        public=record.record,
        gold=match.record,
    )


def _of_gold(match: GoldExample, config: PerturbationConfig, file: Path_ | None) -> Example:
    """A gold record alone; it has to hold what a row needs."""
    lacking = [name for name in ("tokens", "sample_type") if getattr(match, name) is None]
    lacking += [column for column in config.texts if column not in match.texts and column not in MAY_LACK]
    if match.tokens is None or match.sample_type is None or lacking:
        message = f"expected a public record of the same id, or the gold's own {' and '.join(lacking)}"
        raise DataError(message, rule="key-missing", file=file, line=match.record.line, instance=match.id)
    return Example(
        match.id,
        match.texts,
        match.tokens,
        match.sample_type,
        match.rel_ids,
        label=match.label,
        answer=match.answer,
        rationale_ids=match.rationale_ids,
        gold=match.record,
    )


def _other_tokens(
    record: PublicExample, match: GoldExample, public_file: Path_ | None, gold_file: Path_ | None
) -> DataError:
    wanted, there = _first_difference(record.tokens, match.tokens or ())
    message = (
        f"expected the tokens of {public_file}:{record.record.line}, which has the same id, {wanted}, found {there} "
        "(the gold file alone builds too, if the two number their examples differently)"
    )
    return DataError(message, rule="constant", file=gold_file, line=match.record.line, instance=match.id)


def _first_difference(one: Sequence[Sequence[str]], other: Sequence[Sequence[str]]) -> tuple[str, str]:
    """The first sequence that differs, of either side, in words."""
    pairs = [pair for pair in zip_longest(one, other, fillvalue=()) if pair[0] != pair[1]]
    wanted, there = pairs[0]
    return shown(" ".join(wanted)), shown(" ".join(there))


def _with_originals(examples: list[Example]) -> list[Example]:
    """The examples with ``original_id`` set: the first original that names the record."""
    originals: dict[str, str] = {}
    for example in examples:
        for rel_id in example.rel_ids or ():
            originals.setdefault(rel_id, example.id)
    return [replace(example, original_id=originals.get(example.id)) for example in examples]
