"""Base of the modules, between evaluate's API and the measures: rows, keyword arguments, breakdowns, signature.

Rows stay in memory as they come; a module runs in one process.
"""

from __future__ import annotations

import inspect
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar

import datasets
import evaluate

from .errors import DataError, cut, find_similar
from .rows import row_id, to_list
from .statistics import Measured, Score, Statistics, summarize

Row = Mapping[str, Any]
DEYOUNG2020 = """\
@inproceedings{deyoung2020eraser,
  title = {{ERASER}: A Benchmark to Evaluate Rationalized {NLP} Models},
  author = {DeYoung, Jay and Jain, Sarthak and Rajani, Nazneen Fatema and Lehman, Eric and Xiong, Caiming and
            Socher, Richard and Wallace, Byron C.},
  booktitle = {Proceedings of the 58th Annual Meeting of the Association for Computational Linguistics (ACL)},
  year = {2020},
  url = {https://aclanthology.org/2020.acl-main.408}
}
"""
# of compute, and their kinds; `check_inference` checks the other values
OPTIONS = {"by": "str | None", "cluster_by": "str", "per_instance": "bool"}
OPTIONS |= dict.fromkeys(("confidence_level", "n_resamples", "seed"), "")
# annotation of a setting -> what is expected, and whether a value is it; measures check choices and ranges
KINDS: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    "bool": ("True or False", lambda value: isinstance(value, bool)),
    "float": ("a number", lambda value: isinstance(value, (int, float)) and not isinstance(value, bool)),
    "str": ("a string", lambda value: isinstance(value, str)),
    "Sequence[float]": ("a list of numbers", lambda value: _is_list(value, (int, float))),
    "Sequence[str]": ("a list of strings", lambda value: _is_list(value, str)),
}


def _is_list(value: Any, kind: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, kind) and not isinstance(each, bool) for each in value)


class RationaleMetric:
    """Mixin before ``evaluate.Metric``: a class with it implements ``measure(predictions, references, **settings)``.

    ``measure`` gets lists of rows (None for a side without rows) and returns a `Measured`. The docstring of the class
    describes the scores, and from ``Args:`` on the inputs and the result.

    Attributes:
        CITATION: BibTeX of the paper that defines the scores.
        SCORES: key -> score, of rows with every field; gives ``higher_is_better`` and ``ranges`` of the module's info.
        HEADLINE: the scores that a table shows first.
    """

    CITATION: ClassVar[str] = ""
    SCORES: ClassVar[Mapping[str, Score]] = {}
    HEADLINE: ClassVar[Sequence[str]] = ()
    name: str
    num_process: int
    measure: Callable[..., Measured]

    def _info(self) -> evaluate.MetricInfo:
        described, _, inputs = inspect.cleandoc(type(self).__doc__ or "").partition("\n\nArgs:\n")
        info = evaluate.MetricInfo(
            description=f"{described}\n",
            citation=self.CITATION,
            inputs_description=f"\nArgs:\n{inputs}\n",
            features=datasets.Features(dict.fromkeys(("predictions", "references"), datasets.Value("string"))),
            license="Apache-2.0",
        )
        vars(info).update(
            higher_is_better={key: score.higher_is_better for key, score in self.SCORES.items()},
            ranges={key: (score.low, score.high) for key, score in self.SCORES.items()},
            headline=tuple(self.HEADLINE),
        )
        return info

    def __len__(self) -> int:
        return len(self._rows["predictions"] or ())

    @property
    def _rows(self) -> dict[str, list[Any] | None]:
        return vars(self).setdefault("_held", {"predictions": None, "references": None})  # type: ignore[no-any-return]

    def add_batch(self, *, predictions: Any = None, references: Any = None) -> None:
        """Keep a batch of predictions and references; both may come in any order, and in different batches.

        Args:
            predictions: a list of rows, a Dataset, an Arrow table, a DataFrame, or a dict of columns; see below.
            references: likewise.

        Raises:
            DataError: something else; several processes.
        """
        if self.num_process > 1:
            raise DataError(
                f"expected 1 process, found {self.num_process}: rows are kept in memory", argument="num_process"
            )
        for side, data in (("predictions", predictions), ("references", references)):
            if data is not None:
                self._rows[side] = [*(self._rows[side] or ()), *to_rows(data, side)]

    def add(
        self, *, prediction: Any = None, reference: Any = None, predictions: Any = None, references: Any = None
    ) -> None:
        """Keep one prediction and one reference; the plural names are those that ``evaluate.combine`` uses."""
        sides = {"predictions": (prediction, predictions), "references": (reference, references)}
        for side, given in sides.items():
            row = next((each for each in given if each is not None), None)
            self.add_batch(**{side: None if row is None else [row]})

    def compute(self, *, predictions: Any = None, references: Any = None, **settings: Any) -> dict[str, Any]:
        """Return the scores of all rows that were added, and of those given here.

        Args:
            predictions: as for ``add_batch``.
            references: likewise.
            **settings: see below; an unknown one is a TypeError.

        Returns:
            A flat dict of plain Python numbers.

        Raises:
            ValueError: wrong input; it names the instance and the field.
        """
        self._check_settings(settings, OPTIONS)
        options = {key: settings.pop(key) for key in OPTIONS if key in settings}
        try:
            self.add_batch(predictions=predictions, references=references)
            rows = dict(self._rows)
        finally:
            vars(self).pop("_held", None)
        try:
            measured = self.measure(rows["predictions"], rows["references"], **settings)
        except RecursionError:
            raise DataError("expected rows of this format, found lists within lists past any bound") from None
        sides, ids = [rows["references"] or (), rows["predictions"] or ()], measured.statistics.ids
        cluster_by, by = options.pop("cluster_by", "auto"), options.get("by")
        if cluster_by != "auto":
            values = None if cluster_by == "none" else read_column(cluster_by, ids, sides, "cluster_by")
            measured.statistics.set_clusters(cluster_by, values)
        if by is not None:
            numbered = dict(enumerate(settings.get("label_names") or ()))
            options["groups"] = [numbered.get(each, each) for each in read_column(by, ids, sides, "by")]
        result, notes = summarize(self.name, measured, **options)
        for note in notes:
            warnings.warn(note, stacklevel=2)
        return result

    def statistics(self, predictions: Any = None, references: Any = None, **settings: Any) -> Statistics:
        """Return the additive statistics per annotation, for a comparison of systems; arguments as for ``compute``."""
        self._check_settings(settings)
        sides = {"predictions": predictions, "references": references}
        rows = [None if data is None else to_rows(data, side) for side, data in sides.items()]
        return self.measure(*rows, **settings).statistics

    def _check_settings(self, settings: dict[str, Any], options: Mapping[str, str] = {}) -> None:
        """Check the keyword arguments against those of ``measure``; lists and numbers of any kind become plain."""
        own = [*inspect.signature(self.measure).parameters.items()][2:]
        known = {**{key: str(parameter.annotation) for key, parameter in own}, **options}
        for key, value in settings.items():
            if key not in known:
                near = find_similar(key, known)
                hint = f"did you mean {near!r}?" if near else f"expected one of {', '.join(known)}"
                raise TypeError(f"{self.name}: unknown keyword argument {key!r}: {hint}")
            settings[key] = value = to_list(value) if hasattr(value, "__len__") or hasattr(value, "item") else value
            kind, _, optional = known[key].partition(" | ")
            expected, is_kind = KINDS.get(kind, ("", None))
            if is_kind and not is_kind(value) and not (value is None and optional):
                raise DataError(f"expected {expected}, found {cut(value)}", argument=key)

    def _compute(self, **_: Any) -> dict[str, Any]:
        raise NotImplementedError  # evaluate wants the method; `compute` does not call it


def read_column(name: str, ids: Sequence[str], sides: Sequence[Sequence[Row]], argument: str) -> list[Any]:
    """Return the value of a column for each id, from the first side whose rows have it.

    Raises:
        DataError: no side has the column for every id; a value is a list or an object.
    """
    for rows in sides:
        values = {row_id(row): to_list(row[name]) for row in rows if isinstance(row, Mapping) and name in row}
        if all(key in values for key in ids):
            column = [values[key] for key in ids]
            bad = next((each for each in column if isinstance(each, (list, dict))), None)
            if bad is not None:
                raise DataError(f"expected a column of single values, found {cut(bad)} in {name!r}", argument=argument)
            return column
    raise DataError(f"expected the column {name!r} in every row, found rows without it", argument=argument)


def to_rows(data: Any, name: str) -> list[dict[str, Any]]:
    """Return data as a list of dicts; numbers of a ClassLabel become names.

    Args:
        data: a list of dicts, a Dataset, an Arrow table, a DataFrame, a dict of columns, or any iterable of dicts.
        name: "predictions" or "references", for messages.

    Raises:
        DataError: it is something else, or a row is no dict.
    """
    labels: dict[str, list[str]] = {}
    if hasattr(data, "features") and hasattr(data, "with_format"):  # a Dataset; one that streams has no length
        labels = {key: kind.names for key, kind in (data.features or {}).items() if hasattr(kind, "int2str")}
        data = data.with_format("arrow")[:] if hasattr(data, "num_rows") else map(dict, data.with_format(None))
    names = getattr(data, "column_names", getattr(data, "columns", ()))
    twice = next((each for each, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise DataError(f"expected each column once, found {cut(twice)} twice", argument=name)
    if hasattr(data, "to_pylist"):
        data = data.to_pylist()
    elif hasattr(data, "to_dict") and hasattr(data, "columns"):
        data = data.to_dict("records")
    elif isinstance(data, Mapping):
        lengths = {key: len(column) if hasattr(column, "__len__") else -1 for key, column in data.items()}
        if len(set(lengths.values())) != 1 or -1 in lengths.values() or any(isinstance(c, str) for c in data.values()):
            raise DataError(f"expected a list of rows, or columns of one length, found {cut(data)}", argument=name)
        data = [dict(zip(data, cells, strict=True)) for cells in zip(*data.values(), strict=True)]
    if isinstance(data, (str, bytes)) or not isinstance(data, Iterable) or getattr(data, "ndim", 1) == 0:
        raise DataError(f"expected a list of rows, a Dataset or a table, found {cut(data)}", argument=name)
    rows = list(data)
    for key, known in labels.items():
        for row in rows:
            if isinstance(row.get(key), int) and 0 <= row[key] < len(known):
                row[key] = known[row[key]]
    return rows
