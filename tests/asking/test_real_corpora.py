"""Ask and score on samples and real corpora: the offsets of gold evidence, quoted and mangled, come back."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator

import pytest

pytest.importorskip("openai", reason="skipped: the extra llm is not installed")

from eraser_hub import ask
from eraser_hub.asking.questions import Question
from eraser_hub.asking.run import AskPlan, make_plan
from eraser_hub.asking.settings import AskConfig, AskSettings
from eraser_hub.conversion import get_dataset
from eraser_hub.metrics.quotes import Quote, make_key

from ..command_line import invoke
from ..mangling import NORMALISATIONS
from .scripted_server import Reply, ScriptedServer, answer

ERASER = ("movies", "multirc", "fever", "evidence_inference")
PAIRS = ("senti_en", "senti_ch", "similarity_en", "similarity_ch", "mrc_en", "mrc_ch")
SETTINGS = AskSettings("scripted")
Gold = tuple[str, int, int]  # docid, start, end


def verdict(quote: Quote, gold: Gold) -> str:
    """How the alignment of a gold span's quote came out."""
    docid, start, end = gold
    if quote.docid is None or quote.start_token is None or quote.end_token is None:
        return "missed"
    if (quote.docid, quote.start_token, quote.end_token) == (docid, start, end):
        return "offsets"
    if quote.status == "ambiguous":
        return "other place"
    return "overlap" if quote.docid == docid and quote.start_token < end and start < quote.end_token else "false"


def spans_of(question: Question, chance: random.Random) -> Iterator[Gold]:
    """The runs of gold tokens; of records without gold (the public files of the pairs) some runs by chance."""
    flags = question.instance.rationale
    for at, (docid, tokens) in enumerate(zip(question.instance.names, question.instance.documents, strict=True)):
        length = min(chance.randint(4, 8), len(tokens))
        first = chance.randint(0, len(tokens) - length)
        # as people quote, a run by chance begins and ends with words
        words = [place for place in range(first, first + length) if any(map(str.isalnum, tokens[place]))]
        marked = flags[at] if flags else [bool(words) and words[0] <= n <= words[-1] for n in range(len(tokens))]
        start = None
        for place, flag in enumerate([*marked, False]):
            if flag and start is None:
                start = place
            elif not flag and start is not None:
                if len(make_key(question.blank.join(tokens[start:place]))) > 3:
                    yield docid, start, place
                start = None


class GoldServer:
    """Answers each question of a plan with its label and its gold quotes, each mangled in one way."""

    def __init__(self, plan: AskPlan) -> None:
        self.labels: dict[str, str] = {}
        self.gold: dict[str, dict[str, Gold]] = {}
        self.texts: dict[str, list[str]] = {}
        for number, question in enumerate(plan.questions()):
            chance, prompt = random.Random(number), plan.messages(question)[-1]["content"]
            documents = dict(zip(question.instance.names, question.instance.documents, strict=True))
            said = {}
            for docid, start, end in spans_of(question, chance):
                kind = chance.choice(sorted(NORMALISATIONS))
                said[NORMALISATIONS[kind](question.blank.join(documents[docid][start:end]), chance)] = (
                    docid,
                    start,
                    end,
                )
            self.gold[question.instance.id] = said
            self.texts[prompt] = [*said]
            self.labels[prompt] = question.instance.label or plan.split.label_names[0]

    def __call__(self, request: dict, before: int) -> Reply:
        prompt = request["messages"][-1]["content"]
        return answer(self.labels[prompt], *self.texts[prompt])


@pytest.mark.parametrize(
    ("config", "place"),
    [
        *[(config, "samples") for config in ("movies", "fever", "senti_ch")],
        *[pytest.param(config, "corpora", marks=pytest.mark.slow) for config in (*ERASER, *PAIRS)],
    ],
)
def test_gold_quotes_come_back(request, tmp_path, config, place):
    name = "eraser" if config in ERASER else "bilingual_perturbation"
    root = request.getfixturevalue(place)
    source = root / name if place == "samples" else root if config in ERASER else root / "luge"
    get_dataset(name).build([config], out=tmp_path, source=source)
    split, out = ("validation" if config in ERASER else "test"), tmp_path / "quotes.jsonl"
    job = AskConfig(str(tmp_path / name), config, split, 100 if config in ERASER else None)
    server = GoldServer(make_plan(job, SETTINGS))
    with ScriptedServer(server) as served:
        where = {"endpoint": served.endpoint, "out": out, "cache": tmp_path / "cache"}
        report = ask("scripted", job.dataset, config=config, split=split, limit=job.limit, **where)
    assert report.outcomes.total() == report.outcomes["answered"] == len(server.gold)
    verdicts = Counter[str]()
    for line in map(json.loads, out.read_text(encoding="utf-8").splitlines()):
        quotes = {quote["text"]: Quote(**quote) for quote in line["quotes"]}
        for text, gold in server.gold[str(line.get("annotation_id", line.get("id")))].items():
            verdicts[verdict(quotes.get(text, Quote(text, "not_found")), gold)] += 1
    print(config, dict(verdicts))
    assert verdicts.total() >= 5
    # a quote wrapped in marks may mean those of the text; what stands in several places may be another's
    assert verdicts["offsets"] + verdicts["other place"] >= 0.98 * verdicts.total()
    assert verdicts["false"] <= 0.005 * verdicts.total()
    where = ["--dataset", tmp_path / name, "--config", config, "--split", split, "--only-predicted"]
    done = invoke(["score", *where, "--predictions", out])
    assert done.exit_code == 0, (done.output, done.exception)
