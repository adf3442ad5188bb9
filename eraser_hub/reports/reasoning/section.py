"""The reasoning of language models in a report: how often tests change the answer, and where it settles, by steps."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from eraser_hub.metrics.reasoning import EARLY_ANSWERING, MENTION_TESTS, compute_early_answering
from eraser_hub.schema.instance import STEPS_FIELD, TESTS_FIELD
from eraser_hub.scoring.scores import Scores

from ..catalogue import metric
from ..report_tables import Block, Section, ShownCell, ShownRow, label_with_arrow, make_score_cell

MOST_SHOWN = 10  # instances of a system whose steps are shown
# test -> its control
CONTROLS = {
    "mistake": "flip_mistake_control",
    "filler": "flip_unchanged",
    "paraphrase": "flip_unchanged",
    "suggested_answer": "flip_suggested_answer_control",
    "option_order": "flip_repeated",
    "few_shot": "flip_few_shot_control",
    "insertion": "",
}
_NO_ANSWER = "no answer"


def make_reasoning_section(
    scored: Sequence[Scores], answers: Sequence[Mapping[str, Mapping[str, Any]]]
) -> list[Section]:
    """Make the section of the tests of reasoning; no section if no system reasons.

    Args:
        scored: the systems.
        answers: the predictions of each, by instance.
    """
    reasoning = [
        (system, [row for row in own.values() if row.get(STEPS_FIELD)])
        for system, own in zip(scored, answers, strict=True)
    ]
    shown = [(system, rows) for system, rows in reasoning if rows]
    if not shown:
        return []
    section = Section("reasoning-section", "Reasoning")
    section.missing += [f"{system.name}: no steps of reasoning." for system, rows in reasoning if not rows]
    section.notes.append(
        "A test changes the steps, the question or the text, and counts labels that change. Its control changes as "
        "much, but nothing that should matter. Named: of the labels that changed, the share whose steps name the "
        "hint or the word."
    )
    for system, rows in shown:
        section.blocks += _make_test_blocks(system)
        curves = [row for row in rows if any(one.get("test") == EARLY_ANSWERING for one in _tests(row))]
        section.blocks += [_make_step_block(system.name, row) for row in curves[:MOST_SHOWN]]
        if len(curves) > MOST_SHOWN:
            section.notes.append(f"{system.name}: steps of the first {MOST_SHOWN} of {len(curves)} instances.")
        if not curves:
            section.missing.append(f"{system.name}: steps without early answers (`ask --reasoning-tests all` asks).")
    return [section]


def _make_test_blocks(system: Scores) -> list[Block]:
    """Return the table of a system's tests, and that of its other measures, as far as it has any."""
    rows, measures = [], []
    for test, control in CONTROLS.items():
        if not _has(system, f"flip_{test}"):
            continue
        keys = (f"flip_{test}", control, f"mention_{test}" if test in MENTION_TESTS else "")
        nothing = [ShownCell("–" if key else "") for key in keys]
        cells = tuple(
            make_score_cell(system, key) if _has(system, key) else none for key, none in zip(keys, nothing, strict=True)
        )
        rows.append(ShownRow(metric(f"flip_{test}").label.removeprefix("Label flips: "), cells))
    empty = ShownCell("")
    for key, control in (("early_answering_aoc", ""), ("settled_at", ""), ("cc_shap", "cc_shap_control")):
        if _has(system, key):
            beside = make_score_cell(system, control) if control else empty
            measures.append(ShownRow(label_with_arrow(key), (make_score_cell(system, key), beside)))
    head = ("test", "labels changed", "by the control", "named")
    blocks = [
        Block(head, tuple(rows), f"{system.name}: tests of its reasoning."),
        Block(("measure", "value", "control"), tuple(measures), f"{system.name}: its steps beside its answers."),
    ]
    return [block for block in blocks if block.rows]


def _has(system: Scores, key: str) -> bool:
    value = system.number(key)
    return value is not None and not math.isnan(value)


def _make_step_block(name: str, row: Mapping[str, Any]) -> Block:
    """Return an instance's steps, and the answer after each."""
    steps = [*map(str, row[STEPS_FIELD])]
    early = {one["kept"]: one.get("classification") for one in _tests(row) if one.get("test") == EARLY_ANSWERING}
    labels = [early.get(kept) for kept in range(len(steps) + 1)]
    settled = round(compute_early_answering(labels)[1] * len(steps))
    where = "before the first step" if settled == 0 else f"after step {settled} of {len(steps)}"
    rows = [
        ShownRow(f"{n}. {step}" if n else step, (ShownCell(label or _NO_ANSWER, "settled" * (n == settled)),))
        for n, (step, label) in enumerate(zip(["without any step", *steps], labels, strict=True))
    ]
    summary = f"{name}, {row.get('annotation_id')}: {row.get('classification')}, settled {where}"
    return Block(("step", "answer after it"), tuple(rows), "", "", summary)


def _tests(row: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    return row.get(TESTS_FIELD) or ()
