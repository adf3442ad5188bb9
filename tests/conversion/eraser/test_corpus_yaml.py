"""Corpora of one's own: what a corpus.yaml may say, and that such a config is like the nine everywhere."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import eraser_hub
from eraser_hub.attribution.dataset import find_kd, open_split
from eraser_hub.conversion import get_dataset
from eraser_hub.conversion.built import open_built, read_card
from eraser_hub.conversion.dataset import PartlyBuilt
from eraser_hub.conversion.eraser.configs import CONFIGS
from eraser_hub.conversion.eraser.corpus_yaml import find_custom_corpora, parse_corpus_yaml, read_corpus_yaml
from eraser_hub.conversion.eraser.release import read_configs
from eraser_hub.conversion.eraser.schema import MASKS
from eraser_hub.scoring.scored_split import ScoredSplit

from ...refusals import refused

ERASER = get_dataset("eraser")
WORDS = "name: reviews\nlabels: [NEG, POS]\n"
MORE = WORDS + "language: [en, pt-BR]\nlicense: cc-by-4.0\ncitation: |\n  @misc{r, title={R}}\nkd: 0.25\n"


@pytest.fixture
def source(tmp_path: Path, samples: Path) -> Path:
    """A folder with a corpus of one's own beside a config of the release."""
    for name, config in (("mine", "movies"), ("cose", "cose")):
        shutil.copytree(samples / "eraser" / config, tmp_path / "corpora" / name)
    for path in (tmp_path / "corpora" / "mine").glob("human_performance*"):
        path.unlink()
    (tmp_path / "corpora" / "mine" / "corpus.yaml").write_text(MORE)
    return tmp_path / "corpora"


def masks(folder: Path, rows: list[dict[str, object]]) -> None:
    (folder / "annotators").mkdir()
    pq.write_table(pa.Table.from_pylist(rows, MASKS), folder / "annotators" / "reviews.parquet")


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("", {"train": None, "test": None}),
        ("comprehensive: false\n", {"train": False, "test": False}),
        ("comprehensive: true\n", {"train": True, "test": True}),
        ("comprehensive: [val, test]\n", {"train": False, "validation": True, "test": True}),
    ],
)
def test_gold_is_comprehensive_as_the_corpus_says(source, tmp_path, text, known):
    (source / "mine" / "corpus.yaml").write_text(MORE + text)
    config = read_corpus_yaml(source / "mine")
    assert {split: config.is_comprehensive(split) for split in known} == known
    ERASER.build(["reviews"], out=tmp_path / "hub", source=source)
    built = ScoredSplit(dataset=tmp_path / "hub" / "eraser", config="reviews", split="test")
    raw = ScoredSplit(data_dir=source / "mine", split="test")
    assert built.is_comprehensive() is raw.is_comprehensive() is known["test"]
    words = {None: "unknown", True: "| comprehensive", False: "not comprehensive"}[known["test"]]
    rows = (tmp_path / "hub" / "eraser" / "README.md").read_text().splitlines()
    assert [words in row for row in rows if row.startswith("| `reviews` | test |") and "comprehensive" in row] == [True]
    assert CONFIGS["movies"].is_comprehensive("test") and CONFIGS["movies"].is_comprehensive("train") is False


@pytest.mark.parametrize(
    ("text", "line", "field", "mentioned"),
    [
        ("", None, None, "key: value"),
        ("- a\n", None, None, "key: value"),
        ("name: reviews\n", None, "labels", "['name']"),
        ("labels: [a, b]\n", None, "name", "['labels']"),
        (WORDS + "licence: mit\n", 3, None, "'licence': did you mean 'license'?"),
        (WORDS + "zebra: 1\n", 3, None, "'zebra'"),
        (WORDS + "name: again\n", 3, None, "'name'"),
        (WORDS + "814: x\n", 3, None, 814),
        ("name: a/b\nlabels: [a]\n", 1, "name", "'a/b'"),
        ("name: ../up\nlabels: [a]\n", 1, "name", "'../up'"),
        ("name: movies\nlabels: [a]\n", 1, "name", "'movies'"),
        ("name: documents\nlabels: [a]\n", 1, "name", "'documents'"),
        ("name: 814\nlabels: [a]\n", 1, "name", 814),
        ("name: a\nlabels: []\n", 2, "labels", "[]"),
        ("name: a\nlabels: [true, false]\n", 2, "labels", "[True, False]"),
        ("name: a\nlabels: [a, a]\n", 2, "labels", "['a', 'a']"),
        ("name: a\nlabels: a\n", 2, "labels", "'a'"),
        (WORDS + "language: no\n", 3, "language", "False"),
        (WORDS + "language: English\n", 3, "language", "'English'"),
        (WORDS + "license: CC BY 4.0\n", 3, "license", "'CC BY 4.0'"),
        (WORDS + "kd: 814\n", 3, "kd", 814),
        (WORDS + "kd: 0\n", 3, "kd", 0),
        (WORDS + "kd: .nan\n", 3, "kd", "nan"),
        (WORDS + "kd: true\n", 3, "kd", "True"),
        (WORDS + "comprehensive: maybe\n", 3, "comprehensive", "'maybe'"),
        (WORDS + "citation: 814\n", 3, "citation", 814),
        ("name: [\n", 2, None, "YAML"),
        ("name: &a reviews\nlabels: [*a]\n", 2, None, "aliases"),
        ("!!python/object/apply:os.system ['true']\n", None, None, "key: value"),
        ("name: 2024-99-99\nlabels: [a]\n", None, None, "month"),
        ("[" * 3000, None, None, "brackets"),
        ("name: \x00\n", None, None, "#x0000"),
    ],
)
def test_a_corpus_yaml_that_is_not_in_order(
    text: str, line: int | None, field: str | None, mentioned: object, tmp_path: Path
) -> None:
    (tmp_path / "corpus.yaml").write_text(text)
    with refused(mentioned, file=tmp_path / "corpus.yaml", line=line, field=field):
        read_corpus_yaml(tmp_path)


def test_a_corpus_yaml_that_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "corpus.yaml").mkdir()
    with refused(file="corpus.yaml"):
        read_corpus_yaml(tmp_path)
    (tmp_path / "corpus.yaml").rmdir()
    (tmp_path / "corpus.yaml").write_bytes(b"name: \xff\n")
    with refused("0xff", file="corpus.yaml", line=1):
        read_corpus_yaml(tmp_path)


@given(
    labels=st.lists(st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1), min_size=1, unique=True),
    kd=st.floats(0.001, 1),
)
def test_whatever_yaml_writes_is_read(labels: list[str], kd: float) -> None:
    text = yaml.safe_dump({"name": "a-b_3", "labels": labels, "kd": kd}, allow_unicode=True)
    config = parse_corpus_yaml(text, Path("corpus.yaml"))
    assert config.label_names == tuple(labels) and config.kd == kd and config.corpus_yaml == text


def test_beside_the_nine(source: Path, tmp_path: Path) -> None:
    result = ERASER.build(None, out=tmp_path, source=source)
    assert list(result.rows) == ["cose", "reviews"] and result.rows["reviews"]["train"] == 27
    built = open_built(result.folder)
    assert built.default_config == "cose" and built.label_names("reviews") == ("NEG", "POS")
    facts = read_configs(built)["reviews"]
    assert (facts.kd, facts.license, facts.language) == (0.25, "cc-by-4.0", ("en", "pt-BR"))
    card, prose = read_card(result.folder / "README.md")
    assert card["language"] == ["en", "pt-BR"] and card["license"] == ["bsd-3-clause", "cc-by-4.0"]
    assert "| `reviews` | `NEG` `POS` | en, pt-BR |" in prose and "@misc{r, title={R}}" in prose
    assert "<!--" not in prose and "ERASER: Evaluating" in card["pretty_name"]
    assert not ERASER.check(result.folder).violations
    tables = {table.name: table for table in ERASER.stats(result.folder, ["reviews"]).tables}
    assert {left for left, _ in tables["evidence"].rows} == {("reviews", s) for s in ("train", "validation", "test")}
    assert datasets.load_dataset(str(result.folder), "reviews", split="train").num_rows == 27


def test_alone_and_back(source: Path, tmp_path: Path) -> None:
    masks(source / "mine", [{"annotation_id": "negR_000.txt", "split": "train", "annotators": [[0, 1], [1, 1]]}])
    result = ERASER.build(None, out=tmp_path / "hub", source=source / "mine")
    card, prose = read_card(result.folder / "README.md")
    assert (
        card["pretty_name"] == "reviews"
        and "none of ERASER's" in prose
        and 'load_dataset("eraser", "reviews")' in prose
    )
    assert card["source_datasets"] == ["original"] and "annotations_creators" not in card
    ERASER.export(result.folder, None, out=tmp_path / "raw")
    for name in ("train.jsonl", "corpus.yaml", "annotators/reviews.parquet"):
        assert (tmp_path / "raw/reviews" / name).read_bytes() == (source / "mine" / name).read_bytes()
    (source / "mine/corpus.yaml").write_text(WORDS.replace("reviews", "renamed"))
    result = ERASER.build(None, out=tmp_path / "hub", source=source / "mine")
    assert any("annotators/reviews.parquet: skipped: is not renamed.parquet" in note for note in result.notes)


def test_a_second_build_keeps_it(source: Path, tmp_path: Path) -> None:
    masks(source / "mine", [{"annotation_id": "negR_000.txt", "split": "train", "annotators": [[0], [1]]}])
    ERASER.build(["reviews"], out=tmp_path, source=source)
    kept = (tmp_path / "eraser/annotators/reviews.parquet").read_bytes()
    result = ERASER.build(["cose"], out=tmp_path, source=source)
    assert open_built(result.folder).configs == ["cose", "reviews"]
    assert (result.folder / "annotators/reviews.parquet").read_bytes() == kept
    (source / "mine/corpus.yaml").write_text(MORE.replace("kd: 0.25", "kd: 0.5"))
    shutil.rmtree(source / "mine/annotators")
    result = ERASER.build(["reviews"], out=tmp_path, source=source)
    assert read_configs(open_built(result.folder))["reviews"].kd == 0.5
    assert not (result.folder / "annotators/reviews.parquet").exists()


def test_one_bad_corpus_yaml_keeps_no_other_from_being_built(source: Path, tmp_path: Path) -> None:
    (source / "mine/corpus.yaml").write_text(WORDS + "colour: red\n")
    with refused("'colour'", file="mine/corpus.yaml", line=3, type=PartlyBuilt) as caught:
        ERASER.build(None, out=tmp_path, source=source)
    assert list(caught.error.result.rows) == ["cose"] and list(caught.error.result.failed) == ["mine"]


def test_unknown_labels_and_masks_are_refused(source: Path, tmp_path: Path) -> None:
    (source / "mine/corpus.yaml").write_text("name: reviews\nlabels: [good, bad]\n")
    with refused("'good', 'bad'", "'NEG'", field="classification"):
        ERASER.build(["reviews"], out=tmp_path, source=source)
    (source / "mine/corpus.yaml").write_text(WORDS)
    (source / "mine/annotators").mkdir()
    (source / "mine/annotators/reviews.parquet").write_bytes(b"PAR1")
    with refused(file="annotators/reviews.parquet"):
        ERASER.build(["reviews"], out=tmp_path, source=source)


def test_two_folders_of_one_name_and_names_that_are_not_there(source: Path, tmp_path: Path) -> None:
    with refused(", reviews", "'opinions'"):
        ERASER.build(["opinions"], out=tmp_path, source=source)
    shutil.copytree(source / "mine", source / "other")
    with refused("'reviews'", source / "mine", file="other/corpus.yaml"):
        find_custom_corpora(source)


def test_a_config_that_nobody_describes_is_refused(source: Path, tmp_path: Path) -> None:
    folder = ERASER.build(["reviews"], out=tmp_path, source=source).folder
    release = json.loads((folder / "release.json").read_bytes())
    text = release["configs"]["reviews"].pop("corpus")
    (folder / "release.json").write_text(json.dumps(release))
    for verb in (
        lambda: ERASER.check(folder),
        lambda: ERASER.stats(folder),
        lambda: ERASER.export(folder, None, out=tmp_path),
    ):
        with refused("eraser", "'reviews'", file="release.json"):
            verb()
    release["configs"]["reviews"]["corpus"] = text.replace("name: reviews", "name: others")
    (folder / "release.json").write_text(json.dumps(release))
    with refused("others", file="release.json", field="reviews"):
        ERASER.check(folder)


def test_the_builder_class_takes_it(source: Path, tmp_path: Path) -> None:
    builder = eraser_hub.Eraser("reviews", data_dir=str(source), cache_dir=str(tmp_path / "cache"))
    rows = builder.as_streaming_dataset("val")
    assert next(iter(rows))["annotation_id"] == "negR_080.txt" and rows.features["classification"].names == [
        "NEG",
        "POS",
    ]
    with refused(", reviews", "'others'"):
        eraser_hub.Eraser("others", data_dir=str(source))
    assert [config.name for config in eraser_hub.Eraser.BUILDER_CONFIGS] == list(CONFIGS)


def test_kd_is_that_of_corpus_yaml_else_of_training(source: Path, tmp_path: Path) -> None:
    folder = ERASER.build(["reviews"], out=tmp_path, source=source).folder
    assert find_kd(open_split(folder, "reviews", "validation")) == (0.25, "corpus.yaml")
    (source / "mine/corpus.yaml").write_text(
        WORDS.replace("reviews", "movies_flat")
    )  # not the kd that papers print of movies
    folder = ERASER.build(["movies_flat"], out=tmp_path, source=source).folder
    training = open_split(folder, "movies_flat", "train")
    shares = [sum(map(sum, one.rationale or ())) / len(one.tokens) for one in training.instances()]
    shares = [share for share in shares if share]
    kd = round(sum(shares) / len(shares), 4)
    assert find_kd(open_split(folder, "movies_flat", "validation")) == (kd, "train") and kd != 0.1
    with refused("kd", "'movies_flat'", "there is no other training split"):
        find_kd(training)  # its own rationales are what predictions are scored by
    assert find_kd(training, training) == (kd, "train")  # a system is trained on them
    model = tmp_path / "model"
    eraser_hub.train(dataset=str(folder), config="movies_flat", model="logistic-regression", out=model)
    common: dict[str, Any] = {"config": "movies_flat", "method": "random"}
    for options, shown in (({}, f"kd:{kd:g}(train)"), ({"kd": kd}, f"kd:{kd:g}"), ({"kd": 0.3}, "kd:0.3")):
        out = tmp_path / f"{shown}.jsonl"
        (report,) = eraser_hub.explain(str(model), folder, out=out, split="validation", **common, **options)
        record = json.loads(Path(f"{out}.run.json").read_text())
        assert f"|{shown}|" in report.signature and f"|{shown}|" in record["signature"]
        assert record["settings"]["kd_source"] == ("" if options else "train")
        source_line = f"kd {kd:g}: the mean share of gold tokens in the rows of train that have any"
        assert (source_line in report.lines()) == (not options)
    with refused("kd", "'movies_flat'"):
        eraser_hub.explain(str(model), folder, out=tmp_path / "none.jsonl", split="train", **common)
