"""Files beside predictions: the record of the run that made them, and the scores of them."""

from __future__ import annotations

from dataclasses import dataclass

from .record import Json, column, describe


@dataclass(kw_only=True)
class RunDataRecord:
    """The data of a run."""

    dataset: str | None = column("the dataset's name")
    config: str | None = column("the configuration")
    split: str | None = column("the split")
    limit: int | None = column("the most instances that were asked for")
    digest: str | None = column("digest of the rows that decide the results")


@dataclass(kw_only=True)
class RunRecord:
    """The record of a run, beside its predictions OUT as OUT.run.json."""

    signature: str = column("the settings that make two results comparable", required=True)
    data: RunDataRecord | None = column("the data")
    predictions_sha256: str | None = column("SHA-256 of the file OUT")
    instances: int | None = column("the number of instances", low=0)
    settings: Json | None = column("all settings")
    model: Json | None = column("the model and its digest")
    counts: Json | None = column("how often the run had to choose, by reason")
    notes: list[str] | None = column("lines for the reader")


@dataclass(kw_only=True)
class ScoreFileRecord:
    """The score file of predictions; scores and blocks of scores stand beside these keys."""

    system: str | None = column("the system's name")
    dataset: str | None = column("the built dataset")
    config: str | None = column("the configuration")
    split: str | None = column("the split")
    run: str | None = column("signature of the run that made the predictions")
    runs: int | None = column("the number of runs that the scores are means of", low=2)
    gold: Json | None = column("annotations with and without gold rationale, mean share of gold tokens, split")
    people: Json | None = column("scores of each annotator against the majority of the others: their mean and spread")
    chance: Json | None = column("scores of random rationales of the same size, of agreement")
    data_digest: str | None = column("digest of the gold, SHA-256; see docs/score-predictions.md")
    predictions_sha256: list[str] | None = column("SHA-256 of each file of predictions")


RUN, SCORE_FILE = describe(RunRecord), describe(ScoreFileRecord)
