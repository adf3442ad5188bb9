"""``eraser-hub train``: the papers' baselines, and fine-tuned transformers, on a config."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .usage import Config, Dataset, Revision, Seed, at_revision, say

Model = Annotated[
    str,
    typer.Option(
        help="logistic-regression, random-forest; lstm, bilstm, glove-lstm, bert-lstm, match-lstm, lei, lei-unsupervised; or "
        "a transformers folder or Hub id to fine-tune."
    ),
]
Out = Annotated[Path, typer.Option(help="Folder for the model.")]
Split = Annotated[str, typer.Option(help="Split to train on.")]
EvalSplit = Annotated[
    str | None,
    typer.Option(help="Split to evaluate on; by default validation, if labelled and not trained on; '' for none."),
]
TrainOn = Annotated[
    str,
    typer.Option(
        help="full: the whole text; rationale: the human rationale's tokens alone; subsets: random ones (EVAL-X)."
    ),
]
Regimes = Annotated[
    bool,
    typer.Option(
        "--regimes", help="Train both ways and print paper 004's three regimes; OUT holds the model of --train-on."
    ),
]
Query = Annotated[
    bool | None, typer.Option("--query/--no-query", help="Show the query; by default when queries differ.")
]
Features = Annotated[str, typer.Option(help="Baselines: words, or characters (1- and 2-grams of the text).")]
Joiner = Annotated[str | None, typer.Option(help="What stands between tokens; by default nothing for characters.")]
Limit = Annotated[
    int | None,
    typer.Option(min=1, help="Train, and evaluate, on so many instances, drawn by seed with each label's share."),
]
Epochs = Annotated[
    float | None, typer.Option(min=0.0, help="Networks: epochs; by default the paper's, fine-tuning: 3.")
]
MaxSteps = Annotated[int | None, typer.Option(min=0, help="Networks: stop after so many steps (0: by epochs).")]
BatchSize = Annotated[int | None, typer.Option(min=1, help="Networks: texts or windows a step.")]
LearningRate = Annotated[float | None, typer.Option(min=0.0, help="Networks: learning rate.")]
Window = Annotated[int | None, typer.Option(min=8, help="Networks with an encoder: longest window in sub-words.")]
Encoder = Annotated[
    str | None, typer.Option(help="Systems with an encoder: a transformers folder or Hub id; there is no default.")
]
Embeddings = Annotated[
    Path | None,
    typer.Option(
        help="Systems over words: a file of word vectors (GloVe or word2vec text, gensim's .kv); else learned."
    ),
]
Hyper = Annotated[
    list[str] | None,
    typer.Option(
        "--set", help="Systems: a hyper-parameter, NAME=VALUE; more than one with more --set.", show_default=False
    ),
]
Grid = Annotated[
    list[str] | None,
    typer.Option(
        "--grid",
        help="Systems: NAME=VALUE,VALUE,..; the best combination by the validation split is kept.",
        show_default=False,
    ),
]
Workers = Annotated[
    int, typer.Option(min=1, help="--grid: so many combinations side by side, by Ray Tune (the extra ray).")
]
Resume = Annotated[bool, typer.Option("--resume", help="Networks: go on with a stopped training.")]
Task = Annotated[
    str,
    typer.Option(
        help="Fine-tuning: classification, or multiple-choice (CoS-E: the query holds the answers); match-lstm: classification, or "
        "question-answering (words of the text); auto: by the data."
    ),
]

Paper = Annotated[
    str | None,
    typer.Option(
        help="Train as a paper's code does: eraser (a network reads the document first), wang2022, carton2020 (baselines "
        "over sub-words, chosen by the validation split)."
    ),
]
Tokenizer = Annotated[
    str | None, typer.Option(help="--paper carton2020: the tokenizer's folder or Hub id; by default roberta-base.")
]
TrustRemoteCode = Annotated[
    bool, typer.Option("--trust-remote-code", help="Fine-tuning: run the code that the model brings along.")
]


def train(
    dataset: Dataset, model: Model, out: Out, config: Config = None, split: Split = "train",
    eval_split: EvalSplit = None, train_on: TrainOn = "full", regimes: Regimes = False, query: Query = None,
    features: Features = "words", joiner: Joiner = None, seed: Seed = 1, limit: Limit = None, epochs: Epochs = None,
    max_steps: MaxSteps = None, batch_size: BatchSize = None, learning_rate: LearningRate = None, window: Window = None,
    encoder: Encoder = None, embeddings: Embeddings = None, hyper: Hyper = None, grid: Grid = None, workers: Workers = 1,
    resume: Resume = False, task: Task = "auto", paper: Paper = None, tokenizer: Tokenizer = None, trust_remote_code: TrustRemoteCode = False,
    revision: Revision = None,
) -> None:  # fmt: skip
    """Train a classifier on a config, for `eraser-hub explain`.

    Baselines choose their hyperparameter by five folds of the training split; the same data and seed give the same bytes. The three regimes of paper 004:
    trained and evaluated on full text, trained on full text and evaluated on rationales, trained and evaluated on
    rationales.

    Examples:

        eraser-hub train --dataset hub/eraser --config movies --model logistic-regression --out model/

        eraser-hub train --dataset hub/eraser --config movies --model random-forest --train-on rationale --out model/

        eraser-hub train --dataset hub/eraser --config movies --model bert-base-uncased --max-steps 300 --out model/

        eraser-hub train --dataset hub/eraser --config movies --model logistic-regression --regimes --out model/

        eraser-hub train --dataset hub/eraser --config movies --model lei --encoder bert-base-uncased --out model/ --resume
    """
    from eraser_hub.explain.train.recipe import TASKS, Recipe
    from eraser_hub.explain.train.training import TRAIN_ON, train_model

    if train_on not in TRAIN_ON:
        raise typer.BadParameter(f"expected one of {', '.join(TRAIN_ON)}; found {train_on!r}", param_hint="--train-on")
    if task not in TASKS:
        raise typer.BadParameter(f"expected one of {', '.join(TASKS)}; found {task!r}", param_hint="--task")
    recipe = Recipe(
        dataset=at_revision(dataset, revision), config=config, split=split, eval_split=eval_split, model=model, query=query, features=features,
        joiner=joiner, seed=seed, limit=limit, epochs=epochs, max_steps=max_steps, batch_size=batch_size,
        learning_rate=learning_rate, window=window, task=task, trust_remote_code=trust_remote_code, paper=paper or "",
        tokenizer=tokenizer or "", hyper=tuple(hyper or ()), grid=tuple(grid or ()), workers=workers,
        encoder=encoder or "", embeddings="" if embeddings is None else str(embeddings), resume=resume,
    )  # fmt: skip
    for line in train_model(recipe, out, train_on, regimes, say=say):
        typer.echo(line)
