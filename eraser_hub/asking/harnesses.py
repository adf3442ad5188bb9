"""Tasks of lm-evaluation-harness and inspect_ai (both optional), with our prompts and the scores of an answer."""

# pyright: reportMissingImports=false
from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from eraser_hub.metrics.eraser_agreement import EraserAgreement
from eraser_hub.metrics.quote_faithfulness import QuoteFaithfulness
from eraser_hub.records.extras import need

from .answers import ANSWERED, Answer, read_answer
from .formats import locate_quotes
from .prediction_rows import make_eraser_row
from .questions import Question, make_question
from .run import AskPlan, make_plan
from .settings import AskConfig, AskSettings

if TYPE_CHECKING:
    from inspect_ai import Task as InspectTask
    from lm_eval.api.task import ConfigurableTask

# what an answer is scored by, and whether higher is better; a score that one has not (quotes of an answer without
# any) is left out of the mean
SCORES = {"right": True, "answered": True, "token_f1": True, "in_text": True, "invented": False}
NO_MODEL = "the harness's"


def answer_scores(question: Question, words: str, settings: AskSettings, labels: tuple[str, ...]) -> dict[str, float]:
    """Score a model's answer against the human label and evidence.

    Returns:
        ``right`` and ``answered``, 0 or 1; ``token_f1`` of the quoted and the human tokens (NaN without human tokens);
        ``in_text`` and ``invented``, shares of its quotes (NaN without quotes).
    """
    choice = {"message": {"content": words}, "finish_reason": "stop"}
    answer: Answer = read_answer(choice, labels, settings.answer)
    line = make_eraser_row(question.instance, answer, locate_quotes(answer, question, settings), {})
    instance, marked_runs = question.instance, question.gold_runs()
    names, pairs = instance.names, zip(instance.names, instance.documents, strict=True)
    runs = [{"docid": names[at], "start_token": start, "end_token": end} for at, start, end in marked_runs]
    # the question as an annotation, its tokens joined by blanks in any language
    gold = {
        "annotation_id": instance.id,
        "classification": instance.label,
        "evidences": [runs] if runs else [],
        "documents": [{"docid": docid, "text": " ".join(tokens)} for docid, tokens in pairs],
    }
    answered, marked = answer.outcome == ANSWERED, bool(runs)
    scores = {"right": float(answered and answer.label == instance.label), "answered": float(answered)}
    f1 = math.nan if not marked else 0.0  # of no answer, as in a file with others
    if answered and marked:
        agreement = EraserAgreement(keep_in_memory=True).compute(predictions=[line], references=[gold]) or {}
        f1 = float(agreement["token_macro_f1"])
    quotes = QuoteFaithfulness(keep_in_memory=True).compute(predictions=[line], references=[gold]) or {}
    return scores | {"token_f1": f1, "in_text": float(quotes["in_text"]), "invented": float(quotes["invented"])}


def _make_plan(dataset: str, config: str | None, split: str, settings: AskSettings | None) -> AskPlan:
    return make_plan(AskConfig(dataset, config, split), settings or AskSettings(NO_MODEL))


def lm_eval_task(
    dataset: str, config: str | None = None, split: str = "test", settings: AskSettings | None = None
) -> ConfigurableTask:
    """Return a task of lm-evaluation-harness, for ``lm_eval.evaluate`` or ``simple_evaluate(tasks=[task])``.

    Args:
            dataset: Folder (``hub/eraser``) or Hub id.
            config: The configuration; None for the default one.
            split: The split.
            settings: The settings of the answers (format, threshold, examples); the harness decides model, temperature
            and seed.

    Raises:
        DataError: what is wrong with the data; lm-eval is not installed.
    """
    need("lm_eval")
    from lm_eval.api.task import ConfigurableTask

    plan = _make_plan(dataset, config, split, settings)
    labels = plan.split.label_names

    def question(row: Mapping[str, Any]) -> Question:
        return make_question(plan.split.kind, row, labels)

    def text(row: Mapping[str, Any]) -> str:
        return "\n\n".join(message["content"] for message in plan.messages(question(row)))

    def scored(row: Mapping[str, Any], results: list[str]) -> dict[str, float]:
        scores = answer_scores(question(row), results[0], plan.settings, labels)
        return {name: score for name, score in scores.items() if not math.isnan(score)}  # those that an answer has

    task = {
        "task": f"eraser_{plan.split.config}",
        "dataset_path": dataset,
        "dataset_name": plan.split.config,
        "test_split": str(plan.split.rows.split),
        "output_type": "generate_until",
        "doc_to_text": text,
        "doc_to_target": lambda row: question(row).instance.label or "",
        "process_results": scored,
        "generation_kwargs": {"until": [], "max_gen_toks": plan.settings.max_tokens, "do_sample": False},
        "metric_list": [{"metric": name, "aggregation": "mean", "higher_is_better": up} for name, up in SCORES.items()],
        "metadata": {"version": 1.0},
    }
    return ConfigurableTask(config=task)


def inspect_task(
    dataset: str, config: str | None = None, split: str = "test", settings: AskSettings | None = None
) -> InspectTask:
    """Return a task of inspect_ai for ``inspect_ai.eval(task, model=..)``, or behind a ``@task`` for ``inspect eval``.

    Arguments and errors are those of `lm_eval_task`.
    """
    need("inspect_ai")
    from inspect_ai import Task
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.model import ChatMessageAssistant, ChatMessageSystem, ChatMessageUser
    from inspect_ai.solver import generate

    plan = _make_plan(dataset, config, split, settings)
    kinds = {"system": ChatMessageSystem, "user": ChatMessageUser, "assistant": ChatMessageAssistant}
    question_by_id = {one.instance.id: one for one in plan.questions()}
    samples = []
    for name, one in question_by_id.items():
        messages = [kinds[message["role"]](content=message["content"]) for message in plan.messages(one)]
        samples.append(Sample(id=name, target=one.instance.label or "", input=messages))

    def compute_scores(name: str, words: str) -> dict[str, float]:
        return answer_scores(question_by_id[name], words, plan.settings, plan.split.label_names)

    task = f"eraser_{plan.split.config}"
    dataset_of_task = MemoryDataset(samples, name=task)
    return Task(dataset=dataset_of_task, solver=generate(), scorer=_inspect_scorer(compute_scores), name=task)


def _inspect_scorer(compute_scores: Callable[[str, str], dict[str, float]]) -> Any:
    from inspect_ai.scorer import SampleScore, Score, Target, metric, scorer
    from inspect_ai.solver import TaskState

    def mean_of_known() -> Any:
        def mean(scores: list[SampleScore]) -> float:
            values = [one.score.as_float() for one in scores]
            known_scores = [value for value in values if not math.isnan(value)]
            return statistics.fmean(known_scores) if known_scores else math.nan

        # it looks at these, and cannot find a name of this function's by its words
        mean.__annotations__ = {"scores": list[SampleScore], "return": float}
        return mean

    def eraser_scores() -> Any:
        async def score(state: TaskState, target: Target) -> Score:
            words = state.output.completion
            return Score(value=dict(compute_scores(str(state.sample_id), words)), answer=words)

        return score

    mean_of_metric = metric(mean_of_known)
    return scorer(metrics={name: [mean_of_metric()] for name in SCORES})(eraser_scores)()
