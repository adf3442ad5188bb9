"""Built folders of other versions, and data that changed after predictions were made."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .cases import COMPUTED, ERROR, Expect, World, mutates, plans
from .folders import CARD, RELEASE
from .material import CORPORA, write_files

# what 2.0 did not write into release.json
DIGESTS = ("digest", "columns", "labels", "files", "digests")


def changes_release(name: str, change: Callable[[random.Random, Any], None], **expect: Any) -> None:
    """Register a change of release.json."""

    def mutator(world: World) -> Expect:
        world.copies, draw = True, random.Random(world.random.random())

        def act(folder: Path) -> None:
            release = json.loads((folder / RELEASE).read_bytes())
            change(draw, release)
            (folder / RELEASE).write_text(json.dumps(release))

        world.acts.append(act)
        # `check` compares the files' digests, which a changed release.json has no more
        return Expect("anything") if world.argv[0] == "check" else Expect(**{"row": "anything", **expect})

    mutates("versions", "", name)(mutator)


def drop(value: Any, names: tuple[str, ...]) -> None:
    """Remove keys of these names at every level."""
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        drop(inner, names)
    for name in names if isinstance(value, dict) else ():
        value.pop(name, None)


def of_2_0(draw: random.Random, release: Any) -> None:
    drop(release["configs"], DIGESTS)
    release.pop("version", None)


def some_digests(draw: random.Random, release: Any) -> None:
    drop(release["configs"], tuple(draw.sample(DIGESTS, 2)))


def other_version(draw: random.Random, release: Any) -> None:
    release["version"] = draw.choice(("1.0.0", "2.0.0", "99.0", "", "\x1b[31m", None, 3))


def other_format(draw: random.Random, release: Any) -> None:
    release["format"] = draw.choice((0, 1, 3, 99, "2", None, 2.5, True))


# scores stay those of the data, whatever release.json says of another version
changes_release("folder_of_2_0", of_2_0, row="same meaning", same=True)
changes_release("folder_of_another_version", other_version, same=True)
changes_release("folder_with_some_digests", some_digests, row="same meaning", same=True)
changes_release("folder_of_another_format", other_format, same=True)


@mutates("versions")
def card_of_another_version(world: World) -> Expect:
    world.copies, version = True, world.random.choice(("0.0.0", "9.9.9", "x", ""))

    def act(folder: Path) -> None:
        text = (folder / CARD).read_text("utf-8").splitlines(keepends=True)
        lines = [f"  version: {version!r}\n" if line.startswith("  version:") else line for line in text]
        (folder / CARD).write_text("".join(lines), "utf-8")

    world.acts.append(act)
    return Expect("anything", same=True)


# -- data that changed ------------------------------------------------------------------------------------------------


def spoilt_corpus(draw: random.Random) -> dict[str, Any]:
    """The raw movies with other data: a token before each document, a document changed, a span, a query, a label."""
    files = CORPORA["movies"].files()
    documents = [path for path in files if "/docs/val" in path]
    rows, one = files["movies/val.jsonl"], draw.randrange(4)
    way = draw.randrange(6)
    if way == 0:
        files.update({path: b"extra " + files[path] for path in documents})
    elif way == 1:
        files[documents[one]] += b" end"
    elif way == 2:
        rows[one]["query"] = "Really ?"
    elif way == 3:
        rows[one]["classification"] = {"NEG": "POS", "POS": "NEG"}[rows[one]["classification"]]
    elif way == 4:
        rows[one]["evidences"].pop()
    else:
        rows[one]["evidences"] = [[span for group in rows[one]["evidences"] for span in group]]
    if way == 0:  # the texts of evidences have to fit again
        for span in (each for row in rows for group in row["evidences"] for each in group):
            words = files[f"movies/docs/{span['docid']}"].decode().replace("\n", " ").split(" ")
            span["text"] = " ".join(words[span["start_token"] : span["end_token"]])
    return {f"other/{path}": content for path, content in files.items()}


OTHER = "--predictions explained.jsonl"
LINES = {
    "score": f"score {OTHER} --out s.json",
    "compare": f"compare {OTHER} {OTHER.replace('explained', 'again')} --resamples 10",
    "report": f"report {OTHER} --resamples 10 --out r",
    "board": f"board --submission {OTHER.split()[1]} --no-published --out b",
}
OUTPUTS = {"score": ("s.json",), "report": ("r",), "board": ("b",)}


def predictions_of_the_stock(verb: str, raw: bool) -> None:
    """Register a plan: the verb with predictions of `explain`, which say what data they were made of."""

    def plan(draw: random.Random, stock: Path) -> World:
        world = World(draw, argv=LINES[verb].split(), outputs=OUTPUTS.get(verb, ()))
        for name in ("explained", "again")[: 1 + (verb == "compare")]:
            for ending in (".jsonl", ".jsonl.run.json"):
                world.files[name + ending] = (stock / f"explained{ending}").read_bytes()
        world.argv += ["--data-dir", "raw/movies"] if raw else ["--dataset", "hub/eraser", "--config", "movies"]
        world.argv += ["--split", "val"]
        world.links = {name: stock / name for name in ("raw", "hub")}
        return world

    plan.__name__ = f"{verb}_of_explained{'_raw' * raw}"
    plans(verb, "other data")(plan)


for _verb in LINES:
    predictions_of_the_stock(_verb, raw=False)
for _verb in ("score", "compare"):
    predictions_of_the_stock(_verb, raw=True)


@mutates("other data")
def another_corpus(world: World) -> Expect:
    """The same ids with other data: refused, unless it is allowed."""
    files = spoilt_corpus(world.random)
    world.files.update({path: content for path, content in files.items() if "--data-dir" in world.argv})
    if "--data-dir" in world.argv:
        world.argv[world.argv.index("--data-dir") + 1] = "other/movies"
    else:
        draw = random.Random(world.random.random())

        def act(folder: Path) -> None:
            from eraser_hub.conversion import HUB_DATASETS

            write_files(folder, spoilt_corpus(draw))
            HUB_DATASETS["eraser"].build(["movies"], source=folder / "other", out=folder / "built")

        world.acts.append(act)
        world.argv[world.argv.index("--dataset") + 1] = "built/eraser"
    allowed = world.random.random() < 0.3
    if allowed:
        world.argv.append("--allow-mismatch")
    return Expect("other data", words=() if allowed else ("the data",), verdict="either" if allowed else ERROR)


@mutates("other data")
def record_of_other_predictions(world: World) -> Expect:
    """A record that does not fit the predictions, or says nothing of data, decides nothing and is said."""
    name = "explained.jsonl.run.json"
    record = json.loads(world.files[name])
    way = world.random.randrange(3)
    if way == 0:
        record["predictions_sha256"] = record["predictions_digest"] = "0" * 64
    elif way == 1:
        record["data"].pop("data_digest")
    else:
        record.pop("predictions_sha256")
    world.files[name] = json.dumps(record).encode()
    words = ("are not known",) if way != 2 else ()
    return Expect("same meaning", words=words, verdict=COMPUTED)
