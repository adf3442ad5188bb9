"""A whole run: ask for every instance, several at a time, keep each answer, write them all as predictions."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import orjson

from eraser_hub.attribution.dataset import Split, open_split
from eraser_hub.attribution.outputs import Partial, check_format, refuse_other, write_predictions
from eraser_hub.records.errors import MOST_SHOWN, DataError, shown
from eraser_hub.records.run_record import write_run
from eraser_hub.schema.instance import AGAIN_FIELD

from .again import Asker, as_json, erased_fields, standard_error
from .answers import ANSWERED, OUTCOMES, Answer
from .cache import Cache
from .client import Client, OutOfBudgetError, UnreachableError, estimated_tokens, gather
from .formats import located
from .lines import eraser_line, pair_line
from .prompts import GENERIC, Prompt, family_of, open_prompt
from .questions import Question, examples, questions
from .settings import AskJob, AskSettings

OnProgress = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class AskPlan:
    """A job as the data decide it.

    Attributes:
        job: the job.
        settings: with the prompt's name and digest.
        split: the split, opened.
        prompt: the prompt.
        shots: examples.
    """

    job: AskJob
    settings: AskSettings
    split: Split
    prompt: Prompt
    shots: Sequence[Question]

    def questions(self) -> Iterator[Question]:
        """The questions to ask."""
        return islice(questions(self.split), self.job.limit)

    def messages(self, question: Question) -> list[dict[str, str]]:
        """The prompt of a question."""
        return self.prompt.messages(question, self.split.label_names, self.shots, self.settings.answer)

    async def line(self, question: Question, answer: Answer, asker: Asker) -> dict[str, Any]:
        """The prediction that an answer makes, and what is asked again."""
        settings = self.settings
        quotes = located(answer, question, settings)
        answer, again = await asker.ask(question, answer, quotes)
        if self.split.kind == "perturbation":
            line = pair_line(question.instance, answer, quotes, erased_fields(again), self.split.label_names)
        else:
            line = eraser_line(question.instance, answer, quotes, erased_fields(again))
        return line | ({AGAIN_FIELD: as_json(again)} if settings.again or settings.simulate_with else {})

    def header(self) -> dict[str, Any]:
        """What decides the results, as a run's record holds it."""
        return {"settings": self.settings, "data": self.split.header(self.job.limit)}


def plan_of(job: AskJob, settings: AskSettings) -> AskPlan:
    """Open data and prompt.

    Raises:
        DataError: what is wrong with them.
    """
    split = open_split(job.dataset, job.config, job.split)
    if not split.label_names:
        message = "expected label names, which a model is told; found none"
        raise DataError(message, rule="label-missing", file=job.dataset)
    prompt = open_prompt(split.config, job.prompt)
    settings = replace(settings, prompt=f"{Path(prompt.name).name if job.prompt else prompt.name}@{prompt.digest}")
    train = open_split(job.dataset, job.config, "train") if settings.shots else split
    return AskPlan(job, settings, split, prompt, examples(train, settings.shots, settings.seed))


@dataclass(frozen=True, slots=True)
class AskReport:
    """What a run did.

    Attributes:
        out: the result.
        outcomes, statuses: how many answers, and quotes, of each.
        notes: what a reader of the results must know.
        signature: the settings in one line.
    """

    out: Path
    outcomes: Counter[str]
    statuses: Counter[str]
    notes: Sequence[str]
    signature: str

    def lines(self) -> list[str]:
        """The report in words."""
        missing = [f"{self.outcomes[name]} {name}" for name in OUTCOMES[1:] if self.outcomes[name]]
        quotes = ", ".join(f"{count} {status}" for status, count in self.statuses.most_common())
        unanswered = f" ({', '.join(missing)}: these count as wrong)" if missing else ""
        return [
            f"{self.out}: {self.outcomes.total()} instances, {self.outcomes[ANSWERED]} answered{unanswered}",
            f"{self.statuses.total()} quotes" + (f": {quotes}" if quotes else ""),
            *self.notes,
            self.signature,
        ]


def ask(
    job: AskJob,
    settings: AskSettings,
    endpoint: str,
    out: Path,
    cache: Cache,
    *,
    concurrency: int = 8,
    attempts: int = 6,
    timeout: float = 600.0,
    budget: int | None = None,
    resume: bool = False,
    force: bool = False,
    on_progress: OnProgress | None = None,
) -> AskReport:
    """Ask a language model for every instance of a split, and write predictions.

    Args:
        endpoint: base URL of a server that takes POST /chat/completions.
        out: result, ``.jsonl``; ``OUT.run.json`` beside it says how it was made.
        cache: answers that were paid for, of all runs.
        concurrency: requests at a time.
        attempts, timeout, budget: see `client.Client`.
        resume: go on with a stopped run of the same settings and data.
        force: replace a result that was made otherwise.
        on_progress: called with the number of instances done.

    Raises:
        DataError: anything wrong with data, settings or server; instances without an answer because the server failed
            or the budget ended: what was answered is kept.
    """
    check_format(out)
    if out.suffix != ".jsonl":
        message = f"expected a file ending in .jsonl, found {shown(out.name)}"
        raise DataError(message, rule="option-value", argument="out")
    plan = plan_of(job, settings)
    client = Client(endpoint, plan.settings, cache, budget, attempts, timeout)
    simulator = None
    if settings.simulate_with:
        reading = replace(plan.settings, model=settings.simulate_with, again=(), samples=0)
        simulator = Client(job.simulate_endpoint or endpoint, reading, cache, None, attempts, timeout)
        simulator.bill = client.bill
    asker = Asker(client, plan.settings, plan.prompt, plan.shots, plan.split.label_names, simulator)
    header = plan.header()
    if not force:
        refuse_other(out, header)
    partial = Partial(out, header, resume)
    try:
        failures = asyncio.run(_asked(plan, asker, partial, concurrency, on_progress or (lambda instances: None)))
        if failures:
            raise DataError(_failure_words(failures, len(partial.places), out), rule="server")
        report = _written(out, partial, plan, client, header)
        partial.close(remove=True)
        return report
    finally:
        partial.close(remove=not partial.places)


async def _asked(plan: AskPlan, asker: Asker, partial: Partial, concurrency: int, on_progress: OnProgress) -> list[str]:
    """Ask what is not answered yet; why instances have no answer."""
    client = asker.client
    failures: list[str] = []
    waiting = ((number, one) for number, one in enumerate(plan.questions()) if number not in partial.places)

    async def work() -> None:
        for number, question in waiting:
            try:
                answer = await client.ask(plan.messages(question), plan.split.label_names)
                line = await plan.line(question, answer, asker)
            except OutOfBudgetError:
                failures.append(f"instance {shown(question.instance.id)}: the budget is used up")
                return
            except UnreachableError as error:
                failures.append(f"instance {shown(question.instance.id)}: {error}")
                if len(failures) > MOST_SHOWN + concurrency:
                    return
                continue
            facts = {"outcome": answer.outcome, "reason": answer.reason}
            statuses = [quote["status"] for quote in line["quotes"]]
            partial.append(number, [orjson.dumps(line)], {**facts, "statuses": statuses})
            on_progress(1)

    try:
        await gather([work() for _ in range(concurrency)])
    finally:
        for one in filter(None, (client, asker.simulator)):
            await one.close()
    return failures


def _failure_words(failures: Sequence[str], kept: int, out: Path) -> str:
    more, told = len(failures) - MOST_SHOWN, [*failures[:MOST_SHOWN]]
    told += [f"… and {more} more"] if more > 0 else []
    return "\n".join([f"{out}: not written: instances without an answer; {kept} are kept: `resume` goes on", *told])


def _written(out: Path, partial: Partial, plan: AskPlan, client: Client, header: dict[str, Any]) -> AskReport:
    """Gather the answers into ``out``."""
    outcomes, statuses, reasons = Counter[str](), Counter[str](), Counter[str]()
    for record in partial.records():
        outcomes[record["outcome"]] += 1
        statuses.update(record["statuses"])
        if record["reason"]:
            reasons[f"{record['outcome']}: {record['reason']}"] += 1
    if not outcomes:
        raise DataError(f"split {plan.job.split}: no instances to ask about", rule="empty", file=plan.job.dataset)
    bill = client.bill
    notes = [f"{words} ({count} times)" for words, count in (*reasons.most_common(MOST_SHOWN), *bill.notes.items())]
    if len(reasons) > MOST_SHOWN:
        notes.append(f"… and {len(reasons) - MOST_SHOWN} more reasons: {out.name}.run.json counts outcomes")
    if plan.job.prompt is None and family_of(plan.split.config) == GENERIC:
        words = f"no prompt is made for the config {plan.split.config}"
        notes.append(f"{words}: a general one is used (`prompt` gives another)")
    if samples := plan.settings.samples:
        error = f"a standard error of at most {standard_error(samples):.3f} each"
        notes.append(f"probabilities are shares of {samples} answers: {error}")
    notes.append(f"{bill.paid} tokens paid for {bill.requests} answers, {bill.from_cache} answers from the cache")
    report = AskReport(out, outcomes, statuses, notes, plan.settings.signature())
    lines = (line for record in partial.records() for line in record["predictions"])
    write_predictions(out, lines, (), plan.split.kind)
    counts = {"instances": outcomes.total(), "outcomes": outcomes, "quotes": statuses}
    write_run(out, {"signature": report.signature, **header, **counts, "notes": notes})
    return report


def dry_run(job: AskJob, settings: AskSettings) -> Iterator[str]:
    """Two whole prompts, and how many tokens all of them are estimated to have."""
    plan, total, count = plan_of(job, settings), 0, 0
    for question in plan.questions():
        messages = plan.messages(question)
        if count < 2:
            yield f"=== {question.instance.id}"
            yield from (f"--- {message['role']}\n{message['content']}" for message in messages)
        total, count = total + estimated_tokens(messages), count + 1
    times = f", each up to {plan.settings.requests} times" if plan.settings.requests > 1 else ""
    words = f"{count} prompts, about {total} tokens (UTF-8 bytes / 4)"
    yield f"{words}, and at most {count * plan.settings.max_tokens} of answers{times}; nothing was asked"
    yield plan.settings.signature()
