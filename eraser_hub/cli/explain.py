"""``eraser-hub explain``: a dataset and a model -> predictions in the ERASER results format."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from eraser_hub.attribution.config import ExplainArguments, ExplainConfig
from eraser_hub.attribution.method import METHODS
from eraser_hub.attribution.settings import ExplainSettings
from eraser_hub.records.options import Option

from .usage import chosen, say, spelled, takes

if TYPE_CHECKING:
    from tqdm import tqdm


@dataclass(frozen=True, kw_only=True)
class ExplainOptions(ExplainArguments):
    """The options of ``eraser-hub explain`` beside those of :class:`Job` and :class:`ExplainSettings`.

    Attributes:

    Run:
        quiet: No progress.
    """

    method: Annotated[tuple[str, ...], Option(commas=True, choices=tuple(METHODS))] = ()
    quiet: bool = False


@takes(ExplainOptions, ExplainConfig, ExplainSettings)
def explain(options: ExplainOptions, values: dict[str, Any]) -> None:
    """Explain a model's predictions, and write what `score` and the metric modules take as it is.

    Every token gets a score; the top kd make the hard rationale; the model is asked again without it, with it alone, at
    each AOPC bin, and with nothing. Equal scores rank in the order of the text. OUT.run.json says how OUT was made.

    Examples:

        eraser-hub explain --dataset hub/eraser --config movies --split val --model model/ --out occlusion.jsonl

        eraser-hub explain --dataset hub/eraser --config movies --model model/ --method lime,shapley \
--measure aopc-bounds,soft --set lime_samples=1000 --out p.jsonl

        eraser-hub explain --dataset hub/eraser --config movies --model model/ --rationales human --out human.jsonl

        eraser-hub explain --dataset hub/eraser --config movies --model model/ --paper eraser --out eraser.jsonl
    """
    from eraser_hub.attribution.outputs import get_partial_path
    from eraser_hub.attribution.run import explain_runs, plan_runs

    runs = plan_runs(options, values)
    bar, how = Bar(runs.total, options.quiet), chosen(options, "resume force engine workers max_inputs")
    try:
        reports = explain_runs(runs.config, runs.runs, on_progress=bar.show, on_cost=say, spell=_spelled, **how)
    except KeyboardInterrupt:
        bar.close()
        kept = [path for _, path in runs.runs if path.is_file() or get_partial_path(path).is_file()]
        say("stopped" + (": what is done is kept; --resume goes on with it" if kept else ""))
        raise
    finally:
        bar.close()
    for report in reports:
        for line in report.lines():
            say(line)


def _spelled(words: str) -> str:
    """A note for a run's record; ``aopc_thresholds`` is an argument of `score`."""
    return spelled(words).replace("`aopc_thresholds`", "--aopc-thresholds")


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
