"""The scores of predictions on a split: one object and one JSON layout, of one run or of the mean of several.

{"system", "dataset", "config", "split", "run",        the names, where they are known
 KEY: number or list, "KEY_ci": [low, high], ..        the scores of all metrics
 "KEY_spread": number, "runs": number,                 of several runs
 "marked": {KEY: ..}, "all": {KEY: ..},                where some annotations have no gold rationale
 "by": {GROUP: {KEY: ..}},
 "per_instance": {"annotation_id": [..], "cluster": [..], KEY: [..]},
 "gold": {..}, "chance": {KEY: ..}, "people": {..},
 "data_digest", "predictions_sha256": [..], "signature": [..]}
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

import msgspec

from eraser_hub.metrics.errors import DataError
from eraser_hub.metrics.statistics import Measured, Statistics, summarize
from eraser_hub.papers import COMPREHENSIVE
from eraser_hub.records.files import OutputWriter, to_json_bytes
from eraser_hub.records.tables import Cell, Table, Tables

if TYPE_CHECKING:
    import pandas as pd

    from .score import ScoreSettings

# the scores that are shown and tested, in this order; of several in a line the first that is there
HEADLINE = (
    ("token_macro_f1",),
    ("iou_macro_f1",),
    ("average_precision", "auprc"),
    ("comprehensiveness_aopc", "comprehensiveness"),
    ("sufficiency_aopc", "sufficiency"),
    ("macro_f1",),
    ("map",),
    ("normalized_sufficiency",),
    ("normalized_comprehensiveness",),
)
DIGITS = 4
MAX_ANNOTATORS = 20  # above it each is scored on a few texts, and the time is long
NO_COVERAGE = "coverage is left out: a corpus folder does not say which documents were read"
INTERVAL, SPREAD = "_ci", "_spread"  # suffixes of a key
PRF = ("p", "r", "f1")
RANKING = ("auprc", "average_precision", "roc_auc_score")


def choose_headline(keys: Collection[str], paper: str | None = None) -> list[str]:
    """Return the headline scores among these keys; the preset of ERASER's code has AUPRC for average precision.

    >>> choose_headline(["auprc", "average_precision", "sufficiency", "sufficiency_aopc"], paper="eraser")
    ['auprc', 'sufficiency_aopc']
    """
    chosen = []
    for choices in HEADLINE:
        ordered = choices[::-1] if paper == "eraser" and "auprc" in choices else choices
        chosen += [key for key in ordered if key in keys][:1]
    return chosen


@dataclass(repr=False, eq=False)
class Scores(Mapping[str, Any]):
    """Scores of predictions on a split: a mapping from key to a number, or to a list of numbers (points, thresholds).

    `add` fills in what a metric's result holds; the other attributes are the scorer's.

    Attributes:
        name: name of the system; "" for none.
        names: dataset, config and split, as far as they are known.
        ids: of the annotations, in the order of `per_instance`.
        scores: key -> number or list; of a key of several metrics the first one's.
        statistics: metric (``eraser_agreement``) -> its additive statistics, for comparisons.
        further_runs: of several runs the statistics of all but the first.
        intervals: key of a number -> (low, high); of a list -> [(low, high) of each entry].
        spread: of several runs key -> standard deviation over them; scores are means then.
        per_instance: key -> a value per annotation; None where an annotation has none. Empty unless asked for.
        by: the column of the breakdown.
        by_class: value of that column -> key -> number or list.
        subsets: ``marked`` and ``all`` -> key -> number, where some annotations have no gold rationale.
        gold: ``marked_rows``, ``unmarked_rows`` (annotations with and without gold rationale), ``density`` (mean share
            of gold tokens where there are any), ``split``, ``comprehensive`` (by ERASER; None: unknown).
        chance: key -> the score of random rationales of the same size.
        people: where annotators are known: ``annotators`` (their number), ``gold`` (what each is scored against),
            ``scores`` and ``spread``: key -> mean and standard deviation over annotators.
        label_report: precision, recall, F1 and support per label, in the layout of the reference scorer.
        iou_thresholds: those of the scores; the keys of one of them have no suffix.
        paper: the preset.
        signatures: one per metric, and that of the run that wrote the predictions.
        run: the latter; "" where there is none.
        notes: what was left out or guessed.
        cautions: on intervals, and on values of several runs.
        data_digest: digest of the gold; "" where it is not known.
        predictions_sha256: digest of each file of predictions.
        files: these files.
        inputs: the files and folders that were read; `save` refuses them.
    """

    name: str = ""
    names: Mapping[str, str] = field(default_factory=dict)
    ids: Sequence[str] = ()
    scores: dict[str, Any] = field(default_factory=dict)
    statistics: dict[str, Statistics] = field(default_factory=dict)
    further_runs: list[dict[str, Statistics]] = field(default_factory=list)
    intervals: dict[str, Any] = field(default_factory=dict)
    spread: dict[str, float] = field(default_factory=dict)
    per_instance: dict[str, Sequence[float | None]] = field(default_factory=dict)
    by: str | None = None
    by_class: dict[str, dict[str, Any]] = field(default_factory=dict)
    subsets: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    gold: dict[str, Any] = field(default_factory=dict)
    chance: dict[str, float] = field(default_factory=dict)
    people: dict[str, Any] | None = None
    label_report: Mapping[str, Any] | None = None
    iou_thresholds: Sequence[float] = (0.5,)
    paper: str | None = None
    signatures: list[str] = field(default_factory=list)
    run: str = ""
    notes: list[str] = field(default_factory=list)
    cautions: list[str] = field(default_factory=list)
    data_digest: str = ""
    predictions_sha256: list[str] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)
    inputs: Sequence[Path] = ()

    def __getitem__(self, key: str) -> Any:
        return self.scores[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.scores)

    def __len__(self) -> int:
        return len(self.scores)

    @property
    def signature(self) -> str:
        """All signatures in one line."""
        return "; ".join(self.signatures)

    @property
    def runs(self) -> list[dict[str, Statistics]]:
        """The statistics of every run."""
        return [self.statistics, *self.further_runs]

    @property
    def all_notes(self) -> list[str]:
        """Notes and cautions."""
        return [*self.notes, *self.cautions]

    @property
    def headline(self) -> list[str]:
        """The keys of the headline scores and of a user's own; of all scores where there are none of these."""
        custom = list(self.statistics["custom"].scores) if "custom" in self.statistics else []
        return [*choose_headline(self.scores, self.paper), *custom] or list(self.scores)

    def number(self, key: str) -> float | None:
        """Return a score that is a single number; None for a list, a count (pairs, documents) or a missing score."""
        value = self.scores.get(key)
        return value if isinstance(value, float) else None

    def counted(self, key: str) -> int | None:
        """Return how many annotations a score counts; None where it counts all, or that is not known."""
        values = self.per_instance.get(key, ())
        known = sum(value is not None and not math.isnan(value) for value in values)
        return known if known < len(values) else None

    def add(self, metric: str, result: Mapping[str, Any], statistics: Statistics | None = None) -> None:
        """Add a metric's result; scores that are there already stay.

        So the clipped ``sufficiency`` and ``comprehensiveness`` of normalized_fidelity give way to those of
        eraser_faithfulness, which comes first and has them under the same keys.

        Args:
            metric: its name.
            result: as the module's ``compute`` returns it: flat, with ``KEY_ci``, ``by``, ``per_instance`` and others.
            statistics: what the result was computed from.
        """
        if statistics is not None:
            self.statistics[metric] = statistics
        known = set(self.scores)
        for key, value in result.items():
            if key == "signature":
                self.signatures.append(value)
            elif key == "per_instance":
                self._add_per_instance(value)
            elif key == "by":
                for group, scores in value.items():
                    earlier = self.by_class.get(group, {})
                    self.by_class[group] = earlier | {name: scores[name] for name in scores if name not in earlier}
            elif key in ("gold", "chance"):
                getattr(self, key).update(value)
            elif key in ("marked", "all"):
                self.subsets[key] = value
            elif key.removesuffix(INTERVAL) in known:
                continue
            elif key.endswith(INTERVAL):
                self.intervals[key.removesuffix(INTERVAL)] = value
            else:
                self.scores[key] = value

    def add_measured(
        self, metric: str, measured: Measured, settings: ScoreSettings, groups: Mapping[str, Any], n: int
    ) -> None:
        """Add what a metric measures: its scores, intervals, breakdown and values per annotation.

        Args:
            metric: its name.
            measured: of the annotations that are scored.
            settings: how predictions are scored.
            groups: id -> value of the column ``by``.
            n: the number of annotations that are scored.
        """
        names = {"data": self.data_digest[:12], "config": self.names.get("config"), "split": self.names.get("split")}
        result, notes = summarize(
            metric,
            measured,
            {**{name: value for name, value in names.items() if value}, "n": n},
            by=settings.by,
            groups=[groups[name] for name in measured.statistics.ids] if settings.by is not None else (),
            per_instance=settings.per_instance,
            confidence_level=settings.confidence_level,
            n_resamples=settings.n_resamples,
            seed=settings.seed,
        )
        self.notes += notes[: len(measured.notes)]
        self.cautions += [note for note in notes[len(measured.notes) :] if note not in self.cautions]
        self.add(metric, result, measured.statistics)

    def _add_per_instance(self, columns: Mapping[str, Sequence[Any]]) -> None:
        """Put a metric's values in the order of all annotations; lists (a value per threshold) are left out."""
        places = {str(name): place for place, name in enumerate(columns["annotation_id"])}
        for key, column in columns.items():
            if key in ("annotation_id", "cluster") or key in self.per_instance:
                continue
            if any(isinstance(value, list) for value in column):
                continue
            found = [column[places[name]] if name in places else None for name in self.ids]
            self.per_instance[key] = [value if value is not None and math.isfinite(value) else None for value in found]

    def as_json(self, per_instance: bool = True) -> dict[str, Any]:
        """Return the content of the score file, see the module's docstring; NaN and infinity are None.

        Args:
            per_instance: with the values of each annotation, where they were asked for.
        """
        named = {"system": self.name, **self.names, "run": self.run}
        content: dict[str, Any] = {name: value for name, value in named.items() if value}
        for key, value in self.scores.items():
            content[key] = value
            if key in self.intervals:
                content[key + INTERVAL] = self.intervals[key]
            if key in self.spread:
                content[key + SPREAD] = self.spread[key]
        blocks = {"runs": len(self.runs) if self.further_runs else 0, **self.subsets, "by": self.by_class}
        if self.per_instance and per_instance:
            blocks["per_instance"] = {"annotation_id": list(self.ids), **self._find_clusters(), **self.per_instance}
        people = self.people if self.people and self.people["scores"] else None
        blocks |= {"gold": self.gold, "chance": self.chance, "people": people}
        if self.data_digest:
            blocks |= {"data_digest": self.data_digest, "predictions_sha256": self.predictions_sha256}
        content |= {name: block for name, block in blocks.items() if block} | {"signature": self.signatures}
        plain: dict[str, Any] = msgspec.json.decode(to_json_bytes(content))
        return plain

    def _find_clusters(self) -> dict[str, list[int]]:
        """Return the cluster of each annotation, by the first metric that scores all of them."""
        for statistics in self.statistics.values():
            clusters = range(len(statistics.ids)) if statistics.clusters is None else statistics.clusters.tolist()
            by_id = dict(zip(statistics.ids, clusters, strict=True))
            if by_id.keys() >= set(self.ids):
                return {"cluster": [by_id[name] for name in self.ids]}
        return {}

    def save(self, path: str | PathLike[str], force: bool = False) -> None:
        """Write the score file; NaN and infinity become null.

        Args:
            path: the file.
            force: replace a file that no run wrote.

        Raises:
            DataError: the file is an input or none that a run wrote, or cannot be written; it stays as it was.
        """
        save_json(path, self.as_json(), self.inputs, force)

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each single score: value, ends of its interval, and chance and people where known."""
        import pandas as pd

        keys = [key for key in self.scores if self.number(key) is not None]
        columns = {"value": [self.scores[key] for key in keys]}
        for place, end in enumerate(("low", "high")):
            columns[end] = [self.intervals[key][place] if key in self.intervals else math.nan for key in keys]
        for name, values in self._list_beside().items():
            columns[name] = [values.get(key, math.nan) for key in keys]
        frame: pd.DataFrame = pd.DataFrame(columns, index=pd.Index(keys, name="score"))
        return frame

    def _list_beside(self) -> dict[str, Mapping[str, float]]:
        """Return the columns beside the scores: spread over runs, chance and people, where there are any."""
        people = self.people["scores"] if self.people else {}
        beside = {"spread": self.spread, "chance": self.chance, "people": people}
        return {name: values for name, values in beside.items() if values}

    def table(self, whole: bool = False) -> Tables:
        """Return a table of the scores with intervals, chance and people, and one of the breakdown.

        Args:
            whole: all scores; by default the headline scores.
        """
        keys, beside = list(self.scores) if whole else self.headline, self._list_beside()
        about = ", ".join(self.names.values())
        table = Table("scores", f"Scores: {about}" if about else "Scores", ("score",), ("value", *beside))
        for name, value in self._make_cells(keys, self.scores, self.intervals):
            table.add(name, value=value, **{head: Cell(of.get(name), digits=DIGITS) for head, of in beside.items()})
        table.notes += self.describe_gold()
        if len(keys) < len(self.scores):
            table.notes.append(f"{len(keys)} of {len(self.scores)} scores")
        tables = Tables(about, [table])
        if self.by_class:
            title = f"{table.title}, by {self.by or 'group'}"
            groups = Table("scores_by", title, ("score",), tuple(self.by_class), is_verbatim=True)
            rows: dict[str, dict[str, Cell]] = {}
            for group, scores in self.by_class.items():
                for name, cell in self._make_cells(keys, scores, {}):
                    rows.setdefault(name, {})[group] = cell
            for name, cells in rows.items():
                groups.add(name, **cells)
            tables.tables.append(groups)
        return tables

    def _make_cells(
        self, keys: Sequence[str], scores: Mapping[str, Any], intervals: Mapping[str, Any]
    ) -> Iterator[tuple[str, Cell]]:
        """Yield name and cell of each score; of a list of points one for each threshold, ``KEY@THRESHOLD``."""
        thresholds = self.scores.get("aopc_thresholds") or []
        for key in keys:
            value = scores.get(key)
            if isinstance(value, list) and key.endswith("_points") and len(value) == len(thresholds):
                ends = intervals.get(key) or [(None, None)] * len(value)
                for threshold, point, (low, high) in zip(thresholds, value, ends, strict=True):
                    yield f"{key}@{threshold:g}", Cell(point, digits=DIGITS, low=low, high=high)
            elif isinstance(value, list) and key != "aopc_thresholds":
                yield key, Cell(" ".join(f"{number:g}" for number in value))
            elif isinstance(value, int | float | str):
                low, high = intervals.get(key, (None, None))
                yield key, Cell(value, digits=DIGITS, low=low, high=high)

    def describe_gold(self) -> list[str]:
        """Return lines on the gold rationales, and on how chance and people are to be read."""
        lines = []
        if self.gold:
            chance = "; chance: random rationales of the same size" if self.chance else ""
            lines.append(f"{describe_gold(self.gold)}{chance}")
        if self.people:
            many, others = f"more than {MAX_ANNOTATORS} annotators are not scored", self.people["gold"]
            about = f"{self.people['annotators']} annotators, each against the {others}; the mean over annotators"
            lines.append(f"people: {about if self.people['scores'] else many}")
        return lines

    def __repr__(self) -> str:
        """Return the headline scores as a table, and the notes: what a Python session shows."""
        tables = self.table()
        tables.tables[-1].notes += [*self.all_notes, "all scores: .table(whole=True), .to_frame()"]
        return str(tables)

    def _repr_html_(self) -> str:
        frame = self.to_frame()
        shown = frame[frame.index.isin(self.headline)]
        return str(shown.to_html(float_format=f"{{:.{DIGITS}f}}".format, na_rep=""))

    def to_eraser(self) -> dict[str, Any]:
        """Return the nested layout of the reference scorer, without sections that the predictions have no fields for.

        Raises:
            DataError: the scores are those of another benchmark.
        """
        s, sections = self.scores, dict[str, Any]()
        if self.label_report is not None or "comprehensiveness" in s or "sufficiency" in s:
            section: dict[str, Any] = {"accuracy": s.get("accuracy"), "prf": self.label_report}
            for side in ("comprehensiveness", "sufficiency"):
                for suffix in ("", "_entropy", "_kl", "_aopc", "_aopc_points"):
                    section[side + suffix] = s.get(side + suffix)
            sections["classification_scores"] = section | {"aopc_thresholds": s.get("aopc_thresholds")}
        if "iou_micro_f1" in s:
            sections["iou_scores"] = []
            for threshold in self.iou_thresholds:
                suffix = f"@{float(threshold)!r}" if f"iou_micro_f1@{float(threshold)!r}" in s else ""
                kinds = ("micro", "macro", "matched")
                scores = {kind: {part: s[f"iou_{kind}_{part}{suffix}"] for part in PRF} for kind in kinds}
                sections["iou_scores"].append({"threshold": threshold, **scores})
            for name, unit in (("rationale_prf", "exact"), ("token_prf", "token")):
                sections[name] = {
                    f"instance_{kind}": {part: s[f"{unit}_{kind}_{part}"] for part in PRF}
                    for kind in ("micro", "macro")
                }
        for name, prefix in (("token_soft_metrics", ""), ("sentence_soft_metrics", "sentence_")):
            if f"{prefix}auprc" in s:
                sections[name] = {key: s[prefix + key] for key in RANKING}
        if not sections:
            raise DataError("expected scores of ERASER, found none of its scorer's", argument="format")
        return sections


def describe_gold(gold: Mapping[str, Any]) -> str:
    """Return a line on gold rationales: split, annotations with and without them, density, comprehensive or not."""
    rows = f"{gold['marked_rows']:,} annotations with gold rationale, {gold['unmarked_rows']:,} without"
    density = f"; {gold['density']:.1%} of the tokens are gold where there is any" if gold["marked_rows"] else ""
    name = f"gold of {gold['split']}" if gold.get("split") else "gold"
    return f"{name}: {rows}{density}; {COMPREHENSIVE[gold.get('comprehensive')]}"


def average_runs(runs: Sequence[Scores]) -> Scores:
    """Average several runs of one system: the mean of each score, and its standard deviation over runs.

    Breakdowns and values of single annotations are those of the first run, and a caution says so.
    """
    first = runs[0]
    if len(runs) == 1:
        return first
    scores, spread, lost = dict(first.scores), {}, list[str]()
    for key, value in first.scores.items():
        found: list[Any] = [run.scores.get(key) for run in runs]
        if all(isinstance(each, float) for each in found):
            scores[key] = fmean(found)
            spread[key] = stdev(found) if math.isfinite(scores[key]) else math.nan  # of KL that is infinite
        elif all(isinstance(each, list) and len(each) == len(value) for each in found):
            scores[key] = [fmean(points) for points in zip(*found, strict=True)]
        elif any(each is None for each in found):
            del scores[key]
            lost.append(key)
    count = rf"\1|runs:{len(runs)}"  # behind the number of annotations
    signed = dict.fromkeys(re.sub(r"(\|n:\d+)(?=\|)", count, line, count=1) for run in runs for line in run.signatures)
    further = dict.fromkeys(line for run in runs[1:] for line in run.notes if line not in first.notes)
    missing = [f"left out, because not every run has them: {', '.join(lost)}"] if lost else []
    shared = set(first.chance).intersection(*(run.chance for run in runs))
    caution = f"groups and single instances show the first of {len(runs)} runs; scores are means, with their spread"
    return replace(
        first,
        scores=scores,
        spread=spread,
        intervals={},
        chance={key: fmean(run.chance[key] for run in runs) for key in first.chance if key in shared},
        further_runs=[run.statistics for run in runs[1:]],
        signatures=list(signed),
        notes=[*first.notes, *(f"another run: {line}" for line in further), *missing],
        subsets={},
        label_report=None,
        cautions=[*first.cautions, caution],
        predictions_sha256=[digest for run in runs for digest in run.predictions_sha256],
        files=[path for run in runs for path in run.files],
    )


def save_json(
    path: str | PathLike[str], content: Mapping[str, Any], inputs: Sequence[Path] = (), force: bool = False
) -> None:
    """Write a result as JSON; NaN and infinity become null.

    Args:
        path: the file.
        content: the result.
        inputs: the files and folders that were read, which are never replaced.
        force: replace a file that no run wrote.

    Raises:
        DataError: the file may not be replaced or cannot be written; it stays as it was.
    """
    path = Path(path)
    try:
        OutputWriter(tuple(inputs), force).write(path, to_json_bytes(content))
    except OSError as error:
        raise DataError(f"cannot be written: {error.strerror or error}", file=path) from None
