"""The papers' tables: recomputed figures against a plain recount, and against what is printed, on the real corpora."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eraser_hub import tokens
from eraser_hub.conversion import get_dataset
from eraser_hub.conversion.built import open_built
from eraser_hub.conversion.eraser.dataset import open_own
from eraser_hub.conversion.eraser.human_agreement import human_agreement
from eraser_hub.conversion.eraser.schema import ANNOTATORS
from eraser_hub.metrics.annotator_agreement import AnnotatorAgreement
from eraser_hub.metrics.tokens import split_sentences, split_tokens
from eraser_hub.records.tables import Cell, Tables

from ...raw_corpora import annotations, documents, evidences

ERASER = get_dataset("eraser")
AGREEMENT = ("cohen_kappa", "f1", "p", "r")


def table(tables: Tables, name: str) -> dict[tuple[str, ...], dict[str, Cell]]:
    return dict(next(table for table in tables.tables if table.name == name).rows)


@pytest.fixture(scope="module")
def hub(samples: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return ERASER.build(None, out=tmp_path_factory.mktemp("hub"), source=samples / "eraser").folder


@pytest.mark.parametrize("config", ["movies", "multirc", "fever", "boolq", "cose", "esnli"])
def test_figures_of_the_samples_equal_a_plain_recount(hub: Path, samples: Path, config: str) -> None:
    tables = ERASER.stats(hub, [config])
    texts, everywhere = documents(samples / "eraser" / config), set[str]()
    for split, file in (("train", "train"), ("validation", "val"), ("test", "test")):
        shares, lengths, named = [], [], set()
        records = annotations(samples / "eraser" / config / f"{file}.jsonl")
        for record in records:
            covered: dict[str, set[int]] = {}
            for evidence in evidences(record):
                span = range(evidence["start_token"], evidence["end_token"])
                covered.setdefault(evidence["docid"], set()).update(span)
                lengths.append(len(span))
            shares += [len(marked) / len(split_tokens(texts[docid])) for docid, marked in covered.items()]
            named |= set(covered)
        everywhere |= named
        figures = {key: cell.value for key, cell in table(tables, "table_5")[config, split].items()}
        assert (figures["documents"], figures["instances"]) == (len(named), len(records))
        assert figures["evidences"] == len(lengths)
        assert figures["evidence_length"] == pytest.approx(sum(lengths) / len(lengths), abs=1e-12)
        assert figures["rationale_percent"] == pytest.approx(100 * sum(shares) / len(shares), abs=1e-9)
        assert table(tables, "table_1")[(config,)][split].value == len(records)
        gold = table(tables, "gold")[config, split]
        assert gold["unmarked_rows"].value == sum(not any(record["evidences"]) for record in records)
    figures = {key: cell.value for key, cell in table(tables, "table_6")[(config,)].items()}
    counts = [(len(split_tokens(texts[docid])), len(split_sentences(texts[docid]))) for docid in everywhere]
    assert figures["documents"] == len(counts)
    assert figures["tokens"] == pytest.approx(sum(size for size, _ in counts) / len(counts), abs=1e-9)
    assert figures["sentences"] == pytest.approx(sum(size for _, size in counts) / len(counts), abs=1e-9)


def test_whole_splits_of_the_real_corpora_give_the_printed_figures(corpora: Path) -> None:
    tables = ERASER.stats(corpora, ["movies", "multirc", "cose"])
    five, one = table(tables, "table_5"), table(tables, "table_1")
    for key in (("movies", "train"), ("movies", "validation"), ("multirc", "validation")):
        assert {name: cell.difference for name, cell in five[key].items()} == dict.fromkeys(five[key], 0), key
    assert five["movies", "train"]["rationale_percent"].value == pytest.approx(9.35, abs=0.005)
    assert one[("movies",)]["train"].difference == one[("multirc",)]["validation"].difference == 0
    assert one[("movies",)]["test"].value is None
    # the paper counts MultiRC's three splits, here is one
    lengths = table(tables, "carton_table_2")["multirc",]
    assert [cell.difference for cell in lengths.values()] == [None, 1.5, 1.4, 0.5]
    # CoS-E's release has fewer instances, and the answers beside its documents
    figures = five["cose", "validation"]
    assert (figures["instances"].value, figures["instances"].difference) == (1086, -6)
    assert figures["evidence_length"].difference == 0
    assert figures["rationale_percent"].value == pytest.approx(52.89, abs=0.005)
    (note,) = next(table for table in tables.tables if table.name == "table_5").notes
    assert "28.2 in validation" in note


def test_human_agreement_is_that_of_the_human_performance_files(samples: Path, hub: Path) -> None:
    """ERASER's Table 2, from the raw folder; from a built one, as printed."""
    recomputed = table(ERASER.stats(samples / "eraser", ["movies", "fever", "boolq"]), "table_2")
    files = [list(map(json.loads, path.open())) for path in sorted((samples / "eraser" / "movies").glob("human_perf*"))]
    rows = {row["annotation_id"]: row for row in open_built(hub).rows("movies", "test")}
    references = []
    for pair in zip(*files, strict=True):
        name = pair[0]["annotation_id"]
        if name in rows:
            marks = [[0] * len(tokens(rows[name])[0]) for _ in pair]
            for mark, instance in zip(marks, pair, strict=True):
                for span in instance["rationales"][0]["hard_rationale_predictions"]:
                    mark[span["start_token"] : span["end_token"]] = [1] * (span["end_token"] - span["start_token"])
            references.append({"annotation_id": name, "annotators": marks})
    expected = AnnotatorAgreement().compute(references=references)
    movies = recomputed["movies",]
    for key in AGREEMENT:
        assert movies[key].value == f"{expected[key]:.3f} ± {expected[f'{key}_std']:.3f}" and "±" in movies[key].printed
    assert (movies["documents"].value, movies["annotators"].value) == (len(references), 2)
    assert recomputed["fever",]["p"].value == "1.000 ± 0.000", "the second annotator marks a part of the gold"
    assert recomputed["boolq",]["f1"].value is None
    assert table(ERASER.stats(hub, ["movies"]), "table_2")["movies",]["f1"].value is None


def test_spans_outside_their_texts_are_cut_and_counted(samples: Path, hub: Path, tmp_path: Path) -> None:
    shutil.copytree(samples / "eraser" / "movies", tmp_path / "movies")
    path = tmp_path / "movies" / "human_performance_1.jsonl"
    rows = list(map(json.loads, path.open()))
    spans = ((10**6, 10**6 + 1), (3, 1), (-1, 1))
    bad = [{"start_token": start, "end_token": end} for start, end in spans]
    rows[0]["rationales"][0]["hard_rationale_predictions"] += bad
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    _, note = human_agreement(open_built(hub), "movies", tmp_path / "movies")
    assert note.endswith("; 3 of their spans are not within a document of the row, and are cut.")


def test_a_corpus_of_ones_own_has_tables_of_its_own(samples: Path, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    shutil.copytree(samples / "eraser" / "movies", folder, ignore=shutil.ignore_patterns("test*", "human*"))
    (folder / "corpus.yaml").write_text("name: mine\nlabels: [NEG, POS]\ncomprehensive: [val]\n")
    people = []
    for row in annotations(folder / "val.jsonl")[:2]:
        name = row["annotation_id"]
        size = len(split_tokens((folder / "docs" / name).read_text("utf-8")))
        given = {"annotation_id": name, "label": "POS", "split": "validation", "docids": [name], "num_tokens": [size]}
        people += [given | {"annotator": "Anna", "rationale_positions": [[0, 1]]}]
        people += [given | {"annotator": "Ben", "rationale_positions": [[1, 2]]}]
    (folder / "annotators").mkdir()
    pq.write_table(pa.Table.from_pylist(people, schema=ANNOTATORS), folder / "annotators" / "mine.parquet")
    own: Any = open_own(folder)
    tables = own.stats(own.build(None, source=folder, out=tmp_path / "hub").folder)
    assert [table.name for table in tables.tables] == ["sizes", "evidence", "table_2", "gold", "annotators"]
    words = [table(tables, "gold")["mine", split]["gold"].value for split in ("train", "validation")]
    assert words == ["not comprehensive", "comprehensive"]
    # the majority of two marks the one token that both mark
    assert table(tables, "table_2")["mine",]["p"].value == "0.500 ± 0.000"
    between = table(tables, "annotators")["mine",]
    assert (between["annotators"].value, between["documents"].value) == ("2", 2)
    assert between["krippendorff_alpha"].interval is not None
