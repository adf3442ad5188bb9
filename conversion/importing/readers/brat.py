"""brat's standoff: a folder with ``NAME.txt`` and ``NAME.ann``; folders that hold files of one name are people."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from eraser_hub.conversion.importing.tally import locate
from eraser_hub.conversion.importing.tasks import Mark, Task, read_text_file
from eraser_hub.conversion.importing.texts import have_same_letters
from eraser_hub.records.errors import DataError, show

TITLE = "brat"
FORMS = {
    "T": ("T1<TAB>Type START END<TAB>TEXT", re.compile(r"(T\S+)\t(\S+) (\d+ \d+(?:;\d+ \d+)*)\t(.*)")),
    "R": ("R1<TAB>Type Arg1:T1 Arg2:T2", re.compile(r"(R\S+)\t(\S+) \S+?:(\S+) \S+?:(\S+)\s*")),
    "A": ("A1<TAB>Name T1 Value", re.compile(r"([AM]\S+)\t(\S+) (\S+)(?: (\S.*?))?\s*")),
}
IGNORED = "#N*E"  # notes, normalisations, equivalences and events


def recognizes(path: Path) -> bool:
    """Look for .ann files beside texts."""
    return path.is_dir() and any(file.with_suffix(".txt").is_file() for file in path.rglob("*.ann"))


def read_tasks(path: Path, text: str | None) -> Iterator[Task]:
    """Read a task for each text; nobody has annotated a text without an .ann file."""
    files: dict[tuple[str, str], list[Path]] = {}
    for file in sorted(path.rglob("*.txt")):
        files.setdefault((file.name, read_text_file(file)), []).append(file)
    for (_, words), members in files.items():
        for file in members:
            place = file.relative_to(path)
            task = Task(file, 1, words, id=place.with_suffix("").as_posix())
            if len(members) > 1:
                task.id, task.annotator = file.stem, file.parent.name
            elif place.parent.name:
                task.fields = {"folder": place.parent.as_posix()}
            if file.with_suffix(".ann").is_file():
                _read_annotations(file.with_suffix(".ann"), task)
            else:
                task.left_out = "not annotated"
            yield task


def _read_annotations(path: Path, task: Task) -> None:
    """Add the marks, relations and attributes of a file."""
    attributes: dict[str, dict[str, str]] = defaultdict(dict)
    for number, line in enumerate(read_text_file(path).split("\n"), 1):
        line = line.rstrip("\r")
        if not line or line[0] in IGNORED:
            continue
        with locate(path, number):
            form, pattern = FORMS.get("A" if line[0] == "M" else line[0], ("a line of standoff", None))
            match = pattern.fullmatch(line) if pattern else None
            if match is None:
                raise DataError(f"expected {form}, found {show(line)}")
            if line[0] == "R":
                task.relations.append((match[2], match[3], match[4]))
            elif line[0] != "T":
                attributes[match[3]][match[2]] = match[4] or "true"
            else:
                parts = [tuple(map(int, part.split(" "))) for part in match[3].split(";")]
                found = " ".join(task.text[start:end] for start, end in parts)
                if not have_same_letters(found, match[4]):
                    message = f"expected the mark's own text {show(match[4])} at {match[3]}, found {show(found)}"
                    raise DataError(message)
                task.marks += [Mark(start, end, match[2], match[1], attributes[match[1]]) for start, end in parts]
