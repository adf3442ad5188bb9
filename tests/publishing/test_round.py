"""The whole round: publish -> load from anywhere -> push back -> load again -> score."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from loopback_hub import TOKEN

from eraser_hub.conversion import list_datasets
from eraser_hub.publishing.spaces import list_metric_names
from eraser_hub.records.files import compute_file_digest

ROUND = """
import json, datasets, evaluate
first = datasets.load_dataset("org/eraser", "movies")
tagged = datasets.load_dataset("org/eraser", "movies", revision="v1.2.0", split="test")
streamed = list(datasets.load_dataset("org/eraser", "boolq", split="train", streaming=True))
skipped = next(iter(datasets.load_dataset("org/eraser", split="train", streaming=True).skip(30).take(1)))
first.push_to_hub("org/copy", "movies")
again = datasets.load_dataset("org/copy", "movies")
metric = evaluate.load("org/toy_overlap")
score = metric.compute(predictions=[{"id": "a", "rationale": [1, 2]}], references=[{"id": "a", "rationale": [2]}])
print(json.dumps({
    "rows": {split: data.num_rows for split, data in first.items()},
    "same": all(first[split].to_list() == again[split].to_list() for split in first),
    "features": str(first["train"].features) == str(again["train"].features),
    "tagged": tagged.num_rows,
    "streamed": [len(streamed), streamed[-1]["annotation_id"], skipped["annotation_id"]],
    "score": score,
}))
"""


@pytest.mark.slow
def test_published_loaded_pushed_back_and_scored(publish_toy, toy_hub, loopback, child):
    import datasets
    import evaluate

    publish_toy()
    found = child.run(ROUND, loopback.url, HF_TOKEN=TOKEN)
    assert found["rows"] == {"train": 40, "test": 7}
    assert found["same"] and found["features"]
    assert found["tagged"] == 7
    assert found["streamed"] == [40, "boolq_train_39", "movies_train_30"]
    rows = [{"id": "a", "rationale": [1, 2]}]
    local = evaluate.load(str(toy_hub / "toy_overlap"))
    assert found["score"] == local.compute(predictions=rows, references=[{"id": "a", "rationale": [2]}])
    assert ("datasets", "org/copy") in loopback.repos
    assert datasets.load_dataset(str(toy_hub / "eraser"), "movies", split="train").num_rows == 40


def test_a_missing_revision_and_a_cut_download_are_errors(publish_toy, loopback, child):
    publish_toy(datasets=["eraser"])
    load = (
        "import json, datasets\n"
        "print(json.dumps(datasets.load_dataset('org/eraser', 'movies', revision={!r}).num_rows))"
    )
    missing = child.call([sys.executable, "-c", load.format("v9.9.9")], loopback.url)
    assert missing.returncode == 1 and "v9.9.9" in missing.stderr
    loopback.fail("GET", r"resolve/.*train-00000", 0, times=1)
    assert child.run(load.format("main"), loopback.url) == {"train": 40, "test": 7}, "read again after a cut"


# -- what the project itself builds -----------------------------------------------------------------------------------

REAL = """
import json, datasets, evaluate
movies = datasets.load_dataset("org/eraser", "movies")
cose = list(datasets.load_dataset("org/eraser", "cose", split="train", streaming=True))
row = next(row for row in movies["train"] if row["evidences"])
keys = ("start_token", "end_token")
spans = [{key: span[key] for key in keys} for group in row["evidences"] for span in group]
instance = {
    "annotation_id": row["annotation_id"],
    "rationales": [{"docid": row["documents"][0]["docid"], "hard_rationale_predictions": spans}],
    "classification": "POS",
    "classification_scores": {"NEG": 0.2, "POS": 0.8},
    "comprehensiveness_classification_scores": {"NEG": 0.7, "POS": 0.3},
    "sufficiency_classification_scores": {"NEG": 0.3, "POS": 0.7},
}
faithfulness = evaluate.load("org/eraser_faithfulness").compute(predictions=[instance])
agreement = evaluate.load("org/eraser_agreement").compute(
    predictions=[{key: instance[key] for key in ("annotation_id", "rationales")}], references=[row]
)
print(json.dumps([movies["train"].num_rows, len(cose), instance, row, faithfulness, agreement]))
"""


@pytest.mark.slow
def test_the_projects_own_folders_are_checked_published_loaded_and_score_the_same(loopback, child, samples, tmp_path):
    import evaluate

    hub = tmp_path / "hub"
    command = [sys.executable, "-m", "eraser_hub"]
    build = ["build", "eraser", "--source", str(samples / "eraser"), "--out", str(hub)]
    for arguments in (build, ["build", "metrics", "--out", str(hub)]):
        done = child.call([*command, *arguments], loopback.url)
        assert done.returncode == 0, done.stderr
    publish = [*command, "publish", "--namespace", "org", "--folder", str(hub)]
    dry = child.call([*publish, "--dry-run"], "http://127.0.0.1:9", HF_HUB_OFFLINE="1")
    assert dry.returncode == 0 and "dataset org/eraser" in dry.stdout and loopback.requests == [], dry.stderr
    done = child.call(publish, loopback.url, HF_TOKEN=TOKEN)
    assert done.returncode == 0, done.stderr
    assert f"{loopback.url}/spaces/org/eraser_faithfulness" in done.stdout.splitlines()
    assert TOKEN not in done.stdout + done.stderr
    again = child.call(publish, loopback.url, HF_TOKEN=TOKEN)
    assert again.stderr.count("nothing to upload") == len(list_metric_names()) + 1 and "  add " not in again.stderr
    rows, streamed, instance, row, faithfulness, agreement = child.run(REAL, loopback.url)
    assert rows and streamed
    local = {name: evaluate.load(str(hub / name)) for name in ("eraser_faithfulness", "eraser_agreement")}
    assert faithfulness == local["eraser_faithfulness"].compute(predictions=[instance])
    hard = {key: instance[key] for key in ("annotation_id", "rationales")}
    assert agreement == local["eraser_agreement"].compute(predictions=[hard], references=[row])
    assert agreement["token_micro_f1"] == 1.0


@pytest.mark.slow
def test_results_are_published_and_come_back(loopback, child, samples, tmp_path):
    import huggingface_hub
    import yaml
    from loopback_hub import Repo

    hub, command = tmp_path / "hub", [sys.executable, "-m", "eraser_hub"]
    movies = ["--config", "movies", "--source", str(samples / "eraser"), "--out", str(hub)]
    predictions = str(samples / "predictions" / "eraser" / "movies.val.jsonl")
    publish = ["publish", "--namespace", "org", "--folder", str(hub)]
    dataset = ["--dataset", "org/eraser", "--config", "movies", "--split", "val"]
    loopback.repos["models", "lab/lstm"] = Repo()
    for arguments in (
        ["build", "eraser", *movies],
        ["build", "metrics", "--config", "eraser_agreement", "--config", "eraser_faithfulness", "--out", str(hub)],
        publish,
        [*publish, "--check"],
        ["score", *dataset, "--predictions", predictions, "--out", "scores.json"],
        [*publish, "--eval-results", "lab/lstm=scores.json"],
        [*publish, "--eval-results", "lab/lstm=scores.json", "--check"],
    ):
        done = child.call([*command, *arguments], loopback.url, HF_TOKEN=TOKEN)
        assert done.returncode == 0, (arguments, done.stdout, done.stderr)
    scores = json.loads((child.folder / "scores.json").read_text())
    model = loopback.repos["models", "lab/lstm"]
    tree = model.commits[model.branches["main"]]
    entries = huggingface_hub.parse_eval_result_entries(yaml.safe_load(tree[".eval_results/eraser.yaml"][0]))
    data = loopback.repos["datasets", "org/eraser"]
    tasks = {task["id"] for task in yaml.safe_load(data.commits[data.branches["main"]]["eval.yaml"][0])["tasks"]}
    assert {entry.task_id for entry in entries} <= tasks
    assert {entry.dataset_id for entry in entries} == {"org/eraser"}
    values = {entry.task_id: entry.value for entry in entries}
    assert values["movies_validation_token_f1"] == scores["token_macro_f1"]
    assert {entry.notes for entry in entries} == set(scores["signature"])


@pytest.mark.slow
def test_a_corrupted_dataset_is_not_published(loopback, child, samples, tmp_path):
    """A folder whose card and Parquet agree, and whose data the integrity check does not pass."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    hub = tmp_path / "hub"
    command = [sys.executable, "-m", "eraser_hub"]
    build = ["build", "eraser", "--source", str(samples / "eraser"), "--config", "movies", "--out", str(hub)]
    assert child.call([*command, *build], loopback.url).returncode == 0
    path = next((hub / "eraser" / "movies").glob("train-*.parquet"))
    table = pq.read_table(path)
    ids = table["annotation_id"].to_pylist()
    at = table.schema.get_field_index("annotation_id")
    pq.write_table(table.set_column(at, "annotation_id", pa.array([ids[0], *ids[:1], *ids[2:]])), path)
    release = json.loads((hub / "eraser" / "release.json").read_text())
    release["configs"]["movies"]["splits"]["train"]["files"][path.name] = compute_file_digest(path)
    (hub / "eraser" / "release.json").write_text(json.dumps(release))
    done = child.call([*command, "publish", "--namespace", "org", "--folder", str(hub)], loopback.url, HF_TOKEN=TOKEN)
    assert done.returncode == 1 and "`eraser-hub check` does not pass eraser" in done.stderr, done.stderr
    assert not loopback.repos


# each list of words is a call; the results go by place, and stdout of all of them is printed
VERBS = """
import json, sys
from tests.command_line import invoke
calls = [invoke(words) for words in json.loads(sys.argv[1])]
print(json.dumps([[one.exit_code, one.stdout, repr(one.exception)] for one in calls]))
"""


@pytest.fixture
def published(loopback, child, samples, tmp_path) -> Path:
    """All three datasets of the samples, built and published."""
    hub = tmp_path / "hub"
    calls = [["build", name, "--source", str(samples / name), "--out", str(hub)] for name in list_datasets()]
    typed(child, loopback, [*calls, ["publish", "--namespace", "org", "--folder", str(hub)]], HF_TOKEN=TOKEN)
    return hub


def typed(child, loopback, calls: list[list[str]], **more: str) -> list[str]:
    """What each of the calls prints; they succeed."""
    done = child.call([sys.executable, "-c", VERBS, json.dumps(calls)], loopback.url, **more)
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout.splitlines()[-1])
    assert [words for words, (code, _, _) in zip(calls, results, strict=True) if code] == [], results
    return [printed for _, printed, _ in results]


@pytest.mark.slow
def test_each_verb_reads_a_published_dataset_by_its_id(published, loopback, child, samples, tmp_path):
    places = (["org/eraser"], ["org/eraser@main"], ["hf://datasets/org/eraser@main"])
    for verb in ("check", "stats"):
        local, *remote = typed(
            child,
            loopback,
            [[verb, "--dataset", *p, "--format", "csv"] for p in ([str(published / "eraser")], *places)],
        )
        assert remote[1:] == remote[:1] * 2
        assert remote[0].splitlines() == local.splitlines()
    typed(child, loopback, [["export", "--dataset", "org/eraser", "--out", str(tmp_path / "raw")]])
    assert (tmp_path / "raw" / "movies" / "val.jsonl").is_file()
    done = child.call([sys.executable, "-m", "eraser_hub", "stats", "--dataset", "org/eraser@v9"], loopback.url)
    assert done.returncode == 1 and done.stderr.startswith("org/eraser@v9: no folder of that name is here, and the Hub")
    for name, config, split, file in (
        ("eraser", "movies", "validation", "eraser/movies.val.jsonl"),
        ("bilingual_perturbation", "senti_ch", "test", "bilingual_perturbation/senti_ch.jsonl"),
    ):
        check_scoring(
            lambda calls: typed(child, loopback, calls), published / name, config, split, samples, file, tmp_path
        )


def check_scoring(call, folder: Path, config: str, split: str, samples: Path, file: str, out: Path) -> None:
    """score, compare and report print the same for a Hub id as for the folder."""
    one, two = samples / "predictions" / file, out / "again.jsonl"
    two.write_bytes(one.read_bytes())

    def calls(place: list[str], report: Path) -> list[list[str]]:
        where = ["--dataset", *place, "--config", config, "--split", split]
        return [
            ["score", *where, "--predictions", str(one), "--format", "csv"],
            [
                "compare",
                *where,
                "--predictions",
                str(one),
                "--predictions",
                str(two),
                "--resamples",
                "5",
                "--format",
                "csv",
            ],
            ["report", *where, "--predictions", str(one), "--out", str(report)],
        ]

    local, remote = out / f"{config}_local", out / f"{config}_remote"
    expected, scores = call(calls([str(folder)], local)), f"{one.stem}.scores.json"
    for place in ([f"org/{folder.name}@main"], [f"hf://datasets/org/{folder.name}@main"]):
        assert call(calls(place, remote))[:-1] == expected[:-1]
        assert (remote / scores).read_bytes() == (local / scores).read_bytes()
