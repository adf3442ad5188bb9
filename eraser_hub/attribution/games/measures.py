"""What is asked of a ranking beside the erasure of its rationale: NAOPC, soft scores, leave-one-out, stability."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eraser_hub.attribution import erasure
from eraser_hub.attribution.adapter import Encoded
from eraser_hub.attribution.attribution import attribute
from eraser_hub.attribution.instances import Instance
from eraser_hub.attribution.runner import Runner
from eraser_hub.attribution.settings import ExplainSettings
from eraser_hub.metrics.erasure import SAME_BOUNDS
from eraser_hub.metrics.fields import AOPC_BOUNDS, LEAVE_ONE_OUT, SOFT_MASKS

from . import orderings, soft, stability
from .play import EXACT_UNITS, Game, Search, played

NO_SPAN = "instances whose least and greatest AOPC are equal: nothing to normalise by"
Fields = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class RankedChunk:
    """A chunk's scores of tokens, and the games that they are asked about.

    Attributes:
        scores: of the tokens of each instance, as they are written.
        games: for each instance, with the label that its scores explain.
    """

    runner: Runner
    encoded: Sequence[Encoded]
    scores: Sequence[NDArray[np.float64]]
    games: Sequence[Game]
    settings: ExplainSettings

    def play(self, search: Callable[[Game, NDArray[np.float64], Instance], Search[Any]]) -> list[Any]:
        """The result of a search for each instance, from its game, the scores of its units, and itself."""
        searches = [
            search(game, game.of_units(scores), one.instance)
            for game, scores, one in zip(self.games, self.scores, self.encoded, strict=True)
        ]
        return played(self.runner, self.encoded, self.games, searches, self.settings.choices.filler)

    def random(self, one: Instance, purpose: str) -> np.random.Generator:
        """Random numbers of this instance and purpose."""
        return erasure.generator(self.settings.seed, one.id, purpose)


def measures(ranked: RankedChunk) -> Fields:
    """For each instance the fields that its prediction gets besides."""
    settings = ranked.settings
    fields: Fields = [{} for _ in ranked.games]
    for asked, measure in (
        (settings.aopc_bounds, aopc_bounds),
        (settings.soft_draws, soft_scores),
        (settings.leave_one_out, leave_one_out),
        (settings.infidelity_draws, infidelity),
        (settings.sensitivity_draws, sensitivity),
    ):
        if asked:
            for field, more in zip(fields, measure(ranked), strict=True):
                field |= more
    return fields


def aopc_bounds(ranked: RankedChunk) -> Fields:
    """The AOPC of each ranking, and the least and the greatest of all orders."""
    width, choices = ranked.settings.beam, ranked.settings.choices

    def bounds(game: Game, scores: NDArray[np.float64], one: Instance) -> Search[orderings.Bounds]:
        if one.aopc_bounds is not None:
            return orderings.known_bounds(*one.aopc_bounds)
        if game.size <= EXACT_UNITS:
            return orderings.exact_bounds(game.size, game.full)
        return orderings.beam_bounds(game.size, game.full, width)

    def ranking(game: Game, scores: NDArray[np.float64], one: Instance) -> Search[tuple[float, float]]:
        return orderings.aopc_of_ranking(erasure.ranking(scores, choices.ties), game.full)

    fields: Fields = []
    for game, (lower, upper), (high, low) in zip(ranked.games, ranked.play(bounds), ranked.play(ranking), strict=True):
        if upper - lower <= SAME_BOUNDS:
            ranked.runner.model.notes.count(NO_SPAN)
        exact = game.size <= EXACT_UNITS
        of_order = {"lower": lower, "upper": upper, "comprehensiveness": high}
        reverse = {"sufficiency_lower": lower, "sufficiency_upper": upper, "sufficiency": low}
        search = {"method": "exact" if exact else "beam", "beam": 0 if exact else width}
        fields.append({AOPC_BOUNDS: {**of_order, **reverse, **search}})
    return fields


def soft_scores(ranked: RankedChunk) -> Fields:
    """Soft comprehensiveness and sufficiency of each instance."""
    if ranked.settings.soft_masks == "elements":
        return [{SOFT_MASKS: _of_elements(ranked, game)._asdict()} for game in ranked.games]

    def search(game: Game, scores: NDArray[np.float64], one: Instance) -> Search[soft.Soft]:
        return soft.soft_scores(scores, game.full, ranked.settings.soft_draws, ranked.random(one, "soft"))

    return [{SOFT_MASKS: result._asdict()} for result in ranked.play(search)]


def _of_elements(ranked: RankedChunk, game: Game) -> soft.Soft:
    """Both soft scores of an instance, numbers of its tokens' embeddings erased by chance."""
    one, draws = ranked.encoded[game.number], ranked.settings.soft_draws
    random = ranked.random(one.instance, "soft elements")
    keep = soft.importance(ranked.scores[game.number])
    without, only, nothing = (
        ranked.runner.model.masked_elements(one, game.label, share, number, random)
        for share, number in ((1 - keep, draws), (keep, draws), (np.zeros_like(keep), 1))
    )
    return soft.soft_of_draws(game.full, without, only, float(nothing[0]))


def leave_one_out(ranked: RankedChunk) -> Fields:
    """p(label) minus p without it, of each unit; the tokens of a sentence share its value."""

    def search(game: Game, scores: NDArray[np.float64], one: Instance) -> Search[NDArray[np.float64]]:
        if not game.size:
            return np.zeros(0)
        worths = yield ~np.eye(game.size, dtype=bool)
        return game.full - worths

    pairs = zip(ranked.games, ranked.play(search), strict=True)
    return [{LEAVE_ONE_OUT: game.of_tokens(values).tolist()} for game, values in pairs]


def infidelity(ranked: RankedChunk) -> Fields:
    """Infidelity of each instance's scores, as they are and at their best scale."""

    def search(game: Game, scores: NDArray[np.float64], one: Instance) -> Search[tuple[float, float]]:
        random = ranked.random(one, "perturbed")
        stands = stability.perturbed_sets(game.size, ranked.settings.infidelity_draws, random)
        return stability.infidelity_of(scores, game.full, stands)

    return [{"infidelity": plain, "infidelity_normalized": normalised} for plain, normalised in ranked.play(search)]


def sensitivity(ranked: RankedChunk) -> Fields:
    """How far each instance's scores move at most, as a share of their norm, as a random tenth of its units goes."""
    instances, labels, kept, owner = list[Instance](), list[int](), list[NDArray[np.bool_]](), list[int]()
    for game, one in zip(ranked.games, ranked.encoded, strict=True):
        random = ranked.random(one.instance, "perturbed")
        for stands in stability.perturbed_sets(game.size, ranked.settings.sensitivity_draws, random):
            tokens = np.repeat(stands, np.diff(game.bounds))
            instances.append(one.instance.only(tokens))
            labels.append(game.label)
            kept.append(tokens)
            owner.append(game.number)
    rows = _scores_anew(ranked, instances, labels)
    moved: list[list[NDArray[np.float64]]] = [[] for _ in ranked.games]
    for number, tokens, row in zip(owner, kept, rows, strict=True):
        perturbed = ranked.scores[number].copy()
        perturbed[tokens] = row
        moved[number].append(perturbed)
    pairs = zip(ranked.scores, moved, strict=True)
    return [{"sensitivity_max": stability.sensitivity_max(scores, several)} for scores, several in pairs]


def _scores_anew(
    ranked: RankedChunk, instances: Sequence[Instance], labels: Sequence[int]
) -> list[NDArray[np.float64]]:
    """The method's scores of further instances for these labels."""
    runner, settings = ranked.runner, ranked.settings
    encoded = [runner.model.encode(one) for one in instances]
    whole = [erasure.full(number) for number in range(len(encoded))]
    full = runner.run(encoded, whole, settings.choices.filler)[np.arange(len(labels)), list(labels)]
    runner = runner.by(settings.scores_erase or settings.erase)
    return attribute(runner, encoded, labels, full.tolist(), settings)
