"""Prediction files, read once and streaming: lines decoded into typed objects, objects into flat arrays, a part at a time."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from eraser_hub.metrics.fields import ERASED, SCORE_FIELDS
from eraser_hub.metrics.flat import Predictions
from eraser_hub.metrics.flatten_rows import FAR, ScoreTable
from eraser_hub.metrics.offences import Offences
from eraser_hub.records.errors import DataError

from .corpus import blocks_of, check_utf8, said
from .names import all_strings

# bytes of a part, see `part_size`
LEAST, MOST, SHARE = 1 << 20, 1 << 23, 32

Scores = dict[str, float | None] | None


class _Span(msgspec.Struct, gc=False):
    start_token: int
    end_token: int


class _Rationale(msgspec.Struct, gc=False):
    docid: str | int = None  # type: ignore[assignment]
    hard_rationale_predictions: list[_Span] | None = None
    soft_rationale_predictions: list[float] | None = None
    soft_sentence_predictions: list[float] | None = None


class _Erased(msgspec.Struct, gc=False):
    threshold: float = None  # type: ignore[assignment]
    comprehensiveness_classification_scores: Scores = None
    sufficiency_classification_scores: Scores = None


class Instance(msgspec.Struct, gc=False):
    """What a line of predictions holds; keys beyond these are left alone."""

    annotation_id: str | int = None  # type: ignore[assignment]
    rationales: list[_Rationale] | None = None
    classification: str | None = None
    classification_scores: Scores = None
    comprehensiveness_classification_scores: Scores = None
    sufficiency_classification_scores: Scores = None
    null_classification_scores: Scores = None
    tokens_to_flip: float | None = None
    thresholded_scores: list[_Erased] | None = None
    random_rationales: list[_Erased] | None = None


class _Named(msgspec.Struct, gc=False):
    annotation_id: str | int


class Part(NamedTuple):
    """Some lines of a prediction file: flat, and the number of each instance's line."""

    predictions: Predictions
    lines: array


class InstanceArrays:
    """Takes instances one by one; `take` gives those since the last call, flat.

    Rationales' documents are numbered by ``docids`` of the part that is taken; labels keep their numbers throughout.
    """

    def __init__(self, offences: Offences) -> None:
        self.offences, self.n = offences, 0
        self.labels: dict[str, int] = {}
        self.layouts: dict[tuple[str, ...], int] = {}
        self._clear()

    def _clear(self) -> None:
        self.ids: list[str] = []
        self.docids: list[str] = []
        self.rationales, self.hard, self.start, self.end = array("q"), array("q"), array("q"), array("q")
        self.soft, self.sentence, self.classification = array("q"), array("q"), array("q")
        self.thresholds, self.draws = array("q"), array("q")
        self.soft_scores, self.sentence_scores = array("d"), array("d")
        self.tokens_to_flip, self.threshold = array("d"), array("d")
        self.tables = {name: ScoreTable(self.layouts) for name in Predictions.LABELLED}

    def add(self, instances: list[Instance]) -> None:
        """Append some instances: columns are gathered one by one, without a step per object between."""
        names: list[Any] = [one.annotation_id for one in instances]
        if not all_strings(names):
            names = [self._name(name, row) for row, name in enumerate(names)]
        self.ids += names
        several = [one.rationales for one in instances]
        self.rationales.fromlist(_sizes(several))
        rationales = [rationale for own in several if own for rationale in own]
        docids: list[Any] = [rationale.docid for rationale in rationales]
        if not all_strings(docids):
            docids = self._docids(docids, several)
        self.docids += docids
        self._spans([rationale.hard_rationale_predictions for rationale in rationales], several)
        for given, sizes, values in (
            ([rationale.soft_rationale_predictions for rationale in rationales], self.soft, self.soft_scores),
            ([rationale.soft_sentence_predictions for rationale in rationales], self.sentence, self.sentence_scores),
        ):
            sizes.fromlist(_sizes(given))
            for scores in given:
                if scores:
                    values.fromlist(scores)
        codes = self.labels
        self.classification.fromlist(
            [
                -1 if one.classification is None else codes.setdefault(one.classification, len(codes))
                for one in instances
            ]
        )
        for name, field in SCORE_FIELDS.items():
            self._scores(name, list(map(attrgetter(field), instances)), field)
        flips = [one.tokens_to_flip for one in instances]
        self.tokens_to_flip.fromlist([np.nan if flip is None else flip for flip in flips])
        self._several([one.thresholded_scores for one in instances], "thresholded_scores", "threshold", self.thresholds)
        self._several([one.random_rationales for one in instances], "random_rationales", "draw", self.draws)
        self.n += len(instances)

    def _say(self, row: int, where: str, message: str) -> None:
        """Tell an offence of an instance that is being added, the row-th of those."""
        self.offences.say("prediction", self.n + row, where, message)

    def _name(self, name: str | int | None, row: int) -> str:
        if name is None:
            self._say(row, "annotation_id", "expected a string or an integer, found None")
        return "" if name is None else str(name)

    def _docids(self, docids: list[str | int], several: list[list[_Rationale] | None]) -> list[str]:
        for row, rationales in enumerate(several):
            for position, rationale in enumerate(rationales or ()):
                if rationale.docid is None:
                    self._say(row, f"rationales[{position}].docid", "expected a string, found None")
        return ["" if docid is None else str(docid) for docid in docids]

    def _spans(self, hard: list[list[_Span] | None], several: list[list[_Rationale] | None]) -> None:
        spans = [span for own in hard if own for span in own]
        starts, ends = [span.start_token for span in spans], [span.end_token for span in spans]
        try:
            starts_flat, ends_flat = array("q", starts), array("q", ends)
        except OverflowError:
            far = [own for own in hard if own and any(abs(at) > FAR for span in own for at in _ends(span))]
            for row, rationales in enumerate(several):
                for position, rationale in enumerate(rationales or ()):
                    if rationale.hard_rationale_predictions and any(
                        rationale.hard_rationale_predictions is own for own in far
                    ):
                        where = f"rationales[{position}].hard_rationale_predictions"
                        self._say(row, where, "expected offsets within the document, found one beyond 64 bits")
            cut = [[] if own and any(own is one for one in far) else own for own in hard]
            self._spans(cut, several)
            return
        self.start += starts_flat
        self.end += ends_flat
        self.hard.fromlist(_sizes(hard))

    def _scores(
        self, name: str, given: list[Scores], where: str, owner: Sequence[tuple[int, str]] | None = None
    ) -> None:
        """Append rows of a table of scores; ``owner`` says of each the instance and what stands before the field."""
        table = self.tables[name]
        if table.add_all(given):
            return
        for row, scores in enumerate(given):
            wrong = table.add(scores, True)
            if wrong is not None:
                instance, before = (row, "") if owner is None else owner[row]
                self._say(instance, f"{before}{where}", wrong)

    def _several(self, given: list[list[_Erased] | None], where: str, kind: str, sizes: array) -> None:
        sizes.fromlist(_sizes(given))
        entries = [entry for own in given if own for entry in own]
        if not entries:
            return
        places = _Places(given, where)
        if kind == "threshold":
            thresholds = [entry.threshold for entry in entries]
            if None in thresholds:
                for at, threshold in enumerate(thresholds):
                    if threshold is None:
                        row, before = places[at]
                        self._say(row, f"{before}threshold", "expected a number, found None")
                        thresholds[at] = np.nan
            self.threshold.fromlist(thresholds)
        for side in ERASED:
            field = SCORE_FIELDS[side]
            self._scores(f"{kind}_{side}", list(map(attrgetter(field), entries)), field, places)

    def take(self) -> Predictions:
        """The instances since the last call, which are then forgotten; numbers of rows begin at 0."""
        for layout in self.layouts:
            for label in layout:
                self.labels.setdefault(label, len(self.labels))
        columns = {
            name: _flat(getattr(self, name))
            for name in (
                "rationales", "hard", "start", "end", "soft", "soft_scores", "sentence", "sentence_scores",
                "classification", "tokens_to_flip", "thresholds", "threshold", "draws",
            )
        }  # fmt: skip
        matrices = {name: table.matrix(self.labels) for name, table in self.tables.items()}
        taken = Predictions(
            ids=self.ids,
            instance=np.repeat(np.arange(len(self.ids)), np.maximum(columns["rationales"], 0)),
            doc=np.arange(len(self.docids)),
            docids=self.docids,
            labels=list(self.labels),
            **columns,
            **matrices,
        )
        self._clear()
        return taken


def _flat(values: array) -> np.ndarray:
    """The array's own memory, which nobody appends to any more."""
    return np.frombuffer(values, dtype=values.typecode) if values else np.zeros(0, dtype=values.typecode)


class _Places(Sequence[tuple[int, str]]):
    """The instance of each entry of lists, and what stands before the entry's fields; found out when asked for."""

    def __init__(self, given: list[list[_Erased] | None], where: str) -> None:
        self.given, self.where = given, where

    def __len__(self) -> int:
        return sum(len(own or ()) for own in self.given)

    def __getitem__(self, at):  # type: ignore[no-untyped-def]
        for row, own in enumerate(self.given):
            if at < len(own or ()):
                return row, f"{self.where}[{at}]."
            at -= len(own or ())
        raise IndexError(at)


def _ends(span: _Span) -> tuple[int, int]:
    return span.start_token, span.end_token


def _sizes(lists: Sequence[list | None]) -> list[int]:
    """Lengths, -1 for None."""
    return [-1 if own is None else len(own) for own in lists]


def parts_of(path: Path, offences: Offences, start: int = 0, end: int | None = None) -> Iterator[Part]:
    """Read a prediction file, or the lines of it that stand between two bytes, some lines at a time.

    A line of the wrong type is an offence, told with the path of the field; a line that is no JSON ends the reading.
    """
    decode = msgspec.json.Decoder(Instance).decode
    arrays = InstanceArrays(offences)
    number, numbers, size = 0, array("q"), 0
    try:
        limit = part_size(path.stat().st_size)
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", file=path) from None
    for lines in blocks_of(path, start, end):
        try:
            instances = [decode(line) for line in lines]
            check_utf8(lines)
            numbers.extend(range(number + 1, number + len(lines) + 1))
        except (msgspec.MsgspecError, UnicodeDecodeError):
            instances = _one_by_one(path, lines, number, arrays, numbers)
        number += len(lines)
        arrays.add(instances)
        size += sum(map(len, lines))
        if size >= limit and numbers:
            yield Part(arrays.take(), numbers)
            numbers, size = array("q"), 0
    if numbers:
        yield Part(arrays.take(), numbers)


def part_size(size: int) -> int:
    """The bytes that make a part: few parts of a large file, and little memory for a small one."""
    return min(max(size // SHARE, LEAST), MOST)


def _one_by_one(path: Path, lines: list[bytes], number: int, arrays: InstanceArrays, numbers: array) -> list[Instance]:
    """Lines of which at least one is not as it should be: the instances there are.

    Args:
        number: of the line before the first.
        numbers: the number of each instance's line is appended.
    """
    decode = msgspec.json.Decoder(Instance).decode
    instances: list[Instance] = []
    for number, line in enumerate(lines, number + 1):  # noqa: B020
        try:
            instance = decode(line)
        except msgspec.ValidationError as error:
            arrays.offences.say("prediction", arrays.n + len(instances), *_told(error))
            instance = Instance(annotation_id=_name(line, arrays.n + len(instances)))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            if not line.strip():
                continue
            raise DataError(said(error, line), file=path, line=number) from None
        try:
            check_utf8([line])
        except UnicodeDecodeError as error:
            raise DataError(f"not UTF-8: {error}", file=path, line=number) from None
        numbers.append(number)
        instances.append(instance)
    return instances


def _told(error: Exception) -> tuple[str, str]:
    """Field and message of a typed decoder's error: "Expected .. - at `$.path`"."""
    message, _, place = str(error).partition(" - at `$")
    return place.rstrip("`").lstrip("."), message[:1].lower() + message[1:]


def _name(line: bytes, row: int) -> str | int:
    """The id of a line whose types are wrong elsewhere, so that only the real offence is told."""
    try:
        return msgspec.json.decode(line, type=_Named).annotation_id
    except (msgspec.DecodeError, UnicodeDecodeError):
        return f"\0{row}"
