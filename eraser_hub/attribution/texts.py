"""Texts in memory, from strings, tokens or rows to their predictions."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
from tqdm import tqdm

from eraser_hub.records.errors import DataError, UsageError, show
from eraser_hub.records.files import OutputWriter
from eraser_hub.records.predictions import write_run

from .config import ExplainConfig, parse_model
from .engine import explain_instances
from .external_rationales import attach_scores
from .instances import Instance, make_text_instance
from .open import make_opening, open_model
from .other_libraries.alignment import read_instance
from .outputs import check_format, write_predictions
from .settings import RationaleSource, build_settings, check_used
from .work import load_model

Text = str | Sequence[str] | Instance | Mapping[str, Any]


def explain_listed(
    model: Any,
    texts: Iterable[Text],
    paper: str,
    settings: Mapping[str, Any],
    *,
    out: str | os.PathLike[str] | None,
    force: bool,
    ids: Sequence[Any],
    queries: Sequence[Any],
    scores: Any,
    names: Sequence[str],
) -> list[dict[str, Any]]:
    """Return predictions for texts; arguments as of `explain_texts`, ``settings`` as of :func:`build_settings`."""
    texts = _list_texts(texts)
    for name, lists in (("queries", queries), ("label_names", names), ("ids", ids)):
        if isinstance(lists, str):
            raise DataError(f"expected a list of {name}, found the string {show(lists)}", argument=name)
    sizes = ("queries", len(queries), "one query"), ("scores", len(scores), "scores"), ("ids", len(ids), "an id")
    for name, size, what in sizes:
        if size not in (0, len(texts)):
            raise DataError(f"expected {what} for each of {len(texts)} texts, found {size}", argument=name)
    written = None if out is None else _check_out(Path(out), force)
    instances = _read_instances(texts, ids or range(len(texts)), queries)
    asked = {one.query for text, one in zip(texts, instances, strict=True) if isinstance(text, Mapping)}
    own_queries = len(asked) > 1 or any(isinstance(text, Instance) and text.query for text in texts)
    named = isinstance(model, str | os.PathLike)
    place, of_model = parse_model(model) if named else (model, {})
    if of_model.get("shots"):
        raise DataError("expected a dataset beside shots, whose train split has them, found texts", argument="model")
    shown = True if queries or (own_queries and "uses_query" not in make_opening(place).facts) else None
    data = ExplainConfig("", None, "", place, **{"labels": tuple(names), "query": shown, **of_model})
    adapter = load_model(data, (), None if named else open_model(model, uses_query=shown))
    checked = build_settings(paper, "", adapter.has_embeddings, adapter.selects, **settings).for_kind("eraser")
    check_used(settings, [checked])
    if len(scores):
        instances = [attach_scores(one, [row]) for one, row in zip(instances, scores, strict=True)]
    if any(one.scores is not None for one in instances):
        checked = replace(checked, method=RationaleSource.SCORES)
    checked = checked.for_kind("eraser")
    needs_rationales = checked.method == RationaleSource.SPANS and checked.scores != RationaleSource.MODEL
    bare = next((one.id for one in instances if needs_rationales and one.rationale is None), None)
    if bare is not None:
        raise DataError("expected an Instance with a rationale, found none", instance=bare)
    rows = explain_instances(adapter, instances, checked)
    predictions = list(tqdm(rows, total=len(instances), unit=" texts", disable=None, delay=2))
    if written is not None and predictions:
        path, lines = Path(str(out)), (msgspec.json.encode(one).decode() for one in predictions)
        write_predictions(path, lines, list(predictions[0]["classification_scores"]), "eraser", written)
        write_run(path, {"signature": checked.signature(adapter.description), "instances": len(predictions)})
    return predictions


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
