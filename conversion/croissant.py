"""Croissant metadata (mlcommons.org/croissant, version 1.1) of a built dataset folder: ``croissant.json``.

The file lists every data file with its size and SHA-256, and every config with its fields. Search engines read it,
``mlcroissant`` loads the records by it, and `publish` sends only files whose digest is the one that `build` recorded.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from eraser_hub.records.atomic import atomic_write
from eraser_hub.records.built import BuiltDataset, open_built
from eraser_hub.records.digests import compute_file_digest
from eraser_hub.records.errors import DataError, raise_all
from eraser_hub.records.lines import wrap_read_errors
from eraser_hub.version import __version__

from .card import compute_content_version, get_first_paragraph
from .dataset import CROISSANT

CONTEXT = Path(__file__).with_name("croissant_context.json")  # the ``@context`` of the format's version
PARQUET = "application/x-parquet"


def write_croissant(folder: Path, name: str, digests: Mapping[str, str] | None = None) -> Path:
    """Write ``croissant.json`` into a folder that holds a card and Parquet.

    Args:
        folder: the dataset's folder; its card names the configs and their files.
        name: the dataset's name.
        digests: path in the folder -> SHA-256, of files that have just been written.

    Returns:
        the path of the file.

    Raises:
        DataError: there is no card, the card has no configs, or a config has no files.
    """
    built = open_built(folder)
    card = built.card
    url = card.get("homepage") or f"https://huggingface.co/datasets/{name}"
    declared = card.get("license")
    licenses = [name for name in (declared if isinstance(declared, list) else [declared]) if isinstance(name, str)]
    known = [name for name in licenses if name not in ("other", "unknown")]
    citation, year = get_citation(card, built.prose)
    facts = {
        # licences as addresses: the card names them by the Hub's short names
        "license": [name if "://" in name else f"https://choosealicense.com/licenses/{name}/" for name in known],
        "url": url,
        "citeAs": citation,
        "datePublished": year,
        "keywords": [str(tag) for tag in card.get("tags") or []],
        "inLanguage": card.get("language"),
    }
    metadata = {
        "@context": json.loads(CONTEXT.read_text(encoding="utf-8")),
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.1",
        "name": name,
        "description": get_first_paragraph(built.prose) or str(card.get("pretty_name") or name),
        "version": get_dataset_version(card),
        **{key: value for key, value in facts.items() if value},
        "isLiveDataset": False,
        "distribution": list(_make_distribution(built, url, digests or {})),
        "recordSet": [part for config in built.configs for part in _make_record_sets(built, config, name)],
    }
    path = Path(folder) / CROISSANT
    atomic_write(path, (json.dumps(metadata, ensure_ascii=False, indent=1) + "\n").encode())
    return path


def get_citation(card: Mapping[str, Any], prose: str) -> tuple[str, str]:
    """Return a card's citation as BibTeX, and the year of its first entry; empty where it has none.

    The YAML's ``citation`` counts before the prose's first block of BibTeX.
    """
    block = re.search(r"^```bibtex\n(.*?)^```", prose, flags=re.MULTILINE | re.DOTALL)
    citation = str(card.get("citation") or (block[1] if block else "")).strip()
    year = re.search(r"\byear\s*=\s*[{\"]?(\d{4})\b", citation)
    return citation, year[1] if year else ""


def read_digests(folder: Path) -> dict[str, str]:
    """Return path -> SHA-256 of the Parquet and JSON files that the folder's build wrote.

    Raises:
        DataError: there is no ``croissant.json``, or none that a build wrote.
    """
    path = folder / CROISSANT
    if not os.path.lexists(path):
        raise DataError("no such file: build the dataset again", rule="file-missing", file=path)
    try:
        with wrap_read_errors(path):
            written = json.loads(path.read_bytes())
        return {
            row["contentUrl"]: row["sha256"]
            for row in written["distribution"]
            if row["@type"] == "cr:FileObject" and row["@id"] != "repo"
        }
    except (ValueError, KeyError, TypeError, RecursionError):
        message = "expected Croissant metadata as build writes it: build the dataset again"
        raise DataError(message, rule="syntax", file=path) from None


def is_recorded(folder: Path, path: str) -> bool:
    """Return True if the folder's build wrote a data file; where it kept no digests, it may have written any."""
    try:
        return path in read_digests(folder)
    except DataError:
        return True


def verify_digests(folder: Path) -> None:
    """Raise a DataError if a data file differs from the digest in ``croissant.json``."""
    digests = read_digests(folder)
    present = set(_list_data_files(folder))
    errors = [
        DataError("not written by build", rule="check", file=folder / name) for name in sorted(present - digests.keys())
    ]
    errors += [
        DataError("no such file: build again", rule="file-missing", file=folder / name)
        for name in sorted(digests.keys() - present)
    ]
    errors += [
        DataError("its content is not what build wrote: build again", rule="file-changed", file=folder / name)
        for name in sorted(present & digests.keys())
        if not (folder / name).is_file()
        or compute_file_digest(folder / name) != digests[name]  # a pipe would never end
    ]
    raise_all(errors)


def _list_data_files(folder: Path) -> list[str]:
    """Return the paths of the Parquet and JSON files that build writes, relative to the folder."""
    files = (path.relative_to(folder) for path in folder.rglob("*") if path.suffix in (".parquet", ".json"))
    return sorted(path.as_posix() for path in files if path.name != CROISSANT and not path.name.startswith("."))


# -- the parts --------------------------------------------------------------------------------------------------------


def _make_node(kind: str, identifier: str, **rest: Any) -> dict[str, Any]:
    """Return a node of the format; its id is also its name."""
    return {"@type": f"cr:{kind}", "@id": identifier, "name": identifier, **rest}


def _make_distribution(built: BuiltDataset, url: str, digests: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """Yield the repository, each file, and the file set of each config.

    Offline the folder is the repository: ``mlcroissant.Dataset(path, mapping={"repo": folder})``.
    """
    # a repository has no single digest; the files below have their own
    no_digest = "https://github.com/mlcommons/croissant/issues/80"
    about = {"description": "The repository.", "contentUrl": url, "encodingFormat": "git+https", "sha256": no_digest}
    yield _make_node("FileObject", "repo", **about)
    for path in _list_data_files(built.folder):
        yield _make_node(
            "FileObject",
            path,
            contentUrl=path,
            contentSize=f"{(built.folder / path).stat().st_size} B",
            encodingFormat="application/json" if path.endswith(".json") else PARQUET,
            sha256=digests.get(path) or compute_file_digest(built.folder / path),
        )
    for config in built.configs:
        attributes = {"containedIn": {"@id": "repo"}, "encodingFormat": PARQUET, "includes": f"{config}/*.parquet"}
        yield _make_node("FileSet", f"parquet-files-of-{config}", **attributes)


def _make_record_sets(built: BuiltDataset, config: str, name: str) -> Iterator[dict[str, Any]]:
    """Yield the record sets of a config: the names of each label column, then the rows."""
    splits, labels = built.splits(config), built.class_labels(config)
    for column, names in labels.items():
        identifier = f"{config}_{column}_labels"
        index, label = f"{identifier}/index", f"{identifier}/name"
        yield _make_node(
            "RecordSet",
            identifier,
            description=f"The names of {column} in {config}.",
            dataType="sc:Enumeration",
            key={"@id": index},
            field=[_make_node("Field", index, dataType="sc:Integer"), _make_node("Field", label, dataType="sc:Text")],
            data=[{index: number, label: words} for number, words in enumerate(names)],
        )
    schema = pq.read_schema(next(iter(splits.values()))[0])
    fields = [_make_field(config, [column.name], column.type, labels) for column in schema]
    yield _make_node("RecordSet", config, description=f"{name}, config {config}: {', '.join(splits)}.", field=fields)


def _make_field(config: str, path: list[str], kind: pa.DataType, labels: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Return the field of a column or of a struct's member; nested lists become arrays of as many dimensions."""
    depth = 0
    while pa.types.is_list(kind) or pa.types.is_large_list(kind):
        kind, depth = kind.value_type, depth + 1
    field = _make_node("Field", "/".join([config, *path]))
    if depth:
        field |= {"isArray": True, "arrayShape": ",".join(["-1"] * depth)}
    if len(path) == 1 and path[0] in labels:
        field["references"] = {"field": {"@id": f"{config}_{path[0]}_labels/index"}}
    if pa.types.is_struct(kind):
        field["subField"] = [_make_field(config, [*path, part.name], part.type, {}) for part in kind]
        return field
    kinds = {"Boolean": pa.types.is_boolean, "Integer": pa.types.is_integer, "Float": pa.types.is_floating}
    field["dataType"] = f"sc:{next((name for name, fits in kinds.items() if fits(kind)), 'Text')}"
    field["source"] = {"fileSet": {"@id": f"parquet-files-of-{config}"}, "extract": {"column": path[0]}}
    if len(path) > 1:  # one value per struct of the list
        field |= {"isArray": True, "arrayShape": "-1"}
        field["source"]["transform"] = [{"jsonPath": f"$[*].{'.'.join(path[1:])}"}]
    return field


def get_dataset_version(card: Mapping[str, Any]) -> str:
    """Return the version of a dataset: the one that its configs share, else one derived from theirs."""
    versions: dict[str, str] = {}
    infos = card.get("dataset_info") or []
    for entry in [*(infos if isinstance(infos, list) else [infos]), *(card.get("configs") or [])]:
        version = entry.get("version")
        version = version.get("version_str") if isinstance(version, dict) else version
        if re.fullmatch(r"\d+\.\d+\.\d+", str(version)):
            versions[str(entry.get("config_name"))] = str(version)
    if len(set(versions.values())) <= 1:
        return next(iter(versions.values()), __version__)
    return compute_content_version(f"{config} {version}" for config, version in sorted(versions.items()))
