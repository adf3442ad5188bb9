"""Reader of GATE's XML: a file for each text, with sets of annotations by nodes."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path

from eraser_hub.conversion.importing.tasks import (
    Mark,
    Task,
    TaskAnnotation,
    TaskReader,
    list_files,
    look_at_start,
    read_xml_file,
)
from eraser_hub.records.errors import DataError, show

_OWN_FEATURES = {"MimeType", "gate.SourceURL", "docNewLineType"}
ORIGINAL = "Original markups"  # the set of what the text's own file marked


class Gate(TaskReader):
    """Reader of a file, or of a folder of files; a named set of annotations is a person's."""

    title = "GATE"

    @classmethod
    def recognizes(cls, path: Path) -> bool:
        """Look for the element GateDocument."""
        files = list_files(path, ".xml") if path.is_dir() else [path] if path.name.endswith(".xml") else []
        return bool(files) and all("<GateDocument" in look_at_start(file, 1000) for file in files)

    def tasks(self) -> Iterator[Task]:
        """Read a task for each file."""
        for path in list_files(self.path, ".xml") if self.path.is_dir() else [self.path]:
            yield _read_task(path)


def _read_task(path: Path) -> Task:
    root = read_xml_file(path)
    parts, places = [], {}
    length = 0
    body = root.find("TextWithNodes")
    for part, node in [] if body is None else [(body.text, None), *((node.tail, node) for node in body)]:
        if node is not None:
            places[node.get("id")] = length
        parts.append(part or "")
        length += len(part or "")
    annotations = [
        _read_set(group, places, path) for group in root.findall("AnnotationSet") if group.get("Name") != ORIGINAL
    ]
    choices = _read_features(root.find("GateDocumentFeatures"))
    people = [each for each in annotations if each.marks]
    for each in people:
        each.choices = {name: [value] for name, value in choices.items()}
    fields = {} if people else choices
    return Task(1, {"text": "".join(parts)}, people, path.stem, fields, file=path)


def _read_set(group: ElementTree.Element, places: dict[str | None, int], path: Path) -> TaskAnnotation:
    annotation = TaskAnnotation(group.get("Name"))
    for each in group.findall("Annotation"):
        nodes = [each.get("StartNode"), each.get("EndNode")]
        if unknown := [node for node in nodes if node not in places]:
            message = f"expected a node of the text, found {show(unknown[0])}"
            raise DataError(message, rule="key-unknown", file=path, field=f"Annotation {each.get('Id')}")
        start, end = (places[node] for node in nodes)
        annotation.marks.append(Mark(start, end, each.get("Type", ""), each.get("Id", ""), _read_features(each)))
    return annotation


def _read_features(element: ElementTree.Element | None) -> dict[str, str]:
    features = [] if element is None else element.findall("Feature")
    pairs = ((feature.findtext("Name"), feature.findtext("Value")) for feature in features)
    return {name: value for name, value in pairs if name and value and name not in _OWN_FEATURES}
