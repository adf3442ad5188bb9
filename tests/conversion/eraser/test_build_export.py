"""build -> load_dataset -> export gives every record and document back; a build is all or nothing."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from datasets import load_dataset
from hypothesis import HealthCheck, given, settings

import eraser_hub
from eraser_hub.conversion import HUB_DATASETS
from eraser_hub.conversion.built import open_built
from eraser_hub.conversion.dataset import PartlyBuilt
from eraser_hub.conversion.eraser import build as eraser_build
from eraser_hub.conversion.eraser import splits as eraser_splits
from eraser_hub.conversion.eraser.configs import CONFIGS
from eraser_hub.conversion.eraser.export import COLUMNS, write_split
from eraser_hub.conversion.errors import DataErrors
from eraser_hub.records import readers
from eraser_hub.records.errors import BusyError, DataError, make_printable
from eraser_hub.records.files import hold_lock

from ...command_line import invoke
from ...refusals import refused
from .corpus_strategies import corpora as arbitrary_corpora
from .corpus_strategies import values, write

ERASER = HUB_DATASETS["eraser"]
NOT_DATA = ("README", "dev_data.jsonl", "test_data.jsonl")


def files(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def raw_files(folder: Path) -> dict[str, bytes]:
    return {
        name: data
        for name, data in files(folder).items()
        if name not in NOT_DATA and not name.startswith("human_performance") and not name.endswith(".bak")
    }


@pytest.fixture(scope="module")
def sample_hub(tmp_path_factory, samples: Path) -> Path:
    out = tmp_path_factory.mktemp("hub")
    ERASER.build(None, source=samples / "eraser", out=out)
    return out


@pytest.mark.parametrize("config", CONFIGS)
def test_samples_come_back_byte_for_byte(config, samples, sample_hub, tmp_path):
    ERASER.export(sample_hub / "eraser", [config], out=tmp_path)
    assert raw_files(tmp_path / config) == raw_files(samples / "eraser" / config)


@pytest.mark.parametrize("config", ["movies", "multirc", "fever", "boolq", "evidence_inference", "cose"])
def test_real_corpora_come_back_byte_for_byte(config, corpora, tmp_path):
    if not (corpora / config).is_dir():
        pytest.skip(f"skipped: no {config} among the real corpora")
    ERASER.build([config], source=corpora, out=tmp_path / "hub")
    ERASER.export(tmp_path / "hub" / "eraser", None, out=tmp_path / "raw")
    assert raw_files(tmp_path / "raw" / config) == raw_files(corpora / config)


@pytest.mark.parametrize("config", CONFIGS)
def test_what_load_dataset_gives_is_enough_to_write_the_records_back(
    config, samples, sample_hub, tmp_path, monkeypatch
):
    monkeypatch.chdir(sample_hub)
    loaded = load_dataset("eraser", config, cache_dir=str(tmp_path / "cache"))
    release = json.loads((sample_hub / "eraser" / "release.json").read_text())["configs"][config]["splits"]
    assert list(loaded) == list(release)
    for split, facts in release.items():
        table = loaded[split].with_format("arrow")[:].select(COLUMNS)
        write_split([table], tmp_path, facts, CONFIGS[config].label_names, {})
        name = facts["file"]
        assert (tmp_path / name).read_bytes() == (samples / "eraser" / config / name).read_bytes()
        assert loaded[split].features["classification"].names == list(CONFIGS[config].label_names)


@settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(arbitrary_corpora())
def test_arbitrary_corpora_come_back_equal(tmp_path_factory, corpus):
    folder = tmp_path_factory.mktemp("any")
    raw = write(folder / "in", corpus)
    ERASER.build([corpus["config"]], source=folder / "in", out=folder / "hub")
    ERASER.export(folder / "hub" / "eraser", None, out=folder / "out")
    assert values(folder / "out" / corpus["config"]) == values(raw)
    shutil.rmtree(folder)


def small(folder: Path, **changes) -> Path:
    """A movies corpus of three lines; ``changes`` replace the second record's fields."""
    target = folder / "movies"
    (target / "docs").mkdir(parents=True)
    lines = []
    for number, name in enumerate(("one", "two", "three")):
        (target / "docs" / name).write_text("a b c\nd e")
        evidence = {
            "docid": name,
            "text": "b",
            "start_token": 1,
            "end_token": 2,
            "start_sentence": 0,
            "end_sentence": 1,
        }
        record = {
            "annotation_id": name,
            "classification": "POS",
            "evidences": [[evidence]],
            "query": "q",
            "query_type": None,
        }
        if number == 1:
            evidence.update({key: value for key, value in changes.items() if key in evidence})
            record.update({key: value for key, value in changes.items() if key in record})
        lines.append(json.dumps(record))
    (target / "train.jsonl").write_text("\n".join(lines) + "\n")
    return target


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"end_token": 6}, "has 5 tokens, found the end 6"),
        ({"start_token": 3}, "at or after the start 3, found 2"),
        ({"start_token": -2}, "found -2"),
        ({"docid": "gone"}, "found 'gone', which is not there"),
        ({"docid": "../docs/one"}, "which is not there"),
        ({"classification": "GOOD"}, "expected one of 'NEG', 'POS', found 'GOOD'"),
        ({"annotation_id": "one"}, "again (first on line 1)"),
        ({"query": None}, "found null"),
    ],
)
def test_bad_records_are_named_and_leave_nothing_behind(changes, said, tmp_path):
    raw = small(tmp_path / "in", **changes)
    outcome = invoke(["build", "eraser", "--source", tmp_path / "in", "--out", tmp_path / "hub"])
    assert outcome.exit_code == 1 and said in outcome.stderr
    assert f"{raw / 'train.jsonl'}:2: " in outcome.stderr
    assert not (tmp_path / "hub").exists()


def test_the_command_line_says_file_and_line_and_exits_with_1(tmp_path):
    small(tmp_path / "in", end_token=99)
    command = [
        sys.executable,
        "-m",
        "eraser_hub",
        "build",
        "eraser",
        "--source",
        str(tmp_path / "in"),
        "--out",
        str(tmp_path / "h"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "train.jsonl:2: " in done.stderr and "Traceback" not in done.stderr
    unknown = subprocess.run([*command, "--config", "nonsense"], capture_output=True, text=True, check=False)
    assert unknown.returncode == 2 and "Traceback" not in unknown.stderr


def test_a_failed_build_leaves_the_old_folder_as_it_was(tmp_path):
    small(tmp_path / "good")
    small(tmp_path / "bad", end_token=99)
    ERASER.build(None, source=tmp_path / "good", out=tmp_path / "hub")
    before = files(tmp_path / "hub")
    with refused(99, file="bad/movies/train.jsonl", line=2, field="evidences[0][0].end_token"):
        ERASER.build(None, source=tmp_path / "bad", out=tmp_path / "hub")
    assert files(tmp_path / "hub") == before


def test_every_kind_of_damage_ends_in_success_or_in_a_clear_error(samples, tmp_path):
    """Each byte class of a split file changed at many places: truncated, flipped, doubled, reordered."""
    source = samples / "eraser" / "boolq"
    data = (source / "train.jsonl").read_bytes()
    lines = data.splitlines(keepends=True)
    damaged = [data[:cut] for cut in range(0, len(data), 97)]
    damaged += [data[:at] + bytes([data[at] ^ (1 << at % 8)]) + data[at + 1 :] for at in range(0, len(data), 41)]
    damaged += [
        b"".join(reversed(lines)),
        data + data,
        b"\xef\xbb\xbf" + data,
        data.replace(b"\n", b"\r\n"),
        data[::-1],
    ]
    shutil.copytree(source, tmp_path / "in" / "boolq")
    outcomes = set()
    for number, change in enumerate(damaged):
        (tmp_path / "in" / "boolq" / "train.jsonl").write_bytes(change)
        out = tmp_path / f"hub{number}"
        try:
            ERASER.build(None, source=tmp_path / "in", out=out)
            outcomes.add("built")
        except DataError as error:
            assert "train.jsonl" in str(error), error
            assert not out.exists()
            outcomes.add("refused")
    assert outcomes == {"built", "refused"}


def test_building_one_config_keeps_the_others(samples, tmp_path):
    ERASER.build(["cose", "movies"], source=samples / "eraser", out=tmp_path)
    before = files(tmp_path / "eraser" / "cose")
    ERASER.build(["boolq"], source=samples / "eraser", out=tmp_path)
    assert files(tmp_path / "eraser" / "cose") == before
    release = json.loads((tmp_path / "eraser" / "release.json").read_text())
    assert list(release["configs"]) == ["movies", "boolq", "cose"]
    assert "config_name: movies" in (tmp_path / "eraser" / "README.md").read_text()


def test_a_folder_of_someone_else_is_not_replaced(samples, tmp_path):
    (tmp_path / "eraser").mkdir()
    (tmp_path / "eraser" / "thesis.txt").write_text("years of work")
    with refused("release.json", "`out`", file=tmp_path / "eraser"):
        ERASER.build(["cose"], source=samples / "eraser", out=tmp_path)
    assert files(tmp_path) == {"eraser/thesis.txt": b"years of work"}


def test_processes_do_not_change_a_byte(samples, tmp_path):
    names = ["cose", "fever", "movies", "esnli"]
    ERASER.build(names, source=samples / "eraser", out=tmp_path / "two", num_proc=2)
    ERASER.build(names, source=samples / "eraser", out=tmp_path / "one")
    assert files(tmp_path / "one") == files(tmp_path / "two")


@pytest.mark.parametrize("num_proc", [1, 2])
def test_where_nothing_can_be_built_each_error_is_told(samples, tmp_path, num_proc):
    for name in ("cose", "esnli"):
        shutil.copytree(samples / "eraser" / name, tmp_path / "in" / name)
        (tmp_path / "in" / name / "docs.jsonl").write_text("[]")
    with refused(line=1, total=2, type=DataErrors) as caught:
        ERASER.build(None, source=tmp_path / "in", out=tmp_path / "hub", num_proc=num_proc)
    expected = [tmp_path / "in" / name / "docs.jsonl" for name in ("cose", "esnli")]
    assert [error.file for error in caught.error.errors] == expected
    assert not (tmp_path / "hub").exists()


@pytest.mark.parametrize("num_proc", [1, 2])
@pytest.mark.parametrize("damage", ["val.jsonl", "docs.jsonl", "no splits"])
def test_one_bad_corpus_keeps_no_other_from_being_built(samples, tmp_path, num_proc, damage):
    names = ["cose", "esnli", "movies"]
    for name in names:
        shutil.copytree(samples / "eraser" / name, tmp_path / "in" / name)
    before = ERASER.build(["cose"], source=tmp_path / "in", out=tmp_path / "hub").folder
    old = files(before / "cose") | files(before / "documents")
    for path in (tmp_path / "in" / "cose").glob("*.jsonl" if damage == "no splits" else damage):
        path.write_text(path.read_text(encoding="utf-8") + "{\n", encoding="utf-8")
        if damage == "no splits":
            path.unlink()
    with refused(tmp_path / "in" / "cose", total=1, type=PartlyBuilt) as caught:
        ERASER.build(names, source=tmp_path / "in", out=tmp_path / "hub", num_proc=num_proc)
    assert list(caught.error.result.rows) == ["movies", "esnli"]
    assert any(note.startswith("cose: ") for note in caught.error.result.notes)
    assert (files(before / "cose") | files(before / "documents")).items() >= old.items(), "what stood there stays"
    assert set(load_splits(before)) == {"cose", "movies", "esnli"}
    ERASER.build(["movies", "esnli"], source=samples / "eraser", out=tmp_path / "other")
    for name in ("movies", "esnli"):
        assert files(before / name) == files(tmp_path / "other" / "eraser" / name)
    with refused(tmp_path / "in" / "cose", type=PartlyBuilt):
        ERASER.build(names, source=tmp_path / "in", out=tmp_path / "new")
    assert not list((tmp_path / "new").rglob("*cose*"))


def load_splits(folder: Path) -> dict[str, list[str]]:
    built = open_built(folder)
    return {config: list(built.splits(config)) for config in built.configs}


def test_the_command_names_the_bad_corpus_and_exits_with_1(samples, tmp_path):
    shutil.copytree(samples / "eraser" / "cose", tmp_path / "in" / "cose")
    shutil.copytree(samples / "eraser" / "multirc", tmp_path / "in" / "multirc")
    (tmp_path / "in" / "multirc" / "val.jsonl").write_text("{}\n")
    command = [sys.executable, "-m", "eraser_hub", "build", "eraser", "--source", str(tmp_path / "in"), "--out", "hub"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 1 and "hub/eraser: cose: train" in run.stderr
    assert "\nmultirc: " in f"\n{run.stderr}" and f"{tmp_path}/in/multirc/val.jsonl:1: " in run.stderr


def test_where_no_other_process_starts_this_one_builds(samples, tmp_path):
    """A script that lacks ``if __name__ == "__main__"`` cannot start others."""
    script = tmp_path / "script.py"
    script.write_text(
        "import sys; from pathlib import Path; from eraser_hub.conversion import HUB_DATASETS\n"
        "source, out = map(Path, sys.argv[1:])\n"
        "HUB_DATASETS['eraser'].build(['cose', 'movies'], source=source, out=out, num_proc=2)\n"
    )
    command = [sys.executable, str(script), str(samples / "eraser"), str(tmp_path / "hub")]
    subprocess.run(command, check=True, capture_output=True)
    assert sorted(path.name for path in (tmp_path / "hub").iterdir()) == ["eraser"]


def test_errors_of_a_later_batch_tell_the_files_line(samples, tmp_path, monkeypatch):
    monkeypatch.setattr(readers.read_line_batches, "__defaults__", (1500, *readers.read_line_batches.__defaults__[1:]))
    shutil.copytree(samples / "eraser" / "cose", tmp_path / "in" / "cose")
    documents, split = (tmp_path / "in" / "cose" / name for name in ("docs.jsonl", "train.jsonl"))
    held = split.read_text().splitlines()
    split.write_text("\n".join([*held[:-1], held[-1].replace('"query"', '"quarry"')]) + "\n")
    with refused("'query'", file=split, line=len(held)):
        ERASER.build(["cose"], source=tmp_path / "in", out=tmp_path / "hub")
    held = documents.read_text().splitlines()
    documents.write_text("\n".join([*held[:-1], held[0]]) + "\n")
    with refused("line 1)", file=documents, line=len(held)):
        ERASER.build(["cose"], source=tmp_path / "in", out=tmp_path / "hub")
    documents.write_text("\n".join([*held[:-1], "[1]"]) + "\n")
    with refused(file=documents, line=len(held)):
        ERASER.build(["cose"], source=tmp_path / "in", out=tmp_path / "hub")
    assert not (tmp_path / "hub").exists()


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (lambda one, two: [one + two, ""], 1),
        (lambda one, two: [one + " " + two, ""], 1),
        (lambda one, two: ["", one + two], 1),
        (lambda one, two: [one[:30], one[30:] + two], 1),
        (lambda one, two: [one, two + "{}"], 2),
    ],
)
def test_a_line_is_one_record(change, line, tmp_path):
    """JSON that would be whole without the lines' ends is refused all the same."""
    raw = small(tmp_path / "in")
    lines = (raw / "train.jsonl").read_text().splitlines()
    (raw / "train.jsonl").write_text("\n".join([*change(*lines[:2]), lines[2]]) + "\n")
    with refused(file=raw / "train.jsonl", line=line):
        ERASER.build(None, source=tmp_path / "in", out=tmp_path / "hub")


def test_a_build_imports_no_pandas(samples, tmp_path):
    code = (
        "import sys; from pathlib import Path; from eraser_hub.conversion import HUB_DATASETS;"
        "HUB_DATASETS['eraser'].build(None, source=Path(sys.argv[1]), out=Path(sys.argv[2]));"
        "sys.exit('pandas' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code, str(samples / "eraser"), str(tmp_path)], check=True)


def test_skipped_files_are_named_with_the_reason(samples, tmp_path):
    notes = "\n".join(ERASER.build(["movies", "boolq", "fever"], source=samples / "eraser", out=tmp_path).notes)
    for name, reason in (
        ("human_performance_1.jsonl", "predictions"),
        ("human_performance.jsonl", "predictions"),
        (
            "dev_data.jsonl",
            "another format (its first line: docids: expected a list or null, found the string",
        ),
        ("test_data.jsonl", "another format"),
        ("test.jsonl.bak", "is a backup, whose own records are not built: 'posR_104.txt'"),
        ("README", "no .jsonl file"),
    ):
        assert any(name in line and reason in line for line in notes.splitlines()), name


def test_a_locale_without_letters_changes_nothing(samples, tmp_path):
    """LC_ALL=C, and Python told not to help: fever's documents have names beyond ASCII."""
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    door = [sys.executable, "-m", "eraser_hub"]
    for command in (
        ["build", "eraser", "--source", str(samples / "eraser"), "--config", "fever", "--out", str(tmp_path)],
        ["check", "--dataset", str(tmp_path / "eraser")],
        ["stats", "--dataset", str(tmp_path / "eraser"), "--format", "latex"],
        ["export", "--dataset", str(tmp_path / "eraser"), "--out", str(tmp_path / "raw")],
    ):
        run = subprocess.run([*door, *command], env=environment, capture_output=True, check=False)
        assert run.returncode == 0, run.stderr
    assert raw_files(tmp_path / "raw" / "fever") == raw_files(samples / "eraser" / "fever")
    assert any(not name.isascii() for name in raw_files(tmp_path / "raw" / "fever"))


def test_keys_beyond_the_format_are_told(samples, tmp_path):
    shutil.copytree(samples / "eraser" / "cose", tmp_path / "cose")
    lines = (tmp_path / "cose" / "val.jsonl").read_text().splitlines()
    lines[0] = json.dumps({**json.loads(lines[0]), "zebra": [1]})
    (tmp_path / "cose" / "val.jsonl").write_text("\n".join(lines) + "\n")
    notes = ERASER.build(["cose"], source=tmp_path, out=tmp_path / "hub").notes
    (line,) = (line for line in notes if "zebra" in line)
    assert line.startswith(f"{tmp_path / 'cose' / 'val.jsonl'}: keys beyond the format are kept for export")


def test_an_archive_is_read_like_a_folder(samples, tmp_path, monkeypatch):
    monkeypatch.setenv("ERASER_HUB_CACHE", str(tmp_path / "cache"))
    with tarfile.open(tmp_path / "cose.tar.gz", "w:gz") as tar:
        tar.add(samples / "eraser" / "cose", "cose")
    ERASER.build(None, source=tmp_path, out=tmp_path / "hub")
    ERASER.export(tmp_path / "hub" / "eraser", None, out=tmp_path / "raw")
    assert raw_files(tmp_path / "raw" / "cose") == raw_files(samples / "eraser" / "cose")


def test_links_inside_a_source_are_followed(samples, tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "movies").symlink_to(samples / "eraser" / "movies")
    ERASER.build(None, source=tmp_path / "in", out=tmp_path / "hub")
    assert (tmp_path / "hub" / "eraser" / "movies").is_dir()


def test_a_dataset_folder_that_is_a_link_is_built_where_it_leads(samples, tmp_path):
    ERASER.build(["cose"], source=samples / "eraser", out=tmp_path / "elsewhere")
    (tmp_path / "hub").mkdir()
    (tmp_path / "hub" / "eraser").symlink_to(tmp_path / "elsewhere" / "eraser")
    ERASER.build(["movies"], source=samples / "eraser", out=tmp_path / "hub")
    assert (tmp_path / "hub" / "eraser").is_symlink()
    assert sorted(p.name for p in tmp_path.glob("*/*")) == ["eraser", "eraser"]
    assert (tmp_path / "elsewhere" / "eraser" / "movies").is_dir()
    assert (tmp_path / "elsewhere" / "eraser" / "cose").is_dir()


def test_a_docs_jsonl_that_is_no_file_is_named(samples, tmp_path):
    shutil.copytree(samples / "eraser" / "movies", tmp_path / "in" / "movies")
    (tmp_path / "in" / "movies" / "docs.jsonl").symlink_to(tmp_path / "nowhere")
    notes = ERASER.build(None, source=tmp_path / "in", out=tmp_path / "hub").notes
    assert any("docs.jsonl: skipped: is no file" in note for note in notes)


def test_a_name_that_is_no_utf8_is_told_by_its_bytes(samples, tmp_path):
    shutil.copytree(samples / "eraser" / "movies", tmp_path / "in" / "movies")
    try:
        (tmp_path / "in" / "movies" / os.fsdecode(b"x\xff")).write_bytes(b"")
    except OSError:
        pytest.skip("this file system takes names of UTF-8 alone")
    result = ERASER.build(None, source=tmp_path / "in", out=tmp_path / "hub")
    assert any("x<U+DCFF>: skipped: is no .jsonl file" in make_printable(note) for note in result.notes)
    release = json.loads((tmp_path / "hub" / "eraser" / "release.json").read_text("utf-8"))
    assert "x<U+DCFF>" in [each["file"] for each in release["configs"]["movies"]["skipped"]]


def test_document_names_are_data(tmp_path):
    """Names that look alike are two, and those that look like paths are names: in docs.jsonl all come back."""
    names = ["caf\u00e9", "cafe\u0301", "../../etc/passwd", "/etc/passwd", "..", ".", "", "a\x00b", "CON", "x" * 300]
    raw = tmp_path / "in" / "cose"
    raw.mkdir(parents=True)
    documents = [{"docid": name, "document": f"a text {number}"} for number, name in enumerate(names)]
    records = [
        {
            "annotation_id": f"{number}",
            "classification": "A",
            "docids": [name],
            "evidences": [],
            "query": "",
            "query_type": None,
        }
        for number, name in enumerate(names)
    ]
    (raw / "docs.jsonl").write_text("".join(json.dumps(each) + "\n" for each in documents))
    (raw / "train.jsonl").write_text("".join(json.dumps(each, sort_keys=True) + "\n" for each in records))
    ERASER.build(None, source=tmp_path / "in", out=tmp_path / "hub")
    ERASER.export(tmp_path / "hub" / "eraser", None, out=tmp_path / "out")
    assert files(tmp_path / "out") == files(tmp_path / "in")


def test_export_replaces_its_own_files_with_force_alone(sample_hub, samples, tmp_path):
    (tmp_path / "cose").mkdir()
    (tmp_path / "cose" / "mine").write_text("x")
    with refused(file=tmp_path / "cose"):
        ERASER.export(sample_hub / "eraser", ["cose"], out=tmp_path)
    assert files(tmp_path) == {"cose/mine": b"x"}
    (tmp_path / "cose" / "val.jsonl").write_text("old")
    ERASER.export(sample_hub / "eraser", ["cose"], out=tmp_path, force=True)
    assert raw_files(tmp_path / "cose") == raw_files(samples / "eraser" / "cose") | {"mine": b"x"}


def test_a_second_build_says_that_one_is_at_work(samples, tmp_path):
    tmp_path.joinpath("hub").mkdir()
    with hold_lock(tmp_path / "hub" / ".eraser.lock", ""), refused(file=tmp_path / "hub", type=BusyError):
        ERASER.build(["cose"], source=samples / "eraser", out=tmp_path / "hub")
    ERASER.build(["cose"], source=samples / "eraser", out=tmp_path / "hub")
    assert sorted(p.name for p in (tmp_path / "hub").iterdir()) == ["eraser"]


_SLOW = """
import sys, time
from pathlib import Path
from eraser_hub.conversion.dataset import PartlyBuilt
from eraser_hub.conversion.eraser import build as eraser_build
from eraser_hub.conversion import HUB_DATASETS
write = eraser_build._ConfigBuild.write
def slowly(*arguments):
    facts = write(*arguments)
    print("wrote", flush=True)
    time.sleep(0.3)
    return facts
eraser_build._ConfigBuild.write = slowly
HUB_DATASETS["eraser"].build(sys.argv[3:], source=Path(sys.argv[1]), out=Path(sys.argv[2]))
"""


@pytest.mark.parametrize("written", [1, 3, 5])
def test_a_killed_build_leaves_the_old_folder_and_the_next_one_starts_again(written, samples, tmp_path):
    source, out = samples / "eraser", tmp_path / "hub"
    ERASER.build(["movies"], source=source, out=out)
    before = files(out / "eraser")
    command = [sys.executable, "-c", _SLOW, str(source), str(out), "cose", "fever"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for _ in range(written):
            assert process.stdout.readline() == "wrote\n"
        os.kill(process.pid, signal.SIGKILL)
    assert files(out / "eraser") == before
    ERASER.build(["cose", "fever"], source=source, out=out)
    ERASER.build(["cose", "fever", "movies"], source=source, out=tmp_path / "fresh")
    assert files(out / "eraser") == files(tmp_path / "fresh" / "eraser")
    assert sorted(p.name for p in out.iterdir()) == ["eraser"]


def test_a_full_disk_is_said_and_changes_nothing(samples, tmp_path, monkeypatch):
    ERASER.build(["movies"], source=samples / "eraser", out=tmp_path)
    before = files(tmp_path)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(eraser_build, "write_parquet", full)
    with refused(file=tmp_path / "eraser"):
        ERASER.build(["cose"], source=samples / "eraser", out=tmp_path)
    assert files(tmp_path) == before


def test_many_shards_and_batches_come_back_byte_for_byte(samples, tmp_path, monkeypatch):
    monkeypatch.setattr(eraser_splits, "SHARD_BYTES", 800)
    monkeypatch.setattr(eraser_splits, "BATCH_BYTES", 300)
    names = ["cose", "esnli", "fever", "boolq"]
    ERASER.build(names, source=samples / "eraser", out=tmp_path / "hub")
    assert len(list((tmp_path / "hub" / "eraser").glob("*/*-00001-of-*.parquet"))) > 5
    ERASER.export(tmp_path / "hub" / "eraser", None, out=tmp_path / "raw")
    for name in names:
        assert raw_files(tmp_path / "raw" / name) == raw_files(samples / "eraser" / name)


def test_a_build_keeps_parquet_of_others(samples, tmp_path):
    for names in (["movies"], ["movies"], ["cose"]):
        ERASER.build(names, out=tmp_path, source=samples / "eraser")
        (tmp_path / "eraser" / "movies" / "alice.parquet").write_bytes(b"alice")
        assert (tmp_path / "eraser" / "movies" / "train-00000-of-00001.parquet").is_file()
    ERASER.build(["movies"], out=tmp_path, source=samples / "eraser")
    assert (tmp_path / "eraser" / "movies" / "alice.parquet").read_bytes() == b"alice"


def test_an_export_into_its_own_dataset_is_refused(samples, tmp_path):
    folder = eraser_hub.build("eraser", samples / "eraser", config="movies", out=tmp_path).folder
    with refused("outside the dataset", argument="out"):
        eraser_hub.export(folder, out=folder, force=True)
