"""``explain`` and ``explain_texts``: a model and a dataset, or texts -> predictions with rationales."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from eraser_hub.records.arguments import PYTHON, Place
from eraser_hub.records.errors import DataError, show

if TYPE_CHECKING:
    from tqdm import tqdm

    from .run import ConfiguredRuns, RunReport

log = logging.getLogger("eraser_hub")
DATA, RATIONALES, RUN = (Parameter(group=name) for name in ("Data", "Rationales", "Run"))
Erase = Literal["remove", "mask", "pad"]
Units = Literal["tokens", "sentences"]
RandomKind = Literal["tokens", "spans"]
Shares = Sequence[float] | None


def explain(
    model: Place | Any,
    dataset: Place | Iterable[Any],
    *,
    out: Place | None = None,
    config: Annotated[str | None, DATA] = None,
    split: Annotated[str, DATA] = "test",
    limit: Annotated[int | None, DATA] = None,
    sample: Annotated[int | None, DATA] = None,
    method: Annotated[str | Sequence[str], RATIONALES] = (),
    measure: Annotated[str | Sequence[str], RATIONALES] = (),
    rationales: Annotated[Place | None, RATIONALES] = None,
    scores: Annotated[Place | Iterable[Any] | None, RATIONALES] = None,
    kd: Annotated[float | None, RATIONALES] = None,
    target: Annotated[str, RATIONALES] = "predicted",
    bins: Annotated[Sequence[float] | None, RATIONALES, Parameter(consume_multiple=True)] = None,
    paper: Annotated[str, RATIONALES] = "",
    seed: Annotated[int, RUN] = 1,
    batch_size: Annotated[int, RUN] = 32,
    workers: Annotated[int, RUN] = 0,
    resume: Annotated[bool, RUN] = False,
    force: Annotated[bool, RUN] = False,
    erase: Annotated[Erase | None, PYTHON] = None,
    units: Annotated[Units, PYTHON] = "tokens",
    random_draws: Annotated[int, PYTHON] = 0,
    random_kind: Annotated[RandomKind, PYTHON] = "tokens",
    fidelity_trials: Annotated[int | None, PYTHON] = None,
    fidelity_rates: Annotated[Shares, PYTHON] = None,
    queries: Annotated[Sequence[Any], PYTHON] = (),
    label_names: Annotated[Sequence[str], PYTHON] = (),
    ids: Annotated[Sequence[Any], PYTHON] = (),
    chunk: Annotated[int, PYTHON] = 16,
    max_inputs: Annotated[int | None, PYTHON] = None,
) -> list[Any]:
    """Explain a model's predictions, and write them with rationales for `score`.

    Every token gets a score, and the top kd tokens are the hard rationale. The model also predicts without the
    rationale, from the rationale alone, at each AOPC bin, and from the empty input. Equal scores rank in the order of
    the text. OUT.run.json records how OUT was made.

    Args:
        model: Folder of `train` (of several seeds: OUT.seed-1.jsonl ..), .skops file or transformers id, with its
            settings: models/mine(window=256, labels=[NEG,POS], device=cuda). In Python also an object with
            ``predict_proba(list of token lists)``, a pipeline over strings, or an adapter.
        dataset: Built folder, Hub id, or the name of a folder in hub/; in Python also a list of texts or rows, a
            Dataset or a DataFrame, see `explain_texts`.
        out: Predictions: a file ending in .jsonl or .parquet; texts in memory may do without.
        config: Config; by default the dataset's default config.
        split: test, validation (or val), train, or a split of the dataset's own.
        limit: Number of instances to explain, from the first.
        sample: Number of instances to draw, each label by its share.
        method: Attribution method and its settings: lime(samples=1000), random(draws=10); by default occlusion.
            Several write OUT.METHOD.jsonl each.
        measure: Measure of the ranking: soft(draws=20), infidelity, sensitivity, aopc-bounds, tokens-to-flip.
        rationales: In place of a method: human, model (of a model that selects), or a results file.
        scores: In place of a method: a results file whose soft rationales are the scores.
        kd: Share of tokens in a hard rationale; by default that of the paper, of corpus.yaml, or of the training
            split's rationales.
        target: Label that the scores explain: predicted, gold, or a label's name.
        bins: Shares of the tokens that are erased for the AOPC: 0.01 0.05 0.1 0.2 0.5.
        paper: Make the choices of this paper's code: eraser, wang2022, carton2020.
        seed: Seed of all random draws.
        batch_size: Full-length inputs per batch.
        workers: Number of Ray workers, each with a model; 0: none.
        resume: Go on with a stopped run.
        force: Replace results that were made otherwise, and files that no run wrote.
        erase: how tokens are erased: removed, or replaced by the model's mask or padding.
        units: units that are scored, selected and erased: tokens, or whole sentences.
        random_draws: random rationales per instance, of its rationale's length.
        random_kind: random rationales: tokens (any set), or spans (the rationale's own, shifted).
        fidelity_trials: trials per occlusion rate of fidelity curves; 0 for no curves.
        fidelity_rates: shares of the rationale that the curves take out.
        queries: of texts in memory: one for each.
        label_names: names of the model's outputs, where it does not name them.
        ids: of texts in memory: one for each.
        chunk: instances that are written together.
        max_inputs: refuse a run that may need more model inputs than this.

    Returns:
        Of a dataset a report for each file; of texts one prediction each, in the ERASER results format.

    Raises:
        DataError: unknown data or model, settings out of range, another result in ``out``.

    Examples:
        >>> from eraser_hub import explain, samples
        >>> model = samples.path("models/movies-logistic-regression")  # doctest: +SKIP
        >>> (report,) = explain(model, "eraser", config="movies", out="predictions.jsonl")  # doctest: +SKIP

        $ eraser-hub explain --dataset hub/eraser --config movies --split val --model model --out occlusion.jsonl
        $ eraser-hub explain --dataset hub/eraser --config movies --split val --model model --out p.jsonl \\
            --method "lime(samples=1000)" --method shapley --measure aopc-bounds --measure "soft(draws=20)"
        $ eraser-hub explain --dataset hub/eraser --config movies --split val --model model --rationales human \\
            --out human.jsonl
    """
    settings: dict[str, Any] = {
        "kd": kd,
        "target": target,
        "bins": _as_shares(bins),
        "paper": paper,
        "seed": seed,
        "erase": erase,
        "units": units,
        "random_draws": random_draws,
        "random_kind": random_kind,
        "batch_size": batch_size,
        "fidelity_trials": fidelity_trials,
        "fidelity_rates": _as_shares(fidelity_rates),
        "chunk": chunk,
    }
    if not isinstance(dataset, str | os.PathLike):
        _refuse(
            "expected a dataset beside it, found texts in memory",
            config=config,
            split=split != "test",
            limit=limit,
            sample=sample,
            rationales=rationales,
            workers=workers,
            resume=resume,
            max_inputs=max_inputs,
        )
        given: Any = {"out": out, "force": force, "method": method, "measure": measure, "scores": scores}
        of_texts: Any = {"queries": queries, "label_names": label_names, "ids": ids}
        return explain_texts(model, dataset, **given, **of_texts, **settings)

    from .config import ExplainConfig, parse_model
    from .run import plan_trainings
    from .settings import check_whole_number

    _refuse("expected the file of predictions", out=out is None)
    _refuse("expected texts in memory beside it, found a dataset", queries=len(queries), ids=len(ids))
    if scores is not None and not isinstance(scores, str | os.PathLike):
        raise DataError("expected a results file beside a dataset", argument="scores")
    for name, number, least in (
        ("limit", limit, 1), ("sample", sample, 1), ("max_inputs", max_inputs, 1), ("workers", workers, 0),
    ):  # fmt: skip
        if number is not None:
            check_whole_number(number, least, name)
    named = isinstance(model, str | os.PathLike)
    # the records and signatures of a model in memory name its class
    place, of_model = parse_model(model) if named else (f"{type(model).__module__}.{type(model).__qualname__}", {})
    data = ExplainConfig(
        os.fspath(dataset),
        config,
        split,
        place,
        **{"labels": tuple(label_names), **of_model},
        limit=limit,
        sample=sample,
        scores=None if scores is None else Path(scores),
        rationales=os.fspath(rationales or ""),
    )
    texts = {"methods": _as_texts(method, "method"), "measures": _as_texts(measure, "measure")}
    runs: dict[str, Any] = {"out": Path(out or ""), **texts, **settings}
    how = {"resume": resume, "force": force, "workers": workers, "max_inputs": max_inputs}
    if named:
        return _explain_with_progress(plan_trainings(data, **runs), **how)

    from .dataset import open_split
    from .open import open_model
    from .run import resolve_query

    # no record tells one object from another
    message = f"expected a model's path or id beside it, found an object, {type(model).__name__}"
    _refuse(message, resume=resume, workers=workers)
    opened: Any = model
    (plan,) = plan_trainings(data, model=open_model(opened), **runs)
    query = resolve_query(data, open_split(data.dataset, data.config, data.split)).query
    adapter = open_model(opened, uses_query=query)
    plan = replace(plan, config=replace(plan.config, query=adapter.uses_query))
    return _explain_with_progress([plan], model=adapter, **how)


def explain_texts(
    model: Any,
    texts: Iterable[Any],
    *,
    out: Place | None = None,
    force: bool = False,
    ids: Sequence[str | int] = (),
    queries: Sequence[str | Sequence[str]] = (),
    label_names: Sequence[str] = (),
    method: str | Sequence[str] = (),
    measure: str | Sequence[str] = (),
    scores: Iterable[Any] | None = None,
    kd: float | None = None,
    target: str = "predicted",
    bins: Sequence[float] | None = None,
    paper: str = "",
    seed: int = 1,
    erase: Erase | None = None,
    units: Units = "tokens",
    random_draws: int = 0,
    random_kind: RandomKind = "tokens",
    fidelity_trials: int | None = None,
    fidelity_rates: Shares = None,
    batch_size: int = 32,
    chunk: int = 16,
) -> list[dict[str, Any]]:
    """Return predictions with rationales for texts in memory, in the ERASER results format.

    Args:
        model: an object with ``predict_proba(list of token lists)``, a fitted scikit-learn pipeline over strings, an
            adapter of :func:`open_model`, a path or a Hub id, the latter two with settings as of `explain`.
        texts: each a string (cut at blanks and line ends, as the documents of the datasets), a list of tokens, an
            :class:`Instance` (several documents, an own id), or a row with ``documents``, ``tokens`` or ``text``: a
            dict, or those of a Dataset or a DataFrame, whose id and query are taken.
        out: a file of predictions to write, which ends in .jsonl or .parquet, with its record beside it.
        force: replace the file ``out``.
        ids: one for each text, which predictions have; by default the texts' numbers. None of them for Instances and
            rows, which carry their own.
        queries: one for each text, as strings or lists of tokens; shown to the model. None of them for Instances and
            rows, which carry their own: a model of ``train`` sees them as in its training, any other model sees those
            of Instances, and those of rows where they differ.
        label_names: names of the model's outputs, in its order; () where the model names them itself.
        method: attribution method and its settings, as of `explain`.
        measure: measures and their settings, as of `explain`.
        scores: for each text a score of each token, from any attribution method: lists, numpy arrays or torch tensors;
            ``eraser_hub.token_scores`` takes them out of other libraries' results. None computes them by ``method``.
            None of them for Instances, which carry their own.
        kd: share of tokens in a hard rationale; by default 0.1.
        target: label that the scores explain: predicted, gold, or a label's name.
        bins: shares of the tokens that are erased for the AOPC; () for none.
        paper: ``eraser``, ``wang2022`` or ``carton2020``: that paper's choices where other arguments do not say
            otherwise. The last erases the rationales that Instances carry.
        seed: of all random draws.
        erase: how tokens are erased: removed, or replaced by the model's mask or padding.
        units: units that are scored, selected and erased: tokens, or whole sentences.
        random_draws: random rationales per instance, of its rationale's length.
        random_kind: random rationales: tokens (any set), or spans (the rationale's own, shifted).
        fidelity_trials: trials per occlusion rate of fidelity curves; 0 for no curves.
        fidelity_rates: shares of the rationale that the curves take out.
        batch_size: full-length inputs per batch.
        chunk: texts that are worked on together.

    Returns:
        One prediction for each text, ``annotation_id`` its number in ``texts`` (an Instance's or a row's own id). With
        two classes NEG and POS::

            {"annotation_id": "0", "rationales": [{"docid": "0", "hard_rationale_predictions": [{"start_token": 1,
             "end_token": 3}], "soft_rationale_predictions": [0.1, ..]}], "classification": "POS",
             "classification_scores": {"NEG": 0.2, "POS": 0.8}, "comprehensiveness_classification_scores": {..}, ..}

    Raises:
        DataError: a string in place of a list of texts, something that is no text, queries that are not one for each
            text, an id twice, a model that names no labels, unknown settings, another file in ``out``, and whatever
            :func:`open_model` and the model's outputs give cause for.

    Examples:
        >>> from eraser_hub import explain_texts
        >>> class Counting:
        ...     label_names = ("NEG", "POS")
        ...     def predict_proba(self, token_lists):
        ...         good = [min(tokens.count("good"), 1) * 0.8 + 0.1 for tokens in token_lists]
        ...         return [[1 - p, p] for p in good]
        >>> (row,) = explain_texts(Counting(), ["a good film"], method="occlusion", kd=0.3)
        >>> row["classification"], row["rationales"][0]["hard_rationale_predictions"]
        ('POS', [{'start_token': 1, 'end_token': 2}])
    """
    from .settings import parse_measures, parse_method
    from .texts import explain_listed

    methods = _as_texts(method, "method")
    if len(methods) > 1:
        message = f"expected one method for texts in memory, found {', '.join(methods)}: call once for each"
        raise DataError(message, argument="method")
    name, of_method = parse_method(methods[0]) if methods else (None, {})
    if of_method.pop("draws", 1) > 1:
        raise DataError("expected one draw for texts in memory: call once for each `seed`", argument="method")
    settings: dict[str, Any] = {
        "method": name,
        "kd": kd,
        "target": target,
        "bins": _as_shares(bins),
        "seed": seed,
        "erase": erase,
        "units": units,
        "random_draws": random_draws,
        "random_kind": random_kind,
        "batch_size": batch_size,
        "fidelity_trials": fidelity_trials,
        "fidelity_rates": _as_shares(fidelity_rates),
        "chunk": chunk,
        **of_method,
        **parse_measures(_as_texts(measure, "measure")),
    }
    given: Any = () if scores is None else scores
    return explain_listed(
        model, texts, paper, settings, out=out, force=force, ids=ids, queries=queries, scores=given, names=label_names
    )


def _refuse(message: str, **given: object) -> None:
    """Raise this error of the first argument that is given: neither None nor 0, empty or False."""
    for name, value in given.items():
        if value:
            raise DataError(message, argument=name)


def _as_texts(value: Any, argument: str) -> list[str]:
    """Return one string, or several, as a list."""
    listed: list[Any] = (
        [value] if isinstance(value, str) or not isinstance(value or (), Iterable) else list(value or ())
    )
    if not all(isinstance(text, str) for text in listed):
        raise DataError(f"expected a string, or a list of strings, found {show(value)}", argument=argument)
    return listed


def _as_shares(value: Any) -> tuple[Any, ...] | None:
    return None if value is None else tuple(value) if isinstance(value, Iterable) else (value,)


def _explain_with_progress(plans: Sequence[ConfiguredRuns], **how: Any) -> list[RunReport]:
    """Explain, with a progress bar; say of an interrupted run what is kept."""
    from .outputs import get_partial_path
    from .run import explain_trainings

    totals = [plan.total for plan in plans]
    bar = _Bar(None if None in totals else sum(filter(None, totals)))
    try:
        return explain_trainings(plans, on_progress=bar.show, **how)
    except KeyboardInterrupt:
        paths = [path for plan in plans for _, path in plan.runs]
        if any(path.is_file() or get_partial_path(path).is_file() for path in paths):
            log.warning("stopped: what is done is kept; `resume` goes on with it")
        raise
    finally:
        bar.close()


class _Bar:
    """Progress bar of finished instances and the rate of forward passes.

    It appears with the first instance, after all errors about model, labels and data.
    """

    def __init__(self, total: int | None) -> None:
        self._total, self._passes = total, 0
        self._bar: tqdm[Any] | None = None

    def show(self, instances: int, passes: int) -> None:
        """Count instances and forward passes that were done."""
        from tqdm import tqdm

        if self._bar is None:
            self._bar = tqdm(total=self._total, unit=" instances", disable=None, delay=2, mininterval=0.5, smoothing=0)
        self._passes += passes
        elapsed = self._bar.format_dict["elapsed"]
        if elapsed > 0.1:
            self._bar.set_postfix_str(f"{self._passes / elapsed:.0f} passes/s", refresh=False)
        self._bar.update(instances)

    def close(self) -> None:
        """Leave the bar on the screen."""
        if self._bar is not None:
            self._bar.close()
