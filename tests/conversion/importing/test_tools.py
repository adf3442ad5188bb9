"""Exports of annotation tools: the tokens, marks, labels and people that an import takes, and what it counts."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from eraser_hub import import_corpus
from eraser_hub.conversion.importing.corpus import Imported
from eraser_hub.conversion.importing.tasks import TOOLS, find_tool

from ...needs import needs
from ...refusals import refused
from .corpora import group_masks, people_of, rows_of, write_lines

EXPORTS = Path(__file__).parent / "exports"
DULL = "Dull from the first scene."
FILM_TOKENS = "A warm 😀 and funny film .\nIt drags a little ."
ADA, BOB = [1, 2, 3, 4], [4]
GOOD = {"text": DULL, "label": [[0, 4, "WHY"]], "verdict": "bad"}
ANSWER = {"text": DULL, "answer": "accept", "accept": ["bad"], "_annotator_id": "ada"}


def run(name: str | Path, out: Path, **choices: Any) -> Imported:
    return import_corpus(EXPORTS / name, "mine", out=out, **choices)


@pytest.mark.parametrize(
    ("name", "tool", "span_label", "people", "counts"),
    [
        ("doccano-triples.jsonl", "doccano", "RATIONALE", [], {"not annotated": 1, "other marks": 1}),
        ("doccano-entities.jsonl", "doccano", None, [], {}),
        ("label-studio.json", "label_studio", None, ["3", "5"], {"cancelled": 1, "not annotated": 1, "utf-16": 0}),
        ("prodigy.jsonl", "prodigy", "RATIONALE", ["reviews-ada", "reviews-bob"], {"rejected": 1, "ignored": 1}),
        pytest.param("cas", "cas", "Rationale", [], {}, marks=needs("cassis")),
        pytest.param("xmi/film.xmi", "cas", None, [], {}, marks=needs("cassis")),
    ],
)
def test_exports(name: str, tool: str, span_label: Any, people: list[str], counts: Any, tmp_path: Path) -> None:
    assert find_tool(EXPORTS / name).__name__.endswith(f".{tool}")
    done = run(name, tmp_path, span_label=span_label)
    first, *rest = rows_of(done.folder)
    assert first["documents"][0]["text"] == FILM_TOKENS and done.labels[first["classification"]] == "good"
    marks = [[at for at, mark in enumerate(mask) if mark] for mask in group_masks(first)]
    assert marks == ([ADA, BOB] if people else [ADA])
    assert [row["rationale"] for row in rest] == ([] if "film" in name else ["Dull"])
    kept = [(who, label, positions) for id, who, label, positions in people_of(done.folder) if id == "1"]
    assert kept == [(who, "good", [own]) for who, own in zip(people, (ADA, BOB), strict=False)]
    assert {key: done.counts.get(key, 0) for key in counts} == counts


@needs("cassis")
def test_a_project_of_inception_has_a_file_for_each_person(tmp_path: Path) -> None:
    for number, people in ((1, ("ada", "bob")), (2, ("ada",))):
        folder = tmp_path / "project" / "annotation" / f"film{number}.txt"
        folder.mkdir(parents=True)
        for person in (*people, "INITIAL_CAS"):
            shutil.copy(EXPORTS / "cas" / f"film{number}.json", folder / f"{person}.json")
    done = run(tmp_path / "project", tmp_path, tokenizer="blanks")
    people = [(name.removesuffix(".txt"), who) for name, who, *_ in people_of(done.folder)]
    assert people == [("film1", "ada"), ("film1", "bob"), ("film2", "ada")]
    assert rows_of(done.folder)[1]["documents"][0]["text"] == DULL
    shutil.copytree(EXPORTS / "xmi", tmp_path / "xmi")
    path = tmp_path / "xmi" / "film.xmi"
    path.write_text(path.read_text().replace("<xmi:XMI", "<!DOCTYPE x [<!ENTITY a 'b'>]><xmi:XMI", 1))
    with refused("document type", file=path):
        run(path, tmp_path)


def test_relations_of_brat_name_the_evidence_of_queries(tmp_path: Path) -> None:
    done = run("brat", tmp_path, span_label="Evidence")
    rows = rows_of(done.folder)
    assert [(row["annotation_id"], row["query"], row["rationale"]) for row in rows] == [
        ("claims_1", "Aspirin prevents strokes", "A trial of 900 people … fewer strokes"),
        ("claims_2", "Fish oil helps too", "It was never tried"),
    ]
    assert [done.labels[row["classification"]] for row in rows] == ["Supports", "Refutes"]
    assert len({row["documents"][0]["docid"] for row in rows}) == 1 and done.counts["not annotated"] == 1
    with refused("'verdict'", "relation", argument="label"):
        run("brat", tmp_path / "out", span_label="Evidence", label="verdict")


def test_a_folder_has_a_file_or_a_folder_for_each_person(tmp_path: Path) -> None:
    for person, start, mark in (("ada", 0, "T1\tWhy 0 4\tDull\n"), ("bob", 9, "T1\tWhy 20 25\tscene\n")):
        (tmp_path / "brat" / person).mkdir(parents=True)
        (tmp_path / "brat" / person / "film.txt").write_text(DULL)
        (tmp_path / "brat" / person / "film.ann").write_text(mark + "A1\tVerdict T1 bad\n")
        (tmp_path / "export").mkdir(exist_ok=True)
        write_lines(tmp_path / "export" / f"{person}.jsonl", [{**GOOD, "id": 5, "label": [[start, start + 4, "WHY"]]}])
    done = run(tmp_path / "brat", tmp_path)
    assert people_of(done.folder) == [("film", "ada", "bad", [[0]]), ("film", "bob", "bad", [[4]])]
    write_lines(tmp_path / "export" / "unknown.jsonl", [{"id": 6, "text": "x", "label": [], "verdict": "good"}])
    done = run(tmp_path / "export", tmp_path / "doccano", label="verdict")
    assert people_of(done.folder) == [("5", "ada", None, [[0]]), ("5", "bob", None, [[2]])]
    assert done.counts["not annotated"] == 1


def label_studio(folder: Path, *tasks: tuple[str, dict[str, Any]], column: str = "text", **columns: str) -> Path:
    """A file of tasks, each with a text in a column, the value of its mark and further columns."""
    choice = {"type": "choices", "from_name": "verdict", "to_name": "text", "value": {"choices": ["bad"]}}
    rows = []
    for number, (text, value) in enumerate(tasks, 1):
        mark = {"id": "a", "type": "labels", "from_name": "why", "to_name": "text", "value": {**value, "labels": ["W"]}}
        annotation = {"completed_by": 1, "result": [mark, choice]}
        rows.append({"id": number, "data": {column: text, **columns}, "annotations": [annotation]})
    (folder / "export.json").write_text(json.dumps(rows))
    return folder / "export.json"


def test_label_studio_counts_utf16_units_and_other_programs_characters(tmp_path: Path) -> None:
    spans = [(7, 9, "no no no", "no"), (7, 9, "so bad", "so"), (4, 6, "so bad", "so")]
    tasks = [(f"😂😂😂 {text}", {"start": at, "end": end, "text": words}) for at, end, text, words in spans]
    done = run(label_studio(tmp_path, *tasks), tmp_path)
    assert [group_masks(row) for row in rows_of(done.folder)] == [[[0, 1, 0, 0]], [[0, 1, 0]], [[0, 1, 0]]]
    assert done.counts["utf-16"] == 2


def test_the_text_of_label_studio_is_the_column_with_the_marked_words(tmp_path: Path) -> None:
    task = (DULL, {"start": 0, "end": 4, "text": "Dull"})
    done = run(label_studio(tmp_path, task, column="film", title="No film"), tmp_path)
    assert rows_of(done.folder)[0]["rationale"] == "Dull"
    with refused("film, title", argument="text"):
        run(label_studio(tmp_path, task, column="film", title="Dull film"), tmp_path / "out")
    assert run(tmp_path / "export.json", tmp_path / "out", text="film").rows == {"train": 1}
    value = {"start": "/p[1]", "end": "/p[1]", "globalOffsets": {"start": 13, "end": 17}, "text": "cold"}
    with refused("HyperText", file="export.json", line=1):
        run(label_studio(tmp_path, ("<p>The <b>soup</b> was cold.</p>", value)), tmp_path)


# -- choices ----------------------------------------------------------------------------------------------------------


def test_open_choices_are_named_with_the_candidates(tmp_path: Path) -> None:
    with refused("RATIONALE 2", "THING 1", argument="span_label"):
        run("doccano-triples.jsonl", tmp_path)
    with refused("'WHY'", "RATIONALE 2", argument="span_label"):
        run("doccano-triples.jsonl", tmp_path, span_label="WHY")
    with refused("'opinion'", "verdict", argument="label"):
        run("label-studio.json", tmp_path, label="opinion")
    rows = [{**GOOD, "verdict": verdict, "site": site} for verdict, site in (("bad", "a"), ("good", "b"), ("bad", "a"))]
    with refused("verdict (bad 2, good 1)", "site (a 2, b 1)", argument="label"):
        run(write_lines(tmp_path / "two.jsonl", rows), tmp_path)
    assert not (tmp_path / "mine").exists()


def test_the_last_answer_of_a_person_and_one_label_of_a_person_count(tmp_path: Path) -> None:
    rows = [{**ANSWER, "spans": [{"start": at, "end": at + 4, "label": "WHY"}]} for at in (5, 0)]
    done = run(write_lines(tmp_path / "answers.jsonl", rows), tmp_path)
    assert rows_of(done.folder)[0]["rationale"] == "Dull" and done.counts["replaced"] == 1
    path = write_lines(tmp_path / "x.jsonl", [{"text": "a", "label": ["b", "c"]}, {"text": "d", "label": ["c"]}])
    done = run(path, tmp_path / "two")
    assert done.rows == {"train": 1} and done.counts["several labels"] == done.counts["no label"] == 1


def test_an_export_without_any_task_says_why(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "x.jsonl", [{**ANSWER, "answer": "reject"}])
    with refused("rejected", file=path):
        run(path, tmp_path)
    write_lines(path, [{**ANSWER, "accept": []}, ANSWER])
    other = write_lines(tmp_path / "y.jsonl", [{**ANSWER, "accept": [], "spans": [{"start": 0, "end": 1}]}])
    with refused("no label", file=other):
        run(path, tmp_path, split={"test": other})


@pytest.mark.parametrize("text", ["", "{", "[]", "[1]", "null", '{"text": 3}', '{"a": 1}\n', "\udcff", "[{}]", '["x"'])
def test_what_is_no_export_is_not_recognized(text: str, tmp_path: Path) -> None:
    for name in ("x.json", "x.jsonl", "x.tsv", "x.xmi", "x.txt"):
        (tmp_path / name).write_text(text, errors="surrogateescape")
        assert find_tool(tmp_path / name) is None
    assert find_tool(tmp_path) is find_tool(tmp_path / "missing") is None
    assert find_tool(write_lines(tmp_path / "x.jsonl", [{"text": "a", "answer": ["b"]}])) is None
    assert len(TOOLS) == 5


# -- faults -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("row", "field"),
    [
        ({**GOOD, "label": [[0, 400, "WHY"]]}, "spans[0]"),
        ({**GOOD, "text": None}, "text"),
        ({**ANSWER, "answer": "maybe"}, "answer"),
        ({**ANSWER, "spans": [[0, 4]]}, "spans[0]"),
        ({**ANSWER, "spans": [{"start": 0, "end": 4, "text": "Fine"}]}, "spans[0]"),
    ],
)
def test_rows_at_fault(row: dict[str, Any], field: str, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "rows.jsonl", [ANSWER if "answer" in row else {**GOOD, "verdict": "good"}, row])
    with refused(file=path, line=2, field=field):
        run(path, tmp_path)


TASK = '[{"id": 1, "data": {"text": "a"}, "annotations": [{"result": [%s]}]}]'
MARK = '{"type": "labels", "to_name": "text", "value": {"start": %s, "end": 1, "text": "%s"}}'


@pytest.mark.parametrize(
    ("name", "text", "line", "mentioned"),
    [
        ("doc.ann", "T1\tWhy 0 4\tFine\n", 1, "'Fine'"),
        ("doc.ann", "T1\tWhy 0 4\tDull\nT2 Why 0 4 Dull\n", 2, "T1<TAB>"),
        pytest.param("x.xmi", "<xmi:XMI", None, "TypeSystem.xml", marks=needs("cassis")),
        pytest.param(
            "x.json", '{"%TYPES": {}, "%FEATURE_STRUCTURES": [{"a": "uima."}]}', None, "CAS", marks=needs("cassis")
        ),
        ("x.json", TASK % MARK % ('"0"', "a"), 1, "whole numbers"),
        ("x.json", '[{"id": 1, "data": {"a": "a", "b": "b"}, "annotations": []}]', None, "a, b"),
        ("x.json", '[{"annotation_id": 1, "lead_time": 3}]', 1, "JSON_MIN"),
    ],
)
def test_files_at_fault(name: str, text: str, line: int | None, mentioned: str, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / name).write_text(text)
    (tmp_path / "in" / "doc.txt").write_text(DULL)
    with refused(mentioned, line=line):
        run(tmp_path / "in" if name.endswith(".ann") else tmp_path / "in" / name, tmp_path)
