"""``eval.yaml`` of a dataset folder: the scores by which the Hub ranks systems.

The Hub reads the file at the root of a dataset's repository. Each task has its own leaderboard, and a model's
``.eval_results/*.yaml`` has one value for a task (huggingface.co/docs/hub/eval-results). The format has no field for
"lower is better", so the description says it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import yaml

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
