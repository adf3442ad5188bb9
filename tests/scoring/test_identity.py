"""What scores are scores of: digests of data and predictions, and predictions of other data."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import eraser_hub
from eraser_hub.__main__ import _register, app
from eraser_hub.attribution.dataset import open_split
from eraser_hub.conversion import HUB_DATASETS
from eraser_hub.records.built import open_built
from eraser_hub.records.predictions import compute_predictions_digest
from eraser_hub.records.run_record import read_predictions_digest, run_path, write_run
from eraser_hub.reports.board import collect_board_lines
from eraser_hub.reports.board_lines import describe_data, read_score_file
from eraser_hub.scoring.references import read_gold
from eraser_hub.scoring.score import score
from eraser_hub.scoring.scored_split import ScoredSplit
from eraser_hub.scoring.settings import ScoreSettings
from tests.conftest import SAMPLES
from tests.refusals import refused
from tools.schema import json_schema

jsonschema = pytest.importorskip("jsonschema")

PREDICTIONS = SAMPLES / "predictions/eraser/movies.val.jsonl"
SPLITS = [
    (path.parent.name, path.stem)
    for path in sorted((SAMPLES / "eraser").glob("*/*.jsonl"))
    if not path.stem.startswith(("human", "docs", "dev_data", "test_data"))
]


@pytest.fixture(scope="module")
def hub(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("hub")
    HUB_DATASETS["eraser"].build(None, source=SAMPLES / "eraser", out=out)
    return out / "eraser"


@pytest.fixture
def predictions(tmp_path) -> Path:
    return Path(shutil.copy(PREDICTIONS, tmp_path / "p.jsonl"))


def source(hub: Path) -> ScoredSplit:
    return ScoredSplit(split="val", dataset=hub, config="movies")


def release_digest(hub: Path, config: str = "movies", split: str = "validation") -> str:
    return json.loads((hub / "release.json").read_text())["configs"][config]["splits"][split]["digest"]


@pytest.mark.parametrize(("config", "name"), SPLITS)
def test_raw_and_built_data_have_one_digest(hub, config, name):
    split = {"val": "validation"}.get(name, name)
    raw = read_gold(ScoredSplit(SAMPLES / "eraser" / config, name)).digest
    assert raw == release_digest(hub, config, split) == open_built(hub).data_digest(config, split)


def test_the_kept_digest_counts_only_for_the_files_and_labels_it_was_computed_of(hub, tmp_path):
    own, kept = tmp_path / "eraser", release_digest(hub)
    shutil.copytree(hub, own)
    release = json.loads((own / "release.json").read_text())
    entry = release["configs"]["movies"]["splits"]["validation"]
    entry["digest"] = "f" * 64
    (own / "release.json").write_text(json.dumps(release))
    assert open_built(own).data_digest("movies", "validation") == "f" * 64  # trusted: the files are those
    card = (own / "README.md").read_text()
    (own / "README.md").write_text(card.replace("'0': NEG", "'0': X").replace("'1': POS", "'1': NEG"))
    assert open_built(own).data_digest("movies", "validation") not in (kept, "f" * 64)
    (own / "README.md").write_text(card)
    entry["files"] = dict.fromkeys(entry["files"], "0" * 64)
    (own / "release.json").write_text(json.dumps(release))
    assert open_built(own).data_digest("movies", "validation") == kept
    for spoilt in (
        "[" * 100_000,
        '{"configs": ' * 2000,
        "",
        "\ud800".encode("utf-8", "surrogatepass").decode("latin-1"),
    ):
        (own / "release.json").write_text(spoilt, "latin-1")
        assert open_built(own).data_digest("movies", "validation") == kept
    (own / "release.json").unlink()
    assert open_built(own).data_digest("movies", "validation") == kept


def test_a_damaged_file_is_one_error_of_a_splits_digest(hub, tmp_path):
    own = Path(shutil.copytree(hub, tmp_path / "eraser"))
    path = own / "movies" / "validation-00000-of-00001.parquet"
    data = bytearray(path.read_bytes())
    documents = pq.read_metadata(path).row_group(0).column(4)  # its text
    assert documents.path_in_schema.startswith("documents")
    middle = documents.dictionary_page_offset or documents.data_page_offset
    data[middle : middle + documents.total_compressed_size] = b"\xff" * documents.total_compressed_size
    path.write_bytes(bytes(data))
    for ask in (lambda: open_built(own).data_digest("movies", "val"), open_split(own, "movies", "val").header):
        with refused("file-unreadable", file=path):
            ask()


@pytest.mark.parametrize("dataset", ["bilingual_perturbation", "human_rationales"])
def test_small_datasets_keep_the_digest_of_their_rows(dataset, tmp_path):
    HUB_DATASETS[dataset].build(None, source=SAMPLES / dataset, out=tmp_path)
    release = json.loads((tmp_path / dataset / "release.json").read_text())["configs"]
    (tmp_path / dataset / "release.json").unlink()
    built = open_built(tmp_path / dataset)
    digests = {name: {split: built.data_digest(name, split) for split in built.splits(name)} for name in built.configs}
    assert digests == {
        name: {split: facts["digest"] for split, facts in entry["splits"].items()} for name, entry in release.items()
    }
    assert f"`{digests[built.configs[0]]['test'][:12]}`" in (tmp_path / dataset / "README.md").read_text()


def test_a_dataset_loaded_or_streamed_has_the_digest(hub):
    datasets = pytest.importorskip("datasets")
    from eraser_hub.metrics.data_digest import digest_rows

    for streaming in (False, True):
        rows = datasets.load_dataset(str(hub), "movies", split="validation", streaming=streaming)
        assert digest_rows("eraser", rows, rows.features["classification"].names) == release_digest(hub)


def test_modules_sign_with_the_digest_where_references_bring_it(hub):
    datasets = pytest.importorskip("datasets")
    from eraser_hub.metrics.eraser_agreement import EraserAgreement

    gold = datasets.load_dataset(str(hub), "movies", split="validation")
    rows = [json.loads(line) for line in PREDICTIONS.read_text().splitlines()]
    signature = EraserAgreement().compute(predictions=rows, references=gold)["signature"]
    assert signature.startswith(f"eraser_agreement|data:{release_digest(hub)[:12]}|n:{len(rows)}|")
    bare = gold.remove_columns("query")
    assert "|data:" not in EraserAgreement().compute(predictions=rows, references=bare)["signature"]


@pytest.mark.parametrize("raw", [False, True])
def test_score_files_hold_both_digests(hub, predictions, raw):
    split = ScoredSplit(SAMPLES / "eraser/movies", "val") if raw else source(hub)
    content = score(split, predictions).as_json()
    digest = release_digest(hub)
    jsonschema.validate(content, json_schema("scores"))
    assert content["data_digest"] == digest
    assert content["predictions_digest"] == [compute_predictions_digest(predictions)]
    assert content["signature"][0].startswith(f"eraser_agreement|data:{digest[:12]}|split:validation|n:24|iou:0.5|")


def test_predictions_made_of_other_data_are_refused_or_signed(hub, predictions):
    write_run(predictions, {"signature": "s", "data": {"data_digest": "0" * 64}})
    with refused("data-mismatch", "found a run on the data 000000000000", "`allow_mismatch`", file=predictions):
        score(source(hub), predictions)
    scores = score(source(hub), predictions, ScoreSettings(allow_mismatch=True))
    assert all("|predicted_on:000000000000|" in line for line in scores.block_signatures)
    assert any("made of the data 000000000000" in note for note in scores.notes)


@pytest.mark.parametrize("verb", ["score", "compare", "report"])
def test_every_verb_refuses_and_allows(verb, hub, predictions, tmp_path):
    _register()
    write_run(predictions, {"signature": "s", "data": {"data_digest": "0" * 64}})
    other = tmp_path / "other.jsonl"
    other.write_text(PREDICTIONS.read_text().replace("0.9", "0.8", 1))
    more = {"compare": ["--predictions", str(other)], "report": ["--out", str(tmp_path / "out")]}.get(verb, [])
    words = [verb, "--dataset", str(hub), "--config", "movies", "--split", "val", "--predictions", str(predictions)]
    words += more
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 1 and getattr(done.exception, "rule", "") == "data-mismatch"
    done = CliRunner().invoke(app, [*words, "--allow-mismatch"])
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize(
    ("record", "words"),
    [
        (None, "no p.jsonl.run.json beside the predictions"),
        ({"signature": "s"}, "the record has no digests"),
        ({"data": {"data_digest": "0" * 64}, "predictions_sha256": "1" * 64}, "that of other predictions"),
    ],
)
def test_unknown_data_are_noted_once(hub, predictions, record, words):
    if record is not None:
        run_path(predictions).write_text(json.dumps(record))
    notes = score(source(hub), predictions).all_notes
    assert sum("the data that they were made of are not known" in note for note in notes) == 1
    assert any(words in note for note in notes)


def test_a_file_in_another_order_is_still_the_one_of_its_record(hub, predictions):
    write_run(predictions, {"data": {"data_digest": release_digest(hub)}})
    rows = predictions.read_text().splitlines()
    predictions.write_text("\n".join(reversed(rows)) + "\n")
    assert not any("not known" in note for note in score(source(hub), predictions).notes)


def test_explain_writes_both_digests_and_score_reads_them(hub, tmp_path):
    model, out = tmp_path / "model", tmp_path / "p.jsonl"
    eraser_hub.train(dataset=hub, config="movies", model="logistic-regression", out=model)
    eraser_hub.explain(str(model), hub, config="movies", split="val", method="occlusion", out=out)
    record = json.loads(run_path(out).read_text())
    jsonschema.validate(record, json_schema("run"))
    assert record["data"]["data_digest"] == release_digest(hub)
    assert record["predictions_digest"] == compute_predictions_digest(out) == read_predictions_digest(out)
    assert record["predictions_sha256"] == hashlib.sha256(out.read_bytes()).hexdigest()
    assert not any("not known" in note for note in score(source(hub), out).notes)
    with refused("data-mismatch", file=out):
        score(ScoredSplit(split="train", dataset=hub, config="movies"), out)


def board_file(path: Path, **facts: Any) -> Path:
    content = {"config": "movies", "split": "validation", "signature": ["s"], "auprc": 0.5}
    path.write_text(json.dumps(content | facts))
    return path


def test_score_files_of_different_data_are_groups_of_their_own(tmp_path):
    lines = [read_score_file(board_file(tmp_path / f"{at}.json", data_digest=64 * str(at))) for at in (1, 2)]
    assert describe_data(lines) == [
        "movies validation: scores of different data stand in groups of their own: 111111111111 (1), 222222222222 (2)"
    ]
    groups = {line.system: line.group for line in collect_board_lines(lines, published=False)}
    assert groups == {name: f"movies, data:{12 * name}" for name in ("1", "2")}
    lines[1] = read_score_file(tmp_path / "2.json", dataset="others")
    assert describe_data(lines) == []
    lines[0] = read_score_file(board_file(tmp_path / "none.json"))
    assert describe_data(lines) == ["1 score files have no digest of their data: 'none'"]


# ---------------------------------------------------------------------------------------------- the predictions digest
def expected_predictions_digest(rows: list[dict[str, Any]]) -> str:
    text = json.dumps(["eraser-hub-predictions-1"], separators=(",", ":")) + "\n"
    for row in sorted(rows, key=lambda row: row["annotation_id"].encode()):
        text += json.dumps(row, ensure_ascii=False, separators=(",", ":"), sort_keys=True) + "\n"
    return hashlib.sha256(text.encode()).hexdigest()


def test_predictions_digest_is_the_defined_one_whatever_order_layout_and_format(tmp_path):
    scores = {"POS": 1e-07, "NEG": 0.9999999}
    rows: list[dict[str, Any]] = [
        {
            "annotation_id": name,
            "classification": "NEG",
            "classification_scores": scores,
            "rationales": [{"docid": "d", "soft_rationale_predictions": [0.00001234, 1e16, 0.5, -0.0, 2.0]}],
        }
        for name in ("é", "b", "a", "10", "9")
    ]
    expected = expected_predictions_digest(rows)
    path = tmp_path / "p.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert compute_predictions_digest(path) == expected
    mixed = random.Random(0).sample(rows, len(rows))
    texts = [
        json.dumps(dict(reversed(row.items())) | {"tokens_to_flip": None}, indent=None, separators=(" ,", " : "))
        for row in mixed
    ]
    path.write_text("\n".join(text.replace("2.0", "2") for text in texts))  # an integer where a float is declared
    assert compute_predictions_digest(path) == expected

    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "p.parquet")
    assert compute_predictions_digest(tmp_path / "p.parquet") == expected


def test_a_changed_record_does_not_decide_the_digest(predictions):
    write_run(predictions, {})
    assert read_predictions_digest(predictions) == compute_predictions_digest(predictions)
    predictions.write_text(predictions.read_text().replace("0.9", "0.8", 1))
    assert read_predictions_digest(predictions) == compute_predictions_digest(predictions)
