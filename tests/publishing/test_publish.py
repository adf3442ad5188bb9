"""publish against a Hub on loopback: what is sent, what is refused, and what bad networks lead to."""

from __future__ import annotations

import contextlib
import errno
import json
import sys
from pathlib import Path

import pytest
from loopback_hub import TOKEN

from eraser_hub import publish
from eraser_hub.publishing.publisher import client
from eraser_hub.records.errors import DataError, UsageError
from eraser_hub.version import __version__

from ..refusals import refused
from .conftest import record_digests


def commits(loopback, kind, name="org/eraser"):
    return loopback.repos[kind, name].messages


def test_everything_built_is_published_and_tagged(publish_toy, loopback, said):
    addresses = publish_toy()
    assert addresses == [f"{loopback.url}/datasets/org/eraser", f"{loopback.url}/spaces/org/toy_overlap"]
    data, space = loopback.repos["datasets", "org/eraser"], loopback.repos["spaces", "org/toy_overlap"]
    assert data.tags == {"v1.2.0": data.branches["main"]}
    assert set(space.tags) == {f"v{__version__}", "v0.4.6"}
    tree = data.commits[data.branches["main"]]
    assert tree["movies/train-00000-of-00001.parquet"][1], "Parquet belongs into LFS"
    assert "release.json" in tree
    files = set(space.commits[space.branches["main"]])
    assert files == {
        *(".eraser-hub.json", ".gitattributes", "README.md", "app.py", "example.json", "requirements.txt"),
        "toy_overlap.py",
    }
    assert len(data.messages) == 2, "one commit beside the Hub's own first"
    # the plan comes before the addresses
    assert said.index("  add README.md") < said.index(f"published {addresses[0]}")


def test_a_second_run_uploads_nothing_and_a_change_only_itself(publish_toy, loopback, toy_hub, said):
    publish_toy()
    said.clear()
    publish_toy()
    assert len(commits(loopback, "datasets")) == 2
    assert said.count("  nothing to upload") == 2
    (toy_hub / "eraser" / "README.md").write_text((toy_hub / "eraser" / "README.md").read_text() + "\nMore.\n")
    said.clear()
    publish_toy(datasets=["eraser"])
    changed = [line for line in said if line.startswith(("  add", "  change"))]
    assert changed == ["  change README.md", "  change .eraser-hub.json"]
    assert len(commits(loopback, "datasets")) == 3
    assert any("v1.2.0 stays on the commit it names" in line for line in said)


OTHERS = {
    "movies/alice.parquet": (b"alice", True),
    "movies/train-00001-of-00002.parquet": (b"old", True),
    "notes.py": (b"x", False),
    "LICENSE": (b"x", False),
}


def merge(repo, **changes):
    """Commit files, or with None remove them, as another person does."""
    tree = {**repo.commits[repo.branches["main"]], **changes}
    repo.record("main", {path: file for path, file in tree.items() if file is not None}, "by hand")


def rebuild_without_boolq(toy_hub):
    import shutil

    from .conftest import write_toy_dataset

    shutil.rmtree(toy_hub / "eraser")
    write_toy_dataset(toy_hub / "eraser")
    for path in (toy_hub / "eraser" / "boolq").iterdir():
        path.rename(path.with_name(path.name.replace("of-00001", "of-00009")))
    card = toy_hub / "eraser" / "README.md"
    record_digests(toy_hub / "eraser")
    assert card.is_file()


def test_what_others_merged_stays(publish_toy, loopback, toy_hub, said):
    publish_toy()
    repo, space = loopback.repos["datasets", "org/eraser"], loopback.repos["spaces", "org/toy_overlap"]
    for one in (repo, space):
        merge(one, **OTHERS)
    said.clear()
    publish_toy()
    assert not [line for line in said if line.startswith("  remove")]
    words = "  left there, since no publish on record wrote them: "
    assert said.count(words + ", ".join(sorted(OTHERS))) == 2
    for one in (repo, space):
        assert OTHERS.items() <= one.commits[one.branches["main"]].items()
    publish_toy(check=True)


def test_files_of_a_former_publish_are_removed_unless_others_changed_them(publish_toy, loopback, toy_hub, said):
    publish_toy(datasets=["eraser"])
    repo = loopback.repos["datasets", "org/eraser"]
    rebuild_without_boolq(toy_hub)
    merge(repo, **{"boolq/test-00000-of-00001.parquet": (b"mine", True)})
    said.clear()
    publish_toy(datasets=["eraser"])
    assert [line for line in said if line.startswith("  remove")] == ["  remove boolq/train-00000-of-00001.parquet"]
    tree = repo.commits[repo.branches["main"]]
    assert tree["boolq/test-00000-of-00001.parquet"] == (b"mine", True)
    assert "boolq/train-00000-of-00009.parquet" in tree and "boolq/train-00000-of-00001.parquet" not in tree


@pytest.mark.parametrize(
    "manifest", [None, (b"[1]", False), (b"\xff{", False), (b'{"files": {"README.md": 3}}', False)]
)
def test_without_a_manifest_nothing_is_removed(publish_toy, loopback, toy_hub, said, manifest):
    publish_toy(datasets=["eraser"])
    repo = loopback.repos["datasets", "org/eraser"]
    rebuild_without_boolq(toy_hub)
    merge(repo, **{".eraser-hub.json": manifest})
    said.clear()
    publish_toy(datasets=["eraser"])
    assert not [line for line in said if line.startswith("  remove")]
    old = "boolq/test-00000-of-00001.parquet, boolq/train-00000-of-00001.parquet"
    assert f"  left there, since no publish on record wrote them: {old}" in said
    assert ".eraser-hub.json" in repo.commits[repo.branches["main"]]


def test_the_builds_files_alone_are_sent(publish_toy, loopback, toy_hub, said):
    strays = ["README.md.swp", "README.md~", "movies/notes.txt", "notes.md"]
    for name in (*strays, "eraser.png"):
        (toy_hub / "eraser" / name).write_text("x")
    publish_toy(datasets=["eraser"])
    repo = loopback.repos["datasets", "org/eraser"]
    tree = repo.commits[repo.branches["main"]]
    assert not tree.keys() & set(strays) and "eraser.png" in tree
    assert f"  left out, since no build wrote them: {', '.join(strays)}" in said


def test_the_tag_that_evaluate_asks_for_moves_with_main(publish_toy, loopback, toy_hub, metric_source):
    from eraser_hub.publishing.spaces import build_metrics

    publish_toy(metrics=["toy_overlap"])
    module = metric_source / "toy_overlap.py"
    module.write_text(module.read_text() + "\n# newer\n")
    build_metrics(toy_hub, source=metric_source)
    publish_toy(metrics=["toy_overlap"])
    space = loopback.repos["spaces", "org/toy_overlap"]
    assert space.tags["v0.4.6"] == space.branches["main"] != space.tags[f"v{__version__}"]


def test_private_and_revision(publish_toy, loopback):
    assert publish_toy(datasets=["eraser"], private=True, revision="next")[0].endswith("/datasets/org/eraser/tree/next")
    repo = loopback.repos["datasets", "org/eraser"]
    assert repo.private and not repo.tags
    assert "README.md" in repo.commits[repo.branches["next"]]
    assert "README.md" not in repo.commits[repo.branches["main"]]


def test_a_dry_run_asks_nothing(publish_toy, loopback, monkeypatch):
    import huggingface_hub.constants as constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    plan = publish_toy(dry_run=True, endpoint="http://127.0.0.1:9", token=None)
    assert loopback.requests == []
    assert any(line.startswith("  movies/train-00000-of-00001.parquet (") for line in plan)
    assert plan[-1].startswith("dry run:")


@pytest.mark.parametrize(
    ("writes", "remedy"), [(True, "to publish, or ask for a `dry_run`"), (False, "to read from the Hub")]
)
def test_the_hub_set_offline_is_refused_with_what_was_meant(writes, remedy, monkeypatch):
    import huggingface_hub.constants as constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(DataError) as caught:
        client(None, "token", writes=writes)
    assert str(caught.value) == f"HF_HUB_OFFLINE is set: unset it {remedy}"


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
    assert "  change README.md" in said
    assert not any(method in ("POST", "PUT", "DELETE") for method, _ in loopback.requests[asked:])


def test_a_card_loads_what_is_published(publish_toy, loopback, toy_hub):
    card = toy_hub / "eraser" / "README.md"
    code = 'load_dataset("eraser", "movies"); evaluate.load("eraser_agreement"); load_dataset("squad"); load("eraser")'
    card.write_text(f"{card.read_text()}\n{code}\n")
    publish_toy(datasets=["eraser"])
    repo = loopback.repos["datasets", "org/eraser"]
    text = repo.commits[repo.branches["main"]]["README.md"][0].decode()
    assert 'load_dataset("org/eraser", "movies"); evaluate.load("org/eraser_agreement"); load_dataset("squad")' in text
    assert 'load("eraser")' in text and code in card.read_text()


# -- what is refused before anything is sent --------------------------------------------------------------------------


@contextlib.contextmanager
def unsent(loopback):
    yield
    assert not any(method in ("POST", "PUT", "DELETE") for method, _ in loopback.requests), "nothing may be sent"


def test_a_changed_parquet_file_is_refused(publish_toy, loopback, toy_hub):
    path = toy_hub / "eraser" / "movies" / "test-00000-of-00001.parquet"
    path.write_bytes((toy_hub / "eraser" / "movies" / "train-00000-of-00001.parquet").read_bytes())
    with unsent(loopback), refused(file=path):
        publish_toy()


def test_a_folder_without_its_digests_is_refused(publish_toy, loopback, toy_hub):
    (toy_hub / "eraser" / "release.json").unlink()
    with unsent(loopback), refused("release.json", file="eraser"):
        publish_toy()


def test_a_failed_check_is_refused(publish_toy, loopback, monkeypatch):
    import eraser_hub.publishing.uploads as module

    def fails(name, folder):
        raise DataError(f"`eraser-hub check` does not pass {name}")

    monkeypatch.setattr(module, "check_dataset", fails)
    with unsent(loopback), refused("eraser"):
        publish_toy()


@pytest.mark.parametrize(
    ("change", "file"),
    [
        ("edited", "toy_overlap/toy_overlap.py"),
        ("extra", "toy_overlap/notes.txt"),
        ("missing", "toy_overlap/app.py"),
    ],
)
def test_a_space_that_build_did_not_write_is_refused(publish_toy, loopback, toy_hub, change, file):
    space = toy_hub / "toy_overlap"
    if change == "edited":
        (space / "toy_overlap.py").write_text("import os\n")
    elif change == "extra":
        (space / "notes.txt").write_text("mine")
    else:
        (space / "app.py").unlink()
    with unsent(loopback), refused("build metrics", file=file):
        publish_toy()


def test_a_link_is_refused(publish_toy, loopback, toy_hub, tmp_path):
    (tmp_path / "secret.txt").write_text("secret")
    (toy_hub / "eraser" / "notes.txt").symlink_to(tmp_path / "secret.txt")
    with unsent(loopback), refused(file="eraser/notes.txt"):
        publish_toy()


def test_hidden_files_stay_here(publish_toy, loopback, toy_hub, said):
    (toy_hub / "eraser" / ".env").write_text("HF_TOKEN=x")
    publish_toy(datasets=["eraser"])
    repo = loopback.repos["datasets", "org/eraser"]
    assert ".env" not in repo.commits[repo.branches["main"]]
    assert "  left out, since no build wrote them: .env" in said


def test_unknown_names_and_empty_folders(publish_toy, loopback, toy_hub, tmp_path):
    import shutil

    with unsent(loopback), refused("dataset 'moovies'", " eraser, "):
        publish_toy(datasets=["moovies"])
    with unsent(loopback), refused("metric 'eraser'", "there are toy_overlap"):
        publish_toy(metrics=["eraser"])
    with unsent(loopback), refused("build human_rationales", file=toy_hub / "human_rationales"):
        publish_toy(datasets=["human_rationales"])
    shutil.rmtree(toy_hub)
    with unsent(loopback), refused(file=toy_hub):
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


def failing(publish_toy, said, *mentions, **more):
    with refused("org/eraser", *mentions) as caught:
        publish_toy(datasets=["eraser"], **more)
    assert TOKEN not in str(caught.error) + "\n".join(said)
    assert not any(line.startswith("published") for line in said)
    return str(caught.error)


def test_nobody_there(publish_toy, said):
    message = failing(publish_toy, said, " http://127.0.0.1:9: ", endpoint="http://127.0.0.1:9")
    assert sum("http://127.0.0.1:9" in line for line in said) == 3
    assert "Traceback" not in message


def test_a_wrong_token_is_not_tried_again(publish_toy, loopback, said):
    loopback.token = "hf_" + "another" * 4
    failing(publish_toy, said, "(401: ", "`hf auth login`")
    assert loopback.count("POST", "/api/repos/create") == 1


def test_a_token_that_may_not_write(publish_toy, loopback, said):
    loopback.may_write = False
    failing(publish_toy, said, "(403: You don't have the rights")
    assert loopback.count("POST", "/api/repos/create") == 1


def test_no_token(publish_toy, monkeypatch, tmp_path):
    import huggingface_hub

    monkeypatch.setattr(huggingface_hub, "get_token", lambda: None)
    with refused("`hf auth login`", "HF_TOKEN"):
        publish_toy(token=None)


def test_the_repository_vanishes(publish_toy, loopback, said):
    loopback.fail("POST", "/preupload/", 404, times=9, headers={"X-Error-Code": "RepoNotFound"})
    failing(publish_toy, said, "(404")


@pytest.mark.parametrize("status", [409, 412])
def test_another_commit_in_between_is_met_by_a_fresh_try(publish_toy, loopback, said, status):
    loopback.fail("POST", "/commit/", status)
    publish_toy(datasets=["eraser"])
    assert any(f"({status}" in line for line in said)
    assert len(commits(loopback, "datasets")) == 2


def test_too_many_requests_waits_as_asked(publish_toy, loopback, said):
    loopback.fail("POST", "/api/repos/create", 429, headers={"Retry-After": "0.02"})
    publish_toy(datasets=["eraser"])
    assert any("(429: fault 429)" in line and line.count(" 0.02 s") == 2 for line in said)


def test_a_wait_of_hours_is_said_and_not_waited(publish_toy, loopback, said):
    loopback.fail("POST", "/api/repos/create", 429, headers={"Retry-After": "7200"})
    failing(publish_toy, said, "(429", " 7200 s")


def test_a_fault_of_the_hub_passes(publish_toy, loopback, said):
    loopback.fail("POST", "/api/repos/create", 500, times=2)
    loopback.fail("POST", "/tag/", 503)
    publish_toy(datasets=["eraser"])
    assert [line.count("(500: ") + line.count("(503: ") for line in said if "fault" in line] == [1, 1, 1]
    assert loopback.repos["datasets", "org/eraser"].tags


def test_a_lasting_fault_ends_in_words(publish_toy, loopback, said):
    loopback.fail("POST", "/api/repos/create", 500, times=99)
    failing(publish_toy, said, "(500: fault 500)")
    assert loopback.count("POST", "/api/repos/create") == 4


def test_a_cut_upload_is_sent_again(publish_toy, loopback, said):
    loopback.fail("PUT", "/objects/", 0)
    publish_toy(datasets=["eraser"])
    repo = loopback.repos["datasets", "org/eraser"]
    assert len(repo.messages) == 2 and repo.tags


def test_a_commit_whose_answer_is_lost_is_not_made_twice(publish_toy, loopback):
    loopback.fail("POST", "/commit/", 0, after=True)
    publish_toy(datasets=["eraser"])
    repo = loopback.repos["datasets", "org/eraser"]
    assert set(repo.commits[repo.branches["main"]]) > {"README.md", "release.json"}
    assert len({json.dumps(sorted(tree)) for tree in repo.commits.values()}) == 2


def test_an_upload_that_broke_off_goes_on_where_it_stopped(publish_toy, loopback, said):
    loopback.fail("POST", "/commit/", 507, times=99)
    failing(publish_toy, said, "(507", "not published: org/eraser;")
    repo, sent = loopback.repos["datasets", "org/eraser"], loopback.count("PUT", "/objects/")
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
    assert loopback.repos["datasets", "org/eraser"].tags


def test_a_full_disk_here(publish_toy, said, monkeypatch):
    import huggingface_hub

    def full(*_args, **_more):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(huggingface_hub.HfApi, "create_commit", full)
    failing(publish_toy, said)


def test_a_commit_that_did_not_arrive_whole_is_not_called_published(publish_toy, loopback, said, monkeypatch):
    from loopback_hub import Repo

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


# -- the command ------------------------------------------------------------------------------------------------------


def test_the_command_line(child, toy_hub, loopback):
    command = [sys.executable, "-m", "eraser_hub", "publish", "--folder", str(toy_hub), "--dataset", "eraser"]
    usage = child.call([*command, "--namespace", "not/valid"], loopback.url)
    assert usage.returncode == 2 and usage.stderr.startswith("namespace: ") and "'not/valid'" in usage.stderr
    missing = child.call([*command[:-2], "--namespace", "org", "--metric", "nothing"], loopback.url, HF_TOKEN=TOKEN)
    assert missing.returncode == 2 and "metric 'nothing'" in missing.stderr and "Traceback" not in missing.stderr
    assert TOKEN not in missing.stderr + missing.stdout


@pytest.mark.parametrize(
    ("wrong", "argument"),
    [
        ({"namespace": "a..b"}, "namespace"),
        ({"revision": "../main"}, "revision"),
        ({"check": True, "dry_run": True}, "check"),
        ({"eval_results": "lab/lstm"}, "eval_results"),
        ({"eval_results": "lab=scores.json", "dry_run": True}, "eval_results"),
    ],
)
def test_what_cannot_be(wrong, argument, tmp_path):
    with refused(argument=argument, type=UsageError if argument != "eval_results" else DataError):
        publish(**{"namespace": "org", "folder": tmp_path, **wrong})
