"""``eval.yaml`` of a built dataset folder: the scores by which the Hub ranks systems.

The Hub reads the file at the root of a dataset's repository. Each task has its own leaderboard, and a model's
``.eval_results/*.yaml`` has one value for a task (huggingface.co/docs/hub/eval-results). The format has no field for
"lower is better", so the description says it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import yaml

from eraser_hub.conversion import HUB_DATASETS
from eraser_hub.conversion.built import BuiltDataset, open_built
from eraser_hub.conversion.dataset import EVAL_YAML, SPAN_HEADLINES, Headline
from eraser_hub.records.errors import DataError
from eraser_hub.records.files import atomic_write

from .card import get_first_paragraph

FRAMEWORK = "eraser-hub"
# the id of a task on this split does not name the split
PLAIN_SPLIT = "test"
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")


HEADLINES = {name: dataset.headlines for name, dataset in HUB_DATASETS.items() if dataset.headlines}


def get_headlines(name: str) -> Sequence[Headline]:
    """Return the scores by which systems are ranked on a dataset; one of one's own name has those of ``eraser``."""
    return HEADLINES.get(name, () if name in HUB_DATASETS else SPAN_HEADLINES)


def task_id(config: str, split: str, headline: Headline) -> str:
    """Return a task's id: ``movies_token_f1`` for the test split, ``movies_validation_token_f1`` for another one."""
    return "_".join([config, *([split] if split != PLAIN_SPLIT else []), headline.name])


def is_ranked(split: str) -> bool:
    """Return True if systems are ranked on a split, i.e. if it is no training split."""
    return not split.startswith("train")


def get_task_category(name: str, config: str) -> str:
    """Return the Hub's task category of a config, ``text-classification`` by default."""
    dataset = HUB_DATASETS.get(name)
    return "text-classification" if dataset is None else dataset.tasks.get(config, "text-classification")


def make_eval_yaml(name: str, built: BuiltDataset) -> str:
    """Return the text of ``eval.yaml``: id, config and split of each headline on each ranked split.

    Args:
        name: the dataset, which has headlines.
        built: its folder, with a finished card.

    Raises:
        DataError: two tasks have one id.
    """
    headlines, tasks = get_headlines(name), dict[str, dict[str, str]]()
    for config in built.configs:
        for split in filter(is_ranked, built.splits(config)):
            for identifier in (task_id(config, split, headline) for headline in headlines):
                if identifier in tasks:
                    message = f"two tasks have the id {identifier}: rename a config"
                    raise DataError(message, file=built.folder)
                tasks[identifier] = {"id": identifier, "config": config, "split": split}
    scores = ", ".join(each.name if each.name == each.key else f"{each.name} ({each.key})" for each in headlines)
    words = [
        _LINK.sub(r"\1", get_first_paragraph(built.prose)).replace("**", "").replace("*", ""),
        f"Tasks are CONFIG_SCORE on the split {PLAIN_SPLIT} and CONFIG_SPLIT_SCORE on others but train;",
        f"scores: {scores}.",
        *(f"{headline.name}: lower is better." for headline in headlines if headline.lower),
    ]
    content = {
        "name": str(built.card.get("pretty_name") or name),
        "description": " ".join(words),
        "evaluation_framework": FRAMEWORK,
        "tasks": list(tasks.values()),
    }
    return yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=100)


def write_eval_yaml(folder: Path, name: str) -> None:
    """Write ``eval.yaml`` into a finished folder, if the dataset has headlines; see `make_eval_yaml`."""
    if get_headlines(name):
        atomic_write(folder / EVAL_YAML, make_eval_yaml(name, open_built(folder)).encode())


def verify_eval_yaml(folder: Path, name: str) -> None:
    """Raise a DataError if ``eval.yaml`` is not the text that ``build`` writes for this folder."""
    path = folder / EVAL_YAML
    if not get_headlines(name):
        return
    if not path.is_file():
        raise DataError("no such file: build the dataset again", file=path)
    if path.read_bytes() != make_eval_yaml(name, open_built(folder)).encode():
        message = "its content is not what build writes for this card: build again"
        raise DataError(message, file=path)
