"""A whole run: ask for every instance, several at a time, keep each answer, write them all as predictions."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import orjson

from eraser_hub.attribution.dataset import Split, open_split
from eraser_hub.attribution.outputs import PartialResult, check_format, refuse_other, write_predictions
from eraser_hub.records.errors import MOST_SHOWN, DataError, shown
from eraser_hub.records.run_record import write_run
from eraser_hub.schema.instance import AGAIN_FIELD

from .again import SIMULATED, changed, erased_fields, flags_of, random_flags, shares, standard_error, with_quotes_alone
from .alignment import Quote
from .answers import ANSWERED, OUTCOMES, Answer
from .cache import Cache, default_folder
from .client import Client, OutOfBudgetError, UnreachableError, estimated_tokens, gather
from .formats import located
from .lines import eraser_line, pair_line
from .prompts import GENERIC, Prompt, family_of, open_prompt
from .questions import Question, examples, questions
from .settings import AskArguments, AskJob, AskSettings


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

    job: AskJob | AskArguments
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


def plan_of(job: AskJob | AskArguments, settings: AskSettings) -> AskPlan:
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


def ask(arguments: AskArguments) -> AskReport:
    """Ask a language model for every instance of a split, and write predictions.

    ``OUT.run.json`` beside the result says how it was made.

    Raises:
        DataError: anything wrong with data, settings or server; instances without an answer because the server failed
            or the budget ended: what was answered is kept.
    """
    out = arguments.out
    how: dict[str, Any] = {"attempts": arguments.attempts, "timeout": arguments.timeout}
    check_format(out)
    if out.suffix != ".jsonl":
        message = f"expected a file ending in .jsonl, found {shown(out.name)}"
        raise DataError(message, rule="option-value", argument="out")
    plan, cache = plan_of(arguments, arguments.settings()), Cache(arguments.cache or default_folder())
    client = Client(arguments.endpoint, plan.settings, cache, arguments.budget, **how)
    simulator = None
    if arguments.simulate_with:
        reading = replace(plan.settings, model=arguments.simulate_with, again=(), samples=0)
        simulator = Client(arguments.simulate_endpoint or arguments.endpoint, reading, cache, **how)
        simulator.bill = client.bill
    header = {"settings": plan.settings, "data": plan.split.header(arguments.limit)}
    if not arguments.force:
        refuse_other(out, header)
    partial = PartialResult(out, header, arguments.resume)
    try:
        failures = asyncio.run(_asked(Asker(plan, client, simulator), partial, arguments))
        if failures:
            raise DataError(_failure_words(failures, len(partial.places), out), rule="server")
        report = _written(out, partial, plan, client, header)
        partial.close(remove=True)
        return report
    finally:
        partial.close(remove=not partial.places)


async def _asked(asker: Asker, partial: PartialResult, arguments: AskArguments) -> list[str]:
    """Ask what is not answered yet; why instances have no answer."""
    failures: list[str] = []
    waiting = ((number, one) for number, one in enumerate(asker.plan.questions()) if number not in partial.places)

    async def work() -> None:
        for number, question in waiting:
            try:
                answer, line = await asker.line(question)
            except OutOfBudgetError:
                failures.append(f"instance {shown(question.instance.id)}: the budget is used up")
                return
            except UnreachableError as error:
                failures.append(f"instance {shown(question.instance.id)}: {error}")
                if len(failures) > MOST_SHOWN + arguments.concurrency:
                    return
                continue
            facts = {"outcome": answer.outcome, "reason": answer.reason}
            statuses = [quote["status"] for quote in line["quotes"]]
            partial.append(number, [orjson.dumps(line)], {**facts, "statuses": statuses})
            if arguments.on_progress is not None:
                arguments.on_progress(1)

    try:
        await gather([work() for _ in range(arguments.concurrency)])
    finally:
        for one in filter(None, (asker.client, asker.simulator)):
            await one.close()
    return failures


@dataclass(frozen=True, slots=True)
class Asker:
    """Asks a plan's questions.

    Attributes:
        plan: whose questions.
        client: of the model.
        simulator: the client of another model, which reads the quotes alone; None for none.
    """

    plan: AskPlan
    client: Client
    simulator: Client | None = None

    async def line(self, question: Question) -> tuple[Answer, dict[str, Any]]:
        """Return the model's answer, and the prediction that it and what is asked again make."""
        settings, split = self.plan.settings, self.plan.split
        answer = await self._one(self.client, question)
        quotes, again = located(answer, question, settings), dict[str, Answer]()
        if answer.outcome == ANSWERED:
            answer = await self._completed(question, answer)
            again = await self._again(question, quotes)
        if split.kind == "perturbation":
            line = pair_line(question.instance, answer, quotes, erased_fields(again), split.label_names)
        else:
            line = eraser_line(question.instance, answer, quotes, erased_fields(again))
        if settings.again or settings.simulate_with:
            rows = [{"kind": kind, "classification": one.label, "outcome": one.outcome} for kind, one in again.items()]
            line[AGAIN_FIELD] = rows
        return answer, line

    async def _again(self, question: Question, quotes: Sequence[Quote]) -> dict[str, Answer]:
        """Return the answers to the changed questions, by the kind of change."""
        again, settings = dict[str, Answer](), self.plan.settings
        flags = flags_of(question, quotes) if settings.again else []
        for kind in settings.again:
            at = random_flags(question, flags, settings.seed) if kind == "random" else flags
            other = changed(question, at, kind)
            again[kind] = await self._completed(other, await self._one(self.client, other))
        if self.simulator is not None:
            again[SIMULATED] = await self._one(self.simulator, with_quotes_alone(question, quotes))
        return again

    async def _one(self, client: Client, question: Question, sample: int = 0) -> Answer:
        return await client.ask(self.plan.messages(question), self.plan.split.label_names, sample)

    async def _completed(self, question: Question, answer: Answer) -> Answer:
        """The answer with probabilities: the server's, else the share of each label among samples, else none.

        Where a server gives log-probabilities and none of one answer's label can be read, the label counts as certain;
        where there is no label, all are alike. Both are counted in the notes.
        """
        settings, labels = self.plan.settings, self.plan.split.label_names
        if answer.probabilities is not None or not settings.again:
            return answer
        if settings.samples:
            samples = [await self._one(self.client, question, number + 1) for number in range(settings.samples)]
            counts = Counter(one.label for one in samples if one.label is not None)
            if not counts:
                self.client.bill.note("none of an input's samples is an answer: all its labels count as alike")
            return replace(answer, probabilities=shares(counts, labels))
        if not self.client.gives_probabilities:
            self.client.bill.note("the server gives no log-probabilities: label flips alone (`samples` N asks N times)")
            return answer
        words = "log-probabilities without the label's: the label counts as certain, no label as all alike"
        self.client.bill.note(words)
        return replace(answer, probabilities=shares(Counter(filter(None, [answer.label])), labels))


def _failure_words(failures: Sequence[str], kept: int, out: Path) -> str:
    more, told = len(failures) - MOST_SHOWN, [*failures[:MOST_SHOWN]]
    told += [f"… and {more} more"] if more > 0 else []
    return "\n".join([f"{out}: not written: instances without an answer; {kept} are kept: `resume` goes on", *told])


def _written(out: Path, partial: PartialResult, plan: AskPlan, client: Client, header: dict[str, Any]) -> AskReport:
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


def dry_run(job: AskJob | AskArguments, settings: AskSettings) -> Iterator[str]:
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
