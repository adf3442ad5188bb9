"""``eraser-hub quickstart``: all steps on the bundled samples, from raw files to scores."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from rich.console import Console
from rich.table import Table

from eraser_hub import samples
from eraser_hub.records.predictions import read_plain_rows

if TYPE_CHECKING:
    from datasets import DatasetDict

# what the table shows of each module's result; the rest is in the dict
AGREEMENT_KEYS = ("token_macro_f1", "iou_macro_f1", "iou_matched_f1", "exact_micro_f1", "auprc", "sentence_micro_f1")
FAITHFULNESS_KEYS = ("comprehensiveness", "sufficiency", "comprehensiveness_aopc", "sufficiency_aopc", "accuracy")

NEXT = """
[bold]Next[/bold]
  cd {out} && python -c 'from datasets import load_dataset; print(load_dataset("eraser", "movies")["validation"][0])'
  eraser-hub check --dataset {out}/eraser     the integrity table
  eraser-hub stats --dataset {out}/eraser     the papers' tables, recomputed
  eraser-hub build eraser --config movies      the real release, downloaded
  eraser-hub --help                            scores, explanations, reports, publishing"""


@contextmanager
def _inside(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def _predictions(path: Path) -> list[dict[str, Any]]:
    return [row for _, row in read_plain_rows(path)]


def build_samples(out: Path, say: Console) -> None:
    """Build every dataset from the bundled raw files, and the metric modules, into ``out``."""
    from eraser_hub.conversion import HUB_DATASETS
    from eraser_hub.publishing.spaces import build_metrics

    for dataset in HUB_DATASETS.values():
        result = dataset.build(None, out=out, source=samples.path(dataset.name))
        rows = sum(sum(splits.values()) for splits in result.rows.values())
        say.print(f"  {result.folder}: {len(result.rows)} configs, {rows} rows")
    folders = build_metrics(out)
    say.print(f"  {out}: {len(folders)} metric modules ({', '.join(folder.name for folder in folders)})")


def _score_movies() -> tuple[DatasetDict, dict[str, Any], dict[str, Any]]:
    import evaluate
    from datasets import load_dataset

    movies = cast("DatasetDict", load_dataset("eraser", "movies"))
    # to its end: a stream that is dropped half-way can abort the interpreter at exit (pyarrow's reading thread)
    stream = cast("Iterable[dict[str, Any]]", load_dataset("eraser", "movies", split="validation", streaming=True))
    if [row["annotation_id"] for row in stream] != movies["validation"]["annotation_id"][:]:
        raise RuntimeError("expected the streamed dataset to equal the loaded one")
    predictions = _predictions(samples.path("predictions", "eraser", "movies.val.jsonl"))
    agreement, faithfulness = (
        evaluate.load(name, keep_in_memory=True).compute(
            predictions=predictions, references=movies["validation"], confidence_level=0.95, seed=1
        )
        or {}
        for name in ("eraser_agreement", "eraser_faithfulness")
    )
    return movies, agreement, faithfulness


def _score_chinese() -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    import evaluate
    from datasets import load_dataset

    rows = cast("Iterable[dict[str, Any]]", load_dataset("bilingual_perturbation", "senti_ch", split="test"))
    predictions = _predictions(samples.path("predictions", "bilingual_perturbation", "senti_ch.jsonl"))
    original = next(row for row in rows if row["rel_ids"])
    perturbed = next(row for row in rows if row["id"] == original["rel_ids"][0])
    pair = {str(original["id"]), str(perturbed["id"])}
    result = evaluate.load("perturbation_map", keep_in_memory=True).compute(
        predictions=[row for row in predictions if str(row["id"]) in pair], references=[original, perturbed]
    )
    return original, perturbed, result or {}


def _table(title: str, result: dict[str, Any], keys: tuple[str, ...]) -> Table:
    table = Table(title=title, title_justify="left")
    table.add_column("score")
    table.add_column("value", justify="right")
    table.add_column("95 % interval", justify="right")
    for key in keys:
        low, high = result[f"{key}_ci"]
        table.add_row(key, f"{result[key]:.4f}", f"[{low:.4f}, {high:.4f}]".replace("[", "\\["))
    return table


def quickstart(out: Path, say: Console) -> None:
    """Build, load, score, show, and say what to try next; everything is written below ``out``."""
    out.mkdir(parents=True, exist_ok=True)
    say.print("[bold]1. Raw sample files -> Hub-ready folders[/bold]")
    build_samples(out, say)

    say.print(f'\n[bold]2. In {out}/: load_dataset("eraser", "movies")[/bold]')
    with _inside(out):
        movies, agreement, faithfulness = _score_movies()
        original, perturbed, chinese = _score_chinese()
    for split, rows in movies.items():
        say.print(f"  {split}: {rows.num_rows} rows")

    modules = 'evaluate.load("eraser_agreement"), evaluate.load("eraser_faithfulness")'
    say.print(f"\n[bold]3. {modules}[/bold] on movies, validation")
    say.print(_table("agreement with people's rationales", agreement, AGREEMENT_KEYS))
    say.print(_table("faithfulness to the model", faithfulness, FAITHFULNESS_KEYS))
    say.print(f"signature: {faithfulness['signature']}", soft_wrap=True, markup=False, highlight=False)

    say.print('\n[bold]4. evaluate.load("perturbation_map")[/bold] on a Chinese pair')
    say.print(f"  original:  {original['context']}", markup=False)
    say.print(f"  perturbed: {perturbed['context']}", markup=False)
    say.print(f"  MAP {chinese['map']:.4f} over {chinese['pairs']} pair")

    say.print(NEXT.format(out=out), highlight=False)
