"""The runs of one call of ``explain``: each training of a model, each method, each draw has a file of its own."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from eraser_hub.records.errors import DataError
from eraser_hub.records.predictions import make_seed_path
from eraser_hub.records.registry import parse_call

from .dataset import open_split
from .given import open_given
from .method import METHODS, Method
from .models.opening import find_trainings, open_model, read_model_settings
from .ray_data import explain_on_ray
from .run import OnProgress, Run, RunReport, check_out, execute, find_query, make_settings_for
from .settings import FILE, HUMAN, MODEL, build_settings, find_preset


def explain_split(
    model: Any,
    dataset: str,
    out: Path,
    *,
    config: str | None,
    split_name: str,
    limit: int | None,
    sample: int | None,
    methods: Sequence[str | Method],
    rationales: str,
    scores: str,
    label_names: Sequence[str],
    workers: int,
    resume: bool,
    force: bool,
    on_progress: OnProgress,
    paper: str,
    seed: int,
    **options: Any,
) -> list[RunReport]:
    """Explain a split by each method and training, into a file each; arguments as of `explain`.

    All places are looked at before the first model is opened, which is opened once for all of its runs.
    """
    named = isinstance(model, str | os.PathLike)
    kind = type(model[0] if isinstance(model, tuple) and model else model)  # a network, beside its tokenizer
    place = os.fspath(model) if named else f"{kind.__module__}.{kind.__qualname__}"
    if not named and (resume or workers):  # no record tells one object from another
        message = f"expected a model's path or id beside it, found an object, {type(model).__name__}"
        raise DataError(message, argument="resume" if resume else "workers")
    plans = _plan_files(methods, out)
    models: list[tuple[int | None, str]] = [*find_trainings(place)] if named else []
    models = models or [(None, place)]
    inputs = (dataset, scores, rationales, place if named else None)
    for training, _ in models:
        for _, path in plans:
            check_out(_name_file(path, training), inputs, force, resume)
    if not (methods or rationales or scores):
        rationales = find_preset(paper).rationales
    options |= {"scores": FILE if scores else ""}
    options["rationales"] = rationales if rationales in ("", HUMAN, MODEL) else FILE
    for method, _ in plans:  # what neither data nor model can mend is told before they are opened
        build_settings(paper, method=method, seed=seed, **options)
    split = open_split(dataset, config, split_name)
    split = split if sample is None else split.sample(sample, seed)
    given = (
        open_given(rationales or scores, "rationales" if rationales else "scores", split.kind)
        if ((rationales and rationales != MODEL) or scores)
        else None
    )
    reports = []
    for number, (training, folder) in enumerate(models):
        opening: dict[str, Any] = {"label_names": split.label_names, "config": split.config}
        opening |= {"labels": tuple(label_names)} if len(label_names) else {}
        settings_of_model = read_model_settings(folder) if named else None
        if settings_of_model is None or settings_of_model.query is None:
            opening["uses_query"] = find_query(split, folder)
        opened = open_model(folder if named else model, **opening)
        for draw, (method, path) in enumerate(plans):
            settings, messages = make_settings_for(
                split,
                opened,
                paper,
                folder,
                given,
                limit,
                method=method,
                seed=seed + number,
                **options,
            )
            draws = sum(other == method for other, _ in plans[:draw])
            run = Run(
                split=split,
                model=opened,
                place=folder,
                opening=opening,
                settings=replace(settings, seed=settings.seed + draws),
                out=_name_file(path, training),
                given=given,
                limit=limit,
                messages=messages,
            )
            writer = check_out(run.out, inputs, force, resume)
            how: dict[str, Any] = {"explain_chunks": partial(explain_on_ray, workers=workers)} if workers else {}
            reports.append(execute(run, writer, resume=resume, force=force, on_progress=on_progress, **how))
    return reports


def _name_file(out: Path, training: int | None) -> Path:
    """Return the file of one of several trainings, or the file itself."""
    return out if training is None else make_seed_path(out, training)


def _plan_files(methods: Sequence[str | Method], out: Path) -> list[tuple[str | Method | None, Path]]:
    """Return the method and the file of each run: OUT.METHOD.jsonl of several methods, OUT.draw-01.jsonl of draws.

    Raises:
        DataError: a method twice, or one that there is not.
    """
    plans: list[tuple[str | Method | None, Path]] = []
    names = list[str]()
    if not methods:
        return [(None, out)]
    for method in methods:
        if isinstance(method, Method):
            name, draws = METHODS.name_of(type(method)), getattr(method, "draws", 1)
        else:
            name = parse_call(method, "method")[0]
            made = METHODS.make(method, "method")
            draws = getattr(made, "draws", 1) if name == "random" else 1
        if name in names:
            raise DataError(f"expected each method once, found {name} again", argument="method")
        names.append(name)
        path = out.with_name(f"{out.stem}.{name}{out.suffix}") if len(methods) > 1 else out
        if name != "random":
            plans.append((method, path))
            continue
        files = [path.with_name(f"{path.stem}.draw-{draw:02d}{path.suffix}") for draw in range(1, draws + 1)]
        plans += [("random", file) for file in (files if draws > 1 else [path])]
    return plans
