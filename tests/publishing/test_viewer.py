"""check --viewer: the viewer's limits, and the picture that a browser will show."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from conftest import write_toy_dataset
from hypothesis import given, settings
from hypothesis import strategies as st

from eraser_hub.publishing.viewer import (
    CELL_BYTES,
    FIRST_BYTES,
    compute_histogram,
    count_fitting_rows,
    make_viewer_report,
)

from ..refusals import refused


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    write_toy_dataset(tmp_path / "eraser")
    return tmp_path / "eraser"


def findings(folder: Path, config: str = "movies", split: str = "train") -> dict[str, list]:
    report = make_viewer_report(folder).report
    found: dict[str, list] = {}
    for entry in report.splits:
        if (entry.config, entry.split) in ((config, split), ("all", "all")):
            for finding in entry.findings:
                found.setdefault(finding.check, []).append(finding)
    return found


def rewrite(folder: Path, table: pa.Table, **options) -> None:
    pq.write_table(table, folder / "movies" / "train-00000-of-00001.parquet", **{"write_page_index": True, **options})


def train(folder: Path) -> pa.Table:
    return pq.read_table(folder / "movies" / "train-00000-of-00001.parquet")


def test_a_sound_folder_has_no_violation_and_shows_its_picture(toy):
    seen = make_viewer_report(toy)
    report = seen.report
    assert report.violations == 0 and seen.problems == []
    assert [(entry.config, entry.split, entry.rows) for entry in report.splits][:2] == [
        ("movies", "train", 40),
        ("movies", "test", 7),
    ]
    text = "\n".join(seen.lines())
    assert "classification: NEG 20, POS 20" in text
    assert "num_tokens (int): 9 ▇▇▇▇▇▇▇▇▇▇ 48" in text
    assert 'annotation_id="movies_train_0"' in text
    assert "documents (list length): 1 █ 1" in text


@pytest.mark.parametrize(("bounds", "noted"), [((3, 4), True), ((3, 3), False), ((3, 5), False)])
def test_an_integer_column_that_breaks_the_statistics_is_noted(toy, bounds, noted):
    table = train(toy)
    at = table.schema.get_field_index("num_tokens")
    rewrite(toy, table.set_column(at, "num_tokens", pa.array(list(bounds) * 20, pa.int32())))
    noted_columns = {finding.examples[0].split(":")[0] for finding in findings(toy)["statistics"]}
    assert ("num_tokens" in noted_columns) == noted
    assert make_viewer_report(toy).report.violations == 0  # the values are the data's own


def test_lists_of_one_or_two_are_noted(toy):
    table = train(toy)
    at = table.schema.get_field_index("documents")
    documents = table["documents"].to_pylist()
    documents[0] = documents[0] * 2
    rewrite(toy, table.set_column(at, "documents", pa.array(documents, table.schema.field("documents").type)))
    assert any("documents: list length from 1 to 2" in found.why for found in findings(toy)["statistics"])


def test_a_large_row_group_without_page_index_is_a_violation(toy, monkeypatch):
    import eraser_hub.publishing.viewer as module

    monkeypatch.setattr(module, "LARGEST_READ", 1000)
    assert "row groups" not in findings(toy)
    rewrite(toy, train(toy), write_page_index=False)
    (finding,) = findings(toy)["row groups"]
    assert finding.level == "violation" and "no page index" in finding.examples[0]
    monkeypatch.setattr(module, "LARGEST_READ", 10**9)
    assert findings(toy)["page index"][0].level == "note"


def test_rows_beyond_the_budget_are_noted(toy):
    table = train(toy)
    at = table.schema.get_field_index("annotation_id")
    rewrite(toy, table.set_column(at, "annotation_id", pa.array([f"{n} " + "x" * 12_000 for n in range(40)])))
    assert findings(toy)["first rows"][0].why.startswith("16 fit")
    rewrite(toy, table.set_column(at, "annotation_id", pa.array([f"{n} " + "x" * 30_000 for n in range(40)])))
    found = findings(toy)
    assert found["first rows"][0].why.startswith("10 fit") and found["cut cells"][0].count == 4


def rows_of(size: int, count: int) -> list[dict[str, str]]:
    """Rows whose JSON, with what the viewer puts around a row of one digit, is ``size`` bytes."""
    around = len('{"row_idx":0,"row":{"text":""},"truncated_cells":[]}')
    return [{"text": "x" * (size - around)} for _ in range(count)]


def test_rows_fit_to_the_last_byte():
    budget = FIRST_BYTES - 1500
    # brackets, and a comma behind each row: the sum has to stay below the budget
    assert count_fitting_rows(rows_of((budget - 3) // 10 - 1, 10), 1500) == (10, 0)
    exact = [*rows_of(1000, 9), *rows_of(budget - 2 - 9 * 1001, 1)]
    assert count_fitting_rows(exact, 1500) == (10, 1), "ten rows are the budget itself: the last one is cut"
    shorter = [*exact[:9], {"text": exact[9]["text"][1:]}]
    assert count_fitting_rows(shorter, 1500) == (10, 0)
    assert count_fitting_rows([*shorter, {"text": ""}], 1500) == (10, 0), "no room for another one"
    assert count_fitting_rows(rows_of(200, 100), 1500) == (100, 0)
    eleven = [*rows_of(1000, 10), {"text": "x" * budget}]
    assert count_fitting_rows(eleven, 1500) == (10, 0), "one beyond the tenth is left out, none is cut for it"
    assert count_fitting_rows(rows_of(budget, 3), 1500) == (3, 3)


@settings(derandomize=True, max_examples=50)
@given(st.lists(st.integers(0, 60_000), min_size=1, max_size=40))
def test_what_is_shown_is_below_the_budget_and_what_is_not_would_exceed_it(lengths):
    rows = [{"text": "x" * length} for length in lengths]
    shown, cut = count_fitting_rows(rows, 1500)
    sizes = [
        len(f'{{"row_idx":{at},"row":{{"text":"{row["text"]}"}},"truncated_cells":[]}}') for at, row in enumerate(rows)
    ]
    total = [2 + sum(sizes[:count]) + count for count in range(len(rows) + 1)]
    budget = FIRST_BYTES - 1500
    assert min(10, len(rows)) <= shown <= len(rows)
    assert cut == 0 or (shown <= 10 and total[shown] >= budget)
    assert cut <= sum(length + 2 > CELL_BYTES for length in lengths[:shown])
    if not cut and shown > 10:
        assert total[shown] < budget
    if 10 < shown < len(rows):
        assert total[shown + 1] >= budget


def test_columns_without_a_value_are_said(toy):
    table = train(toy)
    at = table.schema.get_field_index("num_tokens")
    rewrite(toy, table.set_column(at, "num_tokens", pa.nulls(40, pa.int32())))
    assert findings(toy)["empty columns"][0].why == "null in all rows: num_tokens"
    assert "empty columns" not in findings(toy, split="test")


@pytest.mark.slow
def test_first_rows_of_the_real_validation_splits(corpora, tmp_path):
    """What the viewer's rule gives on the release's files, with the columns of today."""
    from eraser_hub.conversion import HUB_DATASETS

    expected = {
        "movies": (34, 0),
        "multirc": (61, 0),
        "fever": (67, 0),
        "boolq": (10, None),
        "evidence_inference": (10, None),
    }
    there = [name for name in expected if (corpora / name / "val.jsonl").is_file()]
    folder = HUB_DATASETS["eraser"].build(there, out=tmp_path, source=corpora).folder
    words = "\n".join(make_viewer_report(folder).pictures)
    for name in there:
        rows, cut = expected[name]
        counts = re.search(rf"^{name} / validation: .*\n  first rows: (\d+) shown, (\d+) of them", words, re.MULTILINE)
        assert int(counts[1]) == rows
        assert int(counts[2]) == cut if cut is not None else int(counts[2]) > 0, "documents beyond the limit alone"


def test_text_that_the_search_does_not_know_is_noted(toy):
    table = train(toy)
    at = table.schema.get_field_index("documents")
    texts = [[{"docid": "d", "text": "这部电影很好看"}]] * 40
    table = table.set_column(at, "documents", pa.array(texts, table.schema.field("documents").type))
    at = table.schema.get_field_index("annotation_id")
    table = table.set_column(at, "annotation_id", pa.array([str(n) for n in range(40)]))
    rewrite(toy, table.drop_columns(["evidences"]))
    assert "a to z" in findings(toy)["search"][0].why


def test_a_script_and_missing_defaults_are_violations(toy):
    (toy / "eraser.py").write_text("")
    header, prose = (toy / "README.md").read_text().split("---\n", 2)[1:]
    card = yaml.safe_load(header)
    card["configs"][0].pop("default")
    (toy / "README.md").write_text(f"---\n{yaml.safe_dump(card)}---\n{prose}")
    found = findings(toy)
    assert len(make_viewer_report(toy).problems) == 2
    assert found["script"][0].level == found["default config"][0].level == "violation"


def test_an_unknown_config_a_lost_file_and_a_broken_one(toy):
    with refused("option-value", "movies, boolq", "'fever'", file=toy):
        make_viewer_report(toy, ["fever"])
    path = toy / "movies" / "train-00000-of-00001.parquet"
    path.write_bytes(path.read_bytes()[:-100])
    with refused("syntax", "Parquet", file=path):
        make_viewer_report(toy)
    path.unlink()
    with refused("file-missing", "movies/train-*.parquet", file=toy):
        make_viewer_report(toy)


@settings(derandomize=True, max_examples=200)
@given(st.lists(st.integers(-1000, 1000), min_size=1, max_size=60))
def test_a_histogram_loses_nothing(values):
    for whole in (True, False):
        counts = compute_histogram(Counter(values), whole)
        assert sum(counts) == len(values) and 1 <= len(counts) <= 10


def test_what_the_viewer_does_wrong_is_a_quirk_with_its_cause_and_the_splits_it_costs(toy):
    table = train(toy)
    at = table.schema.get_field_index("annotation_id")
    rewrite(toy, table.set_column(at, "annotation_id", pa.array([str(9980 + n) for n in range(40)])))
    found = findings(toy)
    assert {finding.level for finding in found["statistics"]} == {"quirk"}
    assert "annotation_id: string length from 4 to 5; a fault of the viewer's own" in found["statistics"][0].why
    assert found["dates"][0].why.startswith("annotation_id: every value is a number")
    seen = make_viewer_report(toy)
    assert seen.problems == [] and "movies/train" in seen.without_statistics
    lines = list(seen.lines())
    assert any(line.startswith("viewer: without histograms in a browser: movies/train") for line in lines)
    assert any(line.startswith("viewer: quirk: movies/train: statistics: annotation_id") for line in lines)


def test_up_to_a_thousand_strings_are_counted_by_value(toy):
    """The viewer's bound since 2024; thirty before."""
    table = train(toy)
    at = table.schema.get_field_index("annotation_id")
    many = pa.concat_tables([table] * 10)
    rewrite(toy, many.set_column(at, "annotation_id", pa.array([f"{n % 40}" for n in range(400)])))
    assert "annotation_id: 40 values" in "\n".join(make_viewer_report(toy).lines())


def test_a_summary_names_what_the_viewer_shows_otherwise_once(toy):
    """Null columns and ids like dates by configuration, where all of its splits have them."""
    # ids of two lengths, next to each other, already cost the splits train their histograms
    assert make_viewer_report(toy).summary == ["without histograms in a browser: movies/train, boolq/train"]
    for name, split, rows in (("movies", "train", 3), ("movies", "test", 3), ("boolq", "test", 3)):
        path = toy / name / f"{split}-00000-of-00001.parquet"
        table = pq.read_table(path).slice(0, rows)
        at = table.column_names.index("annotation_id")
        ids = pa.array([None] * rows if name == "movies" else ["10345", "2034", "77777777"], pa.string())
        pq.write_table(table.set_column(at, "annotation_id", ids), path, write_page_index=True)
    assert make_viewer_report(toy).summary[0] == "annotation_id: null in every row of movies"


def test_ids_that_look_like_dates_are_in_the_summary(toy):
    path = toy / "boolq" / "train-00000-of-00001.parquet"
    table = pq.read_table(path)
    at = table.column_names.index("annotation_id")
    ids = pa.array([str(10_000_000 + place) for place in range(table.num_rows)])
    pq.write_table(table.set_column(at, "annotation_id", ids), path, write_page_index=True)
    line = "annotation_id: numbers that the viewer takes for dates of boolq/train"
    assert make_viewer_report(toy).summary == [line, "without histograms in a browser: movies/train"]
