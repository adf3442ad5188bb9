"""``eraser-hub explain``: a dataset and a model -> predictions in the ERASER results format."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .usage import Config, Dataset, Revision, Seed, Split, at_revision, say

if TYPE_CHECKING:
    from tqdm import tqdm

    from eraser_hub.explain.settings import ExplainSettings
    from eraser_hub.explain.work import Job


Model = Annotated[str, typer.Option(help="Model folder of `eraser-hub train`, .skops file, or transformers id.")]
Out = Annotated[Path, typer.Option(help="Predictions: a file ending in .jsonl or .parquet.")]
Method = Annotated[
    str | None,
    typer.Option(
        help="random, occlusion (the default), gradient, simple-gradient, input-x-gradient, integrated-gradients, "
        "attention, lime, coefficients, shapley, kernel-shap or deeplift."
    ),
]
Paper = Annotated[
    str | None,
    typer.Option(help="A paper's own choices wherever no option says otherwise: eraser, wang2022 or carton2020."),
]
Target = Annotated[str, typer.Option(help="The label that scores explain: predicted, gold, or a label's name.")]
Rationales = Annotated[
    str | None,
    typer.Option(
        help="In place of a method: human, model (its own, the default of a model that selects), or a results file's hard ones."
    ),
]
Scores = Annotated[
    Path | None,
    typer.Option(help="In place of a method: token scores from elsewhere, the soft rationales of a results file."),
]
Draws = Annotated[int, typer.Option(min=1, help="--method random: so many files, OUT.draw-01.jsonl, ...")]
Kd = Annotated[float | None, typer.Option(help="Share of tokens in a hard rationale; by default the config's average.")]
Bins = Annotated[str | None, typer.Option(help="AOPC bins in per cent, '' for none; by default 1,5,10,20,50.")]
Erase = Annotated[
    str | None,
    typer.Option(
        help="How tokens are erased: remove (the default), mask, pad or infill; several with commas between write a file "
        "each, OUT.remove.jsonl, .., of the same scores, made by the first."
    ),
]
Infill = Annotated[
    str | None,
    typer.Option(
        help="--erase infill: the masked language model that draws words for erased tokens, a folder or Hub id."
    ),
]
TokensToFlip = Annotated[
    bool, typer.Option("--tokens-to-flip", help="Search how many top tokens must go until the label changes.")
]
RandomDraws = Annotated[
    int, typer.Option(min=0, help="Random rationales of each instance's own length, to score against chance.")
]
RandomKind = Annotated[
    str, typer.Option(help="Random rationales: tokens (any set), or spans (its own spans, shifted).")
]
FidelityTrials = Annotated[
    int | None, typer.Option(min=0, help="Fidelity curves: trials for each occlusion rate (0, the default: none).")
]
FidelityRates = Annotated[str | None, typer.Option(help="Occlusion rates in per cent; by default 0, 5, .., 100.")]
Steps = Annotated[int | None, typer.Option(min=1, help="Steps of integrated gradients; by default 300.")]
LimeSamples = Annotated[int | None, typer.Option(min=2, help="LIME: perturbed samples, N; by default 5000.")]
LimeTokens = Annotated[
    int | None, typer.Option(min=0, help="LIME: tokens in each sample, K; 0, the default: a uniformly drawn number.")
]
Units = Annotated[
    str, typer.Option(help="What shapley, kernel-shap and the options below erase together: tokens, or sentences.")
]
ShapleyDraws = Annotated[int, typer.Option(min=1, help="--method shapley: permutations, each with its reverse.")]
ShapSamples = Annotated[int, typer.Option(min=0, help="--method kernel-shap: sets of units (0: 2 n + 2048).")]
AopcBounds = Annotated[
    bool, typer.Option("--aopc-bounds", help="Find the least and the greatest AOPC, for normalised AOPC (NAOPC).")
]
BoundsFrom = Annotated[
    Path | None,
    typer.Option(
        help="--aopc-bounds as another run of the same model and data found them (a results file): they do not depend on the method."
    ),
]
Beam = Annotated[
    int, typer.Option(min=1, help="--aopc-bounds of more than 10 units: orders that are followed together.")
]
SoftDraws = Annotated[
    int, typer.Option(min=0, help="Soft comprehensiveness and sufficiency: masks of more than 8 units (0: neither).")
]
SoftMasks = Annotated[
    str,
    typer.Option(
        help="--soft-draws: what masks erase, tokens (units), or elements of their embeddings (transformers)."
    ),
]
LeaveOneOut = Annotated[
    bool, typer.Option("--leave-one-out", help="p(label) minus p without it, of each unit, for tau_loo.")
]
Infidelity = Annotated[int, typer.Option(min=0, help="Infidelity: perturbed inputs of each instance (0: none).")]
Sensitivity = Annotated[
    int, typer.Option(min=0, help="Largest sensitivity: perturbed inputs whose scores are computed anew (0: none).")
]
Distribution = Annotated[
    int,
    typer.Option(
        min=0,
        help="How far whole and erased inputs lie from so many texts of --distribution-split, by the model's states (0: not).",
    ),
]
DistributionSplit = Annotated[str, typer.Option(help="The split that the model was trained on.")]
MaxInputs = Annotated[int | None, typer.Option(min=1, help="Refuse a run that may take more inputs of the model.")]
Task = Annotated[str, typer.Option(help="transformers: auto, classification, multiple-choice or question-answering.")]
Labels = Annotated[str | None, typer.Option(help="The dataset's name of each of the model's outputs: 'NEG,POS'.")]
Query = Annotated[
    bool | None,
    typer.Option("--query/--no-query", help="Show the query to the model; by default as it was trained."),
]
Window = Annotated[int | None, typer.Option(min=8, help="transformers: longest input in sub-words.")]
Device = Annotated[str | None, typer.Option(help="torch device; by default cuda where there is one.")]
Precision = Annotated[
    str, typer.Option(help="transformers: float32, bfloat16, float16, or auto: bfloat16 on a GPU that has it.")
]
TrustPickle = Annotated[bool, typer.Option("--trust-pickle", help="Open joblib and pickle files, which run code.")]
TrustRemoteCode = Annotated[
    bool, typer.Option("--trust-remote-code", help="transformers: run the code that a model brings along.")
]
BatchSize = Annotated[int, typer.Option(min=1, help="Full-length inputs at a time.")]
Chunk = Annotated[int, typer.Option(min=1, help="Instances worked on, and written, together.")]
Limit = Annotated[int | None, typer.Option(min=1, help="Explain the first so many instances.")]
Sample = Annotated[
    int | None, typer.Option(min=1, help="Explain so many instances, drawn by seed with each label's share.")
]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with a stopped run.")]
Force = Annotated[bool, typer.Option("--force", help="Replace a result that was made otherwise.")]
Engine = Annotated[str, typer.Option(help="local, or ray.")]
Workers = Annotated[int, typer.Option(min=1, help="--engine ray: workers, each with a model.")]
Threads = Annotated[int, typer.Option(min=0, help="Processor threads of a model (0: as torch sees fit).")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress.")]


def explain(
    dataset: Dataset, model: Model, out: Out, config: Config = None, split: Split = "test", method: Method = None,
    paper: Paper = None, scores: Scores = None, rationales: Rationales = None, target: Target = "predicted",
    seed: Seed = 1, draws: Draws = 1, kd: Kd = None, bins: Bins = None, erase: Erase = None, infill: Infill = None, tokens_to_flip: TokensToFlip = False, random_draws: RandomDraws = 0,
    random_kind: RandomKind = "tokens", fidelity_trials: FidelityTrials = None, fidelity_rates: FidelityRates = None,
    steps: Steps = None, lime_samples: LimeSamples = None, lime_tokens: LimeTokens = None, units: Units = "tokens",
    shapley_draws: ShapleyDraws = 10, shap_samples: ShapSamples = 0, aopc_bounds: AopcBounds = False, aopc_bounds_from: BoundsFrom = None, beam: Beam = 5,
    soft_draws: SoftDraws = 0, soft_masks: SoftMasks = "tokens", leave_one_out: LeaveOneOut = False, infidelity: Infidelity = 0, sensitivity: Sensitivity = 0,
    distribution: Distribution = 0, distribution_split: DistributionSplit = "train", max_inputs: MaxInputs = None, task: Task = "auto",
    labels: Labels = None, query: Query = None, window: Window = None, device: Device = None,
    precision: Precision = "auto", trust_pickle: TrustPickle = False,
    trust_remote_code: TrustRemoteCode = False, batch_size: BatchSize = 32, chunk: Chunk = 16,
    limit: Limit = None, sample: Sample = None, revision: Revision = None, resume: Resume = False, force: Force = False, engine: Engine = "local", workers: Workers = 2, threads: Threads = 0,
    quiet: Quiet = False,
) -> None:  # fmt: skip
    """Explain a model's predictions, and write what `score` and the metric modules take as it is.

    Every token gets a score; the top kd make the hard rationale; the model is asked again without it, with it alone, at
    each AOPC bin, and with nothing. Equal scores rank in the order of the text. OUT.run.json says how OUT was made.

    Examples:

        eraser-hub explain --dataset hub/eraser --config movies --split val --model model/ --method occlusion --out occlusion.jsonl

        eraser-hub explain --dataset hub/eraser --config movies --model model/ --method random --draws 10 --out random.jsonl

        eraser-hub explain --dataset hub/eraser --config movies --model model/ --method lime --random-draws 100 --out lime.parquet --resume

        eraser-hub explain --dataset hub/eraser --config movies --model model/ --engine ray --workers 4 --out all.parquet

        eraser-hub explain --dataset hub/eraser --config movies --model model/ --scores shap.jsonl --out shap-erased.jsonl

        eraser-hub explain --dataset hub/eraser --config movies --model model/ --rationales human --fidelity-trials 5 --out human.jsonl

        eraser-hub explain --dataset hub/eraser --config movies --model model/ --erase remove,mask,pad,infill --infill distilbert/distilbert-base-uncased --out by.jsonl

        eraser-hub explain --dataset hub/eraser --config movies --model model/ --paper eraser --out eraser.jsonl

        eraser-hub explain --dataset hub/eraser --config movies --model model/ --units sentences --method shapley --aopc-bounds --leave-one-out --soft-draws 50 --max-inputs 100000 --out shapley.jsonl
    """
    from eraser_hub.explain.run import draw_path, settings_for_job
    from eraser_hub.explain.work import Job

    sources = {"--method": method, "--scores": scores, "--rationales": rationales}
    together = [name for name, value in sources.items() if value is not None]
    if len(together) > 1:
        raise typer.BadParameter(f"expected {' or '.join(together)}, found both", param_hint=together[1])
    ways = [way.strip() for way in (erase or "").split(",")]
    _refuse_unknown(method, ways, task, engine, precision, random_kind, paper, units, soft_masks)
    _refuse(out, draws, method, kd)
    job = Job(
        dataset=at_revision(dataset, revision), config=config, split=split, model=model, task=task, trust_pickle=trust_pickle,
        trust_remote_code=trust_remote_code,
        labels=tuple(name.strip() for name in labels.split(",")) if labels else (), query=query, window=window,
        device=device, precision=precision, limit=limit, sample=sample, threads=threads, scores=scores, rationales=rationales or "",
        infill=infill or "", aopc_bounds=aopc_bounds_from, distribution_split=distribution_split,
    )  # fmt: skip
    settings, size = settings_for_job(
        job, paper or "", method=method, target=target, seed=seed, kd=kd,
        bins=None if bins is None else percents(bins, "--bins"), erase=ways[0] or None, also_erase=ways[1:] or None, tokens_to_flip=tokens_to_flip,
        random_draws=random_draws, random_kind=random_kind, fidelity_trials=fidelity_trials,
        fidelity_rates=None if fidelity_rates is None else percents(fidelity_rates, "--fidelity-rates"), steps=steps,
        lime_samples=lime_samples, lime_tokens=lime_tokens, units=units, shapley_draws=shapley_draws,
        shap_samples=shap_samples, aopc_bounds=aopc_bounds, beam=beam, soft_draws=soft_draws, soft_masks=soft_masks, leave_one_out=leave_one_out,
        infidelity_draws=infidelity, sensitivity_draws=sensitivity, distribution_texts=distribution, batch_size=batch_size, chunk=chunk,
    )  # fmt: skip
    outs = [out] if draws == 1 else [draw_path(out, draw) for draw in range(1, draws + 1)]
    total = min((number for number in (size, limit, sample) if number is not None), default=None)
    bar = Bar(None if total is None else total * draws, quiet)
    _run(job, settings, outs, bar, resume=resume, force=force, engine=engine, workers=workers, max_inputs=max_inputs)


def _refuse_unknown(
    method: str | None,
    ways: Sequence[str],
    task: str,
    engine: str,
    precision: str,
    random_kind: str,
    paper: str | None,
    units: str,
    soft_masks: str,
) -> None:
    from eraser_hub.explain.games.units import MASKS, UNITS
    from eraser_hub.explain.open import TASKS
    from eraser_hub.explain.run import ENGINES
    from eraser_hub.explain.settings import METHODS, RANDOM_KINDS
    from eraser_hub.explain.transformers.devices import PRECISIONS
    from eraser_hub.papers.presets import PRESETS
    from eraser_hub.records.operators import ERASE_MODES

    for option, value, allowed in (
        ("--method", method, METHODS), *(("--erase", way or None, ERASE_MODES) for way in ways), ("--task", task, TASKS),
        ("--engine", engine, ENGINES), ("--precision", precision, PRECISIONS), ("--random-kind", random_kind, RANDOM_KINDS),
        ("--paper", paper, PRESETS), ("--units", units, UNITS),
        ("--soft-masks", soft_masks, MASKS),
    ):  # fmt: skip
        if value is not None and value not in allowed:
            raise typer.BadParameter(f"expected one of {', '.join(allowed)}; found {value!r}", param_hint=option)


def _refuse(out: Path, draws: int, method: str | None, kd: float | None) -> None:
    from eraser_hub.explain.outputs import FORMATS

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
    from eraser_hub.explain.outputs import partial_path
    from eraser_hub.explain.run import explain_draws

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
    """``"1,5,10"`` -> (0.01, 0.05, 0.1); twelve significant digits, so that 7 per cent is 0.07 and not 0.07000000000000001."""
    try:
        return tuple(float(f"{float(part) / 100:.12g}") for part in (text or "").split(",") if part.strip())
    except ValueError:
        raise typer.BadParameter(f"expected numbers with commas between, found {text!r}", param_hint=option) from None
