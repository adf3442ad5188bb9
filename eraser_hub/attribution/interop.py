"""Token scores out of the results of other attribution libraries, and the file that ``explain --scores`` takes.

Results are told by their attributes alone, so none of the libraries is needed to read them. Each gives pieces of a text
with numbers. A token gets the sum of its pieces' numbers; a piece of several tokens shares its number among them in
equal parts. So the tokens' sum is that of all pieces that stand for text: what attribution methods promise of sums
stays true.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, chain, repeat, zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from eraser_hub.metrics.tokens import split_tokens
from eraser_hub.records.errors import DataError, UsageError, show
from eraser_hub.records.files import GENERATOR, OutputWriter
from eraser_hub.records.predictions import is_recorded, write_run

from .alignment import read_instance
from .given import SCORES_FIELD, attach_token_scores
from .models.inputs import to_array

Words = str | Sequence[str] | Sequence[Sequence[str]]
Label = int | str | None
Span = tuple[int, int]
NOWHERE: Span = (0, 0)  # of special tokens
UNKNOWN = ("[UNK]", "<unk>")
SPECIAL = re.compile(r"\[(CLS|SEP|PAD|BOS|EOS)\]|</?s>|<(pad|bos|eos|cls|sep|mask)>|<\|\w+\|>", re.IGNORECASE)
SEEN = 40  # characters of a text that an error shows
LIBRARIES = "captum, ferret, interpreto, lime, shap or transformers-interpret"
# attributes of a result that hold its numbers (of several labels, perhaps) and its pieces
ATTRIBUTES = (
    ("seq_attr", "input_tokens"),  # captum's LLMAttributionResult: the whole answer's, to the prompt
    ("word_attributions", "raw_input_ids"),  # captum's VisualizationDataRecord
    ("scores", "tokens"),  # ferret's Explanation: of the target that was explained
    ("attributions", "elements"),  # interpreto's AttributionOutput
)


class Scored(NamedTuple):
    """Pieces of a text with numbers.

    Attributes:
        values: float64 (pieces,).
        pieces: as the library spells them; () where their number, or their places, are known alone.
        spans: their places in ``raw``; () where ``pieces`` are known.
        raw: the text that was scored, where places in it are known: words without a piece weigh nothing.
    """

    values: NDArray[np.float64]
    pieces: Sequence[str] = ()
    spans: Sequence[Span] = ()
    raw: str = ""


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
            (an ``Explanation``), interpreto (an ``AttributionOutput``), lime, shap (an ``Explanation``: one text's,
            ``values[0]``), or transformers-interpret (the list of pairs). Without a tokenizer also a list, an array or
            a tensor of one number a token.
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
    values, pieces, spans, raw = read_result(result, label)
    count = len(pieces or spans or values)
    if len(values) != count:
        raise DataError(f"expected a score for each of {count} pieces, found {len(values)}")
    if wrong := np.count_nonzero(~np.isfinite(values)):
        raise DataError(f"expected finite scores, found {wrong} that are not")
    if raw:
        owners = find_owners([*before, *tokens], raw)
    elif pieces or not count:
        spans, owners = place_pieces(pieces, [*before, *tokens])
    elif getattr(tokenizer, "is_fast", False):
        spans, cut_text = _cut_again(tokenizer, query, text, count)
        owners = find_owners([*before, *tokens], cut_text)
    elif count in (len(tokens), len(before) + len(tokens)):  # a number for each token
        before = before if count > len(tokens) else []
        owners = list(range(count))
        spans = [(at, at + 1) for at in owners]
    else:
        raise UsageError(f"expected a fast tokenizer to say what the {count} numbers stand for, found none")
    scores, bare = [0.0] * (len(before) + len(tokens)), set(owners) - {-1}
    for (start, end), value in zip(spans, values.tolist(), strict=True):
        touched = set(owners[start:end]) - {-1}
        for at in touched:
            scores[at] += value / len(touched)
        bare -= touched
    lacking = sorted(at for at in bare if at >= len(before))
    if lacking and missing is None and not raw:
        first = lacking[0] - len(before)
        message = f"expected scores of all {len(tokens)} tokens, found none of {len(lacking)}, the first of them token "
        message += f"{first}, {show(tokens[first])}: was the text cut off? missing=0.0 says what such tokens have"
        raise DataError(message)
    for at in lacking:
        scores[at] = float(missing or 0.0)
    return scores[len(before) :]


def _flatten(text: Words) -> list[str]:
    if isinstance(text, str):
        return split_tokens(text)
    return list(chain.from_iterable([part] if isinstance(part, str) else part for part in text))


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
    lines: list[bytes] = []
    nothing: Any = object()
    for row, numbers in zip_longest(rows, scores, fillvalue=nothing):
        if row is nothing:
            raise DataError(f"expected scores for {len(lines)} rows, found more", argument="scores")
        instance = read_instance(row)
        if numbers is nothing:
            raise DataError("expected scores for each row, found none", instance=instance.id, argument="scores")
        pairs = zip(instance.names, attach_token_scores(instance, numbers).scores or (), strict=True)
        rationales = [{"docid": name, SCORES_FIELD: part} for name, part in pairs]
        lines.append(msgspec.json.encode({"annotation_id": instance.id, "rationales": rationales}) + b"\n")
    writer.write(path, b"".join(lines), is_recorded)
    write_run(path, {"generator": GENERATOR})
    return len(lines)


# --- results of the libraries ------------------------------------------------------------------------------------


def read_result(result: Any, label: Label) -> Scored:
    """Return the pieces and numbers of one text's result.

    Raises:
        DataError: a result of none of the libraries, or of several texts; no label where there are several, or an
            unknown one.
    """
    if isinstance(result, Mapping):  # transformers-interpret's, of several labels
        names = list(result)
        return read_result(result[names[_find_label(label, names)]], label)
    if hasattr(result, "as_map") and hasattr(result, "domain_mapper"):
        return _read_lime(result, label)
    if hasattr(result, "values") and hasattr(result, "base_values"):
        return _read_shap(result, label)
    for numbers, pieces in ATTRIBUTES:
        if hasattr(result, numbers) and hasattr(result, pieces):
            values, classes = to_array(getattr(result, numbers)), getattr(result, "classes", None)
            if values.ndim == 2:
                known = range(len(values)) if classes is None else to_array(classes).astype(int).tolist()
                values = values[_find_label(label, known)]
            return Scored(values, list(map(str, getattr(result, pieces))))
    if isinstance(result, (list, tuple)) and len(result):
        if all(isinstance(pair, (list, tuple)) and len(pair) == 2 and isinstance(pair[0], str) for pair in result):
            return Scored(np.array([score for _, score in result], np.float64), [piece for piece, _ in result])
        if len(result) == 1 and not np.isscalar(result[0]):
            return read_result(result[0], label)
    try:
        values = to_array(result)
    except (TypeError, ValueError):
        values = np.zeros(())
    # captum's tensor: a number for each place of the model's input, or a vector, whose numbers are added up
    array = values[0] if values.ndim in (2, 3) and len(values) == 1 else values
    array = array.sum(axis=-1) if array.ndim == 2 else array
    if array.ndim != 1:
        found = show(type(result).__name__) + (f" {values.shape}" if values.ndim else "")
        raise DataError(f"expected a result of {LIBRARIES} for one text, found {found}")
    return Scored(array)


def _find_label(label: Label, known: Sequence[Any]) -> int:
    """Return the place of a label among those of a result: by its name, by its number, or the only one."""
    if label in known:
        return known.index(label)
    if isinstance(label, int) and 0 <= label < len(known) and isinstance(known[0], str):
        return label
    if label is None and len(known) == 1:
        return 0
    expected = "a label, as there are several" if label is None else "one of the labels"
    found = "none" if label is None else show(label)
    raise DataError(f"expected {expected} ({', '.join(map(show, known))}), found {found}")


def _read_shap(result: Any, label: Label) -> Scored:
    """Read an ``Explanation``: values (pieces,) or (pieces, outputs), the pieces in ``data``."""
    values, data, names = result.values, result.data, getattr(result, "output_names", None)
    if len(data) and not isinstance(data[0], str):
        if len(data) > 1:
            raise DataError(f"expected the result of one text, found {len(data)}: take one of them, result[0]")
        values, data = values[0], data[0]
    numbers = to_array(values)
    if numbers.ndim == 2:
        named = list(map(str, names)) if isinstance(names, (list, tuple, np.ndarray)) else []
        numbers = numbers[:, _find_label(label, named or range(numbers.shape[1]))]
    return Scored(numbers, list(map(str, data)))


def _read_lime(result: Any, label: Label) -> Scored:
    """Read an ``Explanation``: weights of words, each counted at every place of the word (unless ``bow=False``).

    Words beyond its ``num_features``, and punctuation, which it parts words by, weigh nothing in its linear model.
    """
    weights, text = result.as_map(), result.domain_mapper.indexed_string
    names = list(map(str, result.class_names or ()))
    explained = sorted(weights)
    number = names.index(label) if isinstance(label, str) and label in names else label
    spans: list[Span] = []
    values: list[float] = []
    for feature, weight in weights[explained[_find_label(number, explained)]]:
        for start in np.atleast_1d(text.string_position(feature)).tolist():
            spans.append((start, start + len(text.word(feature))))
            values.append(weight)
    return Scored(np.array(values, np.float64), spans=spans, raw=text.raw_string())


# --- places of pieces in a text ----------------------------------------------------------------------------------


def find_owners(tokens: Sequence[str], raw: str) -> list[int]:
    """Return for each character of a text the number of its token, -1 for blanks and line ends.

    Raises:
        DataError: the text holds other words, or in another order.
    """
    owners, end = [-1] * len(raw), 0
    for number, token in enumerate(tokens):
        start = raw.find(token, end)
        if start < 0 or raw[end:start].strip():
            message = f"expected the text that was scored to go on with token {number}, {show(token)}, found "
            raise DataError(message + show(raw[end : end + SEEN].strip()))
        end = start + len(token)
        owners[start:end] = repeat(number, len(token))
    if rest := raw[end:].strip():
        raise DataError(f"expected the text that was scored to end with its last token, found {show(rest[:SEEN])}")
    return owners


def _cut_again(tokenizer: Any, query: Words, text: Words, size: int) -> tuple[list[Span], str]:
    """Return the places of a tokenizer's sub-words in a text, and that text; their number ``size`` decides its options.

    Strings are cut as they are, their sub-words padded or cut off. Tokens are joined by blanks, which need not be the
    text that the model read: then the number of sub-words has to agree, as padding would hide that it does not.
    """
    parts = [part for part in (query, text) if _flatten(part)]
    is_exact = all(isinstance(part, str) for part in parts)
    texts = [part if isinstance(part, str) else " ".join(_flatten(part)) for part in parts] or [""]
    padding = {} if tokenizer.pad_token is None else {"padding": "max_length"}
    ways: list[dict[str, Any]] = [{"add_special_tokens": False}, {}]
    ways += [{"truncation": True, "max_length": size, **padding}] if is_exact else []
    attempts = (tokenizer(*texts, return_offsets_mapping=True, verbose=False, **options) for options in ways)
    encoded = next((attempt for attempt in attempts if len(attempt["input_ids"]) == size), None)
    if encoded is None:
        expected = len(tokenizer(*texts, verbose=False)["input_ids"])
        message = f"expected a score for each of {expected} sub-words of the tokenizer, found {size}"
        raise DataError(message + ("" if is_exact else ": give the text as the string that the model read"))
    spans = []
    for (start, end), part in zip(encoded["offset_mapping"], encoded.sequence_ids(), strict=True):
        shift = len(texts[0]) + 1 if part == 1 else 0
        spans.append(NOWHERE if part is None else (start + shift, end + shift))
    return spans, " ".join(texts)


def place_pieces(pieces: Sequence[str], tokens: Sequence[str]) -> tuple[list[Span], list[int]]:
    """Return the places of spelled pieces in the tokens' characters, and the token of each character.

    A piece is known by its spelling alone (``##s``, ``Ġfilm``, ``▁film``, ``film ``). Blanks count for nothing, nor do
    case and accents, which uncased tokenizers drop. ``[UNK]``, and an empty piece, as shap shows an unknown or a
    special token, stand for what the pieces beside them leave free; behind the last piece ``[UNK]`` is a token.

    Raises:
        DataError: pieces of another text.
    """
    by_bytes = any("Ġ" in piece or "Ċ" in piece for piece in pieces)
    forms = [token.encode().decode("latin-1") if by_bytes else fold(token) for token in tokens]
    text, bounds = "".join(forms), list(accumulate(map(len, forms), initial=0))
    owners = [number for number, form in enumerate(forms) for _ in form]
    spans, place = [NOWHERE] * len(pieces), 0
    waiting: list[int] = []  # pieces without a spelling
    for number, piece in enumerate(pieces):
        if piece in UNKNOWN or not piece:
            waiting.append(number)
            continue
        spellings, is_special = _spell(piece, by_bytes), SPECIAL.fullmatch(piece.strip())
        unknown, following = sum(pieces[at] in UNKNOWN for at in waiting), bounds[bisect_right(bounds, place) :]
        if unknown:  # it stands behind as many tokens, or behind a part of one
            starts = [*following[:unknown], *range(place + 1, len(text))]
        else:  # tokens may be left out whole
            starts = [place, *([] if is_special else following)]
        found = ((form, at) for at in starts for form in spellings if text.startswith(form, at))
        form, start = next(found, ("", place))
        if form:
            spans[number] = (start, start + len(form))
            for at in waiting:
                spans[at] = (place, start)
            place, waiting = start + len(form), []
        elif spellings and not is_special:
            rest = show(text[place : place + SEEN])
            raise DataError(f"expected pieces of the text, found {show(piece)} where it goes on with {rest}")
    unknowns = [at for at in waiting if pieces[at] in UNKNOWN]
    behind = bounds[bisect_right(bounds, place) :][: len(unknowns)]
    for at in unknowns if behind else ():
        spans[at] = (place, behind[-1])
    return spans, owners


def fold(text: str) -> str:
    """Remove case, accents, blanks and control characters, which uncased tokenizers drop.

    >>> fold("Café au lait")
    'cafeaulait'
    """
    plain = unicodedata.normalize("NFKD", text)
    return "".join(sign for sign in plain if unicodedata.category(sign)[0] not in "MCZ").casefold()


def _spell(piece: str, by_bytes: bool) -> list[str]:
    """Return the texts that a piece may stand for, the likeliest first; () for a lone accent or blank."""
    if by_bytes:  # GPT-2's rule, by which "Ġ" is a blank
        forms = ["".join(chr(LETTERS.get(letter, ord(letter))) for letter in piece if letter not in "ĠĊ")]
    else:
        words = " ".join(word.removeprefix("##") for word in piece.split())
        forms = [fold(piece.replace("▁", " ").removesuffix("</w>")), fold(words)]
    return list(filter(None, forms))


PRINTED = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]  # bytes that are their own letter
LETTERS = {chr(0x100 + at): byte for at, byte in enumerate(sorted({*range(0x100)} - {*PRINTED}))}
