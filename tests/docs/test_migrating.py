"""The options of docs/migrating.md that give 2.0's number do so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

pytest.importorskip("sklearn")

import eraser_hub
from eraser_hub.__main__ import _register, app
from eraser_hub.conversion.importing.corpus import Columns, import_corpus
from eraser_hub.conversion.importing.sources import open_file

PAGE = Path(__file__).parents[2] / "docs" / "migrating.md"
# each has a test below
OPTIONS = {"--unmarked score", "--kd SHARE", "--folds instances", "--resamples N", "--interval bca"}
TEXTS = [(["a", "good", "film"], "POS", [0, 1, 0]), (["so", "bad", "it", "is"], "NEG", []), (["fine"], "POS", [])]


def run(*words: object) -> Any:
    _register((str(words[0]),))
    done = CliRunner().invoke(app, [*map(str, words)])
    assert done.exit_code == 0, done.output
    return done


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus in which one text of three is marked, each of them with two questions."""
    folder = tmp_path_factory.mktemp("migrating")
    rows = [
        {"id": f"{number}-{ask}", "tokens": tokens, "label": label, "why": why or [0] * len(tokens), "ask": ask}
        for number, (tokens, label, why) in enumerate(TEXTS * 4)
        for ask in ("one", "two")
    ]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    columns = Columns(("tokens",), ("why",), "label", query="ask", id="id")
    sources = {split: open_file(folder / "rows.jsonl") for split in ("train", "test")}
    import_corpus(sources, "own", columns, folder / "corpora")
    eraser_hub.build("eraser", source=folder / "corpora", out=folder / "hub")
    return folder


def data(place: Path) -> tuple[object, ...]:
    return ("--dataset", place / "hub" / "eraser", "--config", "own")


def test_each_option_of_the_table_is_tested() -> None:
    text = PAGE.read_text(encoding="utf-8")
    table = text[text.index("| | 2.0 | 3.0 | 2.0's number |") :].split("\n\n")[0].splitlines()[2:]
    assert {line.split("|")[4].split("`")[1] for line in table} == OPTIONS


def test_unmarked_score_counts_unmarked_rows_as_zero(place: Path, tmp_path: Path) -> None:
    """A third of the rows is marked, and found; the others have a prediction, and 0 and AUPRC .5 in 2.0."""
    out = tmp_path / "perfect.jsonl"
    lines = []
    for line in (place / "corpora" / "own" / "test.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        (docid,), spans = row["docids"], [evidence for group in row["evidences"] for evidence in group]
        tokens = TEXTS[int(row["annotation_id"].split("-")[0]) % 3][0]
        hard = [{"start_token": span["start_token"], "end_token": span["end_token"]} for span in spans]
        hard = hard or [{"start_token": 0, "end_token": 1}]
        soft = [float(any(span["start_token"] == at for span in spans)) for at in range(len(tokens))]
        rationale = {"docid": docid, "hard_rationale_predictions": hard, "soft_rationale_predictions": soft}
        lines.append(json.dumps({"annotation_id": row["annotation_id"], "rationales": [rationale]}))
    out.write_text("\n".join(lines) + "\n", encoding="utf-8")
    found = {}
    for unmarked in ((), ("--unmarked", "score")):
        file = tmp_path / "scores.json"
        run("score", *data(place), "--split", "test", "--predictions", out, "--out", file, "--force", *unmarked)
        scores = json.loads(file.read_text(encoding="utf-8"))
        found[unmarked] = [scores["token_prf"]["instance_macro"]["f1"], scores["token_soft_metrics"]["auprc"]]
    assert found[()] == pytest.approx([1, 1])
    assert found["--unmarked", "score"] == pytest.approx([1 / 3, (1 + 0.5 + 0.5) / 3])


@pytest.mark.parametrize("spelling", ["--interval", "--ci-method"])
def test_interval_bca_is_the_bootstrap_of_two(samples: Path, tmp_path: Path, spelling: str) -> None:
    import numpy as np

    from eraser_hub.metrics.resampling import bootstrap_intervals
    from eraser_hub.scoring.score import score
    from eraser_hub.scoring.scored_split import ScoredSplit
    from eraser_hub.scoring.settings import ScoreSettings

    predictions, file = samples / "predictions" / "eraser" / "movies.val.jsonl", tmp_path / "scores.json"
    words = ("--source", samples / "eraser" / "movies", "--split", "val", "--predictions", predictions)
    run("score", *words, "--confidence-level", 0.95, "--seed", 1, "--out", file, spelling, "bca")
    found = json.loads(file.read_text(encoding="utf-8"))["agreement"]
    source = ScoredSplit(samples / "eraser" / "movies", "val")
    statistics = score(source, predictions, ScoreSettings(n_resamples=9)).statistics["agreement"]
    expected = bootstrap_intervals(statistics.cluster_sums(), statistics.finalize, seed=1)
    assert np.allclose(found["token_macro_f1_ci"], expected["token_macro_f1"], atol=1e-12)
    assert "|ci:bca|level:0.95|resamples:1000|seed:1|" in found["signature"]


def test_kd_is_what_is_given(place: Path, tmp_path: Path) -> None:
    """2.0: the mean over all rows of the split, 1/9; now that of the marked rows of train, 1/3."""
    run("train", *data(place), "--model", "logistic-regression", "--out", tmp_path / "model")
    found = []
    for more in ((), ("--kd", "0.111111111")):
        out = tmp_path / f"{len(more)}.jsonl"
        run("explain", *data(place), "--split", "test", "--model", tmp_path / "model", "--out", out, "--quiet", *more)
        found.append(json.loads(Path(f"{out}.run.json").read_text(encoding="utf-8"))["settings"]["kd"])
    assert found == pytest.approx([1 / 3, 1 / 9], abs=1e-4)


def test_resamples_of_a_report_are_those_named(samples: Path, tmp_path: Path) -> None:
    folder = samples / "predictions" / "eraser"
    eraser_hub.build("eraser", source=samples / "eraser", config="movies", out=tmp_path / "hub")
    words: list[object] = ["report", "--dataset", tmp_path / "hub" / "eraser", "--config", "movies", "--split", "val"]
    for name in ("movies.val.jsonl", "movies.val.baseline.jsonl"):
        words += ["--predictions", folder / name]
    for more, count in (((), 10_000), (("--resamples", 1000), 1000)):
        run(*words, *more, "--out", tmp_path / "report", "--force")
        page = (tmp_path / "report" / "index.html").read_text(encoding="utf-8")
        assert f"|resamples:{count}|" in page.replace("<wbr>", "").replace("​", "")


def test_folds_of_instances_are_those_of_two(place: Path, tmp_path: Path) -> None:
    """The folds of 2.0 are StratifiedKFold's over rows."""
    import numpy as np
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold

    words = ("train", *data(place), "--model", "logistic-regression", "--no-query", "--eval-split", "")
    said = run(*words, "--folds", "instances", "--out", tmp_path / "rows").stderr
    assert "clusters" not in said and "clusters" in run(*words, "--out", tmp_path / "documents").stderr
    texts = [" ".join(tokens) for tokens, _, _ in TEXTS * 4 for _ in range(2)]
    labels = np.array([label for _, label, _ in TEXTS * 4 for _ in range(2)])
    counts = CountVectorizer(token_pattern="[^ ]+").fit_transform(texts)
    folds = list(StratifiedKFold(5, shuffle=True, random_state=1).split(labels, labels))
    model = LogisticRegression(C=0.001, max_iter=1000)
    mean = np.mean([np.mean(model.fit(counts[a], labels[a]).predict(counts[b]) == labels[b]) for a, b in folds])
    assert f"C 0.001: {mean:.3f}, the mean of 5 folds" in said
