"""What is scored, against what, and how."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from eraser_hub.metrics.agreement import AgreementSettings
from eraser_hub.metrics.clusters import AUTO, NONE
from eraser_hub.metrics.erasure import AOPC_THRESHOLDS
from eraser_hub.metrics.presets import PAPERS, check_paper
from eraser_hub.metrics.rankings import check_policy
from eraser_hub.metrics.resampling import CI_METHODS, DEFAULT_LEVEL, DEFAULT_RESAMPLES, check_settings
from eraser_hub.records.errors import DataError
from eraser_hub.records.hub import place_of
from eraser_hub.records.splits import dataset_split, release_split

from .labels import LabelNames, labels_of_corpus

if TYPE_CHECKING:
    from eraser_hub.records.built import BuiltDataset


@dataclass(frozen=True)
class ScoreSettings:
    """What makes the numbers.

    Attributes:
        iou_thresholds: as asked for; the flat keys of the first (or of 0.5, where it is among them) have no suffix.
        aopc_thresholds: those that every instance must have.
        strict: demand labels, class scores and comprehensiveness scores.
        auprc_policy: what a document without positives counts, see `rankings.AUPRC_POLICIES`.
        random_baseline: shuffles of the soft scores to average; 0: none.
        sentence_threshold: a sentence is predicted from this score on.
        per_instance: keep every score of every instance.
        confidence_level, n_resamples, seed, ci_method: of the bootstrap's intervals, see `resampling.intervals`.
        by: a column of the annotations to break scores down by.
        cluster_by: what intervals and tests draw together, see `clusters.clustered`.
        only_predicted: leave out annotations without an instance.
        mask_leak: also see how well the shapes of hard rationales tell the model's labels, see `leaks`.
        paper: whose choices are made; see `metrics.presets`.
        totals_only: keep no row per annotation where the rest of the settings does not need any: less memory.
    """

    iou_thresholds: tuple[float, ...] = (0.5,)
    aopc_thresholds: tuple[float, ...] = AOPC_THRESHOLDS
    strict: bool = False
    auprc_policy: str = "reference"
    random_baseline: int = 0
    sentence_threshold: float = 0.5
    per_instance: bool = False
    confidence_level: float | None = None
    n_resamples: int | None = None
    seed: int = 0
    ci_method: str = CI_METHODS[0]
    by: str | None = None
    cluster_by: str = AUTO
    only_predicted: bool = False
    mask_leak: bool = False
    paper: str | None = None
    totals_only: bool = False

    @property
    def totals(self) -> bool:
        """Whether sums over all annotations are enough, and no row per annotation need be kept."""
        rows = self.per_instance or self.by is not None
        return self.totals_only and not rows and self.confidence_level is None and self.n_resamples is None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the annotations that are asked for."""
        clusters = None if self.cluster_by in (AUTO, NONE) else self.cluster_by
        return tuple(dict.fromkeys(name for name in (self.by, clusters) if name is not None))

    @property
    def main_iou(self) -> float:
        """The threshold whose keys have no suffix."""
        return 0.5 if 0.5 in self.iou_thresholds else self.iou_thresholds[0]

    @property
    def agreement(self) -> AgreementSettings:
        """Those of agreement."""
        return AgreementSettings(
            tuple(dict.fromkeys(self.iou_thresholds)),
            self.main_iou,
            self.auprc_policy,
            self.random_baseline,
            self.sentence_threshold,
        )

    def check(self) -> None:
        """Raise a ValueError for a setting out of its range."""
        for name, low in (("iou_thresholds", False), ("aopc_thresholds", True)):
            values = getattr(self, name)
            if not values:
                raise DataError(f"{name}: expected at least one", rule="option-value")
            for value in values:
                if not (0 <= value <= 1 if low else 0 < value <= 1):
                    expected = "[0, 1]" if low else "(0, 1]"
                    raise DataError(f"{name}: expected a number in {expected}, found {value}", rule="option-value")
        check_policy(self.auprc_policy)
        check_paper(self.paper, *PAPERS)
        if self.random_baseline < 0:
            words = f"random_baseline: expected a number of shuffles, found {self.random_baseline}"
            raise DataError(words, rule="option-value")
        check_settings(
            DEFAULT_LEVEL if self.confidence_level is None else self.confidence_level,
            DEFAULT_RESAMPLES if self.n_resamples is None else self.n_resamples,
            self.ci_method,
        )


@dataclass(frozen=True)
class Inputs:
    """What to score: a corpus folder with its split (or another annotation file), and the predictions.

    Instead of the corpus folder a built dataset (a folder of Parquet files) and its config.
    """

    data_dir: Path | None
    split: str
    results: Path
    annotations: Path | None = None
    label_names: tuple[str, ...] | None = None
    dataset: Path | None = None
    config: str | None = None

    @property
    def holds_tokens(self) -> bool:
        """Whether the dataset's rows are tokens and their mask (``human_rationales``)."""
        return self.dataset is not None and "rationale_mask" in self.built.columns(self.built_config)

    @property
    def holds_pairs(self) -> bool:
        """Whether the dataset's rows are records of the perturbation benchmark."""
        return self.dataset is not None and "sample_type" in self.built.columns(self.built_config)

    @property
    def names(self) -> dict[str, str]:
        """What is answered, as score files say it: the dataset (where it is a built one), config and split."""
        if self.dataset is not None:
            built = {"dataset": place_of(self.dataset).dataset, "config": self.config or ""}
        else:
            built = {"config": self.config or self.corpus.resolve().name}
        return built | {"split": dataset_split(self.split)}

    @property
    def corpus(self) -> Path:
        """The corpus folder."""
        if self.data_dir is None:
            raise ValueError("expected a corpus folder or a dataset, found neither")
        return self.data_dir

    @property
    def annotation_file(self) -> Path:
        """The file of annotations of a corpus folder: DIR/SPLIT.jsonl, unless it is named.

        The dataset's split names are understood as well as the release's.

        Raises:
            DataError: there is no such file.
        """
        if self.annotations is not None:
            return self.annotations
        for name in (release_split(self.split), self.split):
            path = self.corpus / f"{name}.jsonl"
            if path.is_file():
                return path
        message = f"no annotation file {release_split(self.split)}.jsonl for the split {self.split!r}"
        raise DataError(message, rule="file-missing", file=self.corpus)

    @cached_property
    def built(self) -> BuiltDataset:
        """The built dataset, which its card describes."""
        # the Arrow libraries are slow to import: only where they are needed
        from eraser_hub.records.built import open_built

        if self.dataset is None:
            raise ValueError("expected a dataset, found none")
        return open_built(self.dataset)

    @property
    def built_config(self) -> str:
        """The config of the built dataset: as given, else its card's default."""
        return self.built.default_config if self.config is None else self.config

    def labels(self) -> LabelNames:
        """The labels: as given, else as `labels.labels_of_corpus` or a built dataset's card has them."""
        if self.label_names is not None:
            return LabelNames(self.label_names)
        if self.dataset is not None:
            return LabelNames(self.built.label_names(self.built_config))
        return labels_of_corpus(self.corpus, self.config, self.annotation_file)
