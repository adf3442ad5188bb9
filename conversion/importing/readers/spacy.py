"""Reader of spaCy's DocBin (``.spacy``): entities, groups of spans, categories, and spaCy's own tokens."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from eraser_hub.conversion.importing.tasks import NOT_ANNOTATED, Mark, Task, TaskAnnotation, TaskReader
from eraser_hub.records.errors import DataError, get_first_line
from eraser_hub.records.extras import need
from eraser_hub.records.lines import wrap_read_errors

CHOSEN = 0.5  # a category with at least this score is chosen


class Spacy(TaskReader):
    """Reader of a file of documents; it needs the package spaCy."""

    title = "spaCy DocBin"
    suffixes = (".spacy",)

    @classmethod
    def recognizes(cls, path: Path) -> bool:
        """Look at the ending of the name, which no other tool has."""
        return path.name.endswith(cls.suffixes) and path.is_file()

    def tasks(self) -> Iterator[Task]:
        """Read a task for each document.

        Raises:
            DataError: spaCy is not installed, or the file is no DocBin.
        """
        need("spacy")
        spacy: Any = importlib.import_module("spacy")  # this module has its name
        doc_bin: Any = importlib.import_module("spacy.tokens").DocBin

        try:
            with wrap_read_errors(self.path):
                documents = doc_bin().from_bytes(self.path.read_bytes()).get_docs(spacy.blank("xx").vocab)
                documents = list(documents)
        except DataError:
            raise
        except Exception as error:  # spaCy, msgpack and zlib raise many types
            raise DataError(
                f"cannot be read as a DocBin ({get_first_line(error)})", rule="syntax", file=self.path
            ) from None
        for number, document in enumerate(documents, 1):
            yield _make_task(number, document, self.path)


def _make_task(number: int, document: Any, path: Path) -> Task:
    groups = [("ents", document.ents), *document.spans.items()]
    marks = [Mark(span.start_char, span.end_char, span.label_ or name) for name, spans in groups for span in spans]
    chosen = [name for name, score in document.cats.items() if score >= CHOSEN]
    annotation = TaskAnnotation(None, marks, {"cats": chosen} if chosen else {})
    sentences = list(document.sents) if document.has_annotation("SENT_START") else [document]
    tokens = [[(token.idx, token.idx + len(token)) for token in sentence] for sentence in sentences]
    reason = "" if marks or chosen else NOT_ANNOTATED
    return Task(number, {"text": document.text}, [annotation], tokens=tokens, left_out=reason, file=path)
