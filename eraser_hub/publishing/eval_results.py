"""A model's scores as ``.eval_results/DATASET-CONFIG-SPLIT.yaml``, from which the Hub makes leaderboards.

Each entry is the value of one task of the dataset's ``eval.yaml``, with its signature. A file of its own for each split
leaves the results of others as they are.
"""

from __future__ import annotations

import logging
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from eraser_hub.conversion import get_dataset, list_datasets
from eraser_hub.conversion.card import SPAN_HEADLINES, is_ranked, task_id
from eraser_hub.records.errors import DataError, UsageError, show
from eraser_hub.records.places import dataset_split
from eraser_hub.records.readers import read_json_object
from eraser_hub.reports.board_page import read_score_file

from .staging import Repository

if TYPE_CHECKING:
    from huggingface_hub import EvalResultEntry

log = logging.getLogger("eraser_hub")


def parse_results(results: Sequence[str]) -> dict[str, list[Path]]:
    """Return the score files of each model, of texts ``ORG/MODEL=FILE``.

    >>> parse_results(["lab/lstm=a.json", "lab/lstm=b.json"])["lab/lstm"] == [Path("a.json"), Path("b.json")]
    True
    """
    found: dict[str, list[Path]] = {}
    for text in results:
        model, equals, file = text.partition("=")
        if not equals:
            raise UsageError(f"expected ORG/MODEL=FILE, found {show(text)}", argument="eval_results")
        found.setdefault(model, []).append(Path(file))
    return found


def stage_results(model: str, score_files: Sequence[Path], namespace: str, place: Path) -> Repository:
    """Write a model's files of results below ``place``.

    Args:
        model: ORG/MODEL.
        score_files: what `score` wrote for this model, of any configs and splits.
        namespace: that of the datasets.
        place: a temporary folder.

    Raises:
        DataError: a file holds no scores that answer a task.
    """
    try:
        from huggingface_hub import eval_result_entries_to_yaml
    except ImportError:
        message = "this huggingface_hub knows no results of evaluations (2.4 does): pip install -U huggingface_hub"
        raise DataError(message, argument="eval_results") from None
    results: dict[str, dict[str, EvalResultEntry]] = {}
    for file in score_files:
        name, entries = read_results(file, namespace)
        results.setdefault(name, {}).update((entry.task_id, entry) for entry in entries)
    folder = Path(tempfile.mkdtemp(dir=place))
    (folder / ".eval_results").mkdir()
    for name, by_task in results.items():
        text = yaml.safe_dump(eval_result_entries_to_yaml(list(by_task.values())), sort_keys=False, width=10_000)
        (folder / ".eval_results" / f"{name}.yaml").write_text(text, encoding="utf-8")
    return Repository("model", model, folder)


def read_results(file: Path, namespace: str) -> tuple[str, list[EvalResultEntry]]:
    """Return DATASET-CONFIG-SPLIT of a score file, and its headline scores as entries; errors as of `stage_results`."""
    from huggingface_hub import EvalResultEntry

    scores = read_json_object(file)
    for field in ("dataset", "config", "split"):
        if not re.fullmatch(r"\w[\w.-]*", str(scores.get(field) or "")):
            message = f"expected the scores of a built dataset, found the {field} {show(scores.get(field))}"
            raise DataError(message, file=file, field=field)
    name, config, split = scores["dataset"], scores["config"], dataset_split(scores["split"])
    headlines = get_dataset(name).headlines if name in list_datasets() else SPAN_HEADLINES
    if not headlines or not is_ranked(split):
        message = f"expected a split with tasks in an eval.yaml, found {split} of {name}"
        raise DataError(message, file=file, field="split")
    checked = read_score_file(file)  # each score is in its range
    values = {headline: checked.scores.get(headline.key) for headline in headlines}
    notes = checked.detail.replace(" · ", "; ")
    entries = [
        EvalResultEntry(f"{namespace}/{name}", task_id(config, split, headline), value, notes=notes)
        for headline, value in values.items()
        if value is not None
    ]
    if not entries:
        message = f"expected one of the scores {', '.join(headline.key for headline in headlines)}, found none"
        raise DataError(message, file=file)
    if len(entries) < len(values):
        lacking = ", ".join(headline.key for headline, value in values.items() if value is None)
        log.warning(f"{file}: no value for {lacking}, which the predictions have no fields for")
    return f"{name}-{config}-{split}", entries
