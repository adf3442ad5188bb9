"""The rules that input is held to: the ids by which programs and tests tell errors apart."""

from __future__ import annotations

from typing import Literal, TypeAlias

Rule: TypeAlias = Literal[
    "input",
    # files and folders
    "file-missing",
    "file-kind",
    "file-unreadable",
    "file-exists",
    "file-changed",
    "file-version",
    "file-name",
    "file-twice",
    "encoding",
    "syntax",
    "size-limit",
    "archive-member",
    # records
    "key-missing",
    "key-unknown",
    "key-twice",
    "type",
    "range",
    "choice",
    "empty",
    "length",
    "constant",
    "text",
    "id-missing",
    "id-unknown",
    "id-twice",
    # documents, spans, labels
    "document-missing",
    "document-unknown",
    "document-twice",
    "span-order",
    "span-bounds",
    "span-overlap",
    "span-text",
    "span-missing",
    "label-missing",
    "label-unknown",
    "probabilities",
    "score-missing",
    # options and settings
    "option-value",
    "option-conflict",
    "option-missing",
    # models and machines
    "extra-missing",
    "plug-in",
    "unsupported",
    "model",
    "model-output",
    "device",
    # identity
    "data-mismatch",
    # work
    "busy",
    "resume",
    "check",
    "network",
    "hub",
    "server",
    "code",
]
