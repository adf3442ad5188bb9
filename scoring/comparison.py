"""Two or more systems on the same instances: which differences hold?

Works on the additive per-instance statistics that the scores are made of, so nothing is scored again: approximate
randomisation and the paired bootstrap per key and pair of systems, and Holm's correction over the pairs of a key.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from eraser_hub.metrics.agreement_scores import SENTENCES_BY_SPANS
from eraser_hub.metrics.pool import Finalize, Statistics, divide
from eraser_hub.metrics.resampling import (
    DEFAULT_LEVEL,
    DEFAULT_RESAMPLES,
    approximate_randomisation,
    holm,
    paired_bootstrap,
)
from eraser_hub.metrics.results import plain, signature
from eraser_hub.records.errors import DataError, shown

from .score import score
from .settings import Inputs, ScoreSettings

MOST_SHOWN = 10


def from_result(result: Mapping[str, Any], name: str = "result") -> Statistics:
    """Statistics from a score dict that was asked for ``per_instance=True`` (or from a score file read as JSON).

    A key enters where the mean of its per-instance values is the score itself (to 1e-9), NaN and null left out;
    micro averages and other scores that are no such mean do not.

    Raises:
        DataError: no per-instance values, or columns that do not fit the ids.
    """
    columns = result.get("per_instance")
    if not isinstance(columns, Mapping) or "annotation_id" not in columns:
        raise DataError("expected per-instance values (per_instance=True), found none", field=f"{name}.per_instance")
    ids = [str(one) for one in columns["annotation_id"]]
    if not ids or len(set(ids)) != len(ids):
        raise DataError("expected each id once, and at least one", field=f"{name}.per_instance.annotation_id")
    kept: dict[str, np.ndarray] = {}
    for key, values in columns.items():
        score = result.get(key)
        if key == "annotation_id" or isinstance(score, bool) or not isinstance(score, (int, float)):
            continue
        column = np.array([math.nan if value is None else value for value in values], dtype=float)
        if column.shape != (len(ids),):
            where = f"{name}.per_instance.{key}"
            raise DataError(f"expected {len(ids)} numbers, one per id, found {column.shape}", field=where)
        told = column[~np.isnan(column)]
        if len(told) and np.isclose(told.mean(), score, rtol=1e-9, atol=1e-9):
            kept[key] = column
    if not kept:
        raise DataError("expected a score that is the mean of its per-instance values, found none", field=name)
    keys = list(kept)
    table = np.column_stack(
        [part for key in keys for part in (np.nan_to_num(kept[key], nan=0.0), ~np.isnan(kept[key]))]
    )

    def finalize(sums: np.ndarray) -> dict[str, np.ndarray]:
        return {key: divide(sums[..., 2 * at], sums[..., 2 * at + 1], np.nan) for at, key in enumerate(keys)}

    names = [f"{key}.{part}" for key in keys for part in ("sum", "count")]
    return Statistics(ids, table.astype(float), finalize, kept, names)


def aligned(systems: Mapping[str, Statistics]) -> dict[str, Statistics]:
    """The systems' statistics in the order of the first one's ids.

    Raises:
        DataError: fewer than two systems, or other ids than the first one's; names ten of them and their number.
    """
    if len(systems) < 2:
        raise DataError(f"expected at least two systems, found {len(systems)}")
    names = list(systems)
    first = systems[names[0]]
    known = set(first.ids)
    result = {names[0]: first}
    for name in names[1:]:
        own = {one: row for row, one in enumerate(systems[name].ids)}
        odd = sorted(known ^ own.keys())
        if odd:
            some = ", ".join(shown(one) for one in odd[:MOST_SHOWN]) + (", …" if len(odd) > MOST_SHOWN else "")
            message = f"expected the instances of {names[0]}, found {len(odd)} on one side alone: {some}"
            raise DataError(message, field=name)
        result[name] = systems[name].take([own[one] for one in first.ids])
    return result


def compare(
    *systems: Statistics | Mapping[str, Any],
    names: Sequence[str] | None = None,
    n_resamples: int = DEFAULT_RESAMPLES,
    seed: int = 0,
    confidence_level: float = DEFAULT_LEVEL,
) -> dict[str, Any]:
    """Compare systems pairwise on every score that they share.

    Args:
        systems: two or more, each either ``Statistics`` (a metric module's ``statistics(..)``) or a result of
            ``compute(.., per_instance=True)``; all on the same instances, in any order.
        names: of the systems, by default "A", "B", ..
        n_resamples: of the randomisation test and of the bootstrap.
        seed: the same seed gives the same numbers.
        confidence_level: of the intervals of the differences.

    Returns:
        ``scores``: {name: {key: score}}; ``comparisons``: one dict per pair of systems with ``first``, ``second`` and
        ``keys``: {key: {``difference`` (first - second), ``ci`` [low, high], ``p_randomisation``, ``p_bootstrap``,
        ``p_holm`` (Holm over the pairs of this key, from the randomisation test), ``win_share``}}; ``instances``: how
        many; ``left_out``: {name: the scores that this system has and another has not}; ``signature``. Keys that are
        lists of scores are left out.

    Raises:
        DataError: see ``aligned`` and ``from_result``.
        ValueError: settings out of range.

    >>> one = {"f1": 0.75, "per_instance": {"annotation_id": ["a", "b"], "f1": [1.0, 0.5]}}
    >>> two = {"f1": 0.25, "per_instance": {"annotation_id": ["b", "a"], "f1": [0.0, 0.5]}}
    >>> compare(one, two, n_resamples=100)["comparisons"][0]["keys"]["f1"]["difference"]
    0.5
    """
    names = [chr(ord("A") + at) for at in range(len(systems))] if names is None else list(names)
    if len(names) != len(systems) or len(set(names)) != len(names):
        raise DataError(f"expected {len(systems)} different names, found {names}")
    return compare_blocks(
        {
            name: [one if isinstance(one, Statistics) else from_result(one, name)]
            for name, one in zip(names, systems, strict=True)
        },
        n_resamples,
        seed,
        confidence_level,
    )


def compare_blocks(
    systems: Mapping[str, Sequence[Statistics]],
    n_resamples: int = DEFAULT_RESAMPLES,
    seed: int = 0,
    confidence_level: float = DEFAULT_LEVEL,
) -> dict[str, Any]:
    """``compare`` for systems whose scores come in several blocks of statistics (agreement, faithfulness, ..).

    Block i of every system is the same metric with the same settings; blocks need not have the same instances.
    """
    names = list(systems)
    blocks = len(next(iter(systems.values()), ()))
    if any(len(own) != blocks for own in systems.values()):
        raise DataError(
            f"expected the same scores of every system, found {[len(own) for own in systems.values()]} blocks"
        )
    pairs = list(combinations(names, 2))
    scores: dict[str, dict[str, float]] = {name: {} for name in names}
    keys: dict[tuple[str, str], dict[str, dict[str, Any]]] = {pair: {} for pair in pairs}
    instances = 0
    left_out: dict[str, list[str]] = {name: [] for name in names}
    for block in range(blocks):
        level = aligned({name: own[block] for name, own in systems.items()})
        instances = max(instances, len(level[names[0]].ids))
        shared = _single_keys(level)
        for name in names:
            found = level[name].scores()
            left_out[name] += [key for key, value in found.items() if value.ndim == 0 and key not in shared]
            scores[name] |= {key: float(found[key]) for key in shared}
        for first, second in pairs:
            keys[first, second] |= _pair(level[first], level[second], shared, n_resamples, seed, confidence_level)
    for key in next(iter(keys.values()), {}):
        adjusted = holm([keys[pair][key]["p_randomisation"] for pair in pairs])
        for pair, p in zip(pairs, adjusted, strict=True):
            keys[pair][key]["p_holm"] = p
    settings = {"level": confidence_level, "resamples": n_resamples, "seed": seed, "systems": len(names)}
    return {
        "instances": instances,
        "scores": scores,
        "comparisons": [{"first": first, "second": second, "keys": keys[first, second]} for first, second in pairs],
        "left_out": {name: own for name, own in left_out.items() if own},
        "signature": signature("compare", {"test": "randomisation,paired bootstrap", "adjust": "holm", **settings}),
    }


def _single_keys(level: Mapping[str, Statistics]) -> list[str]:
    """The keys of single scores that all systems have, in the first one's order.

    Sentences that one system predicts by scores and another by spans are not the same decision: they are not compared.
    """
    tables = [statistics.scores() for statistics in level.values()]
    shared = [key for key, value in tables[0].items() if value.ndim == 0 and all(key in table for table in tables)]
    by_spans = {f"{SENTENCES_BY_SPANS}.hits" in (statistics.columns or ()) for statistics in level.values()}
    if len(by_spans) > 1:
        shared = [key for key in shared if not key.startswith(("sentence_micro_", "sentence_macro_"))]
    return shared


def _restricted(statistics: Statistics, keys: Sequence[str]) -> Finalize:
    """The finalize of these keys alone."""

    def finalize(sums: np.ndarray) -> dict[str, np.ndarray]:
        scores = statistics.finalize(sums)
        return {key: scores[key] for key in keys}

    return finalize


def _laid_out(statistics: Statistics, like: Statistics) -> np.ndarray | None:
    """The statistics' values with their columns where ``like`` has them; None where that cannot be told.

    A column that one system lacks (it has no soft scores, say) belongs to scores that are not compared.
    """
    if statistics.columns is None or like.columns is None:
        return statistics.values if statistics.values.shape[1] == like.values.shape[1] else None
    place = {name: at for at, name in enumerate(statistics.columns)}
    values = np.zeros((len(statistics.ids), len(like.columns)))
    for at, name in enumerate(like.columns):
        if name in place:
            values[:, at] = statistics.values[:, place[name]]
    return values


def _reads_alike(finalize: Finalize, values: np.ndarray, statistics: Statistics) -> bool:
    """Whether the first system's finalize gives the second's scores: else their columns mean different things."""
    own = statistics.scores()
    with np.errstate(invalid="ignore"):
        read = finalize(values.sum(axis=0))
    return all(np.allclose(value, own[key], rtol=1e-9, atol=1e-12, equal_nan=True) for key, value in read.items())


def _pair(
    first: Statistics, second: Statistics, keys: Sequence[str], n_resamples: int, seed: int, confidence_level: float
) -> dict[str, dict[str, Any]]:
    finalize = _restricted(first, keys)
    values = _laid_out(second, first)
    if values is None or not _reads_alike(finalize, values, second):
        raise DataError("expected systems scored with the same settings, found others")
    p_values = approximate_randomisation(first.values, values, finalize, n_resamples, seed)
    bootstrap = paired_bootstrap(first.values, values, finalize, confidence_level, n_resamples, seed)
    return {
        key: {
            "difference": plain(bootstrap[key]["difference"]),
            "ci": plain(bootstrap[key]["ci"]),
            "p_randomisation": plain(p_values[key]),
            "p_bootstrap": plain(bootstrap[key]["p_value"]),
            "win_share": plain(bootstrap[key]["win_share"]),
        }
        for key in keys
    }


# --------------------------------------------------------------------------------------------------------- as text
def as_text(result: Mapping[str, Any], alpha: float = 0.05) -> str:
    """The comparison as a table: one line per key and pair of systems, a star where Holm's p is below ``alpha``."""
    header = ("score", "first", "second", "difference", "interval", "p", "p boot", "p Holm", "")
    lines = []
    for pair in result["comparisons"]:
        first, second = pair["first"], pair["second"]
        rows = [header]
        for key, found in pair["keys"].items():
            ends = " .. ".join(_number(end, "+.4f") for end in found["ci"])
            rows.append(
                (
                    key,
                    _number(result["scores"][first][key]),
                    _number(result["scores"][second][key]),
                    _number(found["difference"], "+.4f"),
                    ends,
                    _number(found["p_randomisation"]),
                    _number(found["p_bootstrap"]),
                    _number(found["p_holm"]),
                    "*" if found["p_holm"] < alpha else "",
                )
            )
        widths = [max(len(row[at]) for row in rows) for at in range(len(header))]
        lines.append(f"{first} against {second}, {result['instances']} instances")
        for row in rows:
            cells = [
                row[0].ljust(widths[0]),
                *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)),
            ]
            lines.append("  ".join(cells).rstrip())
        lines.append("")
    for name, own in result.get("left_out", {}).items():
        lines.append(f"not compared, {name} alone has them: {', '.join(own)}")
    for one in result.get("against_chance", ()):
        lines.append(
            f"{one['system']}, {one['score']} against {one['draws']} random rationales: p {_number(one['p_value'])}, "
            f"p Holm {_number(one['p_holm'])}, win rate {_number(one['win_rate'])}, "
            f"effect size {_number(one['effect_size'])}"
        )
    return "\n".join([*lines, *[""][: bool(result.get("against_chance"))], result["signature"]])


def _number(value: float, form: str = ".4f") -> str:
    return "undefined" if math.isnan(value) else format(value, form)


def as_json(value: Any) -> Any:
    """The result for a JSON file: null for NaN and for infinities."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: as_json(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [as_json(part) for part in value]
    return value


# ------------------------------------------------------------------------------------------------------ from files
def system_names(paths: Sequence[Path]) -> list[str]:
    """Names of prediction files: their stems, or as much of their paths as tells them apart.

    Raises:
        DataError: the same file twice.
    """
    if len({path.resolve() for path in paths}) != len(paths):
        raise DataError("expected different files of predictions, found one twice")
    for depth in range(1, max((len(path.parts) for path in paths), default=1) + 1):
        names = ["/".join((*path.parts[-depth:-1], path.stem)) for path in paths]
        if len(set(names)) == len(names):
            return names
    return [str(path) for path in paths]


def compare_files(
    inputs: Sequence[Inputs],
    settings: ScoreSettings | None = None,
    n_resamples: int = DEFAULT_RESAMPLES,
    seed: int = 0,
    confidence_level: float = DEFAULT_LEVEL,
) -> dict[str, Any]:
    """``compare`` for prediction files of one split of a corpus.

    Args:
        inputs: as for ``score``, one per system, which differ in ``results``.
        settings: what is scored (thresholds and the like), as for ``score``.
        n_resamples, seed, confidence_level: as for ``compare``.

    Raises:
        DataError: what ``score`` refuses, or files that share no score.
    """
    names = system_names([one.results for one in inputs])
    chance: dict[str, dict[str, dict[str, Any]]] = {}
    systems: dict[str, dict[str, Statistics]] = {}
    for name, one in zip(names, inputs, strict=True):
        scored = score(one, settings)
        chance[name] = scored.chance
        systems[name] = scored.statistics
    blocks = [block for block in systems[names[0]] if all(block in own for own in systems.values())]
    if not blocks:
        raise DataError("expected files that share a score, found none: their fields differ", file=inputs[-1].results)
    found = compare_blocks(
        {name: [own[block] for block in blocks] for name, own in systems.items()}, n_resamples, seed, confidence_level
    )
    return found | {"against_chance": chance_over_systems(chance)} if any(chance.values()) else found


def chance_over_systems(chance: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """Each system's test against random rationales, its p-value corrected by Holm over the systems.

    Args:
        chance: {system: {"comprehensiveness" or "sufficiency": what ``against_chance`` gives}}; a system without draws
            has none and is not counted.

    Returns:
        One dict per side and system: ``system, score, p_value, p_holm, win_rate, mean_win_rate, effect_size, draws``.
    """
    rows = []
    for side in dict.fromkeys(side for own in chance.values() for side in own):
        tested = {name: own[side] for name, own in chance.items() if side in own}
        adjusted = holm([one["p_value"] for one in tested.values()])
        for (name, one), p_holm in zip(tested.items(), adjusted, strict=True):
            told = {key: one[key] for key in ("win_rate", "mean_win_rate", "effect_size", "draws")}
            rows.append({"system": name, "score": side, "p_value": one["p_value"], "p_holm": p_holm, **told})
    return rows
