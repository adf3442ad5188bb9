"""Corpora of one's own: a folder in ERASER's format with a ``corpus.yaml`` is a dataset of its own name.

    name: reviews                   required: letters, digits, "_" and "-"
    labels: [bad, good]             required: in the order of the ClassLabel
    language: en                    or a list: the texts' languages, as the Hub names them
    license: cc-by-4.0              as the Hub names it
    citation: |                     BibTeX, for the card
      @misc{reviews, title = {Reviews}}
    kd: 0.1                         the share of tokens in a hard rationale; else the rationales' mean share
    comprehensive: true             all of the text that supports the label is gold; or a list of such splits: [test]

Any other key is an error. A built dataset stores the text of the file in ``release.json``.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import msgspec

from eraser_hub.conversion.readers import convert_type, has_half_character, load_yaml, read_utf8_file
from eraser_hub.metrics.errors import find_similar
from eraser_hub.records.errors import DataError, show
from eraser_hub.records.readers import wrap_read_errors

from .configs import CONFIGS, CORPUS_YAML, YAML_KEYS, EraserConfig

NAME_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,95}")
_TAKEN = (*CONFIGS, "documents", "annotators", "records", "eraser", "bilingual_perturbation", "human_rationales")


def read_corpus_yaml(folder: Path) -> EraserConfig:
    """Read the corpus.yaml of a corpus folder.

    Raises:
        DataError: the file cannot be read or is invalid, with the line.
    """
    path = folder / CORPUS_YAML
    with wrap_read_errors(path):
        return parse_corpus_yaml(read_utf8_file(str(path)).decode("utf-8"), path)


def parse_corpus_yaml(text: str, path: Path) -> EraserConfig:
    """Return the facts in the text of a corpus.yaml; ``path`` is for errors."""
    values = load_yaml(text, path)
    if not isinstance(values, dict):
        raise DataError("expected lines of `key: value`, found none", file=path)
    if has_half_character(values):
        raise DataError("expected characters, found half of a surrogate pair", file=path)
    starts = [re.split(r"\s*:", line, maxsplit=1)[0].strip("'\"") for line in text.splitlines()]

    def fail(key: Any, message: str, field: str | None = None) -> DataError:
        line = starts.index(str(key)) + 1 if str(key) in starts else None
        return DataError(message, file=path, line=line, field=field)

    for key in values:
        if key not in YAML_KEYS:
            hint = f": did you mean {suggestion!r}?" if (suggestion := find_similar(key, YAML_KEYS)) else ""
            raise fail(key, f"expected the keys {', '.join(YAML_KEYS)} alone, found {show(key)}{hint}")
        if starts.count(key) > 1:
            raise fail(key, f"expected each key once, found {show(key)} again")
    for key in ("name", "labels"):
        if key not in values:
            raise DataError(f"expected the key {key}, found {show(list(values))}", file=path, field=key)
    language = values.get("language", [])
    languages = [language] if isinstance(language, str) else language
    try:
        config: EraserConfig = convert_type({**values, "language": languages}, EraserConfig)
    except DataError as error:
        key = re.split(r"[.\[]", error.field or "")[0]
        hint = "" if key == "kd" else " (quote words like 'no' and numbers)"
        message = f"{error.message.partition(', found')[0]}, found {show(values[key])}{hint}"
        raise fail(key, message, key) from None
    rules: tuple[tuple[str, object, str], ...] = (
        ("name", NAME_PATTERN.fullmatch(config.name), "a name of letters, digits, '_' and '-'"),
        ("name", config.name not in _TAKEN, f"another name than {', '.join(_TAKEN)}"),
        ("labels", len(set(config.label_names)) == len(config.label_names), "each once"),
        (
            "language",
            all(re.fullmatch(r"[a-z]{2,3}(-[A-Za-z0-9]+)*", language) for language in languages),
            "the Hub's name of a language, as en, or a list",
        ),
        ("license", re.fullmatch(r"[a-z0-9][a-z0-9.-]*", config.license), "the Hub's name of a licence, as cc-by-4.0"),
    )
    for key, fits, expected in rules:
        if not fits:
            raise fail(key, f"expected {expected}, found {show(values[key])}", key)
    note = {"license_note": "As its corpus.yaml says."} if "license" in values else {}
    return msgspec.structs.replace(
        config, title=config.name, citation=config.citation.strip(), corpus_yaml=text, **note
    )


def list_own_folders(source: Path) -> list[Path]:
    """Return the folders with a corpus.yaml: ``source`` itself, or those in it."""
    if os.path.lexists(source / CORPUS_YAML):
        return [source]
    return sorted(path.parent for path in source.glob(f"*/{CORPUS_YAML}"))


def find_own_corpora(source: Path) -> dict[str, Path]:
    """Return name -> folder of the corpora with a corpus.yaml; see `list_own_folders`.

    A folder with an invalid corpus.yaml is listed under the folder's name: `read_corpus_yaml` reports the error later.

    Raises:
        DataError: two corpora have the same name.
    """
    folders: dict[str, Path] = {}
    for folder in list_own_folders(source):
        try:
            name = read_corpus_yaml(folder).name
        except DataError:
            name = folder.resolve().name
        if name in folders:
            message = f"expected each name once, found {name!r} in {folders[name]} too"
            raise DataError(message, file=folder / CORPUS_YAML)
        folders[name] = folder
    return folders
