"""Texts and rows in memory as instances."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from eraser_hub.conversion.built import LABEL_COLUMNS
from eraser_hub.records.errors import DataError, UsageError, show

from .given import attach_token_scores
from .instances import Instance, make_text_instance


def read_texts(
    texts: Any, ids: Sequence[str | int] = (), queries: Sequence[Any] = (), scores: Sequence[Any] | None = None
) -> tuple[list[Instance], bool]:
    """Return texts as instances, and whether they have queries that a model should see.

    Args:
        texts: a list of strings, tokens, Instances or rows, a Dataset, a Series or a DataFrame.
        ids: one for each text; () for their numbers, or their own.
        queries: one for each text; () for none, or their own. Those of rows count where they differ: a corpus that asks
            one question of every text need not show it.
        scores: a score of each token, for each text; None for none.

    Raises:
        DataError: no list of texts; other numbers of ids, queries or scores; an id or a query beside an Instance or a
            row; an id twice.
    """
    texts = list_texts(texts)
    for name, given in (("queries", queries), ("scores", scores), ("ids", ids)):
        if isinstance(given, str):
            raise DataError(f"expected a list of {name}, found the string {show(given)}", argument=name)
        if given is not None and len(given) != len(texts) and (len(given) or name == "scores"):
            raise DataError(f"expected {name} for each of {len(texts)} texts, found {len(given)}", argument=name)
    instances, seen = list[Instance](), set[str]()
    asks, asked = False, set[tuple[str, ...]]()  # whether an Instance has a query, and those of rows
    for number, text in enumerate(texts):
        if isinstance(text, Instance | Mapping):
            if isinstance(text, Instance):
                one, kind, asks = text, "an Instance", asks or bool(text.query)
            else:
                one, kind = read_row(text, number), "a row"
                asked.add(one.query)
            for name, beside in (("query", queries), ("id", ids)):
                if len(beside):
                    message = f"expected no {name} beside {kind}, which carries its own"
                    raise UsageError(message, instance=one.id)
        elif isinstance(text, Iterable) and not isinstance(text, bytes):
            identity, query = ids[number] if len(ids) else number, queries[number] if len(queries) else ()
            one = make_text_instance(str(identity), text, query)  # type: ignore[arg-type]
        else:
            message = f"expected a text (a string or tokens), an Instance or a row, found {show(text)}"
            raise DataError(message, field=f"texts[{number}]")
        if one.id in seen:
            raise DataError("expected each id once, found it again", instance=one.id)
        seen.add(one.id)
        instances.append(one if scores is None else attach_token_scores(one, scores[number]))
    return instances, asks or len(asked) > 1


def list_texts(texts: Any) -> list[Any]:
    """Return the texts or rows of a list, a Dataset, a Series or a DataFrame.

    Raises:
        DataError: a string, a dict, or what cannot be listed.
    """
    if hasattr(texts, "columns") and callable(getattr(texts, "to_dict", None)):  # a DataFrame lists its columns' names
        texts = texts.astype(object).where(texts.notna(), None).to_dict("records")  # a gap in it is NaN
    if isinstance(texts, str | Mapping) or not isinstance(texts, Iterable):
        found = f"the string {show(texts)}: put it into a list" if isinstance(texts, str) else type(texts).__name__
        raise DataError(f"expected a list of texts or rows, found {found}", argument="texts")
    return list(texts)


def read_row(row: Mapping[str, Any], number: int) -> Instance:
    """Return a row of one of the datasets, or one with ``text`` or ``tokens``, as an instance.

    Args:
        row: the row; its id and query are taken.
        number: of the row, which is its id where it has none.

    Raises:
        DataError: a row without any of them, or one that is not as it should be.
    """
    from .alignment import read_instance

    text = row.get("text") if row.get("text") is not None else row.get("tokens")
    if row.get("documents") is not None or (row.get("tokens") is not None and row.get("id") is not None):
        instance = read_instance(row)
    elif text is None or isinstance(text, str) != (row.get("text") is not None):
        message = f"expected documents, tokens or text, found the columns {show(sorted(map(str, row)))}"
        raise DataError(message, field=f"texts[{number}]")
    else:
        identity = next((row[name] for name in ("annotation_id", "id") if row.get(name) is not None), number)
        instance = make_text_instance(str(identity), text)
    if not instance.query and row.get("query") is not None:  # beside tokens, too
        instance = replace(instance, query=make_text_instance(instance.id, (), row["query"]).query)
    # a number has no name without its dataset
    label = next((row[name] for name in LABEL_COLUMNS if isinstance(row.get(name), str)), None)
    return replace(instance, label=label)
