"""The papers' tables: recomputed figures against a plain recount, and against what is printed, on the real corpora."""

from __future__ import annotations

import importlib.util
import json
import shutil
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eraser_hub import mask, tokens
from eraser_hub.conversion import HUB_DATASETS
from eraser_hub.conversion.built import open_built, read_rows
from eraser_hub.conversion.eraser.configs import CONFIGS
from eraser_hub.conversion.eraser.human_agreement import human_agreement
from eraser_hub.conversion.eraser.statistics import compute_statistics
from eraser_hub.metrics.plain import split_sentences, split_tokens
from eraser_hub.records.tables import Cell, Table, Tables

from ...command_line import invoke
from ...raw_corpora import annotations, documents, evidences
from ...refusals import refused

_spec = importlib.util.spec_from_file_location("built_for_statistics", Path(__file__).with_name("built.py"))
assert _spec is not None and _spec.loader is not None
built = importlib.util.module_from_spec(_spec)
sys.modules["built_for_statistics"] = built
_spec.loader.exec_module(built)


def table(statistics: Tables, name: str) -> dict[tuple[str, ...], dict[str, Cell]]:
    return dict(next(table for table in statistics.tables if table.name == name).rows)


@pytest.fixture(scope="module")
def sample_folder(samples, tmp_path_factory) -> Path:
    return HUB_DATASETS["eraser"].build(None, out=tmp_path_factory.mktemp("hub"), source=samples / "eraser").folder


@pytest.mark.parametrize("config", ["movies", "multirc", "fever", "boolq", "cose", "esnli"])
def test_figures_of_the_samples_equal_a_plain_recount(sample_folder, samples, config):
    statistics = compute_statistics(sample_folder, [config])
    texts = documents(samples / "eraser" / config)
    everywhere: set[str] = set()
    for split, file in (("train", "train"), ("validation", "val"), ("test", "test")):
        shares, lengths, held = [], [], set()
        records = annotations(samples / "eraser" / config / f"{file}.jsonl")
        for record in records:
            covered: dict[str, set[int]] = {}
            for evidence in evidences(record):
                span = range(evidence["start_token"], evidence["end_token"])
                covered.setdefault(evidence["docid"], set()).update(span)
                lengths.append(len(span))
            shares += [len(tokens) / len(split_tokens(texts[docid])) for docid, tokens in covered.items()]
            held |= set(covered)
        everywhere |= held
        figures = table(statistics, "table_5")[config, split]
        assert figures["documents"].value == len(held)
        assert figures["instances"].value == len(records)
        assert figures["evidences"].value == len(lengths)
        assert figures["evidence_length"].value == pytest.approx(sum(lengths) / len(lengths), abs=1e-12)
        assert figures["rationale_percent"].value == pytest.approx(100 * sum(shares) / len(shares), abs=1e-9)
        assert table(statistics, "table_1")[(config,)][split].value == len(records)
    figures = table(statistics, "table_6")[(config,)]
    held = [texts[docid] for docid in everywhere]
    assert figures["documents"].value == len(held)
    assert figures["tokens"].value == pytest.approx(sum(len(split_tokens(t)) for t in held) / len(held), abs=1e-9)
    assert figures["sentences"].value == pytest.approx(sum(len(split_sentences(t)) for t in held) / len(held), abs=1e-9)


def test_figures_over_many_batches_are_those_of_one(sample_folder, monkeypatch):
    from eraser_hub.conversion.eraser import statistics

    whole = compute_statistics(sample_folder).as_json()
    monkeypatch.setattr(statistics, "read_rows", lambda paths, columns, **more: read_rows(paths, columns, 2, **more))

    def rounded(value: object) -> object:
        if isinstance(value, dict):
            return {key: rounded(held) for key, held in value.items()}
        if isinstance(value, list):
            return [rounded(held) for held in value]
        return round(value, 9) if isinstance(value, float) else value

    assert rounded(compute_statistics(sample_folder).as_json()) == rounded(whole)


# what the paper prints of the splits that are whole in the real corpora (its Tables 1 and 5)
WHOLE = [("movies", "train"), ("movies", "validation"), ("multirc", "validation")]


def test_whole_splits_of_the_real_corpora_give_the_printed_figures(corpora):
    statistics = HUB_DATASETS["eraser"].stats(corpora, ["movies", "multirc"])
    five = table(statistics, "table_5")
    for key in WHOLE:
        for name, figure in five[key].items():
            assert figure.printed is not None and figure.difference == 0, (key, name, str(figure))
    assert five["movies", "train"]["rationale_percent"].value == pytest.approx(9.35, abs=0.005)
    one = table(statistics, "table_1")
    assert one[("movies",)]["train"].difference == one[("multirc",)]["validation"].difference == 0
    assert one[("movies",)]["test"].value is None


def test_cose_differs_from_the_paper_and_it_is_said_why(corpora):
    statistics = HUB_DATASETS["eraser"].stats(corpora, ["cose"])
    figures = table(statistics, "table_5")["cose", "validation"]
    assert (figures["instances"].value, figures["instances"].difference) == (1086, -6)
    assert figures["evidence_length"].difference == 0
    assert figures["rationale_percent"].value == pytest.approx(52.89, abs=0.005)
    (note,) = next(t for t in statistics.tables if t.name == "table_5").notes
    assert "28.2 in validation" in note


@pytest.mark.parametrize(
    ("figure", "text", "difference"),
    [
        (Cell(1599, "1599"), "1,599 (=)", 0),
        (Cell(1086, "1092"), "1,086 (1,092, -6)", -6),
        (Cell(9.349, "9.35"), "9.35 (=)", 0),
        (Cell(7.2249, "7.2"), "7.2 (=)", 0),
        (Cell(7.25001, "7.2"), "7.3 (7.2, +0.1)", 0.1),
        (Cell(None, "0.618 ± 0.194"), "(0.618 ± 0.194)", None),
        (Cell(None, "200"), "(200)", None),
        (Cell(12.345, None, 2), "12.35", None),
        (Cell(3, None), "3", None),
        (Cell(None, None), "–", None),
        (Cell(0, "0"), "0 (=)", 0),
    ],
)
def test_a_figure_beside_the_printed_one(figure, text, difference):
    if figure.value == 12.345:  # the float below the tie
        text = f"{12.345:.2f}"
    assert str(figure) == text
    assert figure.difference == difference


@pytest.mark.parametrize("config", ["movies", "multirc", "fever", "esnli"])
def test_lengths_by_class_against_a_plain_recount(sample_folder, config):
    """Carton, Rathore and Tan (2020), Table 2 and Figure 1; MultiRC and FEVER with the query's tokens."""
    lengths: dict[int, list[tuple[int, int]]] = {}
    for split in ("train", "validation", "test"):
        for row in open_built(sample_folder).rows(config, split):
            more = len(row["query"].split()) if config in ("multirc", "fever") else 0
            marked = sum(map(sum, mask(row)))
            lengths.setdefault(row["classification"], []).append((sum(map(len, tokens(row))) + more, marked + more))
    statistics = compute_statistics(sample_folder, [config])
    everything = [pair for own in lengths.values() for pair in own]
    figures = table(statistics, "carton_table_2")[config,]
    assert figures["rows"].value == len(everything)
    assert figures["text_length"].value == pytest.approx(sum(n for n, _ in everything) / len(everything))
    assert figures["rationale_length"].value == pytest.approx(sum(k for _, k in everything) / len(everything))
    for number, label in enumerate(CONFIGS[config].label_names):
        share = 100 * sum(k / n for n, k in lengths[number]) / len(lengths[number])
        assert table(statistics, "carton_figure_1")[config, label]["rationale_percent"].value == pytest.approx(share)


def test_the_lengths_of_real_files_are_near_those_printed(corpora):
    """MultiRC's validation split; all three splits are what the paper counts."""
    figures = table(HUB_DATASETS["eraser"].stats(corpora, ["multirc"]), "carton_table_2")["multirc",]
    assert [round(figures[key].value, 1) for key in ("text_length", "rationale_length", "rationale_percent")] == [
        323.2,
        71.2,
        23.4,
    ]
    assert [figures[key].difference for key in ("text_length", "rationale_length", "rationale_percent")] == [
        1.5,
        1.4,
        0.5,
    ]


def test_human_agreement_is_that_of_the_human_performance_files(samples, sample_folder):
    """ERASER's Table 2, from the raw folder; from a built one, as printed."""
    recomputed = table(HUB_DATASETS["eraser"].stats(samples / "eraser", ["movies", "fever", "boolq"]), "table_2")
    files = [list(map(json.loads, path.open())) for path in sorted((samples / "eraser" / "movies").glob("human_perf*"))]
    rows = {row["annotation_id"]: row for row in open_built(sample_folder).rows("movies", "test")}
    references = []
    for one, other in zip(*files, strict=True):
        assert one["annotation_id"] == other["annotation_id"]
        if one["annotation_id"] in rows:
            size = len(tokens(rows[one["annotation_id"]])[0])
            marks = [[0] * size for _ in range(2)]
            for mark, instance in zip(marks, (one, other), strict=True):
                for span in instance["rationales"][0]["hard_rationale_predictions"]:
                    mark[span["start_token"] : span["end_token"]] = [1] * (span["end_token"] - span["start_token"])
            references.append({"annotation_id": one["annotation_id"], "annotators": marks})
    from eraser_hub.metrics.annotator_agreement import AnnotatorAgreement

    expected = AnnotatorAgreement().compute(references=references)
    for key in ("cohen_kappa", "f1", "p", "r"):
        cell = recomputed["movies",][key]
        assert cell.value == f"{expected[key]:.3f} ± {expected[f'{key}_std']:.3f}" and "±" in cell.printed
    assert (recomputed["movies",]["documents"].value, recomputed["movies",]["annotators"].value) == (len(references), 2)
    assert recomputed["fever",]["p"].value == "1.000 ± 0.000", "the second annotator marks a part of the gold"
    assert recomputed["boolq",]["f1"].value is None
    assert table(compute_statistics(sample_folder, ["movies"]), "table_2")["movies",]["f1"].value is None


def test_spans_outside_their_texts_are_cut_and_counted(samples, sample_folder, tmp_path):
    shutil.copytree(samples / "eraser" / "movies", tmp_path / "movies")
    path = tmp_path / "movies" / "human_performance_1.jsonl"
    rows = list(map(json.loads, path.open()))
    rows[0]["rationales"][0]["hard_rationale_predictions"] += [
        {"start_token": 10**6, "end_token": 10**6 + 1},
        {"start_token": 3, "end_token": 1},
        {"start_token": -1, "end_token": 1},
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    _, note = human_agreement(open_built(sample_folder), "movies", tmp_path / "movies")
    assert note.endswith("; 3 of their spans are not within a document of the row, and are cut.")


def test_every_form_holds_every_figure(sample_folder):
    statistics = compute_statistics(sample_folder, ["movies", "boolq"])
    text, markdown = statistics.written("text"), statistics.written("markdown")
    held = json.loads(json.dumps(statistics.as_json()))
    for name in ("table_1", "table_5", "table_6", "table_2"):
        rows = held["tables"][name]["rows"]
        assert {row["config"] for row in rows} == {"movies", "boolq"}
        assert held["tables"][name]["title"] in text and held["tables"][name]["title"] in markdown
    row = next(r for r in held["tables"]["table_5"]["rows"] if (r["config"], r["split"]) == ("movies", "train"))
    assert row["documents"] == {"value": 26, "printed": "1599", "difference": -1573}
    assert "test_comprehensive" in text
    for line in markdown.splitlines():
        assert not line.startswith("|") or line.endswith("|")


def test_a_span_outside_of_its_document_is_an_error(tmp_path):
    rows = built.rows()
    rows["train"][1]["evidences"][0][0]["end_token"] = 10**6
    with refused("[0, 1000000)", instance="t1"):
        compute_statistics(built.write_built(tmp_path / "eraser", rows))


def test_a_label_number_without_a_name_is_an_error(tmp_path):
    folder = built.write_built(tmp_path / "eraser", built.rows())
    path = next(folder.glob("*/train*.parquet"))
    table = pq.read_table(path)
    numbers = [10**6, *table["classification"].to_pylist()[1:]]
    at = table.column_names.index("classification")
    pq.write_table(table.set_column(at, table.schema.field(at), pa.array(numbers, table.schema.field(at).type)), path)
    with refused("0 to 1", 1000000, field="classification"):
        compute_statistics(folder)


def test_markdown_escapes_bars():
    held = Table("t", "T", ("config",), ("x",), rows=[(("a|b",), {"x": Cell(1)})])
    assert "| a\\|b | 1 |" in Tables("d", [held]).written("markdown")


def test_the_command_line(sample_folder):
    arguments = ["stats", "--dataset", str(sample_folder), "--config", "movies"]
    assert "1,600, -1,573" in invoke(arguments).output
    assert "| movies | train |" in invoke([*arguments, "--format", "markdown"]).output
    held = json.loads(invoke([*arguments, "--format", "json"]).output)
    assert held["dataset"] == "eraser"
    assert invoke([*arguments, "--format", "pdf"]).exit_code == 2
    assert invoke(["stats", "films"]).exit_code == 2
    assert invoke(["stats", "--dataset", str(sample_folder / "nowhere")]).exit_code == 2
