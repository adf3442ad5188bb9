"""Integrity checks of ``bilingual_perturbation``: related ids, indices, tokens and texts, gold sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from eraser_hub.conversion.checks import Tally
from eraser_hub.records.errors import show

from .configs import CONFIGS
from .format import SAMPLE_TYPES

NOTES = {
    "rel_ids beyond a partial gold": "the gold numbers its perturbed records in its own way, and holds a part of them",
    "perturbed by two originals": "two originals name the same record; original_id is the first",
    "perturbed without an original": "no original names the record",
    "original without a perturbed record": "an original that names none has no part in MAP",
    "index twice in a gold set": "the release repeats a token's index; metrics take sets",
    "empty gold set of an unanswerable question": "nothing in the passage supports an answer",
}


def squeeze(text: str) -> str:
    """Return a text without its whitespace, to compare it with the joined tokens."""
    return "".join(text.split())


def look_at_row(row: Mapping[str, Any], config: str, tally: Tally) -> None:
    """Check one row by itself."""
    where, facts = f"id {row['id']}", CONFIGS[config]
    if (row["task"], row["language"]) != (facts.task, facts.language):
        tally.add("task or language", 1, [f"{where}: {row['task']}, {row['language']}"])
    if row["sample_type"] not in SAMPLE_TYPES:
        tally.add("sample_type", 1, [f"{where}: {show(row['sample_type'])}"])
    texts = [[squeeze(row[column] or "") for column in columns] for columns in facts.text_columns]
    # the tokens of the reading task cover passage and title, in either order
    spellings = [("".join(parts), "".join(reversed(parts))) for parts in texts]
    spelled = [squeeze("".join(tokens)) for tokens in row["tokens"]]
    if len(spelled) != len(spellings) or any(one not in two for one, two in zip(spelled, spellings, strict=True)):
        tally.add("tokens do not spell the text", 1, [f"{where}: {show(row['tokens'])}"])
    if row["label"] is not None and row["label"] not in (0, 1):
        tally.add("label", 1, [f"{where}: {row['label']}"])
    if row["has_gold"] != (row["rationale_ids"] is not None):
        tally.add("has_gold", 1, [f"{where}: {row['has_gold']}"])
    if row["rationale_ids"] is None:
        return
    if len(row["rationale_ids"]) != len(row["tokens"]):
        tally.add("gold sequences", 1, [f"{where}: {len(row['rationale_ids'])} of {len(row['tokens'])}"])
        return
    unanswerable = facts.task == "mrc" and row["answer"] == ""
    for sequence, (sets, tokens) in enumerate(zip(row["rationale_ids"], row["tokens"], strict=True)):
        if not sets or not all(sets):
            check = "empty gold set of an unanswerable question" if unanswerable else "empty gold set"
            tally.add(check, 1, [f"{where}: sequence {sequence}"])
        for chosen in sets:
            if any(not 0 <= index < len(tokens) for index in chosen):
                tally.add("index outside the tokens", 1, [f"{where}: {show(chosen)} of {len(tokens)} tokens"])
            if len(set(chosen)) != len(chosen):
                tally.add("index twice in a gold set", 1, [f"{where}: {show(chosen)}"])


def look_at_relations(rows: Sequence[Mapping[str, Any]], tally: Tally) -> None:
    """Check the relations between rows: rel_ids resolve to perturbed rows, and original_id is their inverse."""
    kinds = {row["id"]: row["sample_type"] for row in rows}
    partial_gold = any(row["has_gold"] for row in rows) and not all(row["has_gold"] for row in rows)
    inverse: dict[str, list[str]] = {}
    for row in rows:
        where = f"id {row['id']}"
        for rel_id in row["rel_ids"] or ():
            inverse.setdefault(rel_id, []).append(row["id"])
            if rel_id == row["id"]:
                tally.add("rel_ids name the record itself", 1, [where])
            elif rel_id not in kinds:
                outside = row["has_gold"] and partial_gold
                check = "rel_ids beyond a partial gold" if outside else "rel_ids without a record"
                tally.add(check, 1, [f"{where}: {rel_id}"])
            elif kinds[rel_id] != "disturb":
                tally.add("rel_ids name an original", 1, [f"{where}: {rel_id}"])
        if row["rel_ids"] and row["sample_type"] == "disturb":
            tally.add("rel_ids of a perturbed record", 1, [where])
    for row in rows:
        originals = inverse.get(row["id"], [])
        if (originals[0] if originals else None) != row["original_id"]:
            tally.add("original_id", 1, [f"id {row['id']}: {row['original_id']}, named by {show(originals)}"])
        if len(originals) > 1:
            tally.add("perturbed by two originals", 1, [f"id {row['id']}: {', '.join(originals)}"])
        if row["sample_type"] == "disturb" and not originals:
            tally.add("perturbed without an original", 1, [f"id {row['id']}"])
        if row["sample_type"] == "ori" and not row["rel_ids"]:
            tally.add("original without a perturbed record", 1, [f"id {row['id']}"])
