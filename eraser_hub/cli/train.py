"""``eraser-hub train``: the papers' baselines, and fine-tuned transformers, on a config."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from .usage import Config, Dataset, Revision, Seed, at_revision, chosen, say, takes

Split = Annotated[str, typer.Option(help="Split to train on.")]
MaxSteps = Annotated[int | None, typer.Option(min=0, help="Networks: stop after so many steps (0: by epochs).")]


@dataclass(frozen=True, slots=True)
class TrainOptions:
    """The options of ``eraser-hub train``, and their help.

    Attributes:
        model: logistic-regression, random-forest; lstm, bilstm, glove-lstm, bert-lstm, match-lstm, lei,
            lei-unsupervised; or a transformers folder or Hub id to fine-tune.
        out: Folder for the model.
        eval_split: Split to evaluate on; by default validation, if labelled and not trained on; '' for none.
        train_on: full: the whole text; rationale: the human rationale's tokens alone; subsets: random ones (EVAL-X).
        regimes: Train both ways and print paper 004's three regimes; OUT holds the model of --train-on.
        query: Show the query; by default when queries differ.
        features: Baselines: words, or characters (1- and 2-grams of the text).
        joiner: What stands between tokens; by default nothing for characters.
        limit: Train, and evaluate, on so many instances, drawn by seed with each label's share.
        epochs: Networks: epochs; by default the paper's, fine-tuning: 3.
        batch_size: Networks: texts or windows a step.
        learning_rate: Networks: learning rate.
        window: Networks with an encoder: longest window in sub-words.
        encoder: Systems with an encoder: a transformers folder or Hub id; there is no default.
        embeddings: Systems over words: a file of word vectors (GloVe or word2vec text, gensim's .kv); else learned.
        hyper: Systems: a hyper-parameter, NAME=VALUE; more than one with more --set.
        grid: Systems: NAME=VALUE,VALUE,..; the best combination by the validation split is kept.
        workers: --grid: so many combinations side by side, by Ray Tune (the extra ray).
        resume: Networks: go on with a stopped training.
        task: Fine-tuning: classification, or multiple-choice (CoS-E: the query holds the answers); match-lstm:
            classification, or question-answering (words of the text); auto: by the data.
        paper: Train as a paper's code does: eraser (a network reads the document first), wang2022, carton2020
            (baselines over sub-words, chosen by the validation split).
        tokenizer: --paper carton2020: the tokenizer's folder or Hub id; by default roberta-base.
        trust_remote_code: Fine-tuning: run the code that the model brings along.
    """

    dataset: Dataset
    model: str
    out: Path
    config: Config = None
    split: Split = "train"
    eval_split: str | None = None
    train_on: str = "full"
    regimes: Annotated[bool, typer.Option("--regimes")] = False
    query: Annotated[bool | None, typer.Option("--query/--no-query")] = None
    features: str = "words"
    joiner: str | None = None
    seed: Seed = 1
    limit: Annotated[int | None, typer.Option(min=1)] = None
    epochs: Annotated[float | None, typer.Option(min=0.0)] = None
    max_steps: MaxSteps = None
    batch_size: Annotated[int | None, typer.Option(min=1)] = None
    learning_rate: Annotated[float | None, typer.Option(min=0.0)] = None
    window: Annotated[int | None, typer.Option(min=8)] = None
    encoder: str | None = None
    embeddings: Path | None = None
    hyper: Annotated[list[str] | None, typer.Option("--set", show_default=False)] = None
    grid: Annotated[list[str] | None, typer.Option("--grid", show_default=False)] = None
    workers: Annotated[int, typer.Option(min=1)] = 1
    resume: Annotated[bool, typer.Option("--resume")] = False
    task: str = "auto"
    paper: str | None = None
    tokenizer: str | None = None
    trust_remote_code: Annotated[bool, typer.Option("--trust-remote-code")] = False
    revision: Revision = None


@takes(TrainOptions)
def train(options: TrainOptions) -> None:
    """Train a classifier on a config, for `eraser-hub explain`.

    Baselines choose their hyperparameter by five folds of the training split; the same data and seed give the same
    bytes. The three regimes of paper 004: trained and evaluated on full text, trained on full text and evaluated on
    rationales, trained and evaluated on rationales.

    Examples:

        eraser-hub train --dataset hub/eraser --config movies --model logistic-regression --out model/

        eraser-hub train --dataset hub/eraser --config movies --model random-forest --train-on rationale --out model/

        eraser-hub train --dataset hub/eraser --config movies --model bert-base-uncased --max-steps 300 --out model/

        eraser-hub train --dataset hub/eraser --config movies --model logistic-regression --regimes --out model/

        eraser-hub train --dataset hub/eraser --config movies --model lei --encoder bert-base-uncased --out model/ \
--resume
    """
    from eraser_hub.systems.train.recipe import TASKS, Recipe
    from eraser_hub.systems.train.training import TRAIN_ON, train_model

    if options.train_on not in TRAIN_ON:
        raise typer.BadParameter(
            f"expected one of {', '.join(TRAIN_ON)}; found {options.train_on!r}", param_hint="--train-on"
        )
    if options.task not in TASKS:
        raise typer.BadParameter(f"expected one of {', '.join(TASKS)}; found {options.task!r}", param_hint="--task")
    named = chosen(options, "paper tokenizer encoder embeddings")
    texts: dict[str, Any] = {name: str(value or "") for name, value in named.items()}
    recipe = Recipe(
        dataset=at_revision(options.dataset, options.revision),
        hyper=tuple(options.hyper or ()),
        grid=tuple(options.grid or ()),
        **chosen(options, "config split eval_split model query features joiner seed limit epochs max_steps"),
        **chosen(options, "batch_size learning_rate window task trust_remote_code workers resume"),
        **texts,
    )
    for line in train_model(recipe, options.out, options.train_on, options.regimes, say=say):
        typer.echo(line)
