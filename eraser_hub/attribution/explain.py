"""``explain`` and ``explain_texts``: a model and a dataset, or texts -> predictions with rationales."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict, Unpack

from cyclopts import Parameter

from eraser_hub.records.arguments import PYTHON, Place
from eraser_hub.records.errors import DataError, describe_choice, show

if TYPE_CHECKING:
    from .run import OnProgress

log = logging.getLogger("eraser_hub")
DATA, RATIONALES, RUN = (Parameter(group=name) for name in ("Data", "Rationales", "Run"))
Shares = Sequence[float] | None
Erase = Literal["remove", "mask", "pad"]
Units = Literal["tokens", "sentences"]
RandomKind = Literal["tokens", "spans"]


class TextSettings(TypedDict, total=False):
    """Settings of `explain_texts` that `explain` documents."""

    kd: float | None
    target: str
    bins: Sequence[float] | None
    seed: int
    erase: Erase | None
    units: Units
    random_draws: int
    random_kind: RandomKind
    fidelity_trials: int | None
    fidelity_rates: Shares
    batch_size: int
    chunk: int


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
    ids: Annotated[Sequence[str | int], PYTHON] = (),
    chunk: Annotated[int, PYTHON] = 16,
) -> list[Any]:
    """Explain a model's predictions, and write them with rationales for `score`.

    Every token gets a score, and the top kd tokens are the hard rationale. The model also predicts without the
    rationale, from the rationale alone, at each AOPC bin, and from the empty input. Equal scores rank in the order of
    the text. OUT.run.json records how OUT was made.

    Args:
        model: Folder of `train` (of several seeds: OUT.seed-1.jsonl ..), .skops file or transformers id, with its
            settings: models/mine(window=256, labels=[NEG,POS], device=cuda). In Python also an object with
            ``predict_proba(list of token lists)``, a scikit-learn or transformers pipeline, or a
            network of transformers with its tokenizer.
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
        "bins": bins,
        "seed": seed,
        "erase": erase,
        "units": units,
        "random_draws": random_draws,
        "random_kind": random_kind,
        "batch_size": batch_size,
        "fidelity_trials": fidelity_trials,
        "fidelity_rates": fidelity_rates,
        "chunk": chunk,
    }
    of_texts: dict[str, Any] = {"queries": queries, "ids": ids}
    if not isinstance(dataset, str | os.PathLike):
        numbers = {"limit": limit is not None, "sample": sample is not None, "workers": workers}
        of_data = {"config": config, "split": split != "test", "rationales": rationales, "resume": resume, **numbers}
        _refuse("expected a dataset beside it, found texts in memory", of_data)
        given: Any = {"out": out, "force": force, "method": method, "measure": measure, "scores": scores}
        return explain_texts(model, dataset, paper=paper, label_names=label_names, **given, **of_texts, **settings)

    from eraser_hub.metrics.errors import check_number

    from .method import as_calls
    from .run import explain_split

    _refuse("expected texts in memory beside it, found a dataset", of_texts)
    if out is None:
        raise DataError("expected the file of predictions", argument="out")
    if scores is not None and not isinstance(scores, str | os.PathLike):
        raise DataError("expected a results file beside a dataset", argument="scores")
    for name, number, least in (("limit", limit, 1), ("sample", sample, 1), ("workers", workers, 0)):
        if number is not None:
            check_number(number, name, least)
    methods, sources = as_calls(method, "method"), {"scores": scores, "rationales": rationales}
    together = [name for name, value in {"method": methods, **sources}.items() if value]
    if len(together) > 1:
        message = f"expected {' or '.join(f'`{name}`' for name in together)}, found both"
        raise DataError(message, argument=together[1])
    with _show_progress() as on_progress:
        return explain_split(
            model,
            os.fspath(dataset),
            Path(out),
            config=config,
            split_name=split,
            limit=limit,
            sample=sample,
            methods=methods,
            rationales=os.fspath(rationales or ""),
            scores=os.fspath(scores or ""),
            label_names=label_names,
            workers=workers,
            resume=resume,
            force=force,
            on_progress=on_progress,
            paper=paper,
            measures=measure,
            **settings,
        )


def explain_texts(
    model: Any,
    texts: Iterable[Any],
    *,
    method: str | Sequence[str] = (),
    measure: str | Sequence[str] = (),
    scores: Iterable[Any] | None = None,
    queries: Sequence[Any] = (),
    ids: Sequence[str | int] = (),
    label_names: Sequence[str] = (),
    out: Place | None = None,
    force: bool = False,
    paper: str = "",
    **settings: Unpack[TextSettings],
) -> list[dict[str, Any]]:
    """Return predictions with rationales for texts in memory, in the ERASER results format.

    Args:
        model: an object with ``predict_proba(list of token lists)``, a fitted scikit-learn pipeline over strings, a
            pipeline of transformers, a network with its tokenizer as a pair, a model of `open_model`, or a path or Hub
            id with settings as of `explain`.
        texts: each a string (cut at blanks and line ends, as the documents of the datasets), a list of tokens, an
            :class:`Instance` (several documents, an own id), or a row with ``documents``, ``tokens`` or ``text``: a
            dict, or those of a Dataset or a DataFrame, whose id and query are taken.
        method: attribution method and its settings, as of `explain`.
        measure: measures and their settings, as of `explain`.
        scores: for each text a score of each token, of one document after the other, in place of a method: lists, numpy
            arrays or torch tensors; ``eraser_hub.token_scores`` takes them out of other libraries' results.
        queries: one for each text, as strings or lists of tokens; shown to the model. None of them for Instances and
            rows, which carry their own: a model of ``train`` sees them as in its training, any other model sees those
            of Instances, and those of rows where they differ.
        ids: one for each text, which predictions have; by default the texts' numbers. None of them for Instances and
            rows, which carry their own.
        label_names: names of the model's outputs, in its order; () where the model names them itself.
        out: a file of predictions to write, which ends in .jsonl or .parquet, with its record beside it.
        force: replace the file ``out``.
        paper: ``eraser``, ``wang2022`` or ``carton2020``: that paper's choices where other arguments do not say
            otherwise. The last erases the rationales that Instances carry.
        **settings: as of `explain`: kd (here .1 by default), target, bins, seed, erase, units, random_draws,
            random_kind, fidelity_trials, fidelity_rates, batch_size, chunk.

    Returns:
        One prediction for each text, ``annotation_id`` its number in ``texts`` (an Instance's or a row's own id). With
        two classes NEG and POS::

            {"annotation_id": "0", "rationales": [{"docid": "0", "hard_rationale_predictions": [{"start_token": 1,
             "end_token": 3}], "soft_rationale_predictions": [0.1, ..]}], "classification": "POS",
             "classification_scores": {"NEG": 0.2, "POS": 0.8}, "comprehensiveness_classification_scores": {..}, ..}

    Raises:
        DataError: a string in place of a list of texts, something that is no text, queries that are not one for each
            text, an id twice, a model that names no labels, unknown settings, another file in ``out``, and whatever the
            model and its outputs give cause for.

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
    from tqdm import tqdm

    from eraser_hub.records.files import OutputWriter
    from eraser_hub.records.predictions import write_run

    from .method import as_calls
    from .methods.random import Random
    from .models.opening import open_model, read_facts
    from .outputs import check_format, write_predictions
    from .predictions import explain_instances, to_json
    from .settings import INSTANCES, build_settings
    from .texts import read_texts

    methods, writer, path = as_calls(method, "method"), OutputWriter(force=force), Path(out or "")
    if len(methods) > 1:
        message = f"expected one method for texts in memory, found {', '.join(map(str, methods))}: call once for each"
        raise DataError(message, argument="method")
    for name in settings.keys() - TextSettings.__annotations__.keys():
        known = [*(explain_texts.__kwdefaults__ or {}), *TextSettings.__annotations__]
        raise DataError(describe_choice(name, known), argument=name)
    if isinstance(label_names, str):
        raise DataError(f"expected a list of label_names, found the string {show(label_names)}", argument="label_names")
    if out is not None:
        check_format(path, writer)
        if path.is_file() and path.stat().st_size and not force:  # nothing tells whether it is of these texts
            raise DataError("expected no file, found one; `force` replaces it", file=path, argument="out")
    instances, asks = read_texts(texts, ids, queries, None if scores is None else list(scores))
    if asks and isinstance(model, str | os.PathLike) and "uses_query" in read_facts(model):
        asks = False
    is_scored = any(one.scores is not None for one in instances)
    if is_scored and methods:
        raise DataError("expected `method` or `scores`, found both", argument="scores")
    build: Any = partial(
        build_settings,
        paper,
        method=methods[0] if methods else None,
        scores=INSTANCES if is_scored else "",
        measures=measure,
        **settings,
    )
    asked = build().method  # what no model can mend is told before one is opened
    if isinstance(asked, Random) and asked.draws > 1:
        raise DataError("expected one draw for texts in memory: call once for each `seed`", argument="method")
    stated: dict[str, Any] = {"labels": tuple(label_names)} if len(label_names) else {}
    opened = open_model(model, uses_query=True if asks or len(queries) else None, **stated)
    chosen = build(embeds=opened.embeds, selects=opened.selects)
    bare = next((one.id for one in instances if chosen.rationales == "human" and one.rationale is None), None)
    if bare is not None:
        raise DataError("expected an Instance with a rationale, found none", instance=bare)
    made = explain_instances(opened, instances, chosen)
    predictions = list(tqdm(made, total=len(instances), unit=" texts", disable=None, delay=2))
    if out is not None and predictions:
        write_predictions(path, map(to_json, predictions), writer)
        write_run(path, {"signature": chosen.signature(opened.description), "instances": len(predictions)})
    return predictions


def _refuse(message: str, given: Mapping[str, Any]) -> None:
    """Raise this error of the first argument that is given: neither None nor 0, empty or False."""
    for name, value in given.items():
        if value is not None and (len(value) if hasattr(value, "__len__") else value):
            raise DataError(message, argument=name)


@contextmanager
def _show_progress() -> Iterator[OnProgress]:
    """Show finished instances and the rate of forward passes; say of an interrupted run what is kept.

    The bar appears with the first instance, after all errors about model, labels and data.
    """
    from tqdm import tqdm

    bar: Any = None
    passes = 0

    def show_progress(instances: int, more: int) -> None:
        nonlocal bar, passes
        if bar is None:
            bar = tqdm(unit=" instances", disable=None, delay=2, mininterval=0.5, smoothing=0)
        passes += more
        if (elapsed := bar.format_dict["elapsed"]) > 0.1:
            bar.set_postfix_str(f"{passes / elapsed:.0f} passes/s", refresh=False)
        bar.update(instances)

    try:
        yield show_progress
    except KeyboardInterrupt:
        if passes:
            log.warning("stopped: finished instances are kept; `resume` goes on with them")
        raise
    finally:
        if bar is not None:
            bar.close()
