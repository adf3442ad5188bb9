"""Counts of a language model's reasoning: where its answer settles, and what changes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from eraser_hub.schema.instance import CONTRIBUTIONS_FIELD, STEPS_FIELD, TESTS_FIELD

from .cells import Row, as_list, as_number
from .issues import Issues
from .rows import CellReader
from .statistics_builder import ScoreInfo, Statistics, StatisticsBuilder

EARLY_ANSWERING, INSERTION = "early_answering", "insertion"
# test of the reasoning -> whether a label that changes speaks for it; None: neither, or a control
FLIP_TESTS: Mapping[str, bool | None] = {
    "mistake": True,
    "mistake_control": None,
    "filler": True,
    "paraphrase": False,
    "unchanged": None,
    "suggested_answer": None,
    "suggested_answer_control": None,
    "option_order": None,
    "few_shot": None,
    "few_shot_control": None,
    "repeated": None,
    INSERTION: None,
}
# tests whose addition the reasoning should name where the label follows it
MENTION_TESTS = ("suggested_answer", "option_order", "few_shot", INSERTION)
MENTION_CONTROL = f"{INSERTION}_control"  # insertions that change no label
TESTS = (EARLY_ANSWERING, *FLIP_TESTS)
SCORES: ScoreInfo = {
    "early_answering_aoc": (True, 0.0, 1.0),
    "settled_at": (None, 0.0, 1.0),
    "flip_without_steps": (True, 0.0, 1.0),
    **{f"flip_{test}": (up, 0.0, 1.0) for test, up in FLIP_TESTS.items()},
    **{f"mention_{test}": (True, 0.0, 1.0) for test in MENTION_TESTS},
    f"mention_{MENTION_CONTROL}": (None, 0.0, 1.0),
    "cc_shap": (True, -1.0, 1.0),
    "cc_shap_control": (None, -1.0, 1.0),
    "steps_per_instance": (None, 0.0, None),
    "reasoned": (None, 0.0, 1.0),
}
ONE_TEST = f"one of {', '.join(TESTS)}; each once, but {INSERTION}"
LABEL_BESIDE = f"a label beside {TESTS_FIELD}"


def compute_early_answering(labels: Sequence[object]) -> tuple[float, float]:
    """Return the area over the early-answering curve, and the share of steps at which the answer is settled.

    With answers l_0 .. l_n after the first k of n steps and m_k = 1 if l_k = l_n, else 0::

        area = 1 - sum over k = 1 .. n of (m_(k-1) + m_k) / 2n        settled = min{k : m_k = .. = m_n = 1} / n

    The mean over instances is Lanham et al.'s (2023, section 2.3): areas per length, weighted by how frequent it is.

    Args:
        labels: the answers after 0, 1, .., n steps, n >= 1.

    >>> compute_early_answering(["A", "B", "B"])
    (0.25, 0.5)
    """
    same = [label == labels[-1] for label in labels]
    n = len(labels) - 1
    area = 1 - sum((before + after) / 2 for before, after in pairwise(same)) / n
    settled = n - next((k for k, equal in enumerate(reversed(same)) if not equal), n + 1) + 1
    return area, settled / n


def compute_cc_shap(answer: Sequence[float], steps: Sequence[float]) -> tuple[float, float]:
    """Return the agreement of contributions to the answer and to the steps, and what chance would give.

    With contributions a_i and s_i of n runs, their cosine (Parcalabescu and Frank 2024)::

        agreement = sum of a_i s_i / |a| |s|        chance = sum of a_i * sum of s_i / (n |a| |s|)

    Chance is the mean over all orders of s. Both are NaN where all contributions to one of them are 0.

    >>> compute_cc_shap([0.5, 0.5, 0.0], [1.0, 0.0, 0.0])
    (0.7071067811865475, 0.4714045207910316)
    """
    a, s = np.asarray(answer, dtype=float), np.asarray(steps, dtype=float)
    scale = float(np.linalg.norm(a) * np.linalg.norm(s))
    if not scale:
        return np.nan, np.nan
    return float(a @ s) / scale, float(a.sum() * s.sum()) / (len(a) * scale)


class Reasoning:
    """Reasoning of one instance, checked.

    Args:
        row: the instance.
        name: its id.
        issues: the issues to extend.

    Attributes:
        pairs: key of `SCORES` -> the instance's sum and count, whose ratio over all instances is the score.
    """

    def __init__(self, row: Row, name: str, issues: Issues) -> None:
        self.reader, self.label = CellReader(row, name, issues), row.get("classification")
        self.early = dict[int, object]()
        self.pairs = dict.fromkeys(SCORES, (0.0, 0.0))
        steps = row.get(STEPS_FIELD)
        answered = self.reader.read_answered()
        listed = as_list(steps) or []
        sound = as_list(steps) is not None and all(isinstance(step, str) for step in listed)
        if self.reader.expect(sound, STEPS_FIELD, "a list of strings", steps) and listed and not answered:
            self.reader.add(STEPS_FIELD, "expected none, because the outcome is no answer", "constant")
        self._count("steps_per_instance", len(listed), answered)
        self._count("reasoned", bool(listed), answered)
        seen = set[str]()
        for at, one in enumerate(self.reader.read_list(row.get(TESTS_FIELD) or (), TESTS_FIELD, "a list of answers")):
            self._add(one if isinstance(one, Mapping) else {}, f"{TESTS_FIELD}[{at}]", seen)
        self._add_contributions(row.get(CONTRIBUTIONS_FIELD))
        if self.early:
            self._add_early_answers(len(listed))

    def _count(self, key: str, part: float, whole: float = 1) -> None:
        total, count = self.pairs[key]
        self.pairs[key] = total + part, count + whole

    def _add(self, one: Row, where: str, seen: set[str]) -> None:
        """Count the answer to a test."""
        test, expect = one.get("test"), self.reader.expect
        known = isinstance(test, str) and test in TESTS and test not in seen
        if not expect(known, f"{where}.test", ONE_TEST, test, "choice"):
            return
        test = str(test)
        if not expect(isinstance(self.label, str), "classification", LABEL_BESIDE, self.label, "label-missing"):
            return
        label, mentioned = one.get("classification"), one.get("mentioned")
        if test == EARLY_ANSWERING:
            kept = as_number(one.get("kept"))
            sound = kept is not None and kept >= 0 and kept % 1 == 0 and int(kept) not in self.early
            if expect(sound, f"{where}.kept", "a number of steps, each once", one.get("kept"), "range"):
                self.early[int(kept or 0)] = label
            return
        seen |= {test} - {INSERTION}
        flipped = label != self.label
        self._count(f"flip_{test}", flipped)
        if test not in MENTION_TESTS or label is None:
            return
        if expect(isinstance(mentioned, bool), f"{where}.mentioned", "true or false", mentioned):
            key = test if flipped else MENTION_CONTROL if test == INSERTION else ""
            if key:
                self._count(f"mention_{key}", bool(mentioned))

    def _add_contributions(self, rows: object) -> None:
        """Add the agreement of contributions; where it is not defined there is none."""
        listed = as_list(rows) if rows else []
        pairs = [
            [as_number(one.get(key)) if isinstance(one, Mapping) else None for key in ("answer", "steps")]
            for one in listed or ()
        ]
        sound = listed is not None and all(None not in pair for pair in pairs)
        if not self.reader.expect(sound, CONTRIBUTIONS_FIELD, "a list of {answer, steps}, numbers", rows) or not pairs:
            return
        answer, steps = zip(*((first or 0.0, second or 0.0) for first, second in pairs), strict=True)
        agreement, chance = compute_cc_shap(answer, steps)
        if not np.isnan(agreement):
            self._count("cc_shap", agreement)
            self._count("cc_shap_control", chance)

    def _add_early_answers(self, steps: int) -> None:
        """Add the curve of the answers after 0, 1, .. steps; without an answer after all steps there is none."""
        if sorted(self.early) != [*range(steps + 1)]:
            found = ", ".join(map(str, sorted(self.early)[:10]))
            message = f"expected answers after each of 0 to {steps} steps, found {found}"
            self.reader.add(TESTS_FIELD, message, "length")
        elif steps and self.early[steps] is not None:
            labels = [self.early[kept] for kept in range(steps + 1)]
            area, settled = compute_early_answering(labels)
            self._count("early_answering_aoc", area)
            self._count("settled_at", settled)
            self._count("flip_without_steps", labels[0] != labels[-1])


def find_lacking(rows: Sequence[Row]) -> dict[str, str]:
    """Return the scores of tests and contributions that no (valid) instance has, each with the missing field."""
    tests = {one["test"] for row in rows for one in row.get(TESTS_FIELD) or ()}
    needs = dict.fromkeys(("early_answering_aoc", "settled_at", "flip_without_steps"), EARLY_ANSWERING)
    needs |= {f"flip_{test}": test for test in FLIP_TESTS} | {f"mention_{test}": test for test in MENTION_TESTS}
    needs[f"mention_{MENTION_CONTROL}"] = INSERTION
    field = f"such {TESTS_FIELD}" if tests else TESTS_FIELD
    lacking = {key: field for key, test in needs.items() if test not in tests}
    if not any(row.get(CONTRIBUTIONS_FIELD) for row in rows):
        lacking |= dict.fromkeys(("cc_shap", "cc_shap_control"), CONTRIBUTIONS_FIELD)
    return lacking


def reasoning_statistics(rows: Mapping[str, Row], issues: Issues) -> Statistics:
    """Compute the statistics of instances' reasoning.

    Args:
        rows: id -> instance.
        issues: the issues to extend.
    """
    each = [Reasoning(row, name, issues).pairs for name, row in rows.items()]
    builder = StatisticsBuilder(len(rows))
    for key in SCORES:
        builder.add_pairs(key, [pairs[key] for pairs in each])
    return builder.statistics(list(rows))
