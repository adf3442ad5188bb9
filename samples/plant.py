"""Plant rationales: texts whose label hangs on known tokens alone, as ERASER corpora.

    python -m eraser_hub.samples.plant --out samples/planted

writes the folders of ``samples/planted``: ``planted_KIND/`` with ``corpus.yaml``, ``docs.jsonl`` and a file a split.
Filler sentences of neutral words hold, at random places, the words that decide (:data:`KINDS`). Each filler text occurs
once with each way of deciding, at the same places, so that

- the deciding words give the label;
- whatever else is seen, with any of the deciding words hidden, both labels are equally frequent: the rest of the text,
  its length, and the place and number of the deciding words say nothing.

The gold evidence is therefore the only evidence, by construction; ``tests/samples/test_planted.py`` counts it out.
Every text has 24 to 40 tokens, so that the corpus' kd gives exactly as many tokens as decide.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

LABELS = ("NEG", "POS")
QUERY = "Does the text speak for it ?"
SIZES = {"train": 160, "val": 40, "test": 80}
SENTENCES, FILLERS = (4, 5), (5, 7)  # least and most, of a text and of a sentence without its full stop
NEUTRAL = (
    "river lamp table window garden paper bridge morning street letter kitchen number winter coffee island basket "
    "train pocket mirror station village ladder button candle carpet clock cloud corner engine fence field glass "
    "hall hill library market minute mountain office orchard picture pencil plate road roof shelf ship shop square "
    "stone stove summer teacher ticket tower tree valley wall wheel"
)
FILLER = NEUTRAL.split()
CUES = {"NEG": ("dreadful", "tedious", "clumsy"), "POS": ("splendid", "charming", "brilliant")}
MODIFIERS = {"turned": ("never", "hardly", "not"), "kept": ("truly", "always", "quite")}
FIRST = {"left": ("amber", "copper", "scarlet"), "right": ("indigo", "silver", "violet")}
SECOND = {"left": ("anchor", "falcon", "harp"), "right": ("barrel", "lynx", "drum")}

Text = list[list[str]]  # sentences of tokens
Places = list[tuple[int, int]]  # sentence and token in it, in the order of the text


@dataclass(frozen=True, slots=True)
class Planting:
    """A filler text, where its deciding words go, and the words that decide, with the label that each choice gives.

    Attributes:
        text: sentences of tokens.
        places: sentence and token of each deciding word.
        choices: the words and the label of each way of deciding; "" for a place that does not decide.
        distractors: places of words that look like those that decide, if the text has some.
    """

    text: Text
    places: Places
    choices: Sequence[tuple[tuple[str, ...], str]]
    distractors: Sequence[tuple[int, int]] = ()


def word(random: Random, text: Text) -> Planting:
    """One word anywhere decides."""
    at = random.randrange(len(text))
    choices = [((random.choice(CUES[label]),), label) for label in LABELS]
    return Planting(text, [(at, random.randrange(len(text[at]) - 1))], choices)


def conjunction(random: Random, text: Text) -> Planting:
    """Two words of two sentences decide together: POS where both are of the left family or both of the right one."""
    places = [(at, random.randrange(len(text[at]) - 1)) for at in sorted(random.sample(range(len(text)), 2))]
    first, second = _one_of_each(random, FIRST), _one_of_each(random, SECOND)
    choices = [((first[one], second[other]), "POS" if one == other else "NEG") for one in FIRST for other in SECOND]
    return Planting(text, places, choices)


def negation(random: Random, text: Text) -> Planting:
    """A judgement and the word before it decide: "never splendid" is NEG. Such words stand before neutral words too."""
    at = random.randrange(len(text))
    place = random.randrange(len(text[at]) - 2)
    for other, sentence in enumerate(text):
        if other != at and random.random() < 0.5:
            sentence[random.randrange(len(sentence) - 2)] = random.choice(MODIFIERS[random.choice(list(MODIFIERS))])
    modifiers, cues = _one_of_each(random, MODIFIERS), _one_of_each(random, CUES)
    choices = [
        ((modifiers[turn], cues[label]), label if turn == "kept" else LABELS[1 - LABELS.index(label)])
        for turn in MODIFIERS
        for label in LABELS
    ]
    return Planting(text, [(at, place), (at, place + 1)], choices)


def position(random: Random, text: Text) -> Planting:
    """The judgement in the last sentence decides; every sentence before it holds one too, of either kind."""
    for sentence in text[:-1]:
        sentence[random.randrange(len(sentence) - 1)] = random.choice(CUES[random.choice(LABELS)])
    choices = [((random.choice(CUES[label]),), label) for label in LABELS]
    return Planting(text, [(len(text) - 1, random.randrange(len(text[-1]) - 1))], choices)


KINDS: dict[str, Callable[[Random, Text], Planting]] = {
    each.__name__: each for each in (word, conjunction, negation, position)
}
KD = {"word": 0.02, "conjunction": 0.05, "negation": 0.05, "position": 0.02}  # one token and two of 24 to 40


def _one_of_each(random: Random, families: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    return {name: random.choice(words) for name, words in families.items()}


def make_filler(random: Random) -> Text:
    """Draw sentences of neutral words."""
    sentences = range(random.randint(*SENTENCES))
    return [[*(random.choice(FILLER) for _ in range(random.randint(*FILLERS))), "."] for _ in sentences]


def make_evidence(text: Text, places: Places, docid: str) -> list[dict[str, Any]]:
    """Return the spans of a group of evidence: neighbours in one sentence are one span."""
    spans: list[dict[str, Any]] = []
    for sentence, token in places:
        start = sum(map(len, text[:sentence])) + token
        if spans and spans[-1]["end_token"] == start and spans[-1]["start_sentence"] == sentence:
            spans[-1] |= {"text": f"{spans[-1]['text']} {text[sentence][token]}", "end_token": start + 1}
        else:
            offsets = {"start_token": start, "end_token": start + 1}
            sentences = {"start_sentence": sentence, "end_sentence": sentence + 1}
            spans.append({"docid": docid, "text": text[sentence][token], **offsets, **sentences})
    return spans


def planted(kind: str, split: str, size: int, seed: int = 1) -> Iterator[tuple[dict[str, Any], str]]:
    """Annotations of one kind, each with its document, in a random order.

    Args:
        kind: one of :data:`KINDS`.
        split: begins the ids, and decides the texts together with the seed.
        size: how many at least; the last filler text is used up.

    Raises:
        KeyError: an unknown kind.
    """
    random, records = Random(f"{kind} {split} {seed}"), list[tuple[dict[str, Any], str]]()
    while len(records) < size:
        planting = KINDS[kind](random, make_filler(random))
        for words, label in planting.choices:
            text, docid = [list(sentence) for sentence in planting.text], f"{kind}_{split}_{len(records):04d}"
            for (sentence, token), each in zip(planting.places, words, strict=True):
                text[sentence][token] = each
            evidence = make_evidence(text, planting.places, docid)
            record: dict[str, Any] = {"annotation_id": docid, "query": QUERY, "query_type": kind}
            record |= {"classification": label, "docids": [docid], "evidences": [evidence]}
            records.append((record, "\n".join(" ".join(sentence) for sentence in text)))
    random.shuffle(records)
    yield from records


def plant(folder: Path, kind: str, sizes: Mapping[str, int] = SIZES, seed: int = 1) -> Path:
    """Write a corpus of one kind, which `build eraser` takes, and give its folder back.

    Args:
        folder: receives the corpus' files.
        sizes: annotations of each split file, ``train``, ``val``, ``test``.
    """
    folder.mkdir(parents=True, exist_ok=True)
    documents = []
    for split, size in sizes.items():
        records = list(planted(kind, split, size, seed))
        _write_lines(folder / f"{split}.jsonl", (record for record, _ in records))
        documents += [{"docid": record["annotation_id"], "document": document} for record, document in records]
    _write_lines(folder / "docs.jsonl", documents)
    facts = f"name: planted_{kind}\nlabels: [{', '.join(LABELS)}]\nlanguage: en\nlicense: apache-2.0\nkd: {KD[kind]}\n"
    (folder / "corpus.yaml").write_text(facts, "utf-8", newline="\n")
    return folder


def _write_lines(path: Path, values: Iterable[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(value) + "\n" for value in values), "utf-8", newline="\n")


def main() -> None:
    """Write every kind."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="receives planted_KIND/ for each kind")
    out = parser.parse_args().out
    for kind in KINDS:
        plant(out / f"planted_{kind}", kind)


if __name__ == "__main__":
    main()
