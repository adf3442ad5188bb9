"""Run the rows of a printed table, from data to score, and put each figure beside its print.

    OUT/reproduce.json           what is reproduced; a run with other settings does not go on from here
    OUT/models/MODEL/            a trained model, which several rows may share
    OUT/ROW.predictions.jsonl    its predictions (and ROW.predictions.jsonl.run.json), a draw each of random ones
    OUT/ROW.scores.json          its scores, an entry for `eraser-hub board --scores`

Whatever stands there already is taken up, a stopped training and a stopped explanation too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

from eraser_hub.attribution.config import ExplainConfig
from eraser_hub.attribution.dataset import open_split
from eraser_hub.attribution.run import explain_runs, find_run_settings, make_draw_path, seed_runs
from eraser_hub.attribution.settings import HUMAN as HUMAN_RATIONALES
from eraser_hub.conversion.eraser.human_agreement import human_agreement
from eraser_hub.metrics.normalized_fidelity import NormalizedFidelity
from eraser_hub.records.atomic import atomic_write
from eraser_hub.records.built import open_built
from eraser_hub.records.errors import DataError, shown
from eraser_hub.records.predictions import plain_rows
from eraser_hub.records.splits import dataset_split
from eraser_hub.records.tables import Table, Tables
from eraser_hub.scoring.score import score
from eraser_hub.scoring.scored_split import ScoredSplit
from eraser_hub.scoring.settings import ScoreSettings
from eraser_hub.systems.data import has_labels
from eraser_hub.systems.recipe import Recipe, Say
from eraser_hub.systems.system import find_system

from .folder import kept, trained
from .plans import ReproducePlan
from .rows import ANNOTATORS, ENCODER, FAST, HUMAN, OWN, TABLES, PrintedRows, Row

Figures = dict[str, Any]  # column -> a number, a string, or (number, low, high)
LEVEL = 0.95  # of the intervals
RANDOM_DRAWS = 10  # random rankings that ERASER averages
FULL, RATIONALE = "full", "rationale"  # the texts that a model is trained on


@dataclass(slots=True)
class Work:
    """A row on its way.

    Attributes:
        notes: sentences on how to read its figures.
    """

    plan: ReproducePlan
    printed: PrintedRows
    row: Row
    out: Path
    say: Say
    notes: list[str] = field(default_factory=list)

    def figures(self) -> Figures:
        """The row's figures by column.

        Raises:
            DataError: the row cannot run here; it says why.
        """
        if self.row.model == ANNOTATORS:
            return self._annotators()
        if self.plan.table == "carton2020-3":
            return self._regimes()
        if self.plan.table == "carton2020-figure-2":
            return self._fidelity()
        return self._scores()

    # --- data to predictions -------------------------------------------------------------------------------------

    def _model(self, train_on: str = FULL) -> Path:
        """The trained model's folder."""
        folder = self.out / "models" / (self.row.model if train_on == FULL else f"{self.row.model}-{train_on}")
        # the row's own predictions are scored: figures of the whole split would take as long again, and stand nowhere
        return trained(folder, partial(self._recipe, train_on), self.say, figures=False)

    def _recipe(self, train_on: Any, stopped: bool) -> Recipe:
        plan, model = self.plan, self.row.model
        if model == ENCODER and not plan.encoder:
            message = "this row fine-tunes one, a transformers folder or Hub id; there is no default"
            raise DataError(message, rule="option-missing", argument="encoder")
        system: Any = find_system(model)
        linear, paper = "tokenizer" in system.takes, self.printed.preset
        if linear and not plan.encoder:
            paper = ""
            theirs = "with `encoder` as the authors' code does it, TF-IDF over that encoder's sub-words"
            self.notes.append(f"{self.row.system}: over counted words, its size chosen by five folds; {theirs}")
        small = FAST.recipe_of(model) if plan.fast else {}
        # an encoder that may be left out is left out where things are to be fast
        wants = getattr(system, "encoder", "no")
        encoder = plan.encoder if wants == "required" or (wants == "optional" and not plan.fast) else ""
        if plan.encoder and wants == "optional" and not encoder:
            self.notes.append(f"{self.row.system}: `fast`: learned embeddings in the place of the encoder")
        over_words = "embeddings" in system.takes and wants != "required" and not encoder
        return Recipe(
            dataset=plan.dataset,
            config=plan.config,
            model=plan.encoder if model == ENCODER else model,
            seed=plan.seed,
            encoder=encoder,
            embeddings=plan.embeddings if over_words else "",
            resume=stopped,
            train_on=train_on,
            paper=paper,
            tokenizer=plan.encoder if linear and paper else "",
            **small,
        )

    def _predictions(self, model: Path, name: str) -> tuple[list[Path], tuple[float, ...]]:
        """The files of predictions, one for each draw, and their AOPC bins."""
        plan, method = self.plan, self.row.method
        sample, human = FAST.samples.get(self.row.model, FAST.sample) if plan.fast else None, method == HUMAN
        rationales = HUMAN_RATIONALES if human else ""
        job = ExplainConfig(plan.dataset, plan.config, plan.split, str(model), sample=sample, rationales=rationales)
        options = {"method": None if method in (OWN, HUMAN) else method, "seed": plan.seed}
        settings, _ = find_run_settings(job, self.printed.preset, **options, **(FAST.settings if plan.fast else {}))
        draws = 1 if method != "random" else FAST.random_draws if plan.fast else RANDOM_DRAWS
        out = self.out / f"{name}.predictions.jsonl"
        outs = [out] if draws == 1 else [make_draw_path(out, draw) for draw in range(1, draws + 1)]
        for line in (
            line for report in explain_runs(job, seed_runs(settings, outs), resume=True) for line in report.lines()
        ):
            self.say(line)
        if draws > 1:
            self.notes.append(f"random rankings: the mean of {draws} draws, without an interval")
        return outs, settings.for_kind("eraser").bins

    # --- predictions to figures ----------------------------------------------------------------------------------

    def _score(self, path: Path, bins: Sequence[float] = (), of: str = "") -> dict[str, Any]:
        """Flat scores with intervals; also written beside the predictions, for the board.

        Args:
            of: what the system's name needs beside it on the board, where lines of one name are draws; "" for nothing.
        """
        plan = self.plan
        source = ScoredSplit(split=plan.split, dataset=Path(plan.dataset), config=plan.config)
        settings = ScoreSettings(confidence_level=LEVEL, only_predicted=True, seed=plan.seed)
        scored = score(source, path, replace(settings, aopc_thresholds=tuple(bins)) if bins else settings)
        scored.name = ", ".join(filter(None, [self.row.system, of]))
        scored.save(path.with_name(score_file_name(path.name)))
        self.notes += [note for note in scored.notes if note.startswith("scored:")]
        return {**scored.blocks.get("agreement", {}), **scored.blocks.get("faithfulness", {})}

    def _scores(self) -> Figures:
        """The keys of the scorer."""
        paths, bins = self._predictions(self._model(), file_name(self.row.system))
        flats = [self._score(path, bins) for path in paths]
        if len(flats) == 1:
            return {key: with_interval(flats[0], key) for key in self.printed.columns}
        numbers = {key: [flat[key] for flat in flats if flat.get(key) is not None] for key in self.printed.columns}
        return {key: sum(values) / len(values) for key, values in numbers.items() if values}

    def _regimes(self) -> Figures:
        """Accuracy trained and evaluated on full texts; evaluated on rationales; trained on them too."""
        name, figures = file_name(self.row.system), Figures()
        (full,), _ = self._predictions(self._model(), name)
        (reduced,), _ = self._predictions(self._model(RATIONALE), f"{name}-{RATIONALE}")
        for column, path, scores in (
            ("no_rationale", full, "classification_scores"),
            ("eval_rationale", full, "sufficiency_classification_scores"),
            ("train_eval_rationale", reduced, "sufficiency_classification_scores"),
        ):
            answers = self.out / f"{name}-{column}.predictions.jsonl"
            lines = [answer(row, scores) for _, row in plain_rows(path)]
            atomic_write(answers, "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines).encode())
            figures[column] = with_interval(self._score(answers, of=column.replace("_", " ")), "accuracy")
        return figures

    def _fidelity(self) -> Figures:
        """Accuracy, and clipped sufficiency and comprehensiveness of human rationales."""
        (path,), _ = self._predictions(self._model(), file_name(self.row.system))
        rows = [row for _, row in plain_rows(path)]
        ids = {row["annotation_id"] for row in rows}
        split = open_split(self.plan.dataset, self.plan.config, self.plan.split)
        asked = [one for one in split.instances() if one.id in ids]
        gold = [{"annotation_id": one.id, "documents": [{"docid": name} for name in one.names]} for one in asked]
        how = {"confidence_level": LEVEL, "seed": self.plan.seed}
        flat = NormalizedFidelity(keep_in_memory=True).compute(predictions=rows, references=gold, **how)
        assert flat is not None  # of evaluate, None in processes that only gather
        accuracy = with_interval(self._score(path), "accuracy")
        return {"accuracy": accuracy, **{key: with_interval(flat, key) for key in ("sufficiency", "comprehensiveness")}}

    def _annotators(self) -> Figures:
        """Agreement of the annotators of a release's human-performance files."""
        corpus = Path(self.plan.source) / self.plan.config if self.plan.source else None
        cells, note = human_agreement(open_built(self.plan.dataset), self.plan.config, corpus)
        if not cells:
            words = note or "expected human_performance*.jsonl of the release in `source` FOLDER/CONFIG, found none"
            raise DataError(words, rule="file-missing", file=corpus)
        self.notes.append(note)
        return {key: cell.value for key, cell in cells.items()}


def with_interval(flat: Mapping[str, Any], key: str) -> Any:
    """A score with the ends of its interval; None where there is no such score."""
    value, ends = flat.get(key), flat.get(f"{key}_ci")
    return (value, *ends) if value is not None and ends is not None else value


def answer(row: dict[str, Any], scores: str) -> dict[str, Any]:
    """The label of highest probability by one of a prediction's score fields, as a prediction without rationale."""
    probabilities = row[scores]
    best = max(probabilities, key=probabilities.__getitem__)
    told = {"classification": best, "classification_scores": probabilities}
    return {"annotation_id": row["annotation_id"], "rationales": [], **told}


def score_file_name(predictions: str) -> str:
    """The name of the score file of a predictions file.

    >>> score_file_name("lei.predictions.jsonl"), score_file_name("random.predictions.draw-01.jsonl")
    ('lei.scores.json', 'random.draw-01.scores.json')
    """
    return predictions.replace(".predictions", "").removesuffix(".jsonl") + ".scores.json"


def file_name(system: str) -> str:
    """A row's name as that of its files.

    >>> file_name("Lei et al. (2016) (u)")
    'lei-et-al-2016-u'
    """
    return re.sub(r"[^a-z0-9]+", "-", system.lower()).strip("-")


def reproduce(plan: ReproducePlan, say: Say = lambda words: None) -> Tables:
    """Run every row that can run here; a row that cannot says why below the table.

    Args:
        plan: what is reproduced; its folder keeps what is done, and a later run goes on from there.
        say: called with lines of progress.

    Raises:
        DataError: an unknown table; no such dataset, config or split; ``out`` holds another run.
        BusyError: another run is at work in ``out``.
    """
    if plan.table not in TABLES:
        words = f"expected one of {', '.join(TABLES)}; found {shown(plan.table)}"
        raise DataError(words, rule="option-value", argument="table")
    printed, notes = TABLES[plan.table], list[str]()
    plan, out = _with_split(plan, notes), plan.out or Path("reproduce") / f"{plan.table}-{plan.config}"
    with kept(out, "reproduce", _settings(plan)):
        title, columns = f"{printed.title}: {plan.config}", _columns(printed, plan.config)
        source = _source(printed, plan.config)
        table = Table(plan.table, title, ("system",), columns, source=source, better=printed.better)
        for row in printed.rows:
            figures = _figures(plan, printed, row, out, notes, say)
            cells = {name: printed.cell(row, plan.config, name, figures.get(name)) for name in table.columns}
            table.add(row.system, **cells)
    table.notes += _about(plan, printed) + notes
    return Tables(plan.config, [table])


def _figures(
    plan: ReproducePlan, printed: PrintedRows, row: Row, out: Path, notes: list[str], say: Say
) -> Mapping[str, Any]:
    """A row's figures by column; none where it cannot run, and why among the notes."""
    say(f"--- {row.system}")
    work = Work(plan, printed, row, out, say)
    try:
        figures = work.figures()
    except DataError as error:
        notes.append(f"{row.system}: not run: {error.text({str(error.argument): f'`{error.argument}`'})}")
        say(notes[-1])
        return {}
    notes += [note for note in work.notes if note not in notes]
    return figures


def _with_split(plan: ReproducePlan, notes: list[str]) -> ReproducePlan:
    """The plan with a split that has labels."""
    if plan.split or plan.table == "eraser-2":
        return plan
    with suppress(DataError):
        if has_labels(open_split(plan.dataset, plan.config, "test")):
            return replace(plan, split="test")
    split = open_split(plan.dataset, plan.config, "validation")  # its error names the splits that there are
    if not has_labels(split):
        message = "expected a split with labels, test or validation, found none"
        raise DataError(message, rule="label-missing", file=plan.dataset)
    why = "the dataset has no test split with labels; the print is of test"
    notes.append(f"scored on validation, which also stops the training of networks: {why}")
    return replace(plan, split="validation")


def _settings(plan: ReproducePlan) -> dict[str, Any]:
    """What two runs in one folder have to have in common."""
    settings = {field.name: getattr(plan, field.name) for field in fields(ReproducePlan) if field.name != "out"}
    return {**settings, "split": dataset_split(plan.split), "dataset": str(Path(plan.dataset).resolve())}


def _columns(printed: PrintedRows, config: str) -> tuple[str, ...]:
    """The table's columns; of two names of performance the one that is printed for this config."""
    figures = {key for row in printed.rows for key in printed.print_of(row, config)}
    accuracy = "accuracy" in figures
    beside = {"macro_f1": accuracy, "accuracy": "macro_f1" in printed.columns and not accuracy}
    return tuple(name for name in printed.columns if not beside.get(name))


def _source(printed: PrintedRows, config: str) -> str:
    shorts = dict.fromkeys(short for row in printed.rows for short, _ in printed.results(row, config))
    numbers = {number for _, number in printed.papers}
    return ", ".join(f"{short}, Table {number}" for short in shorts for number in numbers)


def _about(plan: ReproducePlan, printed: PrintedRows) -> list[str]:
    """How to read the table."""
    words = [printed.note] if printed.note else []
    results = (pair for row in printed.rows for pair in printed.results(row, plan.config))
    words += dict.fromkeys(f"{short}: {result.settings}" for short, result in results)
    if plan.encoder:
        words.append(f"encoder: {Path(plan.encoder).name}")
    if plan.fast:
        models = dict.fromkeys(row.model for row in printed.rows if row.model != ANNOTATORS)
        lime = f"LIME with {FAST.settings['lime_samples']} samples"
        words.append(f"`fast`: {FAST.sample} instances of {plan.split or 'the split'}, {lime}")
        smaller = {model: FAST.in_words(model) for model in models}
        names = {ENCODER: plan.encoder and Path(plan.encoder).name}
        words += [f"`fast`, {names.get(model, model)}: {how}" for model, how in smaller.items() if how]
    return words
