"""``eraser-hub explain``: a dataset and a model -> predictions in the ERASER results format."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .usage import Config, Dataset, Revision, Seed, Split, at_revision, chosen, say, takes

if TYPE_CHECKING:
    from tqdm import tqdm

    from eraser_hub.attribution.settings import ExplainSettings
    from eraser_hub.attribution.work import Job


Resume = Annotated[bool, typer.Option("--resume", help="Go on with a stopped run.")]
Force = Annotated[bool, typer.Option("--force", help="Replace a result that was made otherwise.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress.")]


@dataclass(frozen=True, slots=True)
class ExplainOptions:
    """The options of ``eraser-hub explain``, and their help.

    Attributes:
        model: Model folder of `eraser-hub train`, .skops file, or transformers id.
        out: Predictions: a file ending in .jsonl or .parquet.
        method: random, occlusion (the default), gradient, simple-gradient, input-x-gradient, integrated-gradients,
            attention, lime, coefficients, shapley, kernel-shap or deeplift.
        paper: A paper's own choices wherever no option says otherwise: eraser, wang2022 or carton2020.
        scores: In place of a method: token scores from elsewhere, the soft rationales of a results file.
        rationales: In place of a method: human, model (its own, the default of a model that selects), or a results
            file's hard ones.
        target: The label that scores explain: predicted, gold, or a label's name.
        draws: --method random: so many files, OUT.draw-01.jsonl, ...
        kd: Share of tokens in a hard rationale; by default the config's average.
        bins: AOPC bins in per cent, '' for none; by default 1,5,10,20,50.
        erase: How tokens are erased: remove (the default), mask, pad or infill; several with commas between write a
            file each, OUT.remove.jsonl, .., of the same scores, made by the first.
        infill: --erase infill: the masked language model that draws words for erased tokens, a folder or Hub id.
        tokens_to_flip: Search how many top tokens must go until the label changes.
        random_draws: Random rationales of each instance's own length, to score against chance.
        random_kind: Random rationales: tokens (any set), or spans (its own spans, shifted).
        fidelity_trials: Fidelity curves: trials for each occlusion rate (0, the default: none).
        fidelity_rates: Occlusion rates in per cent; by default 0, 5, .., 100.
        steps: Steps of integrated gradients; by default 300.
        lime_samples: LIME: perturbed samples, N; by default 5000.
        lime_tokens: LIME: tokens in each sample, K; 0, the default: a uniformly drawn number.
        units: What shapley, kernel-shap and the options below erase together: tokens, or sentences.
        shapley_draws: --method shapley: permutations, each with its reverse.
        shap_samples: --method kernel-shap: sets of units (0: 2 n + 2048).
        aopc_bounds: Find the least and the greatest AOPC, for normalised AOPC (NAOPC).
        aopc_bounds_from: --aopc-bounds as another run of the same model and data found them (a results file): they do
            not depend on the method.
        beam: --aopc-bounds of more than 10 units: orders that are followed together.
        soft_draws: Soft comprehensiveness and sufficiency: masks of more than 8 units (0: neither).
        soft_masks: --soft-draws: what masks erase, tokens (units), or elements of their embeddings (transformers).
        leave_one_out: p(label) minus p without it, of each unit, for tau_loo.
        infidelity: Infidelity: perturbed inputs of each instance (0: none).
        sensitivity: Largest sensitivity: perturbed inputs whose scores are computed anew (0: none).
        distribution: How far whole and erased inputs lie from so many texts of --distribution-split, by the model's
            states (0: not).
        distribution_split: The split that the model was trained on.
        max_inputs: Refuse a run that may take more inputs of the model.
        task: transformers: auto, classification, multiple-choice or question-answering.
        labels: The dataset's name of each of the model's outputs: 'NEG,POS'.
        query: Show the query to the model; by default as it was trained.
        window: transformers: longest input in sub-words.
        device: torch device; by default cuda where there is one.
        precision: transformers: float32, bfloat16, float16, or auto: bfloat16 on a GPU that has it.
        trust_pickle: Open joblib and pickle files, which run code.
        trust_remote_code: transformers: run the code that a model brings along.
        batch_size: Full-length inputs at a time.
        chunk: Instances worked on, and written, together.
        limit: Explain the first so many instances.
        sample: Explain so many instances, drawn by seed with each label's share.
        engine: local, or ray.
        workers: --engine ray: workers, each with a model.
        threads: Processor threads of a model (0: as torch sees fit).
    """

    dataset: Dataset
    model: str
    out: Path
    config: Config = None
    split: Split = "test"
    method: str | None = None
    paper: str | None = None
    scores: Path | None = None
    rationales: str | None = None
    target: str = "predicted"
    seed: Seed = 1
    draws: Annotated[int, typer.Option(min=1)] = 1
    kd: float | None = None
    bins: str | None = None
    erase: str | None = None
    infill: str | None = None
    tokens_to_flip: Annotated[bool, typer.Option("--tokens-to-flip")] = False
    random_draws: Annotated[int, typer.Option(min=0)] = 0
    random_kind: str = "tokens"
    fidelity_trials: Annotated[int | None, typer.Option(min=0)] = None
    fidelity_rates: str | None = None
    steps: Annotated[int | None, typer.Option(min=1)] = None
    lime_samples: Annotated[int | None, typer.Option(min=2)] = None
    lime_tokens: Annotated[int | None, typer.Option(min=0)] = None
    units: str = "tokens"
    shapley_draws: Annotated[int, typer.Option(min=1)] = 10
    shap_samples: Annotated[int, typer.Option(min=0)] = 0
    aopc_bounds: Annotated[bool, typer.Option("--aopc-bounds")] = False
    aopc_bounds_from: Path | None = None
    beam: Annotated[int, typer.Option(min=1)] = 5
    soft_draws: Annotated[int, typer.Option(min=0)] = 0
    soft_masks: str = "tokens"
    leave_one_out: Annotated[bool, typer.Option("--leave-one-out")] = False
    infidelity: Annotated[int, typer.Option(min=0)] = 0
    sensitivity: Annotated[int, typer.Option(min=0)] = 0
    distribution: Annotated[int, typer.Option(min=0)] = 0
    distribution_split: str = "train"
    max_inputs: Annotated[int | None, typer.Option(min=1)] = None
    task: str = "auto"
    labels: str | None = None
    query: Annotated[bool | None, typer.Option("--query/--no-query")] = None
    window: Annotated[int | None, typer.Option(min=8)] = None
    device: str | None = None
    precision: str = "auto"
    trust_pickle: Annotated[bool, typer.Option("--trust-pickle")] = False
    trust_remote_code: Annotated[bool, typer.Option("--trust-remote-code")] = False
    batch_size: Annotated[int, typer.Option(min=1)] = 32
    chunk: Annotated[int, typer.Option(min=1)] = 16
    limit: Annotated[int | None, typer.Option(min=1)] = None
    sample: Annotated[int | None, typer.Option(min=1)] = None
    revision: Revision = None
    resume: Resume = False
    force: Force = False
    engine: str = "local"
    workers: Annotated[int, typer.Option(min=1)] = 2
    threads: Annotated[int, typer.Option(min=0)] = 0
    quiet: Quiet = False


@takes(ExplainOptions)
def explain(options: ExplainOptions) -> None:
    """Explain a model's predictions, and write what `score` and the metric modules take as it is.

    Every token gets a score; the top kd make the hard rationale; the model is asked again without it, with it alone, at
    each AOPC bin, and with nothing. Equal scores rank in the order of the text. OUT.run.json says how OUT was made.

    Examples:

        eraser-hub explain --dataset hub/eraser --config movies --split val --model model/ --method occlusion \
--out occlusion.jsonl

        eraser-hub explain --dataset hub/eraser --config movies --model model/ --method random --draws 10 \
--out random.jsonl

        eraser-hub explain --dataset hub/eraser --config movies --model model/ --method lime --random-draws 100 \
--out lime.parquet --resume

        eraser-hub explain --dataset hub/eraser --config movies --model model/ --engine ray --workers 4 \
--out all.parquet

        eraser-hub explain --dataset hub/eraser --config movies --model model/ --scores shap.jsonl \
--out shap-erased.jsonl

        eraser-hub explain --dataset hub/eraser --config movies --model model/ --rationales human \
--fidelity-trials 5 --out human.jsonl

        eraser-hub explain --dataset hub/eraser --config movies --model model/ --erase remove,mask,pad,infill \
--infill distilbert/distilbert-base-uncased --out by.jsonl

        eraser-hub explain --dataset hub/eraser --config movies --model model/ --paper eraser --out eraser.jsonl

        eraser-hub explain --dataset hub/eraser --config movies --model model/ --units sentences --method shapley \
--aopc-bounds --leave-one-out --soft-draws 50 --max-inputs 100000 --out shapley.jsonl
    """
    from eraser_hub.attribution.run import draw_path

    sources = {"--method": options.method, "--scores": options.scores, "--rationales": options.rationales}
    together = [name for name, value in sources.items() if value is not None]
    if len(together) > 1:
        raise typer.BadParameter(f"expected {' or '.join(together)}, found both", param_hint=together[1])
    ways = [way.strip() for way in (options.erase or "").split(",")]
    _refuse_unknown(options, ways)
    _refuse(options.out, options.draws, options.method, options.kd)
    job = _job(options)
    settings, size = _settings(options, job, ways)
    out, draws = options.out, options.draws
    outs = [out] if draws == 1 else [draw_path(out, draw) for draw in range(1, draws + 1)]
    total = min((number for number in (size, options.limit, options.sample) if number is not None), default=None)
    bar = Bar(None if total is None else total * draws, options.quiet)
    _run(job, settings, outs, bar, **chosen(options, "resume force engine workers max_inputs"))


def _job(options: ExplainOptions) -> Job:
    from eraser_hub.attribution.work import Job

    return Job(
        dataset=at_revision(options.dataset, options.revision),
        labels=tuple(name.strip() for name in options.labels.split(",")) if options.labels else (),
        rationales=options.rationales or "",
        infill=options.infill or "",
        aopc_bounds=options.aopc_bounds_from,
        **chosen(options, "config split model task trust_pickle trust_remote_code query window device precision"),
        **chosen(options, "limit sample threads scores distribution_split"),
    )


def _settings(options: ExplainOptions, job: Job, ways: Sequence[str]) -> tuple[ExplainSettings, int | None]:
    """The settings, and how many rows the split has."""
    from eraser_hub.attribution.run import settings_for_job

    rates = options.fidelity_rates
    return settings_for_job(
        job,
        options.paper or "",
        bins=None if options.bins is None else percents(options.bins, "--bins"),
        fidelity_rates=None if rates is None else percents(rates, "--fidelity-rates"),
        erase=ways[0] or None,
        also_erase=ways[1:] or None,
        infidelity_draws=options.infidelity,
        sensitivity_draws=options.sensitivity,
        distribution_texts=options.distribution,
        **chosen(options, "method target seed kd tokens_to_flip random_draws random_kind fidelity_trials steps"),
        **chosen(options, "lime_samples lime_tokens units shapley_draws shap_samples aopc_bounds beam soft_draws"),
        **chosen(options, "soft_masks leave_one_out batch_size chunk"),
    )


def _refuse_unknown(options: ExplainOptions, ways: Sequence[str]) -> None:
    from eraser_hub.attribution.games.units import MASKS, UNITS
    from eraser_hub.attribution.open import TASKS
    from eraser_hub.attribution.run import ENGINES
    from eraser_hub.attribution.settings import METHODS, RANDOM_KINDS
    from eraser_hub.attribution.transformers.devices import PRECISIONS
    from eraser_hub.papers.presets import PRESETS
    from eraser_hub.records.operators import ERASE_MODES

    choices: list[tuple[str, str | None, Collection[str]]] = [
        ("--method", options.method, METHODS),
        *(("--erase", way or None, ERASE_MODES) for way in ways),
        ("--task", options.task, TASKS),
        ("--engine", options.engine, ENGINES),
        ("--precision", options.precision, PRECISIONS),
        ("--random-kind", options.random_kind, RANDOM_KINDS),
        ("--paper", options.paper, PRESETS),
        ("--units", options.units, UNITS),
        ("--soft-masks", options.soft_masks, MASKS),
    ]
    for option, value, allowed in choices:
        if value is not None and value not in allowed:
            raise typer.BadParameter(f"expected one of {', '.join(allowed)}; found {value!r}", param_hint=option)


def _refuse(out: Path, draws: int, method: str | None, kd: float | None) -> None:
    from eraser_hub.attribution.outputs import FORMATS

    if out.suffix not in FORMATS:
        raise typer.BadParameter(f"expected a file ending in {' or '.join(FORMATS)}", param_hint="--out")
    if draws > 1 and method != "random":
        raise typer.BadParameter(
            f"only --method random is drawn; {method or 'another'} gives one result", param_hint="--draws"
        )
    if kd is not None and not 0 <= kd <= 1:
        raise typer.BadParameter(f"expected a share from 0 to 1, found {kd}", param_hint="--kd")


def _run(job: Job, settings: ExplainSettings, outs: list[Path], bar: Bar, **how: Any) -> None:
    """Explain with a progress bar, and print what the runs report."""
    from eraser_hub.attribution.outputs import partial_path
    from eraser_hub.attribution.run import explain_draws

    try:
        reports = explain_draws(job, settings, outs, on_progress=bar.show, on_cost=say, **how)
    except KeyboardInterrupt:
        bar.close()
        kept = [path for path in outs if path.is_file() or partial_path(path).is_file()]
        say("stopped" + (": what is done is kept; --resume goes on with it" if kept else ""))
        raise
    finally:
        bar.close()
    for report in reports:
        for line in report.lines():
            say(line)


class Bar:
    """Finished instances and the rate of forward passes; it appears with the first of them.

    What is wrong with model, labels or data is said before it, and the opening of a model is not in its rate.
    """

    def __init__(self, total: int | None, quiet: bool) -> None:
        self._total, self._quiet, self._passes = total, quiet, 0
        self._bar: tqdm[Any] | None = None

    def show(self, instances: int, passes: int) -> None:
        """Count instances and forward passes that were done."""
        from tqdm import tqdm

        if self._bar is None:
            total = self._total
            self._bar = tqdm(total=total, unit=" instances", disable=self._quiet, mininterval=0.5, smoothing=0)
        self._passes += passes
        elapsed = self._bar.format_dict["elapsed"]
        if elapsed > 0.1:
            self._bar.set_postfix_str(f"{self._passes / elapsed:.0f} passes/s", refresh=False)
        self._bar.update(instances)

    def close(self) -> None:
        """Leave it as it stands."""
        if self._bar is not None:
            self._bar.close()


def percents(text: str | None, option: str) -> tuple[float, ...]:
    """``"1,5,10"`` -> (0.01, 0.05, 0.1), of twelve significant digits: 7 per cent is 0.07, not 0.07000000000000001."""
    try:
        return tuple(float(f"{float(part) / 100:.12g}") for part in (text or "").split(",") if part.strip())
    except ValueError:
        raise typer.BadParameter(f"expected numbers with commas between, found {text!r}", param_hint=option) from None
