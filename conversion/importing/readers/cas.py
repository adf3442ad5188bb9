"""UIMA CAS as JSON or XMI, which INCEpTION writes; read by dkpro-cassis (the extra ``cas``).

A project of INCEpTION has ``annotation/TEXT/PERSON.json``; its files ``INITIAL_CAS`` are no person's. XMI needs the
``TypeSystem.xml`` beside it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from eraser_hub.conversion.importing.tasks import Mark, Task, read_text_file
from eraser_hub.records.errors import DataError, get_first_line
from eraser_hub.records.extras import need

TITLE = "UIMA CAS"
TOKEN, SENTENCE = "Token", "Sentence"
# what annotators do not make: the text itself, its tags
OWN_TYPES = {"Sofa", "DocumentMetaData", "DocumentAnnotation", "TagDescription", "TagsetDescription"}


def _list_files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    files = sorted(file for suffix in ("*.xmi", "*.json") for file in path.rglob(suffix))
    return [file for file in files if file.stem != "INITIAL_CAS" and "curation" not in file.relative_to(path).parts]


def recognizes(path: Path) -> bool:
    """Look for the XMI element, or the keys of JSON CAS."""
    files = _list_files(path) if path.exists() else []
    for file in files:
        with file.open("rb") as stream:
            start = stream.read(1 << 16).lstrip()
        is_xmi = file.suffix == ".xmi" and b"<xmi:XMI" in start
        if not is_xmi and not (start.startswith(b"{") and b'"%' in start and b"uima." in start):
            return False
    return bool(files)


def read_tasks(path: Path, text: str | None) -> Iterator[Task]:
    """Read a task for each file; those of one text and several people have its name."""
    need("cassis")
    for file in _list_files(path):
        project = path / "annotation"
        if path.is_dir() and project in file.parents:
            yield _read_file(file, file.parent.relative_to(project).as_posix(), file.stem)
        else:
            name = file.stem if path.is_file() else file.relative_to(path).with_suffix("").as_posix()
            yield _read_file(file, name, None)


def _load(path: Path) -> Any:
    """Return the CAS of a file.

    Raises:
        DataError: it cannot be read; XMI without its types, or with a document type, whose entities could grow.
    """
    import cassis

    types = path.with_name("TypeSystem.xml")
    if path.suffix == ".xmi" and not types.is_file():
        raise DataError("expected a TypeSystem.xml beside it, found none", file=path)
    texts = [read_text_file(file) for file in ([types, path] if path.suffix == ".xmi" else [path])]
    if path.suffix == ".xmi" and any("<!DOCTYPE" in text or "<!ENTITY" in text for text in texts):
        raise DataError("expected XML without a document type", file=path)
    try:
        if path.suffix == ".xmi":
            return cassis.load_cas_from_xmi(texts[1], cassis.load_typesystem(texts[0]))
        return cassis.load_cas_from_json(texts[0])
    except Exception as error:  # the library raises many types
        raise DataError(f"cannot be read as a CAS: {get_first_line(error)}", file=path) from None


def _read_file(path: Path, id: str, person: str | None) -> Task:
    cas = _load(path)
    if not isinstance(cas.sofa_string, str):
        raise DataError("expected a text (a Sofa with a sofaString), found none", file=path)
    task = Task(path, 1, cas.sofa_string, annotator=person, id=id)
    segments: dict[str, list[tuple[int, int]]] = {TOKEN: [], SENTENCE: []}
    for structure in cas.select_all_fs():
        name, place = structure.type.name.rpartition(".")[2], None
        if isinstance(getattr(structure, "begin", None), int) and isinstance(structure.end, int):
            place = (structure.begin, structure.end)
        if name in segments and place:
            segments[name].append(place)
        if name in OWN_TYPES or ".segmentation." in structure.type.name:
            continue
        names = {each.name for each in structure.type.all_features} - {"begin", "end", "sofa"}
        features = ((key, getattr(structure, key)) for key in sorted(names))
        values = {f"{name}.{key}": str(cell) for key, cell in features if isinstance(cell, str | int | float)}
        if place:
            task.marks.append(Mark(*place, name, "", values))
        for question, value in values.items() if not place else ():
            task.answers.setdefault(question, []).append(value)
    if segments[TOKEN]:
        starts = [start for start, _ in sorted(segments[SENTENCE])[1:]]
        task.tokens = [[] for _ in range(len(starts) + 1)]
        for token in sorted(segments[TOKEN]):  # those outside all sentences follow the sentence before them
            task.tokens[bisect_right(starts, token[0])].append(token)
    return task
