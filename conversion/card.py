"""Dataset cards: written from the facts of the files, and compared with the files.

``load_dataset`` and the Hub's viewer trust the card. Its features override those of a file, a wrong count makes loading
fail, and its version is the key of the local cache.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from eraser_hub.conversion.built import BuiltDataset, is_same_type, open_built, wrap_parquet_errors
from eraser_hub.records.errors import DataError, show
from eraser_hub.version import __version__

if TYPE_CHECKING:
    from datasets import DatasetInfo

CARDS = Path(__file__).resolve().parent.parent / "datasets_scripts" / "cards"
_PICTURE = re.compile(r"<!-- picture: (.*?) -->", re.DOTALL)
SIZE_CATEGORIES = (
    (1_000, "n<1K"),
    (10_000, "1K<n<10K"),
    (100_000, "10K<n<100K"),
    (1_000_000, "100K<n<1M"),
    (10_000_000, "1M<n<10M"),
)


def compute_content_version(parts: Iterable[str]) -> str:
    """Return ``1.0.N``, where N is derived from the contents.

    The local cache of `datasets` depends on the version, not on the files. Equal contents have equal versions, and
    different contents have different ones.
    """
    digest = hashlib.sha256("\n".join(parts).encode()).hexdigest()
    return f"{__version__.rpartition('.')[0]}.{int(digest[:7], 16)}"


def get_size_category(rows: int) -> str:
    """Return the Hub's name of a size, such as ``1K<n<10K``."""
    return next((name for most, name in SIZE_CATEGORIES if rows < most), "10M<n<100M")


def add_configs(
    metadata: Mapping[str, Any], infos: Sequence[Mapping[str, Any]], default: str, pattern: str
) -> dict[str, Any]:
    """Return a card's metadata with the keys for ``load_dataset``: ``size_categories``, ``configs``, ``dataset_info``.

    Args:
        metadata: the other keys.
        infos: the entries of ``dataset_info``, each with config_name, version and splits.
        default: the config that a load without a name takes; if it is absent, the first one is the default.
        pattern: the glob of data files, with ``{config}`` and ``{split}``.
    """
    names = [info["config_name"] for info in infos]
    default = default if default in names else names[0]
    configs = [
        {
            "config_name": info["config_name"],
            # here it reaches the builder, and with it the local cache's key; in dataset_info alone it does not
            "version": info["version"],
            **({"default": True} if info["config_name"] == default else {}),
            "data_files": [
                {"split": split["name"], "path": pattern.format(config=info["config_name"], split=split["name"])}
                for split in info["splits"]
            ],
        }
        for info in infos
    ]
    rows = sum(split["num_examples"] for info in infos for split in info["splits"])
    return {
        **metadata,
        "size_categories": [get_size_category(rows)],
        "configs": configs,
        "dataset_info": [dict(info) for info in infos],
    }


def to_yaml_features(schema: pa.Schema, labels: Mapping[str, Sequence[str]]) -> list[dict[str, Any]]:
    """Return the features for a card's ``dataset_info``, in the form that datasets 3.6 and newer read.

    Args:
        schema: the columns.
        labels: column -> label names, of the ClassLabel columns.
    """
    features = []
    for column in schema:
        if column.name in labels:
            names = {str(number): name for number, name in enumerate(labels[column.name])}
            features.append({"name": column.name, "dtype": {"class_label": {"names": names}}})
        else:
            features.append({"name": column.name, **_to_yaml_type(column.type)})
    return features


def _to_yaml_type(kind: pa.DataType) -> dict[str, Any]:
    if pa.types.is_list(kind):
        inner = kind.value_type
        if pa.types.is_struct(inner):
            return {"list": [{"name": field.name, **_to_yaml_type(field.type)} for field in inner]}
        if pa.types.is_list(inner):
            return {"list": _to_yaml_type(inner)}
        return {"list": _to_yaml_type(inner)["dtype"]}
    return {"dtype": "float32" if kind == pa.float32() else str(kind)}


class ConfigWords(NamedTuple):
    """Description of a configuration for its card.

    Attributes:
        description: one sentence, which names the language.
        label_names: column -> names, for ClassLabel columns.
        homepage: where the files come from.
        license: as the Hub names it.
        citation: BibTeX.
    """

    description: str
    label_names: Mapping[str, Sequence[str]]
    homepage: str = ""
    license: str = "unknown"
    citation: str = ""

    def make_dataset_info(self, schema: pa.Schema, **more: Any) -> DatasetInfo:
        """Return the `DatasetInfo` of a `datasets` builder (imports datasets)."""
        from datasets import DatasetInfo, Features

        features = Features._from_yaml_list(to_yaml_features(schema, self.label_names))
        source = {"homepage": self.homepage, "license": self.license, "citation": self.citation}
        return DatasetInfo(description=self.description, features=features, **source, **more)

    def make_entry(
        self, name: str, schema: pa.Schema, version: str, splits: Mapping[str, tuple[int, int]], download_size: int
    ) -> dict[str, Any]:
        """Return the config's entry of a card's ``dataset_info``.

        Args:
            name: the config.
            schema: its columns.
            version: see `compute_content_version`.
            splits: split -> (bytes of its rows in Arrow, number of rows).
            download_size: bytes of its files.
        """
        return {
            "config_name": name,
            "description": self.description,
            "citation": self.citation,
            **({"homepage": self.homepage} if self.homepage else {}),
            "license": self.license,
            "version": version,
            "features": to_yaml_features(schema, self.label_names),
            "splits": [{"name": key, "num_bytes": size, "num_examples": rows} for key, (size, rows) in splits.items()],
            "download_size": download_size,
            "dataset_size": sum(size for size, _ in splits.values()),
        }


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


def make_card_text(metadata: Mapping[str, Any], prose: str) -> str:
    """Return the text of a dataset card: metadata as YAML, then prose."""
    head = yaml.dump(
        dict(metadata),
        Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper),
        sort_keys=False,
        allow_unicode=True,
        width=10_000,
    )
    return f"---\n{head}---\n\n{prose.strip()}\n"


def insert_picture(text: str, name: str, folder: Path) -> str:
    """Return a card's text with ``<!-- picture: WORDS -->`` replaced by the dataset's picture, copied into its folder.

    Args:
        text: the card; WORDS are the alternative text of the picture.
        name: the dataset; the picture is ``NAME.png`` beside its card.
        folder: the dataset folder, which receives the picture.

    Raises:
        DataError: the picture is missing.
    """
    mark = _PICTURE.search(text)
    if mark is None:
        return text
    picture = CARDS / f"{name}.png"
    if not picture.is_file():
        raise DataError("no such picture, which the card shows", file=picture)
    shutil.copyfile(picture, folder / picture.name)
    return text.replace(mark[0], f"![{mark[1]}]({picture.name})")


def get_first_paragraph(prose: str) -> str:
    """Return the first paragraph of prose in a card (no heading, table, list, code or picture), or an empty string."""
    for paragraph in re.split(r"\n\s*\n", prose):
        text = " ".join(paragraph.split())
        if text and not text.startswith(("#", "|", "```", "<", "!", "-", "*")):
            return text
    return ""


def find_card_issues(built: BuiltDataset, config: str, schema: pa.Schema) -> Iterator[DataError]:
    """Yield the differences between a config's files and the card: ``schema``, splits and counts.

    Raises:
        DataError: a file that the card names is missing, or cannot be read.
    """
    files = built.splits(config)
    declared = {split["name"]: split.get("num_examples") for split in built.info(config).get("splits") or ()}
    for split in sorted(declared.keys() ^ files.keys()):
        where = "dataset_info" if split in declared else "configs"
        message = f"expected it in dataset_info and in configs, found it in {where} alone"
        yield DataError(message, field=split)
    for split, paths in files.items():
        rows = 0
        for path in paths:
            with wrap_parquet_errors(path), pq.ParquetFile(path) as file:
                actual, count = file.schema_arrow, file.metadata.num_rows
            rows += count
            differences: list[str] = []
            for column in schema:
                if column.name not in actual.names:
                    differences.append(f"expected the column {column.name}, found none")
                elif (times := actual.names.count(column.name)) > 1:
                    differences.append(f"expected the column {column.name} once, found it {times} times")
                elif not is_same_type(column.type, kind := actual.field(column.name).type):
                    differences.append(f"column {column.name}: expected {column.type}, found {kind}")
            unknown = (name for name in actual.names if name not in schema.names)
            differences += [f"the column {name} is not in the card" for name in unknown]
            yield from (DataError(difference, file=path) for difference in differences)
            if b"huggingface" in (actual.metadata or {}):
                message = "expected no `huggingface` key in the metadata (datasets 3.6 cannot read it)"
                yield DataError(message, file=path)
        if split in declared and declared[split] != rows:
            yield DataError(f"expected {declared[split]} rows, found {rows}", field=split)


def verify_folder(folder: Path, schema: pa.Schema, label_names: Mapping[str, Sequence[str]] | None = None) -> None:
    """Check that the card and the Parquet files of a dataset folder agree.

    Args:
        folder: holds README.md and the files it names.
        schema: the expected schema of each file.
        label_names: config -> the expected names of the gold label in the card.

    Raises:
        DataError: a file is missing or is no Parquet; schema, number of rows or label names differ; a file has a
            ``huggingface`` key; a config has no version; there is not exactly one default config.
    """
    built = open_built(folder)
    card = folder / "README.md"
    defaults = [entry["config_name"] for entry in built.card["configs"] if entry.get("default")]
    if len(defaults) != 1:
        raise DataError(f"expected one default config, found {defaults}", file=card, field="configs")
    for config in built.configs:
        if not built.info(config).get("version"):
            raise DataError("expected dataset_info with a version", file=card, field=config)
        for fault in find_card_issues(built, config, schema):
            raise DataError(fault.message, file=fault.file or card, field=fault.field and f"{config}/{fault.field}")
        if label_names is not None and config not in label_names:
            message = f"expected one of the configs {', '.join(label_names)}, found {show(config)}"
            raise DataError(message, file=card)
        if label_names is not None and built.label_names(config) != tuple(label_names[config]):
            message = f"expected the labels {list(label_names[config])}, found {list(built.label_names(config) or ())}"
            raise DataError(message, file=card, field=config)
