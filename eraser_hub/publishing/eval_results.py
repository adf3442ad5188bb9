"""A model's scores in the Hub's formats: ``.eval_results/*.yaml``, and ``model-index`` in the model's card.

    .eval_results/eraser.yaml    one value per task of the dataset's eval.yaml, with its signature
    README.md                    the same values as metadata of the card

What the model's repository has of other tasks, splits and datasets stays. huggingface_hub's own classes read and write
both formats.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from eraser_hub.conversion import get_dataset, list_datasets
from eraser_hub.conversion.leaderboard import FRAMEWORK, SPAN_HEADLINES, Headline, is_ranked, task_id
from eraser_hub.conversion.readers import load_yaml, read_strict_object
from eraser_hub.records.errors import DataError, get_first_line, show
from eraser_hub.records.places import dataset_split
from eraser_hub.reports.board_lines import get_signatures, make_board_line

if TYPE_CHECKING:
    from huggingface_hub import EvalResult, EvalResultEntry, ModelCard, ModelCardData


HIDDEN, CARD = ".eval_results", "README.md"
log = logging.getLogger("eraser_hub")


def get_headlines(name: str) -> Sequence[Headline]:
    """Return the scores by which systems are ranked on a dataset; a corpus of one's own has those of ``eraser``."""
    return get_dataset(name).headlines if name in list_datasets() else SPAN_HEADLINES


def check_model(model: str) -> None:
    """Raise a DataError if ``model`` is not an id ``ORG/MODEL`` of the Hub."""
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]

    try:
        validate_repo_id(model)
    except HFValidationError as error:
        raise DataError(get_first_line(error), argument="eval_results") from None
    if "/" not in model:
        raise DataError(f"expected ORG/MODEL, found {show(model)}", argument="eval_results")


def make_results_files(
    model: str, score_files: Sequence[Path], namespace: str, read: Callable[[str], str], out: Path
) -> dict[str, Path]:
    """Write the files of the model's repository below ``out``; return path -> file.

    Args:
        model: ``ORG/MODEL``.
        score_files: the JSON files of ``score`` for this model, of any number of configs and splits.
        namespace: the namespace of the datasets.
        read: returns the text of a file of the model's repository; empty without it.
        out: the folder that receives the files.

    Raises:
        DataError: a file that holds no scores of a dataset with tasks, or a list of results or a card of the model that
            cannot be read.
    """
    entries: dict[str, list[EvalResultEntry]] = {}
    results: list[EvalResult] = []
    for file in score_files:
        name, own, metadata = read_results(file, namespace)
        entries.setdefault(name, []).extend(own)
        results += metadata
    texts = {}
    for name, new in entries.items():
        path = f"{HIDDEN}/{name}.yaml"
        texts[path] = merge_entries(read(path), new, Path(f"{model}/{path}"))
    texts[CARD] = merge_card(read(CARD), model, results, Path(f"{model}/{CARD}"))
    (out / HIDDEN).mkdir(parents=True, exist_ok=True)
    for path, text in texts.items():
        (out / path).write_text(text, encoding="utf-8")
    return {path: out / path for path in texts}


def read_results(file: Path, namespace: str) -> tuple[str, list[EvalResultEntry], list[EvalResult]]:
    """Return the dataset of a score file, and its headline scores as entries of tasks and as metadata of a card.

    Raises:
        DataError: no score file, scores of no built dataset, of a split without tasks, or no headline score.
    """
    scores = read_strict_object(file)
    make_board_line(scores, file=file)  # which refuses what is no score file
    name, config, split = (str(scores.get(key) or "") for key in ("dataset", "config", "split"))
    if not (name and config and split):
        message = "expected the scores of a built dataset, with its config and split"
        raise DataError(message, file=file, field="dataset")
    split = dataset_split(split)
    if not get_headlines(name) or not is_ranked(split):
        what = f"the dataset {name}" if not get_headlines(name) else f"the split {split}"
        message = f"{what} has no tasks in an eval.yaml, so no results can answer them"
        raise DataError(message, file=file)
    values = list(list_headlines(name, scores))
    if not values:
        expected = ", ".join(headline.key for headline in get_headlines(name))
        raise DataError(f"expected one of the scores {expected}, found none", file=file)
    lacking = [each.name for each in get_headlines(name) if each not in [headline for headline, _, _ in values]]
    if lacking:
        log.warning(f"{file}: no value for {', '.join(lacking)}, which the predictions have no fields for")
    dataset = f"{namespace}/{name}"
    configs = get_dataset(name).configs if name in list_datasets() else {}
    task = configs[config].task if config in configs else "text-classification"
    place: dict[str, Any] = {
        "task_type": task,
        "dataset_type": dataset,
        "dataset_name": f"{name} ({config})",
        "dataset_config": config,
        "dataset_split": split,
    }
    tasks = [(task_id(config, split, headline), value, why) for headline, value, why in values]
    return (
        name,
        make_entries(tasks, dataset),
        [make_result(place, headline, value, signature) for headline, value, signature in values],
    )


def list_headlines(name: str, scores: Mapping[str, Any]) -> Iterator[tuple[Headline, float, str]]:
    """Yield the available headline scores, each with the signature of its module."""
    signatures, run = get_signatures(scores), [scores["run"]] if isinstance(scores.get("run"), str) else []
    for headline in get_headlines(name):
        value = scores.get(headline.key)
        if isinstance(value, int | float) and math.isfinite(value):
            of_gold = headline.key.startswith(("token_", "iou_", "auprc"))
            module = "eraser_agreement" if of_gold else "eraser_faithfulness"
            lines = [line for line in signatures if line.startswith(f"{module}|")] or signatures
            yield headline, float(value), "; ".join(dict.fromkeys([*lines, *run]))


def make_entries(values: Sequence[tuple[str, float, str]], dataset: str) -> list[EvalResultEntry]:
    """Return the entries of (task, value, signature)."""
    try:
        from huggingface_hub import EvalResultEntry
    except ImportError:
        message = "this huggingface_hub knows no results of evaluations (2.4 does): pip install -U huggingface_hub"
        raise DataError(message, argument="eval_results") from None
    day = datetime.now(UTC).date().isoformat()
    return [
        EvalResultEntry(dataset_id=dataset, task_id=task, value=value, date=day, notes=signature)
        for task, value, signature in values
    ]


def make_result(place: Mapping[str, Any], headline: Headline, value: float, signature: str) -> EvalResult:
    """Return a score as metadata of a card."""
    from huggingface_hub import EvalResult

    name = f"{headline.name}{' (lower is better)' if headline.lower else ''}"
    options = {"signature": signature, "framework": FRAMEWORK}
    return EvalResult(**place, metric_type=headline.key, metric_name=name, metric_value=value, metric_args=options)


def merge_entries(text: str, entries: Sequence[EvalResultEntry], path: Path) -> str:
    """Return the text of an ``.eval_results`` file with these entries, each in place of an older one of its task.

    An entry that is there with the same value and signature keeps its date.

    Args:
        text: the file's text; empty for none.
        entries: the new entries.
        path: the name of the file in errors.

    Raises:
        DataError: the text is not in the Hub's format.
    """
    from huggingface_hub import eval_result_entries_to_yaml

    merged = {(entry.dataset_id, entry.task_id): entry for entry in parse_entries(text, path)}
    for entry in entries:
        old = merged.get((entry.dataset_id, entry.task_id))
        if old is None or (old.value, old.notes) != (entry.value, entry.notes):
            merged[entry.dataset_id, entry.task_id] = entry
    plain = eval_result_entries_to_yaml([entry for _, entry in sorted(merged.items())])
    return yaml.safe_dump(plain, sort_keys=False, allow_unicode=True, width=10_000)


def parse_entries(text: str, path: Path) -> list[EvalResultEntry]:
    """Return the entries of the text of an ``.eval_results`` file; errors, a DataError, name ``path``."""
    from huggingface_hub import parse_eval_result_entries

    try:
        entries = parse_eval_result_entries(load_yaml(text, path) or [])
    except DataError:
        raise
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
        message = f"expected a list of results, cannot be read ({get_first_line(error)})"
        raise DataError(message, file=path) from None
    for entry in entries:
        has_names = isinstance(entry.dataset_id, str) and isinstance(entry.task_id, str)
        if not has_names or not isinstance(entry.value, int | float):
            message = f"expected a dataset, a task and a number, found {show(entry.value)}"
            raise DataError(message, file=path)
    return entries


def merge_card(card: str, model: str, results: Sequence[EvalResult], path: Path) -> str:
    """Return a model's card with these results in its metadata; they replace equal scores of the same split.

    Args:
        card: The card's text; empty for a model without card.
        model: ``ORG/MODEL``.
        results: The new results.
        path: The name of the card in errors.

    Raises:
        DataError: A card whose metadata cannot be read.
    """
    merged, data = parse_model_card(card, path)
    keys = {get_key(result) for result in results}
    data.eval_results = [*(one for one in data.eval_results or () if get_key(one) not in keys), *results]
    data.model_name = data.model_name or model.rpartition("/")[2]
    return str(merged)


def get_key(result: EvalResult) -> tuple[str | None, ...]:
    """Return what a result is of: dataset, config, split and score."""
    dataset = result.dataset_type.rpartition("/")[2]
    return dataset, result.dataset_config, result.dataset_split, result.metric_type


def parse_model_card(text: str, path: Path) -> tuple[ModelCard, ModelCardData]:
    """Return a model's card and its metadata; an empty text gives an empty card. Errors name ``path``."""
    from huggingface_hub import ModelCard, ModelCardData

    try:
        card = ModelCard(text or "---\n{}\n---\n")
    except (ValueError, yaml.YAMLError) as error:
        raise DataError(f"the card's metadata cannot be read ({get_first_line(error)})", file=path) from None
    assert isinstance(card.data, ModelCardData)
    return card, card.data
