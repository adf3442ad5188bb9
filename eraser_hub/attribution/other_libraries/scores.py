"""Token scores out of other libraries' results, and the file that ``explain --scores`` takes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from eraser_hub.attribution.adapter import to_array
from eraser_hub.attribution.external_rationales import SOFT, attach_scores
from eraser_hub.attribution.other_libraries.alignment import read_instance
from eraser_hub.metrics.plain import split_tokens
from eraser_hub.records.errors import DataError, UsageError, show
from eraser_hub.records.files import GENERATOR, OutputWriter
from eraser_hub.records.predictions import is_recorded, write_run

from .matching import Span, find_token_spans, match_pieces, sum_to_tokens
from .results import Label, read_result

Words = str | Sequence[str] | Sequence[Sequence[str]]


def token_scores(
    result: Any,
    text: Words,
    *,
    label: Label = None,
    tokenizer: Any = None,
    query: Words = (),
    missing: float | None = None,
) -> list[float]:
    """Return the score of each token of a text by another library's result, for ``explain_texts(scores=..)``.

    A token's score is the sum of its sub-words' scores; a feature of several tokens (a sentence) is shared among them
    in equal parts, so sums stay what they were. lime's weight of a word counts wherever the word stands, and what lime
    did not select weighs 0. Tokens of control characters alone, which tokenizers drop, have 0.

    Args:
        result: of captum (``attribute``'s tensor for one text, with ``tokenizer``; an ``LLMAttributionResult``), ferret
            (an ``Explanation``), inseq, interpreto (an ``AttributionOutput``), lime, shap (an ``Explanation``: one
            text's, ``values[0]``), or transformers-interpret (the list of pairs). Without a tokenizer also a list, an
            array or a tensor of one number a token.
        text: the text that was explained: a string (cut at blanks and line ends, as documents are), tokens, or the
            tokens of each document, as ``eraser_hub.tokens(row)`` gives them. With ``tokenizer`` give the string that
            the model read: a tokenizer may have sub-words for line ends and double blanks.
        label: the label whose scores are wanted, by number, or by name where the result has names; None where it holds
            one.
        tokenizer: of transformers, the model's: needed where a result holds numbers of sub-words alone, as captum's.
        query: text before the text in the model's input; its scores are left out.
        missing: the score of tokens without any in the result (cut off by the model's window); None: an error.

    Returns:
        A float for each token of the text.

    Raises:
        DataError: a result of none of these libraries, of several texts, of another text, or of a part of it.

    Examples:
        >>> token_scores([("[CLS]", 0.0), ("play", 0.25), ("##s", 0.5), ("well", -1.0)], "plays well")
        [0.75, -1.0]
    """
    before, tokens = _flatten(query), _flatten(text)
    scored = read_result(result, label)
    if len(scored.values) != len(scored.pieces or scored.spans or scored.values):
        pieces = len(scored.pieces or scored.spans)
        raise DataError(f"expected a score for each of {pieces} pieces, found {len(scored.values)}")
    if not np.isfinite(scored.values).all():
        message = f"expected finite scores, found {np.count_nonzero(~np.isfinite(scored.values))} that are not"
        raise DataError(message)
    if scored.raw:
        spans, places = list[Span | None](scored.spans), find_token_spans([*before, *tokens], scored.raw)
    elif tokenizer is not None and getattr(tokenizer, "is_fast", False):
        spans, places = _retokenize(tokenizer, len(scored.values), query, text, missing)
    elif scored.pieces or not len(scored.values):
        spans, places = match_pieces(scored.pieces, [*before, *tokens])
    elif len(scored.values) in (len(tokens), len(before) + len(tokens)):  # a number for each token
        before = before if len(scored.values) > len(tokens) else []
        places = find_token_spans([*before, *tokens], " ".join([*before, *tokens]))
        spans = list(places)
    else:
        message = f"expected a tokenizer to say what the {len(scored.values)} numbers stand for, found none"
        raise UsageError(message)
    scores, bare = sum_to_tokens(spans, scored.values.tolist(), places)
    bare = [at - len(before) for at in bare if at >= len(before)]
    if bare and missing is None and not scored.whole:
        raise DataError(
            f"expected scores of all {len(tokens)} tokens, found none of {len(bare)}, the first of them token "
            f"{bare[0]}, {show(tokens[bare[0]])}: was the text cut off? missing=0.0 says what such tokens have",
        )
    scores = scores[len(before) :]
    for at in bare:
        scores[at] = float(missing or 0.0)
    return scores


def _flatten(text: Words) -> list[str]:
    if isinstance(text, str):
        return split_tokens(text)
    tokens = list[str]()
    for part in text:
        tokens += [part] if isinstance(part, str) else part
    return tokens


def _retokenize(
    tokenizer: Any, size: int, query: Words, text: Words, missing: float | None
) -> tuple[list[Span | None], list[Span]]:
    """Find the places of a tokenizer's sub-words; their number ``size`` decides its options.

    Strings are cut as they are. Tokens are joined by blanks, which need not be the text that the model read: then the
    number of sub-words has to agree, as padding or a cut end would hide that it does not.
    """
    parts = [part for part in (query, text) if _flatten(part)]
    texts = [part if isinstance(part, str) else " ".join(_flatten(part)) for part in parts] or [""]
    is_exact = all(isinstance(part, str) for part in parts)
    shift = len(texts[0]) + 1 if len(texts) > 1 else 0
    plain, whole = (len(tokenizer(*texts, add_special_tokens=one, verbose=False)["input_ids"]) for one in (False, True))
    more: dict[str, Any] = {}
    if size == plain:
        more = {"add_special_tokens": False}
    elif size != whole and (is_exact or (missing is not None and size < whole)):
        more = {"truncation": True, "max_length": size}
        more |= {"padding": "max_length"} if tokenizer.pad_token is not None else {}
    encoded = tokenizer(*texts, return_offsets_mapping=True, verbose=False, **more)
    offsets, owners = encoded["offset_mapping"], encoded.sequence_ids()
    if len(offsets) != size:
        message = f"expected a score for each of {len(offsets)} sub-words of the tokenizer, found {size}"
        message += "" if is_exact else ": give the text as the string that the model read"
        raise DataError(message)
    spans = [
        None if owner is None else (start + owner * shift, end + owner * shift)
        for (start, end), owner in zip(offsets, owners, strict=True)
    ]
    return spans, find_token_spans([token for part in parts for token in _flatten(part)], " ".join(texts))


def write_scores(
    path: str | Path,
    rows: Iterable[Mapping[str, Any]],
    scores: Iterable[Sequence[float] | NDArray[np.float64]],
    force: bool = False,
) -> int:
    """Write token scores of a dataset's rows as the file that ``eraser-hub explain --scores`` takes.

    Args:
        path: ending in ``.jsonl``; it is new or as it was.
        rows: of ``eraser``, ``bilingual_perturbation`` or ``human_rationales``.
        scores: for each row a number for each token of all its documents, one document after the other
            (:func:`token_scores` of ``eraser_hub.tokens(row)``); lists, numpy arrays or torch tensors.
        force: replace a file that this function did not write.

    Returns:
        How many rows were written.

    Raises:
        DataError: another ending, another number of rows than of scores, of scores than of tokens, numbers that are not
            finite.
    """
    path, writer = Path(path), OutputWriter(force=force)
    if path.suffix != ".jsonl":
        raise DataError(f"expected a file ending in .jsonl, found {show(path.name)}")
    writer.check(path, is_recorded)
    lines = list[bytes]()
    parts = iter(scores)
    for row in rows:
        instance = read_instance(row)
        try:
            values = to_array(next(parts))
        except StopIteration:
            message = "expected scores for each row, found none"
            raise DataError(message, instance=instance.id) from None
        except (TypeError, ValueError):
            raise DataError("expected numbers", instance=instance.id, field="scores") from None
        bounds = instance.bounds
        if values.shape != (bounds[-1],):
            message = f"expected {bounds[-1]} scores, one a token, found shape {values.shape}"
            raise DataError(message, instance=instance.id, field="scores")
        one = attach_scores(instance, [values[start:end] for start, end in pairwise(bounds)])
        rationales = [{"docid": name, SOFT: list(part)} for name, part in zip(one.names, one.scores or (), strict=True)]
        lines.append(msgspec.json.encode({"annotation_id": one.id, "rationales": rationales}) + b"\n")
    if next(parts, None) is not None:
        raise DataError(f"expected scores for {len(lines)} rows, found more")
    writer.write(path, b"".join(lines), is_recorded)
    write_run(path, {"generator": GENERATOR})
    return len(lines)
