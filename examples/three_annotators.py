"""Write 300 short posts in German, Thai and Hindi that three people annotated: a row per post and person.

    python examples/three_annotators.py train.jsonl test.jsonl

The posts are made from templates of this project's own writing. A post praises something, complains, or does neither.
The people differ as people do: Ana marks the word that judges, Boris also the word that makes it stronger, Chai now and
then the whole clause. Each of them errs in some labels, Chai did not see every post, and one row stands twice. Four of
ten posts are for testing, chosen by digests of their tokens.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from hashlib import blake2b
from itertools import pairwise
from typing import Any

# language -> things, judgements (stronger word, judging word) by label, and clauses that judge nothing
WORDS: dict[str, dict[str, Any]] = {
    "de": {
        "things": [
            "Das Essen war",
            "Das Zimmer war",
            "Das Konzert war",
            "Der Kaffee war",
            "Der Strand war",
            "Der Park war",
        ],
        "praise": ["sehr gut", "wirklich schön", "einfach wunderbar", "richtig angenehm"],
        "complaint": ["viel_zu teuer", "leider schmutzig", "ziemlich schlecht", "sehr enttäuschend"],
        "plain": [
            "Wir waren am Samstag dort .",
            "Der Bahnhof ist gleich nebenan .",
            "Es gibt zwei Eingänge .",
            "Man bezahlt am Tresen .",
            "Geöffnet ist ab neun .",
            "Im Hof stehen Fahrräder .",
            "Montags ist Ruhetag .",
            "Wir kamen zu viert .",
        ],
        "strong_first": True,
        "end": ".",
    },
    "th": {
        "things": ["อาหาร ที่ นี่", "ห้อง พัก", "ดนตรี คืน นี้", "กาแฟ แก้ว นี้", "ชายหาด", "สวน หน้า บ้าน"],
        "praise": ["มาก ดี", "จริงๆ สวย", "มาก น่ารัก", "ที่สุด ประทับใจ"],
        "complaint": ["เกินไป แพง", "มาก สกปรก", "จริงๆ แย่", "มาก น่าผิดหวัง"],
        "plain": [
            "เรา ไป เมื่อ วันเสาร์",
            "สถานี อยู่ ใกล้ ๆ",
            "มี ทาง เข้า สอง ทาง",
            "จ่าย เงิน ที่ เคาน์เตอร์",
            "เปิด ตั้งแต่ เก้า โมง",
            "มี ที่ จอด จักรยาน",
            "วันจันทร์ หยุด",
            "เรา มา กัน สี่ คน",
        ],
        "strong_first": False,
        "end": "",
    },
    "hi": {
        "things": ["खाना", "कमरा", "संगीत", "नाश्ता", "समुद्र तट", "बग़ीचा"],
        "praise": ["बहुत अच्छा", "सचमुच सुंदर", "बेहद शानदार", "काफ़ी आरामदायक"],
        "complaint": ["बहुत महंगा", "काफ़ी गंदा", "सचमुच ख़राब", "बेहद निराशाजनक"],
        "plain": [
            "हम शनिवार को वहाँ गए ।",
            "स्टेशन पास में है ।",
            "दो दरवाज़े हैं ।",
            "पैसे काउंटर पर देते हैं ।",
            "नौ बजे खुलता है ।",
            "बाहर साइकिलें रखी हैं ।",
            "सोमवार को बंद रहता है ।",
            "हम चार लोग थे ।",
        ],
        "strong_first": True,
        "end": "था ।",
    },
}
LABELS = ("praise", "complaint", "neutral")
PEOPLE = ("Ana", "Boris", "Chai")
ERRORS = {"Ana": 0.04, "Boris": 0.08, "Chai": 0.15}


def make_post(draw: random.Random, language: str, label: str) -> tuple[list[str], list[int], list[int], list[int]]:
    """Return the tokens, and the positions of the judging word, of its stronger word, and of the clause."""
    words = WORDS[language]
    plain = draw.sample(words["plain"], 2 if label == "neutral" else 1)
    if label == "neutral":
        return " ".join(plain).split(" "), [], [], []
    strong, judging = draw.choice(words[label]).split(" ")
    pair = [strong.replace("_", " ").split(" "), [judging]]
    thing = draw.choice(words["things"]).split(" ")
    parts = [thing, *(pair if words["strong_first"] else pair[::-1]), list(filter(None, words["end"].split(" ")))]
    before = plain[0].split(" ") if draw.random() < 0.5 else []
    starts = [len(before)]
    for part in parts:
        starts.append(starts[-1] + len(part))
    tokens = [*before, *(token for part in parts for token in part), *([] if before else plain[0].split(" "))]
    spans = [list(range(start, end)) for start, end in pairwise(starts)]
    stronger, judged = (spans[1], spans[2]) if words["strong_first"] else (spans[2], spans[1])
    return tokens, judged, stronger, list(range(starts[0], starts[-1]))


def make_rows(seed: int = 0) -> Iterator[dict[str, Any]]:
    """Yield the rows of the table."""
    draw, seen = random.Random(seed), set[str]()
    for number in range(300):
        language, label = ("de", "th", "hi")[number % 3], LABELS[number // 3 % 3]
        tokens, judged, stronger, clause = make_post(draw, language, label)
        while " ".join(tokens) in seen:
            tokens, judged, stronger, clause = make_post(draw, language, label)
        seen.add(" ".join(tokens))
        for person in PEOPLE:
            if person == "Chai" and draw.random() < 0.06:
                continue
            given = draw.choice(LABELS) if draw.random() < ERRORS[person] else label
            chai = clause if draw.random() < 0.3 else judged
            marks = {"Ana": judged, "Boris": judged + stronger, "Chai": chai}[person]
            if draw.random() < ERRORS[person]:
                marks = draw.sample(range(len(tokens)), min(2, len(tokens)))
            chosen = set(marks) if given != "neutral" else set()
            marked = [int(at in chosen) for at in range(len(tokens))]
            row = {"post": f"{language}-{number:03d}", "language": language, "tokens": tokens}
            yield {**row, "person": person, "label": given, "marked": marked}
            if number == 7 and person == "Ana":
                yield {**row, "person": person, "label": given, "marked": marked}


def digest(row: dict[str, Any]) -> bytes:
    """Return a digest of a row's tokens."""
    return blake2b(repr([row["tokens"]]).encode(), digest_size=8).digest()


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python examples/three_annotators.py train.jsonl test.jsonl")
    rows = list(make_rows())
    digests = sorted({digest(row) for row in rows})
    first = set(digests[: round(0.4 * len(digests))])
    for path, is_test in zip(sys.argv[1:], (False, True), strict=True):
        part = [row for row in rows if (digest(row) in first) is is_test]
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in part)
        print(f"{path}: {len(part)} rows of {len({row['post'] for row in part})} posts")
