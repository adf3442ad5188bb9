"""Tables of the benchmark of scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from eraser_hub.attribution.method import METHODS
from eraser_hub.records.extras import list_missing, missing_packages
from eraser_hub.records.tables import Cell, Table, Tables

from .configs import CLOSED
from .explanations import CANDIDATES
from .planted_models import LEARNED
from .score_judgement import METHODS_JUDGED
from .score_summary import Row, decide_verdict

# scores whose figures say less than they seem to: name -> (a word for the table, the reason, families; () for all)
CONSTRUCTION: Mapping[str, tuple[str, str, tuple[str, ...]]] = {
    "auprc": ("truth", "compares with the gold, which is the truth here: a perfect judge has its figures", ()),
    "token_macro_f1": ("truth", "compares with the gold, which is the truth here", ()),
    "infidelity": ("scale", "depends on the scale of scores; read infidelity_normalized", ()),
    "infidelity_normalized": ("draws", "a draw that misses the evidence decides nothing; see the curves of draws", ()),
    "sensitivity_max": ("no truth", "asks how stable a method is, not whether it is right; judges methods alone", ()),
}


def get_construction(score: str, family: str) -> str:
    """Return the word for a score whose figures are decided by construction; "" for others."""
    word, _, families = CONSTRUCTION.get(score, ("", "", ()))
    return word if not families or family in families else ""


def make_benchmark_tables(result: Mapping[str, Any]) -> Tables:
    """Return for each family a table by explanation and one by kind, then factors, methods, agreement and curves."""
    tables = Tables("benchmark-scores")
    for family, kinds in result["kinds"].items():
        tables.tables += _make_score_tables(result["scores"], family, kinds, result["confidence_level"])
    trained = [family for family in result["kinds"] if family != CLOSED]
    tables.tables += [_make_training_table(result["scores"], family) for family in trained]
    if any(result["methods"].values()):
        tables.tables.append(_make_method_table(result["methods"]))
        tables.tables.append(_make_agreement_table(result["scores"], result["kinds"]))
    if curves := result["curves"]:
        title, draws = (
            "Shares by draws of masks and perturbations, one model in closed form",
            next(iter(curves.values())),
        )
        tables.tables.append(Table("curves", title, ("score",), tuple(draws)))
        for score, values in curves.items():
            tables.tables[-1].add(score, **{draw: Cell(value, digits=2) for draw, value in values.items()})
    return tables


def get_rows(scores: Sequence[Mapping[str, Any]], family: str) -> list[tuple[tuple[str, str, str], Row]]:
    """Return the scores of a family by falling share, those that are decided by construction last."""
    rows = [
        ((one["name"], one["better"], get_construction(one["name"], family)), one["families"][family])
        for one in scores
        if family in one["families"] and one["families"][family]["auc"] is not None
    ]
    return sorted(rows, key=lambda row: (bool(row[0][2]), -row[1]["auc"], row[0][0]))


def describe_sampling(kinds: Mapping[str, Row]) -> str:
    """Return what the intervals of a family are over; one model of a planting says nothing of new ones.

    Args:
        kinds: for each kind of planting ``judges``, the number of models that judge it.
    """
    judged = [kind for kind, facts in kinds.items() if facts["judges"]]
    alone = [kind for kind in judged if kinds[kind]["judges"] == 1]
    if len(alone) == len(judged):
        return "new texts, of one model of each planting"
    return "new texts and new models" + (f" ({', '.join(alone)}: new texts, of one model)" if alone else "")


def _make_score_tables(scores: Sequence[Row], family: str, kinds: Mapping[str, Row], level: float) -> list[Table]:
    rows, left = get_rows(scores, family), ("score", "better", "by_construction")
    first = Table(f"{family}_scores", f"All plantings, {family} models", left, ("all", *CANDIDATES))
    by_kind = Table(f"{family}_kinds", f"By planting, over all explanations, {family} models", left, tuple(kinds))
    for words, one in rows:
        parts = {"all": one, **one["explanations"]}
        first.add(*words, **{name: make_cell(part) for name, part in parts.items()})
        by_kind.add(*words, **{kind: make_cell(part) for kind, part in one["kinds"].items()})
    first.notes.append(
        "The share of texts where a score puts the true explanation first, a tie half; brackets: "
        f"{100 * level:g} % interval over {describe_sampling(kinds)}; "
        "=: the interval holds a coin's 0.5, !: it lies below."
    )
    first.notes.append(
        "wrong_order marks the same tokens as its partner: scores of a set of tokens tie by construction (0.50)."
    )
    named = [words[0] for words, _ in rows if words[2]]
    first.notes += [f"{name}: {CONSTRUCTION[name][1]}." for name in named]
    few = [f"{kind} {facts['judges']}" for kind, facts in kinds.items() if facts["judges"] < facts["models"]]
    models = max(facts["models"] for facts in kinds.values())
    if few:
        by_kind.notes.append(
            f"{models} models of each kind; fewer label {LEARNED:.0%} of new texts right and judge: {', '.join(few)}."
        )
    return [first, by_kind]


def _make_training_table(scores: Sequence[Row], family: str) -> Table:
    columns = ("with", "without", "difference", "networks_alone", "networks_share")
    table = Table(f"{family}_training", f"Networks trained with masked texts or without, {family}", ("score",), columns)
    kinds = 0
    for words, one in get_rows(scores, family):
        cells = {"networks_alone": _make_cell(one["auc"], one["networks_ci"])}
        cells["networks_share"] = Cell(one["networks_share"], digits=2)
        if factor := one["erased_inputs"]:
            kinds = max(kinds, factor["kinds"])
            cells |= {side: make_cell(factor[side]) for side in ("with", "without")}
            cells["difference"] = _make_cell(factor["difference"]["value"], factor["difference"]["ci"])
        table.add(words[0], **cells)
    table.notes.append(
        f"Over the {kinds} plantings that both learned. networks_alone: the interval over new networks, on these "
        "texts; networks_share: the part of the squared standard error that is due to networks. "
        "A difference has an interval with two networks of each side or more."
    )
    return table


def _make_method_table(methods: Mapping[str, Mapping[str, Row]]) -> Table:
    table = Table("methods", "Attribution methods by the truth (AUPRC), all plantings", ("method",), tuple(methods))
    for name in dict.fromkeys(name for family in methods.values() for name in family):
        cells = {family: some[name] for family, some in methods.items() if name in some}
        table.add(name, **{family: _make_cell(one["auc"], one["auc_ci"]) for family, one in cells.items()})
    judged = {name for family in methods.values() for name in family}
    left_out: dict[str, list[str]] = {}
    for name in (name for name in METHODS_JUDGED if name not in judged):
        missing = list_missing(METHODS[name].packages)
        reason = missing_packages(missing).message if missing else "these models have no gradients or attention"
        left_out.setdefault(reason, []).append(name)
    table.notes += [f"not judged: {', '.join(names)}: {reason}" for reason, names in left_out.items()]
    return table


def _make_agreement_table(scores: Sequence[Row], families: tuple[str, ...]) -> Table:
    table = Table("agreement", "Agreement of scores with the truth on the order of methods", ("score",), families)
    found = {one["name"]: {family: own["agreement"] for family, own in one["families"].items()} for one in scores}
    for name, some in sorted(found.items(), key=lambda row: -sum(part["auc"] or 0 for part in row[1].values())):
        if any(part["auc"] is not None for part in some.values()):
            table.add(name, **{family: _make_cell(part["auc"], part["auc_ci"]) for family, part in some.items()})
    table.notes.append(
        "Kendall's tau-b of the methods' means by a score and by AUPRC, the mean over models; intervals over plantings."
    )
    return table


def make_cell(part: Mapping[str, Any]) -> Cell:
    """Return a share with its interval and its verdict's mark."""
    return _make_cell(part["auc"], part["auc_ci"], {"tie": "=", "worse": "!"}.get(decide_verdict(part), ""))


def _make_cell(value: float | None, interval: Sequence[float] | None, mark: str = "") -> Cell:
    low, high = interval or (None, None)
    return Cell(value, digits=2, low=low, high=high, mark=mark)
