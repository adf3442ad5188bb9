"""A model's scores in the Hub's formats: ``.eval_results/*.yaml``, and ``model-index`` in the model's card.

    eval_results/ORG/MODEL/.eval_results/eraser.yaml    one value per task of the dataset's eval.yaml, with its
    signature eval_results/ORG/MODEL/README.md                    the same values as metadata of a card

`write_eval_results` (``score --eval-results``) adds to existing files, so several corpora and splits accumulate.
`make_results_files` (``publish --eval-results``) fills in the datasets' namespace and merges the metadata into the
model's card. huggingface_hub's own classes read and write both formats.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from eraser_hub.conversion.dataset import Headline
from eraser_hub.conversion.leaderboard import FRAMEWORK, get_headlines, get_task_category, is_ranked, task_id
from eraser_hub.records.built import BuiltDataset
from eraser_hub.records.digests import shorten_digest
from eraser_hub.records.errors import DataError, get_first_line, show
from eraser_hub.records.lines import read_utf8_file
from eraser_hub.records.outputs import OutputWriter
from eraser_hub.records.yaml_text import load_yaml

if TYPE_CHECKING:
    from huggingface_hub import EvalResult, EvalResultEntry, ModelCard, ModelCardData

FOLDER, HIDDEN, CARD = Path("eval_results"), ".eval_results", "README.md"


def check_model(model: str, writer: OutputWriter | None = None, folder: Path = FOLDER) -> None:
    """Raise a DataError if ``model`` is not an id ``ORG/MODEL`` of the Hub, or the writer refuses the card's place."""
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]

    try:
        validate_repo_id(model)
    except HFValidationError as error:
        raise DataError(get_first_line(error), argument="eval_results") from None
    if "/" not in model:
        raise DataError(f"expected ORG/MODEL, found {show(model)}", argument="eval_results")
    if writer is not None:
        writer.check(folder / model / CARD, _keeps_content)


def _keeps_content(path: Path) -> bool:
    """Return True: results are added to a card and to a list of results, whose other content stays."""
    return True


def write_eval_results(
    model: str,
    scores: Mapping[str, Any],
    built: BuiltDataset,
    *,
    source: str | None = None,
    folder: Path = FOLDER,
    writer: OutputWriter | None = None,
) -> tuple[list[Path], list[str]]:
    """Write a model's scores into ``folder/ORG/MODEL``; existing entries of other tasks are kept.

    Args:
        model: ``ORG/MODEL``.
        scores: The output of ``score --out``, with config, split and signature.
        built: The dataset; if it is on the Hub, its commit becomes the revision.
        source: The address of the predictions, if they have one; its name in the entries holds the digest of the data.
        folder: The folder of all models.
        writer: The run's writer; None: of a run without inputs.

    Returns:
        The files written, and lines for the user: tasks without a value, fields that `publish` fills in.

    Raises:
        DataError: A dataset or split without tasks, no headline score, or an existing file that this function did not
            write.
    """
    writer = writer or OutputWriter()
    check_model(model, writer, folder)
    name, config, split = built.place.dataset, str(scores["config"]), str(scores["split"])
    if not get_headlines(name) or not is_ranked(split):
        what = f"the dataset {name}" if not get_headlines(name) else f"the split {split}"
        message = f"{what} has no tasks in an eval.yaml, so no results can answer them"
        raise DataError(message, argument="eval_results")
    data = scores.get("data_digest")
    values = list(_list_headlines(name, scores))
    if not values:
        expected = ", ".join(headline.key for headline in get_headlines(name))
        message = f"expected one of the scores {expected}, found none"
        raise DataError(message, argument="eval_results")
    dataset, revision = built.place.repository or name, built.folder.name if built.place.repository else None
    label = f"Predictions, data {shorten_digest(str(data))}" if data else "Predictions"
    origin = {"source_url": source, "source_name": label if source else None, "dataset_revision": revision}
    tasks = [(task_id(config, split, each), value, why) for each, value, why in values]
    entries = _make_entries(tasks, dataset, origin)
    place: dict[str, Any] = {
        "task_type": get_task_category(name, config),
        "dataset_type": dataset,
        "dataset_name": f"{built.card.get('pretty_name') or name} ({config})",
        "dataset_config": config,
        "dataset_split": split,
        "dataset_revision": revision,
    }
    results = [_make_result(place, headline, value, signature) for headline, value, signature in values]
    model_folder = folder / model
    paths = [model_folder / HIDDEN / f"{name}.yaml", model_folder / CARD]
    writer.check(paths[0], _keeps_content)
    by_task = {entry.task_id: entry for entry in (*read_entries(paths[0]), *entries)}  # the new one of a task counts
    merged = _to_yaml([entry for _, entry in sorted(by_task.items())])
    for path, text in zip(paths, (merged, merge_card(_read_text(paths[1]), model, results, paths[1])), strict=True):
        writer.write(path, text.encode(), _keeps_content)
    lacking = [each.name for each in get_headlines(name) if each not in [headline for headline, _, _ in values]]
    notes = [f"{model}: the scores have no digest of their data"] * (data is None)
    notes += [f"{model}: no value for {', '.join(lacking)}, which the predictions have no fields for"] * bool(lacking)
    if built.place.repository is None:
        notes.append(f"{model}: the dataset is called {name} as yet: `eraser-hub publish` says whose it is")
    return paths, notes


def _parse_model_card(text: str, path: Path) -> tuple[ModelCard, ModelCardData]:
    """Parse a model's card and its metadata; an empty text gives an empty card. Errors name ``path``."""
    from huggingface_hub import ModelCard, ModelCardData

    try:
        card = ModelCard(text or "---\n{}\n---\n")
    except (ValueError, yaml.YAMLError) as error:
        raise DataError(f"the card's metadata cannot be read ({get_first_line(error)})", file=path) from None
    assert isinstance(card.data, ModelCardData)
    return card, card.data


def _list_headlines(name: str, scores: Mapping[str, Any]) -> Iterator[tuple[Headline, float, str]]:
    """Yield the available headline scores, each with the signature of its module."""
    signatures, run = scores["signature"], [scores["run"]] if isinstance(scores.get("run"), str) else []
    for headline in get_headlines(name):
        value = scores.get(headline.key)
        if isinstance(value, int | float) and math.isfinite(value):
            of_gold = headline.key.startswith(("token_", "iou_", "auprc"))
            module = "eraser_agreement" if of_gold else "eraser_faithfulness"
            lines = [line for line in signatures if line.startswith(f"{module}|")] or signatures
            yield headline, float(value), "; ".join(dict.fromkeys([*lines, *run]))


def _make_entries(
    values: Sequence[tuple[str, float, str]], dataset: str, origin: Mapping[str, Any]
) -> list[EvalResultEntry]:
    """Return the entries of (task, value, signature)."""
    try:
        from huggingface_hub import EvalResultEntry
    except ImportError:
        message = "this huggingface_hub knows no results of evaluations (2.4 does): pip install -U huggingface_hub"
        raise DataError(message, argument="eval_results") from None
    options = {"dataset_id": dataset, "date": datetime.now(UTC).date().isoformat(), **origin}
    return [EvalResultEntry(task_id=task, value=value, notes=signature, **options) for task, value, signature in values]


def _make_result(place: Mapping[str, Any], headline: Headline, value: float, signature: str) -> EvalResult:
    from huggingface_hub import EvalResult

    name = f"{headline.name}{' (lower is better)' if headline.lower else ''}"
    options = {"signature": signature, "framework": FRAMEWORK}
    return EvalResult(**place, metric_type=headline.key, metric_name=name, metric_value=value, metric_args=options)


# -- existing and new entries -----------------------------------------------------------------------------------------


def read_entries(path: Path) -> list[EvalResultEntry]:
    """Return the entries of an ``.eval_results`` file; an empty list if it does not exist.

    Raises:
        DataError: The file is not in the Hub's format.
    """
    from huggingface_hub import parse_eval_result_entries

    if not path.is_file():
        return []
    text = _read_text(path)
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


def _to_yaml(entries: Sequence[EvalResultEntry]) -> str:
    from huggingface_hub import eval_result_entries_to_yaml

    return yaml.safe_dump(eval_result_entries_to_yaml(list(entries)), sort_keys=False, allow_unicode=True, width=10_000)


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
    merged, data = _parse_model_card(card, path)
    keys = {_get_key(result) for result in results}
    data.eval_results = [*(one for one in data.eval_results or () if _get_key(one) not in keys), *results]
    data.model_name = data.model_name or model.rpartition("/")[2]
    return str(merged)


def _get_key(result: EvalResult) -> tuple[str | None, ...]:
    dataset = result.dataset_type.rpartition("/")[2]
    return dataset, result.dataset_config, result.dataset_split, result.metric_type


def _read_text(path: Path) -> str:
    return read_utf8_file(str(path)).decode("utf-8") if path.is_file() else ""


# -- on its way to the Hub --------------------------------------------------------------------------------------------


def make_results_files(model: str, namespace: str, card: str, out: Path, folder: Path = FOLDER) -> dict[str, Path]:
    """Write the files of the model's repository below ``out``; return path -> file.

    Args:
        model: ``ORG/MODEL``.
        namespace: The namespace of datasets that are named without one.
        card: The text of the model's card on the Hub; empty without one.
        out: The folder that receives the files.
        folder: The folder of `write_eval_results`.

    Raises:
        DataError: No results of the model, or a file or a card that cannot be read.
    """
    check_model(model)
    paths = sorted((folder / model / HIDDEN).glob("*.yaml"))
    if not paths:
        message = f"no results: `eraser-hub score` with `eval_results` {model} writes them"
        raise DataError(message, file=folder / model)

    def add_namespace(dataset: str) -> str:
        return dataset if "/" in dataset else f"{namespace}/{dataset}"

    files = {}
    (out / HIDDEN).mkdir(parents=True, exist_ok=True)
    for path in paths:
        entries = [replace(entry, dataset_id=add_namespace(entry.dataset_id)) for entry in read_entries(path)]
        files[f"{HIDDEN}/{path.name}"] = out / HIDDEN / path.name
        files[f"{HIDDEN}/{path.name}"].write_text(_to_yaml(entries), encoding="utf-8")
    local = folder / model / CARD
    results = _parse_model_card(_read_text(local), local)[1].eval_results or []
    results = [replace(result, dataset_type=add_namespace(result.dataset_type)) for result in results]
    files[CARD] = out / CARD
    files[CARD].write_text(merge_card(card, model, results, Path(f"{model}/{CARD}")), encoding="utf-8")
    return files
