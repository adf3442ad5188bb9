"""Explanations from Python: texts in memory, any model, one call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from eraser_hub.records.errors import DataError, UsageError, show
from eraser_hub.records.files import OutputWriter
from eraser_hub.records.options import with_documented_options
from eraser_hub.records.predictions import write_run

from .adapter import Adapter, ProbabilityModel, align_labels
from .config import ExplainArguments
from .dataset import open_split
from .engine import explain_instances
from .external_rationales import attach_scores
from .instances import Instance, make_text_instance
from .open import make_opening, open_model
from .other_libraries.alignment import read_instance
from .outputs import check_format, write_predictions
from .run import RunReport, explain_trainings, plan_trainings, resolve_query
from .settings import ExplainSettings, RationaleSource, build_settings, check_used

Text = str | Sequence[str] | Instance | Mapping[str, Any]


@with_documented_options(ExplainSettings)
def explain_texts(
    model: str | Path | ProbabilityModel | Adapter,
    texts: Iterable[Text],
    *,
    out: str | Path | None = None,
    force: bool = False,
    ids: Sequence[str | int] = (),
    queries: Sequence[str | Sequence[str]] = (),
    scores: Sequence[Sequence[float] | NDArray[np.float64]] | NDArray[np.float64] = (),
    label_names: Sequence[str] = (),
    paper: str = "",
    on_passes: Callable[[int], None] | None = None,
    **settings: Any,
) -> list[dict[str, Any]]:
    """Return predictions with rationales for texts in memory, in the ERASER results format.

    Args:
        model: an object with ``predict_proba(list of token lists)``, a fitted scikit-learn pipeline over strings, an
            adapter of :func:`open_model`, a path or a Hub id.
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
        scores: for each text a score of each token, from any attribution method: lists, numpy arrays or torch tensors;
            ``eraser_hub.token_scores`` takes them out of other libraries' results. () computes them by ``method``. None
            of them for Instances, which carry their own.
        label_names: names of the model's outputs, in its order; () where the model names them itself.
        paper: ``eraser``, ``wang2022`` or ``carton2020``: that paper's choices where ``settings`` do not say otherwise.
            The last erases the rationales that Instances carry.
        on_passes: called with the number of forward passes after each batch.
        **settings: attributes of :class:`ExplainSettings`, by name.

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
    """
    texts = _list_texts(texts)
    _check(texts, queries, scores, label_names, settings.get("method") or "", ids)
    written = None if out is None else _check_out(Path(out), force)
    instances = _read_instances(texts, ids or range(len(texts)), queries)
    asked = {one.query for text, one in zip(texts, instances, strict=True) if isinstance(text, Mapping)}
    own_queries = len(asked) > 1 or any(isinstance(text, Instance) and text.query for text in texts)
    shown = bool(queries) or (own_queries and "uses_query" not in make_opening(model).facts)
    adapter = open_model(model, uses_query=True if shown else None)
    checked = build_settings(paper, "", adapter.has_embeddings, adapter.selects, **settings).for_kind("eraser")
    check_used(settings, [checked])
    if not adapter.label_names and not label_names:
        message = f"{adapter.description} does not name its labels: give their names"
        raise UsageError(message, field="label_names")
    align_labels(adapter, (), label_names)
    if len(scores):
        instances = [attach_scores(one, [row]) for one, row in zip(instances, scores, strict=True)]
    if any(one.scores is not None for one in instances):
        checked = replace(checked, method=RationaleSource.SCORES)
    checked = checked.for_kind("eraser")
    needs_rationales = checked.method == RationaleSource.SPANS and checked.scores != RationaleSource.MODEL
    bare = next((one.id for one in instances if needs_rationales and one.rationale is None), None)
    if bare is not None:
        raise DataError("expected an Instance with a rationale, found none", instance=bare)
    predictions = list(explain_instances(adapter, instances, checked, "eraser", on_passes))
    if written is not None and predictions:
        path, lines = Path(str(out)), (orjson.dumps(one).decode() for one in predictions)
        write_predictions(path, lines, list(predictions[0]["classification_scores"]), "eraser", written)
        write_run(path, {"signature": checked.signature(adapter.description), "instances": len(predictions)})
    return predictions


# settings that a model in memory never sees
OF_OPENED_MODELS = (
    *("task", "window", "device", "precision", "prompt", "label_words", "threads", "trust_pickle"),
    *("trust_remote_code", "shots", "label_score"),
)


def explain_dataset(
    model: ProbabilityModel | Adapter, arguments: ExplainArguments, values: Mapping[str, Any], **how: Any
) -> list[RunReport]:
    """Explain a split by a model in memory; runs, records and signatures name its class.

    Args:
        model: as of :func:`explain_texts`, but for a path or a Hub id.
        arguments: of the run; their model is replaced.
        values: as of :func:`run.plan_trainings`.
        **how: as of :func:`run.explain_trainings`.

    Raises:
        UsageError: an argument of models that are opened; ``resume``, since no record tells one object from another.
    """
    wrong = [name for name in OF_OPENED_MODELS if values.get(name) not in (None, False, "", "auto")]
    wrong += ["resume"] * bool(how.get("resume")) + ["engine"] * (how.get("engine", "local") != "local")
    if wrong:
        message = f"expected a model's path or id beside it, found an object, {type(model).__name__}"
        raise UsageError(message, argument=wrong[0])
    arguments = replace(arguments, model=f"{type(model).__module__}.{type(model).__qualname__}")
    (plan,) = plan_trainings(arguments, values, open_model(model))
    config = plan.config
    query = resolve_query(config, open_split(config.dataset, config.config, config.split)).query
    adapter = open_model(model, uses_query=query)
    plan = replace(plan, config=replace(config, query=adapter.uses_query))
    return explain_trainings([plan], model=adapter, **how)


def _list_texts(texts: Any) -> list[Any]:
    """Return the texts or rows of a list, a Dataset, a Series or a DataFrame.

    Raises:
        DataError: a string, a dict, or what cannot be listed.
    """
    if hasattr(texts, "columns") and callable(getattr(texts, "to_dict", None)):  # a DataFrame lists its columns' names
        return list(texts.to_dict("records"))
    if isinstance(texts, str):
        message = f"expected a list of texts, found the string {show(texts)}: put it into a list"
        raise DataError(message, field="texts")
    if isinstance(texts, Mapping) or not isinstance(texts, Iterable):
        raise DataError(f"expected a list of texts or rows, found {type(texts).__name__}", field="texts")
    return list(texts)


def _check_out(out: Path, force: bool) -> OutputWriter:
    """Return the writer of a file of predictions.

    Raises:
        DataError: a place that no predictions may take.
    """
    writer = OutputWriter(force=force)
    check_format(out, writer=writer)
    if out.is_file() and out.stat().st_size and not force:
        raise DataError("expected no file, found one; `force` replaces it", file=out)
    return writer


def _check(
    texts: Sequence[Text],
    queries: Sequence[Any],
    scores: Sequence[Any] | NDArray[np.float64],
    label_names: Sequence[str],
    method: object,
    ids: Sequence[Any],
) -> None:
    """Refuse several methods, a string in place of a list, and lists that are not as long as the texts' own."""
    if not isinstance(method, str) or "," in method:
        message = f"expected one method for texts in memory, found {show(method)}: call once for each"
        raise DataError(message, argument="method")
    for name, values in (("queries", queries), ("label_names", label_names), ("ids", ids)):
        if isinstance(values, str):
            message = f"expected a list of {name}, found the string {show(values)}"
            raise DataError(message, field=name)
    sizes = ("queries", len(queries), "one query"), ("scores", len(scores), "scores"), ("ids", len(ids), "an id")
    for name, size, what in sizes:
        if size not in (0, len(texts)):
            message = f"expected {what} for each of {len(texts)} texts, found {size}"
            raise DataError(message, field=name)


def _read_instances(texts: Sequence[Text], ids: Sequence[str | int], queries: Sequence[Any]) -> list[Instance]:
    """Return the texts as instances.

    Raises:
        DataError: something that is no text; an id or a query beside an Instance or a row; an id twice.
    """
    instances, seen = list[Instance](), set[str]()
    for number, text in enumerate(texts):
        query = queries[number] if len(queries) else ()
        if isinstance(text, (Instance, Mapping)):
            one = text if isinstance(text, Instance) else _read_row(number, text)
            kind = "an Instance" if one is text else "a row"
            for name, given in (("query", len(query) > 0), ("id", not isinstance(ids, range))):
                if given:
                    message = f"expected no {name} beside {kind}, which carries its own"
                    raise UsageError(message, instance=one.id)
        elif isinstance(text, Iterable) and not isinstance(text, bytes):
            one = make_text_instance(str(ids[number]), text, query)
        else:
            message = f"expected a text (a string or tokens), an Instance or a row, found {show(text)}"
            raise DataError(message, field=f"texts[{number}]")
        if one.id in seen:
            raise DataError("expected each id once, found it again", instance=one.id)
        seen.add(one.id)
        instances.append(one)
    return instances


def _read_row(number: int, row: Mapping[str, Any]) -> Instance:
    """Return a row of one of the datasets, or one with ``text`` or ``tokens``, as an instance.

    Raises:
        DataError: a row without any of them, or one that is not as it should be.
    """
    if row.get("documents") is not None or (row.get("tokens") is not None and row.get("id") is not None):
        return read_instance(row)
    text = row.get("text") if row.get("text") is not None else row.get("tokens")
    if text is None or (isinstance(text, str) != (row.get("text") is not None)):
        message = f"expected documents, tokens or text, found the columns {show(sorted(map(str, row)))}"
        raise DataError(message, field=f"texts[{number}]")
    identity = next((row[name] for name in ("annotation_id", "id") if row.get(name) is not None), number)
    return make_text_instance(str(identity), text, row.get("query") or ())
