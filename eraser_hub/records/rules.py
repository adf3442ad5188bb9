"""The rules that input is held to: the ids by which programs and tests tell errors apart.

docs/errors.md says of each what it asks for, with an example.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

Rule: TypeAlias = Literal[
    "input",  # the input is not what is needed, and no other rule fits
    # files and folders
    "file-missing",  # a file or folder that is needed does not exist
    "file-kind",  # a path is a folder, a pipe or a device where a file is expected, or the other way round
    "file-unreadable",  # the system, or a library, cannot read, open or write a file
    "file-exists",  # something stands where a result would go, and nothing is overwritten
    "file-changed",  # a file's digest or size is not what was recorded
    "file-version",  # a file was written in a format of another version
    "file-name",  # a name of a file, folder, config or split cannot be taken
    "file-twice",  # one file is given twice, or two that may not stand together
    "encoding",  # bytes that are no UTF-8
    "syntax",  # text that is no JSON, CSV, YAML, Parquet, archive or other format that is expected
    "size-limit",  # something is larger than is read
    "archive-member",  # an archive holds a member that is not unpacked
    # records
    "key-missing",  # a key or column is not there
    "key-unknown",  # a key or column that the format does not have
    "key-twice",  # a key stands twice in an object
    "type",  # a value is of another type
    "range",  # a number is not finite, or outside its range
    "choice",  # a value is none of those that are allowed
    "empty",  # nothing is there where at least one thing is needed
    "length",  # two things that belong together differ in number
    "constant",  # values that have to agree differ
    "text",  # a text cannot be taken as it is: blanks in a token, an empty token
    "id-missing",  # a record without a partner: no prediction, no annotation, no gold
    "id-unknown",  # an id that the data does not have
    "id-twice",  # an id stands twice
    # documents, spans, labels
    "document-missing",  # a document that a record names is not there
    "document-unknown",  # a docid that the instance does not have
    "document-twice",  # a document stands twice
    "span-order",  # a span's end lies before its start, or a start below zero
    "span-bounds",  # a span reaches past the end of its document
    "span-overlap",  # spans of one document overlap
    "span-text",  # the text of a span is not the document's
    "span-missing",  # no rationale, span or group where one is needed
    "label-missing",  # no label where one is needed
    "label-unknown",  # a label that is not among the names
    "probabilities",  # numbers that are no probability distribution
    "score-missing",  # token scores, probabilities or quotes that a score needs are not there
    # options and settings
    "option-value",  # a value that an option or argument does not take
    "option-conflict",  # options or arguments that do not go together
    "option-missing",  # an option or argument that is needed
    # models and machines
    "extra-missing",  # a package that this needs is not installed
    "unsupported",  # what a model, method, system, config or metric cannot do
    "model",  # a model, tokenizer or vector file that cannot be used
    "model-output",  # a model puts out what cannot be used
    "device",  # a device, or memory, that is not there
    # work
    "busy",  # another run is at work in the same folder
    "resume",  # what a stopped run left does not fit this one
    "check",  # a built folder does not pass its check
    "network",  # a server cannot be reached, or answers what cannot be used
    "hub",  # the Hub, or its token, refuses
    "server",  # a model's server refuses, or answers what cannot be used
    "code",  # a metric's module, a card or a template breaks a rule of this project
]
