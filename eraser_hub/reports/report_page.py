"""A report's page: findings, tables and figures out of scores and their comparison, beside the texts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import TYPE_CHECKING, Any, NamedTuple

from eraser_hub.metrics.statistics import DEFAULT_LEVEL, Statistics
from eraser_hub.records.errors import show_controls
from eraser_hub.records.files import shorten_digest
from eraser_hub.records.predictions import read_model_digest, read_signature
from eraser_hub.scoring.compare import BETTER, Comparison, align_systems, compare, find_shared_columns, have_same_model
from eraser_hub.scoring.result import Scores, choose_headline
from eraser_hub.scoring.score import ScoreSettings
from eraser_hub.scoring.statistics import DRAWS

from .catalogue import AGREEMENT, PERFORMANCE, find_range, format_interval, format_number, metric
from .figures import Drawing, find_style
from .findings import Name, Sentence, describe_alone, describe_findings, describe_tests, merge_notes
from .page import render, to_embedded_json
from .texts import Texts

if TYPE_CHECKING:
    from markupsafe import Markup

# in a run's signature: the rationales are those of the gold; tokens are ranked at random
PEOPLE, RANDOM = "rationales:human", "method:random"
DRAWS_A_TEST = 20  # the fewest exchanges for each test with which Holm's correction can leave a p below .05
NO_FIGURES = "No figures: matplotlib is not installed (pip install 'eraser-hub[plots]')."


@dataclass(frozen=True, slots=True)
class Compared:
    """Systems with their scores and comparison.

    Attributes:
        systems: the scores; those of people's rationales without agreement, which would be with themselves.
        comparison: of all systems but people; None where nothing can be compared.
        headline: the scores that tables and figures show.
        people: systems whose rationales are the gold's.
        random: systems whose tokens are ranked at random.
        models: the model that each system explains; empty where all explain one.
        drawn: scores of draws of random rationales.
        chance: by key the mean over draws: chance of the scores that have none in closed form.
    """

    systems: list[Scores]
    comparison: Comparison | None
    headline: list[str]
    people: list[str] = field(default_factory=list)
    random: list[str] = field(default_factory=list)
    models: dict[str, str] = field(default_factory=dict)
    drawn: list[Scores] = field(default_factory=list)
    chance: dict[str, float] = field(default_factory=dict)


class Cell(NamedTuple):
    """A number in a table: as text, the small print below it, and for sorting."""

    text: str = ""
    small: str = ""
    value: float | None = None


class Row(NamedTuple):
    """A line of a table; ``names``: the systems that it is about; ``fixed``: it stays at the end."""

    head: str
    cells: list[Cell]
    names: tuple[str, ...] = ()
    fixed: bool = False


class Table(NamedTuple):
    """A table of scores: keys are its columns; ``leading`` the heads before them."""

    leading: Sequence[str]
    keys: Sequence[str]
    rows: list[Row]


def compare_systems(
    scored: Sequence[Scores], drawn: Sequence[Scores], settings: ScoreSettings, minimum_effect: float
) -> Compared:
    """Compare all pairs of systems as `eraser-hub compare` does, on the scores that they share.

    Rationales of people are shown and not compared: their agreement would be with themselves.

    Args:
        scored: the systems.
        drawn: draws of random rationales.
        settings: how they were scored.
        minimum_effect: the smallest difference that matters.
    """
    people, random = ([one.name for one in scored if _is_signed(one, part)] for part in (PEOPLE, RANDOM))
    tested = [one for one in scored if one.name not in people]
    comparison, models = None, dict[str, str]()
    aligned = align_systems({one.name: one.runs for one in tested}, settings.only_predicted) if tested[1:] else {}
    found = dict.fromkeys(key for one in scored for key in one if one.number(key) is not None)
    headline = choose_headline(found, settings.paper)
    if any(find_shared_columns(runs, ()) for runs in aligned.values()):
        digests = {one.name: [read_model_digest(path) for path in one.files] for one in tested}
        comparison = compare(
            {one.name: one.runs for one in tested},
            minimum_effect=minimum_effect,
            confidence_level=settings.confidence_level or DEFAULT_LEVEL,
            resamples=settings.n_resamples or max(DRAWS, DRAWS_A_TEST * len(headline) * math.comb(len(tested), 2)),
            seed=settings.seed,
            only_predicted=settings.only_predicted,
            chance={one.name: one.chance for one in tested},
            models=digests,
            paper=settings.paper,
        )
        models = find_models(digests, aligned.get("eraser_faithfulness"))
    tested_keys = comparison["family"] if comparison else []
    headline = list(dict.fromkeys([*tested_keys, *headline])) or list(found)[:7]
    chance = {}
    # a baseline may be a system, too
    at_random = {one.name: one for one in (*drawn, *(one for one in scored if one.name in random))}
    for key in headline:
        values = [value for one in at_random.values() if (value := one.number(key)) is not None]
        if values and metric(key).family != PERFORMANCE:
            chance[key] = fmean(values)
    systems = [_drop_agreement(one) if one.name in people else one for one in scored]
    return Compared(systems, comparison, headline, people, random, models, list(drawn), chance)


def _is_signed(system: Scores, part: str) -> bool:
    return bool(system.files) and all(part in read_signature(path).split("|") for path in system.files)


def _drop_agreement(system: Scores) -> Scores:
    def others(values: Mapping[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in values.items() if metric(key).family != AGREEMENT}

    parts = ("scores", "intervals", "per_instance", "spread", "chance")
    kept: dict[str, Any] = {name: others(getattr(system, name)) for name in parts}
    return replace(system, by_class={name: others(scores) for name, scores in system.by_class.items()}, **kept)


def find_models(
    digests: Mapping[str, Sequence[str]], aligned: Mapping[str, Sequence[Statistics]] | None
) -> dict[str, str]:
    """Return the model that each system explains, named by its first system; empty where all explain one model."""
    leaders, models = list[str](), dict[str, str]()
    for name in digests:
        leader = next((other for other in leaders if have_same_model((other, name), aligned, digests)), name)
        leaders += [name] if leader == name else []
        models[name] = f"model of {leader}"
    return models if len(leaders) > 1 else {}


def _make_cell(system: Scores, key: str) -> Cell:
    value, known = system.number(key), [format_interval(system.intervals.get(key))]
    if value is None and key not in system.scores:
        return Cell()
    if not known[0] and key in system.spread:
        known.append(f"±{format_number(system.spread[key])}")
    if (counted := system.counted(key)) is not None:
        known.append(f"n\u00a0{counted}")
    return Cell(format_number(value), " ".join(filter(None, known)), value)


def make_score_table(compared: Compared) -> Table:
    """Return the headline scores: a line a system, or several with equal scores; then chance and people."""
    systems, keys = compared.systems, compared.headline
    equal: dict[tuple[Cell, ...], list[str]] = {}  # methods that rank alike share a line
    for one in systems:
        equal.setdefault(tuple(_make_cell(one, key) for key in keys), []).append(one.name)
    rows = [Row(", ".join(names), list(cells), tuple(names)) for cells, names in equal.items()]
    cells = []
    for key in keys:
        found = [one.chance[key] for one in systems if key in one.chance]
        if not found:
            cells.append(Cell())
            continue
        small = format_interval((min(found), max(found))) if round(max(found) - min(found), 3) else ""
        cells.append(Cell(format_number(fmean(found)), small, fmean(found)))
    if any(cell.text for cell in cells):
        rows.append(Row("chance", cells, fixed=True))
    for one in compared.drawn:
        rows.append(Row(f"{one.name} (baseline)", [_make_cell(one, key) for key in keys], fixed=True))
    people = systems[0].people if systems else None
    if people and people["scores"]:
        known = Scores(scores=people["scores"], spread=people["spread"])
        rows.append(Row("people", [_make_cell(known, key) for key in keys], fixed=True))
    return Table(("system",), keys, rows)


def make_difference_table(comparison: Comparison) -> Table:
    """Return each pair's differences in the headline scores, with interval, corrected p and verdict."""
    rows = []
    for pair in comparison["comparisons"]:
        cells = []
        for key in comparison["family"]:
            test = pair["keys"].get(key)
            if test is None or math.isnan(test["difference"]):
                cells.append(Cell())
                continue
            p = test["p_holm"]
            words = [] if p is None or math.isnan(p) else ["p < .001" if p < 0.001 else f"p {p:.3g}"]
            words.append("not tested" if test["exploratory"] else test["verdict"])
            small = f"{format_interval(test['ci'])}\n{', '.join(words)}".strip()
            star, number = "★ " if test["verdict"] == BETTER else "", format_number(test["difference"])
            sign = "+" if test["difference"] > 0 and float(number) else ""
            cells.append(Cell(f"{star}{sign}{number}", small, test["difference"]))
        names = (pair["first"], pair["second"])
        rows.append(Row(" − ".join(names), cells, names))
    return Table(("difference",), comparison["family"], rows)


def make_class_table(compared: Compared) -> Table:
    """Return the headline scores by gold class: a line for each class and system."""
    labels = list(dict.fromkeys(label for one in compared.systems for label in one.by_class))
    rows = []
    for label in labels:
        for system in compared.systems:
            values = [system.by_class.get(label, {}).get(key) for key in compared.headline]
            cells = [Cell(format_number(v), "", v) if isinstance(v, float) else Cell() for v in values]
            if any(cell.text for cell in cells):
                rows.append(Row(f"{label}, {system.name}", cells, (system.name,)))
    return Table(("gold class, system",), compared.headline, rows)


def describe_range(key: str) -> str:
    """Return which direction of a score is better, and its range, in words."""
    ends = [f"{'−' * (end < 0)}∞" if math.isinf(end) else f"{end:g}".replace("-", "−") for end in find_range(key)]
    better = metric(key).better
    return f"{f'{better} is better, ' if better else ''}{' to '.join(ends)}"


def render_report(
    title: str,
    subtitle: str,
    compared: Compared,
    texts: Texts,
    figures: Mapping[str, Sequence[tuple[Drawing, Markup]]],
    score_files: Sequence[str],
) -> str:
    """Return the page.

    Args:
        title: its title.
        subtitle: what is scored.
        compared: the systems.
        texts: the texts.
        figures: section -> its figures, see `figures.draw_figures`; empty without matplotlib.
        score_files: the names of the systems' score files, which stand beside the page.
    """
    from markupsafe import Markup

    systems, comparison = compared.systems, compared.comparison
    names = [one.name for one in systems]
    if comparison is not None:
        findings = describe_findings(comparison, compared.random, compared.models)
        trust = describe_tests(comparison)
    else:
        findings = [sentence for one in systems for sentence in describe_alone(one)]
        trust = "" if len(systems) < 2 else "The systems share no score, so nothing is compared."
    if compared.people:
        trust += f" {', '.join(compared.people)}: erased by what people marked, so it has no agreement with them."
    notes, signatures = [], []
    for one in systems:
        notes += [(one.name, note) for note in one.all_notes]
        signatures += [(one.name, line) for line in one.signatures]
        signatures += [(one.name, f"predictions:{shorten_digest(digest)}") for digest in one.predictions_sha256]
    lines = merge_notes(notes, names)
    # a system of people's rationales has no chance to speak of
    about_gold = max((one.describe_gold() for one in systems), key=lambda lines: len("".join(lines)), default=[])
    if comparison is not None:
        lines += [note for note in comparison["notes"] if not any(note in line for line in lines)]
        lines += [
            f"not compared, {name} alone has them: {', '.join(keys)}" for name, keys in comparison["left_out"].items()
        ]
    swatches = {name: Markup(_draw_swatch(place)) for place, name in enumerate(names)}

    def show(sentence: Sentence) -> Markup:
        """Return a sentence in which each system's name has its colour and line beside it."""
        shown = Markup()
        for part in sentence.parts:
            known = isinstance(part, Name) and part in swatches
            look = Markup('<b class="system">{}{}</b>') if known else Markup("{}{}")
            shown += look.format(swatches[part] if known else "", show_controls(part))
        return shown

    keys = {key for one in systems for key in one if one.number(key) is not None}
    return render(
        "report.html",
        ("table.js", "report.js"),
        ("report.css",),
        beside=len(texts.blocks) > 1,
        title=title,
        subtitle=subtitle,
        systems=systems,
        findings=findings,
        trust=trust.strip(),
        scores=make_score_table(compared),
        differences=None if comparison is None else make_difference_table(comparison),
        classes=make_class_table(compared),
        keys=sorted(keys, key=lambda key: (key not in compared.headline, metric(key).rank)),
        cell=_make_cell,
        describe_range=describe_range,
        figures=figures,
        score_files=score_files,
        missing="" if figures or not systems else NO_FIGURES,
        texts=texts,
        index=Markup(to_embedded_json(texts.index)),
        notes=lines,
        about_gold=about_gold,
        signatures=merge_notes(signatures, names),
        signature=None if comparison is None else comparison["signature"],
        metric=metric,
        swatches=swatches,
        show=show,
    )


# the markers of `figures.MARKERS` around (12, 4.5)
_MARKER_PATHS = {
    "o": "M8.5 4.5a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0-7 0",
    "s": "M9 1.5h6v6H9z",
    "^": "M12 .8l4 7H8z",
    "D": "M12 .3l4.2 4.2L12 8.7 7.8 4.5z",
    "X": "M9.5 .6L12 3.1 14.5 .6 15.9 2 13.4 4.5 15.9 7 14.5 8.4 12 5.9 9.5 8.4 8.1 7 10.6 4.5 8.1 2z",
    "v": "M12 8.2l4-7H8z",
    "P": "M10.8 .8h2.4v2.5h2.5v2.4h-2.5v2.5h-2.4V5.7H8.3V3.3h2.5z",
}


def _draw_swatch(place: int) -> str:
    """Return a system's line and marker as SVG, as in the figures."""
    colour, dashes, marker = find_style(place)
    stroke = f'stroke="var(--c{colour})" stroke-width="2" stroke-dasharray="{" ".join(map(str, dashes))}"'
    line = f'<path d="M0 4.5H24" {stroke}/>'
    shape = f'<path d="{_MARKER_PATHS[marker]}" fill="var(--c{colour})"/>'
    return f'<svg class="swatch" viewBox="0 0 24 9" aria-hidden="true">{line}{shape}</svg>'
