"""Remove and retrain (ROAR, Hooker et al., 2019): does a retrained model miss the tokens that a method ranks first?

Erased inputs lie outside of the training distribution, and p may fall for that reason alone. ROAR therefore removes the
top tokens by a method's scores from training and test texts alike, and trains the model anew. The drop of its accuracy
shows what the removed tokens contributed. Random tokens are the baseline.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import compress, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from eraser_hub.attribution.adapter import align_labels
from eraser_hub.attribution.config import ExplainConfig
from eraser_hub.attribution.dataset import has_different_queries, open_split
from eraser_hub.attribution.erasure import make_generator, select_top
from eraser_hub.attribution.external_rationales import ExternalScores
from eraser_hub.attribution.instances import Instance
from eraser_hub.attribution.open import open_model
from eraser_hub.attribution.run import explain, find_run_settings
from eraser_hub.metrics.resampling import DEFAULT_LEVEL
from eraser_hub.records.atomic import atomic_write
from eraser_hub.records.errors import DataError, show
from eraser_hub.records.hub import at_revision
from eraser_hub.records.splits import dataset_split
from eraser_hub.records.tables import Cell, Table, Tables
from eraser_hub.schema.instance import AOPC_THRESHOLDS
from eraser_hub.scoring.mask_leaks import compute_share_interval, find_document_clusters
from eraser_hub.scoring.settings import ScoreSettings
from eraser_hub.systems.evaluation import find_hits
from eraser_hub.systems.train_config import Say, TrainConfig

from .configs import RoarConfig
from .folder import lock_run_folder, train_or_resume

RANDOM = "random"
NOTE = """{} test texts; the tokens are gone from training and test texts, and the model was trained anew: the lower \
the accuracy below that of random tokens, the more the method's tokens say. Brackets: 95 % interval over documents."""


def roar(options: RoarConfig, say: Say = lambda words: None) -> dict[str, Any]:
    """Train, rank, remove and train anew.

    Args:
        options: The settings; finished files in its folder are reused.
        say: Receives lines of progress.

    Returns:
        ``bins``: [{"share", and for the method and for ``random`` {"accuracy", "ci"}}], the first one with share 0 and
        equal figures; ``method``, ``model``, ``instances``, ``signature``.

    Raises:
        DataError: Shares out of range, records of the perturbation benchmark, another run in ``out``, or an error of
            training or explaining.
        BusyError: Another run is at work in ``out``.
    """
    bins = AOPC_THRESHOLDS if options.bins is None else options.bins
    options = replace(options, bins=bins, dataset=at_revision(options.dataset, options.revision))
    if not bins or any(not 0 < share < 1 for share in bins) or len(set(bins)) != len(bins):
        message = f"expected different shares above 0 and below 1, found {show(bins)}"
        raise DataError(message, rule="option-value", argument="bins")
    if dataset_split(options.train_split) == dataset_split(options.split):
        message = f"expected another split than the one trained on, found {options.split}"
        raise DataError(message, rule="option-conflict", argument="split")
    place = Path(options.dataset)
    dataset = str(place.resolve()) if place.exists() else options.dataset
    # two runs in one folder must share these; the shares may differ
    run_settings = {"dataset": dataset, "test": options.split, "method": options.method, "texts": options.limit}
    with lock_run_folder(options.out, "roar", {**options.train_config.identity(), **run_settings}):
        return _remove_and_retrain(options, options.out, say)


def _remove_and_retrain(options: RoarConfig, out: Path, say: Say) -> dict[str, Any]:
    texts = {name: _read_texts(options, name) for name in (options.train_split, options.split)}
    split = open_split(options.dataset, options.config, options.train_split)
    names = list(split.label_names) or sorted({str(one.label) for one in split.instances()})
    write_dataset(out / "whole", {name: list(map(_strip, some)) for name, some in texts.items()}, names)
    clusters = find_document_clusters([list(one.names) for one in texts[options.split]])
    model, whole = _train_and_test(options, out / "whole", names, clusters, say)
    scored = {name: _explain_split(options, out, model, name) for name in texts}
    rows: list[dict[str, Any]] = [{"share": 0.0, options.method: whole, RANDOM: whole}]
    for share in options.bins or ():
        row: dict[str, Any] = {"share": share}
        for ranking in (options.method, RANDOM):
            folder = out / f"{ranking}-{share:g}"
            cut = partial(remove_top_tokens, share=share, ranking=ranking, seed=options.seed)
            write_dataset(folder, {name: list(map(cut, some)) for name, some in scored.items()}, names)
            _, row[ranking] = _train_and_test(options, folder, names, clusters, say)
            say(f"{ranking}, {share:.0%} of the tokens removed: accuracy {row[ranking]['accuracy']:.3f}")
        rows.append(row)
    count = len(texts[options.split])
    signature = f"roar|method:{options.method}|model:{Path(options.model).name}|seed:{options.seed}|texts:{count}"
    facts = {"method": options.method, "model": options.model, "instances": count}
    return {**facts, "bins": rows, "signature": signature}


def remove_top_tokens(one: Instance, share: float, ranking: str, seed: int) -> Instance:
    """Return the text without the share of its tokens that its scores, or random ones, rank first."""
    tokens = one.bounds[-1]
    if ranking == RANDOM:
        scores = make_generator(seed, one.id, "roar").random(tokens)
    else:
        scores = np.array([value for document in one.scores or () for value in document])
    kept_tokens = np.ones(tokens, dtype=bool)
    kept_tokens[select_top(scores, share)] = False
    parts = zip(one.documents, pairwise(one.bounds), strict=True)
    documents = tuple(tuple(compress(words, kept_tokens[start:end])) for words, (start, end) in parts)
    return replace(_strip(one), documents=documents)


def _strip(one: Instance) -> Instance:
    return replace(one, rationale=None, scores=None, sentences=(), evidence_documents=())


def _read_texts(options: RoarConfig, name: str) -> list[Instance]:
    split = open_split(options.dataset, options.config, name)
    if split.kind == "perturbation":
        message = "expected texts with labels, found records of the perturbation benchmark"
        raise DataError(message, rule="unsupported", file=options.dataset)
    split = split if options.limit is None else split.sample(options.limit, options.seed)
    instances = list(split.instances())
    unlabelled = next((one.id for one in instances if one.label is None), None)
    if unlabelled is not None or not instances:
        message = "expected labelled instances, found one without"
        raise DataError(message, rule="label-missing", file=options.dataset, instance=unlabelled)
    return instances


def write_dataset(folder: Path, parts: Mapping[str, Sequence[Instance]], names: Sequence[str]) -> None:
    """Write texts as a dataset folder that ``train`` and ``explain`` read; a finished folder is kept.

    Args:
        folder: The folder.
        parts: The texts of each split.
        names: The labels.
    """
    if (folder / "README.md").is_file():
        return
    import pyarrow.parquet as pq
    from datasets import ClassLabel, Dataset, Features, List, Value

    text = Value("string")
    label, documents = ClassLabel(names=list(names)), List({"docid": text, "text": text})
    features = Features({"annotation_id": text, "classification": label, "query": text, "documents": documents})
    folder.mkdir(parents=True, exist_ok=True)
    lines = []
    for name, instances in parts.items():
        split, rows = dataset_split(name), list(map(_make_row, instances))
        table = Dataset.from_list(rows, features=features)
        pq.write_table(table.with_format("arrow")[:], folder / f"{split}.parquet")
        lines += [f"  - split: {split}", f"    path: {split}.parquet"]
    card = ["---", "configs:", "- config_name: default", "  default: true", "  data_files:", *lines, "---", ""]
    atomic_write(folder / "README.md", "\n".join(card).encode())


def _make_row(one: Instance) -> dict[str, Any]:
    documents = [{"docid": name, "text": " ".join(words)} for name, words in zip(one.names, one.documents, strict=True)]
    return {"annotation_id": one.id, "classification": one.label, "query": " ".join(one.query), "documents": documents}


def _train_and_test(
    options: RoarConfig, folder: Path, names: Sequence[str], clusters: np.ndarray, say: Say
) -> tuple[Path, dict[str, Any]]:
    """Train a model on a folder's texts; return its folder, and its accuracy on the test texts with the interval."""

    def make_config() -> TrainConfig:
        query = has_different_queries(open_split(options.dataset, options.config, options.train_split))
        return replace(options.train_config, dataset=str(folder), config=None, query=query)

    model = train_or_resume(folder / "model", make_config, say)
    adapter = open_model(model)
    align_labels(adapter, names)
    hits = np.array(find_hits(adapter, list(open_split(str(folder), None, options.split).instances())))
    interval = compute_share_interval(hits, clusters, ScoreSettings(confidence_level=DEFAULT_LEVEL, seed=options.seed))
    return model, {"accuracy": float(hits.mean()), "ci": None if interval is None else list(interval)}


def _explain_split(options: RoarConfig, out: Path, model: Path, name: str) -> list[Instance]:
    """Return a split's texts with the method's scores by the model of whole texts."""
    path = out / f"{dataset_split(name)}.predictions.jsonl"
    job = ExplainConfig(dataset=str(out / "whole"), config=None, split=name, model=str(model))
    settings, _ = find_run_settings(job, "", method=options.method, kd=0.1, seed=options.seed)
    explain(job, replace(settings, bins=()), path, resume=True)  # the scores alone are read
    split = open_split(str(out / "whole"), None, name)
    return list(map(ExternalScores(path).attach, split.instances()))


def make_roar_tables(result: Mapping[str, Any]) -> Tables:
    """Return a table of the accuracy by removed share, for the method's top tokens and for random ones."""
    columns = (result["method"], RANDOM)
    table = Table("roar", f"Accuracy, removed and retrained: {result['model']}", ("removed",), columns)
    for row in result["bins"]:
        ends = {name: row[name]["ci"] or (None, None) for name in columns}
        cells = {name: Cell(row[name]["accuracy"], digits=3, low=low, high=high) for name, (low, high) in ends.items()}
        table.add(f"{row['share']:.0%}", **cells)
    table.notes.append(NOTE.format(result["instances"]))
    return Tables("roar", [table])
