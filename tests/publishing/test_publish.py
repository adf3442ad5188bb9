"""publish against a Hub on loopback: what is sent, what is refused, and what bad networks lead to."""

from __future__ import annotations

import errno
import json
import shutil
from pathlib import Path

import pytest
from loopback_hub import TOKEN, Repo

from eraser_hub import publish
from eraser_hub.conversion.built import open_built
from eraser_hub.conversion.card import get_dataset_version
from eraser_hub.conversion.dataset import read_release
from eraser_hub.publishing.publisher import client
from eraser_hub.records.errors import DataError, UsageError
from eraser_hub.version import __version__

from ..conversion.signing import sign
from ..refusals import refused


def dataset(loopback):
    return loopback.repos["datasets", "org/eraser"]


def space(loopback):
    return loopback.repos["spaces", "org/toy_overlap"]


def test_everything_built_is_published_and_tagged(publish_toy, loopback, toy_hub, said):
    addresses = publish_toy()
    assert addresses == [f"{loopback.url}/datasets/org/eraser", f"{loopback.url}/spaces/org/toy_overlap"]
    data = dataset(loopback)
    version = get_dataset_version(open_built(toy_hub / "eraser").card)
    assert data.tags == dict.fromkeys((f"v{version}", f"v{__version__}"), data.branches["main"])
    assert set(space(loopback).tags) == {f"v{__version__}", "v0.4.6"}
    assert data.tree["movies/train-00000-of-00001.parquet"][1], "Parquet belongs into LFS"
    assert "release.json" in data.tree
    assert set(space(loopback).tree) == {
        *(".eraser-hub.json", ".gitattributes", "README.md", "app.py", "example.json", "requirements.txt"),
        "toy_overlap.py",
    }
    assert len(data.messages) == 2, "one commit beside the Hub's own first"
    lines = said()
    assert lines.index("  add README.md") < lines.index(f"published {addresses[0]}"), "the plan comes first"


def test_a_second_run_uploads_nothing_and_a_change_only_itself(publish_toy, loopback, toy_hub, said):
    publish_toy()
    said()
    publish_toy()
    assert len(dataset(loopback).messages) == 2
    assert said().count("  nothing to upload") == 2
    (toy_hub / "eraser" / "README.md").write_text((toy_hub / "eraser" / "README.md").read_text() + "\nMore.\n")
    publish_toy(datasets=["eraser"])
    lines = said()
    changed = [line for line in lines if line.startswith(("  add", "  change"))]
    assert changed == ["  change README.md", "  change .eraser-hub.json"]
    assert len(dataset(loopback).messages) == 3
    assert any(f"v{__version__} stays on the commit it names" in line for line in lines)


OTHERS = {
    "movies/alice.parquet": (b"alice", True),
    "movies/train-00001-of-00002.parquet": (b"old", True),
    "notes.py": (b"x", False),
    "LICENSE": (b"x", False),
}


def merge(repo, **changes):
    """Commit files, or with None remove them, as another person does."""
    tree = {**repo.tree, **changes}
    repo.record("main", {path: file for path, file in tree.items() if file is not None}, "by hand")


def rename_boolq(toy_hub):
    """What a build of boolq in more shards would have: other names of its files."""
    for path in (toy_hub / "eraser" / "boolq").iterdir():
        path.rename(path.with_name(path.name.replace("00001", "00009")))

    def rename(configs):
        configs["boolq"]["files"] = [name.replace("00001", "00009") for name in configs["boolq"]["files"]]

    sign_with_card(toy_hub / "eraser", rename)


def sign_with_card(folder, change=lambda _: None):
    """Change ``release.json``, and let it and the card fit the files that stand there."""
    before, card = read_release(folder), folder / "README.md"
    sign(folder, change)
    text = card.read_text()
    for config, entry in read_release(folder).items():
        text = text.replace(before[config]["version"], entry["version"])
    card.write_text(text)


def test_what_others_merged_stays(publish_toy, loopback, toy_hub, said):
    publish_toy()
    for repo in (dataset(loopback), space(loopback)):
        merge(repo, **OTHERS)
    said()
    publish_toy()
    lines = said()
    assert not [line for line in lines if line.startswith("  remove")]
    words = "  left there, since no publish on record wrote them: "
    assert lines.count(words + ", ".join(sorted(OTHERS))) == 2
    for repo in (dataset(loopback), space(loopback)):
        assert OTHERS.items() <= repo.tree.items()
    publish_toy(check=True)


def test_files_of_a_former_publish_are_removed_unless_others_changed_them(publish_toy, loopback, toy_hub, said):
    publish_toy(datasets=["eraser"])
    splits = {path.name.partition("-")[0] for path in (toy_hub / "eraser" / "boolq").iterdir()}
    rename_boolq(toy_hub)
    merge(dataset(loopback), **{"boolq/test-00000-of-00001.parquet": (b"mine", True)})
    publish_toy(datasets=["eraser"])
    removed = {f"boolq/{split}-00000-of-00001.parquet" for split in splits - {"test"}}
    assert {line.removeprefix("  remove ") for line in said() if line.startswith("  remove")} == removed
    tree = dataset(loopback).tree
    assert tree["boolq/test-00000-of-00001.parquet"] == (b"mine", True)
    assert "boolq/train-00000-of-00009.parquet" in tree and not tree.keys() & removed


@pytest.mark.parametrize(
    "manifest", [None, (b"[1]", False), (b"\xff{", False), (b'{"files": {"README.md": 3}}', False)]
)
def test_without_a_manifest_nothing_is_removed(publish_toy, loopback, toy_hub, said, manifest):
    publish_toy(datasets=["eraser"])
    old = ", ".join(sorted(path for path in dataset(loopback).tree if path.startswith("boolq")))
    rename_boolq(toy_hub)
    merge(dataset(loopback), **{".eraser-hub.json": manifest})
    publish_toy(datasets=["eraser"])
    lines = said()
    assert not [line for line in lines if line.startswith("  remove")]
    assert f"  left there, since no publish on record wrote them: {old}" in lines
    assert ".eraser-hub.json" in dataset(loopback).tree


def test_hidden_files_stay_here(publish_toy, loopback, toy_hub, said):
    """The build's files alone are sent."""
    strays = [".env", "README.md.swp", "README.md~", "movies/notes.txt", "notes.md"]
    for name in strays:
        (toy_hub / "eraser" / name).write_text("HF_TOKEN=x")
    publish_toy(datasets=["eraser"])
    tree = dataset(loopback).tree
    assert not tree.keys() & set(strays) and "eraser.png" in tree
    assert f"  left out, since no build wrote them: {', '.join(strays)}" in said()


def test_the_tag_that_evaluate_asks_for_moves_with_main(publish_toy, loopback, toy_hub, metric_source):
    from eraser_hub.publishing.spaces import build_metrics

    publish_toy(metrics=["toy_overlap"])
    module = metric_source / "toy_overlap.py"
    module.write_text(module.read_text() + "\n# newer\n")
    build_metrics(toy_hub, source=metric_source)
    publish_toy(metrics=["toy_overlap"])
    tags = space(loopback).tags
    assert tags["v0.4.6"] == space(loopback).branches["main"] != tags[f"v{__version__}"]


def test_private_and_revision(publish_toy, loopback):
    assert publish_toy(datasets=["eraser"], private=True, revision="next")[0].endswith("/datasets/org/eraser/tree/next")
    repo = dataset(loopback)
    assert repo.private and not repo.tags
    assert "README.md" in repo.commits[repo.branches["next"]] and "README.md" not in repo.tree


def test_a_dry_run_asks_nothing_and_the_hub_set_offline_is_refused(publish_toy, loopback, monkeypatch):
    import huggingface_hub.constants as constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    plan = publish_toy(dry_run=True, endpoint="http://127.0.0.1:9", token=None)
    assert loopback.requests == []
    assert any(line.startswith("  movies/train-00000-of-00001.parquet (") for line in plan)
    assert plan[-1].startswith("dry run:")
    for writes, remedy in ((True, "to publish, or ask for a `dry_run`"), (False, "to read from the Hub")):
        with refused(f"HF_HUB_OFFLINE is set: unset it {remedy}"):
            client(None, "token", writes=writes)


def test_check_compares_and_sends_nothing(publish_toy, loopback, toy_hub, said):
    with refused("(and 1 more)", file="org/eraser"):
        publish_toy(check=True, token=None)
    assert not loopback.repos
    publish_toy()
    asked = len(loopback.requests)
    assert publish_toy(check=True, token=None)[-1] == "what is published is what the folder holds"
    card = toy_hub / "eraser" / "README.md"
    card.write_text(card.read_text() + "\nMore.\n")
    with refused("0 missing, 2 differ", file="org/eraser"):
        publish_toy(check=True, token=None)
    assert "  change README.md" in said()
    assert not any(method in ("POST", "PUT", "DELETE") for method, _ in loopback.requests[asked:])


def test_a_card_loads_what_is_published(publish_toy, loopback, toy_hub):
    card = toy_hub / "eraser" / "README.md"
    code = 'load_dataset("eraser", "movies"); evaluate.load("eraser_agreement"); load_dataset("squad"); load("eraser")'
    card.write_text(f"{card.read_text()}\n{code}\n")
    publish_toy(datasets=["eraser"])
    text = dataset(loopback).tree["README.md"][0].decode()
    assert 'load_dataset("org/eraser", "movies"); evaluate.load("org/eraser_agreement"); load_dataset("squad")' in text
    assert 'load("eraser")' in text and code in card.read_text()


# -- what is refused before anything is sent --------------------------------------------------------------------------


@pytest.fixture
def unsent(loopback):
    yield
    assert not any(method in ("POST", "PUT", "DELETE") for method, _ in loopback.requests), "nothing may be sent"


@pytest.mark.parametrize(
    ("change", "file"),
    [
        (lambda path: shutil.copy(path.with_name("train-00000-of-00001.parquet"), path),
         "eraser/movies/test-00000-of-00001.parquet"),
        (Path.unlink, "eraser/release.json"),
        (lambda path: path.write_text("import os\n"), "toy_overlap/toy_overlap.py"),
        (Path.unlink, "toy_overlap/app.py"),
        (lambda path: path.symlink_to(__file__), "eraser/notes.txt"),
    ],
)  # fmt: skip
def test_a_folder_that_build_did_not_write_so_is_refused(publish_toy, unsent, toy_hub, change, file):
    change(toy_hub / file)
    with refused(file.partition("/")[2]):
        publish_toy()


def test_data_that_the_integrity_check_does_not_pass_are_refused(publish_toy, unsent, toy_hub):
    """Card, digests and Parquet agree, and an id stands twice."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = toy_hub / "eraser" / "movies" / "train-00000-of-00001.parquet"
    table = pq.read_table(path)
    ids = table["annotation_id"].to_pylist()
    pq.write_table(table.set_column(0, "annotation_id", pa.array([ids[0], ids[0], *ids[2:]])), path)
    sign_with_card(toy_hub / "eraser")
    with refused("`eraser-hub check` does not pass eraser", repr(ids[0])):
        publish_toy(datasets=["eraser"])


def test_unknown_names_and_empty_folders(publish_toy, unsent, toy_hub):
    with refused("dataset 'moovies'", " eraser, "):
        publish_toy(datasets=["moovies"])
    with refused("metric 'eraser'", "there are toy_overlap"):
        publish_toy(metrics=["eraser"])
    with refused("build human_rationales", file=toy_hub / "human_rationales"):
        publish_toy(datasets=["human_rationales"])
    shutil.rmtree(toy_hub)
    with refused(file=toy_hub):
        publish_toy()


@pytest.mark.parametrize("change", [lambda path: path.write_text("---\nconfigs: []\n---\n"), Path.unlink])
def test_a_file_changed_after_the_check_is_refused(publish_toy, toy_hub, loopback, monkeypatch, change):
    from eraser_hub.publishing import uploads

    planned = uploads.describe_plan

    def plan(upload, changes):
        if upload.kind == "space":
            change(toy_hub / "eraser" / "README.md")
        return planned(upload, changes)

    monkeypatch.setattr(uploads, "describe_plan", plan)
    with refused(f"{toy_hub / 'eraser'}: ", "org/eraser, org/toy_overlap"):
        publish_toy()
    assert not loopback.repos


# -- bad networks -----------------------------------------------------------------------------------------------------

CREATE, COMMIT = ("POST", "/api/repos/create"), ("POST", "/commit/")


def failing(publish_toy, said, *mentions, **more):
    with refused("org/eraser", *mentions) as caught:
        publish_toy(datasets=["eraser"], **more)
    lines = said()
    assert TOKEN not in str(caught.error) + "\n".join(lines)
    assert not any(line.startswith("published") for line in lines)
    return lines


@pytest.mark.parametrize(
    ("fault", "state", "mentions", "tries"),
    [
        (None, {"token": "hf_" + "another" * 4}, ("(401: ", "`hf auth login`"), 1),
        (None, {"may_write": False}, ("(403: You don't have the rights",), 1),
        ((*CREATE, 429, 1, {"Retry-After": "7200"}), {}, ("(429", " 7200 s"), 1),
        ((*CREATE, 500, 99), {}, ("(500: fault 500)",), 4),
        (("POST", "/preupload/", 404, 9, {"X-Error-Code": "RepoNotFound"}), {}, ("(404",), 1),
    ],
)
def test_a_lasting_fault_ends_in_words(publish_toy, loopback, said, fault, state, mentions, tries):
    vars(loopback).update(state)
    if fault:
        method, path, status, times, *headers = fault
        loopback.fail(method, path, status, times=times, headers=headers[0] if headers else {})
    failing(publish_toy, said, *mentions)
    assert loopback.count(*CREATE) == tries


def test_nobody_there_and_no_token(publish_toy, said, monkeypatch):
    import huggingface_hub

    lines = failing(publish_toy, said, " http://127.0.0.1:9: ", endpoint="http://127.0.0.1:9")
    assert sum("http://127.0.0.1:9" in line for line in lines) == 3
    monkeypatch.setattr(huggingface_hub, "get_token", lambda: None)
    with refused("`hf auth login`", "HF_TOKEN"):
        publish_toy(token=None)


@pytest.mark.parametrize(
    ("faults", "words"),
    [
        ([(*COMMIT, 409, {})], ["(409"]),
        ([(*CREATE, 429, {"headers": {"Retry-After": "0.02"}})], ["(429: fault 429); it asks to wait 0.02 s"]),
        ([(*CREATE, 500, {"times": 2}), ("POST", "/tag/", 503, {})], ["(500: ", "(500: ", "(503: "]),
        ([("PUT", "/objects/", 0, {})], []),
        ([(*COMMIT, 0, {"after": True})], []),  # it took effect, and its answer is lost
    ],
)
def test_a_passing_fault_is_met_by_a_fresh_try(publish_toy, loopback, said, faults, words):
    for method, path, status, more in faults:
        loopback.fail(method, path, status, **more)
    publish_toy(datasets=["eraser"])
    lines = [line for line in said() if "; trying again in " in line and "(" in line]
    assert [word in line for word, line in zip(words, lines, strict=bool(words))] == [True] * len(words)
    repo = dataset(loopback)
    assert set(repo.tree) > {"README.md", "release.json"} and repo.tags
    assert len({json.dumps(sorted(tree)) for tree in repo.commits.values()}) == 2, "one commit beside the Hub's own"


def test_an_upload_that_broke_off_goes_on_where_it_stopped(publish_toy, loopback, said):
    loopback.fail("POST", "/commit/", 507, times=99)
    failing(publish_toy, said, "(507", "not published: org/eraser;")
    repo, sent = dataset(loopback), loopback.count("PUT", "/objects/")
    assert sent and len(repo.messages) == 1 and not repo.tags, "nothing half-published"
    loopback.faults.clear()
    publish_toy(datasets=["eraser"])
    assert loopback.count("PUT", "/objects/") == sent, "what had arrived is not sent again"
    assert repo.tags


def test_the_second_repository_fails(publish_toy, loopback, said):
    loopback.fail("POST", "/api/spaces/.*/commit/", 403, times=9)
    published = f"published: {loopback.url}/datasets/org/eraser; not published: org/toy_overlap;"
    with refused("403", published):
        publish_toy()
    assert dataset(loopback).tags


def test_a_full_disk_here_and_a_commit_that_did_not_arrive_whole(publish_toy, said, monkeypatch):
    import huggingface_hub

    def full(*_args, **_more):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(huggingface_hub.HfApi, "create_commit", full)
        failing(publish_toy, said, "no space left")
    whole = Repo.record

    def lossy(self, branch, tree, message):
        return whole(self, branch, {path: file for path, file in tree.items() if path != "release.json"}, message)

    monkeypatch.setattr(Repo, "record", lossy)
    failing(publish_toy, said, " release.json;")


def test_tokens_never_come_out():
    from eraser_hub.publishing.hub_errors import explain_error, redact

    text = redact(f"Authorization: Bearer {TOKEN} at https://me:{TOKEN}@hub/ and {TOKEN}", TOKEN)
    assert TOKEN not in text and "me:" not in text
    other = "hf_" + "abcdefgh12345678"
    assert other not in str(explain_error(RuntimeError(f"bad {other}"), "create", "http://hub", None))


@pytest.mark.parametrize(
    ("wrong", "argument"),
    [
        ({"namespace": "a..b"}, "namespace"),
        ({"eval_results": "a/b/c=scores.json", "dry_run": True}, "eval_results"),
        ({"revision": "../main"}, "revision"),
        ({"check": True, "dry_run": True}, "check"),
        ({"eval_results": "lab/lstm"}, "eval_results"),
    ],
)
def test_what_cannot_be(wrong, argument, tmp_path):
    with refused(argument=argument, type=UsageError if argument != "eval_results" else DataError):
        publish(**{"namespace": "org", "folder": tmp_path, **wrong})
