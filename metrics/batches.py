"""What all modules have between evaluate's API and what they measure: ``add``, ``add_batch``, ``compute``, and `info`.

With one process batches stay in memory as they are kept; with several (``num_process``) they travel as bytes through
evaluate's shared files.
"""

from __future__ import annotations

import inspect
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import datasets
import evaluate

from .clusters import AUTO, AnnotationColumns, clustered
from .pool import Statistics
from .results import breakdown_note, report
from .sources import PaperSource
from .strangers import nearly

Kept = TypeVar("Kept")
LICENSE = "Apache-2.0"
# what of a batch travels through evaluate's shared files
PACKED = datasets.Features(
    {"predictions": datasets.Value("large_binary"), "references": datasets.Value("large_binary")}
)


def info(
    description: str,
    source: PaperSource,
    features: Mapping[str, Mapping[str, Any]],
    inputs_description: str,
    higher_is_better: Mapping[str, bool | None],
    ranges: Mapping[str, tuple[float | None, float | None]],
    headline: Sequence[str] = (),
) -> evaluate.MetricInfo:
    """What a module says of itself; beside evaluate's own fields ``higher_is_better``, ``ranges`` and ``headline``.

    Args:
        source: the paper that defines the scores.
        features: what predictions and references are, see `features.FEATURES`.
        higher_is_better: per key; None: it has no direction.
        ranges: per key the lowest and the highest value; None: no end.
        headline: the keys that the metric is judged by, see `fields.HEADLINE`.
    """
    metric = evaluate.MetricInfo(
        description=description,
        citation=source.citation,
        inputs_description=inputs_description,
        features=datasets.Features(dict(features)),
        homepage=source.homepage,
        license=LICENSE,
        codebase_urls=[source.codebase] if source.codebase else [],
        reference_urls=[source.url],
    )
    vars(metric).update(higher_is_better=higher_is_better, ranges=ranges, headline=tuple(headline))
    return metric


class Measured(NamedTuple):
    """What a module makes of all predictions and references.

    Attributes:
        statistics: additive, per instance.
        columns: what is known of each instance besides, to break scores down by, and to cluster by.
        settings: what made the numbers, for the signature.
        extra: further entries of the result.
        notes: lines for whoever reads the scores: what was left out.
    """

    statistics: Statistics
    columns: AnnotationColumns
    settings: Mapping[str, object] = {}
    extra: Mapping[str, object] = {}
    notes: Sequence[str] = ()


class Batches(ABC, Generic[Kept]):
    """A mixin before ``evaluate.Metric``.

    A class that uses it says what is kept of a batch (`_keep`), how that travels between processes (`_packed`,
    `_unpacked`), and what all that was kept amounts to (`_measured`). A side is "prediction" or "reference".

    Attributes:
        OPTIONS: the keyword arguments of ``compute`` that make a result of what was measured; the others are settings
            of `_measured`.
    """

    OPTIONS: ClassVar[Sequence[str]] = ["per_instance", "confidence_level", "n_resamples", "seed", "ci_method", "by"]
    name: str
    num_process: int
    _measure: Callable[..., Any]  # (predictions, references, its settings by name)

    @abstractmethod
    def _keep(self, data: Any, side: str) -> Kept:
        """What is kept of one side of a batch; it has a length, its number of rows."""

    @abstractmethod
    def _packed(self, kept: Kept, side: str) -> bytes:
        """What is kept, as bytes."""

    @abstractmethod
    def _unpacked(self, data: bytes, side: str) -> Kept:
        """What `_packed` made the bytes of."""

    @abstractmethod
    def _measured(
        self, predictions: Sequence[Kept], references: Sequence[Kept], by: str | None = None, **settings: Any
    ) -> Measured:
        """What all that was kept amounts to."""

    def _result(
        self, predictions: Sequence[Kept], references: Sequence[Kept], settings: dict[str, Any]
    ) -> dict[str, Any]:
        """The scores of all that was kept; what is left out is told by warnings."""
        options = {key: settings.pop(key) for key in self.OPTIONS if key in settings}
        cluster_by = settings.pop("cluster_by", AUTO)
        by = options.get("by")
        measured = self._measured(predictions, references, by=by, **settings)
        statistics = measured.statistics
        values = None if by is None else measured.columns(by)
        for note in (*measured.notes, *(breakdown_note(by, statistics) if by else ())):
            warnings.warn(note, stacklevel=4)
        # who asks for scores alone need not wait for the clusters
        drawn = any(
            options.get(key) not in (None, False) for key in ("per_instance", "confidence_level", "n_resamples")
        )
        if drawn or cluster_by != AUTO:
            statistics = clustered(statistics, measured.columns, cluster_by)
        return report(statistics, self.name, measured.settings, by_values=values, extra=measured.extra, **options)

    def _check_settings(self, settings: Mapping[str, object], options: Sequence[str] = ()) -> None:
        """Raise a TypeError for a keyword argument that is neither one of ``options`` nor a setting of this module."""
        own = list(inspect.signature(self._measure).parameters)[2:]
        known = dict.fromkeys([*own, *options, "cluster_by"])
        for name in settings:
            if name not in known:
                near = nearly(name, known)
                hint = f"did you mean {near!r}?" if near else f"expected one of {', '.join(known)}"
                raise TypeError(f"{self.name}: unknown keyword argument {name!r}: {hint}")

    def statistics(
        self, predictions: Any = None, references: Any = None, cluster_by: str = AUTO, **settings: Any
    ) -> Statistics:
        """The additive statistics per instance that the scores are made of, for a comparison of systems.

        Args:
            predictions, references, cluster_by, settings: as for ``compute``.

        Raises:
            ValueError: wrong input; names the instance and the field.
        """
        sides = (("prediction", predictions), ("reference", references))
        kept, others = ([] if data is None else [self._keep(data, side)] for side, data in sides)
        self._check_settings(settings)
        measured = self._measured(kept, others, **settings)
        return clustered(measured.statistics, measured.columns, cluster_by)

    def _infer_feature_from_batch(self, batch: Any) -> datasets.Features:
        """What evaluate writes to its shared files: bytes, whatever ``features`` say of the rows."""
        return PACKED

    def __len__(self) -> int:
        """How many predictions are kept."""
        held = vars(self).get("_held")
        return sum(map(len, held["prediction"])) if held else super().__len__()  # type: ignore[misc]

    def add_batch(self, *, predictions: Any = None, references: Any = None) -> None:
        """Keep a batch of predictions and references; both may come in any order, and in different batches.

        Args:
            predictions: a list of dicts, a Dataset, or an Arrow table; see below.
            references: likewise.

        Raises:
            ValueError: a field of the wrong type; names the instance and the field.
        """
        sides = (("prediction", predictions), ("reference", references))
        kept = {side: None if data is None else self._keep(data, side) for side, data in sides}
        if self.num_process > 1:
            packed = [b"" if batch is None else self._packed(batch, side) for side, batch in kept.items()]
            super().add_batch(predictions=packed[:1], references=packed[1:])  # type: ignore[misc]
            return
        held = vars(self).setdefault("_held", {"prediction": [], "reference": []})
        for side, batch in kept.items():
            if batch is not None:
                held[side].append(batch)

    def add(
        self, *, prediction: Any = None, reference: Any = None, predictions: Any = None, references: Any = None
    ) -> None:
        """Keep one prediction and one reference.

        Args:
            prediction: a row, see below.
            reference: a row, see below.
            predictions, references: the same under the names that ``evaluate.combine`` uses.
        """
        one = (
            prediction if prediction is not None else predictions,
            reference if reference is not None else references,
        )
        batch = [None if row is None else [row] for row in one]
        self.add_batch(predictions=batch[0], references=batch[1])

    def compute(self, *, predictions: Any = None, references: Any = None, **settings: Any) -> dict[str, Any] | None:
        """The scores of all that was added and of what comes here.

        Args:
            predictions: as for ``add_batch``.
            references: as for ``add_batch``.
            **settings: see below; an unknown one is a TypeError.

        Returns:
            A flat dict of plain Python numbers; None on processes other than the first.

        Raises:
            ValueError: wrong input; names the instance and the field.
        """
        self._check_settings(settings, self.OPTIONS)
        if predictions is not None or references is not None:
            try:
                self.add_batch(predictions=predictions, references=references)
            except ValueError:
                vars(self).pop("_held", None)
                raise
        if self.num_process > 1:
            result: dict[str, Any] | None = super().compute(**settings)  # type: ignore[misc]
            return result
        held = vars(self).pop("_held", {"prediction": [], "reference": []})
        return self._result(held["prediction"], held["reference"], settings)

    def _compute(self, *, predictions: Any = None, references: Any = None, **settings: Any) -> dict[str, Any]:
        """What evaluate calls with the bytes of all processes."""
        sides = (("prediction", predictions), ("reference", references))
        kept = [[self._unpacked(data, side) for data in packed or () if data] for side, packed in sides]
        return self._result(kept[0], kept[1], settings)
