"""publish against a Hub on loopback: what is sent, what is refused, and what a dry run lists."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from loopback_hub import TOKEN

from eraser_hub import publish
from eraser_hub.conversion.built import open_built
from eraser_hub.conversion.card import get_dataset_version
from eraser_hub.publishing.hub import redact
from eraser_hub.records.errors import DataError, UsageError
from eraser_hub.version import __version__

from ..refusals import refused

DATA, SPACE = ("datasets", "org/eraser"), ("spaces", "org/eraser_agreement")
TRAIN = "movies/train-00000-of-00001.parquet"


def test_everything_built_is_published_and_tagged_once(send, loopback, hub):
    assert send() == [f"{loopback.url}/datasets/org/eraser", f"{loopback.url}/spaces/org/eraser_agreement"]
    data, space = loopback.repos[DATA], loopback.repos[SPACE]
    version = get_dataset_version(open_built(hub / "eraser").card)
    assert data.tags == {f"v{version}": data.branches["main"]} and set(space.tags) == {f"v{__version__}"}
    for repo, folder in ((data, hub / "eraser"), (space, hub / "eraser_agreement")):
        files = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
        assert set(repo.tree) == files | {".gitattributes"}
        assert len(repo.commits) == 2, "one beside the Hub's own first"
    assert 'load_dataset("org/eraser"' in data.tree["README.md"].decode()
    assert "- org/human_rationales\n" in space.tree["README.md"].decode()
    assert 'evaluate.load("org/eraser_agreement")' in space.tree["README.md"].decode()
    send()
    assert len(data.commits) == len(space.commits) == 2, "nothing changed"


def test_a_dry_run_lists_changes_and_sends_nothing(send, loopback, hub):
    assert f"  add {TRAIN}" in send(dry_run=True, token=False) and not loopback.repos
    send()
    asked, repo = len(loopback.requests), loopback.repos[DATA]
    repo.record({**repo.tree, "boolq/old.parquet": b"old", "LICENSE": b"theirs"})
    card = hub / "eraser" / "README.md"
    card.write_text(card.read_text() + "\nMore.\n")
    lines = send(dry_run=True)
    changes = [line.strip() for line in lines if line[0] == " "]
    assert changes == ["change README.md", "delete boolq/old.parquet", "unchanged"]
    assert lines[-1] == "dry run: nothing was sent"
    assert {method for method, _ in loopback.requests[asked:]} == {"GET"}
    send()
    assert "More." in repo.tree["README.md"].decode()
    assert repo.tree.keys() >= {"LICENSE"} and "boolq/old.parquet" not in repo.tree


def test_private_and_revision(send, loopback):
    send(dataset="eraser", private=True, revision="next")
    repo = loopback.repos[DATA]
    assert repo.private and not repo.tags and SPACE not in loopback.repos
    assert "README.md" in repo.commits[repo.branches["next"]] and "README.md" not in repo.tree


def test_hidden_files_stay_here(send, loopback, hub, caplog):
    """Nothing is sent that no build wrote, and no link is followed."""
    for name in (".env", "README.md~", "movies/notes.txt"):
        (hub / "eraser" / name).write_text("HF_TOKEN=x")
    (hub / "eraser" / "eraser.png").unlink()
    (hub / "eraser" / "eraser.png").symlink_to(__file__)
    send(dataset="eraser")
    assert not loopback.repos[DATA].tree.keys() & {".env", "README.md~", "movies/notes.txt", "eraser.png"}
    assert ".env, README.md~, eraser.png, movies/notes.txt" in caplog.text


def test_a_sample_is_refused_unless_it_is_allowed_and_a_folder_is_no_namespace(send, loopback, hub, caplog):
    with refused("`allow_sample`", file=hub / "eraser"):
        send(allow_sample=False)
    with refused("organisation", argument="namespace"):
        publish("hub/eraser", hub, dry_run=True)
    assert not loopback.requests
    send(allow_sample=False, dry_run=True)
    assert "`allow_sample`" in caplog.text


@pytest.mark.parametrize(
    ("change", "file"),
    [
        (lambda path: path.write_bytes(b""), f"eraser/{TRAIN}"),
        (Path.unlink, "eraser/release.json"),
        (lambda path: path.write_text("import os\n"), "eraser_agreement/eraser_agreement.py"),
        (Path.unlink, "eraser_agreement/app.py"),
        (shutil.rmtree, "eraser"),
    ],
)  # fmt: skip
def test_a_folder_that_build_did_not_write_so_is_refused(send, loopback, hub, change, file):
    change(hub / file)
    with refused(hub / Path(file).parts[0]):
        send(dataset="eraser", metric="eraser_agreement")
    assert not loopback.requests


@pytest.mark.parametrize(
    ("refusal", "options", "words"),
    [
        (None, {"token": "hf_" + "another" * 4}, ("401", "`hf auth login`")),
        (("POST", "/repos/create", 403), {}, ("403", "HF_TOKEN")),
        (("POST", "/datasets/.*/commit/", 413), {}, ("413",)),
        (("PUT", "/objects/", 403), {}, ("403",)),
        (("POST", "/spaces/.*/commit/", 403), {}, ("403", "published before: ", "/datasets/org/eraser;")),
        (None, {"endpoint": "http://me:secret@127.0.0.1:9"}, (" at http://***@127.0.0.1:9: ",)),
    ],
)
def test_a_failed_upload_is_one_error_without_a_token(send, loopback, caplog, monkeypatch, refusal, options, words):
    monkeypatch.setattr("time.sleep", lambda _: None)
    if refusal:
        loopback.refused[refusal[:2]] = refusal[2]
    with refused("failed at", *words, file="org/eraser_agreement" if "before" in str(words) else "org/eraser") as seen:
        send(**options)
    printed = str(seen.error) + caplog.text
    assert "\n" not in str(seen.error) and len(str(seen.error)) < 1000
    assert options.get("token", TOKEN) not in printed and "Bearer hf" not in printed and seen.error.__cause__ is None
    loopback.refused.clear()
    assert len(send()) == 2 and loopback.repos[DATA].tags, "the same command uploads the rest"


def test_tokens_never_come_out():
    text = redact(f"Bearer {TOKEN} at https://me:{TOKEN}@hub/a?X-Amz-Signature=abc and {TOKEN} and secret", "secret")
    assert not any(word in text for word in (TOKEN, "me:", "abc", "secret"))


def test_what_cannot_be(hub, monkeypatch):
    with refused(argument="eval_results", type=UsageError):
        publish("org", hub, eval_results="lab/lstm")
    with refused("(eraser, eraser_agreement)", file=hub / "moovies", type=DataError):
        publish("org", hub, dataset="moovies")
    with refused(file=hub / "eraser"):
        publish("org", hub / "eraser")
    assert publish("org", hub, dry_run=True)[-1].endswith("nothing compared (HF_HUB_OFFLINE is set)")
