"""Texts whose label hangs on one known word alone, as ERASER records and corpora.

Each filler text occurs once with a word of each label, at the same place: without that word both labels are equally
frequent. A text has 24 to 40 tokens.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any

LABELS = ("NEG", "POS")
QUERY = "Does the text speak for it ?"
SENTENCES, FILLERS = (4, 5), (5, 7)  # fewest and most, of a text and of a sentence without its full stop
NEUTRAL = (
    "river lamp table window garden paper bridge morning street letter kitchen number winter coffee island basket "
    "train pocket mirror station village ladder button candle carpet clock cloud corner engine fence field glass "
    "hall hill library market minute mountain office orchard picture pencil plate road roof shelf ship shop square "
    "stone stove summer teacher ticket tower tree valley wall wheel"
)
FILLER = NEUTRAL.split()
CUES = {"NEG": ("dreadful", "tedious", "clumsy"), "POS": ("splendid", "charming", "brilliant")}


def planted(split: str, size: int) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield at least ``size`` annotations of a split, each with its document, in random order."""
    random, records = Random(f"word {split} 1"), list[tuple[dict[str, Any], str]]()
    while len(records) < size:
        sentences = range(random.randint(*SENTENCES))
        filler = [[*(random.choice(FILLER) for _ in range(random.randint(*FILLERS))), "."] for _ in sentences]
        sentence = random.randrange(len(filler))
        cues = [random.choice(CUES[label]) for label in LABELS]
        token = random.randrange(len(filler[sentence]) - 1)
        for label, cue in zip(LABELS, cues, strict=True):
            text, docid = [list(tokens) for tokens in filler], f"word_{split}_{len(records):04d}"
            text[sentence][token] = cue
            start = sum(map(len, text[:sentence])) + token
            span = {"docid": docid, "text": cue, "start_token": start, "end_token": start + 1}
            span |= {"start_sentence": sentence, "end_sentence": sentence + 1}
            record: dict[str, Any] = {"annotation_id": docid, "query": QUERY, "query_type": "word"}
            record |= {"classification": label, "docids": [docid], "evidences": [[span]]}
            records.append((record, "\n".join(map(" ".join, text))))
    random.shuffle(records)
    yield from records


def plant(folder: Path, sizes: Mapping[str, int]) -> Path:
    """Write a corpus named ``planted_word`` with so many annotations of each split, and return its folder."""
    folder.mkdir(parents=True, exist_ok=True)
    documents = []
    for split, size in sizes.items():
        records = list(planted(split, size))
        (folder / f"{split}.jsonl").write_text("".join(json.dumps(record) + "\n" for record, _ in records), "utf-8")
        documents += [{"docid": record["annotation_id"], "document": document} for record, document in records]
    (folder / "docs.jsonl").write_text("".join(json.dumps(each) + "\n" for each in documents), "utf-8")
    facts = f"name: planted_word\nlabels: [{', '.join(LABELS)}]\nlanguage: en\nlicense: apache-2.0\nkd: 0.02\n"
    (folder / "corpus.yaml").write_text(facts, "utf-8")
    return folder
