"""Dataset cards: metadata for ``load_dataset`` and the Hub's viewer, and prose from ``datasets_scripts/cards``.

The card's features override those of a file, a wrong count makes loading fail, and its version is the key of the local
cache.

``eval.yaml`` beside it has the scores by which the Hub ranks systems. Each of its tasks has its own leaderboard, and a
model's ``.eval_results/*.yaml`` has one value for a task (huggingface.co/docs/hub/eval-results). The format has no
field for "lower is better", so the description says it.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import yaml

from eraser_hub.records.errors import DataError
from eraser_hub.version import __version__

if TYPE_CHECKING:
    from datasets import Features


CARDS = Path(__file__).resolve().parent.parent / "datasets_scripts" / "cards"
_PICTURE = re.compile(r"<!-- picture: (.*?) -->", re.DOTALL)
SIZE_CATEGORIES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))


class ConfigInfo(NamedTuple):
    """What a card and a builder say of a configuration.

    Attributes:
        description: one sentence, which names the language.
        label_names: column -> names of the classes, of ClassLabel columns.
        homepage: where the files come from.
        license: as the Hub names it.
        citation: BibTeX.
        task: the Hub's task category.
        min_rows: the release has at least so many; the card of fewer says that they are a part of it.
    """

    description: str
    label_names: Mapping[str, Sequence[str]]
    homepage: str = ""
    license: str = "unknown"
    citation: str = ""
    task: str = "text-classification"
    min_rows: int = 0


def compute_content_version(parts: Iterable[str]) -> str:
    """Return ``1.0.N``, where N is derived from the contents.

    The local cache of `datasets` depends on the version, not on the files. Equal contents have equal versions, and
    different contents have different ones.
    """
    digest = hashlib.sha256("\n".join(parts).encode()).hexdigest()
    return f"{__version__.rpartition('.')[0]}.{int(digest[:7], 16)}"


def make_features(schema: pa.Schema, label_names: Mapping[str, Sequence[str]]) -> Features:
    """Return the columns as `datasets` names them, with the names of the classes."""
    from datasets import ClassLabel, Features

    features = Features.from_arrow_schema(schema.remove_metadata())
    return Features({**features, **{column: ClassLabel(names=list(names)) for column, names in label_names.items()}})


def make_card_metadata(
    metadata: Mapping[str, Any],
    schema: pa.Schema,
    infos: Mapping[str, ConfigInfo],
    entries: Mapping[str, Mapping[str, Any]],
    default: str,
) -> dict[str, Any]:
    """Return the metadata of a dataset's README.md.

    Args:
        metadata: the keys that do not follow from the files.
        schema: the columns of all configurations.
        infos: config -> its description.
        entries: config -> its entry in ``release.json``.
        default: the config that a load without a name takes; where it is absent the first one is.
    """
    from datasets import DatasetInfo
    from datasets.info import DatasetInfosDict
    from datasets.splits import SplitDict, SplitInfo
    from huggingface_hub import DatasetCardData

    default = default if default in entries else next(iter(entries))
    listed, configs = DatasetInfosDict(), list[dict[str, Any]]()
    for name, entry in entries.items():
        splits = SplitDict(
            {
                split: SplitInfo(split, sizes["num_bytes"], sizes["num_examples"])
                for split, sizes in entry["splits"].items()
            }
        )
        listed[name] = DatasetInfo(
            config_name=name,
            features=make_features(schema, infos[name].label_names),
            splits=splits,
            download_size=entry["download_size"],
            dataset_size=sum(split.num_bytes for split in splits.values()),
        )
        files = [{"split": split, "path": f"{name}/{split}-*.parquet"} for split in splits]
        # the version reaches the builder here, and with it the local cache's key; in dataset_info it does not
        first = {"config_name": name, "version": entry["version"]}
        configs.append({**first, **({"default": True} if name == default else {}), "data_files": files})
    rows = sum(split["num_examples"] for entry in entries.values() for split in entry["splits"].values())
    size = next((name for most, name in SIZE_CATEGORIES if rows < most), "1M<n<10M")
    data = DatasetCardData(**metadata, size_categories=[size], configs=configs)
    listed.to_dataset_card_data(data)
    values: dict[str, Any] = data.to_dict()  # type: ignore[no-untyped-call]
    return values


def make_card_text(metadata: Mapping[str, Any], prose: str) -> str:
    """Return the text of a card: metadata as YAML, then prose."""
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    head = yaml.dump(dict(metadata), Dumper=dumper, sort_keys=False, allow_unicode=True, width=10_000)
    return f"---\n{head}---\n\n{prose.strip()}\n"


def fill_prose(prose: str, parts: Mapping[str, str]) -> str:
    """Return a card's prose with each mark ``<!-- NAME -->`` replaced by its part; a mark without a part goes."""
    for name, part in parts.items():
        prose = prose.replace(f"<!-- {name} -->", part.strip())
    return re.sub(r"\n<!-- (?!picture:)[\w ]+ -->\n", "", prose)


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


def get_dataset_version(card: Mapping[str, Any]) -> str:
    """Return the version of a dataset: the one that its configs share, else one derived from theirs."""
    versions = {str(entry.get("config_name")): str(entry.get("version")) for entry in card.get("configs") or []}
    known = {name: version for name, version in versions.items() if re.fullmatch(r"\d+\.\d+\.\d+", version)}
    if len(set(known.values())) <= 1:
        return next(iter(known.values()), __version__)
    return compute_content_version(f"{config} {version}" for config, version in sorted(known.items()))


EVAL_YAML, FRAMEWORK = "eval.yaml", "eraser-hub"
PLAIN_SPLIT = "test"  # the id of a task on this split does not name it


class Headline(NamedTuple):
    """A score by which systems are ranked: its name in the task's id, its key in a score file, and its direction."""

    name: str
    key: str
    lower: bool = False


# the scores in the papers' tables of systems
SPAN_HEADLINES = (
    Headline("token_f1", "token_macro_f1"),
    Headline("iou_f1", "iou_macro_f1"),
    Headline("auprc", "auprc"),
    Headline("comprehensiveness", "comprehensiveness"),
    Headline("sufficiency", "sufficiency", lower=True),
    Headline("macro_f1", "macro_f1"),
)


def task_id(config: str, split: str, headline: Headline) -> str:
    """Return a task's id: ``movies_token_f1`` for the test split, ``movies_validation_token_f1`` for another one."""
    return "_".join([config, *([split] if split != PLAIN_SPLIT else []), headline.name])


def is_ranked(split: str) -> bool:
    """Return True if systems are ranked on a split, i.e. if it is no training split."""
    return not split.startswith("train")


def make_eval_yaml(name: str, headlines: Sequence[Headline], splits: Mapping[str, Iterable[str]]) -> str:
    """Return the text of ``eval.yaml``: id, config and split of each headline on each ranked split.

    Args:
        name: the dataset, in prose.
        headlines: its scores.
        splits: config -> its splits.
    """
    tasks = [
        {"id": task_id(config, split, headline), "config": config, "split": split}
        for config, names in splits.items()
        for split in filter(is_ranked, names)
        for headline in headlines
    ]
    scores = ", ".join(each.name if each.name == each.key else f"{each.name} ({each.key})" for each in headlines)
    words = f"Tasks are CONFIG_SCORE on the split {PLAIN_SPLIT} and CONFIG_SPLIT_SCORE on others but train; "
    lower = "".join(f" {headline.name}: lower is better." for headline in headlines if headline.lower)
    content = {
        "name": name,
        "description": f"{words}scores: {scores}.{lower}",
        "evaluation_framework": FRAMEWORK,
        "tasks": tasks,
    }
    return yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=100)
