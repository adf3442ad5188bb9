"""Prodigy's ``db-out``: a JSON line for each answer; several people's answers to one input are one text."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from eraser_hub.conversion.importing.sources import open_file
from eraser_hub.conversion.importing.tally import locate
from eraser_hub.conversion.importing.tasks import Mark, Task, look_at_first_row, read_list, read_offsets
from eraser_hub.records.errors import DataError, show

TITLE = "Prodigy"
ANSWERS = {"accept": "", "reject": "rejected", "ignore": "ignored", None: "not annotated"}
USED = {"text", "spans", "tokens", "answer", "accept", "options", "label", "relations", "html", "config"}


def recognizes(path: Path) -> bool:
    """Look for a text with an answer, or with Prodigy's hashes."""
    row = look_at_first_row(path)
    answered = isinstance(row.get("answer"), str) and row["answer"] in ANSWERS
    return isinstance(row.get("text"), str) and (answered or "_task_hash" in row)


def read_tasks(path: Path, text: str | None) -> Iterator[Task]:
    """Read a task a line; texts are numbered in their order."""
    ids: dict[str, str] = {}
    for row in open_file(path).rows():
        cells = row.cells
        with locate(path, row.number):
            words, answer = cells.get("text"), cells.get("answer", "accept")
            if not isinstance(words, str):
                raise DataError(f"expected a text, found {show(words)}", field="text")
            if not isinstance(answer, str | None) or answer not in ANSWERS:
                raise DataError(f"expected accept, reject or ignore, found {show(answer)}", field="answer")
            marks = []
            for at, span in enumerate(read_list(cells, "spans")):
                own = span.get("text") if isinstance(span, dict) else None
                marks.append(Mark(*read_offsets(span, f"spans[{at}]"), str(span.get("label", "")), words=own))
            accepted = cells.get("accept")
            chosen = [accepted] if isinstance(accepted, str | int) else read_list(cells, "accept")
            answers = {"accept": list(map(str, chosen))} if chosen else {}
            answers |= {"label": [cells["label"]]} if isinstance(cells.get("label"), str) else {}
            tokens = [read_offsets(token, f"tokens[{at}]") for at, token in enumerate(read_list(cells, "tokens"))]
        person = cells.get("_annotator_id") or cells.get("_session_id")
        fields = {name: cell for name, cell in cells.items() if name not in USED and not name.startswith("_")}
        key = json.dumps([words, fields, cells.get("_input_hash")], sort_keys=True)
        yield Task(
            path,
            row.number,
            words,
            marks,
            answers,
            None if person is None else str(person),
            ids.setdefault(key, str(len(ids) + 1)),
            fields,
            tokens=[tokens] if tokens else None,
            left_out=ANSWERS[answer],
            counts=Counter(relations=len(read_list(cells, "relations"))),
        )
