"""Quotes of real documents, mangled by a seed, and where they are aligned; sentences of elsewhere, and where not.

And how long a run takes beside the bare client (`throughput`).

python -m benchmarks.asking             real corpora (ERASER_CORPORA); writes benchmarks/results_asking.md
"""

from __future__ import annotations

import random
import time
from collections import Counter
from pathlib import Path

from benchmarks.mangling import ERRORS, NORMALISATIONS
from benchmarks.throughput import table
from eraser_hub.metrics.quote_alignment import THRESHOLD, Document, Quote, align, make_key
from eraser_hub.metrics.tokens import split_sentences, split_tokens
from tests.conftest import CORPORA
from tests.raw_corpora import annotations, documents, evidences

NAMES = ("movies", "multirc", "fever", "evidence_inference")
QUOTES, SEED = 10_000, 23
VERDICTS = ("offsets", "overlap", "other place", "missed", "false")
NOT_THERE = "not there"
Gold = tuple[str, int, int]


def gold_spans(name: str, texts: dict[str, list[str]]) -> list[Gold]:
    """(docid, start, end) of a corpus's gold evidence that has words, each once."""
    spans: dict[Gold, None] = {}
    for split in sorted((CORPORA / name).glob("*.jsonl")):
        if split.stem in ("train", "val", "test"):
            for record in annotations(split):
                for one in evidences(record):
                    span = (one["docid"], one["start_token"], one["end_token"])
                    if len(make_key(" ".join(texts[span[0]][span[1] : span[2]]))) > 3:
                        spans[span] = None
    return list(spans)


def verdict(quote: Quote, gold: Gold) -> str:
    """How the alignment of a gold span's quote came out, one of `VERDICTS`."""
    docid, start, end = gold
    if quote.docid is None or quote.start_token is None or quote.end_token is None:
        return "missed"
    if (quote.docid, quote.start_token, quote.end_token) == (docid, start, end):
        return "offsets"
    if quote.status == "ambiguous":
        return "other place"
    return "overlap" if quote.docid == docid and quote.start_token < end and start < quote.end_token else "false"


def measure(quotes: int) -> tuple[dict[str, Counter[str]], float, int]:
    """Verdicts by mangling, as many quotes from each corpus; seconds and characters of text that alignment took."""
    chance, kinds = random.Random(SEED), NORMALISATIONS | ERRORS
    told: dict[str, Counter[str]] = {kind: Counter() for kind in (*kinds, NOT_THERE)}
    clock, size = 0.0, 0
    for name in NAMES:
        sources = documents(CORPORA / name)
        texts = {docid: split_tokens(text) for docid, text in sources.items()}
        spans, docids, read = gold_spans(name, texts), sorted(texts), dict[str, Document]()
        for at in range(quotes // len(NAMES)):
            gold, kind = chance.choice(spans), list(kinds)[at % len(kinds)]
            docid, start, end = gold
            document = read.setdefault(docid, Document(docid, texts[docid]))
            words = kinds[kind](" ".join(texts[docid][start:end]), chance)
            strange = " ".join(chance.choice(split_sentences(sources[chance.choice(docids)])))
            begin = time.perf_counter()
            (quote, *_), (invented, *_) = align([words], [document]), align([strange.replace("...", "")], [document])
            clock, size = clock + time.perf_counter() - begin, size + 2 * len(document.key)
            told[kind][verdict(quote, gold)] += 1
            if make_key(strange) not in document.key and len(make_key(strange)) > 3:
                told[NOT_THERE]["false" if invented.docid else "refused"] += 1
    return told, clock, size


def main() -> None:
    told, seconds, size = measure(QUOTES)
    lines = [
        "## asking: quotes brought back to their tokens",
        "",
        f"{QUOTES:,} quotes of gold evidence ({', '.join(NAMES)}), mangled, seed {SEED}, threshold {THRESHOLD}; and "
        "sentences of other documents of the same corpus, which do not stand in the text.",
        "",
        "| quote | quotes | its offsets | overlaps them | one of several places | missed | elsewhere |",
        "|---|---|---|---|---|---|---|",
    ]
    total: Counter[str] = Counter()
    for kind, verdicts in told.items():
        count = verdicts.total()
        if kind == NOT_THERE:
            continue
        total += verdicts
        lines.append(f"| {kind} | {count} | " + " | ".join(f"{verdicts[one] / count:.2%}" for one in VERDICTS) + " |")
    lines.append(
        "| all | " + f"{total.total()} | " + " | ".join(f"{total[o] / total.total():.2%}" for o in VERDICTS) + " |"
    )
    aligned = total.total() - total["missed"]
    false = told[NOT_THERE]["false"]
    lines += [
        "",
        f"Recall {(total['offsets'] + total['other place']) / total.total():.4f}, precision "
        f"{(total['offsets'] + total['other place']) / aligned:.4f} (offsets equal, or one of the equal texts' "
        f"places). Of {told[NOT_THERE].total():,} sentences that are not there {false} were aligned "
        f"({false / told[NOT_THERE].total():.3%}). {seconds / 2 / QUOTES * 1e3:.2f} ms a quote, documents of "
        f"{size / 2 / QUOTES:,.0f} characters on average.",
        "",
        *table(),
    ]
    Path(__file__).with_name("results_asking.md").write_text("\n".join(lines), encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
