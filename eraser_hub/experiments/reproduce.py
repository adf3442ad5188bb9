"""The public function `reproduce`: the rows of a printed table from data to score, each figure beside the print.

    OUT/reproduce.json           the settings; a run with other settings does not go on here
    OUT/models/MODEL/            a trained model, which several rows may share
    OUT/ROW.predictions.jsonl    its predictions (and their record), one file per random draw
    OUT/ROW.scores.json          its scores, a line for `eraser-hub board --scores`

Finished files are reused; stopped trainings and explanations go on. The tables, their rows and how each is made are
data: ``tables.json``.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Annotated, Any

from eraser_hub.attribution.explain import explain
from eraser_hub.metrics.errors import check_choice, check_number
from eraser_hub.papers import COMPREHENSIVE, find_comprehensive, load_paper
from eraser_hub.records.arguments import PYTHON, Place
from eraser_hub.records.errors import DataError
from eraser_hub.records.places import dataset_split
from eraser_hub.records.tables import Cell, Table, Tables
from eraser_hub.scoring.verbs import score

if TYPE_CHECKING:
    from eraser_hub.scoring.result import Scores

log = logging.getLogger("eraser_hub")
LEVEL = 0.95  # of the intervals
FULL, SUFFICIENT = "classification_scores", "sufficiency_classification_scores"
# accuracy of Carton et al.'s regimes: the text that the model is trained on, and the field of the text it answers from
REGIMES = {
    "no_rationale": ("full", FULL),
    "eval_rationale": ("full", SUFFICIENT),
    "train_eval_rationale": ("rationale", SUFFICIENT),
}
Spec = Mapping[str, Any]  # an entry of tables.json
Settings = Mapping[str, Any]  # what the rows share: the arguments of `reproduce`, and the ``seed`` of the run
Notes = dict[str, None]  # sentences below the table, each once
Figures = dict[str, Any]  # by column: a number, a string, or (number, low, high)


@lru_cache
def load_tables() -> dict[str, Any]:
    """Return ``tables.json``: ``tables``, the ``models`` of their rows, and the ``sample`` of fast runs."""
    content: dict[str, Any] = json.loads(files("eraser_hub.experiments").joinpath("tables.json").read_bytes())
    return content


@dataclass(slots=True, repr=False)
class ReproducedTables(Tables):
    """The table; of another split than the print's the printed figures are a table of their own.

    Attributes:
        signatures: how it was made, one line.
    """

    signatures: list[str] = field(default_factory=list)

    @property
    def failed(self) -> bool:
        """Whether no row could run."""
        return all(cell.value is None for _, row in self.tables[0].rows for cell in row.values())


def reproduce(
    table: str,
    *,
    config: str | None = None,
    dataset: Place = "hub/eraser",
    split: str = "",
    encoder: str = "",
    embeddings: Place = "",
    fast: bool = False,
    seeds: int = 1,
    seed: int = 1,
    out: Place | None = None,
    source: Annotated[Place, PYTHON] = "",
) -> ReproducedTables:
    """Recompute a printed table, and put the figures beside the print.

    Each row is trained, explained and scored; figures have 95 % intervals. A row that cannot run (no train split, no
    encoder) says why below the table; if no row can run, the exit status is 1. After a stop the same call goes on.
    OUT/*.scores.json are score files for `board`.

    Args:
        table: eraser-2, eraser-3, eraser-4, carton2020-3 or carton2020-figure-2.
        config: Config; by default the only or the default one.
        dataset: Built dataset or Hub id.
        split: Split to score; by default test, or validation if test has no labels.
        encoder: Encoder of rows that use one: a transformers folder or Hub id; no default.
        embeddings: File of word vectors for rows over words; by default they are learned.
        fast: Use smaller sizes; the table lists them.
        seeds: Run each row with so many seeds; figures are means, ± their standard deviation.
        seed: First seed of all random draws.
        out: Folder of all files; by default reproduce/TABLE-CONFIG.
        source: raw corpora with the release's files of human performance (eraser-2).

    Returns:
        The table; ``written("markdown")`` writes it.

    Raises:
        DataError: an unknown table; no such dataset, config or split; ``out`` holds another run.
        BusyError: another run is at work in ``out``.

    Examples:
        >>> from eraser_hub import reproduce
        >>> reproduce("eraser-3", config="movies", fast=True).written("text")  # doctest: +SKIP

        $ eraser-hub reproduce --table eraser-3 --config movies --fast
        $ eraser-hub reproduce --table eraser-4 --config movies --encoder bert-base-uncased --format latex
    """
    from eraser_hub.conversion.built import open_built
    from eraser_hub.systems.folder import lock_run_folder
    from eraser_hub.systems.system import name_source

    check_choice(table, load_tables()["tables"], "table")
    check_number(seeds, "seeds", 1)
    spec: Spec = load_tables()["tables"][table]
    config = config or open_built(dataset).default_config
    columns, printed, source_words, notes = read_print(spec, config)
    run: dict[str, Any] = {"table": table, "config": config, "fast": fast, "seed": seed, "seeds": seeds}
    run |= {"dataset": os.fspath(dataset), "split": dataset_split(split), "source": os.fspath(source)}
    run |= {"encoder": encoder, "embeddings": os.fspath(embeddings)}
    has_split = spec["figures"] != "people"  # the release's files of human performance are of no split
    if has_split and not split:
        run["split"] = choose_split(run, notes)
    if seeds > 1:
        notes[f"means of {seeds} seeds, ± their standard deviation"] = None
    if encoder:
        notes[f"encoder: {name_source(encoder)}"] = None
    is_apart = has_split and run["split"] != "test" and any(printed)
    made = Table(table, f"{spec['title']}: {config}", ("system",), columns, source="" if is_apart else source_words)
    folder = Path(out) if out is not None else Path("reproduce") / f"{table}-{config}"
    with lock_run_folder(folder, "reproduce", run):
        for row, beside in zip(spec["rows"], printed, strict=True):
            figures, cells = run_row(run, row, folder, notes), dict[str, Cell]()
            for key in columns:
                value, low, high = figure if isinstance(figure := figures.get(key), tuple) else (figure, None, None)
                cells[key] = Cell(value, None if is_apart else beside.get(key), digits=3, low=low, high=high)
            made.add(row["system"], **cells)
    made.notes += notes
    tables = [made]
    if is_apart:
        apart = Table(f"{table}-printed", f"{made.title}, as printed", ("system",), columns, source=source_words)
        for row, beside in zip(spec["rows"], printed, strict=True):
            apart.add(row["system"], **{key: Cell(beside[key]) for key in columns if key in beside})
        own, other = (COMPREHENSIVE[find_comprehensive(config, name)] for name in (run["split"], "test"))
        about = f"scored on {run['split']} ({own}), printed of test ({other})"
        apart.notes.append(f"{about}: other texts and other gold, so the figures do not compare")
        tables.append(apart)
    signature = f"reproduce|{table}|{config}|seed:{seed}" + (f"|seeds:{seeds}" if seeds > 1 else "")
    return ReproducedTables(config, tables, [signature + ("|fast" if fast else "")])


def read_print(spec: Spec, config: str) -> tuple[tuple[str, ...], list[dict[str, str]], str, Notes]:
    """Return what the papers print: columns, the figures of each row by column, their source, and notes on them.

    Of two measures of performance the table has the one that is printed for the config. The first paper that prints
    a figure wins.
    """
    notes, sources, rows = dict.fromkeys([spec["note"]] if "note" in spec else []), Notes(), []
    if "printed_table" in spec:
        paper, name = spec["printed_table"]
        rows = [dict(load_paper(paper).tables[name].row(config)) for _ in spec["rows"]]
    for row in spec["rows"] if not rows else ():
        figures: dict[str, str] = {}
        for paper, number in spec.get("printed_results", ()):
            for result in load_paper(paper).results:
                about = (result.table, result.dataset) == (number, config)
                if about and result.system in (row["system"], row.get("alias")):
                    figures = {key: f"{value:.3f}" for key, value in result.scores.items()} | figures
                    sources[f"{load_paper(paper).short}, Table {number}"] = None
                    notes[f"{load_paper(paper).short}: {result.settings}"] = None
        rows.append(figures)
    unused = "macro_f1" if any("accuracy" in figures for figures in rows) else "accuracy"
    columns = tuple(key for key in spec["columns"] if key != unused or "macro_f1" not in spec["columns"])
    return columns, rows, ", ".join(sources), notes


def choose_split(run: Settings, notes: Notes) -> str:
    """Return the split that has labels: test, or validation, which is noted.

    Raises:
        DataError: neither has labels.
    """
    from eraser_hub.attribution.dataset import open_split
    from eraser_hub.systems.data import has_labels

    with suppress(DataError):  # there need be no test split
        if has_labels(open_split(run["dataset"], run["config"], "test")):
            return "test"
    if not has_labels(open_split(run["dataset"], run["config"], "validation")):  # its error names those that there are
        raise DataError("expected a split with labels, test or validation, found none", file=run["dataset"])
    why = "the dataset has no test split with labels; the print is of test"
    notes[f"scored on validation, which also stops the training of networks: {why}"] = None
    return "validation"


# ------------------------------------------------------------------------------------------------------ rows to figures
def run_row(run: Settings, row: Spec, out: Path, notes: Notes) -> Figures:
    """Return a row's figures, of several seeds their means; none if it cannot run, and a note says why."""
    compute = {"people": compute_agreement, "regimes": compute_regimes, "fidelity": compute_fidelity}.get(
        load_tables()["tables"][run["table"]]["figures"], compute_scores
    )
    found = []
    for seed in range(run["seed"], run["seed"] + run["seeds"]):
        log.info(f"--- {row['system']}" + (f", seed {seed}" if run["seeds"] > 1 else ""))
        folder = out / f"seed-{seed}" if run["seeds"] > 1 else out
        try:
            found.append(compute({**run, "seed": seed}, row, folder, notes))
        except DataError as error:
            notes[f"{row['system']}: not run: {error}"] = None
            return {}
    return found[0] if len(found) == 1 else average_figures(found)


def average_figures(runs: Sequence[Figures]) -> Figures:
    """Return the mean of each figure over seeds, with its standard deviation.

    >>> average_figures([{"auprc": (0.25, 0.2, 0.3)}, {"auprc": 0.75}])
    {'auprc': '0.500 ± 0.354'}
    """
    averages = {}
    for key in runs[0]:
        values: list[Any] = [run[key][0] if isinstance(run.get(key), tuple) else run.get(key) for run in runs]
        if any(isinstance(value, str) for value in values):  # of annotators, who have no seeds
            averages[key] = values[0]
        elif None not in values:
            averages[key] = f"{fmean(values):.3f} ± {stdev(values):.3f}"
    return averages


def compute_agreement(run: Settings, row: Spec, folder: Path, notes: Notes) -> Figures:
    """Return the agreement of the annotators of the release's files of human performance."""
    from eraser_hub.conversion.built import open_built
    from eraser_hub.conversion.eraser.human_agreement import human_agreement

    corpus = Path(run["source"]) / run["config"] if run["source"] else None
    cells, note = human_agreement(open_built(run["dataset"]), run["config"], corpus)
    if not cells:
        message = "expected human_performance*.jsonl of the release in `source` FOLDER/CONFIG, found none"
        raise DataError(note or message, file=corpus)
    notes[note] = None
    return {key: cell.value for key, cell in cells.items()}


def compute_scores(run: Settings, row: Spec, folder: Path, notes: Notes) -> Figures:
    """Return the scores of the model's rationales, or of a method's; of several random draws their means."""
    paths = explain_row(run, row, folder, make_file_name(row["system"]), notes)
    scored = [score_row(run, path, row["system"], notes) for path in paths]
    numbers = [key for key in scored[0] if scored[0].number(key) is not None]
    if len(scored) == 1:
        return {key: get_figure(scored[0], key) for key in numbers}
    notes[f"random rankings: the mean of {len(scored)} draws, without an interval"] = None
    return {key: fmean(scores[key] for scores in scored) for key in numbers}


def compute_regimes(run: Settings, row: Spec, folder: Path, notes: Notes) -> Figures:
    """Return the accuracy in each regime of Carton et al. (2020), Table 3."""
    figures, name = {}, make_file_name(row["system"])
    ends = {"full": name, "rationale": f"{name}-rationale"}
    paths = {train_on: explain_row(run, row, folder, end, notes, train_on)[0] for train_on, end in ends.items()}
    for column, (train_on, scores) in REGIMES.items():
        answers = folder / f"{name}-{column}.predictions.jsonl"
        with answers.open("w", encoding="utf-8") as file:
            for line in paths[train_on].read_text("utf-8").splitlines():
                prediction = json.loads(line)
                probabilities = prediction[scores]
                answer = {"classification": max(probabilities, key=probabilities.get), FULL: probabilities}
                answered = {"annotation_id": prediction["annotation_id"], "rationales": [], **answer}
                file.write(json.dumps(answered, ensure_ascii=False) + "\n")
        scored = score_row(run, answers, f"{row['system']}, {column.replace('_', ' ')}", notes)
        figures[column] = get_figure(scored, "accuracy")
    return figures


def compute_fidelity(run: Settings, row: Spec, folder: Path, notes: Notes) -> Figures:
    """Return accuracy, and clipped sufficiency and comprehensiveness of human rationales."""
    (path,) = explain_row(run, row, folder, make_file_name(row["system"]), notes)
    scored = score_row(run, path, row["system"], notes)
    # under the same keys the scores have ERASER's, which are not clipped
    fidelity = scored.statistics["normalized_fidelity"]
    values, ends = fidelity.values(), fidelity.intervals(LEVEL, seed=run["seed"])
    clipped = {key: (float(values[key]), *map(float, ends[key])) for key in ("sufficiency", "comprehensiveness")}
    return {"accuracy": get_figure(scored, "accuracy"), **clipped}


# ------------------------------------------------------------------------------------------------------- data to scores
def explain_row(run: Settings, row: Spec, folder: Path, name: str, notes: Notes, train_on: str = "full") -> list[Path]:
    """Train a row's model and explain it; return the files of predictions, one per random draw.

    Args:
        run: the settings, with the row's seed.
        row: the row.
        folder: the folder of models and predictions.
        name: of the predictions.
        notes: receives what is made otherwise than printed.
        train_on: the text that the model is trained on: full, or rationale.

    Raises:
        DataError: the row cannot run here; it says why.
    """
    from eraser_hub.systems.system import name_source
    from eraser_hub.systems.training import TrainSettings, train_once

    system, encoder, fast = row["model"], run["encoder"], run["fast"]
    model, paper = load_tables()["models"][system], load_tables()["tables"][run["table"]]["preset"]
    pretrained, trained_as = model["pretrained"], paper
    call, settings = system, dict(model["fast"]) if fast else {}
    if pretrained in ("model", "encoder") and not encoder:
        raise DataError("`encoder`: this row fine-tunes one, a transformers folder or Hub id; there is no default")
    if pretrained == "model":
        call = encoder
    elif pretrained == "encoder" or (pretrained == "encoder or embeddings" and encoder and not fast):
        settings["encoder"] = encoder
    elif pretrained == "tokenizer" and encoder:
        settings["tokenizer"] = encoder
    elif pretrained == "tokenizer":
        trained_as, remedy = "", "with `encoder` as the authors' code does it, TF-IDF over that encoder's sub-words"
        notes[f"{row['system']}: over counted words, its size chosen by five folds; {remedy}"] = None
    elif run["embeddings"]:
        settings["embeddings"] = run["embeddings"]
    if settings:
        call += f"({', '.join(f'{key}={value!r}' for key, value in settings.items())})"
    training = {"dataset": run["dataset"], "config": run["config"], "paper": trained_as, "train_on": train_on}
    explaining: dict[str, Any] = {"method": row.get("method", ()), "rationales": row.get("rationales")}
    if fast:
        training["limit"], sample = model.get("limit"), model.get("sample", load_tables()["sample"])
        explaining |= {"method": row.get("fast", explaining["method"]), "sample": sample, "fidelity_trials": 0}
        named = call.replace(encoder, name_source(encoder)) if encoder else call
        shown = ", ".join(filter(None, [named, explaining["method"]]))
        notes[f"`fast`: {shown}, {sample} instances"] = None
    end = "" if train_on == "full" else f"-{train_on}"
    trained = folder / "models" / f"{system}{end}"
    for line in train_once(TrainSettings(model=call, seed=run["seed"], **training), trained):
        log.info(line)
    data = {key: run[key] for key in ("dataset", "config", "split", "seed")}
    out = folder / f"{name}.predictions.jsonl"
    reports = explain(trained, **data, **explaining, paper=paper, out=out, resume=True)
    for report in reports:
        log.info(f"{report.out}: {report.instances} instances")
    return [report.out for report in reports]


def score_row(run: Settings, path: Path, name: str, notes: Notes) -> Scores:
    """Return scores with intervals; they are also written beside the predictions, for the board."""
    data = {key: run[key] for key in ("dataset", "config", "split", "seed")}
    scores = score(path, **data, only_predicted=True, confidence_level=LEVEL, people=False)
    scores.name = name
    scores.save(path.with_name(path.name.replace(".predictions", "").removesuffix(".jsonl") + ".scores.json"))
    if found := re.search(r"\|scored:(\d+/\d+)", scores.signature):
        notes[f"scored:{found[1]} annotations"] = None
    return scores


def get_figure(scores: Scores, key: str) -> Any:
    """Return a score with the ends of its interval; None if there is no such score."""
    return (scores[key], *scores.intervals.get(key, (None, None))) if key in scores else None


def make_file_name(system: str) -> str:
    """Return a row's name as part of a file name.

    >>> make_file_name("Lei et al. (2016) (u)")
    'lei-et-al-2016-u'
    """
    return re.sub(r"[^a-z0-9]+", "-", system.lower()).strip("-")
