"""Explanations from Python: texts in memory, any model, one call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eraser_hub.records.errors import DataError, show
from eraser_hub.records.options import UsageError, with_documented_options

from .adapter import Adapter, ProbabilityModel, align_labels
from .config import ExplainArguments
from .dataset import open_split
from .engine import explain_instances
from .external_rationales import attach_scores
from .instances import Instance, make_text_instance
from .open import make_opening, open_model
from .run import RunReport, explain_trainings, plan_trainings, resolve_query
from .settings import ExplainSettings, RationaleSource, build_settings, check_used

Text = str | Sequence[str] | Instance


@with_documented_options(ExplainSettings)
def explain_texts(
    model: str | Path | ProbabilityModel | Adapter,
    texts: Sequence[Text],
    *,
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
        texts: each a string (cut at blanks and line ends, as the documents of the datasets), a list of tokens, or an
            :class:`Instance` (several documents, an own id).
        queries: one for each text, as strings or lists of tokens; shown to the model. None of them for Instances, which
            carry their own: a model of ``train`` sees them as in its training, any other model sees them.
        scores: for each text a score of each token, from any attribution method: lists, numpy arrays or torch tensors;
            ``eraser_hub.token_scores`` takes them out of other libraries' results. () computes them by ``method``. None
            of them for Instances, which carry their own.
        label_names: names of the model's outputs, in its order; () where the model names them itself.
        paper: ``eraser``, ``wang2022`` or ``carton2020``: that paper's choices where ``settings`` do not say otherwise.
            The last erases the rationales that Instances carry.
        on_passes: called with the number of forward passes after each batch.
        **settings: attributes of :class:`ExplainSettings`, by name.

    Returns:
        One prediction for each text, ``annotation_id`` its number in ``texts`` (an Instance's own id). With two classes
        NEG and POS::

            {"annotation_id": "0", "rationales": [{"docid": "0", "hard_rationale_predictions": [{"start_token": 1,
             "end_token": 3}], "soft_rationale_predictions": [0.1, ..]}], "classification": "POS",
             "classification_scores": {"NEG": 0.2, "POS": 0.8}, "comprehensiveness_classification_scores": {..}, ..}

    Raises:
        DataError: a string in place of a list of texts, queries that are not one for each text, a model that names no
            labels, unknown settings, and whatever :func:`open_model` and the model's outputs give cause for.
    """
    _check(texts, queries, scores, label_names, settings.get("method") or "")
    own_queries = any(isinstance(text, Instance) and text.query for text in texts)
    shown = bool(queries) or (own_queries and "uses_query" not in make_opening(model).facts)
    adapter = open_model(model, uses_query=True if shown else None)
    checked = build_settings(paper, "", adapter.has_embeddings, adapter.selects, **settings).for_kind("eraser")
    check_used(settings, [checked])
    if not adapter.label_names and not label_names:
        message = f"{adapter.description} does not name its labels: give their names"
        raise DataError(message, rule="option-missing", field="label_names")
    align_labels(adapter, (), label_names)
    pairs = zip(texts, queries or [()] * len(texts), strict=True)
    instances = [_instance(number, text, query) for number, (text, query) in enumerate(pairs)]
    if len(scores):
        instances = [attach_scores(one, [row]) for one, row in zip(instances, scores, strict=True)]
    if any(one.scores is not None for one in instances):
        checked = replace(checked, method=RationaleSource.SCORES)
    checked = checked.for_kind("eraser")
    needs_rationales = checked.method == RationaleSource.SPANS and checked.scores != RationaleSource.MODEL
    bare = next((one.id for one in instances if needs_rationales and one.rationale is None), None)
    if bare is not None:
        raise DataError("expected an Instance with a rationale, found none", rule="span-missing", instance=bare)
    return list(explain_instances(adapter, instances, checked, "eraser", on_passes))


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
        raise UsageError(message, argument=wrong[0], rule="option-conflict")
    arguments = replace(arguments, model=f"{type(model).__module__}.{type(model).__qualname__}")
    (plan,) = plan_trainings(arguments, values, open_model(model))
    config = plan.config
    query = resolve_query(config, open_split(config.dataset, config.config, config.split)).query
    adapter = open_model(model, uses_query=query)
    plan = replace(plan, config=replace(config, query=adapter.uses_query))
    return explain_trainings([plan], model=adapter, **how)


def _check(
    texts: Sequence[Text],
    queries: Sequence[Any],
    scores: Sequence[Any] | NDArray[np.float64],
    label_names: Sequence[str],
    method: object,
) -> None:
    """Refuse several methods, a string in place of a list, and lists that are not as long as the texts' own."""
    if not isinstance(method, str) or "," in method:
        message = f"expected one method for texts in memory, found {show(method)}: call once for each"
        raise DataError(message, argument="method", rule="option-value")
    for name, values, advice in (
        ("texts", texts, ": put it into a list"),
        ("queries", queries, ""),
        ("label_names", label_names, ""),
    ):
        if isinstance(values, str):
            message = f"expected a list of {name}, found the string {show(values)}{advice}"
            raise DataError(message, rule="type", field=name)
    for name, size, what in (("queries", len(queries), "one query"), ("scores", len(scores), "scores")):
        if size not in (0, len(texts)):
            message = f"expected {what} for each of {len(texts)} texts, found {size}"
            raise DataError(message, rule="length", field=name)


def _instance(number: int, text: Text, query: str | Sequence[str]) -> Instance:
    if isinstance(text, Instance):
        if query:
            message = "expected no query beside an Instance, which carries its own"
            raise DataError(message, rule="option-conflict", instance=text.id)
        return text
    return make_text_instance(number, text, query)
