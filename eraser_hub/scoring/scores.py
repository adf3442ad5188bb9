"""The scores of predictions on a split, however they came about: one run's, or the mean of several runs."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

import orjson

from eraser_hub.metrics.results import HEADLINE
from eraser_hub.metrics.statistics_builder import Statistics
from eraser_hub.papers import COMPREHENSIVE
from eraser_hub.records.digests import compute_file_digest
from eraser_hub.records.errors import DataError
from eraser_hub.records.outputs import OutputWriter
from eraser_hub.records.tables import Cell, Table, Tables

from .identity import Identity
from .tables import (
    BESIDE,
    BLOCK_TITLES,
    DIGITS,
    format_score,
    make_breakdown_table,
    make_comparison_tables,
    make_score_cells,
)

if TYPE_CHECKING:
    import pandas as pd

OTHERS = "majority of the others"
# suffix of a key's spread over runs
SPREAD = "_spread"


@dataclass(frozen=True)
class HumanPerformance:
    """Scores of annotators, each against the majority of the others.

    Attributes:
        scores: key -> mean over annotators.
        spread: key -> standard deviation over annotators.
        annotators: their number.
        note: why there are no scores; "" where there are.
    """

    scores: Mapping[str, float] = field(default_factory=dict)
    spread: Mapping[str, float] = field(default_factory=dict)
    annotators: int = 0
    note: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return the block ``people`` of a score file."""
        return {"annotators": self.annotators, "gold": OTHERS, "scores": {**self.scores}, "spread": {**self.spread}}

    def describe(self) -> str:
        """Return a line on how the figures are to be read."""
        if self.note:
            return f"people: {self.note}"
        return f"people: {self.annotators} annotators, each against the {OTHERS}; the mean over annotators"


@dataclass(repr=False)
class Scores:
    """Scores of predictions on a split.

    Attributes:
        name: name of the system; "" for none.
        names: the dataset (of a built one), config and split.
        ids: of the annotations; `per_instance` has their order.
        blocks: metric -> its flat result, as the evaluate module returns it.
        statistics: metric -> the additive statistics per annotation, for comparisons.
        scores: key -> number, or a list of numbers (points, thresholds); of a key in several blocks the first one's.
        intervals: key -> (low, high) of the confidence interval.
        point_intervals: key of a list -> (low, high) of each point.
        per_instance: key -> value per annotation; None where an annotation has none.
        by_class: gold label -> key -> number.
        spread: of several runs, key -> standard deviation over them; their scores are means then.
        gold: the gold rationales: ``marked_rows``, ``unmarked_rows`` (annotations with and without them), ``density``
            (mean share of gold tokens in documents with gold), ``split``, ``comprehensive`` (by ERASER; None: unknown).
        chance: key -> the score of random rationales of the same size, where known.
        people: human performance, where annotators are known.
        against_chance: for comprehensiveness and sufficiency the test against random rationales, where there are any.
        reference: the reference scorer's nested keys; None for records of the perturbation benchmark.
        signatures: one per block, and that of the run that wrote the predictions.
        run: the latter; "" where there is none.
        notes: notes on what was left out or guessed.
        lacking: the keys that no instance has the field for; tables leave them out.
        answered: a line on instances that hold no answer; "" where all do.
        cautions: cautions about the intervals.
        by: the column of the breakdown.
        further_runs: of several runs the statistics of all but the first.
        inputs: the files and folders that the scores were read from; `save` refuses them.
        identity: the data that they are scores of; None where nobody knows.
        files: the files of predictions that they are scores of.
    """

    name: str = ""
    names: Mapping[str, str] = field(default_factory=dict)
    ids: Sequence[str] = ()
    blocks: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    statistics: dict[str, Statistics] = field(default_factory=dict)
    scores: dict[str, Any] = field(default_factory=dict)
    intervals: dict[str, tuple[float, float]] = field(default_factory=dict)
    point_intervals: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    per_instance: dict[str, Sequence[float | None]] = field(default_factory=dict)
    by_class: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    spread: dict[str, float] = field(default_factory=dict)
    gold: Mapping[str, Any] = field(default_factory=dict)
    chance: dict[str, float] = field(default_factory=dict)
    people: HumanPerformance | None = None
    against_chance: dict[str, dict[str, Any]] = field(default_factory=dict)
    reference: dict[str, object] | None = None
    signatures: list[str] = field(default_factory=list)
    run: str = ""
    notes: list[str] = field(default_factory=list)
    lacking: frozenset[str] = frozenset()
    answered: str = ""
    cautions: list[str] = field(default_factory=list)
    by: str | None = None
    further_runs: list[dict[str, Statistics]] = field(default_factory=list)
    inputs: Sequence[Path] = ()
    identity: Identity | None = None
    files: list[Path] = field(default_factory=list)

    @property
    def runs(self) -> list[dict[str, Statistics]]:
        """The statistics of every run."""
        return [self.statistics, *self.further_runs]

    @property
    def all_notes(self) -> list[str]:
        """All notes and cautions that a reader of the scores needs."""
        return [*self.notes, *filter(None, [self.answered]), *self.cautions]

    def number(self, key: str) -> float | None:
        """Return a score that is a single number; None for a list, a count (pairs, documents) or a missing score."""
        value = self.scores.get(key)
        return value if isinstance(value, float) else None

    def counted(self, key: str) -> int | None:
        """Return how many annotations a score counts; None where it counts all, or they have no values of their own."""
        column = self.per_instance.get(key, ())
        known = sum(value is not None and value == value for value in column)
        return known if known < len(column) else None

    def add(self, result: Mapping[str, Any], block: str = "") -> None:
        """Add a metric's flat result; scores that are there already stay.

        So the clipped ``sufficiency`` and ``comprehensiveness`` of normalized_fidelity give way to those of
        eraser_faithfulness, which comes first and has them under the same keys.
        """
        if self.identity is not None and "signature" in result:
            result = {**result, "signature": self.identity.sign(str(result["signature"]))}
        if block:
            self.blocks[block] = result
        used_keys = set(self.scores)
        for key, value in result.items():
            of, is_bound = key.removesuffix("_ci"), key.endswith("_ci")
            if of in used_keys:
                continue
            if key == "signature":
                self.signatures.append(str(value))
            elif key == "per_instance":
                self._add_per_instance(value)
            elif key == "by":
                self.by_class |= {name: {**part, **self.by_class.get(name, {})} for name, part in value.items()}
            elif key in BESIDE and key != "aopc_thresholds":
                continue
            elif not is_bound:
                self.scores[key] = value
            elif len(value) == 2 and not isinstance(value[0], list):
                self.intervals[of] = (float(value[0]), float(value[1]))
            else:
                self.point_intervals[of] = [(float(low), float(high)) for low, high in value]

    def _add_per_instance(self, columns: Mapping[str, Sequence[Any]]) -> None:
        where = {identity: place for place, identity in enumerate(map(str, columns["annotation_id"]))}
        places = [where.get(identity) for identity in self.ids]
        for name, column in columns.items():
            # a value per threshold is drawn as a curve, not as a distribution
            if name not in ("annotation_id", "cluster") and not any(isinstance(value, list) for value in column):
                values = [None if place is None else _finite(column[place]) for place in places]
                self.per_instance.setdefault(name, values)

    # ------------------------------------------------------------------------------------------------------- outputs
    @property
    def block_signatures(self) -> list[str]:
        """One per block."""
        return [str(result["signature"]) for result in self.blocks.values()]

    @property
    def signature(self) -> str:
        """The signatures of all blocks, in one line."""
        return "; ".join(self.block_signatures)

    def digests(self) -> dict[str, Any]:
        """Return the digests of the gold and of each file of predictions, in full; empty for unknown gold."""
        if self.identity is None:
            return {}
        predictions = [compute_file_digest(path) for path in self.files if path.is_file()]  # a pipe is read once
        return {"data_digest": self.identity.data, "predictions_sha256": predictions}

    def as_json(self, per_instance: bool = True) -> dict[str, Any]:
        """Return the content of the score file: flat keys, intervals, names, signatures and what is known beside them.

        Args:
            per_instance: add the values of each annotation, where they were asked for.
        """
        content: dict[str, Any] = {"system": self.name} if self.name else {}
        content |= {**self.names, **({"run": self.run} if self.run else {})}
        bounds = {**self.intervals, **self.point_intervals}
        for key, value in self.scores.items():
            content[key] = _plain(value)
            if key in bounds:
                content[f"{key}_ci"] = _plain(bounds[key])
            if key in self.spread:
                content[f"{key}{SPREAD}"] = _plain(self.spread[key])
        if len(self.runs) > 1:
            content["runs"] = len(self.runs)
        agreement = self.blocks.get("agreement", {})
        content |= {name: _plain(agreement[name]) for name in ("marked", "all") if name in agreement}
        if self.by_class:
            content["by"] = _plain(self.by_class)
        if self.per_instance and per_instance:
            content["per_instance"] = {"annotation_id": list(self.ids), **self._find_clusters(), **self.per_instance}
        tests = {"against_chance": _plain(self.against_chance)} if self.against_chance else {}
        return content | self._describe_data() | tests | self.digests() | {"signature": list(self.signatures)}

    def _find_clusters(self) -> dict[str, list[Any]]:
        """Return the cluster of each annotation, by the first block that has it for all."""
        for flat in self.blocks.values():
            columns = flat.get("per_instance", {})
            known = dict(zip(columns.get("annotation_id", ()), columns.get("cluster", ()), strict=False))
            if known.keys() >= set(self.ids):
                return {"cluster": [known[name] for name in self.ids]}
        return {}

    def _describe_data(self) -> dict[str, Any]:
        """Return ``gold``, and ``chance`` and ``people`` where they are known."""
        if not self.gold:
            return {}
        people = {"people": self.people.as_json()} if self.people is not None and self.people.scores else {}
        return {"gold": _plain(self.gold), **({"chance": self.chance} if self.chance else {}), **people}

    def save(self, path: str | PathLike[str], force: bool = False) -> None:
        """Write the score file; NaN and infinity become null.

        Args:
            path: the file; links are followed, devices and pipes named as ``/dev/fd/N`` are written to.
            force: replace a file that no run wrote.

        Raises:
            DataError: the file is an input or none that a run wrote, or cannot be written; it stays as it was.
        """
        save_json(path, self.as_json(), OutputWriter(tuple(self.inputs), force))

    def __repr__(self) -> str:
        """Return the headline scores as a table, and the notes: what a Python session shows."""
        headline = {key for own in HEADLINE.values() for key in own}
        frame = self.to_frame()
        columns = [name for name in frame.columns if name not in ("low", "high")]
        table = Table("headline", f"Scores: {', '.join(self.names.values())}", ("score",), tuple(columns))
        for key, row in frame[frame.index.isin(headline)].iterrows():
            cells = {name: Cell(float(row[name]), digits=DIGITS) for name in columns if not math.isnan(row[name])}
            if not math.isnan(row["low"]):
                cells["value"] = Cell(
                    float(row["value"]), digits=DIGITS, low=float(row["low"]), high=float(row["high"])
                )
            table.add(str(key), **cells)
        table.notes += [f"{len(frame)} scores: .table(), .to_frame()", *self.notes, *self.cautions]
        return str(table)

    def table(self) -> Tables:
        """Return a table of each block with intervals, of its breakdown, and of chance and people, if known."""
        about = ", ".join(self.names.values())
        if self.reference is None:
            return Tables(about, [_table("scores", about, self.as_json(per_instance=False), numbers=True)])
        tables = Tables(about)
        for name, title in BLOCK_TITLES.items():
            flat = self.blocks.get(name)
            if flat is None:
                continue
            flat = self._drop_lacking(flat)
            title = f"{title}: {about}" if about else title
            tables.tables.append(_table(name, title, flat))
            if name == "agreement" and self.gold and self.chance:
                people = {} if self.people is None else self.people.scores
                beside = {"chance": self.chance} | ({"people": people} if people else {})
                table = Table("chance", f"{title}, {' and '.join(beside)}", ("score",), tuple(beside))
                for key in dict.fromkeys([*self.chance, *(key for key in people if key in self.scores)]):
                    table.add(key, **{head: Cell(own.get(key), digits=DIGITS) for head, own in beside.items()})
                tables.tables.append(table)
            if name == "agreement":
                tables.tables[-1].notes += self.describe_gold()
            if isinstance(groups := flat.get("by"), Mapping):
                groups = {group: self._drop_lacking(scores) for group, scores in groups.items()}
                tables.tables.append(make_breakdown_table(f"{name}_by", f"{title}, by {self.by}", groups, flat))
        if tables.tables:
            tables.tables[-1].notes += [
                f"{side} against {chance['draws']} random rationales: p {format_score(chance['p_value'])}, "
                f"win rate {format_score(chance['win_rate'])}, effect size {format_score(chance['effect_size'])} "
                f"(mean win rate per instance {format_score(chance['mean_win_rate'])})"
                for side, chance in self.against_chance.items()
            ]
        return tables

    def _drop_lacking(self, flat: Mapping[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in flat.items() if key not in self.lacking}

    def describe_gold(self) -> list[str]:
        """Return a line on the gold rationales and on how chance and people are to be read."""
        people = [] if self.people is None else [self.people.describe()]
        if not self.gold:
            return people
        chance = "; chance: random rationales of the same size" if self.chance else ""
        return [f"{describe_gold(self.gold)}{chance}", *people]

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each single score: value, ends of its interval, and chance and people where known."""
        import pandas as pd

        keys = [key for key in self.scores if self.number(key) is not None]
        ends = [self.intervals.get(key, (math.nan, math.nan)) for key in keys]
        columns = {"value": [self.scores[key] for key in keys], "low": [low for low, _ in ends]}
        columns["high"] = [high for _, high in ends]
        if self.gold:
            columns["chance"] = [self.chance.get(key, math.nan) for key in keys]
        if self.people is not None and self.people.scores:
            columns["people"] = [self.people.scores.get(key, math.nan) for key in keys]
        frame: pd.DataFrame = pd.DataFrame(columns, index=pd.Index(keys, name="score"))
        return frame

    def _repr_html_(self) -> str:
        return str(self.to_frame().to_html(float_format=f"{{:.{DIGITS}f}}".format, na_rep=""))


def describe_gold(gold: Mapping[str, Any]) -> str:
    """Return a line on gold rationales: split, annotations with and without them, density, comprehensive or not."""
    rows = f"{gold['marked_rows']:,} annotations with gold rationale, {gold['unmarked_rows']:,} without"
    density = f"; {gold['density']:.1%} of the tokens are gold where there is any" if gold["marked_rows"] else ""
    return f"gold of {gold['split']}: {rows}{density}; {COMPREHENSIVE[gold.get('comprehensive')]}"


def save_json(path: str | PathLike[str], content: Mapping[str, Any], writer: OutputWriter) -> None:
    """Write a result as JSON; NaN and infinity become null.

    Raises:
        DataError: what the writer refuses, or the file cannot be written; it stays as it was.
    """
    path = Path(path)
    try:
        writer.write(path, to_json_bytes(content))
    except OSError as error:
        words = f"cannot be written: {error.strerror or error}"
        raise DataError(words, rule="file-unreadable", file=path) from None


class Comparison(dict[str, Any]):
    """The result of a comparison: a dictionary with further forms.

    Attributes:
        inputs: the files and folders that were read; `save` refuses them.
    """

    inputs: Sequence[Path] = ()

    def save(self, path: str | PathLike[str], force: bool = False) -> None:
        """Write the result as JSON; NaN and infinity become null; arguments and errors as of `Scores.save`."""
        save_json(path, self, OutputWriter(tuple(self.inputs), force))

    def __repr__(self) -> str:
        """Return the tests of the headline scores as tables, and the notes: what a Python session shows."""
        tables = self.table()
        pairs = tables.tables[: len(self["comparisons"])]
        for table in pairs:
            table.rows = [row for row in table.rows if row[0][0] in self["family"]]
        notes = [line for table in tables.tables[len(pairs) :] for line in table.notes if line not in pairs[-1].notes]
        pairs[-1].notes += ["all scores: .table(), .to_frame()", *notes, *self.get("score_notes", ())]
        return str(Tables(tables.dataset, pairs))

    def table(self) -> Tables:
        """Return a table for each pair of systems; ``.written(format)`` is its text."""
        return make_comparison_tables(self)

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each pair of systems and score: both scores, and the figures of their difference.

        ``low`` and ``high`` are the ends of ``ci``.
        """
        import pandas as pd

        rows = [
            {"first": pair["first"], "second": pair["second"], "score": key}
            | {f"{side}_value": self["scores"][pair[side]][key] for side in ("first", "second")}
            | {"difference": figures["difference"], "low": figures["ci"][0], "high": figures["ci"][1], **figures}
            for pair in self["comparisons"]
            for key, figures in pair["keys"].items()
        ]
        frame: pd.DataFrame = pd.DataFrame(rows)
        return frame

    def _repr_html_(self) -> str:
        return str(self.to_frame().to_html(float_format=f"{{:.{DIGITS}f}}".format, na_rep=""))


def average_runs(runs: Sequence[Scores]) -> Scores:
    """Average several runs of one system: the mean of each score and its spread.

    Values of single instances are those of the first run, and a caution says so.
    """
    first = runs[0]
    if len(runs) == 1:
        return first
    scores, spread = dict(first.scores), {}
    for key in [key for key in scores if all(run.number(key) is not None for run in runs)]:
        values = [run.scores[key] for run in runs]
        scores[key], spread[key] = fmean(values), stdev(values)
    for key, value in first.scores.items():
        columns = [run.scores.get(key) for run in runs]
        if isinstance(value, list) and all(isinstance(one, list) and len(one) == len(value) for one in columns):
            scores[key] = [fmean(points) for points in zip(*columns, strict=True)]
    own = {line for run in runs for line in run.block_signatures}
    count = f"|runs:{len(runs)}|"  # behind the number of annotations
    signatures = list(
        dict.fromkeys(
            re.sub(r"(\|n:\d+)\|", rf"\1{count}", line, count=1) if line in own else line
            for run in runs
            for line in run.signatures
        )
    )
    further = [line for run in runs[1:] for line in run.notes if line not in first.notes]
    words = f"classes, distributions and documents show the first of {len(runs)} runs; scores are means, ± their spread"
    return replace(
        first,
        chance=average_chance([run.chance for run in runs]),
        scores=scores,
        spread=spread,
        intervals={},
        point_intervals={},
        signatures=[f"mean of {len(runs)} runs", *signatures],
        files=[path for run in runs for path in run.files],
        notes=list(dict.fromkeys([*first.notes, *(f"another run: {line}" for line in further)])),
        cautions=[*first.cautions, words],
        further_runs=[run.statistics for run in runs[1:]],
    )


def average_chance(chance: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the mean of each score of chance that all runs have."""
    shared = [key for key in chance[0] if all(key in one for one in chance)]
    return {key: fmean(one[key] for one in chance) for key in shared}


def _table(name: str, title: str, flat: Mapping[str, Any], numbers: bool = False) -> Table:
    """Return a line for each score of a flat result; with ``numbers`` only for scores that are numbers."""
    table = Table(name, title, ("score",), ("value",))
    for key, cell in make_score_cells(flat, None if numbers else flat.get("aopc_thresholds")):
        if not numbers or cell.number is not None:
            table.add(key, value=cell)
    return table


def _finite(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return _finite(value)
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def to_json_bytes(scores: Mapping[str, Any]) -> bytes:
    """Return scores as JSON; NaN and infinity become null."""
    # orjson writes null for both
    return orjson.dumps(scores, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
