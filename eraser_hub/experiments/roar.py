"""Remove and retrain (ROAR, Hooker et al. 2019): does a model trained anew miss the tokens that a method ranks first?

Erased inputs lie outside of what a model was trained on, and its p may fall for that alone. So the top tokens by a
method's scores are removed from training and test texts alike, and the model is trained anew: what it cannot tell then,
the removed tokens said. Beside it stand as many random tokens.
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
from eraser_hub.attribution.dataset import Split, has_different_queries, open_split
from eraser_hub.attribution.erasure import make_generator, select_top
from eraser_hub.attribution.external_rationales import ExternalScores
from eraser_hub.attribution.instances import Instance
from eraser_hub.attribution.open import open_model
from eraser_hub.attribution.run import explain, find_run_settings
from eraser_hub.metrics.resampling import DEFAULT_LEVEL
from eraser_hub.records.atomic import atomic_write
from eraser_hub.records.errors import DataError, shown
from eraser_hub.records.splits import dataset_split
from eraser_hub.records.tables import Cell, Table, Tables
from eraser_hub.schema.instance import AOPC_THRESHOLDS
from eraser_hub.scoring.leaks import document_clusters, interval_of_share
from eraser_hub.systems.evaluation import hits_of
from eraser_hub.systems.recipe import Recipe, Say

from .folder import kept, trained
from .plans import RoarPlan

RANDOM = "random"
NOTE = """{} test texts; the tokens are gone from training and test texts, and the model was trained anew: the lower \
the accuracy below that of random tokens, the more the method's tokens say. Brackets: 95 % interval over documents."""


def roar(plan: RoarPlan, say: Say = lambda words: None) -> dict[str, Any]:
    """Train, rank, remove, train anew.

    Args:
        plan: what is removed from what; what its folder holds is not made again, so a stopped run goes on.
        say: called with lines of progress.

    Returns:
        ``bins``: [{"share", and for the method and for ``random`` {"accuracy", "ci"}}], the first with share 0 of both
        alike; ``method``, ``model``, ``instances``, ``signature``.

    Raises:
        DataError: shares out of range, records of the perturbation benchmark, another run in ``out``, and what training
            and explaining raise.
        BusyError: another run is at work in ``out``.
    """
    if plan.bins is None:
        plan = replace(plan, bins=AOPC_THRESHOLDS)
    if not plan.bins or any(not 0 < share < 1 for share in plan.bins) or len(set(plan.bins)) != len(plan.bins):
        message = f"expected different shares above 0 and below 1, found {shown(plan.bins)}"
        raise DataError(message, rule="option-value", argument="bins")
    if dataset_split(plan.train_split) == dataset_split(plan.split):
        message = f"expected another split than the one trained on, found {plan.split}"
        raise DataError(message, rule="option-conflict", argument="split")
    with kept(plan.out, "roar", _settings(plan)):
        return _removed_and_retrained(plan, plan.out, say)


def _settings(plan: RoarPlan) -> dict[str, Any]:
    """What two runs in one folder have to have in common; other shares may follow."""
    place = Path(plan.dataset)
    dataset = str(place.resolve()) if place.exists() else plan.dataset
    about = {"dataset": dataset, "test": plan.split, "method": plan.method, "texts": plan.limit}
    return {**plan.recipe.identity(), **about}


def _removed_and_retrained(plan: RoarPlan, out: Path, say: Say) -> dict[str, Any]:
    texts = {name: _texts(plan, name) for name in (plan.train_split, plan.split)}
    names = _label_names(plan)
    reduced(out / "whole", {name: list(map(_plain, some)) for name, some in texts.items()}, names)
    model = _trained(plan, out / "whole", say)
    scored = {name: _scored(plan, out, model, name) for name in texts}
    hits = _hits(model, out / "whole", plan, names)
    clusters = document_clusters([list(one.names) for one in texts[plan.split]])
    whole = _figures(hits, clusters, plan.seed)
    rows: list[dict[str, Any]] = [{"share": 0.0, plan.method: whole, RANDOM: whole}]
    for share in plan.bins or ():
        row: dict[str, Any] = {"share": share}
        for ranking in (plan.method, RANDOM):
            folder = out / f"{ranking}-{share:g}"
            cut = partial(without_top, share=share, ranking=ranking, seed=plan.seed)
            reduced(folder, {name: list(map(cut, some)) for name, some in scored.items()}, names)
            row[ranking] = _figures(_hits(_trained(plan, folder, say), folder, plan, names), clusters, plan.seed)
            say(f"{ranking}, {share:.0%} of the tokens removed: accuracy {row[ranking]['accuracy']:.3f}")
        rows.append(row)
    signature = f"roar|method:{plan.method}|model:{Path(plan.model).name}|seed:{plan.seed}|texts:{len(hits)}"
    facts = {"method": plan.method, "model": plan.model, "instances": len(hits)}
    return {**facts, "bins": rows, "signature": signature}


def without_top(one: Instance, share: float, ranking: str, seed: int) -> Instance:
    """The text without the share of its tokens that its scores, or random ones, rank first; all else stays."""
    tokens = one.bounds[-1]
    if ranking == RANDOM:
        scores = make_generator(seed, one.id, "roar").random(tokens)
    else:
        scores = np.array([value for document in one.scores or () for value in document])
    kept = np.ones(tokens, dtype=bool)
    kept[select_top(scores, share)] = False
    parts = zip(one.documents, pairwise(one.bounds), strict=True)
    documents = tuple(tuple(compress(words, kept[start:end])) for words, (start, end) in parts)
    return replace(_plain(one), documents=documents)


def _plain(one: Instance) -> Instance:
    return replace(one, rationale=None, scores=None, sentences=(), evidence_documents=())


def _opened(plan: RoarPlan, name: str) -> Split:
    split = open_split(plan.dataset, plan.config, name)
    if split.kind == "perturbation":
        message = "expected texts with labels, found records of the perturbation benchmark"
        raise DataError(message, rule="unsupported", file=plan.dataset)
    return split if plan.limit is None else split.sample(plan.limit, plan.seed)


def _texts(plan: RoarPlan, name: str) -> list[Instance]:
    instances = list(_opened(plan, name).instances())
    bare = next((one.id for one in instances if one.label is None), None)
    if bare is not None or not instances:
        message = "expected labelled instances, found one without"
        raise DataError(message, rule="label-missing", file=plan.dataset, instance=bare)
    return instances


def _label_names(plan: RoarPlan) -> list[str]:
    split = open_split(plan.dataset, plan.config, plan.train_split)
    return list(split.label_names) or sorted({str(one.label) for one in split.instances()})


def reduced(folder: Path, parts: Mapping[str, Sequence[Instance]], names: Sequence[str]) -> None:
    """Write texts as a dataset folder that ``train`` and ``explain`` read; what is there stays.

    Args:
        parts: {split: its texts}.
        names: of the labels.
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
        split, rows = dataset_split(name), list(map(_row, instances))
        table = Dataset.from_list(rows, features=features)
        pq.write_table(table.with_format("arrow")[:], folder / f"{split}.parquet")
        lines += [f"  - split: {split}", f"    path: {split}.parquet"]
    card = ["---", "configs:", "- config_name: default", "  default: true", "  data_files:", *lines, "---", ""]
    atomic_write(folder / "README.md", "\n".join(card).encode())


def _row(one: Instance) -> dict[str, Any]:
    documents = [{"docid": name, "text": " ".join(words)} for name, words in zip(one.names, one.documents, strict=True)]
    return {"annotation_id": one.id, "classification": one.label, "query": " ".join(one.query), "documents": documents}


def _trained(plan: RoarPlan, folder: Path, say: Say) -> Path:
    """The model of a folder's training texts."""

    def recipe_of(stopped: bool) -> Recipe:
        query = has_different_queries(open_split(plan.dataset, plan.config, plan.train_split))
        return replace(plan.recipe, dataset=str(folder), config=None, query=query, resume=stopped)

    return trained(folder / "model", recipe_of, say)


def _scored(plan: RoarPlan, out: Path, model: Path, name: str) -> list[Instance]:
    """A split's texts with the method's scores for the whole texts' model."""
    path = out / f"{dataset_split(name)}.predictions.jsonl"
    job = ExplainConfig(dataset=str(out / "whole"), config=None, split=name, model=str(model))
    settings, _ = find_run_settings(job, "", method=plan.method, kd=0.1, seed=plan.seed)
    explain(job, replace(settings, bins=()), path, resume=True)  # the scores alone are read
    split = open_split(str(out / "whole"), None, name)
    return list(map(ExternalScores(path).attach, split.instances()))


def _hits(model: Path, folder: Path, plan: RoarPlan, names: Sequence[str]) -> list[bool]:
    """Whether the model tells each test text's label."""
    adapter = open_model(model)
    align_labels(adapter, names)
    return hits_of(adapter, list(open_split(str(folder), None, plan.split).instances()))


def _figures(hits: Sequence[bool], clusters: np.ndarray, seed: int) -> dict[str, Any]:
    flags = np.array(hits)
    interval = interval_of_share(flags, clusters, DEFAULT_LEVEL, None, seed)
    return {"accuracy": float(flags.mean()), "ci": None if interval is None else list(interval)}


def roar_tables(result: Mapping[str, Any]) -> Tables:
    """Accuracy by share removed, of the method's top tokens and of random ones."""
    columns = (result["method"], RANDOM)
    table = Table("roar", f"Accuracy, removed and retrained: {result['model']}", ("removed",), columns)
    for row in result["bins"]:
        cells = {}
        for name in columns:
            low, high = row[name]["ci"] or (None, None)
            cells[name] = Cell(row[name]["accuracy"], digits=3, low=low, high=high)
        table.add(f"{row['share']:.0%}", **cells)
    table.notes.append(NOTE.format(result["instances"]))
    return Tables("roar", [table])
