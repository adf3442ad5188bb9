"""Reader of UIMA CAS as XMI or JSON, which INCEpTION and dkpro-cassis write."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from eraser_hub.conversion.importing.tasks import (
    Mark,
    Relation,
    Task,
    TaskAnnotation,
    TaskReader,
    Utf16Offsets,
    list_files,
    list_project_files,
    look_at_start,
    read_xml_file,
)
from eraser_hub.conversion.readers import read_strict_object
from eraser_hub.records.errors import DataError

TOKEN, SENTENCE = "Token", "Sentence"
VIEW = "_InitialView"
_ENDS = (("Governor", "Dependent"), ("source", "target"))
_NO_FEATURES = {"begin", "end", "sofa", "id"}
# what the annotators of texts do not make: the text itself, its tags, its segments
_OWN_TYPES = {"Sofa", "View", "NULL", "DocumentMetaData", "DocumentAnnotation", "TagDescription", "TagsetDescription"}


class Structure(NamedTuple):
    """A feature structure: its id, its type with and without package, its features."""

    id: str
    type: str
    features: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The type's short name."""
        return self.type.rpartition(".")[2]


class Cas(TaskReader):
    """Reader of a file, or of a folder of files; a project's has a folder for each text."""

    title = "UIMA CAS"
    suffixes = (".xmi",)

    @classmethod
    def recognizes(cls, path: Path) -> bool:
        """Look for the XMI element or the key of JSON CAS."""
        files = list_files(path, ".xmi", ".json") if path.is_dir() else [path]
        starts = ((file.suffix == ".xmi", look_at_start(file)) for file in files)  # to the first that is none
        return bool(files) and all(
            "<xmi:XMI" in start if is_xmi else start.startswith("{") and '"%' in start and "uima." in start
            for is_xmi, start in starts
        )

    def tasks(self) -> Iterator[Task]:
        """Read a task for each file; those of one text are one task."""
        yield from (_read_task(*file) for file in list_project_files(self.path, ".xmi", ".json"))


def _read_task(path: Path, name: str, person: str | None) -> Task:
    structures = list(_read_xmi(path) if path.suffix == ".xmi" else _read_json(path))
    texts = [each for each in structures if each.name == "Sofa"]
    texts = [each for each in texts if each.features.get("sofaID") == VIEW] or texts
    if not texts or not isinstance(texts[0].features.get("sofaString"), str):
        raise DataError("expected a text (a Sofa with a sofaString), found none", file=path)
    sofa, text = texts[0].id, str(texts[0].features["sofaString"])
    offsets = Utf16Offsets(text)
    own = [each for each in structures if str(each.features.get("sofa")) == sofa and each.name not in _OWN_TYPES]
    places = {each.id: place for each in own if (place := _find_place(each, offsets)) is not None}
    segments = {
        kind: sorted(places[each.id] for each in own if each.name == kind and each.id in places)
        for kind in (TOKEN, SENTENCE)
    }
    annotation = TaskAnnotation(person)
    for each in own:
        if each.name in segments or ".segmentation." in each.type:
            continue
        _add_structure(annotation, each, places)
    tokens = _group_tokens(segments[TOKEN], segments[SENTENCE]) if segments[TOKEN] else None
    return Task(1, {"text": text}, [annotation], name, tokens=tokens, file=path)


def _find_place(each: Structure, offsets: Utf16Offsets) -> tuple[int, int] | None:
    begin, end = each.features.get("begin"), each.features.get("end")
    if begin is None or end is None:
        return None
    try:
        return offsets.to_character(int(begin)), offsets.to_character(int(end))
    except ValueError:
        return None


def _add_structure(annotation: TaskAnnotation, each: Structure, places: Mapping[str, tuple[int, int]]) -> None:
    """Add a relation, a mark, or a choice (a structure without offsets)."""
    values = {
        name: str(value)
        for name, value in each.features.items()
        if name not in _NO_FEATURES and isinstance(value, str | int | float)
    }
    for source, target in _ENDS:
        if values.keys() >= {source, target}:
            label = next((value for name, value in values.items() if name not in (source, target)), each.name)
            annotation.relations.append(Relation(label, values[source], values[target]))
            return
    attributes = {f"{each.name}.{name}": value for name, value in values.items()}
    if each.id in places:
        start, end = places[each.id]
        annotation.marks.append(Mark(start, end, each.name, each.id, attributes))
    else:
        for name, value in attributes.items():
            annotation.choices.setdefault(name, []).append(value)


def _group_tokens(tokens: Iterable[tuple[int, int]], sentences: list[tuple[int, int]]) -> list[list[tuple[int, int]]]:
    """Return the tokens of each sentence; those outside all sentences follow the sentence before them."""
    groups: list[list[tuple[int, int]]] = [[]]
    starts = iter([*sentences[1:], (1 << 62, 1 << 62)])
    following = next(starts)[0]
    for token in tokens:
        while token[0] >= following:
            groups.append([])
            following = next(starts)[0]
        groups[-1].append(token)
    return groups


def _read_xmi(path: Path) -> Iterator[Structure]:
    for element in read_xml_file(path):
        package, _, name = element.tag.removeprefix("{http:///").rpartition("}")
        kind = f"{package.removesuffix('.ecore').replace('/', '.')}.{name}"
        features: dict[str, Any] = {key.rpartition("}")[2]: value for key, value in element.attrib.items()}
        identity = str(element.attrib.get("{http://www.omg.org/XMI}id", ""))
        yield Structure(identity, kind, features)


def _read_json(path: Path) -> Iterator[Structure]:
    structures = read_strict_object(path).get("%FEATURE_STRUCTURES")
    if isinstance(structures, dict):
        structures = [{"%ID": key, **value} for key, value in structures.items() if isinstance(value, dict)]
    if not isinstance(structures, list):
        raise DataError("expected a list of feature structures", file=path, field="%FEATURE_STRUCTURES")
    for at, each in enumerate(structures):
        if not isinstance(each, dict) or "%TYPE" not in each or "%ID" not in each:
            found = json.dumps(each)[:80]
            message = f"expected an object with %ID and %TYPE, found {found}"
            raise DataError(message, file=path, field=f"%FEATURE_STRUCTURES[{at}]")
        features = {key.removeprefix("@").removeprefix("#"): value for key, value in each.items() if key[0] not in "%^"}
        yield Structure(str(each["%ID"]), str(each["%TYPE"]), features)
