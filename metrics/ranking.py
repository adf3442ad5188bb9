"""Rankings (AUPRC, average precision, ROC-AUC of soft scores), and all scores of agreement, those of spans included.

Only the places of positives among the negatives matter: both are sorted per document, and each distinct positive score
is looked up among the negatives, so that no Python loop runs over tokens.

With P positives, and for each distinct positive score v: tp(v) positives and fp(v) negatives at or above it, tp'(v)
and fp'(v) strictly above it:

- average precision = sum over v of (tp - tp') / P * tp / (tp + fp)
- AUPRC (trapezoid) = sum over v of (tp - tp') / P * (tp / (tp + fp) + tp' / (tp' + fp')) / 2, where 0 / 0 is 1
- ROC-AUC = share of (positive, negative) pairs in the right order, ties counting half

Source: DeYoung et al., ERASER (ACL 2020), section 4; the curves are scikit-learn's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace

import numpy as np

from .errors import DataError, check_choice, cut
from .match import Match
from .predictions import HARD_FIELD, SOFT_FIELDS
from .spans import (
    Ranked,
    Rationales,
    Spans,
    expand_ranges,
    find_sentence_documents,
    match_rationales,
    measure_spans,
    merge_spans,
    prf_columns,
    prf_scores,
    span_scores,
)
from .statistics import Columns, Score, Statistics, add_up, divide, mean, mean_columns

# AUPRC of a document without positives: "reference" is the value of the reference scorer with a current scikit-learn
# (the trapezoid from (1, 0) to (0, 1)); "skip" leaves the document out
AUPRC_POLICIES = {"reference": 0.5, "skip": float("nan"), "zero": 0.0, "one": 1.0}
RANKING_KEYS = ("auprc", "average_precision", "roc_auc_score")
MAX_MATRIX_CELLS = 1 << 17  # of one padded matrix: it stays in a cache
TOKENS_AT_ONCE = 1 << 18


def sort_segments(values: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Return the values, ascending within each segment [offsets[k], offsets[k + 1])."""
    sizes = np.diff(offsets)
    order = np.argsort(sizes, kind="stable")
    lengths, result = sizes[order], np.empty_like(values)
    begin = int(np.searchsorted(lengths, 1))
    while begin < order.size:
        # segments of like length side by side: at most an eighth of padding
        width = int(lengths[begin] + lengths[begin] // 8)
        stop = min(int(np.searchsorted(lengths, width, side="right")), begin + max(1, MAX_MATRIX_CELLS // width))
        column = np.arange(lengths[stop - 1])
        inside = column < lengths[begin:stop, None]
        place = (offsets[order[begin:stop], None] + column)[inside]
        matrix = np.full(inside.shape, np.inf)
        matrix[inside] = values[place]
        matrix.sort(axis=1)
        result[place] = matrix[inside]
        begin = stop
    return result


def count_below(
    values: np.ndarray, low: np.ndarray, high: np.ndarray, limits: np.ndarray, or_equal: bool
) -> np.ndarray:
    """Count the values below (or equal to) each limit in its sorted range ``values[low:high]``: int64 (limits,)."""
    place = low.copy()
    for bit in reversed(range(int((high - low).max(initial=0)).bit_length())):
        further = place + (1 << bit)
        value = values.take(further - 1, mode="clip")
        below = (value <= limits if or_equal else value < limits) & (further <= high)
        place = np.where(below, further, place)
    return np.asarray(place - low)


def rank_documents(
    scores: np.ndarray, truth: np.ndarray, offsets: np.ndarray, no_positives: float = AUPRC_POLICIES["reference"]
) -> np.ndarray:
    """Compute AUPRC, average precision and ROC-AUC of each document.

    Args:
        scores: finite; higher means more likely evidence: float64 (n,).
        truth: bool (n,).
        offsets: document k has the tokens [offsets[k], offsets[k + 1]): int64 (documents + 1,), from 0 to n.
        no_positives: the AUPRC of a document without positives (NaN: it is left out), see `AUPRC_POLICIES`.

    Returns:
        float64 (3, documents), in [0, 1]; average precision and ROC-AUC are NaN where there is one class only.

    >>> rank_documents(np.array([0.9, 0.1, 0.8]), np.array([False, False, True]), np.array([0, 3])).tolist()
    [[0.25], [0.5], [0.5]]
    """
    n = offsets.size - 1
    positive_offsets = np.append(0, np.cumsum(truth))[offsets]
    negative_offsets = offsets - positive_offsets
    n_positive, n_negative = np.diff(positive_offsets), np.diff(negative_offsets)
    positives, negatives = (
        sort_segments(scores[truth], positive_offsets),
        sort_segments(scores[~truth], negative_offsets),
    )

    # one entry for each distinct positive score of a document, ascending
    document = np.repeat(np.arange(n), n_positive)
    new = np.ones(positives.size, dtype=bool)
    new[1:] = (positives[1:] != positives[:-1]) | (document[1:] != document[:-1])
    first = np.flatnonzero(new)
    document, value, same = document[first], positives[first], np.diff(first, append=positives.size)
    low, high = negative_offsets[document], negative_offsets[document + 1]
    below = count_below(negatives, low, high, value, or_equal=False)
    # a negative that equals a positive is rare: only there the equal ones are counted, too
    not_above, following = below.copy(), low + below
    tied = np.flatnonzero(following < high)
    tied = tied[negatives[following[tied]] == value[tied]]
    not_above[tied] += count_below(negatives, following[tied], high[tied], value[tied], or_equal=True)

    total, others = n_positive[document], n_negative[document]
    tp = total - (first - positive_offsets[document])
    tp_above, fp_above = tp - same, others - not_above
    recall_step, precision = same / total, tp / (tp + others - below)
    precision_above = divide(tp_above, tp_above + fp_above, 1.0)
    terms = [recall_step * (precision + precision_above) / 2, recall_step * precision, same * (below + not_above) / 2]
    auprc, average_precision, area = (add_up(document, term, n) for term in terms)
    one_class = (n_positive == 0) | (n_negative == 0)
    return np.stack([
        np.where(n_positive == 0, no_positives, auprc),
        np.where(one_class, np.nan, average_precision),
        np.where(one_class, np.nan, divide(area, n_positive * n_negative)),
    ])  # fmt: skip


def expect_rankings(
    n_positive: np.ndarray, size: np.ndarray, no_positives: float = AUPRC_POLICIES["reference"]
) -> np.ndarray:
    """Return the expected scores of random rankings without ties: float64 (3, documents), as `rank_documents` does.

    Of N tokens R are positive, and H is the N-th harmonic number. The token at rank k is positive with probability
    R / N, and then (1 + (k - 1) (R - 1) / (N - 1)) / k of the tokens up to rank k are expected to be positive. The sum
    over ranks is the expected average precision, ((R - 1) / (N - 1) (N - H) + H) / N. The trapezoids average it with
    the precision before each positive, whose expected value is R / N. ROC-AUC is 0.5.

    Args:
        n_positive: the positives R of each document: (documents,).
        size: the tokens N of each document: int (documents,).
        no_positives: see `rank_documents`.

    >>> expect_rankings(np.array([1]), np.array([2])).tolist()
    [[0.625], [0.75], [0.5]]
    """
    harmonic = np.append(0, np.cumsum(1 / np.arange(1, int(size.max(initial=0)) + 1)))[size]
    precision = divide(divide(n_positive - 1, size - 1, 1.0) * (size - harmonic) + harmonic, size)
    auprc = np.where(n_positive == 0, no_positives, (precision + divide(n_positive, size)) / 2)
    one_class = (n_positive == 0) | (n_positive >= size)
    return np.stack([auprc, np.where(one_class, np.nan, precision), np.where(one_class, np.nan, 0.5)])


def rank_in_parts(ranked: Ranked, truth: np.ndarray, no_positives: float) -> np.ndarray:
    """Return the result of `rank_documents` for some documents at a time, which bounds the memory."""
    offsets, parts, begin = ranked.offsets, [np.zeros((3, 0))], 0
    while begin < ranked.key.size:
        stop = int(np.searchsorted(offsets, offsets[begin] + TOKENS_AT_ONCE, side="right")) - 1
        stop = max(begin + 1, stop)
        tokens = slice(offsets[begin], offsets[stop])
        parts.append(
            rank_documents(
                ranked.values[tokens], truth[tokens], offsets[begin : stop + 1] - offsets[begin], no_positives
            )
        )
        begin = stop
    return np.concatenate(parts, axis=1)


def measure_rankings(
    rationales: Rationales, auprc_policy: str = "reference", sentence_threshold: float = 0.5, chance: bool = False
) -> dict[str, np.ndarray]:
    """Return the columns of `ranking_scores` of soft scores, and of sentence scores with prefix ``sentence_``.

    Sentence scores also give the columns ``sentence.truth`` .. of `spans.prf_scores`; soft scores also
    ``soft.documents``, the documents of several tokens, and ``soft.constant``, those whose scores are all equal.

    Args:
        rationales: of predictions and gold.
        auprc_policy: a key of `AUPRC_POLICIES`.
        sentence_threshold: the least score of a predicted sentence.
        chance: add the columns ``chance.auprc.sum`` .., those of random rankings.

    Returns:
        Additive columns, float64 (n,) each; none of scores that the chunk does not have.
    """
    columns: dict[str, np.ndarray] = {}
    no_positives = AUPRC_POLICIES[auprc_policy]
    for prefix, ranked, spans in (
        ("", rationales.soft, rationales.truth),
        ("sentence_", rationales.sentence_soft, rationales.truth_sentences),
    ):
        if ranked is None:
            continue
        owner, size = rationales.owner[ranked.key], np.diff(ranked.offsets)
        document = np.full(rationales.owner.size, -1)
        document[ranked.key] = np.arange(size.size)
        known = (document[spans.key] >= 0) & (spans.start >= 0)
        gold = merge_spans(Spans(document[spans.key[known]], spans.start[known], spans.end[known]))
        first = ranked.offsets[gold.key]
        truth = np.zeros(ranked.values.size, dtype=bool)
        truth[expand_ranges(first + gold.start, first + gold.end)[1]] = True
        n_positive = add_up(gold.key, gold.end - gold.start, size.size)
        scored = np.ones(size.size, dtype=bool)
        if prefix:
            kind, counted = find_sentence_documents(rationales, ranked.key, "sentence")
            chosen = ranked.values >= sentence_threshold
            sums = [np.append(0, np.cumsum(flags))[ranked.offsets] for flags in (truth, chosen, truth & chosen)]
            columns |= counted | prf_columns(
                "sentence", [np.diff(each) * (kind == 2) for each in sums], owner, rationales.n
            )
            scored = kind > 0
        elif ranked.values.size:
            first = ranked.offsets[:-1][size > 0]
            low, high = np.minimum.reduceat(ranked.values, first), np.maximum.reduceat(ranked.values, first)
            columns["soft.constant"] = add_up(owner[size > 0], (low == high) & (size[size > 0] > 1), rationales.n)
            columns["soft.documents"] = add_up(owner, size > 1, rationales.n)
        tables = [("", rank_in_parts(ranked, truth, no_positives))]
        if chance:
            tables.append(("chance.", expect_rankings(n_positive, size, no_positives)))
        for start, table in tables:
            for key, values in zip(RANKING_KEYS, table[:, scored], strict=True):
                columns |= mean_columns(f"{start}{prefix}{key}", values, owner[scored], rationales.n)
    return columns


def ranking_scores(prefix: str = "", source: str = "") -> dict[str, Score]:
    """Return the means over documents of AUPRC, average precision and ROC-AUC.

    Args:
        prefix: of keys and columns, ``sentence_`` for those of sentences.
        source: a further prefix of the columns, ``chance.`` for random rankings.
    """
    return {f"{prefix}{key}": Score(mean(f"{source}{prefix}{key}")) for key in RANKING_KEYS}


@dataclass(frozen=True)
class AgreementSettings:
    """Settings of the scores of agreement.

    Attributes:
        iou_threshold: the threshold of the keys iou_micro_f1 ..; in (0, 1].
        iou_thresholds: further thresholds, with keys iou_micro_f1@0.1 ..
        auprc_policy: AUPRC of a document without evidence, a key of `AUPRC_POLICIES`.
        sentence_threshold: the least score of a predicted sentence.
        unmarked: "score" or "skip" annotations without a gold token.
        chance: also measure what random rationales of the same size reach.
    """

    iou_threshold: float = 0.5
    iou_thresholds: Sequence[float] = ()
    auprc_policy: str = "reference"
    sentence_threshold: float = 0.5
    unmarked: str = "score"
    chance: bool = False

    def __post_init__(self) -> None:
        for name, values in (("iou_threshold", [self.iou_threshold]), ("iou_thresholds", self.iou_thresholds)):
            for value in values:
                if not 0 < value <= 1:
                    raise DataError(f"expected a number in (0, 1], found {cut(value)}", argument=name)
        check_choice(self.auprc_policy, AUPRC_POLICIES, "auprc_policy")
        check_choice(self.unmarked, ("score", "skip"), "unmarked")

    @property
    def thresholds(self) -> list[float]:
        """All thresholds of IOU, each once: the main one, then the others, ascending."""
        others = sorted({float(value) for value in self.iou_thresholds} - {float(self.iou_threshold)})
        return [float(self.iou_threshold), *others]


def agreement_columns(match: Match, settings: AgreementSettings) -> dict[str, np.ndarray]:
    """Return the columns of `agreement_scores` of a chunk, a row per instance; `statistics.concatenate` joins chunks.

    Beside them stand ``gold.rows`` and ``gold.marked``, which count annotations and those with a gold token, and
    ``gold.share``, the share of gold tokens in the documents with evidence.
    """
    found = match_rationales(match)
    columns = measure_spans(found, settings.thresholds, settings.chance)
    columns |= measure_rankings(found, settings.auprc_policy, settings.sentence_threshold, settings.chance)
    gold, size = columns["token.truth"], add_up(found.owner, found.tokens * found.evidence, found.n)
    columns |= {"gold.rows": np.ones(found.n), "gold.marked": (gold > 0).astype(float)}
    return columns | {"gold.share": divide(gold, size)}


def find_sentence_source(columns: Columns, used: Set[str]) -> str:
    """Return the prefix of the columns of predicted sentences: by scores, else those that spans touch; "" for none."""
    if "sentence" in used:
        return "sentence"
    return "span_sentence" if "hard" in used and columns["span_sentence.spans"].any() else ""


def agreement_scores(columns: Columns, settings: AgreementSettings, used: Set[str]) -> dict[str, Score]:
    """Return the scores that predictions allow.

    Args:
        columns: of all chunks, per annotation or summed over groups.
        settings: those of the columns.
        used: the fields that instances have, of hard, soft and sentence, see `match.Matcher`.
    """
    scores: dict[str, Score] = {}
    if "hard" in used:
        scores |= span_scores(settings.thresholds, settings.iou_threshold, columns)
    source = find_sentence_source(columns, used)
    if source and columns[f"{source}.documents"].any():
        scores |= prf_scores("sentence", source, np.nan)
    for prefix, name in (("", "soft"), ("sentence_", "sentence")):
        if name in used:
            scores |= ranking_scores(prefix)
    return scores


def agreement_extra(statistics: Statistics, settings: AgreementSettings) -> tuple[Statistics, dict[str, object]]:
    """Return the statistics of the annotations that are scored, and further entries of the result.

    - ``gold``, where an annotation has no gold token or with ``chance``: ``marked_rows`` and ``unmarked_rows``, the
      annotations with and without gold tokens; ``density``, the mean share of gold tokens of those with (NaN: none)
    - ``marked`` and ``all``, where an annotation has no gold token: the scores of those with, and of all
    - ``chance``, with ``chance``: the expected scores of random rationales of the same size and of random rankings

    Args:
        statistics: of all annotations that have an instance, with the scores of `agreement_scores`. A row may be the
            sum of several annotations, all with or all without gold tokens.
        settings: the settings.

    Raises:
        DataError: all annotations are to be skipped.
    """
    rows, marked, share = (statistics.columns[f"gold.{name}"] for name in ("rows", "marked", "share"))
    n_marked, n_unmarked = int(marked.sum()), int(rows.sum() - marked.sum())
    with_gold = statistics.take(np.flatnonzero(marked)) if n_unmarked else statistics
    extra: dict[str, object] = {}
    if settings.chance or n_unmarked:
        density = float(divide(share.sum(), marked.sum(), np.nan))
        extra["gold"] = {"marked_rows": n_marked, "unmarked_rows": n_unmarked, "density": density}
    if n_unmarked:
        extra["marked"] = {key: float(value) for key, value in with_gold.values().items()}
        extra["all"] = {key: float(value) for key, value in statistics.values().items()}
    if settings.unmarked == "skip":
        if not n_marked:
            raise DataError("nothing to score: expected a gold rationale in a row, found none", argument="references")
        statistics = with_gold
    if settings.chance:
        table = prf_scores("token", "chance.token") if "token_micro_p" in statistics.scores else {}
        for prefix in ("", "sentence_"):
            if f"{prefix}auprc" in statistics.scores:
                table |= ranking_scores(prefix, "chance.")
        values = replace(statistics, scores=table).values()
        extra["chance"] = {key: float(value) for key, value in values.items() if not np.isnan(value)}
    return statistics, extra


def describe_agreement(
    columns: Columns, settings: AgreementSettings, used: Set[str]
) -> tuple[dict[str, object], list[str]]:
    """Return what the signature says, and a line for each kind of scores, annotations or documents that are left out.

    Args:
        columns: of all chunks, see `agreement_scores`.
        settings: those of the columns.
        used: see `agreement_scores`.
    """
    source = find_sentence_source(columns, used)
    unknown, single = (int(columns[f"{source}.{name}"].sum()) if source else 0 for name in ("unknown", "single"))
    n, n_marked = (int(columns[f"gold.{name}"].sum()) for name in ("rows", "marked"))
    constant, documents = (int(np.sum(columns.get(f"soft.{name}", 0))) for name in ("constant", "documents"))
    from_spans, skip = source == "span_sentence", settings.unmarked == "skip"
    needed = {
        "hard": ("exact, token and IOU scores", HARD_FIELD),
        "soft": ("AUPRC, AP, ROC-AUC", SOFT_FIELDS["soft"]),
        "sentence": ("sentence AUPRC, AP, ROC-AUC" if from_spans else "sentence scores", SOFT_FIELDS["sentence"]),
    }
    left_out = "; ".join(f"{scores} (no {field})" for name, (scores, field) in needed.items() if name not in used)
    facts = {
        "iou": (settings.thresholds, settings.thresholds != [0.5]),
        "auprc_no_positives": (settings.auprc_policy, settings.auprc_policy != "reference"),
        "sentence_threshold": (settings.sentence_threshold, settings.sentence_threshold != 0.5),
        "sentences_from": ("spans", from_spans),
        "unmarked": (settings.unmarked, n_marked < n),
        "marked_rows": (n_marked, n_marked < n),
        "unmarked_rows": (n - n_marked, n_marked < n),
    }
    notes = {
        f"left out: {left_out}": bool(left_out),
        f"agreement leaves out {n - n_marked:,} of {n:,} annotations without gold rationale": skip and n_marked < n,
        "no annotation has a gold rationale: scores of agreement are conventions, not measurements": (
            not n_marked and not skip
        ),
        f"sentence scores leave out {unknown:,} annotations whose evidence has no sentence offsets": unknown > 0,
        f"sentence p, r and f1 leave out {single:,} documents of one sentence": single > 0,
        f"all tokens have one score in {constant:,} of {documents:,} documents, which auprc rewards: compare by "
        "average_precision": 2 * constant > documents,
    }
    shown = {name: value for name, (value, differs) in facts.items() if differs}
    return shown, [line for line, applies in notes.items() if applies]


AGREEMENT_SCORES: Mapping[str, Score] = {  # of predictions with every field
    **span_scores([0.5], 0.5),
    **prf_scores("sentence", "sentence", np.nan),
    **ranking_scores(),
    **ranking_scores("sentence_"),
}
