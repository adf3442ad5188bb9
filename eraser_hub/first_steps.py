"""The public function `quickstart`: all steps on the bundled samples, from raw files to scores."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from eraser_hub.records.arguments import Place

if TYPE_CHECKING:
    from datasets import DatasetDict

log = logging.getLogger("eraser_hub")
# what the tables show of each module's result; the rest is in the mapping
AGREEMENT_KEYS = ("token_macro_f1", "iou_macro_f1", "iou_matched_f1", "exact_micro_f1", "auprc", "sentence_micro_f1")
FAITHFULNESS_KEYS = ("comprehensiveness", "sufficiency", "comprehensiveness_aopc", "sufficiency_aopc", "accuracy")

NEXT = """\
Next
  # rows in Python
  cd {out} && python -c 'from datasets import load_dataset; print(load_dataset("eraser", "movies")["validation"][0])'
  # the integrity table; the papers' tables, recomputed
  eraser-hub check --dataset {out}/eraser
  eraser-hub stats --dataset {out}/eraser
  # a model trained, explained and judged, with the extra explain: pip install ".[explain]" in a clone
  eraser-hub bench --dataset {out}/eraser --config movies --split val --model logistic-regression --quick --out bench
  # the real release, downloaded
  eraser-hub build eraser --config movies
  # all commands
  eraser-hub --help"""


@dataclass(frozen=True, slots=True)
class QuickstartResult:
    """What the first steps came to.

    Attributes:
        folder: of the built datasets and metrics.
        rows: of each split of movies the number of rows.
        agreement, faithfulness: the results of two metric modules for the bundled predictions of movies.
        pair: a Chinese text and its perturbation.
        perturbation: the result of the module perturbation_map for this pair.
    """

    folder: Path
    rows: Mapping[str, int]
    agreement: Mapping[str, Any]
    faithfulness: Mapping[str, Any]
    pair: tuple[str, str]
    perturbation: Mapping[str, Any]

    def __str__(self) -> str:
        splits = ", ".join(f"{split} {count}" for split, count in self.rows.items())
        original, perturbed = self.pair
        parts = [
            f'In {self.folder}/: load_dataset("eraser", "movies") has the rows {splits}',
            'evaluate.load("eraser_agreement"), evaluate.load("eraser_faithfulness") on movies, validation',
            make_table("agreement with people's rationales", self.agreement, AGREEMENT_KEYS),
            make_table("faithfulness to the model", self.faithfulness, FAITHFULNESS_KEYS),
            f"signature: {self.faithfulness['signature']}",
            'evaluate.load("perturbation_map") on a Chinese pair\n'
            f"  original:  {original}\n"
            f"  perturbed: {perturbed}\n"
            f"  MAP {self.perturbation['map']:.4f} over {self.perturbation['pairs']} pair",
            NEXT.format(out=self.folder),
        ]
        return "\n\n".join(parts)


def quickstart(out: Place = "hub") -> QuickstartResult:
    """Score the bundled predictions, and say which commands come next.

    Builds every dataset from the bundled raw files, and the metric modules; loads them, and scores sample predictions.

    Args:
        out: Folder to build into.

    Returns:
        The folder and the scores; printed, they show what to try next.

    Raises:
        DataError: another build is at work in the folder, or something else stands there.

    Examples:
        >>> from eraser_hub import quickstart
        >>> quickstart("hub").rows  # doctest: +SKIP
        {'train': 27, 'validation': 24, 'test': 13}

        $ eraser-hub quickstart
        $ eraser-hub quickstart --out hub
    """
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    build_samples(folder)
    with inside(folder):
        movies, agreement, faithfulness = score_movies()
        pair, perturbation = score_chinese()
    rows = {str(split): rows.num_rows for split, rows in movies.items()}
    return QuickstartResult(folder, rows, agreement, faithfulness, pair, perturbation)


@contextmanager
def inside(folder: Path) -> Iterator[None]:
    """Make a folder the working directory, where `load_dataset` and `evaluate.load` look for names."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def build_samples(out: Path) -> None:
    """Build every dataset from the bundled raw files, and the metric modules, into ``out``."""
    from eraser_hub import samples
    from eraser_hub.conversion import get_dataset, list_datasets
    from eraser_hub.publishing.spaces import build_metrics

    for name in list_datasets():
        result = get_dataset(name).build(None, out=out, source=samples.path(name))
        rows = sum(sum(splits.values()) for splits in result.rows.values())
        log.info(f"built {result.folder}: {len(result.rows)} configs, {rows} rows")
    folders = build_metrics(out)
    log.info(f"built {out}: {len(folders)} metric modules ({', '.join(folder.name for folder in folders)})")


def read_samples(*names: str) -> list[dict[str, Any]]:
    """Return the rows of a bundled file of predictions."""
    from eraser_hub import samples
    from eraser_hub.records.predictions import read_plain_rows

    return [row for _, row in read_plain_rows(samples.path("predictions", *names))]


def score_movies() -> tuple[DatasetDict, dict[str, Any], dict[str, Any]]:
    """Return movies, and the agreement and faithfulness of the bundled predictions of its validation split."""
    import evaluate
    from datasets import load_dataset

    movies = cast("DatasetDict", load_dataset("eraser", "movies"))
    # to its end: a stream that is dropped half-way can abort the interpreter at exit (pyarrow's reading thread)
    stream = cast("Iterable[dict[str, Any]]", load_dataset("eraser", "movies", split="validation", streaming=True))
    if [row["annotation_id"] for row in stream] != movies["validation"]["annotation_id"][:]:
        raise RuntimeError("expected the streamed dataset to equal the loaded one")
    predictions = read_samples("eraser", "movies.val.jsonl")
    agreement, faithfulness = (
        evaluate.load(name, keep_in_memory=True).compute(
            predictions=predictions, references=movies["validation"], confidence_level=0.95, seed=1
        )
        or {}
        for name in ("eraser_agreement", "eraser_faithfulness")
    )
    return movies, agreement, faithfulness


def score_chinese() -> tuple[tuple[str, str], dict[str, Any]]:
    """Return a Chinese text and its perturbation, and how alike the bundled rationales of both are."""
    import evaluate
    from datasets import load_dataset

    rows = cast("Iterable[dict[str, Any]]", load_dataset("bilingual_perturbation", "senti_ch", split="test"))
    predictions = read_samples("bilingual_perturbation", "senti_ch.jsonl")
    original = next(row for row in rows if row["rel_ids"])
    perturbed = next(row for row in rows if row["id"] == original["rel_ids"][0])
    pair = {str(original["id"]), str(perturbed["id"])}
    result = evaluate.load("perturbation_map", keep_in_memory=True).compute(
        predictions=[row for row in predictions if str(row["id"]) in pair], references=[original, perturbed]
    )
    return (original["context"], perturbed["context"]), result or {}


def make_table(title: str, result: Mapping[str, Any], keys: tuple[str, ...]) -> str:
    """Return scores with their intervals as text."""
    from eraser_hub.records.tables import Cell, Table

    table = Table("scores", title, ("score",), ("value",), labels={"value": "value [95 % interval]"})
    for key in keys:
        low, high = result[f"{key}_ci"]
        table.add(key, value=Cell(result[key], digits=4, low=low, high=high))
    return repr(table)
