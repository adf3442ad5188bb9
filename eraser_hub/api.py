"""Public functions: one for each command, with typed keyword arguments and objects as results.

The arguments of each function are the fields of one dataclass, from which the command line makes its options; see
:mod:`eraser_hub.records.options`. Each function imports what it needs when it is called.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from eraser_hub.attribution.config import ExplainArguments, ExplainConfig
from eraser_hub.attribution.settings import ExplainSettings
from eraser_hub.conversion.verbs import find_in_hub
from eraser_hub.records.errors import UsageError
from eraser_hub.records.options import with_documented_options, with_keywords
from eraser_hub.reports.options import BenchArguments
from eraser_hub.scoring.verbs import compare as compare
from eraser_hub.scoring.verbs import score as score

if TYPE_CHECKING:
    from eraser_hub.attribution.run import RunReport
    from eraser_hub.experiments.bench_run import BenchResult

Place = str | os.PathLike[str]


# -- scoring ----------------------------------------------------------------------------------------------------------


@with_keywords(BenchArguments)
def bench(arguments: BenchArguments) -> BenchResult | list[str]:
    """Find out which explanations are better: train, explain, score, compare and report in one call.

    Models are explained by several methods, beside tokens drawn by chance and what people marked. Finished files in
    ``out`` are reused.

    Returns:
        The findings in words, the table, the comparison and the report's page; with ``dry_run`` the lines of the plan.

    Raises:
        DataError: wrong data, models or settings; ``out`` holds a run with other settings.
        BusyError: another run is at work in ``out``.

    Examples:
        >>> from eraser_hub import bench
        >>> model = "logistic-regression"
        >>> result = bench(dataset="hub/eraser", config="movies", model=model, out="bench")  # doctest: +SKIP
        >>> result.findings  # doctest: +SKIP
    """
    from eraser_hub.experiments.bench_run import bench as run

    return run(arguments)


# -- explaining -------------------------------------------------------------------------------------------------------


@overload
def explain(  # pyright: ignore[reportOverlappingOverload]  # a string is a sequence
    model: Any, data: Place, *, out: Place, **settings: Any
) -> list[RunReport]: ...
@overload
def explain(model: Any, data: Iterable[Any], *, out: Place | None = None, **settings: Any) -> list[dict[str, Any]]: ...
@with_documented_options(ExplainArguments, ExplainConfig, ExplainSettings, without=["dataset"])
def explain(
    model: Any,
    data: Any,
    *,
    out: Place | None = None,
    queries: Sequence[str | Sequence[str]] = (),
    label_names: Sequence[str] = (),
    on_passes: Callable[[int], None] | None = None,
    **settings: Any,
) -> Any:
    """Explain a model's predictions: of a dataset, into a file that ``score`` takes, or of texts in memory.

    Args:
        model: a folder of ``train`` (of several seeds: each training), a .skops file or a transformers id; or an object
            with ``predict_proba(list of token lists)``, a pipeline over strings, or an adapter.
        data: a dataset: a built folder, one of the Hub (org/eraser), or the name of one that stands in hub/; or a list
            of texts or rows, a Dataset or a DataFrame, see :func:`eraser_hub.explain_texts`.
        out: the file of predictions, which ends in .jsonl or .parquet; texts in memory may do without.
        queries: of texts in memory: one for each. Texts also take ``ids``, ``scores`` as numbers, ``paper``, ``method``
            and what follows ``target``.
        label_names: of texts in memory: names of the model's outputs.
        on_passes: of texts in memory: called with the number of forward passes.
        **settings: the settings below.

    Returns:
        Of a dataset a report for each file (there are several with ``draws``, or of several trainings); of texts one
        prediction each, in the ERASER results format.

    Raises:
        DataError: unknown data or model, settings out of range, another result in ``out``.

    Examples:
        >>> from eraser_hub import explain, samples
        >>> model = samples.path("models/movies-logistic-regression")  # doctest: +SKIP
        >>> (report,) = explain(model, "eraser", config="movies", out="predictions.jsonl")  # doctest: +SKIP
    """
    if not isinstance(data, str | os.PathLike):
        from eraser_hub.attribution.api import explain_texts

        beside: dict[str, Any] = {"out": out, "queries": queries, "label_names": label_names, "on_passes": on_passes}
        return explain_texts(model, data, **beside, **settings)
    from eraser_hub.attribution.run import explain_trainings, plan_trainings

    if out is None:
        raise UsageError("expected the file of predictions", argument="out")
    if queries or label_names or on_passes is not None:
        message = "expected texts in memory beside `queries`, `label_names` and `on_passes`"
        raise UsageError(message, argument="data")
    own = {name: settings.pop(name) for name in ExplainArguments.__dataclass_fields__.keys() & settings}
    named = isinstance(model, str | os.PathLike)
    place = os.fspath(model) if named else ""
    arguments = ExplainArguments(dataset=find_in_hub(data), model=place, out=Path(out), **own)
    how = {name: own[name] for name in ("resume", "force", "engine", "workers", "max_inputs") if name in own}
    if not named:
        from eraser_hub.attribution.api import explain_dataset

        return explain_dataset(model, arguments, settings, **how)
    return explain_trainings(plan_trainings(arguments, settings), **how)
