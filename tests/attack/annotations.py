"""What is done to a raw corpus: annotations, documents, and the files that hold them."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

from .cases import Expect, World, mutates, puts
from .values import GONE, VALUES, also, any_place, misspelt, odd, replace

put = partial(puts, "gold")
odd_ids, odd_tokens = partial(put, "ids"), partial(put, "ids", field="_token")  # a reversed span is told at either end
odd_ids("odd_evidences", "raw annotations", "*.evidences", *odd("None {} '' 'x' 3 [1,2] ['x'] [[3]] [{}] [''] GONE"))
odd_tokens("odd_gold_start", "bad gold", "*.evidences.*.0.start_token", *odd("-1 3_000 1.5 '0' 2**70 None True"))
odd_tokens("odd_gold_end", "bad gold", "*.evidences.*.0.end_token", *odd("0 10_000 2.5 '3' 2**70 None"))
STRANGE_DOCIDS = odd(r"'nowhere' '' None 3 '../../../etc/passwd' 'a\x00b' 'a'*300")
odd_ids("gold_of_no_document", "bad gold", "*.evidences.*.0.docid", *STRANGE_DOCIDS)
odd_ids("no_evidence_in_one", "empty gold", "*.evidences", [])
odd_ids("odd_annotation_id", "raw annotations", "*.annotation_id", None, [], {}, 1.5, True)
put("labels", "odd_gold_label", "raw annotations", "*.classification", *odd("'neither' '' 1 None [] {} True 0.5"))
ODD_DOCIDS = [also(docids=docids) for docids in odd(r"['nowhere'] 'nowhere' [3] {} 3 [None] [[]] ['a\x00']")]
put("files", "odd_docids", "raw annotations", "*", *ODD_DOCIDS, field="docids")
odd_ids("any_value_in_gold", "anything", "*.*", *VALUES, GONE)


@mutates("gold", "ids")
def annotation_twice(world: World) -> Expect:
    world.gold_records.append(world.random.choice(world.gold_records))
    return Expect("bad gold", world.gold, len(world.gold_records), "annotation_id")


@mutates("gold", "ids")
def empty_gold_span(world: World) -> Expect:
    evidence = world.random.choice(world.random.choice(world.gold_records)["evidences"])[0]
    evidence["end_token"], evidence["text"] = evidence["start_token"], ""
    return Expect("empty gold")


@mutates("gold", "ids")
def no_sentence_offsets(world: World) -> Expect:
    for group in world.random.choice(world.gold_records)["evidences"]:
        for evidence in group:
            evidence["start_sentence"] = evidence["end_sentence"] = -1
    scored = "spans" in world.parts and (world.call or world.argv[0] == "score")
    return Expect("no sentence offsets", words=("sentence",) if scored else ())


@mutates("gold", "ids")
def misspelt_annotation_field(world: World) -> Expect:
    number, name = world.random.randrange(len(world.gold_records)), world.random.choice(("annotation_id", "evidences"))
    record = world.gold_records[number]
    record[misspelt(world.random, name)] = record.pop(name)
    return Expect("raw annotations", world.gold, number + 1, name)


@mutates("gold", "ids")
def any_value_deep_in_gold(world: World) -> Expect:
    replace(world.random, *any_place(world.random, world.gold_records), [*VALUES, GONE])
    return Expect("anything")


# ---------------------------------------------------------------------------------------------------- files of a corpus
def any_document(world: World) -> str:
    return world.random.choice(sorted(path for path in world.files if path.startswith("raw/movies/docs/val")))


@mutates("corpus files")
def document_missing(world: World) -> Expect:
    name = any_document(world)
    del world.files[name]
    return Expect("raw annotations", words=(Path(name).name,))


@mutates("corpus files")
def document_in_broken_utf8(world: World) -> Expect:
    name = any_document(world)
    world.files[name] = world.random.choice((b"\xff\xfe a b c", world.files[name] + b"\xc3", b"\x80" * 50))
    return Expect("raw annotations", name)


@mutates("corpus files")
def document_of_anything(world: World) -> Expect:
    texts = (
        b"",
        b"\n\n\n",
        b" ",
        b"a  b\n\nc",
        b"\xef\xbb\xbfa b c d e",
        b"\x00" * 9,
        b"a\r\nb\rc",
        b"a " * 200_000,
        b"\x12 a",
    )
    world.files[any_document(world)] = world.random.choice(texts)
    return Expect("anything")


def hostile_place(world: World, target: str) -> None:
    """A FIFO, a folder, a link in a circle or to nowhere in the place of a file."""
    world.files.pop(target, None)
    make = world.random.choice(
        (os.mkfifo, Path.mkdir, lambda path: path.symlink_to(path.name), lambda path: path.symlink_to("nowhere"))
    )

    def act(folder: Path) -> None:
        (folder / target).parent.mkdir(parents=True, exist_ok=True)
        (folder / target).unlink(missing_ok=True)
        make(folder / target)

    world.acts.append(act)


@mutates("corpus files")
def document_that_is_no_file(world: World) -> Expect:
    name = any_document(world)
    hostile_place(world, name)
    return Expect("raw annotations", words=(Path(name).name,))


@mutates("corpus files")
def annotations_that_are_no_file(world: World) -> Expect:
    hostile_place(world, world.gold)
    return Expect("anything")


@mutates("corpus files")
def no_annotations(world: World) -> Expect:
    world.files[world.gold] = world.random.choice((b"", b"\n", b"   "))
    return Expect("anything")


@mutates("corpus files")
def stranger_beside(world: World) -> Expect:
    name = world.random.choice(
        ("notes.txt", "extra.jsonl", "\x1b[31mred.jsonl", "train.jsonl.bak", ".hidden", "ü.jsonl")
    )
    world.files[f"raw/movies/{name}"] = world.random.choice((b"", b"{}\n", b"nothing\n", b'{"docids": "x"}\n', b"\xff"))
    return Expect("anything")


@mutates("lines", "lines")
def results_that_are_no_file(world: World) -> Expect:
    path = world.results
    hostile_place(world, path)
    return Expect("no JSON", words=(path,))
