"""What to train on what: the options of ``eraser-hub train``."""

from __future__ import annotations

from dataclasses import dataclass

CLASSIFICATION, MULTIPLE_CHOICE = "classification", "multiple-choice"
TASKS = ("auto", CLASSIFICATION, MULTIPLE_CHOICE)


@dataclass(frozen=True, slots=True)
class Recipe:
    """What to train on what; the fields are the options of ``eraser-hub train``.

    Attributes:
        dataset, config, split: a dataset folder or Hub id, and the part of it to train on.
        eval_split: the split to evaluate on; None: validation where that has labels and is not trained on; "": none.
        model: a baseline's name, or a transformers folder or Hub id to fine-tune.
        query: show the query; None: when queries differ.
        features, joiner: of the baselines: words or characters, and what stands between tokens.
        seed: of all that is drawn.
        limit: train on so many instances, drawn by seed with each label's share.
        epochs, max_steps, batch_size, learning_rate: of fine-tuning; ``max_steps`` 0: as many as ``epochs`` ask for. The
            learning rate is paper 004's (appendix A).
        window: of fine-tuning: the longest training example in sub-words; None: the model's own limit.
        task: of fine-tuning, one of :data:`TASKS`; auto: by the data.
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
    epochs: float = 3.0
    max_steps: int = 0
    batch_size: int = 16
    learning_rate: float = 2e-5
    window: int | None = None
    task: str = "auto"
    trust_remote_code: bool = False
    paper: str = ""
    tokenizer: str = ""
