"""``eraser-hub explain``: a dataset and a model -> predictions in the ERASER results format."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from eraser_hub.attribution.job import Engine, Job
from eraser_hub.attribution.method import METHODS
from eraser_hub.attribution.settings import ExplainSettings
from eraser_hub.records.errors import respelled as spelled
from eraser_hub.records.operators import ERASE_MODES

from .declared import choice, spellings_of, takes
from .usage import Config, Dataset, Revision, Seed, Split, at_revision, chosen, one_of, say

if TYPE_CHECKING:
    from tqdm import tqdm

RENAMED = {
    "infidelity_draws": "infidelity",
    "sensitivity_draws": "sensitivity",
    "distribution_texts": "distribution",
}
Resume = Annotated[bool, typer.Option("--resume", help="Go on with a stopped run.")]
Force = Annotated[bool, typer.Option("--force", help="Replace a result that was made otherwise.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress.")]


def _papers() -> Sequence[str]:
    from eraser_hub.papers.presets import PRESETS

    return PRESETS


Method = Annotated[
    str | None,
    typer.Option(
        callback=choice(lambda: list(METHODS), "--method"),
        help=f"{', '.join(METHODS)}; by default occlusion.",
    ),
]
Paper = Annotated[
    str | None,
    typer.Option(
        callback=choice(_papers, "--paper"),
        help="A paper's own choices wherever no option says otherwise: eraser, wang2022 or carton2020.",
    ),
]


@dataclass(frozen=True, slots=True)
class ExplainOptions:
    """The options of ``eraser-hub explain`` beside those of :class:`Job` and :class:`ExplainSettings`.

    Attributes:
        model: Model folder of `eraser-hub train`, .skops file, or transformers id.
        out: Predictions: a file ending in .jsonl or .parquet.
        rationales: In place of a method: human, model (its own, the default of a model that selects), or a results
            file's hard ones.
        draws: --method random: so many files, OUT.draw-01.jsonl, ...
        bins: AOPC bins in per cent, '' for none; by default 1,5,10,20,50.
        erase: How tokens are erased: remove (the default), mask, pad or infill; several with commas between write a
            file each, OUT.remove.jsonl, .., of the same scores, made by the first.
        infill: --erase infill: the masked language model that draws words for erased tokens, a folder or Hub id.
        fidelity_rates: Occlusion rates in per cent; by default 0, 5, .., 100.
        labels: The dataset's name of each of the model's outputs: 'NEG,POS'.
        setting: A setting of a method or measure that a plug-in brings, NAME=VALUE; more than one with more --set.
        max_inputs: Refuse a run that may take more inputs of the model.
        engine: local, or ray.
        workers: --engine ray: workers, each with a model.
    """

    dataset: Dataset
    model: str
    out: Path
    config: Config = None
    split: Split = "test"
    method: Method = None
    paper: Paper = None
    rationales: str | None = None
    seed: Seed = 1
    draws: Annotated[int, typer.Option(min=1)] = 1
    bins: str | None = None
    erase: str | None = None
    infill: str | None = None
    fidelity_rates: str | None = None
    labels: str | None = None
    setting: Annotated[list[str] | None, typer.Option("--set", show_default=False)] = None
    max_inputs: Annotated[int | None, typer.Option(min=1)] = None
    engine: Engine = "local"
    workers: Annotated[int, typer.Option(min=1)] = 2
    revision: Revision = None
    resume: Resume = False
    force: Force = False
    quiet: Quiet = False


@takes(
    ExplainOptions,
    Job,
    ExplainSettings,
    renamed={
        "infidelity_draws": "infidelity",
        "sensitivity_draws": "sensitivity",
        "distribution_texts": "distribution",
    },
    without=("sample_seed", "kd_of_sequences", "also_erase", "scores_erase", "more"),
)
def explain(options: ExplainOptions, job_values: dict[str, Any], settings_values: dict[str, Any]) -> None:
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
    from eraser_hub.attribution.run import draw_path, settings_for_job

    scores = job_values["scores"]
    sources = {"--method": options.method, "--scores": scores, "--rationales": options.rationales}
    together = [name for name, value in sources.items() if value is not None]
    if len(together) > 1:
        raise typer.BadParameter(f"expected {' or '.join(together)}, found both", param_hint=together[1])
    ways = [way.strip() for way in (options.erase or "").split(",")]
    for way in filter(None, ways):
        choice(lambda: ERASE_MODES, "--erase")(way)
    _refuse(options.out, options.draws, options.method)
    job = _job(options, job_values)
    rates = options.fidelity_rates
    settings, size = settings_for_job(
        job,
        options.paper or "",
        bins=None if options.bins is None else percents(options.bins, "--bins"),
        fidelity_rates=None if rates is None else percents(rates, "--fidelity-rates"),
        erase=ways[0] or None,
        also_erase=ways[1:] or None,
        more=_own(options.setting or ()),
        **chosen(options, "method seed"),
        **settings_values,
    )
    out, draws = options.out, options.draws
    outs = [out] if draws == 1 else [draw_path(out, draw) for draw in range(1, draws + 1)]
    limits = (size, job.limit, job.sample)
    total = min((number for number in limits if number is not None), default=None)
    bar = Bar(None if total is None else total * draws, options.quiet)
    _run(job, settings, outs, bar, **chosen(options, "resume force engine workers max_inputs"))


def _job(options: ExplainOptions, values: dict[str, Any]) -> Job:
    return Job(
        dataset=at_revision(options.dataset, options.revision),
        labels=tuple(name.strip() for name in options.labels.split(",")) if options.labels else (),
        rationales=options.rationales or "",
        infill=options.infill or "",
        **chosen(options, "config split model"),
        **values,
    )


def _own(pairs: Sequence[str]) -> dict[str, Any]:
    """Return plug-ins' settings from their ``NAME=VALUE``."""
    from eraser_hub.attribution.settings import own_settings

    declared, values = own_settings() if pairs else {}, {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals:
            raise typer.BadParameter(f"expected NAME=VALUE, found {pair!r}", param_hint="--set")
        one_of(name, tuple(declared), "--set")
        values[name] = declared[name].parsed(text)
    return values


def _refuse(out: Path, draws: int, method: str | None) -> None:
    from eraser_hub.attribution.outputs import FORMATS

    if out.suffix not in FORMATS:
        raise typer.BadParameter(f"expected a file ending in {' or '.join(FORMATS)}", param_hint="--out")
    if draws > 1 and (method is None or not METHODS[method].drawn):
        words = f"only --method random is drawn; {method or 'another'} gives one result"
        raise typer.BadParameter(words, param_hint="--draws")


def _run(job: Job, settings: ExplainSettings, outs: list[Path], bar: Bar, **how: Any) -> None:
    """Explain with a progress bar, and print what the runs report."""
    from eraser_hub.attribution.outputs import partial_path
    from eraser_hub.attribution.run import explain_draws

    spellings = {**spellings_of(explain), "aopc_thresholds": "--aopc-thresholds"}
    spell = partial(spelled, spellings=spellings)
    try:
        reports = explain_draws(job, settings, outs, on_progress=bar.show, on_cost=say, spell=spell, **how)
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
