"""The papers' baselines: logistic regression and random forest over word counts, saved as skops files.

Their size (C, number of trees) is scanned as Carton et al. (2020) do, appendix A, by five folds of the training split,
so that the validation split stays unseen.
"""

from __future__ import annotations

import logging
import warnings
from abc import abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain
from types import MappingProxyType
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from eraser_hub.attribution.instances import Instance
from eraser_hub.attribution.models.scikit_learn import BLANK_SPLIT, FILE, TOKENIZER, open_subwords, save_pipeline
from eraser_hub.metrics.statistics import find_components, number_values
from eraser_hub.papers.presets import load_preset
from eraser_hub.records.errors import DataError, UsageError
from eraser_hub.records.files import replace_file

from .data import Training
from .system import System

CARTON = "carton2020"  # the paper whose code fits baselines in a way of its own
FOLDS = 5
Folds = Sequence[tuple[NDArray[np.int64], NDArray[np.int64]]]  # positions to train on and to test on
log = logging.getLogger("eraser_hub")


def join_text(one: Instance, joiner: str = " ") -> str:
    """Return the text that a pipeline reads: the query's tokens, then the documents' tokens."""
    return joiner.join([*one.query, *one.tokens])


@dataclass(frozen=True, kw_only=True)
class Baseline(System):
    """A scikit-learn classifier over counts, whose size is chosen.

    Attributes:
        features: what is counted: words, or characters (1- and 2-grams).
        folds: by which the size is chosen: documents (texts that share one are in one fold), or instances.
        tokenizer: of ``paper`` carton2020, which counts sub-words: a folder or Hub id; "" for the paper's.
        size: parameter of the estimator that is chosen.
        sizes: its values, the strongest regularisation first.
        size_name: what it is called in lines of progress and in the paper's preset.
        ours: other settings of the estimator; the paper's are scikit-learn's.
    """

    features: Literal["words", "characters"] = "words"
    folds: Literal["documents", "instances"] = "documents"
    tokenizer: str = ""
    validates: ClassVar[bool] = False
    files: ClassVar[tuple[str, ...]] = ("tokenizer",)
    size: ClassVar[str]
    sizes: ClassVar[tuple[float, ...]]
    size_name: ClassVar[str]
    ours: ClassVar[Mapping[str, Any]]

    @abstractmethod
    def estimator(self, **settings: Any) -> Any:
        """Return an unfitted estimator of scikit-learn."""

    def check(self, paper: str) -> None:
        """Refuse a tokenizer where no sub-words are counted."""
        if self.tokenizer and paper != CARTON:
            message = f"tokenizer: only the baselines of `paper` {CARTON} count sub-words"
            raise DataError(message, argument="model")

    def fit(self, training: Training) -> dict[str, Any]:
        """Fit and save a pipeline, as the paper's code does if the training names that paper."""
        pipeline, facts = self.fit_carton(training) if training.paper == CARTON else self.fit_pipeline(training)
        with replace_file(training.folder / FILE) as beside:
            save_pipeline(pipeline, beside)
        return {"kind": "scikit-learn", **facts}

    def build(self, features: str, size: float, seed: int) -> Any:
        """Return an unfitted pipeline: a counter of words or characters, and an estimator of the given size."""
        from sklearn.feature_extraction.text import CountVectorizer
        from sklearn.pipeline import make_pipeline

        if features == "words":
            counter = CountVectorizer(token_pattern=BLANK_SPLIT, min_df=1)
        else:
            counter = CountVectorizer(analyzer="char", ngram_range=(1, 2))
        return make_pipeline(counter, self.estimator(**{self.size: size}, random_state=seed, **self.ours))

    def fit_pipeline(self, training: Training) -> tuple[Any, dict[str, Any]]:
        """Choose the size by the mean accuracy of five folds, then fit on all instances.

        The same instances and seed give the same pipeline to the last bit, whatever the number of processors. Fitting
        uses one thread.

        Returns:
            The fitted pipeline and the facts for ``model.json``.

        Raises:
            DataError: no text at all.
        """
        from threadpoolctl import threadpool_limits

        (instances, labels), seed = training.data.train, training.seed
        if not any(one.query or one.tokens for one in instances):
            message = f"expected text to train on, found none in {len(instances)} instances"
            raise DataError(message, field="documents")
        joiner = "" if self.features == "characters" else " "
        clusters = cluster_texts(instances, training.data.by_name) if self.folds == "documents" else None
        if clusters is not None:
            count = f"{len(instances)} instances in {len(set(clusters.tolist()))} clusters that share documents"
            log.info(f"folds: {count}; no cluster is in two folds")
        gold = np.asarray(labels)
        pipeline = self.build(self.features, self.sizes[0], seed)
        counts = pipeline[0].fit_transform([join_text(one, joiner) for one in instances])
        _forget_place(pipeline[0])
        with threadpool_limits(1):
            size = self.choose_size(counts, gold, make_folds(gold, seed, clusters), seed)
            pipeline[-1].set_params(**{self.size: size}).fit(counts, gold)
        return pipeline, {"size": size, "features": self.features, "joiner": joiner}

    def choose_size(self, counts: Any, labels: NDArray[Any], folds: Folds, seed: int) -> float:
        """Return the size of the greatest mean accuracy over the folds; of equals the one of stronger regularisation.

        Args:
            counts: word counts of the instances, sparse (instances, words).
            labels: their labels.
            folds: the folds; without any, the middle size is taken.
            seed: of the estimators.
        """
        if not folds:
            size = self.sizes[len(self.sizes) // 2]
            log.info(f"{self.size_name} {size:g}: too few instances of each label to choose by")
            return size
        sums = [Fraction(0)] * len(self.sizes)  # exact: ties stay ties
        for train, test in folds:
            estimator = self.estimator(random_state=seed, warm_start=True, **self.ours)  # a fit continues the last one
            train_counts, test_counts = counts[train], counts[test]
            train_counts.sort_indices()  # once, and not in each fit
            for place, size in enumerate(self.sizes):
                estimator.set_params(**{self.size: size}).fit(train_counts, labels[train])
                hits = np.count_nonzero(estimator.predict(test_counts) == labels[test])
                sums[place] += Fraction(int(hits), len(test) * len(folds))
        means = ", ".join(f"{value:g} {float(mean):.3f}" for value, mean in zip(self.sizes, sums, strict=True))
        log.info(f"{self.size_name}, its accuracy over {len(folds)} folds: {means}")
        return self.sizes[sums.index(max(sums))]

    def fit_carton(self, training: Training) -> tuple[Any, dict[str, Any]]:
        """Fit every size of the code of Carton et al. (2020) and return the most accurate on the validation split.

        The first of equally accurate sizes wins. TfidfVectorizer and the estimators use scikit-learn's defaults. The
        forest has a seed, which the authors' code does not set.

        Returns:
            The fitted pipeline over sub-words, and the facts for ``model.json``.

        Raises:
            DataError: no validation split.
        """
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.pipeline import make_pipeline
        from threadpoolctl import threadpool_limits

        train, validation = training.data.train, training.data.validation
        if not validation[0]:
            message = f"`paper` {CARTON}: expected a validation split with labels to choose by; `eval_split` names one"
            raise UsageError(message, argument="eval_split")
        preset = load_preset(CARTON).training
        subwords = open_subwords(self.tokenizer or preset["tokenizer"], preset["pieces"])
        log.info(f"sub-words by {self.tokenizer or preset['tokenizer']}")
        subwords.tokenizer.save_pretrained(training.folder / TOKENIZER)
        vectoriser = TfidfVectorizer()
        train_counts = vectoriser.fit_transform(subwords([join_text(one) for one in train[0]]))
        validation_counts = vectoriser.transform(subwords([join_text(one) for one in validation[0]]))
        _forget_place(vectoriser)
        gold, best, size, chosen, tried = np.asarray(validation[1]), -1.0, 0.0, None, list[str]()
        with threadpool_limits(1):
            for value in preset[self.size_name]:
                estimator = self.estimator(**{self.size: value}, random_state=training.seed)
                guesses = estimator.fit(train_counts, np.asarray(train[1])).predict(validation_counts)
                accuracy = float(np.mean(guesses == gold))
                tried.append(f"{value:g} {accuracy:.3f}")
                if accuracy > best:
                    best, size, chosen = accuracy, value, estimator
        log.info(f"{self.size_name}, its accuracy on the validation split: {', '.join(tried)}")
        return make_pipeline(vectoriser, chosen), {"size": size, "features": "sub-words", "longest": subwords.longest}


def _forget_place(vectoriser: Any) -> None:
    """Remove a place in memory, by which it knows stop words that it has checked: equal runs differ in it."""
    vars(vectoriser).pop("_stop_words_id", None)


def make_folds(
    labels: NDArray[np.str_], seed: int, clusters: NDArray[np.int64] | None = None
) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Split positions into up to five stratified folds, each a pair (train, test).

    There are fewer folds if there are few instances or clusters, and none if only one label has two instances: a fold
    could then lack all labels but one. Folds of clusters that train on one label alone are left out.

    Args:
        labels: the label of each position.
        seed: of the draw.
        clusters: the cluster of each position, which lies in one fold; None if each position is one of its own.
    """
    from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

    number = min(FOLDS, *sorted(Counter(labels.tolist()).values())[-2:])
    number = number if clusters is None else min(number, len(set(clusters.tolist())))
    if number < 2:
        return []
    kind = StratifiedKFold if clusters is None else StratifiedGroupKFold
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of labels with fewer instances than folds: they are in some
        folds = list(kind(number, shuffle=True, random_state=seed).split(labels, labels, clusters))
    return [(train, test) for train, test in folds if len(test) and len(set(labels[train].tolist())) > 1]


def cluster_texts(instances: Sequence[Instance], by_name: bool) -> NDArray[np.int64] | None:
    """Return the number of each instance's cluster, int64 (instances,); None if no two share a document.

    Args:
        instances: the instances.
        by_name: documents are equal if their ids are; otherwise if their tokens are.
    """
    items = [one.names if by_name else one.documents for one in instances]
    owner = np.repeat(np.arange(len(items)), [len(documents) for documents in items])
    return find_components(owner, number_values(chain.from_iterable(items)), len(items))


@dataclass(frozen=True, kw_only=True)
class LogisticRegressionSystem(Baseline):
    """Logistic regression over counts of words or characters."""

    size, size_name = "C", "C"
    sizes = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)
    # few large steps: a third of the time that lbfgs takes on long sparse texts
    ours = MappingProxyType({"solver": "newton-cg", "max_iter": 2000})

    def estimator(self, **settings: Any) -> Any:
        """Return an unfitted logistic regression."""
        from sklearn.linear_model import LogisticRegression

        return LogisticRegression(**settings)


@dataclass(frozen=True, kw_only=True)
class RandomForestSystem(Baseline):
    """A random forest over counts of words or characters."""

    size, size_name = "n_estimators", "trees"
    sizes = (16, 32, 64, 128, 256, 512)
    ours = MappingProxyType({"n_jobs": 1})

    def estimator(self, **settings: Any) -> Any:
        """Return an unfitted random forest."""
        from sklearn.ensemble import RandomForestClassifier

        return RandomForestClassifier(**settings)
