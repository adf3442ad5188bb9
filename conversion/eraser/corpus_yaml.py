"""Custom corpora: a folder in ERASER's format with a ``corpus.yaml`` is a config like the nine of `configs`.

    name: reviews                   required: the config; letters, digits, "_" and "-"
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
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec
import yaml

from eraser_hub.conversion.dataset import LICENSES
from eraser_hub.conversion.readers import check_yaml, read_utf8_file
from eraser_hub.conversion.typed import convert_type, refuse_half_characters
from eraser_hub.metrics.errors import find_similar
from eraser_hub.records.errors import DataError, show
from eraser_hub.records.readers import wrap_read_errors

from .configs import CONFIGS, CORPUS_YAML, EraserConfig

# folders of a built dataset that are no configs; no config may have such a name
RESERVED_FOLDERS = ("documents", "annotators", LICENSES)
MOST_CHARACTERS = 1 << 17  # of a YAML file: its reader takes seconds for so many
MOST_DIGITS, LARGEST = 100, 2**63 - 1  # of an integer
NAME_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,95}")
_LANGUAGE = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]+)*")
_LICENSE = re.compile(r"[a-z0-9][a-z0-9.-]*")
_Words = Annotated[str, msgspec.Meta(pattern=r"\S")]
_RESERVED_NAMES = (*CONFIGS, *RESERVED_FOLDERS)


def read_corpus_yaml(folder: Path) -> EraserConfig:
    """Read the corpus.yaml of a corpus folder.

    Raises:
        DataError: the file cannot be read or is invalid, with the line.
    """
    path = folder / CORPUS_YAML
    with wrap_read_errors(path):
        return parse_corpus_yaml(read_utf8_file(str(path)).decode("utf-8"), path)


class CorpusYaml(msgspec.Struct):
    """Keys and types of a corpus.yaml."""

    name: _Words
    labels: Annotated[list[Annotated[str, msgspec.Meta(min_length=1)]], msgspec.Meta(min_length=1)]
    language: _Words | Annotated[list[_Words], msgspec.Meta(min_length=1)] | msgspec.UnsetType = msgspec.UNSET
    license: _Words = "unknown"
    citation: _Words = ""
    kd: Annotated[float, msgspec.Meta(gt=0, le=1)] | msgspec.UnsetType = msgspec.UNSET
    comprehensive: bool | list[_Words] | msgspec.UnsetType = msgspec.UNSET


def parse_corpus_yaml(text: str, path: Path) -> EraserConfig:
    """Parse the text of a corpus.yaml into a config; ``path`` is for errors."""
    values, lines = load_yaml_values(text, path)
    corpus = _validate_values(values, lines, path)
    splits = corpus.comprehensive
    languages = [corpus.language] if isinstance(corpus.language, str) else corpus.language or ()
    rules: tuple[tuple[str, object, str], ...] = (
        ("name", NAME_PATTERN.fullmatch(corpus.name), "a name of letters, digits, '_' and '-'"),
        ("name", corpus.name not in _RESERVED_NAMES, f"another name than {', '.join(_RESERVED_NAMES)}"),
        ("labels", len(set(corpus.labels)) == len(corpus.labels), "each once"),
        (
            "language",
            all(map(_LANGUAGE.fullmatch, languages)),
            "the Hub's name of a language, as en, or a list",
        ),
        ("license", _LICENSE.fullmatch(corpus.license), "the Hub's name of a licence, as cc-by-4.0"),
    )
    for key, fits, expected in rules:
        if not fits:
            message = f"expected {expected}, found {show(values[key])}"
            raise DataError(message, file=path, line=lines[key], field=key)
    return EraserConfig(
        name=corpus.name,
        label_names=tuple(corpus.labels),
        documents="docs.jsonl",
        license=corpus.license,
        license_note="As its corpus.yaml says." if "license" in values else "Its corpus.yaml names no licence.",
        task="text-classification",
        title=corpus.name,
        language=tuple(languages),
        citation=corpus.citation.strip(),
        kd=corpus.kd or None,
        comprehensive=None if splits is msgspec.UNSET else splits if isinstance(splits, bool) else tuple(splits),
        corpus_yaml=text,
    )


def _validate_values(values: dict[str, Any], lines: Mapping[str, int], path: Path) -> CorpusYaml:
    """Return the values of a corpus.yaml as the declared types; raise a DataError if a key or a type is wrong."""
    known = CorpusYaml.__struct_fields__
    for key in values:
        if key not in known:
            hint = f": did you mean {suggestion!r}?" if (suggestion := find_similar(key, known)) else ""
            message = f"expected the keys {', '.join(known)} alone, found {show(key)}{hint}"
            raise DataError(message, file=path, line=lines[key])
    for key in ("name", "labels"):
        if key not in values:
            message = f"expected the key {key}, found {show(list(values))}"
            raise DataError(message, file=path, field=key)
    try:
        refuse_half_characters(values)
        corpus: CorpusYaml = convert_type(values, CorpusYaml)
        return corpus
    except DataError as error:
        key = re.split(r"[.\[]", error.field or "")[0]
        hint = "" if key == "kd" else " (quote words like 'no' and numbers)"
        message = f"{error.message.partition(', found')[0]}, found {show(values[key])}{hint}"
        raise DataError(message, file=path, line=lines[key], field=key) from None


class _Loader(yaml.SafeLoader):
    """Loader of plain YAML values."""

    def construct_small_integer(self, node: yaml.ScalarNode) -> int:
        """Return an integer; one beyond 64 bits is refused, as its digits may be too many to print."""
        value = self.construct_yaml_int(node) if len(node.value) < MOST_DIGITS else LARGEST + 1
        if not -LARGEST <= value <= LARGEST:
            problem = f"expected an integer of 64 bits, found {show(str(node.value))} (quote digits that are text)"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)
        return int(value)


_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.construct_small_integer)


def load_yaml_values(text: str, path: Path) -> tuple[dict[str, Any], dict[str, int]]:
    """Return key -> value and key -> line of a YAML mapping without repeated keys."""
    values: dict[str, Any] = {}
    lines: dict[str, int] = {}
    check_yaml(text, path, MOST_CHARACTERS)
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        if not isinstance(node, yaml.MappingNode):
            message = "expected lines of `key: value`, found none"
            raise DataError(message, file=path)
        for key_node, value_node in node.value:
            key, line = loader.construct_object(key_node, deep=True), key_node.start_mark.line + 1
            if (repeated := key in values) or not isinstance(key, str):
                expected = f"each key once, found {show(key)} again" if repeated else f"a word, found {show(key)}"
                raise DataError(f"expected {expected}", file=path, line=line)
            values[key], lines[key] = loader.construct_object(value_node, deep=True), line
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else None
        raise DataError(f"is no YAML: {error.problem or error.context}", file=path, line=line) from None
    except (yaml.YAMLError, ValueError, RecursionError, TypeError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"is no YAML: {' '.join(str(error).split())}", file=path) from None
    return values, lines


def find_custom_corpora(source: Path) -> dict[str, Path]:
    """Return config -> folder of the custom corpora in ``source``, or of ``source`` itself if it is one.

    A folder with an invalid corpus.yaml is listed under the folder's name: `read_corpus_yaml` reports the error later.

    Raises:
        DataError: two folders have the same name.
    """
    places = [source] if os.path.lexists(source / CORPUS_YAML) else sorted(source.glob(f"*/{CORPUS_YAML}"))
    folders: dict[str, Path] = {}
    for place in places:
        folder = place if place == source else place.parent
        try:
            name = read_corpus_yaml(folder).name
        except DataError:
            name = folder.resolve().name
        if name in folders:
            message = f"expected each name once, found {name!r} in {folders[name]} too"
            raise DataError(message, file=folder / CORPUS_YAML)
        folders[name] = folder
    return folders
