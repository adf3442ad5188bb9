"""Public functions: one for each command, with typed keyword arguments and objects as results.

The arguments of each function are the fields of one dataclass, from which the command line makes its options; see
:mod:`eraser_hub.records.options`. Each function imports what it needs when it is called.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast, overload

from eraser_hub.attribution.config import ExplainArguments, ExplainConfig
from eraser_hub.attribution.settings import ExplainSettings
from eraser_hub.conversion import HUB_DATASETS
from eraser_hub.experiments.configs import ReproduceConfig
from eraser_hub.records.errors import UsageError
from eraser_hub.records.options import Option, Options, as_list, with_documented_options, with_keywords
from eraser_hub.records.places import dataset_split, find_place
from eraser_hub.reports.options import BenchArguments, Several
from eraser_hub.scoring.verbs import compare as compare
from eraser_hub.scoring.verbs import score as score

if TYPE_CHECKING:
    from datasets import Dataset

    from eraser_hub.attribution.run import RunReport
    from eraser_hub.conversion.checks import Report
    from eraser_hub.conversion.dataset import BuildResult, ExportResult, HubDataset
    from eraser_hub.experiments.bench_run import BenchResult
    from eraser_hub.records.tables import Tables

_NAMES = ", ".join(HUB_DATASETS)
Place = str | os.PathLike[str]
DatasetName = Annotated[str | None, Option(positional=True, help=f"{_NAMES}.")]
BuiltOrRaw = Annotated[
    Place | None, Option(help="A built folder, a dataset of the Hub (org/eraser), or raw corpora; by default hub/NAME.")
]
Configs = Annotated[Several, Option(help="A configuration; repeat it for several.")]


# -- building ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BuildArguments(Options):
    """Dataset to build, its source and its place.

    Attributes:
        source: Folder with one folder (or .tar.gz) per corpus; without it the release is downloaded.
        out: Folder of the dataset and metric folders.
        num_proc: Number of processes.
        progress: Progress is shown on stderr; the option hides it.
    """

    name: Annotated[str, Option(positional=True, help=f"{_NAMES}, own (a corpus of one's own name) or metrics.")]
    source: Place | None = None
    config: Configs = None
    out: Place = "hub"
    num_proc: Annotated[int, Option(min=1)] = 1
    progress: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        _one_of(self.name, (*HUB_DATASETS, "own", "metrics"), "name")
        if self.name == "own" and self.source is None:
            raise UsageError("`build own` needs `source`, a corpus folder", argument="source")
        if self.name == "metrics" and self.source is not None:
            raise UsageError("`build metrics` reads no corpora: leave out `source`")
        if self.source is not None and not Path(self.source).exists():
            raise UsageError(f"there is no folder {self.source}", argument="source")


@with_keywords(BuildArguments)
def build(arguments: BuildArguments) -> BuildResult:
    """Build a Hub dataset, or the metric Spaces, into ``out``.

    ``own`` builds a corpus of one's own into a folder of its name, which has a card of its own and loads as
    ``load_dataset("ORG/NAME")``. Building one configuration keeps the others in the folder. A build that is killed
    leaves the old folder unchanged.

    Returns:
        The folder, and the rows of each configuration's splits; for ``metrics``, ``out`` with a name for each Space.

    Raises:
        DataError: an unknown name or configuration, bad input, or another build is at work; ``PartlyBuilt`` where some
            configurations could be built and others not.

    Examples:
        >>> from eraser_hub import build, samples
        >>> built = build("eraser", source=samples.path("eraser"), config="movies", out="hub", progress=False)
        >>> built.rows["movies"]
        {'train': 27, 'validation': 24, 'test': 13}
    """
    from eraser_hub.conversion.dataset import BuildResult
    from eraser_hub.publishing.spaces import build_metrics

    out, configs = Path(arguments.out), as_list(arguments.config)
    if arguments.name == "metrics":
        return BuildResult(out, {folder.name: {} for folder in build_metrics(out, names=configs)})
    source = None if arguments.source is None else Path(arguments.source)
    if arguments.name == "own" and source is not None:
        from eraser_hub.conversion.own import choose_corpus, make_own_dataset

        dataset = make_own_dataset(choose_corpus(source, configs))
        configs = [dataset.name]
    else:
        dataset = HUB_DATASETS[arguments.name]
        _check_configs(configs, dataset, source)
    return dataset.build(configs, out=out, source=source, num_proc=arguments.num_proc, progress=arguments.progress)


@dataclass(frozen=True)
class StatsArguments(Options):
    """Dataset whose tables are recomputed, or that is checked."""

    name: DatasetName = None
    dataset: BuiltOrRaw = None
    config: Configs = None


@with_keywords(StatsArguments)
def check(arguments: StatsArguments) -> Report:
    """Check a built dataset: ids, labels, spans, texts, derived columns, splits, card.

    Known quirks of the releases are reported, but are no violation.

    Returns:
        The findings; ``errors`` has the violations.

    Raises:
        DataError: there is no such dataset or configuration, or a file cannot be read.

    Examples:
        >>> from eraser_hub import check
        >>> checked = check("eraser", config="movies")
        >>> checked.errors, checked.splits[0].rows
        ([], 27)
    """
    dataset, folder, configs = _open(arguments)
    return dataset.check(folder, configs)


@with_keywords(StatsArguments)
def stats(arguments: StatsArguments) -> Tables:
    """Recompute the papers' tables of sizes and evidence, beside the printed figures and with the difference.

    Returns:
        The tables; ``written("markdown")`` writes them.

    Raises:
        DataError: there is no such dataset or configuration, or a file cannot be read.

    Examples:
        >>> from eraser_hub import stats
        >>> len(stats("eraser", config="movies").written("csv").splitlines()) > 1
        True
    """
    dataset, folder, configs = _open(arguments)
    return dataset.stats(folder, configs)


@dataclass(frozen=True)
class ExportArguments(Options):
    """Dataset to export, and its place.

    Attributes:
        dataset: A built dataset folder, e.g. hub/eraser, or one of the Hub: org/eraser.
        out: Folder to write the raw folders to, one per configuration.
        force: Replace files that are there.
    """

    dataset: Place
    out: Place
    config: Annotated[Several, Option(help="A configuration; repeat it for several. Default: all.")] = None
    force: bool = False


@with_keywords(ExportArguments)
def export(arguments: ExportArguments) -> ExportResult:
    """Write the raw files of the release back; every record and document is unchanged.

    Returns:
        The files, and notes on what was left out.

    Raises:
        DataError: the folder is none that a build wrote, or a file is there already.

    Examples:
        >>> from eraser_hub import export
        >>> [file.name for file in export("hub/eraser", out="raw", config="movies").files][:1]
        ['train.jsonl']
    """
    dataset, folder, configs = _open(arguments)
    return dataset.export(folder, configs, out=Path(arguments.out), force=arguments.force)


@dataclass(frozen=True)
class LoadArguments(Options):
    """Rows to load.

    Attributes:
        dataset: A built folder, a dataset of the Hub (org/eraser), or the name of a folder in hub/.
        config: The configuration; by default the dataset's default one.
        split: The split, as the Hub or as the release calls it.
    """

    dataset: Place
    config: str | None = None
    split: str = "test"


@with_keywords(LoadArguments)
def load(arguments: LoadArguments) -> Dataset:
    """Load a split of a built dataset.

    Returns:
        The rows, as ``load_dataset`` gives them.

    Raises:
        DataError: there is no such dataset, configuration or split.

    Examples:
        >>> from eraser_hub import load
        >>> load("eraser", "movies", "val").num_rows
        24
    """
    from datasets import load_dataset

    from eraser_hub.records.places import open_built

    built = open_built(_in_hub(arguments.dataset))
    config = arguments.config or built.default_config
    built.files(config, arguments.split)
    repository, split = built.place.repository, dataset_split(arguments.split)
    revision = built.folder.name if repository else None
    return cast("Dataset", load_dataset(repository or str(built.folder), config, split=split, revision=revision))


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
    arguments = ExplainArguments(dataset=_in_hub(data), model=place, out=Path(out), **own)
    how = {name: own[name] for name in ("resume", "force", "engine", "workers", "max_inputs") if name in own}
    if not named:
        from eraser_hub.attribution.api import explain_dataset

        return explain_dataset(model, arguments, settings, **how)
    return explain_trainings(plan_trainings(arguments, settings), **how)


@with_keywords(ReproduceConfig)
def reproduce(arguments: ReproduceConfig) -> Tables:
    """Train, explain and score each row of a printed table, and put the figures beside the print.

    A row that cannot run says why below the table. After an interruption, the same call goes on.

    Returns:
        The table; ``written("markdown")`` writes it.

    Raises:
        DataError: an unknown table; no such dataset, config or split; ``out`` holds another run.
        BusyError: another run is at work in ``out``.

    Examples:
        >>> from eraser_hub import reproduce
        >>> reproduce(table="eraser-3", config="movies", fast=True).written("text")  # doctest: +SKIP
    """
    from eraser_hub.experiments.reproduce import reproduce as run

    return run(arguments, arguments.say or _silent)


def _silent(line: str) -> None:
    """Ignore a line of progress."""


# -- which dataset ----------------------------------------------------------------------------------------------------


def _in_hub(dataset: Place) -> str:
    """Return a dataset's place; a bare name is a folder in hub/, unless a folder of that name exists here."""
    name = os.fspath(dataset)
    built = name in HUB_DATASETS or ("/" not in name and (Path("hub") / name / "README.md").is_file())
    return f"hub/{name}" if built and not Path(name).is_dir() else name


def _one_of(value: str, allowed: Sequence[str], argument: str) -> None:
    """Check that a value is one of those allowed."""
    if value not in allowed:
        message = f"expected one of {', '.join(allowed)}, found {value!r}"
        raise UsageError(message, argument=argument)


def _check_configs(configs: Sequence[str] | None, dataset: HubDataset, folder: Path | None) -> None:
    """Check that the dataset or its folder, raw or built, has the configurations."""
    for name in configs or ():
        if name not in dataset.configs:
            _one_of(name, dataset.known_configs(folder), "config")


def _open(arguments: StatsArguments | ExportArguments) -> tuple[HubDataset, Path, list[str] | None]:
    """Return a dataset, its folder, fetched if it is on the Hub, and the chosen configurations; None: all.

    The default name is the folder's, or ``eraser`` where that is none of ours, which `export` refuses.

    Raises:
        UsageError: an unknown name or configuration, or no such folder.
        DataError: the Hub has no such dataset.
    """
    from eraser_hub.conversion.own import is_own_dataset, make_own_dataset

    name, dataset = getattr(arguments, "name", None), arguments.dataset
    place = find_place(dataset or Path("hub") / (name or "eraser"))
    folder = Path(place.name) if dataset is None or place.repository is None else place.fetch()
    own, known = is_own_dataset(folder, place.dataset), place.dataset in HUB_DATASETS
    if isinstance(arguments, ExportArguments) and not own and not known:
        message = f"expected a folder named {_NAMES}, or one of `build own`, found {place.dataset!r}"
        raise UsageError(message, argument="dataset")
    if own and name in (None, place.dataset):
        opened = make_own_dataset(place.dataset)
    else:
        name = name or (place.dataset if known else "eraser")
        _one_of(name, tuple(HUB_DATASETS), "name")
        if not folder.is_dir():
            message = f"there is no folder {folder} (build it: eraser-hub build {name})"
            raise UsageError(message, argument="dataset")
        opened = HUB_DATASETS[name]
    _check_configs(configs := as_list(arguments.config), opened, folder)
    return opened, folder, configs
