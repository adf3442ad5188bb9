"""Results of each library: pieces of a text, or places in it, and a number for each.

Told by their attributes alone, so none of the libraries is needed to read its results.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eraser_hub.attribution.adapter import to_array
from eraser_hub.records.errors import DataError, show

from .matching import Span

Label = int | str | None


@dataclass(frozen=True, slots=True)
class ForeignScores:
    """Scores of another library: numbers and their pieces or spans.

    Attributes:
        values: float64 (pieces,).
        pieces: as the library spells them; () where only their number is known, or their places.
        spans: their places in ``raw``; () where ``pieces`` are known.
        raw: the text that was scored, where places are known.
        whole: whether the result covers the whole text: words that it does not name weigh nothing.
    """

    values: NDArray[np.float64]
    pieces: Sequence[str] = ()
    spans: Sequence[Span] = ()
    raw: str = ""
    whole: bool = False


def _make_attribute_check(*names: str) -> Callable[[Any], bool]:
    return lambda result: all(hasattr(result, name) for name in names)


def read_result(result: Any, label: Label) -> ForeignScores:
    """Read a result of captum, ferret, inseq, interpreto, lime, shap or transformers-interpret.

    Raises:
        DataError: none of these; the results of several texts; no label where there are several, or an unknown one.
    """
    if isinstance(result, Mapping):
        # transformers-interpret, several labels
        return read_result(result[_choose_label(list(result), None, label)], label)
    for matches, reader in READERS:
        if matches(result):
            return reader(result, label)
    several = isinstance(result, (list, tuple))
    # as transformers-interpret gives it
    if several and all(isinstance(one, (list, tuple)) and len(one) == 2 and isinstance(one[0], str) for one in result):
        return ForeignScores(np.array([score for _, score in result], dtype=np.float64), [piece for piece, _ in result])
    if several and len(result) == 1:
        return read_result(result[0], label)
    if several and any(matches(one) for one in result[:1] for matches, _ in READERS):
        message = f"expected the result of one text, found {len(result)}: take one of them, result[0]"
        raise DataError(message)
    return _read_places(result)


def _read_places(result: Any) -> ForeignScores:
    """Read captum's tensor: a number (or a vector, which is summed) for each place of the model's input."""
    try:
        values = to_array(result)
    except (TypeError, ValueError):
        values = np.zeros(())
    if values.ndim in (2, 3) and len(values) == 1:
        values = values[0]
    if values.ndim == 2:
        values = values.sum(axis=-1)
    if values.ndim != 1:
        message = (
            "expected a result of captum, ferret, inseq, interpreto, lime, shap or transformers-interpret for one text"
        )
        message = f"{message}, found {show(type(result).__name__)}" + (f" {values.shape}" if values.ndim else "")
        raise DataError(message)
    return ForeignScores(values)


def _choose_label(names: Sequence[Any], count: int | None, label: Label) -> Any:
    """Return the label among a result's: its name for ``names``, its number for ``count`` outputs."""
    known = list(names) or list(range(count or 0))
    place = label if isinstance(label, int) else known.index(label) if label in known else None
    if label is None and len(known) == 1:
        place = 0
    if place is None or not 0 <= place < len(known):
        message = "a label, as there are several" if label is None else "one of the labels"
        message = (
            f"expected {message} ({', '.join(map(show, known))}), found {'none' if label is None else show(label)}"
        )
        raise DataError(message)
    return known[place] if names and count is None else place


def _read_shap(result: Any, label: Label) -> ForeignScores:
    """Read an ``Explanation``: values (pieces,) or (pieces, outputs), the pieces in ``data``."""
    values, data = result.values, result.data
    names = getattr(result, "output_names", None)
    if not isinstance(data[0], str) if len(data) else False:
        if len(data) != 1:
            message = f"expected the result of one text, found {len(data)}: take one of them, result[0]"
            raise DataError(message)
        values, data = values[0], data[0]
    numbers = to_array(values)
    if numbers.ndim == 2:
        known = list(map(str, names)) if isinstance(names, (list, tuple, np.ndarray)) else []
        numbers = numbers[:, _choose_label(known, numbers.shape[1], label)]
    return ForeignScores(numbers, list(map(str, data)))


def _read_lime(result: Any, label: Label) -> ForeignScores:
    """Read an ``Explanation``: weights of words, each counted at every place of the word (unless ``bow=False``).

    Words beyond its ``num_features``, and punctuation, which it parts words by, weigh nothing in its linear model.
    """
    weights, text = result.as_map(), result.domain_mapper.indexed_string
    names = [str(name) for name in result.class_names or ()]
    wanted = names.index(label) if label in names else label
    explained = _choose_label(sorted(weights), None, sorted(weights).index(wanted) if wanted in weights else label)
    spans, values = list[Span](), list[float]()
    for feature, weight in weights[explained]:
        size = len(text.word(feature))
        for start in np.atleast_1d(text.string_position(feature)).tolist():
            spans.append((start, start + size))
            values.append(weight)
    return ForeignScores(np.array(values, dtype=np.float64), spans=spans, raw=text.raw_string(), whole=True)


def _read_inseq(result: Any, label: Label) -> ForeignScores:
    """Read the attribution of a generated text to its source, or to its prompt, summed over the generated tokens.

    Where there is a vector a piece, its length is taken, inseq's own default.
    """
    if hasattr(result, "sequence_attributions"):
        if len(result.sequence_attributions) != 1:
            message = "expected the result of one text, found"
            message = f"{message} {len(result.sequence_attributions)}: take one of .sequence_attributions"
            raise DataError(message)
        result = result.sequence_attributions[0]
    pieces, values = result.source, result.source_attributions
    if values is None:  # a model that continues its prompt
        pieces = result.target[: result.attr_pos_start]
        values = result.target_attributions[: result.attr_pos_start]
    numbers = to_array(values)
    if numbers.ndim == 3:
        numbers = np.linalg.norm(numbers, axis=-1)
    numbers = np.nansum(numbers, axis=-1) if numbers.ndim == 2 else numbers
    return ForeignScores(numbers, [one if isinstance(one, str) else one.token for one in pieces])


def _read_interpreto(result: Any, label: Label) -> ForeignScores:
    """Read an ``AttributionOutput``: attributions (labels, elements)."""
    numbers = to_array(result.attributions)
    if numbers.ndim == 2:
        classes = getattr(result, "classes", None)
        explained = [] if classes is None else to_array(classes).astype(int).tolist()
        place = explained.index(label) if label in explained else label
        numbers = numbers[_choose_label([], len(numbers), place)]
    if not all(isinstance(one, str) for one in result.elements):
        return ForeignScores(numbers)
    return ForeignScores(numbers, list(result.elements))


def _make_reader(scores: str, pieces: str) -> Callable[[Any, Label], ForeignScores]:
    """Return a reader of one text's numbers and pieces, by their attributes."""
    return lambda result, _: ForeignScores(to_array(getattr(result, scores)), list(getattr(result, pieces)))


READERS: tuple[tuple[Callable[[Any], bool], Callable[[Any, Label], ForeignScores]], ...] = (
    # captum's ``LLMAttributionResult``: the whole answer's attribution to the prompt's tokens; and its records
    (_make_attribute_check("seq_attr", "input_tokens"), _make_reader("seq_attr", "input_tokens")),
    (_make_attribute_check("word_attributions", "raw_input_ids"), _make_reader("word_attributions", "raw_input_ids")),
    (_make_attribute_check("sequence_attributions"), _read_inseq),
    (_make_attribute_check("source", "target", "source_attributions"), _read_inseq),
    (_make_attribute_check("attributions", "elements"), _read_interpreto),
    (_make_attribute_check("as_map", "domain_mapper"), _read_lime),
    (_make_attribute_check("values", "base_values", "data"), _read_shap),
    (
        _make_attribute_check("tokens", "scores"),
        _make_reader("scores", "tokens"),
    ),  # ferret: of the target that was explained
    # an explainer of transformers-interpret, which keeps what it last gave
    (_make_attribute_check("word_attributions"), lambda result, label: read_result(result.word_attributions, label)),
)
