"""What to train on what: the options of ``eraser-hub train``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

from eraser_hub.systems.networks.systems import Hyper

# of transformers: the batch, warmup and learning rate of paper 004 (appendix A), AdamW with a linear decay
FINETUNING = Hyper(epochs=3.0, learning_rate=2e-5, warmup_steps=50, linear_decay=True, patience=0, clip=1.0)
CLASSIFICATION, MULTIPLE_CHOICE, ANSWERS = "classification", "multiple-choice", "question-answering"
TASKS = ("auto", CLASSIFICATION, MULTIPLE_CHOICE, ANSWERS)
Say = Callable[[str], None]  # called with lines of progress


@dataclass(frozen=True, slots=True)
class Recipe:
    """What to train on what; the fields are the options of ``eraser-hub train``.

    Attributes:
        dataset, config, split: a dataset folder or Hub id, and the part of it to train on.
        eval_split: the split to evaluate on; None: validation where that has labels and is not trained on; "": none.
        model: a baseline's name, that of a system of :data:`SYSTEMS`, or a transformers folder or Hub id to fine-tune.
        query: show the query; None: when queries differ.
        features, joiner: of the baselines: words or characters, and what stands between tokens.
        seed: of all that is drawn.
        limit: train, and evaluate, on so many instances, drawn by seed with each label's share.
        epochs, max_steps, batch_size, learning_rate: of networks; None: the paper's (:data:`FINETUNING` for
            fine-tuning). ``max_steps`` 0: as many as ``epochs`` ask for.
        window: sub-words that an encoder reads together; of fine-tuning the longest training example, None for the
            model's own limit.
        hyper: ``NAME=VALUE``, further hyper-parameters of a system.
        grid: ``NAME=VALUE,VALUE,..``: of every combination the best by the validation split is kept.
        workers: so many combinations of a grid are trained side by side.
        encoder: of a system that has one: a transformers folder or Hub id; "" for none.
        embeddings: a file of word vectors for systems over words; "" for learned ones.
        resume: go on with a stopped training of a network.
        task: of fine-tuning and of match-lstm, one of :data:`TASKS`; auto: by the data.
        paper: a preset of :mod:`eraser_hub.papers.presets`; "" for our own choices.
        tokenizer: of ``carton2020``'s baselines, a folder or Hub id; "" for the paper's.
        trust_remote_code: run the code that the model to fine-tune brings along.
    """

    dataset: str
    config: str | None
    split: str
    eval_split: str | None
    model: str
    query: bool | None = None
    features: str = "words"
    joiner: str | None = None
    seed: int = 1
    limit: int | None = None
    epochs: float | None = None
    max_steps: int | None = None
    batch_size: int | None = None
    learning_rate: float | None = None
    window: int | None = None
    hyper: tuple[str, ...] = ()
    grid: tuple[str, ...] = ()
    workers: int = 1
    encoder: str = ""
    embeddings: str = ""
    resume: bool = False
    task: str = "auto"
    trust_remote_code: bool = False
    paper: str = ""
    tokenizer: str = ""

    def options(self) -> dict[str, int | float | None]:
        """The hyper-parameters that have an option of their own; None where the paper decides."""
        names = ("epochs", "max_steps", "batch_size", "learning_rate")
        return {name: getattr(self, name) for name in names}

    def identity(self) -> dict[str, object]:
        """What must agree for a stopped training to go on."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        del values["resume"], values["workers"]
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}
