"""Documents of other rows beside an instance's own: which, where, and what their quotes count."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("openai", reason="skipped: the extra llm is not installed")
pytest.importorskip("rapidfuzz", reason="skipped: the extra llm is not installed")

import eraser_hub
from eraser_hub.asking.run import make_plan
from eraser_hub.asking.settings import AskConfig, AskSettings
from eraser_hub.conversion import HUB_DATASETS

from ..refusals import refused
from .scripted_server import ScriptedServer, answer


def read(hub, count, seed=1, config="movies"):
    settings = AskSettings(model="m", distractors=count, seed=seed)
    return make_plan(AskConfig(str(hub), config), settings).questions()


def test_distractors_are_other_documents_at_places_of_the_seed(hub):
    own = {one.instance.id: one for one in read(hub, 0)}
    drawn, same, other = (list(read(hub, 3, seed)) for seed in (1, 1, 2))
    assert drawn == same and drawn != other
    split = {name for one in own.values() for name in one.instance.names}
    places = set()
    for question in drawn:
        alone, names = own[question.instance.id], question.instance.names
        assert len(question.distractors) == 3 and len(set(names)) == len(names) == len(alone.instance.names) + 3
        assert not set(question.distractors) & set(alone.instance.names) and set(question.distractors) <= split
        assert [name for name in names if name not in question.distractors] == [*alone.instance.names]
        pairs = zip(names, question.texts, question.instance.rationale, strict=True)
        for name, text, flags in pairs:
            if name in question.distractors:
                assert not any(flags) and text not in alone.texts
        kept = [flags for name, flags in zip(names, question.instance.rationale, strict=True) if any(flags)]
        assert kept == [flags for flags in alone.instance.rationale if any(flags)]
        places.add(names.index(alone.instance.names[0]))
    assert len(places) > 1


def test_too_few_documents_and_rows_without(hub, samples, tmp_path):
    with refused("option-value", "expected 999 further documents", argument="distractors"):
        list(read(hub, 999))
    HUB_DATASETS["human_rationales"].build(["sst"], out=tmp_path, source=samples / "human_rationales")
    with refused("option-value", "rows of one text", argument="distractors"):
        read(tmp_path / "human_rationales", 1, config="sst")


@pytest.mark.parametrize("quoted", ["own", "distractor"])
def test_quotes_from_distractors_are_wrong_citations(hub, tmp_path, quoted):
    questions = list(read(hub, 2))
    sought = {}
    for one in questions:
        runs = one.gold_runs()
        number, start, end = runs[0]
        at = one.instance.names.index(one.distractors[0])
        sought[one.texts] = (
            one.instance.label,
            one.instance.documents[number][start:end] if quoted == "own" else one.instance.documents[at][:12],
        )

    def script(request, before):
        asked = request["messages"][-1]["content"]
        label, words = next(found for texts, found in sought.items() if all(text.strip() in asked for text in texts))
        return answer(label, " ".join(words))

    out = tmp_path / "quotes.jsonl"
    data = {"dataset": str(hub), "config": "movies", "split": "test"}
    with ScriptedServer(script) as server:
        more = {"endpoint": server.endpoint, "model": "m", "distractors": 2, "cache": tmp_path / "cache"}
        report = eraser_hub.ask(**data, **more, out=out)
    count = len(questions)
    wrong = 0 if quoted == "own" else count
    note = f"{wrong} of {count} quotes lie in distractors, which count as wrong citations (2 documents of other rows "
    assert any(line.startswith(note) for line in report.notes)
    record = json.loads((tmp_path / "quotes.jsonl.run.json").read_text())
    assert record["settings"]["distractors"] == 2 and "|distractors:2|" in record["signature"]
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    for line, question in zip(lines, questions, strict=True):
        assert line["distractors"] == [*question.distractors]
        assert not {one["docid"] for one in line["rationales"]} & set(line["distractors"])
    scores = eraser_hub.score(out, **data).blocks["quote_faithfulness"]
    assert scores["citation_document_p"] == scores["citation_document_r"] == (quoted == "own")
    assert (scores["coverage"] > 0) == (quoted == "own") and scores["in_text"] == 1
