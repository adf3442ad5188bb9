"""Train the papers' baselines: logistic regression and random forest over word counts, saved as skops files.

Hyperparameters are scanned as Carton 2020 does (appendix A: C in 0.001 .. 1000, 16 .. 512 trees), by five folds of the
training split, so that the validation split stays unseen.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eraser_hub.attribution.adapters.scikit_learn import BLANK_SPLIT, Subwords, open_subwords, save_pipeline
from eraser_hub.attribution.instances import Instance
from eraser_hub.attribution.open import TOKENIZER
from eraser_hub.papers.presets import load_preset
from eraser_hub.records.errors import DataError, UsageError
from eraser_hub.records.files import replace_file

from .data import Labelled, Training, say_nothing
from .folder import mark_saving, write_facts
from .folds import choose_size, make_folds
from .system import CARTON, Baseline
from .train_config import Say

FEATURES = ("words", "characters")


def join_text(one: Instance, joiner: str = " ") -> str:
    """Return the text that a pipeline reads: the query's tokens, then the documents' tokens."""
    return joiner.join([*one.query, *one.tokens])


def train_baseline(system: Baseline, training: Training) -> None:
    """Train and save a baseline, as its paper's code does if the config names that paper."""
    config, data, say = training.config, training.data, training.say
    subwords = None
    if config.paper == CARTON:
        if not data.validation[0]:
            words = f"`paper` {CARTON}: expected a validation split with labels to choose by; `eval_split` names one"
            raise UsageError(words, file=config.dataset)
        paper_tokenizer = load_preset(CARTON).training["tokenizer"]
        subwords = open_subwords(config.tokenizer or paper_tokenizer, load_preset(CARTON).training["pieces"])
        notes = f", the paper's are {paper_tokenizer}'s" if config.tokenizer else ""
        say(f"sub-words by {config.tokenizer or paper_tokenizer}{notes}")
        model, facts = fit_carton(system, data.train, data.validation, subwords, config.seed, say)
    else:
        joiner = config.joiner if config.joiner is not None else "" if config.features == "characters" else " "
        options: dict[str, Any] = {"features": config.features, "joiner": joiner, "seed": config.seed, "say": say}
        model, facts = fit_baseline(system, *data.train, clusters=data.clusters, **options)
    out = training.out
    with mark_saving(out):
        out.mkdir(parents=True, exist_ok=True)
        with replace_file(out / "model.skops") as temporary_file:
            save_pipeline(model, temporary_file)
        write_facts({**training.facts, "baseline": config.model, **facts}, out)
        if subwords is not None:
            subwords.tokenizer.save_pretrained(out / TOKENIZER)


def build_pipeline(system: Baseline, features: str, size: float, seed: int) -> Any:
    """Build an unfitted pipeline: a counter of words or characters, and an estimator of the given size."""
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.pipeline import make_pipeline

    if features == "words":
        counts = CountVectorizer(token_pattern=BLANK_SPLIT, min_df=1)
    else:
        counts = CountVectorizer(analyzer="char", ngram_range=(1, 2))
    return make_pipeline(counts, system.estimator(size, seed))


def fit_baseline(
    system: Baseline,
    instances: Sequence[Instance],
    labels: Sequence[str],
    *,
    features: str = "words",
    joiner: str = " ",
    seed: int = 1,
    say: Say = say_nothing,
    clusters: NDArray[np.int64] | None = None,
) -> tuple[Any, dict[str, Any]]:
    """Choose the size by the mean accuracy of five folds, then fit on all instances.

    The same instances and seed give the same pipeline to the last bit, whatever the number of processors. Fitting uses
    one thread. Among equally accurate values, the one of stronger regularisation (smaller C, fewer trees) wins.

    Args:
        system: The baseline.
        instances: The texts to train on.
        labels: The label of each instance.
        features: Counted units: "words" or "characters".
        joiner: The string between two tokens.
        seed: Seed of the folds and the estimator.
        say: Receives lines of progress.
        clusters: int64 (texts,), clusters of texts, each in one fold; None if each text is one of its own.

    Returns:
        The fitted pipeline and the facts for ``model.json``.

    Raises:
        DataError: Unknown features, or no text at all.
    """
    from threadpoolctl import threadpool_limits

    if features not in FEATURES:
        words = f"expected one of {', '.join(FEATURES)}; found {features!r}"
        raise DataError(words, argument="features")
    if not any(one.query or one.tokens for one in instances):
        message = f"expected text to train on, found none in {len(instances)} instances"
        raise DataError(message, field="documents")
    gold = np.asarray(labels)
    pipeline = build_pipeline(system, features, system.sizes[0], seed)
    counts = pipeline[0].fit_transform([join_text(one, joiner) for one in instances])
    vars(pipeline[0]).pop("_stop_words_id", None)  # a place in memory, by which it knows stop words that it has checked
    with threadpool_limits(1):
        folds = make_folds(gold, seed, clusters)
        size = choose_size(system, counts, gold, folds, seed, say)
        pipeline[-1].set_params(**{system.size: size}).fit(counts, gold)
    return pipeline, {"size": size, "features": features, "joiner": joiner, "seed": seed}


def fit_carton(
    system: Baseline, train: Labelled, validation: Labelled, subwords: Subwords, seed: int, say: Say
) -> tuple[Any, dict[str, Any]]:
    """Fit every size of the code of Carton et al. (2020) and return the most accurate on ``validation``.

    The first of equally accurate sizes wins. TfidfVectorizer and the estimators use scikit-learn's defaults. The forest
    has a seed, which the authors' code does not set.

    Returns:
        The fitted pipeline over sub-words, and the facts for ``model.json``.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.pipeline import make_pipeline
    from threadpoolctl import threadpool_limits

    vectoriser = TfidfVectorizer()
    train_counts = vectoriser.fit_transform(subwords([join_text(one) for one in train[0]]))
    validation_counts = vectoriser.transform(subwords([join_text(one) for one in validation[0]]))
    vars(vectoriser).pop("_stop_words_id", None)  # as above; `transform` sets it, too
    gold, best, size, best_estimator = np.asarray(validation[1]), -1.0, 0.0, None
    with threadpool_limits(1):
        for value in load_preset(CARTON).training[system.words]:
            estimator = system.paper_estimator(value, seed)
            guesses = estimator.fit(train_counts, np.asarray(train[1])).predict(validation_counts)
            accuracy = float(np.mean(guesses == gold))
            say(f"{system.words} {value:g}: {accuracy:.3f} on the validation split")
            if accuracy > best:
                best, size, best_estimator = accuracy, value, estimator
    facts = {"size": size, "seed": seed, "features": "sub-words", "longest": subwords.longest}
    return make_pipeline(vectoriser, best_estimator), facts
