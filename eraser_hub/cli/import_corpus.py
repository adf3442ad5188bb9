"""``eraser-hub import``: a rationale corpus of any shape -> a corpus folder that every verb takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .usage import Revision, one_of, say, takes

if TYPE_CHECKING:
    from eraser_hub.conversion.importing.sources import Source


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """The options of ``eraser-hub import``, and their help.

    Attributes:
        from_: A file (jsonl, json, csv, tsv, parquet; also https://, hf://), a dataset's folder, or a Hub id.
        name: The corpus's name: its folder's, and its config's.
        label: The label's column; of several labels a row the majority's counts.
        out: Where OUT/NAME is written.
        tokens: A column of tokens, as lists; repeat it for rows of several texts.
        text: In place of --tokens: a column of text, or of sentences as lists.
        mask: For each text: 0/1 a token, a list or a list of lists (several annotators), or the text again with marks
            (`*word*`). COL,COL: a column an annotator.
        spans: In place of --mask: [start, end] pairs, a list or a list of lists.
        quotes: In place of --mask: passages of the text, each of which stands there once.
        offsets: What spans count: tokens (default for --tokens), characters (for --text), or sentences.
        query: A column of questions about the text.
        id: A column of ids; by default SPLIT_LINE.
        split: SPLIT=FILE, SPLIT=SPLIT of the dataset, or SPLIT=20% of the texts of --from; repeat it. The file --from
            is the split train.
        annotators: Several annotators: groups (an evidence group each), or majority.
        tokenizer: How --text is cut: whitespace, characters, or a tokenizer's folder; else at U+0020.
        config: The configuration of a dataset, where it has several.
        force: Replace OUT/NAME.
    """

    from_: Annotated[str, typer.Option("--from")]
    name: str
    label: str
    out: Path
    tokens: list[str] | None = None
    text: list[str] | None = None
    mask: list[str] | None = None
    spans: list[str] | None = None
    quotes: list[str] | None = None
    offsets: str | None = None
    query: str | None = None
    id: str | None = None
    split: list[str] | None = None
    annotators: str = "groups"
    tokenizer: str | None = None
    config: str | None = None
    revision: Revision = None
    force: Annotated[bool, typer.Option("--force")] = False


@takes(ImportOptions)
def import_corpus(options: ImportOptions) -> None:
    """Turn a rationale corpus of any shape into OUT/NAME, a folder that `build --source OUT` and `score --data-dir`
    take.

    A column below another is named with a dot: annotators.label. Whatever is left out or changed is counted and said.

    Examples:

        eraser-hub import --from posts.json --name hate --tokens post_tokens --mask rationales \
--label annotators.label --out corpora

        eraser-hub import --from train.csv --split val=dev.csv --name nli --text Sentence1 --text Sentence2
        --mask Sentence1_marked_1 --mask Sentence2_marked_1 --label gold_label --out corpora

        eraser-hub import --from org/claims --split train=train --split test=test --name claims --text abstract \
--spans evidence
        --offsets sentences --query claim --label verdict --out corpora
    """
    from eraser_hub.conversion.importing.corpus import GROUPS, MAJORITY, Columns
    from eraser_hub.conversion.importing.corpus import import_corpus as run
    from eraser_hub.conversion.importing.marks import OFFSETS
    from eraser_hub.conversion.importing.texts import BLANKS

    one_of(options.annotators, (GROUPS, MAJORITY), "--annotators")
    texts_option, texts = _one_given({"--tokens": options.tokens, "--text": options.text})
    marks_option, marks = _one_given({"--mask": options.mask, "--spans": options.spans, "--quotes": options.quotes})
    if len(marks) != len(texts):
        expected = f"expected it as often as {texts_option} ({len(texts)}), found it {len(marks)} times"
        raise typer.BadParameter(expected, param_hint=marks_option)
    if options.offsets is not None:
        one_of(options.offsets, OFFSETS, "--offsets")
        if marks_option != "--spans":
            raise typer.BadParameter("it goes with --spans", param_hint="--offsets")
    if options.tokenizer is not None and texts_option == "--tokens":
        raise typer.BadParameter("it goes with --text: --tokens are cut already", param_hint="--tokenizer")
    default = "tokens" if texts_option == "--tokens" else "characters"
    how = (texts_option == "--tokens", marks_option.removeprefix("--"), options.offsets or default)
    columns = Columns(tuple(texts), tuple(marks), options.label, *how, options.query, options.id)
    sources = _sources(options.from_, options.split or [], options.config, options.revision, texts)
    cut = {"tokenizer": options.tokenizer or BLANKS, "annotators": options.annotators}
    result = run(sources, options.name, columns, options.out, force=options.force, **cut)
    for note in result.notes:
        say(note.replace("`tokenizer`", "--tokenizer"))
    counts = ", ".join(f"{split} {rows:,}" for split, rows in result.rows.items())
    typer.echo(f"{result.folder}: {counts}; labels {', '.join(result.labels)}")
    say(f"next: eraser-hub build eraser --source {result.folder} --out hub")


def _one_given(options: dict[str, list[str] | None]) -> tuple[str, list[str]]:
    """The one option of these that was given, and its values."""
    given = {option: values for option, values in options.items() if values}
    if len(given) != 1:
        raise typer.BadParameter(f"expected one of {', '.join(options)}, found {' and '.join(given) or 'none'}")
    return next(iter(given.items()))


def _sources(
    from_: str, splits: list[str], config: str | None, revision: str | None, texts: Sequence[str]
) -> dict[str, Source]:
    """Split -> its rows."""
    from eraser_hub.conversion.download.addresses import local_file
    from eraser_hub.conversion.importing.sources import parted, source_of_file, sources_of_dataset, suffixes

    pairs = [_pair(split) for split in splits]
    if len({split for split, _ in pairs}) < len(pairs):
        raise typer.BadParameter("expected each split once", param_hint="--split")
    shares = {split: share for split, file in pairs if (share := _share(file)) is not None}
    pairs = [pair for pair in pairs if pair[0] not in shares]
    if from_.endswith(suffixes()):
        if "train" in {*shares, *dict(pairs)}:
            raise typer.BadParameter("expected other splits than train, which is --from", param_hint="--split")
        files = {split: source_of_file(local_file(file)) for split, file in [("train", from_), *pairs]}
        return {**parted(files.pop("train"), shares, texts), **files}
    held = sources_of_dataset(from_, config, revision)
    if not pairs:  # with shares too: they are of this split
        pairs = [("train", "train" if "train" in held else next(iter(held)))]
        rest = [split for split in held if split != pairs[0][1]]
        say(
            f"split: {pairs[0][1]}"
            + (f" (left out: {', '.join(rest)}; --split SPLIT=SPLIT takes them)" if rest else "")
        )
    for _, split in pairs:
        one_of(split, tuple(held), "--split")
    chosen = {split: held[name] for split, name in pairs}
    if shares and "train" not in chosen:
        raise typer.BadParameter("a share is taken from train: name it too (train=SPLIT)", param_hint="--split")
    return {**parted(chosen.pop("train"), shares, texts), **chosen} if shares else chosen


def _share(text: str) -> float | None:
    """``20%`` as 0.2; None for a file or a split."""
    if not text.endswith("%"):
        return None
    try:
        percent = float(text[:-1])
    except ValueError:
        percent = 0
    if not 0 < percent < 100:
        raise typer.BadParameter(f"expected a share between 0% and 100%, found {text!r}", param_hint="--split")
    return percent / 100


def _pair(text: str) -> tuple[str, str]:
    split, equals, file = text.partition("=")
    if not equals or not split or not file:
        raise typer.BadParameter(f"expected SPLIT=FILE, found {text!r}", param_hint="--split")
    return split, file
