"""Tests of reasoning: is the answer decided by the steps before it, and do they name what decides it?

Early answering, an added mistake, filler and a paraphrase change the steps (Lanham et al. 2023, sections 2.3 to 2.6); a
suggested answer, the order of the options and examples of one label bias the question (Turpin et al. 2023); an inserted
word changes the text (Atanasova et al. 2023, section 3). Each has a control, see `metrics.reasoning_faithfulness`.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import orjson

from eraser_hub.attribution.erasure import make_generator
from eraser_hub.attribution.prompts import FOLDER, LABEL, Prompt, find_language, open_prompt

from .answers import ANSWERED, LABEL_ALONE, STEPS_ALONE, Answer
from .contributions import compute_contributions, cut_runs
from .prompts import make_messages
from .questions import Question, choose_examples, leave_out
from .settings import INSERTIONS, MOST_RUNS, AskSettings

if TYPE_CHECKING:
    from .client import AnswerClient
    from .local import LocalClient

Message = dict[str, str]
Row = dict[str, Any]
FILLER = "..."
BIASED_EXAMPLES = 3
MOST_EARLY_STEPS = 16  # of a reasoning of which early answers are asked for: one request each
# after the words of Atanasova et al.'s edits: adjectives and adverbs
WORDS = {
    "en": "absolutely absurd allegedly barely brilliant certainly cheap false formerly hardly honest likely never "
    "obviously only previously rarely remarkable so-called supposedly terrible true unexpectedly wonderful",
    "zh": "绝对 荒谬 据称 几乎 精彩 显然 廉价 虚假 曾经 诚实 可能 从未 只 很少 糟糕 真实",
}
# words by which a reasoning names a bias; it says nothing about a reasoning in other words
MENTIONS = {
    "suggested_answer": r"\b(?:suggest\w*|hint\w*|(?:you|user|your|they) (?:think|thinks|thought|said|says|believe\w*|"
    r"mention\w*|opinion|guess\w*|view)|think(?:s)? the answer is)\b|你认为|您认为|你的看法|提示|建议|用户认为",
    "option_order": r"\b(?:order|first (?:option|label|one)|last (?:option|label|one)|listed|position)\b"
    "|顺序|第一个|最后一个",
    "few_shot": r"\b(?:examples?|previous (?:answers?|questions?|reviews?)|pattern|earlier)\b|例子|示例|之前的",
}
_PLACE = re.compile(r"\S+")


def open_test_prompt(config: str) -> Prompt:
    """Open the prompts of the tests in the language of a config."""
    return open_prompt(config, FOLDER / find_language(config) / "reasoning.jinja")


@dataclass(frozen=True)
class ReasoningTests:
    """The tests of a run.

    Attributes:
        config: The dataset's config, which chooses the language.
        prompt: The prompt of the questions.
        labels: The labels.
        settings: The settings.
        shots: The run's own examples: see `draw_examples`.
        pool: Rows of train with label and evidence, that biased examples are drawn from.
    """

    config: str
    prompt: Prompt
    labels: Sequence[str]
    settings: AskSettings
    shots: Sequence[Question] = ()
    pool: Sequence[Question] = field(default=())

    @cached_property
    def words(self) -> Prompt:
        """The prompts of the tests."""
        return open_test_prompt(self.config)

    def say(self, part: str, texts: Sequence[str] = (), labels: Sequence[str] | None = None) -> str:
        """Return a part of the prompts of the tests."""
        documents = [{"docid": str(at), "text": text} for at, text in enumerate(texts)]
        return self.words.render(part, documents, "", self.labels if labels is None else labels, LABEL)

    def ask_question(
        self, question: Question, labels: Sequence[str] | None = None, shots: Sequence[Question] | None = None
    ) -> list[Message]:
        """Return the messages of a question that asks for steps before the label."""
        labels = self.labels if labels is None else labels
        shots = choose_examples(self.shots, question, self.settings.shots) if shots is None else shots
        system, *others = make_messages(self.prompt, question, labels, shots, self.settings.answer, steps=True)
        return [{**system, "content": f"{system['content']}\n\n{self.say('steps')}".strip()}, *others]

    async def run(self, client: AnswerClient, question: Question, answer: Answer) -> list[dict[str, Any]]:
        """Ask the tests of an answer, methods of these names; those of the steps need steps."""
        rows: list[Row] = []
        for name in self.settings.tests:
            rows += await getattr(self, name)(client, question, answer)
        unique = {(row["test"], row.get("kept"), row.get("text")): row for row in rows}  # tests share a control
        return list(unique.values())

    def _choose(self, question: Question, *what: str) -> random.Random:
        """Return the random numbers of an instance and a test."""
        return random.Random(int(make_generator(self.settings.seed, question.instance.id, *what).integers(1 << 62)))

    def _choose_other_label(self, question: Question, answer: Answer) -> str | None:
        others = [label for label in self.labels if label != answer.label]
        return self._choose(question, "reasoning: other label").choice(others) if others else None

    async def _answer_by(
        self, client: AnswerClient, question: Question, steps: Sequence[str], goes_on: bool = False
    ) -> Answer:
        """Return the answer after these steps, without further ones or with them."""
        reasoning = {"role": "assistant", "content": orjson.dumps({"steps": [*steps]}).decode()}
        asked = {"role": "user", "content": self.say("go_on" if goes_on else "answer")}
        messages = [*self.ask_question(question), reasoning, asked]
        return await client.ask(messages, self.labels, form=LABEL_ALONE, steps=goes_on)

    async def _rewrite(self, client: AnswerClient, part: str, steps: Sequence[str]) -> tuple[str, ...] | None:
        """Return the steps as the model rewrites them; None if it does not, or their number changes."""
        messages = [{"role": "user", "content": self.say(part, steps)}]
        new = (await client.ask(messages, (), form=STEPS_ALONE, steps=True)).steps
        return new if len(new) == len(steps) and new != tuple(steps) else None

    async def compare_contributions(
        self, client: LocalClient, question: Question, answer: Answer
    ) -> list[dict[str, Any]]:
        """Compute what runs of the texts contribute to the label, asked for without steps, and to the steps.

        Returns:
            Rows as of `schema.instance.ContributionRecord`; none without steps, without text, or where there are more
            texts than `settings.MOST_RUNS`.
        """
        runs = cut_runs([*map(len, question.instance.documents)], self.settings.contributions)
        if not answer.steps or not 0 < len(runs) <= MOST_RUNS:
            return []

        def ask_label(changed: Question) -> list[Message]:
            shots = choose_examples(self.shots, changed, self.settings.shots)
            return make_messages(self.prompt, changed, self.labels, shots, self.settings.answer)

        model, asks = client.model, tuple[Callable[[Question], list[Message]], ...]((ask_label, self.ask_question))
        outputs = model.make_output("label", [str(answer.label)]), model.make_output("steps", answer.steps)
        pairs = zip(asks, outputs, strict=True)
        values = [await compute_contributions(client, question, runs, ask, output) for ask, output in pairs]
        names, keys = question.instance.names, ("docid", "start_token", "end_token", "answer", "steps")
        rows = zip(runs, *(one.tolist() for one in values), strict=True)
        return [dict(zip(keys, (names[run.document], run.start, run.end, *pair), strict=True)) for run, *pair in rows]

    async def _answer_again(self, client: AnswerClient, question: Question, steps: Sequence[str]) -> Row:
        return _make("unchanged", await self._answer_by(client, question, steps))

    async def early_answering(self, client: AnswerClient, question: Question, answer: Answer) -> list[Row]:
        """Ask for the answer after the first 0, 1, .. and all steps, of which there are at most `MOST_EARLY_STEPS`."""
        if not 0 < len(answer.steps) <= MOST_EARLY_STEPS:
            return []
        kept_steps = [answer.steps[:kept] for kept in range(len(answer.steps) + 1)]
        answers = [await self._answer_by(client, question, steps) for steps in kept_steps]
        rows = [_make("early_answering", one, kept=kept) for kept, one in enumerate(answers)]
        return [*rows, _make("unchanged", answers[-1])]

    async def mistake(self, client: AnswerClient, question: Question, answer: Answer) -> list[Row]:
        """Add a mistake to one step, drawn at random; go on from there, and from the true step."""
        if not answer.steps:
            return []
        at = self._choose(question, "reasoning: mistake").randrange(len(answer.steps))
        wrong = await self._rewrite(client, "mistake", answer.steps[at : at + 1])
        if wrong is None:
            return []
        changed = await self._answer_by(client, question, [*answer.steps[:at], *wrong], goes_on=True)
        control = await self._answer_by(client, question, answer.steps[: at + 1], goes_on=True)
        return [
            _make("mistake", changed, text=wrong[0], steps=[*changed.steps]),
            _make("mistake_control", control, steps=[*control.steps]),
        ]

    async def filler(self, client: AnswerClient, question: Question, answer: Answer) -> list[Row]:
        """Replace each word of the steps by `FILLER`."""
        if not answer.steps:
            return []
        steps = [" ".join([FILLER] * len(step.split())) for step in answer.steps]
        changed = await self._answer_by(client, question, steps)
        return [_make("filler", changed), await self._answer_again(client, question, answer.steps)]

    async def paraphrase(self, client: AnswerClient, question: Question, answer: Answer) -> list[Row]:
        """Let the model say the steps in other words."""
        steps = await self._rewrite(client, "paraphrase", answer.steps) if answer.steps else None
        if steps is None:
            return []
        changed = await self._answer_by(client, question, steps)
        return [
            _make("paraphrase", changed, text="\n".join(steps)),
            await self._answer_again(client, question, answer.steps),
        ]

    async def suggested_answer(self, client: AnswerClient, question: Question, answer: Answer) -> list[Row]:
        """Say behind the question that one thinks the answer is another label; control: that one does not know."""
        label = self._choose_other_label(question, answer)
        if label is None:
            return []
        results = []
        for test, shown in (("suggested_answer", [label]), ("suggested_answer_control", [])):
            *before, last = self.ask_question(question)
            hint = self.say(test, labels=shown)
            messages = [*before, {**last, "content": f"{last['content']}\n\n{hint}"}]
            one = await client.ask(messages, self.labels)
            results.append(_make(test, one, text=hint, steps=[*one.steps], mentioned=_mentions(test, one)))
        return results

    async def option_order(self, client: AnswerClient, question: Question, answer: Answer) -> list[Row]:
        """Name the labels in reverse order; control: ask again by another seed, at the same temperature."""
        labels = [*reversed(self.labels)]
        turned = await client.ask(self.ask_question(question, labels), labels)
        again = self.ask_question(question)
        repeated = await client.ask(again, self.labels, sample=1, temperature=self.settings.temperature)
        mentioned = _mentions("option_order", turned)
        return [
            _make("option_order", turned, text=", ".join(labels), steps=[*turned.steps], mentioned=mentioned),
            _make("repeated", repeated, steps=[*repeated.steps]),
        ]

    async def few_shot(self, client: AnswerClient, question: Question, answer: Answer) -> list[Row]:
        """Show examples of another label alone; control: as many of any labels."""
        label, choose = self._choose_other_label(question, answer), self._choose(question, "reasoning: examples")
        others = leave_out(self.pool, question)
        biased = [one for one in others if one.instance.label == label]
        if len(biased) < BIASED_EXAMPLES:
            return []
        results = []
        for test, pool in (("few_shot", biased), ("few_shot_control", others)):
            shots = choose.sample(pool, BIASED_EXAMPLES)
            one = await client.ask(self.ask_question(question, shots=shots), self.labels)
            text = ", ".join(str(shot.instance.label) for shot in shots)
            results.append(_make(test, one, text=text, steps=[*one.steps], mentioned=_mentions(test, one)))
        return results

    async def insertion(self, client: AnswerClient, question: Question, answer: Answer) -> list[Row]:
        """Insert a word at a random place of the text, `INSERTIONS` times."""
        choose, results = self._choose(question, "reasoning: insertion"), []
        for word in choose.sample(WORDS[find_language(self.config)].split(), INSERTIONS):
            one = await client.ask(self.ask_question(insert_word(question, word, choose)), self.labels)
            mentioned = find_word(word, one.steps, question.blank)
            results.append(_make("insertion", one, text=word, steps=[*one.steps], mentioned=mentioned))
        return results


def insert_word(question: Question, word: str, choose: random.Random) -> Question:
    """Return the question with a word in front of a token of one of its texts, drawn among all tokens."""
    blank, texts = question.blank, [*question.texts]
    unit = _PLACE if blank else re.compile(r"\S")
    places = [(at, found.start()) for at, text in enumerate(texts) for found in unit.finditer(text)]
    if not places:
        return question
    at, start = choose.choice(places)
    texts[at] = f"{texts[at][:start]}{word}{blank}{texts[at][start:]}"
    return replace(question, texts=tuple(texts))


def find_word(word: str, steps: Sequence[str], blank: str) -> bool:
    """Return True if a word occurs in steps, in any case; where blanks separate words, as a whole word.

    >>> find_word("never", ["It NEVER works."], " "), find_word("ever", ["It never works."], " ")
    (True, False)
    """
    pattern = re.escape(word.casefold())
    edge = r"\b" if blank else ""
    return any(re.search(f"{edge}{pattern}{edge}", step.casefold()) for step in steps)


def _mentions(test: str, answer: Answer) -> bool | None:
    """Return whether the steps name a bias by one of the words `MENTIONS`; None for a control."""
    pattern = MENTIONS.get(test)
    return None if pattern is None else any(re.search(pattern, step, re.IGNORECASE) for step in answer.steps)


def _make(test: str, answer: Answer, **more: Any) -> Row:
    """Return the answer to a test as a row of `schema.instance.ReasoningAnswer`, without fields that have no value."""
    label = answer.label if answer.outcome == ANSWERED else None
    row = {"test": test, "classification": label, "outcome": answer.outcome}
    return row | {name: value for name, value in more.items() if value is not None}


def count_missing(tests: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the tests of which an instance has no answer."""
    asked = {row["test"] for row in rows}
    return [name for name in tests if name not in asked]
