"""Run the rows of a printed table, from data to score, and put each figure beside the printed one.

    OUT/reproduce.json           the settings; a run with other settings does not resume here
    OUT/models/MODEL/            a trained model, which several rows may share
    OUT/ROW.predictions.jsonl    its predictions (and ROW.predictions.jsonl.run.json), one file per random draw
    OUT/ROW.scores.json          its scores, an entry for `eraser-hub board --scores`

Finished files are reused; stopped trainings and explanations resume.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from eraser_hub.attribution.config import ExplainConfig
from eraser_hub.attribution.dataset import open_split
from eraser_hub.attribution.run import explain_runs, find_run_settings, make_draw_path, seed_runs
from eraser_hub.attribution.settings import RationaleSource
from eraser_hub.conversion.built import open_built
from eraser_hub.conversion.eraser.human_agreement import human_agreement
from eraser_hub.metrics.normalized_fidelity import NormalizedFidelity
from eraser_hub.papers import COMPREHENSIVE, find_comprehensive
from eraser_hub.records.errors import DataError
from eraser_hub.records.files import atomic_write
from eraser_hub.records.places import dataset_split
from eraser_hub.records.predictions import read_plain_rows
from eraser_hub.records.tables import Cell, Table, Tables
from eraser_hub.scoring.score import score
from eraser_hub.scoring.scored_split import ScoredSplit
from eraser_hub.scoring.settings import ScoreSettings
from eraser_hub.systems.data import has_labels
from eraser_hub.systems.run_folder import lock_run_folder, train_or_resume
from eraser_hub.systems.system import find_system
from eraser_hub.systems.train_config import TrainConfig

from .rows import ANNOTATORS, ENCODER, FAST, HUMAN, OWN, TABLES, PrintedRows, TableRow

log = logging.getLogger("eraser_hub")
Figures = dict[str, Any]  # column -> a number, a string, or (number, low, high)
LEVEL = 0.95  # of the intervals
RANDOM_DRAWS = 10  # random rankings that ERASER averages
FULL, RATIONALE = "full", "rationale"  # the texts that a model is trained on


@dataclass(frozen=True, kw_only=True)
class TableRun:
    """What the rows of a table share; another run in the same folder has to agree with all of it.

    Attributes:
        table, dataset, config, split: which figures are computed, and from what; split is empty until it is chosen.
        encoder, embeddings: a pretrained encoder and a file of word vectors, for rows that use one; empty for none.
        source: raw corpora with the files of human performance; empty for none.
        fast: whether sizes are smaller than the papers'.
        seed, seeds: the first seed, and their number.
    """

    table: str
    dataset: str
    config: str
    split: str = ""
    encoder: str = ""
    embeddings: str = ""
    source: str = ""
    fast: bool = False
    seed: int = 1
    seeds: int = 1

    def describe(self) -> dict[str, Any]:
        """Return the settings that two runs in one folder must share."""
        return {**asdict(self), "split": dataset_split(self.split), "dataset": str(Path(self.dataset).resolve())}


@dataclass(slots=True, repr=False)
class ReproducedTables(Tables):
    """The table, and where it is of another split the printed figures in a table of their own.

    Attributes:
        signatures: how it was made, one line.
    """

    signatures: list[str] = field(default_factory=list)

    @property
    def failed(self) -> bool:
        """Whether no row could run."""
        return all(cell.value is None for _, row in self.tables[0].rows for cell in row.values())


@dataclass(slots=True)
class RowRun:
    """The run of one row.

    Attributes:
        notes: Sentences on how to read its figures.
    """

    options: TableRun
    printed: PrintedRows
    row: TableRow
    out: Path
    notes: list[str] = field(default_factory=list)

    def compute_figures(self) -> Figures:
        """Return the row's figures by column.

        Raises:
            DataError: the row cannot run here; it says why.
        """
        if self.row.model == ANNOTATORS:
            return self._compute_agreement()
        if self.options.table == "carton2020-3":
            return self._compute_regimes()
        if self.options.table == "carton2020-figure-2":
            return self._compute_fidelity()
        return self._compute_scores()

    # --- data to predictions -------------------------------------------------------------------------------------

    def _train_model(self, train_on: str = FULL) -> Path:
        """Train the model if needed and return its folder."""
        folder = self.out / "models" / (self.row.model if train_on == FULL else f"{self.row.model}-{train_on}")
        # the row's predictions are scored instead: figures of the whole split would double the time
        return train_or_resume(folder, partial(self._make_train_config, train_on), log.info)

    def _make_train_config(self, train_on: Any) -> TrainConfig:
        options, model = self.options, self.row.model
        if model == ENCODER and not options.encoder:
            message = "this row fine-tunes one, a transformers folder or Hub id; there is no default"
            raise DataError(message, argument="encoder")
        system: Any = find_system(model)
        linear, paper = "tokenizer" in system.takes, self.printed.preset
        if linear and not options.encoder:
            paper = ""
            remedy = "with `encoder` as the authors' code does it, TF-IDF over that encoder's sub-words"
            self.notes.append(f"{self.row.system}: over counted words, its size chosen by five folds; {remedy}")
        fast_options = FAST.get_train_options(model) if options.fast else {}
        # `fast` leaves out an optional encoder
        encoder_use = getattr(system, "encoder", "no")
        encoder = (
            options.encoder if encoder_use == "required" or (encoder_use == "optional" and not options.fast) else ""
        )
        if options.encoder and encoder_use == "optional" and not encoder:
            self.notes.append(f"{self.row.system}: `fast`: learned embeddings in the place of the encoder")
        over_words = "embeddings" in system.takes and encoder_use != "required" and not encoder
        return TrainConfig(
            dataset=options.dataset,
            config=options.config,
            model=options.encoder if model == ENCODER else model,
            seed=options.seed,
            encoder=encoder,
            embeddings=options.embeddings if over_words else "",
            train_on=train_on,
            paper=paper,
            tokenizer=options.encoder if linear and paper else "",
            **fast_options,
        )

    def _predict(self, model: Path, name: str) -> tuple[list[Path], tuple[float, ...]]:
        """Return the files of predictions, one per draw, and their AOPC bins."""
        options, method = self.options, self.row.method
        sample = FAST.samples.get(self.row.model, FAST.sample) if options.fast else None
        rationales = RationaleSource.HUMAN if method == HUMAN else ""
        job = ExplainConfig(
            options.dataset, options.config, options.split, str(model), sample=sample, rationales=rationales
        )
        choices: dict[str, Any] = {"method": None if method in (OWN, HUMAN) else method, "seed": options.seed}
        choices |= FAST.settings if options.fast else {}
        settings, _ = find_run_settings(job, self.printed.preset, **choices)
        draws = 1 if method != "random" else FAST.random_draws if options.fast else RANDOM_DRAWS
        out = self.out / f"{name}.predictions.jsonl"
        outs = [out] if draws == 1 else [make_draw_path(out, draw) for draw in range(1, draws + 1)]
        for report in explain_runs(job, seed_runs(settings, outs), resume=True):
            for line in report.lines():
                log.info(line)
        if draws > 1:
            self.notes.append(f"random rankings: the mean of {draws} draws, without an interval")
        return outs, settings.for_kind("eraser").bins

    # --- predictions to figures ----------------------------------------------------------------------------------

    def _score_predictions(self, path: Path, bins: Sequence[float] = (), suffix: str = "") -> dict[str, Any]:
        """Return flat scores with intervals; they are also written beside the predictions, for the board.

        Args:
            path: The predictions.
            bins: Their AOPC bins.
            suffix: Follows the system's name on the board if several lines share it, e.g. draws; "" for nothing.
        """
        options = self.options
        source = ScoredSplit(split=options.split, dataset=Path(options.dataset), config=options.config)
        settings = ScoreSettings(confidence_level=LEVEL, only_predicted=True, people=False, seed=options.seed)
        scored = score(source, path, replace(settings, aopc_thresholds=tuple(bins)) if bins else settings)
        scored.name = ", ".join(filter(None, [self.row.system, suffix]))
        scored.save(path.with_name(make_score_file_name(path.name)))
        if found := re.search(r"\|scored:(\d+/\d+)", scored.signature):
            self.notes.append(f"scored:{found[1]} annotations")
        return scored.as_json()

    def _compute_scores(self) -> Figures:
        """Return the scores of the table's columns."""
        paths, bins = self._predict(self._train_model(), make_file_name(self.row.system))
        flats = [self._score_predictions(path, bins) for path in paths]
        if len(flats) == 1:
            return {key: get_with_interval(flats[0], key) for key in self.printed.columns}
        numbers = {key: [flat[key] for flat in flats if flat.get(key) is not None] for key in self.printed.columns}
        return {key: sum(values) / len(values) for key, values in numbers.items() if values}

    def _compute_regimes(self) -> Figures:
        """Return the accuracies of the three regimes of Carton et al. (2020)."""
        name, figures = make_file_name(self.row.system), Figures()
        (full,), _ = self._predict(self._train_model(), name)
        (rationale,), _ = self._predict(self._train_model(RATIONALE), f"{name}-{RATIONALE}")
        for column, path, scores in (
            ("no_rationale", full, "classification_scores"),
            ("eval_rationale", full, "sufficiency_classification_scores"),
            ("train_eval_rationale", rationale, "sufficiency_classification_scores"),
        ):
            answers = self.out / f"{name}-{column}.predictions.jsonl"
            lines = [make_answer_row(row, scores) for _, row in read_plain_rows(path)]
            atomic_write(answers, "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines).encode())
            scored = self._score_predictions(answers, suffix=column.replace("_", " "))
            figures[column] = get_with_interval(scored, "accuracy")
        return figures

    def _compute_fidelity(self) -> Figures:
        """Return accuracy, and clipped sufficiency and comprehensiveness of human rationales."""
        (path,), _ = self._predict(self._train_model(), make_file_name(self.row.system))
        rows = [row for _, row in read_plain_rows(path)]
        ids = {row["annotation_id"] for row in rows}
        split = open_split(self.options.dataset, self.options.config, self.options.split)
        predicted = [one for one in split.instances() if one.id in ids]
        gold = [{"annotation_id": one.id, "documents": [{"docid": name} for name in one.names]} for one in predicted]
        settings = {"confidence_level": LEVEL, "seed": self.options.seed}
        flat = NormalizedFidelity(keep_in_memory=True).compute(predictions=rows, references=gold, **settings)
        assert flat is not None  # of evaluate, None in processes that only gather
        accuracy = get_with_interval(self._score_predictions(path), "accuracy")
        keys = ("sufficiency", "comprehensiveness")
        return {"accuracy": accuracy, **{key: get_with_interval(flat, key) for key in keys}}

    def _compute_agreement(self) -> Figures:
        """Return the agreement of the annotators of a release's human-performance files."""
        corpus = Path(self.options.source) / self.options.config if self.options.source else None
        table_cells, note = human_agreement(open_built(self.options.dataset), self.options.config, corpus)
        if not table_cells:
            words = note or "expected human_performance*.jsonl of the release in `source` FOLDER/CONFIG, found none"
            raise DataError(words, file=corpus)
        self.notes.append(note)
        return {key: cell.value for key, cell in table_cells.items()}


def get_with_interval(flat: Mapping[str, Any], key: str) -> Any:
    """Return a score with the ends of its interval; None if there is no such score."""
    value, ends = flat.get(key), flat.get(f"{key}_ci")
    return (value, *ends) if value is not None and ends is not None else value


def make_answer_row(row: dict[str, Any], scores: str) -> dict[str, Any]:
    """Return a prediction without rationale: the label of highest probability by one of the score fields."""
    probabilities = row[scores]
    best = max(probabilities, key=probabilities.__getitem__)
    classification = {"classification": best, "classification_scores": probabilities}
    return {"annotation_id": row["annotation_id"], "rationales": [], **classification}


def make_score_file_name(predictions: str) -> str:
    """Return the name of the score file of a predictions file.

    >>> make_score_file_name("lei.predictions.jsonl"), make_score_file_name("random.predictions.draw-01.jsonl")
    ('lei.scores.json', 'random.draw-01.scores.json')
    """
    return predictions.replace(".predictions", "").removesuffix(".jsonl") + ".scores.json"


def make_file_name(system: str) -> str:
    """Return a row's name as part of a file name.

    >>> make_file_name("Lei et al. (2016) (u)")
    'lei-et-al-2016-u'
    """
    return re.sub(r"[^a-z0-9]+", "-", system.lower()).strip("-")


def run_table(options: TableRun, out: Path) -> ReproducedTables:
    """Run every row that can run here; a note below the table explains each other row.

    Raises:
        DataError: no such dataset, config or split; ``out`` holds another run.
        BusyError: another run is at work in ``out``.
    """
    printed, notes = TABLES[options.table], list[str]()
    options = _choose_split(options, notes)
    with lock_run_folder(out, "reproduce", options.describe()):
        title, columns = f"{printed.title}: {options.config}", _choose_columns(printed, options.config)
        source = _describe_source(printed, options.config)
        apart = _find_reason_apart(options)
        table = Table(options.table, title, ("system",), columns, source="" if apart else source)
        for row in printed.rows:
            figures = _run_row(options, printed, row, out, notes)
            cells = {key: printed.make_cell(row, options.config, key, figures.get(key)) for key in columns}
            cells = {key: replace(cell, printed=None) for key, cell in cells.items()} if apart else cells
            table.add(row.system, **cells)
    table.notes += _describe_table(options, printed) + notes
    signature = f"reproduce|{options.table}|{options.config}|seed:{options.seed}"
    signature += (f"|seeds:{options.seeds}" if options.seeds > 1 else "") + ("|fast" if options.fast else "")
    tables = [table, _make_printed_table(options, printed, table, apart)] if apart else [table]
    return ReproducedTables(options.config, tables, [signature])


def _find_reason_apart(options: TableRun) -> str:
    """Return why the print stands in a table of its own; "" if it is of the same split, hence of the same gold."""
    split, printed = dataset_split(options.split), "test"
    if options.table == "eraser-2" or split == printed:
        return ""
    gold = {name: COMPREHENSIVE[find_comprehensive(options.config, name)] for name in (split, printed)}
    return (
        f"scored on {split} ({gold[split]}), printed of {printed} ({gold[printed]}): other texts and other gold, "
        "so the figures do not compare"
    )


def _make_printed_table(options: TableRun, printed: PrintedRows, table: Table, reason: str) -> Table:
    """Return the printed figures in a table of their own, with the reason."""
    title, source = f"{table.title}, as printed", _describe_source(printed, options.config)
    own = Table(f"{table.name}-printed", title, ("system",), table.columns, source=source, notes=[reason])
    for row in printed.rows:
        figures = printed.get_printed(row, options.config)
        own.add(row.system, **{key: Cell(figures[key]) for key in table.columns if key in figures})
    return own


def _run_row(options: TableRun, printed: PrintedRows, row: TableRow, out: Path, notes: list[str]) -> Mapping[str, Any]:
    """Return a row's figures by column; if it cannot run, an empty mapping, and a note says why."""
    runs = list[Figures]()
    for seed in range(options.seed, options.seed + options.seeds):
        log.info(f"--- {row.system}" + (f", seed {seed}" if options.seeds > 1 else ""))
        folder = out / f"seed-{seed}" if options.seeds > 1 else out
        folder.mkdir(parents=True, exist_ok=True)
        work = RowRun(replace(options, seed=seed), printed, row, folder)
        try:
            runs.append(work.compute_figures())
        except DataError as error:
            notes.append(f"{row.system}: not run: {error}")
            log.info(notes[-1])
            return {}
        notes += [note for note in work.notes if note not in notes]
    return runs[0] if len(runs) == 1 else average_figures(runs)


def average_figures(runs: Sequence[Figures]) -> Figures:
    """Return the mean of each figure over seeds, with its standard deviation.

    >>> average_figures([{"auprc": (0.25, 0.2, 0.3)}, {"auprc": 0.75}])
    {'auprc': '0.500 ± 0.354'}
    """
    averages = Figures()
    for key in runs[0]:
        values: list[Any] = [run[key][0] if isinstance(run.get(key), tuple) else run.get(key) for run in runs]
        if any(isinstance(value, str) for value in values):  # of annotators, who have no seeds
            averages[key] = runs[0][key]
        elif None not in values:
            averages[key] = f"{fmean(values):.3f} ± {stdev(values):.3f}"
    return averages


def _choose_split(options: TableRun, notes: list[str]) -> TableRun:
    """Return the settings with a split that has labels."""
    if options.split or options.table == "eraser-2":
        return options
    with suppress(DataError):
        if has_labels(open_split(options.dataset, options.config, "test")):
            return replace(options, split="test")
    split = open_split(options.dataset, options.config, "validation")  # its error names the splits that there are
    if not has_labels(split):
        message = "expected a split with labels, test or validation, found none"
        raise DataError(message, file=options.dataset)
    why = "the dataset has no test split with labels; the print is of test"
    notes.append(f"scored on validation, which also stops the training of networks: {why}")
    return replace(options, split="validation")


def _choose_columns(printed: PrintedRows, config: str) -> tuple[str, ...]:
    """Return the table's columns; of two measures of performance, the one printed for this config."""
    figures = {key for row in printed.rows for key in printed.get_printed(row, config)}
    accuracy = "accuracy" in figures
    is_redundant = {"macro_f1": accuracy, "accuracy": "macro_f1" in printed.columns and not accuracy}
    return tuple(name for name in printed.columns if not is_redundant.get(name))


def _describe_source(printed: PrintedRows, config: str) -> str:
    shorts = dict.fromkeys(short for row in printed.rows for short, _ in printed.find_results(row, config))
    numbers = {number for _, number in printed.papers}
    return ", ".join(f"{short}, Table {number}" for short in shorts for number in numbers)


def _describe_table(options: TableRun, printed: PrintedRows) -> list[str]:
    """Return notes on how to read the table."""
    words = [printed.note] if printed.note else []
    results = (pair for row in printed.rows for pair in printed.find_results(row, options.config))
    words += dict.fromkeys(f"{short}: {result.settings}" for short, result in results)
    if options.seeds > 1:
        words.append(f"means of {options.seeds} seeds, ± their standard deviation")
    if options.encoder:
        words.append(f"encoder: {Path(options.encoder).name}")
    if options.fast:
        models = dict.fromkeys(row.model for row in printed.rows if row.model != ANNOTATORS)
        lime = f"LIME with {FAST.settings['lime_samples']} samples"
        words.append(f"`fast`: {FAST.sample} instances of {options.split or 'the split'}, {lime}")
        smaller = {model: FAST.describe(model) for model in models}
        names = {ENCODER: options.encoder and Path(options.encoder).name}
        words += [f"`fast`, {names.get(model, model)}: {settings}" for model, settings in smaller.items() if settings]
    return words
