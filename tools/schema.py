"""The declarations of records as documents: docs/schema/NAME.json and the tables of docs/predictions-format.md.

python -m tools.schema            writes them
python -m tools.schema --check    says which differ, and exits with 1 where one does
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from eraser_hub.schema import files, instance, rows
from eraser_hub.schema.record import Field, Record, describe

DOCS = Path(__file__).resolve().parent.parent / "docs"
RECORDS = {
    "instance": (instance.InstanceRecord, "An instance of a predictions file: a line of JSON Lines."),
    "annotation": (
        rows.AnnotationRecord,
        "A row of a dataset, as scores read it. Further keys may stand beside these.",
    ),
    "pair": (rows.PairRow, "A line of predictions for the perturbation benchmark."),
    "fidelity": (rows.FidelityRow, "A row of `normalized_fidelity`."),
    "annotators": (rows.AnnotatorRow, "A row of `annotator_agreement`."),
    "run": (files.RunRecord, "The record of a run, OUT.run.json. Further keys may stand beside these."),
    "scores": (files.ScoreFileRecord, "A score file. Scores, and blocks of scores, stand beside these."),
}
OPEN = {"annotation", "run", "scores"}
TABLES = {"Instance": instance.InstanceRecord, "Rationale": instance.RationaleRecord}
PLAIN = {"text": "string", "whole": "integer", "number": "number", "flag": "boolean"}


def json_schema(name: str) -> dict[str, Any]:
    """Return the JSON Schema of a record."""
    declaration, title = RECORDS[name]
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title}
    return schema | _object(describe(declaration), name not in OPEN)


def _object(record: Record, closed: bool) -> dict[str, Any]:
    properties = {field.name: _property(field, closed) for field in record.values()}
    required = [field.name for field in record.values() if field.required]
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    schema |= {"required": required} if required else {}
    return schema | {"additionalProperties": False} if closed else schema


def _property(field: Field, closed: bool) -> dict[str, Any]:
    limits = {
        word: field.facts[key]
        for word, key in (("minimum", "low"), ("maximum", "high"))
        if field.facts[key] is not None
    }
    if field.record is not None:
        schema = _object(field.record, closed)
    elif field.kind == "probabilities":
        schema = {"type": "object", "additionalProperties": {"type": ["number", "null"], "minimum": 0, "maximum": 1}}
    elif field.kind == "object":
        schema = {"type": "object"}
    elif field.kind in ("id", "label"):
        schema = {"type": ["string", "integer"]}
    else:
        schema = {"type": PLAIN[field.kind], **limits}
    for _ in range(field.depth):
        schema = {"type": "array", "items": schema}
    if not field.required:
        kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        schema["type"] = [*kinds, "null"]
    facts = [field.facts["meaning"], f"in {field.facts['unit']}" if field.facts["unit"] else ""]
    return {"description": ", ".join(filter(None, facts)), **schema}


def table(record: Record) -> Iterator[str]:
    """Yield the lines of a record's table."""
    yield "| field | type | what it says | what it gives |"
    yield "|---|---|---|---|"
    for field in record.values():
        yield f"| `{field.name}` | {_type(field)} | {field.facts['meaning']} | {field.facts['scores']} |"


def _type(field: Field) -> str:
    """Return a field's type in words."""
    if field.name == "rationales":
        return "list of rationales, see below"
    if field.record is not None:
        word = f"`{{{', '.join(field.record)}}}`"
    else:
        names = {"id": "string or integer", "label": "string or integer", "probabilities": "`{label: p}`"}
        word = names.get(field.kind) or PLAIN[field.kind]
    low, high = field.facts["low"], field.facts["high"]
    if field.kind in ("number", "whole") and low is not None:
        word += f" from {low:g}" + (" on" if high is None else f" to {high:g}")
    return "list of " * field.depth + (f"{word}s" if field.depth and word == "number" else word)


def documents() -> dict[Path, str]:
    """Return each document that the declarations make, and its text."""
    texts = {DOCS / "schema" / f"{name}.json": json.dumps(json_schema(name), indent=2) + "\n" for name in RECORDS}
    page = DOCS / "predictions-format.md"
    text = page.read_text("utf-8")
    for name, declaration in TABLES.items():
        begin, end = f"<!-- the table of {name}: python -m tools.schema -->\n", f"<!-- end of {name} -->"
        before, _, rest = text.partition(begin)
        _, _, after = rest.partition(end)
        text = f"{before}{begin}\n" + "\n".join(table(describe(declaration))) + f"\n\n{end}{after}"
    return texts | {page: text}


def main() -> None:
    """Write the documents, or say which differ."""
    other = [path for path, text in documents().items() if not path.is_file() or path.read_text("utf-8") != text]
    if "--check" in sys.argv:
        sys.exit("\n".join(f"{path}: differs from the declarations; run python -m tools.schema" for path in other))
    for path in other:
        path.parent.mkdir(exist_ok=True)
        path.write_text(documents()[path], "utf-8")
        print(path)


if __name__ == "__main__":
    main()
