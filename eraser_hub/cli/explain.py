"""``eraser-hub explain``: a dataset and a model -> predictions in the ERASER results format."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from eraser_hub.attribution.config import ExplainArguments, ExplainConfig
from eraser_hub.attribution.settings import ExplainSettings

from .usage import print_note, spell_arguments, with_options

if TYPE_CHECKING:
    from tqdm import tqdm


@dataclass(frozen=True, kw_only=True)
class ExplainOptions(ExplainArguments):
    """The options of ``eraser-hub explain`` beside those of :class:`Job` and :class:`ExplainSettings`.

    Attributes:
    Run:
        quiet: No progress.
    """

    quiet: bool = False


@with_options(ExplainOptions, ExplainConfig, ExplainSettings)
def explain(options: ExplainOptions, values: dict[str, Any]) -> None:
    """Explain a model's predictions, and write predictions with rationales for `score`.

    Every token gets a score, and the top kd tokens are the hard rationale. The model also predicts without the
    rationale, from the rationale alone, at each AOPC bin, and from the empty input. Equal scores rank in the order of
    the text. OUT.run.json records how OUT was made.

    **Examples**

        eraser-hub explain --dataset hub/eraser --config movies --split val --model model/ --out occlusion.jsonl

        eraser-hub explain --dataset hub/eraser --config movies --model model/ --method lime,shapley \
--measure aopc-bounds,soft --set lime_samples=1000 --out p.jsonl

        eraser-hub explain --dataset hub/eraser --config movies --model model/ --rationales human --out human.jsonl

        eraser-hub explain --dataset hub/eraser --config movies --model model/ --paper eraser --out eraser.jsonl
    """
    from eraser_hub.attribution.outputs import get_partial_path
    from eraser_hub.attribution.run import explain_trainings, plan_trainings

    plans = plan_trainings(options, values)
    totals = [plan.total for plan in plans]
    bar = Bar(None if None in totals else sum(filter(None, totals)), options.quiet)
    run_options = {name: getattr(options, name) for name in ("resume", "force", "engine", "workers", "max_inputs")}
    try:
        reports = explain_trainings(plans, on_progress=bar.show, on_cost=print_note, spell=_spelled, **run_options)
    except KeyboardInterrupt:
        bar.close()
        paths = [path for plan in plans for _, path in plan.runs]
        saved = [path for path in paths if path.is_file() or get_partial_path(path).is_file()]
        print_note("stopped" + (": what is done is kept; --resume goes on with it" if saved else ""))
        raise
    finally:
        bar.close()
    for report in reports:
        for line in report.lines():
            print_note(line)


def _spelled(words: str) -> str:
    """Return a note for a run's record; ``aopc_thresholds`` is an argument of `score`."""
    return spell_arguments(words).replace("`aopc_thresholds`", "--aopc-thresholds")


class Bar:
    """Progress bar of finished instances and the rate of forward passes.

    It appears with the first instance, after all errors about model, labels and data.
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
        """Leave the bar on the screen."""
        if self._bar is not None:
            self._bar.close()
