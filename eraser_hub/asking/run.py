"""Ask a language model about every instance of a split, several at a time, and make its answers predictions."""

from __future__ import annotations

import asyncio
import math
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from tqdm import tqdm

from eraser_hub.attribution.dataset import Split, open_split
from eraser_hub.attribution.erasure import draw_shifted_rationale, make_generator, rank_tokens
from eraser_hub.attribution.instances import Instance
from eraser_hub.attribution.outputs import PartialResult, write_predictions
from eraser_hub.attribution.prompts import GENERIC, Prompt, find_language, open_prompt
from eraser_hub.metrics.predictions import SIDES
from eraser_hub.metrics.quotes import Document, Quote, align
from eraser_hub.records.errors import DataError, show
from eraser_hub.records.files import OutputWriter
from eraser_hub.records.predictions import write_run

from .client import Client, NoAnswerError, estimate_tokens
from .prompts import ANSWERED, Answer, AskSettings, make_messages, make_texts

TRAIN_ROWS = 500  # rows of train that examples are drawn from
MAX_FAILURES = 10  # after which nothing more is asked; one is enough as long as nothing was answered
MAX_REASONS = 10  # that the notes count, the most frequent ones
PAIR_FIELDS = {
    SIDES["full"]: "pred_proba",
    SIDES["comprehensiveness"]: "non_rationale_pred_proba",
    SIDES["sufficiency"]: "rationale_pred_proba",
}


@dataclass(frozen=True, slots=True)
class AskPlan:
    """What a run asks.

    Attributes:
        split: The split.
        limit: Number of first instances; None for all.
        prompt: The prompt.
        settings: The settings.
        shots: Examples of train, one more than a prompt shows where there is one: the asked instance may be among them.
        blank: What stands between two tokens of a text.
    """

    split: Split
    limit: int | None
    prompt: Prompt
    settings: AskSettings
    shots: Sequence[Instance]
    blank: str

    def instances(self) -> Iterator[Instance]:
        """Return the instances to ask about."""
        return islice(self.split.instances(), self.limit)

    def make_messages(self, instance: Instance, texts: Sequence[str] | None = None) -> list[dict[str, str]]:
        """Return the prompt about an instance, or about other texts in the place of its own.

        Raises:
            DataError: There are too few examples.
        """
        count = self.settings.shots
        shots = [shot for shot in self.shots if shot.id != instance.id][:count]
        if len(shots) < count:
            words = f"expected {count} other rows with label and evidence in train, found {len(shots)}"
            raise DataError(words, instance=instance.id, argument="shots")
        texts = make_texts(instance, self.blank) if texts is None else texts
        return make_messages(self.prompt, instance, texts, self.split.label_names, self.blank, shots)


def make_plan(
    dataset: str,
    config: str | None,
    split_name: str,
    limit: int | None,
    prompt_file: Path | None,
    settings: AskSettings,
) -> AskPlan:
    """Open the data and the prompt of a run, and draw its examples.

    Raises:
        DataError: The data or the prompt cannot be used.
    """
    split = open_split(dataset, config, split_name)
    if not split.label_names:
        raise DataError("expected label names for the prompt, found none", file=dataset)
    prompt, shots = open_prompt(split.config, prompt_file), list[Instance]()
    if settings.shots:
        rows = islice(open_split(dataset, config, "train").instances(), TRAIN_ROWS)
        known = [one for one in rows if one.label is not None and one.has_rationale]
        shots = random.Random(settings.seed).sample(known, min(settings.shots + 1, len(known)))
    name = f"{prompt_file.name if prompt_file else prompt.name}@{prompt.digest}"
    blank = "" if find_language(split.config) == "zh" else " "
    return AskPlan(split, limit, prompt, replace(settings, prompt=name), shots, blank)


def describe_plan(plan: AskPlan) -> Iterator[str]:
    """Yield two whole prompts, an estimate of the tokens of all prompts, and the settings."""
    total = count = 0
    for count, instance in enumerate(plan.instances(), 1):
        messages = plan.make_messages(instance)
        total += estimate_tokens(messages)
        if count <= 2:
            yield f"=== {instance.id}"
            yield from (f"--- {message['role']}\n{message['content']}" for message in messages)
    settings = plan.settings
    requests = (1 + len(settings.consistency)) * (1 + settings.samples)
    times = f", each up to {requests} times" if requests > 1 else ""
    words = f"{count} prompts, about {total} tokens (UTF-8 bytes / 4)"
    yield f"{words}, and at most {count * settings.max_tokens} of answers{times}; nothing was asked"
    yield settings.signature


async def ask_all(plan: AskPlan, client: Client, partial: PartialResult, concurrency: int) -> list[str]:
    """Ask about the instances that have no answer yet, and keep each answer as it comes.

    Returns:
        Why instances have no answer.

    Raises:
        DataError: The server will not answer any request; a full disk.
    """
    failures: list[str] = []
    waiting = ((at, instance) for at, instance in enumerate(plan.instances()) if at not in partial.places)
    bar = tqdm(total=plan.limit, unit=" instances", disable=None, delay=2)

    async def work() -> None:
        for at, instance in waiting:
            try:
                answer, row = await ask_instance(plan, client, instance)
            except NoAnswerError as error:
                failures.append(f"instance {show(instance.id)}: {error}")
                if len(failures) >= MAX_FAILURES or not partial.places:
                    return
                continue
            statuses = [quote["status"] for quote in row["quotes"]]
            facts = {"outcome": answer.outcome, "reason": answer.reason, "statuses": statuses}
            partial.append(at, {**facts, "predictions": [msgspec.json.encode(row).decode()]})
            bar.update()

    workers = [asyncio.ensure_future(work()) for _ in range(concurrency)]
    try:
        await asyncio.gather(*workers)
    finally:  # of an error that no other request mends, too
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
        bar.close()
        await client.close()
    return failures


async def ask_instance(plan: AskPlan, client: Client, instance: Instance) -> tuple[Answer, dict[str, Any]]:
    """Ask about an instance, and about its changed texts if there are quotes to change them by.

    Returns:
        The answer, and the prediction.
    """
    settings, messages = plan.settings, plan.make_messages(instance)
    answer = await client.ask(messages)
    pairs = zip(instance.names, instance.documents, strict=True)
    documents = [Document(docid, tokens, plan.blank) for docid, tokens in pairs]
    quotes = align(answer.quotes, documents, threshold=settings.threshold, several=settings.several)
    scores = [score_tokens(quotes, document.docid, len(document.tokens)) for document in documents]
    again: dict[str, Answer] = {}
    if answer.outcome == ANSWERED and settings.consistency:
        answer = await add_probabilities(plan, client, messages, answer)
        quoted = np.array([score > 0 for document in scores for score in document], dtype=bool)
        for change in settings.consistency:
            marked = quoted
            if change == "random":  # spans of the same lengths, moved by one random step in each document
                generator = make_generator(settings.seed, instance.id, "ask: random spans")
                moved = draw_shifted_rationale(generator, np.flatnonzero(quoted), instance.bounds)
                marked = np.isin(np.arange(len(quoted)), moved)
            messages = plan.make_messages(instance, make_texts(instance, plan.blank, change, marked))
            again[change] = await add_probabilities(plan, client, messages, await client.ask(messages))
    row = make_row(plan, instance, answer, quotes, scores, again)
    return answer, row


async def add_probabilities(
    plan: AskPlan, client: Client, messages: Sequence[dict[str, str]], answer: Answer
) -> Answer:
    """Return the answer with probabilities: the server's, else the labels' shares among samples, else none.

    If the server gives log-probabilities, but none of an answer's label, the label counts as certain; without a label
    all are equally likely.
    """
    settings, labels = plan.settings, plan.split.label_names
    if answer.probabilities is not None:
        return answer
    if settings.samples:
        samples = [await client.ask(messages, number + 1) for number in range(settings.samples)]
        found = Counter(sample.label for sample in samples if sample.label is not None)
        if not found:
            client.notes["none of an input's samples is an answer: all its labels count as equally likely"] += 1
    elif client.gives_probabilities:
        found = Counter(filter(None, [answer.label]))
        words = "log-probabilities without the label's: the label counts as certain, no label as all equally likely"
        client.notes[words] += 1
    else:
        client.notes["the server gives no log-probabilities: label flips alone (in Python samples=N asks N times)"] += 1
        return answer
    shares = {label: found[label] / found.total() if found else 1 / len(labels) for label in labels}
    return replace(answer, probabilities=shares)


# -- predictions ------------------------------------------------------------------------------------------------------


def score_tokens(quotes: Sequence[Quote], docid: str, size: int) -> list[float]:
    """Return a score for each token of a document: (n - k + 1) / n for the k-th of n quotes, the best of several."""
    scores = [0.0] * size
    for rank, quote in reversed(list(enumerate(quotes))):
        if quote.docid == docid and quote.start_token is not None and quote.end_token is not None:
            for at in range(quote.start_token, quote.end_token):
                scores[at] = 1 - rank / len(quotes)
    return scores


def make_spans(quotes: Sequence[Quote], docid: str) -> list[dict[str, int]]:
    """Return the tokens of a document that quotes cover, as spans that do not overlap."""
    spans: list[dict[str, int]] = []
    places = ((quote.start_token, quote.end_token) for quote in quotes if quote.docid == docid)
    for start, end in sorted((start, end) for start, end in places if start is not None and end is not None):
        if spans and start < spans[-1]["end_token"]:
            spans[-1]["end_token"] = max(end, spans[-1]["end_token"])
        else:
            spans.append({"start_token": start, "end_token": end})
    return spans


def make_row(
    plan: AskPlan,
    instance: Instance,
    answer: Answer,
    quotes: Sequence[Quote],
    scores: Sequence[Sequence[float]],
    again: Mapping[str, Answer],
) -> dict[str, Any]:
    """Return a prediction: an instance of ERASER's results, or of those of the perturbation benchmark.

    Args:
        plan: The run.
        instance: The instance.
        answer: The answer.
        quotes: Its quotes.
        scores: For each document a score for each token.
        again: The answers to the changed texts.
    """
    known = {change: other.probabilities for change, other in again.items() if other.probabilities is not None}
    sides = {
        SIDES["full"]: answer.probabilities,
        SIDES["comprehensiveness"]: known.get("removed", known.get("redacted")),
        SIDES["sufficiency"]: known.get("alone"),
    }
    row: dict[str, Any]
    if plan.split.kind == "perturbation":
        labels = plan.split.label_names
        ranked = [[at for at in rank_tokens(np.array(document)).tolist() if document[at]] for document in scores]
        row = {
            "id": instance.id,
            "pred_label": None if answer.label is None else labels.index(answer.label),
            "rationale": list(map(sorted, ranked)),
            "rationale_tokens": [
                [tokens[at] for at in order] for tokens, order in zip(instance.documents, ranked, strict=True)
            ],
            **{PAIR_FIELDS[side]: [p[label] for label in labels] for side, p in sides.items() if p is not None},
        }
    else:
        row = {
            "annotation_id": instance.id,
            "rationales": [
                {
                    "docid": docid,
                    "hard_rationale_predictions": make_spans(quotes, docid),
                    "soft_rationale_predictions": document,
                }
                for docid, document in zip(instance.names, scores, strict=True)
                if answer.outcome == ANSWERED
            ],
            "classification": answer.label,
            **{side: p for side, p in sides.items() if p is not None},
        }
    row |= {"quotes": [asdict(quote) for quote in quotes], "outcome": answer.outcome}
    if plan.settings.consistency:
        pairs = again.items()
        row["asked_again"] = [{"kind": kind, "classification": x.label, "outcome": x.outcome} for kind, x in pairs]
    return row


@dataclass(frozen=True, slots=True)
class AskReport:
    """The report of a run; it prints as two lines and the settings.

    Attributes:
        out: The predictions.
        outcomes: Number of answers of each outcome.
        statuses: Number of quotes of each status.
        notes: What a reader of the results must know.
        signature: The settings in one line.
    """

    out: Path
    outcomes: Counter[str]
    statuses: Counter[str]
    notes: Sequence[str]
    signature: str

    def __str__(self) -> str:
        missing = ", ".join(f"{count} {name}" for name, count in self.outcomes.most_common() if name != ANSWERED)
        wrong = f" ({missing}: these count as wrong)" if missing else ""
        quotes = ", ".join(f"{count} {status}" for status, count in self.statuses.most_common())
        answered = f"{self.outcomes.total()} instances, {self.outcomes[ANSWERED]} answered{wrong}"
        found = f"{self.statuses.total()} quotes" + (f": {quotes}" if quotes else "")
        return f"{self.out}: {answered}\n{found}\n{self.signature}"


def write_answers(
    out: Path, partial: PartialResult, plan: AskPlan, client: Client, header: dict[str, Any], writer: OutputWriter
) -> AskReport:
    """Write the predictions and the record of a complete run."""
    settings, split = plan.settings, plan.split
    outcomes, statuses, reasons = Counter[str](), Counter[str](), Counter[str]()
    for record in partial.records():
        outcomes[record["outcome"]] += 1
        statuses.update(record["statuses"])
        if record["reason"]:
            reasons[f"{record['outcome']}: {record['reason']}"] += 1
    if not outcomes:
        raise DataError("expected instances to ask about, found none", file=split.name)
    counted = [*reasons.most_common(MAX_REASONS), *client.notes.items()]
    notes = [f"{words} ({count} times)" for words, count in counted]
    if settings.prompt.startswith(f"{find_language(split.config)}/{GENERIC}@"):
        notes.append(f"no prompt is made for the config {split.config}: a general one is used (`prompt` gives another)")
    if settings.samples:
        error = math.sqrt(0.25 / settings.samples)  # of a share of one half, the largest
        notes.append(f"probabilities are shares of {settings.samples} answers: standard errors of up to {error:.3f}")
    notes.append(f"{client.paid} tokens paid for {client.requests} answers, {client.from_cache} answers from the cache")
    lines = (line for record in partial.records() for line in record["predictions"])
    write_predictions(out, lines, writer)
    counts = {"instances": outcomes.total(), "outcomes": outcomes, "quotes": statuses}
    write_run(out, {"signature": settings.signature, **header, **counts, "notes": notes})
    return AskReport(out, outcomes, statuses, notes, settings.signature)
