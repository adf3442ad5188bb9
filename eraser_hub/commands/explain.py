"""``eraser-hub explain``: a dataset and a model -> predictions in the ERASER results format."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from tqdm import tqdm


def explain(
    dataset: Annotated[str, typer.Option(help="Dataset folder (hub/eraser) or Hub id.")],
    model: Annotated[str, typer.Option(help="Model folder of `eraser-hub train`, .skops file, or transformers id.")],
    out: Annotated[Path, typer.Option(help="Predictions: a file ending in .jsonl or .parquet.")],
    config: Annotated[str | None, typer.Option(help="Config; by default the dataset's default config.")] = None,
    split: Annotated[str, typer.Option(help="Split (val and validation are one).")] = "test",
    method: Annotated[
        str | None,
        typer.Option(
            help="random, occlusion (the default), gradient, input-x-gradient, integrated-gradients, attention, lime or "
            "coefficients."
        ),
    ] = None,
    scores: Annotated[
        Path | None,
        typer.Option(help="In place of a method: token scores from elsewhere, the soft rationales of a results file."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all that is drawn.")] = 1,
    draws: Annotated[int, typer.Option(min=1, help="--method random: so many files, OUT.draw-01.jsonl, ...")] = 1,
    kd: Annotated[
        float | None, typer.Option(help="Share of tokens in a hard rationale; by default the config's average.")
    ] = None,
    bins: Annotated[str, typer.Option(help="AOPC bins in per cent, '' for none.")] = "1,5,10,20,50",
    erase: Annotated[str, typer.Option(help="How tokens are erased: remove, mask or pad.")] = "remove",
    tokens_to_flip: Annotated[
        bool, typer.Option("--tokens-to-flip", help="Search how many top tokens must go until the label changes.")
    ] = False,
    random_draws: Annotated[
        int, typer.Option(min=0, help="Random rationales of each instance's own length, to score against chance.")
    ] = 0,
    random_kind: Annotated[
        str, typer.Option(help="Random rationales: tokens (any set), or spans (its own spans, shifted).")
    ] = "tokens",
    fidelity_trials: Annotated[
        int, typer.Option(min=0, help="Fidelity curves: trials for each occlusion rate (0: none).")
    ] = 0,
    fidelity_rates: Annotated[
        str | None, typer.Option(help="Occlusion rates in per cent; by default 0, 5, .., 100.")
    ] = None,
    steps: Annotated[int, typer.Option(min=1, help="Steps of integrated gradients.")] = 300,
    lime_samples: Annotated[int, typer.Option(min=2, help="LIME: perturbed samples, N.")] = 5000,
    lime_tokens: Annotated[
        int, typer.Option(min=0, help="LIME: tokens in each sample, K; 0: a uniformly drawn number.")
    ] = 10,
    task: Annotated[
        str, typer.Option(help="transformers: auto, classification, multiple-choice or question-answering.")
    ] = "auto",
    labels: Annotated[
        str | None, typer.Option(help="The dataset's name of each of the model's outputs: 'NEG,POS'.")
    ] = None,
    query: Annotated[
        bool | None,
        typer.Option("--query/--no-query", help="Show the query to the model; by default as it was trained."),
    ] = None,
    window: Annotated[int | None, typer.Option(min=8, help="transformers: longest input in sub-words.")] = None,
    device: Annotated[str | None, typer.Option(help="torch device; by default cuda where there is one.")] = None,
    precision: Annotated[
        str, typer.Option(help="transformers: float32, bfloat16, or auto: bfloat16 on a GPU that has it.")
    ] = "auto",
    trust_pickle: Annotated[
        bool, typer.Option("--trust-pickle", help="Open joblib and pickle files, which run code.")
    ] = False,
    batch_size: Annotated[int, typer.Option(min=1, help="Full-length inputs at a time.")] = 32,
    chunk: Annotated[int, typer.Option(min=1, help="Instances worked on, and written, together.")] = 16,
    limit: Annotated[int | None, typer.Option(min=1, help="Explain the first so many instances.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a stopped run.")] = False,
    engine: Annotated[str, typer.Option(help="local, or ray.")] = "local",
    workers: Annotated[int, typer.Option(min=1, help="--engine ray: workers, each with a model.")] = 2,
    threads: Annotated[int, typer.Option(min=0, help="Processor threads of a model (0: as torch sees fit).")] = 0,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress.")] = False,
) -> None:
    """Explain a model's predictions, and write what `score` and the metric modules take as it is.

    Every token gets a score; the top kd make the hard rationale; the model is asked again without it, with it alone, at
    each AOPC bin, and with nothing. Equal scores rank in the order of the text. OUT.run.json says how OUT was made.

    Examples:

        eraser-hub explain --dataset hub/eraser --config movies --split val --model model/ --method occlusion --out occlusion.jsonl

        eraser-hub explain --dataset hub/eraser --config movies --model model/ --method random --draws 10 --out random.jsonl

        eraser-hub explain --dataset hub/eraser --config movies --model model/ --method lime --random-draws 100 --out lime.parquet --resume

        eraser-hub explain --dataset hub/eraser --config movies --model model/ --engine ray --workers 4 --out all.parquet

        eraser-hub explain --dataset hub/eraser --config movies --model model/ --scores shap.jsonl --out shap-erased.jsonl
    """
    from tqdm import tqdm

    from eraser_hub.explain.dataset import kd_of, open_split
    from eraser_hub.explain.open import TASKS
    from eraser_hub.explain.outputs import FORMATS, partial_path
    from eraser_hub.explain.run import ENGINES, draw_path, explain_draws
    from eraser_hub.explain.settings import (
        ERASE_MODES,
        FIDELITY_RATES,
        METHODS,
        RANDOM_KINDS,
        ExplainSettings,
    )  # fmt: skip
    from eraser_hub.explain.transformers.devices import PRECISIONS
    from eraser_hub.explain.work import Job

    if scores is not None and method is not None:
        raise typer.BadParameter("expected --method or --scores, found both", param_hint="--scores")
    method = method or "occlusion"
    for option, value, allowed in (
        ("--method", method, METHODS), ("--erase", erase, ERASE_MODES), ("--task", task, TASKS),
        ("--engine", engine, ENGINES), ("--precision", precision, PRECISIONS), ("--random-kind", random_kind, RANDOM_KINDS),
    ):  # fmt: skip
        if value not in allowed:
            raise typer.BadParameter(f"expected one of {', '.join(allowed)}; found {value!r}", param_hint=option)
    if out.suffix not in FORMATS:
        raise typer.BadParameter(f"expected a file ending in {' or '.join(FORMATS)}", param_hint="--out")
    if draws > 1 and method != "random":
        raise typer.BadParameter(f"only --method random is drawn; {method} gives one result", param_hint="--draws")
    if kd is not None and not 0 <= kd <= 1:
        raise typer.BadParameter(f"expected a share from 0 to 1, found {kd}", param_hint="--kd")
    job = Job(
        dataset=dataset, config=config, split=split, model=model, task=task, trust_pickle=trust_pickle,
        labels=tuple(name.strip() for name in labels.split(",")) if labels else (), query=query, window=window,
        device=device, precision=precision, limit=limit, threads=threads, scores=scores,
    )  # fmt: skip
    shares, rates = percents(bins, "--bins"), percents(fidelity_rates, "--fidelity-rates")
    rows = open_split(dataset, config, split)
    settings = ExplainSettings(
        kd=kd_of(rows) if kd is None else kd, method=method, seed=seed, bins=shares, erase=erase, tokens_to_flip=tokens_to_flip,
        random_draws=random_draws, random_kind=random_kind, fidelity_trials=fidelity_trials,
        fidelity_rates=FIDELITY_RATES if fidelity_rates is None else rates, steps=steps, lime_samples=lime_samples,
        lime_tokens=lime_tokens, batch_size=batch_size, chunk=chunk,
    )  # fmt: skip
    outs = [out] if draws == 1 else [draw_path(out, draw) for draw in range(1, draws + 1)]
    total = rows.size if limit is None or rows.size is None else min(limit, rows.size)
    with tqdm(
        total=None if total is None else total * draws, unit=" instances", disable=quiet, mininterval=0.5, smoothing=0
    ) as bar:
        try:
            reports = explain_draws(
                job, settings, outs, resume=resume, engine=engine, workers=workers, on_progress=progress_on(bar)
            )
        except KeyboardInterrupt:
            bar.close()
            kept = [path for path in outs if path.is_file() or partial_path(path).is_file()]
            typer.echo("stopped" + (": what is done is kept; --resume goes on with it" if kept else ""), err=True)
            raise
        for report in reports:
            bar.close()
            for line in report.lines():
                typer.echo(line, err=True)


def progress_on(bar: tqdm[Any]) -> Callable[[int, int], None]:
    """Shows finished instances and the rate of forward passes on a bar."""
    total = 0

    def show(instances: int, passes: int) -> None:
        nonlocal total
        if not total:
            bar.unpause()  # opening the model is not counted: the clock starts with the first result
        total += passes
        elapsed = bar.format_dict["elapsed"]
        if elapsed > 0.1:
            bar.set_postfix_str(f"{total / elapsed:.0f} passes/s", refresh=False)
        bar.update(instances)

    return show


def percents(text: str | None, option: str) -> tuple[float, ...]:
    """``"1,5,10"`` -> (0.01, 0.05, 0.1); twelve significant digits, so that 7 per cent is 0.07 and not 0.07000000000000001."""
    try:
        return tuple(float(f"{float(part) / 100:.12g}") for part in (text or "").split(",") if part.strip())
    except ValueError:
        raise typer.BadParameter(f"expected numbers with commas between, found {text!r}", param_hint=option) from None
