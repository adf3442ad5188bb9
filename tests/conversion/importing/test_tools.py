"""Exports of annotation tools: the tokens, marks, labels and people that an import takes, and what it counts."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from eraser_hub import import_corpus
from eraser_hub.conversion.importing.corpus import Imported
from eraser_hub.conversion.importing.sources import READERS, find_label_column, find_tools, open_file, open_tool
from eraser_hub.conversion.importing.task_rows import NOTES, make_source
from eraser_hub.conversion.importing.tasks import TaskReader

from ...command_line import Result, invoke
from ...refusals import refused
from .corpora import group_masks, rows_of, source, write_lines

EXPORTS = Path(__file__).parent / "exports"
FILM, DULL = "A warm 😀 and funny film. It drags a little.", "Dull from the first scene."
CUT_FILM, CUT_DULL = "A warm 😀 and funny film .\nIt drags a little .", "Dull from the first scene ."
ONE = [([[0, 1, 1, 1, 1, 0, 0, 0, 0, 0]], "good"), ([[1, 0, 0, 0, 0]], "bad")]
TWO = [([[0, 1, 1, 1, 1, 0, 0, 0, 0, 0], [0, 0, 0, 0, 1, 0, 0, 0, 0, 0]], "good"), ([[1, 0, 0, 0, 0]], "bad")]
PEOPLE = [["3", "5"], ["3"]]


def run(name: str | Path, out: Path, **choices: Any) -> Imported:
    return import_corpus(EXPORTS / name, "mine", out=out, **choices)


def read_back(done: Imported) -> list[tuple[list[str], list[list[int]], str]]:
    """The texts, the masks of each group, and the label of each row."""
    return [
        ([one["text"] for one in row["documents"]], group_masks(row), done.labels[row["classification"]])
        for row in rows_of(done.folder)
    ]


def counted(done: Imported) -> dict[str, int]:
    """What the import left out, by the check's name."""
    found = {}
    for check, words in NOTES.items():
        for note in done.notes:
            if note.startswith(f"{words}: "):
                found[check] = int(note.removeprefix(f"{words}: ").split(" ")[0])
    return found


def cut(masks: list[list[int]], extra: int) -> list[list[int]]:
    """The masks where the tool parts full stops from words."""
    return [[*mask, *[0] * extra] for mask in masks]


@pytest.mark.parametrize(
    ("name", "tool", "choices", "groups", "people", "counts"),
    [
        (
            "doccano-triples.jsonl",
            "doccano",
            {"span_label": ["RATIONALE"]},
            ONE,
            [[None], [None]],
            {"not annotated": 1, "other marks": 1},
        ),
        ("doccano-entities.jsonl", "doccano", {}, ONE, [[None], [None]], {}),
        ("label-studio.json", "label-studio", {}, TWO, PEOPLE, {"cancelled": 1, "not annotated": 1}),
        ("label-studio-min.json", "label-studio", {}, TWO, PEOPLE, {"not annotated": 1}),
        (
            "prodigy.jsonl",
            "prodigy",
            {"span_label": ["RATIONALE"]},
            TWO,
            [["reviews-ada", "reviews-bob"], ["reviews-ada"]],
            {"rejected": 1, "ignored": 1, "other marks": 1},
        ),
    ],
)
def test_running_texts(
    name: str, tool: str, choices: dict[str, Any], groups: list[Any], people: list[Any], counts: Any, tmp_path: Path
) -> None:
    assert list(find_tools(EXPORTS / name)) == [tool]
    done = run(name, tmp_path, **choices)
    assert read_back(done) == [([text], *rest) for text, rest in zip((FILM, DULL), groups, strict=True)]
    assert counted(done) == counts
    sources, _, _ = make_source({"train": open_tool(EXPORTS / name)}, choices.get("span_label", ()))
    rows = sources["train"].rows()
    assert [row.cells["annotators"] for row in rows] == people


def test_tokens_of_the_tool(tmp_path: Path) -> None:
    """Offsets in UTF-16 units become characters, and the tool's tokens stay."""
    assert list(find_tools(EXPORTS / "cas")) == ["cas"]
    done = run("cas", tmp_path, span_label=["Rationale"])
    (film, good), (dull, bad) = ONE
    assert read_back(done) == [([CUT_FILM], cut(film, 2), good), ([CUT_DULL], cut(dull, 1), bad)]
    sources, _, _ = make_source({"train": open_tool(EXPORTS / "cas")}, ["Rationale"])
    rows = sources["train"].rows()
    assert [row.cells["annotators"] for row in rows] == [[None], [None]]
    again = run("cas", tmp_path / "blanks", span_label=["Rationale"], tokenizer="whitespace")
    assert read_back(again)[1][0] == [DULL]


def test_names_labels_and_marks_of_people_are_kept(tmp_path: Path) -> None:
    done = run("prodigy.jsonl", tmp_path, span_label=["RATIONALE"])
    rows = pq.read_table(done.folder / "annotators" / "mine.parquet").to_pylist()
    kept = [(row["annotation_id"], row["annotator"], row["label"], row["rationale_positions"]) for row in rows]
    assert kept == [
        ("1", "reviews-ada", "good", [[1, 2, 3, 4]]),
        ("1", "reviews-bob", "good", [[4]]),
        ("2", "reviews-ada", "bad", [[0]]),
    ]


def test_a_project_has_a_file_for_each_person(tmp_path: Path) -> None:
    for number, people in ((1, ("ada", "bob")), (2, ("ada",))):
        folder = tmp_path / "project" / "annotation" / f"film{number}.txt"
        folder.mkdir(parents=True)
        for person in (*people, "INITIAL_CAS"):
            shutil.copy(EXPORTS / "cas" / f"film{number}.json", folder / f"{person}.json")
    sources, _, _ = make_source({"train": open_tool(tmp_path / "project")}, ["Rationale"])
    assert [row.cells["annotators"] for row in sources["train"].rows()] == [["ada", "bob"], ["ada"]]


def test_the_file_of_one_view(tmp_path: Path) -> None:
    done = run("film.xmi", tmp_path / "xmi")
    assert read_back(done) == [([CUT_FILM], cut(ONE[0][0], 2), "good")]


def test_relations_of_brat_name_the_evidence_of_queries(tmp_path: Path) -> None:
    done = run("brat", tmp_path, span_label=["Evidence"])
    rows = rows_of(done.folder)
    assert [(row["annotation_id"], row["query"], row["rationale"]) for row in rows] == [
        ("claims_1", "Aspirin prevents strokes", "A trial of 900 people … fewer strokes."),
        ("claims_2", "Fish oil helps too", "It was never tried."),
    ]
    assert [done.labels[row["classification"]] for row in rows] == ["Supports", "Refutes"]
    assert len({row["documents"][0]["docid"] for row in rows}) == 1
    assert counted(done) == {"not annotated": 1, "widened tokens": 2}


def test_folders_of_brat_with_one_text_are_people(tmp_path: Path) -> None:
    for person, mark in (("ada", "T1\tWhy 0 4\tDull\n"), ("bob", "T1\tWhy 20 25\tscene\n")):
        (tmp_path / "brat" / person).mkdir(parents=True)
        (tmp_path / "brat" / person / "film.txt").write_text(DULL)
        (tmp_path / "brat" / person / "film.ann").write_text(mark + "A1\tVerdict T1 bad\n")
    done = run(tmp_path / "brat", tmp_path)
    assert read_back(done) == [([DULL], [[1, 0, 0, 0, 0], [0, 0, 0, 0, 1]], "bad")]
    sources, _, _ = make_source({"train": open_tool(tmp_path / "brat")})
    rows = sources["train"].rows()
    assert [row.cells["annotators"] for row in rows] == [["ada", "bob"]]


def test_a_folder_of_doccano_has_a_file_for_each_person(tmp_path: Path) -> None:
    for person, start in (("ada", 0), ("bob", 9)):
        row = {"id": 5, "text": DULL, "label": [[start, start + 4, "WHY"]], "verdict": "bad"}
        (tmp_path / "export").mkdir(exist_ok=True)
        write_lines(tmp_path / "export" / f"{person}.jsonl", [row])
    write_lines(tmp_path / "export" / "unknown.jsonl", [{"id": 6, "text": FILM, "label": [], "verdict": "good"}])
    done = run(tmp_path / "export", tmp_path, label="verdict")
    assert counted(done) == {"not annotated": 1}
    sources, _, _ = make_source({"train": open_tool(tmp_path / "export")}, label="verdict")
    rows = sources["train"].rows()
    assert [row.cells["annotators"] for row in rows] == [["ada", "bob"]]


def test_relations_in_label_studio_and_two_texts(tmp_path: Path) -> None:
    premise, hypothesis = "A man plays chess.", "A man sleeps."
    value = [{"start": 6, "end": 17, "text": "plays chess"}, {"start": 6, "end": 12, "text": "sleeps"}]
    results = [
        {"id": f"r{at}", "type": "labels", "to_name": name, "from_name": "why", "value": {**each, "labels": ["WHY"]}}
        for at, (name, each) in enumerate(zip(("premise", "hypothesis"), value, strict=True))
    ]
    choice = {"type": "choices", "from_name": "label", "to_name": "premise", "value": {"choices": ["contradiction"]}}
    data = {"premise": premise, "hypothesis": hypothesis}
    task = {"id": 1, "data": data, "annotations": [{"completed_by": 1, "result": [*results, choice]}]}
    (tmp_path / "nli.json").write_text(json.dumps([task]))
    done = run(tmp_path / "nli.json", tmp_path)
    assert read_back(done) == [([premise, hypothesis], [[0, 0, 1, 1, 0, 0, 1]], "contradiction")]


def label_studio(folder: Path, *tasks: tuple[str, dict[str, Any]]) -> Path:
    """A file of tasks of one column, each with a text and the value of its mark."""
    choice = {"type": "choices", "from_name": "verdict", "to_name": "text", "value": {"choices": ["bad"]}}
    rows = []
    for number, (text, value) in enumerate(tasks, 1):
        mark = {"id": "a", "type": "labels", "from_name": "why", "to_name": "text", "value": {**value, "labels": ["W"]}}
        annotation = {"completed_by": 1, "result": [mark, choice]}
        rows.append({"id": number, "data": {"text": text}, "annotations": [annotation]})
    (folder / "export.json").write_text(json.dumps(rows))
    return folder / "export.json"


def test_label_studio_counts_utf16_units_also_where_the_words_repeat(tmp_path: Path) -> None:
    mark = {"start": 7, "end": 9, "text": "no"}
    tasks = [("😂😂😂 no no no", mark), ("😂😂😂 so bad", {**mark, "text": "so"})]
    done = run(label_studio(tmp_path, *tasks), tmp_path)
    assert [masks for _, masks, _ in read_back(done)] == [[[0, 1, 0, 0]], [[0, 1, 0]]]
    # where one mark fits as characters alone, the file counts these
    tasks = [("😂😂😂 no no no", mark), ("😂😂😂 so bad", {"start": 4, "end": 6, "text": "so"})]
    done = run(label_studio(tmp_path, *tasks), tmp_path, force=True)
    assert [masks for _, masks, _ in read_back(done)] == [[[0, 0, 1, 0]], [[0, 1, 0]]]


def test_hypertext_with_tags_is_refused_by_name(tmp_path: Path) -> None:
    value = {"start": "/p[1]", "end": "/p[1]", "globalOffsets": {"start": 13, "end": 17}, "text": "cold"}
    path = label_studio(tmp_path, ("<p>The <b>soup</b> was cold.</p>", value))
    with refused("HyperText", file=path, line=1):
        run(path, tmp_path)


# -- choices ----------------------------------------------------------------------------------------------------------


def test_open_choices_are_named_with_the_candidates(tmp_path: Path) -> None:
    with refused("RATIONALE 2", "THING 1", argument="span_label"):
        run("doccano-triples.jsonl", tmp_path)
    with refused("'WHY'", "RATIONALE 2", argument="span_label"):
        run("doccano-triples.jsonl", tmp_path, span_label=["WHY"])
    with refused("'opinion'", "verdict", argument="label"):
        run("label-studio.json", tmp_path, label="opinion")
    rows = [
        {"text": DULL, "label": [[0, 4, "WHY"]], "verdict": verdict, "site": site}
        for verdict, site in (("bad", "a"), ("good", "b"), ("bad", "a"))
    ]
    path = write_lines(tmp_path / "two.jsonl", rows)
    with refused("verdict (bad 2, good 1)", "site (a 2, b 1)", argument="label"):
        run(path, tmp_path)
    assert not (tmp_path / "mine").exists()


def test_an_earlier_answer_of_a_person_is_replaced(tmp_path: Path) -> None:
    row = {"text": DULL, "answer": "accept", "accept": ["bad"], "_annotator_id": "ada"}
    rows = [{**row, "spans": [{"start": start, "end": start + 4, "label": "WHY"}]} for start in (5, 0)]
    done = run(write_lines(tmp_path / "answers.jsonl", rows), tmp_path)
    assert read_back(done) == [([DULL], [[1, 0, 0, 0, 0]], "bad")]
    assert counted(done) == {"twice": 1}


def test_several_labels_of_one_person(tmp_path: Path) -> None:
    """They tie, which is counted."""
    path = write_lines(tmp_path / "x.jsonl", [{"text": "a", "label": ["b", "c"]}, {"text": "d", "label": ["c"]}])
    done = import_corpus(path, "mine", out=tmp_path)
    assert done.rows == {"train": 1} and counted(done)["several labels"] == 1


def test_an_export_without_any_task_says_why(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "x.jsonl", [{"text": "a", "answer": "reject", "accept": ["b"]}])
    with refused(NOTES["rejected"], file=path):
        import_corpus(path, "mine", out=tmp_path)
    rows = [{"text": "a", "answer": "accept", "spans": [{"start": 0, "end": 1, "label": "R"}]}]
    write_lines(path, [{**rows[0], "accept": ["b"]}])
    other = write_lines(tmp_path / "y.jsonl", rows)
    with refused(NOTES["no label"], file=other):
        import_corpus(path, "mine", out=tmp_path, split={"test": other})


def test_what_is_no_export_is_not_recognized(tmp_path: Path) -> None:
    for text in ("", "{", "[]", "[1]", "null", '{"text": 3}', '{"a": 1}\n', "\udcff", "[{}]", '["x"'):
        for name in ("x.json", "x.jsonl", "x.tsv", "x.xmi", "x.xml", "x.txt"):
            path = tmp_path / name
            path.write_text(text, errors="surrogateescape")
            assert not find_tools(path)
    assert not find_tools(write_lines(tmp_path / "x.jsonl", [{"text": "a", "answer": ["b"]}]))
    (tmp_path / "x.json").write_text('[{"annotation_id": "a", "text": "b", "label": "c"}]')
    assert not find_tools(tmp_path / "x.json")
    assert not find_tools(tmp_path) and not find_tools(tmp_path / "missing")
    assert {"doccano", "label-studio", "prodigy", "brat", "cas"} <= set(READERS)


MARKED: dict[str, Any] = {"text": DULL, "label": [[0, 4, "WHY"]], "verdict": "bad"}


@pytest.mark.parametrize(
    ("row", "tool", "field"),
    [
        ({**MARKED, "label": [[0, 400, "WHY"]]}, "doccano", "spans"),
        ({**MARKED, "label": [[4, 0, "WHY"]]}, "doccano", "spans"),
        ({**MARKED, "label": [["0", 4, "WHY"]]}, "doccano", "label[0]"),
        ({**MARKED, "label": [[0, 4, None]]}, "doccano", "label[0]"),
        ({**MARKED, "label": [None]}, "doccano", "label[0]"),
        ({**MARKED, "text": None}, "doccano", "text"),
        ({**MARKED, "relations": [3]}, "doccano", "relations[0]"),
        ({"text": DULL, "answer": "maybe"}, "prodigy", "answer"),
        ({"text": DULL, "answer": ["accept"]}, "prodigy", "answer"),
        ({"text": DULL, "answer": "accept", "spans": [[0, 4]]}, "prodigy", "spans[0]"),
        ({"text": DULL, "answer": "accept", "spans": {"start": 0}}, "prodigy", "spans"),
        (
            {"text": DULL, "answer": "accept", "spans": [{"start": 0, "end": 4, "text": "Fine"}]},
            "prodigy",
            "",
        ),
        ({"text": DULL, "answer": "accept", "tokens": [3]}, "prodigy", "tokens[0]"),
    ],
)
def test_rows_at_fault(row: dict[str, Any], tool: str, field: str, tmp_path: Path) -> None:
    good = {"text": DULL, "answer": "accept", "accept": ["bad"]} if tool == "prodigy" else MARKED
    path = write_lines(tmp_path / "rows.jsonl", [good, row])
    with refused(file=path, line=2, field=field or None):
        run(path, tmp_path, reader=tool)


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("doc.ann", "T1\tWhy 0 4\tFine\n", 1),
        ("doc.ann", "T1\tWhy 0 4\tDull\nT2 Why 0 4 Dull\n", 2),
        ("doc.ann", "?\n", 1),
        ("x.xmi", "<xmi:XMI", 1),
        ("x.xmi", "<!DOCTYPE x [<!ENTITY a 'b'>]><xmi:XMI/>", None),
        ("x.json", '{"%TYPES": {}, "%FEATURE_STRUCTURES": [{"a": "uima."}]}', None),
        ("x.json", '{"%TYPES": {}, "%FEATURE_STRUCTURES": [], "x": "uima."}', None),
        ("x.json", '[{"id": 1, "data": {"text": "a"}, "annotations": [{"result": 3}]}]', 1),
        (
            "x.json",
            '[{"id": 1, "data": {"text": "a"}, "annotations": [{"result": [{"type": "labels", "to_name": "text", '
            '"value": {"start": "0", "end": 1, "text": "a"}}]}]}]',
            1,
        ),
        ("x.json", '[{"id": 1, "data": {"a": "a", "b": "b"}, "annotations": []}]', None),
    ],
)
def test_files_at_fault(name: str, text: str, line: int | None, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / name).write_text(text)
    (tmp_path / "in" / "doc.txt").write_text(DULL)
    with refused(line=line):
        run(tmp_path / "in" if name.endswith(".ann") else tmp_path / "in" / name, tmp_path)


def test_every_reader_of_a_tool_gives_plain_rows_too() -> None:
    files = {"prodigy": "prodigy.jsonl", "brat": "brat", "cas": "cas"}
    files |= {"doccano": "doccano-triples.jsonl", "label-studio": "label-studio.json"}
    for name, file in files.items():
        kind = READERS[name]
        assert issubclass(kind, TaskReader)
        cells = [row.cells for row in kind(EXPORTS / file).rows()]
        assert all({"spans", "choices", "annotators", "left_out"} <= each.keys() for each in cells) and cells


# -- the command ------------------------------------------------------------------------------------------------------


def typed(*words: str) -> Result:
    return invoke(["import", *words])


def test_the_command_finds_the_tool_and_says_it(tmp_path: Path) -> None:
    done = typed("--source", str(EXPORTS / "label-studio.json"), "--name", "mine", "--out", str(tmp_path))
    assert done.exit_code == 0, done.output
    assert "reader: Label Studio" in done.stderr and "label: verdict" in done.stderr
    assert done.stdout.strip() == f"{tmp_path}/mine: train 2; labels bad, good"
    words = ("--source", str(EXPORTS / "prodigy.jsonl"), "--name", "two", "--out", str(tmp_path))
    done = typed(*words, "--span-label", "RATIONALE")
    assert done.exit_code == 0 and "two: train 2;" in done.stdout, done.output
    with refused("nothing", argument="reader"):
        run("prodigy.jsonl", tmp_path / "other", reader="nothing")
    done = typed(*words, "--text", "text", "--spans", "spans", "--label", "accept", "--span-label", "x")
    assert done.exit_code == 2


def test_plain_columns_of_a_tools_file_are_said_to_be_plain(tmp_path: Path) -> None:
    words = ("--source", str(EXPORTS / "prodigy.jsonl"), "--name", "plain", "--out", str(tmp_path))
    done = typed(*words, "--text", "text", "--spans", "spans", "--label", "answer")
    assert done.exit_code == 0 and "looks like an export of prodigy" in done.stderr


def test_the_only_candidate_is_the_label_of_plain_rows(tmp_path: Path) -> None:
    rows = [{"t": ["a", "b"], "m": [0, 1], "verdict": name, "id": str(n)} for n, name in enumerate("xyx")]
    path = write_lines(tmp_path / "rows.jsonl", rows)
    words = ("--source", str(path), "--name", "mine", "--out", str(tmp_path), "--tokens", "t", "--mask", "m")
    done = typed(*words)
    assert done.exit_code == 0 and "label: verdict (x 2, y 1), the only candidate" in done.stderr, done.output
    with refused("verdict (x 3, y 1)", "other (1 3, 2 1)", argument="label"):
        find_label_column(source([{**row, "other": 1} for row in rows] + [{**rows[0], "other": 2}]), {"t", "m"})
    assert find_label_column(open_file(path), {"t", "m"})[0] == "verdict"
