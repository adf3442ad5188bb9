"""The settings of each experiment."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from eraser_hub.records.arguments import Config, DatasetPlace, Progress, Revision, Split
from eraser_hub.records.options import NotNegative, Option, Options, Seed
from eraser_hub.systems.train_config import TrainConfig

# families of models that judge scores
CLOSED, RECURRENT, TRANSFORMER, ENCODER = "closed-form", "recurrent", "transformer", "encoder"
NETWORKS = (RECURRENT, TRANSFORMER)
# two words decide together, or either does, and pre-training knows what they mean; small transformers learn no negation
ENCODER_KINDS = ("negation", "redundant")


@dataclass(frozen=True, kw_only=True)
class ReproduceConfig(Options):
    """The settings of `experiment reproduce`.

    Attributes:
        table: Table: eraser-2, eraser-3, eraser-4, carton2020-3 or carton2020-figure-2.
        dataset: Built dataset: a folder or Hub id.
        config: Configuration, e.g. movies.

    Systems:
        encoder: Encoder of rows that use one: a transformers folder or Hub id; no default.
        embeddings: File of word vectors for rows over words; default: learned embeddings.

    Data:
        source: Raw corpora with the release's files of human performance (eraser-2).
        split: Split to score; default: test, or validation if test has no labels.

    Run:
        fast: Use smaller sizes; the table lists them.
        seeds: Run each row with so many seeds, from `seed` on; figures are means, ± their standard deviation.
        out: Folder of all files; default: reproduce/TABLE-CONFIG.
    """

    table: str
    dataset: str = "hub/eraser"
    config: str
    split: str = ""
    encoder: str = ""
    embeddings: str = ""
    source: Annotated[str, Option(old=("corpora",))] = ""
    fast: bool = False
    seed: Seed = 1
    seeds: Annotated[int, Option(min=1)] = 1
    out: Path | None = None
    revision: Revision = None
    say: Progress = None


@dataclass(frozen=True, kw_only=True)
class RoarConfig(Options):
    """The settings of `experiment roar`.

    Attributes:
        model: Model to train, as in `train`: logistic-regression, bilstm, an encoder, ..
        method: Attribution method that ranks the tokens, as in `explain`.
        out: Folder for models, predictions and reduced texts; a stopped run resumes there.
        bins: Shares of the tokens to remove; default: 1, 5, 10, 20 and 50 per cent.

    Training:
        train_split: Split to train on.
        epochs: Epochs of a network.
        max_steps: Largest number of steps of a network; 0: by epochs.

    Data:
        limit: Number of texts of each split, stratified by label.
    """

    dataset: DatasetPlace
    model: str
    method: str
    out: Path
    config: Config = None
    split: Split = "test"
    train_split: str = "train"
    bins: Annotated[tuple[float, ...] | None, Option(commas=True, percent=True)] = None
    limit: Annotated[int | None, Option(min=2)] = None
    epochs: Annotated[float | None, Option(min=0)] = None
    max_steps: NotNegative | None = None
    seed: Seed = 1
    revision: Revision = None

    @property
    def train_config(self) -> TrainConfig:
        """The settings of the training on whole texts."""
        return TrainConfig(
            dataset=self.dataset,
            config=self.config,
            split=self.train_split,
            eval_split="",
            model=self.model,
            epochs=self.epochs,
            max_steps=self.max_steps,
            seed=self.seed,
        )


@dataclass(frozen=True, kw_only=True)
class BenchmarkConfig(Options):
    """The settings of `experiment benchmark-scores`.

    Attributes:
        fast: Use fewer texts, models, masks and samples: a minute in closed form, a quarter of an hour with all models.
        models: Models that judge the scores; trained ones need the extra explain.
        paper: Folder of the whole study: data, models' digests, tables, figures; a stopped run resumes there.

    Plantings:
        kinds: Plantings, such as word or shortcut; default: all.
        texts: Folder of ERASER corpora or of SST, into whose sentences shortcuts are planted; default: the samples.

    Models:
        networks: Models of each kind of planting and family; default: 10, or 3 if `fast` and of an encoder.
        encoder: Pretrained encoder, which judges beside `models`, fine-tuned: a transformers folder or Hub id.
        encoder_kinds: Plantings that the encoder learns.
        workers: Workers of a Ray cluster (extra ray); 0: this process alone.
    """

    fast: bool = False
    models: Literal["closed-form", "trained", "all"] = "closed-form"
    kinds: Annotated[tuple[str, ...], Option(commas=True)] = ()
    networks: Annotated[int | None, Option(min=1)] = None
    encoder: str = ""
    encoder_kinds: Annotated[tuple[str, ...], Option(commas=True)] = ENCODER_KINDS
    texts: Path | None = None
    paper: Path | None = None
    workers: NotNegative = 0
    seed: Seed = 1
