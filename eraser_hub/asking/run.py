"""Ask a language model for every instance of a split, several at a time, and write its answers as predictions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
from tqdm import tqdm

from eraser_hub.attribution.dataset import Split, open_split
from eraser_hub.attribution.outputs import (
    PartialResult,
    write_predictions,
)
from eraser_hub.attribution.prompts import GENERIC, Prompt, find_family, open_prompt
from eraser_hub.metrics.quotes import Quote, align
from eraser_hub.records.errors import DataError, show
from eraser_hub.records.files import OutputWriter
from eraser_hub.records.predictions import write_run

from .answers import ANSWERED, OUTCOMES, Answer
from .client import Client, OutOfBudgetError, UnreachableError, estimate_tokens, gather
from .consistency import (
    change_question,
    compute_shares,
    compute_standard_error,
    draw_random_flags,
    find_erased_probabilities,
    flag_quotes,
)
from .prediction_rows import make_eraser_row, make_pair_row
from .prompts import make_messages
from .questions import Question, choose_examples, draw_examples, read_questions
from .settings import AskConfig, AskSettings

MAX_FAILURES = 10  # after which nothing more is asked
MAX_REASONS = 10  # that the notes count one by one


@dataclass(frozen=True, slots=True)
class AskPlan:
    """The opened data and the prompt of a run.

    Attributes:
        config: The data to ask about.
        settings: The settings, with the prompt's name and digest.
        split: The opened split.
        prompt: The prompt.
        shots: Drawn examples: see `draw_examples`.
    """

    config: AskConfig
    settings: AskSettings
    split: Split
    prompt: Prompt
    shots: Sequence[Question]

    def questions(self) -> Iterator[Question]:
        """Return the questions to ask."""
        return islice(read_questions(self.split), self.config.limit)

    def messages(self, question: Question) -> list[dict[str, str]]:
        """Return the prompt of a question."""
        shots = choose_examples(self.shots, question, self.settings.shots)
        return make_messages(self.prompt, question, self.split.label_names, shots)


def make_plan(config: AskConfig, settings: AskSettings) -> AskPlan:
    """Open the data and the prompt of a run.

    Raises:
        DataError: The data or the prompt cannot be used.
    """
    split = open_split(config.dataset, config.config, config.split)
    if not split.label_names:
        message = "expected label names for the prompt, found none"
        raise DataError(message, file=config.dataset)
    prompt = open_prompt(split.config, config.prompt)
    name = f"{Path(prompt.name).name if config.prompt else prompt.name}@{prompt.digest}"
    settings = replace(settings, prompt=name)
    train = open_split(config.dataset, config.config, "train") if settings.shots else split
    shots = draw_examples(train, settings.shots, settings.seed)
    return AskPlan(config, settings, split, prompt, shots)


@dataclass(frozen=True, slots=True)
class AskReport:
    """The report of a run, printed in two lines and the signature.

    Attributes:
        out: The predictions.
        outcomes: Number of answers of each outcome.
        statuses: Number of quotes of each status.
        notes: Notes that a reader of the results must know.
        signature: The settings in one line.
    """

    out: Path
    outcomes: Counter[str]
    statuses: Counter[str]
    notes: Sequence[str]
    signature: str

    def __str__(self) -> str:
        missing = [f"{self.outcomes[name]} {name}" for name in OUTCOMES[1:] if self.outcomes[name]]
        quotes = ", ".join(f"{count} {status}" for status, count in self.statuses.most_common())
        unanswered = f" ({', '.join(missing)}: these count as wrong)" if missing else ""
        answered = f"{self.outcomes.total()} instances, {self.outcomes[ANSWERED]} answered{unanswered}"
        found = f"{self.statuses.total()} quotes" + (f": {quotes}" if quotes else "")
        return f"{self.out}: {answered}\n{found}\n{self.signature}"


async def ask_all(asker: Asker, partial: PartialResult, concurrency: int) -> list[str]:
    """Ask the open questions; return the reasons of failures.

    Lines wait until a server has answered as the API does: a wrong address must not become predictions.

    Raises:
        DataError: A server answered, but never so.
    """
    failures: list[str] = []
    held: list[tuple[int, Answer, dict[str, Any]]] = []
    client = asker.client
    waiting = ((number, one) for number, one in enumerate(asker.plan.questions()) if number not in partial.places)

    async def ask_next() -> None:
        for number, question in waiting:
            try:
                answer, line = await asker.line(question)
            except OutOfBudgetError:
                failures.append(f"instance {show(question.instance.id)}: the budget is used up")
                return
            except UnreachableError as error:
                failures.append(f"instance {show(question.instance.id)}: {error}")
                if len(failures) > MAX_FAILURES + concurrency:
                    return
                continue
            held.append((number, answer, line))
            if not client.is_foreign:
                keep_held()
            elif len(held) > MAX_FAILURES + concurrency:
                return

    def keep_held() -> None:
        while held:
            number, answer, line = held.pop(0)
            facts: dict[str, Any] = {"outcome": answer.outcome, "reason": answer.reason}
            statuses = [quote["status"] for quote in line["quotes"]]
            partial.append(number, [msgspec.json.encode(line)], {**facts, "statuses": statuses})
            bar.update()

    bar = tqdm(total=asker.plan.config.limit, unit=" instances", disable=None, delay=2)
    try:
        await gather([ask_next() for _ in range(concurrency)])
    finally:
        bar.close()
        await client.close()
    if held and client.is_foreign:
        words = f"this is not an OpenAI-compatible endpoint: {client.endpoint} answers {client.foreign}"
        raise DataError(f"expected chat completions; {words}", argument="endpoint")
    return failures


@dataclass(frozen=True, slots=True)
class Asker:
    """The requests of a run.

    Attributes:
        plan: The opened data and the prompt.
        client: The client of the model.
    """

    plan: AskPlan
    client: Client

    async def line(self, question: Question) -> tuple[Answer, dict[str, Any]]:
        """Return the model's answer and its prediction, which holds the results of the consistency checks."""
        settings, split = self.plan.settings, self.plan.split
        answer = await self._ask(question)
        quotes, answers = (
            align(answer.quotes, question.documents, threshold=settings.threshold, several=settings.several),
            dict[str, Answer](),
        )
        if answer.outcome == ANSWERED:
            answer = await self._add_probabilities(question, answer)
            answers = await self._ask_changed(question, quotes)
        erased = find_erased_probabilities(answers)
        if split.kind == "perturbation":
            line = make_pair_row(question.instance, answer, quotes, erased, split.label_names)
        else:
            line = make_eraser_row(question.instance, answer, quotes, erased)
        if settings.consistency:
            pairs = answers.items()
            line["asked_again"] = [{"kind": kind, "classification": x.label, "outcome": x.outcome} for kind, x in pairs]
        return answer, line

    async def _ask_changed(self, question: Question, quotes: Sequence[Quote]) -> dict[str, Answer]:
        """Return the answers to the changed questions, by the kind of change."""
        answers, settings = dict[str, Answer](), self.plan.settings
        flags = flag_quotes(question, quotes) if settings.consistency else []
        for kind in settings.consistency:
            at = draw_random_flags(question, flags, settings.seed) if kind == "random" else flags
            other = change_question(question, at, kind)
            answers[kind] = await self._add_probabilities(other, await self._ask(other))
        return answers

    async def _ask(self, question: Question, sample: int = 0) -> Answer:
        return await self.client.ask(self.plan.messages(question), self.plan.split.label_names, sample)

    async def _add_probabilities(self, question: Question, answer: Answer) -> Answer:
        """Return the answer with probabilities: the server's, else the share of each label among samples, else none.

        If a server returns log-probabilities, but none of an answer's label, the label counts as certain; without a
        label, all are equal. The notes count both cases.
        """
        settings, labels = self.plan.settings, self.plan.split.label_names
        if answer.probabilities is not None or not settings.consistency:
            return answer
        if settings.samples:
            samples = [await self._ask(question, number + 1) for number in range(settings.samples)]
            counts = Counter(one.label for one in samples if one.label is not None)
            if not counts:
                self.client.bill.note("none of an input's samples is an answer: all its labels count as alike")
            return replace(answer, probabilities=compute_shares(counts, labels))
        if not self.client.gives_probabilities:
            self.client.bill.note("the server gives no log-probabilities: label flips alone (`samples` N asks N times)")
            return answer
        words = "log-probabilities without the label's: the label counts as certain, no label as all alike"
        self.client.bill.note(words)
        return replace(answer, probabilities=compute_shares(Counter(filter(None, [answer.label])), labels))


def write_answers(
    out: Path,
    partial: PartialResult,
    plan: AskPlan,
    client: Client,
    header: dict[str, Any],
    writer: OutputWriter,
) -> AskReport:
    """Write the answers into ``out``."""
    outcomes, statuses, reasons = Counter[str](), Counter[str](), Counter[str]()
    for record in partial.records():
        outcomes[record["outcome"]] += 1
        statuses.update(record["statuses"])
        if record["reason"]:
            reasons[f"{record['outcome']}: {record['reason']}"] += 1
    if not outcomes:
        raise DataError(f"split {plan.config.split}: no instances to ask about", file=plan.config.dataset)
    bill = client.bill
    notes = [f"{words} ({count} times)" for words, count in (*reasons.most_common(MAX_REASONS), *bill.notes.items())]
    if len(reasons) > MAX_REASONS:
        notes.append(f"… and {len(reasons) - MAX_REASONS} more reasons: {out.name}.run.json counts outcomes")
    if plan.config.prompt is None and find_family(plan.split.config) == GENERIC:
        words = f"no prompt is made for the config {plan.split.config}"
        notes.append(f"{words}: a general one is used (`prompt` gives another)")
    if samples := plan.settings.samples:
        error = f"a standard error of at most {compute_standard_error(samples):.3f} each"
        notes.append(f"probabilities are shares of {samples} answers: {error}")
    notes.append(f"{bill.paid} tokens paid for {bill.requests} answers, {bill.from_cache} answers from the cache")
    report = AskReport(out, outcomes, statuses, notes, plan.settings.signature())
    lines = (line for record in partial.records() for line in record["predictions"])
    write_predictions(out, lines, (), plan.split.kind, writer)
    counts = {"instances": outcomes.total(), "outcomes": outcomes, "quotes": statuses}
    write_run(out, {"signature": report.signature, **header, **counts, "notes": notes})
    return report


def dry_run(plan: AskPlan) -> Iterator[str]:
    """Yield two complete prompts and the estimated tokens of all prompts."""
    total, count = 0, 0
    for question in plan.questions():
        messages = plan.messages(question)
        if count < 2:
            yield f"=== {question.instance.id}"
            yield from (f"--- {message['role']}\n{message['content']}" for message in messages)
        total, count = total + estimate_tokens(messages), count + 1
    times = f", each up to {plan.settings.requests} times" if plan.settings.requests > 1 else ""
    words = f"{count} prompts, about {total} tokens (UTF-8 bytes / 4)"
    yield f"{words}, and at most {count * plan.settings.max_tokens} of answers{times}; nothing was asked"
    yield plan.settings.signature()
