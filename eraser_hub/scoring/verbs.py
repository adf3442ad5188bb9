"""The public functions `score` and `compare`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from eraser_hub.records.errors import UsageError
from eraser_hub.records.options import NamedFiles, as_list, read_options, with_documented_options, with_keywords

from .options import CompareArguments, ScoreArguments

if TYPE_CHECKING:
    from .compare import Comparison
    from .result import Scores


@with_keywords(ScoreArguments)
def score(arguments: ScoreArguments) -> Scores:
    """Score predictions against a corpus.

    Returns:
        The scores: ``table()``, ``to_frame()`` and ``save(path)`` give them in other forms, a notebook shows them.

    Raises:
        DataError: bad data: the first fault, with file and line, and the number of further ones.

    Examples:
        >>> from eraser_hub import samples, score
        >>> predictions = samples.path("predictions", "eraser", "movies.val.jsonl")
        >>> scores = score(predictions, dataset="hub/eraser", config="movies", split="val")
        >>> scores.names["split"], "token_macro_f1" in scores.scores
        ('validation', True)
    """
    from eraser_hub.conversion.download.addresses import fetch_file
    from eraser_hub.scoring.score import score as run
    from eraser_hub.scoring.score import score_flat

    predictions, settings = fetch_file(arguments.predictions), arguments.settings()
    if arguments.gold_file is not None:
        scores = score_flat(arguments.gold_file, predictions, settings)
    else:
        scores = run(arguments.scored_split, predictions, settings, as_list(arguments.metric) or ())
    scores.inputs = arguments.inputs
    return scores


@with_documented_options(CompareArguments, without=["predictions"])
def compare(
    *systems: Any, names: Sequence[str] | None = None, predictions: NamedFiles = None, **settings: Any
) -> Comparison:
    """Compare systems on the same split, score by score.

    Args:
        systems: two or more: files of predictions (``FILE``, ``NAME=FILE``, or ``NAME=FILE,FILE,..`` for runs of one
            system) or one mapping of names to files, which need ``dataset`` and ``config``, or ``source``; or what
            ``score(.., per_instance=True)`` gave; or statistics of a metric module.
        names: names of such scores or statistics. Their settings are ``resamples``, ``seed``, ``confidence_level``,
            ``primary`` and ``minimum_effect``.
        predictions: further systems: files as above, or a mapping of names to a file or to the files of several runs.
        **settings: the settings below.

    Returns:
        A dictionary: ``scores``, ``comparisons`` with differences, intervals and p-values, ``notes`` and ``signature``.
        ``table()``, ``to_frame()`` and ``save(path)`` give it in other forms, and a notebook shows it.

    Raises:
        DataError: what ``score`` refuses; systems that share no score or no instances.

    Examples:
        >>> from eraser_hub import compare, samples
        >>> folder = samples.path("predictions", "eraser")
        >>> one, other = folder / "movies.val.jsonl", folder / "movies.val.baseline.jsonl"
        >>> result = compare(one, other, dataset="hub/eraser", config="movies", split="val", resamples=100)
        >>> [(pair["first"], pair["second"]) for pair in result["comparisons"]]
        [('movies.val', 'movies.val.baseline')]
    """
    from eraser_hub.scoring.compare import compare as run
    from eraser_hub.scoring.result import Scores
    from eraser_hub.scoring.runs import parse_systems
    from eraser_hub.scoring.score import compare_systems, get_runs

    first = systems[0] if len(systems) == 1 and predictions is None else None
    if isinstance(first, list) and any(isinstance(one, str | os.PathLike) for one in first):
        message = f"expected each file as an argument of its own, or a mapping of names to files, found {first}"
        raise UsageError(message, argument="predictions")
    if isinstance(first, Mapping) and not isinstance(first, Scores):
        systems, predictions = (), first
    if predictions is None and not any(isinstance(system, str | os.PathLike) for system in systems):
        if names is not None and len(set(names)) != len(systems):
            raise UsageError(f"expected {len(systems)} different names, found {list(names)}", argument="names")
        given = [getattr(system, "name", "") or f"system {number}" for number, system in enumerate(systems, 1)]
        named = dict(zip(names or given, map(get_runs, systems), strict=True))
        data = {system.data_digest[:12] for system in systems if isinstance(system, Scores)}
        if len(data) > 1:
            raise UsageError(f"expected scores of the same data, found {', '.join(sorted(data))}", argument="systems")
        chance = {
            name: system.chance for name, system in zip(named, systems, strict=True) if isinstance(system, Scores)
        }
        return run(named, chance=chance, **settings)
    if names is not None:
        message = "of files NAME=FILE names a system"
        raise UsageError(message, argument="names")
    if systems:
        further = read_options(CompareArguments)["predictions"].check("predictions", predictions or [])
        predictions = [*systems, *(as_list(further) or ())]
    arguments = CompareArguments(predictions=predictions, **settings)
    inference, scoring = arguments.inference(), arguments.settings()
    files = parse_systems(as_list(arguments.predictions) or [], seeds=True)
    if len(files) < 2:
        message = "expected the predictions of at least two systems"
        raise UsageError(message, argument="predictions")
    comparison = compare_systems(arguments.scored_split, files, scoring, **inference)
    comparison.inputs = arguments.inputs
    return comparison
