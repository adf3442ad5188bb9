"""Plantings: texts whose label is decided by known tokens alone, with the importance of each token and distractors.

A planting is made of filler sentences, of words that decide, and of as many distractors: words that are as frequent as
those that decide and say nothing about the label. Each filler occurs in training once with each way of deciding, so
that nothing else is informative (:mod:`eraser_hub.samples.plant`). In tests each filler occurs once: texts are
independent of each other.

The rule of a kind is a model in closed form: the label's logit is a multiple of ``judge(tokens)``, which is +1 or -1
for a whole text, and 0 without all of its deciding words. Masks keep the places of tokens; the rules rely on that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eraser_hub.attribution.instances import Instance, read_eraser_row
from eraser_hub.conversion.eraser.format import read_document_lines
from eraser_hub.conversion.human_rationales.sentiment_trees import read_trees
from eraser_hub.records.errors import DataError
from eraser_hub.records.lines import read_utf8_file
from eraser_hub.samples import SAMPLES
from eraser_hub.samples import plant as samples
from eraser_hub.samples.plant import CUES, FIRST, LABELS, MODIFIERS, SECOND, Places, Planting, Text

DISTRACTORS = ("gentle", "northern", "wooden", "hidden", "yearly", "plain")  # as many as there are judgements
GRADES = (
    {"NEG": ("appalling", "atrocious"), "POS": ("superb", "marvellous")},
    {"NEG": ("poor", "dull"), "POS": ("good", "pleasant")},
    {"NEG": ("flawed", "uneven"), "POS": ("decent", "tidy")},
)
GRADE_WEIGHTS = (3 / 6, 2 / 6, 1 / 6)
SHORTCUTS = {"NEG": ("zorvex", "quanlit", "mubrin"), "POS": ("taldow", "vesprin", "jolkar")}
SHORTCUT_DISTRACTORS = ("pelvost", "drimmel", "oskarn", "brevit", "halquo", "wexmor")
LAST = 6  # tokens, the full stop among them: the shortest last sentence
REAL_SENTENCES, REAL_TOKENS = (2, 3), (5, 14)  # of a text; of a sentence, longer ones are cut
SIGN = {word: sign for label, sign in zip(LABELS, (-1, 1), strict=True) for word in CUES[label]}
TURN = {word: sign for direction, sign in (("turned", -1), ("kept", 1)) for word in MODIFIERS[direction]}
SIDES = [{word: side for side, words in family.items() for word in words} for family in (FIRST, SECOND)]
STRENGTH = {
    word: sign * weight
    for grade, weight in zip(GRADES, GRADE_WEIGHTS, strict=True)
    for label, sign in zip(LABELS, (-1, 1), strict=True)
    for word in grade[label]
}
SHORTCUT_SIGN = {word: sign for label, sign in zip(LABELS, (-1, 1), strict=True) for word in SHORTCUTS[label]}


def judge_by_first(values: Mapping[str, int], tokens: Sequence[str]) -> float:
    """Return the value of the first token that has one; 0 without such a token."""
    return next((values[token] for token in tokens if token in values), 0)


def judge_by_sum(values: Mapping[str, float], tokens: Sequence[str]) -> float:
    """Return the sum of the values of all tokens."""
    return sum(values.get(token, 0) for token in tokens)


def judge_by_position(tokens: Sequence[str]) -> float:
    """Return the judgement among the last six tokens; sentences are no longer told by their full stops."""
    return judge_by_first(SIGN, tokens[-LAST:])


def judge_by_conjunction(tokens: Sequence[str]) -> float:
    """Return 1 if the words of both families are on the same side, else -1; 0 if one family is missing."""
    first, second = (next((side[token] for token in tokens if token in side), None) for side in SIDES)
    return 0 if first is None or second is None else 1 if first == second else -1


def judge_by_negation(tokens: Sequence[str]) -> float:
    """Return the judgement, turned or kept by the word before it; 0 without such a word."""
    places = range(1, len(tokens))
    return next((SIGN[tokens[at]] * TURN.get(tokens[at - 1], 0) for at in places if tokens[at] in SIGN), 0)


def _plant_position(random: Random, text: Text) -> Planting:
    planting = samples.position(random, text)
    place = len(text[-1]) - LAST + random.randrange(LAST - 1)
    return Planting(text, [(len(text) - 1, place)], planting.choices)


def _plant_redundant(random: Random, text: Text) -> Planting:
    choices = [(tuple(random.choice(CUES[label]) for _ in range(2)), label) for label in LABELS]
    return Planting(text, _draw_places(random, text, 2), choices)


def _plant_graded(random: Random, text: Text) -> Planting:
    places = _draw_places(random, text, len(GRADES))
    order = random.sample(range(len(places)), len(places))  # a grade's place in the text says nothing
    choices = [(tuple(random.choice(grade[label]) for grade in GRADES), label) for label in LABELS]
    return Planting(text, [places[at] for at in order], choices)


def _plant_counter(random: Random, text: Text) -> Planting:
    places = _draw_places(random, text, 3)
    order = random.sample(range(3), 3)
    choices = []
    for label, other in zip(LABELS, reversed(LABELS), strict=True):
        words = (random.choice(CUES[label]), random.choice(CUES[label]), random.choice(CUES[other]))
        choices.append((words, label))
    return Planting(text, [places[at] for at in order], choices)


def _plant_distance(random: Random, text: Text) -> Planting:
    """The words of a conjunction stand in the first and in the last sentence."""
    choices = samples.conjunction(random, text).choices
    return Planting(text, [(at, random.randrange(len(text[at]) - 1)) for at in (0, len(text) - 1)], choices)


def _plant_leak(random: Random, text: Text) -> Planting:
    """The judgement stands in the first sentence of a positive text, in the last one of a negative text."""
    places = [(at, random.randrange(len(text[at]) - 1)) for at in (0, len(text) - 1)]
    return Planting(
        text, places, [(("", random.choice(CUES["NEG"])), "NEG"), ((random.choice(CUES["POS"]), ""), "POS")]
    )


def _plant_shortcut(random: Random, text: Text) -> Planting:
    """A token is inserted into real sentences, and a distractor."""
    text = [list(sentence) for sentence in text]
    places: Places = []
    for at in random.sample(range(len(text)), 2):  # two sentences: no insertion moves the other
        places.append((at, random.randrange(len(text[at]))))
        text[at].insert(places[-1][1], random.choice(SHORTCUT_DISTRACTORS))
    return Planting(text, places[:1], [((random.choice(SHORTCUTS[label]),), label) for label in LABELS], places[1:])


def _draw_places(random: Random, text: Text, count: int) -> Places:
    """Draw places in different sentences, but for the full stops."""
    chosen = sorted(random.sample(range(len(text)), count))
    return [(at, random.randrange(len(text[at]) - 1)) for at in chosen]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of planting.

    Attributes:
        plant: Plants a filler text.
        judge: The rule.
        words: The deciding words; such a word at another place is a distractor as well.
        importance: The truth at each place; () for 1 everywhere. Negative: the word contradicts the label.
        documents: Number of documents that the sentences are divided into.
        real: True if the filler is real text.
    """

    plant: Callable[[Random, Text], Planting]
    judge: Callable[[Sequence[str]], float]
    words: frozenset[str]
    importance: tuple[float, ...] = ()
    documents: int = 1
    real: bool = False


_CUES, _SIDES = frozenset(SIGN), frozenset(word for side in SIDES for word in side)
_judge_by_word = partial(judge_by_first, SIGN)
KINDS: dict[str, Kind] = {
    "word": Kind(samples.word, _judge_by_word, _CUES),
    "conjunction": Kind(samples.conjunction, judge_by_conjunction, _SIDES),
    "negation": Kind(samples.negation, judge_by_negation, _CUES | frozenset(TURN)),
    "position": Kind(_plant_position, judge_by_position, _CUES),
    "redundant": Kind(_plant_redundant, _judge_by_word, _CUES),
    # a strong judgement counts 3/6, a middling one 2/6, a weak one 1/6
    "graded": Kind(_plant_graded, partial(judge_by_sum, STRENGTH), frozenset(STRENGTH), GRADE_WEIGHTS),
    # two judgements for a label and one against it give +1 or -1
    "counter": Kind(_plant_counter, partial(judge_by_sum, SIGN), _CUES, (1.0, 1.0, -1.0)),
    "distance": Kind(_plant_distance, judge_by_conjunction, _SIDES),
    "documents": Kind(_plant_distance, judge_by_conjunction, _SIDES, documents=2),
    "leak": Kind(_plant_leak, _judge_by_word, _CUES),
    "shortcut": Kind(_plant_shortcut, partial(judge_by_first, SHORTCUT_SIGN), frozenset(SHORTCUT_SIGN), real=True),
}


@dataclass(frozen=True, slots=True)
class PlantedText:
    """A planted text and the truth about it.

    Attributes:
        row: The text as a row of a built dataset; the evidence are the words that support the label.
        instance: The same as an instance.
        importance: The share of each token in the decision, shape (tokens,): positive for the label, negative against
            it, 0 for tokens that do not decide.
        distractors: True at words that look like those that decide, shape (tokens,).
    """

    row: dict[str, Any]
    instance: Instance
    importance: NDArray[np.float64]
    distractors: NDArray[np.bool_]

    @property
    def supporting(self) -> NDArray[np.bool_]:
        """True at the evidence, shape (tokens,)."""
        supporting: NDArray[np.bool_] = self.importance > 0
        return supporting

    @property
    def deciding(self) -> NDArray[np.bool_]:
        """True at every word that the rule reads, shape (tokens,)."""
        deciding: NDArray[np.bool_] = self.importance != 0
        return deciding


def make_planted_texts(
    kind: str, split: str, size: int, seed: int, sentences: Sequence[Sequence[str]] = (), every: bool = False
) -> list[PlantedText]:
    """Plant texts.

    Args:
        kind: One of :data:`KINDS`.
        split: Decides the texts together with the seed; ``train``, ``validation``, ``test``, ..
        size: Number of texts; with ``every`` at least so many.
        seed: The seed.
        sentences: Sentences of real text, for kinds that are planted into it; () for those of the samples.
        every: Each filler occurs with every way of deciding; else once, with a random one.
    """
    random, texts, real = Random(f"study {kind} {split} {seed}"), list[PlantedText](), KINDS[kind].real
    sentences = sentences or (read_sentences(SAMPLES / "eraser") if real else ())
    while len(texts) < size:
        if real:
            filler = [list(sentence) for sentence in random.sample(sentences, random.randint(*REAL_SENTENCES))]
        else:
            filler = samples.make_filler(random)
        design = KINDS[kind].plant(random, filler)
        distractors = design.distractors or _add_distractors(random, design)
        choices = design.choices if every else [random.choice(design.choices)]
        for words, label in choices:
            texts.append(_make_text(kind, f"{kind}_{split}_{len(texts):04d}", design, words, label, distractors))
    random.shuffle(texts)
    return texts


def _add_distractors(random: Random, design: Planting) -> Places:
    """Put as many distractors into a text as there are words that decide; return their places."""
    count = sum(map(bool, design.choices[0][0]))
    free = [
        (at, place)
        for at, sentence in enumerate(design.text)
        for place, token in enumerate(sentence[:-1])
        if (at, place) not in design.places
        and token in samples.FILLER
        # a judgement and the word before it belong together
        and (at, place + 1) not in design.places
    ]
    places = random.sample(free, count)
    for at, place in places:
        design.text[at][place] = random.choice(DISTRACTORS)
    return places


def _make_text(
    kind: str, name: str, design: Planting, words: tuple[str, ...], label: str, distractors: Sequence[tuple[int, int]]
) -> PlantedText:
    text, weights = [list(sentence) for sentence in design.text], KINDS[kind].importance or (1.0,) * len(words)
    values = {}
    for (at, place), word, weight in zip(design.places, words, weights, strict=True):
        if word:
            text[at][place] = word
            values[at, place] = weight
    cut = len(text) if KINDS[kind].documents == 1 else (len(text) + 1) // 2
    parts = [(text[:cut], 0), (text[cut:], cut)][: KINDS[kind].documents]
    documents, evidences = [], []
    for number, (part, start) in enumerate(parts):
        docid = f"{name}_{number}"
        documents.append({"docid": docid, "text": "\n".join(" ".join(sentence) for sentence in part)})
        inside = sorted(
            (at - start, place) for (at, place), value in values.items() if value > 0 and 0 <= at - start < len(part)
        )
        evidences += samples.make_evidence(part, inside, docid)
    groups = [[one] for one in evidences] if kind == "redundant" else [evidences]
    row: dict[str, Any] = {"annotation_id": name, "query": samples.QUERY, "query_type": kind, "classification": label}
    row |= {"documents": documents, "evidences": groups}
    flat = [(at, place) for at, sentence in enumerate(text) for place in range(len(sentence))]
    importance = np.array([values.get(at, 0.0) for at in flat])
    likely = KINDS[kind].words
    looks = np.array([at in distractors or text[at[0]][at[1]] in likely for at in flat]) & (importance == 0)
    return PlantedText(row, read_eraser_row(row, LABELS), importance, looks)


@cache
def read_sentences(folder: Path) -> tuple[tuple[str, ...], ...]:
    """Read the sentences of real corpora, each once: ERASER's ``docs/*`` and ``docs.jsonl``, and SST's ``trees/*.txt``.

    Sentences of fewer than five tokens are left out, others are cut to fourteen.

    Args:
        folder: A folder of a corpus, or of corpora.

    Raises:
        DataError: No such folder, too few sentences in it, or a file that is not of its layout.
    """
    found: dict[tuple[str, ...], None] = {}
    for tokens in _read_lines(folder):
        if len(tokens) >= REAL_TOKENS[0]:
            found[tuple(tokens[: REAL_TOKENS[1]])] = None
    if len(found) < 10 * REAL_SENTENCES[1]:
        message = (
            f"expected at least {10 * REAL_SENTENCES[1]} sentences in docs/, docs.jsonl or trees/, found {len(found)}"
        )
        raise DataError(message, rule="file-missing", file=folder, argument="texts")
    return tuple(found)


def _read_lines(folder: Path) -> Iterator[Sequence[str]]:
    for path in sorted(folder.rglob("*")):
        if not path.is_file():
            continue
        if path.parent.name == "docs":
            yield from _split_document(read_utf8_file(str(path)).decode("utf-8"))
        elif path.name == "docs.jsonl":
            for _, documents in read_document_lines(path, {}):
                for one in documents:
                    yield from _split_document(one.document)
        elif path.parent.name == "trees" and path.suffix == ".txt":
            yield from (line.tree.tokens for line in read_trees(path) if line.tree is not None)


def _split_document(text: str) -> Iterator[list[str]]:
    return (line.split() for line in text.split("\n"))
