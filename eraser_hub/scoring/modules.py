"""Scores of metric modules that work row by row: the perturbation benchmark, normalised fidelity."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from eraser_hub.metrics.gold_digest import gold_digest
from eraser_hub.metrics.issues import ONLY_PREDICTED
from eraser_hub.records.errors import DataError
from eraser_hub.records.predictions import instances, read_plain_rows
from eraser_hub.records.rules import Rule
from eraser_hub.records.run_record import read_signature
from eraser_hub.records.splits import dataset_split
from eraser_hub.schema.instance import CONSISTENCY_FIELD, OUTCOME_FIELD, QUOTES_FIELD

from .identity import Identity
from .quotes import BLOCK as QUOTES
from .scored_split import Row, Rows, ScoredSplit
from .scores import Scores
from .settings import ScoreSettings

LEVELS = ("confidence_level", "n_resamples", "seed", "per_instance")


def load_metric_module(name: str) -> Any:
    """Return an instance of the metric class in ``eraser_hub.metrics.NAME``."""
    import evaluate

    module = importlib.import_module(f"eraser_hub.metrics.{name}")
    for value in vars(module).values():
        if isinstance(value, type) and issubclass(value, evaluate.Metric) and value.__module__ == module.__name__:
            return value(keep_in_memory=True)
    raise RuntimeError(f"eraser_hub.metrics.{name} holds no metric")


def module_result(
    name: str, predictions: Rows, references: Rows, path: Path, options: Mapping[str, object]
) -> tuple[dict[str, Any], list[str]]:
    """Return what a module computes, and what it warns of.

    Raises:
        DataError: what the module refuses; with the file.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = load_metric_module(name).compute(
                predictions=list(predictions), references=list(references), **options
            )
        except DataError:
            raise
        except ValueError as error:
            # the module names instance and field; the file is ours to add
            message = str(error).replace(ONLY_PREDICTED, "`only_predicted`")
            raise DataError(message, rule=getattr(error, "rule", "input"), file=path) from None
    return result, [str(one.message) for one in caught if one.category is UserWarning]


def read_predictions(source: ScoredSplit, path: Path) -> dict[str, dict[str, Any]]:
    """Read predictions by id: instances, or records of the perturbation benchmark where the source holds pairs.

    Raises:
        DataError: a file that cannot be read or is empty; a prediction without id, or an id twice.
    """
    field, predictions = source.id_field, dict[str, dict[str, Any]]()
    for line, row in read_numbered_predictions(source, path):
        if row.get(field) in (None, ""):
            rule: Rule = "key-missing" if row.get(field) is None else "empty"
            words = f"expected an id, found {'none' if row.get(field) is None else 'an empty one'}"
            raise DataError(words, rule=rule, file=path, line=line, field=field)
        identity = str(row[field])
        if identity in predictions:
            message = "expected each id once, found it twice"
            raise DataError(message, rule="id-twice", file=path, line=line, instance=identity, field=field)
        predictions[identity] = row
    if not predictions:
        raise DataError("expected predictions, found an empty file", rule="empty", file=path)
    return predictions


def read_numbered_predictions(source: ScoredSplit, path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Read predictions as plain rows, each with its line."""
    if source.kind == "perturbation":
        return read_plain_rows(path)
    from msgspec import to_builtins

    return ((line, to_builtins(instance)) for line, instance in instances(path))


def score_records(source: ScoredSplit, path: Path, settings: ScoreSettings) -> Scores:
    """Score records of the perturbation benchmark.

    The scores are MAP of the pairs, agreement with gold sets if there are any, and what a language model says.

    Raises:
        DataError: what a module refuses; nothing in the file can be scored.
    """
    source.rows  # noqa: B018  # report their errors before the predictions are read
    rows: Rows = list(read_predictions(source, path).values())
    scores = Scores(
        names=source.names | {"config": source.built_config},
        ids=source.ids,
        run=read_signature(path),
        identity=Identity(_digest_records(source), dataset_split(source.split)),
        files=[path],
    )
    paper = {"paper": settings.paper} if settings.paper else {}
    by = {"by": settings.by or "label"} if settings.by or _has(source.rows, "label") else {}
    parts = _blocks(source, rows, settings, scores)
    blocks = [(name, answers, gold, paper, paper | by) for name, answers, gold in parts]
    if _has(rows, QUOTES_FIELD):
        labelled = zip(source.ids, source.labelled, strict=True)
        references = [{"annotation_id": identity, **row} for identity, row in labelled]
        blocks.append((QUOTES, [_select_quotes(row, source) for row in rows], references, {}, {}))
    for name, answers, gold, own, more in blocks:
        result, notes = module_result(name, answers, gold, path, settings.of_module(*LEVELS) | more)
        scores.add(result, name)
        scores.notes += notes
        scores.statistics[name] = load_metric_module(name).statistics(answers, gold, **settings.of_module(), **own)
    if not scores.statistics and not settings.allow_empty:
        message = "nothing to score: expected rationale_tokens or rationale, found neither"
        raise DataError(message, rule="score-missing", file=path)
    scores.signatures += [scores.run] if scores.run else []
    return scores


def _digest_records(source: ScoredSplit) -> str:
    """Return the digest of the records' labels, or answers, and of the tokens of their gold sets."""
    rows = source.labelled
    tokens = [
        (place, number, group, int(token))
        for place, row in enumerate(rows)
        for number, groups in enumerate(row.get("rationale_ids") or ())
        for group, indices in enumerate(groups or ())
        for token in indices
    ]
    sequences = [str(number) for number in range(1 + max((token[1] for token in tokens), default=0))]
    labels = [row.get("label") or row.get("answer") for row in rows]
    return gold_digest(source.ids, labels, sequences, np.array(tokens, np.int64).reshape(-1, 4))


def _blocks(
    source: ScoredSplit, rows: Rows, settings: ScoreSettings, scores: Scores
) -> Iterator[tuple[str, Rows, Rows]]:
    """Return (module, predictions, references) of all that can be scored; notes say why the rest cannot."""
    references = source.labelled
    if settings.only_predicted and not _holds_pair(rows, references):
        scores.notes.append("no MAP: the predictions answer no original together with a perturbed record of it.")
    elif _has(rows, "rationale_tokens"):
        yield "perturbation_map", rows, references
    else:
        scores.notes.append("no MAP: the predictions have no rationale_tokens (the rationale's, most important first).")
    gold = [row for row in references if row.get("rationale_ids")]
    known = {str(row["id"]) for row in gold}
    if not gold:
        scores.notes.append("no token F1 and IOU F1: this release of the benchmark has no gold rationales.")
    elif not _has(rows, "rationale"):
        scores.notes.append("no token F1 and IOU F1: the predictions have no rationale (lists of token indices).")
    else:
        yield "rationale_set_agreement", [row for row in rows if str(row["id"]) in known], gold


def _holds_pair(rows: Rows, references: Rows) -> bool:
    answered = {str(row["id"]) for row in rows}
    return any(
        str(row["id"]) in answered and not answered.isdisjoint(map(str, row.get("rel_ids") or ())) for row in references
    )


def _has(rows: Rows, field: str) -> bool:
    return any(row.get(field) is not None for row in rows)


def _select_quotes(row: Row, source: ScoredSplit) -> dict[str, Any]:
    """Return what a language model says in a prediction, its outcome, and the label's name."""
    label = row.get("classification", row.get("pred_label"))
    if isinstance(label, int) and not isinstance(label, bool):
        label = source.label_name(label, row, "pred_label")
    names = (QUOTES_FIELD, CONSISTENCY_FIELD, OUTCOME_FIELD)
    fields = {field: row[field] for field in names if row.get(field) is not None}
    return {"annotation_id": str(row[source.id_field]), "classification": label, **fields}
