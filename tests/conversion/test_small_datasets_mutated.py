"""Mutated files of both small datasets: a build ends in success, or in one error that names file and line."""

from __future__ import annotations

import random
import re
import shutil
from pathlib import Path

import pytest

from eraser_hub.conversion import HUB_DATASETS
from eraser_hub.records.errors import DataError

FILES = (
    ("bilingual_perturbation", ("mrc_ch", "mrc_ch_golden.jsonl")),
    ("bilingual_perturbation", ("similarity_en", "similarity_en_golden.jsonl")),
    ("human_rationales", ("sst/trees/dev.txt",)),
    ("human_rationales", ("wikiattack/wiki_attack_dev_rationale.csv", "wikiattack/attack_annotated_comments.tsv")),
)
NUMBERS = (b"NaN", b"-1", b"9" * 30, b"9" * 5000, b"1e400", b"null", b"true", b"1.5", b'"x"', b"[]", b"{}")
PIECES = (b"[" * 3000, b"(" * 3000, b'"', b",", b"\t", b"\x00", b"\r", b"\xef\xbb\xbf", b"\xff", b"\\ud800", b"\n")
STRINGS = (b'"id"', b"3", b"null", b"[1]", b'""', b'{"a":1}', b'"sent_id"')


def mutated(data: bytes, dice: random.Random) -> bytes:
    """The data with one thing wrong (or, now and then, right)."""
    at, lines = dice.randrange(len(data)), data.split(b"\n")
    kind = dice.randrange(9)
    if kind == 0:
        return data[:at]
    if kind == 1:
        return data[:at] + bytes([data[at] ^ (1 << dice.randrange(8))]) + data[at + 1 :]
    if kind == 2:
        return data[:at] + data[at + dice.randrange(1, 20) :]
    if kind == 3:
        dice.shuffle(lines)
        return b"\n".join(lines)
    if kind == 4:
        lines.insert(dice.randrange(len(lines)), dice.choice(lines))
        return b"\n".join(lines)
    if kind == 5:
        return data.decode("utf-8").encode(dice.choice(["utf-16", "gb18030"]))
    if kind == 6:
        return data[:at] + dice.choice(PIECES) + data[at:]
    pattern, choices = ((rb"\d+", NUMBERS), (rb'"[^"\n]*"', STRINGS))[kind - 7]
    found = list(re.finditer(pattern, data))
    if not found:
        return data.replace(b"\n", b"\r\n")
    span = dice.choice(found).span()
    return data[: span[0]] + dice.choice(choices) + data[span[1] :]


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize(("name", "files"), FILES)
def test_a_mutated_file_builds_and_comes_back_or_is_refused_with_its_line(
    name: str, files: tuple[str, ...], seed: int, samples: Path, tmp_path: Path
) -> None:
    dice = random.Random(f"{files[0]} {seed}")
    source = tmp_path / "source"
    for file in files:
        (source / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(samples / name / file, source / file)
    path = source / dice.choice(files)
    path.write_bytes(mutated(path.read_bytes(), dice))
    dataset = HUB_DATASETS[name]
    try:
        built = dataset.build(None, out=tmp_path / "hub", source=source)
    except DataError as error:
        assert len(str(error)) < 4000
        assert any(re.search(rf"{re.escape(Path(file).name)}(:\d+|, found)|found n", str(error)) for file in files), (
            error
        )
        assert not (tmp_path / "hub").exists()
        return
    dataset.check(built.folder)
    dataset.stats(built.folder)
    for exported in dataset.export(built.folder, None, out=tmp_path / "raw").files:
        assert exported.read_bytes() == (source / exported.relative_to(tmp_path / "raw")).read_bytes()
