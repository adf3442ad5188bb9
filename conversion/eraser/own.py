"""Corpora of one's own: a folder in ERASER's format with a ``corpus.yaml`` is a config like the nine of `configs`.

    name: reviews                   required: the config; letters, digits, "_" and "-"
    labels: [bad, good]             required: in the order of the ClassLabel
    language: en                    or a list: the texts' languages, as the Hub names them
    license: cc-by-4.0              as the Hub names it
    citation: |                     BibTeX, for the card
      @misc{reviews, title = {Reviews}}
    kd: 0.1                         the share of tokens in a hard rationale; else the rationales' mean share

Any other key is an error. A built dataset keeps the file's text in ``release.json``, for whoever reads it.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import yaml

from eraser_hub.conversion.dataset import LICENSES
from eraser_hub.metrics.unknown_fields import nearly
from eraser_hub.records.errors import DataError, shown
from eraser_hub.records.json_lines import brackets_nest, has_half_character
from eraser_hub.records.lines import reading, utf8_file
from eraser_hub.records.rules import Rule

from .configs import CONFIGS, CORPUS_YAML, EraserConfig

REQUIRED, OPTIONAL = ("name", "labels"), ("language", "license", "citation", "kd")
# folders of a built dataset that are no configs
BESIDE_CONFIGS = ("documents", "annotators", LICENSES)
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,95}")
_LANGUAGE = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]+)*")
_LICENSE = re.compile(r"[a-z0-9][a-z0-9.-]*")


def own_config_of(folder: Path) -> EraserConfig:
    """What the corpus.yaml of a corpus folder says.

    Raises:
        DataError: it cannot be read, or says something else than the above, with the line.
    """
    path = folder / CORPUS_YAML
    with reading(path):
        return own_config(utf8_file(str(path)).decode("utf-8"), path)


def own_config(text: str, path: Path) -> EraserConfig:
    """The config that the text of a corpus.yaml describes; ``path`` is where it stands, for errors."""
    fields = _Fields(_values(text, path), path)
    for key, value in fields.values.items():
        if key not in (*REQUIRED, *OPTIONAL):
            suggestion = nearly(key, (*REQUIRED, *OPTIONAL))
            hint = f": did you mean {suggestion!r}?" if suggestion else ""
            message = f"expected the keys {', '.join((*REQUIRED, *OPTIONAL))} alone, found {shown(key)}{hint}"
            raise DataError(message, rule="key-unknown", file=path, line=value.line)
    for key in REQUIRED:
        if key not in fields.values:
            message = f"expected the key {key}, found {shown(list(fields.values))}"
            raise DataError(message, rule="key-missing", file=path, field=key)
    name = fields.name()
    return EraserConfig(
        name=name,
        label_names=fields.strings("labels"),
        documents="docs.jsonl",
        license=fields.matching("license", _LICENSE, "the Hub's name of a licence, as cc-by-4.0", "choice")
        or "unknown",
        license_note="As its corpus.yaml says." if "license" in fields.values else "Its corpus.yaml names no licence.",
        task="text-classification",
        title=name,
        language=fields.languages(),
        citation=fields.string("citation").strip(),
        kd=fields.share("kd"),
        corpus_yaml=text,
    )


class _Value(NamedTuple):
    value: object
    line: int


class _Fields:
    """The values of a corpus.yaml, each checked when it is asked for."""

    def __init__(self, values: Mapping[str, _Value], path: Path) -> None:
        self.values, self.path = values, path

    def refuse(self, key: str, expected: str, rule: Rule) -> DataError:
        value, line = self.values[key]
        return DataError(f"expected {expected}, found {shown(value)}", rule=rule, file=self.path, line=line, field=key)

    def string(self, key: str) -> str:
        if key not in self.values:
            return ""
        value = self.values[key].value
        if not isinstance(value, str) or not value.strip() or has_half_character(value):
            raise self.refuse(key, "a string (quote words like 'no' and numbers)", "type")
        return value

    def matching(self, key: str, pattern: re.Pattern[str], expected: str, rule: Rule) -> str:
        value = self.string(key)
        if value and not pattern.fullmatch(value):
            raise self.refuse(key, expected, rule)
        return value

    def name(self) -> str:
        name = self.matching("name", NAME, "a name of letters, digits, '_' and '-'", "file-name")
        if name in CONFIGS or name in BESIDE_CONFIGS:
            raise self.refuse("name", f"another name than {', '.join((*CONFIGS, *BESIDE_CONFIGS))}", "file-name")
        return name

    def strings(self, key: str) -> tuple[str, ...]:
        value = self.values[key].value
        words = value if isinstance(value, list) else []
        if not words or not all(isinstance(word, str) and word and not has_half_character(word) for word in words):
            raise self.refuse(key, "a list of strings (quote words like 'true' and numbers)", "type")
        if len(set(words)) < len(words):
            raise self.refuse(key, "each once", "id-twice")
        return tuple(words)

    def languages(self) -> tuple[str, ...]:
        if "language" not in self.values:
            return ()
        one = isinstance(self.values["language"].value, str)
        codes = (self.string("language"),) if one else self.strings("language")
        if not all(map(_LANGUAGE.fullmatch, codes)):
            raise self.refuse("language", "the Hub's name of a language, as en, or a list of them", "choice")
        return codes

    def share(self, key: str) -> float | None:
        if key not in self.values:
            return None
        value = self.values[key].value
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not math.isfinite(value) or not 0 < value <= 1:  # type: ignore[operator, arg-type]
            raise self.refuse(key, "a share above 0 and up to 1", "range")
        return float(value)  # type: ignore[arg-type]


class _Loader(yaml.SafeLoader):
    """YAML of plain values; an alias, by which a few lines stand for gigabytes, is refused."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.MarkedYAMLError(problem="expected no aliases (*name)", problem_mark=mark)
        return super().compose_node(parent, index)


def _values(text: str, path: Path) -> dict[str, _Value]:
    """Key -> its value and line; each key stands once."""
    values: dict[str, _Value] = {}
    if brackets_nest(text):
        raise DataError("is no YAML of ours: its brackets nest too deeply", rule="syntax", file=path)
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        if not isinstance(node, yaml.MappingNode):
            message = "expected lines of `key: value`, name and labels among them, found none"
            raise DataError(message, rule="type", file=path)
        for key_node, value_node in node.value:
            key, line = loader.construct_object(key_node, deep=True), key_node.start_mark.line + 1
            if (twice := key in values) or not isinstance(key, str):
                expected = f"each key once, found {shown(key)} again" if twice else f"a word, found {shown(key)}"
                raise DataError(f"expected {expected}", rule="key-twice" if twice else "type", file=path, line=line)
            values[key] = _Value(loader.construct_object(value_node, deep=True), line)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else None
        raise DataError(f"is no YAML: {error.problem or error.context}", rule="syntax", file=path, line=line) from None
    except (yaml.YAMLError, ValueError, RecursionError, TypeError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"is no YAML: {' '.join(str(error).split())}", rule="syntax", file=path) from None
    return values


def own_folders(source: Path) -> dict[str, Path]:
    """Config -> folder, of the corpora of one's own in ``source``, or of ``source`` itself where it is one.

    A folder whose corpus.yaml is not in order stands under its own name: `own_config_of` says what is wrong with it.

    Raises:
        DataError: two folders have one name.
    """
    places = [source] if os.path.lexists(source / CORPUS_YAML) else sorted(source.glob(f"*/{CORPUS_YAML}"))
    folders: dict[str, Path] = {}
    for place in places:
        folder = place if place == source else place.parent
        try:
            name = own_config_of(folder).name
        except DataError:
            name = folder.resolve().name
        if name in folders:
            message = f"expected each name once, found {name!r} in {folders[name]} too"
            raise DataError(message, rule="file-twice", file=folder / CORPUS_YAML)
        folders[name] = folder
    return folders
